"""Sequences of tables that are not in memory: one pass to survey their columns, one to hold them where they are."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.domain import Domain, Variable
from suffice.errors import DataError, listing
from suffice.models.hidden_markov.build import column_variables, emission_of, settings_of, survey_columns
from suffice.models.hidden_markov.decoding import LabelledStates, StateDecoder
from suffice.models.hidden_markov.emissions.contract import Emission
from suffice.models.hidden_markov.emissions.reals import naming_rows
from suffice.models.hidden_markov.emissions.registry import EmissionOptions
from suffice.models.hidden_markov.emissions.surveys import Survey
from suffice.models.hidden_markov.fitted import HiddenMarkovFitted
from suffice.models.hidden_markov.input import Opened
from suffice.models.hidden_markov.rounds import ChainWork, HeldChains, column_of
from suffice.models.sequence_answers import Named, answers_of_sequences, named_sequences
from suffice.sources.base import Batch, Source
from suffice.sources.held import Held, Prepared, Settled, Work, survey
from suffice.sources.mapped import RowTask, free_names
from suffice.sources.partitioned import PartitionedSource
from suffice.sources.sequences import SequenceForm, Sequences

States = tuple[Hashable, ...]
#: What is asked about every step, besides the methods of `predict`.
PROBABILITIES = "probabilities"
#: The column of states in the answer to a frame.
STATE = "state"


@dataclass(frozen=True)
class SurveyedSteps:
    """What rows say about their table, and about the columns that states emit."""

    settled: Settled
    emitted: Survey

    def __add__(self, other: SurveyedSteps) -> SurveyedSteps:
        """Of both sets of rows."""
        return SurveyedSteps(self.settled + other.settled, self.emitted + other.emitted)


def survey_steps(batch: Batch, *, distribution: Any, settings: EmissionOptions, names: States) -> SurveyedSteps:
    """What the rows of a batch say."""
    settings = replace(settings, variables=tuple(batch.domain[name] for name in names))
    columns = [column_of(batch, name) for name in names]
    with naming_rows(batch.number):
        return SurveyedSteps(survey(batch), survey_columns(distribution, settings, columns, names))


@dataclass(frozen=True, eq=False)
class SequenceTable:
    """A table whose sequences stay where they are.

    `columns` are what is seen, `label` is the column of known states; None where none is known.
    """

    source: Source
    form: SequenceForm
    columns: States
    label: Hashable | None
    options: Mapping[str, Any]

    @classmethod
    def of(cls, data: Any, form: SequenceForm, states: Any, options: Mapping[str, Any]) -> SequenceTable | None:
        """The table, where the sequences can stay; None where they have to be read into memory."""
        if states is not None and not isinstance(states, str):
            return None
        source = form.elsewhere(data)
        if source is None:
            return None
        if states is not None and states not in source.columns:
            raise DataError(f"states names the column {states!r}; the table has {listing(source.columns)}.")
        names = form.observations(source)
        columns = tuple(name for name in names if name != states) if form.columns is None else tuple(names)
        return cls(source, form, columns, states, options)

    def domain(self, emitted: list[Variable], states: States | None) -> Domain:
        """The variables to read; states: the names of the hidden states, where known ones are among them."""
        declared = {variable.name: variable for variable in emitted}
        if self.label is not None:
            label = Variable(self.label, "discrete")
            declared[self.label] = label if states is None else Variable.discrete(self.label, states)
        return self.source.infer(list(declared), declared)

    def surveyed(self, states: States | None) -> tuple[Settled, dict[str, Any]] | None:
        """What one pass says, and what must be known to build the emission; None where that needs rows."""
        distribution, settings = self.options["emission"], settings_of(self.options, 1)
        emitted = column_variables(distribution, settings, self.columns)
        if emitted is None:
            return None
        task = partial(survey_steps, distribution=distribution, settings=settings, names=self.columns)
        whole = self.source.reduce(task, self.domain(emitted, states))
        if not whole.settled.rows:
            raise DataError("There are no sequences: the table has no rows.")
        return whole.settled, whole.emitted.known()

    def states_of(self, settled: Settled, names: States, *, counted: bool) -> States:
        """The names of the hidden states; where the model has only a number of them, as many labels name them."""
        if self.label is None or not counted:
            return names
        seen = settled.domain[self.label].states
        if len(seen) == len(names) and not set(seen) <= set(names):
            return seen
        known = Variable.discrete("state", names)
        for label in seen:
            if known.find(label) is None:
                raise known.unknown(label)
        return names

    def emission(self, size: int, known: Mapping[str, Any], *, hidden: bool) -> Emission:
        """The emission of what was surveyed."""
        none = [np.zeros(0)] * len(self.columns)
        return emission_of(self.options, size, none, list(self.columns), hidden=hidden, known=known)

    def chains(self, emission: Emission, settled: Settled, states: States) -> HeldChains:
        """The sequences, held where they are."""
        group = None if self.form.order is None else self.form.group
        work = ChainWork(emission, self.columns, self.label, states, group)
        held = self.hold(work, settled, () if group is None else (group,))
        return HeldChains(held, settled.rows, float(settled.rows))

    def hold(self, work: Work[Prepared], settled: Settled, raw: States = ()) -> Held[Prepared]:
        """Whole sequences, prepared where they are."""
        return self.source.hold(
            work,
            settled,
            group=self.form.group,
            order=self.form.order,
            raw=raw,
            memory_limit=self.options["memory_limit"],
            threads=self.options["threads"],
        )

    def read_as(self, emission: Emission, states: States) -> HeldChains | None:
        """The sequences as an emission that is known reads them; None where its kind has to see rows."""
        settled = self.settled(states)
        return None if settled is None else self.chains(emission, settled, states)

    def decoded(self, fitted: HiddenMarkovFitted, method: str) -> Any:
        """States by step, or their probabilities, as a frame of the kind that came in; None where there is none."""
        settled = self.settled(None) if isinstance(self.source, PartitionedSource) else None
        if settled is None:
            return None
        wanted = [STATE] if method != PROBABILITIES else fitted.states
        names = free_names(wanted, self.source.columns)
        task = DecodedRows(SequencesOfBatch(fitted, self.columns), method, names)
        return self.source.map(task, settled.domain, group=self.form.group, order=self.form.order)

    def answered(self, fitted: HiddenMarkovFitted, ask: Callable[[StateDecoder], Sequence[Any]]) -> list[Any] | None:
        """What is asked about each sequence, in their order; None where the emission has to see rows."""
        settled = self.settled(None)
        if settled is None:
            return None
        question = AskSequences(SequencesOfBatch(fitted, self.columns), ask)
        group, order = self.form.group, self.form.order
        return answers_of_sequences(question, self.source, settled, group, order, self.options["threads"])

    def labelled(self, fitted: HiddenMarkovFitted, method: str) -> LabelledStates | None:
        """How many steps have a predicted state and a true label; None where the emission has to see rows."""
        settled = self.settled(None)
        if settled is None or self.label is None:
            return None
        labels = settled.domain[self.label].states
        work = CountLabels(SequencesOfBatch(fitted, self.columns), method, self.label)
        with self.hold(work, settled) as held:
            return LabelledStates(fitted.states, labels, held.sum(None))

    def settled(self, states: States | None) -> Settled | None:
        """What is known of the columns that states emit, and of the known `states`; None where rows must be seen."""
        emitted = column_variables(self.options["emission"], settings_of(self.options, 1), self.columns)
        return None if emitted is None else self.source.settle(self.domain(emitted, states))


@dataclass(frozen=True, eq=False)
class SequencesOfBatch:
    """The whole sequences of a batch, as a fitted value is asked about them."""

    fitted: HiddenMarkovFitted
    columns: States

    def __call__(self, batch: Batch, called: Callable[[int], str], *, as_list: bool) -> StateDecoder:
        """Who answers; as_list: by sequence, else by step."""
        assert batch.offsets is not None
        with naming_rows(batch.number):
            values = self.fitted.emission.read([column_of(batch, name) for name in self.columns])
        return StateDecoder(self.fitted, Opened(Sequences(values, batch.offsets), as_list, False), 1, called)


@dataclass(frozen=True, eq=False)
class AskSequences:
    """An answer for each sequence of a batch."""

    sequences: SequencesOfBatch
    ask: Callable[[StateDecoder], Sequence[Any]]

    def __call__(self, batch: Batch, named: Named) -> Sequence[Any]:
        """Of the sequences of these names."""
        return self.ask(self.sequences(batch, named, as_list=True))


@dataclass(frozen=True, eq=False)
class CountLabels:
    """The work of comparing: how many steps (state, label) of a shard have a predicted state and a true label."""

    sequences: SequencesOfBatch
    method: str
    label: Hashable

    def prepare(self, batch: Batch) -> NDArray[np.float64]:
        """The counts of a shard."""
        decoder = self.sequences(batch, named_sequences(batch, None), as_list=False)
        labels = batch.codes[batch.discrete.index(self.label)]
        size = len(self.sequences.fitted.states), batch.domain[self.label].card + 1  # The last one: no label.
        counts = np.zeros(size)
        np.add.at(counts, (decoder.codes(self.method), labels), 1.0)
        return counts[:, :-1]

    def evaluate(self, prepared: NDArray[np.float64], parameters: None) -> NDArray[np.float64]:
        """As they are."""
        return prepared


@dataclass(frozen=True, eq=False)
class DecodedRows(RowTask):
    """Columns of one value a step: the state by a `method` of `predict`, or the probability of every state."""

    sequences: SequencesOfBatch
    method: str
    names: tuple[str, ...]

    def __call__(self, batch: Batch) -> dict[Hashable, Any]:
        """Of the whole sequences of a batch."""
        decoder = self.sequences(batch, named_sequences(batch, None), as_list=False)
        return self._columns(decoder.smoothed() if self.method == PROBABILITIES else decoder.states(self.method))

    def example(self) -> dict[Hashable, Any]:
        """Of one step."""
        fitted = self.sequences.fitted
        shares = np.zeros((1, len(fitted.states)))
        return self._columns(shares if self.method == PROBABILITIES else fitted.named(np.zeros(1, np.intp)))

    def _columns(self, answers: NDArray[Any]) -> dict[Hashable, Any]:
        values = answers.reshape(len(answers), -1)
        return {name: values[:, number] for number, name in enumerate(self.names)}
