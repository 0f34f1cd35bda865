"""Any table in: the explanatory columns, the response, weights and offset of a regression, in memory or streamed."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypedDict, TypeVar

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.checks import is_list, listed_names
from suffice.domain import Variable, state_key
from suffice.errors import DataError, MissingColumnError, OptionError, listing, meant, shortened
from suffice.fitting.sklearn_face import ONE_AXIS
from suffice.models.glm.design import Codes, Design, DesignRows, Factor, pooled_codes
from suffice.models.glm.response import check_finite, factor_codes, numbers
from suffice.sources import open_source
from suffice.sources.arrays import NumberColumn
from suffice.sources.base import Source
from suffice.sources.columns import Column
from suffice.sources.files import are_paths
from suffice.sources.kinds import check_times
from suffice.sources.memory import MemorySource
from suffice.sources.opening import any_column
from suffice.sources.weights import check_weights

Answer = TypeVar("Answer")


class RowOptions(TypedDict, total=False):
    """What belongs to rows, beside the response and the weights: as `fit` takes it."""

    offset: Any
    exposure: Any
    trials: Any
    columns: Any


class WeightedRowOptions(RowOptions, total=False):
    """The same with the weights."""

    sample_weight: Any


@dataclass(frozen=True)
class Coding:
    """How columns are read: `categorical` names those that are factors, with their levels or None."""

    constant: bool = True
    categorical: Mapping[Hashable, tuple[Hashable, ...] | None] = field(default_factory=dict)
    references: Mapping[Hashable, Hashable] = field(default_factory=dict)

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Coding:
        """From the options of a model."""
        coding = cls._levels(options["fit_intercept"], options["categorical"])
        reference = options["reference"]
        return replace(coding, references=dict(reference)) if isinstance(reference, Mapping) else coding

    @classmethod
    def _levels(cls, constant: bool, categorical: Any) -> Coding:
        if categorical is None:
            return cls(constant)
        if isinstance(categorical, Mapping):
            for name, states in categorical.items():
                if states is not None and not is_list(states):
                    raise OptionError(f"categorical gives {name!r} the levels {shortened(states)}; expected a list.")
            return cls(constant, {name: None if s is None else tuple(s) for name, s in categorical.items()})
        return cls(constant, dict.fromkeys(listed_names(categorical, "categorical")))

    def declared(self, name: Hashable) -> Variable | None:
        """The factor as declared; None where the column says what it is."""
        if name not in self.categorical:
            return None
        states = self.categorical[name]
        return Variable(name, "discrete") if states is None else Variable.discrete(name, states)

    def check_levels(self, variable: Variable) -> None:
        """Raise where dates, durations or complex numbers would be levels, though nobody has said so."""
        if variable.origin == "seen" and variable.name not in self.categorical:
            check_times(
                variable, f"Declare it: categorical=[{variable.name!r}] for levels, or give numbers in its place"
            )

    def check(self, columns: Sequence[Hashable]) -> None:
        """Raise where a column that is to be a factor is not there."""
        missing = [name for name in self.categorical if name not in columns]
        if missing:
            raise MissingColumnError(
                f"categorical= names {listing(missing)}, and the explanatory columns are {listing(columns)}."
                f"{meant(missing[0], columns)}"
            )
        missing = [name for name in self.references if name not in columns]
        if missing:
            raise MissingColumnError(
                f"reference= names {listing(missing)}, and the explanatory columns are {listing(columns)}."
                f"{meant(missing[0], columns)} Of a response it is the label itself: reference='a'."
            )

    def check_references(self, factors: Mapping[Hashable, Factor]) -> None:
        """Raise where a column with a reference level is no factor, or one that has a coefficient for each level."""
        for name in self.references:
            if name not in factors:
                raise OptionError(
                    f"reference= names {name!r}, which holds numbers and has no levels. Name it by categorical=, or "
                    "leave it out."
                )
            if factors[name].full:
                raise OptionError(
                    f"reference= of {name!r} has no effect: without an intercept the first factor has a coefficient "
                    "for each of its levels. Leave it out, or set fit_intercept=True."
                )


# -- tables in memory --------------------------------------------------------------------------------------------------


def is_sparse(X: Any) -> bool:
    """Whether X is a SciPy sparse matrix or array."""
    # Asked of the type: a frame of Spark Connect takes any name for that of a column.
    return hasattr(type(X), "tocsr") and hasattr(type(X), "nnz")


def is_matrix(X: object) -> bool:
    """Whether X is an array of numbers."""
    return isinstance(X, np.ndarray) and X.dtype.names is None and X.dtype.kind in "biuf"


def read_matrix(X: Any, columns: Any, coding: Coding) -> tuple[Design, DesignRows]:
    """A NumPy array of numbers, as it is, or a sparse matrix."""
    if is_sparse(X):
        matrix = X.tocsr().astype(np.float64)
        check_finite(matrix.data, "The sparse matrix")
        names = column_names(columns, matrix.shape[1])
        coding.check(())
        return Design(coding.constant, (), tuple(map(str, names))), DesignRows(
            np.empty((matrix.shape[0], 0)), (), matrix
        )
    names = column_names(columns, X.shape[1])
    coding.check(names)
    if coding.categorical:
        places = {name: number for number, name in enumerate(names)}
        return read_columns(names, lambda name: any_column(name, X[:, places[name]]), len(X), coding)
    reals = np.asarray(X, dtype=np.float64)
    check_finite(reals, "X")
    return Design(coding.constant, names), DesignRows(reals)


def column_names(columns: Any, width: int) -> tuple[Hashable, ...]:
    """Names of the columns of an array or of a list of rows: those given, or x0, x1, ..."""
    if columns is None:
        return tuple(f"x{number}" for number in range(width))
    names = (columns,) if isinstance(columns, str) else tuple(columns)
    if len(names) != width:
        raise DataError(f"columns= has {len(names)} names for an array of {width} columns; name every column.")
    return names


def unnamed_width(X: Any) -> int | None:
    """How many columns a list of rows, a list of values or an array has, whose columns have no names; else None."""
    if isinstance(X, np.ndarray):
        return None if X.dtype.names is not None or X.ndim > 2 else (X.shape[1] if X.ndim == 2 else 1)
    if not isinstance(X, list | tuple | range) or not len(X) or are_paths(X):
        return None
    if any(isinstance(row, Mapping) for row in X):
        return None
    rows: Sequence[Any] = X
    return len(rows[0]) if all(isinstance(row, list | tuple | np.ndarray) for row in rows) else 1


def open_rows(X: Any, columns: Any = None) -> Source:
    """A source of the rows; what has no names gets those of an array."""
    width = unnamed_width(X)
    return open_source(X) if width is None else open_source(X, columns=column_names(columns, width))


def read_columns(
    names: Sequence[Hashable], column: Callable[[Hashable], Column], rows: int, coding: Coding
) -> tuple[Design, DesignRows]:
    """A table by columns: numbers are real, text and categories are factors."""
    coding.check(names)
    factors = [name for name in names if is_factor(column(name), coding)]
    real = [name for name in names if name not in factors]
    reals = np.empty((rows, len(real)))
    for number, name in enumerate(real):
        reals[:, number] = numbers(column(name), "Column")
    entries: dict[Hashable, Factor] = {}
    codes: list[Codes] = []
    for name in factors:
        variable, column_codes = factor_codes(column(name), coding.declared(name))
        coding.check_levels(variable)
        counts = np.bincount(column_codes, minlength=variable.card)
        entries[name] = factor_of(variable, counts, coding, first=not entries)
        codes.append(pooled_codes(entries[name], variable, column_codes, "raise"))
    coding.check_references(entries)
    return Design(coding.constant, tuple(entries.get(name, name) for name in names)), DesignRows(reals, tuple(codes))


def is_factor(column: Column, coding: Coding) -> bool:
    """Whether a column is a factor: as declared, or because it holds something else than numbers."""
    if column.name in coding.categorical:
        return True
    if isinstance(column, NumberColumn):
        return False
    variable = column.infer()
    if variable.kind != "discrete":
        return False
    return variable.origin == "category" or not all_numbers(column.code().labels)


def all_numbers(states: Sequence[Hashable]) -> bool:
    """Whether all states are numbers or truth values."""
    return all(state is None or state_key(state)[0] in ("number", "bool") for state in states)


def factor_of(variable: Variable, counts: NDArray[Any], coding: Coding, *, first: bool) -> Factor:
    """A factor of the levels that some row holds, in their order but for the reference that was chosen, which leads.

    first: whether it is the first factor, which without an intercept has a coefficient for each level.
    """
    seen, full = np.flatnonzero(counts > 0), first and not coding.constant
    if variable.name in coding.references:
        wanted = coding.references[variable.name]
        leading = variable.find(wanted)
        if leading is None or leading not in seen:
            held = [variable.states[level] for level in seen.tolist()]
            raise OptionError(
                f"reference= of {variable.name!r} is {shortened(wanted)}, which no row holds.{meant(wanted, held)} Its "
                f"levels are: {listing(held)}."
            )
        seen = np.append(leading, seen[seen != leading])
    kept = replace(variable, states=tuple(variable.states[level] for level in seen.tolist()))
    return Factor(kept, counts[seen] / counts.sum(), full)


def check_width(width: int, expected: int) -> None:
    """Raise where rows without names have other columns than those of the fit; in the words of scikit-learn."""
    if width != expected:
        raise DataError(
            f"X has {width} features, but GLM is expecting {expected} features as input. Give the columns of the fit."
        )


def table_like(X: Any, design: Design, unknown: str, columns: Any = None) -> DesignRows:
    """New rows with the columns of a fitted design, found by name; of an array or a list of rows by position."""
    if is_sparse(X) or (is_matrix(X) and not design.factors):
        if X.ndim != 2:
            raise DataError(ONE_AXIS.format(axes=X.ndim))
        check_width(X.shape[1], len(design.sparse) or len(design.columns))
        X = _in_order(X, columns, design.sparse or design.columns)
        table = read_matrix(X, None, Coding(design.constant))[1]
        if bool(design.sparse) != (table.sparse is not None):
            return _turned(table, bool(design.sparse))
        return table
    if design.sparse:
        raise DataError("The model was fitted with a sparse matrix; give new rows as a matrix with the same columns.")
    names = [c.variable.name if isinstance(c, Factor) else c for c in design.columns]
    width = unnamed_width(X)
    if width is not None and columns is None:
        columns = names if width == len(names) else column_names(None, width)
        if not set(names) <= set(columns):
            check_width(width, len(names))
    source = open_source(X, columns=columns)
    if not isinstance(source, MemorySource):
        raise DataError("New rows must be in memory: read the file with pandas or polars, piece by piece.")
    source.check_columns(names)
    reals = np.empty((source.rows, len(design.reals)))
    for number, name in enumerate(design.reals):
        reals[:, number] = numbers(source.column(name), "Column")
    codes = []
    for factor in design.factors:
        variable, column_codes = factor_codes(source.column(factor.variable.name), None)
        codes.append(pooled_codes(factor, variable, column_codes, unknown))
    return DesignRows(reals, tuple(codes))


def _in_order(X: Any, columns: Any, learned: Sequence[Any]) -> Any:
    """A matrix whose columns are named, in the order of those that were learned."""
    if columns is None:
        return X
    names, known = list(listed_names(columns, "columns")), list(learned)
    if names == known:
        return X
    if len(names) != len(known) or set(names) != set(known):
        raise MissingColumnError(
            f"columns= names {listing(names)}; the model has learned {listing(known)}. Give a name for each column of "
            "the matrix, or leave columns= out where they are in this order."
        )
    return X[:, [names.index(name) for name in known]]


def _turned(table: DesignRows, sparse: bool) -> DesignRows:
    from scipy.sparse import csr_array

    if sparse:
        return DesignRows(np.empty((table.rows, 0)), (), csr_array(table.reals))
    return DesignRows(table.sparse.toarray())


def explanatory(source: Source, taken: Sequence[Any], columns: Any) -> tuple[Hashable, ...]:
    """The explanatory columns: those named, or all that have no other role."""
    if columns is not None:
        names = listed_names(columns, "columns")
        source.check_columns(names)
        return names
    used = {one for name in taken if name is not None for one in (name if isinstance(name, tuple) else (name,))}
    return tuple(name for name in source.columns if name not in used)


# -- beside the table --------------------------------------------------------------------------------------------------


def side_column(data: Any, source: Source | None, rows: int, what: str) -> Floats | None:
    """Weights, offset or exposure: an array, or the name of a column of the table."""
    if data is None:
        return None
    if source is not None and _names_column(data, source.columns):
        if not isinstance(source, MemorySource):
            raise OptionError(f"{what} of a stream is read with the rows.")
        column = source.column(data)
    elif isinstance(data, int | float | np.number):
        column = any_column(what, np.full(rows, float(data)))
    elif isinstance(data, str):
        raise MissingColumnError(
            f"{what} is {data!r}, which is no column of the data. Give its values or the name of a column."
        )
    else:
        column = any_column(what, data)
    if len(column) != rows:
        raise DataError(f"{what} has {len(column)} values for {rows} rows; give one a row.")
    return numbers(column, what)


def _names_column(data: object, columns: Sequence[Hashable]) -> bool:
    try:
        return data in columns
    except (TypeError, ValueError):
        return False


def offset_of(offset: Floats | None, exposure: Floats | None, link: str, *, predicted: bool = False) -> Floats | None:
    """Offset plus the log of the exposure, which only a log link takes.

    predicted: rows whose mean is asked for may have an exposure of 0, and with it a mean of 0.
    """
    if exposure is None:
        return offset
    if link != "log":
        raise OptionError(f"exposure= multiplies the mean and needs the log link; the link is {link!r}. Use offset=.")
    good = exposure >= 0.0 if predicted else exposure > 0.0
    if not good.all():
        row = int(np.argmin(good))
        raise DataError(f"exposure holds {float(exposure[row])!r} (row {row}); expected positive numbers.")
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(exposure) + (0.0 if offset is None else offset))


def checked_weights(weights: Floats | None) -> Floats | None:
    """Frequency weights, checked; weights that are all one are left out."""
    if weights is None:
        return None
    checked = check_weights(weights, 0)
    if not checked.sum() > 0.0:
        raise DataError("All weights are 0: there are no rows to learn from. Give weights above 0.")
    return None if (checked == 1.0).all() else checked
