"""The explanatory columns of a regression: which coefficient belongs to which column or level.

Real columns have one coefficient. A factor has one for each level but its first, the reference (treatment coding);
without an intercept the first factor has one for every level. Indicators are never stored.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.domain import Variable
from suffice.engines.linear_predictor import CoefficientLayout, RowBlock
from suffice.errors import FileFormatError, UnknownStateError
from suffice.records import checked

Codes = NDArray[Any]

INTERCEPT = "intercept"
#: Levels from which a factor is worth its own block of the information.
WIDE = 64


@dataclass(frozen=True, eq=False)
class Factor:
    """A discrete column: its levels in order, and the share of rows of each, for levels never seen before."""

    variable: Variable
    shares: Floats
    full: bool = False

    @property
    def coded(self) -> int:
        """Number of coefficients."""
        return self.variable.card - (not self.full)

    def labels(self) -> list[str]:
        """Names of the coefficients: column[level]."""
        states = self.variable.states if self.full else self.variable.states[1:]
        return [f"{self.variable.name}[{state}]" for state in states]

    def effects(self, beta: Floats) -> Floats:
        """The effect of each level and, last, of one that was never seen: the average of the rows fitted."""
        own = beta if self.full else np.concatenate((np.zeros((1, *beta.shape[1:])), beta))
        return np.concatenate((own, (self.shares @ own)[None]))


@dataclass(frozen=True, eq=False)
class DesignRows:
    """Rows of the explanatory columns: `reals` (n, k), `codes` of each factor (n,), `sparse` (n, s) or None."""

    reals: Floats
    codes: tuple[Codes, ...] = ()
    sparse: Any = None

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.reals)

    def part(self, rows: slice) -> DesignRows:
        """Some of the rows."""
        sparse = None if self.sparse is None else self.sparse[rows]
        return DesignRows(self.reals[rows], tuple(codes[rows] for codes in self.codes), sparse)


class Placed:
    """What has names in one order and stands in another in the engine; `places` (k,) leads from this to that."""

    places: Any

    def public(self, internal: NDArray[Any]) -> NDArray[Any]:
        """Parameters of the engine's layout (k, ...) in the order of the names."""
        named = np.empty_like(internal)
        named[self.places] = internal
        return named

    def internal(self, public: Floats) -> Floats:
        """The reverse of `public`."""
        return np.asarray(public[self.places])

    def public_matrix(self, internal: Floats) -> Floats:
        """A matrix (k, k) in the order of the names."""
        named = np.empty_like(internal)
        named[np.ix_(self.places, self.places)] = internal
        return named


@dataclass(frozen=True, eq=False)
class Design(Placed):
    """Columns in the order of the data: a name for a real column, a `Factor` for a discrete one.

    `sparse` names the columns of a sparse matrix, which then are all there is. `blocked` says whether a factor of many
    levels has its own block of the information; with several linear predictors that block would not be diagonal.
    """

    constant: bool
    columns: tuple[Hashable | Factor, ...]
    sparse: tuple[str, ...] = ()
    blocked: bool = True

    @cached_property
    def reals(self) -> tuple[Hashable, ...]:
        """Names of the real columns."""
        return tuple(column for column in self.columns if not isinstance(column, Factor))

    @cached_property
    def factors(self) -> tuple[Factor, ...]:
        """The discrete columns."""
        return tuple(column for column in self.columns if isinstance(column, Factor))

    @cached_property
    def wide(self) -> int | None:
        """Place among the factors of the one that gets its own block of the information."""
        sizes = [factor.coded for factor in self.factors]
        return int(np.argmax(sizes)) if self.blocked and sizes and max(sizes) >= WIDE else None

    @cached_property
    def layout(self) -> CoefficientLayout:
        """How the engine lays the coefficients out."""
        narrow = tuple(f.coded for number, f in enumerate(self.factors) if number != self.wide)
        levels = 0 if self.wide is None else self.factors[self.wide].coded
        return CoefficientLayout(self.constant, len(self.reals), narrow, len(self.sparse), levels)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of all coefficients, the intercept first, then the columns in their order."""
        names = [INTERCEPT] if self.constant else []
        for column in self.columns:
            names += column.labels() if isinstance(column, Factor) else [str(column)]
        return (*names, *self.sparse)

    @property
    def size(self) -> int:
        """Number of coefficients."""
        return len(self.names)

    @cached_property
    def places(self) -> NDArray[np.intp]:
        """Where each coefficient of the engine's layout stands among the names."""
        firsts: list[int] = []
        first_free = int(self.constant)
        for column in self.columns:
            firsts.append(first_free)
            first_free += column.coded if isinstance(column, Factor) else 1
        kinds = [isinstance(column, Factor) for column in self.columns]
        order = [0] if self.constant else []
        order += [first for first, discrete in zip(firsts, kinds, strict=True) if not discrete]
        starts = [first for first, discrete in zip(firsts, kinds, strict=True) if discrete]
        narrow = [k for k in range(len(starts)) if k != self.wide]
        for k in narrow:
            order += range(starts[k], starts[k] + self.factors[k].coded)
        order += range(first_free, first_free + len(self.sparse))
        if self.wide is not None:
            order += range(starts[self.wide], starts[self.wide] + self.factors[self.wide].coded)
        return np.array(order, dtype=np.intp)

    # -- rows --------------------------------------------------------------------------------------------------------

    def block(
        self, table: DesignRows, y: Floats, weights: Floats | None = None, offset: Floats | None = None, start: int = 0
    ) -> RowBlock:
        """The rows as the engine takes them; codes are moved so that 0 is the reference."""
        moved = [_moved(codes, factor) for codes, factor in zip(table.codes, self.factors, strict=True)]
        narrow = [codes for number, codes in enumerate(moved) if number != self.wide]
        return RowBlock(
            table.reals,
            y,
            weights,
            offset,
            table.sparse,
            None if self.wide is None else moved[self.wide],
            np.column_stack(narrow) if narrow else None,
            start,
        )

    def eta(self, table: DesignRows, beta: Floats) -> Floats:
        """The linear predictor of rows (n,) or (n, m) at coefficients in the order of the names, without offset."""
        eta = np.zeros((table.rows, *beta.shape[1:]))
        first = int(self.constant)
        if self.constant:
            eta += beta[0]
        reals = []
        codes = iter(table.codes)
        for column in self.columns:
            if isinstance(column, Factor):
                eta += column.effects(beta[first : first + column.coded])[next(codes)]
                first += column.coded
            else:
                reals.append(first)
                first += 1
        eta += table.reals @ beta[reals]
        return eta + table.sparse @ beta[first:] if self.sparse else eta

    def matrix(self, table: DesignRows) -> Floats:
        """The rows of the design in the order of the names (n, k), dense: for some rows at a time."""
        blocks: list[Floats] = [np.ones((table.rows, 1))] if self.constant else []
        codes, real = iter(table.codes), 0
        for column in self.columns:
            if isinstance(column, Factor):
                table_of_rows = np.vstack((np.eye(column.variable.card), column.shares))
                blocks.append(table_of_rows[next(codes)][:, 0 if column.full else 1 :])
            else:
                blocks.append(table.reals[:, real : real + 1])
                real += 1
        if self.sparse:
            blocks.append(table.sparse.toarray())
        return np.concatenate(blocks, axis=1) if blocks else np.empty((table.rows, 0))

    def renamed(self, names: Sequence[Hashable]) -> Design:
        """The same columns, in their order, under other names."""
        if names == tuple(c.variable.name if isinstance(c, Factor) else c for c in self.columns):
            return self
        columns = [
            replace(column, variable=replace(column.variable, name=name)) if isinstance(column, Factor) else name
            for name, column in zip(names, self.columns, strict=True)
        ]
        return replace(self, columns=tuple(columns))

    # -- files -------------------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Plain data for a file."""
        columns: list[dict[str, Any]] = [
            {"variable": c.variable.to_dict(), "shares": c.shares, "full": c.full}
            if isinstance(c, Factor)
            else {"real": c}
            for c in self.columns
        ]
        return {"constant": self.constant, "columns": columns, "sparse": list(self.sparse), "blocked": self.blocked}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Design:
        """Rebuild from plain data, checking it."""
        columns: list[Hashable | Factor] = []
        for entry in plain["columns"]:
            if "variable" not in entry:
                columns.append(entry["real"])
                continue
            variable = Variable.from_dict(entry["variable"])
            shares = np.asarray(entry["shares"], dtype=np.float64)
            if shares.shape != (variable.card,):
                raise FileFormatError(f"The factor {variable.name!r} has {variable.card} levels, {len(shares)} shares.")
            columns.append(Factor(variable, shares, bool(entry["full"])))
        sparse, blocked = tuple(map(str, plain["sparse"])), bool(plain.get("blocked", True))
        return checked(cls(bool(plain["constant"]), tuple(columns), sparse, blocked))


@dataclass(frozen=True, eq=False)
class NamedParameters(Placed):
    """All parameters of a fit: those that a distribution has ahead of the coefficients, and those of the design."""

    ahead: tuple[str, ...]
    design: Design

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of all."""
        return (*self.ahead, *self.design.names)

    @property
    def size(self) -> int:
        """Their number."""
        return len(self.names)

    @cached_property
    def places(self) -> NDArray[np.intp]:
        """Where each parameter of the engine's layout stands among the names."""
        held = len(self.ahead)
        return np.concatenate((np.arange(held, dtype=np.intp), held + self.design.places))


def threshold_names(labels: Sequence[Hashable]) -> tuple[str, ...]:
    """Each threshold between ordered labels, by the labels on its two sides."""
    return tuple(f"{low}|{high}" for low, high in pairwise(labels))


def _moved(codes: Codes, factor: Factor) -> Codes:
    """Codes whose 0 is the reference level; a factor with all levels has none."""
    return codes.astype(np.int32) + np.int32(factor.full)


def pooled_codes(factor: Factor, variable: Variable, codes: Codes, unknown: str) -> Codes:
    """Codes of rows read with their own states as codes of the factor; levels never seen raise or get the last code."""
    seen = [factor.variable.find(state) for state in variable.states]
    levels = np.array([-1 if level is None else level for level in seen], dtype=np.int64)
    known = np.append(levels, -2)  # The code after the last state is a missing value.
    places = known[codes]
    strange = np.flatnonzero(places == -1)
    if len(strange):
        if unknown == "raise":
            row = int(strange[0])
            state = variable.states[int(codes[row])]
            raise UnknownStateError(
                f"Column {variable.name!r} holds {state!r} (row {row}), a level that the fit has not seen: "
                f"{', '.join(map(repr, factor.variable.states[:8]))}. Correct it, or set unknown='pool' to give such "
                "rows the average effect."
            )
        places = np.where(places == -1, factor.variable.card, places)
    return places
