"""The joint normal distribution of a linear-Gaussian network, by name."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from suffice.array_types import Floats
from suffice.domain import Domain, Variable
from suffice.engines.gaussian import GaussianJoint, Regression, information_form
from suffice.errors import DataError, EstimateError, require
from suffice.models.evidence import Names

#: A print shows at most this many variables.
SHOWN = 20


class JointGaussian:
    """A normal distribution of named variables: x ~ N(mean, covariance).

    `names` gives the order of all arrays: that of a network is parents first. Some combinations of variables may have
    no variance; then there is no precision.
    """

    def __init__(self, distribution: GaussianJoint) -> None:
        """Take the distribution of the engine."""
        self.distribution = distribution

    @classmethod
    def of_network(cls, nodes: Mapping[Any, Regression]) -> JointGaussian:
        """The distribution of a linear-Gaussian network, given as ``{node: (parents, weights, variance)}``."""
        joint = cls(GaussianJoint.from_network(nodes))
        joint._nodes = nodes
        return joint

    _nodes: Mapping[Any, Regression] | None = None

    # -- figures -----------------------------------------------------------------------------------------------------

    @property
    def names(self) -> tuple[Hashable, ...]:
        """The variables, in the order of the arrays."""
        return self.distribution.names

    @property
    def mean(self) -> Floats:
        """Mean (d,)."""
        return self.distribution.mean

    @property
    def covariance(self) -> Floats:
        """Covariance (d, d)."""
        return self.distribution.covariance

    @property
    def standard_deviation(self) -> Floats:
        """Standard deviation of each variable (d,)."""
        return np.sqrt(np.maximum(np.diag(self.distribution.covariance), 0.0))

    @property
    def precision(self) -> Floats:
        """J (d, d), the inverse of the covariance; an error where some variable is determined by the others."""
        return self.information[1]

    @cached_property
    def information(self) -> tuple[Floats, Floats]:
        """The information form h = J mean (d,) and J (d, d): log p(x) = h'x - x'Jx / 2 + constant.

        That of a whole network has an exact 0 for every pair of nodes that neither an edge nor a common child joins.
        """
        if self._nodes is None:
            return self.distribution.information()
        _, h, precision = information_form(self._nodes)
        return h, np.asarray(precision.toarray())

    def _domain(self) -> Domain:
        return Domain(Variable(name, "real") for name in self.names)

    def mean_of(self, variable: Hashable) -> float:
        """Mean of one variable."""
        return float(self.marginal(variable).mean[0])

    def variance_of(self, variable: Hashable) -> float:
        """Variance of one variable."""
        return float(self.marginal(variable).covariance[0, 0])

    def covariance_of(self, first: Hashable, second: Hashable) -> float:
        """Covariance of two variables."""
        return self.variance_of(first) if first == second else float(self.marginal([first, second]).covariance[0, 1])

    # -- other distributions
    # --------------------------------------------------------------------------------------------------

    def marginal(self, variables: Names) -> JointGaussian:
        """The distribution of one or several variables, in the order asked."""
        return JointGaussian(self.distribution.marginal(self._domain().names_of(variables)))

    def condition(self, given: Mapping[Any, float]) -> JointGaussian:
        """The distribution of the other variables given the values of some.

        With a = the others and b = the given ones: mean m_a + S_ab S_bb^-1 (x_b - m_b), covariance
        S_aa - S_ab S_bb^-1 S_ba. Values of density 0 are an error.
        """
        known = {name: float(value) for name, value in given.items()}
        if not np.isfinite(list(known.values())).all():
            raise DataError(f"The given values {known!r} are not all finite.")
        self.distribution.marginal(list(known))
        try:
            return JointGaussian(self.distribution.condition(known))
        except DataError as error:
            raise EstimateError(str(error)) from None

    # -- rows --------------------------------------------------------------------------------------------------------

    def log_prob(self, columns: Mapping[Any, Any]) -> Floats:
        """Log density of rows, given as columns (n,) by name; NaN and absent columns are integrated out.

        A variable that those before it determine is a point mass, counted as 0 at its point and -inf elsewhere.
        """
        seen = [name for name in self.names if name in columns]
        rows = np.stack([np.asarray(columns[name], dtype=np.float64) for name in seen], axis=1)
        return self.distribution.marginal(seen).log_prob(rows)

    def sample(self, n: int = 1, *, random_state: Any = None) -> dict[Hashable, Floats]:
        """`n` draws, as columns by name."""
        return dict(zip(self.names, self.distribution.sample(n, random_state).T, strict=True))

    # -- display -----------------------------------------------------------------------------------------------------

    def to_frame(self) -> Any:
        """A pandas DataFrame: one row for each variable, its mean and the covariances."""
        pd = require("pandas", extra="all", purpose="JointGaussian.to_frame")
        values = np.concatenate([self.mean[:, None], self.covariance], axis=1)
        index = pd.Index(list(self.names), tupleize_cols=False)
        return pd.DataFrame(values, index=index, columns=pd.Index(["mean", *self.names], tupleize_cols=False))

    def __str__(self) -> str:
        rows: Sequence[tuple[str, str, str]] = [
            (str(name), f"{mean:.6g}", f"{deviation:.6g}")
            for name, mean, deviation, _ in zip(
                self.names, self.mean, self.standard_deviation, range(SHOWN), strict=False
            )
        ]
        rows = [("normal distribution of", "mean", "standard deviation"), *rows]
        widths = [max(len(row[k]) for row in rows) for k in range(3)]
        lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
        rest = len(self.names) - SHOWN
        return "\n".join([*lines, f"... ({rest:,} more variables)"] if rest > 0 else lines)

    __repr__ = __str__


def with_points(
    distribution: GaussianJoint, names: Sequence[Hashable], values: Mapping[Hashable, float]
) -> GaussianJoint:
    """The distribution of `names` in order: some follow `distribution`, others are known, without variance."""
    d = len(names)
    mean, root = np.zeros(d), np.zeros((d, distribution.root.shape[1]))
    free = [axis for axis, name in enumerate(names) if name not in values]
    inner = distribution.marginal([names[axis] for axis in free])
    mean[free], root[free] = inner.mean, inner.root
    for axis, name in enumerate(names):
        if name in values:
            mean[axis] = values[name]
    return GaussianJoint.from_root(names, mean, root)
