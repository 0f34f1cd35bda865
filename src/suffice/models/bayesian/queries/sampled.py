"""Approximate inference in any Bayesian network, by likelihood weighting.

Nodes are drawn parents first; an observed node is not drawn, and the sample is weighted by its probability or density
there. All that is asked of a node is to draw and to weigh, so nodes of every kind take part. The ancestors of evidence
are drawn from a mixture of their own distribution and a flat one, and weighted by the ratio of the two.

What no sample has met cannot be seen: a combination of several rare states, or a real value far out that is not normal,
may still be missed. The effective number of samples and the tail of their weights (`pareto_shape`) tell most of it.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.checks import generator
from suffice.domain import Domain
from suffice.engines.importance import draw_flattened, draw_widened, share_of
from suffice.engines.likelihood_weighting import Draws, draw_weighted
from suffice.errors import OptionError
from suffice.graphs.directed import ancestors, topological_order
from suffice.models.bayesian.queries.sampled_answers import SampledDistribution, SampledTable, possible_states
from suffice.models.evidence import Evidence, Names, read_evidence


class SampledInference:
    """Questions to a fitted network of any nodes, answered by weighted samples."""

    def __init__(self, nodes: Mapping[Hashable, Any]) -> None:
        """Take the fitted nodes."""
        self.nodes = dict(nodes)
        self.parents = {name: node.domain.names[:-1] for name, node in self.nodes.items()}
        self.domain = Domain(node.domain[name] for name, node in self.nodes.items())

    def query(
        self, variables: Names, given: Mapping[Any, Any] | None, *, n: int, random_state: Any
    ) -> SampledTable | SampledDistribution:
        """P(variables | given) from n weighted samples: a table of discrete variables, else the weighted draws."""
        names, evidence = self.domain.names_of(variables), read_evidence(self.domain, given)
        if n < 1:
            raise OptionError(f"n is {n}; expected the number of samples, at least 1.")
        relevant = ancestors(self.parents, [*names, *evidence.names])
        order = [name for name in topological_order(self.parents) if name in relevant]
        rng = generator(random_state)
        flat = self._flattened(evidence)
        share = share_of(len(flat))

        def take(name: Hashable, draws: Draws) -> tuple[NDArray[Any], Any, Any]:
            if name in evidence.known:
                return self._observe(name, draws, evidence, n)
            likelihood = evidence.likelihoods.get(name)
            return *self._draw(name, draws, (rng, n), share if name in flat else 0.0, likelihood), 0

        draws, weights, log_probability = draw_weighted(order, take, n)
        columns, possible = [draws[name] for name in names], possible_states(self.domain, evidence)
        distribution = SampledDistribution(self.domain.select(names), columns, weights, log_probability, possible)
        distribution.warn(f"P({', '.join(map(str, names))})")
        return (
            distribution.table(names)
            if all(v.kind == "discrete" for v in distribution.domain.variables)
            else distribution
        )

    def _flattened(self, evidence: Evidence) -> set[Hashable]:
        """The nodes that decide how probable the evidence is: its ancestors.

        Likelihood weighting draws them as if nothing were known. A cause that is rare by itself, and likely given the
        evidence, would hardly ever be drawn, and equal weights would say that all is well: so they are drawn from flat
        distributions now and then.
        """
        above = ancestors(self.parents, list(evidence.names)) - set(evidence.names)
        return {name for name in above if self.domain[name].kind == "discrete" or self.nodes[name].linear}

    def _draw(
        self,
        name: Hashable,
        draws: Draws,
        source: tuple[np.random.Generator, int],
        share: float,
        likelihood: Floats | None,
    ) -> tuple[NDArray[Any], Any]:
        """Values of a node (n,), a share of them by a flat distribution, and the log weights that make up for it.

        With soft evidence they are drawn by P(state) * likelihood, and its sum over the states is their weight.
        """
        node, (rng, n) = self.nodes[name], source
        if likelihood is not None or (share and self.domain[name].kind == "discrete"):
            states = [np.full(n, code, np.int32) for code in range(self.domain[name].card)]
            with np.errstate(divide="ignore"):
                p = np.exp(np.stack([node.log_prob({**draws, name: state}) for state in states], axis=1))
            if not np.isnan(p).any():
                return draw_flattened(p if likelihood is None else p * likelihood, rng, share)
        elif share:
            mean, variance = node.normal_distributions(draws, n)
            if not np.isnan(variance).any():
                return draw_widened(mean, variance, rng, share)
        return node.sample(draws, rng, n), 0.0  # Which says what is undefined, where something is.

    def _observe(
        self, name: Hashable, draws: Draws, evidence: Evidence, n: int
    ) -> tuple[NDArray[Any], Any, NDArray[np.bool_]]:
        """The value of an observed node (n,), the log weights of observing it, and where it is a point mass."""
        node, value = self.nodes[name], evidence.known[name]
        values: NDArray[Any] = np.full(n, value, dtype=np.int32 if name in evidence.states else np.float64)
        return values, node.log_prob({**draws, name: values}), node.point_masses(draws, n)
