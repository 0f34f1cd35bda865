"""Stochastic gradient ascent: one row, or a few, at a time.

`step_sizes` are the schedules of plain ascent. `corrected_ascent` also converges to the very maximum: it subtracts from
each row's gradient what that row gave at a snapshot and adds the whole gradient there, so that the noise dies out.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.checks import positive, share
from suffice.errors import OptionError
from suffice.fitting.control import Control, Outcome, State, iterate
from suffice.solvers.line_search import Objective, begin

Schedule = Callable[[int], float]


def step_sizes(step: Any, decay: float = 0.0) -> Schedule:
    """The step of update t = 0, 1, ...: ``step / (1 + t)^decay`` for a number, or the function given."""
    if callable(step):
        return lambda t: _given(step(t), t)
    first = positive(step, "step_size", otherwise=" or a function of the update's number")
    power = share(decay, "decay", otherwise=": 0 for constant steps, 1 for steps of 1 / t")
    return lambda t: first / (1.0 + t) ** power


def _given(value: Any, t: int) -> float:
    """What a function said about the step of update t: a number, and not one that goes down."""
    if not (np.ndim(value) == 0 and np.asarray(value).dtype.kind in "fiu" and 0.0 <= value < math.inf):
        raise OptionError(f"step_size gives {value!r} at update {t}; expected a finite number of at least 0.")
    return float(value)


def corrected_ascent(
    objective: Objective,
    partial: Callable[[Floats, NDArray[np.intp]], Floats],
    rows: int,
    start: Floats,
    control: Control,
    *,
    step: float,
    batch: int,
    rng: np.random.Generator,
    problem: str = "",
) -> Outcome:
    """Maximise ``f = sum over rows of f_i`` (Johnson and Zhang 2013); the gap is the largest slope.

    `objective` gives value and gradient of f, `partial(x, chosen)` the gradient of the sum over chosen rows. One
    iteration is one pass over the rows in random order, `batch` at a time, with steps of `step` times the mean gradient
    of a row; steps are halved when the value falls.
    """
    first = begin(objective, start)

    def epoch(state: State) -> State:
        size = float(state.memory["size"])
        for _ in range(40):
            x = state.parameters.copy()
            for chosen in np.array_split(rng.permutation(rows), max(1, rows // batch)):
                noise = (partial(x, chosen) - partial(state.parameters, chosen)) / len(chosen)
                x += size * (noise + state.memory["gradient"] / rows)
            value, gradient = objective(x)
            fine = np.isfinite(value) and np.isfinite(gradient).all()
            gap = float(np.abs(gradient).max(initial=0.0)) if fine else np.inf
            slack = 1e-12 * (1.0 + abs(state.objective))
            if fine and (value > state.objective + slack or (value >= state.objective - slack and gap < state.gap)):
                return State(x, float(value), gap, memory={"gradient": gradient, "size": 1.05 * size})
            size *= 0.5
        return replace(state, memory={**state.memory, "stalled": True})

    kept = {"gradient": first.gradient, "size": step}
    return iterate(epoch, State(first.x, first.value, first.gap, memory=kept), control, problem=problem)
