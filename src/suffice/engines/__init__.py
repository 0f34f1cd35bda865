"""Engines predict: from factors to marginals, samples, best assignments and expected statistics.

An engine plans once for a structure, cards and scopes alone; the plan takes the numbers and answers.
"""
