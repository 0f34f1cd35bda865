"""Gaussian graphs: normal laws whose precision is zero wherever there is no edge."""
