"""How far the coefficients of a regression are from the optimum, by what is measured there."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from suffice.array_types import Floats
from suffice.fitting.control import Outcome, State
from suffice.fitting.report import Certificate, in_standard_errors
from suffice.models.glm.duality import duality_gap
from suffice.models.glm.family import Family, Totals
from suffice.models.glm.priors import CoefficientPenalties
from suffice.models.glm.problem import RegressionProblem
from suffice.models.glm.sample import some_rows
from suffice.models.glm.separation import Separation
from suffice.models.glm.solve import MOST_DENSE, Result, told_to_stop
from suffice.solvers.gradient import pseudo_gradient
from suffice.solvers.information import Information
from suffice.solvers.irls import ROUNDING, Last

#: Pairs of family and link whose log-likelihood is concave in the coefficients, wherever it is finite.
CONCAVE = {
    *(("gaussian", "identity"), ("binomial", "logit"), ("binomial", "probit"), ("binomial", "cloglog")),
    *(("binomial", "loglog"), ("binomial", "log"), ("binomial", "identity")),
    *(("poisson", "log"), ("poisson", "identity"), ("poisson", "sqrt"), ("gamma", "inverse"), ("gamma", "log")),
    *(("inverse_gaussian", "inverse_square"), ("inverse_gaussian", "inverse"), ("negative_binomial", "log")),
}
#: How many times the rounding of the coefficients a slope may be.
FAR = 100.0


def point_of(problem: RegressionProblem, inner: Floats, *, every: bool = False) -> Result:
    """Value, slope and information at coefficients in the engine's layout, from nothing but the rows.

    The slope is that of all rows. The information is that of some rows where there are many, unless that of `every` row
    is asked for, and none where it would be too large.
    """
    beta = inner if problem.kept is None else inner[problem.kept]
    some, _, stands = (None, 1, 1.0) if every else some_rows(problem)
    if some is not None:
        last = Last(beta, *problem.objective(beta), some.evaluate(beta)[2])
    elif problem.layout.body * problem.outputs <= MOST_DENSE:
        last = Last(beta, *problem.evaluate(beta))
    else:
        last = Last(beta, *problem.objective(beta), Information(np.zeros((0, 0))))
    outcome = Outcome(State(beta, last.value, 0.0), True, "measured", ())
    return Result(beta, outcome, last, origin=None if some is None else beta, stands=stands)


def in_units(
    slope: Floats,
    variance: Floats,
    value_gap: float | None = None,
    *,
    bound: bool = False,
    exists: bool | None = None,
    directions: tuple[str, ...] = (),
) -> Certificate:
    """A certificate from the slope of the objective and its variance, the diagonal of the information.

    In the canonical link the slope of a coefficient is observed less expected total of its column, and the information
    is the variance of that total. A coefficient of which no row says anything has its slope in nats.
    """
    gap = in_standard_errors(np.ravel(slope), np.ravel(np.where(variance > 0.0, variance, 1.0)))
    size = float(np.abs(slope).max(initial=0.0))
    return Certificate(gap, value_gap, bound, True, exists, directions, size, "nats per unit of a coefficient")


def nothing_left(problem: RegressionProblem) -> Result:
    """The point 0 of a problem whose rows are all decided by separation, so that none of them says anything more."""
    zero, none = np.zeros(problem.size), Information(np.zeros((problem.size, problem.size)))
    return Result(zero, Outcome(State(zero, 0.0, 0.0), True, "measured", ()), Last(zero, 0.0, zero, none))


def rooted(
    problem: RegressionProblem, result: Result, separation: Separation, penalties: CoefficientPenalties
) -> RegressionProblem | None:
    """The problem with the exact root of the information, where a fit is to go on with it; else None.

    X'WX squares the collinearity of columns, or of a column with a large offset and the constant. The weights W are
    those of the result: columns may be far from collinear at the start.
    """
    information, layout = result.last.information, problem.layout
    if separation.exists is False or penalties.laplace is not None or told_to_stop(result):
        return None
    if problem.rooted or layout.sparse or layout.levels or not problem.size:
        return None
    if information.size != problem.size or information.definite:
        return None
    return replace(problem, rooted=True)


@dataclass(frozen=True)
class CertificateBasis:
    """What a certificate may rely on.

    `concave`: the log-likelihood is, in the coefficients, all else as it is. `best` is the log-likelihood of a
    distribution that fits every row, in units of the problem. `bent` is one over minus the second derivative in the log
    of a dispersion that is estimated beside a prior: the objective then has that times the square of the likelihood's
    slope less curvature in the coefficients. `elsewhere`: family and link are not concave, so that there may be better
    maxima than the one found.
    """

    concave: bool
    best: float
    bent: float = 0.0
    elsewhere: bool = False


def certify(
    problem: RegressionProblem,
    result: Result,
    penalties: CoefficientPenalties,
    separation: Separation,
    known: CertificateBasis,
    *,
    weight: float,
) -> Certificate:
    """From slope and information at the result, as `point_of` makes them.

    A Gaussian prior on every coefficient bounds what is left of a concave objective by ``g' P^-1 g / 2``, a Laplace
    prior by duality. Otherwise half the squared Newton decrement estimates it. Where it is not concave nothing is said
    about the distance from a maximum that may be another one.
    """
    gradient, information = result.last.gradient, result.last.information
    laplace, gaussian = penalties.laplace, penalties.gaussian
    slope = gradient
    if laplace is not None:
        slope = pseudo_gradient(result.beta - laplace.mean, gradient, laplace.rate)
    variance = information.diagonal()
    if len(variance) != len(slope):
        return in_units(slope, problem.diagonal(result.beta), exists=separation.exists)
    if separation.exists is False:
        return in_units(slope, variance, exists=False)
    fixed = known.bent == 0.0
    if known.concave and fixed and gaussian is not None and laplace is None and (gaussian.diagonal() > 0.0).all():
        return in_units(slope, variance, gaussian.loss_bound(gradient) / weight, bound=True, exists=separation.exists)
    if known.concave and laplace is not None:
        left = duality_gap(problem, result.last, penalties, known.best)
        if left is not None:
            return in_units(slope, variance, left / weight, bound=fixed, exists=separation.exists)
    if laplace is not None or known.elsewhere:
        return in_units(slope, variance, exists=separation.exists)
    return in_units(slope, variance, _estimate(problem, result, known, weight), exists=separation.exists)


def _estimate(problem: RegressionProblem, result: Result, known: CertificateBasis, weight: float) -> float | None:
    """Half the squared Newton decrement, a row; None where the objective is not curved downwards in every direction."""
    gradient, information = result.last.gradient, result.last.information
    if information.size and not information.definite:
        return None  # A step along a flat direction is not known, and with it what is left.
    step = information.solve(gradient)
    square = float(gradient @ step)
    if known.bent and problem.penalty is not None:
        # (I - b l l')^-1 = I^-1 + b I^-1 l l' I^-1 / (1 - b l' I^-1 l), with l the slope of the likelihood alone.
        own = problem.penalty.slope(problem.whole(result.beta))
        slope = gradient + (own if problem.kept is None else own[problem.kept])
        left = 1.0 - known.bent * float(slope @ information.solve(slope))
        if not left > 0.0:
            return None
        square += known.bent * float(slope @ step) ** 2 / left
    return 0.5 * max(0.0, square) / weight


def bent_by_dispersion(family: Family, sums: Totals, phi: float) -> float:
    """One over minus the second derivative of the log-likelihood in the log of the dispersion, at its best."""
    step = 1e-4
    ends = [family.log_likelihood(sums, phi * math.exp(shift)) for shift in (-step, 0.0, step)]
    curve = (2.0 * ends[1] - ends[0] - ends[2]) / step**2
    return 1.0 / curve if curve > 0.0 else math.inf


def rounding_of(result: Result) -> float:
    """The slope, in standard deviations, that rounding of the coefficients alone may cause."""
    information = result.last.information
    if information.size != len(result.beta):
        return 0.0
    return ROUNDING * math.sqrt(information.magnitude(result.beta))


def flat_verdict(
    result: Result, separation: Separation, penalties: CoefficientPenalties, certificate: Certificate
) -> str:
    """Why a fit has not converged whose slope is small only because the likelihood is flat; "" where it is not.

    An information that is not definite has directions along which neither the slope nor a Newton step is known. A
    prior may bound what is left all the same, and the corners of a Laplace prior hold coefficients without any.
    """
    information = result.last.information
    if separation.exists is False or penalties.laplace is not None:
        return ""
    if certificate.value_gap is not None or not information.size or information.definite:
        return ""
    words = (
        "some columns nearly say the same as others or as a constant there, and the maximum may be far. Take its mean "
        "off each column, leave columns out, or give a prior"
        if separation.exists
        else "the rows say nothing about some coefficients there, and whether there is a maximum is not known. Give a "
        "prior, or another link"
    )
    return f"flat: the likelihood is flat where the fit has come to rest: {words}"
