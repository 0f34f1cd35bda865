"""How far from the optimum the weights of a conditional random field can be."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from suffice.array_types import Floats
from suffice.fitting.contract import Judgement
from suffice.fitting.report import Certificate, MonteCarlo, in_standard_errors
from suffice.fitting.row_marks import Marks
from suffice.models.conditional_field.curvature import ROUNDING, decrement
from suffice.models.conditional_field.existence import NO_MAXIMUM, FieldExistence
from suffice.models.conditional_field.matched import FeatureTotals
from suffice.models.conditional_field.objective import FieldObjective, relative_gap, slopes

SlopeByChains = tuple[Floats, MonteCarlo]
#: Weights up to which the sum of each feature tells examples from others.
MOST_MARKS = 2_000
#: Standard errors that a fit with the usual tolerance may be away from the maximum.
AWAY, USUAL = 0.1, 1e-5


def marks_of_features(objective: FieldObjective[Any]) -> Marks:
    """What tells labelled examples from others: the sum of each feature, where they are not too many."""
    sums = objective.observed()
    if len(sums) > MOST_MARKS:
        return {}
    names = (" ".join(map(str, name)) for name in objective.structure.names())
    return {name: (value, abs(value)) for name, value in zip(names, sums.tolist(), strict=True)}


def certify(
    objective: FieldObjective[Any],
    x: Floats,
    shares: Floats,
    tolerance: float,
    existence: FieldExistence | None = None,
    chains: SlopeByChains | None = None,
) -> Judgement:
    """What is measured at x; shares (K,) are those of the labels given.

    existence: whether the likelihood has a maximum; None where x does not stand for one. chains: the slope (k,) by
    fresh chains, and how well they measured it, where expectations are sampled.
    """
    value, slope, likelihood = slopes(objective, x)
    penalties, bound = objective.penalties, None
    if objective.concave and penalties.gaussian is not None:
        # The objective is as strongly concave as the prior, whatever else is taken off it.
        bound = penalties.gaussian.loss_bound(slope)
    elif objective.concave and penalties.laplace is not None:
        bound = penalties.laplace.loss_bound(slope, x, -value)
    rise = bound
    if existence is not None and objective.concave and not penalties.any and existence.exists is not False:
        rise = existence.rise if existence.rise is not None else decrement(objective, x, slope, objective.observed())
    if chains is not None:
        slope = chains[0]
        likelihood = slope + penalties.smooth(x)[1]
    certificate = Certificate(
        moment_gap=_moment_gap(objective, x, slope),
        value_gap=None if rise is None else rise / objective.weight,
        bound=bound is not None,
        exact=objective.exact,
        # Likelihoods and pseudo-likelihoods are at most 1: with a prior there is a maximum.
        exists=True if bound is not None or (penalties.any and objective.at_most_one) else None,
        slope=float(np.abs(slope).max(initial=0.0)),
        slope_unit="nats per unit of a weight",
        engine=objective.engine_in_words,
        monte_carlo=None if chains is None else chains[1],
    )
    if existence is not None:
        certificate = existence.judged(certificate, objective.structure.names)
    separated = certificate.exists is False
    return Judgement(
        value + penalties.value(x),
        value,
        certificate,
        gap=_distance(objective, certificate, x, slope, tolerance),
        slope=relative_gap(x, slope),
        kept=FeatureTotals.of(objective.observed(), likelihood, slope, shares, prior=penalties.any),
        marks=marks_of_features(objective),
        verdict=NO_MAXIMUM if separated else "",
        notes=(NO_MAXIMUM,) if separated else (),
    )


def _moment_gap(objective: FieldObjective[Any], x: Floats, slope: Floats) -> float:
    """The largest gap of observed and expected sums of features, in standard errors, or more than that.

    The variance is a bound from below (see `FieldObjective.variance`), with the curvature of a Gaussian prior; so the
    gap is at least as large as it is in standard errors.
    """
    variance, gaussian, observed = objective.variance(x), objective.penalties.gaussian, objective.observed()
    if gaussian is not None:
        variance = variance + gaussian.diagonal()
    return in_standard_errors(slope, variance, ROUNDING * np.maximum(np.abs(observed), np.abs(observed - slope)))


def _distance(
    objective: FieldObjective[Any], certificate: Certificate, x: Floats, slope: Floats, tolerance: float
) -> float:
    """How far from stationary a fit is, in the unit of its tolerance.

    That is relative to the norm of the weights, which hides the slope where weights are large, as those of features
    in small units are. The Newton decrement, in standard errors, has no unit.
    """
    if certificate.monte_carlo is not None:  # Fresh chains have confirmed the fit, or have not.
        return 0.0
    if certificate.value_gap is not None and not certificate.bound:
        decrement = math.sqrt(2.0 * certificate.value_gap * objective.weight)
        if decrement > AWAY * max(1.0, tolerance / USUAL):
            return decrement
    return min(relative_gap(x, slope), float(np.abs(slope).max(initial=0.0)))
