"""What rows say about the parameters of each kind of node."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.array_types import Floats
from suffice.fitting.inference import Drop, Inference, binomial_drop, variance_drop

if TYPE_CHECKING:
    from suffice.models.bayesian.nodes.linear_gaussian import LinearGaussianNode
    from suffice.models.bayesian.nodes.table import TableNode
    from suffice.table import Table


def of_tables(name: Hashable, values: Table, errors: Table) -> Inference:
    """Parameters and errors by label, laid out alike."""
    names = tuple(f"{name}: {', '.join(map(str, where))}" for where, _ in values.items())
    return Inference(names, values.values.ravel(), lambda: errors.values.ravel())


# -- tables ------------------------------------------------------------------------------------------------------------


def of_table(node: TableNode) -> Inference:
    """The probabilities of the rows that a table keeps."""
    rows, alpha = node.rows, node.alpha
    names = tuple(f"P({cell})" for cell in node.cell_names(np.arange(len(rows))))
    conjugate = alpha is not None and node.observed is None
    closed = node.observed is None and node.estimate != "conditional"
    return Inference(
        names,
        rows.ravel(),
        partial(_table_errors, node),
        partial(_table_covariance, node) if closed else None,
        lowest=0.0,
        highest=1.0,
        tested=np.zeros(rows.size, dtype=bool),
        drop=partial(_table_drop, node) if closed and alpha is None else None,
        posterior=partial(_table_ends, node) if conjugate else None,
    )


def _table_errors(node: TableNode) -> Floats:
    if node.observed is None and node.estimate != "conditional":
        return np.asarray(np.sqrt(np.einsum("nii->ni", _row_covariances(node)).ravel()))
    dense = node.standard_errors_.values.reshape(-1, node.card)
    if node.configurations is None:
        return np.asarray(dense.ravel())
    places = np.ravel_multi_index(tuple(node.configurations.T), node.domain.shape(node.parents))
    return np.asarray(dense[places].ravel())


def _row_covariances(node: TableNode) -> Floats:
    """Covariance (rows, card, card) of the cells of each row, of maximum likelihood or of a Dirichlet posterior."""
    if node.alpha is None:
        shares, size = node.rows, node.counts.sum(axis=1)
    else:
        pseudo = node.counts + node.alpha
        size = pseudo.sum(axis=1) + 1.0
        shares = pseudo / pseudo.sum(axis=1, keepdims=True)
    inner = np.einsum("ni,ij->nij", shares, np.eye(node.card)) - np.einsum("ni,nj->nij", shares, shares)
    with np.errstate(divide="ignore", invalid="ignore"):
        covariance = inner / size[:, None, None]
    empty = size == 0.0
    covariance[empty] = np.nan
    covariance[empty] = np.where(np.eye(node.card, dtype=bool), np.inf, np.nan)
    return np.asarray(covariance)


def _table_covariance(node: TableNode) -> Floats:
    blocks, card = _row_covariances(node), node.card
    whole = np.zeros((node.rows.size, node.rows.size))
    for number, block in enumerate(blocks):
        whole[number * card : (number + 1) * card, number * card : (number + 1) * card] = block
    return whole


def _table_drop(node: TableNode, number: int) -> Drop | None:
    row, cell = divmod(number, node.card)
    size = float(node.counts[row].sum())
    return binomial_drop(size, float(node.rows[row, cell])) if size > 0.0 else None


def _table_ends(node: TableNode, level: float) -> Floats:
    """Quantiles of the Beta distributions of the cells."""
    from scipy.special import betaincinv

    assert node.alpha is not None
    alpha = node.counts + node.alpha
    rest = alpha.sum(axis=1, keepdims=True) - alpha
    ends = [betaincinv(alpha, rest, share).ravel() for share in (0.5 - 0.5 * level, 0.5 + 0.5 * level)]
    return np.stack(ends, axis=1)


# -- regressions -------------------------------------------------------------------------------------------------------


def of_regressions(node: LinearGaussianNode) -> Inference:
    """Weights and variance at each joint state of the discrete parents that has a regression of its own."""
    titles = [str(title) for title in node.coefficients]
    given = [_given(node, codes) for codes in node.configurations.tolist()]
    names = tuple(f"{node.name}: {title}{where}" for where in given for title in titles)
    plain = node.observed is None and node.prior is None and node.size is not None
    weights = np.tile(np.arange(len(titles)) < len(titles) - 1, len(given))
    return Inference(
        names,
        np.column_stack([node.weights, node.variance]).ravel(),
        partial(_kept, node, lambda: node.error_table()),
        partial(_regression_covariance, node) if plain else None,
        lowest=np.where(weights, -math.inf, 0.0),
        tested=weights,
        drop=partial(_regression_drop, node) if plain else None,
        posterior=partial(_regression_ends, node) if node.prior is not None and node.observed is None else None,
    )


def _given(node: LinearGaussianNode, codes: list[int]) -> str:
    parents = [node.domain[name] for name in node.discrete_parents]
    states = ", ".join(f"{v.name}={v.states[code]}" for v, code in zip(parents, codes, strict=True))
    return f" | {states}" if states else ""


def _kept(node: LinearGaussianNode, table: Any) -> Floats:
    """Of a table of all joint states those of the regressions that the node keeps."""
    values = table().values
    return np.asarray(values[tuple(node.configurations.T)] if node.discrete_parents else values).ravel()


def _regression_covariance(node: LinearGaussianNode) -> Floats:
    assert node.spread is not None
    assert node.size is not None
    size = len(node.coefficients)
    whole = np.zeros((len(node.weights) * size, len(node.weights) * size))
    for number, (spread, variance, rows) in enumerate(zip(node.spread, node.variance, node.size, strict=True)):
        start, last = number * size, (number + 1) * size - 1
        whole[start:last, start:last] = np.where(np.isinf(spread), spread, variance * spread)
        whole[last, last] = 2.0 * variance**2 / rows if rows > 0 else np.inf
    return whole


def _regression_drop(node: LinearGaussianNode, number: int) -> Drop | None:
    """Of a weight by the residual sum of squares, of the variance by its own formula."""
    assert node.spread is not None
    assert node.size is not None
    row, cell = divmod(number, len(node.coefficients))
    size, variance = float(node.size[row]), float(node.variance[row])
    if not (size > 0.0 and variance > 0.0):
        return None
    if cell == len(node.coefficients) - 1:
        return variance_drop(size, variance)
    best, spread = float(node.weights[row, cell]), float(node.spread[row, cell, cell])
    return lambda held: size * math.log1p((held - best) ** 2 / (size * variance * spread))


def _regression_ends(node: LinearGaussianNode, level: float) -> Floats:
    low, high = node.credible_intervals(level)
    return np.stack([_kept(node, lambda: end) for end in (low, high)], axis=1)  # noqa: B023


def prefixed(inference: Inference, name: Hashable) -> Inference:
    """The same parameters, called after their node."""
    from dataclasses import replace

    return replace(inference, names=tuple(f"{name}: {each}" for each in inference.names), profile=None)


def redrawn(network: Any, given: Mapping[str, Any], rng: np.random.Generator) -> Mapping[str, Any]:
    """As many rows as were learned, of the nodes that are not hidden."""
    from suffice.errors import OptionError
    from suffice.fitting.portrait import redrawn_rows
    from suffice.models.em.rows import has_missing

    hidden = network._learning.hidden
    if has_missing(network.statistics_) and not hidden:
        raise OptionError("Rows with missing values cannot be drawn from the fit, which says not which are missing.")
    drawn = redrawn_rows(network, given, rng)["data"]
    return {"data": {name: np.asarray(drawn[name]) for name in network.nodes if name not in hidden}}
