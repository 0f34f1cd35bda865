"""Iterative scaling: proportional fitting of margins (IPF), and generalised iterative scaling of features (GIS)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from suffice.array_types import Floats
from suffice.errors import EstimateError, OptionError
from suffice.fitting.control import Control, Outcome, State, iterate

Moments = Callable[[Floats], tuple[float, Floats]]

#: Sweeps after which the tables are made anew from the log-potentials, so that rounding does not pile up.
REFRESH = 50
#: A watched fit measures its rate over this many sweeps, for the first time after twice as many.
WATCH = 50
#: A watched fit gives up where its rate projects more sweeps than this.
PATIENCE = 1_000
#: Differences of margins that rounding alone explains: they say nothing about the rate.
ROUNDED = 1e-13
#: Mass of a slack feature, relative to the total, that rounding alone explains.
ROUNDING = 1e-12
#: Mean of a feature above its lower bound, relative to the numbers it is a difference of, that rounding alone explains.
NOISE = 1e-13
#: A feature that was never observed is scaled by this much in one iteration: weights stay finite.
LEAST_RATIO = 1e-6


class Scaler(Protocol):
    """What fits margins one after another.

    `log_potentials` (n,) are the logarithms that the updates have come to, minus infinity where a cell has died.
    """

    @property
    def log_potentials(self) -> Floats:
        """Logarithms of the potentials of all scopes, one table after another."""

    @property
    def objective(self) -> float:
        """The mean log-likelihood under the targets."""

    def restart(self, log_potentials: Floats) -> None:
        """Begin at these log-potentials."""

    def sweep(self) -> float:
        """Fit every margin once; returns the largest difference between a target and its margin before the fit."""

    def gap(self) -> float:
        """The largest difference between a target and its margin, all at the present log-potentials."""


def sweeps_left(gap: float, before: float, sweeps: int, tolerance: float) -> float:
    """Sweeps that a gap needs to fall to the tolerance, if it goes on falling as it fell from `before` in `sweeps`.

    The gap of proportional fitting falls by a constant factor in the end: ``gap rate^n = tolerance``.
    """
    target = max(tolerance, ROUNDED)
    if gap <= target:
        return 0.0
    return sweeps * math.log(target / gap) / math.log(gap / before) if gap < before else math.inf


def ipf(scaler: Scaler, control: Control, *, watch: bool = False, problem: str = "") -> Outcome:
    """Fit margins by iterative proportional fitting, from where the scaler stands.

    The log-potentials are in ``state.memory["log_potentials"]``; the parameters of the state are the same numbers with
    0 for minus infinity. A sweep that found all margins within the tolerance is followed by a measurement of its own;
    the gap that is compared with the tolerance is always measured.

    watch: stop, with the reason "slow", as soon as the rate of the last `WATCH` sweeps projects more than `PATIENCE`
    others: ``state.memory["sweeps_left"]``.
    """
    live = [-1]  # The iteration whose tables the scaler holds; at first none, whatever it was used for before.

    def state(differences: float, anchor: Floats, since: int) -> State:
        logs = scaler.log_potentials.copy()
        gap = scaler.gap() if differences <= control.tolerance else differences
        kept = {"log_potentials": logs, "anchor": anchor, "since": since}
        return State(np.where(logs > -np.inf, logs, 0.0), scaler.objective, gap, memory=kept)

    def step(before: State) -> State:
        anchor, since = before.memory["anchor"], int(before.memory["since"])
        if before.iteration != live[0]:  # After a checkpoint: the sweeps since the last refresh again, to the bit.
            scaler.restart(anchor)
            for _ in range(since):
                scaler.sweep()
        if since >= REFRESH:
            anchor, since = before.memory["log_potentials"], 0
            scaler.restart(anchor)
        differences = scaler.sweep()
        live[0] = before.iteration + 1
        after = state(differences, anchor, since + 1)
        return watched(after, before) if watch else after

    def watched(after: State, before: State) -> State:
        memory = {name: kept for name, kept in before.memory.items() if name in ("mark", "sweeps_left")}
        done = before.iteration + 1
        if done % WATCH == 0:
            if "mark" in memory:
                memory["sweeps_left"] = sweeps_left(after.gap, memory["mark"], WATCH, control.tolerance)
            memory["mark"] = after.gap
            # Above 0 the mean log-likelihood is that of no distribution, and there is no maximum that others could
            # find.
            memory["slow"] = memory.get("sweeps_left", 0.0) > PATIENCE and after.objective <= 0.0
        return replace(after, memory={**after.memory, **memory})

    begin = scaler.log_potentials.copy()
    return iterate(step, state(0.0, begin, 0), control, problem=problem)


@dataclass(frozen=True)
class ScalingBlock:
    """Features that are scaled at once: where they are, and the largest sum that they reach in any state."""

    index: NDArray[np.intp]
    total: float


def gis(
    moments: Moments,
    observed: ArrayLike,
    start: ArrayLike,
    control: Control,
    *,
    total: float | Sequence[float],
    lower: ArrayLike | None = None,
    units: ArrayLike | None = None,
    blocks: Sequence[ArrayLike] | None = None,
    slack: bool = True,
    problem: str = "",
) -> Outcome:
    """Fit a log-linear model by iterative scaling: ``weight_i += log(observed_i / expected_i) / total``.

    `moments(weights)` returns log Z and the expected features (k,). lower (k,): a number below which no value of the
    feature lies, taken off first, 0 if None. units (k,): the features are multiplied by these, 1 if None, for the step
    alone: weights and gaps are those of the features as they are given. total: the largest sum of all features less
    `lower`, times `units`, in any state; with blocks, index arrays that are scaled one after another, one for each.
    slack: also scale what the features lack of their total, as a feature of its own; it is folded into the weights, so
    that no model has to know it. The weight of a feature that was only observed at its least value has no maximum: it
    falls until the tolerance is met, and stays as it is where the distribution allows no other value. Every iteration
    asks for log Z anew, so the distribution is always normalised.
    """
    targets = np.asarray(observed, dtype=np.float64)
    shift = np.zeros_like(targets) if lower is None else np.asarray(lower, dtype=np.float64)
    sizes = np.ones_like(targets) if units is None else np.asarray(units, dtype=np.float64)
    parts = _blocks(total, blocks, len(targets))
    if (targets < shift - NOISE * (1.0 + np.abs(shift))).any():
        raise OptionError("An observed feature lies below its lower bound; check `lower`.")

    def state(weights: Floats, known: tuple[float, Floats]) -> State:
        log_z, expected = known
        value = float(weights @ targets) - log_z
        gap = float(np.abs(targets - expected).max(initial=0.0))
        return State(weights, value, gap, memory={"log_z": log_z, "expected": expected})

    def step(before: State) -> State:
        weights, known = before.parameters, (before.memory["log_z"], before.memory["expected"])
        for part in parts:
            weights, moved, size = weights.copy(), shift[part.index], sizes[part.index]
            noise = NOISE * (part.total + np.abs(size * moved))
            wanted, present = (size * (vector[part.index] - moved) for vector in (targets, known[1]))
            wanted = above(wanted, np.where(moved == 0.0, 0.0, noise))  # Above 0 it is no difference.
            present = np.where(wanted > 0.0, np.maximum(present, 0.0), above(present, noise))
            weights[part.index] += size * scaling_step(wanted, present, part.total, slack=slack)
            known = moments(weights)
        return state(weights, known)

    begin = np.array(start, dtype=np.float64)
    return iterate(step, state(begin, moments(begin)), control, problem=problem)


def scaling_step(observed: Floats, expected: Floats, total: float, *, slack: bool = True) -> Floats:
    """The change of the weights (k,) that maximises the lower bound of `likelihood_bound`.

    Features are not negative, and their sum is at most `total`. For a feature observed as 0 the bound rises without
    end: its step is that of a small ratio, or 0 where it is expected as 0 too.
    """
    if (expected[observed > 0.0] <= 0.0).any():
        raise EstimateError(
            "A feature that was observed has probability 0 under the model, and scaling cannot bring it back. "
            "Start from finite weights."
        )
    moving = expected > 0.0
    ratio = np.divide(observed, expected, out=np.ones_like(observed), where=moving)
    change = np.log(np.where(observed > 0.0, ratio, np.where(moving, LEAST_RATIO, 1.0))) / total
    wanted, present = total - observed.sum(), total - expected.sum()
    if min(wanted, present) < -1e-6 * total:
        raise OptionError(f"Features sum to {total - min(wanted, present):.6g}, above their total of {total:.6g}.")
    if slack and min(wanted, present) > ROUNDING * total:
        change[moving] -= np.log(wanted / present) / total  # The slack weight, folded into all others.
    return change


def above(excess: Floats, noise: Floats) -> Floats:
    """How far means lie above their lower bounds (k,), 0 where that is rounding."""
    return np.where(excess > noise, excess, 0.0)


def likelihood_bound(
    weights: ArrayLike,
    anchor: tuple[ArrayLike, float, ArrayLike],
    observed: ArrayLike,
    *,
    total: float,
    lower: ArrayLike | None = None,
) -> float:
    """A lower bound Q of the mean log-likelihood at `weights`, equal to it at the anchor.

    anchor: weights (k,), log Z and expected features (k,) of one point. With changes d of the weights, features f not
    negative after `lower` is taken off, and ``sum f <= total = C``: log t <= t - 1 and Jensen's inequality give
    ``l(weights) >= l(anchor) + sum_i (d_i observed_i - (exp(C d_i) - 1) expected_i / C)``.
    """
    point, log_z, expected = np.asarray(anchor[0], np.float64), float(anchor[1]), np.asarray(anchor[2], np.float64)
    targets = np.asarray(observed, dtype=np.float64)
    shift = 0.0 if lower is None else np.asarray(lower, dtype=np.float64)
    change = np.asarray(weights, dtype=np.float64) - point
    gain = inner(change, targets - shift) - float(np.sum(np.expm1(total * change) * (expected - shift))) / total
    return inner(point, targets) - log_z + gain


def inner(weights: Floats, features: Floats) -> float:
    """The inner product in which minus infinity times 0 is 0."""
    return float(np.where(features != 0.0, weights, 0.0) @ features)


def _blocks(total: float | Sequence[float], blocks: Sequence[ArrayLike] | None, count: int) -> list[ScalingBlock]:
    given = [np.arange(count)] if blocks is None else [np.asarray(block, dtype=np.intp) for block in blocks]
    totals = np.broadcast_to(np.asarray(total, dtype=np.float64), (len(given),))
    if not (np.isfinite(totals).all() and (totals > 0.0).all()):
        raise OptionError(f"The total is {total!r}; expected positive numbers, one for each block of features.")
    held = np.concatenate([np.zeros(0, np.intp), *given])
    if not np.array_equal(np.unique(held), np.arange(count)):
        raise OptionError(f"The blocks hold {len(np.unique(held))} of {count} features; each must be in one of them.")
    return [ScalingBlock(index, float(number)) for index, number in zip(given, totals, strict=True)]
