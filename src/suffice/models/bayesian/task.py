"""How a network reads rows, and which problem they set."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from suffice.domain import Domain, Variable
from suffice.errors import MissingValueError, OptionError, listing
from suffice.fitting.contract import Inputs, Problem, Purpose
from suffice.fitting.summaries import SummaryData, SummaryTask
from suffice.models.bayesian.complete import CompleteProblem
from suffice.models.bayesian.fitted import NetworkFitted
from suffice.models.bayesian.learning import NodeLearning, check_range
from suffice.models.em.rows import batch_of, has_missing, read_rows
from suffice.models.evidence import known_columns
from suffice.statistics import Patterns, Summary

if TYPE_CHECKING:
    from suffice.statistics import Statistic


@dataclass(frozen=True, eq=False)
class NetworkTask(SummaryTask[NetworkFitted]):
    """A network, by its options: `learning` says how each node is learned, `variables` what states= declares.

    `by_rows` asks for the distinct rows instead of statistics of each family, as EM needs them.
    """

    learning: NodeLearning
    variables: Mapping[Hashable, Variable]
    by_rows: bool = False

    # -- reading -----------------------------------------------------------------------------------------------------

    def read(self, given: Inputs, known: NetworkFitted | None, purpose: Purpose) -> SummaryData:
        """One pass for the counts; where missing values turn up, a pass for the distinct rows instead.

        ObservedRows that join those learned, or are compared with them, are read as these were; a new fit begins anew.
        """
        weight, earlier = given["sample_weight"], given["earlier"]
        if isinstance(weight, str | tuple) and weight in self.learning.parents:
            raise OptionError(
                f"sample_weight names {weight!r}, which is a node of the network; expected one weight a row, or "
                "a column that holds weights and is no node."
            )
        by_rows = purpose != "fit" and earlier is not None and has_missing(earlier.statistics)
        return SummaryTask.read(replace(self, by_rows=by_rows), given, known, purpose)

    def read_source(self, source: Any, known: NetworkFitted | None, purpose: Purpose) -> SummaryData:
        """One pass over an open source, or two."""
        try:
            data = super().read_source(source, known, purpose)
        except MissingValueError:
            if self.options["missing"] == "raise":
                raise
            data = SummaryTask.read_source(replace(self, by_rows=True), source, known, purpose)
        unread = [name for name in self.learning.hidden if name in source.columns]
        notes = (f"{listing(unread)} is hidden: the column of that name is not read",) if unread else ()
        return replace(data, notes=(*data.notes, *notes))

    def required(
        self, columns: Sequence[Hashable], known: NetworkFitted | None, purpose: Purpose
    ) -> Mapping[Hashable, Variable | None]:
        """All nodes but the hidden ones: as declared, or as their kinds say; once learned, as they were learned.

        ObservedRows that join may bring new states; those that are compared may lack columns.
        """
        if purpose == "compare" and known is not None:
            return {v.name: replace(v, origin="declared") for v in known_columns(known.observed_domain, columns)}
        required = required_columns(self.learning, self.variables)
        if purpose == "fit" or known is None:
            return required
        return {n: Variable(n, known.variable(n).kind) if v is None else v for n, v in required.items()}

    def asked(self, domain: Domain, known: NetworkFitted | None, purpose: Purpose) -> tuple[Statistic, ...]:
        """What the learners of the nodes read, or the distinct rows.

        ObservedRows to be scored may lack columns, which are then summed out like missing values.
        """
        if self.by_rows or len(domain) < len(self.learning.parents):
            return (Patterns(domain.names),)
        return self.learning.statistics(domain)

    def check(self, summary: Summary, known: NetworkFitted | None, purpose: Purpose) -> Summary:
        """The summary of rows to be compared, laid out as the nodes are.

        The order of states is the network's: a category column of the rows may list the same states in another.
        """
        if purpose != "compare" or known is None:
            return summary
        own = Domain(known.variable(name) for name in summary.domain.names)
        return self.complete(summary.align(own.merge(summary.domain)))

    # -- the problem -------------------------------------------------------------------------------------------------

    def problem(self, data: SummaryData, start: NetworkFitted | None) -> Problem[NetworkFitted]:
        """A closed form where all rows show all nodes, else EM."""
        summary = self.complete(data.statistics)
        domain = summary.domain.merge(Domain(self.learning.hidden.values()))
        for variable in domain.variables if 0 in domain.cards else ():
            if variable.kind == "discrete" and variable.card == 0:
                raise OptionError(f"Column {variable.name!r} has no values and no declared states. Give states=.")
        check_range(summary)
        if has_missing(summary):
            # EM and its engines load when values are missing.
            from suffice.models.bayesian.em.problem import NetworkEMProblem

            return NetworkEMProblem(self.learning, data, domain)
        return CompleteProblem(self.learning, data, summary, domain)

    def complete(self, summary: Summary) -> Summary:
        """The statistics of a closed form, where a summary holds distinct rows that show all nodes; else the summary.

        Such rows are what is left when those with missing values are unlearned; with others they may join again.
        """
        learning = self.learning
        if not has_missing(summary) or learning.hidden or not set(learning.parents) <= set(summary.domain.names):
            return summary
        rows = read_rows(summary, summary.domain)
        if not rows.show(learning.parents):
            return summary
        from suffice.sources.tally import tally

        counted = tally(batch_of(rows, rows.columns), learning.statistics(summary.domain), "available")
        return Summary(counted.domain, counted.answers, summary.rows, summary.weight)


def required_columns(learning: NodeLearning, variables: Mapping[Hashable, Variable]) -> dict[Hashable, Variable | None]:
    """The columns that a network reads, as declared or as the kinds of its nodes say; None leaves it to the column."""
    hidden = learning.hidden
    required = {n: variables.get(n) for n in learning.parents if n not in hidden}
    if not learning.options["nodes"]:
        return required
    from suffice.models.bayesian.nodes.kinds import required_column

    kinds = {n: learning.chosen_kind(n) for n in required}
    return {n: v if kinds[n] is None else required_column(n, kinds[n], v) for n, v in required.items()}
