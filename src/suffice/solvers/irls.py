"""Iteratively reweighted least squares: Newton's method with the expected information of a regression.

One step is ``beta + (X'WX)^-1 X' score``, which equals the weighted least squares fit ``(X'WX)^-1 X'W z`` of the
working response ``z = X beta + score / W``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from suffice.array_types import Floats
from suffice.errors import EstimateError
from suffice.fitting.control import Control, Outcome, State, iterate
from suffice.solvers.information import Information

#: beta -> value, gradient (k,), information; outside the model the value is -inf.
Regression = Callable[[Floats], tuple[float, Floats, Information]]
#: beta -> value and gradient (k,) alone.
Slope = Callable[[Floats], tuple[float, Floats]]

#: Half the steps 2^-k are tried before the ascent counts as stalled.
HALVINGS = 50
#: Below this decrement rounding may hide the rise of the value, and the decrement alone decides.
QUADRATIC = 1e-4
#: Fall of the value, relative to its size, that counts as rounding.
SLACK = 1e-12
#: Below this decrement, in standard errors, the information of the next point is as good as that of this one.
SHORT = 1e-2
#: A step with the information of another point must bring the decrement below this part of what it was.
GAIN = 0.1
#: Relative rounding of a coefficient, with a margin.
ROUNDING = 4 * float(np.finfo(np.float64).eps)


@dataclass
class Last:
    """The latest evaluation, so that the information at the result need not be computed again."""

    beta: Floats
    value: float
    gradient: Floats
    information: Information


@dataclass(frozen=True, eq=False)
class WeightedFit:
    """How the iteration ended, with gradient and information at the result, and the iterates where they were kept."""

    outcome: Outcome
    last: Last
    iterates: tuple[Floats, ...]


def irls(
    evaluate: Regression,
    start: Floats,
    control: Control,
    *,
    slope_of: Slope | None = None,
    short: float = SHORT,
    gain: float = GAIN,
    keep: bool = False,
    problem: str = "",
) -> WeightedFit:
    """Maximise the log-likelihood of a regression.

    The gap is the decrement ``sqrt(g' I^-1 g)``, in standard errors: no coefficient is further from its optimum than
    about so many of its standard errors. Steps are halved while the value falls. A decrement that the rounding of the
    coefficients alone may cause counts as 0. With `slope_of`, which is cheaper than `evaluate`, steps shorter than
    `short` keep the information of the point they leave, as long as the decrement falls by the factor `gain`.
    """
    iterates: list[Floats] = []
    seen: list[Last] = []

    def look(beta: Floats, known: Information | None = None) -> State | None:
        if known is None or slope_of is None:
            value, gradient, information = evaluate(beta)
        else:
            (value, gradient), information = slope_of(beta), known
        if not (math.isfinite(value) and np.isfinite(gradient).all()):
            return None
        with np.errstate(over="ignore", invalid="ignore"):
            direction = information.solve(gradient)
            slope = float(gradient @ direction)
            rounding = ROUNDING * math.sqrt(information.magnitude(beta))
        if not (math.isfinite(slope) and np.isfinite(direction).all()):
            return None  # So far out that squares overflow.
        decrement = math.sqrt(slope) if slope > 0.0 else 0.0
        seen[:] = [*seen[-1:], Last(beta, value, gradient, information)]
        gap = 0.0 if decrement <= rounding < math.inf else decrement
        return State(beta, value, gap, memory={"direction": direction, "slope": max(slope, 0.0), "rounding": rounding})

    def short_step(state: State) -> State | None:
        before = seen[-1:]
        moved = look(state.parameters + state.memory["direction"], before[0].information)
        if moved is not None and moved.gap <= max(gain * state.gap, control.tolerance):
            return moved
        seen[:] = before
        return None

    def step(state: State) -> State:
        slack = _slack(state)
        size = 1.0
        if slope_of is not None and state.gap < short and seen[-1].beta is state.parameters:
            moved = short_step(state)
            if moved is not None:
                return moved
        for _ in range(HALVINGS):
            moved = look(state.parameters + size * state.memory["direction"])
            if moved is not None:
                rise = moved.objective - state.objective
                near = state.gap < QUADRATIC
                if rise >= 1e-4 * size * state.memory["slope"] or (rise >= -slack and moved.gap < state.gap):
                    if keep:
                        iterates.append(moved.parameters)
                    return moved
                if near:
                    return replace(state, memory={**state.memory, "stalled": True})
            size *= 0.5
        return replace(state, memory={**state.memory, "stalled": True})

    first = look(np.asarray(start, dtype=np.float64))
    if first is None:
        raise EstimateError(
            "The log-likelihood is not finite at the start; give start= coefficients for which every mean is possible."
        )
    if keep:
        iterates.append(first.parameters)
    outcome = iterate(step, first, control, problem=problem)
    final = next((one for one in seen if one.beta is outcome.state.parameters), None)
    if final is None:
        final = Last(outcome.state.parameters, *evaluate(outcome.state.parameters))
    return WeightedFit(outcome, final, tuple(iterates))


def _slack(state: State) -> float:
    """The fall of the value that counts as rounding.

    Errors of eta by rounding, times the slopes of the rows, add up to about the rounding of the decrement in the value.
    """
    rounding: float = state.memory["rounding"]
    return max(SLACK * (1.0 + abs(state.objective)), rounding if math.isfinite(rounding) else 0.0)
