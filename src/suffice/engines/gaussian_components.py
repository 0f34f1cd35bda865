"""The real part of a conditional linear-Gaussian network, cut into components that can be worked on one by one.

Given the discrete variables, the density of the real ones is a product of regressions. Observed real variables are
numbers in it, so two regressions belong together only if they share an unobserved one. Each such component depends on
its own discrete variables, the interface, and is worked out for all joint states of these at once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.engines.mixed_network import NodeRegression
from suffice.engines.square_root import ObservedColumns, network_mean, network_root
from suffice.errors import SizeError, listing
from suffice.graphs.nodes import Node

#: Numbers in the largest array of a step.
_STEP = 2**21


@dataclass(frozen=True)
class ComponentAnswers:
    """What n rows of observed values say about a component, for each of c joint states of its interface.

    `log_density` (n, c) of the observed values, points counted as 0; `points` (c,), the number of them; and of the
    unobserved nodes asked for, conditional `means` (c, n, u) and a `root` (c, u, r) of their conditional covariance.
    """

    log_density: Floats
    points: NDArray[np.intp]
    means: Floats
    root: Floats


@dataclass(frozen=True)
class Component:
    """Regressions tied together by unobserved real nodes; `nodes` in topological order.

    For each node, with c joint states of the `interface`: `parents`, the places of its unobserved parents; their
    `slopes` (c, p); the `intercept` (c,); `variances` (c,); and its observed parents, with their slopes (c, g).
    """

    nodes: tuple[Node, ...]
    observed: frozenset[Node]
    interface: tuple[Node, ...]
    shape: tuple[int, ...]
    parents: tuple[tuple[int, ...], ...]
    slopes: tuple[Floats, ...]
    intercepts: tuple[Floats, ...]
    variances: tuple[Floats, ...]
    given: tuple[tuple[tuple[Node, ...], Floats], ...]

    @property
    def hidden(self) -> tuple[Node, ...]:
        """The unobserved nodes, in order."""
        return tuple(node for node in self.nodes if node not in self.observed)

    def solve(self, values: Mapping[Node, Floats], n: int, asked: Sequence[Node] = ()) -> ComponentAnswers:
        """Take n rows of observed values (n,) by node."""
        size = math.prod(self.shape)
        step = max(1, _STEP // (len(self.nodes) * (len(self.nodes) + n)))
        parts = [self._solve(values, n, asked, slice(start, start + step)) for start in range(0, size, step)]
        return ComponentAnswers(
            np.concatenate([part.log_density for part in parts], axis=1),
            np.concatenate([part.points for part in parts]),
            np.concatenate([part.means for part in parts]),
            np.concatenate([part.root for part in parts]),
        )

    def _solve(self, values: Mapping[Node, Floats], n: int, asked: Sequence[Node], some: slice) -> ComponentAnswers:
        seen = [number for number, node in enumerate(self.nodes) if node in self.observed]
        to = [self.nodes.index(node) for node in asked]
        slopes = [part[some] for part in self.slopes]
        intercepts = []
        for intercept, (names, factors) in zip(self.intercepts, self.given, strict=True):
            shift = factors[some] @ np.stack([values[name] for name in names]) if names else np.zeros((1, n))
            intercepts.append(intercept[some, None] + shift)
        root = network_root(self.parents, slopes, [part[some] for part in self.variances])
        mean = network_mean(self.parents, slopes, intercepts)
        rows = np.stack([values[self.nodes[number]] for number in seen], axis=1) if seen else np.zeros((n, 0))
        observed = ObservedColumns.of(root[:, seen])
        scores, possible = observed.whiten(mean[..., seen], rows)
        means, left = observed.condition(mean[..., to], root[:, to], scores)
        return ComponentAnswers(observed.log_density(scores, possible).T, observed.n_points, means, left)


def cut(
    order: Sequence[Node],
    regressions: Mapping[Node, NodeRegression],
    cards: Mapping[Node, int],
    observed: frozenset[Node],
    states: Mapping[Node, int],
    limit: int,
) -> list[Component]:
    """The components of some real nodes in topological order, given observed nodes and states of discrete variables.

    Raises SizeError if a component has more than `limit` joint states of its interface.
    """
    return [
        _component(nodes, regressions, cards, observed, states, limit) for nodes in _tied(order, regressions, observed)
    ]


def _tied(
    order: Sequence[Node], regressions: Mapping[Node, NodeRegression], observed: frozenset[Node]
) -> Iterator[tuple[Node, ...]]:
    """Nodes whose regressions share an unobserved node, directly or by way of others."""
    label = {node: number for number, node in enumerate(order)}
    members = {number: [node] for node, number in label.items()}
    for node in order:
        for parent in regressions[node].reals:
            if parent not in observed and label[parent] != label[node]:
                keep, gone = sorted((label[parent], label[node]))
                for moved in members[gone]:
                    label[moved] = keep
                members[keep] += members.pop(gone)
    rank = {node: number for number, node in enumerate(order)}
    for nodes in members.values():
        yield tuple(sorted(nodes, key=rank.__getitem__))


def _component(
    nodes: tuple[Node, ...],
    regressions: Mapping[Node, NodeRegression],
    cards: Mapping[Node, int],
    observed: frozenset[Node],
    states: Mapping[Node, int],
    limit: int,
) -> Component:
    free = dict.fromkeys(name for node in nodes for name in regressions[node].discrete if name not in states)
    interface = tuple(free)
    shape = tuple(cards[name] for name in interface)
    check_interface(nodes, interface, cards, limit)
    position = {node: number for number, node in enumerate(nodes)}
    parents, slopes, intercepts, variances, given = [], [], [], [], []
    for node in nodes:
        regression = regressions[node]
        weights = spread(
            np.asarray(regression.weights, dtype=np.float64), regression.discrete, interface, shape, states
        )
        inner = [number for number, name in enumerate(regression.reals, start=1) if name not in observed]
        outer = [number for number, name in enumerate(regression.reals, start=1) if name in observed]
        parents.append(tuple(position[regression.reals[number - 1]] for number in inner))
        slopes.append(weights[:, inner])
        intercepts.append(weights[:, 0])
        given.append((tuple(regression.reals[number - 1] for number in outer), weights[:, outer]))
        variance = np.asarray(regression.variance, dtype=np.float64)[..., None]
        variances.append(spread(variance, regression.discrete, interface, shape, states)[:, 0])
    parts = (tuple(part) for part in (parents, slopes, intercepts, variances, given))
    return Component(nodes, observed & set(nodes), interface, shape, *parts)  # type: ignore[arg-type]


def check_interface(nodes: Sequence[Node], interface: tuple[Node, ...], cards: Mapping[Node, int], limit: int) -> None:
    """Raise SizeError if an interface has more than `limit` joint states."""
    size = math.prod(cards[name] for name in interface)
    if size > limit:
        raise SizeError(
            f"The real variables {listing(nodes)} depend together on the discrete variables {listing(interface)}, "
            f"which have {size:,} joint states; the limit is {limit:,}. Give the states of some, use "
            "likelihood weighting (approximate), or raise the limit."
        )


def spread(
    array: Floats, axes: Sequence[Node], interface: tuple[Node, ...], shape: tuple[int, ...], states: Mapping[Node, int]
) -> Floats:
    """An array (cards of axes..., m) for all joint states of the interface (c, m), known states taken out."""
    known = array[tuple(states.get(name, slice(None)) for name in axes)]
    left = [name for name in axes if name not in states]
    order = sorted(range(len(left)), key=lambda axis: interface.index(left[axis]))
    turned = known.transpose([*order, len(left)])
    sizes = [card if name in left else 1 for name, card in zip(interface, shape, strict=True)]
    wide = np.broadcast_to(turned.reshape(*sizes, -1), (*shape, turned.shape[-1]))
    return wide.reshape(math.prod(shape), -1)
