"""Bayesian networks of known structure: one fit for every kind of node, one pass for all closed forms."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from suffice.domain import Domain, declare
from suffice.errors import (
    EstimateError,
    FileFormatError,
    MissingColumnError,
    MissingValueError,
    OptionError,
    listing,
    require,
)
from suffice.fitting.template import Solution, TemplateEstimator
from suffice.models.bayesian.gaps import NetworkGaps
from suffice.models.bayesian.learning import check_range, plain_fixed, read_fixed
from suffice.models.bayesian.nodes.table import TableNode
from suffice.models.bayesian.options import check_mappings, check_options
from suffice.models.bayesian.posterior import NetworkPosterior
from suffice.models.bayesian.queries.answers import NetworkAnswers
from suffice.models.bayesian.reading import NetworkReading
from suffice.models.bayesian.structure import declared_states, open_structure, read_structure
from suffice.records import replace
from suffice.table import Table

# What learning needs is loaded by the first fit: a network that is read from a file may never have one.
if TYPE_CHECKING:
    from pathlib import Path

    from suffice.fitting.control import Outcome
    from suffice.fitting.report import Certificate, MatchedStatistics, Report
    from suffice.statistics import Statistic, Summary

Floats = NDArray[np.float64]

#: How a report names the estimates of nodes, and what EM makes of them: the posterior mean of complete rows as M-step
#: climbs to a mode, that of the Dirichlet posterior with one pseudo-count more in each cell.
ESTIMATES = {"mle": "maximum likelihood", "mean": "posterior mean", "map": "MAP", "given": "given"}
BY_EM = ESTIMATES | {
    "mean": "penalised maximum likelihood, by steps of the posterior mean: of tables the MAP under pseudo-counts + 1"
}

#: How a report names the method of complete rows.
CLOSED = "closed form: each row of each table by itself"
#: Of networks without tables.
CLOSED_REAL = "closed form: least squares of each node by itself"
#: Of tables it is the mode under pseudo-counts + 1, of regressions that under another power of the variance.
MEANS = "whose maximum is the posterior mean, "
EPSILON = float(np.finfo(np.float64).eps)
#: What a report says where `start` was given to no purpose.
START_UNUSED = "start= was not used: nothing is hidden or missing, so the estimate has a closed form"


class BayesianNetwork(NetworkGaps, NetworkReading, NetworkAnswers, NetworkPosterior, TemplateEstimator):
    """P(x) = product over nodes of P(node | parents); the structure is given, the tables are learned.

    Complete data have a closed form. Hidden nodes and gaps (None, NaN, NA) are learned by EM with exact expectations,
    whatever the kinds of the nodes: latent classes, Gaussian mixtures and mixtures of regressions are networks like any
    other. The summary then holds the distinct rows, and `partial_fit` and `unlearn` run EM anew; without the last row
    that has a gap the closed form is back. Families that every row shows are counted as they are, beside EM.

    Args:
        structure: edges ``(parent, child)``, a dict ``{child: parents}``, a networkx DiGraph, another network, or the
            path of a file that holds one; the last two also give the states that they declare.
        states: declared states by node, or ``"real"``; a declared state that never occurs keeps its place. Where
            nothing is declared, columns of floats are real, and all others hold states; floats that are whole numbers
            and gaps are read as states too, since a gap turns whole numbers into floats. `partial_fit`, `unlearn` and
            `score` read columns as they were learned.
        nodes: kinds by node: ``"table"``, ``"linear-gaussian"``, ``"noisy-or"``, ``"glm"``, or a kind with options such
            as ``NoisyOr(leak=False)`` or ``GLM(family=Poisson())``. Without it, columns of states have tables and
            columns of numbers regressions.
        tied: groups of nodes that share one set of parameters; their families have the same states place by place.
        prior: a number of pseudo-counts for every cell, ``"bdeu"``, ``"k2"``, ``"jeffreys"``, a fitted network (BDe),
            a `LinearGaussianPrior` or `NormalWishart`, or a dict of priors by node: these, an array with axes (parents,
            node), a `Table`, a DataFrame (index: parents, columns: states), or a dict or Series by state of a root.
        equivalent_sample_size: the weight of ``"bdeu"`` and of a prior network, in rows.
        estimate: ``"mean"`` (default with a prior) or ``"map"``.
        unseen: the row of a parent configuration without data and without prior: ``"uniform"``, ``"nan"`` or
            ``"raise"``.
        fixed: nodes that stay as they are, by name: a table (with labels or without), (weights, variance) of a
            linear-Gaussian node, leak and inhibitors of a noisy-OR node, coefficients of a GLM node, or a fitted
            node of another network. A network of fixed nodes alone, whose states are declared, needs no fit.
        hidden: number of states, list of states, or ``"real"``, of nodes that are never observed; columns of their
            names are not read.
        missing: what gaps in the data do: ``"em"`` or ``"raise"``.
        start: parameters to begin EM with, by node, as in `fixed`, or a fitted network; used as they are.
        n_init: number of EM runs from random starts where nodes are hidden; the best is kept. The first begins at
            `start` where it is given.
        random_state: seed of the random starts.
        acceleration: None, or ``"squarem"``: fewer steps where much is missing; the objective still never falls.
        variance_floor: share of the variance of a column below which EM lets no variance of it fall. A hidden state
            that shrinks onto one row stops there, and the certificate says so; 0 makes it an error.
        threads: threads of the E-step of a network of tables; the result does not depend on them.
        max_iter: most EM steps of a run.
        tolerance: EM stops when no probability changes by more, nor any weight or log variance in units of its columns.
        max_seconds: most seconds of all runs together.
        progress: show a bar.
        callback: called with the state after each EM step; True stops.
        checkpoint: file from which an interrupted EM goes on.

    >>> net = BayesianNetwork([("rain", "wet")]).fit({"rain": [0, 0, 1, 1], "wet": ["no", "yes", "yes", "yes"]})
    >>> net.table("wet").at(rain=0, wet="yes")
    0.5
    >>> net.query("rain", given={"wet": "yes"}).at(rain=1).__round__(6)
    0.666667
    """

    _fitted: dict[Hashable, Any]
    #: What a reader of files changed, such as rows that were divided by their sum.
    notes_: tuple[str, ...] = ()

    def __init__(
        self,
        structure: Any,
        *,
        states: Mapping[Any, Any] | None = None,
        nodes: Mapping[Any, Any] | None = None,
        tied: Any = None,
        prior: Any = None,
        equivalent_sample_size: float = 10.0,
        estimate: str | None = None,
        unseen: str = "uniform",
        fixed: Mapping[Any, Any] | None = None,
        hidden: Mapping[Any, Any] | None = None,
        missing: str = "em",
        start: Any = None,
        n_init: int = 1,
        random_state: Any = 0,
        acceleration: str | None = None,
        variance_floor: float = 1e-6,
        threads: int = 1,
        max_iter: int = 1000,
        tolerance: float = 1e-6,
        max_seconds: float | None = None,
        progress: bool = False,
        callback: Any = None,
        checkpoint: str | Path | None = None,
    ) -> None:
        """See the class."""
        options = {name: value for name, value in locals().items() if name not in ("self", "__class__")}
        super().__init__(**options)
        check_mappings(options)
        opened = open_structure(structure)
        self._parents = read_structure(opened, extra=states or ())
        said = declared_states(opened)
        self._declared = said | dict(states or {})
        self._variables = {name: declare(name, value) for name, value in said.items()}
        self._variables |= check_options(options, self.nodes)
        self._groups()
        if start is not None:
            from suffice.models.bayesian.em.given import check_start

            check_start(start, self.nodes)

    @classmethod
    def from_tables(cls, domain: Domain, parents: Mapping[Any, Sequence[Any]], tables: Mapping[Any, Any]) -> Self:
        """A network whose tables are given, with axes (parents, node)."""
        net = cls(dict(parents), states={v.name: list(v.states) for v in domain.variables})
        net._fitted = {n: TableNode.given(domain.select([*net.parents(n), n]), tables[n]) for n in net.nodes}
        return net

    # -- structure ---------------------------------------------------------------------------------------------------

    @property
    def edges(self) -> tuple[tuple[Hashable, Hashable], ...]:
        """The edges (parent, child)."""
        return tuple((parent, child) for child, parents in self._parents.items() for parent in parents)

    def parents(self, node: Hashable) -> tuple[Hashable, ...]:
        """The parents of a node, in declared order."""
        try:
            return self._parents[node]
        except KeyError:
            raise MissingColumnError(f"There is no node {node!r}; the nodes are {listing(self.nodes)}.") from None

    def states(self, node: Hashable) -> tuple[Hashable, ...]:
        """The states of a node."""
        found: tuple[Hashable, ...] = self.node(node).domain[node].states
        return found

    def to_networkx(self) -> Any:
        """The structure as a networkx DiGraph."""
        graph = require("networkx", extra="graphs", purpose="to_networkx").DiGraph()
        graph.add_nodes_from(self.nodes)
        graph.add_edges_from(self.edges)
        return graph

    # -- what the fit asks -------------------------------------------------------------------------------------------

    def _ask(self, domain: Domain) -> tuple[Statistic, ...]:
        from suffice.statistics import Patterns

        # Rows to be scored may lack columns, which are then summed out like gaps.
        if len(domain) < len(self.nodes) or self.__dict__.get("_gaps", False):
            return (Patterns(domain.names),)
        return self._asked(domain)

    def _summary_of(self, data: Any, sample_weight: Any, columns: Any) -> tuple[Summary, int]:
        """One pass for the counts; where gaps turn up, a pass for the distinct rows instead."""
        from suffice.models.em.rows import has_gaps
        from suffice.statistics import Summary

        if isinstance(data, Summary):
            return super()._summary_of(data, sample_weight, columns)
        if isinstance(sample_weight, str | tuple) and sample_weight in self._parents:
            raise OptionError(
                f"sample_weight names {sample_weight!r}, which is a node of the network; expected one weight a row, or "
                "a column that holds weights and is no node."
            )
        from suffice.sources import open_source

        # Opened once, so that the source counts the passes of both attempts.
        source = open_source(data, columns=columns, sample_weight=sample_weight)
        # Rows that join those learned, or are compared with them, are read as these were; a new fit begins anew.
        self._gaps = "_purpose" in self.__dict__ and "summary_" in self.__dict__ and has_gaps(self.summary_)
        try:
            found = super()._summary_of(source, None, None)
        except MissingValueError:
            if self._options["missing"] == "raise":
                raise
            self._gaps = True
            found = super()._summary_of(source, None, None)
        self._read_notes += self._notes_on_columns(source.columns)
        return found

    def _estimate(self) -> str:
        estimate, prior = self._options["estimate"], self._options["prior"]
        if estimate is not None and prior is None:
            raise OptionError(f"estimate={estimate!r} needs a prior=.")
        return estimate or "mean"

    # -- solving -----------------------------------------------------------------------------------------------------

    def _solve(self, summary: Summary) -> Solution:
        from suffice.models.bayesian.priors import check_prior
        from suffice.models.em.rows import has_gaps

        summary = self._complete(summary)
        domain = summary.domain.merge(Domain(self._hidden.values()))
        for variable in domain.variables if 0 in domain.cards else ():
            if variable.kind == "discrete" and variable.card == 0:
                raise OptionError(f"Column {variable.name!r} has no values and no declared states. Give states=.")
        check_range(summary)
        for stale in ("_inference", "_errors", "scores_", "n_expectations_"):
            self.__dict__.pop(stale, None)
        given = self._given_nodes(domain)
        self._estimate()
        check_prior(self._options["prior"], domain)
        learners = self._learners(domain)
        self._check_weight(summary, given)
        if has_gaps(summary):
            notes = self._notes_on_gaps(summary, given)
            self._fitted, outcome, more = self._run_em(summary, self._control())
            return self._solution(outcome, notes + more)
        self._fitted = self._learned(summary, domain, learners, given)
        notes = () if self._options["start"] is None else (START_UNUSED,)
        return Solution(method=CLOSED, estimate="", warnings=notes, later=True)

    def _check_weight(self, summary: Summary, given: Mapping[Hashable, Any]) -> None:
        """Refuse to learn from nothing: without rows and without a prior no estimate exists."""
        learned = [name for name in self.nodes if name not in given]
        told = self._options["prior"] is not None or self._options["unseen"] == "nan"
        if learned and not told and not summary.weight > 0:
            raise EstimateError(
                f"There are no rows to learn {listing(learned)} from: the data have no weight. Give rows, or a prior=."
            )

    def _solution(self, outcome: Outcome | None, notes: tuple[str, ...] = ()) -> Solution:
        from suffice.models.bayesian.nodes.table_batch import n_unseen_of

        names = ESTIMATES if outcome is None else BY_EM
        prior = self._options["prior"]
        leading = self._leading().values()
        # Regressions say in their own notes what joint states without rows get.
        unseen = n_unseen_of([node for node in leading if node.kind == TableNode.kind])
        filled = self._options["unseen"] if prior is None else "those of the prior"
        evidence = [node.log_evidence() for node in leading]
        complete = outcome is None and prior is not None and not self._options["fixed"]
        newton = [node.name for node in leading if getattr(node, "method", None)]
        tables = not leading or any(node.kind == TableNode.kind for node in leading)
        closed = (CLOSED if tables else CLOSED_REAL) + (f"; Newton for {listing(newton)}" if newton else "")
        plan = None if outcome is None else self._plan_in_words()
        return Solution(
            method=closed if outcome is None else "EM, exact expected statistics",
            estimate=" and ".join(dict.fromkeys(names[node.estimate] for node in leading)) or names["given"],
            parameterisation=None if prior is None else "in the probabilities of each row",
            outcome=outcome,
            plan=plan,
            log_evidence=float(sum(evidence)) if complete and None not in evidence else None,
            warnings=(
                *notes,
                *((f"{unseen} parent configurations never occur; their rows are {filled}",) if unseen else ()),
                *(note for node in leading for note in getattr(node, "notes", ())),
            ),
        )

    def _report(self, summary: Summary, solution: Solution, passes: int) -> Report:
        """Of closed forms the whole account waits for its reader."""
        told = self._solution(None, solution.warnings) if solution.later else solution
        found = super()._report(summary, told, passes)
        if solution.outcome is not None:
            from suffice.models.em.reports import counted_as_determined

            found = counted_as_determined(found)
        return found

    def _upheld(self, report: Report, outcome: Outcome | None) -> Report:
        """Where a node has stopped early, or has left columns out that may matter, that has been said."""
        if outcome is None and any(getattr(node, "left_out", False) for node in self._leading().values()):
            report = replace(report, converged=False, stop_reason="columns nearly dependent")
        ended = [node.report for node in self._leading().values() if getattr(node, "report", None) is not None]
        stopped = [report.stop_reason for report in ended if not report.converged]
        stands = replace(report, converged=False, stop_reason=stopped[0]) if stopped else report
        return super()._upheld(stands, outcome)

    def _log_likelihood(self, summary: Summary) -> float:
        from suffice.models.bayesian.figures import Figures
        from suffice.models.em.rows import has_gaps, read_rows

        summary = self._complete(summary)
        if has_gaps(summary):
            rows = read_rows(summary, summary.domain)
            # The digits of a report do not depend on earlier work of the process.
            return float(rows.weights @ self._infer().log_likelihood(rows.columns, len(rows.weights), calls=1))
        return float(sum(Figures([(node, summary) for node in self._nodes().values()]).log_likelihoods()))

    def _certify(self, summary: Summary) -> Certificate:
        from suffice.fitting.report import Certificate
        from suffice.models.bayesian.figures import Figures
        from suffice.models.em.rows import has_gaps

        summary = self._complete(summary)
        if has_gaps(summary):
            return self._em_certificate(summary)
        leading = [(node, self._evidence_of(name, summary)) for name, node in self._leading().items()]
        figures = Figures(leading)
        # Maxima of NumPy, which are NaN where a figure is: what cannot be judged is not certified.
        gap = float(np.max(figures.gaps(), initial=0.0))
        value = float(sum(figures.log_likelihoods()))
        means = any(node.estimate == "mean" for node, _ in leading)
        scale = f"slope of the objective of each node, {MEANS if means else ''}a row"
        if np.isnan(gap) or np.isnan(value):
            return Certificate(np.nan, scale=scale)
        edges = tuple(direction for some in figures.edges() for direction in some)
        bounds, loss = figures.loss_bounds(), None
        losses = [bound for bound in bounds if bound is not None]
        if len(losses) == len(bounds) and summary.weight > 0:
            # Sums of logarithms are known to rounding: so much of them, and of one for each node and row.
            rounding = EPSILON * (abs(self._objective(summary, value)) / summary.weight + len(leading))
            loss = float(sum(losses)) / summary.weight + rounding
        exists = False if edges else None if any(getattr(node, "undecided", False) for node, _ in leading) else True
        return Certificate(gap, loss, bound=loss is not None, exists=exists, directions=edges, scale=scale)

    def matched_statistics(self) -> MatchedStatistics | None:
        """Shares of rows of every cell of the tables: seen, and expected given how often the parents' states occur.

        Of linear-Gaussian nodes the cross products with the parents, of GLM nodes both sides of their score equations,
        where all rows were complete.
        """
        from suffice.models.bayesian.figures import matched_statistics_of
        from suffice.models.bayesian.nodes.glm import GLMNode
        from suffice.models.bayesian.nodes.linear_gaussian import LinearGaussianNode
        from suffice.models.em.rows import has_gaps

        nodes, summary = self._leading(), self._complete(self.summary_)
        tables = [node for node in nodes.values() if node.kind == TableNode.kind]
        kinds = (LinearGaussianNode, GLMNode)
        names = () if has_gaps(summary) else [name for name, node in nodes.items() if isinstance(node, kinds)]
        return matched_statistics_of(tables, [(nodes[name], self._evidence_of(name, summary)) for name in names])

    def _aligned(self, summary: Summary) -> Summary:
        # The order of states is the network's: a category column of the rows may list the same states in another.
        mine = Domain(self._variable(name) for name in summary.domain.names)
        return summary.align(mine.merge(summary.domain))

    def _nodes(self) -> dict[Hashable, Any]:
        return self._fitted if "_fitted" in self.__dict__ else self._all_given()

    def _all_given(self) -> dict[Hashable, Any]:
        """The nodes of a network that needs no fit, because all of them are fixed; else NotFittedError."""
        options, found = self.__dict__.get("_given_law", (None, {}))
        law: dict[Hashable, Any] = found
        if options is not self._options:
            from suffice.models.bayesian.all_fixed import fixed_domain

            kinds = {name: self._chosen_kind(name) for name in self.nodes}
            domain = fixed_domain(self._options["fixed"] or {}, {**self._variables, **self._hidden}, kinds, self.nodes)
            given = self._given_nodes(domain)
            law = {name: given[name] for name in self.nodes}
            self._given_law = self._options, law
            self.__dict__.pop("_inference", None)
        return law

    @property
    def n_params_(self) -> int:
        """Free parameters of all nodes that are not fixed; those that tied nodes share count once.

        Where EM has found directions that no rows determine, those are not counted.
        """
        report = self.__dict__.get("report_")
        curvature = None if report is None else report.certificate.curvature
        flat = 0 if curvature is None else len(curvature.flat)
        return sum(node.n_params for node in self._leading().values()) - flat

    @property
    def n_params(self) -> int:
        """The same under the name that other libraries use."""
        return self.n_params_

    # -- reading -----------------------------------------------------------------------------------------------------

    def node(self, node: Hashable) -> Any:
        """The fitted node."""
        self.parents(node)
        return self._with_errors(self._nodes()[node])

    def table(self, node: Hashable) -> Table:
        """P(node | parents) with axes (parents in declared order, node); the last axis sums to one.

        Of a linear-Gaussian node the coefficients, with axes (discrete parents, coefficient).
        """
        known = self._nodes()
        if node not in known:
            self.parents(node)
        found: Table = known[node].table_
        return found

    # -- files -------------------------------------------------------------------------------------------------------

    def to_plain(self) -> dict[str, Any]:
        """Options, tables, summary and report as plain data."""
        plain = super().to_plain()
        plain["options"]["structure"] = {node: list(self._parents[node]) for node in self.nodes}
        plain["options"]["states"] = self._declared or None
        if "_fitted" in self.__dict__:
            from suffice.models.bayesian.labelled_values import as_tables

            plain["options"] |= {n: as_tables(self._options[n], self._fitted) for n in ("prior", "fixed", "start")}
        plain["options"]["fixed"] = plain_fixed(plain["options"]["fixed"])
        if "_fitted" in self.__dict__ and plain["fitted"] is None:
            plain["tables"] = self._fitted_state()
        return plain

    def _fitted_state(self) -> dict[str, Any]:
        return {"nodes": [node.to_plain() for node in self._nodes().values()]}

    def _restore(self, state: Mapping[str, Any]) -> None:
        from suffice.models.bayesian.nodes.kinds import NODES

        unknown = {plain["kind"] for plain in state["nodes"]} - set(NODES)
        if unknown:
            raise FileFormatError(f"The file holds nodes of the kinds {listing(unknown)}; known: {listing(NODES)}.")
        found: list[Any] = [NODES[plain["kind"]].from_plain(plain) for plain in state["nodes"]]
        self._fitted = {node.name: node for node in found}
        if {n: node.parents for n, node in self._fitted.items()} != self._parents:
            raise FileFormatError("The tables do not belong to the structure of the network.")
        for first, *others in self._groups():
            mine = self._fitted[first].parameters()
            if not all(np.array_equal(mine, self._fitted[n].parameters(), equal_nan=True) for n in others):
                raise FileFormatError(f"{listing([first, *others])} are tied, and their parameters differ.")

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Self:
        """Rebuild from plain data."""
        options = {**plain["options"], "fixed": read_fixed(plain["options"]["fixed"])}
        net = super().from_plain({**plain, "options": options})
        if plain.get("tables") is not None:
            net._restore(plain["tables"])
        return net
