"""Sequences whose states are all known as a `Summary`, whose counts add up, and steps again that have these counts.

A chain of known states is a Markov chain, so its windows are counted as those of one. What states emit is counted, or
has moments, by state. A fit of a summary is that of a few weighted steps of the same counts and moments: a normal
distribution has those of 2 d points about its mean, along the axes of its scatter.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.domain import Kind, Variable
from suffice.errors import OptionError
from suffice.models.hidden_markov.emissions.contract import Emission
from suffice.models.hidden_markov.input import state_names
from suffice.models.hidden_markov.rounds import column_of
from suffice.models.hidden_markov.tables import SequenceTable
from suffice.sources import summarize_source
from suffice.sources.arrays import array_column
from suffice.sources.base import Batch
from suffice.sources.columns import Coded
from suffice.sources.memory import columns_source
from suffice.sources.ngrams import WindowLayout, count_sequences
from suffice.sources.releasing import Disclosed
from suffice.sources.sequences import Sequences, translated
from suffice.statistics import Counts, Statistic, Summary

States = tuple[Hashable, ...]
#: The columns of a summary that hold a state and the one before it.
FROM, STATE = "state from", "state to"


def windows(states: States | None = None) -> WindowLayout:
    """A state and the one before it, or the beginning."""
    return WindowLayout(1, states=states, prefix="state ")


def names_of(columns: Sequence[Hashable] | None, width: int) -> States:
    """What the columns are called in a summary: their numbers where the data have no names."""
    return tuple(range(width)) if columns is None else tuple(columns)


def summary_of(
    sequences: Sequences[Any], columns: Sequence[Any], questions: Sequence[Statistic], states: States
) -> Summary:
    """The counts of sequences whose steps all have a label, and what their columns are by state."""
    assert sequences.labels is not None
    names = names_of(sequences.columns, len(columns))
    if {FROM, STATE} & set(names):
        raise OptionError(f"The columns {FROM!r} and {STATE!r} of a summary hold the hidden states; rename your own.")
    labels = objects(states)[sequences.labels]
    summary = count_sequences(sequences.reading(labels, columns=None, variables=None), windows(states))
    made = {name: array_column(name, column) for name, column in zip(names, columns, strict=True)}
    source = columns_source({STATE: array_column(STATE, labels), **made})
    source.weigh(array_column("sample_weight", sequences.step_weights))
    declared: dict[Hashable, Variable] = {STATE: Variable.discrete(STATE, states)}
    for question in questions:
        kind: Kind = "discrete" if isinstance(question, Counts) else "real"
        declared |= {name: Variable(name, kind) for name in question.columns if name != STATE}
    brought = zip(names, sequences.variables or (), strict=False)
    declared |= {name: replace(v, name=name) for name, v in brought if v is not None and declared[name].kind == v.kind}
    emitted = summarize_source(source, source.infer(list(declared), declared), tuple(questions), missing="available")
    domain = summary.domain.merge(emitted.domain)
    return Summary(domain, {**summary.answers, **emitted.answers}, sequences.n_steps, sequences.weight)


def questions_of(emission: Emission, columns: Sequence[Hashable] | None) -> tuple[Statistic, ...]:
    """What a summary has to answer of the columns of an emission; an error where none says all."""
    questions = emission.questions(STATE, names_of(columns, emission.width))
    if not questions:
        raise OptionError(
            "A summary holds counts and moments: enough for hidden Markov models that emit states or normal numbers, "
            "and not for this one. partial_fit(sequences, states) adds sequences of any distribution."
        )
    return questions


def objects(states: States) -> NDArray[Any]:
    """The names of states, whatever they are, as an array (K,)."""
    names = np.empty(len(states), dtype=object)
    names[:] = states
    return names


@dataclass(frozen=True, eq=False)
class SummarisedSteps:
    """A summary as a fit takes it: first states and transitions, and weighted steps that have its other answers.

    Each step is a sequence; `columns` are its observations, of which some may be missing, and `variables` what the
    discrete ones hold.
    """

    initial: Floats
    transitions: Floats
    labels: NDArray[np.int32]
    weights: Floats
    names: list[Hashable] | None
    columns: list[NDArray[Any]]
    variables: tuple[Variable | None, ...]

    @classmethod
    def of(cls, summary: Summary, states: States) -> SummarisedSteps:
        """Of the summary of sequences of these states."""
        counts = summary[windows().question].dense()
        before, after = (objects(summary.domain[name].states) for name in (FROM, STATE))
        places = [states.index(state) for state in after]
        rows = np.zeros((len(states) + 1, len(states)))
        for state, row in zip(before, counts, strict=True):
            rows[states.index(state) if state in states else -1, places] = row
        asked = [question for question in summary.answers if STATE in question.columns and FROM not in question.columns]
        names = list(dict.fromkeys(name for question in asked for name in question.columns if name != STATE))
        parts = [part for question in asked for part in _steps(summary, question, [states.index(s) for s in after])]
        labels = np.array([part[0] for part in parts], np.int32)
        columns = [_column([part[2].get(name) for part in parts], summary.domain[name]) for name in names]
        variables = tuple(v if v.kind == "discrete" else None for v in map(summary.domain.__getitem__, names))
        unnamed = names == list(range(len(names)))
        return cls(
            rows[-1],
            rows[:-1],
            labels,
            np.array([part[1] for part in parts]),
            None if unnamed else names,
            columns,
            variables,
        )

    @property
    def sequences(self) -> Sequences[Any]:
        """The steps, each a sequence."""
        size = len(self.labels)
        more = {"columns": self.names, "variables": self.variables, "labels": self.labels}
        return Sequences(np.zeros(size), np.arange(size + 1), self.weights, **more)  # type: ignore[arg-type]


def _steps(
    summary: Summary, question: Statistic, places: Sequence[int]
) -> Iterator[tuple[int, float, dict[Hashable, Any]]]:
    """The state, weight and observations of steps that have an answer, and no other observations."""
    names = [name for name in question.columns if name != STATE]
    answer = summary[question]
    if isinstance(question, Counts):
        table, (name,) = answer.dense(), names
        for state, symbol in np.argwhere(table):
            yield places[state], float(table[state, symbol]), {name: summary.domain[name].states[symbol]}
        return
    for (state,), weight, mean, scatter in zip(answer.cells, answer.weight, answer.mean, answer.scatter, strict=True):
        # sum_k w / 2d ((m + a_k) - m)^2 + ((m - a_k) - m)^2 is the scatter for a_k = sqrt(d s_k / w) v_k.
        sizes, axes = np.linalg.eigh(scatter)
        away = axes * np.sqrt(np.maximum(sizes, 0.0) * len(sizes) / weight)
        for point in np.concatenate([mean + away.T, mean - away.T]):
            yield places[state], weight / (2 * len(sizes)), dict(zip(names, point.tolist(), strict=True))


def _column(values: list[Any], variable: Variable) -> NDArray[Any]:
    """Observations of a column, None for a missing one."""
    if variable.kind != "discrete":
        return np.array(values, dtype=np.float64)
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def states_of_summary(summary: Summary, names: States, *, counted: bool) -> States:
    """The names of the hidden states; where the model has only a number of them, those of the summary name them."""
    summary[windows().question]
    seen = summary.domain[STATE].states
    if counted and len(seen) == len(names):
        return seen
    for state in seen:
        if state not in names:
            raise Variable.discrete("state", names).unknown(state)
    return names


def states_needed() -> OptionError:
    """The error where some state is not known."""
    return OptionError(
        "Sequences have a summary where the state of every step is known. Give states=, or fit those that are hidden "
        "with sf.Rounds, which asks for sums."
    )


def whole_steps_needed() -> OptionError:
    """The error where a part of a step is missing."""
    return OptionError(
        "Some steps lack a part of their columns, which has to be expected round after round: such sequences have no "
        "summary. Fit them with sf.Rounds, which asks for sums."
    )


# -- tables whose sequences stay where they are ------------------------------------------------------------------------


@dataclass(frozen=True)
class SummaryWork:
    """Summaries of the whole sequences of a shard, which add up; the questions are those about its `columns`."""

    emission: Emission
    columns: States
    label: Hashable
    states: States

    def prepare(self, batch: Batch) -> Summary:
        """The summary of a shard."""
        assert batch.offsets is not None
        labels = translated(Variable.discrete("state", self.states), column_of(batch, self.label))
        if (labels < 0).any():
            raise states_needed()
        coded = [column_of(batch, name) for name in self.columns]
        if not self.emission.in_closed_form(self.emission.read(coded)):
            raise whole_steps_needed()
        columns = [objects((*c.labels, None))[c.indices] if isinstance(c, Coded) else c for c in coded]
        variables = tuple(batch.domain[name] for name in self.columns)
        sequences = Sequences(None, batch.offsets, None, labels, list(self.columns), variables)
        return summary_of(sequences, columns, questions_of(self.emission, self.columns), self.states)

    def disclosed(self) -> Disclosed:
        """Nothing beside the tables of the summary."""
        return Disclosed()

    def evaluate(self, prepared: Summary, parameters: None) -> Summary:
        """As it is."""
        return prepared


def summary_there(table: SequenceTable, names: States | None) -> Summary | None:
    """The summary of a table, made where its sequences are; None where its emission has to see rows.

    names: those of the hidden states; None where the model has only a number of them.
    """
    if table.label is None:
        raise states_needed()
    surveyed = table.surveyed(names)
    if surveyed is None:
        return None
    settled, known = surveyed
    states = table.states_of(settled, state_names(table.options["states"]), counted=names is None)
    emission = table.emission(len(states), known, hidden=False)
    questions_of(emission, table.columns)
    with table.hold(SummaryWork(emission, table.columns, table.label, states), settled) as held:
        summary: Summary = held.sum(None)
    return summary
