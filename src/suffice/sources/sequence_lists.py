"""Sequences in lists and arrays: steps of plain Python and NumPy values, laid end to end."""

from __future__ import annotations

import sys
from collections.abc import Hashable, Iterable, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from suffice.array_types import Ints
from suffice.checks import listed_names
from suffice.domain import Variable, is_missing
from suffice.errors import DataError, KindWarning, shortened, warn
from suffice.sources.grouping import concatenated, values_of
from suffice.sources.opening import any_column
from suffice.sources.sequence_tables import has_names, read_steps, type_of_columns

ACCEPTED = (
    "Accepted are: a list of sequences (lists, tuples, texts, arrays), one array of all steps with lengths=, or a "
    "table with group= naming the column that tells the sequences apart."
)


#: Texts in a list from which on those that come again and again look like labels of steps.
FEWEST_LABELS = 6


def typed_states(data: object) -> tuple[Variable, ...] | None:
    """The states that a column of categories brings, or all columns of a list of sequences."""
    items = [data] if _is_column(data) else data if isinstance(data, list | tuple) else []
    if not items or not _is_column(items[0]) or not all(map(_is_column, items)):
        return None
    states = type_of_columns([any_column("state", item) for item in items])
    return None if states is None else (states,)


def laid_end_to_end(data: object, lengths: ArrayLike | None) -> tuple[NDArray[Any], Ints]:
    """The steps of all sequences, and where each begins."""
    if isinstance(data, np.ndarray) and data.dtype != object and data.ndim == 3 and lengths is None:
        return _joined([*data])
    if isinstance(data, np.ndarray) and data.dtype == object and data.ndim == 1 and _are_texts(data):
        return _flat(data, lengths)  # An array of texts holds steps, whether NumPy calls them texts or objects.
    if isinstance(data, np.ndarray) and not (data.dtype == object and data.ndim == 1 and _is_nested(data)):
        return _checked_array(data), step_offsets(lengths, len(data))
    if _is_column(data):
        values = values_of(any_column("state", data))
        return values, step_offsets(lengths, len(values))
    if not isinstance(data, Iterable):
        raise DataError(f"Cannot read sequences from {type(data).__name__}. {ACCEPTED}")
    items = data if isinstance(data, list | tuple | np.ndarray) else list(data)
    if len(items) == 0:
        raise DataError("There are no sequences: the data are empty. Give at least one, with at least one step.")
    if lengths is not None or not _is_nested(items):
        return _flat(items, lengths)
    return _joined(items)


def flat_values(values: Iterable[object]) -> NDArray[Any]:
    """One value a step, each as it is: a text is one value and no sequence of letters."""
    return _plain_array(list(values))


def _flat(items: Sequence[Any] | NDArray[Any], lengths: ArrayLike | None) -> tuple[NDArray[Any], Ints]:
    """A list of steps rather than of sequences: values, or rows of a matrix."""
    if all(isinstance(item, list | tuple | np.ndarray) for item in items):
        values = _step_matrix(items, "the data")
    else:
        values = _plain_array(list(items))
    return values, step_offsets(lengths, len(values))


def _is_column(data: object) -> bool:
    loaded = {library: sys.modules.get(library) for library in ("pandas", "polars", "pyarrow")}
    pd, pl, pa = (loaded[library] for library in ("pandas", "polars", "pyarrow"))
    return (
        (pd is not None and isinstance(data, pd.Series | pd.Index | pd.api.extensions.ExtensionArray))
        or (pl is not None and isinstance(data, pl.Series))
        or (pa is not None and isinstance(data, pa.Array | pa.ChunkedArray))
    )


def _is_sequence(item: object) -> bool:
    return isinstance(item, list | tuple | str | np.ndarray) or _is_column(item) or has_names(item)


def _is_nested(items: Sequence[Any] | NDArray[Any]) -> bool:
    """Whether a list holds sequences; a mixture of sequences and single values is an error."""
    examples = {type(item): item for item in items}
    kinds = {kind: _is_sequence(item) for kind, item in examples.items()}
    if any(kinds.values()) and not all(kinds.values()):
        wrong = next(number for number, item in enumerate(items) if not kinds[type(item)])
        raise DataError(
            f"Sequence {wrong} is {shortened(items[wrong])}, no sequence, while others are; each sequence must be a "
            "list, tuple, text or array, and one of a single step a list of one."
        )
    return any(kinds.values())


def _are_texts(items: Iterable[object]) -> bool:
    return all(isinstance(item, str) for item in items)


def _tell_of_labels(texts: Sequence[str] | NDArray[Any]) -> None:
    """Warn where a list of texts, each of which is a sequence of characters, looks like one sequence of labels."""
    different = set(texts)
    if len(texts) >= FEWEST_LABELS and 3 * len(different) <= len(texts) and max(map(len, different)) > 1:
        warn(
            f"The list holds {len(texts)} texts, of which {len(different)} differ, and is read as {len(texts)} "
            "sequences of characters. Where each text is a step, give [texts], one sequence of them; else say so by "
            "[list(text) for text in texts].",
            KindWarning,
        )


def _joined(items: Sequence[Any] | NDArray[Any]) -> tuple[NDArray[Any], Ints]:
    """Lay sequences end to end."""
    lengths = np.fromiter((len(item) for item in items), np.int64, len(items))
    if not lengths.all():
        empty = int(np.argmin(lengths))
        raise DataError(f"Sequence {empty} is empty; each sequence needs at least one step. Leave it out.")
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    if _are_texts(items):
        _tell_of_labels(items)
        return np.array(list("".join(items)), dtype=str), offsets
    if all(isinstance(item, list | tuple | str) for item in items) and not _holds_rows(items):
        return _plain_array(list(chain.from_iterable(items))), offsets
    parts = [_one_sequence(item, number) for number, item in enumerate(items)]
    widths = [None if part.ndim == 1 else part.shape[1] for part in parts]
    other = next((number for number, width in enumerate(widths) if width != widths[0]), None)
    if other is not None:
        raise DataError(
            f"Sequence 0 has {_described(widths[0])} and sequence {other} has {_described(widths[other])}; all "
            "sequences must have the same number of observations a step."
        )
    return concatenated(parts), offsets


def _described(width: int | None) -> str:
    return "one value a step" if width is None else f"{width} observations a step"


def _holds_rows(items: Sequence[Any] | NDArray[Any]) -> bool:
    """Whether steps are rows of several observations. Tuples stay single values: they may be states."""
    return any(isinstance(step, list | np.ndarray) for item in items if not isinstance(item, str) for step in item)


def _one_sequence(item: Any, number: int) -> NDArray[Any]:
    """The steps of one sequence (steps,) or (steps, width)."""
    if isinstance(item, np.ndarray):
        return _checked_array(item, f"sequence {number}")
    if has_names(item):
        return read_steps(item, None, None).values
    if _is_column(item):
        return values_of(any_column("state", item))
    if isinstance(item, str):
        return np.array(list(item), dtype=str)
    if any(isinstance(step, list | np.ndarray) for step in item):
        return _step_matrix(item, f"sequence {number}")
    return _plain_array(list(item))


def _step_matrix(rows: Sequence[Any] | NDArray[Any], what: str) -> NDArray[Any]:
    """Rows of observations as a matrix; rows of unequal length are an error."""
    widths = [len(row) if isinstance(row, list | tuple | np.ndarray) else -1 for row in rows]
    wrong = next((step for step, width in enumerate(widths) if width != widths[0] or width < 1), None)
    if wrong is not None:
        raise DataError(
            f"Step {wrong} of {what} has {max(widths[wrong], 0)} observations and step 0 has {max(widths[0], 0)}; all "
            "steps must have the same number, at least one."
        )
    flat = _plain_array(list(chain.from_iterable(rows)))
    return flat.reshape(len(rows), widths[0])


def _checked_array(array: NDArray[Any], what: str = "the data") -> NDArray[Any]:
    if type(array) is not np.ndarray and isinstance(array, np.ma.MaskedArray):  # Its package loads for no other.
        mask = np.ma.getmaskarray(array)
        array = np.asarray(array.data, dtype=np.float64 if array.dtype.kind in "iuf" else object).copy()
        array[mask] = np.nan if array.dtype.kind == "f" else None
    if array.ndim not in (1, 2) or (array.ndim == 2 and array.shape[1] == 0):
        raise DataError(
            f"The array of {what} has shape {array.shape}; expected one value a step, shape (steps,), or several, "
            "shape (steps, width)."
        )
    if array.dtype.kind not in "biufOUSmM":
        raise DataError(f"The array of {what} has the type {array.dtype}; expected numbers, text or objects.")
    return np.asarray(array)


def _plain_array(values: list[Any]) -> NDArray[Any]:
    """Values of one plain type as an array of it; anything else, missing values among them, as objects.

    Numbers with missing values become floats. Truth values among numbers stay what they are, since 1 and True are two
    states.
    """
    types = set(map(type, values))
    if types == {str}:
        return _objects(values)
    numbers = (int, float, np.integer, np.floating)
    if types == {bool} or all(issubclass(kind, numbers) and kind is not bool for kind in types):
        array = np.asarray(values)
        return array if array.dtype.kind in "biuf" else _objects(values)
    if float in types and all(issubclass(kind, numbers) or kind.__name__ in _MISSING for kind in types - {bool}):
        if bool not in types:
            return np.array([np.nan if is_missing(value) else value for value in values], dtype=np.float64)
    return _objects(values)


_MISSING = frozenset({"NoneType", "NAType", "NaTType"})


def _objects(values: list[Any]) -> NDArray[Any]:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def step_offsets(lengths: ArrayLike | None, steps: int) -> Ints:
    """Where each sequence begins, from the lengths; one sequence without them."""
    if lengths is None:
        if steps == 0:
            raise DataError("There are no sequences: the data have no steps. Give at least one.")
        return np.array([0, steps], dtype=np.int64)
    try:
        given = np.asarray(lengths)
    except ValueError:  # Lists of different lengths.
        given = np.zeros(0)
    if given.ndim != 1 or given.dtype.kind not in "iu":
        raise DataError(f"lengths is {shortened(lengths)}; expected one whole number for each sequence.")
    if len(given) == 0 or (given < 1).any():
        short = int(np.argmax(given < 1)) if len(given) else 0
        problem = f"sequence {short} has {int(given[short])} steps" if len(given) else "there is none"
        raise DataError(f"lengths must be at least 1 for each sequence; {problem}.")
    if int(given.sum()) != steps:
        raise DataError(f"lengths add up to {int(given.sum())}, but the data have {steps} steps; they must agree.")
    return np.concatenate([[0], np.cumsum(given)]).astype(np.int64)


def checked_names(columns: object, values: NDArray[Any]) -> list[Hashable] | None:
    """Names of the observations of a step, one for each; None where none are given."""
    if columns is None:
        return None
    names = list(listed_names(columns, "columns"))
    width = 1 if values.ndim == 1 else values.shape[1]
    if len(names) != width:
        raise DataError(f"columns= has {len(names)} names for {width} observations a step; name each of them.")
    return names
