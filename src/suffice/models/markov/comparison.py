"""A fitted Markov network beside the saturated model: expected counts, deviance, Pearson's statistic, their chances."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from suffice.answers import PatternTable
from suffice.array_types import Floats
from suffice.errors import EstimateError
from suffice.models.em.held_rows import rows_are_kept
from suffice.models.em.rows import has_missing
from suffice.models.markov.existence import find_face
from suffice.models.markov.fitted import MarkovFitted
from suffice.models.markov.learning import feature_bounds, largest_sum
from suffice.models.markov.observed import joint_counts
from suffice.solvers.rank import dimensions
from suffice.solvers.scaling import likelihood_bound
from suffice.statistics import Summary
from suffice.table import Table

if TYPE_CHECKING:
    from suffice.models.markov.declaration import MarkovNetwork

#: The joint states that occur (k, variables), codes in the order of the variables, and their counts (k,).
Joint = tuple[NDArray[Any], Floats]

#: Joint states up to which what was not observed is summed cell by cell, and not taken as the rest.
SUMMED_CELLS = 2**20


def joint_of(summary: Summary, names: tuple[Hashable, ...]) -> Joint | None:
    """The joint states of some variables and their counts, where a summary holds them and no value is missing."""
    if not has_missing(summary):
        return joint_counts(summary, names)
    patterns: PatternTable = summary[next(iter(summary.answers))]
    if not rows_are_kept(summary) or (patterns.rows < 0).any():
        return None
    return patterns.rows.astype(np.intp), patterns.weights


def kept_joint(summary: Summary, names: tuple[Hashable, ...]) -> Joint:
    """As `joint_of`; an error where the fit has not kept them."""
    joint = joint_of(summary, names)
    if joint is None:
        raise EstimateError(
            "The summary holds no joint counts of all variables, so there is no saturated model to compare with: the "
            "fit was from margins alone or from rows with missing values, or the joint states are too many to be kept. "
            "deviance(rows) counts the rows anew."
        )
    return joint


@dataclass(frozen=True, eq=False)
class Comparison:
    """A fitted value beside joint counts of the variables that are `observed`: all, or all that are not hidden."""

    fitted: MarkovFitted
    observed: tuple[Hashable, ...]

    @property
    def n_cells(self) -> int:
        """Joint states of the observed variables."""
        return math.prod(self.fitted.domain.shape(self.observed))

    def expected(self, codes: NDArray[Any], counts: Floats) -> tuple[Floats, float]:
        """Expected counts of these joint states (k,), and of all others together."""
        fitted, total = self.fitted, math.fsum(counts)
        if len(self.observed) < len(fitted.nodes):
            columns = dict(zip(self.observed, codes.T.astype(np.int32), strict=True))
            expected = total * np.exp(fitted.inference.log_likelihood(columns, len(codes), None))
            return expected, max(0.0, total - math.fsum(expected))
        expected = total * np.exp(fitted.log_cells(codes))
        if self.n_cells > SUMMED_CELLS:
            return expected, max(0.0, total - math.fsum(expected))
        joint = np.exp(fitted.near.log_joint(fitted.finite, fitted.log_normaliser))
        joint[tuple(codes.T)] = 0.0
        return expected, total * float(joint.sum())

    def deviance(self, codes: NDArray[Any], counts: Floats) -> float:
        """G^2 = 2 sum (n log(n / expected) - n + expected).

        The last two terms add up to 0 over all cells, and take away what rounding of the expected counts does at first
        order.
        """
        expected, rest = self.expected(codes, counts)
        if (expected == 0).any():
            return math.inf
        ratio = (expected - counts) / counts
        return max(0.0, 2.0 * math.fsum([*(counts * (ratio - np.log1p(ratio))), rest]))

    def chi2(self, codes: NDArray[Any], counts: Floats) -> float:
        """Pearson's X^2 = sum (n - expected)^2 / expected; cells expected and observed 0 add nothing."""
        expected, rest = self.expected(codes, counts)
        if (expected == 0).any():
            return math.inf
        return math.fsum([*((counts - expected) ** 2 / expected), rest])


# -- what a network says ----------------------------------------------------------------------------------------------


def _comparison(network: MarkovNetwork) -> Comparison:
    return Comparison(network.fitted_, network._learned_by().spec.observed)


def n_cells(network: MarkovNetwork) -> int:
    """Joint states of all variables that are not hidden."""
    return _comparison(network).n_cells


def df(network: MarkovNetwork) -> int:
    """Degrees of freedom against the saturated model: cells - 1 - parameters."""
    return n_cells(network) - 1 - network.n_params_


def deviance(network: MarkovNetwork) -> float:
    """G^2 = 2 sum (n log(n / expected) - n + expected): twice the log-likelihood that the saturated model gains.

    Where the joint counts are too many to be kept it is 2 N KL(data || model); of more variables than are counted
    together it is asked for by `deviance`.
    """
    comparison, known = _comparison(network), network.report_.kl_divergence
    if known is not None and joint_of(network.statistics_, comparison.observed) is None:
        return 2.0 * network.report_.weight * known
    return comparison.deviance(*kept_joint(network.statistics_, comparison.observed))


def deviance_of(network: MarkovNetwork, joint: Joint) -> float:
    """G^2 of other joint counts."""
    return _comparison(network).deviance(*joint)


def chi2(network: MarkovNetwork) -> float:
    """Pearson's X^2 = sum (n - expected)^2 / expected over all cells; cells expected and observed 0 add nothing."""
    comparison = _comparison(network)
    return comparison.chi2(*kept_joint(network.statistics_, comparison.observed))


def adjusted_n_params(network: MarkovNetwork) -> int | None:
    """Parameters that the data can tell: where the maximum is not attained, those of the distributions on its face.

    Equal to `n_params_` where it is attained; None where the face is too large to be found.
    """
    return on_face(network.fitted_, network.statistics_)[0]


def adjusted_df(network: MarkovNetwork) -> int | None:
    """Degrees of freedom on the face of an extended maximum: joint states left - 1 - parameters left."""
    return on_face(network.fitted_, network.statistics_)[1]


def _test_df(network: MarkovNetwork) -> int:
    adjusted = adjusted_df(network) if network.report_.certificate.exists is False else None
    return df(network) if adjusted is None else adjusted


def p_value(network: MarkovNetwork) -> float:
    """Chance of a larger deviance if the model is true, by the chi-squared distribution.

    Its degrees of freedom are `df_`, or `adjusted_df_` where the maximum is not attained and that is known.
    """
    return chance(_test_df(network), deviance(network))


def fitted_counts(network: MarkovNetwork) -> Table:
    """Expected counts N p(x) of every joint state, axes in the order of `nodes`."""
    return network.to_joint() * network.report_.weight


def tests(network: MarkovNetwork) -> tuple[tuple[str, str], ...]:
    """Statistics that test the fit against the saturated model, in words; none where its joint counts are not kept."""
    if joint_of(network.statistics_, _comparison(network).observed) is None:
        return ()
    degrees, attained = _test_df(network), df(network)
    statistics = (("Likelihood ratio", deviance(network)), ("Pearson", chi2(network)))
    lines = [(label, f"{value:,.6g} on {degrees} df, p = {chance(degrees, value):.5g}") for label, value in statistics]
    if degrees != attained:
        lines.append(("df on the face", f"of the limit: {attained} if the maximum were attained"))
    return tuple(lines)


# -- parts -----------------------------------------------------------------------------------------------------------


def on_face(fitted: MarkovFitted, summary: Summary) -> tuple[int | None, int | None]:
    """Parameters and degrees of freedom on the smallest face with the observed margins; None where they are unknown."""
    if has_missing(summary):
        return None, None
    margins = fitted.counts(summary) / summary.weight
    return dimensions(find_face(fitted.model, margins, summary))


def scaling_bound(fitted: MarkovFitted, summary: Summary, weights: ArrayLike) -> float:
    """The bound of the log-likelihood that iterative scaling maximises, see `MarkovNetwork.gis_lower_bound`."""
    family, model = fitted.family, fitted.model
    observed = model.expected(fitted.counts(summary) / summary.weight)
    lower = feature_bounds(model)
    total = largest_sum(family, np.arange(model.n_weights)) - float(lower.sum())
    anchor = (fitted.finite, *family.moments(fitted.finite))
    return likelihood_bound(weights, anchor, observed, total=max(total, 1e-300), lower=lower)


def chance(df: int, value: float) -> float:
    """P(chi-squared with df degrees of freedom > value); 1 without any."""
    from scipy.special import chdtrc

    return float(chdtrc(df, value)) if df else 1.0
