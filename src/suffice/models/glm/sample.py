"""Fits of many rows by way of some of them, which say how the likelihood curves.

The information of a few thousand rows is near that of all, up to a factor. L-BFGS on all rows, in coordinates in which
that information is the unit matrix, then gains a digit or so with each pass for the gradient, which costs a small part
of a pass for the information: ``N k`` products instead of ``N k^2``. What is reached is judged by the gradient of all
rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from suffice.array_types import Floats
from suffice.engines.linear_predictor import (
    CoefficientLayout,
    ResponseDistribution,
    RowBlock,
    linear_predictor,
    weighted_sum,
)
from suffice.errors import EstimateError, SufficeError
from suffice.fitting.control import Control, Outcome, State
from suffice.models.glm.problem import RegressionProblem
from suffice.solvers.gradient import lbfgs
from suffice.solvers.information import Information
from suffice.solvers.irls import ROUNDING, Last, irls

#: Entries of the design, rows times coefficients, from which some rows go ahead of the fit of all.
MANY_ENTRIES = 300_000
#: Fewest rows of such a sample, and fewest for each coefficient.
LEAST_SAMPLE, ROWS_A_COEFFICIENT = 2_000, 12
#: A sample costs about as much as two passes for the gradient if it has so many rows in a row's coefficients.
AS_TWO_PASSES = 50
#: At least so many rows stand behind each row of a sample, else the sample saves nothing.
LEAST_STRIDE = 4
#: Fewest rows of the sample, and fewest for each coefficient, that go ahead of the others.
LEAST_OF_SAMPLE, FEW_A_COEFFICIENT = 8_000, 12
#: A step of a sample may keep the information of another point if it brings the decrement below this part of what it
#: was: gradients are much cheaper.
FAST = 0.5
#: The information of a sample is made anew where the rows have lost or gained more than this factor, a few times.
MOST_LOST, ROUNDS = 1.5, 6
#: A gradient that differs by more, in its own standard deviations, is that of other rows.
CHANGED = 1e-6


@dataclass(frozen=True, eq=False)
class Near:
    """Where L-BFGS on all rows ended: coefficients in the outcome, value and gradient of all rows in `last`.

    The information in `last` is that of some rows at the coefficients `origin`, each of which stands for `stands` rows.
    """

    outcome: Outcome
    last: Last
    origin: Floats
    stands: float = 1.0


def has_many(problem: RegressionProblem) -> bool:
    """Whether some of the rows are worth a look before all of them."""
    return problem.rows.in_memory and problem.rows.rows * problem.size >= MANY_ENTRIES


def some_rows(problem: RegressionProblem) -> tuple[RegressionProblem | None, int, float]:
    """The same problem on one row of every so many, and what the weight of each is multiplied by to stand for all.

    None where rows are few or cheap.
    """
    layout = problem.layout
    if not has_many(problem) or layout.sparse or layout.levels:
        return None, 1, 1.0
    block = problem.rows.block
    rich = min(block.rows // 16, AS_TWO_PASSES * block.rows // max(problem.size, 1))
    every = block.rows // max(LEAST_SAMPLE, ROWS_A_COEFFICIENT * problem.size, rich)
    if problem.outputs > 1 or problem.rooted or every < LEAST_STRIDE:
        return None, 1, 1.0
    some = problem.rows.spread(every)
    if block.weights is None or some.weights is None:
        stands = block.rows / some.rows
        return problem.on(replace(some, weights=np.full(some.rows, stands))), every, stands
    seen = float(some.weights.sum())
    if not seen > 0.0:
        return None, 1, 1.0
    stands = float(block.weights.sum()) / seen
    return problem.on(replace(some, weights=some.weights * stands)), every, stands


def near_the_top(problem: RegressionProblem, start: Floats, control: Control) -> Near | None:
    """The fit of some rows, then L-BFGS on all; None where the rows are few or the way failed at its beginning."""
    sample, every, stands = some_rows(problem)
    if sample is None:
        return None
    try:
        some, stopped = _fit_of_some(sample, start, every)
        if not some.last.information.definite:
            return None
        near = _whitened_ascent(problem, some, replace(control, max_iter=0) if stopped else control)
        near = replace(near, stands=stands)
        return replace(near, outcome=replace(near.outcome, stop_reason="interrupted")) if stopped else near
    except SufficeError:
        return None


@dataclass(frozen=True, eq=False)
class _Some:
    """The fit of a sample: its information, made at `origin`, is hardly too large by more than `margin` squared."""

    last: Last
    origin: Floats
    margin: float


def _fit_of_some(sample: RegressionProblem, start: Floats, every: int) -> tuple[_Some, bool]:
    """The fit of a sample, and whether Ctrl-C ended it; its information is made as rarely as will do.

    No eigenvalue of the information of n rows in units of that of all is, for k coefficients, likely to be above
    ``(1 + sqrt(k / n))^2``.
    """
    start, stopped = _fit_of_few(sample, start, every)
    made: list[tuple[Information, Floats]] = []

    def evaluate(beta: Floats) -> tuple[float, Floats, Information]:
        evaluated = sample.evaluate(beta)
        made.append((evaluated[2], beta))
        return evaluated

    limits = _limits(sample, every, stopped)
    for _ in range(ROUNDS):
        some = irls(evaluate, start, limits, slope_of=sample.objective, short=math.inf, gain=FAST)
        last, stopped = some.last, stopped or some.outcome.stop_reason == "interrupted"
        origin = next(beta for information, beta in made if information is last.information)
        lost = _lost(sample, origin, last.beta)
        if stopped or 1.0 / MOST_LOST <= lost <= MOST_LOST:
            break
        start = last.beta  # The decrement was in units of another information.
    margin = (1.0 + math.sqrt(sample.size / sample.rows.rows)) * math.sqrt(max(1.0, lost))
    return _Some(last, origin, margin), stopped


def _fit_of_few(sample: RegressionProblem, start: Floats, every: int) -> tuple[Floats, bool]:
    """Where the fit of a few of the sample's rows ends, from which one information of the sample will do."""
    block = sample.rows.block
    stretch = block.rows // max(LEAST_OF_SAMPLE, FEW_A_COEFFICIENT * sample.size)
    if stretch < LEAST_STRIDE:
        return start, False
    few = sample.rows.spread(stretch)
    weights = None if few.weights is None else few.weights * (block.rows / few.rows)
    problem = sample.on(replace(few, weights=weights))
    try:
        limits = _limits(sample, every * stretch)
        fitted = irls(problem.evaluate, start, limits, slope_of=problem.objective, short=math.inf, gain=FAST)
    except SufficeError:
        return start, False
    return fitted.outcome.state.parameters, fitted.outcome.stop_reason == "interrupted"


def _limits(sample: RegressionProblem, every: int, stopped: bool = False) -> Control:
    """The maximum of one row of every so many is itself ten times as far from that of all."""
    return Control(max_iter=0 if stopped else 12, tolerance=0.1 * math.sqrt(every * sample.size))


def _lost(sample: RegressionProblem, before: Floats, now: Floats) -> float:
    """The factor by which the information about the linear predictors of all rows together falls between two points."""
    points = (sample.whole(now), sample.whole(before))
    question = partial(_information_sums, layout=sample.layout, distribution=sample.distribution, points=points)
    left, first = sample.rows.reduce(question).tolist()
    return first / left if left > 0.0 else math.inf


def _information_sums(
    block: RowBlock, *, layout: CoefficientLayout, distribution: ResponseDistribution, points: tuple[Floats, ...]
) -> Floats:
    """The sum over rows of the information about their linear predictors, at each of some points."""
    sums = np.zeros(len(points))
    for part in layout.parts(block):
        for number, beta in enumerate(points):
            eta = linear_predictor(layout, part, beta)
            sums[number] += weighted_sum(distribution(eta, part.y)[2], part.weights)
    return sums


def _whitened_ascent(problem: RegressionProblem, some: _Some, control: Control) -> Near:
    """L-BFGS in ``x = R beta``, ``R'R`` the information of some rows; the gap is then the Newton decrement."""
    from scipy.linalg import cholesky, solve_triangular

    last_of_some = some.last
    root = cholesky(last_of_some.information.dense(), check_finite=False)

    def back(x: Floats) -> Floats:
        return np.asarray(solve_triangular(root, x, check_finite=False))

    def objective(x: Floats) -> tuple[float, Floats]:
        value, gradient = problem.objective(back(x))
        return value, np.asarray(solve_triangular(root, gradient, trans="T", check_finite=False))

    def gap(x: Floats, gradient: Floats) -> float:
        norm = float(np.linalg.norm(gradient))
        return 0.0 if norm <= ROUNDING * math.sqrt(last_of_some.information.magnitude(back(x))) else norm

    def asked_to_stop(state: State) -> object:
        return control.callback is not None and control.callback(replace(state, parameters=back(state.parameters)))

    limits = replace(control, tolerance=control.tolerance / some.margin, callback=asked_to_stop, checkpoint=None)
    outcome = lbfgs(objective, root @ last_of_some.beta, limits, scale=np.ones(len(root)), gap=gap)
    if outcome.stop_reason == "stalled":  # A search that stalls goes on by IRLS.
        outcome = replace(outcome, warning="")
    state = outcome.state
    beta, gradient = back(state.parameters), root.T @ state.memory["gradient"]
    last = Last(beta, state.objective, gradient, last_of_some.information)
    return Near(replace(outcome, state=replace(state, parameters=beta)), last, some.origin)


def later(problem: RegressionProblem, last: Last) -> Callable[[], Information]:
    """What makes the information of all rows at coefficients whose gradient is known.

    It holds the rows. If they are no longer those of the fit, their gradient is another, and that is an error.
    """
    bare = replace(problem, record=None)

    def make() -> Information:
        _, gradient, information = bare.evaluate(last.beta)
        if not (np.abs(gradient - last.gradient) <= CHANGED * np.sqrt(information.diagonal())).all():
            raise EstimateError(
                "The rows have changed since the fit, so that the standard errors of its coefficients cannot be found "
                "any more. Fit again, or read standard_errors_ before the arrays are written to."
            )
        return information

    return make
