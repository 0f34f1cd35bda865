"""Sequences of tables that are not in memory: one pass to survey their columns, one to hold them where they are."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from suffice.domain import Domain, Variable
from suffice.errors import DataError, listing
from suffice.models.hidden_markov.build import column_variables, emission_of, settings_of, survey_columns
from suffice.models.hidden_markov.decoding import StateDecoder
from suffice.models.hidden_markov.emissions.contract import Emission
from suffice.models.hidden_markov.emissions.registry import EmissionOptions
from suffice.models.hidden_markov.emissions.surveys import Survey
from suffice.models.hidden_markov.expectation import ChainExpectation
from suffice.models.hidden_markov.fitted import HiddenMarkovFitted
from suffice.models.hidden_markov.input import Opened
from suffice.models.hidden_markov.rounds import ChainWork, HeldChains, column_of
from suffice.sources.base import Batch, Source
from suffice.sources.held import Held, Settled, survey
from suffice.sources.partitioned import PartitionedSource
from suffice.sources.sequences import SequenceForm, Sequences

States = tuple[Hashable, ...]
#: What is asked about every step, besides the methods of `predict`.
PROBABILITIES = "probabilities"


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
        group, order = self.form.group, self.form.order
        work = ChainWork(emission, self.columns, self.label, states, None if order is None else group)
        held: Held[ChainExpectation] = self.source.hold(
            work,
            settled,
            group=group,
            order=order,
            raw=() if order is None else (group,),
            memory_limit=self.options["memory_limit"],
            threads=self.options["threads"],
        )
        return HeldChains(held, settled.rows, float(settled.rows))

    def read_as(self, emission: Emission, states: States) -> HeldChains | None:
        """The sequences as an emission that is known reads them; None where its kind has to see rows."""
        emitted = column_variables(self.options["emission"], settings_of(self.options, 1), self.columns)
        if emitted is None:
            return None
        return self.chains(emission, self.source.settle(self.domain(emitted, states)), states)

    def decoded(self, fitted: HiddenMarkovFitted, method: str) -> Any:
        """States by step, or their probabilities, as a frame of the kind that came in; None where there is none."""
        emitted = column_variables(self.options["emission"], settings_of(self.options, 1), self.columns)
        if emitted is None or not isinstance(self.source, PartitionedSource):
            return None
        domain = self.source.settle(self.domain(emitted, None)).domain
        task = DecodedRows(fitted, self.columns, method)
        try:
            return self.source.map(task, domain, group=self.form.group, order=self.form.order)
        except DataError:  # The types of the answer are found on a row of zeros, which some distributions cannot have.
            return None


@dataclass(frozen=True, eq=False)
class DecodedRows:
    """Columns of one value a step: the state by a `method` of `predict`, or the probability of every state."""

    fitted: HiddenMarkovFitted
    columns: States
    method: str

    def __call__(self, batch: Batch) -> dict[Hashable, Any]:
        """Of the whole sequences of a batch."""
        assert batch.offsets is not None
        values = self.fitted.emission.read([column_of(batch, name) for name in self.columns])
        opened = Opened(Sequences(values, batch.offsets), as_list=False, alone=False)
        decoder = StateDecoder(self.fitted, opened, 1)
        if self.method != PROBABILITIES:
            return {"state": decoder.states(self.method)}
        rows = decoder.smoothed()
        return {str(state): rows[:, code] for code, state in enumerate(self.fitted.states)}
