"""The real part of rows with missing values, whatever is missing where: components of one layout are solved at once.

As in `gaussian_components`, regressions belong together in a row only if they share an unobserved node. Rows that miss
quite different values mostly have such a component in common, so that components are worked on and not whole rows;
those that hide and show equally many nodes are stacked, and no time goes to any of them by itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Flags, Floats, Indices
from suffice.engines.gaussian_components import check_interface, spread
from suffice.engines.mixed_network import NodeRegression
from suffice.engines.square_root import ObservedColumns, dense_mean, dense_root, log_density_or_mass
from suffice.graphs.nodes import Node
from suffice.kernels.patterns import label_codes

#: Numbers in the largest array of a step.
_STEP = 2**20

Scope = tuple[Node, ...]

#: What a node is to a component; 0 where it is no part of it.
SHOWN, HIDDEN = 1, 2


@dataclass(frozen=True)
class RealStructure:
    """Real nodes in topological `order` with their real and their discrete `parents`; `cards` of the discrete ones."""

    order: tuple[Node, ...]
    inner: Mapping[Node, Scope]
    outer: Mapping[Node, Scope]
    cards: Mapping[Node, int]
    limit: int

    @cached_property
    def place(self) -> dict[Node, int]:
        """The number of each node in the order."""
        return {node: number for number, node in enumerate(self.order)}

    @cached_property
    def parents(self) -> list[Indices]:
        """Places of the real parents of each node."""
        return [np.array([self.place[name] for name in self.inner[node]], np.intp) for node in self.order]

    @cached_property
    def padded(self) -> Indices:
        """The same as one array (p, q); a place behind the last stands where a node has fewer parents."""
        width = max((len(above) for above in self.parents), default=0)
        places = np.full((len(self.order), width), len(self.order), np.intp)
        for row, above in zip(places, self.parents, strict=True):
            row[: len(above)] = above
        return places


@dataclass(frozen=True)
class ComponentLayout:
    """Components (k) with one interface that have d nodes, h of them hidden, in n rows each.

    `nodes` (k, d), their places in topological order; `is_hidden` (k, d); `rows` (k, n).
    """

    interface: Scope
    nodes: Indices
    is_hidden: Flags
    rows: Indices

    @cached_property
    def hidden_at(self) -> Indices:
        """Which of its nodes each component hides (k, h)."""
        return np.nonzero(self.is_hidden)[1].reshape(len(self.nodes), -1)

    @cached_property
    def seen_at(self) -> Indices:
        """Which of its nodes each component shows (k, m)."""
        return np.nonzero(~self.is_hidden)[1].reshape(len(self.nodes), -1)

    @cached_property
    def hidden(self) -> Indices:
        """The places of the hidden nodes (k, h)."""
        return np.take_along_axis(self.nodes, self.hidden_at, axis=1)

    @cached_property
    def seen(self) -> Indices:
        """The places of the shown nodes (k, m)."""
        return np.take_along_axis(self.nodes, self.seen_at, axis=1)

    def part(self, some: slice) -> ComponentLayout:
        """Some of the components."""
        return ComponentLayout(self.interface, self.nodes[some], self.is_hidden[some], self.rows[some])


@dataclass(frozen=True)
class LayoutAnswers:
    """What the rows say about components, for each of c joint states of their interface.

    `log_density` (k, c, n) of what is shown, points counted as 0; `points` (k, c), the number of them; `means`
    (k, c, n, h) and `covariances` (k, c, h, h) of what is hidden.
    """

    layout: ComponentLayout
    log_density: Floats
    points: NDArray[np.intp]
    means: Floats
    covariances: Floats


@dataclass(frozen=True)
class PlainAnswers:
    """Log densities (c, n) of a node, and points (c, n) as above: 0 in rows that miss it or a real parent."""

    node: Node
    interface: Scope
    log_density: Floats
    points: NDArray[np.intp]


@dataclass(frozen=True)
class _Regressions:
    """Intercepts (c, p), slopes (c, p, q) on padded parents and variances (c, p) at joint states of an interface."""

    intercepts: Floats
    slopes: Floats
    variances: Floats


class RealRows:
    """Real values (p, n) of rows that share the known `states` of discrete variables, NaN for a missing value.

    `wanted` (p,): whether a node matters where neither it nor anything below it is seen.
    """

    def __init__(
        self, structure: RealStructure, values: Floats, states: Mapping[Node, int], wanted: Flags | None = None
    ) -> None:
        """Find the components of all rows."""
        self.structure, self.states = structure, states
        missing = np.isnan(values)
        self.needed = self._needed(missing, wanted)
        self.hidden = missing & self.needed
        #: With a place behind the last node, which is 0 in all rows as missing values are.
        self.values = np.concatenate([np.where(missing, 0.0, values), np.zeros((1, values.shape[1]))])
        self.free = {node: tuple(n for n in structure.outer[node] if n not in states) for node in structure.order}
        self.layouts = list(self._layouts())

    @property
    def n(self) -> int:
        """How many rows there are."""
        return int(self.values.shape[1])

    def _needed(self, missing: Flags, wanted: Flags | None) -> Flags:
        """Which nodes matter in which rows: those seen or wanted, and all above them."""
        if wanted is None or wanted.all():
            return np.ones(missing.shape, dtype=bool)
        needed = ~missing | wanted[:, None]
        for node in reversed(range(len(needed))):
            for parent in self.structure.parents[node]:
                needed[parent] |= needed[node]
        return needed

    @cached_property
    def plain(self) -> list[Flags | None]:
        """By node the rows (n,) that show it with all its real parents; None where no row does."""
        shown = []
        for node, above in enumerate(self.structure.parents):
            seen = self.needed[node] & ~self.hidden[node] & ~self.hidden[above].any(axis=0)
            shown.append(seen if seen.any() else None)
        return shown

    # -- components --------------------------------------------------------------------------------------------------

    def _tied(self, rows: Indices) -> NDArray[np.int32]:
        """The first hidden node of the component of each hidden node (p, rows); p where a node is not hidden."""
        hidden, needed, p = self.hidden[:, rows], self.needed[:, rows], len(self.hidden)
        label = np.where(hidden, np.arange(p, dtype=np.int32)[:, None], np.int32(p))
        seldom = np.asarray(hidden.any(axis=1))
        families = [(node, [*above[seldom[above]], node]) for node, above in enumerate(self.structure.parents)]
        while True:
            before = label.copy()
            for node, family in families:
                least = np.where(needed[node], label[family].min(axis=0), p)
                for member in family:
                    np.minimum(label[member], least, out=label[member], where=hidden[member])
            if np.array_equal(label, before):
                return label

    def _layouts(self) -> Iterator[ComponentLayout]:
        """Components by interface and by how much they hide and show.

        The rows of a component are cut into powers of two, so that few layouts differ by their number alone.
        """
        by_kind: dict[tuple[Scope, int, int, int], list[tuple[Any, Indices]]] = {}
        some = np.flatnonzero(self.hidden.any(axis=0))
        label = self._tied(some)
        for first in range(len(label)):
            here = label[first] == first
            if not here.any():
                continue
            rows = some[here]
            roles, which = label_codes(self._roles(label[:, here] == first, rows), *self._cards)
            kinds, of_kind = self._kinds(roles)
            for chosen, taken in stacked_rows(which):
                for number in np.unique(of_kind[chosen]).tolist():
                    ours = of_kind[chosen] == number
                    part = roles[chosen[ours]], rows[taken[ours]]
                    by_kind.setdefault((*kinds[number], taken.shape[1]), []).append(part)
        for (scope, *_), parts in by_kind.items():
            roles = np.concatenate([part[0] for part in parts])
            nodes = np.nonzero(roles)[1].reshape(len(roles), -1)
            is_hidden = np.take_along_axis(roles, nodes, axis=1) == HIDDEN
            yield ComponentLayout(scope, nodes, is_hidden, np.concatenate([part[1] for part in parts]))

    @cached_property
    def _cards(self) -> tuple[list[int], range]:
        return [HIDDEN + 1] * len(self.hidden), range(len(self.hidden))

    def _roles(self, members: Flags, rows: Indices) -> NDArray[np.uint8]:
        """What each node is to a component with these hidden members (p, rows): nothing, shown, or hidden."""
        roles = members.astype(np.uint8) * np.uint8(HIDDEN)
        for node, above in enumerate(self.structure.parents):
            if len(above):
                roles[node][members[above].any(axis=0) & self.needed[node, rows] & ~members[node]] = SHOWN
        return roles

    def _kinds(self, roles: NDArray[np.uint8]) -> tuple[list[tuple[Scope, int, int]], Indices]:
        """Kinds by interface and numbers of shown and of hidden nodes, and that of each component (k, p)."""
        names = list(dict.fromkeys(name for scope in self.free.values() for name in scope))
        uses = np.array([[name in self.free[node] for name in names] for node in self.structure.order], dtype=np.int64)
        depends = (roles > 0).astype(np.int64) @ uses.reshape(len(self.free), len(names)) > 0
        keys = np.column_stack([depends, (roles == SHOWN).sum(axis=1), (roles == HIDDEN).sum(axis=1)])
        distinct, example, label = np.unique(keys, axis=0, return_index=True, return_inverse=True)
        kinds = []
        for number, (*flags, shown, hides) in zip(example.tolist(), distinct.tolist(), strict=True):
            scope = tuple(name for name, flag in zip(names, flags, strict=True) if flag)
            nodes = [node for node, role in zip(self.structure.order, roles[number], strict=True) if role]
            check_interface(nodes, scope, self.structure.cards, self.structure.limit)
            kinds.append((scope, shown, hides))
        return kinds, label.ravel()

    # -- answers -----------------------------------------------------------------------------------------------------

    def shape(self, interface: Scope) -> tuple[int, ...]:
        """Numbers of states of an interface."""
        return tuple(self.structure.cards[name] for name in interface)

    def plain_densities(self, regressions: Mapping[Node, NodeRegression]) -> Iterator[PlainAnswers]:
        """Node by node, where it is seen with all its real parents."""
        for number, node in enumerate(self.structure.order):
            seen = self.plain[number]
            if seen is None:
                continue
            scope, values = self.free[node], self.values[number]
            weights, variance = self._at(regressions[node], scope)
            above = self.values[self.structure.parents[number]]
            mean = weights[:, 1:] @ above
            mean += weights[:, :1]
            size = np.zeros(1)
            if not variance.all():
                size = np.abs(weights[:, :1]) + np.abs(weights[:, 1:]) @ np.abs(above)
            log = log_density_or_mass(values, mean, variance[:, None], size)
            if not seen.all():
                log[:, ~seen] = 0.0
            yield PlainAnswers(node, scope, log, ((variance == 0)[:, None] & seen).astype(np.intp))

    def solve(self, regressions: Mapping[Node, NodeRegression]) -> Iterator[LayoutAnswers]:
        """ComponentLayout by layout."""
        known: dict[Scope, _Regressions] = {}
        for layout in self.layouts:
            if layout.interface not in known:
                known[layout.interface] = self._stacked(regressions, layout.interface)
            yield self._solve(layout, known[layout.interface])

    def _at(self, regression: NodeRegression, interface: Scope) -> tuple[Floats, Floats]:
        """Weights (c, 1 + q) and variances (c,) of a node at the joint states of an interface."""
        shape = self.shape(interface)
        weights = np.asarray(regression.weights, dtype=np.float64)
        variance = np.asarray(regression.variance, dtype=np.float64)[..., None]
        weights = spread(weights, regression.discrete, interface, shape, self.states)
        return weights, spread(variance, regression.discrete, interface, shape, self.states)[:, 0]

    def _stacked(self, regressions: Mapping[Node, NodeRegression], interface: Scope) -> _Regressions:
        """All nodes that depend on no other free variables than those of an interface."""
        p, width = self.structure.padded.shape
        c = math.prod(self.shape(interface))
        intercepts, slopes, variances = np.zeros((c, p)), np.zeros((c, p, width)), np.ones((c, p))
        for number, node in enumerate(self.structure.order):
            if set(self.free[node]) <= set(interface):
                weights, variances[:, number] = self._at(regressions[node], interface)
                intercepts[:, number] = weights[:, 0]
                slopes[:, number, : weights.shape[1] - 1] = weights[:, 1:]
        return _Regressions(intercepts, slopes, variances)

    def _solve(self, layout: ComponentLayout, known: _Regressions) -> LayoutAnswers:
        """In steps of some components and some joint states, as memory allows."""
        (k, d), n, c = layout.nodes.shape, layout.rows.shape[1], len(known.intercepts)
        width = self.structure.padded.shape[1] + 1
        room = max(1, _STEP // (d * (d + n) * width))
        states = min(c, room)
        step = max(1, room // states)
        parts = [
            [
                self._solve_some(layout.part(slice(start, start + step)), known, slice(first, first + states))
                for first in range(0, c, states)
            ]
            for start in range(0, k, step)
        ]
        joined = [
            np.concatenate([np.concatenate([cell[number] for cell in row], axis=1) for row in parts])
            for number in range(4)
        ]
        return LayoutAnswers(layout, *joined)

    def _solve_some(self, layout: ComponentLayout, known: _Regressions, states: slice) -> tuple[Floats, ...]:
        """Log densities, points, means and covariances of some components at some joint states."""
        nodes, rows, above = layout.nodes, layout.rows, self.structure.padded[layout.nodes]
        slopes = known.slopes[states][:, nodes].transpose(1, 2, 0, 3)  # (k, d, c, q)
        hidden = np.where(layout.is_hidden, nodes, -1)
        among = slopes @ (above[..., None] == hidden[:, None, None, :]).astype(np.float64)
        given = slopes @ self.values[above[..., None], rows[:, None, None, :]]
        shifts = given.transpose(0, 2, 3, 1) + known.intercepts[states][:, nodes].swapaxes(0, 1)[:, :, None, :]
        among = among.swapaxes(1, 2)
        root = dense_root(among, known.variances[states][:, nodes].swapaxes(0, 1))
        mean = dense_mean(among, shifts)
        seen, to = layout.seen_at[:, None, :], layout.hidden_at[:, None, :]
        values = self.values[layout.seen[:, None, :], rows[:, :, None]][:, None]
        observed = ObservedColumns.of(np.take_along_axis(root, seen[..., None], axis=2))
        scores, possible = observed.whiten(np.take_along_axis(mean, seen[:, :, None], axis=3), values)
        means, left = observed.condition(
            np.take_along_axis(mean, to[:, :, None], axis=3), np.take_along_axis(root, to[..., None], axis=2), scores
        )
        return observed.log_density(scores, possible), observed.n_points, means, left @ left.swapaxes(-1, -2)


def stacked_rows(label: Indices) -> Iterator[tuple[Indices, Indices]]:
    """Labels (k,) and as many rows of each (k, r): the rows of a label are cut into powers of two, largest first.

    So few numbers of rows differ, and whatever is done once for a label is done a few times at most.
    """
    order, counts = np.argsort(label, kind="stable"), np.bincount(label)
    starts = np.cumsum(counts) - counts
    for bit in reversed(range(int(counts.max(initial=0)).bit_length())):
        chosen = np.flatnonzero(counts >> bit & 1)
        if len(chosen):
            begin = starts[chosen] + (counts[chosen] >> (bit + 1) << (bit + 1))
            yield chosen, order[begin[:, None] + np.arange(1 << bit)]


def add_to_rows(totals: Floats, layout: ComponentLayout, numbers: Floats) -> None:
    """Add numbers of components (k, c, n) to those of their rows (c, all rows); a row may be in several components."""
    rows = layout.rows.ravel()
    for state, into in enumerate(totals):
        into += np.bincount(rows, numbers[:, state].ravel(), len(into))
