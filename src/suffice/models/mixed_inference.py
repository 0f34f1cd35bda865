"""Exact inference in networks with real nodes: tables and linear-Gaussian nodes together."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.domain import Domain
from suffice.engines.conditional_gaussian import ConditionalGaussian
from suffice.engines.mixed_network import Discrete, MixedNetwork, Regression
from suffice.errors import EstimateError, OptionError, listing
from suffice.models.linear_gaussian_node import LinearGaussianNode
from suffice.models.nodes import Columns
from suffice.models.table_node import TableNode
from suffice.table import Table

Floats = NDArray[np.float64]


class MixedInference:
    """Questions to a fitted network that has real nodes."""

    def __init__(self, nodes: Mapping[Hashable, Any]) -> None:
        """Take the fitted nodes."""
        self.nodes = dict(nodes)
        self.domain = Domain(node.domain[name] for name, node in self.nodes.items())

    @cached_property
    def engine(self) -> ConditionalGaussian:
        """Tables and regressions as the engine takes them."""
        tables = {n: Discrete(v.parents, v.table_.values) for n, v in self.nodes.items() if isinstance(v, TableNode)}
        regressions = {
            name: Regression(node.discrete_parents, node.real_parents, node.weights_, node.variance_)
            for name, node in self.nodes.items()
            if isinstance(node, LinearGaussianNode)
        }
        return ConditionalGaussian(MixedNetwork(tables, regressions))

    def evidence(self, given: Mapping[Any, Any] | None) -> dict[Hashable, Any]:
        """States as codes, real values as they are."""
        found: dict[Hashable, Any] = {}
        for name, value in (given or {}).items():
            variable = self.domain[name]
            if isinstance(value, Mapping | list | np.ndarray):
                raise OptionError(f"Soft evidence on {name!r}: networks with real nodes take states and values only.")
            found[name] = variable.index(value) if variable.kind == "discrete" else value
        return found

    def query(self, variables: Any, given: Mapping[Any, Any] | None) -> Any:
        """A table of discrete variables, or the mixture of normal laws of real ones."""
        names = self.domain.names_of(variables)
        kinds = {self.domain[name].kind == "discrete" for name in names}
        if len(kinds) > 1:
            raise OptionError(f"Ask for discrete or for real variables, not for both at once: {listing(names)}.")
        posterior = self.engine.condition(self.evidence(given))
        if posterior.log_evidence == -np.inf:
            raise EstimateError(f"The evidence {given!r} has density 0 under the network, so nothing follows from it.")
        return Table(self.domain.select(names), posterior.table(names)) if kinds == {True} else posterior.mixture(names)

    def marginals(self, given: Mapping[Any, Any] | None) -> dict[Hashable, Any]:
        """The law of every variable given the evidence, the observed ones left out where they are real."""
        asked = [v.name for v in self.domain.variables if v.kind == "discrete" or v.name not in (given or {})]
        return {name: self.query(name, given) for name in asked}

    def most_probable(self, given: Mapping[Any, Any] | None) -> dict[Hashable, Hashable]:
        """Not defined: densities and probabilities do not compare."""
        raise OptionError("The most probable joint state is defined for networks of tables; this one has real nodes.")

    def log_probability(self, given: Mapping[Any, Any] | None) -> float:
        """Log probability of states times density of values; -inf where they are impossible."""
        return self.engine.log_evidence(self.evidence(given))

    def log_likelihood(self, columns: Columns, n: int) -> Floats:
        """Log density of each row; gaps and absent columns are integrated out."""
        full = np.ones(n, dtype=bool)
        for name in self.domain.names:
            full &= ~_gaps(columns[name]) if name in columns else False
        found = np.empty(n)
        if full.any():
            whole = {name: values[full] for name, values in columns.items()}
            found[full] = np.sum([node.log_prob(whole) for node in self.nodes.values()], axis=0)
        for row in np.flatnonzero(~full):
            found[row] = self.engine.log_evidence(self._row(columns, int(row)))
        return found

    def predict_rows(self, columns: Columns, n: int, target: Hashable) -> Floats:
        """P(target | row) (n, card) of a discrete target, or the mean (n,) of a real one."""
        found = []
        for row in range(n):
            posterior = self.engine.condition({k: v for k, v in self._row(columns, row).items() if k != target})
            discrete = self.domain[target].kind == "discrete"
            found.append(posterior.table([target]) if discrete else posterior.mixture([target]).mean[0])
        return np.array(found)

    def sample_given(self, given: Mapping[Any, Any], n: int, rng: np.random.Generator) -> dict[Hashable, NDArray[Any]]:
        """Refused: exact posterior samples are drawn from networks of tables."""
        raise OptionError("Samples given evidence are drawn from networks of tables; this one has real nodes.")

    def _row(self, columns: Columns, row: int) -> dict[Hashable, Any]:
        seen = {name: values[row] for name, values in columns.items()}
        return {k: v for k, v in seen.items() if not _gaps(np.asarray([v]))[0]}


def _gaps(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Where a column of codes holds -1, or a column of numbers NaN."""
    return np.asarray(values < 0 if values.dtype.kind == "i" else np.isnan(values))
