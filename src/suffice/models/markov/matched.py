"""What a log-linear fit makes equal: means of the features over the rows, and under the fit."""

from __future__ import annotations

from collections.abc import Sequence

from suffice.array_types import Floats
from suffice.fitting.report import MatchedStatistics
from suffice.solvers.penalties import Penalty, pull_of


def matched_means(
    names: Sequence[str],
    observed: Floats,
    expected: Floats,
    penalty: Penalty | None,
    weights: Floats,
    rows: float,
    errors: Floats | None = None,
) -> MatchedStatistics:
    """Observed and expected means (k,), and what the prior adds at the weights (k,); `rows` is their number.

    errors (k,): standard errors of the expected means, where chains have measured them.
    """
    pull = None if penalty is None else pull_of(penalty, weights, rows * (observed - expected)) / rows
    caption = "Means of the features over the rows, and under the fit"
    caption += "." if errors is None else ", by the Markov chains that measured it: bars are two standard errors."
    return MatchedStatistics(tuple(names), observed, expected, pull, errors, caption)
