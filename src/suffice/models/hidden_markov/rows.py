"""Rows of probabilities: initial, transition and emission tables are made of them."""

from __future__ import annotations

from suffice.array_types import Floats
from suffice.families.categoricals import Categoricals


def normalised(counts: Floats, before: Floats, least: float) -> Floats:
    """Each row of counts (..., k) divided by its sum; a row of at most `least` keeps what it was before."""
    return Categoricals.most_likely(counts, before=before, least=least).probabilities


def pseudo_log_prior(pseudo: Floats, probabilities: Floats) -> Floats:
    """Sum of pseudo-counts times log probabilities along the last axis: log Dirichlet(1 + pseudo) up to a constant."""
    return Categoricals(probabilities).log_likelihood(pseudo)
