"""The best point on the edge of what a link allows: means of 0 for counts and shares of 0, of 1 for shares of 1.

A count of 0 has a finite likelihood at a mean of 0, and so has a share of 0 or 1 at itself. Under a link that reaches
such means with a finite linear predictor the best coefficients may lie there, where the slope is not 0 and the expected
information is infinite, so that Fisher's steps crawl. A logarithmic barrier that is taken down, with second derivatives
of the rows themselves, goes to the edge from inside. What it returns is judged by multipliers: where
``slope + sum of multipliers x = 0`` with multipliers that are not negative and belong to rows on the edge, no direction
that stays inside rises.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from suffice.array_types import Flags, Floats
from suffice.engines.linear_predictor import RowBlock
from suffice.fitting.control import Control, Outcome, State, iterate
from suffice.models.glm.existence import bends
from suffice.models.glm.families import NegativeBinomialFamily
from suffice.models.glm.family import RowDistribution
from suffice.models.glm.problem import RegressionProblem
from suffice.models.glm.separation import MOST_NUMBERS, dense_rows
from suffice.models.glm.solve import Result, Search, solve, told_to_stop
from suffice.solvers.irls import Last

#: The barrier is taken down by this factor, to this share of what it was.
LOWER, LOWEST = 0.03, 1e-12
#: A stage of the barrier ends at this squared decrement, in units of the barrier.
CENTRED = 0.1
#: Share of the way that a step may go towards the edge, and halvings of it.
INSIDE, HALVINGS = 0.99, 60
#: Room to the edge, as a share of the mean size of linear predictors, up to which a row may be on it.
ON_EDGE = 1e-5
#: Steps inside after which means that may be on the edge are looked for there.
INSIDE_STEPS = 30
#: Steps along the edge after the barrier.
POLISHINGS = 10
#: A multiplier below this share of the slopes of rows is none.
NO_FORCE = 1e-7


@dataclass(frozen=True, eq=False)
class EdgeRows:
    """Rows (n, k) of the coefficients that a solver sees, in memory; `sign` (n,) points inside, 0 for other rows."""

    problem: RegressionProblem
    matrix: Floats
    block: RowBlock
    sign: Floats
    end: Floats

    @property
    def distribution(self) -> RowDistribution:
        """Family and link."""
        distribution = self.problem.distribution
        assert isinstance(distribution, RowDistribution)
        return distribution

    def eta(self, beta: Floats) -> Floats:
        """Linear predictors (n,)."""
        fixed = 0.0 if self.block.offset is None else self.block.offset
        return np.asarray(self.matrix @ beta + fixed)

    def room(self, beta: Floats) -> Floats:
        """How far the rows that may be on the edge are from it (e,)."""
        return np.asarray((self.sign * (self.eta(beta) - self.end))[self.sign != 0.0])

    def allow(self, beta: Floats) -> bool:
        """Whether a point is inside."""
        return bool((self.room(beta) > 0.0).all()) and math.isfinite(self.evaluate(beta)[0])

    def near(self, beta: Floats) -> Flags:
        """Which of them (e,) may be there."""
        return np.asarray(self.room(beta) <= ON_EDGE * max(float(np.abs(self.eta(beta)).mean()), 1e-300))

    @property
    def inward(self) -> Floats:
        """Rows (e, k) that may be on the edge, with their sign."""
        may_touch = self.sign != 0.0
        return np.asarray(self.sign[may_touch, None] * self.matrix[may_touch])

    @property
    def weights(self) -> Floats:
        """Weights (n,)."""
        return np.ones(self.block.rows) if self.block.weights is None else self.block.weights

    def evaluate(self, beta: Floats) -> tuple[float, Floats, Floats]:
        """Value, slope (k,) and second derivatives (k, k), as positive as they are large, of the objective."""
        eta, y, weights, phi = self.eta(beta), self.block.y, self.weights, self.problem.phi
        with np.errstate(all="ignore"):
            value, score, _ = self.distribution(eta, y)
            curve = np.abs(self._bends(eta, y))
        live = weights > 0.0
        total = float(weights[live] @ value[live]) / phi
        if not (math.isfinite(total) and np.isfinite(score[live]).all() and np.isfinite(curve[live]).all()):
            return -math.inf, np.zeros_like(beta), np.eye(len(beta))
        slope = self.matrix[live].T @ (weights * score)[live] / phi
        hessian = (self.matrix[live] * (weights * curve)[live, None]).T @ self.matrix[live] / phi
        penalty = self.problem.penalty
        if penalty is not None:
            total, slope, hessian = total - penalty.value(beta), slope - penalty.slope(beta), hessian + penalty.matrix()
        return total, slope, hessian

    def _bends(self, eta: Floats, y: Floats) -> Floats:
        family, link = self.distribution.family, self.distribution.link.name
        if not isinstance(family, NegativeBinomialFamily):
            return bends((family.rows_like, link), eta, y)
        size = family.size
        if link == "identity":
            return np.where(y > 0.0, y / eta**2, 0.0) - (y + size) / (eta + size) ** 2
        square = eta**2 + size
        return np.where(y > 0.0, 2.0 * y / eta**2, 0.0) + 2.0 * (y + size) * (size - eta**2) / square**2


def edge_rows(problem: RegressionProblem) -> EdgeRows | None:
    """The rows that may be on the edge; None where rows are not in memory, many, or none may be there."""
    distribution, rows = problem.distribution, problem.rows
    if not (isinstance(distribution, RowDistribution) and rows.in_memory) or rows.rows * problem.size > MOST_NUMBERS:
        return None
    block = rows.block
    matrix = np.concatenate([dense_rows(problem.layout, part) for part in problem.layout.parts(block)])
    if problem.kept is not None and problem.fixed is not None:
        if problem.fixed.any() or problem.penalty is not None:
            return None
        matrix = matrix[:, problem.kept]
    binomial, log = distribution.family.rows_like == "binomial", distribution.link.name == "log"
    sign = np.where(block.y <= 0.0, 0.0 if binomial and log else 1.0, 0.0)
    end = np.zeros(block.rows)
    if binomial:
        sign = np.where(block.y >= 1.0, -1.0, sign)
        end = np.where(block.y >= 1.0, 0.0 if log else 1.0, 0.0)
    if block.weights is not None:
        sign = np.where(block.weights > 0.0, sign, 0.0)
    return EdgeRows(problem, matrix, block, sign, end) if sign.any() else None


def solve_edged(rows: EdgeRows, start: Floats, control: Control, inside: Callable[[Control], Result]) -> Result:
    """A solver for points inside, and the barrier where it does not come to rest within some steps."""
    if control.max_iter <= INSIDE_STEPS or not rows.allow(start):
        return inside(control)
    result = inside(replace(control, max_iter=INSIDE_STEPS))
    # Near the edge the expected information is so large that any slope looks small.
    rested = result.outcome.converged and not rows.near(result.beta).any()
    if rested or (told_to_stop(result) and result.outcome.stop_reason != "max_iter"):
        return result
    done = result.outcome.state.iteration
    outcome = to_the_edge(rows, start, result.beta, replace(control, max_iter=control.max_iter - done))
    outcome = replace(outcome, state=replace(outcome.state, iteration=outcome.state.iteration + done))
    beta = outcome.state.parameters
    last = Last(beta, *rows.problem.evaluate(beta))
    return Result(beta, outcome, last, (), f"{result.method}, then a barrier at the edge")


def solve_rest(
    problem: RegressionProblem, start: Floats, control: Control, *, edged: bool
) -> tuple[Result, OnEdge | None]:
    """IRLS of the rows that separation leaves, and where it is on the edge."""
    rows = edge_rows(problem) if edged else None
    if rows is None:
        return solve(Search(problem, start, control), "irls"), None
    result = solve_edged(rows, start, control, lambda given: solve(Search(problem, start, given), "irls"))
    return result, on_edge(rows, result.beta)


def to_the_edge(rows: EdgeRows, inside: Floats, near: Floats, control: Control) -> Outcome:
    """Maximise from a point between one well inside and one nearer to the optimum."""
    first = 0.1 * inside + 0.9 * near
    if not rows.allow(first):
        first = inside
    inward = rows.inward
    height = float(rows.weights[rows.sign != 0.0].mean()) / rows.problem.phi

    def look(beta: Floats, barrier: float) -> State:
        value, slope, hessian = rows.evaluate(beta)
        room = rows.room(beta)
        if not (math.isfinite(value) and (room > 0.0).all()):
            return State(beta, -math.inf, math.inf)  # Outside.
        pushed = slope + barrier * (inward / room[:, None]).sum(axis=0)
        curved = hessian + barrier * (inward / room[:, None] ** 2).T @ inward
        step = _solved(curved, pushed)
        decrement = max(0.0, float(pushed @ step))
        done = barrier <= LOWEST * height and decrement <= CENTRED * barrier
        left = 0.0 if done else math.sqrt(decrement + 2.0 * barrier * len(room))
        merit = value + barrier * float(np.log(room).sum())
        memory = {"step": step, "decrement": decrement, "barrier": barrier, "merit": merit}
        return State(beta, value, left, memory=memory)

    def step(state: State) -> State:
        barrier = state.memory["barrier"]
        if state.memory["decrement"] <= CENTRED * barrier and barrier > LOWEST * height:
            return look(state.parameters, max(LOWER * barrier, LOWEST * height))
        way = state.memory["step"]
        towards = -(inward @ way)
        with np.errstate(divide="ignore", invalid="ignore"):
            most = np.where(towards > 0.0, rows.room(state.parameters) / towards, np.inf).min(initial=np.inf)
        size = min(1.0, INSIDE * float(most))
        for _ in range(HALVINGS):
            moved = look(state.parameters + size * way, barrier)
            if moved.memory and moved.memory["merit"] >= state.memory["merit"]:
                return moved
            size *= 0.5
        if barrier > LOWEST * height:
            return look(state.parameters, max(LOWER * barrier, LOWEST * height))
        # Rounding hides what is left; the multipliers will say how much that is.
        return replace(state, gap=0.0)

    outcome = iterate(step, look(first, height), control)
    return replace(outcome, state=replace(outcome.state, parameters=_polished(rows, outcome.state.parameters)))


def _polished(rows: EdgeRows, beta: Floats) -> Floats:
    """Newton steps that leave rows on the edge in place, as long as they halve the slope: the value is at rounding."""
    _, slope, hessian = rows.evaluate(beta)
    scale = 1.0 / np.sqrt(np.maximum(np.diagonal(hessian), 1e-300))
    near = rows.near(beta)
    if not near.any():
        return beta
    _, values, axes = np.linalg.svd(rows.inward[near] * scale, full_matrices=True)
    rank = int((values > 1e-9 * values[0]).sum())
    still = axes[rank:].T * scale[:, None]
    for _ in range(POLISHINGS if still.shape[1] else 0):
        way = still @ np.linalg.lstsq(still.T @ hessian @ still, still.T @ slope, rcond=1e-14)[0]
        new = beta + way
        value, turned, bent = rows.evaluate(new)
        less = float(np.linalg.norm(still.T @ turned)) < 0.5 * float(np.linalg.norm(still.T @ slope))
        if not (math.isfinite(value) and less and (rows.room(new) > 0.0).all()):
            break
        beta, slope, hessian = new, turned, bent
    return beta


def _solved(matrix: Floats, right: Floats) -> Floats:
    """The solution in units of the diagonal; the shortest where the matrix is not definite."""
    scale = 1.0 / np.sqrt(np.maximum(np.diagonal(matrix), 1e-300))
    return np.asarray(np.linalg.lstsq(matrix * np.outer(scale, scale), right * scale, rcond=1e-14)[0] * scale)


@dataclass(frozen=True, eq=False)
class OnEdge:
    """A point on the edge: the slope (k,) that no row on the edge holds, its variance, and what is left to gain.

    `zeros` and `ones` are how many rows, by weight, hold the others: with means of 0 and of 1.
    """

    slope: Floats
    variance: Floats
    left: float
    zeros: float
    ones: float

    @property
    def words(self) -> tuple[str, ...]:
        """What is at its end."""
        ends = ((self.zeros, "0"), (self.ones, "1"))
        return tuple(
            f"mean of {n:,.6g} row{'' if n == 1.0 else 's'} -> {end}, the edge of the link's range"
            for n, end in ends
            if n > 0.0
        )


def on_edge(rows: EdgeRows, beta: Floats) -> OnEdge | None:
    """Measured at a point: multipliers of rows on the edge that hold the slope; None where no row is there.

    With multipliers m and what they leave of the slope, r, a concave objective can rise by ``m' room`` and what r
    promises, which half its squared Newton decrement estimates.
    """
    from scipy import optimize

    room, near = rows.room(beta), rows.near(beta)
    _, slope, hessian = rows.evaluate(beta)
    if not near.any():
        return None
    # Without the rows on the edge themselves second derivatives may be 0 in what these alone tell.
    least = np.maximum((np.abs(rows.matrix) * rows.weights[:, None]).sum(axis=0), 1e-300)
    scale = 1.0 / np.sqrt(np.maximum(np.diagonal(hessian), least))
    ends, back = np.unique(rows.inward[near], axis=0, return_inverse=True)
    columns = ends.T * scale[:, None]
    size = np.sqrt((columns**2).sum(axis=0))
    forces = optimize.nnls(columns / size, -slope * scale)[0] / size
    rest = slope + ends.T @ forces
    held = forces > NO_FORCE * float(np.abs(forces).max(initial=0.0))
    if not held.any() or not float(np.abs(forces).max()) > NO_FORCE:
        return None
    share = (forces / np.bincount(back.ravel()))[back.ravel()]
    left = float(share @ room[near]) + 0.5 * max(0.0, float(rest @ _solved(hessian, rest)))
    weights = np.where(held[back.ravel()], rows.weights[rows.sign != 0.0][near], 0.0)
    low = rows.sign[rows.sign != 0.0][near] > 0.0
    return OnEdge(rest, scale**-2.0, left, float(weights[low].sum()), float(weights[~low].sum()))
