"""How strongly nodes depend on one another: mutual information of arcs and of any nodes, from fitted parameters."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.array_types import Floats
from suffice.errors import OptionError, listing
from suffice.models.bayesian.fitted import NetworkFitted
from suffice.models.evidence import Names

if TYPE_CHECKING:
    from suffice.fitting.parameter_table import NumberTable


def markov_blanket(net: Any, node: Hashable) -> tuple[Hashable, ...]:
    """The parents, the children and their other parents: given these a node is independent of all the rest."""
    from suffice.models.structures import DirectedGraph

    return DirectedGraph(net).markov_blanket(node)


def d_separated(net: Any, first: Any, second: Any, *, given: Any = ()) -> bool:
    """Whether the structure makes nodes independent of others, given further ones, whatever its numbers are."""
    from suffice.models.structures import DirectedGraph

    return DirectedGraph(net).d_separated(first, second, given=given)


def mutual_information(net: Any, first: Names, second: Names, *, given: Names = ()) -> float:
    """What nodes tell about others on average, in nats, where further ones are known; 0 where they are independent.

    Of tables the sum of P(x, y, z) log(P(x, y | z) / P(x | z) P(y | z)), of a joint normal distribution the same from
    its covariance, infinite where one node determines another.

    Args:
        net: the network.
        first: a node, or a list of them.
        second: likewise.
        given: nodes, not their values, that are known beside: their states are averaged over.
    """
    fitted: NetworkFitted = net.fitted_
    domain = fitted.domain
    x, y = domain.names_of(first), domain.names_of(second)
    z = [] if isinstance(given, list | tuple) and not given else domain.names_of(given)
    twice = [name for name in dict.fromkeys([*x, *y, *z]) if [*x, *y, *z].count(name) > 1]
    if twice:
        raise OptionError(f"The nodes of both sides and those given are different ones; {listing(twice)} is twice.")
    real = [name for name in [*x, *y, *z] if domain[name].kind != "discrete"]
    if not real:
        joint = fitted.query([*x, *y, *z]).values.reshape(*(_cells(fitted, names) for names in (x, y, z)))
        return _of_table(joint)
    if fitted.inference.kind != "normal":
        raise OptionError(
            f"{listing(real)} is real in a network that is no joint normal distribution: its mutual information has no "
            "closed form. Ask about nodes with states."
        )
    return _of_covariance(fitted.query([*x, *y, *z]).covariance, len(x), len(y))


def arc_strengths(net: Any) -> NumberTable:
    """How strong each arc is under the fitted parameters: mutual information of parent and child, in nats.

    Returns:
        A table, the strongest arc first: ``information``, of parent and child alone, and ``beside the others``, what
        the parent tells about the child where the other parents are known; removing the arc, with the best table for
        the parents that are left, moves the distribution of all nodes by this divergence. Blank where no closed form
        exists.
    """
    from suffice.fitting.parameter_table import NumberTable

    fitted: NetworkFitted = net.fitted_
    rows = []
    for child, parents in fitted.parents.items():
        for parent in parents:
            others = [name for name in parents if name != parent]
            alone = _or_blank(net, fitted, parent, child, [])
            beside = alone if not others else _or_blank(net, fitted, parent, child, others)
            rows.append((f"{parent} -> {child}", (alone, beside)))
    rows.sort(key=lambda row: -np.nan_to_num(row[1][1], nan=-1.0, posinf=np.inf))
    return NumberTable((("Arcs", str(len(rows))),), ("information", "beside the others"), tuple(rows))


def _or_blank(net: Any, fitted: NetworkFitted, parent: Hashable, child: Hashable, others: Sequence[Hashable]) -> float:
    kinds = {fitted.domain[name].kind for name in (parent, child, *others)}
    if kinds != {"discrete"} and fitted.inference.kind != "normal":
        return np.nan
    return mutual_information(net, [parent], [child], given=list(others))


def _cells(fitted: NetworkFitted, names: Sequence[Hashable]) -> int:
    return int(np.prod(fitted.domain.shape(tuple(names)), dtype=np.int64))


def _of_table(joint: Floats) -> float:
    """Of probabilities (x, y, z)."""
    of_x, of_y, of_z = joint.sum(axis=1, keepdims=True), joint.sum(axis=0, keepdims=True), joint.sum(axis=(0, 1))
    some = joint > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(joint) + np.log(of_z) - np.log(of_x) - np.log(of_y)
    return max(0.0, float((joint[some] * logs[some]).sum()))


def _of_covariance(spread: Floats, nx: int, ny: int) -> float:
    """Of variables x, y, z in this order: half the logarithm of det(xz) det(yz) / det(xyz) det(z)."""
    x, y, z = (np.arange(len(spread))[part] for part in (slice(nx), slice(nx, nx + ny), slice(nx + ny, None)))
    scale = np.sqrt(np.diagonal(spread))
    if not (scale > 0).all():
        raise OptionError("A node that never varies tells nothing and is told by nothing. Leave it out.")
    correlation = spread / np.outer(scale, scale)

    def log_determinant(*parts: Any) -> float:
        places = np.concatenate(parts)
        return float(np.linalg.slogdet(correlation[np.ix_(places, places)])[1]) if len(places) else 0.0

    whole = log_determinant(x, y, z)
    if whole == -np.inf:
        return float("inf")
    return max(0.0, 0.5 * (log_determinant(x, z) + log_determinant(y, z) - whole - log_determinant(z)))
