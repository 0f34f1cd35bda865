"""Profile likelihood intervals: how far a coefficient can go while the others do their best."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from suffice.array_types import Floats
from suffice.errors import EstimateError
from suffice.fitting.contract import Inputs
from suffice.fitting.control import Control
from suffice.models.glm.cumulative import cumulative_problem
from suffice.models.glm.fit_options import FitOptions
from suffice.models.glm.missing import complete_rows
from suffice.models.glm.priors import ahead_of
from suffice.models.glm.problem import RegressionProblem
from suffice.models.glm.rows import RegressionData, read_rows
from suffice.models.glm.softmax import SoftmaxDistribution
from suffice.solvers.irls import irls

if TYPE_CHECKING:
    from suffice.models.glm.fitted import GLMFitted

#: Steps of the search for one end of an interval.
_STEPS = 60
#: Slope of the log-likelihood, a standard error, from which rows are others than those of a fit.
_LEVEL = 0.01


def profile_intervals(options: FitOptions, fitted: GLMFitted, given: Inputs, reach: float) -> Floats:
    """Ends (k, 2) where the signed root of the drop of twice the log-likelihood is -+ `reach`.

    For families with a dispersion the drop is divided by it. An end at infinity is one that the likelihood never
    reaches.
    """
    if not fitted.single or fitted.direction is not None or fitted.dropped:
        raise EstimateError("Profile intervals need one linear predictor, no separation and no dropped columns.")
    if options.penalties(fitted.design).laplace is not None:
        raise EstimateError(
            "Profile intervals need a smooth objective, and the Laplace prior has an edge at 0. Use method='bootstrap'."
        )
    data, problem, best, top = problem_of_fit(options, fitted, given)
    errors = np.sqrt(problem.evaluate(best)[2].inverse_diagonal())
    ends = np.empty((len(best), 2))
    for index in range(len(best)):
        profile = _profile(problem, best, index, top)
        for side, sign in enumerate((-1.0, 1.0)):
            ends[index, side] = _end(profile, float(best[index]), sign * float(errors[index]), reach)
    return data.parameters.public(ends)


def problem_of_fit(
    options: FitOptions, fitted: GLMFitted, given: Inputs
) -> tuple[RegressionData, RegressionProblem, Floats, float]:
    """The rows of a fit, read again; their problem in units of its dispersion; its coefficients, and the value there.

    Rows that are not those of the fit are an error.
    """
    if fitted.direction is not None or fitted.family == "multivariate_gaussian":
        raise EstimateError("Likelihoods of other coefficients are looked at where none is separated, of one response.")
    data = read_rows(complete_rows(given, options)[0], options)
    if data.design.names != fitted.design.names:
        raise EstimateError("The rows are not those of the fit: their columns or levels differ.")
    problem = problem_at_fit(options, fitted, data)
    best = np.ascontiguousarray(np.asarray(data.parameters.internal(fitted.values)).T).ravel()
    top, slope, information = problem.evaluate(best)
    diagonal = information.diagonal()
    known = diagonal > 0.0
    # Rows have as many weights as those of the fit, and their slope vanishes where that has its maximum.
    rise = float(np.abs(slope[known] / np.sqrt(diagonal[known])).max(initial=0.0))
    if abs(data.weight - fitted.weight) > 1e-9 * fitted.weight or rise > _LEVEL:
        raise EstimateError(
            f"The rows are not those of the fit: they have the weight {data.weight:,.6g} (the fit {fitted.weight:,.6g})"
            f", and at its coefficients the log-likelihood rises by {rise:.2g} a standard "
            "error. Give the same rows, response, weights and offset; or let a fit that has not converged go on."
        )
    return data, problem, best, float(top)


def problem_at_fit(options: FitOptions, fitted: GLMFitted, data: RegressionData) -> RegressionProblem:
    """The problem of the fit, in units of its dispersion."""
    penalties, layout = options.penalties(data.design), data.design.layout
    if fitted.classes is not None and len(fitted.thresholds):
        gaussian = ahead_of(penalties, len(data.ahead)).gaussian
        return cumulative_problem(data.blocks, layout, options.link, len(fitted.classes), gaussian)
    if fitted.reference is not None:
        distribution, m = SoftmaxDistribution(fitted.beta.shape[1] + 1), fitted.beta.shape[1]
        gaussian = options.penalties(data.design, m).gaussian
        return RegressionProblem(data.blocks, layout, distribution, gaussian, outputs=m)
    phi = fitted.dispersion if fitted.free_dispersion else 1.0
    return RegressionProblem(data.blocks, layout, fitted.row_distribution(), penalties.gaussian, phi)


def _profile(problem: RegressionProblem, best: Floats, index: int, top: float) -> Callable[[float], float]:
    """The root of the drop of twice the objective, at a value of one coefficient."""
    others = np.setdiff1d(np.arange(len(best)), [index])
    last = [best[others]]

    def root(value: float) -> float:
        fixed = best.copy()
        fixed[index], fixed[others] = value, last[0]
        start = problem.possible(fixed, index)[others]
        held = problem.holding(others, fixed)
        if not math.isfinite(held.objective(start)[0]):
            return math.inf
        fitted = irls(held.evaluate, start, Control(tolerance=1e-7)).outcome.state
        last[0] = fitted.parameters
        return math.sqrt(max(0.0, 2.0 * (top - fitted.objective)))

    return root


def _end(root: Callable[[float], float], centre: float, error: float, reach: float) -> float:
    """Where the root is `reach`: out to a value beyond, then between by the secant with bisection."""
    near, near_root = 0.0, 0.0
    far, far_root = reach, root(centre + reach * error)
    for _ in range(30):
        if far_root >= reach:
            break
        near, near_root, far = far, far_root, 1.5 * far + 0.5
        far_root = root(centre + far * error)
    else:
        return math.copysign(math.inf, error)
    for step in range(_STEPS):
        if abs(far - near) <= 1e-9 * far or abs(far_root - reach) <= 1e-10:
            break
        share = (reach - near_root) / (far_root - near_root) if math.isfinite(far_root) and step % 3 < 2 else 0.5
        middle = near + min(max(share, 0.02), 0.98) * (far - near)
        value = root(centre + middle * error)
        if value >= reach:
            far, far_root = middle, value
        else:
            near, near_root = middle, value
        if abs(value - reach) <= 1e-10:
            return centre + middle * error
    return centre + far * error
