"""Which solver fits a regression, from which start, and what it found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.engines.linear_predictor import root_task
from suffice.errors import EstimateError, OptionError, listing
from suffice.fitting.control import Control, Outcome
from suffice.models.glm.design import Design
from suffice.models.glm.family import Family
from suffice.models.glm.problem import RegressionProblem, ResponseSums, largest_move
from suffice.models.glm.sample import later, near_the_top
from suffice.solvers.coordinate_descent import proximal_newton
from suffice.solvers.information import LEAST_ROOT, Information, LaterInformation
from suffice.solvers.irls import Last, irls
from suffice.solvers.online import corrected_ascent
from suffice.solvers.penalties import LaplacePenalty
from suffice.solvers.registry import Objective, Solver, check_solver, named, registered

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

    @property
    def information(self) -> Information:
        """That of all rows, made when it is first read where the solver has not made it."""
        return self.last.information if self.later is None else LaterInformation(self.later, len(self.beta))


@dataclass(frozen=True, eq=False)
class Search:
    """What a solver is given: a problem, a start and limits.

    `keep` asks for all iterates, `seed` is that of a random order of rows, and `warm` allows for the fit of some rows
    to go ahead.
    """

    problem: RegressionProblem
    start: Floats
    control: Control
    laplace: LaplacePenalty | None = None
    keep: bool = False
    seed: Any = None
    warm: bool = False


@dataclass(frozen=True)
class RegressionSolver:
    """A solver that sees the rows; `corners`: whether it takes a Laplace prior."""

    run: Callable[[Search], Result]
    corners: bool = False


def check_name(solver: object) -> None:
    """Refuse what is neither a solver of regressions nor registered for objectives."""
    check_solver(solver, ("auto", *SOLVERS))


def choose(solver: str, problem: RegressionProblem, laplace: LaplacePenalty | None) -> str:
    """The solver that "auto" stands for, or the one asked for if it can do the work."""
    large = problem.layout.body * problem.outputs > MOST_DENSE
    if solver == "auto":
        return "cd" if laplace is not None and not large else "lbfgs" if large or laplace is not None else "irls"
    own = SOLVERS.get(solver)
    if laplace is not None and not (named(solver).corners if own is None else own.corners):
        able = [repr(name) for name, one in reversed(SOLVERS.items()) if one.corners]
        able += [repr(name) for name, one in registered().items() if one.corners and name != "owlqn"]
        raise OptionError(f"A Laplace prior has corners at 0: use solver={' or '.join(able)}, not {solver!r}.")
    return "irls" if solver == "newton" else solver


def solve(search: Search, solver: str) -> Result:
    """Maximise the objective of a problem by a solver of regressions, or by one that is registered."""
    own = SOLVERS.get(solver)
    return _by_objective(search, named(solver)) if own is None else own.run(search)


def _irls(search: Search) -> Result:
    """Newton's method with the expected information; of many rows by way of some of them."""
    problem, control, keep = search.problem, search.control, search.keep
    near = near_the_top(problem, search.start, control) if search.warm else None
    if near is None:
        fitted = irls(problem.evaluate, search.start, control, keep=keep)
        return Result(fitted.outcome.state.parameters, fitted.outcome, fitted.last, fitted.iterates, "IRLS")
    if near.outcome.stop_reason != "stalled":
        made = later(problem, near.last)
        return Result(near.last.beta, near.outcome, near.last, (), SOME_ROWS, made, near.origin, near.stands)
    # From where L-BFGS stalled; steps and history are those of both.
    fitted = irls(problem.evaluate, near.last.beta, control, slope_of=problem.objective, keep=keep)
    before, outcome = near.outcome, fitted.outcome
    state = replace(outcome.state, iteration=before.state.iteration + outcome.state.iteration)
    outcome = replace(outcome, state=state, history=before.history + outcome.history[1:])
    last = Last(state.parameters, *problem.evaluate(state.parameters))
    return Result(state.parameters, outcome, last, fitted.iterates, f"{SOME_ROWS}, then IRLS")


@dataclass(frozen=True, eq=False)
class ScaledProblem:
    """A problem in units of the information's diagonal at the start, x = (beta - centre) / scale.

    Slopes are then in standard deviations, and the curvature is about 1 in each coordinate.
    """

    problem: RegressionProblem
    centre: Floats
    scale: Floats

    @classmethod
    def of(cls, search: Search) -> ScaledProblem:
        """In the units of a start, from the corners of a Laplace prior where there is one."""
        problem, start = search.problem, search.start
        centre = np.zeros_like(start) if search.laplace is None else search.laplace.mean
        diagonal = problem.evaluate(start)[2].diagonal() if problem.layout.body <= MOST_DENSE else np.ones(problem.size)
        return cls(problem, centre, np.divide(1.0, np.sqrt(diagonal), out=np.ones_like(diagonal), where=diagonal > 0.0))

    def beta(self, x: Floats) -> Floats:
        """Coefficients of a point."""
        return self.centre + self.scale * x

    def evaluate(self, x: Floats) -> tuple[float, Floats]:
        """Value and slope."""
        value, gradient = self.problem.objective(self.beta(x))
        return value, self.scale * gradient

    def information(self, x: Floats) -> Floats:
        """The information (k, k)."""
        return self.problem.evaluate(self.beta(x))[2].dense() * np.outer(self.scale, self.scale)

    def products(self, x: Floats) -> Callable[[Floats], Floats]:
        """What multiplies the information by a vector."""
        product = self.problem.product(self.beta(x))
        return lambda vector: self.scale * product(self.scale * vector)

    def result(self, outcome: Outcome, method: str) -> Result:
        """Where a solver ended, with the information there, which it has not made."""
        problem, beta = self.problem, self.beta(outcome.state.parameters)
        if problem.layout.body * problem.outputs <= MOST_DENSE:
            last = Last(beta, *problem.evaluate(beta))
        else:
            last = Last(beta, *problem.objective(beta), Information(np.zeros((0, 0))))
        return Result(beta, outcome, last, (), method)


def _by_objective(search: Search, solver: Solver) -> Result:
    """A solver that sees a vector and a function, whoever has written it."""
    scaled, laplace, problem = ScaledProblem.of(search), search.laplace, search.problem
    objective = Objective(
        scaled.evaluate,
        (search.start - scaled.centre) / scaled.scale,
        search.control,
        lambda: lambda x, slope: np.ones_like(x),
        scaled.information if problem.layout.body * problem.outputs <= MOST_DENSE else None,
        scaled.products,
        None if laplace is None else laplace.rate * scaled.scale,
    )
    if not solver.applies(objective):
        lacking = "is for a Laplace prior" if solver.corners else f"needs the {solver.uses} of too many coefficients"
        raise OptionError(f"solver={solver.name!r} {lacking}; use solver='auto'.")
    return scaled.result(solver.solve(objective), solver.title)


def _lbfgs(search: Search) -> Result:
    return _by_objective(search, named("lbfgs" if search.laplace is None else "owlqn"))


def _sgd(search: Search) -> Result:
    """Stochastic ascent that draws rows in memory, or shards of rows elsewhere."""
    problem, scaled = search.problem, ScaledProblem.of(search)
    units = problem.rows.rows if problem.rows.in_memory else problem.rows.held.shards
    gradient_of = _rows_drawn(problem) if problem.rows.in_memory else _shards_drawn(problem)

    def partial(x: Floats, chosen: NDArray[np.intp]) -> Floats:
        beta = problem.whole(scaled.beta(x))
        gradient = gradient_of(beta, chosen) / problem.phi
        if problem.penalty is not None:
            gradient = gradient - len(chosen) / units * problem.penalty.slope(beta)
        return scaled.scale * (gradient if problem.kept is None else gradient[problem.kept])

    # The curvature of all rows is about one in each scaled coordinate, so that of a mean row is one over their number.
    outcome = corrected_ascent(
        scaled.evaluate,
        partial,
        units,
        search.start / scaled.scale,
        search.control,
        step=0.5 * units / len(search.start),
        batch=max(1, units // 100),
        rng=np.random.default_rng(search.seed),
    )
    return scaled.result(outcome, "stochastic gradient ascent with corrections")


def _rows_drawn(problem: RegressionProblem) -> Callable[[Floats, NDArray[np.intp]], Floats]:
    """The gradient of chosen rows in memory."""
    block = problem.rows.block
    (whole,) = problem.layout.parts(block, block.rows)
    return lambda beta, chosen: problem.slopes(beta)(whole.chosen(chosen)).gradient


def _shards_drawn(problem: RegressionProblem) -> Callable[[Floats, NDArray[np.intp]], Floats]:
    """The gradient of chosen shards."""
    held = problem.rows.held
    return lambda beta, chosen: np.asarray(held.sum(problem.slopes(beta), shards=np.sort(chosen).tolist()).gradient)


def _cd(search: Search) -> Result:
    """Proximal Newton steps by coordinate descent."""
    problem, start, laplace = search.problem, search.start, search.laplace
    centre = np.zeros_like(start) if laplace is None else laplace.mean
    rate = np.zeros_like(start) if laplace is None else laplace.rate
    seen: list[Last] = []

    def smooth(x: Floats) -> tuple[float, Floats, Floats]:
        value, gradient, information = problem.evaluate(centre + x)
        seen[:] = [*seen[-1:], Last(x, value, gradient, information)]
        return value, gradient, information.dense()

    outcome = proximal_newton(smooth, rate, start - centre, search.control)
    x = outcome.state.parameters
    last = next((one for one in seen if one.beta is x), None) or Last(x, *problem.evaluate(centre + x))
    return Result(centre + x, outcome, replace(last, beta=centre + x), (), "coordinate descent")


#: The solvers that see the rows, by name; all others are in `solvers.registry`. "auto" stands for one of both.
SOLVERS: dict[str, RegressionSolver] = {
    "irls": RegressionSolver(_irls),
    "newton": RegressionSolver(_irls),
    "lbfgs": RegressionSolver(_lbfgs, corners=True),
    "sgd": RegressionSolver(_sgd),
    "cd": RegressionSolver(_cd, corners=True),
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


def refuse_large(sums: ResponseSums, family: Family) -> None:
    """An error for a positive response whose squares are no numbers of double precision."""
    mean = np.max(np.asarray(sums.total)) / sums.weight
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


def refuse_extremes(problem: RegressionProblem, design: Design, information: Information) -> None:
    """An error for columns whose squares are no numbers of double precision: infinite, or 0 though a row is not."""
    own = information.diagonal()
    places = np.flatnonzero(~np.isfinite(own) | (own < np.finfo(np.float64).tiny))
    columns = np.eye(len(own))
    far = [column for column in places if not np.isfinite(own[column]) or largest_move(problem, columns[column]) > 0.0]
    if far:
        names = tuple(design.names[design.places[column]] for column in far)
        raise EstimateError(
            f"The squares of the column{'' if len(far) == 1 else 's'} {listing(names)} are too large or too small for "
            "double precision. Give it in other units, so that its values are between 1e-150 and 1e150."
        )


def dependent_columns(
    problem: RegressionProblem, design: Design, beta: Floats, information: Information
) -> tuple[int, ...]:
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
    root_of_rows = problem.rows.reduce(root_task(layout, problem.distribution, beta)).root
    lengths = np.sqrt((root_of_rows**2).sum(axis=0))
    scaled = root_of_rows / np.where(lengths > 0.0, lengths, 1.0)
    diagonal = np.zeros(layout.size)
    triangle = np.linalg.qr(scaled, mode="r")
    diagonal[: len(triangle)] = np.abs(np.diagonal(triangle))
    diagonal[lengths == 0.0] = 0.0
    return tuple(np.flatnonzero(diagonal < LEAST_ROOT).tolist())


def _pivots(matrix: Floats) -> Floats:
    """Pivots of elimination in the given order (k,); a column that is used up counts as 0."""
    left = matrix.copy()
    pivots = np.zeros(len(left))
    for column in range(len(left)):
        pivots[column] = left[column, column]
        if left[column, column] > 1e-9:
            below, right = left[column + 1 :, column], left[column, column + 1 :]
            left[column + 1 :, column + 1 :] -= np.outer(below, right) / left[column, column]
    return pivots


def refuse_dependent(names: tuple[str, ...], rows: int, size: int) -> EstimateError:
    """The error for columns that cannot be told from others."""
    few = f" There are {rows} rows for {size} coefficients." if rows < size else ""
    are = "is a combination" if len(names) == 1 else "are combinations"
    return EstimateError(
        f"The column{'' if len(names) == 1 else 's'} {listing(names)} {are} of the columns before; the data say "
        f"nothing about {'its coefficient' if len(names) == 1 else 'their coefficients'} alone.{few} Leave "
        f"{'it' if len(names) == 1 else 'them'} out, set collinear='drop', or give a prior, e.g. Normal(variance=10)."
    )
