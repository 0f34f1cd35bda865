"""How a network reads rows, and which problem they set."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING

from suffice.domain import Domain, Variable
from suffice.errors import MissingValueError, OptionError, listing, without_states
from suffice.fitting.contract import Inputs, Problem, Purpose
from suffice.fitting.summaries import SummaryData, SummaryTask, read_columns, rows_bar
from suffice.models.bayesian.complete import CompleteProblem
from suffice.models.bayesian.fitted import NetworkFitted
from suffice.models.bayesian.learning import MOST_SQUARES, NodeLearning, check_range, refuse_huge
from suffice.models.bayesian.target import check_labels
from suffice.models.counts_or_rows import refuse_counts_as_rows
from suffice.models.em.held_rows import HeldData, HeldRows, hold_rows, refuse_unkept, score_rows
from suffice.models.em.rows import batch_of, has_missing, read_rows
from suffice.models.evidence import known_columns
from suffice.sources.tally import summarize_complete, summarize_source
from suffice.statistics import CompleteRows, Counts, Moments, Patterns, Summary

if TYPE_CHECKING:
    from suffice.sources.base import Source
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
        if purpose == "fit" and not self.learning.hidden:
            refuse_counts_as_rows(given.data, self.options["states"] or {}, list(self.learning.parents))
        if purpose == "join" and earlier is not None:
            refuse_unkept(earlier.statistics)
        by_rows = purpose != "fit" and earlier is not None and has_missing(earlier.statistics)
        return SummaryTask.read(replace(self, by_rows=by_rows), given, known, purpose)

    def read_source(self, source: Source, known: NetworkFitted | None, purpose: Purpose) -> SummaryData:
        """One pass over an open source where all rows show all nodes and sums say all that nodes learn from.

        Else their distinct rows by another pass; rows that are not in memory stay where they are.
        """
        domain, notes = read_columns(source, self.required(source.columns, known, purpose), self.declaring)
        unread = [name for name in self.learning.hidden if name in source.columns]
        if unread:
            notes = (*notes, f"{listing(unread)} is hidden: the column of that name is not read")
        asked = self.asked(domain, known, purpose)
        if source.residence == "sites" and asked != (Patterns(domain.names),):
            asked = tuple(_as_counts(question, domain) for question in asked)
        staying = not (source.residence == "memory" or source.one_pass or purpose == "join")
        refused = self.options["missing"] == "raise"
        with rows_bar(bool(self.options["progress"])) as advance:
            settled = None
            if staying and any(isinstance(question, CompleteRows) for question in asked):
                settled = source.settle(domain, progress=advance)
                if refused and settled.missing:
                    summarize_source(source, domain, _counted(domain))  # Names column and row in its error.
            elif asked != (Patterns(domain.names),):
                if refused:
                    return SummaryData(summarize_source(source, domain, asked, progress=advance), source.passes, notes)
                met = summarize_complete(source, domain, asked, progress=advance)
                if met.summary is not None:
                    return SummaryData(met.summary, max(source.passes, 1), notes)
                settled = replace(met.settled, domain=domain.merge(met.settled.domain))
            if not staying:
                rows = summarize_source(source, domain, (Patterns(domain.names),), progress=advance)
                return SummaryData(rows, max(source.passes, 1), notes)
            if purpose == "compare" and known is not None:
                # EM and its engines load when values are missing.
                from suffice.models.bayesian.em.expectation import row_scores

                return score_rows(source, domain, row_scores, dict(known.nodes))
            if settled is None:
                settled = source.settle(domain, progress=advance)
            whole = settled.domain.merge(Domain(self.learning.hidden.values()))
            limits = {"memory_limit": self.options["memory_limit"], "threads": self.options["threads"]}
            held = hold_rows(source, settled, whole, self._tables(whole), progress=advance, **limits)
        if isinstance(held, Summary):
            return SummaryData(self.complete(held), max(source.passes, 1), notes)
        return HeldData.of(held, settled, max(source.passes, 1), notes)

    def _tables(self, domain: Domain) -> list[tuple[Hashable, ...]]:
        """The variables of each family, or any two of them where a regression is learned from products."""
        families = [(self.learning.learner(n, domain), self.learning.family(n, domain)) for n in self.learning.parents]
        return [
            names
            for learner, family in families
            for names in (combinations(family.names, 2) if learner.asks_rows else [family.names])
        ]

    def kept(self, data: SummaryData) -> SummaryData:
        """What a fit keeps: of rows that stay where they are how many there were, and no more."""
        if not isinstance(data, HeldData):
            return data
        data.close()
        return data.at_rest()

    def joined(self, earlier: SummaryData, later: SummaryData, keep: float) -> SummaryData:
        """Rows that were learned, weighted by `keep`, and rows that join them."""
        refuse_unkept(earlier.statistics)
        return super().joined(earlier, later, keep)

    def without(self, earlier: SummaryData, leaving: SummaryData) -> SummaryData:
        """Rows that were learned, without those that leave."""
        refuse_unkept(earlier.statistics)
        return super().without(earlier, leaving)

    def required(
        self, columns: Sequence[Hashable], known: NetworkFitted | None, purpose: Purpose
    ) -> Mapping[Hashable, Variable | None]:
        """All nodes but the hidden ones: as declared, or as their kinds say; once learned, as they were learned.

        ObservedRows that join may bring new states; those that are compared may lack columns.
        """
        if purpose == "compare" and known is not None:
            return {v.name: replace(v, origin="declared") for v in known_columns(known.observed_domain, columns)}
        required = required_columns(self.learning, self.variables)
        target = self.options["target"]
        if target is not None and required.get(target) is None:
            required = {**required, target: Variable(target, "discrete")}
        if purpose == "fit" or known is None:
            return required
        return {n: Variable(n, known.variable(n).kind) if v is None else v for n, v in required.items()}

    def asked(self, domain: Domain, known: NetworkFitted | None, purpose: Purpose) -> tuple[Statistic, ...]:
        """What the learners of the nodes read, or the distinct rows.

        ObservedRows to be scored may lack columns, which are then summed out like missing values.
        """
        if self.by_rows or len(domain) < len(self.learning.parents):
            return (Patterns(domain.names),)
        asked = self.learning.statistics(domain)
        if purpose == "compare" or not self.learning.for_target:
            return asked
        return (*asked, self.learning.around_target())

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
                raise without_states(variable.name, summary.rows)
        if isinstance(data, HeldData) and data.held is not None:
            refuse_huge(name for name, square in data.held.squares.items() if not square < MOST_SQUARES)
            if not self.learning.hidden and data.held.show(self.learning.parents):
                return CompleteProblem(self.learning, data, self._held_statistics(data.held, domain), domain)
        else:
            refuse_unkept(summary)
        check_range(summary)
        if self.options["target"] is not None and domain[self.options["target"]].kind == "discrete":
            check_labels(domain[self.options["target"]])
        if self.learning.for_target:
            from suffice.models.bayesian.conditional import ConditionalProblem, check_conditional

            check_conditional(self.learning, domain)
            if has_missing(summary):
                raise MissingValueError(
                    "The rows have missing values, and objective='conditional' needs complete ones. Leave those rows "
                    "out or fill them, or use objective='joint', which learns from them by EM."
                )
            return ConditionalProblem(self.learning, data, summary, domain)
        if has_missing(summary):
            # EM and its engines load when values are missing.
            from suffice.models.bayesian.em.problem import NetworkEMProblem

            return NetworkEMProblem(self.learning, data, domain)
        return CompleteProblem(self.learning, data, summary, domain)

    def _held_statistics(self, rows: HeldRows, domain: Domain) -> Summary:
        """The statistics of a closed form, of rows that stay where they are and show all nodes."""
        from suffice.models.bayesian.em.observed import complete_summary

        families = [(self.learning.learner(n, domain), self.learning.family(n, domain)) for n in self.learning.parents]
        questioned = [q for learner, family in families if learner.asks_rows for q in learner.statistics(family)]
        return complete_summary(rows, domain, self.learning.statistics(domain), questioned)

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


def _as_counts(question: Statistic, domain: Domain) -> Statistic:
    """The distinct rows of a few columns of states as a table of counts, which a site may let go."""
    discrete = all(domain[name].kind == "discrete" for name in question.columns)
    return Counts(question.variables) if type(question) is Patterns and discrete else question


def _counted(domain: Domain) -> tuple[Statistic, ...]:
    """Questions that need a value of every column in every row."""
    numbers = domain.numbers
    return tuple(Moments((name,)) if name in numbers else Counts((name,)) for name in domain.names)


def required_columns(learning: NodeLearning, variables: Mapping[Hashable, Variable]) -> dict[Hashable, Variable | None]:
    """The columns that a network reads, as declared or as the kinds of its nodes say; None leaves it to the column."""
    hidden = learning.hidden
    required = {n: variables.get(n) for n in learning.parents if n not in hidden}
    if not learning.options["nodes"]:
        return required
    from suffice.models.bayesian.nodes.kinds import required_column

    kinds = {n: learning.chosen_kind(n) for n in required}
    return {n: v if kinds[n] is None else required_column(n, kinds[n], v) for n, v in required.items()}
