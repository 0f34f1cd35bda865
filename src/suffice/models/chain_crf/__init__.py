"""Conditional random fields on chains: labels of the steps of a sequence, given features of these steps."""
