"""The maximum of the likelihood of a decomposable model, by one division for each clique.

With the cliques C of a chordal graph and the separators S of its clique tree, each as often as it occurs,
``p(x) = prod_C p(x_C) / prod_S p(x_S)`` (Lauritzen 1996, section 4.4). Hung from a root, the tree gives every other
clique the conditional distribution ``p(x_C | x_S)`` given what it shares with its parent, so the product sums to one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from suffice.array_types import Floats
from suffice.errors import DataError, EstimateError
from suffice.graphs.decomposition import Decomposition
from suffice.graphs.nodes import Node


def closed_form(
    scopes: Sequence[Sequence[Node]], margins: Sequence[Floats], decomposition: Decomposition
) -> list[Floats]:
    """Log-potentials of the maximum, one table for each scope, axes in its order.

    margins: observed counts or shares of each scope, axes in its order. The product of the potentials sums to one over
    the variables of all scopes; a variable in no scope multiplies the sum by its card. A scope that is no clique of the
    tree, or the copy of one, gets zeros. A cell of count zero gets minus infinity: 0 / 0 is 0, the limit of the
    likelihood's maximum. Where the margins disagree on a separator, that of the clique below counts.
    """
    if decomposition.tree is None:
        raise EstimateError(
            f"The closed form needs a decomposable model, and {decomposition.reason}. Use solver='ipf' or 'lbfgs'."
        )
    tables = [np.zeros(np.shape(margin)) for margin in margins]
    for home, separator in zip(decomposition.homes, decomposition.tree.separators, strict=True):
        tables[home] = _log_conditional(scopes[home], np.asarray(margins[home], dtype=np.float64), separator)
    return tables


def _log_conditional(scope: Sequence[Node], margin: Floats, separator: Sequence[Node]) -> Floats:
    """Log of a margin over its own sum for each state of the separator; shape of the margin."""
    low, total = float(margin.min()), float(margin.sum())
    if not (low >= 0.0 and np.isfinite(total)):
        raise DataError(f"The margin of {tuple(scope)!r} holds {low}; counts are finite and not negative.")
    if total == 0.0:
        raise EstimateError(f"The margin of {tuple(scope)!r} adds up to 0: there are no rows to learn from.")
    drop = tuple(axis for axis, node in enumerate(scope) if node not in separator)
    below = margin.sum(axis=drop, keepdims=True)
    seen = margin > 0.0
    share = np.divide(margin, below, out=np.ones_like(margin), where=seen)
    return np.where(seen, np.log(share), -np.inf)
