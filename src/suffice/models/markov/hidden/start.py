"""Where EM begins, and states of hidden variables that it cannot tell apart from there.

At weights of 0 all states of a hidden variable are alike, and EM keeps it so: the terms of hidden variables begin at
random weights.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import combinations

import numpy as np

from suffice.array_types import Floats
from suffice.models.markov.feature import Feature
from suffice.models.markov.feature_spread import constant_features, feature_units
from suffice.models.markov.log_linear import LogLinear

#: Log-potentials that differ by less are the same.
ALIKE = 1e-6


def random_weights(
    model: LogLinear, hidden: Sequence[Hashable], rng: np.random.Generator, *, spread: float = 1.0
) -> Floats:
    """Normal weights of this spread, in units of the features, for all terms on hidden variables; 0 for the others."""
    sizes = np.diff(model.starts)
    units = feature_units(model, np.repeat(1.0 / sizes, sizes))
    weights = np.zeros(model.n_weights)
    unseen = set(hidden)
    for term, own in zip(model.terms, model.weight_slices, strict=True):
        if unseen & set(term.variables if isinstance(term, Feature) else term):
            weights[own] = rng.standard_normal(own.stop - own.start)
    return np.where(constant_features(model), 0.0, spread * weights / units)


def crowding(model: LogLinear, hidden: Sequence[Hashable]) -> int:
    """The largest number of scopes that a hidden variable, or one that shares a scope with it, is in."""
    counts = {name: sum(name in scope for scope in model.scopes) for name in model.domain.names}
    near = {name for scope in model.scopes if set(scope) & set(hidden) for name in scope}
    return max([1, *(counts[name] for name in near)])


def symmetric_states(
    model: LogLinear, log_potentials: Floats, hidden: Sequence[Hashable]
) -> dict[Hashable, set[tuple[int, int]]]:
    """Pairs of states that no step of EM tells apart, by hidden variable; without those that have none.

    Two states whose log-potentials differ by a constant in every scope have P(i | row) / P(j | row) the same in all
    rows, so the expected margins are again those of alike states.
    """
    symmetric = {}
    for name in hidden:
        tables = [
            np.moveaxis(model.part(log_potentials, number), scope.index(name), 0)
            for number, scope in enumerate(model.scopes)
            if name in scope and len(scope) > 1
        ]
        card = model.cards[name]
        pairs = {(i, j) for i, j in combinations(range(card), 2) if all(_alike(t[i], t[j]) for t in tables)}
        if pairs and tables:
            symmetric[name] = pairs
    return symmetric


def symmetry_notes(model: LogLinear, begun: Floats, ended: Floats, hidden: Sequence[Hashable]) -> tuple[str, ...]:
    """What a report says about states that were alike where EM began and are still alike where it ended."""
    before = symmetric_states(model, model.log_potentials(begun), hidden)
    after = symmetric_states(model, model.log_potentials(ended), hidden)
    return tuple(
        f"start is symmetric in the states of {name!r}: EM cannot tell them apart and may have stopped at a saddle "
        "point. Begin with weights that differ, or without start=."
        for name in before
        if before[name] & after.get(name, set())
    )


def _alike(left: Floats, right: Floats) -> bool:
    away = left - right
    return bool(np.ptp(away) <= ALIKE * max(1.0, float(np.abs(left).max()), float(np.abs(right).max())))
