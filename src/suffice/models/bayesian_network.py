"""Bayesian networks of known structure: one fit for every kind of node, one pass for all closed forms."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from suffice.answers import PatternTable
from suffice.domain import Domain, Variable, declare
from suffice.errors import FileFormatError, MissingColumnError, MissingValueError, OptionError, listing, require
from suffice.fitting import Estimator, Solution
from suffice.iteration import Outcome
from suffice.models.linear_gaussian_batch import learn_together
from suffice.models.linear_gaussian_learner import LinearGaussianLearner
from suffice.models.linear_gaussian_node import LinearGaussianNode
from suffice.models.network_answers import NetworkAnswers
from suffice.models.network_em import TableEM
from suffice.models.network_priors import linear_prior, table_prior
from suffice.models.nodes import Node
from suffice.models.structure import read_structure
from suffice.models.table_node import TableLearner, TableNode
from suffice.report import Certificate
from suffice.statistics import Patterns, Statistic, Summary
from suffice.table import Table

Floats = NDArray[np.float64]

UNSEEN = ("uniform", "nan", "raise")
MISSING = ("em", "raise")

#: The kinds of node, by the name that files give them.
KINDS: dict[str, type[Node]] = {TableNode.kind: TableNode, LinearGaussianNode.kind: LinearGaussianNode}


class BayesianNetwork(NetworkAnswers, Estimator):
    """P(x) = product over nodes of P(node | parents); the structure is given, the tables are learned.

    Complete data have a closed form. Hidden nodes and gaps (None, NaN, NA) are learned by EM with exact expectations.

    Args:
        structure: edges ``(parent, child)``, a dict ``{child: parents}``, a networkx DiGraph, or another network.
        states: declared states by node; a declared state that never occurs keeps its place.
        prior: a number of pseudo-counts for every cell, ``"bdeu"``, ``"k2"``, ``"jeffreys"``, a dict by node, a
            labelled table, or a fitted network (BDe).
        equivalent_sample_size: the weight of ``"bdeu"`` and of a prior network, in rows.
        estimate: ``"mean"`` (default with a prior) or ``"map"``.
        unseen: the row of a parent configuration without data and without prior: ``"uniform"``, ``"nan"`` or
            ``"raise"``.
        fixed: tables by node that stay as they are.
        hidden: number of states, or list of states, of nodes that are never observed.
        missing: what gaps in the data do: ``"em"`` or ``"raise"``.
        n_init: number of EM runs from random starts where nodes are hidden; the best is kept.
        random_state: seed of the random starts.
        max_iter: most EM steps of a run.
        tolerance: EM stops when no probability changes by more.
        max_seconds: most seconds of a run.
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
    #: Objective of each EM run.
    scores_: tuple[float, ...]

    def __init__(
        self,
        structure: Any,
        *,
        states: Mapping[Any, Any] | None = None,
        prior: Any = None,
        equivalent_sample_size: float = 10.0,
        estimate: str | None = None,
        unseen: str = "uniform",
        fixed: Mapping[Any, Any] | None = None,
        hidden: Mapping[Any, Any] | None = None,
        missing: str = "em",
        n_init: int = 1,
        random_state: Any = 0,
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
        self._parents = read_structure(structure, extra=states or ())
        for option in ("states", "fixed", "hidden"):
            unknown = [name for name in self._options[option] or () if name not in self._parents]
            if unknown:
                raise OptionError(
                    f"{option}= names {listing(unknown)}, which is no node; the nodes are {listing(self.nodes)}."
                )
        for option, value, known in (("unseen", unseen, UNSEEN), ("missing", missing, MISSING)):
            if value not in known:
                raise OptionError(f"{option} is {value!r}; expected one of {listing(known)}.")

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
        return self.node(node).domain[node].states

    def to_networkx(self) -> Any:
        """The structure as a networkx DiGraph."""
        graph = require("networkx", extra="test", purpose="to_networkx").DiGraph()
        graph.add_nodes_from(self.nodes)
        graph.add_edges_from(self.edges)
        return graph

    # -- what the fit asks -------------------------------------------------------------------------------------------

    @property
    def _hidden(self) -> dict[Hashable, Variable]:
        found = self._options["hidden"] or {}
        listed = {name: range(value) if isinstance(value, int) else value for name, value in found.items()}
        return {name: Variable.discrete(name, states) for name, states in listed.items()}

    def _wanted(self, columns: Sequence[Hashable]) -> Mapping[Hashable, Variable | None]:
        declared = self._options["states"] or {}
        names = [node for node in self.nodes if node not in self._hidden]
        return {n: declare(n, declared[n]) if n in declared else None for n in names}

    def _ask(self, domain: Domain) -> tuple[Statistic, ...]:
        if self._hidden or self.__dict__.get("_gaps", False):
            real = [variable.name for variable in domain.variables if variable.kind != "discrete"]
            if real:
                raise OptionError(
                    f"EM takes networks of tables; {listing(real)} hold numbers. Fill the gaps, or declare states=."
                )
            return (Patterns(domain.names),)
        asked = [
            q for n in self.nodes for q in self._learner(n, domain, plain=True).statistics(self._family(n, domain))
        ]
        return tuple(dict.fromkeys(asked))

    def _summary_of(self, data: Any, sample_weight: Any, columns: Any) -> tuple[Summary, int]:
        """One pass for the counts; where gaps turn up, a pass for the distinct rows instead."""
        if isinstance(data, Summary):
            return super()._summary_of(data, sample_weight, columns)
        self._gaps = any(isinstance(q, Patterns) for q in getattr(self.__dict__.get("summary_"), "answers", ()))
        try:
            return super()._summary_of(data, sample_weight, columns)
        except MissingValueError:
            if self._options["missing"] == "raise":
                raise
            self._gaps = True
            return super()._summary_of(data, sample_weight, columns)

    def _family(self, node: Hashable, domain: Domain) -> Domain:
        return domain.select([*self._parents[node], node])

    def _learner(self, node: Hashable, domain: Domain, *, plain: bool = False) -> TableLearner | LinearGaussianLearner:
        """How a node is learned: a table, or a regression where it holds numbers; `plain` leaves the prior out."""
        family, given = self._family(node, domain), None if plain else self._options["prior"]
        if domain[node].kind != "discrete":
            pool = tuple(v.name for v in domain.variables if v.kind != "discrete")
            prior = linear_prior(given, node, pool)
            return LinearGaussianLearner(prior, self._estimate(), self._options["unseen"], pool)
        real = [name for name in self._parents[node] if domain[name].kind != "discrete"]
        if real:
            raise OptionError(
                f"{node!r} is discrete and has the real parents {listing(real)}; a table needs discrete parents. "
                "Declare the "
                "states of the parents, or turn the edge."
            )
        table = table_prior(given, family, self._options["equivalent_sample_size"])
        return TableLearner(table, self._estimate(), self._options["unseen"])

    def _estimate(self) -> str:
        estimate, prior = self._options["estimate"], self._options["prior"]
        if estimate not in (None, "mean", "map"):
            raise OptionError(f"estimate is {estimate!r}; expected 'mean' or 'map'.")
        if estimate is not None and prior is None:
            raise OptionError(f"estimate={estimate!r} needs a prior=.")
        return estimate or "mean"

    def _given_nodes(self, domain: Domain) -> dict[Hashable, TableNode]:
        found = {}
        for name, values in (self._options["fixed"] or {}).items():
            family = self._family(name, domain)
            array = values.transpose(family.names).values if isinstance(values, Table) else values
            found[name] = TableNode.given(family, array)
        return found

    # -- solving -----------------------------------------------------------------------------------------------------

    def _solve(self, summary: Summary) -> Solution:
        domain = summary.domain.merge(Domain(self._hidden.values()))
        for variable in domain.variables:
            if variable.kind == "discrete" and variable.card == 0:
                raise OptionError(f"Column {variable.name!r} has no values and no declared states. Give states=.")
        self.__dict__.pop("_inference", None)
        given = self._given_nodes(domain)
        learners = {node: self._learner(node, domain) for node in self.nodes}
        outcome: Outcome | None = None
        if any(isinstance(question, Patterns) for question in summary.answers):
            self._fitted, outcome = self._run_em(summary, domain, learners, given)
        else:
            self._fitted = self._learned(summary, domain, learners, given)
        return self._solution(outcome)

    def _learned(
        self, summary: Summary, domain: Domain, learners: Mapping[Hashable, Any], given: Mapping[Hashable, TableNode]
    ) -> dict[Hashable, Any]:
        """Tables one by one, regressions together."""
        families = {node: self._family(node, domain) for node in self.nodes if node not in given}
        linear = [node for node in families if isinstance(learners[node], LinearGaussianLearner)]
        found: dict[Hashable, Any] = dict(given)
        together = (
            learn_together([learners[n] for n in linear], [families[n] for n in linear], summary) if linear else []
        )
        found |= dict(zip(linear, together, strict=True))
        found |= {n: learners[n].learn(family, summary) for n, family in families.items() if n not in found}
        return {node: found[node] for node in self.nodes}

    def _run_em(
        self,
        summary: Summary,
        domain: Domain,
        learners: Mapping[Hashable, Any],
        given: Mapping[Hashable, TableNode],
    ) -> tuple[dict[Hashable, TableNode], Outcome]:
        names = summary.domain.names
        patterns: PatternTable = summary[Patterns(names)]
        families = {node: self._family(node, domain) for node in self.nodes}
        problem = TableEM(names, patterns.rows.astype(np.int32), patterns.weights, families, learners, given)
        rng = np.random.default_rng(self._options["random_state"])
        hidden = frozenset(self._hidden)
        runs = []
        for _ in range(max(1, self._options["n_init"]) if hidden else 1):
            runs.append(problem.run(problem.start(rng, hidden), self._control()))
        self.scores_ = tuple(outcome.state.objective for _, outcome in runs)
        return max(runs, key=lambda run: run[1].state.objective)

    def _solution(self, outcome: Outcome | None) -> Solution:
        prior = self._options["prior"]
        unseen = sum(node.n_unseen for name, node in self._fitted.items() if name not in (self._options["fixed"] or {}))
        filled = self._options["unseen"] if prior is None else "those of the prior"
        evidence = [node.log_evidence() for node in self._fitted.values()]
        complete = outcome is None and prior is not None and not self._options["fixed"]
        return Solution(
            method="closed form: each row of each table by itself" if outcome is None else "EM, exact expected counts",
            estimate="maximum likelihood"
            if prior is None
            else {"mean": "posterior mean", "map": "MAP"}[self._estimate()],
            parameterisation=None if prior is None else "in the probabilities of each row",
            outcome=outcome,
            plan=None if outcome is None else str(self._infer().plan),
            log_evidence=float(sum(value for value in evidence if value is not None)) if complete else None,
            warnings=(
                *((f"{unseen} parent configurations never occur; their rows are {filled}",) if unseen else ()),
                *(note for node in self._fitted.values() for note in getattr(node, "notes", ())),
            ),
        )

    def _log_likelihood(self, summary: Summary) -> float:
        for question in summary.answers:
            if isinstance(question, Patterns):
                patterns: PatternTable = summary[question]
                codes = dict(zip(question.variables, patterns.rows.T.astype(np.int32), strict=True))
                return float(patterns.weights @ self._infer().log_likelihood(codes, len(patterns.rows)))
        return float(sum(node.log_likelihood(summary) for node in self._nodes().values()))

    def _certify(self, summary: Summary) -> Certificate:
        if any(isinstance(question, Patterns) for question in summary.answers):
            gap = max(node.stationarity() for node in self._nodes().values())
            return Certificate(gap, exists=None, scale="change of a probability by one more EM step")
        free = [node for name, node in self._nodes().items() if name not in (self._options["fixed"] or {})]
        gap = max((node.gap(summary) for node in free), default=0.0)
        edges = tuple(direction for node in free for direction in getattr(node, "directions", ()))
        loss = None
        if self._options["prior"] is None and summary.weight > 0 and all(isinstance(node, TableNode) for node in free):
            shortfall = (node.best_log_likelihood(summary) - node.log_likelihood(summary) for node in free)
            loss = max(0.0, sum(shortfall)) / summary.weight
        scale = "slope of the objective of each node, a row"
        return Certificate(gap, loss, bound=loss is not None, exists=not edges, directions=edges, scale=scale)

    def _aligned(self, summary: Summary) -> Summary:
        return summary.align(summary.domain.merge(Domain(self._variable(name) for name in summary.domain.names)))

    def _nodes(self) -> dict[Hashable, Any]:
        if "_fitted" not in self.__dict__:
            self.fitted_  # noqa: B018  not there: raises NotFittedError
        return self._fitted

    def _variable(self, node: Hashable) -> Variable:
        variable: Variable = self._nodes()[node].domain[node]
        return Variable.discrete(node, variable.states) if variable.kind == "discrete" else variable

    @property
    def n_params_(self) -> int:
        """Free parameters of all nodes that are not fixed."""
        fixed = self._options["fixed"] or {}
        return sum(node.n_params for name, node in self._nodes().items() if name not in fixed)

    # -- reading -----------------------------------------------------------------------------------------------------

    def node(self, node: Hashable) -> Any:
        """The fitted node."""
        self.parents(node)
        return self._nodes()[node]

    def table(self, node: Hashable) -> Table:
        """P(node | parents) with axes (parents in declared order, node); the last axis sums to one.

        Of a linear-Gaussian node the coefficients, with axes (discrete parents, coefficient).
        """
        found: Table = self.node(node).table_
        return found

    # -- files -------------------------------------------------------------------------------------------------------

    def to_plain(self) -> dict[str, Any]:
        """Options, tables, summary and report as plain data."""
        plain = super().to_plain()
        plain["options"]["structure"] = {node: list(self._parents[node]) for node in self.nodes}
        if "_fitted" in self.__dict__ and plain["fitted"] is None:
            plain["tables"] = self._fitted_state()
        return plain

    def _fitted_state(self) -> dict[str, Any]:
        return {"nodes": [node.to_plain() for node in self._nodes().values()]}

    def _restore(self, state: Mapping[str, Any]) -> None:
        found: list[Any] = [KINDS[plain["kind"]].from_plain(plain) for plain in state["nodes"]]
        self._fitted = {node.name: node for node in found}
        if {n: node.parents for n, node in self._fitted.items()} != self._parents:
            raise FileFormatError("The tables do not belong to the structure of the network.")

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Self:
        """Rebuild from plain data."""
        net = super().from_plain(plain)
        if plain.get("tables") is not None:
            net._restore(plain["tables"])
        return net
