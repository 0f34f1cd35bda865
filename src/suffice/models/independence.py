"""Tests of a given independence, A _|_ B | C, from counts within strata or by the partial correlation."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from suffice.array_types import Floats
from suffice.checks import choice
from suffice.choices import TableStatistic, choices
from suffice.errors import EstimateError, OptionError, listing, shortened
from suffice.fitting.hypotheses import HypothesisTest
from suffice.models.em.rows import has_missing
from suffice.models.markov.observed import observed_margin
from suffice.models.nesting import chi2_test
from suffice.statistics import Moments, Summary

#: Eigenvalues of correlations below this are those of columns of which one follows from others.
SINGULAR = 1e-12


def independence_test(
    model: Any, first: Hashable, second: Hashable, given: Any = (), *, statistic: TableStatistic | None = None
) -> HypothesisTest:
    """Test whether two variables are independent given others, from what a fit or a summary knows about its rows.

    Args:
        model: a fitted model that counts these variables together or holds their moments, such as a `MarkovNetwork` or
            a `GaussianGraph`, whatever its structure; or a `Summary`.
        first: a variable.
        second: another one.
        given: the variables that are given: a name or a list of names; none unless said.
        statistic: of counts: ``"G2"``, the likelihood ratio, which is the default, or ``"X2"``, Pearson's.

    Returns:
        Of counts the sum of the statistics of all strata, the joint states of what is given: chi-squared with the sum
        of their degrees of freedom, in each (rows - 1)(columns - 1) of those that occur. Of numbers the F test of the
        partial correlation r from n rows given k columns, ``r^2 (n - 2 - k) / (1 - r^2)``, exact for normal rows.
    """
    summary = model if isinstance(model, Summary) else getattr(model, "statistics_", None)
    if not isinstance(summary, Summary):
        raise OptionError(f"model is {shortened(model)}; expected a fitted model that keeps statistics, or a Summary.")
    none = isinstance(given, list | tuple) and not given
    names = (*summary.domain.names_of([first, second]), *(() if none else summary.domain.names_of(given)))
    if len(set(names)) < len(names):
        raise OptionError(f"{listing(names)}: expected two different variables, and others that are given.")
    if has_missing(summary):
        raise EstimateError("Rows with missing values have no counts of all variables. Use likelihood_ratio_test.")
    moments = _moments_of(summary, names)
    if moments is not None:
        if statistic is not None:
            raise OptionError(f"statistic={statistic!r} is of counts; numbers are tested by the partial correlation.")
        return _of_correlation(*moments, names)
    counts = observed_margin(summary, names)
    if counts is None:
        raise EstimateError(
            f"The rows were not counted by {listing(names)} together, nor are there moments of them. Fit a model "
            "with a clique of them, such as MarkovNetwork([(...)])."
        )
    asked = "G2" if statistic is None else choice(statistic, "statistic", choices(TableStatistic))
    return _of_strata(np.moveaxis(counts, (0, 1), (-2, -1)).reshape(-1, *counts.shape[:2]), asked, names)


def _moments_of(summary: Summary, names: tuple[Hashable, ...]) -> tuple[Floats, float] | None:
    """Covariance about the means, and the weight of the rows; None where there are no moments of them together."""
    for question, answer in summary.answers.items():
        if isinstance(question, Moments) and set(names) <= set(question.variables):
            moments: Any = answer
            chosen = moments.select([question.variables.index(name) for name in names])
            return chosen.covariance, float(chosen.weight)
    return None


def _of_correlation(covariance: Floats, weight: float, names: tuple[Hashable, ...]) -> HypothesisTest:
    from scipy.special import fdtrc

    df = weight - len(names)
    if df <= 0:
        raise EstimateError(f"{weight:g} rows tell no partial correlation of {len(names)} columns; more are needed.")
    units = np.sqrt(np.diagonal(covariance))
    if not (units > 0.0).all():
        raise EstimateError(f"Some of {listing(names)} are constant; there is nothing to test.")
    correlations = covariance / np.outer(units, units)
    if np.linalg.eigvalsh(correlations)[0] < SINGULAR:
        raise EstimateError(
            f"Of {listing(names)} one is a sum of others; there is no partial correlation. Leave it out."
        )
    precision = np.linalg.inv(correlations)
    # 1 - r^2, from which no large part is taken away.
    share = precision[0, 1] ** 2 / (precision[0, 0] * precision[1, 1])
    ratio = float(df * share / (1.0 - share))
    return HypothesisTest(ratio, 1.0, float(fdtrc(1.0, df, ratio)), df, "F")


def _of_strata(counts: Floats, statistic: str, names: tuple[Hashable, ...]) -> HypothesisTest:
    """From counts (strata, states of the first, states of the second)."""
    across, down, sizes = counts.sum(axis=2), counts.sum(axis=1), counts.sum(axis=(1, 2))
    free = ((across > 0.0).sum(axis=1) - 1).clip(0) * ((down > 0.0).sum(axis=1) - 1).clip(0)
    if not free.any():
        raise EstimateError(f"In no stratum do both {names[0]!r} and {names[1]!r} vary; there is nothing to test.")
    expected = across[:, :, None] * down[:, None, :] / np.where(sizes > 0.0, sizes, 1.0)[:, None, None]
    left = expected > 0.0
    seen, even = counts[left], expected[left]
    if statistic == "X2":
        return chi2_test(float(((seen - even) ** 2 / even).sum()), float(free.sum()))
    ratios = np.where(seen > 0.0, seen, even) / even
    return chi2_test(max(0.0, 2.0 * float((seen * np.log(ratios) - seen + even).sum())), float(free.sum()))
