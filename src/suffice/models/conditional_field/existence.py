"""Does the maximum of the likelihood exist? Labels that some direction of the weights separates from all others.

Along a direction d the likelihood of labels y falls nowhere if no other labels score more, that is
``d . phi(y) >= d . phi(y')`` for every y', and it rises for ever if some score less. Then the supremum is only reached
at infinity. Best and worst labels under d decide it, exactly.

Where the likelihood bends enough at the weights of a fit, there is no such d (`ends_nearby`). Where there are few
weights it is looked for among all: maximise ``g . d`` for the slope g at weights of 0, which is the mean of
``phi(y) - phi(y')`` over all y', subject to ``d . (phi(y) - phi(y')) >= 0`` and ``|d_j| <= 1``. Of these conditions,
too many to write down, those are added one after another that the last d breaks most.

How often an example counts says nothing about it, so that every one counts once here: a light example beside heavy
ones would be lost in rounding.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from suffice.array_types import Floats
from suffice.errors import Remark, SeparationWarning
from suffice.fitting.report import Certificate
from suffice.models.conditional_field.curvature import ends_nearby
from suffice.models.conditional_field.objective import FieldObjective
from suffice.models.conditional_field.rank import FeatureRank
from suffice.models.conditional_field.shards import LabelSeparation

#: Scores of the labels given, and the highest scores of any labels, of each example (n,), under weights (k,).
Extremes = Callable[[Floats], tuple[Floats, Floats]]

#: Scores that differ by less than this share of their range are equal but for rounding.
ROUNDING = 1e-10
#: Weights that a report names.
MOST_NAMED = 20
#: Conditions that are added before the question is left open, and most weights for which it is asked.
ROUNDS, MOST_WEIGHTS = 500, 100
#: What a linear programme may leave of its conditions, and a rise below which it has found none.
FEASIBLE, NO_RISE = 1e-10, 1e-9
#: Most weights for which the curvature is asked: two evaluations for each.
MOST_CURVED = 200
NO_MAXIMUM = Remark(
    "no maximum: the labels are separated, and weights run to infinity; give a prior", SeparationWarning
)


def separation(extremes: Extremes, direction: Floats) -> LabelSeparation:
    """What a direction (k,) does to the labels of some examples: along it the likelihood falls nowhere, and rises."""
    own, top = extremes(direction)
    minus_own, minus_bottom = extremes(-direction)
    slack = ROUNDING * (np.abs(own) + np.abs(top) + np.abs(minus_bottom))
    return LabelSeparation(bool((top - own <= slack).all()), bool((minus_bottom - minus_own > 1e4 * slack).any()))


def decide(
    best_features: Callable[[Floats], Floats], observed: Floats, slope: Floats
) -> tuple[bool | None, Floats | None]:
    """Whether the maximum exists (None: not decided), and a direction (k,) along which the likelihood rises if not.

    best_features(d): the features (k,) of the best labels under d, summed over examples as in `observed` (k,); slope
    (k,): that of the log-likelihood at weights of 0, where every example counts once.
    """
    from scipy import optimize

    sizes = np.maximum(np.abs(observed), np.abs(observed - slope))
    units = np.where(sizes > 0.0, sizes, 1.0)
    aim, cuts = slope / units, np.zeros((0, len(slope)))
    least = NO_RISE * float(np.abs(aim).sum())
    options: Any = {"primal_feasibility_tolerance": FEASIBLE, "dual_feasibility_tolerance": FEASIBLE}
    for _ in range(ROUNDS):
        bounds = np.zeros(len(cuts))
        program: Any = optimize.linprog(-aim, -cuts, bounds, bounds=(-1.0, 1.0), method="highs", options=options)
        if program.x is None or -program.fun <= least:
            return (None, None) if program.x is None else (True, None)
        direction = program.x / units
        cut = (observed - best_features(direction)) / units
        size = float(np.abs(cut).max(initial=0.0))
        if float(cut @ program.x) >= -1e-9 * max(size, 1.0):
            return False, direction
        cuts = np.vstack([cuts, cut / size])
    return None, None


def at_their_ends(observed: Floats, low: Floats, high: Floats) -> Floats:
    """Weights whose feature has the lowest (-1) or the highest (+1) sum that any labels could give it, else 0."""
    slack = 1e-12 * (np.abs(low) + np.abs(high))
    moves = high > low
    return np.where(moves & (observed >= high - slack), 1.0, np.where(moves & (observed <= low + slack), -1.0, 0.0))


@dataclass(frozen=True, eq=False)
class FieldExistence:
    """Whether the maximum exists (None: not decided) and, if not, a direction (k,) along which the likelihood rises.

    rise: half the squared Newton decrement, where the curvature that proved a maximum told it.
    """

    exists: bool | None = None
    direction: Floats | None = None
    rise: float | None = None

    def judged(self, certificate: Certificate, names: Callable[[], Sequence[tuple[Any, ...]]]) -> Certificate:
        """The certificate with what is known about the maximum."""
        if self.exists is None:
            return certificate
        directions = () if self.direction is None else _in_words(self.direction, names())
        return replace(certificate, exists=self.exists, directions=directions)


#: Nothing is known.
UNDECIDED = FieldExistence()


class SeparableLabels(ABC):
    """Labels given, of examples that count once each, and what any other labels could have in their place.

    `observed` (k,) are the features of the labels given, summed over examples.
    """

    observed: Floats

    @abstractmethod
    def ends(self) -> tuple[Floats, Floats]:
        """Bounds (k,) of the sum of every feature over all labels."""

    @abstractmethod
    def ranges(self) -> Floats:
        """Bounds (k,) of the range of every feature over the labels of any one example."""

    @abstractmethod
    def separation(self, direction: Floats) -> LabelSeparation:
        """What a direction (k,) does to the labels given."""

    @abstractmethod
    def best_features(self, x: Floats) -> Floats:
        """The features (k,) of the best labels under x, summed over examples."""

    @abstractmethod
    def first_slope(self) -> Floats:
        """The slope (k,) of the log-likelihood at weights of 0."""


def along_known_directions(labels: SeparableLabels, objective: FieldObjective[Any], weights: Floats) -> FieldExistence:
    """Whether the likelihood rises for ever along the ends of features, or along weights (k,); else undecided."""
    alone = at_their_ends(labels.observed, *labels.ends())
    if not objective.exact:
        return FieldExistence(False, alone) if alone.any() else UNDECIDED
    directions = (alone, weights)
    rising = next((one for one in directions if one.any() and labels.separation(one).complete), None)
    return UNDECIDED if rising is None else FieldExistence(False, rising)


def check_existence(
    labels: SeparableLabels, objective: FieldObjective[Any], weights: Floats, rank: FeatureRank
) -> FieldExistence:
    """Whether the likelihood of labels has a maximum; weights (k,): where a fit ended.

    Where a feature has its lowest or highest sum, its weight alone is a direction along which the likelihood, and the
    pseudo-likelihood, rise for ever. Others are tried where best labels are exact: that of the weights, then whether
    the curvature proves a maximum and, with few weights, all directions.
    """
    separated = along_known_directions(labels, objective, weights)
    if separated.exists is False or not objective.exact:
        return separated
    rise = None
    if rank.exact and len(weights) <= MOST_CURVED:
        rise = ends_nearby(objective, weights, labels.ranges(), rank.value)
    if rise is not None:
        return FieldExistence(True, rise=rise)
    if len(weights) > MOST_WEIGHTS:
        return UNDECIDED
    return FieldExistence(*decide(labels.best_features, labels.observed, labels.first_slope()))


def _in_words(direction: Floats, names: Sequence[tuple[Any, ...]]) -> tuple[str, ...]:
    """What runs to infinity, by name, the largest first."""
    moved = np.flatnonzero(np.abs(direction) > 1e-9 * np.abs(direction).max(initial=0.0))
    order = moved[np.argsort(-np.abs(direction[moved]), kind="stable")][:MOST_NAMED]
    return tuple(f"{' '.join(map(str, names[j]))} to {'+' if direction[j] > 0 else '-'}infinity" for j in order)
