"""Moments of real variables for each joint state of discrete ones: the answer to `MomentsBy`."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from suffice import double_double
from suffice.answers import MomentSums, check_moments_left, same_bits
from suffice.array_types import Floats
from suffice.checks import checked_floats
from suffice.domain import Domain
from suffice.double_double import RESIDUE
from suffice.errors import FileFormatError, MergeError, listing

Integers = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class MomentsByTable:
    """Weight, sums and cross-products about the origin, for each joint state that occurs.

    `cells` (k, b) lists the joint states in lexicographic order. The rest are double-double pairs, one for each of
    them: `weight_pair` (2, k), `total_pair` (2, k, d) and `cross_pair` (2, k, d, d). Joint states without weight are
    not kept, so memory follows the rows of the data.
    """

    cells: Integers
    weight_pair: Floats
    total_pair: Floats
    cross_pair: Floats

    pairs: ClassVar[tuple[str, ...]] = ("weight_pair", "total_pair", "cross_pair")

    # -- reading -----------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        """Number of joint states that occur."""
        return len(self.cells)

    @property
    def weight(self) -> Floats:
        """Total weight of each joint state (k,)."""
        return np.asarray(self.weight_pair[0])

    @cached_property
    def mean(self) -> Floats:
        """Weighted means (k, d)."""
        return np.asarray(double_double.divide(self.total_pair, self.weight_pair[..., None])[0])

    @cached_property
    def scatter(self) -> Floats:
        """Centred cross-products (k, d, d)."""
        return double_double.centred(self.weight_pair, self.total_pair, self.cross_pair)

    def at(self, cell: int) -> MomentSums:
        """The moments of one joint state, by its place in `cells`."""
        return MomentSums(*(getattr(self, name)[:, cell] for name in self.pairs))

    def pooled(self) -> MomentSums:
        """The moments of all rows together."""
        sums = [np.moveaxis(getattr(self, name), 1, -1) for name in self.pairs]
        return MomentSums(*(double_double.sum_pairs(*s) if s.shape[-1] else np.zeros(s.shape[:-1]) for s in sums))

    def select(self, axes: Sequence[int]) -> Self:
        """The sums of some of the real variables."""
        index = np.asarray(axes, dtype=np.intp)
        cross = self.cross_pair[:, :, index[:, None], index]
        return type(self)(self.cells, self.weight_pair, self.total_pair[:, :, index], cross)

    # -- arithmetic --------------------------------------------------------------------------------------------------

    def __add__(self, other: MomentsByTable) -> MomentsByTable:
        """Joint state by joint state."""
        return _together((self, other), double_double.add)

    def __sub__(self, other: MomentsByTable) -> MomentsByTable:
        """Joint state by joint state; those without weight left are gone, a negative weight is an error."""
        before = _together((self, other * 0.0), double_double.add, other.cells)
        left = _together((self, other), double_double.subtract)
        if (left.weight < -RESIDUE * before.weight).any():
            raise MergeError("Taking these rows out would leave a negative weight: they were never in.")
        stays = left.weight > RESIDUE * before.weight
        for gone, some in ((False, stays), (True, ~stays)):
            check_moments_left(before._kept(some), left._kept(some), gone=gone)
        return left._kept(stays)

    def __mul__(self, factor: float) -> MomentsByTable:
        """Every pair times a factor; joint states of no weight vanish."""
        scaled = (double_double.scale(getattr(self, name), factor) for name in self.pairs)
        return MomentsByTable(self.cells, *scaled)._kept(self.weight * factor > 0)

    def _kept(self, chosen: NDArray[Any]) -> MomentsByTable:
        return MomentsByTable(self.cells[chosen], *(getattr(self, name)[:, chosen] for name in self.pairs))

    def __eq__(self, other: object) -> bool:
        """Same joint states, same values to the bit, after rounding each pair to one float64."""
        if not isinstance(other, MomentsByTable):
            return NotImplemented
        alike = all(same_bits(getattr(self, n)[0], getattr(other, n)[0]) for n in self.pairs)
        return alike and same_bits(self.cells, other.cells)

    __hash__ = None  # type: ignore[assignment]

    # -- labels and files --------------------------------------------------------------------------------------------

    @classmethod
    def empty(cls, names: Sequence[Hashable], domain: Domain, terms: Sequence[Any] = ()) -> MomentsByTable:
        """No joint state; `names` are the real variables, then the discrete ones."""
        b = sum(domain[name].kind == "discrete" for name in names)
        d = len(names) - b
        return cls(np.empty((0, b), np.int32), np.zeros((2, 0)), np.zeros((2, 0, d)), np.zeros((2, 0, d, d)))

    def aligned(self, names: Sequence[Hashable], old: Domain, new: Domain) -> MomentsByTable:
        """Joint states move to the new codes."""
        cells = self.cells.copy()
        for axis, name in enumerate(names[len(names) - cells.shape[1] :]):
            places = np.array([new[name].index(state) for state in old[name].states], dtype=np.int32)
            cells[:, axis] = places[cells[:, axis]]
        order = np.lexsort(cells.T[::-1]) if cells.shape[1] else np.arange(len(cells))
        return MomentsByTable(cells[order], *(getattr(self, name)[:, order] for name in self.pairs))

    def to_dict(self) -> dict[str, Any]:
        """Cells and pairs by name."""
        return {"cells": self.cells} | {name: getattr(self, name) for name in self.pairs}

    @classmethod
    def from_dict(
        cls, plain: Mapping[str, Any], names: Sequence[Hashable], domain: Domain, terms: int | None = None
    ) -> MomentsByTable:
        """Check shapes, codes, order and weights."""
        by = [name for name in names if domain[name].kind == "discrete"]
        d, cells = len(names) - len(by), np.asarray(plain["cells"])
        what = f"the moments of {listing(names[:d])} by {listing(by)}"
        if cells.dtype != np.int32 or cells.ndim != 2 or cells.shape[1] != len(by) or list(names[d:]) != by:
            raise FileFormatError(f"The cells of {what} are not {len(by)} columns of 32-bit integers.")
        shapes = ((), (d,), (d, d))
        sums = [
            checked_floats(plain[name], (2, len(cells), *shape), f"{name} of {what}")
            for name, shape in zip(cls.pairs, shapes, strict=True)
        ]
        outside = ((cells < 0) | (cells >= np.array(domain.shape(by)))).any()
        if outside or not same_bits(_distinct(cells)[0], cells) or not (sums[0][0] > 0).all():
            raise FileFormatError(f"The cells of {what} are not distinct joint states in order, each with some weight.")
        return cls(cells, *sums)


def _distinct(cells: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Distinct rows of cells (n, b) in lexicographic order, and which of them each row is (n,)."""
    from suffice.kernels.patterns import label_codes

    columns = np.ascontiguousarray(cells.T)
    cards = [int(column.max(initial=-1)) + 1 for column in columns]
    distinct, labels = label_codes(columns, cards, range(len(columns))) if len(cells) else (cells, np.empty(0, np.intp))
    return distinct.astype(np.int32), labels


def _together(
    tables: Sequence[MomentsByTable], combine: Callable[[Floats, Floats], Floats], also: Integers | None = None
) -> MomentsByTable:
    """The tables over the union of their joint states (and those of `also`), combined from left to right."""
    cells, labels = _distinct(np.concatenate([*(t.cells for t in tables), *([] if also is None else [also])]))
    ends = np.cumsum([0, *(len(t) for t in tables)])

    def spread(table: int, name: str) -> Floats:
        part: Floats = getattr(tables[table], name)
        wide = np.zeros((2, len(cells), *part.shape[2:]))
        wide[:, labels[ends[table] : ends[table + 1]]] = part
        return wide

    sums = (reduce(combine, [spread(table, name) for table in range(len(tables))]) for name in MomentsByTable.pairs)
    return MomentsByTable(cells, *sums)
