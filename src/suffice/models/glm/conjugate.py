"""Gaussian regression with a conjugate prior on coefficients and variance: the posterior in closed form."""

from __future__ import annotations

import numpy as np

from suffice.errors import EstimateError
from suffice.fitting.control import Outcome, State
from suffice.fitting.report import Certificate
from suffice.models.glm.design import Design
from suffice.models.glm.families import Family
from suffice.models.glm.figures import Fit
from suffice.models.glm.input import Rows, StreamRows
from suffice.models.glm.laws import RowLaw
from suffice.models.glm.links import Link
from suffice.models.glm.priors import Conjugate
from suffice.models.glm.problem import Average, Problem, totals
from suffice.models.glm.separation import Separation


def conjugate_fit(
    rows: Rows | StreamRows, design: Design, family: Family, link: Link, prior: Conjugate, sums_of_y: Average
) -> Fit:
    """Closed form: coefficients given v are Gaussian with precision (X'X + S) / v, v is inverse-gamma."""
    if (family.name, link.name) != ("gaussian", "identity"):
        raise EstimateError(
            f"The prior on coefficients and variance together is conjugate to the Gaussian response with the "
            f"identity link only, not to {family.name} with {link.name}. Use Normal(variance=...)."
        )
    law = RowLaw(family, link)
    strength, mean = design.internal(prior.strength), design.internal(prior.mean)
    bare = Problem(rows, design.layout, law)
    beta = np.zeros(bare.size)
    for _ in range(3):  # The first step is exact but for rounding, which the next ones take out.
        _, gradient, information = bare.curvature(beta)
        together = information.plus(strength)
        beta = beta + together.solve(gradient - strength * (beta - mean))
    if not together.definite:
        raise EstimateError("A coefficient without a prior cannot be told from others; use penalize_intercept=True.")
    sums = totals(rows, bare.layout, law, beta)
    weight = sums_of_y.weight
    flat = int((strength == 0.0).sum())
    shape = prior.alpha + 0.5 * (weight - flat)
    scale = prior.beta + 0.5 * (sums.deviance + float(strength @ (beta - mean) ** 2))
    if not shape > 1.0:
        raise EstimateError(f"The posterior mean of the variance needs a shape above 1; it is {shape:g}.")
    variance = scale / (shape - 1.0)
    _, gradient, information = bare.curvature(beta)
    slope = (gradient - strength * (beta - mean)) / variance
    together = information.plus(strength).times(1.0 / variance)
    gap = float((np.abs(slope) / np.sqrt(together.diagonal())).max(initial=0.0))
    value_gap = 0.5 * float(slope @ together.solve(slope)) / weight
    log_likelihood = family.log_likelihood(sums, variance)
    state = Outcome(State(beta, log_likelihood, 0.0), True, "closed form", ())
    return Fit(
        family,
        beta,
        together,
        sums,
        sums_of_y,
        variance,
        sums.deviance / weight,
        log_likelihood,
        log_likelihood,
        Certificate(gap, value_gap, True, True, True),
        state,
        "closed form",
        Separation(True),
        posterior=(beta, information.plus(strength), shape, scale),
    )
