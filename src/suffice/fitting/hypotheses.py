"""Tests of hypotheses about a fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from suffice.array_types import Floats
from suffice.errors import EstimateError, listing
from suffice.fitting.inference import Described, Inference, inference_of
from suffice.fitting.linear_hypotheses import Hypothesis, restrictions
from suffice.fitting.samples import fit_arguments


@dataclass(frozen=True)
class HypothesisTest:
    """A test: `statistic` on `df` degrees of freedom has `p_value`; `name` is that of its distribution.

    A likelihood-ratio test of regressions whose dispersion is estimated has the F ratio of the drop in deviance to the
    dispersion of the larger fit, on `df` and `df_rest` degrees of freedom. All others are chi-squared. `note` says what
    a reader has to know.
    """

    statistic: float
    df: float
    p_value: float
    df_rest: float | None = None
    name: str = "chi2"
    note: str = ""

    def __str__(self) -> str:
        """One line."""
        on = f"{self.df:g}" if self.df_rest is None else f"{self.df:g}, {self.df_rest:g}"
        note = f" ({self.note})" if self.note else ""
        return f"{self.name} = {self.statistic:.6g} on {on} df, p = {self.p_value:.4g}{note}"

    __repr__ = __str__


def wald_test(
    model: Described,
    hypothesis: Hypothesis,
    data: object = None,
    y: object = None,
    **given: Any,
) -> HypothesisTest:
    """Test linear hypotheses about the parameters by the standard errors of a fit, all of them together.

    Args:
        model: a fitted model of any kind.
        hypothesis: text such as ``"a = b, 2*c - d = 1"`` with names as `summary()` has them; the name of a parameter,
            or a list of names, which are tested to be 0; a dict of names and values; or a matrix R with a column for
            each parameter, or R and q, for ``R beta = q``. Of a Markov network also an edge, or a larger clique, as a
            tuple of its nodes: whether the logarithm of the distribution has no effect of all of them together.
        data: the rows of the fit, for models whose errors need them again.
        y: their response or labels.
        given: what else `fit` takes beside the rows, by name.

    Returns:
        ``d' (R V R')^-1 d`` with the differences ``d = R beta - q`` and the covariance V of the estimates, chi-squared;
        where a dispersion is estimated, divided by the number of equations, and F.
    """
    inference = inference_of(model, fit_arguments(data, y, given))
    effect = None if inference.effect is None else inference.effect(hypothesis)
    if effect is not None:
        return _of_effect(*effect)
    R, q = restrictions(hypothesis, inference.names)
    return wald_test_of(inference, R, q)


def _of_effect(away: Floats, covariance: Floats) -> HypothesisTest:
    """The test that effects (m,) are 0, with their covariance (m, m)."""
    from scipy.special import chdtrc

    statistic = float(away @ np.linalg.solve(covariance, away))
    return HypothesisTest(statistic, float(len(away)), float(chdtrc(len(away), statistic)))


def wald_test_of(inference: Inference, R: Floats, q: Floats) -> HypothesisTest:
    """The test of ``R beta = q``, (r, k) and (r,)."""
    from scipy.special import chdtrc, fdtrc

    places = np.flatnonzero(R.any(axis=0))
    part, named = R[:, places], [inference.names[number] for number in places]
    covariance = inference.covariance_of(places.tolist())
    with np.errstate(invalid="ignore"):
        away = part @ inference.values[places] - q
        spread = part @ covariance @ part.T
    if not (np.isfinite(away).all() and np.isfinite(spread).all()):
        raise EstimateError(f"The rows do not tell {listing(named)}: an estimate or its error is not finite.")
    scale = np.sqrt(np.maximum(np.diagonal(spread), 0.0))
    if not (scale > 0.0).all() or np.linalg.matrix_rank(spread / np.outer(scale, scale), hermitian=True) < len(R):
        raise EstimateError(
            f"The estimates of {listing(named)} are tied to one another, as probabilities that add up to 1 are, or the "
            "hypotheses say the same twice. Leave one out."
        )
    turned = away / scale
    statistic, df = float(turned @ np.linalg.solve(spread / np.outer(scale, scale), turned)), float(len(R))
    if inference.df is None:
        return HypothesisTest(statistic, df, float(chdtrc(df, statistic)))
    return HypothesisTest(statistic / df, df, float(fdtrc(df, inference.df, statistic / df)), inference.df, "F")
