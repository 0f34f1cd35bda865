"""Coordinate descent for a quadratic with absolute values, and Newton's method whose steps it solves.

This is how a Laplace prior (the lasso), or a normal and a Laplace prior together (the elastic net), is fitted: the
log-likelihood is replaced by its quadratic, whose penalised maximum has a closed form in each coordinate.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from suffice.array_types import Floats
from suffice.errors import EstimateError
from suffice.fitting.control import Control, Outcome, State, iterate
from suffice.solvers.gradient import pseudo_gradient

#: beta -> value, gradient (k,), information (k, k).
Smooth = Callable[[Floats], tuple[float, Floats, Floats]]

SWEEPS = 10_000
HALVINGS = 50


def penalised_quadratic(matrix: Floats, linear: Floats, rate: Floats, start: Floats, tolerance: float) -> Floats:
    """Maximise ``linear' x - x' matrix x / 2 - sum rate |x|`` from a start, one coordinate after the other.

    Full sweeps alternate with sweeps over the coordinates that are not zero; the last one is full.
    """
    x = start.copy()
    slope = linear - matrix @ x
    curve = np.diagonal(matrix)
    places = np.flatnonzero(curve > 0.0)
    full = True
    for _ in range(SWEEPS):
        moved = 0.0
        for j in places if full else places[x[places] != 0.0]:
            wanted = slope[j] + curve[j] * x[j]
            new = math.copysign(max(abs(wanted) - rate[j], 0.0), wanted) / curve[j]
            change = new - x[j]
            if change != 0.0:
                slope -= change * matrix[:, j]
                x[j] = new
                moved = max(moved, abs(change) * math.sqrt(curve[j]))
        if moved <= tolerance and full:
            break
        full = moved <= tolerance
    return x


def proximal_newton(smooth: Smooth, rate: Floats, start: Floats, control: Control, *, problem: str = "") -> Outcome:
    """Maximise ``f(x) - sum rate |x|``; the gap is the largest slope that is left, in roots of the information."""

    def look(x: Floats) -> State | None:
        value, gradient, matrix = smooth(x)
        if not (math.isfinite(value) and np.isfinite(gradient).all()):
            return None
        diagonal = np.diagonal(matrix)
        scale = np.divide(1.0, np.sqrt(diagonal), out=np.ones_like(diagonal), where=diagonal > 0.0)
        gap = float((np.abs(pseudo_gradient(x, gradient, rate)) * scale).max(initial=0.0))
        kept = {"gradient": gradient, "matrix": matrix}
        return State(x, value - float(rate @ np.abs(x)), gap, memory=kept)

    def step(state: State) -> State:
        x, matrix, gradient = state.parameters, state.memory["matrix"], state.memory["gradient"]
        exact = max(1e-13, 0.01 * min(1.0, state.gap) ** 2)
        target = penalised_quadratic(matrix, gradient + matrix @ x, rate, x, exact)
        way = target - x
        promise = float(gradient @ way - rate @ (np.abs(target) - np.abs(x)))
        size = 1.0
        slack = 1e-12 * (1.0 + abs(state.objective))
        for _ in range(HALVINGS):
            moved = look(x + size * way if size < 1.0 else target)
            if moved is not None:
                rise = moved.objective - state.objective
                if rise >= 1e-4 * size * promise or (rise >= -slack and moved.gap < state.gap):
                    return moved
            size *= 0.5
        return replace(state, memory={**state.memory, "stalled": True})

    first = look(np.asarray(start, dtype=np.float64))
    if first is None:
        raise EstimateError("The log-likelihood is not finite at the start; give other start= coefficients.")
    return iterate(step, first, control, problem=problem)
