"""`MarkovNetwork`: log-linear models of discrete variables; the structure is known, the weights are learned."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, Self, Unpack

from numpy.typing import ArrayLike

from suffice.array_types import Floats, RandomState
from suffice.attributes import Read, computed
from suffice.choices import Acceleration, MarkovSolver, MissingValues, OnInconsistent, Registered
from suffice.engines.junction_tree import TreePlan
from suffice.errors import MissingValueError, require
from suffice.fitting.contract import Inputs, Judgement
from suffice.fitting.control import Control
from suffice.fitting.driver import Fit
from suffice.fitting.estimator import SummaryEstimator, delegated, delegated_property, drawn
from suffice.fitting.portrait import Portrait
from suffice.models.em.rows import has_missing
from suffice.models.markov import builders, comparison, contrasts, residuals
from suffice.models.markov.approximate.estimates import Estimate, estimate_log_partition, estimate_score
from suffice.models.markov.error_bars import answered
from suffice.models.markov.feature import Feature
from suffice.models.markov.fitted import MarkovFitted
from suffice.models.markov.network_portrait import network_portrait
from suffice.models.markov.options import IDLE
from suffice.models.markov.specification import TOLERANCE, Specification
from suffice.models.markov.structure import Term, grid_edges
from suffice.models.markov.task import MarkovTask
from suffice.options import RunOptions, own_options


class MarkovNetwork(SummaryEstimator):
    """p(x) = exp(sum_k weight_k f_k(x)) / Z over discrete variables; the structure is given, the weights are learned.

    A clique is a table: one weight for each joint state of its variables, and exp(weight) is its potential. A `Feature`
    has one weight. Maximum likelihood makes expected and observed features agree. A variable that no term names, but
    that ``states=`` declares, is uniform.

    Data are rows, a contingency table, margins by clique, or a `Summary`; `contingency` says what counts as a table.
    Hidden variables and missing values (None, NaN, NA) are learned by EM with exact expectations: the statistics are
    then the distinct rows, and `partial_fit` and `unlearn` run EM anew.

    Args:
        structure: a list of cliques (tuples of variables) and features; a networkx graph, whose edges are the cliques:
            pairwise tables, and tables of single nodes for nodes without edges; another Markov network; or a Bayesian
            network, whose families are the cliques.
        states: by variable a list of states, of which one that never occurs keeps its place, or ``"discrete"`` for
            those seen; more than 50 different integers have to be declared.
        hidden: number of states, or list of states, of variables that are never observed; columns of their names are
            not read. `states` may name the states that `hidden` counts.
        missing: what missing values in the rows do: ``"em"`` or ``"raise"``.
        prior: on the weights, in the order of `weight_names_`: ``Normal(mean, variance)`` with numbers or arrays,
            ``MultivariateNormal(mean, covariance)`` or ``Laplace(scale)``. The log prior is added to the SUM of the
            log-likelihood over rows.
        solver: ``"auto"``, ``"closed-form"``, ``"ipf"``, ``"gis"``, ``"gis-cyclic"``, ``"lbfgs"``, ``"newton"``,
            ``"newton-cg"``, ``"cg"``, ``"ascent"``, ``"ascent-potentials"`` or ``"owlqn"`` (for a Laplace prior). All
            reach the same distribution. Where exact inference does not fit: ``"sml"`` (stochastic maximum likelihood),
            ``"pseudolikelihood"``, ``"cd"`` (contrastive divergence) or ``"loopy-bp"``. Under EM it makes the M-step.
        start: weights to begin with, in the order of `weight_names_` or by name; zeros by default, and random ones for
            the terms of hidden variables.
        m_steps: most iterations of the solver in an M-step, 1 or more (generalised EM); None goes to its maximum: until
            its slope is a tenth of `tolerance`, or for 10,000 iterations.
        n_init: number of EM runs from random starts where variables are hidden; the best is kept. The first begins at
            `start` where it is given.
        acceleration: of EM: None, ``"squarem"``, or ``"lbfgs"``, which after some steps follows the slope that E-steps
            give: fewer steps where much is missing. The objective never falls either way.
        on_inconsistent: what margins do that no table has, two at odds or all together: ``"raise"``, or ``"warn"``,
            which warns with the same words and fits them as far as it goes.
        check_existence: whether to decide if the maximum exists also where margins are positive, by a linear programme.
        sampling: how the chains of approximate solvers and answers run, a `GibbsSampling`.
        batch_size: rows of one update of ``"sml"`` (all by default) or ``"cd"`` (as many as chains by default).
        step_size: of ``"sml"`` and ``"cd"``: the first step, or a function of the number of the update; adaptive by
            default. A step of 1 is one over the variance of each feature.
        random_state: seed of the chains, and of random starts; the global generator is never touched.
        memory_limit: most memory of the junction tree in bytes, or a text such as "2GB", half of that of the machine by
            default; and of rows that are read from files and held for EM, half of what is free by default.
        max_iter: most iterations.
        tolerance: the fit stops when no mean of a feature is further than this from its expectation (with a prior: when
            no slope of the objective a row is larger), in units of the spread of the feature. Cells of tables have the
            unit 1. By default 1e-10, and 1e-7 for EM, where it is the slope of the observed log-likelihood.
        max_seconds: most seconds, including those of the certificate, about.
        callback: called with the state after each iteration, objective in nats per row; True stops.
        run: see `RunOptions`.

    >>> rows = {"A": [0, 0, 1, 1, 1, 0], "B": [0, 1, 1, 1, 0, 0], "C": [0, 0, 1, 0, 1, 1]}
    >>> mrf = MarkovNetwork([("A", "B"), ("B", "C"), ("C", "A")]).fit(rows)
    >>> mrf.marginal(("A", "B")).at(A=1, B=1).__round__(6)
    0.333333
    """

    fitted_: MarkovFitted

    _idle = IDLE

    def __init__(
        self,
        structure: Any,
        *,
        states: Mapping[Any, Any] | None = None,
        hidden: Mapping[Any, Any] | None = None,
        missing: MissingValues = "em",
        prior: object = None,
        solver: MarkovSolver | Registered = "auto",
        start: Any = None,
        m_steps: int | None = None,
        n_init: int = 1,
        acceleration: Acceleration | None = None,
        on_inconsistent: OnInconsistent = "raise",
        check_existence: bool = True,
        sampling: object = None,
        batch_size: int | None = None,
        step_size: object = None,
        random_state: RandomState = 0,
        memory_limit: int | str | None = None,
        max_iter: int = 10_000,
        tolerance: float | None = None,
        **run: Unpack[RunOptions],
    ) -> None:
        """See the class."""
        super().__init__(**own_options(locals()))
        self._spec = Specification.of(self._options)

    # -- structure ---------------------------------------------------------------------------------------------------

    @property
    def nodes(self) -> tuple[Hashable, ...]:
        """The variables, in the order in which the structure names them."""
        return self._spec.nodes

    @property
    def terms(self) -> tuple[Term, ...]:
        """Cliques and features, in order."""
        return self._spec.terms

    cliques: Read[tuple[tuple[Hashable, ...], ...]] = delegated_property(Specification.cliques, of="_spec")
    features: Read[tuple[Feature, ...]] = delegated_property(Specification.features, of="_spec")
    edges: Read[tuple[tuple[Hashable, Hashable], ...]] = delegated_property(Specification.edges, of="_spec")

    def states(self, node: Hashable) -> tuple[Hashable, ...]:
        """The states of a variable."""
        return tuple(self.fitted_.domain[node].states)

    def portrait(self) -> Portrait:
        """What there is to see of it: what pages, plots and notebooks show."""
        return network_portrait(self, fitted=self._fit is not None)

    def to_networkx(self) -> Any:
        """The structure as a networkx Graph."""
        graph = require("networkx", extra="graphs", purpose="to_networkx").Graph()
        graph.add_nodes_from(self.nodes)
        graph.add_edges_from(self.edges)
        return graph

    grid_edges = staticmethod(grid_edges)
    grid = builders.constructor(builders.grid)
    ising = builders.constructor(builders.ising)
    potts = builders.constructor(builders.potts)
    from_potentials = builders.constructor(builders.from_potentials)
    from_bayesian_network = builders.constructor(builders.from_bayesian_network)

    # -- fitting -----------------------------------------------------------------------------------------------------

    def fit(
        self,
        data: object = None,
        y: object = None,
        *,
        table: object = None,
        sample_weight: object = None,
        columns: object = None,
    ) -> Self:
        """Learn the weights from rows, from a contingency table, from margins, or from a `Summary`.

        Args:
            data: any table, file or array of rows that the library reads; counts whose form tells that they are some (a
                Series with a MultiIndex, a cross table, a `Table`, an array of three or more axes); margins by clique,
                a dict or a list of tables that name their variables; or a `Summary`.
            y: what scikit-learn hands to every model; it is not used here, and a warning says so.
            table: in place of data: a contingency table, also as an array of two axes.
            sample_weight: one weight a row, or the name of the column that holds it.
            columns: names for the columns or the axes of an array, or the columns to read.
        """
        return self._learn(data, y, table=table, sample_weight=sample_weight, columns=columns)

    def _task(self) -> MarkovTask:
        by_rows = self._fit is not None and self._fit.data is not None and has_missing(self.statistics_)
        return MarkovTask(self._options, self._spec, by_rows)

    def _control(self) -> Control:
        given = self._options["tolerance"]
        return Control.of({**self._options, "tolerance": TOLERANCE if given is None else given})

    def score(self, data: object, y: object = None, *, sample_weight: object = None, columns: object = None) -> float:
        """Mean log-likelihood of a row (weighted), natural logarithm; data as in `fit`, with the states of the fit."""
        try:
            return super().score(data, y, sample_weight=sample_weight, columns=columns)
        except MissingValueError as error:
            raise MissingValueError(f"{error} score needs whole rows; score_samples sums missing values out.") from None

    def with_weights(self, weights: ArrayLike) -> Self:
        """An unfitted copy with these weights given, so that it answers questions.

        The states are those of the fit; where there was none, all have to be declared.

        A weight of minus infinity rules out all joint states where its feature (or cell) is not at its least value, one
        of plus infinity all where it is not at its largest: the limits of distributions with finite weights. So
        `weights_` of a fit give its distribution also where they are infinite. NaN stands for weights that run to
        infinity only together, in proportions that no single weights tell, and is an error.
        """
        domain = None if self._fit is None else self.fitted_.domain
        return self.clone()._adopt(Fit(self._spec.given(weights, domain)))

    def _judgement(self) -> Judgement:
        """What was measured at the weights; what a file says about them is not measured anew."""
        fit = self._fit
        if fit is None or fit.judgement is not None or fit.data is None or fit.report is None:
            return super()._judgement()
        return self._learned_by().problem(fit.data, None).again(fit.fitted, fit.report)

    def _learned_by(self) -> MarkovTask:
        """The task of the last fit: options that were set since are those of the next one."""
        task: MarkovTask | None = None if self._fit is None else self._fit.task
        return self._task() if task is None else task

    # -- parameters --------------------------------------------------------------------------------------------------

    weights_: Read[Floats] = delegated_property(MarkovFitted.weights)
    weight_names_: Read[tuple[str, ...]] = delegated_property(MarkovFitted.weight_names)
    log_partition_: Read[float] = delegated_property(MarkovFitted.log_partition)
    information_: Read[Floats] = delegated_property(MarkovFitted.information)
    plan_: Read[TreePlan] = delegated_property(MarkovFitted.plan)
    scores_: Read[tuple[float, ...]] = delegated_property(MarkovFitted.em_scores)
    n_expectations_: Read[int] = delegated_property(MarkovFitted.em_expectations)
    fields_: Read[dict[Hashable, Any]] = delegated_property(MarkovFitted.fields)
    couplings_: Read[dict[tuple[Hashable, ...], float]] = delegated_property(MarkovFitted.couplings)
    potential = delegated(MarkovFitted.potential)
    factors = delegated(MarkovFitted.factors)
    log_partition = delegated(MarkovFitted.log_partition_of)

    @property
    def n_params_(self) -> int:
        """Free parameters: the rank of the features, constants aside. Tables have more weights than that.

        With a Laplace prior at most the weights that are not at its centre; less what rows with hidden variables leave
        open.
        """
        report = self._bare_report() if self.fitted_.scores else None
        return self.fitted_.n_params if report is None else report.n_params

    @property
    def standard_errors_(self) -> Floats:
        """Standard errors of the weights (n_weights,).

        The square roots of the diagonal of the inverse of the information of all rows, where that is definite. A weight
        that the data do not tell has an infinite error: one that ran to infinity, that of a feature which does not vary
        under the model, and those of features of which one is a sum of others. Tables have more weights than free
        parameters; along the directions that change no distribution the error is that of the shortest of all weights
        with the same one, by the pseudo-inverse, and the variance of a contrast c of weights that is identified is
        ``c' pinv(information) c``. With a normal prior: standard deviations of the normal distribution that has the
        curvature of the posterior at its mode. With a Laplace prior a weight that was set to the centre of the prior
        has no error (NaN), and the others have the error of a fit without it. Where variables are hidden or values
        missing, the information is the observed one, by differences of exact slopes.
        """
        problem = self._learned_by().problem(self._learned_data(), None)
        return problem.standard_errors(self.fitted_, self._judgement())

    @property
    def weight_covariance_(self) -> Floats:
        """The covariance of the weights (n_weights, n_weights): what error bars of answers are made of.

        The pseudo-inverse of the information of all rows, or with a normal prior the inverse of it and the prior's.
        """
        problem = self._learned_by().problem(self._learned_data(), None)
        return problem.weight_covariance(self.fitted_, self._judgement())

    # -- questions ---------------------------------------------------------------------------------------------------

    query = answered(MarkovFitted.query)
    marginal = delegated(MarkovFitted.marginal)
    marginals = delegated(MarkovFitted.marginals)
    map_query = delegated(MarkovFitted.map_query)
    log_probability = delegated(MarkovFitted.log_probability)
    score_samples = delegated(MarkovFitted.score_samples)
    predict_proba = delegated(MarkovFitted.predict_proba)
    predict = delegated(MarkovFitted.predict)
    sample = drawn(MarkovFitted.sample)
    to_joint = delegated(MarkovFitted.to_joint)
    estimate_log_partition = delegated(estimate_log_partition)

    def gis_lower_bound(self, weights: ArrayLike) -> float:
        """The lower bound Q of the log-likelihood at other weights that iterative scaling maximises, in nats per row.

        It is equal to the mean log-likelihood at the weights of this network, and nowhere above it. With changes d of
        the weights, features f, negative ones less their least values, and their largest sum C it is
        ``l + sum_k (d_k observed_k - (exp(C d_k) - 1) expected_k / C)``. See `suffice.solvers.scaling`.
        """
        return comparison.scaling_bound(self.fitted_, self.statistics_, self.fitted_.weights_like(weights))

    def estimate_score(
        self,
        data: object,
        *,
        sample_weight: object = None,
        columns: object = None,
        steps: int | None = None,
        random_state: RandomState = None,
    ) -> Estimate:
        """Mean log-likelihood of a row with its standard error, that of `estimate_log_partition`.

        What the row says is summed exactly over what it does not show; log Z is estimated.
        """
        read = self._read("compare", data, sample_weight=sample_weight, columns=columns).statistics
        return estimate_score(self.fitted_, read, steps, random_state)

    # -- against the saturated model ---------------------------------------------------------------------------------

    n_cells_: Read[int] = computed(comparison.n_cells)
    df_ = computed(comparison.df)
    deviance_ = computed(comparison.deviance)
    chi2_ = computed(comparison.chi2)
    p_value_ = computed(comparison.p_value)
    adjusted_n_params_ = computed(comparison.adjusted_n_params)
    adjusted_df_ = computed(comparison.adjusted_df)
    fitted_counts_ = computed(comparison.fitted_counts)
    residuals = residuals.residuals
    effects = contrasts.effects

    def deviance(self, data: object, *, sample_weight: object = None, columns: object = None) -> float:
        """G^2 of these rows against the saturated model, from the joint states that occur in them.

        For networks of many variables, whose fit does not count them together. Rows other than those of the fit are
        compared with the distribution as it is.
        """
        given = Inputs(data, {"sample_weight": sample_weight, "columns": columns})
        return comparison.deviance_of(self, self._learned_by().read_joint(given, self.fitted_))

    # -- files -------------------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Options, weights, statistics and report as plain data; functions are written as their tables."""
        plain = super().to_dict()
        plain["options"]["structure"] = self._spec.tabulated(self._known())
        return plain

    def _fitted_from(self, plain: Mapping[str, Any]) -> MarkovFitted:
        return self._spec.fitted_from(plain)
