"""Expectation and maximisation: what all models with hidden variables or missing values share."""
