"""What a log-linear fit makes equal: means of the features over the rows, and under the law."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from suffice.fitting.report import MatchedStatistics
from suffice.models.markov.approximate.law import SampledFamily
from suffice.models.markov.approximate.measure import Measured
from suffice.models.markov.law import LawFamily
from suffice.solvers.penalties import Penalty, pull_of

Floats = NDArray[np.float64]


def known_means(family: LawFamily, weights: Floats, measured: Measured | None) -> tuple[Floats, Floats | None] | None:
    """Expected means and their errors: those of the chains that measured a fit, else exact; None where neither is."""
    if measured is not None and measured.expected is not None:
        return measured.expected, measured.errors
    return None if isinstance(family, SampledFamily) else (family.moments(weights)[1], None)


def matched_means(
    names: Sequence[str],
    observed: Floats,
    known: tuple[Floats, Floats | None],
    penalty: Penalty | None,
    at: tuple[Floats, float],
) -> MatchedStatistics:
    """Observed and known means (k,), and what the prior adds; `at` are the weights (k,) and the number of rows."""
    (expected, errors), (weights, rows) = known, at
    pull = None if penalty is None else pull_of(penalty, weights, rows * (observed - expected)) / rows
    said = "Means of the features over the rows, and under the fit"
    said += "." if errors is None else ", by the Markov chains that measured it: bars are two standard errors."
    return MatchedStatistics(tuple(names), observed, expected, pull, errors, said)
