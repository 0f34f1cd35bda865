"""Markov networks beyond exact inference: samplers, approximate solvers, and what they answer."""
