"""Newton's method for a smooth concave function, with the decrement as its measure of distance."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from suffice.errors import EstimateError
from suffice.iteration import Control, Outcome, State, iterate

Floats = NDArray[np.float64]

#: Below this decrement the steps are in the quadratic regime, and rounding may hide the rise of the objective.
QUADRATIC = 1e-5
#: Relative rounding of a gradient or a value that is a difference of sums, with a margin.
ROUNDING = 16 * float(np.finfo(np.float64).eps)
#: Half the steps 2^-k are tried before the ascent counts as stalled.
HALVINGS = 60

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
        direction = np.linalg.solve(information, gradient)
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
            raise EstimateError(f"The objective is not finite at the start {start!r}; choose another start.")
        return iterate(step, first, control, problem=problem)
