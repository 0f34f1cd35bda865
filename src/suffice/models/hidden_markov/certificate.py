"""What a fit of a hidden Markov model proves: whether its maximum is attained, and how far from it the answer is.

Where every state is known the estimate is a count, and what the parameters lose to their maximum is known. Where states
are hidden EM gives a stationary point, and no bound; whether a maximum exists is decided where a law collapses, where a
symbol was never seen, and where the prior alone keeps the objective away from every edge.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from suffice.fitting.report import Certificate
from suffice.models.hidden_markov.emissions.standing import Standing, of_rows
from suffice.models.hidden_markov.learning import Learner
from suffice.models.hidden_markov.parameters import Parameters, Statistics
from suffice.models.hidden_markov.structure import Structure

Floats = NDArray[np.float64]

SCALE = "largest change by one more EM step; real parameters in units of their columns"
#: Rounding of a sum of logarithms, in units of the size of its terms.
_ROUNDING = 8 * float(np.finfo(np.float64).eps)


def counted_certificate(
    statistics: Statistics,
    parameters: Parameters,
    learner: Learner,
    structure: Structure,
    names: Sequence[Hashable],
    gap: float,
) -> Certificate:
    """Of parameters whose states were all known; `gap` is what one more step would change."""
    found = _chain(statistics, parameters, learner, structure, names)
    if "emissions" not in learner.fixed:
        sums = learner.emission.gathered(statistics.emission, learner.tied)
        found = found + learner.emission.standing(sums, parameters.emission, _called(names))
    weight = float(statistics.visits.sum())
    exists = False if found.directions else True if found.decided else None
    lost = None if found.lost is None or not weight > 0 else (found.lost + _ROUNDING * found.size) / weight
    return Certificate(
        max(gap, _away(statistics, parameters, learner)),
        value_gap=lost,
        bound=found.bound and lost is not None,
        exists=exists,
        directions=found.directions,
        scale=SCALE,
    )


def _chain(
    statistics: Statistics,
    parameters: Parameters,
    learner: Learner,
    structure: Structure,
    names: Sequence[Hashable],
) -> Standing:
    """Of first states and transitions, which are rows of counts and pseudo-counts."""
    first, pairs = statistics.initial + learner.first, statistics.transitions + learner.pairs
    if learner.stationary:
        # The first state pulls at all rows at once; with every transition seen the edge has the likelihood 0.
        inside = "transitions" in learner.fixed or bool((pairs[structure.pairs] > 0).all())
        return Standing(decided=inside, lost=None)
    found = Standing()
    if "initial" not in learner.fixed:
        found = found + of_rows(
            first, parameters.initial, structure.first, lambda cell: f"P(first state {names[cell[0]]!r})"
        )
    if "transitions" not in learner.fixed:
        found = found + of_rows(
            pairs, parameters.transitions, structure.pairs, lambda cell: f"P({names[cell[0]]!r} -> {names[cell[1]]!r})"
        )
    return found


def _away(statistics: Statistics, parameters: Parameters, learner: Learner) -> float:
    """Largest distance of a row of the chain from its share of the counts."""
    found = 0.0
    if learner.stationary:
        return found
    rows = {
        "initial": (statistics.initial + learner.first, parameters.initial),
        "transitions": (statistics.transitions + learner.pairs, parameters.transitions),
    }
    for name, (counts, shares) in rows.items():
        total = counts.sum(axis=-1, keepdims=True)
        if name not in learner.fixed:
            away = np.where(total > 0, counts - total * shares, 0.0) / np.where(total > 0, total, 1.0)
            found = max(found, float(np.abs(away).max(initial=0.0)))
    return found


def climbed_certificate(
    statistics: Statistics,
    parameters: Parameters,
    learner: Learner,
    structure: Structure,
    names: Sequence[Hashable],
    gap: float,
) -> Certificate:
    """Of parameters that EM came to; `statistics` are expected there."""
    directions: tuple[str, ...] = ()
    if "emissions" not in learner.fixed:
        sums = learner.emission.gathered(statistics.emission, learner.tied)
        # Where all transitions are possible every state has a share in every step, and moving its mass from a symbol
        # never seen to one that was raises the likelihood.
        unseen = learner.emission.unseen(sums) if structure.first.all() and structure.pairs.all() else ()
        directions = (*learner.emission.collapsed(parameters.emission, _called(names)), *unseen)
    exists = False if directions else True if _is_coercive(learner, structure) else None
    return Certificate(gap, exists=exists, directions=directions, scale=SCALE)


def _is_coercive(learner: Learner, structure: Structure) -> bool:
    """Whether the prior alone sends the objective to -inf at every edge: continuous, it then has its maximum inside."""
    free = [name for name in ("initial", "transitions", "emissions") if name not in learner.fixed]
    if learner.stationary:
        free = [name for name in free if name != "initial"]
    held = {
        "initial": bool((learner.first[structure.first] > 0).all()),
        "transitions": bool((learner.pairs[structure.pairs] > 0).all()),
        "emissions": learner.emission.coercive,
    }
    return all(held[name] for name in free)


def _called(names: Sequence[Hashable]) -> list[str]:
    return [f"state {name!r}" for name in names]
