"""`GaussianGraph`: covariance selection, a normal law whose precision has zeros in given places."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from suffice.answers import MomentSums
from suffice.domain import Domain, Variable
from suffice.errors import EstimateError, FileFormatError, MergeError, OptionError, SizeError, listing
from suffice.fitting.report import Certificate, MatchedStatistics
from suffice.fitting.template import Solution, TemplateEstimator
from suffice.models.gaussian_graph.answers import GraphAnswers
from suffice.models.gaussian_graph.covariance import SMALLEST, by_node, moments_of, real_numbers
from suffice.models.gaussian_graph.existence import decide
from suffice.models.gaussian_graph.learning import SOLVERS, Problem, in_units, learn, log_likelihood, measure
from suffice.models.gaussian_graph.priors import Target, read_prior
from suffice.models.gaussian_graph.structure import read_structure
from suffice.solvers.covariance_selection import entry_information
from suffice.statistics import Moments, Statistic, Summary

if TYPE_CHECKING:
    from suffice.fitting.portrait import Portrait

Floats = NDArray[np.float64]

#: Free entries of the precision up to which standard errors are computed: their information is this large squared.
MOST_ENTRIES = 6_000


class GaussianGraph(GraphAnswers, TemplateEstimator):
    """A normal law N(mean, K^-1) whose precision K is 0 for every pair of nodes that is not joined.

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

    _mean: Floats
    _precision: Floats

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
        if solver not in SOLVERS:
            raise OptionError(f"solver is {solver!r}; expected one of {listing(SOLVERS)}.")
        self._known_mean()

    # -- structure and parameters ------------------------------------------------------------------------------------

    @property
    def nodes(self) -> tuple[Hashable, ...]:  # type: ignore[override]
        """The nodes, in the order of all arrays."""
        return self._structure.nodes

    @property
    def edges(self) -> tuple[tuple[Hashable, Hashable], ...]:  # type: ignore[override]
        """The pairs of nodes that are joined."""
        return self._structure.edges

    @property
    def is_chordal(self) -> bool:
        """Whether every cycle of four or more nodes has a chord, so that the fit has a closed form."""
        return not self._structure.cycle

    def _known_mean(self) -> Floats | None:
        """The given means (p,); None where they are free."""
        given, p = self._options["mean"], len(self.nodes)
        if isinstance(given, str):
            if given not in ("free", "zero"):
                raise OptionError(f"mean is {given!r}; expected 'free', 'zero', or the means themselves.")
            return None if given == "free" else np.zeros(p)
        if isinstance(given, Mapping):
            missing = [node for node in self.nodes if node not in given]
            if missing or len(given) != p:
                raise OptionError(f"mean has {listing(given)}; expected one number for each of {listing(self.nodes)}.")
            given = [given[node] for node in self.nodes]
        found = real_numbers(given, "mean", OptionError)
        if found.shape != (p,):
            raise OptionError(f"mean has shape {found.shape}; expected {p} finite numbers, one for each node.")
        return found

    @property
    def mean_(self) -> Floats:  # type: ignore[override]
        """The means (p,)."""
        return self._fitted("_mean")

    @property
    def precision_(self) -> Floats:  # type: ignore[override]
        """The precision K (p, p): exactly 0 where there is no edge."""
        return self._fitted("_precision")

    @property
    def covariance_(self) -> Floats:  # type: ignore[override]
        """The covariance (p, p), the inverse of the precision."""
        if "_covariance" not in self.__dict__:
            half = np.linalg.inv(np.linalg.cholesky(self.precision_))
            self._covariance = half.T @ half
        return np.asarray(self._covariance)

    def _fitted(self, name: str) -> Floats:
        if name not in self.__dict__:
            self.report_  # noqa: B018 - says that nothing was learned yet.
        return np.asarray(self.__dict__[name])

    @property
    def n_params_(self) -> int:
        """One for each node's variance, each edge, and each free mean."""
        return len(self.nodes) * (2 if self._known_mean() is None else 1) + len(self.edges)

    # -- data --------------------------------------------------------------------------------------------------------

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
        if covariance is None:
            if data is None:
                raise OptionError("Give rows, a Summary, or covariance= and n=.")
            return super().fit(data, sample_weight, columns=columns)
        if data is not None or sample_weight is not None:
            raise OptionError("Give either rows or covariance=, not both.")
        return super().fit(self._summary_of_covariance(covariance, n, sample_mean, columns))

    def _summary_of_covariance(self, covariance: Any, n: float | None, mean: Any, columns: Any) -> Summary:
        known = self._known_mean()
        if known is not None and mean is not None:
            raise OptionError("sample_mean is for a free mean; a known one is already given by mean=.")
        nodes = self.nodes
        centre = known if known is not None else np.zeros(len(nodes)) if mean is None else by_node(mean, nodes)
        moments = moments_of(covariance, n, centre, columns, nodes, named=self._options["nodes"] is not None)
        return Summary(self._domain(), {Moments(nodes): moments}, round(moments.weight), moments.weight)

    def _wanted(self, columns: Sequence[Hashable]) -> Mapping[Hashable, Variable | None]:
        return {node: Variable(node, "real") for node in self.nodes}

    def _ask(self, domain: Domain) -> tuple[Statistic, ...]:
        return (Moments(self.nodes),)

    def _own(self, summary: Summary) -> Summary:
        """The moments of the nodes, from those of more columns or in another order too."""
        if Moments(self.nodes) in summary.answers:
            return summary
        for statistic, answer in summary.answers.items():
            if isinstance(statistic, Moments) and set(self.nodes) <= set(statistic.variables):
                moments: Any = answer
                chosen = moments.select([statistic.variables.index(node) for node in self.nodes])
                return Summary(self._domain(), {Moments(self.nodes): chosen}, summary.rows, summary.weight)
        raise MergeError(
            f"The summary holds no moments of {listing(self.nodes)} together; it answers "
            f"{listing(summary.answers, 3)}. Summarise the data for this model with suffice.summarize(model, data)."
        )

    def _moments(self, summary: Summary) -> MomentSums:
        moments: MomentSums = summary[Moments(self.nodes)]
        if not moments.weight > 0:
            raise EstimateError("There are no rows to learn from: their total weight is 0.")
        if not np.isfinite(moments.cross_pair[0]).all():
            raise EstimateError("Some columns hold values too large to square in float64. Use another unit.")
        total, squares = np.abs(moments.total_pair[0]), np.diagonal(moments.cross_pair[0])
        lost = (total > 0) & (total < np.sqrt(SMALLEST) * moments.weight) & (squares < SMALLEST * moments.weight)
        if lost.any():
            names = listing([node for node, tiny in zip(self.nodes, lost.tolist(), strict=True) if tiny])
            raise EstimateError(f"The values of {names} are too small to square in float64. Use another unit.")
        return moments

    # -- solving -----------------------------------------------------------------------------------------------------

    def _target(self, summary: Summary) -> Target:
        return read_prior(self._options["prior"], self._structure, self._moments(summary), self._known_mean())

    def _solve(self, summary: Summary) -> Solution:
        target, structure = self._target(summary), self._structure
        problem = Problem(structure, target.S, target.weight, target.ridge, self._control(), self._start())
        learned = learn(problem, self._options["solver"])
        self._mean, self._precision = target.mean, learned.precision
        self.__dict__.pop("_covariance", None)
        return Solution(
            method=learned.method,
            estimate="maximum likelihood" if self._options["prior"] is None else "MAP",
            parameterisation=None if self._options["prior"] is None else "in mean and precision",
            outcome=learned.outcome,
            plan=f"{len(self.nodes)} nodes, {len(self.edges)} edges, {structure.non_edges} pairs not joined",
        )

    def _start(self) -> Floats | None:
        given = self._options["start"]
        if given is None:
            return None
        p = len(self.nodes)
        start = real_numbers(given, "start", OptionError)
        if start.shape != (p, p) or not np.allclose(start, start.T):
            raise OptionError(f"start has shape {start.shape}; expected a symmetric precision of shape {(p, p)}.")
        if start[~self._structure.support].any():
            raise OptionError("start is not 0 for some pair of nodes that is not joined; it must lie in the model.")
        try:
            np.linalg.cholesky(start)
        except np.linalg.LinAlgError:
            raise OptionError("start is not positive definite.") from None
        return start

    def _log_likelihood(self, summary: Summary) -> float:
        moments: MomentSums = self._own(summary)[Moments(self.nodes)]
        if not moments.weight > 0:
            return 0.0
        return log_likelihood(self.precision_, moments.scatter_about(self.mean_), moments.weight)

    def _objective(self, summary: Summary, log_likelihood: float) -> float:
        """With a prior: the log-likelihood and the log prior, up to a constant."""
        if self._options["prior"] is None:
            return log_likelihood
        target = self._target(summary)
        K = self.precision_
        found = 0.5 * target.weight * float(np.linalg.slogdet(K)[1] - np.vdot(target.S, K))
        if target.ridge is not None:
            rows, columns = self._structure.entries
            away = K[rows, columns] - target.ridge.mean
            found -= 0.5 * float(away @ (target.ridge.precision * away))
        return found

    def _certify(self, summary: Summary) -> Certificate:
        target = self._target(summary)
        found = measure(self._structure, self.precision_, target.S, target.ridge, target.weight)
        zeros = f"{self._structure.non_edges - found.spurious} of {self._structure.non_edges} non-edges exactly 0"
        return Certificate(
            found.moment_gap,
            found.value_gap,
            bound=found.value_gap is not None,
            # A fit that was stopped early may not show a completion of its own.
            exists=found.exists or decide(in_units(target.S), self._structure).exists,
            scale=f"standard deviations of each product; {zeros}",
        )

    def matched_statistics(self) -> MatchedStatistics:
        """Covariances of the rows about the fitted mean, and of the law: variances, then those along the edges."""
        moments = self._moments(self.summary_)
        rows, columns = self._structure.entries
        observed = moments.scatter_about(self.mean_)[rows, columns] / moments.weight
        names = tuple(f"cov({self.nodes[a]}, {self.nodes[b]})" for a, b in zip(rows, columns, strict=True))
        return MatchedStatistics(names, observed, self.covariance_[rows, columns])

    # -- figures -----------------------------------------------------------------------------------------------------

    @property
    def information_(self) -> Floats:
        """Expected information of the free entries of the precision in one row (m, m): the diagonal, then the edges."""
        size = len(self.nodes) + len(self.edges)
        if size > MOST_ENTRIES:
            raise SizeError(
                f"The precision has {size:,} free entries; their information would take "
                f"{8 * size * size / 1e9:.1f} GB. The limit is {MOST_ENTRIES:,} entries."
            )
        return entry_information(self.covariance_, *self._structure.entries)

    @property
    def standard_errors_(self) -> Floats:
        """Of the entries of the precision (p, p), from the expected information; 0 where there is no edge."""
        rows, columns = self._structure.entries
        found = np.zeros((len(self.nodes), len(self.nodes)))
        variances = np.diag(np.linalg.inv(self.information_)) / self.summary_.weight
        found[rows, columns] = found[columns, rows] = np.sqrt(variances)
        return found

    @property
    def mean_standard_errors_(self) -> Floats:
        """Of the means (p,); 0 where they are known."""
        if self._known_mean() is not None:
            return np.zeros(len(self.nodes))
        return np.sqrt(np.diag(self.covariance_) / self.summary_.weight)

    @property
    def deviance_(self) -> float:
        """Twice the log-likelihood lost to the graph of all edges, ``N (tr(SK) - log det(SK) - p)``.

        Infinite where the covariance of the rows is singular: the graph of all edges then has no maximum.
        """
        moments = self._moments(self.summary_)
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

    # -- files -------------------------------------------------------------------------------------------------------

    def portrait(self) -> Portrait:
        """What there is to see of it: what pages, plots and notebooks show."""
        from suffice.models.gaussian_graph.portrait import portrait_of

        return portrait_of(self)

    def to_plain(self) -> dict[str, Any]:
        """Options, parameters, summary and report as plain data; any structure is written as its edges."""
        plain = super().to_plain()
        plain["options"] |= {"structure": [list(edge) for edge in self.edges], "nodes": list(self.nodes)}
        return plain

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Self:
        """Rebuild from plain data."""
        options = dict(plain["options"])
        options["structure"] = [tuple(edge) for edge in options["structure"]]
        return super().from_plain({**plain, "options": options})

    def _fitted_state(self) -> dict[str, Any]:
        return {"mean": self._mean, "precision": self._precision}

    def _restore(self, state: Mapping[str, Any]) -> None:
        p = len(self.nodes)
        mean, precision = (np.asarray(state[name], dtype=np.float64) for name in ("mean", "precision"))
        if mean.shape != (p,) or precision.shape != (p, p) or not np.isfinite(mean).all():
            raise FileFormatError(f"The file holds a mean of shape {mean.shape} for {p} nodes.")
        if not np.array_equal(precision, precision.T):
            raise FileFormatError("The precision in the file is not symmetric.")
        try:
            np.linalg.cholesky(precision)
        except np.linalg.LinAlgError:
            raise FileFormatError("The precision in the file is not positive definite.") from None
        self._mean, self._precision = mean, precision
