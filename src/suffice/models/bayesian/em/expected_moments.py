"""Sums of products about the mean, cell by cell, that grow block by block: the expected moments of EM.

Each block gives weight, mean and centred products; two of them join by Chan's formula, so that rows far from the origin
keep their digits.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from suffice import double_double
from suffice.answers import MomentSums
from suffice.array_types import Floats
from suffice.domain import Domain
from suffice.grouped_answers import MomentsByTable
from suffice.records import set_fields
from suffice.statistics import Moments, MomentsBy


def block_moments(values: Floats, weights: Floats) -> tuple[Floats, Floats, Floats]:
    """Weight (c,), mean (c, p) and centred products (c, p, p) of values (p, n) under weights (c, n)."""
    weight = weights.sum(axis=1)
    mean = (weights @ values.T) / np.where(weight > 0, weight, 1.0)[:, None]
    products = np.empty((len(weights), len(values), len(values)))
    for cell, (row, centre) in enumerate(zip(weights, mean, strict=True)):
        away = values - centre[:, None]
        products[cell] = (away * row) @ away.T
    return weight, mean, products


class ExpectedMoments:
    """Moments of some real variables for each joint state of discrete ones; made for one statistic and one E-step."""

    def __init__(self, statistic: Moments | MomentsBy, domain: Domain) -> None:
        """No rows yet."""
        self.by: tuple[Hashable, ...] = statistic.by if isinstance(statistic, MomentsBy) else ()
        self.grouped = isinstance(statistic, MomentsBy)
        self.shape = domain.shape(self.by)
        cells, p = int(np.prod(self.shape, dtype=np.int64)), len(statistic.variables)
        self.weight, self.mean, self.scatter = np.zeros(cells), np.zeros((cells, p)), np.zeros((cells, p, p))

    def add(self, cells: NDArray[np.intp], weight: Floats, mean: Floats, scatter: Floats) -> None:
        """Add blocks of rows to some cells (c,), each of them once."""
        before, total = self.weight[cells], self.weight[cells] + weight
        share = weight / np.where(total > 0, total, 1.0)
        away = mean - self.mean[cells]
        self.scatter[cells] += scatter + (before * share)[:, None, None] * (away[:, :, None] * away[:, None, :])
        self.mean[cells] += share[:, None] * away
        self.weight[cells] = total

    def answer(self) -> Any:
        """The answer to the statistic."""
        scatter = (self.scatter + self.scatter.swapaxes(1, 2)) / 2
        if not self.grouped:
            return _CentredSums.of(self.weight[0], self.mean[0], scatter[0])
        kept = np.flatnonzero(self.weight > 0)
        codes = np.stack(np.unravel_index(kept, self.shape), axis=1) if self.by else np.zeros((len(kept), 0))
        return _CentredTable.of(self.weight[kept], self.mean[kept], scatter[kept], cells=codes.astype(np.int32))


class _Centred:
    """Sums known by mean and centred products; those about the origin follow, as pairs, where they are asked for.

    They are `rough`: good to float64, whatever the pairs suggest.
    """

    rough: ClassVar[bool] = True
    weight_pair: Floats
    mean: Floats
    scatter: Floats

    @classmethod
    def of(cls, weight: Floats, mean: Floats, scatter: Floats, **more: Any) -> Any:
        made = object.__new__(cls)
        set_fields(made, weight_pair=double_double.pair(weight), mean=mean, scatter=scatter, **more)
        return made

    @cached_property
    def total_pair(self) -> Floats:
        return double_double.scale(double_double.pair(self.mean), self.weight_pair[0][..., None])

    @cached_property
    def cross_pair(self) -> Floats:
        return double_double.add(
            double_double.outer(self.total_pair, double_double.pair(self.mean)), double_double.pair(self.scatter)
        )


def _joined(left: _Centred, right: _Centred) -> tuple[Floats, Floats, Floats]:
    """Weight, mean and centred products of both sets of rows, by Chan's formula."""
    weight = left.weight_pair[0] + right.weight_pair[0]
    share = right.weight_pair[0] / np.where(weight > 0, weight, 1.0)
    away = right.mean - left.mean
    between = np.asarray(left.weight_pair[0] * share)[..., None, None] * (away[..., :, None] * away[..., None, :])
    return weight, left.mean + np.asarray(share)[..., None] * away, left.scatter + right.scatter + between


class _CentredSums(_Centred, MomentSums):
    def __add__(self, other: Any) -> Any:
        return _CentredSums.of(*_joined(self, other)) if isinstance(other, _CentredSums) else super().__add__(other)

    def __reduce__(self) -> Any:
        return _CentredSums.of, (self.weight_pair[0], self.mean, self.scatter)

    def _map(self, function: Any, *others: Any) -> Any:
        return MomentSums(*(function(getattr(self, n), *(getattr(o, n) for o in others)) for n in self.pairs))


class _CentredTable(_Centred, MomentsByTable):
    def __add__(self, other: Any) -> Any:
        if not isinstance(other, _CentredTable):
            return super().__add__(other)
        cells, label = np.unique(np.concatenate([self.cells, other.cells]), axis=0, return_inverse=True)
        label = label.reshape(-1)
        first, second = self._spread(label[: len(self)], cells), other._spread(label[len(self) :], cells)
        return _CentredTable.of(*_joined(first, second), cells=cells)

    def _spread(self, rows: NDArray[np.intp], cells: NDArray[np.int32]) -> Any:
        """The same among more cells, of which the others have no rows."""
        parts = []
        for part in (self.weight_pair[0], self.mean, self.scatter):
            wide = np.zeros((len(cells), *part.shape[1:]))
            wide[rows] = part
            parts.append(wide)
        return _CentredTable.of(*parts, cells=cells)

    def __reduce__(self) -> Any:
        return _centred_table, (self.weight_pair[0], self.mean, self.scatter, self.cells)


def _centred_table(weight: Floats, mean: Floats, scatter: Floats, cells: NDArray[np.int32]) -> Any:
    return _CentredTable.of(weight, mean, scatter, cells=cells)
