"""The fit of a network through time: series become the statistics of families where they show everything."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from suffice.answers import PatternTable
from suffice.domain import Domain, Variable
from suffice.errors import MissingValueError, OptionError, listing, without_states
from suffice.fitting.contract import Found, Inputs, Judgement, Problem, Purpose
from suffice.fitting.control import Control
from suffice.fitting.driver import closed_on_failure
from suffice.fitting.row_marks import marks_of_summary, named
from suffice.fitting.summaries import SummaryData, SummaryTask
from suffice.models.bayesian.complete import CompleteProblem
from suffice.models.bayesian.learning import check_range
from suffice.models.bayesian.nodes.kinds import required_column
from suffice.models.dynamic_network.clock import Step
from suffice.models.dynamic_network.fitted import DynamicFitted
from suffice.models.dynamic_network.held import HeldSeries, hold_series, source_elsewhere
from suffice.models.dynamic_network.learning import CompleteStatistics, FamilyLearning
from suffice.models.dynamic_network.reading import required_to_compare
from suffice.models.dynamic_network.series import SeriesForm, read_series, with_inputs
from suffice.models.dynamic_network.structure import SliceStructure
from suffice.models.em.held_rows import refuse_unkept
from suffice.models.em.rows import has_missing
from suffice.statistics import Patterns, Statistic, Summary


@dataclass(frozen=True, eq=False)
class SeriesData(SummaryData):
    """Series that were read: as they are where they do not show everything, or are compared with a fitted value.

    `step` is how long a slice of dates is.
    """

    series: HeldSeries | None = None
    step: Step | None = None

    @property
    def lasting(self) -> bool:
        """Nothing is kept of series that were elsewhere."""
        return self.series is None or self.series.local is not None

    @property
    def rounds(self) -> tuple[str, ...]:
        """Those of the series."""
        return () if self.series is None else self.series.rounds

    def close(self) -> None:
        """Let the series go, where they are elsewhere."""
        if self.series is not None:
            self.series.close()

    def at_rest(self) -> SeriesData:
        """The same without series that are elsewhere."""
        return self if self.series is None else replace(self, series=self.series.at_rest())


@dataclass(frozen=True, eq=False)
class DynamicTask(SummaryTask[DynamicFitted]):
    """A network through time, by its options: `learning` has its families, `variables` are what states= declares."""

    learning: FamilyLearning
    structure: SliceStructure
    variables: Mapping[Hashable, Variable]

    of_sequences = True

    # -- reading -----------------------------------------------------------------------------------------------------

    def form_of(self, form: Mapping[str, Any], columns: object) -> SeriesForm:
        """How the data hold series, as `sf.summarize` was told: one part of several."""
        if columns is not None or "lengths" in form:
            raise OptionError(
                "lengths= and columns= are for models of one column; a network through time reads its nodes by name. "
                "Give group=, or a list of tables."
            )
        return SeriesForm(**form, apart=True)

    def read(self, given: Inputs, known: DynamicFitted | None, purpose: Purpose) -> SummaryData:
        """The statistics of series, or those of a `Summary`; series that are compared stay as they are."""
        form: SeriesForm = given["form"] or SeriesForm()
        if isinstance(given.data, Summary):
            if not form.is_plain or given["sample_weight"] is not None:
                raise OptionError(
                    "A Summary holds counts already; give neither group, order, time nor sample_weight with it."
                )
            return super().read(given, known, purpose)
        series = self.series(given, form, known, purpose)
        notes = (*series.notes, *self._unread(series))
        with closed_on_failure(series):  # type: ignore[arg-type]
            if purpose == "compare" or self.learning.hidden or not series.is_complete:
                if self.options["missing"] == "raise" and not series.is_complete:
                    raise _incomplete(series)
                return SeriesData(_nothing(series), series.passes, notes, series, series.step)
            question = CompleteStatistics.of(self.learning, self.structure, series.domain)
            summary = series.ask(question)
            notes = (*series.notes, *series.rounds)
        series.close()
        return SeriesData(summary, series.passes, notes, step=series.step)

    def _unread(self, series: HeldSeries) -> tuple[str, ...]:
        """What to say about columns of the names of hidden nodes."""
        unread = [name for name in self.learning.hidden if name in series.ignored]
        return (f"{listing(unread)} is hidden: the column of that name is not read",) if unread else ()

    def joined(self, earlier: SummaryData, later: SummaryData, keep: float) -> SummaryData:
        """Series that were learned, weighted by `keep`, and series that join them."""
        _refuse_series(earlier, later)
        return super().joined(earlier, later, keep)

    def without(self, earlier: SummaryData, leaving: SummaryData) -> SummaryData:
        """Series that were learned, without those that leave."""
        _refuse_series(earlier, leaving)
        return super().without(earlier, leaving)

    def kept(self, data: SummaryData) -> SummaryData:
        """What a fit keeps: of series that stay where they are how many slices there were, and no more."""
        if not isinstance(data, SeriesData):
            return data
        data.close()
        return data.at_rest()

    def series(self, given: Inputs, form: SeriesForm, known: DynamicFitted | None, purpose: Purpose) -> HeldSeries:
        """The series of a table, or of a list of tables; those of a table elsewhere stay there."""

        def required(columns: Sequence[Hashable]) -> Mapping[Hashable, Variable | None]:
            return self.required(columns, known, purpose)

        step, guess = (None, not form.apart) if known is None else (known.step, False)
        weight = given["sample_weight"]
        source = None if purpose == "compare" else source_elsewhere(given.data, form, weight)
        if source is not None:
            structure, options = self.structure, self.options
            held = hold_series(source, form, required, self.declaring, structure, options, step, guess=guess)
            if not self._needs_rows(held.domain):
                return held
            held.close()
        series = read_series(given.data, form, weight, required, self.declaring, step=step, guess=guess)
        return HeldSeries.here(with_inputs(series, self.structure), self.structure)

    def _needs_rows(self, seen: Domain) -> bool:
        """Whether some family has no finite statistics, so that its rows are needed in this process."""
        everything = Domain({**{v.name: v for v in seen.variables}, **self.learning.hidden}.values())
        domain = self.structure.variables(everything)
        learners = ((f, self.learning.learner(f, domain, prior=False)) for f in self.structure.families)
        return any(learner.needs_rows(self.learning.family(f, domain)) for f, learner in learners)

    def required(
        self, columns: Sequence[Hashable], known: DynamicFitted | None, purpose: Purpose
    ) -> Mapping[Hashable, Variable | None]:
        """All nodes and inputs: as declared, or as their kinds say; once learned, as they were learned."""
        if purpose == "compare" and known is not None:
            return required_to_compare(known, columns)
        names = [name for name in self.structure.nodes if name not in self.learning.hidden]
        required = {name: self._declared(name) for name in (*names, *self.structure.inputs)}
        if purpose == "fit" or known is None:
            return required
        return {n: Variable(n, known.domain[n].kind) if v is None else v for n, v in required.items()}

    def _declared(self, name: Hashable) -> Variable | None:
        declared, kinds = self.variables.get(name), self.learning.options["nodes"] or {}
        kind = kinds.get(name)
        return declared if kind is None else required_column(name, kind, declared)

    def asked(self, domain: Domain, known: DynamicFitted | None, purpose: Purpose) -> tuple[Statistic, ...]:
        """The statistics of all families."""
        return self.learning.asked_by(self.structure.families, self.structure.variables(domain))

    def marks(self, data: SummaryData) -> Mapping[str, tuple[float, float]]:
        """Those of each node, summed over the families that hold it, of which each counts slices of its own."""
        summary, marks = data.statistics, dict[str, tuple[float, float]]()
        for node in self.structure.nodes:
            for family in self.structure.versions(node):
                asked = [q for q in self.learning.asked_by([family], summary.domain) if q in summary.answers]
                known = marks_of_summary(replace(summary, answers={q: summary.answers[q] for q in asked}))
                for own, name in ((named(family), named(node)), (named(family, family), named(node, node))):
                    before, mine = marks.get(name, (0.0, 0.0)), known.get(own, (0.0, 0.0))
                    marks[name] = (before[0] + mine[0], before[1] + mine[1])
        return marks

    def columns(self, data: SummaryData) -> tuple[Hashable, ...]:
        """The nodes of a slice."""
        return self.structure.nodes

    def check(self, summary: Summary, known: DynamicFitted | None, purpose: Purpose) -> Summary:
        """The summary, where it has the families of this network."""
        lacking = [name for family in self.structure.families for name in self.structure.family_names(family)]
        lacking = [name for name in dict.fromkeys(lacking) if name not in summary.domain]
        if lacking and purpose != "compare":
            raise OptionError(
                f"The summary has no {listing(lacking)}: it was made for another model. Make it by sf.summarize(model, "
                "data) with this one."
            )
        return summary

    # -- the problem -------------------------------------------------------------------------------------------------

    def problem(self, data: SummaryData, start: DynamicFitted | None) -> Problem[DynamicFitted]:
        """A closed form for each family by itself where the series show everything, else EM."""
        summary = data.statistics
        if isinstance(data, SeriesData) and data.series is not None:
            # EM and its engines load when values are missing.
            from suffice.models.dynamic_network.hidden import hidden_problem

            return hidden_problem(self.learning, self.structure, data, data.series)
        refuse_unkept(summary)
        for variable in summary.domain.variables:
            if variable.kind == "discrete" and variable.card == 0:
                raise without_states(variable.name, summary.rows)
        check_range(summary)
        return CompleteSeries(self, data)


def _nothing(series: HeldSeries) -> Summary:
    """What is known of series whose statistics are expected ones."""
    names = series.domain.names
    nothing: dict[Statistic, Any] = {Patterns(names): PatternTable.empty(names, series.domain)}
    return Summary(series.domain, nothing, series.overview.slices, series.overview.weight)


def _refuse_series(*parts: SummaryData) -> None:
    """Series that do not show everything have no statistics that add up."""
    series = [data.series for data in parts if isinstance(data, SeriesData)]
    if any(one is not None for one in series) or any(has_missing(data.statistics) for data in parts):
        raise OptionError(
            "Series with missing values or hidden nodes neither join nor leave: their expected statistics depend on "
            "all of the parameters. Fit all series together, from start= the tables learned so far."
        )


def _incomplete(series: HeldSeries) -> MissingValueError:
    name, here = next(name for name in series.domain.names if not series.shown(name)), series.local
    gone = series.overview.slices - series.overview.values.get(name, 0)
    where = f"{gone} slices" if here is None else here.where(int(here.missing(name).argmax()))
    return MissingValueError(
        f"{name!r} has no value in {where}. Fill the missing values in, or leave those series out."
    )


@dataclass(frozen=True, eq=False)
class CompleteSeries:
    """Series that show everything meet a network: each family is learned from its own statistics, by itself."""

    task: DynamicTask
    data: SummaryData

    @property
    def _problem(self) -> CompleteProblem:
        """The same for the families as nodes of one network."""
        summary = self.data.statistics
        return CompleteProblem(self.task.learning, self.data, summary, summary.domain)

    def solve(self, control: Control) -> Found[DynamicFitted]:
        """All families, those of one kind together."""
        solved: Any = self._problem.solve(control)
        step = self.data.step if isinstance(self.data, SeriesData) else None
        return replace(solved, fitted=DynamicFitted.of(solved.fitted, self.task.structure, step))

    def judge(self, fitted: DynamicFitted) -> Judgement:
        """Slope, bound and existence of each family by itself."""
        return self._problem.judge(fitted.network)

    def identity(self) -> tuple[str, str]:
        """The structure: a closed form is not gone on with."""
        return "DynamicBayesianNetwork", repr(self.task.structure.families)
