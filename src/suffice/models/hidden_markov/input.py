"""From what a user gives to coded sequences: observations, known states, weights."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from suffice.array_types import Floats
from suffice.checks import is_list
from suffice.domain import Variable
from suffice.errors import DataError, OptionError, SizeError, listing, shortened
from suffice.fitting.contract import Inputs
from suffice.models.sequence_lengths import lengths_apart
from suffice.sources.sequences import (
    SequenceForm,
    Sequences,
    code_states,
    flat_values,
    is_table,
    open_sequences,
    table_columns,
)

T = TypeVar("T")
V = TypeVar("V", covariant=True)


#: Hidden states beyond it would need gigabytes for one matrix of transitions.
MOST_STATES = 2**15


def state_names(states: object) -> tuple[Hashable, ...]:
    """The hidden states: 0, 1, ... for a number of them."""
    if isinstance(states, int | np.integer) and not isinstance(states, bool):
        if states < 1:
            raise OptionError(f"states is {states}; expected at least 1.")
        if states > MOST_STATES:
            raise SizeError(f"states is {states:,}; hidden Markov models take at most {MOST_STATES:,} states.")
        return tuple(range(int(states)))
    if not is_list(states):
        raise OptionError(
            f"states is {shortened(states)}; expected a number of hidden states, or a list of their names."
        )
    names = Variable.discrete("state", tuple(states)).states
    if not names:
        raise OptionError("states is empty; expected at least one hidden state.")
    return names


def inputs_of(sequences: Any, states: Any, sample_weight: ArrayLike | None, form: SequenceForm) -> Inputs:
    """What a fit is given: the sequences, what is known of their states, and their form."""
    form, states = lengths_apart(form, sequences, states)
    return Inputs(sequences, {"states": states, "sample_weight": sample_weight, "form": form})


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


@dataclass(frozen=True, eq=False)
class Opened(Generic[V]):
    """Sequences, and how answers are given back: a list by sequence, or one array.

    `alone` is whether they are one sequence by itself, neither in a list nor a group of a table, nor told by lengths.
    """

    sequences: Sequences[V]
    as_list: bool
    alone: bool

    def give(self, rows: NDArray[Any]) -> Any:
        """Answers by step (steps, ...) in the form of what was asked."""
        return self.sequences.split(rows) if self.as_list else rows

    def give_each(self, answers: Sequence[T]) -> T | list[T]:
        """Answers by sequence: a list, but for one sequence by itself."""
        return answers[0] if self.alone else list(answers)


def columns_of(sequences: Sequences[NDArray[Any]]) -> list[NDArray[Any]]:
    """The observations, column by column."""
    values = sequences.values
    return [np.ascontiguousarray(column) for column in ([values] if values.ndim == 1 else values.T)]


def open_observations(data: object, form: SequenceForm) -> Opened[NDArray[Any]]:
    """The observations of sequences."""
    sequences = form.open(data)
    apart = form.group is not None or form.lengths is not None
    alone = sequences.n_sequences == 1 and not _is_nested(data) and not apart
    return Opened(sequences, not alone and form.lengths is None, alone)


def _is_nested(data: object) -> bool:
    """Whether the one sequence was given inside a list."""
    return isinstance(data, list | tuple) and len(data) == 1 and isinstance(data[0], list | tuple | str | np.ndarray)


def read_labels(
    states: object,
    opened: Opened[NDArray[Any]],
    lengths: ArrayLike | None,
    names: tuple[Hashable, ...],
    *,
    counted: bool = False,
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


def open_paths(states: Any, opened: Opened[NDArray[Any]], lengths: ArrayLike | None) -> Sequences[NDArray[Any]]:
    """Paths of states, one for each sequence, in the form of the sequences: one state a step."""
    sequences = opened.sequences
    if isinstance(states, Sequences):
        paths = states
    elif (sequences.n_sequences == 1 or not opened.as_list) and _is_flat(states, sequences.n_steps):
        paths = Sequences(flat_values(states), sequences.offsets)
    else:
        paths = open_sequences(_filled(states, opened), lengths=lengths)
    if paths.n_steps != sequences.n_steps or not np.array_equal(paths.offsets, sequences.offsets):
        raise DataError(
            f"states has {paths.n_sequences} paths of {paths.n_steps} steps in all; the observations have "
            f"{sequences.n_sequences} sequences of {sequences.n_steps} steps. Give one state a step, None where it is "
            "unknown. Lengths of sequences, which add up to the number of steps, are given as lengths=."
        )
    return paths.single()


def _is_flat(states: object, steps: int) -> bool:
    """Whether a list holds the state of each step of one sequence: a name may be a text of several letters."""
    if not isinstance(states, list | tuple | np.ndarray) or np.ndim(states[:0]) != 1 or len(states) != steps:
        return False
    return not any(isinstance(state, list | np.ndarray) for state in states)


def _filled(states: Any, opened: Opened[NDArray[Any]]) -> Any:
    """Paths that are None as paths of missing values."""
    sequences = opened.sequences
    if not isinstance(states, Sequence) or isinstance(states, str) or not any(path is None for path in states):
        return states
    if len(states) != sequences.n_sequences or not opened.as_list:
        return states
    pairs = zip(states, sequences.lengths.tolist(), strict=True)
    return [[None] * length if path is None else path for path, length in pairs]


def numbered(number: int) -> str:
    """A sequence in memory in words."""
    return f"Sequence {number}"


def check_possible(values: Floats, called: Callable[[int], str] = numbered) -> None:
    """Raise where the log-likelihood of a sequence (n,) says that it cannot be; called: a sequence in words."""
    if (values == -np.inf).any():
        number = int(np.argmax(values == -np.inf))
        raise DataError(
            f"{called(number)} is impossible under this model: no path of states has it, so that nothing can be said "
            "about its states. score_samples tells which sequences are."
        )


def read_again(model: Any, rows: Mapping[str, Any]) -> Any:
    """What the task of a model reads of sequences that are given again, by the names of the arguments of its `fit`."""
    form = SequenceForm(*(rows.get(name) for name in ("lengths", "group", "order", "columns")))
    form, states = lengths_apart(form, rows["data"], rows.get("states"))
    more = {"states": states, "sample_weight": rows.get("sample_weight"), "form": form}
    return model._task().read(Inputs(rows["data"], more), None, "fit")
