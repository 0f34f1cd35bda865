"""Methods that follow the gradient to the maximum of a concave function: L-BFGS, conjugate gradient, ascent, OWL-QN.

Each sees a vector and a function that returns value and gradient, and is a step for `fitting.control.iterate`. All
that a step needs lies in arrays of the state, so that a fit that goes on from a checkpoint takes the same steps to the
bit. The gap is the largest component of the gradient, or what `gap(x, gradient)` says. `scale` is a guess of the
diagonal of the inverse of minus the Hessian: numbers (k,), or a function of x and gradient that gives them; without it
the first step is a small one, and its size is learnt. A good guess saves most of the iterations where curvatures differ
much, as those of rare and common cells do: see `indicator_scale`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from operator import mul

import numpy as np
from numpy.typing import ArrayLike, NDArray

from suffice.array_types import Floats
from suffice.errors import OptionError
from suffice.fitting.control import Control, Outcome, State, iterate
from suffice.solvers.line_search import (
    GROWTH,
    SLACK,
    LinePoint,
    Objective,
    Point,
    Scale,
    begin,
    diagonal_of,
    evaluate,
    search,
)

#: The distance to stationarity, from x and the gradient, where it is not the gradient's largest component.
Gap = Callable[[Floats, Floats], float] | None

#: Vectors (k,); and steps and changes of minus the gradient, the oldest first. They are shared by states, not copied.
Vectors = Sequence[Floats] | Floats
Pairs = tuple[Vectors, Vectors]

#: Components of long vectors that are multiplied at once: those of all pairs fit into the cache.
COMPONENTS = 8192
#: Halvings of a step before plain ascent or OWL-QN counts as stalled.
HALVINGS = 60
#: A change of the gradient whose square is below this tells nothing: further products of it would be 0.
UNDERFLOW = 1e-280
#: A step along which the slope has kept this share of itself is made longer.
STEEP = 0.9
#: Curvature pairs below this cosine are left out: rounding has made them.
CURVATURE = 1e-12


def lbfgs(
    objective: Objective,
    start: ArrayLike,
    control: Control,
    *,
    memory: int = 10,
    scale: Scale = None,
    gap: Gap = None,
    problem: str = "",
) -> Outcome:
    """Maximise by limited-memory BFGS (Nocedal 1980) with the line search of Hager and Zhang.

    `objective(x)` returns value and gradient (k,); where the value is not finite there is nothing to find. memory: how
    many changes of the gradient are remembered.
    """
    first, diagonal_at = begin(objective, start), diagonal_of(scale)

    def step(state: State) -> State:
        point, kept = _point(state), _pairs(state)
        diagonal = diagonal_at(point)
        direction = inverse_product(kept, point.gradient, diagonal)
        size = 1.0 if len(kept[0]) else _first_step(point, direction, scale)
        searched = search(objective, point, direction, size, magnitude=state.memory["magnitude"])
        if searched is None and len(kept[0]):
            # The remembered changes may be noise: once more, straight up the gradient.
            kept = [], []
            direction = diagonal * point.gradient
            size = _first_step(point, direction, scale)
            searched = search(objective, point, direction, size, magnitude=state.memory["magnitude"])
        if searched is None:
            return _stalled(state)
        steps, changes = remember(kept, searched.point.x - point.x, point.gradient - searched.point.gradient, memory)
        return _measured(_state(searched.point, state, steps=steps, changes=changes), gap, searched.point.gradient)

    if memory < 1:
        raise OptionError(f"memory is {memory}; L-BFGS remembers at least 1 change of the gradient.")
    start_state = _measured(_first_state(first, steps=[], changes=[]), gap, first.gradient)
    return iterate(step, start_state, control, problem=problem)


def conjugate_gradient(
    objective: Objective, start: ArrayLike, control: Control, *, scale: Scale = None, problem: str = ""
) -> Outcome:
    """Maximise by the non-linear conjugate gradient of Hager and Zhang (2005), whose directions always ascend.

    With ``y`` the change of minus the gradient, ``d`` the last direction and ``g`` the new gradient the next direction
    is ``g + b d``, ``b = -(y - 2 d y'y / d'y)'g / d'y``, bounded from below.
    """
    first, diagonal_at = begin(objective, start), diagonal_of(scale)

    def step(state: State) -> State:
        point, direction = _point(state), state.memory["direction"]
        slope = float(point.gradient @ direction)
        size = float(state.memory["size"])
        steepest = diagonal_at(point) * point.gradient
        if size == 0.0 or not slope > 0.0:
            direction = steepest
            slope = float(point.gradient @ direction)
            size = _first_step(point, direction, scale)
        else:
            size *= float(state.memory["slope"]) / slope  # As if the last step's rise were this one's.
        searched = search(objective, point, direction, size, flatness=0.1, magnitude=state.memory["magnitude"])
        if searched is None and direction is not steepest:
            return replace(state, memory={**state.memory, "size": 0.0})  # Begin anew, along the gradient.
        if searched is None:
            return _stalled(state)
        following = _conjugate(point.gradient, searched.point.gradient, direction, diagonal_at(searched.point))
        return _state(searched.point, state, direction=following, size=searched.step, slope=slope)

    nothing = np.zeros_like(first.x)
    return iterate(step, _first_state(first, direction=nothing, size=0.0, slope=0.0), control, problem=problem)


def ascent(
    objective: Objective,
    start: ArrayLike,
    control: Control,
    *,
    scale: Scale = None,
    first_step: float | None = None,
    problem: str = "",
) -> Outcome:
    """Maximise by plain gradient ascent: steps are halved until the value rises enough (Armijo), then doubled again.

    A step that leaves the domain, where the value is not finite, is halved: this is the guard that keeps potentials
    positive.
    """
    first, diagonal_at = begin(objective, start), diagonal_of(scale)

    def step(state: State) -> State:
        point = _point(state)
        direction = diagonal_at(point) * point.gradient
        slope = float(point.gradient @ direction)
        size = 2.0 * float(state.memory["size"])
        slack = SLACK * max(abs(point.value), state.memory["magnitude"])
        for _ in range(HALVINGS):
            moved = evaluate(objective, point.x + size * direction)
            # At a rise that rounding hides, a slope that has not turned proves it: the function is concave.
            enough = moved.value - point.value >= 0.1 * size * slope > slack
            if enough or (moved.value >= point.value - slack and moved.gradient @ direction >= -0.8 * slope):
                return _state(moved, state, size=size)
            size *= 0.5
        return _stalled(state)

    size = _first_step(first, diagonal_at(first) * first.gradient, scale) if first_step is None else first_step
    return iterate(step, _first_state(first, size=0.5 * size), control, problem=problem)


def owlqn(
    objective: Objective,
    penalty: ArrayLike,
    start: ArrayLike,
    control: Control,
    *,
    memory: int = 10,
    scale: Scale = None,
    gap: Gap = None,
    problem: str = "",
) -> Outcome:
    """Maximise ``f(x) - sum_i penalty_i |x_i|`` for a smooth concave f (Andrew and Gao 2007).

    `objective` returns value and gradient of f alone; penalty: one number, or one for each x, not negative. The gap is
    the largest component of the pseudo-gradient: of the element of least norm of all slopes of the penalised function.
    """
    first, diagonal_at = begin(objective, start), diagonal_of(scale)
    weights = np.broadcast_to(np.asarray(penalty, dtype=np.float64), first.x.shape)
    if not (np.isfinite(weights).all() and (weights >= 0.0).all()):
        raise OptionError(f"The penalty is {penalty!r}; expected finite numbers of at least 0.")

    def state_of(point: Point, known: State | None, **more: object) -> State:
        value = point.value - float(weights @ np.abs(point.x))
        slopes = pseudo_gradient(point.x, point.gradient, weights)
        fresh = _first_state(point, **more) if known is None else _state(point, known, **more)
        fresh.memory["smooth"] = point.value
        largest = float(np.abs(slopes).max(initial=0.0))
        return _measured(replace(fresh, objective=value, gap=largest), gap, slopes)

    def step(state: State) -> State:
        point, kept = replace(_point(state), value=float(state.memory["smooth"])), _pairs(state)
        searched = _orthant_step(objective, point, kept, (weights, diagonal_at(point)), state, scale)
        if searched is None and len(kept[0]):
            kept = [], []
            searched = _orthant_step(objective, point, kept, (weights, diagonal_at(point)), state, scale)
        if searched is None:
            return _stalled(state)
        steps, changes = remember(kept, searched.point.x - point.x, point.gradient - searched.point.gradient, memory)
        return state_of(searched.point, state, steps=steps, changes=changes)

    return iterate(step, state_of(first, None, steps=[], changes=[]), control, problem=problem)


def indicator_scale(observed: ArrayLike, *, least: float = 1e-8) -> Callable[[Floats, Floats], Floats]:
    """The scale of weights of indicators, for the mean log-likelihood, whose gradient is observed less expected.

    The curvature of the weight of an indicator of probability p is ``p (1 - p)``. Of the observed and the present one
    the larger counts: at a start where a rare cell is common it has not yet the small curvature that it will have.
    least: curvatures below this are not believed.
    """
    seen = np.asarray(observed, dtype=np.float64)
    known = np.maximum(seen * (1.0 - seen), least)

    def scale(x: Floats, gradient: Floats) -> Floats:
        expected = seen - gradient
        return np.asarray(1.0 / np.maximum(expected * (1.0 - expected), known))

    return scale


def pseudo_gradient(x: Floats, gradient: Floats, penalty: Floats) -> Floats:
    """The slope of ``f - penalty |x|`` (k,); at a zero of x the one-sided slope that points upwards, or 0."""
    at_zero = np.sign(gradient) * np.maximum(np.abs(gradient) - penalty, 0.0)
    return np.where(x == 0.0, at_zero, gradient - penalty * np.sign(x))


def inverse_product(pairs: Pairs, gradient: Floats, diagonal: Floats) -> Floats:
    """The inverse of minus the Hessian that the pairs tell of, times the gradient (k,): the two-loop recursion."""
    steps, changes = pairs
    if not len(steps):
        return diagonal * gradient
    if len(gradient) <= COMPONENTS:
        steps, changes = np.array(steps), np.array(changes)
    # With the products of the pairs at hand the loops run over numbers, and each long vector is read a few times.
    products = _products(steps, changes)
    rows, columns = products.tolist(), products.T.tolist()
    count = len(rows)
    ahead = [float(step @ gradient) for step in steps]
    for i in reversed(range(count)):
        ahead[i] = (ahead[i] - sum(map(mul, rows[i][i + 1 :], ahead[i + 1 :]))) / rows[i][i]
    rest = diagonal * (gradient - _combined(ahead, changes))
    rest *= rows[-1][-1] / float(changes[-1] @ (diagonal * changes[-1]))
    back = [float(change @ rest) for change in changes]
    for i in range(count):
        back[i] = ahead[i] - (back[i] + sum(map(mul, columns[i][:i], back[:i]))) / rows[i][i]
    return np.asarray(rest + _combined(back, steps))


def _products(left: Vectors, right: Vectors) -> Floats:
    """All products of vectors (k,), as a matrix; some components at a time, so that no copy of all is made."""
    if isinstance(left, np.ndarray) and isinstance(right, np.ndarray):
        return np.asarray(left @ right.T)
    sums = np.zeros((len(left), len(right)))
    for first in range(0, len(left[0]), COMPONENTS):
        part = slice(first, first + COMPONENTS)
        sums += np.array([vector[part] for vector in left]) @ np.array([vector[part] for vector in right]).T
    return sums


def _combined(shares: list[float], vectors: Vectors) -> Floats:
    """The sum of shares times vectors (k,)."""
    if isinstance(vectors, np.ndarray):
        return np.asarray(np.array(shares) @ vectors)
    total = shares[0] * vectors[0]
    for share, vector in zip(shares[1:], vectors[1:], strict=True):
        total += share * vector
    return total


def remember(pairs: Pairs, step: Floats, change: Floats, most: int) -> Pairs:
    """Add a step and its change of minus the gradient to the pairs, and forget the oldest beyond `most`."""
    product, square = float(step @ change), float(change @ change)
    if not (square > UNDERFLOW and product > CURVATURE * math.sqrt(float(step @ step) * square)):
        return pairs
    kept = slice(max(0, len(pairs[0]) - most + 1), None)
    return [*pairs[0][kept], step], [*pairs[1][kept], change]


def _among(pairs: Pairs, free: NDArray[np.bool_]) -> Pairs:
    """The pairs as far as they concern free components; those that show no curvature there are left out."""
    steps, changes = [], []
    for step, change in zip(*pairs, strict=True):
        own, moved = step[free], change[free]
        if float(own @ moved) > CURVATURE * math.sqrt(float(own @ own) * float(moved @ moved)):
            steps.append(own)
            changes.append(moved)
    return steps, changes


def _conjugate(old: Floats, new: Floats, direction: Floats, diagonal: Floats) -> Floats:
    """The next direction of the conjugate gradient."""
    change = old - new
    along = float(direction @ change)
    if not along > 0.0:
        return diagonal * new
    share = (
        float(change @ (diagonal * new)) - 2.0 * float(change @ (diagonal * change)) * float(direction @ new) / along
    )
    length = math.sqrt(float(direction @ (direction / diagonal)))
    steepness = math.sqrt(float(new @ (diagonal * new)))
    least = -1.0 / (length * min(0.01 * math.sqrt(float(old @ (diagonal * old))), steepness) or 1.0)
    return diagonal * new + max(-share / along, least) * direction


def _orthant_step(
    objective: Objective,
    point: Point,
    pairs: Pairs,
    weighing: tuple[Floats, Floats],
    state: State,
    scale: Scale,
) -> LinePoint | None:
    """One step of OWL-QN: no component of x changes its sign, it stops at zero."""
    penalty, diagonal = weighing
    slopes = pseudo_gradient(point.x, point.gradient, penalty)
    free = (point.x != 0.0) | (slopes != 0.0)
    direction = np.zeros_like(slopes)
    direction[free] = inverse_product(_among(pairs, free), slopes[free], diagonal[free])
    direction[(point.x == 0.0) & (direction * slopes <= 0.0)] = 0.0  # Zeros leave on the side that rises.
    if not float(slopes @ direction) > 0.0:
        direction = diagonal * slopes
    orthant = np.where(point.x != 0.0, np.sign(point.x), np.sign(slopes))
    size = 1.0 if len(pairs[0]) else _first_step(replace(point, gradient=slopes), direction, scale)
    slack = SLACK * max(abs(point.value), state.memory["magnitude"])

    def tried(size: float) -> tuple[LinePoint, bool, bool]:
        """Where a step leads, whether it is accepted, and whether the slope along it is still as steep as before."""
        x = point.x + size * direction
        moved = evaluate(objective, np.where(x * orthant > 0.0, x, 0.0))
        way = moved.x - point.x
        rise = moved.value - point.value - float(penalty @ (np.abs(moved.x) - np.abs(point.x)))
        promise = float(slopes @ way)
        left = float((moved.gradient - penalty * orthant) @ way)
        # Inside an orthant the function is smooth: near the maximum its slope along the way tells more than its value.
        good = promise > 0.0 and (rise >= 0.1 * promise > slack or (rise >= -slack and left >= -0.8 * promise))
        return LinePoint(moved, size), good, left > STEEP * promise

    for _ in range(HALVINGS):
        searched, good, steep = tried(size)
        if good:
            return _further(tried, searched) if steep else searched
        size *= 0.5
    return None


def _further(tried: Callable[[float], tuple[LinePoint, bool, bool]], searched: LinePoint) -> LinePoint:
    """The longest of steps that grow while the slope has not fallen: where the function is flat beside its penalty.

    Such a step changes no gradient, so that the next one would know nothing more and be as short.
    """
    for _ in range(HALVINGS):
        longer, good, steep = tried(GROWTH * searched.step)
        if not good or np.array_equal(longer.point.x, searched.point.x):
            break
        searched = longer
        if not steep:
            break
    return searched


def _first_step(point: Point, direction: Floats, scale: Scale) -> float:
    """The whole direction where its scale is known; else a hundredth of the size of x, or of one."""
    if scale is not None:
        return 1.0
    longest = float(np.abs(direction).max(initial=0.0))
    return max(0.01 * float(np.abs(point.x).max(initial=0.0)), 0.1) / longest if longest > 0.0 else 1.0


def _first_state(point: Point, **memory: object) -> State:
    kept = {"gradient": point.gradient, "magnitude": abs(point.value), **memory}
    return State(point.x, point.value, point.gap, memory=kept)


def _state(point: Point, before: State, **memory: object) -> State:
    """The state at a new point; magnitude: the largest value so far, which tells the rounding of its terms."""
    magnitude = max(float(before.memory["magnitude"]), abs(point.value))
    return State(point.x, point.value, point.gap, memory={"gradient": point.gradient, "magnitude": magnitude, **memory})


def _measured(state: State, gap: Gap, slopes: Floats) -> State:
    """The state with the gap that was asked for."""
    return state if gap is None else replace(state, gap=gap(state.parameters, slopes))


def _stalled(state: State) -> State:
    return replace(state, memory={**state.memory, "stalled": True})


def _point(state: State) -> Point:
    return Point(state.parameters, state.objective, state.memory["gradient"])


def _pairs(state: State) -> Pairs:
    return state.memory["steps"], state.memory["changes"]
