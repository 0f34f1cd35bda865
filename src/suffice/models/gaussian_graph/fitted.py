"""What a Gaussian graph learns: means and a precision with zeros in given places; and what it answers."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.answers import MomentSums
from suffice.array_types import Floats
from suffice.checks import draw_count, read_only
from suffice.domain import Domain, Variable
from suffice.engines.gaussian import GaussianJoint
from suffice.errors import FileFormatError, SizeError, unknown_variable
from suffice.models.bayesian.queries.joint_gaussian import JointGaussian, with_points
from suffice.models.evidence import read_evidence
from suffice.models.gaussian_graph.certificate import log_likelihood
from suffice.models.gaussian_graph.row_questions import RowDensity, RowMean
from suffice.models.gaussian_graph.structure import GraphStructure
from suffice.models.row_answers import answers_of_rows
from suffice.solvers.covariance_newton import entry_information
from suffice.statistics import Moments, Summary

if TYPE_CHECKING:
    from suffice.fitting.portrait import Portrait


#: Free entries of the precision up to which standard errors are computed: their information is this large squared.
MOST_ENTRIES = 6_000


@dataclass(frozen=True, eq=False)
class GaussianGraphFitted:
    """N(mean, precision^-1): means (p,), known or learned, and a precision (p, p) that is 0 where there is no edge."""

    structure: GraphStructure
    mean: Floats
    precision: Floats
    known_mean: bool = False

    title = "GaussianGraph"

    def __post_init__(self) -> None:
        """A value: its arrays cannot be written to."""
        object.__setattr__(self, "mean", read_only(self.mean))
        object.__setattr__(self, "precision", read_only(self.precision))

    @property
    def nodes(self) -> tuple[Hashable, ...]:
        """The nodes, in the order of all arrays."""
        return self.structure.nodes

    @property
    def n_params(self) -> int:
        """One for each node's variance, each edge, and each free mean."""
        return len(self.nodes) * (1 if self.known_mean else 2) + len(self.structure.edges)

    @cached_property
    def covariance(self) -> Floats:
        """The covariance (p, p), the inverse of the precision."""
        half = np.linalg.inv(np.linalg.cholesky(self.precision))
        return read_only(np.asarray(half.T @ half))

    @property
    def correlations(self) -> Floats:
        """Correlations (p, p)."""
        units = np.sqrt(np.diag(self.covariance))
        return np.asarray(self.covariance / np.outer(units, units))

    def information_form(self) -> tuple[Floats, Floats]:
        """(h, J) with J the precision (p, p) and h = J mean (p,)."""
        return self.precision @ self.mean, self.precision

    @cached_property
    def joint(self) -> JointGaussian:
        """The distribution of all nodes."""
        return JointGaussian(GaussianJoint(self.nodes, self.mean, self.covariance))

    @property
    def partial_correlations(self) -> Floats:
        """Correlation of two nodes given all others (p, p): -K_ij / sqrt(K_ii K_jj), 1 on the diagonal."""
        units = np.sqrt(np.diag(self.precision))
        partial = -self.precision / np.outer(units, units) + 0.0
        np.fill_diagonal(partial, 1.0)
        return np.asarray(partial)

    @property
    def domain(self) -> Domain:
        """The nodes as variables."""
        return Domain(Variable(name, "real") for name in self.nodes)

    # -- information -------------------------------------------------------------------------------------------------

    @property
    def information(self) -> Floats:
        """Expected information of the free entries of the precision in one row (m, m): the diagonal, then the edges."""
        size = len(self.structure.entries[0])
        if size > MOST_ENTRIES:
            raise SizeError(
                f"The precision has {size:,} free entries; their information would take "
                f"{8 * size * size / 1e9:.1f} GB. The limit is {MOST_ENTRIES:,} entries."
            )
        return entry_information(self.covariance, self.structure.pairs)

    def standard_errors(self, weight: float) -> Floats:
        """Of the entries of the precision (p, p) learned from so many rows; 0 where there is no edge."""
        rows, columns = self.structure.entries
        errors = np.zeros_like(self.precision)
        variances = np.diag(np.linalg.inv(self.information)) / weight
        errors[rows, columns] = errors[columns, rows] = np.sqrt(variances)
        return errors

    def mean_standard_errors(self, weight: float) -> Floats:
        """Of the means (p,) learned from so many rows; 0 where they are known."""
        return np.zeros(len(self.nodes)) if self.known_mean else np.sqrt(np.diag(self.covariance) / weight)

    def deviance(self, summary: Summary) -> float:
        """Twice the log-likelihood that the rows of a summary lose to the graph of all edges.

        Infinite where their covariance is singular: the graph of all edges then has no maximum.
        """
        moments: MomentSums = summary[Moments(self.nodes)]
        half = np.linalg.cholesky(self.precision)
        values = np.linalg.eigvalsh(half.T @ (moments.scatter_about(self.mean) / moments.weight) @ half)
        if not values[0] > 1e-13 * float(values[-1]):
            return math.inf
        # N (tr(S K) - log det(S K) - p), with the eigenvalues 1 + e of S K: small differences keep their digits.
        excess = values - 1.0
        return float(moments.weight * (excess - np.log1p(excess)).sum())

    # -- questions ---------------------------------------------------------------------------------------------------

    def query(self, variables: object, given: Mapping[Any, Any] | None = None) -> JointGaussian:
        """The distribution of some nodes given values of others, in the order asked."""
        names = self.domain.names_of(variables)
        if given is None or (isinstance(given, Mapping) and not given):
            return self.joint.marginal(names)
        values = read_evidence(self.domain, given).values
        return JointGaussian(with_points(self.joint.condition(values).distribution, names, values))

    def marginal(self, variables: object) -> JointGaussian:
        """The distribution of some nodes, in the order asked."""
        return self.query(variables)

    def sample(
        self, n: int = 1, given: Mapping[Any, Any] | None = None, *, random_state: object = None
    ) -> dict[Hashable, Floats]:
        """`n` rows, as columns by node; with values of some nodes given, from the distribution of the others."""
        return self.query(list(self.nodes), given).sample(draw_count(n), random_state=random_state)

    def log_likelihood(self, summary: Summary) -> float:
        """Sum of log densities over the rows of a summary."""
        moments: MomentSums = summary[Moments(self.nodes)]
        if not moments.weight > 0:
            return 0.0
        return log_likelihood(self.precision, moments.scatter_about(self.mean), moments.weight)

    def score_samples(self, data: object, *, columns: object = None) -> Floats:
        """Log density of each row (n,); missing values and absent columns are integrated out.

        `score` is its weighted mean. Of a Dask or Spark frame a frame with the column "log_probability"; not computed
        yet.
        """
        densities: Floats = answers_of_rows(RowDensity(self, None), data, self.domain, columns)
        return densities

    def predict(self, data: object, target: Hashable, *, columns: object = None) -> Floats:
        """The mean of a node given the other columns of each row (n,); what a row lacks is integrated out.

        Of a Dask or Spark frame a frame with the column "prediction"; not computed yet.
        """
        self.domain.names_of(target)
        others = Domain(variable for variable in self.domain.variables if variable.name != target)
        if len(others) == len(self.nodes):
            raise unknown_variable(target, self.nodes)
        means: Floats = answers_of_rows(RowMean(self, None, target), data, others, columns, self.domain)
        return means

    def portrait(self) -> Portrait:
        """What there is to see of it."""
        from suffice.models.gaussian_graph.portrait import portrait_of

        return portrait_of(self)

    # -- files -------------------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Plain data for a file; the structure is an option."""
        return {"mean": self.mean, "precision": self.precision}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any], structure: GraphStructure, *, known_mean: bool) -> GaussianGraphFitted:
        """Rebuild from plain data, checking it."""
        p = len(structure.nodes)
        mean, precision = (np.asarray(plain[name], dtype=np.float64) for name in ("mean", "precision"))
        if mean.shape != (p,) or precision.shape != (p, p) or not np.isfinite(mean).all():
            raise FileFormatError(f"The file holds a mean of shape {mean.shape} for {p} nodes.")
        if not np.array_equal(precision, precision.T):
            raise FileFormatError("The precision in the file is not symmetric.")
        try:
            np.linalg.cholesky(precision)
        except np.linalg.LinAlgError:
            raise FileFormatError("The precision in the file is not positive definite.") from None
        return cls(structure, mean, precision, known_mean)
