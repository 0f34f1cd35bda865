"""Rows of a fit that are drawn or dealt out again, whatever they are: by how often each of them counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sized
from typing import Any

import numpy as np

from suffice.checks import weights_of
from suffice.errors import DataError, OptionError, shortened, warn
from suffice.fitting.matrices import matrix_of


def fit_arguments(data: object, y: object, given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a fit that were given, by name."""
    return {name: value for name, value in {"data": data, "y": y, **given}.items() if value is not None}


def unused_target(model: object, y: object, lengths: str = "") -> None:
    """Say that a target is not used by a model that has none; scikit-learn hands one to every model.

    Weights that were meant, or lengths of sequences, would be lost without a word.
    """
    if y is not None:
        named = f"Weights of rows are given by name: sample_weight=.{lengths}"
        warn(f"y is not used: a {type(model).__name__} has no target. {named}")


def rows_of_fit(model: Any, rows: Mapping[str, Any]) -> Mapping[str, Any]:
    """Rows for refits of a model: of a frame the columns that its fit has seen, as more would make another model.

    Columns that are named beside the rows stay. A target that the model does not have is remarked on, as in a fit.
    """
    if not model._has_target:
        unused_target(model, rows.get("y"))
    matrix, seen = matrix_of(rows.get("data")), None if model._fit is None else model._fit.seen
    if matrix is None or seen is None or "columns" in rows:
        return rows
    width, names = seen
    if matrix.names is None or names is None:
        of_columns = model._role().get("two_d_array", True)
        if of_columns and matrix.names is None and names is None and matrix.width != width:
            raise DataError(
                f"The rows have {matrix.width} columns, and this {type(model).__name__} was fitted to {width}. Give "
                "the rows of the fit."
            )
        return rows
    named = {*names.tolist(), *(value for value in rows.values() if isinstance(value, str))}
    kept = [name for name in matrix.names if name in named]
    return rows if len(kept) == matrix.width else {**rows, "data": rows["data"][kept]}


def cases(rows: Mapping[str, Any]) -> Callable[[np.random.Generator], dict[str, Any]]:
    """What draws cases with replacement: each of n rows as often as a multinomial draw says, by its weight."""
    refuse_tables(rows, "A bootstrap of cases draws whole sequences")
    n = count_rows(rows["data"])
    given = weights_of(rows.get("sample_weight"), n, "row")
    if not given.any():
        raise DataError("There are no rows to draw from, or all their weights are 0. Give the rows of the fit.")
    counts = bool((given == np.rint(given)).all())
    size, shares = (int(given.sum()), given / given.sum()) if counts else (n, np.full(n, 1.0 / n))

    def draw(rng: np.random.Generator) -> dict[str, Any]:
        times = rng.multinomial(size, shares).astype(np.float64)
        return {**rows, "sample_weight": times if counts else times * given}

    return draw


def refuse_tables(rows: Mapping[str, Any], purpose: str) -> None:
    """Raise where sequences lie in one table, or weights in one of its columns."""
    for name in ("group", "lengths"):
        if name in rows:
            raise OptionError(f"{purpose}, and {name}= leaves them in one table. Give a list of sequences.")
    if isinstance(rows.get("sample_weight"), str):
        raise OptionError("sample_weight= is the name of a column; give its values, and rows without it.")


def count_rows(data: Any) -> int:
    """How many rows, sequences or examples data in memory have."""
    counted = next(iter(data.values()), ()) if isinstance(data, Mapping) else data
    shape = getattr(counted, "shape", None)
    if shape is None and isinstance(counted, Sized) and not isinstance(counted, str | bytes):
        shape = (len(counted),)
    size = getattr(counted, "num_rows", shape[0] if shape else None)
    if isinstance(size, int):
        return size
    raise OptionError(
        f"Rows are drawn or dealt out in memory, and those given are {shortened(data)}. Give a frame, an array, a "
        "mapping of columns, or a list of sequences or examples."
    )
