"""Questions to a fitted Gaussian graph: laws of some nodes, rows, samples, what a regression user reads."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.domain import Domain, Variable
from suffice.engines.gaussian import GaussianJoint
from suffice.errors import OptionError, require
from suffice.models.bayesian.queries.joint_gaussian import JointGaussian, with_points
from suffice.models.bayesian.queries.tables import coded_columns

Floats = NDArray[np.float64]


class GraphAnswers:
    """What a graph answers once it has `nodes`, `edges`, `mean_`, `covariance_` and `precision_`."""

    nodes: tuple[Hashable, ...]
    edges: tuple[tuple[Hashable, Hashable], ...]
    mean_: Floats
    covariance_: Floats
    precision_: Floats

    @property
    def partial_correlations_(self) -> Floats:
        """Correlation of two nodes given all others (p, p): -K_ij / sqrt(K_ii K_jj), 1 on the diagonal."""
        units = np.sqrt(np.diag(self.precision_))
        found = -self.precision_ / np.outer(units, units) + 0.0
        np.fill_diagonal(found, 1.0)
        return found

    @property
    def correlations_(self) -> Floats:
        """Correlations (p, p)."""
        units = np.sqrt(np.diag(self.covariance_))
        return np.asarray(self.covariance_ / np.outer(units, units))

    @property
    def joint_(self) -> JointGaussian:
        """The law of all nodes."""
        return JointGaussian(GaussianJoint(self.nodes, self.mean_, self.covariance_))

    def information_form(self) -> tuple[Floats, Floats]:
        """(h, J) with J the precision (p, p) and h = J mean (p,)."""
        return self.precision_ @ self.mean_, self.precision_

    def query(self, variables: Any, given: Mapping[Any, Any] | None = None) -> JointGaussian:
        """The law of some nodes given values of others, in the order asked."""
        names = self._domain().names_of(variables)
        if not given:
            return self.joint_.marginal(names)
        values = {name: float(value) for name, value in given.items()}
        return JointGaussian(with_points(self.joint_.condition(values).law, names, values))

    def marginal(self, variables: Any) -> JointGaussian:
        """The law of some nodes, in the order asked."""
        return self.query(variables)

    def log_likelihood(self, data: Any, *, columns: Any = None) -> Floats:
        """Log density of each row; gaps and absent columns are integrated out. `score` is its weighted mean."""
        law = self.joint_
        parts = [law.log_prob(found) for found, _ in coded_columns(data, self._domain(), columns)]
        return np.concatenate(parts) if parts else np.empty(0)

    def predict(self, data: Any, target: Hashable, *, columns: Any = None) -> Floats:
        """The mean of a node given the other columns of each row; gaps and absent columns are integrated out."""
        others = Domain(variable for variable in self._domain().variables if variable.name != target)
        if len(others) == len(self.nodes):
            raise OptionError(f"There is no node {target!r} to predict.")
        place, parts = self.nodes.index(target), [np.empty(0)]
        for found, n in coded_columns(data, others, columns, self._domain()):
            rows, means = np.full((n, len(self.nodes)), np.nan), np.empty(n)
            for at, name in enumerate(self.nodes):
                if name in found:
                    rows[:, at] = found[name]
            for pattern in self.joint_.law.patterns(rows):
                means[pattern.rows] = pattern.filled[:, place]
            parts.append(means)
        return np.concatenate(parts)

    def sample(
        self, n: int = 1, given: Mapping[Any, Any] | None = None, *, random_state: Any = None
    ) -> dict[Hashable, Floats]:
        """`n` rows, as columns by node; with values of some nodes given, from the law of the others."""
        if not isinstance(n, int | np.integer) or isinstance(n, bool) or n < 0:
            raise OptionError(f"n is {n!r}; expected a whole number of rows of at least 0.")
        return self.query(list(self.nodes), given).sample(n, random_state=random_state)

    def to_networkx(self) -> Any:
        """The structure as a networkx Graph; a fitted one has the partial correlation of each edge."""
        graph = require("networkx", extra="graphs", purpose="to_networkx").Graph()
        graph.add_nodes_from(self.nodes)
        fitted = "_precision" in self.__dict__
        place = {node: at for at, node in enumerate(self.nodes)}
        partial = self.partial_correlations_ if fitted else None
        for first, second in self.edges:
            shown = {} if partial is None else {"partial_correlation": float(partial[place[first], place[second]])}
            graph.add_edge(first, second, **shown)
        return graph

    def to_frame(self, what: str = "precision") -> Any:
        """A pandas DataFrame of a matrix of the fit: "precision", "covariance" or "partial_correlations"."""
        known = ("precision", "covariance", "correlations", "partial_correlations", "standard_errors")
        if what not in known:
            raise OptionError(f"what is {what!r}; expected one of {', '.join(known)}.")
        pd = require("pandas", extra="all", purpose="GaussianGraph.to_frame")
        index = pd.Index(list(self.nodes), tupleize_cols=False)
        return pd.DataFrame(getattr(self, f"{what}_"), index=index, columns=index)

    def _domain(self) -> Domain:
        return Domain(Variable(name, "real") for name in self.nodes)
