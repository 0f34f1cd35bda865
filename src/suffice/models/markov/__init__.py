"""Markov networks and log-linear models."""
