"""The options that a fit heeds, what it returns, and the certificate of its result."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.iteration import Outcome
from suffice.models.glm.families import Family, Totals
from suffice.models.glm.priors import Penalties
from suffice.models.glm.problem import Average
from suffice.models.glm.separation import Separation
from suffice.models.glm.solve import Result
from suffice.report import Certificate
from suffice.solvers.gradient import pseudo_gradient
from suffice.solvers.information import Information

Floats = NDArray[np.float64]

#: Pairs of family and link whose log-likelihood is concave in the coefficients.
CONCAVE = {
    *(("gaussian", "identity"), ("binomial", "logit"), ("binomial", "probit"), ("binomial", "cloglog")),
    ("binomial", "loglog"),
    *(("poisson", "log"), ("poisson", "identity"), ("poisson", "sqrt"), ("gamma", "inverse"), ("gamma", "log")),
    *(("inverse_gaussian", "inverse_square"), ("negative_binomial", "log")),
}


@dataclass(frozen=True)
class Wishes:
    """The options of a model that a fit heeds."""

    solver: str = "auto"
    dispersion: Any = "pearson"
    collinear: str = "raise"
    start: Any = None
    keep_iterates: bool = False
    free_size: bool = False
    seed: Any = None
    keeper: Any = None


@dataclass(frozen=True, eq=False)
class Fit:
    """What was learned, in the engine's layout.

    `information` is that of the objective at the dispersion reported; `gap` and `value_gap` are measured at `beta`.
    """

    family: Family
    beta: Floats
    information: Information
    totals: Totals
    average: Average
    dispersion: float
    ml_dispersion: float
    log_likelihood: float
    objective: float
    certificate: Certificate
    outcome: Outcome
    method: str
    separation: Separation
    dropped: tuple[int, ...] = ()
    iterates: tuple[Floats, ...] = ()
    warnings: tuple[str, ...] = ()
    posterior: tuple[Floats, Information, float, float] | None = None
    size_estimated: bool = False
    dispersion_known: bool = False


def certify(
    result: Result, penalties: Penalties, separation: Separation, *, weight: float, phi: float = 1.0, strong: bool
) -> Certificate:
    """From gradient and information at the result.

    `phi` is what the objective is yet to be divided by. `strong` says that the log-likelihood is concave and all else
    known, so that a Gaussian prior on every coefficient bounds what is left: ``g' P^-1 g / 2``. Otherwise half the
    squared Newton decrement estimates it.
    """
    gradient, information = result.last.gradient, result.last.information
    laplace, gaussian = penalties.laplace, penalties.gaussian
    slope = gradient
    if laplace is not None:
        slope = pseudo_gradient(result.beta - laplace.mean, gradient, laplace.rate)
    diagonal = information.diagonal()
    if len(diagonal) != len(slope):
        return Certificate(float(np.abs(slope).max(initial=0.0)), exists=separation.exists, scale="slope")
    scale = np.divide(1.0, np.sqrt(diagonal), out=np.zeros_like(diagonal), where=diagonal > 0.0)
    gap = float((np.abs(slope) * scale).max(initial=0.0)) / math.sqrt(phi)
    if laplace is not None or separation.exists is False:
        return Certificate(gap, exists=separation.exists)
    if gaussian is not None and strong and (gaussian.diagonal() > 0.0).all():
        return Certificate(gap, gaussian.loss_bound(gradient) / weight, True, True, separation.exists)
    value_gap = 0.5 * max(0.0, float(gradient @ information.solve(gradient))) / weight / phi
    return Certificate(gap, value_gap, False, True, separation.exists)


def is_number(value: Any) -> bool:
    """Whether an option is a number rather than a word."""
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)
