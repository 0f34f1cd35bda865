"""What is known about each step of each sequence becomes one sparse matrix (steps, features).

A step is a dict of features (truth values, numbers, text), a list of names, or a row of an array or sparse matrix.
"""

from __future__ import annotations

import zlib
from array import array
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, count, repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.engines.label_scores import Matrix
from suffice.errors import DataError, MissingValueError, OptionError

Ints = NDArray[np.int64]

_NUMBERS = (int, float, np.integer, np.floating)


@dataclass(frozen=True, eq=False)
class FeatureSpace:
    """The columns of the design.

    `kind` is "named" (dicts and lists of names), "columns" (arrays) or "hashed" (names, by a digest of their text);
    `names` are those of named columns, `width` counts all columns, the one of the bias included, which is the last.
    """

    kind: str
    width: int
    names: tuple[str, ...] = ()
    bias: bool = False

    @cached_property
    def places(self) -> dict[str, int]:
        """Column by name."""
        return {name: place for place, name in enumerate(self.names)}

    @property
    def labels(self) -> tuple[Any, ...]:
        """A name for each column: text, or the number of the column."""
        own = self.width - self.bias
        return (*(self.names if self.kind == "named" else range(own)), *(("bias",) if self.bias else ()))


@dataclass(frozen=True, eq=False)
class Sequences:
    """Sequences as one design; sequence s has the steps from ``offsets[s]`` to ``offsets[s + 1]``."""

    design: Matrix
    offsets: Ints
    space: FeatureSpace

    def __len__(self) -> int:
        """How many sequences there are."""
        return len(self.offsets) - 1

    def without_zeros(self) -> Sequences:
        """The same without entries of 0, and without values where all that are left are 1."""
        design = self.design
        if not len(design.values):
            return self
        if (design.values == 1.0).all():
            return replace(self, design=replace(design, values=np.zeros(0)))
        kept = design.values != 0.0
        counts = np.bincount(design.row_of_entry[kept], minlength=design.rows)
        values = design.values[kept]
        values = values[:0] if (values == 1.0).all() else values
        indptr = np.concatenate(([0], np.cumsum(counts)))
        return replace(self, design=Matrix(indptr, design.indices[kept], values, design.columns))

    def narrowed(self, kept: NDArray[np.bool_]) -> Sequences:
        """Only some columns of a named design (the bias is kept)."""
        design, space = self.design, self.space
        places = np.cumsum(kept) - 1
        inside = kept[design.indices]
        counts = np.bincount(design.row_of_entry[inside], minlength=design.rows)
        values = design.values[inside] if len(design.values) else design.values
        indptr = np.concatenate(([0], np.cumsum(counts)))
        names = tuple(name for name, keep in zip(space.names, kept.tolist(), strict=False) if keep)
        width = int(kept.sum())
        return Sequences(
            Matrix(indptr, places[design.indices[inside]].astype(np.int32), values, width),
            self.offsets,
            replace(space, names=names, width=width),
        )


def read_sequences(
    X: Any, *, space: FeatureSpace | None = None, hashing: int | None = None, bias: bool = False, grow: bool = False
) -> Sequences:
    """Read sequences of steps.

    space: the columns of an earlier fit; names that it does not have are left out, or added with `grow`. hashing: the
    number of columns that names are spread over. bias: one more column, of ones.
    """
    sequences = _listed(X)
    kind = _kind_of(sequences)
    if space is not None and (space.kind == "columns") != (kind == "columns"):
        raise DataError(
            f"The model was fitted to {'arrays' if space.kind == 'columns' else 'named features'}; these sequences "
            f"hold {'rows of an array' if kind == 'columns' else 'named features'}."
        )
    found = _columns(sequences) if kind == "columns" else _named(sequences, space, hashing, grow)
    if kind == "columns" and hashing is not None:
        raise OptionError("hashing is for named features; the columns of an array are numbered already.")
    if space is not None and kind == "columns" and found.space.width != space.width - space.bias:
        raise DataError(
            f"The steps have {found.space.width} columns; the model was fitted to {space.width - space.bias}."
        )
    return _with_bias(found) if (space.bias if space is not None else bias) else found


def _listed(X: Any) -> list[Any]:
    if isinstance(X, str | bytes | Mapping) or not isinstance(X, Iterable):
        raise DataError(f"X is a {type(X).__name__}; expected a list of sequences, each a list of steps or an array.")
    sequences = list(X)
    if not sequences:
        raise DataError("X holds no sequence; expected at least one.")
    for s, sequence in enumerate(sequences):
        if hasattr(sequence, "shape"):
            continue
        if isinstance(sequence, str | bytes | Mapping) or not hasattr(sequence, "__len__"):
            raise DataError(
                f"Sequence {s} of X is a {type(sequence).__name__}; expected a list of steps or an array (steps, "
                "features). A single sequence goes into a list."
            )
        if len(sequence) == 0:
            raise DataError(f"Sequence {s} of X is empty; every sequence needs at least one step. Leave it out.")
    return sequences


def _kind_of(sequences: list[Any]) -> str:
    first = sequences[0]
    if hasattr(first, "tocsr") or (hasattr(first, "shape") and len(first.shape) == 2):
        return "columns"
    step = first[0]
    if isinstance(step, np.ndarray) and step.dtype.kind in "biuf":
        return "columns"
    if isinstance(step, list | tuple) and step and isinstance(step[0], _NUMBERS) and not isinstance(step[0], bool):
        return "columns"
    if isinstance(step, _NUMBERS):
        raise DataError(
            "Sequence 0 of X, step 0, is a number; a step is a dict of features, a list of names or a row of an "
            "array. For one number a step give an array of shape (steps, 1)."
        )
    return "named"


# -- arrays -----------------------------------------------------------------------------------------------------------


def _columns(sequences: list[Any]) -> Sequences:
    """Arrays and sparse matrices, one for each sequence."""
    parts = [_triple(sequence, s) for s, sequence in enumerate(sequences)]
    widths = [part[3] for part in parts]
    for s, width in enumerate(widths):
        if width != widths[0]:
            raise DataError(f"Sequence {s} of X has {width} features; sequence 0 has {widths[0]}.")
    lengths = np.array([len(part[0]) for part in parts])
    counts = np.concatenate([part[0] for part in parts])
    indptr = np.concatenate(([0], np.cumsum(counts)))
    indices = np.concatenate([part[1] for part in parts]).astype(np.int32)
    values = np.concatenate([part[2] for part in parts])
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    return Sequences(Matrix(indptr, indices, values, widths[0]), offsets, FeatureSpace("columns", widths[0]))


def _triple(sequence: Any, s: int) -> tuple[Any, Any, Any, int]:
    """Entries of each step, their columns and values, and the number of columns, of one array."""
    if hasattr(sequence, "tocsr"):
        matrix = sequence.tocsr()
        values = np.asarray(matrix.data, np.float64)
        counts, columns, width = np.diff(matrix.indptr), matrix.indices, matrix.shape[1]
    else:
        try:
            dense = np.asarray(sequence, np.float64)
        except (TypeError, ValueError) as error:
            raise DataError(f"Sequence {s} of X is no array of numbers: {error}.") from None
        if dense.ndim != 2:
            raise DataError(f"Sequence {s} of X has shape {dense.shape}; expected (steps, features).")
        width = dense.shape[1]
        counts = np.full(len(dense), width)
        columns, values = np.tile(np.arange(width), len(dense)), dense.ravel()
    if len(counts) == 0:
        raise DataError(f"Sequence {s} of X is empty; every sequence needs at least one step. Leave it out.")
    if not np.isfinite(values).all():
        entry = int(np.flatnonzero(~np.isfinite(values))[0])
        step = int(np.searchsorted(np.cumsum(counts), entry, side="right"))
        raise MissingValueError(
            f"Sequence {s} of X, step {step}: feature {int(columns[entry])} is {values[entry]}; expected a finite "
            "number."
        )
    return counts, columns, values, width


# -- names ------------------------------------------------------------------------------------------------------------


def _named(sequences: list[Any], space: FeatureSpace | None, hashing: int | None, grow: bool) -> Sequences:
    """Dicts and lists of names."""
    codes, values, counts, keys = _interned(sequences)
    lengths = np.array([len(sequence) for sequence in sequences])
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    names = [key if isinstance(key, str) else f"{key[0]}:{key[1]}" for key in keys]
    if space is not None and space.kind == "hashed":
        hashing = space.width - space.bias
    if hashing is not None:
        if not (isinstance(hashing, int | np.integer) and hashing > 0):
            raise OptionError(f"hashing is {hashing!r}; expected the number of columns, or None.")
        table = np.array([zlib.crc32(name.encode()) % hashing for name in names], np.int32)
        found = FeatureSpace("hashed", int(hashing))
    else:
        places = {} if space is None else dict(space.places)
        if space is None or grow:
            table = np.array([places.setdefault(name, len(places)) for name in names], np.int32)
        else:
            table = np.array([places.get(name, -1) for name in names], np.int32)
        found = FeatureSpace("named", len(places), tuple(places))
    columns = table[codes] if len(names) else np.zeros(0, np.int32)
    if len(table) and table.min() < 0:
        known = columns >= 0
        steps = np.repeat(np.arange(len(counts)), counts)
        counts = np.bincount(steps[known], minlength=len(counts))
        columns, values = columns[known], values[known]
    indptr = np.concatenate(([0], np.cumsum(counts)))
    return Sequences(Matrix(indptr, columns, values, found.width), offsets, found)


def _interned(sequences: list[Any]) -> tuple[Ints, NDArray[np.float64], Ints, list[Any]]:
    """Codes and values of all entries, entries of each step, and the keys that the codes stand for."""
    index: defaultdict[Any, int] = defaultdict(count().__next__)
    codes, values, counts = array("q"), array("d"), array("q")
    code_of = index.__getitem__
    for s, sequence in enumerate(sequences):
        if set(map(type, sequence)) == {list}:
            codes.extend(map(code_of, chain.from_iterable(sequence)))
            counts.extend(map(len, sequence))
            values.extend(repeat(1.0, len(codes) - len(values)))
            continue
        for t, step in enumerate(sequence):
            before = len(codes)
            if type(step) is dict or isinstance(step, Mapping):
                for key, value in step.items():
                    if type(value) is str:
                        codes.append(index[key, value])
                        values.append(1.0)
                    else:
                        _enter(index, codes, values, key, value, s, t)
            elif isinstance(step, str):
                codes.append(index[step])
                values.append(1.0)
            elif isinstance(step, Iterable):
                codes.extend(map(code_of, sorted(step) if isinstance(step, set | frozenset) else step))
                values.extend([1.0] * (len(codes) - before))
            else:
                raise DataError(
                    f"Sequence {s} of X, step {t}, is a {type(step).__name__}; expected a dict of features or a list "
                    "of names, as in the steps before."
                )
            counts.append(len(codes) - before)
    keys = list(index)
    for code, key in enumerate(keys):
        if not isinstance(key[0] if isinstance(key, tuple) and len(key) == 2 else key, str):
            _refuse(key, code, codes, counts, sequences)
    found = np.frombuffer(codes, np.int64), np.frombuffer(values, np.float64), np.frombuffer(counts, np.int64)
    return *found, keys


def _enter(index: Any, codes: Any, values: Any, key: Any, value: Any, s: int, t: int) -> None:
    """One feature of a dict whose value is not text."""
    if isinstance(value, bool | np.bool_ | int | float | np.integer | np.floating):
        if not np.isfinite(value):
            raise MissingValueError(
                f"Sequence {s} of X, step {t}: feature {key!r} is {value!r}; expected a finite number, a truth value "
                "or text. Leave the feature out where it is not known."
            )
        codes.append(index[key])
        values.append(float(value))
    elif isinstance(value, str):
        codes.append(index[key, str(value)])
        values.append(1.0)
    elif isinstance(value, Mapping):
        for inner, what in value.items():
            if isinstance(what, str):
                _enter(index, codes, values, f"{key}:{inner}", str(what), s, t)
            else:
                _enter(index, codes, values, f"{key}:{inner}", what, s, t)
    elif isinstance(value, Sequence | set | frozenset) and not isinstance(value, bytes):
        for inner in sorted(value) if isinstance(value, set | frozenset) else value:
            _enter(index, codes, values, key, inner if isinstance(inner, str) else str(inner), s, t)
    else:
        raise MissingValueError(
            f"Sequence {s} of X, step {t}: feature {key!r} is {value!r}; expected a number, a truth value or text. "
            "Leave the feature out where it is not known."
        )


def _refuse(key: Any, code: int, codes: Any, counts: Any, sequences: list[Any]) -> None:
    """Say where a name that is no text stands."""
    entry = int(np.flatnonzero(np.array(codes) == code)[0])
    step = int(np.searchsorted(np.cumsum(np.array(counts)), entry, side="right"))
    offsets = np.cumsum([len(sequence) for sequence in sequences])
    s = int(np.searchsorted(offsets, step, side="right"))
    within = step - (int(offsets[s - 1]) if s else 0)
    raise DataError(f"Sequence {s} of X, step {within}: the feature {key!r} is no text; names of features are text.")


def _with_bias(found: Sequences) -> Sequences:
    """One more column, of ones, after the others."""
    design, space = found.design, found.space
    values = design.values if len(design.values) else np.ones(len(design.indices))
    ends = design.indptr[1:]
    wider = Matrix(
        design.indptr + np.arange(design.rows + 1),
        np.insert(design.indices, ends, design.columns),
        np.insert(values, ends, 1.0),
        design.columns + 1,
    )
    return replace(found, design=wider, space=replace(space, width=space.width + 1, bias=True))
