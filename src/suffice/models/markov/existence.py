"""Whether the maximum of a log-linear fit exists, before it is solved; and what runs to infinity where it does not."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.errors import ExistenceWarning, Remark
from suffice.models.markov.existence_proof import shown_to_exist
from suffice.models.markov.family import LogLinearFamily, Masks, limit_masks
from suffice.models.markov.feature_spread import at_ends, feature_units, features_of, standardised
from suffice.models.markov.log_linear import LogLinear
from suffice.models.markov.observed import observed_margin
from suffice.solvers.faces import MOST_CELLS, Face, smallest_face
from suffice.solvers.local_faces import settled
from suffice.solvers.penalties import Penalty
from suffice.statistics import Summary

#: Parts of a direction below this share of its largest one are rounding of the linear programme.
MOVES = 1e-9

_NOT_ATTAINED = Remark("the maximum is not attained: the distribution returned is its limit", ExistenceWarning)
_NOT_COMPLETE = Remark(
    "the maximum is not attained: the cells of terms that vanish have been left out of the distribution, but whether "
    "further joint states vanish in its limit was not decided",
    ExistenceWarning,
)


@dataclass(frozen=True)
class WeightExistence:
    """Whether the maximum exists, and where the distribution is put if not.

    limits (n_weights,): minus or plus infinity for weights that run there each by itself, NaN for those that run to
    infinity only together with others, 0 for all that stay. direction (n_weights,): along it the likelihood rises to
    its limit; joint states that vanish fall by 1 or more, all others stay.
    """

    exists: bool | None
    directions: tuple[str, ...]
    masks: Masks
    limits: Floats
    direction: Floats
    notes: tuple[str, ...] = ()

    @classmethod
    def undecided(cls, n_weights: int) -> WeightExistence:
        """Nothing is known, and no weight is held to run anywhere."""
        nothing = np.zeros(n_weights)
        return cls(None, (), (), nothing, nothing)

    def of_no_distribution(self, sentences: tuple[str, ...]) -> WeightExistence:
        """The existence of margins that no distribution has, as the sentences say."""
        return replace(self, exists=False, directions=sentences, notes=())


def check_existence(
    model: LogLinear,
    margins: Floats,
    summary: Summary,
    penalty: Penalty | None,
    most_cells: int,
    family: LogLinearFamily | None = None,
) -> WeightExistence:
    """Look at the observed margins before solving. A prior always has a maximum at finite weights.

    family: all distributions of the model, whose tree is tried first.
    """
    nothing = np.zeros(model.n_weights)
    if penalty is not None:
        return WeightExistence(True, (), (), nothing, nothing)
    if most_cells == 0 and not own_limits(model, margins).any():
        return WeightExistence.undecided(model.n_weights)
    # A decomposable model is settled by its zero margins alone, without any sweep or programme.
    if most_cells and family is not None and model.is_tables and model.decomposition.tree is None:
        if shown_to_exist(family, margins):
            return WeightExistence(True, (), (), nothing, nothing)
    face = find_face(model, margins, summary, most_cells)
    if not face.complete and not model.is_tables:
        face = _by_weights(model, margins, face)
    if face.exists is True:
        return WeightExistence(True, (), (), nothing, nothing)
    notes = () if face.exists is None else (_NOT_ATTAINED if face.complete else _NOT_COMPLETE,)
    direction = face.direction / feature_units(model, margins)
    limits = weight_limits(model, margins, face)
    states = {variable.name: variable.states for variable in model.domain.variables}
    directions = (*_weight_directions(model, direction, limits), *face.lost_states(states))
    return WeightExistence(face.exists, directions, tuple(face.masks()), limits, direction, notes)


def _weight_directions(model: LogLinear, direction: Floats, limits: Floats) -> list[str]:
    """A sentence for each weight that runs by itself, and one for those that run together."""
    sentences = [f"weight of {model.weight_names[k]} -> {limits[k]:.0f}" for k in np.flatnonzero(np.isinf(limits))]
    joint = np.flatnonzero(np.isnan(limits))
    if len(joint):
        sizes = direction[joint] / np.abs(direction[joint]).max()
        terms = [f"{size:+.4g} [{model.weight_names[k]}]" for k, size in zip(joint[:12], sizes[:12], strict=True)]
        rest = f" ... ({len(joint) - 12} more)" if len(joint) > 12 else ""
        sentences.append(f"weights together, none by itself -> inf along {' '.join(terms)}{rest}")
    return sentences


class _Names(Sequence[str]):
    """Names of the weights, made only if an error asks for them."""

    def __init__(self, model: LogLinear) -> None:
        self._model = model

    def __len__(self) -> int:
        return self._model.n_weights

    def __getitem__(self, index: Any) -> Any:
        return self._model.weight_names[index]


def find_face(model: LogLinear, margins: Floats, summary: Summary, most_cells: int = MOST_CELLS) -> Face:
    """The smallest face of the marginal polytope with the observed margins, shares of all cells (n_cells,).

    Its direction is that of the weights times their units, in which the linear programmes are solved.
    """
    model = standardised(model, feature_units(model, margins), margins)

    def margin(scope: tuple[Hashable, ...]) -> Floats:
        counts = observed_margin(summary, scope)
        return np.zeros(model.domain.shape(scope)) if counts is None else counts

    return smallest_face(
        {variable.name: variable.card for variable in model.domain.variables},
        model.scopes,
        model.expected(margins),
        1.0,
        design=None if model.is_identity else model.matrix,
        margin=margin,
        shares=margins,
        names=_Names(model),
        most_cells=most_cells,
    )


def _by_weights(model: LogLinear, margins: Floats, face: Face) -> Face:
    """The face with the cells left out that weights lose which run by themselves, of whatever size the model is."""
    limits = own_limits(model, margins)
    left = _left_by(model, limits)
    if left.all():
        return face
    parts = enumerate(face.scope_support)
    direction = np.where(face.direction == 0.0, np.sign(limits), face.direction)
    tables = tuple(table & model.part(left, number) for number, table in parts)
    return replace(face, exists=False, scope_support=tables, direction=direction)


def _left_by(model: LogLinear, limits: Floats) -> NDArray[np.bool_]:
    """The cells of all scopes (n_cells,) that weights leave which run by themselves."""
    masks = dict(limit_masks(model, limits))
    tables = [masks[s] == 0.0 if s in masks else np.ones(model.domain.shape(s), bool) for s in model.scopes]
    return np.concatenate([np.zeros(0, bool), *(table.ravel() for table in tables)])


def weight_limits(model: LogLinear, margins: Floats, face: Face) -> Floats:
    """Where each weight runs (n_weights,): to infinity by itself, to infinity together with others (NaN), nowhere (0).

    A weight runs by itself where its feature always had its largest value (or its least one) on every place, and a cell
    of a table where it was never seen: whatever all others do, the states where it has not are lost. If that leaves
    more than the face, the weights that the direction moves beside them run together.
    """
    limits = own_limits(model, margins)
    alive = _left_by(model, limits)
    moving = np.abs(face.direction) > MOVES * np.abs(face.direction).max(initial=0.0)
    if face.support is None:
        known = np.concatenate([np.zeros(0, bool), *(table.ravel() for table in face.scope_support)])
        own, whole = (settled(model.cards, model.scopes, cells) for cells in (alive, known))
        same = np.array_equal(own, whole)
    else:
        parts = [model.part(alive, number) for number in range(len(model.scopes))]
        same = np.array_equal(face.polytope.spread(parts), face.support)
    if same:
        return limits
    return np.where(moving & (limits == 0.0), np.nan, limits)


def own_limits(model: LogLinear, margins: Floats) -> Floats:
    """Where each weight runs by itself (n_weights,): -inf, inf, or 0 for nowhere, by what was seen on its places."""
    least, most = at_ends(model, margins)
    limits = np.where(least, -np.inf, np.where(most & features_of(model), np.inf, 0.0))
    return np.where(least & most, 0.0, limits)
