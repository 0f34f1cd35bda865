"""From what a user gives to coded sequences: observations, known states, weights."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.domain import Variable
from suffice.errors import DataError, OptionError, listing
from suffice.options import doubles
from suffice.sources.sequences import (
    SequenceForm,
    Sequences,
    code_states,
    flat_values,
    is_table,
    open_sequences,
    table_columns,
)
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


def split_form(form: SequenceForm, data: object, states: Any) -> tuple[SequenceForm, Any]:
    """The form of the observations and the known states, where `states` names a column of the table."""
    if not isinstance(states, str) or not is_table(data):
        return form, states
    known = table_columns(data)
    if states not in known:
        raise DataError(f"states names the column {states!r}; the table has {listing(known)}.")
    names = [name for name in known if name not in (form.group, form.order, states)]
    paths = form.reading([states]).open(data)
    return form.reading(names if form.columns is None else form.columns), paths


@dataclass(frozen=True)
class Opened:
    """Sequences with their columns, and how answers are given back: a list by sequence, or one array.

    `alone` is whether they are one sequence by itself, neither in a list nor a group of a table, nor told by lengths.
    """

    sequences: Sequences[NDArray[Any]]
    as_list: bool
    alone: bool

    @property
    def columns(self) -> list[NDArray[Any]]:
        """The observations, column by column."""
        values = self.sequences.values
        return [np.ascontiguousarray(column) for column in ([values] if values.ndim == 1 else values.T)]

    def give(self, values: Any) -> Any:
        """Answers by step (steps, ...) in the form of what was asked."""
        return self.sequences.split(values) if self.as_list else values


def open_observations(data: object, form: SequenceForm) -> Opened:
    """The observations of sequences."""
    sequences = form.open(data)
    told = form.group is not None or form.lengths is not None
    alone = sequences.n_sequences == 1 and not _is_nested(data) and not told
    return Opened(sequences, not alone and form.lengths is None, alone)


def _is_nested(data: object) -> bool:
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


def open_paths(states: Any, opened: Opened, lengths: Any) -> Sequences[NDArray[Any]]:
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
