"""Raw sums and cross-products of real columns for each group of rows, as pairs (see `suffice.double_double`).

Three ways, one contract:

* few large groups: rows are brought together by group, and each group is summed as `moments.moment_sums` does;
* many small groups, NumPy: the products of every row as pairs, and neighbours within a group added until one is left;
* many small groups, compiled: every row is added to the sums of its group.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.double_double import add, multiply, pair, two_product, two_sum
from suffice.kernels.arrays import frozen
from suffice.kernels.choice import use_compiled
from suffice.kernels.moments import Sums, moment_sums

Labels = NDArray[np.intp]

_LARGE = 1024  # Rows of a group from which a call of its own beats the compiled loop over rows,
_SMALL = 64  # and the NumPy path.
_BLOCK = 4096  # Rows whose products stay in cache.
_SECONDS = 1e-7  # NumPy path: a product of one row, added up.


def grouped_moment_sums(columns: Floats, labels: Labels, groups: int, weights: Floats | None = None) -> Sums:
    """Return sum w (2, k), sum w x (2, k, d) and sum w x x' (2, k, d, d) over the rows of each of k groups, as pairs.

    columns (d, n); labels (n,) from 0 to k - 1; weights (n,), None means one for each row.
    """
    d, rows = columns.shape
    products = (d + 1) * (d + 2) // 2
    if rows >= _LARGE * groups or groups == 1:
        return _one_by_one(columns, labels, groups, weights)
    if use_compiled("grouped moments", _SECONDS * rows * products):
        return _parted(_compiled(columns, labels, groups, weights), d)
    if rows >= _SMALL * groups:
        return _one_by_one(columns, labels, groups, weights)
    return _parted(_by_halving(columns, labels, groups, weights), d)


def _compiled(columns: Floats, labels: Labels, groups: int, weights: Floats | None) -> Floats:
    from suffice.kernels.compiled.moments import add_grouped_moments

    d, rows = columns.shape
    sums = np.zeros((groups, (d + 1) * (d + 2) // 2, 2))
    counted = np.ones(rows) if weights is None else weights
    add_grouped_moments(frozen(columns, np.float64), frozen(counted, np.float64), frozen(labels, np.intp), sums)
    return np.moveaxis(sums, -1, 0)


def _one_by_one(columns: Floats, labels: Labels, groups: int, weights: Floats | None) -> Sums:
    """Each group by itself."""
    if groups <= 1:  # without rows there is no group at all
        weight, total, cross = moment_sums(columns, weights)
        return weight[:, None][:, :groups], total[:, None][:, :groups], cross[:, None][:, :groups]
    order, ends = _order(labels, groups)
    sums = []
    for start, end in pairwise(ends.tolist()):
        rows = order[start:end]
        sums.append(moment_sums(columns[:, rows], None if weights is None else weights[rows]))
    weight, total, cross = (np.stack(parts, axis=1) for parts in zip(*sums, strict=True))
    return weight, total, cross


def _order(labels: Labels, groups: int) -> tuple[Labels, Labels]:
    """Rows by group (n,), and where each group begins and ends (k + 1,)."""
    # NumPy sorts 16-bit integers by counting, wider ones by comparing.
    short = labels.astype(np.uint16) if groups <= 1 << 16 else labels
    ends = np.concatenate(([0], np.cumsum(np.bincount(labels, minlength=groups))))
    return np.argsort(short, kind="stable"), ends


def _by_halving(columns: Floats, labels: Labels, groups: int, weights: Floats | None) -> Floats:
    """Sums (2, k, products) in the order of `add_grouped_moments`; neighbours of a group are added in rounds."""
    order, _ = _order(labels, groups)
    d = len(columns)
    sums = np.zeros((2, groups, (d + 1) * (d + 2) // 2))
    with np.errstate(over="ignore", invalid="ignore"):
        for start in range(0, len(order), _BLOCK):
            rows = order[start : start + _BLOCK]
            present, first = np.unique(labels[rows], return_index=True)
            ranks = np.arange(len(rows)) - np.repeat(first, np.diff(np.append(first, len(rows))))
            x = np.vstack((np.ones((1, len(rows))), columns[:, rows]))
            weighted = pair(x) if weights is None else np.stack(two_product(x, weights[rows]))
            row, column = np.tril_indices(d + 1)
            products = multiply(weighted[:, row], pair(x[column]))
            sums[:, present] = add(sums[:, present], _halved(products, ranks).transpose(0, 2, 1))
    return sums


def _halved(pairs: Floats, ranks: Labels) -> Floats:
    """Add pairs (2, e, n) within groups, given by the place of each row in its group (n,); returns (2, e, k)."""
    high, low = pairs
    while ranks.any():
        first = np.flatnonzero(ranks % 2 == 0)
        # A row has a partner where the next row is not the first of another group.
        follows = np.append(ranks[1:] != 0, False)[first]
        second = np.minimum(first + 1, len(ranks) - 1)
        high, error = two_sum(high[:, first], np.where(follows, high[:, second], 0.0))
        low = (low[:, first] + np.where(follows, low[:, second], 0.0)) + error
        ranks = ranks[first] // 2
    return np.stack(two_sum(high, low))


def _parted(sums: Floats, d: int) -> Sums:
    """Part sums (2, k, products) of the lower triangle with a leading column of ones."""
    gram = np.zeros((2, sums.shape[1], d + 1, d + 1))
    row, column = np.tril_indices(d + 1)
    gram[:, :, row, column] = sums
    gram[:, :, column, row] = sums
    return gram[:, :, 0, 0].copy(), gram[:, :, 0, 1:].copy(), gram[:, :, 1:, 1:].copy()
