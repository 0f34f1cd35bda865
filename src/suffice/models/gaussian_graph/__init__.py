"""Gaussian graphs: normal distributions whose precision is zero wherever there is no edge."""
