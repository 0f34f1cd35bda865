"""Newton's method for a smooth concave function, with the decrement as its measure of distance."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from suffice.array_types import Floats
from suffice.errors import EstimateError
from suffice.fitting.control import Control, Outcome, State, iterate
from suffice.solvers.line_search import Objective, Point, Scale, begin, diagonal_of, search

#: Below this decrement the steps are in the quadratic regime, and rounding may hide the rise of the objective.
QUADRATIC = 1e-5
#: Relative rounding of a gradient or a value that is a difference of sums, with a margin.
ROUNDING = 16 * float(np.finfo(np.float64).eps)
#: Half the steps 2^-k are tried before the ascent counts as stalled.
HALVINGS = 60
#: Iterations without any progress after which a truncated Newton method counts as stalled.
IDLE = 5

Concave = Callable[[Floats], tuple[float, Floats, Floats]]


def newton(
    function: Concave, start: Floats, control: Control, *, problem: str = "", magnitude: Floats | None = None
) -> Outcome:
    """Maximise a concave function.

    `function(x)` returns the value, the gradient (k,) and the information, minus the Hessian (k, k); outside its domain
    the value is -inf or NaN. The gap is the decrement ``sqrt(g' I^-1 g)``: half its square estimates how much the
    value can still rise. `magnitude` (k,) is the size of the terms whose difference is the gradient: a decrement that
    rounding alone explains counts as zero. Without it the terms count as exact.
    """
    size_of_terms = np.zeros(len(start)) if magnitude is None else np.abs(magnitude)

    def unseen(x: Floats, information: Floats) -> float:
        """The squared decrement that rounding of the gradient's terms, or of x itself, may cause."""
        if magnitude is None:
            return 0.0
        terms = size_of_terms @ np.abs(np.linalg.inv(information)) @ size_of_terms
        return ROUNDING**2 * float(terms + np.abs(x) @ np.abs(information) @ np.abs(x))

    def evaluate(x: Floats) -> State | None:
        value, gradient, information = function(x)
        if not np.isfinite(value):
            return None
        try:
            direction = np.linalg.solve(information, gradient)
        except np.linalg.LinAlgError:
            return None
        slope = float(gradient @ direction)
        gap = math.sqrt(slope) if slope > unseen(x, information) else 0.0
        return State(x, value, gap, memory={"direction": direction, "slope": slope})

    def step(state: State) -> State:
        hidden = ROUNDING * float(np.abs(state.parameters) @ size_of_terms)
        blind = state.gap < QUADRATIC or state.memory["slope"] < hidden
        size = 1.0
        for _ in range(HALVINGS):
            moved = evaluate(state.parameters + size * state.memory["direction"])
            if moved is not None:
                rise = moved.objective - state.objective
                if rise >= 1e-4 * size * state.memory["slope"] or (blind and moved.gap < state.gap):
                    return moved
                if blind:
                    return replace(state, memory={**state.memory, "stalled": True})
            size *= 0.5
        return replace(state, memory={**state.memory, "stalled": True})

    with np.errstate(all="ignore"):
        first = evaluate(np.asarray(start, dtype=np.float64))
        if first is None:
            raise EstimateError(
                f"The objective is not finite at the start {start!r}, or its curvature singular; choose another start."
            )
        return iterate(step, first, control, problem=problem)


# Information that may be singular -------------------------------------------------------------------------------------


def damped_newton(
    objective: Objective,
    information: Callable[[Floats], Floats],
    start: ArrayLike,
    control: Control,
    *,
    problem: str = "",
) -> Outcome:
    """Maximise a concave function whose information may be singular, as that of overcomplete parameters is.

    `objective(x)` returns value and gradient (k,), `information(x)` minus the Hessian (k, k). Of all Newton directions
    the shortest is taken, so that parameters the data says nothing about stay as they are. The gap is the largest
    component of the gradient; ``state.memory["decrement"]`` is ``sqrt(g' I^+ g)``, half of whose square estimates how
    much the value can still rise, and ``state.memory["rank"]`` the rank of the information.
    """

    def state(point: Point, magnitude: float) -> State:
        direction, rank = shortest_direction(information(point.x), point.gradient, control.tolerance)
        decrement = math.sqrt(max(0.0, float(point.gradient @ direction)))
        kept = {"gradient": point.gradient, "direction": direction, "decrement": decrement, "rank": rank}
        return State(point.x, point.value, point.gap, memory={**kept, "magnitude": max(magnitude, abs(point.value))})

    def step(before: State) -> State:
        point = Point(before.parameters, before.objective, before.memory["gradient"])
        searched = search(objective, point, before.memory["direction"], 1.0, magnitude=before.memory["magnitude"])
        if searched is None:
            return replace(before, memory={**before.memory, "stalled": True})
        return state(searched.point, before.memory["magnitude"])

    with np.errstate(all="ignore"):
        return iterate(step, state(begin(objective, start), 0.0), control, problem=problem)


def shortest_direction(information: Floats, gradient: Floats, tolerance: float = 0.0) -> tuple[Floats, int]:
    """The shortest solution d of ``I d = g``, and the rank of I, for a symmetric I that is not negative.

    Eigenvalues below the rounding of the largest one count as 0. Where the gradient all the same has a component of
    more than `tolerance` along such an eigenvector, the maximum lies far away or at infinity: it is followed with the
    least curvature that can be told from 0.
    """
    values, vectors = np.linalg.eigh(information)
    least = len(values) * float(np.finfo(np.float64).eps) * float(np.abs(values).max(initial=0.0))
    curved = values > least
    along = vectors.T @ gradient
    followed = curved | (np.abs(along) > tolerance)
    shares = np.divide(along, np.maximum(values, least or 1.0), out=np.zeros_like(along), where=followed)
    return vectors @ shares, int(np.count_nonzero(curved))


def newton_cg(
    objective: Objective,
    information: Callable[[Floats], Callable[[Floats], Floats]],
    start: ArrayLike,
    control: Control,
    *,
    scale: Scale = None,
    problem: str = "",
) -> Outcome:
    """Maximise by Newton's method whose equations are solved by conjugate gradients, as far as it pays.

    `information(x)` returns a function that multiplies minus the Hessian at x by a vector (k,); it is asked once for
    each iteration. How exactly the equations are solved follows Eisenstat and Walker (1996). scale: a guess of the
    diagonal of the inverse of the information, numbers (k,) or a function of x and gradient. Gap and decrement are as
    in `damped_newton`; the decrement is that of the inexact direction, which at the end is exact to four digits.
    """
    diagonal_at = diagonal_of(scale)

    def state(point: Point, before: State | None) -> State:
        diagonal = diagonal_at(point)
        length = math.sqrt(float(point.gradient @ (diagonal * point.gradient)))
        forcing = 0.5
        magnitude = abs(point.value)
        if before is not None:
            forcing = _forcing(length, float(before.memory["length"]), float(before.memory["forcing"]))
            magnitude = max(magnitude, float(before.memory["magnitude"]))
        if point.gap <= control.tolerance:
            forcing = min(forcing, 1e-4)
        direction, _ = solve_truncated(information(point.x), point.gradient, diagonal, forcing)
        kept: dict[str, Any] = {"gradient": point.gradient, "direction": direction, "length": length}
        kept |= {"forcing": forcing, "idle": _idle(point, before)}
        kept["stalled"] = kept["idle"] >= IDLE
        kept["decrement"] = math.sqrt(max(0.0, float(point.gradient @ direction)))
        return State(point.x, point.value, point.gap, memory={**kept, "magnitude": magnitude})

    def step(before: State) -> State:
        point = Point(before.parameters, before.objective, before.memory["gradient"])
        searched = search(objective, point, before.memory["direction"], 1.0, magnitude=before.memory["magnitude"])
        if searched is None:
            return replace(before, memory={**before.memory, "stalled": True})
        return state(searched.point, before)

    return iterate(step, state(begin(objective, start), None), control, problem=problem)


def solve_truncated(
    product: Callable[[Floats], Floats], gradient: Floats, diagonal: Floats, forcing: float
) -> tuple[Floats, int]:
    """Solve ``I d = g`` by conjugate gradients until the residual is `forcing` times g, or I shows no curvature.

    Returns:
        d, always a direction of ascent, and 0 only if g is; and how many products it took.
    """
    solution = np.zeros_like(gradient)
    residual = gradient.copy()
    direction = diagonal * residual
    length = float(residual @ direction)
    goal = forcing**2 * length
    steepest = 0.0  # The largest curvature met, in the units of the diagonal: what is tiny beside it is rounding.
    taken = 0
    while taken < 2 * len(gradient) + 10 and length > goal:
        image, taken = product(direction), taken + 1
        curvature = float(direction @ image)
        size = float(direction @ (direction / diagonal))
        steepest = max(steepest, curvature / size)
        noise = max(ROUNDING * float(np.abs(direction) @ np.abs(image)), ROUNDING * steepest * size)
        if curvature <= noise or not math.isfinite(curvature):
            return solution if solution.any() else direction, taken
        share = length / curvature
        solution += share * direction
        residual -= share * image
        ahead = diagonal * residual
        following = float(residual @ ahead)
        direction = ahead + following / length * direction
        length = following
    return solution, taken


def _idle(point: Point, before: State | None) -> int:
    """For how many iterations neither the value nor the gradient has moved by more than rounding."""
    if before is None:
        return 0
    slack = ROUNDING * max(abs(point.value), float(before.memory["magnitude"]))
    moved = point.value - before.objective > slack or point.gap < (1.0 - 1e-3) * before.gap
    return 0 if moved else int(before.memory["idle"]) + 1


def _forcing(length: float, before: float, last: float) -> float:
    """The second choice of Eisenstat and Walker: the square of the shrinking of the gradient, with their safeguard."""
    share = 0.9 * (length / before) ** 2 if before > 0.0 else 0.5
    guard = 0.9 * last**2
    return min(0.5, max(share, guard) if guard > 0.1 else share)
