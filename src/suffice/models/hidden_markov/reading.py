"""From what a user gives to coded sequences: observations, known states, weights."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypedDict

import numpy as np
from numpy.typing import ArrayLike, NDArray

from suffice.domain import Variable
from suffice.errors import DataError, OptionError, listing
from suffice.options import doubles
from suffice.sources.sequences import Sequences, code_states, flat_values, is_table, open_sequences, table_columns
from suffice.sources.weights import check_weights

Floats = NDArray[np.float64]


def state_names(states: Any) -> tuple[Hashable, ...]:
    """The hidden states: 0, 1, ... for a number of them."""
    if isinstance(states, int | np.integer) and not isinstance(states, bool):
        if states < 1:
            raise OptionError(f"states is {states}; expected at least 1.")
        return tuple(range(int(states)))
    if isinstance(states, str) or not isinstance(states, Iterable):
        raise OptionError(f"states is {states!r}; expected a number of hidden states, or a list of their names.")
    found = Variable.discrete("state", tuple(states)).states
    if not found:
        raise OptionError("states is empty; expected at least one hidden state.")
    return found


class Layout(TypedDict, total=False):
    """The keywords by which a user says how sequences are laid out: those of `Form`."""

    lengths: ArrayLike | None
    group: Hashable | None
    order: Hashable | None
    columns: Sequence[Hashable] | None


@dataclass(frozen=True, eq=False)
class Form:
    """How sequences are laid out: their lengths, or the columns of a table that tell them apart and order them.

    `columns` are the columns of a table to read.
    """

    lengths: ArrayLike | None = None
    group: Hashable | None = None
    order: Hashable | None = None
    columns: Sequence[Hashable] | None = None

    def reading(self, columns: Sequence[Hashable] | None) -> Form:
        """The form with these columns."""
        return replace(self, columns=columns)

    def split(self, data: Any, states: Any) -> tuple[Form, Any]:
        """The form of the observations and the known states, where `states` names a column of the table."""
        if not isinstance(states, str) or not is_table(data):
            return self, states
        known = table_columns(data)
        if states not in known:
            raise DataError(f"states names the column {states!r}; the table has {listing(known)}.")
        names = [name for name in known if name not in (self.group, self.order, states)]
        paths = open_sequences(data, group=self.group, order=self.order, columns=[states])
        return self.reading(names if self.columns is None else self.columns), paths


@dataclass(frozen=True)
class Opened:
    """Sequences with their columns, and how answers are given back: a list by sequence, or one array.

    `alone` is whether they are one sequence by itself, neither in a list nor a group of a table, nor told by lengths.
    """

    sequences: Sequences
    columns: list[NDArray[Any]]
    as_list: bool
    alone: bool

    def give(self, values: Any) -> Any:
        """Answers by step (steps, ...) in the form of what was asked."""
        if not self.as_list:
            return values
        return np.split(values, self.sequences.offsets[1:-1])


def open_observations(data: Any, form: Form) -> Opened:
    """The observations, column by column."""
    group, lengths = form.group, form.lengths
    found = open_sequences(data, lengths=lengths, group=group, order=form.order, columns=form.columns)
    values = found.values
    parts = [values] if values.ndim == 1 else [values[:, at] for at in range(values.shape[1])]
    alone = found.n_sequences == 1 and not _is_nested(data) and group is None and lengths is None
    return Opened(found, [np.ascontiguousarray(part) for part in parts], not alone and lengths is None, alone)


def _is_nested(data: Any) -> bool:
    """Whether the one sequence was given inside a list."""
    return isinstance(data, list | tuple) and len(data) == 1 and isinstance(data[0], list | tuple | str | np.ndarray)


def read_labels(
    states: Any, opened: Opened, lengths: Any, names: tuple[Hashable, ...], counted: bool
) -> tuple[NDArray[np.int32] | None, tuple[Hashable, ...]]:
    """Codes of known states (steps,), -1 where one is not known, and the names of the states.

    A path that is None is not known at any step. Where the model has only a number of states, as many different labels
    name them.
    """
    if states is None:
        return None, names
    labels = open_paths(states, opened, lengths)
    if counted:
        typed = None if labels.variables is None else labels.variables[0]
        _, seen = code_states(labels.values, typed, name="state")
        if len(seen) == len(names) and not set(seen) <= set(names):
            names = seen
    return code_states(labels.values, Variable.discrete("state", names))[0], names


def open_paths(states: Any, opened: Opened, lengths: Any) -> Sequences:
    """Paths of states, one for each sequence, in the form of the sequences: one state a step."""
    sequences = opened.sequences
    if isinstance(states, Sequences):
        found = states
    elif (sequences.n_sequences == 1 or not opened.as_list) and _is_flat(states, sequences.n_steps):
        found = Sequences(flat_values(states), sequences.offsets)
    else:
        found = open_sequences(_filled(states, opened), lengths=lengths)
    if found.n_steps != sequences.n_steps or not np.array_equal(found.offsets, sequences.offsets):
        raise DataError(
            f"states has {found.n_sequences} paths of {found.n_steps} steps in all; the observations have "
            f"{sequences.n_sequences} sequences of {sequences.n_steps} steps. Give one state a step, None where it is "
            "unknown."
        )
    return found.single()


def _is_flat(states: Any, steps: int) -> bool:
    """Whether a list holds the state of each step of one sequence: a name may be a text of several letters."""
    if not isinstance(states, list | tuple | np.ndarray) or np.ndim(states[:0]) != 1 or len(states) != steps:
        return False
    return not any(isinstance(state, list | np.ndarray) for state in states)


def _filled(states: Any, opened: Opened) -> Any:
    """Paths that are None as paths of gaps."""
    sequences = opened.sequences
    if not isinstance(states, Sequence) or isinstance(states, str) or not any(path is None for path in states):
        return states
    if len(states) != sequences.n_sequences or not opened.as_list:
        return states
    pairs = zip(states, sequences.lengths.tolist(), strict=True)
    return [[None] * length if path is None else path for path, length in pairs]


def read_weights(sample_weight: Any, n: int) -> Floats:
    """One weight a sequence."""
    if sample_weight is None:
        return np.ones(n)
    try:
        weights = doubles(sample_weight)
    except (TypeError, ValueError):
        raise DataError(f"sample_weight is {sample_weight!r}; expected one number for each sequence.") from None
    if weights.shape != (n,):
        raise DataError(f"sample_weight has shape {weights.shape}; expected one weight for each of {n} sequences.")
    return check_weights(weights, 0)


def check_possible(values: Floats) -> None:
    """Raise where the log-likelihood of a sequence (n,) says that it cannot be."""
    if (values == -np.inf).any():
        at = int(np.argmax(values == -np.inf))
        raise DataError(
            f"Sequence {at} is impossible under this model: no path of states has it, so that nothing can be said "
            "about its states. score_samples tells which sequences are."
        )
