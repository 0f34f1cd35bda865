"""Labels of sequences become codes, in an order that does not depend on the order of the sequences where it can."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from suffice.array_types import Floats, Ints
from suffice.checks import is_list, weights_of
from suffice.errors import DataError, MissingValueError, UnknownStateError, listing, shortened

#: What messages call the things that have labels, and the places of their labels.
Words = tuple[str, str]
SEQUENCES: Words = ("sequence", "step")
#: Numbers beyond this overflow when they are squared and summed.
LARGEST = 1e100


def too_large(what: str, value: float) -> str:
    """The message about a number that is too large."""
    return f"{what} is {value:g}; sums of numbers beyond {LARGEST:g} overflow. Divide the feature by its largest value."


def read_labels(
    y: Iterable[Any] | None, offsets: Ints, known: tuple[Any, ...] | None, *, words: Words = SEQUENCES
) -> tuple[Ints, tuple[Any, ...]]:
    """Codes (steps,) of the labels, and the labels.

    known: the labels there may be; without them those seen, sorted where they can be.
    """
    sequences = listed_labels(y, offsets, words=words)
    flat = [label for sequence in sequences for label in sequence]
    keys = [label if type(label) is str else label_key(label) for label in flat]
    seen = dict.fromkeys(keys)
    if any(type(key) is tuple and (key[1] is None or key[1] != key[1]) for key in seen):
        _refuse_missing(flat, offsets, words)
    if known is None:
        first = dict(zip(reversed(keys), reversed(flat), strict=True))
        labels = _sorted([first[key] for key in seen])
    else:
        labels = known
    index = label_codes(labels)
    if not seen.keys() <= index.keys():
        _refuse(flat, keys, index, _Position(offsets, words), labels)
    return np.array([index[key] for key in keys], np.int64), labels


def check_labels(given: Any) -> tuple[Any, ...]:
    """Declared labels, each once."""
    if not is_list(given):
        raise DataError(f"labels is {shortened(given)}; expected a list of labels, or None for those of the examples.")
    labels = tuple(_plain(given))
    if len(label_codes(labels)) < len(labels) or not labels:
        raise DataError(f"The labels {listing(labels)} are empty or name one twice; expected each label once.")
    return labels


def listed_labels(y: Iterable[Any] | None, offsets: Ints, *, words: Words = SEQUENCES) -> list[list[Any]]:
    """The labels of each sequence, as many as it has steps."""
    one, step = words
    if y is None:
        raise DataError(f"y is missing: the model is one of labels given X. Give the labels of each {one} as y.")
    if not is_list(y):
        raise DataError(f"y is a {type(y).__name__}; expected a list of sequences of labels.")
    sequences = list(y)
    if len(sequences) != len(offsets) - 1:
        raise DataError(f"X has {counted(len(offsets) - 1, one)} and y has {len(sequences)}; they must be as many.")
    lists = []
    for s, sequence in enumerate(sequences):
        if not is_list(sequence):
            raise DataError(f"{one.capitalize()} {s} of y is {shortened(sequence)}; expected a list of labels.")
        labels = _plain(sequence)
        steps = int(offsets[s + 1] - offsets[s])
        if len(labels) != steps:
            raise DataError(
                f"{one.capitalize()} {s}: X has {counted(steps, step)} and y has {counted(len(labels), 'label')}; they "
                "must be as many."
            )
        lists.append(labels)
    return lists


def counted(number: int, what: str) -> str:
    """A number with what it counts: "1 node", "2 nodes"."""
    return f"{number:,} {what}" + "s" * (number != 1)


def _plain(sequence: Any) -> list[Any]:
    """Labels as Python objects."""
    return sequence.tolist() if hasattr(sequence, "tolist") else list(sequence)


def label_key(label: Hashable) -> Any:
    """What tells labels apart: True and 1 are two labels, 1 and 1.0 are one."""
    if isinstance(label, str):
        return str(label)
    try:
        hash(label)
    except TypeError:
        raise DataError(f"The label {label!r} cannot be a label: it is not hashable. Use a text or a number.") from None
    return (isinstance(label, bool | np.bool_), label)


def label_codes(labels: Iterable[Any]) -> dict[Any, int]:
    """The code of each label, by what tells labels apart."""
    return {label_key(label): code for code, label in enumerate(labels)}


def code_of(label: Hashable, labels: tuple[Any, ...]) -> int:
    """The code of one label of a model."""
    code = label_codes(labels).get(label_key(label))
    if code is None:
        raise DataError(f"{label!r} is no label of this model; the labels are {listing(labels)}.")
    return code


def _sorted(labels: list[Any]) -> tuple[Any, ...]:
    """In their own order; by type and text where they have none."""
    try:
        return tuple(sorted(labels))
    except TypeError:
        return tuple(sorted(labels, key=lambda label: (type(label).__name__, repr(label))))


class _Position:
    """Says where a label stands."""

    def __init__(self, offsets: Ints, words: Words) -> None:
        self.offsets, self.words = offsets, words

    def __call__(self, position: int) -> str:
        s = int(np.searchsorted(self.offsets, position, side="right")) - 1
        return f"{self.words[0].capitalize()} {s} of y, {self.words[1]} {position - int(self.offsets[s])}"


def _refuse_missing(flat: list[Any], offsets: Ints, words: Words) -> None:
    position = next(step for step, label in enumerate(flat) if label is None or label != label)
    where = _Position(offsets, words)(position)
    raise MissingValueError(f"{where}: the label is {flat[position]!r}; every {words[1]} needs a label.")


def _refuse(flat: list[Any], keys: list[Any], index: dict[Any, int], where: _Position, labels: tuple[Any, ...]) -> None:
    """Name the first label that is not known, and where it stands."""
    position = next(step for step, key in enumerate(keys) if key not in index)
    raise UnknownStateError(
        f"{where(position)}: the label {flat[position]!r} is unknown; the labels are {listing(labels)}."
    )


def sequence_weights(sample_weight: ArrayLike | None, count: int, *, words: Words = SEQUENCES) -> Floats:
    """One weight for each sequence (n,), finite, not negative and not all 0; ones where none are given."""
    weights = weights_of(sample_weight, count, words[0], LARGEST)
    if sample_weight is not None and not weights.sum() > 0.0:
        raise DataError(f"sample_weight is 0 for every {words[0]}; nothing is left.")
    return weights
