"""The fit of a hidden Markov model: sequences become what its states emit, and counts where every state is known."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.checks import weights_of
from suffice.errors import DataError, EstimateError, OptionError
from suffice.families.base import generator
from suffice.fitting.contract import Inputs, Problem, Purpose
from suffice.fitting.row_marks import marks_of_steps
from suffice.models.hidden_markov.baum_welch import BaumWelch, HiddenSequences
from suffice.models.hidden_markov.build import emission_of
from suffice.models.hidden_markov.counting import Counting, KnownSequences
from suffice.models.hidden_markov.decoding import LabelledStates, StateDecoder
from suffice.models.hidden_markov.durations.options import read_durations
from suffice.models.hidden_markov.emissions.contract import Emission
from suffice.models.hidden_markov.expectation import ChainExpectation
from suffice.models.hidden_markov.fitted import HiddenMarkovFitted
from suffice.models.hidden_markov.input import (
    Opened,
    check_possible,
    columns_of,
    open_observations,
    read_labels,
    split_form,
    state_names,
)
from suffice.models.hidden_markov.learning import Learner
from suffice.models.hidden_markov.parameters import Statistics
from suffice.models.hidden_markov.rounds import CheckLabels, HeldChains, log_likelihood, open_steps
from suffice.models.hidden_markov.start import Start, before_counts
from suffice.models.hidden_markov.summary import (
    SummarisedSteps,
    objects,
    questions_of,
    states_needed,
    states_of_summary,
    summary_of,
    summary_there,
    whole_steps_needed,
)
from suffice.models.hidden_markov.tables import SequenceTable
from suffice.sources.grouping import NO_SEQUENCES
from suffice.sources.sequences import SequenceForm, Sequences
from suffice.statistics import Summary

States = tuple[Hashable, ...]


@dataclass(frozen=True, eq=False)
class HiddenMarkovTask:
    """What a `HiddenMarkovModel` declares, by its options."""

    options: Mapping[str, Any]

    def learner(self, emission: Emission, states: States) -> Learner:
        """The M-step."""
        return Learner.read(self.options, emission, states)

    def start(self, data: HiddenSequences) -> Start:
        """Where EM begins."""
        return Start(data.chains, self.learner(data.emission, data.states))

    def checked_start(self, data: HiddenSequences) -> Start:
        """As `start`; start values and known states that exclude one another are an error."""
        start = self.start(data)
        start.learner.check_start(data.states)
        if data.chains.labelled:
            data.chains.sum(None, by=CheckLabels(start.learner.structure, data.states, start.learner.durations))
        return start

    # -- reading -----------------------------------------------------------------------------------------------------

    def read(
        self, given: Inputs, known: HiddenMarkovFitted | None, purpose: Purpose
    ) -> HiddenSequences | KnownSequences:
        """Sequences, or their counts where every state is known; under the names of a fitted value that is known.

        Sequences that are compared with a fitted value stay sequences, whatever is known about their states.
        """
        form: SequenceForm = given["form"] or SequenceForm()
        if isinstance(given.data, Summary):
            return self._summarised(given, form, known, purpose)
        if known is not None:
            form = known.form_of(given.data, form)
        if given["sample_weight"] is None:
            table = SequenceTable.of(given.data, form, given["states"], self.options)
            held = None if table is None else self._there(table, known, purpose)
            if held is not None:
                return held
        form, paths = split_form(form, given.data, given["states"])
        opened = open_observations(given.data, form)
        weights = weights_of(given["sample_weight"], opened.sequences.n_sequences)
        if purpose == "compare":
            assert known is not None
            return self._compared(opened, paths, form, weights, known)
        names = state_names(self.options["states"]) if known is None else known.states
        counted = known is None and isinstance(self.options["states"], int | np.integer)
        labels, states = read_labels(paths, opened, form.lengths, names, counted=counted)
        if known is None and not weights.any():
            raise EstimateError("All sequences have the weight 0: there is nothing to learn from.")
        return self._settled(replace(opened.sequences, sample_weight=weights, labels=labels), states, known)

    def summarize(self, given: Inputs) -> Summary:
        """The counts of sequences whose states are all known, which stay where they are."""
        self._refuse_durations()
        form: SequenceForm = given["form"] or SequenceForm()
        names = state_names(self.options["states"])
        counted = isinstance(self.options["states"], int | np.integer)
        table = None
        if given["sample_weight"] is None:
            table = SequenceTable.of(given.data, form, given["states"], self.options)
        summary = None if table is None else summary_there(table, None if counted else names)
        if summary is not None:
            return summary
        form, paths = split_form(form, given.data, given["states"])
        opened = open_observations(given.data, form)
        labels, states = read_labels(paths, opened, form.lengths, names, counted=counted)
        if labels is None or (labels < 0).any():
            raise states_needed()
        weights = weights_of(given["sample_weight"], opened.sequences.n_sequences)
        sequences = replace(opened.sequences, sample_weight=weights, labels=labels)
        columns = columns_of(sequences)
        emission = self._emission(sequences, columns, states, None, hidden=False)
        if not emission.in_closed_form(emission.read(columns)):
            raise whole_steps_needed()
        return summary_of(sequences, columns, questions_of(emission, sequences.columns), states)

    def _summarised(
        self, given: Inputs, form: SequenceForm, known: HiddenMarkovFitted | None, purpose: Purpose
    ) -> KnownSequences:
        """The counts that a summary holds."""
        self._refuse_durations()
        beside = (given["states"], given["sample_weight"], *vars(form).values())
        if any(option is not None for option in beside):
            raise OptionError(
                "A Summary holds counts already; give neither states, sample_weight, lengths, group, order nor columns."
            )
        if purpose == "compare":
            raise OptionError("A summary has no sequences to compare with the model: give sequences.")
        names = state_names(self.options["states"]) if known is None else known.states
        counted = known is None and isinstance(self.options["states"], int | np.integer)
        states = states_of_summary(given.data, names, counted=counted)
        steps = SummarisedSteps.of(given.data, states)
        sequences = steps.sequences
        if not sequences.weight:
            raise EstimateError("All sequences have the weight 0: there is nothing to learn from.")
        settled = None if known is None else known.emission.describe_with(steps.columns)
        emission = self._emission(sequences, steps.columns, states, settled, hidden=False)
        for question in questions_of(emission, steps.names):
            given.data[question]
        observed = sequences.reading(emission.read(steps.columns))
        chains = HeldChains.here(observed, emission, self.options["threads"])
        data = HiddenSequences(chains, emission, states, steps.names)
        start = self.start(data)
        start.learner.check_start(states)
        structure = start.learner.structure
        structure.check_counts(steps.initial, steps.transitions, states)
        structure.check_symbols(observed, emission, states, lambda number: "The summary")
        before = before_counts(start, generator(self.options["random_state"]))
        statistics = replace(chains.counted(before), initial=steps.initial, transitions=steps.transitions)
        return KnownSequences(statistics, before, emission, states, steps.names, given.data.rows, 0)

    def _refuse_durations(self) -> None:
        """A summary has no durations."""
        if read_durations(self.options["durations"], state_names(self.options["states"]))[0]:
            raise OptionError(
                "A summary holds counts of transitions and of what states emit, and no durations: with durations= give "
                "the sequences themselves, to fit or partial_fit(sequences, states)."
            )

    def _there(
        self, table: SequenceTable, known: HiddenMarkovFitted | None, purpose: Purpose
    ) -> HiddenSequences | KnownSequences | None:
        """The sequences of a table that stay where they are; None where the emission has to see rows."""
        if known is None:
            return self._held(table)
        return self._joined_there(table, known) if purpose == "join" else self._compared_there(table, known)

    def _held(self, table: SequenceTable) -> HiddenSequences | KnownSequences | None:
        counted = isinstance(self.options["states"], int | np.integer)
        names = state_names(self.options["states"])
        surveyed = table.surveyed(None if counted else names)
        if surveyed is None:
            return None
        settled, known = surveyed
        states = table.states_of(settled, names, counted=counted)
        unlabelled = settled.rows if table.label is None else settled.missing.get(table.label, 0)
        emission = table.emission(len(states), known, hidden=unlabelled > 0)
        chains = table.chains(emission, settled, states)
        closed = unlabelled == 0 and not chains.sum(None, by=open_steps)
        if not closed and unlabelled == 0:
            emission = table.emission(len(states), known, hidden=True)
        chains = replace(chains, labelled=unlabelled < settled.rows)
        passes = table.source.passes
        data = HiddenSequences(chains, emission, states, list(table.columns), passes)
        return replace(self._counted(data), passes=passes, notes=chains.notes) if closed else data

    def _joined_there(self, table: SequenceTable, known: HiddenMarkovFitted) -> KnownSequences | None:
        settled = table.settled(known.states)
        if settled is None:
            return None
        if not settled.rows:
            raise DataError(NO_SEQUENCES)
        # Of a table only its states can be new; numbers are read in the units that are known.
        columns = [objects(settled.domain[name].states) for name in table.columns]
        wider = table.emission(len(known.states), known.emission.describe_with(columns), hidden=False)
        if table.label is None or settled.missing.get(table.label, 0):
            raise states_to_join()
        chains = replace(table.chains(wider, settled, known.states), labelled=True)
        with chains.held:
            if chains.sum(None, by=open_steps):
                raise states_to_join()
            data = HiddenSequences(chains, wider, known.states, known.columns, table.source.passes)
            return replace(self._counted(data), passes=data.passes, notes=chains.notes)

    def _compared_there(self, table: SequenceTable, known: HiddenMarkovFitted) -> HiddenSequences | None:
        chains = table.read_as(known.emission, known.states)
        if chains is None:
            return None
        check_possible(np.array([chains.sum(known.parameters, by=log_likelihood)]))
        return HiddenSequences(chains, known.emission, known.states, known.columns)

    def log_likelihood(self, given: Inputs, known: HiddenMarkovFitted) -> tuple[float, float] | None:
        """Of the sequences of a table that stay where they are, with the number of steps; None for other sequences."""
        form = known.form_of(given.data, given["form"])
        table = None if given["sample_weight"] is not None else SequenceTable.of(given.data, form, None, self.options)
        chains = None if table is None else table.read_as(known.emission, known.states)
        return None if chains is None else (chains.sum(known.parameters, by=log_likelihood), chains.weight)

    def decoded(self, data: Any, form: SequenceForm, known: HiddenMarkovFitted, method: str) -> Any:
        """What is asked about every step of a frame whose partitions are elsewhere; None for other sequences."""
        table = SequenceTable.of(data, known.form_of(data, form), None, self.options)
        return None if table is None else table.decoded(known, method)

    def labelled(
        self, data: Any, states: Any, form: SequenceForm, known: HiddenMarkovFitted, method: str
    ) -> LabelledStates | None:
        """Predicted states beside true labels, in a table that stays where it is; None for other sequences."""
        table = SequenceTable.of(data, known.form_of(data, form), states, self.options)
        return None if table is None or table.label is None else table.labelled(known, method)

    def answered(
        self,
        data: Any,
        form: SequenceForm,
        known: HiddenMarkovFitted,
        ask: Callable[[StateDecoder], Any],
    ) -> list[Any] | None:
        """What is asked about each sequence of a table that stays where it is; None for other sequences."""
        table = SequenceTable.of(data, known.form_of(data, form), None, self.options)
        return None if table is None else table.answered(known, ask)

    def _settled(
        self, sequences: Sequences[NDArray[Any]], states: States, known: HiddenMarkovFitted | None
    ) -> HiddenSequences | KnownSequences:
        """The sequences with their emission; its priors give modes where something is hidden, and else means."""
        names = sequences.columns if known is None else known.columns
        columns = columns_of(sequences)
        settled = None if known is None else known.emission.describe_with(columns)
        built = partial(self._emission, replace(sequences, columns=names), columns, states, settled)
        hidden = sequences.labels is None or bool((sequences.labels < 0).any())
        emission = built(hidden=hidden)
        observed = sequences.reading(emission.read(columns))
        closed = not hidden and emission.in_closed_form(observed.values)
        if not hidden and not closed and known is None:
            emission = built(hidden=True)
        chains = HeldChains.here(observed, emission, self.options["threads"])
        named: dict[Hashable, NDArray[Any]] = dict(enumerate(columns))
        marks = marks_of_steps(named, sequences.offsets, sequences.sample_weight)
        data = HiddenSequences(chains, emission, states, names, made=marks)
        if closed:
            return self._counted(data)
        if known is not None:
            raise states_to_join()
        return data

    def _emission(
        self,
        sequences: Sequences[Any],
        columns: list[NDArray[Any]],
        states: States,
        known: Mapping[str, Any] | None,
        *,
        hidden: bool,
    ) -> Emission:
        """What the states of sequences emit, of which the columns are seen; known: what an earlier fit has settled."""
        return emission_of(
            self.options,
            len(states),
            columns,
            sequences.columns,
            hidden=hidden,
            known=known,
            variables=sequences.variables,
            weights=sequences.step_weights,
        )

    def _compared(
        self,
        opened: Opened[NDArray[Any]],
        paths: object,
        form: SequenceForm,
        weights: Floats,
        known: HiddenMarkovFitted,
    ) -> HiddenSequences:
        labels, _ = read_labels(paths, opened, form.lengths, known.states)
        values = known.emission.read(columns_of(opened.sequences))
        observed = opened.sequences.reading(values, sample_weight=weights, labels=labels)
        expectation = ChainExpectation(observed, known.emission, self.options["threads"])
        check_possible(expectation.log_likelihoods(known.parameters))
        chains = HeldChains.here(observed, known.emission, self.options["threads"])
        return HiddenSequences(chains, known.emission, known.states, known.columns)

    def _counted(self, data: HiddenSequences) -> KnownSequences:
        before = before_counts(self.checked_start(data), generator(self.options["random_state"]))
        statistics = data.chains.counted(before)
        return KnownSequences(statistics, before, data.emission, data.states, data.columns, data.rows)

    # -- problems ----------------------------------------------------------------------------------------------------

    def problem(
        self, data: HiddenSequences | KnownSequences, start: HiddenMarkovFitted | None
    ) -> Problem[HiddenMarkovFitted]:
        """Counts, or EM."""
        if isinstance(data, KnownSequences):
            return self.counting(data)
        return BaumWelch(self.options, data, self.checked_start(data))

    def counting(self, data: KnownSequences) -> Counting:
        """The problem of counts."""
        return Counting(self.options, data, self.learner(data.emission, data.states))

    def compared(self, given: Inputs, known: HiddenMarkovFitted) -> BaumWelch:
        """The problem of sequences that are compared with a fitted value."""
        data = self.read(given, known, "compare")
        assert isinstance(data, HiddenSequences)
        return BaumWelch(self.options, data, self.start(data))

    def joined(
        self, data: KnownSequences, known: HiddenMarkovFitted, held: Statistics, rows: int, sign: int
    ) -> KnownSequences:
        """Counts that were held, of so many rows, with those of further sequences added (sign 1) or taken out (-1)."""
        held = replace(held, emission=known.emission.laid_out(held.emission, data.emission))
        statistics = held + data.statistics if sign > 0 else held.without(data.statistics, data.emission)
        emission = data.emission.rescaled(statistics.emission)
        return replace(data, statistics=statistics, emission=emission, rows=rows + sign * data.rows)


def states_to_join() -> OptionError:
    """The error where what joins or leaves a fit is no count."""
    return OptionError(
        "Only sequences whose states are all known, and whose steps have all columns or none, can be added or taken "
        "out."
    )
