"""The answers to statistics: tables and sums that add, subtract, scale and compare.

Sums of real numbers are kept as double-double pairs (see `double_double`) about the origin, so that the result does not
depend on the order of rows, on batches or on threads, and rows can be taken out again without losing the digits of the
rest.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from suffice import double_double
from suffice.array_types import Floats
from suffice.checks import checked_floats
from suffice.domain import MOST_AXES, Domain
from suffice.double_double import RESIDUE
from suffice.errors import DataError, FileFormatError, MergeError, SizeError, listing
from suffice.records import set_fields

Integers = NDArray[np.int32]

#: A table of at most this many cells is always dense; a larger one is dense once a quarter of its cells are in use.
DENSE_CELLS = 65_536


class Answer(Protocol):
    """What every answer can do."""

    def __add__(self, other: Self, /) -> Self:
        """Both sets of rows."""
        ...

    def __sub__(self, other: Self, /) -> Self:
        """The rows of `other` taken out."""
        ...

    def __mul__(self, factor: float, /) -> Self:
        """Weights times a factor."""
        ...

    def aligned(self, names: Sequence[Hashable], old: Domain, new: Domain) -> Self:
        """The same answer laid out for a domain with more states or another order of states."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """Plain data for a file."""
        ...

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any], names: Sequence[Hashable], domain: Domain, terms: int | None) -> Self:
        """Rebuild from plain data; wrong shapes or values are an error."""
        ...

    @classmethod
    def empty(cls, names: Sequence[Hashable], domain: Domain, terms: Sequence[Any]) -> Self:
        """The answer for no rows."""
        ...


def same_bits(left: NDArray[Any], right: NDArray[Any]) -> bool:
    """Equal shape and equal values, NaN equal to NaN."""
    return left.shape == right.shape and bool(np.array_equal(left, right, equal_nan=left.dtype.kind == "f"))


def without_residue(result: Floats, before: Floats, what: str) -> Floats:
    """A difference of weights, with rounding residue set to zero; a real negative weight is an error."""
    result = np.where(np.abs(result) <= RESIDUE * before, 0.0, result)
    if (result < 0).any():
        raise MergeError(f"Taking these rows out would leave a negative {what}: they were never in.")
    return result


def check_moments_left(before: Any, left: Any, *, gone: bool) -> None:
    """Raise where moments after a subtraction cannot be those of rows; `gone` where no weight is left of them."""
    held, rest = ([getattr(moments, name) for name in moments.pairs] for moments in (before, left))
    if not (double_double.vanished(held, rest) if gone else double_double.scatter_is_left(held, rest)):
        remainder = "sums without rows" if gone else "negative squares"
        raise MergeError(f"Taking these rows out would leave {remainder}: they were never in.")


# --------------------------------------------------------------------------------------------------------------------
# Counts
# --------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, init=False)
class CountTable:
    """Weight of every joint state: dense, or sparse where few of many cells are in use.

    Dense: `values` has the shape of the table and `cells` is None. Sparse: `cells` (k, d) lists the joint states in
    lexicographic order and `values` (k,) their weights. Which one is a function of the content alone, so equal tables
    are stored alike.
    """

    shape: tuple[int, ...]
    values: Floats
    cells: Integers | None = None

    def __init__(self, shape: tuple[int, ...], values: Floats, cells: Integers | None = None) -> None:
        """Keep all at once, which is quicker than field by field in a frozen class."""
        set_fields(self, shape=shape, values=values, cells=cells)

    @classmethod
    def of(cls, values: NDArray[Any]) -> CountTable:
        """From a dense table."""
        return cls(values.shape, np.asarray(values, dtype=np.float64))._normal()

    @classmethod
    def sparse(cls, shape: tuple[int, ...], cells: NDArray[Any], values: NDArray[Any]) -> CountTable:
        """From distinct cells (k, d) in lexicographic order and their weights (k,)."""
        return cls(shape, np.asarray(values, dtype=np.float64), np.asarray(cells, dtype=np.int32))._normal()

    @classmethod
    def empty(cls, names: Sequence[Hashable], domain: Domain, terms: Sequence[Any] = ()) -> CountTable:
        """No rows: no cells in use."""
        shape = domain.shape(names)
        return cls.sparse(shape, np.empty((0, len(shape)), np.int32), np.empty(0))

    @property
    def size(self) -> int:
        """Number of cells, in use or not."""
        return math.prod(self.shape)

    @property
    def total(self) -> float:
        """Total weight."""
        return math.fsum(self.values.ravel())

    def dense(self) -> Floats:
        """The full array; a table too large for memory is an error that says how large."""
        if self.cells is None:
            return self.values
        if len(self.shape) > MOST_AXES:
            raise SizeError(
                f"A table over {len(self.shape)} variables has more axes than an array can have ({MOST_AXES}); read "
                "its cells in use by items()."
            )
        if self.size > 2**28:
            raise SizeError(
                f"The table of shape {self.shape} has {self.size:,} cells; only {len(self.values):,} are in use."
            )
        if not self.shape:
            return np.asarray(self.total)
        table = np.zeros(self.shape)
        table.reshape(-1)[np.ravel_multi_index(list(self.cells.T), self.shape)] = self.values
        return table

    def items(self) -> tuple[Integers, Floats]:
        """The cells in use (k, d) in lexicographic order, and their weights (k,)."""
        if self.cells is not None:
            return self.cells, self.values
        values = np.ascontiguousarray(self.values).reshape(-1)
        used = np.flatnonzero(values)
        codes = np.array(np.unravel_index(used, self.shape), dtype=np.int32).reshape(len(self.shape), len(used))
        return np.ascontiguousarray(codes.T), values[used]

    def __add__(self, other: CountTable) -> CountTable:
        """Cell by cell."""
        if self.cells is None and other.cells is None:
            return CountTable.of(self.values + other.values)
        cells, values = _joined(self, other, 1.0)
        return CountTable.sparse(self.shape, cells, values)

    def __sub__(self, other: CountTable) -> CountTable:
        """Cell by cell; a negative weight is an error."""
        if self.cells is None and other.cells is None:
            return CountTable.of(without_residue(self.values - other.values, self.values, "count"))
        cells, values = _joined(self, other, -1.0)
        before = _joined(self, other, 0.0)[1]
        values = without_residue(values, before, "count")
        return CountTable.sparse(self.shape, cells[values != 0], values[values != 0])

    def __mul__(self, factor: float) -> CountTable:
        """Every weight times a factor."""
        return CountTable(self.shape, self.values * factor, self.cells)._normal()

    def __eq__(self, other: object) -> bool:
        """Same cells, same weights."""
        if not isinstance(other, CountTable):
            return NotImplemented
        mine, theirs = self._normal(), other._normal()
        alike = (mine.cells is None) == (theirs.cells is None)
        return (
            alike
            and mine.shape == theirs.shape
            and same_bits(mine.values, theirs.values)
            and (mine.cells is None or theirs.cells is None or same_bits(mine.cells, theirs.cells))
        )

    __hash__ = None  # type: ignore[assignment]

    def aligned(self, names: Sequence[Hashable], old: Domain, new: Domain) -> CountTable:
        """Move every cell to its place among the new states."""
        shape = new.shape(names)
        places = [np.array([new[n].index(s) for s in old[n].states], dtype=np.int32) for n in names]
        if self.cells is None and math.prod(shape) <= DENSE_CELLS:
            table = np.zeros(shape)
            table[np.ix_(*places)] = self.values
            return CountTable.of(table)
        cells, values = self.items()
        moved = np.stack([codes[cells[:, axis]] for axis, codes in enumerate(places)], axis=1)
        return CountTable.sparse(shape, *_summed(moved, values))

    def _normal(self) -> CountTable:
        """The one way this content is stored."""
        if self.cells is None and self.values.size <= DENSE_CELLS:
            return self
        used = len(self.values) if self.cells is not None else int(np.count_nonzero(self.values))
        if self.size <= max(DENSE_CELLS, 4 * used) and len(self.shape) <= MOST_AXES:
            return self if self.cells is None else CountTable(self.shape, self.dense())
        if self.cells is not None:
            keep = self.values != 0
            return self if keep.all() else CountTable(self.shape, self.values[keep], self.cells[keep])
        cells, values = self.items()
        return CountTable(self.shape, values, cells)

    def to_dict(self) -> dict[str, Any]:
        """Cells are written only when sparse."""
        return {"values": self.values} | ({} if self.cells is None else {"cells": self.cells})

    @classmethod
    def from_dict(
        cls, plain: Mapping[str, Any], names: Sequence[Hashable], domain: Domain, terms: int | None = None
    ) -> CountTable:
        """Check shape, range and order."""
        shape = domain.shape(names)
        cells = plain.get("cells")
        if cells is None:
            return cls.of(checked_floats(plain["values"], shape, f"The count table of {listing(names)}", least=0.0))
        cells = np.asarray(cells)
        if cells.dtype.kind != "i" or cells.ndim != 2 or cells.shape[1] != len(shape):
            raise FileFormatError(
                f"The cells of the count table of {listing(names)} are not ({len(shape)} columns of integers)."
            )
        values = checked_floats(plain["values"], (len(cells),), f"The count table of {listing(names)}", least=0.0)
        if ((cells < 0) | (cells >= np.array(shape))).any() or len(np.unique(cells, axis=0)) != len(cells):
            raise FileFormatError(f"The count table of {listing(names)} lists a cell outside {shape} or a cell twice.")
        return cls.sparse(shape, *_summed(cells, values))


def _summed(cells: NDArray[Any], values: Floats) -> tuple[NDArray[Any], Floats]:
    """Distinct cells in lexicographic order, the weights of equal ones added."""
    from suffice.kernels.patterns import distinct_rows

    return distinct_rows(np.ascontiguousarray(cells.T), values)


def _joined(left: CountTable, right: CountTable, sign: float) -> tuple[NDArray[Any], Floats]:
    (left_cells, left_values), (right_cells, right_values) = left.items(), right.items()
    return _summed(np.concatenate([left_cells, right_cells]), np.concatenate([left_values, sign * right_values]))


# --------------------------------------------------------------------------------------------------------------------
# Sums of real numbers
# --------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class PairSums:
    """Arrays of double-double pairs (leading axis 2: high part, low part) that add together."""

    weight_pair: Floats

    pairs: ClassVar[tuple[str, ...]] = ("weight_pair",)

    @property
    def weight(self) -> float:
        """Total weight."""
        return float(self.weight_pair[0])

    def _map(self, function: Callable[..., Floats], *others: Self) -> Self:
        return type(self)(*(function(getattr(self, n), *(getattr(o, n) for o in others)) for n in self.pairs))

    def __add__(self, other: Self) -> Self:
        """Pair by pair."""
        return self._map(double_double.add, other)

    def __sub__(self, other: Self) -> Self:
        """Pair by pair; once no weight is left, every sum is exactly zero."""
        left = self._map(double_double.subtract, other)
        if left.weight < -RESIDUE * self.weight:
            raise MergeError("Taking these rows out would leave a negative weight: they were never in.")
        gone = left.weight <= RESIDUE * self.weight
        if "cross_pair" in self.pairs:
            check_moments_left(self, left, gone=gone)
        return left * 0.0 if gone else left

    def __mul__(self, factor: float) -> Self:
        """Every pair times a factor."""
        return self._map(lambda pair: double_double.scale(pair, factor))

    def __eq__(self, other: object) -> bool:
        """Same values to the bit, after rounding each pair to one float64."""
        if type(other) is not type(self):
            return NotImplemented
        return all(same_bits(getattr(self, n)[0], getattr(other, n)[0]) for n in self.pairs)

    __hash__ = None  # type: ignore[assignment]

    def aligned(self, names: Sequence[Hashable], old: Domain, new: Domain) -> Self:
        """Sums do not depend on states."""
        return self

    def to_dict(self) -> dict[str, Any]:
        """The pairs by name."""
        return {name: getattr(self, name) for name in self.pairs}

    @classmethod
    def _from_shapes(cls, plain: Mapping[str, Any], shapes: Sequence[tuple[int, ...]], what: str) -> Self:
        arrays = [
            checked_floats(plain[name], (2, *shape), f"{name} of {what}")
            for name, shape in zip(cls.pairs, shapes, strict=True)
        ]
        if arrays[0][0] < 0:
            raise FileFormatError(f"The weight of {what} is negative.")
        return cls(*arrays)


@dataclass(frozen=True, eq=False)
class TermSums(PairSums):
    """Weighted sums, one for each term asked; `sums_pair` is (2, terms)."""

    sums_pair: Floats

    pairs = ("weight_pair", "sums_pair")

    @property
    def means(self) -> Floats:
        """Weighted mean of each term (terms,)."""
        return np.asarray(self.sums_pair[0] / self.weight)

    @classmethod
    def empty(cls, names: Sequence[Hashable], domain: Domain, terms: Sequence[Any]) -> TermSums:
        """All zero."""
        return cls(np.zeros(2), np.zeros((2, len(terms))))

    @classmethod
    def from_dict(
        cls, plain: Mapping[str, Any], names: Sequence[Hashable], domain: Domain, terms: int | None = None
    ) -> TermSums:
        """Check the shapes."""
        return cls._from_shapes(plain, [(), (terms or 0,)], f"the sums of {listing(names)}")


@dataclass(frozen=True, eq=False)
class MomentSums(PairSums):
    """Weight, sums (2, d) and cross-products (2, d, d) about the origin."""

    total_pair: Floats
    cross_pair: Floats

    pairs = ("weight_pair", "total_pair", "cross_pair")

    @cached_property
    def mean(self) -> Floats:
        """Weighted mean (d,)."""
        return np.asarray(double_double.divide(self.total_pair, self.weight_pair)[0])

    @cached_property
    def scatter(self) -> Floats:
        """Centred cross-products (d, d): the sum of w (x - mean)(x - mean)'."""
        return double_double.centred(self.weight_pair, self.total_pair, self.cross_pair)

    @property
    def covariance(self) -> Floats:
        """The scatter divided by the weight (ddof 0)."""
        return self.scatter / self.weight

    def scatter_about(self, point: Floats) -> Floats:
        """Cross-products about a given point: the sum of w (x - point)(x - point)'."""
        away = self.mean - point
        return self.scatter + self.weight * np.outer(away, away)

    def select(self, axes: Sequence[int]) -> MomentSums:
        """The sums of some of the variables."""
        index = np.asarray(axes, dtype=np.intp)
        return MomentSums(self.weight_pair, self.total_pair[:, index], self.cross_pair[:, index[:, None], index])

    @classmethod
    def empty(cls, names: Sequence[Hashable], domain: Domain, terms: Sequence[Any] = ()) -> MomentSums:
        """All zero."""
        d = len(names)
        return cls(np.zeros(2), np.zeros((2, d)), np.zeros((2, d, d)))

    @classmethod
    def from_dict(
        cls, plain: Mapping[str, Any], names: Sequence[Hashable], domain: Domain, terms: int | None = None
    ) -> MomentSums:
        """Check the shapes."""
        d = len(names)
        return cls._from_shapes(plain, [(), (d,), (d, d)], f"the moments of {listing(names)}")


# --------------------------------------------------------------------------------------------------------------------
# Distinct rows
# --------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class PatternTable:
    """Distinct rows (k, d) in lexicographic order with their weights (k,).

    All variables discrete: `rows` holds integer codes, -1 for a missing value. Otherwise float64, NaN for a missing
    value; the columns of discrete variables then hold their codes as floats.
    """

    rows: NDArray[Any]
    weights: Floats

    @classmethod
    def of(cls, rows: NDArray[Any], weights: NDArray[Any]) -> PatternTable:
        """From rows (k, d) that may repeat and come in any order."""
        return cls(*_summed(rows, np.asarray(weights, dtype=np.float64)))

    @classmethod
    def empty(cls, names: Sequence[Hashable], domain: Domain, terms: Sequence[Any] = ()) -> PatternTable:
        """No rows."""
        discrete = all(domain[name].kind == "discrete" for name in names)
        return cls(np.empty((0, len(names)), np.int32 if discrete else np.float64), np.empty(0))

    def __add__(self, other: PatternTable) -> PatternTable:
        """Equal rows add their weights."""
        return PatternTable.of(np.concatenate([self.rows, other.rows]), np.concatenate([self.weights, other.weights]))

    def __sub__(self, other: PatternTable) -> PatternTable:
        """Rows taken out; a negative weight is an error."""
        rows = np.concatenate([self.rows, other.rows])
        distinct, before = _summed(rows, np.concatenate([self.weights, 0.0 * other.weights]))
        _, after = _summed(rows, np.concatenate([self.weights, -other.weights]))
        after = without_residue(after, before, "weight of a row")
        return PatternTable(distinct[after > 0], after[after > 0])

    def __mul__(self, factor: float) -> PatternTable:
        """Every weight times a factor; rows of no weight vanish."""
        weights = self.weights * factor
        return PatternTable(self.rows[weights > 0], weights[weights > 0])

    def __eq__(self, other: object) -> bool:
        """Same rows, same weights."""
        if not isinstance(other, PatternTable):
            return NotImplemented
        return same_bits(self.rows, other.rows) and same_bits(self.weights, other.weights)

    __hash__ = None  # type: ignore[assignment]

    def aligned(self, names: Sequence[Hashable], old: Domain, new: Domain) -> PatternTable:
        """Discrete columns move to the new codes."""
        rows = self.rows.copy()
        for axis, name in enumerate(names):
            if old[name].kind == "discrete" and old[name] != new[name]:
                places = np.array([*(new[name].index(s) for s in old[name].states), -1], dtype=np.int32)
                column = np.nan_to_num(rows[:, axis], nan=-1).astype(np.intp)
                moved = places[column]
                rows[:, axis] = moved if rows.dtype.kind == "i" else np.where(moved < 0, np.nan, moved)
        return PatternTable.of(rows, self.weights)

    def to_dict(self) -> dict[str, Any]:
        """Rows and weights."""
        return {"rows": self.rows, "weights": self.weights}

    @classmethod
    def from_dict(
        cls, plain: Mapping[str, Any], names: Sequence[Hashable], domain: Domain, terms: int | None = None
    ) -> PatternTable:
        """Check shapes and codes."""
        like = cls.empty(names, domain)
        rows = np.asarray(plain["rows"])
        what = f"The rows of {listing(names)}"
        if rows.ndim != 2 or rows.shape[1] != len(names) or rows.dtype.kind != like.rows.dtype.kind:
            raise FileFormatError(
                f"{what} have shape {rows.shape} and type {rows.dtype}; expected {len(names)} columns."
            )
        weights = checked_floats(plain["weights"], (len(rows),), what, least=0.0)
        for axis, name in enumerate(names):
            column = np.nan_to_num(rows[:, axis], nan=-1)
            outside = (column < -1) | (column >= domain[name].card) | (column != np.floor(column))
            if domain[name].kind == "discrete" and outside.any():
                raise FileFormatError(f"{what} hold a code outside the {domain[name].card} states of {name!r}.")
        return cls.of(rows.astype(like.rows.dtype), weights)


def total_weight(weights: Floats | None, rows: int) -> float:
    """Sum of the weights, or the number of rows; weights must be finite and not negative."""
    if weights is None:
        return float(rows)
    if weights.shape != (rows,):
        raise DataError(f"There are {len(weights)} weights for {rows} rows; give one weight a row.")
    return math.fsum(weights)
