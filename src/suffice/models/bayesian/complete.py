"""The problem that complete rows set a network: a closed form for each node by itself; and what every problem says."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from suffice.domain import Domain
from suffice.errors import EstimateError, OptionError, OptionWarning, Remark, listing
from suffice.fitting.contract import Found, Judgement
from suffice.fitting.summaries import SummaryData
from suffice.models.bayesian.fitted import NetworkFitted
from suffice.models.bayesian.learning import NodeLearning
from suffice.models.bayesian.nodes.table import TableNode
from suffice.statistics import Summary

# What judges a closed form is loaded when someone looks at its report.
if TYPE_CHECKING:
    from suffice.fitting.control import Control
    from suffice.fitting.report import MatchedStatistics

#: How a report names the estimates of nodes.
ESTIMATES = {"mle": "maximum likelihood", "mean": "posterior mean", "map": "MAP", "given": "given"}
#: How a report names the method of complete rows.
CLOSED = "closed form: each row of each table by itself"
#: Of networks without tables.
CLOSED_REAL = "closed form: least squares of each node by itself"
#: What a report says where `start` was given to no purpose.
START_UNUSED = Remark(
    "start= was not used: nothing is hidden or missing, so the estimate has a closed form", OptionWarning
)


def prepare(learning: NodeLearning, domain: Domain, weight: float) -> tuple[dict[Hashable, Any], dict[Hashable, Any]]:
    """The fixed nodes and the learners of all, by name; options that do not fit the columns are an error."""
    options = learning.options
    given = learning.given_nodes(domain)
    if options["estimate"] is not None and options["prior"] is None:
        raise OptionError(f"estimate={options['estimate']!r} needs a prior=.")
    if options["prior"] is not None:
        from suffice.models.bayesian.priors import check_prior

        check_prior(options["prior"], domain)
    learners = learning.learners(domain)
    free = [name for name in learning.parents if name not in given]
    # Without rows and without a prior no estimate exists.
    if free and options["prior"] is None and options["unseen"] != "nan" and not weight > 0:
        raise EstimateError(
            f"There are no rows to learn {listing(free)} from: the data have no weight. Give rows, or a prior=."
        )
    return given, learners


def notes_on_nodes(learning: NodeLearning, leading: Sequence[Any]) -> tuple[str, ...]:
    """What a report says about the nodes that were learned."""
    from suffice.models.bayesian.nodes.table_figures import n_unseen_of

    # Regressions say in their own notes what joint states without rows get.
    unseen = n_unseen_of([node for node in leading if node.kind == TableNode.kind])
    filled = learning.options["unseen"] if learning.options["prior"] is None else "those of the prior"
    never = (f"{unseen} parent configurations never occur; their rows are {filled}",) if unseen else ()
    return (*never, *(note for node in leading for note in node.notes))


def estimate_in_words(names: Mapping[str, str], leading: Sequence[Any]) -> str:
    """The estimates of the nodes that were learned, by their names in a report."""
    return " and ".join(dict.fromkeys([names[node.estimate] for node in leading])) or names["given"]


@dataclass(frozen=True, eq=False)
class CompleteProblem:
    """Complete rows meet a network: each node is learned from the statistics of its family, by itself.

    `summary` holds the statistics of a closed form, whatever those of `data` are.
    """

    learning: NodeLearning
    data: SummaryData
    summary: Summary
    domain: Domain

    def solve(self, control: Control) -> Found[NetworkFitted]:
        """All nodes, those of one kind together."""
        learning, domain = self.learning, self.domain
        given, learners = prepare(learning, domain, self.summary.weight)
        nodes = learning.learned(self.summary, domain, learners, given)
        fitted = NetworkFitted(nodes, tuple(learning.hidden), learning.leading)
        leading = self._leading(fitted)
        methods: dict[str, list[Any]] = {}
        for node in leading:
            if node.method:
                methods.setdefault(node.solver, []).append(node.name)
        remarks = [note for node in leading for note in node.notes if isinstance(note, Remark)]
        tables = not leading or any(node.kind == TableNode.kind for node in leading)
        return Found(
            fitted,
            (CLOSED if tables else CLOSED_REAL)
            + "".join(f"; {method} for {listing(names)}" for method, names in methods.items()),
            estimate_in_words(ESTIMATES, leading),
            partly=bool(methods),
            notes=(*self.data.notes, *(() if learning.options["start"] is None else (START_UNUSED,)), *remarks),
            parameterisation=None if learning.options["prior"] is None else "in the probabilities of each row",
            later=self.data.lasting,
        )

    def _leading(self, fitted: NetworkFitted) -> list[Any]:
        return [fitted.nodes[name] for name in self.learning.leading]

    @cached_property
    def _own_statistics(self) -> list[Summary]:
        """The statistics that each leading node was learned from."""
        return [self.learning.statistics_of(name, self.summary) for name in self.learning.leading]

    def judge(self, fitted: NetworkFitted) -> Judgement:
        """Slope, bound and existence of each node by itself."""
        options, leading = self.learning.options, self._leading(fitted)
        from suffice.models.bayesian.certificate import closed_form_certificate

        log_likelihood = fitted.log_likelihood(self.summary)
        pairs = list(zip(leading, self._own_statistics, strict=True))
        gap, certificate = closed_form_certificate(pairs, self.summary.weight)
        evidence = [node.log_evidence() for node in leading]
        complete = options["prior"] is not None and not options["fixed"] and None not in evidence
        # What is a warning was said by the fit, which may be judged much later.
        plain = [note for note in notes_on_nodes(self.learning, leading) if not isinstance(note, Remark)]
        stopped = [node.stopped for node in leading if node.stopped]
        if any(node.left_out for node in leading):
            stopped.append("columns nearly dependent")
        return Judgement(
            log_likelihood,
            log_likelihood + float(sum([node.log_prior() for node in leading])),
            certificate,
            gap,
            matched=self._later_matched(fitted),
            log_evidence=float(sum(evidence)) if complete else None,
            verdict=stopped[0] if stopped else "",
            notes=(*plain, *self.data.rounds),
        )

    def _later_matched(self, fitted: NetworkFitted) -> Callable[[], MatchedStatistics | None]:
        """What the nodes make equal, when someone asks; at once of rows that are let go after the fit."""
        later = partial(self.matched, fitted)
        return later if self.data.lasting else partial(_known, later())

    def matched(self, fitted: NetworkFitted) -> MatchedStatistics | None:
        """Both sides of what each node makes equal."""
        from suffice.models.bayesian.node_scores import matched_statistics_of

        pairs = list(zip(self._leading(fitted), self._own_statistics, strict=True))
        return matched_statistics_of(pairs)

    def identity(self) -> Iterable[Any]:
        """The structure: a closed form is not gone on with."""
        return "BayesianNetwork", repr(self.learning.parents)


def _known(matched: MatchedStatistics | None) -> MatchedStatistics | None:
    return matched
