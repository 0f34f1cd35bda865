"""Tests of hypotheses about a fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from suffice.errors import EstimateError, OptionError, listing
from suffice.fitting.inference import Described, inference_of
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
    parameters: str | Sequence[str] | Mapping[str, float],
    data: object = None,
    y: object = None,
    **given: Any,
) -> HypothesisTest:
    """Test by the standard errors of a fit whether parameters have given values, all of them together.

    Args:
        model: a fitted model of any kind.
        parameters: the name of one, as `summary()` has it, or a list of names, which are tested to be 0; or a dict of
            names and values.
        data: the rows of the fit, for models whose errors need them again.
        y: their response or labels.
        given: what else `fit` takes beside the rows, by name.

    Returns:
        ``d' V^-1 d`` with the differences d and their covariance V, chi-squared; where a dispersion is estimated,
        divided by the number of parameters, and F.
    """
    from scipy.special import chdtrc, fdtrc

    wanted = {parameters: 0.0} if isinstance(parameters, str) else parameters
    values = dict(wanted) if isinstance(wanted, Mapping) else dict.fromkeys(wanted, 0.0)
    if not values:
        raise OptionError("parameters names none; give the name of one as summary() has it, or a list of names.")
    inference = inference_of(model, fit_arguments(data, y, given))
    places = [inference.place(name) for name in values]
    away = inference.values[places] - np.array(list(values.values()), dtype=np.float64)
    covariance = inference.covariance_of(places)
    if not (np.isfinite(away).all() and np.isfinite(covariance).all()):
        raise EstimateError(f"The rows do not tell {listing(values)}: an estimate or its error is not finite.")
    if np.linalg.matrix_rank(covariance, hermitian=True) < len(places):
        raise EstimateError(
            f"The estimates of {listing(values)} are tied to one another, as probabilities that add up to 1 are. Leave "
            "one out."
        )
    statistic, df = float(away @ np.linalg.solve(covariance, away)), float(len(places))
    if inference.df is None:
        return HypothesisTest(statistic, df, float(chdtrc(df, statistic)))
    return HypothesisTest(statistic / df, df, float(fdtrc(df, inference.df, statistic / df)), inference.df, "F")
