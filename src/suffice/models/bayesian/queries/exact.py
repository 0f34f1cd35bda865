"""Which exact engine answers for nodes that are tables or linear-Gaussian."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any


def is_plain(node: Any) -> bool:
    """Whether a node goes to the exact engines as it is: laws of states given states, and linear-Gaussian ones.

    So does a node that cannot write itself as a table at known values: the engine says that it does not take it.
    """
    if node.linear or not hasattr(node, "log_table"):
        return True
    return all(variable.kind == "discrete" for variable in node.domain.variables)


def plain_inference(nodes: dict[Hashable, Any]) -> Any:
    """Exact inference for plain nodes: a junction tree, one normal law, or both together."""
    if all(node.domain[name].kind == "discrete" for name, node in nodes.items()):
        from suffice.models.bayesian.queries.tables import TableInference

        return TableInference(nodes)
    if all(node.linear and not node.discrete_parents for node in nodes.values()):
        from suffice.models.bayesian.queries.gaussian import GaussianInference

        return GaussianInference(nodes)
    from suffice.models.bayesian.queries.mixed import MixedInference

    return MixedInference(nodes)
