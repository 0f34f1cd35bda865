"""From labels to codes: which states a column turns out to have, and where each of its labels belongs among them."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Sequence
from dataclasses import replace
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from suffice.domain import Domain, Variable, is_missing, sort_states, state_key
from suffice.kernels.coding import remap
from suffice.sources.arrays import plain_time
from suffice.sources.columns import Coded, Codes, blocks, code_dtype

Places = NDArray[np.int64]


def places(variable: Variable, labels: Sequence[Hashable]) -> Places:
    """Code of each label, -1 for a label that is no state."""
    by_time = {
        state_key(plain_time(state)): code
        for code, state in enumerate(variable.states)
        if plain_time(state) is not state
    }

    def place(label: Hashable) -> int:
        code = variable.find(label)
        if code is None and plain_time(label) is not label:
            code = variable.find(plain_time(label))
        if code is None and by_time:
            code = by_time.get(state_key(plain_time(label)))
        return -1 if code is None else code

    return np.fromiter(map(place, labels), np.int64)


def resolve_states(variable: Variable, coded: Coded, start: int = 0) -> Variable:
    """The variable with every state that the rows hold.

    Declared states are closed: another value is an error that names its row (counted from `start`). States seen are
    kept sorted, so that they do not depend on the order of rows; new ones of a category go to the end.
    """
    if variable.kind != "discrete" or _in_order(variable, coded):
        return variable
    if not variable.states and variable.origin == "seen" and type(coded.labels) is range:
        # Whole numbers in order, as most columns of codes have them.
        seen = coded.occurs
        states = tuple(coded.labels) if seen.all() else tuple(compress(coded.labels, seen.tolist()))
        return replace(variable, states=states) if states else variable
    unknown = places(variable, coded.labels) < 0
    if not np.count_nonzero(unknown):
        return variable
    unknown &= coded.occurs
    unknown &= [not is_missing(label) for label in coded.labels]
    if not unknown.any():
        return variable
    if variable.origin == "declared":
        row = _first_row(coded, unknown)
        raise variable.unknown(coded.labels[int(coded.indices[row])], start + row)
    new = [coded.labels[label] for label in np.flatnonzero(unknown).tolist()]
    if variable.origin == "seen":
        return replace(variable, states=sort_states((*variable.states, *new)))
    distinct = {state_key(state): state for state in new}
    return replace(variable, states=(*variable.states, *distinct.values()))


def _in_order(variable: Variable, coded: Coded) -> bool:
    """Whether the labels are the states themselves, so that indices are codes already."""
    return variable.lists(coded.labels)


def _first_row(coded: Coded, chosen: NDArray[np.bool_]) -> int:
    """The first row that holds one of the chosen labels."""
    wanted = np.append(chosen, False)
    for block in blocks(len(coded.indices)):
        hits = wanted[coded.indices[block]]
        if hits.any():
            return int(block.start + hits.argmax())
    raise AssertionError("a chosen label has a row")


class Translation:
    """Writes the codes of a resolved variable for the rows of a column."""

    def __init__(self, variable: Variable, coded: Coded) -> None:
        """Look every label up once."""
        self._missing = variable.card
        self._indices = coded.indices
        self._same = _in_order(variable, coded)
        if not self._same:
            codes = places(variable, coded.labels)
            self._table = np.where(codes < 0, self._missing, codes).astype(code_dtype(self._missing))
            self._same = len(codes) == self._missing and np.array_equal(codes, np.arange(self._missing))

    def write(self, rows: slice, out: Codes) -> None:
        """Codes of some rows into `out` (rows,)."""
        if self._same:
            out[:] = self._indices[rows]
        else:
            remap(self._indices[rows], self._table, self._missing, out=out)


class Growing:
    """The variables of a table that is read piece by piece: what one piece has seen, the next ones know.

    Pieces may be coded in several threads. States of origin ``"seen"`` are shared, since they are sorted whatever the
    order of finding; those of a category are not, since new ones are kept in the order of the rows.
    """

    def __init__(self, domain: Domain) -> None:
        """Begin with what the domain knows."""
        self._variables = {variable.name: variable for variable in domain.variables}
        self._lock = threading.Lock()

    def resolve(self, name: Hashable, coded: Coded, start: int) -> Variable:
        """The variable with every state known so far."""
        with self._lock:
            variable = self._variables[name]
        resolved = resolve_states(variable, coded, start)
        if resolved is variable or variable.origin != "seen":
            return resolved
        with self._lock:
            self._variables[name] = resolve_states(self._variables[name], coded, start)
            return self._variables[name]
