"""Exponential families and their conjugate priors: one file for each distribution."""
