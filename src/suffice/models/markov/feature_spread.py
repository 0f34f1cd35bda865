"""How much the features of a log-linear model vary: the units in which a fit measures their gaps.

A feature may be a probability or an income in cents. Divided by its standard deviation it is of the size of one, and
the same tolerance, step or threshold means the same for all of them. Units are powers of two, so that dividing by them
rounds nothing. Cells of tables have the unit one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from suffice.models.markov.feature import Feature
from suffice.models.markov.log_linear import LogLinear

Floats = NDArray[np.float64]

#: A standard deviation below this share of the largest value of a feature is rounding.
ROUNDING = 1e-12


def variances(model: LogLinear, margins: Floats) -> Floats:
    """Variance of each feature (n_weights,) under the marginals of all scopes (n_cells,).

    Of a feature that is placed on several scopes the variances add up: its parts count as independent.
    """
    if model.is_identity:
        return np.asarray(margins * (1.0 - margins))
    entries = model.matrix.tocoo()
    scope_of = np.repeat(np.arange(len(model.scopes)), np.diff(model.starts))
    _, part = np.unique(scope_of[entries.row] * model.n_weights + entries.col, return_inverse=True)
    count = int(part.max(initial=-1)) + 1
    shares = margins[entries.row]
    means = np.bincount(part, shares * entries.data, count)
    elsewhere = np.maximum(1.0 - np.bincount(part, shares, count), 0.0)  # Where the feature is 0.
    cells = np.zeros(count, np.intp)
    cells[part] = np.diff(model.starts)[scope_of[entries.row]]
    elsewhere[np.bincount(part, minlength=count) == cells] = 0.0  # Nowhere, and not the rounding of a sum.
    squares = np.bincount(part, shares * (entries.data - means[part]) ** 2, count) + elsewhere * means**2
    column = np.zeros(count, np.intp)
    column[part] = entries.col
    return np.bincount(column, squares, model.n_weights).astype(np.float64, copy=False)


def feature_units(model: LogLinear, margins: Floats) -> Floats:
    """A power of two near the standard deviation of each feature (n_weights,), and 1 for cells of tables.

    Where a feature does not vary under the margins, its standard deviation under the uniform law counts.
    """
    units = np.ones(model.n_weights)
    features = [
        (place.start, max(float(np.abs(table).max()) for table in term.tables(model.domain)))
        for term, place in zip(model.terms, model.weight_slices, strict=True)
        if isinstance(term, Feature)
    ]
    if not features:
        return units
    sizes = np.diff(model.starts)
    observed = np.sqrt(variances(model, margins))
    uniform = np.sqrt(variances(model, np.repeat(1.0 / sizes, sizes)))
    for place, largest in features:
        known = [float(spread[place]) for spread in (observed, uniform) if spread[place] > ROUNDING * largest]
        if known:
            units[place] = 2.0 ** np.round(np.log2(known[0]))
    return units


def is_constant(model: LogLinear, margins: Floats) -> NDArray[np.bool_]:
    """Whether a feature does not vary under these marginals, rounding aside (n_weights,)."""
    largest = np.abs(model.matrix).max(axis=0).toarray().ravel() if model.n_cells else np.zeros(model.n_weights)
    return np.asarray(np.sqrt(variances(model, margins)) <= ROUNDING * largest)


def standardised(model: LogLinear, units: Floats) -> LogLinear:
    """The model with its features divided by their units; its weights are the weights times the units."""
    return model if (units == 1.0).all() else LogLinear(model.domain, model.terms, units=units)
