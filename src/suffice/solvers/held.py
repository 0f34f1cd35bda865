"""A concave function with one coordinate held and all others at their best: what a profile likelihood is made of."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from suffice.array_types import Floats
from suffice.errors import EstimateError
from suffice.fitting.control import Control
from suffice.solvers.newton import Concave, newton

#: How near to the best of the others: half the square of the tolerance, in nats.
CLOSE = Control(tolerance=1e-8, max_iter=100)
#: How often the way to a far value is halved before it counts as out of reach.
HALVINGS = 20


def held_drop(function: Concave, best: Floats, number: int) -> Callable[[float], float]:
    """Twice what the maximum of a function falls by with one coordinate held, as a function of its value.

    `function(x)` returns value, gradient (k,) and minus the Hessian (k, k), which is definite; `best` (k,) is where
    it is largest. It is followed from there, so that others are near where they have to go. Where the function has no
    finite value with the coordinate held the drop is infinite.
    """
    others = np.delete(np.arange(len(best)), number)
    top = function(best)[0]
    # The best of the others at the values asked for so far.
    known: dict[float, Floats] = {float(best[number]): best[others]}

    def drop(value: float) -> float:
        if value in known:
            return _fall(value)
        return _fall(value) if _follow(value) else math.inf

    def _whole(value: float, rest: Floats) -> Floats:
        x = np.empty_like(best)
        x[number], x[others] = value, rest
        return x

    def _fall(value: float) -> float:
        return max(0.0, 2.0 * (top - function(_whole(value, known[value]))[0]))

    def _solve(value: float, start: Floats) -> bool:
        def reduced(rest: Floats) -> tuple[float, Floats, Floats]:
            level, slope, bend = function(_whole(value, rest))
            return level, slope[others], bend[np.ix_(others, others)]

        if not len(others):
            known[value] = start
            return math.isfinite(function(_whole(value, start))[0])
        try:
            known[value] = newton(reduced, start, CLOSE).state.parameters
        except EstimateError:
            return False
        return True

    def _follow(value: float) -> bool:
        near = min(known, key=lambda other: abs(other - value))
        step = value - near
        for _ in range(HALVINGS):
            if _solve(near + step, _ahead(near, step)):
                if near + step == value:
                    return True
                near, step = near + step, value - (near + step)
            else:
                step *= 0.5
        return False

    def _ahead(near: float, step: float) -> Floats:
        """Where the others go as the curvature has it."""
        rest = known[near]
        bend = function(_whole(near, rest))[2]
        if not len(others):
            return rest
        return rest - step * np.linalg.solve(bend[np.ix_(others, others)], bend[others, number])

    return drop
