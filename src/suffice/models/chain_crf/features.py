"""What is known about each step of each sequence becomes one sparse matrix (steps, features).

A step is a dict of features (truth values, numbers, text), a list of names, or a row of an array or sparse matrix.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Ints
from suffice.checks import is_list
from suffice.engines.label_scores import Matrix
from suffice.errors import DataError, MissingValueError, OptionError
from suffice.models.chain_crf.names import interned
from suffice.models.conditional_field.labels import LARGEST, too_large
from suffice.sources.sequences import Sequences, is_table

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

    def of_columns(self, kept: NDArray[np.bool_]) -> FeatureSpace:
        """Some columns of a named space, the one of the bias among them."""
        names = tuple(name for name, keep in zip(self.names, kept.tolist(), strict=False) if keep)
        return replace(self, names=names, width=int(kept.sum()))

    @cached_property
    def places(self) -> dict[str, int]:
        """Column by name."""
        return {name: column for column, name in enumerate(self.names)}

    @property
    def labels(self) -> tuple[Any, ...]:
        """A name for each column: text, or the number of the column."""
        own = self.width - self.bias
        constant = "bias (of every step)" if "bias" in self.places else "bias"
        return (*(self.names if self.kind == "named" else range(own)), *((constant,) if self.bias else ()))


@dataclass(frozen=True, eq=False)
class StepDesign:
    """What is known about steps: a sparse matrix (steps, features), and what its columns stand for."""

    matrix: Matrix
    space: FeatureSpace

    def __getitem__(self, steps: slice | Ints) -> StepDesign:
        """Some steps."""
        return replace(self, matrix=self.matrix[steps])

    def arrays(self) -> list[NDArray[Any]]:
        """What tells it from others."""
        return [self.matrix.indptr, self.matrix.indices, self.matrix.values]

    def without_zeros(self) -> StepDesign:
        """The same without entries of 0, and without values where all that are left are 1."""
        matrix = self.matrix
        if len(matrix.values) and not (matrix.values == 1.0).all():
            matrix = matrix.entries_where(matrix.values != 0.0)
        return replace(self, matrix=replace(matrix, values=np.zeros(0)) if (matrix.values == 1.0).all() else matrix)

    def entries_of(self, kept: NDArray[np.bool_]) -> StepDesign:
        """The same columns, with entries in some of them alone."""
        return replace(self, matrix=self.matrix.entries_where(kept[self.matrix.indices]))

    def narrowed(self, kept: NDArray[np.bool_]) -> StepDesign:
        """Only some columns of a named design."""
        matrix, width = self.entries_of(kept).matrix, int(kept.sum())
        columns = (np.cumsum(kept) - 1).astype(np.int32)
        narrow = replace(matrix, indices=columns[matrix.indices], columns=width)
        return StepDesign(narrow, self.space.of_columns(kept))

    def with_bias(self) -> StepDesign:
        """One more column, of ones, after the others."""
        matrix, space = self.matrix, self.space
        ends = matrix.indptr[1:]
        wider = Matrix(
            matrix.indptr + np.arange(matrix.rows + 1),
            np.insert(matrix.indices, ends, matrix.columns),
            np.insert(matrix.values, ends, 1.0) if len(matrix.values) else matrix.values,
            matrix.columns + 1,
        )
        return StepDesign(wider, replace(space, width=space.width + 1, bias=True))


#: Sequences whose steps have a design.
DesignedSequences = Sequences[StepDesign]


def read_sequences(
    X: Iterable[Any],
    *,
    space: FeatureSpace | None = None,
    hashing: int | None = None,
    bias: bool = False,
    grow: bool = False,
) -> DesignedSequences:
    """Read sequences of steps.

    space: the columns of an earlier fit; names that it does not have are left out, or added with `grow`. hashing: the
    number of columns that names are spread over. bias: one more column, of ones.
    """
    sequences = listed_sequences(X)
    kind = _kind_of(sequences)
    if space is not None and (space.kind == "columns") != (kind == "columns"):
        raise DataError(
            f"The model was fitted to {'arrays' if space.kind == 'columns' else 'named features'}; these sequences "
            f"hold {'rows of an array' if kind == 'columns' else 'named features'}."
        )
    design, offsets = _columns(sequences) if kind == "columns" else _named(sequences, space, hashing, grow)
    if kind == "columns" and hashing is not None:
        raise OptionError("hashing is for named features; the columns of an array are numbered already.")
    if space is not None and kind == "columns" and design.space.width != space.width - space.bias:
        raise DataError(
            f"The steps have {design.space.width} columns; the model was fitted to {space.width - space.bias}."
        )
    design = design.with_bias() if (space.bias if space is not None else bias) else design
    return Sequences(design, offsets)


def listed_sequences(X: Iterable[Any]) -> list[Any]:
    """The sequences in a list, none of them empty."""
    if is_table(X) and not isinstance(X, list | tuple):
        raise DataError(
            f"X is a table ({type(X).__name__}), which fit, predict, score and evaluate read by group=; a list of "
            "sequences is expected here, each a list of steps or an array."
        )
    if isinstance(X, Mapping) or not is_list(X):
        raise DataError(
            f"X is of type {type(X).__name__}; expected a list of sequences, each a list of steps or an array."
        )
    if hasattr(X, "tocsr") or (isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "biuf"):
        raise DataError(
            f"X is one array of shape {X.shape}; expected a list with an array (steps, features) for each sequence. A "  # type: ignore[attr-defined]
            "single sequence goes into a list: [X]."
        )
    sequences = list(X)
    if not sequences:
        raise DataError("X holds no sequence; expected at least one.")
    for s, sequence in enumerate(sequences):
        if hasattr(sequence, "shape") and sequence.shape != ():
            continue
        if isinstance(sequence, str | bytes | Mapping) or not hasattr(sequence, "__len__"):
            raise DataError(
                f"Sequence {s} of X is of type {type(sequence).__name__}; expected a list of steps or an array "
                "(steps, features). A single sequence goes into a list."
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


def _columns(sequences: list[Any]) -> tuple[StepDesign, Ints]:
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
    return StepDesign(Matrix(indptr, indices, values, widths[0]), FeatureSpace("columns", widths[0])), offsets


def _triple(sequence: Any, s: int) -> tuple[Any, Any, Any, int]:
    """Entries of each step, their columns and values, and the number of columns, of one array."""
    if hasattr(sequence, "tocsr"):
        matrix = sequence.tocsr()
        values = np.asarray(matrix.data, np.float64)
        counts, columns, width = np.diff(matrix.indptr), matrix.indices, matrix.shape[1]
    else:
        try:
            dense = np.asarray(sequence, np.float64)
        except (TypeError, ValueError, OverflowError):
            raise DataError(f"Sequence {s} of X is no array of numbers: {_unlike(sequence)}.") from None
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
    if len(values) and max(-float(values.min()), float(values.max())) > LARGEST:
        entry = int(np.argmax(np.abs(values)))
        step = int(np.searchsorted(np.cumsum(counts), entry, side="right"))
        raise DataError(too_large(f"Sequence {s} of X, step {step}: feature {int(columns[entry])}", values[entry]))
    return counts, columns, values, width


def _unlike(sequence: Any) -> str:
    """Why the steps of a sequence make no array."""
    lengths = [len(step) if hasattr(step, "__len__") and not isinstance(step, str) else None for step in sequence]
    for t, length in enumerate(lengths):
        if length is None:
            return f"step {t} is of type {type(sequence[t]).__name__}"
        if length != lengths[0]:
            return f"step {t} has {length} features and step 0 has {lengths[0]}"
    return "a value is no number"


# -- names ------------------------------------------------------------------------------------------------------------


def _named(
    sequences: list[Any], space: FeatureSpace | None, hashing: int | None, grow: bool
) -> tuple[StepDesign, Ints]:
    """Dicts and lists of names."""
    codes, values, counts, names = interned(sequences)
    lengths = np.array([len(sequence) for sequence in sequences])
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    if space is not None and space.kind == "hashed":
        hashing = space.width - space.bias
    if hashing is not None:
        table = np.fromiter((zlib.crc32(name.encode()) % hashing for name in names), np.int32, len(names))
        columns_of = FeatureSpace("hashed", int(hashing))
    else:
        places = {} if space is None else dict(space.places)
        if space is None or grow:
            table = np.fromiter((places.setdefault(name, len(places)) for name in names), np.int32, len(names))
        else:
            table = np.fromiter((places.get(name, -1) for name in names), np.int32, len(names))
        columns_of = FeatureSpace("named", len(places), tuple(places))
    same = np.array_equal(table, np.arange(len(table)))
    columns = codes if same else table[codes]
    if len(table) and table.min() < 0:
        known = columns >= 0
        steps = np.repeat(np.arange(len(counts)), counts)
        counts = np.bincount(steps[known], minlength=len(counts))
        columns, values = columns[known], values[known] if len(values) else values
    indptr = np.concatenate(([0], np.cumsum(counts)))
    return StepDesign(Matrix(indptr, columns, values, columns_of.width), columns_of), offsets
