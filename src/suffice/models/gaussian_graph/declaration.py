"""`GaussianGraph`: covariance selection, a normal distribution whose precision has zeros in given places."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from suffice.answers import MomentSums
from suffice.checks import choice, whole_number
from suffice.errors import require
from suffice.fitting.estimator import SummaryEstimator
from suffice.models.bayesian.queries.joint_gaussian import JointGaussian
from suffice.models.gaussian_graph.fitted import GaussianGraphFitted
from suffice.models.gaussian_graph.learning import SOLVERS
from suffice.models.gaussian_graph.structure import read_structure
from suffice.models.gaussian_graph.task import GaussianGraphTask
from suffice.statistics import Moments

if TYPE_CHECKING:
    from suffice.fitting.portrait import Portrait

Floats = NDArray[np.float64]


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
            ``"ipf"`` over the cliques along a clique tree; ``"newton"`` on the free entries.
        start: a precision to begin with, for "ipf" and "newton"; the inverse of the variances unless given.
        max_iter: iterations at most.
        tolerance: gap at which the fit has converged, in the units of each statistic.
        max_seconds: time limit.
        progress: show a bar.
        callback: called with the state after each iteration; True stops.
        checkpoint: a file from which an interrupted fit goes on.

    >>> graph = GaussianGraph([("a", "b"), ("b", "c")], nodes=["a", "b", "c"])
    >>> fit = graph.fit(covariance=[[2, 1, 1], [1, 2, 1], [1, 1, 2]], n=30)
    >>> float(fit.precision_[0, 2]), round(float(fit.covariance_[0, 2]), 12)
    (0.0, 0.5)
    """

    def __init__(
        self,
        structure: Any,
        nodes: Iterable[Hashable] | None = None,
        *,
        mean: Any = "free",
        prior: Any = None,
        solver: str = "auto",
        start: ArrayLike | None = None,
        max_iter: int = 1_000,
        tolerance: float = 1e-10,
        max_seconds: float | None = None,
        progress: bool = False,
        callback: Any = None,
        checkpoint: Any = None,
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
            max_seconds=max_seconds,
            progress=progress,
            callback=callback,
            checkpoint=checkpoint,
        )
        choice(solver, "solver", SOLVERS)
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

    @property
    def covariance_(self) -> Floats:
        """The covariance (p, p), the inverse of the precision."""
        return np.asarray(self.fitted_.covariance)

    @property
    def partial_correlations_(self) -> Floats:
        """Correlation of two nodes given all others (p, p): -K_ij / sqrt(K_ii K_jj), 1 on the diagonal."""
        return np.asarray(self.fitted_.partial_correlations)

    @property
    def correlations_(self) -> Floats:
        """Correlations (p, p)."""
        units = np.sqrt(np.diag(self.covariance_))
        return np.asarray(self.covariance_ / np.outer(units, units))

    @property
    def joint_(self) -> JointGaussian:
        """The distribution of all nodes."""
        joint: JointGaussian = self.fitted_.joint
        return joint

    def information_form(self) -> tuple[Floats, Floats]:
        """(h, J) with J the precision (p, p) and h = J mean (p,)."""
        return self.precision_ @ self.mean_, self.precision_

    # -- fitting -----------------------------------------------------------------------------------------------------

    def _task(self) -> GaussianGraphTask:
        return GaussianGraphTask(self._options, self._structure)

    def fit(
        self,
        data: Any = None,
        sample_weight: Any = None,
        *,
        columns: Any = None,
        covariance: Any = None,
        n: float | None = None,
        sample_mean: Any = None,
    ) -> Self:
        """Learn the parameters from rows, from a `Summary`, or from a covariance matrix.

        Args:
            data: any table, file or array that the library reads, or a `Summary`.
            sample_weight: one weight a row, or the name of the column that holds it.
            columns: names for the columns of an array or of the covariance, or the columns to read.
            covariance: instead of rows: their covariance (divisor n) about the mean, or about the known mean; a
                DataFrame is read by name, an array in the order of `columns` or `nodes`.
            n: the number of rows that the covariance is of.
            sample_mean: their mean, where it is free; 0 unless given.
        """
        given = {"covariance": covariance, "n": n, "sample_mean": sample_mean}
        return self._learn(data, sample_weight=sample_weight, columns=columns, **given)

    # -- questions ---------------------------------------------------------------------------------------------------

    def query(self, variables: Any, given: Mapping[Any, Any] | None = None) -> JointGaussian:
        """The distribution of some nodes given values of others, in the order asked."""
        answer: JointGaussian = self.fitted_.query(variables, given)
        return answer

    def marginal(self, variables: Any) -> JointGaussian:
        """The distribution of some nodes, in the order asked."""
        return self.query(variables)

    def score_samples(self, data: Any, *, columns: Any = None) -> Floats:
        """Log density of each row (n,); missing values and absent columns are integrated out.

        `score` is its weighted mean.
        """
        return np.asarray(self.fitted_.score_samples(data, columns=columns))

    def predict(self, data: Any, target: Hashable, *, columns: Any = None) -> Floats:
        """The mean of a node given the other columns of each row (n,); what a row lacks is integrated out."""
        return np.asarray(self.fitted_.predict(data, target, columns=columns))

    def sample(
        self, n: int = 1, given: Mapping[Any, Any] | None = None, *, random_state: Any = None
    ) -> dict[Hashable, Floats]:
        """`n` rows, as columns by node; with values of some nodes given, from the distribution of the others."""
        return self.query(list(self.nodes), given).sample(whole_number(n, "n", 0), random_state=random_state)

    # -- figures -----------------------------------------------------------------------------------------------------

    @property
    def information_(self) -> Floats:
        """Expected information of the free entries of the precision in one row (m, m): the diagonal, then the edges."""
        return np.asarray(self.fitted_.information())

    @property
    def standard_errors_(self) -> Floats:
        """Of the entries of the precision (p, p), from the expected information; 0 where there is no edge."""
        return np.asarray(self.fitted_.standard_errors(self.statistics_.weight))

    @property
    def mean_standard_errors_(self) -> Floats:
        """Of the means (p,); 0 where they are known."""
        if self.fitted_.known_mean:
            return np.zeros(len(self.nodes))
        return np.sqrt(np.diag(self.covariance_) / self.statistics_.weight)

    @property
    def deviance_(self) -> float:
        """Twice the log-likelihood lost to the graph of all edges, ``N (tr(SK) - log det(SK) - p)``.

        Infinite where the covariance of the rows is singular: the graph of all edges then has no maximum.
        """
        moments: MomentSums = self.statistics_[Moments(self.nodes)]
        S = moments.scatter_about(self.mean_) / moments.weight
        half = np.linalg.cholesky(self.precision_)
        values = np.linalg.eigvalsh(half.T @ S @ half)
        if not values[0] > 1e-13 * float(values[-1]):
            return math.inf
        excess = values - 1.0
        return float(moments.weight * (excess - np.log1p(excess)).sum())

    @property
    def df_(self) -> int:
        """Degrees of freedom of the deviance: the pairs that are not joined."""
        return self._structure.non_edges

    def portrait(self) -> Portrait:
        """What there is to see of it: what pages, plots and notebooks show."""
        from suffice.fitting.portrait import Graph, Portrait, learned_portrait

        if self._fit is None:
            return Portrait("GaussianGraph", "gaussian", graph=Graph(self.nodes, self.edges))
        return learned_portrait(self)

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

    def to_frame(self, what: str = "precision") -> Any:
        """A pandas DataFrame of a matrix of the fit: "precision", "covariance" or "partial_correlations"."""
        choice(what, "what", ("precision", "covariance", "correlations", "partial_correlations", "standard_errors"))
        pd = require("pandas", extra="all", purpose="GaussianGraph.to_frame")
        index = pd.Index(list(self.nodes), tupleize_cols=False)
        return pd.DataFrame(getattr(self, f"{what}_"), index=index, columns=index)

    def to_plain(self) -> dict[str, Any]:
        """Options, parameters, statistics and report as plain data; any structure is written as its edges."""
        plain = super().to_plain()
        plain["options"] |= {"structure": [list(edge) for edge in self.edges], "nodes": list(self.nodes)}
        return plain

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Self:
        """Rebuild from plain data."""
        options = dict(plain["options"])
        options["structure"] = [tuple(edge) for edge in options["structure"]]
        return super().from_plain({**plain, "options": options})

    def _fitted_from(self, plain: Mapping[str, Any]) -> GaussianGraphFitted:
        return GaussianGraphFitted.from_dict(plain, self._structure, known_mean=self._task().known_mean is not None)
