"""`BayesianNetwork`: P(x) as a product over nodes given their parents, the structure known, the numbers learned."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self, Unpack

from suffice.attributes import Read, computed
from suffice.checks import listed_names
from suffice.choices import ConditionalSolver, Estimate, MissingValues, Objective, Registered, Squarem, UnseenRow
from suffice.domain import Domain, declare
from suffice.errors import require
from suffice.fitting.estimator import SummaryEstimator, delegated, delegated_property, drawn
from suffice.fitting.fit import Fit
from suffice.fitting.sklearn_face import Offered
from suffice.models.bayesian.arcs import arc_strengths, d_separated, markov_blanket, mutual_information
from suffice.models.bayesian.fitted import NetworkFitted
from suffice.models.bayesian.impute import impute
from suffice.models.bayesian.learning import NodeLearning, plain_fixed, read_fixed
from suffice.models.bayesian.nodes.table import TableNode
from suffice.models.bayesian.options import IDLE, check_mappings, check_options, check_start
from suffice.models.bayesian.posterior import LearnedParameters, answered, answered_by_node, told_parameters
from suffice.models.bayesian.structure import Parents, check_node, checked_parents, open_structure, read_structure
from suffice.models.bayesian.surprise import conflict, node_scores, surprise
from suffice.models.bayesian.target import (
    check_target,
    classes_of,
    read_again,
    role_of,
    steps_of,
    target_fit,
    target_partial_fit,
    targeted,
    targeted_score,
    without_table,
    without_target,
)
from suffice.options import RunOptions, own_options
from suffice.table import Table

# What learning needs is loaded by the first fit: a network that is read from a file may never have one.
if TYPE_CHECKING:
    from numpy.typing import NDArray

    from suffice.fitting.portrait import Portrait
    from suffice.models.bayesian.size_report import SizeReport
    from suffice.models.bayesian.task import NetworkTask


class BayesianNetwork(SummaryEstimator):
    """P(x) = product over nodes of P(node | parents); the structure is given, the tables are learned.

    Complete data have a closed form. Hidden nodes and missing values (None, NaN, NA) are learned by EM with exact
    expectations, whatever the kinds of the nodes: latent classes, Gaussian mixtures and mixtures of regressions are
    networks like any other. The statistics are then the distinct rows, and `partial_fit` and `unlearn` run EM anew;
    without the last row that has a missing value the closed form is back. Families that every row shows are counted as
    they are, beside EM.

    Args:
        structure: edges ``(parent, child)``, text (``"a -> b <- c"``, ``"[a][b|a]"``), a dict ``{child: parents}``, a
            graph of networkx, igraph or pyAgrum, an adjacency matrix (parents in rows), another network, or the
            path of a file that holds one; the last two also give the states that they declare. With a target also
            ``"naive-bayes"``, whose target is the parent of all other columns, or ``"gaussian-naive-bayes"``.
        states: by node a list of states, of which one that never occurs keeps its place, ``"discrete"`` for those
            seen, or ``"real"``. Where nothing is declared, columns of floats are real, unless they are few whole
            numbers, and all others hold states; more than 50 different integers have to be declared.
            `partial_fit`, `unlearn` and `score` read columns as they were learned.
        nodes: kinds by node: ``"table"``, ``"linear-gaussian"``, ``"noisy-or"``, ``"noisy-max"``, ``"glm"``,
            or a kind with options such as ``NoisyOr(leak=False)``, ``GLM(family=Poisson())`` or
            ``ConstrainedTable({parent: Monotone("+")})``. Without it, columns of states have tables and columns of
            numbers regressions.
        tied: groups of nodes that share one set of parameters; their families have the same states place by place.
        target: the node that `predict` tells from the others, as a classifier or, where it is declared real, as a
            regressor of scikit-learn; `fit` and `score` then take it as y, too.
        objective: ``"joint"``, or ``"conditional"``: the tables of the target and its children maximise the sum of log
            P(target | rest), as a logistic regression does; pseudo-counts of a prior are added to their counts.
        solver: of the conditional objective: "auto" (L-BFGS), "lbfgs", "cg", "ascent", or another that is registered.
        prior: a number of pseudo-counts for every cell, ``"bdeu"``, ``"k2"``, ``"jeffreys"``, a fitted network (BDe),
            a `LinearGaussianPrior` or `NormalWishart`, or a dict of priors by node: these, an array with axes (parents,
            node), a `Table`, a DataFrame (index: parents, columns: states), or a dict or Series by state of a root.
        equivalent_sample_size: the weight of ``"bdeu"`` and of a prior network, in rows.
        estimate: ``"mean"`` (default with a prior) or ``"map"``.
        unseen: the row of a parent configuration without data and without prior: ``"uniform"``, ``"nan"`` or
            ``"raise"``.
        fixed: nodes that stay as they are, by name: a table (with labels or without), (weights, variance) of a
            linear-Gaussian node, leak and inhibitors of a noisy-OR node, leak and causes of a noisy-MAX node,
            coefficients of a GLM node, or a fitted node of another network. A network of fixed nodes alone, whose
            states are declared, needs no fit.
        hidden: number of states, list of states, or ``"real"``, of nodes that are never observed; columns of their
            names are not read.
        missing: what missing values do: ``"em"`` or ``"raise"``.
        start: parameters to begin EM with, by node, as in `fixed`, or a fitted network; used as they are.
        n_init: number of EM runs from random starts where nodes are hidden; the best is kept. The first begins at
            `start` where it is given.
        random_state: seed of the random starts.
        acceleration: None, or ``"squarem"``: fewer steps where much is missing; the objective still never falls.
        variance_floor: share of the variance of a column below which EM lets no variance of it fall. A hidden state
            that shrinks onto one row stops there, and the certificate says so; 0 makes it an error.
        threads: threads of the E-step of a network of tables, None for all cores; the result does not depend on them.
        memory_limit: most bytes of rows with missing values or hidden nodes that are read from files and held in memory
            while EM goes over them, or a text such as "2GB"; half of what is free by default. The rest is in a scratch
            folder.
        max_iter: most EM steps of a run.
        tolerance: EM stops when no probability changes by more, nor any weight or log variance in units of its columns.
        run: see `RunOptions`.

    >>> net = BayesianNetwork([("rain", "wet")]).fit({"rain": [0, 0, 1, 1], "wet": ["no", "yes", "yes", "yes"]})
    >>> net.table("wet").at(rain=0, wet="yes")
    0.5
    >>> net.query("rain", given={"wet": "yes"}).at(rain=1).__round__(6)
    0.666667
    """

    _idle = IDLE

    #: What a reader of files changed, such as rows that were divided by their sum.
    notes_: tuple[str, ...] = ()

    def __init__(
        self,
        structure: Any,
        *,
        states: Mapping[Any, Any] | None = None,
        nodes: Mapping[Any, Any] | None = None,
        tied: Any = None,
        target: Any = None,
        objective: Objective = "joint",
        solver: ConditionalSolver | Registered = "auto",
        prior: Any = None,
        equivalent_sample_size: float = 10.0,
        estimate: Estimate | None = None,
        unseen: UnseenRow = "uniform",
        fixed: Mapping[Any, Any] | None = None,
        hidden: Mapping[Any, Any] | None = None,
        missing: MissingValues = "em",
        start: Any = None,
        n_init: int = 1,
        random_state: Any = 0,
        acceleration: Squarem | None = None,
        variance_floor: float = 1e-6,
        threads: int | None = None,
        memory_limit: int | str | None = None,
        max_iter: int = 1000,
        tolerance: float = 1e-6,
        **run: Unpack[RunOptions],
    ) -> None:
        """See the class."""
        super().__init__(**own_options(locals()))
        options = self._options
        check_mappings(options)
        opened = open_structure(structure, target)
        declared = dict(opened._declared) if isinstance(opened, BayesianNetwork) else {}
        self._learning = NodeLearning(read_structure(opened, extra=states or ()), options)
        self._declared: dict[Hashable, Any] = declared | dict(states or {})
        self._variables = {name: declare(name, value) for name, value in declared.items()}
        self._variables |= check_options(options, self.nodes)
        check_target(options, self._learning.parents)
        self._all_fixed: NetworkFitted | None = None
        self._learning.groups  # noqa: B018  Groups that are none are refused here, as is a start.
        check_start(start, self.nodes)

    @classmethod
    def from_tables(cls, domain: Domain, parents: Mapping[Any, Sequence[Any]], tables: Mapping[Any, Any]) -> Self:
        """A network whose tables are given, with axes (parents, node)."""
        net = cls(checked_parents(domain, parents, tables), states={v.name: list(v.states) for v in domain.variables})
        return net._with_nodes({n: TableNode.given(domain.select([*net.parents(n), n]), tables[n]) for n in net.nodes})

    def _with_nodes(self, nodes: Mapping[Hashable, Any]) -> Self:
        """Nodes that are given, and learned anew by the next fit."""
        return self._adopt(Fit(NetworkFitted(nodes, tuple(self._learning.hidden), self._learning.leading)))

    # -- structure ---------------------------------------------------------------------------------------------------

    @property
    def _parents(self) -> Parents:
        """The parents of each node: a structure that is made of the columns of `fit` is known since then."""
        return self._learning.parents if self._fit is None else self._fit.fitted.parents

    @property
    def nodes(self) -> tuple[Hashable, ...]:
        """The nodes, in the order in which the structure names them."""
        return tuple(self._parents)

    @property
    def edges(self) -> tuple[tuple[Hashable, Hashable], ...]:
        """The edges (parent, child)."""
        return tuple((parent, child) for child, parents in self._parents.items() for parent in parents)

    def parents(self, node: Hashable) -> tuple[Hashable, ...]:
        """The parents of a node, in declared order."""
        return self._parents[check_node(node, self._parents)]

    def states(self, node: Hashable) -> tuple[Hashable, ...]:
        """The states of a node."""
        return self.fitted_.variable(check_node(node, self._parents)).states

    def to_networkx(self) -> Any:
        """The structure as a networkx DiGraph."""
        graph = require("networkx", extra="graphs", purpose="to_networkx").DiGraph()
        graph.add_nodes_from(self.nodes)
        graph.add_edges_from(self.edges)
        return graph

    def size_report(self, data: Any = None, *, columns: Any = None) -> SizeReport:
        """Cells and bytes of every node and of the junction tree, before or after fitting.

        Cards come from declared states, from `data`, or from the fitted nodes. With data, or after a fit, the report
        also says how many parent configurations occur.
        """
        from suffice.models.bayesian.size_report import size_report

        return size_report(self._task(), self._declared, self._fit, data, columns)

    # -- what was learned --------------------------------------------------------------------------------------------

    def _task(self) -> NetworkTask:
        from suffice.models.bayesian.task import NetworkTask

        return NetworkTask(self._options, self._learning, self._variables)

    def _learn(self, data: object, y: object, **more: object) -> Self:
        return super()._learn(data, y, **more) if self._options["target"] is None else target_fit(self, data, y, more)

    _read_again = read_again
    partial_fit = target_partial_fit

    def _join(self, keep: float, data: object, y: object, **more: object) -> Self:
        if self._options["target"] is None:
            return super()._join(keep, data, y, **more)
        return target_fit(self, data, y, more, keep)

    @property
    def fitted_(self) -> NetworkFitted:
        """The fitted nodes: a frozen value. Nodes that are all fixed need no fit, once their states are known."""
        if self._fit is not None:
            fitted: NetworkFitted = self._fit.fitted
            return fitted
        if self._all_fixed is None:
            from suffice.models.bayesian.all_fixed import all_fixed

            self._all_fixed = all_fixed(self._learning, self._variables)
        return self._all_fixed

    n_params_: Read[int] = computed(told_parameters)

    @property
    def scores_(self) -> tuple[float, ...]:
        """The objective of each run of EM, -inf for one that failed."""
        return self.fitted_.climbed.scores

    @property
    def n_expectations_(self) -> int:
        """How often expected statistics were computed, in all runs of EM together."""
        return self.fitted_.climbed.expectations

    @property
    def parameters(self) -> LearnedParameters:
        """What is known about the parameters, from which answers have their error bars."""
        return LearnedParameters(self.fitted_, self._learning, self._fit)

    def node(self, node: Hashable) -> Any:
        """The fitted node; after EM its standard errors are those of the observed information."""
        return self.parameters.node(check_node(node, self._parents))

    def table(self, node: Hashable) -> Table:
        """P(node | parents) with axes (parents in declared order, node); the last axis sums to one.

        Of a linear-Gaussian node the coefficients, with axes (discrete parents, coefficient).
        """
        return self.fitted_.table(check_node(node, self._parents))

    posterior_: Read[dict[Hashable, Any]] = delegated_property(LearnedParameters.posterior_, of="parameters")
    standard_errors_: Read[dict[Hashable, Table]] = delegated_property(
        LearnedParameters.standard_errors_, of="parameters"
    )
    log_predictive = delegated(LearnedParameters.log_predictive, of="parameters")

    # -- questions ---------------------------------------------------------------------------------------------------

    query = answered(NetworkFitted.query)

    def joint_marginal(self, variables: Sequence[Hashable]) -> Any:
        """P(variables), axes in the order asked."""
        return self.query(list(listed_names(variables, "variables")))

    effect = delegated(LearnedParameters.effect, of="parameters")
    sensitivity = delegated(LearnedParameters.sensitivity, of="parameters")
    explain = delegated(LearnedParameters.explain, of="parameters")
    marginals = answered_by_node(NetworkFitted.marginals)
    map_query = delegated(NetworkFitted.map_query)
    log_probability = delegated(NetworkFitted.log_probability)
    joint_gaussian = delegated(NetworkFitted.joint_gaussian)
    to_joint = delegated(NetworkFitted.to_joint)

    # -- many rows ---------------------------------------------------------------------------------------------------

    score_samples = targeted(NetworkFitted.score_samples, asks=False)
    predict_proba = Offered(targeted(NetworkFitted.predict_proba), without_table)
    predict = Offered(targeted(NetworkFitted.predict), without_target)
    score = targeted_score
    classes_: Read[NDArray[Any]] = computed(classes_of)
    _role = role_of
    n_iter_: Read[int] = computed(steps_of)
    query_rows = delegated(NetworkFitted.query_rows)
    sample = drawn(NetworkFitted.sample)
    markov_blanket = markov_blanket
    d_separated = d_separated
    mutual_information = mutual_information
    arc_strengths = arc_strengths
    conflict = conflict
    surprise = surprise
    node_scores = node_scores
    impute = impute

    def portrait(self) -> Portrait:
        """What there is to see of it: what pages, plots and notebooks show."""
        from suffice.models.bayesian.portrait import portrait_of_network

        return portrait_of_network(self)

    # -- files -------------------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Options, tables, statistics and report as plain data."""
        plain, options = super().to_dict(), self._options
        plain["options"]["structure"] = {node: list(parents) for node, parents in self._parents.items()}
        plain["options"]["states"] = self._declared or None
        if self._fit is not None:
            from suffice.models.bayesian.label_indexed import as_tables

            nodes = self._fit.fitted.nodes
            plain["options"] |= {name: as_tables(options[name], nodes) for name in ("prior", "fixed", "start")}
        plain["options"]["fixed"] = plain_fixed(plain["options"]["fixed"])
        return plain

    def _fitted_from(self, plain: Mapping[str, Any]) -> NetworkFitted:
        return NetworkFitted.from_dict(plain, self._learning)

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Rebuild from plain data."""
        options = {**plain["options"], "fixed": read_fixed(plain["options"]["fixed"])}
        return super().from_dict({**plain, "options": options})
