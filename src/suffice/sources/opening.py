"""Any table in: what kind of data is this, and which source reads it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.checks import listed_names
from suffice.errors import DataError, OptionError, require
from suffice.registry import Registry
from suffice.sources import base
from suffice.sources.arrays import NumberColumn, array_column
from suffice.sources.base import Source
from suffice.sources.columns import Column
from suffice.sources.files import are_paths, find_files
from suffice.sources.memory import MemorySource, columns_source, matrix_source
from suffice.sources.weights import is_column_name
from suffice.statistics import Summary

if TYPE_CHECKING:
    import pyarrow as pa

_ACCEPTED = (
    "Accepted are: pandas, polars and Arrow tables and columns, a dict of columns, NumPy arrays, a list of values, of "
    "dicts or of rows, paths of Parquet and CSV files, Arrow datasets, DuckDB relations, Dask and Spark DataFrames, "
    "Ray Datasets, and iterators of frames."
)


def open_source(data: object, *, columns: object = None, sample_weight: object = None) -> Source:
    """A source for any table.

    Args:
        data: a pandas, polars or Arrow table or column; any frame that narwhals knows; a dict of columns; a NumPy array
            (one column, a matrix, or structured); a list of values, of dicts or of rows; the path or glob of Parquet or
            CSV files, or a list of them, also by URL; a folder of Parquet files in folders such as ``year=2024``; an
            Arrow reader or dataset; an iterator of frames; a DuckDB relation; a Dask or Spark DataFrame; a Ray
            Dataset; or a source, returned as it is.
        columns: names for the columns of arrays and lists (by default ``"x"`` for one, else 0, 1, ...); of anything
            that has names, the columns to use.
        sample_weight: one weight a row, or the name of the column that holds it.
    """
    if isinstance(data, Source):
        if columns is not None or sample_weight is not None:
            raise OptionError("The source is open already; give columns= and sample_weight= when it is opened.")
        return data
    names = _names(columns)
    source = _open(data, names)
    weight = sample_weight if is_column_name(sample_weight, source.columns) else None
    if names is not None:
        base.check_names(names)
        source.check_columns(names)
    if weight is not None:
        source.weigh_by(weight)
    elif sample_weight is not None:
        source.weigh(any_column("sample_weight", sample_weight))
    source.weighted = sample_weight is not None
    if names is not None:
        source.columns = tuple(name for name in names if name in source.columns)
    if not source.columns:
        raise DataError(f"The only column, {weight!r}, holds the weights; give the column that they belong to as well.")
    return source


def _names(columns: object) -> tuple[Hashable, ...] | None:
    return None if columns is None else listed_names(columns, "columns")


def _open(data: object, names: tuple[Hashable, ...] | None) -> Source:
    """By type; a library that is not loaded cannot have made the data, so none is loaded to find out."""
    if isinstance(data, str | Path):
        return _open_files([data])
    if isinstance(data, np.ndarray):
        return matrix_source(data, names)
    sites = sys.modules.get("suffice.sources.sites")
    if sites is not None and isinstance(data, sites.Rounds):
        opened: Source = sites.SitesSource(data)
        return opened
    if isinstance(data, Mapping):
        return columns_source({name: any_column(name, values) for name, values in data.items()})
    for library, opener in _LIBRARIES.items():
        module = sys.modules.get(library)
        source = None if module is None else opener(module, data, names)
        if source is not None:
            return source
    if isinstance(data, list | tuple | range):
        return _open_list(data, names)
    source = _open_elsewhere(data, names)
    return _open_other(data, names) if source is None else source


def _open_files(paths: Sequence[str | Path]) -> Source:
    require("pyarrow", extra="files", purpose="Reading files of rows")
    from suffice.sources.dataset import is_partitioned, partitioned_folder

    if len(paths) == 1 and is_partitioned(Path(paths[0])):
        return partitioned_folder(Path(paths[0]))
    format_, files = find_files(paths)
    if format_ == "parquet":
        from suffice.sources.parquet import ParquetSource

        return ParquetSource(files)
    from suffice.sources.csv import CsvSource

    return CsvSource(files)


def _open_list(data: Sequence[Any], names: tuple[Hashable, ...] | None) -> Source:
    """Paths, dicts, rows, or the values of one column."""
    if are_paths(data):
        return _open_files(data)
    if len(data) and all(isinstance(row, Mapping) for row in data):
        keys = dict.fromkeys(key for row in data for key in row)
        return columns_source({key: array_column(key, [row.get(key) for row in data]) for key in keys})
    if len(data) and all(isinstance(row, list | tuple | np.ndarray) for row in data):
        width = len(data[0])
        for number, row in enumerate(data):
            if len(row) != width:
                raise DataError(
                    f"Row {number} has {len(row)} values and row 0 has {width}; all rows must be equally long."
                )
        given = tuple(range(width)) if names is None else names
        if len(given) != width:
            raise DataError(f"columns= has {len(given)} names for rows of {width} values; name every column.")
        base.check_names(given)
        values = zip(*data, strict=True)
        return columns_source(
            {name: array_column(name, list(column)) for name, column in zip(given, values, strict=True)}
        )
    return _one_column("x", list(data), names)


def _one_column(name: Hashable, values: object, names: tuple[Hashable, ...] | None) -> Source:
    given = (name,) if names is None else names
    if len(given) != 1:
        raise DataError(f"columns= has {len(given)} names for a single column; give one name.")
    return columns_source({given[0]: any_column(given[0], values)})


def _open_other(data: Any, names: tuple[Hashable, ...] | None) -> Source:
    """What narwhals, the Arrow protocol or NumPy can read, or frames that come one after the other."""
    if isinstance(data, Iterator):
        return _open_frames(data)
    if hasattr(data, "__array__") and not hasattr(data, "__arrow_c_stream__"):
        return matrix_source(np.asarray(data), names)
    if not isinstance(data, int | float | bool | bytes | None):
        import narwhals.stable.v2 as nw

        frame = nw.from_native(data, pass_through=True)
        if isinstance(frame, nw.LazyFrame):
            from suffice.sources.lazy import narwhals_source

            return narwhals_source(frame)
        if isinstance(frame, nw.DataFrame):
            require("pyarrow", extra="files", purpose=f"Reading a {type(data).__name__}")
            return _open_arrow_table(frame.to_arrow())
    if hasattr(data, "__arrow_c_stream__"):
        pa = require("pyarrow", extra="files", purpose=f"Reading a {type(data).__name__}")
        return _open_arrow_table(pa.table(data))
    if isinstance(data, Summary):
        raise DataError("Rows are needed here, and a Summary holds sums over rows alone: give the rows.")
    raise DataError(f"Cannot read a table from {type(data).__name__}. {_ACCEPTED}")


def _open_frames(frames: Iterator[Any]) -> Source:
    """Frames of the same columns, such as a generator gives, each of which is one part of the rows."""
    pa = require("pyarrow", extra="files", purpose="Reading frames one after the other")
    from suffice.sources.stream import ReaderSource

    first = next(frames, None)
    if first is None:
        raise DataError("There is no frame to read; an iterator of frames must give at least one.")
    schema = _arrow_frame(first).schema

    def batches() -> Iterator[Any]:
        for number, frame in enumerate(chain([first], frames)):
            table = _arrow_frame(frame)
            lacking = [name for name in schema.names if name not in table.column_names]
            if lacking:
                raise base.missing_columns(lacking, table.column_names, f"frame {number}")
            try:
                yield from table.select(schema.names).cast(schema).to_batches()
            except pa.ArrowException as error:
                raise DataError(f"Frame {number} has other types than frame 0: {error}") from None

    return ReaderSource(pa.RecordBatchReader.from_batches(schema, batches()))


def _arrow_frame(frame: Any) -> pa.Table:
    import narwhals.stable.v2 as nw
    import pyarrow as pa

    known = nw.from_native(frame, eager_only=True, pass_through=True)
    if isinstance(known, nw.DataFrame):
        return known.to_arrow()
    if isinstance(frame, pa.RecordBatch | Mapping):
        return pa.table(frame)
    raise DataError(f"Cannot read a table from an iterator of {type(frame).__name__}. {_ACCEPTED}")


# --------------------------------------------------------------------------------------------------------------------
# Libraries: each opener returns None for data that is not its own
# --------------------------------------------------------------------------------------------------------------------


def _open_pandas(pd: ModuleType, data: object, names: tuple[Hashable, ...] | None) -> Source | None:
    if isinstance(data, pd.DataFrame):
        from suffice.sources.frames import PandasCategory, pandas_column

        labels = data.columns.tolist()
        base.check_names(tuple(labels))
        numbers = {name: number for number, name in enumerate(labels)}

        kept = _kept_columns(pd, data)

        def column(name: Hashable) -> Column:
            if name in kept:
                return (array_column if isinstance(kept[name], np.ndarray) else PandasCategory)(name, kept[name])
            # A string can only be the name of a column; of other names pandas may make something else.
            plain = type(name) is str and data.columns.nlevels == 1
            return pandas_column(name, data[name] if plain else data.iloc[:, numbers[name]])

        return MemorySource(labels, column, len(data))
    if isinstance(data, pd.Series | pd.Index | pd.api.extensions.ExtensionArray):
        return _one_column("x" if getattr(data, "name", None) is None else data.name, data, names)
    return None


def _kept_columns(pd: ModuleType, data: Any) -> dict[Hashable, Any]:
    """The columns of a frame that are categories or arrays of NumPy, without the Series that pandas wraps around each.

    A Series takes longer to make than a small column to count. Where pandas has no such way in, there are none.
    """
    read = getattr(data, "_get_column_array", None)
    if read is None:
        return {}

    def taken(kind: Any) -> bool:
        return isinstance(kind, pd.CategoricalDtype) or (isinstance(kind, np.dtype) and kind.kind in "biufO")

    kinds = enumerate(zip(data.columns.tolist(), data.dtypes, strict=True))
    return {name: read(number) for number, (name, kind) in kinds if taken(kind)}


def _open_polars(pl: ModuleType, data: object, names: tuple[Hashable, ...] | None) -> Source | None:
    if isinstance(data, pl.DataFrame):
        from suffice.sources.frames import polars_column

        return MemorySource(data.columns, lambda name: polars_column(name, data[name]), data.height)
    if isinstance(data, pl.LazyFrame):
        from suffice.sources.lazy import LazyPolars

        return LazyPolars(data)
    return _one_column(data.name or "x", data, names) if isinstance(data, pl.Series) else None


def _open_pyarrow(pa: ModuleType, data: object, names: tuple[Hashable, ...] | None) -> Source | None:
    datasets = sys.modules.get("pyarrow.dataset")
    if datasets is not None and isinstance(data, datasets.Dataset):
        from suffice.sources.dataset import DatasetSource

        return DatasetSource(data)
    if isinstance(data, pa.RecordBatchReader):
        from suffice.sources.stream import ReaderSource

        return ReaderSource(data)
    if isinstance(data, pa.Table | pa.RecordBatch):
        return _open_arrow_table(data)
    return _one_column("x", data, names) if isinstance(data, pa.Array | pa.ChunkedArray) else None


def _open_arrow_table(table: pa.Table) -> Source:
    from suffice.sources.arrow import ArrowColumn

    base.check_names(tuple(table.schema.names))
    return MemorySource(table.schema.names, lambda name: ArrowColumn(name, table.column(name)), table.num_rows)


def _open_duckdb(duckdb: ModuleType, data: object, names: tuple[Hashable, ...] | None) -> Source | None:
    if not isinstance(data, duckdb.DuckDBPyRelation):
        return None
    from suffice.sources.sql import RelationSource

    return RelationSource(data)


def _open_dask(dask: ModuleType, data: object, names: tuple[Hashable, ...] | None) -> Source | None:
    if isinstance(data, dask.Series):
        data = data.to_frame("x" if data.name is None else data.name)
    if not isinstance(data, dask.DataFrame):
        return None
    from suffice.sources.dask import DaskSource

    return DaskSource(data)


def _open_spark(sql: ModuleType, data: object, names: tuple[Hashable, ...] | None) -> Source | None:
    if not isinstance(data, sql.DataFrame):
        return None
    from suffice.sources.spark import SparkSource

    return SparkSource(data)


def _open_ray(data_of_ray: ModuleType, data: object, names: tuple[Hashable, ...] | None) -> Source | None:
    if not isinstance(data, data_of_ray.Dataset):
        return None
    from suffice.sources.ray import RaySource

    return RaySource(data)


#: What opens data of a library: its module, the data and the names of columns in, a source out; None for other data.
Opener = Callable[[Any, Any, tuple[Hashable, ...] | None], Source | None]

_LIBRARIES: Mapping[str, Opener] = {
    "dask.dataframe": _open_dask,
    "pyspark.sql": _open_spark,
    "ray.data": _open_ray,
    "duckdb": _open_duckdb,
    "pandas": _open_pandas,
    "polars": _open_polars,
    "pyarrow": _open_pyarrow,
}

#: Openers of other packages by the module of the library whose data they read, also as entry points.
_ELSEWHERE: Registry[Opener] = Registry("suffice.sources")


def register_source(library: str, opener: Opener) -> None:
    """Let data of a library be read: `opener` is asked where the module of that name is loaded.

    A data frame, a column or a file of it becomes a `Source`. An entry point of the group ``suffice.sources``, named
    like the module, does the same for all who install a package.
    """
    _ELSEWHERE.register(library, lambda: opener)


def _open_elsewhere(data: object, names: tuple[Hashable, ...] | None) -> Source | None:
    """By the openers of other packages; only a library that is loaded can have made the data."""
    for library in _ELSEWHERE.names():
        module = sys.modules.get(library)
        opener = None if module is None else _ELSEWHERE.find(library)
        source = None if opener is None else opener(module, data, names)
        if source is not None:
            return source
    return None


def any_column(name: Hashable, values: object) -> Column:
    """A column from a Series, an Arrow array, a NumPy array or a list."""
    if type(values) is np.ndarray and values.ndim == 1 and values.dtype.kind in "biuf":
        return NumberColumn(name, values)  # What most columns are, without a look at what else they might be.
    loaded = {library: sys.modules.get(library) for library in ("pandas", "polars", "pyarrow")}
    pd, pl, pa = (loaded[library] for library in ("pandas", "polars", "pyarrow"))
    if pd is not None and isinstance(values, pd.Series | pd.Index | pd.api.extensions.ExtensionArray):
        from suffice.sources.frames import pandas_column

        return pandas_column(name, values if isinstance(values, pd.Series) else pd.Series(values))
    if pl is not None and isinstance(values, pl.Series):
        from suffice.sources.frames import polars_column

        return polars_column(name, values)
    if pa is not None and isinstance(values, pa.Array | pa.ChunkedArray):
        from suffice.sources.arrow import ArrowColumn

        return ArrowColumn(name, values)
    return array_column(name, values)
