"""The fit of a Gaussian graph: rows or a covariance become moments, moments a precision, and that is judged."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from suffice.answers import MomentSums
from suffice.array_types import Floats
from suffice.domain import Domain, Variable
from suffice.errors import EstimateError, MergeError, OptionError, listing, meant
from suffice.families.base import as_floats
from suffice.fitting.contract import Found, Inputs, Judgement, Purpose
from suffice.fitting.control import Control
from suffice.fitting.report import Certificate, MatchedStatistics
from suffice.fitting.summaries import SummaryData, SummaryTask
from suffice.models.gaussian_graph.certificate import in_units, measure, with_mean
from suffice.models.gaussian_graph.covariance import SMALLEST, by_node, moments_of
from suffice.models.gaussian_graph.existence import decide
from suffice.models.gaussian_graph.fitted import GaussianGraphFitted
from suffice.models.gaussian_graph.learning import Selection, learn
from suffice.models.gaussian_graph.priors import Target, read_prior
from suffice.models.gaussian_graph.structure import GraphStructure
from suffice.statistics import Moments, Statistic, Summary


@dataclass(frozen=True, eq=False)
class GaussianGraphTask(SummaryTask[GaussianGraphFitted]):
    """Means and a precision with the zeros of a graph."""

    structure: GraphStructure

    @cached_property
    def known_mean(self) -> Floats | None:
        """The given means (p,); None where they are free."""
        given, nodes = self.options["mean"], self.structure.nodes
        if isinstance(given, str):
            if given not in ("free", "zero"):
                raise OptionError(f"mean is {given!r}; expected 'free', 'zero', or the means themselves.")
            return None if given == "free" else np.zeros(len(nodes))
        if isinstance(given, Mapping):
            if set(given) != set(nodes):
                near = "".join(meant(name, nodes) for name in given if name not in nodes)
                raise OptionError(f"mean has {listing(given)}; expected one number for each of {listing(nodes)}.{near}")
            given = [given[node] for node in nodes]
        mean = as_floats(given, "mean")
        if mean.shape != (len(nodes),):
            raise OptionError(f"mean has shape {mean.shape}; expected {len(nodes)} finite numbers, one for each node.")
        return mean

    # -- data --------------------------------------------------------------------------------------------------------

    def read(self, given: Inputs, known: GaussianGraphFitted | None, purpose: Purpose) -> SummaryData:
        """The moments of rows, of a summary, or of rows whose covariance is given."""
        if given["covariance"] is None:
            beside = [name for name in ("n", "sample_mean") if given[name] is not None]
            if beside:
                raise OptionError(
                    f"{beside[0]}= is given without covariance=, whose rows it is of. Leave it out for rows, or give "
                    "a covariance by its name: fit(covariance=..., n=...)."
                )
            if given.data is None:
                raise OptionError("Give rows, a Summary, or covariance= and n=.")
            if _looks_like_covariance(given.data):
                raise OptionError(
                    f"The data are a symmetric matrix of shape {np.shape(given.data)}, as covariances are. Give one by "
                    "its name, fit(covariance=..., n=...); rows that happen to be symmetric, in another order."
                )
            return super().read(given, known, purpose)
        if given.data is not None or given["sample_weight"] is not None:
            raise OptionError("Give either rows or covariance=, not both.")
        if self.known_mean is not None and given["sample_mean"] is not None:
            raise OptionError("sample_mean is for a free mean; a known one is already given by mean=.")
        nodes, centre = self.structure.nodes, self.known_mean
        if centre is None:
            centre = np.zeros(len(nodes)) if given["sample_mean"] is None else by_node(given["sample_mean"], nodes)
        named = self.options["nodes"] is not None
        moments = moments_of(given["covariance"], given["n"], centre, given["columns"], nodes, named=named)
        return SummaryData(self._summary(moments, round(moments.weight), moments.weight))

    def _summary(self, moments: MomentSums, rows: int, weight: float) -> Summary:
        nodes = self.structure.nodes
        return Summary(Domain(Variable(name, "real") for name in nodes), {Moments(nodes): moments}, rows, weight)

    def required(
        self, columns: Sequence[Hashable], known: GaussianGraphFitted | None, purpose: Purpose
    ) -> Mapping[Hashable, Variable | None]:
        """All nodes, which hold numbers."""
        return {node: Variable(node, "real") for node in self.structure.nodes}

    def asked(self, domain: Domain, known: GaussianGraphFitted | None, purpose: Purpose) -> tuple[Statistic, ...]:
        """Means and products of all nodes."""
        return (Moments(self.structure.nodes),)

    def check(self, summary: Summary, known: GaussianGraphFitted | None, purpose: Purpose) -> Summary:
        """The moments of the nodes, from those of more columns or in another order too."""
        nodes = self.structure.nodes
        if Moments(nodes) in summary.answers:
            return summary
        for statistic, answer in summary.answers.items():
            if isinstance(statistic, Moments) and set(nodes) <= set(statistic.variables):
                moments: Any = answer
                chosen = moments.select([statistic.variables.index(node) for node in nodes])
                return self._summary(chosen, summary.rows, summary.weight)
        raise MergeError(
            f"The summary holds no moments of {listing(nodes)} together; it answers "
            f"{listing(summary.answers, 3)}. Summarise the data for this model with suffice.summarize(model, data)."
        )

    # -- the problem -------------------------------------------------------------------------------------------------

    def problem(self, data: SummaryData, start: GaussianGraphFitted | None) -> GaussianGraphProblem:
        """The precision of these moments."""
        return GaussianGraphProblem(self, data, self._start())

    def _start(self) -> Floats | None:
        """The precision to begin with (p, p); None where it is not given."""
        given, p = self.options["start"], len(self.structure.nodes)
        if given is None:
            return None
        start = as_floats(given, "start")
        if start.shape != (p, p) or not np.allclose(start, start.T):
            raise OptionError(f"start has shape {start.shape}; expected a symmetric precision of shape {(p, p)}.")
        if start[~self.structure.support].any():
            raise OptionError("start is not 0 for some pair of nodes that is not joined; it must lie in the model.")
        try:
            np.linalg.cholesky(start)
        except np.linalg.LinAlgError:
            raise OptionError(
                "start is not positive definite; expected the precision of a normal distribution."
            ) from None
        return start


@dataclass(frozen=True, eq=False)
class GaussianGraphProblem:
    """Moments meet a precision."""

    task: GaussianGraphTask
    data: SummaryData
    start: Floats | None

    @cached_property
    def moments(self) -> MomentSums:
        """The sums of the rows; sums that float64 cannot square are an error."""
        nodes = self.task.structure.nodes
        moments: MomentSums = self.data.statistics[Moments(nodes)]
        if not moments.weight > 0:
            raise EstimateError(
                "There are no rows to learn from: their total weight is 0. Give rows with a weight above 0."
            )
        with np.errstate(over="ignore"):  # Small weights can make what is finite too large.
            finite = np.isfinite(moments.cross_pair[0] / min(moments.weight, 1.0)).all()
        if not finite:
            raise EstimateError("Some columns hold values too large to square in float64. Use another unit.")
        total, squares = np.abs(moments.total_pair[0]), np.diagonal(moments.cross_pair[0])
        lost = (total > 0) & (total < np.sqrt(SMALLEST) * moments.weight) & (squares < SMALLEST * moments.weight)
        if lost.any():
            names = listing([node for node, tiny in zip(nodes, lost.tolist(), strict=True) if tiny])
            raise EstimateError(f"The values of {names} are too small to square in float64. Use another unit.")
        return moments

    @cached_property
    def target(self) -> Target:
        """What rows and prior together ask for."""
        task = self.task
        return read_prior(task.options["prior"], task.structure, self.moments, task.known_mean)

    def solve(self, control: Control) -> Found[GaussianGraphFitted]:
        """The precision of maximum likelihood, or the mode of the posterior."""
        task, target = self.task, self.target
        structure, prior = task.structure, task.options["prior"]
        selection = Selection(structure, target.S, target.weight, target.ridge, control, self.start)
        learned = learn(selection, task.options["solver"])
        return Found(
            GaussianGraphFitted(structure, target.mean, learned.precision, task.known_mean is not None),
            learned.method,
            "maximum likelihood" if prior is None else "MAP",
            learned.outcome,
            self.data.notes,
            f"{len(structure.nodes)} nodes, {len(structure.edges)} edges, {structure.non_edges} pairs not joined",
            None if prior is None else "in mean and precision",
            later=learned.stands,
        )

    def judge(self, fitted: GaussianGraphFitted) -> Judgement:
        """Slope, duality bound and existence at a precision."""
        target, structure = self.target, self.task.structure
        measured = measure(structure, fitted.precision, target.S, target.ridge, target.weight)
        if self.task.known_mean is None and self.task.options["prior"] is None:
            measured = with_mean(measured, self.moments, fitted.mean, fitted.covariance, fitted.precision)
        log_likelihood = fitted.log_likelihood(self.data.statistics)
        certificate = Certificate(
            measured.moment_gap,
            measured.value_gap,
            bound=measured.value_gap is not None,
            # A fit that was stopped early may not show a completion of its own.
            exists=measured.exists or decide(in_units(target.S), structure).exists,
            slope=measured.slope,
            slope_unit="nats per unit of an entry of the precision, columns in standard deviations",
        )
        wrong = f"{measured.spurious} entries of the precision are not 0 where the graph has no edge"
        return Judgement(
            log_likelihood,
            self._objective(fitted, log_likelihood),
            certificate,
            gap=measured.gap,
            matched=partial(self.matched, fitted),
            verdict=wrong if measured.spurious else "",
        )

    def _objective(self, fitted: GaussianGraphFitted, log_likelihood: float) -> float:
        """With a prior: the log-likelihood and the log prior, up to a constant."""
        if self.task.options["prior"] is None:
            return log_likelihood
        target, K = self.target, fitted.precision
        value = 0.5 * target.weight * float(np.linalg.slogdet(K)[1] - np.vdot(target.S, K))
        if target.ridge is not None:
            away = K[self.task.structure.entries] - target.ridge.mean
            value -= 0.5 * float(away @ (target.ridge.precision * away))
        return value

    def matched(self, fitted: GaussianGraphFitted) -> MatchedStatistics:
        """Covariances of the rows about the fitted mean, and of the model: variances, then those along the edges."""
        entries, nodes = self.task.structure.entries, self.task.structure.nodes
        observed = self.moments.scatter_about(fitted.mean)[entries] / self.moments.weight
        names = tuple(f"cov({nodes[a]}, {nodes[b]})" for a, b in zip(*entries, strict=True))
        return MatchedStatistics(names, observed, fitted.covariance[entries])

    def identity(self) -> Iterable[Any]:
        """Graph, moments with the prior, and start."""
        target, task = self.target, self.task
        ridge = None if target.ridge is None else (target.ridge.mean, target.ridge.precision)
        names = repr((task.structure.nodes, task.structure.edges))
        return "GaussianGraph", task.options["solver"], names, target.S, target.weight, ridge, self.start


def _looks_like_covariance(data: Any) -> bool:
    """Whether an array or a frame is square, symmetric and positive definite: rows are not, but by a rare chance."""
    shape = getattr(data, "shape", ())
    if not isinstance(shape, tuple) or [type(size) for size in shape] != [int, int] or not shape[0] == shape[1] > 1:
        return False
    values = np.asarray(data)
    if values.dtype.kind not in "iuf" or not np.isfinite(values).all() or not (values == values.T).all():
        return False
    return bool((np.linalg.eigvalsh(values.astype(np.float64)) > 0.0).all())
