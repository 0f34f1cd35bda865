"""Rows of probabilities: initial, transition and emission tables are made of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def normalised(counts: Floats, before: Floats, least: float) -> Floats:
    """Each row of counts (..., k) divided by its sum; a row of at most `least` keeps what it was before."""
    total = counts.sum(axis=-1, keepdims=True)
    used = total > least
    return np.where(used, counts / np.where(used, total, 1.0), before)


def pseudo_log_prior(pseudo: Floats, probabilities: Floats) -> Floats:
    """Sum of pseudo-counts times log probabilities along the last axis: log Dirichlet(1 + pseudo) up to a constant."""
    from scipy.special import xlogy

    return np.asarray(xlogy(pseudo, probabilities).sum(axis=-1))
