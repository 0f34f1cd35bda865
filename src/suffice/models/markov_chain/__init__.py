"""Markov chains of any order and language models."""
