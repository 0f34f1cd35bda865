"""What a command prints: text for people, JSON for programs."""

from __future__ import annotations

import csv
import gzip
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from suffice.errors import OptionError, require
from suffice.table import Table


def plain(value: object) -> Any:
    """The value in the types of JSON; a Table as its variables, states and nested values.

    JSON has no infinite numbers: NaN becomes null, and the others the texts "inf" and "-inf".
    """
    if isinstance(value, Table):
        states = {str(name): [plain(state) for state in value.states[name]] for name in value.variables}
        return {"variables": [plain(n) for n in value.variables], "states": states, "values": plain(value.values)}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float):
        return value if np.isfinite(value) else None if np.isnan(value) else str(value)
    if isinstance(value, str | int | bool) or value is None:
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, Sequence | set | frozenset):
        return [plain(inner) for inner in value]
    return _answer(value)


def _answer(value: object) -> Any:
    """A table of coefficients, a normal distribution or a mixture of those; the text of anything else."""
    from suffice.engines.gaussian import GaussianJoint
    from suffice.engines.mixtures import GaussianMixture
    from suffice.fitting.parameter_table import ParameterTable
    from suffice.models.bayesian.queries.joint_gaussian import JointGaussian

    if isinstance(value, ParameterTable):
        return {name: dict(zip(value.columns, plain(row), strict=True)) for name, row in value.rows}
    if not isinstance(value, GaussianJoint | JointGaussian | GaussianMixture):
        return str(value)
    parts = {"variables": plain(value.names), "mean": plain(value.mean), "covariance": plain(value.covariance)}
    if isinstance(value, GaussianMixture):
        parts |= {"weights": plain(value.weights), "means": plain(value.means), "covariances": plain(value.covariances)}
    return parts


def lines(values: Mapping[str, Any]) -> str:
    """Names and values, one to a line."""
    width = max((len(name) for name in values), default=0)
    return "\n".join(f"{name:<{width}}  {value}" for name, value in values.items())


def say(value: object, *, as_json: bool, text: str | None = None) -> None:
    """Print a result: as JSON, or as the given text, or as it prints itself."""
    if as_json:
        print(json.dumps(plain(value), ensure_ascii=False, allow_nan=False))
    else:
        print(_text(value) if text is None else text)


def _text(value: object) -> str:
    """As the value prints itself; a mixture of normal distributions as a table of them."""
    from suffice.engines.mixtures import GaussianMixture

    if not isinstance(value, GaussianMixture):
        return str(value)
    named = [str(name) for name in value.names]
    head = ["weight", *(f"mean of {name}" for name in named), *(f"sd of {name}" for name in named)]
    spreads = np.sqrt(np.diagonal(value.covariances, axis1=1, axis2=2))
    table = np.column_stack([value.weights, value.means, spreads])
    whole = [[1.0, *value.mean, *np.sqrt(np.diagonal(value.covariance))]] if len(table) > 1 else []
    rows = [head, *([f"{number:.6g}" for number in row] for row in [*table, *whole])]
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    shown = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    title = (
        f"mixture of {len(table)} normal distributions; the last line is that of all of them"
        if whole
        else "a normal distribution"
    )
    return "\n".join([title, *shown])


def write_rows(columns: Mapping[Any, Any], output: Path | None, *, as_json: bool) -> None:
    """Rows given as columns: to a file by its ending, or to the terminal as CSV or JSON lines."""
    names = [str(name) for name in columns]
    values = [plain(np.asarray(column, dtype=object)) for column in columns.values()]
    if output is None:
        (_write_json if as_json else _write_csv)(sys.stdout, names, values)
    elif output.name.endswith(".parquet"):
        pa = require("pyarrow", extra="files", purpose="Writing a Parquet file")
        pq = require("pyarrow.parquet", extra="files", purpose="Writing a Parquet file")
        pq.write_table(pa.table(dict(zip(names, values, strict=True))), output)
    elif output.name.endswith((".csv", ".csv.gz", ".jsonl")):
        opened: Any = gzip.open if output.name.endswith(".gz") else open
        with opened(output, "wt", encoding="utf-8", newline="") as stream:
            (_write_json if output.name.endswith(".jsonl") else _write_csv)(stream, names, values)
    else:
        raise OptionError(f"{str(output)!r}: rows are written to .csv, .csv.gz, .jsonl or .parquet.")


def _write_json(stream: TextIO, names: Sequence[str], values: Sequence[Sequence[Any]]) -> None:
    for row in zip(*values, strict=True):
        stream.write(json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False, allow_nan=False) + "\n")


def _write_csv(stream: TextIO, names: Sequence[str], values: Sequence[Sequence[Any]]) -> None:
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(names)
    writer.writerows(zip(*values, strict=True))
