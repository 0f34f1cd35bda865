"""`GaussianGraph`: covariance selection, a normal distribution whose precision has zeros in given places."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Self, Unpack

import numpy as np
from numpy.typing import ArrayLike

from suffice.array_types import Floats
from suffice.attributes import Read
from suffice.checks import choice
from suffice.choices import GaussianSolver, GraphFrame, Registered, choices
from suffice.errors import require
from suffice.fitting.estimator import SummaryEstimator, delegated, delegated_property, drawn
from suffice.fitting.sklearn_face import Offered, needs_target
from suffice.models.gaussian_graph import edge_tables
from suffice.models.gaussian_graph.fitted import GaussianGraphFitted
from suffice.models.gaussian_graph.learning import OWN_SOLVERS
from suffice.models.gaussian_graph.structure import read_structure
from suffice.models.gaussian_graph.task import GaussianGraphTask
from suffice.options import Idle, RunOptions
from suffice.solvers.registry import check_solver

if TYPE_CHECKING:
    from suffice.fitting.portrait import Portrait
    from suffice.models.bayesian.queries.joint_gaussian import JointGaussian


class GaussianGraph(SummaryEstimator):
    """A normal distribution N(mean, K^-1) whose precision K is 0 for every pair of nodes that is not joined.

    At the maximum of the likelihood the covariances of all edges, and the variances, are those of the rows (divisor N);
    the other covariances are what the zeros of K make of them. The whole covariance of the rows is never inverted: it
    may be singular, as long as that of every clique is not.

    Args:
        structure: edges and cliques (tuples of nodes), a networkx graph, a square matrix or a fitted model with
            `precision_` (such as scikit-learn's graphical lasso), whose entries other than 0 are the edges.
        nodes: all nodes, in the order of the arrays; unless given, as the structure names them.
        mean: ``"free"``, ``"zero"``, or the known means, by node or in their order.
        prior: `Wishart` on the precision, `NormalWishart` on mean and precision, or ``Normal(mean, variance)`` on the
            free entries of the precision (ridge). The estimate is then the mode (MAP).
        solver: ``"auto"``; ``"closed-form"`` for chordal graphs; ``"regression"`` of each node on its neighbours,
            ``"ipf"`` over the cliques along a clique tree; ``"newton"`` on the free entries, or any other solver that
            is registered, such as ``"lbfgs"`` and ``"newton-cg"``.
        start: a precision to begin with, for "ipf" and "newton"; the inverse of the variances unless given.
        max_iter: iterations at most.
        tolerance: gap at which the fit has converged, in the units of each statistic.
        run: see `RunOptions`.

    >>> graph = GaussianGraph([("a", "b"), ("b", "c")], nodes=["a", "b", "c"])
    >>> fit = graph.fit(covariance=[[2, 1, 1], [1, 2, 1], [1, 1, 2]], n=30)
    >>> float(fit.precision_[0, 2]), round(float(fit.covariance_[0, 2]), 12)
    (0.0, 0.5)
    """

    fitted_: GaussianGraphFitted
    _takes_matrices = True

    _idle = (
        Idle(
            "start",
            lambda given: given["solver"] in ("closed-form", "regression"),
            "closed forms and regressions begin nowhere",
        ),
    )

    def __init__(
        self,
        structure: Any,
        nodes: Iterable[Hashable] | None = None,
        *,
        mean: object = "free",
        prior: object = None,
        solver: GaussianSolver | Registered = "auto",
        start: ArrayLike | None = None,
        max_iter: int = 1_000,
        tolerance: float = 1e-10,
        **run: Unpack[RunOptions],
    ) -> None:
        """See the class."""
        self._structure = read_structure(structure, nodes)
        super().__init__(
            structure=structure,
            nodes=None if nodes is None else tuple(nodes),
            mean=mean,
            prior=prior,
            solver=solver,
            start=start,
            max_iter=max_iter,
            tolerance=tolerance,
            **run,
        )
        check_solver(solver, ("auto", *OWN_SOLVERS))
        self._task().known_mean  # noqa: B018  A mean that is none is refused here.

    # -- structure and parameters ------------------------------------------------------------------------------------

    @property
    def nodes(self) -> tuple[Hashable, ...]:
        """The nodes, in the order of all arrays."""
        return self._structure.nodes

    @property
    def edges(self) -> tuple[tuple[Hashable, Hashable], ...]:
        """The pairs of nodes that are joined."""
        return self._structure.edges

    @property
    def is_chordal(self) -> bool:
        """Whether every cycle of four or more nodes has a chord, so that the fit has a closed form."""
        return not self._structure.cycle

    @property
    def mean_(self) -> Floats:
        """The means (p,)."""
        return np.asarray(self.fitted_.mean)

    @property
    def precision_(self) -> Floats:
        """The precision K (p, p): exactly 0 where there is no edge."""
        return np.asarray(self.fitted_.precision)

    covariance_: Read[Floats] = delegated_property(GaussianGraphFitted.covariance)
    correlations_: Read[Floats] = delegated_property(GaussianGraphFitted.correlations)
    partial_correlations_: Read[Floats] = delegated_property(GaussianGraphFitted.partial_correlations)
    joint_: Read[JointGaussian] = delegated_property(GaussianGraphFitted.joint)
    information_form = delegated(GaussianGraphFitted.information_form)

    # -- fitting -----------------------------------------------------------------------------------------------------

    def _task(self) -> GaussianGraphTask:
        return GaussianGraphTask(self._options, self._structure)

    def fit(
        self,
        data: object = None,
        y: object = None,
        *,
        sample_weight: object = None,
        columns: object = None,
        covariance: object = None,
        n: float | None = None,
        sample_mean: object = None,
    ) -> Self:
        """Learn the parameters from rows, from a `Summary`, or from a covariance matrix.

        Args:
            data: any table, file or array that the library reads, or a `Summary`.
            y: what scikit-learn hands to every model; it is not used here, and a warning says so.
            sample_weight: one weight a row, or the name of the column that holds it.
            columns: names for the columns of an array or of the covariance, or the columns to read.
            covariance: instead of rows: their covariance (divisor n) about the mean, or about the known mean; a
                DataFrame is read by name, an array in the order of `columns` or `nodes`.
            n: the number of rows that the covariance is of.
            sample_mean: their mean, where it is free; 0 unless given.
        """
        given = {"covariance": covariance, "n": n, "sample_mean": sample_mean}
        return self._learn(data, y, sample_weight=sample_weight, columns=columns, **given)

    def partial_fit(
        self,
        data: object = None,
        y: object = None,
        *,
        sample_weight: object = None,
        columns: object = None,
        covariance: object = None,
        n: float | None = None,
        sample_mean: object = None,
        keep: float = 1.0,
    ) -> Self:
        """Add rows, or their covariance as in `fit`, to those already learned: the result equals one fit on all.

        `keep` below 1 weights the earlier rows down first (forgetting).
        """
        given = {"covariance": covariance, "n": n, "sample_mean": sample_mean}
        return self._join(keep, data, y, sample_weight=sample_weight, columns=columns, **given)

    def unlearn(
        self,
        data: object = None,
        *,
        sample_weight: object = None,
        columns: object = None,
        covariance: object = None,
        n: float | None = None,
        sample_mean: object = None,
    ) -> Self:
        """Take rows, or their covariance as in `fit`, out again; the result equals a fit that never saw them."""
        given = {"covariance": covariance, "n": n, "sample_mean": sample_mean}
        return self._leave(data, sample_weight=sample_weight, columns=columns, **given)

    # -- questions ---------------------------------------------------------------------------------------------------

    query = delegated(GaussianGraphFitted.query)
    marginal = delegated(GaussianGraphFitted.marginal)
    score_samples = delegated(GaussianGraphFitted.score_samples)
    predict = Offered(delegated(GaussianGraphFitted.predict), needs_target)
    sample = drawn(GaussianGraphFitted.sample)

    # -- figures -----------------------------------------------------------------------------------------------------

    information_: Read[Floats] = delegated_property(GaussianGraphFitted.information)
    edge_correlations = edge_tables.edge_correlations
    edge_deviances = edge_tables.edge_deviances

    @property
    def standard_errors_(self) -> Floats:
        """Of the entries of the precision (p, p), from the expected information; 0 where there is no edge."""
        return np.asarray(self.fitted_.standard_errors(self.statistics_.weight))

    @property
    def mean_standard_errors_(self) -> Floats:
        """Of the means (p,); 0 where they are known."""
        return np.asarray(self.fitted_.mean_standard_errors(self.statistics_.weight))

    @property
    def deviance_(self) -> float:
        """Twice the log-likelihood lost to the graph of all edges, ``N (tr(SK) - log det(SK) - p)``.

        Infinite where the covariance of the rows is singular: the graph of all edges then has no maximum.
        """
        return float(self.fitted_.deviance(self.statistics_))

    @property
    def df_(self) -> int:
        """Degrees of freedom of the deviance: the pairs that are not joined."""
        return int(self.fitted_.structure.non_edges)

    def portrait(self) -> Portrait:
        """What there is to see of it: what pages, plots and notebooks show."""
        from suffice.models.gaussian_graph.portrait import portrait_of_model

        return portrait_of_model(self)

    # -- other forms -------------------------------------------------------------------------------------------------

    def to_networkx(self) -> Any:
        """The structure as a networkx Graph; a fitted one has the partial correlation of each edge."""
        graph = require("networkx", extra="graphs", purpose="to_networkx").Graph()
        graph.add_nodes_from(self.nodes)
        partial = None if self._fit is None else self.partial_correlations_
        for edge, (first, second) in zip(self.edges, self._structure.pairs.tolist(), strict=True):
            shown = {} if partial is None else {"partial_correlation": float(partial[first, second])}
            graph.add_edge(*edge, **shown)
        return graph

    def to_frame(self, what: GraphFrame = "precision") -> Any:
        """A pandas DataFrame of a matrix of the fit: "precision", "covariance" or "partial_correlations"."""
        choice(what, "what", choices(GraphFrame))
        pd = require("pandas", extra="all", purpose="GaussianGraph.to_frame")
        index = pd.Index(list(self.nodes), tupleize_cols=False)
        return pd.DataFrame(getattr(self, f"{what}_"), index=index, columns=index)

    def to_dict(self) -> dict[str, Any]:
        """Options, parameters, statistics and report as plain data; any structure is written as its edges."""
        plain = super().to_dict()
        plain["options"] |= {"structure": [list(edge) for edge in self.edges], "nodes": list(self.nodes)}
        return plain

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Rebuild from plain data."""
        options = dict(plain["options"])
        options["structure"] = [tuple(edge) for edge in options["structure"]]
        return super().from_dict({**plain, "options": options})

    def _fitted_from(self, plain: Mapping[str, Any]) -> GaussianGraphFitted:
        return GaussianGraphFitted.from_dict(plain, self._structure, known_mean=self._task().known_mean is not None)
