"""One small table with every kind of column, in every form that the library reads."""

import gzip
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from suffice.domain import Domain, Variable
from suffice.sources import open_source, summarize_source
from suffice.statistics import Counts, Moments, Patterns, Statistic, Summary, Sums

#: Text, whole numbers, truth values, floats and counts; "never" is a state that no row holds where categories say so.
ROWS = [
    ("red", 3, True, 0.5, 2),
    ("blue", 1, False, 0.1, 0),
    ("red", 3, False, 7.25, 5),
    ("green", 2, True, 1e-3, 1),
    ("blue", 3, True, 0.5, 2),
    ("red", 1, True, 3.0, 0),
    ("red", 3, True, 0.5, 2),
]
NAMES = ("colour", "size", "sold", "price", "visits")
COLUMNS: dict[str, list[Any]] = {name: [row[at] for row in ROWS] for at, name in enumerate(NAMES)}
DECLARED: Mapping[Any, Variable] = {"visits": Variable("visits", "count")}

STATISTICS: tuple[Statistic, ...] = (
    Counts(("colour", "size")),
    Counts(("sold",)),
    Counts(("size", "sold", "colour")),
    Moments(("price", "visits")),
    Sums.of(("price", "log"), ("visits", "x")),
    Patterns(("colour", "sold")),
    Patterns(("size", "price")),
)

Form = Callable[[Path], Any]


def pandas_frame() -> pd.DataFrame:
    return pd.DataFrame(COLUMNS)


def structured() -> np.ndarray[Any, Any]:
    types = [("colour", "U8"), ("size", "i4"), ("sold", "?"), ("price", "f8"), ("visits", "u2")]
    return np.array(ROWS, dtype=types)


def write_parquet(folder: Path) -> Path:
    pq.write_table(pa.table(COLUMNS), folder / "table.parquet", row_group_size=3)
    return folder / "table.parquet"


def write_csv(folder: Path) -> Path:
    pandas_frame().to_csv(folder / "table.csv", index=False)
    return folder / "table.csv"


def write_gzip(folder: Path) -> str:
    path = folder / "table.csv.gz"
    with gzip.open(path, "wt") as file:
        file.write(pandas_frame().to_csv(index=False))
    return str(path)


def write_parts(folder: Path) -> str:
    """Three files whose columns come in different orders."""
    frame = pandas_frame()
    for at, part in enumerate((frame[:3], frame[3:4], frame[4:])):
        part[list(np.roll(NAMES, at))].to_parquet(folder / f"part-{at}.parquet")
    return str(folder / "part-*.parquet")


def list_of_paths(folder: Path) -> list[str]:
    pandas_frame()[:2].to_csv(folder / "one.csv", index=False)
    pandas_frame()[2:].to_csv(folder / "two.csv", index=False)
    return [str(folder / "one.csv"), str(folder / "two.csv")]


def folder_of_files(folder: Path) -> Path:
    write_parts(folder)
    return folder


class Capsule:
    """A table that is known only by the Arrow protocol."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return pa.table(COLUMNS).__arrow_c_stream__(requested_schema)


FORMS: dict[str, Form] = {
    "dict of lists": lambda _: COLUMNS,
    "dict of arrays": lambda _: {name: np.array(values) for name, values in COLUMNS.items()},
    "dict of objects": lambda _: {name: np.array(values, dtype=object) for name, values in COLUMNS.items()},
    "dict of series": lambda _: dict(pandas_frame().items()),
    "list of dicts": lambda _: [dict(zip(NAMES, row, strict=True)) for row in ROWS],
    "structured array": lambda _: structured(),
    "pandas": lambda _: pandas_frame(),
    "pandas objects": lambda _: pandas_frame().astype(object),
    "pandas nullable": lambda _: pandas_frame().convert_dtypes(dtype_backend="numpy_nullable"),
    "pandas on Arrow": lambda _: pandas_frame().convert_dtypes(dtype_backend="pyarrow"),
    "pandas python strings": lambda _: pandas_frame().astype({"colour": pd.StringDtype("python")}),
    "pandas narrow": lambda _: pandas_frame().astype({"size": "int8", "visits": "uint16"}),
    "polars": lambda _: pl.DataFrame(COLUMNS),
    "polars lazy": lambda _: pl.LazyFrame(COLUMNS),
    "polars categorical": lambda _: pl.DataFrame(COLUMNS).with_columns(pl.col("colour").cast(pl.Categorical)),
    "Arrow table": lambda _: pa.table(COLUMNS),
    "Arrow chunks": lambda _: pa.concat_tables([pa.table(COLUMNS)[:2], pa.table(COLUMNS)[2:]]),
    "Arrow batch": lambda _: pa.RecordBatch.from_pydict(COLUMNS),
    "Arrow reader": lambda _: pa.table(COLUMNS).to_reader(max_chunksize=2),
    "Arrow protocol": lambda _: Capsule(),
    "Parquet": write_parquet,
    "Parquet glob": write_parts,
    "folder": folder_of_files,
    "CSV": write_csv,
    "CSV gzipped": write_gzip,
    "CSV list": list_of_paths,
}


def cut(patch: pytest.MonkeyPatch, rows: int) -> None:
    """Make batches of this many rows, in memory and from files."""
    patch.setattr("suffice.sources.base.BATCH_ROWS", rows)
    patch.setattr("suffice.sources.stream.BATCH_ROWS", rows)


def summary(data: Any, *, declared: Mapping[Any, Variable] = DECLARED, **options: Any) -> Summary:
    """The statistics of the small table, from any form of it."""
    source = open_source(data)
    return summarize_source(source, source.infer(NAMES, declared), STATISTICS, **options)


def counts_of(data: Any, *names: Any, declared: Mapping[Any, Variable] | None = None, **options: Any) -> Any:
    """States and the dense count table of some columns: ``(states of each, nested list)``."""
    source = open_source(data, **options)
    domain = source.infer(names, declared or {})
    found = summarize_source(source, domain, [Counts(names)])
    return tuple(found.domain[name].states for name in names), found[Counts(names)].dense().tolist()


def same_types(left: Any, right: Any) -> bool:
    """Equal values of equal types, element by element."""
    return len(left) == len(right) and all(type(a) is type(b) and a == b for a, b in zip(left, right, strict=True))


def states_of(domain: Domain) -> dict[Any, tuple[Any, ...]]:
    return {variable.name: variable.states for variable in domain.variables}
