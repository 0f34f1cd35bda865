"""Compiled loops. Importing a module of this folder imports Numba, so it happens only when `choice` says it pays."""
