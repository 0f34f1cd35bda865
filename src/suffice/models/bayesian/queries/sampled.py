"""Approximate inference in any Bayesian network, by likelihood weighting.

Nodes are drawn parents first; an observed node is not drawn, and the sample is weighted by its probability or density
there. All that is asked of a node is to draw and to weigh, so nodes of every kind take part.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.domain import Domain
from suffice.engines.likelihood_weighting import Draws, draw_weighted
from suffice.errors import OptionError
from suffice.graphs.directed import ancestors, topological_order
from suffice.models.bayesian.queries.sampled_answers import SampledLaw, SampledTable, possible_states
from suffice.models.evidence import Evidence, read_evidence

Floats = NDArray[np.float64]


class SampledInference:
    """Questions to a fitted network of any nodes, answered by weighted samples."""

    def __init__(self, nodes: Mapping[Hashable, Any]) -> None:
        """Take the fitted nodes."""
        self.nodes = dict(nodes)
        self.parents = {name: node.domain.names[:-1] for name, node in self.nodes.items()}
        self.domain = Domain(node.domain[name] for name, node in self.nodes.items())

    def query(
        self, variables: Any, given: Mapping[Any, Any] | None, *, n: int, random_state: Any
    ) -> SampledTable | SampledLaw:
        """P(variables | given) from n weighted samples: a table of discrete variables, else the weighted draws."""
        names, evidence = self.domain.names_of(variables), read_evidence(self.domain, given)
        if n < 1:
            raise OptionError(f"n is {n}; expected the number of samples, at least 1.")
        relevant = ancestors(self.parents, [*names, *evidence.names])
        order = [name for name in topological_order(self.parents) if name in relevant]
        rng = np.random.default_rng(random_state)

        def take(name: Hashable, draws: Draws) -> tuple[NDArray[Any], Any, Any]:
            return self._take(name, draws, evidence, (rng, n))

        draws, weights, log_probability = draw_weighted(order, take, n)
        columns = [draws[name] for name in names]
        law = SampledLaw(
            self.domain.select(names), columns, weights, log_probability, possible_states(self.domain, evidence)
        )
        return law.table(names) if all(v.kind == "discrete" for v in law.domain.variables) else law

    def _take(
        self, name: Hashable, draws: Draws, evidence: Evidence, source: tuple[np.random.Generator, int]
    ) -> tuple[NDArray[Any], Any, Any]:
        """Values of a node (n,), drawn or observed; the log weights of observing it; where it is a point mass."""
        node, (rng, n) = self.nodes[name], source
        if name in evidence.known:
            value = evidence.known[name]
            values: NDArray[Any] = np.full(n, value, dtype=np.int32 if name in evidence.states else np.float64)
            return values, node.log_prob({**draws, name: values}), node.point_masses(draws, n)
        values = node.sample(draws, rng, n)
        if name in evidence.likelihoods:
            with np.errstate(divide="ignore"):
                return values, np.log(evidence.likelihoods[name][values]), 0
        return values, 0.0, 0
