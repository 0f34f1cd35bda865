"""Which solver fits a regression, from which start, and what it found."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.engines.linear_predictor import (
    Block,
    linear_predictor,
    root_task,
    transpose_product,
    transpose_products,
    weighted,
)
from suffice.errors import ConvergenceWarning, EstimateError, OptionError, SufficeError, listing
from suffice.iteration import Control, Outcome
from suffice.models.glm.design import Design
from suffice.models.glm.problem import Problem
from suffice.models.markov.priors import LaplacePenalty
from suffice.solvers.coordinate_descent import proximal_newton
from suffice.solvers.gradient import conjugate_gradient, lbfgs, owlqn
from suffice.solvers.information import LEAST_ROOT, Information
from suffice.solvers.irls import Last, irls
from suffice.solvers.newton import newton_cg
from suffice.solvers.online import corrected_ascent

Floats = NDArray[np.float64]

SOLVERS = ("auto", "irls", "newton", "lbfgs", "cg", "newton-cg", "sgd", "cd")
#: Coefficients beyond which the information is not made: its square would not fit, nor its cube be affordable.
MOST_DENSE = 6_000
#: Rows from which a fit of some of them finds the start of the fit of all.
MANY_ROWS = 100_000
#: Fewest rows of such a fit.
LEAST_SAMPLE = 10_000
#: Where the information of all rows is made, in standard errors from the top: its digits are then those of the maximum.
NEAR = 1e-6


@dataclass(frozen=True, eq=False)
class Result:
    """Coefficients in the engine's layout, how they were found, and the objective's derivatives there."""

    beta: Floats
    outcome: Outcome
    last: Last
    iterates: tuple[Floats, ...] = ()
    method: str = ""


def choose(solver: str, problem: Problem, laplace: LaplacePenalty | None) -> str:
    """The solver that "auto" stands for, or the one asked for if it can do the work."""
    if solver not in SOLVERS:
        raise OptionError(f"solver is {solver!r}; expected one of {listing(SOLVERS)}.")
    large = problem.layout.body * problem.outputs > MOST_DENSE
    if solver == "auto":
        return "cd" if laplace is not None and not large else "lbfgs" if large or laplace is not None else "irls"
    if laplace is not None and solver not in ("cd", "lbfgs"):
        raise OptionError(f"A Laplace prior has corners at 0: use solver='cd' or 'lbfgs', not {solver!r}.")
    if solver == "sgd" and not problem.rows.in_memory:
        raise OptionError("solver='sgd' meets rows in random order, which a stream does not offer; use partial_fit.")
    return "irls" if solver == "newton" else solver


def solve(
    problem: Problem,
    start: Floats,
    control: Control,
    *,
    solver: str,
    laplace: LaplacePenalty | None = None,
    keep: bool = False,
    seed: Any = None,
    warm: bool = False,
) -> Result:
    """Maximise the objective of a problem by one of `SOLVERS`."""
    if solver == "irls":
        near = _near_the_top(problem, start, control) if warm else None
        begin = start if near is None else near.state.parameters
        cheap = None if near is None else problem.objective
        fitted = irls(problem.evaluate, begin, control, slope_of=cheap, keep=keep)
        outcome = fitted.outcome
        if near is not None:
            steps = near.state.iteration + outcome.state.iteration
            outcome = replace(outcome, state=replace(outcome.state, iteration=steps), history=near.history)
        method = "IRLS" if near is None else "L-BFGS with the information of some rows, then IRLS"
        return Result(outcome.state.parameters, outcome, fitted.last, fitted.iterates, method)
    if solver == "cd":
        return _coordinate_descent(problem, start, control, laplace)
    scale = _scale(problem, start)
    return _finish(problem, _follow_gradient(problem, start, control, solver, laplace, scale, seed), scale, solver)


def _scale(problem: Problem, start: Floats) -> Floats:
    """One over the root of the information's diagonal at the start: gradients are then in standard deviations."""
    information = problem.evaluate(start)[2] if problem.layout.body <= MOST_DENSE else None
    diagonal = np.ones(problem.size) if information is None else information.diagonal()
    return np.divide(1.0, np.sqrt(diagonal), out=np.ones_like(diagonal), where=diagonal > 0.0)


def _follow_gradient(
    problem: Problem,
    start: Floats,
    control: Control,
    solver: str,
    laplace: LaplacePenalty | None,
    scale: Floats,
    seed: Any,
) -> Outcome:
    centre = np.zeros_like(start) if laplace is None else laplace.mean

    def objective(x: Floats) -> tuple[float, Floats]:
        value, gradient = problem.objective(centre + scale * x)
        return value, scale * gradient

    begin = (start - centre) / scale
    if laplace is not None:
        return owlqn(objective, laplace.rate * scale, begin, control)
    if solver == "lbfgs":
        return lbfgs(objective, begin, control, scale=np.ones_like(begin))
    if solver == "cg":
        return conjugate_gradient(objective, begin, control, scale=np.ones_like(begin))
    if solver == "newton-cg":
        return newton_cg(objective, lambda x: _scaled(problem.product(scale * x), scale), begin, control)
    return _corrected(problem, objective, begin, control, scale, seed)


def _scaled(product: Any, scale: Floats) -> Any:
    return lambda vector: scale * product(scale * vector)


def _corrected(problem: Problem, objective: Any, begin: Floats, control: Control, scale: Floats, seed: Any) -> Outcome:
    block: Block = problem.rows.block  # type: ignore[union-attr]
    (whole,) = problem.layout.parts(block, block.rows)

    def partial(x: Floats, chosen: NDArray[np.intp]) -> Floats:
        some, beta = whole.chosen(chosen), scale * x
        shaped = beta if problem.outputs == 1 else problem.shaped(beta)
        score = weighted(problem.law(linear_predictor(problem.layout, some, shaped), some.y)[1], some.weights)
        if problem.outputs > 1:
            gradient = transpose_products(problem.layout, some, score).ravel()
        else:
            gradient = transpose_product(problem.layout, some, score) / problem.phi
        if problem.penalty is not None:
            gradient = gradient - len(chosen) / block.rows * problem.penalty.slope(beta)
        return scale * gradient

    # The curvature of all rows is about one in each scaled coordinate, so that of a mean row is one over their number.
    return corrected_ascent(
        objective,
        partial,
        block.rows,
        begin,
        control,
        step=0.5 * block.rows / len(begin),
        batch=max(1, block.rows // 100),
        rng=np.random.default_rng(seed),
    )


def _coordinate_descent(problem: Problem, start: Floats, control: Control, laplace: LaplacePenalty | None) -> Result:
    centre = np.zeros_like(start) if laplace is None else laplace.mean
    rate = np.zeros_like(start) if laplace is None else laplace.rate
    seen: list[Last] = []

    def smooth(x: Floats) -> tuple[float, Floats, Floats]:
        value, gradient, information = problem.evaluate(centre + x)
        seen[:] = [*seen[-1:], Last(x, value, gradient, information)]
        return value, gradient, information.dense()

    outcome = proximal_newton(smooth, rate, start - centre, control)
    x = outcome.state.parameters
    last = next((one for one in seen if one.beta is x), None) or Last(x, *problem.evaluate(centre + x))
    return Result(centre + x, outcome, replace(last, beta=centre + x), (), "coordinate descent")


def _finish(problem: Problem, outcome: Outcome, scale: Floats, method: str) -> Result:
    """The information at the result of a method that has not made it."""
    beta = scale * outcome.state.parameters
    if problem.layout.body * problem.outputs <= MOST_DENSE:
        last = Last(beta, *problem.evaluate(beta))
    else:
        value, gradient = problem.objective(beta)
        last = Last(beta, value, gradient, Information(np.zeros((0, 0))))
    return Result(beta, outcome, last, (), method)


def _near_the_top(problem: Problem, start: Floats, control: Control) -> Outcome | None:
    """Where rows are many: the fit of some, then L-BFGS on all in coordinates in which those have unit information.

    A pass for the gradient costs a small part of one for the information, which is then needed once, at the end. None
    where the rows are few, the information is cheap, or the way failed: IRLS then begins at the start.
    """
    sample, every = some_rows(problem)
    if sample is None:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            # The maximum of the sample is itself about so far from that of all rows.
            noise = 0.3 * math.sqrt(every * problem.size)
            few = irls(sample.evaluate, start, Control(max_iter=12, tolerance=noise), slope_of=sample.objective)
            if not few.last.information.definite:
                return None
            return _whitened_ascent(problem, few.last, control)
    except SufficeError:
        return None


def some_rows(problem: Problem) -> tuple[Problem | None, int]:
    """The same problem on every so many-th row, which then stands for all; None where rows are few or cheap."""
    layout = problem.layout
    if not problem.rows.in_memory or problem.rows.rows < MANY_ROWS or layout.sparse or layout.levels:
        return None, 1
    block: Block = problem.rows.block  # type: ignore[union-attr]
    every = block.rows // max(LEAST_SAMPLE, 12 * problem.size)
    if problem.outputs > 1 or every < 4:
        return None, 1
    some = block.chosen(slice(None, None, every))
    weights = np.full(some.rows, float(every)) if some.weights is None else every * some.weights
    return problem.on(replace(some, weights=weights)), every


def _whitened_ascent(problem: Problem, at: Last, control: Control) -> Outcome:
    """L-BFGS in x = R beta, R'R the information given; beta is in the parameters of the outcome."""
    from scipy.linalg import cholesky, solve_triangular

    root = cholesky(at.information.dense(), check_finite=False)

    def back(x: Floats) -> Floats:
        return np.asarray(solve_triangular(root, x, check_finite=False))

    def objective(x: Floats) -> tuple[float, Floats]:
        value, gradient = problem.objective(back(x))
        return value, np.asarray(solve_triangular(root, gradient, trans="T", check_finite=False))

    limits = replace(control, tolerance=max(NEAR, 0.3 * control.tolerance), checkpoint=None)
    found = lbfgs(objective, root @ at.beta, limits, scale=np.ones(len(root)))
    return replace(found, state=replace(found.state, parameters=back(found.state.parameters)))


def dependent_columns(problem: Problem, design: Design, beta: Floats, information: Information) -> tuple[int, ...]:
    """Coefficients whose column is a combination of earlier ones, as places in the engine's layout.

    A triangular root of X'WX, columns scaled to length 1, has a zero on the diagonal for each of them.
    """
    if problem.outputs > 1 or information.definite:
        return ()
    layout = problem.layout
    if layout.sparse or layout.levels:
        matrix = information.dense()
        scale = np.sqrt(np.maximum(np.diagonal(matrix), 1e-300))
        root = _pivots(matrix / np.outer(scale, scale))
        return tuple(np.flatnonzero(root < 1e-9).tolist())
    found = problem.rows.reduce(root_task(layout, problem.law, beta)).root
    lengths = np.sqrt((found**2).sum(axis=0))
    scaled = found / np.where(lengths > 0.0, lengths, 1.0)
    diagonal = np.zeros(layout.size)
    triangle = np.linalg.qr(scaled, mode="r")
    diagonal[: len(triangle)] = np.abs(np.diagonal(triangle))
    diagonal[lengths == 0.0] = 0.0
    return tuple(np.flatnonzero(diagonal < LEAST_ROOT).tolist())


def _pivots(matrix: Floats) -> Floats:
    """Pivots of elimination in the given order (k,); a column that is used up counts as 0."""
    left = matrix.copy()
    found = np.zeros(len(left))
    for at in range(len(left)):
        found[at] = left[at, at]
        if left[at, at] > 1e-9:
            left[at + 1 :, at + 1 :] -= np.outer(left[at + 1 :, at], left[at, at + 1 :]) / left[at, at]
    return found


def refuse_dependent(names: tuple[str, ...], rows: int, size: int) -> EstimateError:
    """The error for columns that cannot be told from others."""
    few = f" There are {rows} rows for {size} coefficients." if rows < size else ""
    are = "is a combination" if len(names) == 1 else "are combinations"
    return EstimateError(
        f"The column{'' if len(names) == 1 else 's'} {listing(names)} {are} of the columns before; the data say "
        f"nothing about {'its coefficient' if len(names) == 1 else 'their coefficients'} alone.{few} Leave "
        f"{'it' if len(names) == 1 else 'them'} out, set collinear='drop', or give a prior, e.g. Normal(variance=10)."
    )
