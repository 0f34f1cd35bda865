"""Features with names: dicts of features and lists of names become codes and values; errors say where they stand."""

from __future__ import annotations

import math
from array import array
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Ints
from suffice.errors import DataError, MissingValueError
from suffice.models.conditional_field.labels import LARGEST, too_large

#: A sequence and a step of it.
Where = tuple[int, int]


def interned(sequences: list[Any]) -> tuple[NDArray[np.int32], NDArray[np.float64], Ints, list[str]]:
    """Codes and values of all entries, entries of each step, and the names that the codes stand for.

    There are no values where all of them are 1.
    """
    index = _Index()
    codes, counts = index.codes, array("q")
    code_of, pair_of = index.names.__getitem__, index.pairs
    for s, sequence in enumerate(sequences):
        if set(map(type, sequence)) == {list}:
            try:
                codes.extend(map(code_of, chain.from_iterable(sequence)))
            except TypeError:
                raise _no_name(sequence, s) from None
            counts.extend(map(len, sequence))
            continue
        for t, step in enumerate(sequence):
            before = len(codes)
            if type(step) is dict or isinstance(step, Mapping):
                for key, value in step.items():
                    if type(value) is str:
                        codes.append(pair_of[key, value])
                    else:
                        index.enter(key, value, (s, t))
            else:
                index.listed(step, (s, t))
            counts.append(len(codes) - before)
    names = index.named(counts, sequences)
    return np.frombuffer(codes, np.intc), index.values(), np.frombuffer(counts, np.int64), names


class _Index:
    """Codes of names and of (name, text) pairs, in the order in which they were met, and the entries so far."""

    def __init__(self) -> None:
        number = count()
        self.names: defaultdict[Any, int] = defaultdict(number.__next__)
        self.pairs: defaultdict[tuple[Any, str], int] = defaultdict(number.__next__)
        #: Codes of all entries; and where entries are whose value is not 1, with their values: most often none.
        self.codes, self.others, self.amounts = array("i"), array("q"), array("d")

    def add(self, code: int, value: float = 1.0) -> None:
        """One entry."""
        if value != 1.0:
            self.others.append(len(self.codes))
            self.amounts.append(value)
        self.codes.append(code)

    def values(self) -> NDArray[np.float64]:
        """The values of all entries; none where all of them are 1."""
        if not self.others:
            return np.zeros(0)
        amounts = np.ones(len(self.codes))
        amounts[np.frombuffer(self.others, np.int64)] = np.frombuffer(self.amounts, np.float64)
        return amounts

    def listed(self, step: Any, where: Where) -> None:
        """A step that is a name, or names."""
        if isinstance(step, str | bytes):
            self.add(self.names[_text(step, where)])
            return
        if not isinstance(step, Iterable):
            raise DataError(
                f"{_step(where)} is of type {type(step).__name__}; expected a dict of features or a list of names, as "
                "in the steps before."
            )
        entries = list(step)
        if not all(isinstance(name, str | bytes) for name in entries):
            raise _no_name([entries], *where)
        names = [_text(name, where) for name in entries]
        for name in sorted(names) if isinstance(step, set | frozenset) else names:
            self.add(self.names[name])

    def enter(self, key: object, value: Any, where: Where) -> None:
        """One feature of a dict."""
        if isinstance(value, bool | np.bool_ | int | float | np.integer | np.floating):
            self.add(self.names[key], _number(key, value, where))
        elif isinstance(value, str | bytes):
            self.add(self.pairs[key, _text(value, where)])
        elif isinstance(value, Mapping):
            for inner, what in value.items():
                self.enter(f"{_text(key, where)}:{_text(inner, where)}", what, where)
        elif isinstance(value, Sequence | set | frozenset):
            texts = [_text(inner, where) if isinstance(inner, bytes) else str(inner) for inner in value]
            for text in sorted(texts) if isinstance(value, set | frozenset) else texts:
                self.add(self.pairs[key, text])
        elif value is None:
            raise MissingValueError(
                f"{_step(where)}: feature {key!r} is None; expected a number, a truth value or text. Leave the feature "
                "out where it is not known."
            )
        else:
            raise DataError(
                f"{_step(where)}: feature {key!r} is {value!r}, of type {type(value).__name__}; expected a number, a "
                "truth value or text."
            )

    def named(self, counts: Any, sequences: list[Any]) -> list[str]:
        """The name of each code; of a pair, ``name:text``."""
        names = [""] * (len(self.names) + len(self.pairs))
        for key, code in self.names.items():
            names[code] = key if type(key) is str else self._plain(key, code, counts, sequences)
        for (key, text), code in self.pairs.items():
            name = key if type(key) is str else self._plain(key, code, counts, sequences)
            names[code] = f"{name}:{text}"
        return names

    def _plain(self, key: object, code: int, counts: Any, sequences: list[Any]) -> str:
        """A name as plain text, or an error that says where it stands."""
        if isinstance(key, str):
            return str(key)
        entry = int(np.flatnonzero(np.array(self.codes) == code)[0])
        step = int(np.searchsorted(np.cumsum(np.array(counts)), entry, side="right"))
        offsets = np.cumsum([len(sequence) for sequence in sequences])
        s = int(np.searchsorted(offsets, step, side="right"))
        where = s, step - (int(offsets[s - 1]) if s else 0)
        if isinstance(key, bytes):
            return _text(key, where)
        raise DataError(f"{_step(where)}: the feature {key!r} is no text; names of features are text.")


def _step(where: Where) -> str:
    return f"Sequence {where[0]} of X, step {where[1]}"


def _text(given: Any, where: Where) -> str:
    """Text as it is, bytes as UTF-8."""
    if not isinstance(given, bytes):
        return str(given)
    try:
        return given.decode()
    except UnicodeDecodeError:
        raise DataError(f"{_step(where)}: the feature {given!r} is no text in UTF-8.") from None


def _number(key: object, value: Any, where: Where) -> float:
    """The value of a feature that is a number."""
    try:
        amount = float(value)
    except OverflowError:
        raise DataError(
            f"{_step(where)}: feature {key!r} is too large for a float; expected a finite number."
        ) from None
    if not math.isfinite(amount):
        raise MissingValueError(
            f"{_step(where)}: feature {key!r} is {value!r}; expected a finite number, a truth value or text. Leave the "
            "feature out where it is not known."
        )
    if abs(amount) > LARGEST:
        raise DataError(too_large(f"{_step(where)}: feature {key!r}", amount))
    return amount


def _no_name(steps: Sequence[Any], s: int, first: int = 0) -> DataError:
    """The error for steps that are lists of names, one of which is no text."""
    for t, step in enumerate(steps, start=first):
        for name in step:
            if not isinstance(name, str | bytes):
                return DataError(f"{_step((s, t))}: the feature {name!r} is no text; names of features are text.")
    return DataError(f"Sequence {s} of X: a feature is no text; names of features are text.")
