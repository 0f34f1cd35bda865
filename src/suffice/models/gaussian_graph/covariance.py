"""A covariance matrix in the place of rows: read by name, checked, and turned into the sums of its rows."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from suffice import double_double
from suffice.answers import MomentSums
from suffice.array_types import Floats
from suffice.errors import DataError, OptionError, listing, shortened
from suffice.families.base import as_floats
from suffice.families.matrices import ASYMMETRY

#: Variances, and rows, whose products stay within float64.
SMALLEST, LARGEST = 1e-250, 1e250


def moments_of(
    covariance: Any, n: object, mean: Floats, columns: object, nodes: Sequence[Hashable], *, named: bool
) -> Any:
    """The sums of n rows with a covariance (divisor n) about a mean (p,).

    named: whether the order of the nodes was given, so that an array without names may follow it.
    """
    if isinstance(n, bool) or not (
        isinstance(n, int | float | np.integer | np.floating) and math.isfinite(n) and 0 < n < LARGEST
    ):
        raise OptionError(f"n is {n!r}; expected the number of rows that the covariance is of.")
    if columns is None and hasattr(covariance, "columns") and set(covariance.index) == set(covariance.columns):
        covariance = covariance.loc[list(covariance.columns)]  # Rows by name, as columns are.
    order = _order_of(covariance, columns, nodes, named)
    S = as_floats(covariance, "The covariance", DataError)[np.ix_(order, order)]
    _check(S, nodes)
    weight, middle, about = double_double.pair(float(n)), double_double.pair(mean), double_double.pair((S + S.T) / 2)
    if mean.any():
        about = double_double.add(about, double_double.outer(middle, middle))
    return MomentSums(weight, double_double.scale(middle, float(n)), double_double.scale(about, float(n)))


def by_node(values: Any, nodes: Sequence[Hashable]) -> Floats:
    """The sample mean (p,), by node or in their order."""
    named = isinstance(values, Mapping) or hasattr(values, "loc")
    means = as_floats([values[node] for node in nodes] if named else values, "sample_mean")
    if means.shape != (len(nodes),):
        raise OptionError(f"sample_mean has shape {means.shape}; expected {len(nodes)} finite numbers.")
    return means


def _check(S: Floats, nodes: Sequence[Hashable]) -> None:
    variances = np.diag(S)
    usual = (variances == 0.0) | ((variances >= SMALLEST) & (variances <= LARGEST))
    for node, variance in zip(nodes, variances.tolist(), strict=True) if not usual.all() else ():
        if variance < 0.0:
            raise DataError(f"The covariance holds a negative variance, {variance:g}, of {node!r}; check it.")
        if variance > LARGEST or 0.0 < variance < SMALLEST:
            raise DataError(
                f"The variance of {node!r} is {variance:g}: too {'large' if variance > 1 else 'small'} to be "
                f"multiplied in float64; expected {SMALLEST:g} to {LARGEST:g}. Use another unit."
            )
    units = np.sqrt(np.where(variances > 0, variances, 1.0))
    with np.errstate(over="ignore"):
        R = S / units[:, None] / units
    if not np.isfinite(R).all() or (np.abs(R - R.T) > ASYMMETRY).any():
        raise DataError("The covariance is not symmetric, or holds covariances far beyond its variances; check it.")
    try:
        np.linalg.cholesky((R + R.T) / 2 + 1e-9 * len(S) * np.eye(len(S)))
    except np.linalg.LinAlgError:
        raise DataError("The covariance has a negative variance in some direction; check it.") from None


def _order_of(covariance: Any, columns: Any, nodes: Sequence[Hashable], named: bool) -> list[int]:
    """Where the covariance holds each node."""
    try:
        shape = np.shape(covariance)
    except ValueError:
        raise DataError(f"The covariance is {shortened(covariance)}; expected a square matrix.") from None
    if len(shape) != 2 or shape[0] != shape[1]:
        raise DataError(f"The covariance has shape {shape}; expected a square matrix.")
    held = columns if columns is not None else getattr(covariance, "columns", None)
    if held is None and not named:
        whole = all(isinstance(node, int | np.integer) for node in nodes)
        if not whole:
            raise DataError(
                "The covariance is an array without names. Give nodes= in its order, or columns=, or a DataFrame."
            )
        held = sorted(nodes)
    names = list(nodes if held is None else held)
    places = dict(zip(reversed(names), reversed(range(len(names))), strict=True))  # Of names given twice the first.
    missing = [node for node in nodes if node not in places]
    if len(names) != shape[0] or missing:
        lacks = f"; {listing(missing)} are missing" if missing else ""
        raise DataError(
            f"The covariance has {shape[0]} columns and there are the names {listing(names)}; the graph has "
            f"{len(nodes)} nodes{lacks}. Give one row and one column for each node."
        )
    return [places[node] for node in nodes]
