"""How far to go along a direction: the search of Hager and Zhang (2005), which trusts slopes more than values.

Near a maximum the values of two points differ by less than their rounding, while their slopes still tell which is
nearer. A point is therefore accepted by the Wolfe conditions, or by their approximate form, which compares slopes and
asks of the value only that it has not fallen by more than its rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from suffice.array_types import Floats
from suffice.errors import EstimateError, OptionError

Objective = Callable[[Floats], tuple[float, Floats]]
Scale = ArrayLike | Callable[[Floats, Floats], Floats] | None

#: Share of the rise promised by the first slope that a step must bring; below 1/2.
RISE = 0.1
#: Fall of the value, relative to its size, that counts as rounding.
SLACK = 1e-12
#: Points tried before the search gives up.
TRIALS = 60
#: How fast the step grows while the slope is still upward.
GROWTH = 5.0


@dataclass(frozen=True)
class Point:
    """A point of the objective; `value` is -inf where the objective is not finite."""

    x: Floats
    value: float
    gradient: Floats

    @cached_property
    def gap(self) -> float:
        """The largest component of the gradient."""
        return float(np.abs(self.gradient).max(initial=0.0))


@dataclass(frozen=True)
class LinePoint:
    """Where a search ended, and the step that led there."""

    point: Point
    step: float


def evaluate(objective: Objective, x: Floats) -> Point:
    """Evaluate; values and gradients that are not finite count as a value of -inf."""
    value, gradient = objective(x)
    value, gradient = float(value), np.asarray(gradient, dtype=np.float64)
    if not (math.isfinite(value) and np.isfinite(gradient).all()):
        return Point(x, -math.inf, np.zeros_like(x))
    return Point(x, value, gradient)


def begin(objective: Objective, start: ArrayLike) -> Point:
    """The point at which a method starts; raises where there is no value."""
    x = np.array(start, dtype=np.float64)
    if x.ndim != 1:
        raise OptionError(f"The start has shape {x.shape}; expected a vector.")
    point = evaluate(objective, x)
    if point.value == -math.inf:
        raise EstimateError(f"The objective is not finite at the start {start!r}; choose another start.")
    return point


def diagonal_of(scale: Scale) -> Callable[[Point], Floats]:
    """The diagonal (k,) that a method is scaled by at a point: from numbers, or a function of x and gradient."""

    def diagonal(point: Point) -> Floats:
        given = 1.0 if scale is None else scale(point.x, point.gradient) if callable(scale) else scale
        numbers = np.broadcast_to(np.asarray(given, dtype=np.float64), point.x.shape)
        if not (np.isfinite(numbers).all() and (numbers > 0.0).all()):
            raise OptionError("The scale of a solver holds numbers that are not positive and finite.")
        return numbers

    return diagonal


@dataclass
class _Line:
    """The objective along a ray: `at(step)` gives the point, its value and its slope."""

    objective: Objective
    start: Point
    direction: Floats
    slack: float
    best: LinePoint | None = None

    def at(self, step: float) -> tuple[Point, float]:
        point = evaluate(self.objective, self.start.x + step * self.direction)
        if self.allowed(point) and point.gap < (self.best.point if self.best else self.start).gap:
            self.best = LinePoint(point, step)
        return point, float(point.gradient @ self.direction)

    def allowed(self, point: Point) -> bool:
        """Whether the value has not fallen, rounding aside."""
        return point.value >= self.start.value - self.slack


def search(
    objective: Objective,
    start: Point,
    direction: Floats,
    first: float,
    *,
    flatness: float = 0.9,
    magnitude: float = 0.0,
) -> LinePoint | None:
    """Find a step along a direction of ascent, trying `first` first.

    Accepted is a point whose slope is at most `flatness` times the first slope, and whose value has risen by `RISE`
    times what the first slope promises, or whose slope has not turned by more than the same bound allows while the
    value has not fallen by more than its rounding: `SLACK` times the larger of |value| and `magnitude`. If there is
    none, the point with the smallest gradient is taken if it improves on the start; None means that the search stalled.
    """
    slope = float(start.gradient @ direction)
    if not (slope > 0.0 and math.isfinite(slope)):
        return None
    line = _Line(objective, start, direction, SLACK * max(abs(start.value), magnitude))

    def accepted(point: Point, now: float, step: float) -> bool:
        if not line.allowed(point) or now > flatness * slope:
            return False
        risen = point.value - start.value >= RISE * step * slope
        return now >= (-flatness if risen else 2 * RISE - 1) * slope

    low, low_slope = 0.0, slope  # The slope at low is upward, and its value is allowed.
    high, high_slope = math.inf, math.nan  # At high it is downward, or the value is not allowed: then it is NaN.
    step = first
    for trial in range(TRIALS):
        point, now = line.at(step)
        if accepted(point, now, step):
            return LinePoint(point, step)
        if line.allowed(point) and now > 0.0:
            low, low_slope = step, now
        else:
            high, high_slope = step, now if now < 0.0 else math.nan
        step = _next(low, low_slope, high, high_slope, halve=trial % 3 == 2)
        if not low < step < high:
            break
    return line.best


def _next(low: float, low_slope: float, high: float, high_slope: float, *, halve: bool) -> float:
    """The next step: further out without an upper end, else where the secant of the slopes is zero, kept inside.

    halve: take the middle, now and then, as secants may creep towards one end.
    """
    if high == math.inf:
        return GROWTH * low
    middle = low + 0.5 * (high - low)
    if math.isnan(high_slope):
        return low + 0.1 * (high - low) if low == 0.0 else middle
    if halve:
        return middle
    margin = 0.05 * (high - low)
    return min(max(low + (high - low) * low_slope / (low_slope - high_slope), low + margin), high - margin)
