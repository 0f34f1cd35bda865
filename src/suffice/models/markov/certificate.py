"""How near a log-linear fit is to its maximum, measured at the weights that were returned.

Nothing that a solver keeps is used: the distribution is made anew from the weights by the engine that answers
questions.

- With a normal prior the objective is strongly concave, with a Laplace prior its maximum lies in a known ball: what is
  left is bounded by the slope.
- Of a decomposable model without a prior the largest log-likelihood is known from the margins m of cliques and
  separators alone, ``sum over cliques of m log m - sum over separators of m log m`` (Lauritzen 1996, section 4.4), and
  what is left is the difference.
- Else half the squared Newton decrement estimates it.

No number is stated below the rounding of the objective itself, of which it is a part.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from suffice.array_types import Floats
from suffice.fitting.report import Certificate, in_standard_errors
from suffice.models.markov.existence import WeightExistence
from suffice.models.markov.family import LogLinearFamily
from suffice.models.markov.feature import Feature
from suffice.models.markov.feature_spread import feature_units, standardised, variances
from suffice.models.markov.log_linear import LogLinear
from suffice.models.markov.priors import penalised_slope
from suffice.solvers.newton import solve_truncated
from suffice.solvers.penalties import GaussianPenalty, LaplacePenalty, Penalty
from suffice.solvers.rank import inverse_and_flat
from suffice.solvers.scaling import inner

#: How exactly the equations of the Newton decrement are solved: it is an estimate.
FORCING = 1e-2
#: A variance below this, in units of the spread of a feature squared, is that of a feature that does not vary.
CONSTANT = 1e-20
#: In the whole covariance a feature that varies by less than this beside others counts as constant.
STILL = 1e-10
#: Weights up to which the decrement is computed from the whole covariance where products with it do not suffice.
WHOLE_WEIGHTS = 500
#: Rounding of a sum of numbers of the size of one, of which each doubling of its length adds as much again.
ROUNDING = 4 * float(np.finfo(np.float64).eps)

#: What a report says where somebody has stopped the judge: the fit itself is done.
NOT_MEASURED = "the certificate was not measured: interrupted"
#: Features on several scopes of which the variance is computed exactly; of more their parts count as independent.
MOST_TIED = 20


@dataclass(frozen=True, eq=False)
class _ExactMeasurement:
    """The distribution at some weights, beside what was observed: all of one row.

    log_likelihood of the observed margins; slope (n_weights,) of the objective, of least size under a Laplace prior;
    noise (n_weights,) and rounding: how exactly slope and objective are known.
    """

    family: LogLinearFamily
    weights: Floats
    marginals: Floats
    log_likelihood: float
    slope: Floats
    noise: Floats
    rounding: float


def certify(
    family: LogLinearFamily,
    weights: Floats,
    margins: Floats,
    weight: float,
    penalty: Penalty | None,
    existence: WeightExistence,
    *,
    deadline: float = math.inf,
) -> tuple[Certificate, float]:
    """Measure the slope of the objective at the weights, and what it says about the distance to the maximum.

    Gives the certificate, and the largest slope a row in units of the spread of each feature (see
    `markov.feature_spread`), which tolerances are about. deadline: when to give up the value gap, in seconds of
    `time.monotonic`.
    """
    units = feature_units(family.model, margins)
    family, weights = family.over(standardised(family.model, units, margins)), weights * units
    penalty = None if penalty is None else penalty.in_units(units)
    measured = _measure(family, weights, margins, weight, penalty)
    variance = feature_variances(family, weights, measured.marginals)
    value, bound = _value_gap(measured, margins, weight, penalty, existence, deadline)
    gaps = gap_fields(measured.slope, variance, weight, penalty, units, measured.noise)
    certificate = Certificate(
        value_gap=value, bound=bound, exists=existence.exists, directions=existence.directions, **gaps
    )
    return certificate, gaps["slope"]


def gap_fields(
    slope: Floats,
    variance: Floats,
    weight: float,
    penalty: Penalty | None,
    units: Floats,
    noise: Floats | float = 0.0,
) -> dict[str, Any]:
    """What a certificate says about a slope of the objective (n_weights,), a row.

    Args:
        slope: Of least size under a Laplace prior, for weights times the `units` of their features (n_weights,).
        variance: That of each feature in one row (n_weights,), in its unit squared.
        weight: Number of rows.
        penalty: What the prior takes off the objective, in the same units.
        units: Those of the features.
        noise: What rounding alone may leave of the slope.
    """
    if isinstance(penalty, GaussianPenalty):
        variance = variance + penalty.diagonal() / weight
    return {
        "moment_gap": in_standard_errors(weight * slope, weight * variance, weight * noise),
        "slope": float(np.abs(slope).max(initial=0.0)),
        "slope_unit": "nats per row per unit of a weight"
        + ("" if (units == 1.0).all() else ", features in units of their spread"),
    }


def feature_variances(family: LogLinearFamily, weights: Floats, marginals: Floats) -> Floats:
    """Variance of each feature (n_weights,) in one row of the distribution with these marginals (n_cells,).

    Of features on several scopes that takes their covariances too: a product with the whole covariance for each.
    """
    variance, model = variances(family.model, marginals), family.model
    terms = zip(model.terms, model.weight_slices, strict=True)
    tied = [own.start for term, own in terms if isinstance(term, Feature) and len(term.placements) > 1]
    if 0 < len(tied) <= MOST_TIED:
        product = family.covariance_product(weights)
        for column in tied:
            unit = np.zeros(model.n_weights)
            unit[column] = 1.0
            variance[column] = product(unit)[column]
    return variance


def _measure(
    family: LogLinearFamily, weights: Floats, margins: Floats, weight: float, penalty: Penalty | None
) -> _ExactMeasurement:
    """The distribution by the engine of queries, which no solver uses, from the weights alone."""
    model, distribution = family.model, family.tree(weights).condition()
    tables = distribution.factor_marginals()[: len(model.scopes)]
    marginals = np.concatenate([np.zeros(0), *(table.ravel() for table in tables)])
    observed, expected = model.expected(margins), model.expected(marginals)
    sizes = _absolute(model, margins) + _absolute(model, marginals)
    slope, logs = observed - expected, family.potentials(weights)[: model.n_cells]
    size = inner(np.abs(logs), margins) + abs(distribution.log_partition)
    if penalty is not None:
        size += penalty.value(weights) / weight
    if isinstance(penalty, GaussianPenalty):
        sizes = sizes + np.abs(penalty.slope(weights)) / weight
    slope = penalised_slope(penalty, weights, slope, weight)
    unit = ROUNDING * (1.0 + math.log2(1.0 + model.n_cells))
    log_likelihood = inner(logs, margins) - distribution.log_partition
    return _ExactMeasurement(family, weights, marginals, log_likelihood, slope, unit * sizes, unit * (1.0 + size))


def _absolute(model: LogLinear, shares: Floats) -> Floats:
    """The mean size of each feature (n_weights,): how large the terms are whose sum is its mean."""
    return shares if model.is_identity else np.asarray(abs(model.matrix).T @ shares)


def _value_gap(
    measured: _ExactMeasurement,
    margins: Floats,
    weight: float,
    penalty: Penalty | None,
    existence: WeightExistence,
    deadline: float,
) -> tuple[float | None, bool]:
    """What the objective can still rise by, in nats per row, and whether that is a bound."""
    if isinstance(penalty, GaussianPenalty):
        return weight * penalty.loss_bound(measured.slope, measured.noise) + measured.rounding, True
    if isinstance(penalty, LaplacePenalty):
        loss = penalty.value(measured.weights) - weight * measured.log_likelihood
        return penalty.loss_bound(measured.slope, measured.weights, loss, measured.noise) + measured.rounding, True
    if existence.exists is False and not existence.notes:  # The margins are those of no distribution: no limit.
        return None, False
    best = _decomposable_maximum(measured.family.model, margins)
    if best is not None:
        return max(0.0, best - measured.log_likelihood) + measured.rounding, True
    left = _decrement(measured, deadline)
    return (None if left is None else left + measured.rounding), False


def _decomposable_maximum(model: LogLinear, margins: Floats) -> float | None:
    """The largest mean log-likelihood of a decomposable model of tables; None for any other."""
    if not model.is_tables or model.decomposition.tree is None:
        return None
    tree, total = model.decomposition.tree, 0.0
    for home, separator in zip(model.decomposition.homes, tree.separators, strict=True):
        table = model.part(margins, home)
        total += _plogp(table)
        if separator:
            drop = tuple(axis for axis, name in enumerate(model.scopes[home]) if name not in separator)
            total -= _plogp(table.sum(axis=drop))
    held = {name for scope in model.scopes for name in scope}
    return total - math.fsum(math.log(card) for name, card in model.cards.items() if name not in held)


def _plogp(shares: Floats) -> float:
    seen = shares[shares > 0.0]
    return float(seen @ np.log(seen))


# -- the Newton decrement --------------------------------------------------------------------------------------------


class _LateError(Exception):
    """There is no time left."""


def _decrement(measured: _ExactMeasurement, deadline: float) -> float | None:
    """Half the squared Newton decrement, which estimates how much the objective can still rise, in nats per row.

    None where the equations could not be solved: the distribution does not curve along the slope, or the time is up. A
    slope that rounding alone explains is none.
    """
    slope = np.where(np.abs(measured.slope) > measured.noise, measured.slope, 0.0)
    if not slope.any():
        return 0.0
    try:
        return _by_products(measured, slope, deadline)
    except _LateError:
        return None


def _by_products(measured: _ExactMeasurement, slope: Floats, deadline: float) -> float | None:
    """By conjugate gradients on products with the covariance; from the whole of it where these do not suffice."""
    variance = variances(measured.family.model, measured.marginals)
    diagonal = 1.0 / np.where(variance > CONSTANT, variance, 1.0)
    product = _until(deadline, measured.family.covariance_product(measured.weights))
    direction, _ = solve_truncated(product, slope, diagonal, FORCING)
    left = slope - product(direction)
    small = float(left @ (diagonal * left)) <= (2.0 * FORCING) ** 2 * float(slope @ (diagonal * slope))
    if small or (np.abs(left) <= measured.noise).all():
        return 0.5 * max(0.0, float(slope @ direction))
    if len(slope) > WHOLE_WEIGHTS:
        return None
    inverse, flat, _ = inverse_and_flat(measured.family.covariance(measured.weights), STILL)
    if (np.abs(flat.T @ slope) > np.sqrt((flat**2).T @ measured.noise**2)).any():
        return None
    return 0.5 * max(0.0, float(slope @ inverse @ slope))


def _until(deadline: float, function: Callable[[Floats], Floats]) -> Callable[[Floats], Floats]:
    """The function, which raises as soon as the time is up."""

    def timed(vector: Floats) -> Floats:
        if time.monotonic() > deadline:
            raise _LateError
        return function(vector)

    return timed
