"""Which exact engine answers for nodes that are tables or linear-Gaussian."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any


def exact_inference(nodes: dict[Hashable, Any]) -> Any:
    """Exact inference for nodes that engines take as they are: a junction tree, one normal distribution, or both."""
    if all(node.domain[name].kind == "discrete" for name, node in nodes.items()):
        from suffice.models.bayesian.queries.tables import TableInference

        return TableInference(nodes)
    if all(node.linear and not node.discrete_parents for node in nodes.values()):
        from suffice.models.bayesian.queries.gaussian import GaussianInference

        return GaussianInference(nodes)
    from suffice.models.bayesian.queries.mixed import MixedInference

    return MixedInference(nodes)
