"""Climbing by a map that never lowers an objective, as the steps of EM do; with or without extrapolation.

Extrapolation is SQUAREM (Varadhan and Roland 2008, scheme S3): from x, x1 = F(x) and x2 = F(x1) with r = x1 - x and
v = (x2 - x1) - r, the next point is x + 2 s r + s^2 v with the step length s = |r| / |v|. A step length of 1 gives x2.
A point that lowers the objective is given up for x1, so that the objective never falls either way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from suffice.array_types import Floats
from suffice.checks import choice
from suffice.errors import EstimateError
from suffice.fitting.control import Control, Outcome, State, iterate

ACCELERATIONS = (None, "squarem")
#: Relative fall of the objective that is still rounding.
SLACK = 1e-9
#: The largest step length grows by this factor where it was used in full, and shrinks by it where it failed.
GROWTH = 4.0
#: Halvings of the part of a step length above 1 that bring a point back into the domain.
HALVINGS = 8


def largest_change(x: Floats, mapped: Floats) -> float:
    """The largest change of a coordinate."""
    return float(np.abs(mapped - x).max(initial=0.0))


@dataclass(frozen=True)
class FixedPoint:
    """A map and its objective.

    `evaluate` gives the objective at x (d,) and the map F(x) (d,). `inside` says whether x is in the domain; F(x)
    always is. `size` is a number that the objective is large compared with, such as the number of rows. `hold` brings
    an extrapolated point that lies beyond an edge back onto it: a coordinate that the map itself holds at an edge must
    not keep all others from being extrapolated. `gap` gives the distance to stationarity from x and F(x), the largest
    change by default.
    """

    evaluate: Callable[[Floats], tuple[float, Floats]]
    inside: Callable[[Floats], bool]
    size: float = 1.0
    hold: Callable[[Floats], Floats] = lambda x: x
    gap: Callable[[Floats, Floats], float] = largest_change

    def at(self, x: Floats, largest: float, evaluations: int) -> State:
        """The state at x, with its gap."""
        value, mapped = self.evaluate(x)
        gap = self.gap(x, mapped)
        return State(x, value, gap, memory={"mapped": mapped, "largest": largest, "evaluations": evaluations + 1})

    def check(self, before: State, after: State) -> None:
        """Raise where a step of the map itself has lowered the objective."""
        fall = before.objective - after.objective
        if not fall <= SLACK * max(abs(before.objective), self.size):
            raise EstimateError(
                f"Iteration {before.iteration + 1} lowered the objective by {fall:.3g}, which a step of EM never does: "
                "the statistics and the update do not belong together."
            )

    def step(self, state: State) -> State:
        """One step of the map."""
        moved = self.at(state.memory["mapped"], state.memory["largest"], state.memory["evaluations"])
        self.check(state, moved)
        return moved

    def squarem_step(self, state: State) -> State:
        """One step of the map, then an extrapolated point where that is better still."""
        first = self.step(state)
        r, mapped = first.parameters - state.parameters, first.memory["mapped"]
        v = (mapped - first.parameters) - r
        largest, evaluations = first.memory["largest"], first.memory["evaluations"]
        norm = float(np.linalg.norm(v))
        wanted = float(np.linalg.norm(r)) / norm if norm > 0 else 1.0
        length = min(max(wanted, 1.0), largest)
        for _ in range(HALVINGS):
            point = self.hold(state.parameters + 2 * length * r + length**2 * v)
            if length == 1.0 or self.inside(point):
                break
            length = (length + 1) / 2
        else:
            length = 1.0
        moved = self.at(mapped if length == 1.0 else point, largest, evaluations)
        if length == 1.0:
            self.check(first, moved)
        if moved.objective >= first.objective or length == 1.0:
            grown = largest * GROWTH if wanted >= largest else largest
            return State(moved.parameters, moved.objective, moved.gap, memory={**moved.memory, "largest": grown})
        shrunk = {**first.memory, "largest": max(1.0, largest / GROWTH), "evaluations": moved.memory["evaluations"]}
        return State(first.parameters, first.objective, first.gap, memory=shrunk)


def fixed_point(
    problem: FixedPoint, start: Floats, control: Control, *, acceleration: str | None = None, fingerprint: str = ""
) -> Outcome:
    """Apply the map until it changes no coordinate by more than the tolerance.

    The memory of the state holds `evaluations`, how often the map was computed.
    """
    choice(acceleration, "acceleration", ACCELERATIONS)
    first = problem.at(np.asarray(start, dtype=np.float64), 1.0, 0)
    if not np.isfinite(first.objective):
        raise EstimateError(
            f"The objective is {first.objective} at the start: the start gives some row probability 0. Choose another."
        )
    return iterate(problem.squarem_step if acceleration else problem.step, first, control, problem=fingerprint)
