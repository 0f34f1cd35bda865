"""Probabilities of labels, read by place or by label."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from suffice.array_types import Floats
from suffice.models.conditional_field.labels import label_codes, label_key


class Marginals(np.ndarray):
    """Probabilities of labels, (steps, K) for a sequence and (K,) for a step, read by place or by label.

    ``marginals[t]["B-NP"]`` is the probability of that label at step t, ``marginals[:, 0]`` that of the first label at
    all steps, ``marginals.of(label)`` that of any label. `labels` gives the order. Brackets read whole numbers, and
    tuples of them, as places. A part has labels as long as its last axis is that of all labels, and so have copies by
    the module `copy`; what is computed from marginals has none.
    """

    labels: tuple[Any, ...]

    def __new__(cls, values: Floats, labels: tuple[Any, ...]) -> Marginals:
        """Values (..., K) with the labels of the last axis."""
        marginals = np.asarray(values).view(cls)
        marginals.labels = labels
        return marginals

    def __array_finalize__(self, source: Any) -> None:
        """Nobody knows what a view or a result has along its last axis; only brackets do."""
        self.labels = ()

    def __getitem__(self, key: Any) -> Any:
        """By place as in any array, or by label along the last axis."""
        if isinstance(key, str) or (isinstance(key, tuple) and not all(map(_is_place, key))):
            return self.of(key)
        part = super().__getitem__(key)
        if isinstance(part, Marginals) and part.ndim and self.labels:
            rows = isinstance(key, int | np.integer | slice) and self.ndim > 1
            part.labels = self.labels if rows or _same_columns(self, key) else ()
        return part

    def of(self, label: Hashable) -> Any:
        """The probability of a label, along the last axis."""
        if not self.labels:
            raise KeyError(f"{label!r}: this array has no labels; it was computed, or holds a part of the columns.")
        column = label_codes(self.labels).get(label_key(label))
        if column is None:
            raise KeyError(f"{label!r} is no label; the labels are {self.labels}.")
        return np.asarray(self)[..., column][()]

    def __reduce__(self) -> Any:
        """Pickles keep the labels."""
        reduced: Any = super().__reduce__()
        make, arguments, state = reduced
        return make, arguments, (self.labels, state)

    def __setstate__(self, state: Any) -> None:
        """See `__reduce__`."""
        self.labels, inner = state
        super().__setstate__(inner)

    def __copy__(self) -> Marginals:
        """The same numbers with the same labels; NumPy's own `copy` has none, since it also serves to sort."""
        return Marginals(np.array(self), self.labels)

    def __deepcopy__(self, memo: Any) -> Marginals:
        """See `__copy__`."""
        return self.__copy__()

    def keys(self) -> tuple[Any, ...]:
        """The labels."""
        return self.labels

    def items(self) -> list[tuple[Any, Any]]:
        """Labels with their probabilities."""
        return [(label, np.asarray(self)[..., column][()]) for column, label in enumerate(self.labels)]


def _is_place(key: object) -> bool:
    """Whether arrays take this as (a part of) an index."""
    return key is None or key is Ellipsis or isinstance(key, int | np.integer | slice | np.ndarray | list)


def _same_columns(marginals: Marginals, key: Any) -> bool:
    """Whether what an index takes out of an array still has all columns along its last axis, in their order."""
    columns = np.broadcast_to(np.arange(marginals.shape[-1]), marginals.shape)[key]
    return columns.shape[-1] == marginals.shape[-1] and bool((columns == np.arange(marginals.shape[-1])).all())
