"""How a Markov network reads data, and which problem it makes of them.

Rows are counted in one pass; a contingency table or margins become the counts that their rows would give. Where
variables are hidden or values missing, the distinct rows are kept instead. Which solver is asked for, and what the data
lack, makes one of four problems: exact learning, learning by sampling, EM, and chains that are held at rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from suffice.answers import Answer, PatternTable
from suffice.array_types import Floats
from suffice.domain import Domain, Variable
from suffice.errors import (
    DataError,
    EstimateError,
    MergeError,
    MissingValueError,
    OptionError,
    listing,
)
from suffice.fitting.contract import Inputs, Judgement, Problem, Purpose
from suffice.fitting.summaries import Declaring, SummaryData, SummaryTask, answered, read_columns, rows_bar
from suffice.models.em.held_rows import HeldData, hold_rows, refuse_unkept, rows_are_kept, score_rows
from suffice.models.em.rows import has_missing
from suffice.models.markov.approximate.fit import SamplingProblem
from suffice.models.markov.approximate.held_sample import HeldSample, KeepSample
from suffice.models.markov.approximate.rows import check_cards, model_scopes, read_rows, summary_of_rows
from suffice.models.markov.contingency import (
    Cells,
    is_margins,
    named_margins,
    note_total,
    read_cells,
    read_margins,
    summary_of_cells,
    summary_of_margins,
)
from suffice.models.markov.exact import ExactProblem
from suffice.models.markov.fitted import MarkovFitted
from suffice.models.markov.log_linear import LogLinear
from suffice.models.markov.observed import answering, joint_counts, joint_entropy
from suffice.models.markov.specification import MarkovData, Specification, warn_conflict
from suffice.solvers.margins import describe, find_conflict
from suffice.sources.tally import summarize_complete
from suffice.statistics import Counts, Patterns, Statistic, Summary

if TYPE_CHECKING:
    from suffice.fitting.report import Report
    from suffice.sources.base import Source
    from suffice.sources.held import Settled

Ask = Callable[[Domain], tuple[Statistic, ...]]

#: Up to this many variables are counted together, to be compared with the saturated model ...
JOINT_VARIABLES = 12
#: ... and the counts are kept up to this many joint states: a fitted network must not hold its rows.
JOINT_CELLS = 2**16


class WeightsProblem(Problem[MarkovFitted], Protocol):
    """Data of a Markov network meet weights."""

    def again(self, fitted: MarkovFitted, report: Report) -> Judgement:
        """What a file says about its fit, without measuring it anew."""

    def standard_errors(self, fitted: MarkovFitted, judged: Judgement) -> Floats:
        """Standard errors of the weights (n_weights,)."""

    def weight_covariance(self, fitted: MarkovFitted, judged: Judgement) -> Floats:
        """The covariance of the weights (n_weights, n_weights)."""


@dataclass(frozen=True, eq=False)
class MarkovTask(SummaryTask[MarkovFitted]):
    """The weights of a log-linear model.

    by_rows: whether what was learned before are distinct rows, so that rows which join them are read as such.
    """

    spec: Specification
    by_rows: bool = False

    declaring = Declaring(numbers="cut its numbers into intervals, as a Markov network has no real columns")

    # -- the statistics ----------------------------------------------------------------------------------------------

    def required(
        self, columns: Sequence[Hashable], known: MarkovFitted | None, purpose: Purpose
    ) -> Mapping[Hashable, Variable | None]:
        """All variables that are not hidden; rows that are compared have the states of the fit."""
        states = self._states(known, purpose)
        return {name: states.get(name) for name in self.spec.observed}

    def _states(self, known: MarkovFitted | None, purpose: Purpose) -> dict[Hashable, Variable]:
        """The variables whose states are known before the data are read: any other state is an error."""
        if purpose != "compare" or known is None:
            return self.spec.declared
        return {v.name: Variable.discrete(v.name, v.states) for v in known.domain.variables}

    def asked(self, domain: Domain, known: MarkovFitted | None, purpose: Purpose) -> tuple[Statistic, ...]:
        """Counts of all variables together where they are few, else of every scope; or the distinct rows."""
        if self.spec.hidden:
            return self._patterns(domain)
        _check_kinds(domain)
        few, cells = len(self.spec.nodes) <= JOINT_VARIABLES, math.prod(domain.shape(self.spec.nodes))
        model = self.spec.model(domain)
        if self.spec.by_sampling:
            return (Counts(self.spec.nodes),) if few and cells <= JOINT_CELLS else tuple(map(Counts, model.scopes))
        if all(domain[name].card for name in self.spec.nodes):
            self.spec.plan(model)  # Too large? Then say so before any counting.
        closed = all(domain[name].origin == "declared" for name in self.spec.nodes)
        if few and not (closed and cells > JOINT_CELLS):
            return (Counts(self.spec.nodes),)
        further = known.family.extra_scopes if known is not None and purpose == "compare" else ()
        return tuple(Counts(scope) for scope in (*model.scopes, *further))

    def _patterns(self, domain: Domain) -> tuple[Statistic, ...]:
        """The distinct rows."""
        _check_kinds(domain)
        whole = domain.merge(Domain(self.spec.hidden.values())).select(self.spec.nodes)
        if all(variable.card for variable in whole.variables) and not self.spec.by_sampling:
            self.spec.plan(LogLinear(whole, self.spec.terms))  # Too large? Then say so before any counting.
        return (Patterns(self.spec.observed),)

    # -- reading -----------------------------------------------------------------------------------------------------

    def read(self, given: Inputs, known: MarkovFitted | None, purpose: Purpose) -> MarkovData:
        """Rows, a contingency table, margins by clique or a `Summary`, as the statistics that the fit needs."""
        ask: Ask = lambda domain: self.asked(domain, known, purpose)  # noqa: E731
        data = self._read(given, known, purpose, ask)
        return replace(data, statistics=self.check(data.statistics, known, purpose))

    def read_joint(self, given: Inputs, known: MarkovFitted) -> tuple[NDArray[Any], Floats]:
        """The joint states of the observed variables (k, variables) in the codes of a fit, and their counts (k,)."""
        ask: Ask = self._patterns if self.spec.hidden else lambda domain: (Counts(self.spec.nodes),)
        summary = self.check(self._read(given, known, "compare", ask, jointly=True).statistics, known, "compare")
        if has_missing(summary):
            patterns: PatternTable = summary[next(iter(summary.answers))]
            if (patterns.rows < 0).any():
                raise EstimateError("The rows have missing values, so there is no saturated model to compare with.")
            return patterns.rows.astype(np.intp), patterns.weights
        joint = joint_counts(summary, self.spec.nodes)
        if joint is None:
            raise MergeError(
                "The data do not hold joint counts of all variables. Give rows, or a table of all of them."
            )
        return joint

    def _read(
        self, given: Inputs, known: MarkovFitted | None, purpose: Purpose, ask: Ask, *, jointly: bool = False
    ) -> MarkovData:
        named = given["table"] is not None
        if named == (given.data is not None):
            raise DataError("Give rows or a Summary as data, or a contingency table as table=, and one of them alone.")
        data, columns, weight = given["table"] if named else given.data, given["columns"], given["sample_weight"]
        if isinstance(data, Summary):
            return MarkovData(super().read(given, known, purpose).statistics)
        states, by_rows = self._states(known, purpose), bool(self.spec.hidden) or (purpose == "join" and self.by_rows)
        listed = named_margins(data, self.spec.observed, named=named)
        data = data if listed is None else listed
        margins = is_margins(data, self.spec.observed)
        cells = None if margins else read_cells(data, columns, states, self.spec.observed, named=named)
        if named and not margins and cells is None:
            raise DataError(
                f"table= is a {type(data).__name__} without counts by joint state; expected an array with a name for "
                "each axis in columns=, a Series of counts with a MultiIndex, a cross table, a Table, or margins."
            )
        if (margins or cells is not None) and weight is not None:
            raise OptionError("A table of counts holds its weights already; give no sample_weight beside it.")
        if margins and by_rows:
            raise DataError(
                "Margins of cliques say too little where variables are hidden or rows have missing values: EM needs "
                "the rows, or a table of all variables that are seen."
            )
        if margins:
            return self._of_margins(data, states)
        if cells is not None:
            statistics = (
                self._rows_of_cells(cells, states) if by_rows else summary_of_cells(cells, self.spec.nodes, states, ask)
            )
            return MarkovData(statistics, 1, note_total("The table", cells.weights))
        from suffice.sources import open_source

        # Opened once, so that the source counts the passes of both attempts.
        source = open_source(data, columns=columns, sample_weight=weight)
        if by_rows:
            return self._of_rows(source, known, purpose, None, jointly=jointly)
        sampled = self.spec.by_sampling and not jointly and len(self.spec.nodes) > JOINT_VARIABLES
        if sampled and not _is_local(source):
            return self._of_shards(source, known, purpose, ask)
        if not sampled and not self.spec.by_sampling and self.options["missing"] != "raise":
            return self._complete(source, known, purpose, ask, jointly=jointly)
        try:
            data = None if sampled else self._counted(source, known, purpose, ask)
            if data is None or (purpose == "fit" and self.spec.by_sampling and self._lacks_rows(data.statistics)):
                here = sampled or _is_local(source)
                return self._of_sample(source, known, purpose) if here else self._of_shards(source, known, purpose, ask)
            return data
        except MissingValueError as error:
            if self.spec.by_sampling and self.options["solver"] != "sml":
                raise
            if self.options["missing"] == "raise":
                raise MissingValueError(f"{error} missing='em' learns from rows with missing values.") from None
            return self._counted(source, known, purpose, self._patterns)

    def _complete(
        self, source: Source, known: MarkovFitted | None, purpose: Purpose, ask: Ask, *, jointly: bool
    ) -> MarkovData:
        """One pass over an open source where no value is missing; else the distinct rows, by another."""
        domain, notes = read_columns(source, self.required(source.columns, known, purpose), self.declaring)
        with rows_bar(bool(self.options["progress"])) as advance:
            met = summarize_complete(source, domain, ask(domain), progress=advance)
        if met.summary is not None:
            return MarkovData(met.summary, max(source.passes, 1), notes)
        settled = replace(met.settled, domain=domain.merge(met.settled.domain))
        return self._of_rows(source, known, purpose, settled, jointly=jointly)

    def _of_rows(
        self, source: Source, known: MarkovFitted | None, purpose: Purpose, settled: Settled | None, *, jointly: bool
    ) -> MarkovData:
        """Rows that do not show everything: their distinct ones, or, where they are not in memory, where they are."""
        if _is_local(source) or purpose == "join" or jointly or (self.spec.by_sampling and purpose != "fit"):
            return self._counted(source, known, purpose, self._patterns)
        domain, notes = read_columns(source, self.required(source.columns, known, purpose), self.declaring)
        self._patterns(domain)  # Numbers, or a tree that is too large? Then say so before any reading.
        if purpose == "compare" and known is not None:
            return self._scored(source, domain, known)
        with rows_bar(bool(self.options["progress"])) as advance:
            if settled is None:
                settled = source.settle(domain, progress=advance)
            whole = settled.domain.merge(Domain(self.spec.hidden.values()))
            scopes = LogLinear(whole.select(self.spec.nodes), self.spec.terms).scopes
            limit = self.options["memory_limit"]
            held = hold_rows(source, settled, whole, scopes, memory_limit=limit, progress=advance)
        if isinstance(held, Summary):
            return MarkovData(held, max(source.passes, 1), notes)
        read = HeldData.of(held, settled, max(source.passes, 1), notes)
        return MarkovData(read.statistics, read.passes, read.notes, held=held)

    def _scored(self, source: Source, domain: Domain, known: MarkovFitted) -> MarkovData:
        """Rows compared with a fitted value where they are: the sum of their log-probabilities."""
        from suffice.models.markov.hidden.check import row_scores

        family = known.near
        parameters = family.tree(known.finite), known.log_normaliser
        scored = score_rows(source, domain, row_scores, parameters)
        return MarkovData(scored.statistics, scored.passes, score=scored.score)

    def _counted(self, source: Source, known: MarkovFitted | None, purpose: Purpose, ask: Ask) -> MarkovData:
        """One pass over an open source."""
        required = self.required(source.columns, known, purpose)
        data = answered(source, required, ask, declaring=self.declaring, progress=bool(self.options["progress"]))
        return MarkovData(data.statistics, data.passes, data.notes)

    def _of_shards(self, source: Source, known: MarkovFitted | None, purpose: Purpose, ask: Ask) -> MarkovData:
        """Rows of many variables that are not in memory: counted where they are, and held there if the solver asks."""
        domain, notes = read_columns(source, self.required(source.columns, known, purpose), self.declaring)
        with rows_bar(bool(self.options["progress"])) as advance:
            met = summarize_complete(source, domain, ask(domain), progress=advance)
            settled = replace(met.settled, domain=domain.merge(met.settled.domain))
            if met.summary is None:
                if self.options["solver"] != "sml" or self.options["missing"] == "raise":
                    raise self._missing(settled)
                return self._of_rows(source, known, purpose, settled, jointly=False)
            data = MarkovData(met.summary, max(source.passes, 1), notes)
            if purpose != "fit":
                return data
            if not settled.weight > 0:
                raise DataError("There are no rows to learn from.")
            if not self.spec.samples_rows:
                return data
            whole = settled.domain.select(self.spec.nodes)
            check_cards(whole)
            model = LogLinear(whole, self.spec.terms)
            work = KeepSample(self.spec.nodes, whole.shape(self.spec.nodes), tuple(model_scopes(model)))
            held = source.hold(work, settled, memory_limit=self.options["memory_limit"], progress=advance)
        return replace(
            data, passes=max(source.passes, 1), sample=HeldSample(held, len(self.spec.nodes), settled.weight)
        )

    def _lacks_rows(self, summary: Summary) -> bool:
        """Whether the solver needs rows, and the variables have too many joint states for counts of them to be kept."""
        return self.spec.samples_rows and math.prod(summary.domain.shape(self.spec.nodes)) > JOINT_CELLS

    def _missing(self, settled: Settled) -> MissingValueError:
        columns = listing([f"{name!r} ({count:,} of {settled.rows:,} rows)" for name, count in settled.missing.items()])
        advice = (
            "missing='em' learns from rows with missing values."
            if self.options["solver"] == "sml"
            else "Markov networks learn from whole rows: drop the rows with missing values, or fill them."
        )
        return MissingValueError(f"There are missing values in the columns {columns}. {advice}")

    def _of_sample(self, source: Source, known: MarkovFitted | None, purpose: Purpose) -> MarkovData:
        """Rows of many variables are read into memory as codes, and counted there."""
        domain, rows, count = read_rows(source, self.required(source.columns, known, purpose), self.spec.nodes)
        summary = summary_of_rows(domain, self.spec.terms, rows, count)
        return MarkovData(summary, max(source.passes, 1), sample=rows)

    def _rows_of_cells(self, cells: Cells, states: Mapping[Hashable, Variable]) -> Summary:
        """The cells of a table as distinct rows: tables have all variables but the hidden ones."""
        missing = [name for name in self.spec.observed if name not in cells.domain]
        if missing:
            raise DataError(f"The table has the variables {listing(cells.domain.names)}; it lacks {listing(missing)}.")
        domain = Domain(states.get(name, cells.domain[name]) for name in self.spec.observed)
        table = cells.over(domain)
        answer = PatternTable(np.argwhere(table > 0).astype(np.int32), table[table > 0])
        total = math.fsum(cells.weights)
        return Summary(domain, {Patterns(self.spec.observed): answer}, math.ceil(total - 1e-9), total)

    def _of_margins(self, data: Mapping[Any, Any], states: Mapping[Hashable, Variable]) -> MarkovData:
        tables = read_margins(data, states, self.spec.nodes)
        held = [set(table.variables) for table in tables]
        for term in self.spec.terms:
            for scope in (term,) if isinstance(term, tuple) else term.placements:
                if not any(keys.issuperset(scope) for keys in held):
                    raise DataError(
                        f"No margin holds {tuple(scope)!r}; the margins are those of {listing(list(data))}. Give one "
                        "for every term of the model."
                    )
        scopes, arrays = [table.variables for table in tables], [table.values for table in tables]
        labels = {name: states for table in tables for name, states in table.states.items()}
        conflicts: tuple[str, ...] = ()
        conflict = find_conflict(scopes, arrays)
        if conflict is not None:
            sentence = describe(conflict, scopes, labels)
            if self.options["on_inconsistent"] == "raise":
                raise DataError(f"{sentence} on_inconsistent='warn' fits them all the same, as far as it goes.")
            conflicts = (warn_conflict(sentence),)
        return MarkovData(summary_of_margins(tables, states), 1, note_total("The margins", arrays[0]), conflicts)

    def check(self, summary: Summary, known: MarkovFitted | None, purpose: Purpose) -> Summary:
        """A summary of the network's variables; of those that are compared, in the codes of the fit."""
        missing = [name for name in self.spec.observed if name not in summary.domain]
        if missing:
            raise MergeError(
                f"The summary holds {listing(summary.domain.names)}; the network needs {listing(missing)}."
            )
        summary = self._as_rows(summary) if self.spec.hidden else summary
        if purpose != "compare" or known is None:
            return summary
        for name in self.spec.observed:
            for state in summary.domain[name].states:
                known.domain[name].index(state)
        # The order of states is the network's: a category column of the rows may list the same states in another.
        return summary.align(
            Domain(known.domain[v.name] if v.name in known.domain else v for v in summary.domain.variables)
        )

    def _as_rows(self, summary: Summary) -> Summary:
        """The distinct rows of a summary; one that counts all variables together holds them too."""
        if has_missing(summary):
            return summary
        joint = joint_counts(summary, self.spec.observed)
        if joint is None:
            raise MergeError(
                f"EM needs the distinct rows of {listing(self.spec.observed)}, and the summary answers "
                f"{listing(summary.answers, 3)}. Summarise the data for this model with suffice.summarize(model, data),"
                " or fit all rows at once."
            )
        answers: dict[Statistic, Answer] = {}
        answers[Patterns(self.spec.observed)] = PatternTable.of(joint[0].astype(np.int32), joint[1])
        return Summary(summary.domain.select(self.spec.observed), answers, summary.rows, summary.weight)

    # -- joining, leaving, keeping -----------------------------------------------------------------------------------

    def joined(self, earlier: SummaryData, later: SummaryData, keep: float) -> SummaryData:
        """Rows that were learned, weighted by `keep`, and rows that join them."""
        refuse_unkept(earlier.statistics)
        first, second = self._alike(earlier.statistics, later.statistics)
        return replace(_markov_data(later), statistics=first * keep + second, sample=None)

    def without(self, earlier: SummaryData, leaving: SummaryData) -> SummaryData:
        """Rows that were learned, without those that leave."""
        refuse_unkept(earlier.statistics)
        first, second = self._alike(earlier.statistics, leaving.statistics)
        return replace(_markov_data(leaving), statistics=first - second, sample=None)

    def _alike(self, earlier: Summary, later: Summary) -> tuple[Summary, Summary]:
        """Two summaries that answer the same: as distinct rows where one of them holds these."""
        later = answering(later, list(earlier.answers))
        if has_missing(earlier) == has_missing(later):
            return earlier, later
        return self._as_rows(earlier), self._as_rows(later)

    def condensed(self, data: SummaryData) -> MarkovData:
        """Counts of more joint states than are kept are summed to those of the scopes; their entropy stays known."""
        summary = data.statistics
        entropy = _row_entropy(summary) if has_missing(summary) and rows_are_kept(summary) else None
        joint = Counts(self.spec.nodes) in summary.answers
        if joint and math.prod(summary.domain.shape(self.spec.nodes)) > JOINT_CELLS:
            entropy, model = joint_entropy(summary, self.spec.nodes), self.spec.model(summary.domain)
            plan = None if self.spec.by_sampling else partial(self.spec.plan, model)
            summary = answering(summary, [Counts(scope) for scope in model.scopes], plan)
        return replace(_markov_data(data), statistics=summary, entropy=entropy)

    def kept(self, data: SummaryData) -> MarkovData:
        """All but the rows, which are held while the fit needs them and no longer."""
        read = _markov_data(data)
        read.close()
        return replace(read, sample=None, held=copy(read.held))

    # -- the problem -------------------------------------------------------------------------------------------------

    def problem(self, data: SummaryData, start: MarkovFitted | None) -> WeightsProblem:
        """Exact learning, learning by sampling, EM, or chains that are held at rows."""
        read = _markov_data(data)
        if not has_missing(read.statistics):
            return SamplingProblem(self.spec, read) if self.spec.by_sampling else ExactProblem(self.spec, read)
        # EM loads where values are missing.
        from suffice.models.markov.hidden.clamped import ClampedProblem
        from suffice.models.markov.hidden.problem import MarkovEMProblem

        return ClampedProblem(self.spec, read) if self.spec.by_sampling else MarkovEMProblem(self.spec, read)


def _markov_data(data: SummaryData) -> MarkovData:
    """Data of a file are statistics alone."""
    return data if isinstance(data, MarkovData) else MarkovData(data.statistics, data.passes, data.notes)


def _is_local(source: Source) -> bool:
    """Whether rows are in this process, or come here only once."""
    return source.residence == "memory" or source.one_pass


def _check_kinds(domain: Domain) -> None:
    wrong = [variable.name for variable in domain.variables if variable.kind != "discrete"]
    if wrong:
        raise OptionError(f"{listing(wrong)} hold numbers; a Markov network needs states. Declare them in states=.")


def _row_entropy(summary: Summary) -> float | None:
    """Entropy of distinct rows in nats; None where some values are missing."""
    patterns: PatternTable = summary[next(iter(summary.answers))]
    if (patterns.rows < 0).any():
        return None
    shares = patterns.weights / summary.weight
    return -math.fsum((shares * np.log(shares)).tolist())
