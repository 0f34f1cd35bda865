"""Rows and texts read into memory: columns of tables, lines of files."""

from __future__ import annotations

import glob
import sys
from collections.abc import Hashable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.domain import Domain
from suffice.errors import DataError
from suffice.sources.tagged_text import Line, lines_of_file

#: Whole numbers up to here are kept in machine words.
MOST = 1 << 62


def columns_in_memory(
    data: object, names: Sequence[Hashable] | None = None
) -> tuple[Domain, dict[Hashable, NDArray[Any]]]:
    """What the columns of files hold, and the columns as the library reads them.

    Numbers are floats, states that are whole numbers without missing values integers, all others objects with None for
    a missing value.
    """
    from suffice.fitting.summaries import resolved_domain
    from suffice.sources import open_source

    source = open_source(data)
    wanted = list(source.columns if names is None else dict.fromkeys(names))
    source.check_columns(wanted)
    domain = resolved_domain(source, dict.fromkeys(wanted))
    source.undeclared = {}  # The rows are only brought here; what their integers are, the model that reads them knows.
    parts: dict[Hashable, list[NDArray[Any]]] = {name: [] for name in wanted}
    for batch in source.batches(domain):
        for name, reals in zip(batch.real, batch.reals, strict=True):
            parts[name].append(np.array(reals))
        for name, codes in zip(batch.discrete, batch.codes, strict=True):
            states = np.empty(batch.domain[name].card + 1, dtype=object)
            states[:-1] = batch.domain[name].states
            parts[name].append(states[codes])
    return domain, {name: _whole(np.concatenate(arrays)) if arrays else np.empty(0) for name, arrays in parts.items()}


def _whole(column: NDArray[Any]) -> NDArray[Any]:
    """A column of objects that are all whole numbers as integers."""
    if column.dtype != object or not all(type(value) is int and abs(value) < MOST for value in column):
        return column
    return column.astype(np.int64)


def files_of(data: Sequence[str]) -> list[str]:
    """Paths, globs expanded; a file that is not there is an error. ``-`` stays."""
    paths: list[str] = []
    for item in data:
        if item == "-" or Path(item).is_file():
            paths.append(item)
            continue
        matches = sorted(path for path in glob.glob(item, recursive=True) if Path(path).is_file())
        if not matches:
            raise DataError(f"There is no file {item!r}. Check the path and the folder it is read from.")
        paths += matches
    return paths


def lines_of(data: Sequence[str]) -> Iterator[Line]:
    """File, number and text of every line of some files, plain or gzipped; ``-`` is stdin."""
    for path in files_of(data):
        if path == "-":
            yield from ((path, number, line.rstrip("\n")) for number, line in enumerate(sys.stdin, 1))
        else:
            yield from lines_of_file(path)
