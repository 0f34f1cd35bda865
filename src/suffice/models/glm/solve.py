"""Which solver fits a regression, from which start, and what it found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.engines.linear_predictor import Block, root_task
from suffice.errors import EstimateError, OptionError, listing
from suffice.fitting.control import Control, Outcome
from suffice.models.glm.design import Design
from suffice.models.glm.family import Family
from suffice.models.glm.problem import Average, Problem, largest_move
from suffice.models.glm.sample import Near, later, near_the_top
from suffice.solvers.coordinate_descent import proximal_newton
from suffice.solvers.gradient import conjugate_gradient, lbfgs, owlqn
from suffice.solvers.information import LEAST_ROOT, Information
from suffice.solvers.irls import Last, irls
from suffice.solvers.newton import newton_cg
from suffice.solvers.online import corrected_ascent
from suffice.solvers.penalties import LaplacePenalty

Floats = NDArray[np.float64]

#: Coefficients beyond which the information is not made: its square would not fit, nor its cube be affordable.
MOST_DENSE = 6_000
#: A mean of the response from which on squares of it overflow.
MOST_MEAN = 1e150
#: The method of fits that need no information of all rows.
SOME_ROWS = "L-BFGS with the information of some rows"


@dataclass(frozen=True, eq=False)
class Result:
    """Coefficients in the engine's layout, how they were found, and the objective's derivatives there.

    With `later` the information in `last` is that of some rows at the coefficients `origin`, each of which stands for
    `stands` rows; calling it makes that of all rows at the result.
    """

    beta: Floats
    outcome: Outcome
    last: Last
    iterates: tuple[Floats, ...] = ()
    method: str = ""
    later: Callable[[], Information] | None = None
    origin: Floats | None = None
    stands: float = 1.0


@dataclass(frozen=True, eq=False)
class Climb:
    """What a solver is given: a problem, a start and limits.

    `keep` asks for all iterates, `seed` is that of a random order of rows, and `warm` allows for the fit of some rows
    to go ahead.
    """

    problem: Problem
    start: Floats
    control: Control
    laplace: LaplacePenalty | None = None
    keep: bool = False
    seed: Any = None
    warm: bool = False


@dataclass(frozen=True)
class Solver:
    """A way to the maximum; `corners` says whether it takes a Laplace prior, `streams` whether rows may be on disk."""

    climb: Callable[[Climb], Result]
    corners: bool = False
    streams: bool = True


def choose(solver: str, problem: Problem, laplace: LaplacePenalty | None) -> str:
    """The solver that "auto" stands for, or the one asked for if it can do the work."""
    large = problem.layout.body * problem.outputs > MOST_DENSE
    if solver == "auto":
        return "cd" if laplace is not None and not large else "lbfgs" if large or laplace is not None else "irls"
    if laplace is not None and not SOLVERS[solver].corners:
        able = " or ".join(repr(name) for name, one in reversed(SOLVERS.items()) if one.corners)
        raise OptionError(f"A Laplace prior has corners at 0: use solver={able}, not {solver!r}.")
    if not (SOLVERS[solver].streams or problem.rows.in_memory):
        raise OptionError(
            f"solver={solver!r} meets rows in random order, which a stream does not offer; use partial_fit."
        )
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
    return SOLVERS[solver].climb(Climb(problem, start, control, laplace, keep, seed, warm))


def _irls(climb: Climb) -> Result:
    """Newton's method with the expected information; of many rows by way of some of them."""
    problem, start, control = climb.problem, climb.start, climb.control
    near = near_the_top(problem, start, control) if climb.warm else None
    if near is not None and near.outcome.stop_reason != "stalled":
        made = later(problem, near.last)
        return Result(near.last.beta, near.outcome, near.last, (), SOME_ROWS, made, near.origin, near.stands)
    return _newton(problem, start, control, near, keep=climb.keep)


def _newton(problem: Problem, start: Floats, control: Control, near: Near | None, *, keep: bool) -> Result:
    """IRLS from a start, or from where L-BFGS stalled; steps and history are then those of both."""
    if near is None:
        fitted = irls(problem.evaluate, start, control, keep=keep)
        return Result(fitted.outcome.state.parameters, fitted.outcome, fitted.last, fitted.iterates, "IRLS")
    fitted = irls(problem.evaluate, near.last.beta, control, slope_of=problem.objective, keep=keep)
    before, outcome = near.outcome, fitted.outcome
    state = replace(outcome.state, iteration=before.state.iteration + outcome.state.iteration)
    outcome = replace(outcome, state=state, history=before.history + outcome.history[1:])
    return Result(state.parameters, outcome, fitted.last, fitted.iterates, f"{SOME_ROWS}, then IRLS")


def _scale(problem: Problem, start: Floats) -> Floats:
    """One over the root of the information's diagonal at the start: gradients are then in standard deviations."""
    information = problem.evaluate(start)[2] if problem.layout.body <= MOST_DENSE else None
    diagonal = np.ones(problem.size) if information is None else information.diagonal()
    return np.divide(1.0, np.sqrt(diagonal), out=np.ones_like(diagonal), where=diagonal > 0.0)


#: The objective in units in which its curvature is about 1, at a start in these.
Scaled = Callable[[Floats], tuple[float, Floats]]


def _by_gradient(method: str, follow: Callable[[Climb, Scaled, Floats, Floats], Outcome]) -> Callable[[Climb], Result]:
    """A solver that sees value and gradient in units of the information's diagonal at the start."""

    def climbed(climb: Climb) -> Result:
        problem, laplace = climb.problem, climb.laplace
        centre = np.zeros_like(climb.start) if laplace is None else laplace.mean
        scale = _scale(problem, climb.start)

        def objective(x: Floats) -> tuple[float, Floats]:
            value, gradient = problem.objective(centre + scale * x)
            return value, scale * gradient

        outcome = follow(climb, objective, (climb.start - centre) / scale, scale)
        return _finish(problem, outcome, centre + scale * outcome.state.parameters, method)

    return climbed


def _lbfgs(climb: Climb, objective: Scaled, begin: Floats, scale: Floats) -> Outcome:
    if climb.laplace is not None:
        return owlqn(objective, climb.laplace.rate * scale, begin, climb.control)
    return lbfgs(objective, begin, climb.control, scale=np.ones_like(begin))


def _cg(climb: Climb, objective: Scaled, begin: Floats, scale: Floats) -> Outcome:
    return conjugate_gradient(objective, begin, climb.control, scale=np.ones_like(begin))


def _newton_cg(climb: Climb, objective: Scaled, begin: Floats, scale: Floats) -> Outcome:
    return newton_cg(objective, lambda x: _scaled(climb.problem.product(scale * x), scale), begin, climb.control)


def _scaled(product: Any, scale: Floats) -> Any:
    return lambda vector: scale * product(scale * vector)


def _sgd(climb: Climb, objective: Scaled, begin: Floats, scale: Floats) -> Outcome:
    problem = climb.problem
    block: Block = problem.rows.block  # type: ignore[union-attr]
    (whole,) = problem.layout.parts(block, block.rows)

    def partial(x: Floats, chosen: NDArray[np.intp]) -> Floats:
        some, beta = whole.chosen(chosen), problem.whole(scale * x)
        gradient = problem.slopes(beta)(some).gradient / problem.phi
        if problem.penalty is not None:
            gradient = gradient - len(chosen) / block.rows * problem.penalty.slope(beta)
        return scale * (gradient if problem.kept is None else gradient[problem.kept])

    # The curvature of all rows is about one in each scaled coordinate, so that of a mean row is one over their number.
    return corrected_ascent(
        objective,
        partial,
        block.rows,
        begin,
        climb.control,
        step=0.5 * block.rows / len(begin),
        batch=max(1, block.rows // 100),
        rng=np.random.default_rng(climb.seed),
    )


def _cd(climb: Climb) -> Result:
    """Proximal Newton steps by coordinate descent."""
    problem, start, laplace = climb.problem, climb.start, climb.laplace
    centre = np.zeros_like(start) if laplace is None else laplace.mean
    rate = np.zeros_like(start) if laplace is None else laplace.rate
    seen: list[Last] = []

    def smooth(x: Floats) -> tuple[float, Floats, Floats]:
        value, gradient, information = problem.evaluate(centre + x)
        seen[:] = [*seen[-1:], Last(x, value, gradient, information)]
        return value, gradient, information.dense()

    outcome = proximal_newton(smooth, rate, start - centre, climb.control)
    x = outcome.state.parameters
    last = next((one for one in seen if one.beta is x), None) or Last(x, *problem.evaluate(centre + x))
    return Result(centre + x, outcome, replace(last, beta=centre + x), (), "coordinate descent")


def _finish(problem: Problem, outcome: Outcome, beta: Floats, method: str) -> Result:
    """The information at the result of a method that has not made it."""
    if problem.layout.body * problem.outputs <= MOST_DENSE:
        last = Last(beta, *problem.evaluate(beta))
    else:
        value, gradient = problem.objective(beta)
        last = Last(beta, value, gradient, Information(np.zeros((0, 0))))
    return Result(beta, outcome, last, (), method)


#: All solvers by name; "auto" stands for one of them.
SOLVERS: dict[str, Solver] = {
    "irls": Solver(_irls),
    "newton": Solver(_irls),
    "lbfgs": Solver(_by_gradient("lbfgs", _lbfgs), corners=True),
    "cg": Solver(_by_gradient("cg", _cg)),
    "newton-cg": Solver(_by_gradient("newton-cg", _newton_cg)),
    "sgd": Solver(_by_gradient("sgd", _sgd), streams=False),
    "cd": Solver(_cd, corners=True),
}


def told_to_stop(result: Result) -> bool:
    """Whether a limit, the callback or Ctrl-C ended a round: then there is no other."""
    return not result.outcome.converged and result.outcome.stop_reason != "stalled"


def joined(before: Result | None, now: Result) -> Result:
    """Two rounds as one: their steps and iterates add up."""
    if before is None:
        return now
    steps = before.outcome.state.iteration + now.outcome.state.iteration
    state = replace(now.outcome.state, iteration=steps)
    # The objective of each round is in units of its own dispersion.
    outcome = replace(now.outcome, state=state)
    return replace(now, outcome=outcome, iterates=before.iterates + now.iterates[1:])


def refuse_large(average: Average, family: Family) -> None:
    """An error for a positive response whose squares are no numbers of double precision."""
    mean = np.max(np.asarray(average.total)) / average.weight
    if family.name != "gaussian" and not mean < MOST_MEAN:
        raise EstimateError(
            f"The mean of the response is {float(mean):.3g}, whose square is too large for double precision. Correct "
            "the value, or give the response in other units."
        )


def refuse_response(size: float) -> float:
    """The largest |y| of a Gaussian response, or an error where its square is no number of double precision."""
    if not size < MOST_MEAN:
        raise EstimateError(
            f"The response has the value {size:.3g} (or minus that), whose square is too large for double precision. "
            "Correct the value, or give the response in other units."
        )
    return size


def refuse_spread(what: str, value: float) -> float:
    """A sum over the rows that is to give the dispersion, or an error where it is no number of double precision."""
    if not np.isfinite(value):
        raise EstimateError(
            f"{what} is {value:g}: some mean is too far from its response for double precision. Look at the largest "
            "values of the offset, of start= and of the response."
        )
    return value


def refuse_extremes(problem: Problem, design: Design, information: Information) -> None:
    """An error for columns whose squares are no numbers of double precision: infinite, or 0 though a row is not."""
    own = information.diagonal()
    places = np.flatnonzero(~np.isfinite(own) | (own < np.finfo(np.float64).tiny))
    far = [at for at in places if not np.isfinite(own[at]) or largest_move(problem, np.eye(len(own))[at]) > 0.0]
    if far:
        names = tuple(design.names[design.places[at]] for at in far)
        raise EstimateError(
            f"The squares of the column{'' if len(far) == 1 else 's'} {listing(names)} are too large or too small for "
            "double precision. Give it in other units, so that its values are between 1e-150 and 1e150."
        )


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
