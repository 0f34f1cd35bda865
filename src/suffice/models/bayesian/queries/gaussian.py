"""Exact inference in a network of linear-Gaussian nodes: one joint normal distribution, conditioned in closed form."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.domain import Domain
from suffice.models.bayesian.nodes.contract import Columns
from suffice.models.bayesian.nodes.linear_gaussian import LinearGaussianNode
from suffice.models.bayesian.queries.joint_gaussian import JointGaussian, with_points
from suffice.models.evidence import Names, RowDistributions, read_evidence


class GaussianInference:
    """Questions to a fitted network whose nodes are all linear-Gaussian."""

    kind = "normal"
    plan = None

    def __init__(self, nodes: Mapping[Hashable, LinearGaussianNode]) -> None:
        """Take the fitted nodes."""
        self.nodes = dict(nodes)
        self.domain = Domain(node.domain[name] for name, node in self.nodes.items())

    @cached_property
    def joint(self) -> JointGaussian:
        """The distribution of all nodes, parents first."""
        return JointGaussian.of_network({n: (v.parents, v.weights_, v.variance_) for n, v in self.nodes.items()})

    # -- answers -----------------------------------------------------------------------------------------------------

    def query(self, variables: Names, given: Mapping[Any, Any] | None) -> JointGaussian:
        """The distribution of some nodes given values of others, in the order asked."""
        names, values = self.domain.names_of(variables), read_evidence(self.domain, given).values
        kept = {*names, *values}
        distribution = self.joint.distribution.marginal([name for name in self.joint.names if name in kept])
        if not values:
            return JointGaussian(distribution.marginal(names))
        return JointGaussian(with_points(JointGaussian(distribution).condition(values).distribution, names, values))

    def marginals(self, given: Mapping[Any, Any] | None) -> dict[Hashable, JointGaussian]:
        """The distribution of every node that is not observed, from one conditioning."""
        names = [name for name in self.domain.names if name not in (given or {})]
        distribution = self.query(names, given)
        return {name: distribution.marginal([name]) for name in names}

    def map_query(self, given: Mapping[Any, Any] | None) -> dict[Hashable, Hashable]:
        """The mode of the density given the evidence, which is the mean."""
        distribution = self.query(list(self.domain.names), given)
        return dict(zip(distribution.names, distribution.mean.tolist(), strict=True))

    def log_probability(self, given: Mapping[Any, Any] | None) -> float:
        """Log density of the values; -inf where they are impossible."""
        values = read_evidence(self.domain, given).values
        return float(self.joint.log_prob({n: [v] for n, v in values.items()})[0]) if values else 0.0

    # -- many rows ---------------------------------------------------------------------------------------------------

    def log_likelihood(
        self, columns: Columns, n: int, *, threads: int | None = None, calls: int | None = None
    ) -> Floats:
        """Log density of each row; missing values and absent columns are integrated out."""
        return self.joint.distribution.log_prob(self._rows(columns, n))

    def predict_rows(
        self, columns: Columns, n: int, target: Hashable, *, threads: int | None = None
    ) -> RowDistributions:
        """The conditional mean (n,) of the target given each row."""
        others = {name: values for name, values in columns.items() if name != target}
        filled, logs = self.joint.distribution.conditional_means(self._rows(others, n))
        return filled[:, self.joint.names.index(target)], logs > -np.inf

    def _rows(self, columns: Columns, n: int) -> Floats:
        """Rows (n, d) in the order of the distribution; NaN where nothing is known."""
        rows = np.full((n, len(self.joint.names)), np.nan)
        for column, name in enumerate(self.joint.names):
            if name in columns:
                rows[:, column] = columns[name]
        return rows

    def sample_given(self, given: Mapping[Any, Any], n: int, rng: np.random.Generator) -> dict[Hashable, NDArray[Any]]:
        """`n` rows by node, from the exact posterior."""
        distribution = self.query(list(self.domain.names), given)
        return dict(distribution.sample(n, random_state=rng))
