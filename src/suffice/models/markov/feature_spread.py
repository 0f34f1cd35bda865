"""Where the features of a log-linear model lie and how much they vary: the units in which a fit measures their gaps.

A feature may be a probability, an income in cents or a date in seconds. Less a constant and divided by its standard
deviation it is of the size of one, and the same tolerance, step or threshold means the same for all of them. Neither
changes the distribution: the constant is taken by log Z, the unit by the weight. Units are powers of two and centres
are values of the feature itself, so that neither rounds anything but the difference. Cells of tables stay as they are.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Flags, Floats
from suffice.models.markov.feature import Feature
from suffice.models.markov.log_linear import ROUNDING, Centres, LogLinear

Names = tuple[Hashable, ...]

#: A standard deviation below this share of the largest value of a feature, its centre taken off, is rounding.
STILL = 1e-12
#: A feature with values of more than so many standard deviations is centred; others are as good as they are.
FAR = 8.0


@dataclass(frozen=True, eq=False)
class _Parts:
    """What a feature is on one scope: for each entry of the matrix the number of its part, and of each part all else.

    weight, scope (parts,): where it belongs. whole (parts,): whether it is 0 in no cell of the scope.
    """

    part: NDArray[np.intp]
    row: NDArray[np.intp]
    value: Floats
    weight: NDArray[np.intp]
    scope: NDArray[np.intp]
    whole: Flags

    @classmethod
    def of(cls, model: LogLinear) -> _Parts:
        entries = model.matrix.tocoo()
        sizes = np.diff(model.starts)
        scope_of = np.repeat(np.arange(len(model.scopes)), sizes)[entries.row]
        keys, part = np.unique(scope_of * model.n_weights + entries.col, return_inverse=True)
        scope, weight = keys // max(model.n_weights, 1), keys % max(model.n_weights, 1)
        whole = np.bincount(part, minlength=len(keys)) == sizes[scope]
        return cls(part, entries.row, np.asarray(entries.data, np.float64), weight, scope, whole)


def variances(model: LogLinear, margins: Floats) -> Floats:
    """Variance of each feature (n_weights,) under the marginals of all scopes (n_cells,).

    Of a feature that is placed on several scopes the variances add up: its parts count as independent.
    """
    if model.is_identity:
        return np.asarray(margins * (1.0 - margins))
    parts = _Parts.of(model)
    variance = np.bincount(parts.weight, _part_variances(parts, margins), model.n_weights)
    return variance.astype(np.float64, copy=False)


def _part_variances(parts: _Parts, margins: Floats) -> Floats:
    """The same for each part by itself (parts,)."""
    count, shares = len(parts.weight), margins[parts.row]
    means = np.bincount(parts.part, shares * parts.value, count)
    elsewhere = np.maximum(1.0 - np.bincount(parts.part, shares, count), 0.0)  # Where the feature is 0.
    elsewhere[parts.whole] = 0.0  # Nowhere, and not the rounding of a sum.
    squares = np.bincount(parts.part, shares * (parts.value - means[parts.part]) ** 2, count)
    return np.asarray(squares + elsewhere * means**2)


def feature_ends(model: LogLinear) -> tuple[Floats, Floats]:
    """The least and the largest value of each feature (n_weights,), on each of its scopes by itself."""
    parts = _Parts.of(model)
    lowest, highest = (np.bincount(parts.weight, end, model.n_weights) for end in _part_ends(parts))
    return lowest.astype(np.float64, copy=False), highest.astype(np.float64, copy=False)


def _part_ends(parts: _Parts) -> tuple[Floats, Floats]:
    """The least and the largest value of each part (parts,)."""
    lowest = np.where(parts.whole, np.inf, 0.0)
    highest = -lowest
    np.minimum.at(lowest, parts.part, parts.value)
    np.maximum.at(highest, parts.part, parts.value)
    return lowest, highest


def at_ends(model: LogLinear, margins: Floats) -> tuple[Flags, Flags]:
    """Whether a feature always had its least value, or its largest one, on every place: two of (n_weights,).

    margins: observed shares of all cells (n_cells,). What was not observed has the share 0, so nothing is rounded.
    """
    if model.is_identity:
        return margins == 0.0, np.zeros(model.n_weights, np.bool_)
    parts = _Parts.of(model)
    lowest, highest = _part_ends(parts)
    seen = margins[parts.row] > 0.0
    # Cells of a scope that were observed where the part is 0.
    sizes = np.add.reduceat(margins > 0.0, model.starts[:-1]) if model.n_cells else np.zeros(0, np.intp)
    zero_seen = sizes[parts.scope] > np.bincount(parts.part, seen, len(parts.weight))
    always = []
    for end in (lowest, highest):
        away = np.abs(parts.value - end[parts.part]) > ROUNDING * np.abs(end[parts.part])
        elsewhere = np.bincount(parts.part, seen & away, len(parts.weight)) > 0
        elsewhere |= zero_seen & (end != 0.0)
        always.append(np.bincount(parts.weight, elsewhere, model.n_weights) == 0)
    return always[0], always[1]


# -- units and centres -----------------------------------------------------------------------------------------------


def feature_units(model: LogLinear, margins: Floats) -> Floats:
    """A power of two near the standard deviation of each feature (n_weights,), and 1 for cells of tables.

    Where a feature does not vary under the margins, its standard deviation under the uniform distribution counts.
    """
    units = np.ones(model.n_weights)
    if model.is_tables:
        return units
    near = _less(model, _centres(model, margins))
    largest = np.zeros(model.n_weights)
    np.maximum.at(largest, near.matrix.tocoo().col, np.abs(near.matrix.tocoo().data))
    observed, uniform = (np.sqrt(variances(near, shares)) for shares in (margins, _uniform(model)))
    spread = np.where(observed > STILL * largest, observed, uniform)
    known = features_of(model) & (spread > STILL * largest)
    units[known] = 2.0 ** np.round(np.log2(spread[known]))
    return units


def standardised(model: LogLinear, units: Floats, margins: Floats | None = None, *, far: float = FAR) -> LogLinear:
    """The model with its features less their centres, divided by their units; its weights are those times the units.

    margins (n_cells,): centres are values near the means under these; under the uniform distribution by default. far:
    how many standard deviations its values may reach of a feature that is not centred.
    """
    if model.is_tables:
        return model
    centres = _centres(model, _uniform(model) if margins is None else margins, far)
    plain = (units == 1.0).all() and not centres
    return model if plain else LogLinear(model.domain, model.terms, units=units, centres=centres)


def centred(model: LogLinear) -> LogLinear:
    """The model with features that lie far from 0 less their centres: the same distributions at the same weights."""
    return standardised(model, np.ones(model.n_weights))


def offsets(model: LogLinear) -> Floats:
    """What the centres of a model take off its features (n_weights,), in the unit of each feature itself."""
    totals = np.zeros(model.n_weights)
    for own, centre in zip(model.weight_slices, model.centres, strict=False):
        totals[own] = math.fsum(centre)
    return totals


def features_of(model: LogLinear) -> Flags:
    """Which weights are those of features, and not of cells (n_weights,)."""
    is_feature = np.zeros(model.n_weights, np.bool_)
    for term, own in zip(model.terms, model.weight_slices, strict=True):
        is_feature[own] = isinstance(term, Feature)
    return is_feature


def constant_features(model: LogLinear) -> Flags:
    """Which weights belong to features with the same value in every joint state (n_weights,), rounding aside."""
    if model.is_tables:
        return np.zeros(model.n_weights, np.bool_)
    used = np.zeros(model.n_weights, np.bool_)
    used[centred(model).matrix.tocoo().col] = True
    return features_of(model) & ~used


def _centres(model: LogLinear, margins: Floats, limit: float = FAR) -> Centres:
    """For each place of a feature that lies far from 0, or does not vary there, the value next to its mean.

    Empty where no feature is centred, so that most models stay as they are.
    """
    parts = _Parts.of(model)
    largest = np.zeros(len(parts.weight))
    np.maximum.at(largest, parts.part, np.abs(parts.value))
    spreads = [np.sqrt(_part_variances(parts, shares)) for shares in (margins, _uniform(model))]
    spread = np.where(spreads[0] > STILL * largest, *spreads)
    far = np.zeros(model.n_weights, np.bool_)
    far[parts.weight[largest > limit * spread]] = True
    if not far.any():
        return ()
    centres: list[tuple[float, ...]] = [()] * len(model.terms)
    for number, (term, own) in enumerate(zip(model.terms, model.weight_slices, strict=True)):
        if isinstance(term, Feature) and far[own.start]:
            centres[number] = tuple(
                _centre(model, margins, *placement)
                for placement in zip(term.placements, term.tables(model.domain), strict=True)
            )
    return tuple(centres) if any(any(centre) for centre in centres) else ()


def _centre(model: LogLinear, margins: Floats, names: Names, table: Floats) -> float:
    """The value of the table that is next to its mean; 0 stays where it is next too."""
    scope = model.scope_number(names)
    assert scope is not None
    shares = np.transpose(model.part(margins, scope), [model.scopes[scope].index(name) for name in names])
    total = float(shares.sum())
    start = float(table.flat[0])
    mean = start + float(np.sum(shares / total * (table - start)))
    values = np.append(table.ravel(), 0.0) if table.min() <= 0.0 <= table.max() else table.ravel()
    return float(values[np.abs(values - mean).argmin()])


def _less(model: LogLinear, centres: Centres) -> LogLinear:
    return LogLinear(model.domain, model.terms, centres=centres) if centres else model


def _uniform(model: LogLinear) -> Floats:
    sizes = np.diff(model.starts)
    return np.repeat(1.0 / sizes, sizes)
