"""Rows with missing values left out of a regression, where `missing="drop"` asks for it, and said how many."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.array_types import Flags
from suffice.checks import is_name
from suffice.errors import DataError, LeftOutWarning, OptionError, listing, shortened, warn
from suffice.fitting.contract import Inputs
from suffice.fitting.fit import Fit
from suffice.models.glm import response as responses
from suffice.models.glm.error_kinds import columns_of
from suffice.models.glm.fit_options import FitOptions
from suffice.models.glm.formula import as_frame
from suffice.models.glm.input import explanatory, is_matrix, is_sparse, open_rows
from suffice.sources.arrays import NumberColumn
from suffice.sources.columns import Column
from suffice.sources.memory import MemorySource
from suffice.sources.opening import any_column
from suffice.statistics import Summary

if TYPE_CHECKING:
    from suffice.models.glm.fitted import GLMFitted

#: What is given beside the rows, a value for each.
_BESIDE = ("y", "sample_weight", "offset", "exposure", "trials")


def complete_rows(given: Inputs, options: FitOptions) -> tuple[Inputs, str]:
    """The rows without those that miss a value of a column in use, and what to say of these; "" where there are none.

    Where missing values are to raise the rows come back as they are.
    """
    if options.given["missing"] == "raise":
        return given, ""
    if isinstance(given.data, Summary):
        raise OptionError("missing='drop' has no effect on a Summary, which holds no rows. Leave missing= out.")
    missing = _missing_by_column(given, options)
    if not missing:
        return given, ""
    gone = np.logical_or.reduce(list(missing.values()))
    if gone.all():
        raise DataError(
            f"Every row misses a value of {listing(missing)}; no row is left. Leave out the columns that miss most."
        )
    kept = ~gone
    more = {name: _taken(value, kept) if name in _BESIDE else value for name, value in given.more.items()}
    counts = ", ".join(f"{name} ({int(flags.sum()):,})" for name, flags in missing.items())
    words = f"{int(gone.sum()):,} of {len(gone):,} rows left out, as values are missing: {counts}"
    return Inputs(_taken(given.data, kept), more), words


def noted(fit: Fit[GLMFitted], words: str) -> Fit[GLMFitted]:
    """A fit whose report says which rows were left out; a warning says so, too."""
    if words:
        warn(words, LeftOutWarning)
        report = fit.report
        assert report is not None
        fit._report = replace(report, warnings=(words, *report.warnings))
    return fit


def _missing_by_column(given: Inputs, options: FitOptions) -> dict[str, Flags]:
    """Which rows miss a value, for each column in use that misses any."""
    X, formula = given.data, options.given["formula"]
    flags: dict[str, Flags] = {}
    source: MemorySource | None = None
    if is_matrix(X) and X.ndim == 2:
        names = given["columns"] or [f"x{number}" for number in range(X.shape[1])]
        flags |= {str(name): np.isnan(X[:, number]) for number, name in enumerate(names) if X.dtype.kind == "f"}
    elif is_sparse(X):
        rows = X.tocsr()
        flags["the sparse matrix"] = np.asarray(np.isnan(rows.sum(axis=1))).ravel()
    else:
        opened = open_rows(X, given["columns"]) if formula is None else open_rows(as_frame(X))
        if not isinstance(opened, MemorySource):
            raise OptionError(
                "missing='drop' looks through rows in memory, and these are read where they are: leave rows with "
                "missing values out there, as DuckDB does by 'where x is not null'."
            )
        source = opened
        names = _columns_in_use(source, given, options)
        flags |= {str(name): _misses(source.column(name)) for name in names}
    for name in _BESIDE:
        value = given[name]
        if value is None or isinstance(value, str | int | float) or (source is not None and _names(value, source)):
            continue
        flags[name] = _misses_of(value, name)
    lengths = {len(one) for one in flags.values()}
    if len(lengths) > 1:
        raise DataError(
            f"The rows and what is given beside them have {listing(sorted(lengths))} values; give one a row."
        )
    return {name: one for name, one in flags.items() if one.any()}


def _names(value: object, source: MemorySource) -> bool:
    """Whether a value names a column, or several."""
    several = value if isinstance(value, tuple) else (value,)
    return all(is_name(one) and one in source.columns for one in several)


def _columns_in_use(source: MemorySource, given: Inputs, options: FitOptions) -> list[Hashable]:
    """Explanatory columns, and those that the response, weights, clusters and the like are given by."""
    named: list[Any] = []
    for name in _BESIDE:
        value = given[name]
        if value is not None and _names(value, source):
            named += value if isinstance(value, tuple) and value not in source.columns else [value]
    named += [name for name in columns_of(options.given["covariance"]) if name in source.columns]
    formula = options.given["formula"]
    if formula is not None:
        words = set(re.findall(r"[^\W\d]\w*", formula))
        own = [name for name in source.columns if name in words or f"`{name}`" in formula]
    else:
        own = list(explanatory(source, named, given["columns"]))
    return list(dict.fromkeys([*own, *named]))


def _misses(column: Column) -> Flags:
    """Which rows of a column have no value."""
    if isinstance(column, NumberColumn):
        none = np.zeros(len(column), dtype=np.bool_) if column.missing is None else column.missing
        return none | np.isnan(column.values) if column.values.dtype.kind == "f" else none
    coded = column.code()
    return np.asarray(np.asarray(coded.indices) == len(coded.labels))


def _misses_of(value: Any, name: str) -> Flags:
    """Which rows have no value in what is given beside the rows."""
    if getattr(value, "ndim", 1) == 2 and value.shape[1] > 1:
        return np.asarray(np.isnan(np.asarray(value, dtype=np.float64)).any(axis=1))
    return _misses(responses.as_column(value) if name == "y" else any_column(name, value))


def _taken(value: Any, kept: Flags) -> Any:
    """Some rows of data of any kind; names and numbers stay as they are."""
    kind = type(value)
    package = kind.__module__.partition(".")[0]
    if value is None or isinstance(value, str | int | float) or (isinstance(value, tuple) and len(value) != len(kept)):
        return value
    if isinstance(value, Mapping):
        return {name: _taken(one, kept) for name, one in value.items()}
    if is_sparse(value):
        return value.tocsr()[kept]
    if isinstance(value, np.ndarray):
        return value[kept]
    if package == "pandas":
        return value.loc[kept]
    if package in ("polars", "pyarrow"):
        return value.filter(kept.tolist())
    if isinstance(value, list | tuple):
        return [one for one, keep in zip(value, kept.tolist(), strict=True) if keep]
    raise OptionError(
        f"missing='drop' cannot leave rows out of {shortened(value)}; give a frame of pandas, polars or pyarrow, a "
        "dict of columns, or an array."
    )
