"""Normal distributions whose precision has zeros in given places: the largest ``log det K - tr(S K)``.

Here by a closed form, by regressions and by proportional fitting; `covariance_newton` has Newton's method.

At the maximum the covariance ``W = K^-1`` agrees with S on the diagonal and on the edges; K is 0 on all other pairs.
S has a unit diagonal here: the caller takes the units out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.errors import EstimateError
from suffice.fitting.control import Control, Outcome, State, iterate
from suffice.kernels import node_regression

Places = NDArray[np.intp]


@dataclass(frozen=True)
class PlacedTree:
    """Clusters of a clique tree by the places of their columns, children after their parent.

    `separators[c]` is what cluster c shares with its parent, and `parents[c]` is -1 for a root.
    """

    clusters: tuple[Places, ...]
    separators: tuple[Places, ...]
    parents: tuple[int, ...]


# -- closed form -----------------------------------------------------------------------------------------------------


def closed_form(S: Floats, tree: PlacedTree) -> Floats:
    """K of a chordal graph: the inverses of the clique blocks of S, less those of the separators (Lauritzen 1996)."""
    K = np.zeros_like(S)
    for cluster, separator in zip(tree.clusters, tree.separators, strict=True):
        K[np.ix_(cluster, cluster)] += _inverse(S[np.ix_(cluster, cluster)])
        if len(separator):
            K[np.ix_(separator, separator)] -= _inverse(S[np.ix_(separator, separator)])
    return K


def _inverse(block: Floats) -> Floats:
    half = np.linalg.inv(np.linalg.cholesky(block))
    return np.asarray(half.T @ half)


# -- regressions -----------------------------------------------------------------------------------------------------


def by_regressions(S: Floats, W: Floats, pairs: Places, control: Control, *, problem: str = "") -> Outcome:
    """Regress each node on its neighbours until nothing moves: ascent of log det W, a row and column at a time.

    W (p, p), positive definite, agrees with S on the diagonal and on the edges `pairs` (m, 2), and so it stays. Each
    sweep costs p times the number of edges, whatever the width of the graph. The parameters of the outcome are K
    (p, p), flat.
    """
    starts, neighbours = neighbours_of(len(S), pairs)
    compiled = node_regression.compiled_pays(len(S), len(neighbours))

    def state(W: Floats, weights: Floats, change: float, before: float) -> State:
        K = from_regressions(S, starts, neighbours, weights)
        # Changes that shrink by a factor r leave r / (1 - r) times the last one to go.
        rate = min(change / before, 0.999) if 0.0 < before < math.inf else 0.5
        gap = change * max(1.0, rate / (1.0 - rate)) if change < math.inf else math.inf
        return State(K.ravel(), objective_of(K, S), gap, memory={"W": W, "weights": weights, "change": change})

    def step(before: State) -> State:
        W, weights = np.array(before.memory["W"]), np.array(before.memory["weights"])
        change = node_regression.sweep(S, W, starts, neighbours, weights, compiled=compiled)
        if change < 0.0:
            raise EstimateError(
                "The regressions have lost a positive definite covariance to rounding. Use solver='ipf'."
            )
        return state(W, weights, change, float(before.memory["change"]))

    return iterate(step, state(W, np.zeros(len(neighbours)), math.inf, math.inf), control, problem=problem)


def regressions_pay(nodes: int, edges: int) -> bool:
    """Whether a graph is so large that compiled sweeps of regressions are quicker than steps of Newton's method."""
    return node_regression.compiled_pays(nodes, 2 * edges)


def neighbours_of(p: int, pairs: Places) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Neighbours of all nodes in one array, and where those of each begin."""
    ends = np.concatenate([pairs, pairs[:, ::-1]]).astype(np.int64).reshape(-1, 2)
    order = np.lexsort((ends[:, 1], ends[:, 0]))
    counts = np.bincount(ends[:, 0], minlength=p)
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), np.ascontiguousarray(ends[order, 1])


def from_regressions(S: Floats, starts: NDArray[np.int64], neighbours: NDArray[np.int64], weights: Floats) -> Floats:
    """K from the weights of all regressions: 1 / residual variance, and minus the weights in that unit."""
    p = len(S)
    nodes = np.repeat(np.arange(p), np.diff(starts))
    explained = np.bincount(nodes, weights * S[nodes, neighbours], minlength=p)
    diagonal = 1.0 / (np.diag(S) - explained)
    K = np.diag(diagonal)
    K[nodes, neighbours] = -weights * diagonal[nodes]
    return np.asarray((K + K.T) / 2)


def objective_of(K: Floats, S: Floats) -> float:
    """``(log det K - tr(S K)) / 2``; minus infinity where K is not positive definite."""
    try:
        factor = np.linalg.cholesky(K)
    except np.linalg.LinAlgError:
        return -math.inf
    return float(np.log(np.diag(factor)).sum() - 0.5 * np.vdot(S, K))


# -- iterative proportional fitting ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Tour:
    """A clique tree, the cliques to be matched, and for each of these the cluster that holds it."""

    tree: PlacedTree
    cliques: tuple[Places, ...]
    homes: tuple[int, ...]


def by_scaling(S: Floats, K: Floats, tour: Tour, control: Control, *, problem: str = "") -> Outcome:
    """Match one clique after the other, ``K_aa += S_aa^-1 - W_aa^-1``, walking along a clique tree.

    Only the blocks of W that belong to clusters are held. Matching a clique gives its block another covariance and
    leaves everything else as it was, given the clique; so does passing a separator on to the next cluster. Both are one
    formula: a change D of the block aa changes the cluster by ``G D G'`` with ``G = W_a W_aa^-1``. A sweep therefore
    costs the cubes of the clusters and never one of all nodes.
    """
    walk = _Walk(S, tour)

    def step(before: State) -> State:
        K = np.array(before.parameters).reshape(S.shape)
        blocks = [np.array(block) for block in before.memory["blocks"]]
        gap = walk.sweep(K, blocks)
        return State(K.ravel(), walk.objective(K), gap, memory={"blocks": blocks})

    # W of the start, once and by all nodes; a diagonal start needs no inverse.
    W = np.diag(1.0 / np.diag(K)) if not (K - np.diag(np.diag(K))).any() else _inverse(K)
    blocks = [W[np.ix_(cluster, cluster)] for cluster in tour.tree.clusters]
    start = State(K.ravel(), walk.objective(K), math.inf, memory={"blocks": blocks})
    return iterate(step, start, control, problem=problem)


class _Walk:
    """Sweeps of `by_scaling`: places of cliques and separators within their clusters, and the targets."""

    def __init__(self, S: Floats, tour: Tour) -> None:
        self.S, self.tour = S, tour
        within = [{int(node): positions for positions, node in enumerate(cluster)} for cluster in tour.tree.clusters]
        self.cliques: list[list[tuple[Places, Places, Floats, Floats]]] = [[] for _ in within]
        for clique, home in zip(tour.cliques, tour.homes, strict=True):
            block = S[np.ix_(clique, clique)]
            positions = np.array([within[home][int(node)] for node in clique], dtype=np.intp)
            self.cliques[home].append((clique, positions, block, _inverse(block)))
        self.own = [_at(within[c], separator) for c, separator in enumerate(tour.tree.separators)]
        self.above = [
            _at(within[parent], separator) if parent >= 0 else np.zeros(0, dtype=np.intp)
            for parent, separator in zip(tour.tree.parents, tour.tree.separators, strict=True)
        ]
        children: list[list[int]] = [[] for _ in within]
        for cluster, parent in enumerate(tour.tree.parents):
            if parent >= 0:
                children[parent].append(cluster)
        self.moves = [move for c, parent in enumerate(tour.tree.parents) if parent < 0 for move in _moves(c, children)]

    def sweep(self, K: Floats, blocks: list[Floats]) -> float:
        """Match every clique once; K and the blocks are changed. The largest gap met, in standard deviations."""
        largest = 0.0
        for cluster, came_from in self.moves:
            block = blocks[cluster]
            if came_from >= 0:
                down = self.tour.tree.parents[cluster] == came_from
                here, there = (
                    (self.own[cluster], self.above[cluster]) if down else (self.above[came_from], self.own[came_from])
                )
                if len(here):
                    _give(block, here, blocks[came_from][np.ix_(there, there)])
                if not down:
                    continue  # The cliques of this cluster had their turn on the way down.
            for clique, positions, target, inverse in self.cliques[cluster]:
                seen = block[np.ix_(positions, positions)]
                spread = np.diag(seen)
                largest = max(
                    largest, float(np.max(np.abs(target - seen) / np.sqrt(np.outer(spread, spread) + seen**2)))
                )
                K[np.ix_(clique, clique)] += inverse - _inverse(seen)
                _give(block, positions, target)
        return largest

    def objective(self, K: Floats) -> float:
        """The objective at K."""
        return objective_of(K, self.S)


def _at(within: dict[int, int], places: Places) -> Places:
    return np.array([within[int(node)] for node in places], dtype=np.intp)


def _moves(root: int, children: Sequence[Sequence[int]]) -> list[tuple[int, int]]:
    """A walk along the tree that passes each edge down and up again: (cluster, the cluster it was come from)."""
    moves = [(root, -1)]
    left = [(root, iter(children[root]))]
    while left:
        here, rest = left[-1]
        child = next(rest, None)
        if child is None:
            left.pop()
            if left:
                moves.append((left[-1][0], here))
        else:
            moves.append((child, here))
            left.append((child, iter(children[child])))
    return moves


def _give(block: Floats, positions: Places, target: Floats) -> None:
    """Give some columns of a distribution another covariance and keep the distribution of the others given them."""
    seen = block[np.ix_(positions, positions)]
    gain = np.linalg.solve(seen, block[positions]).T
    block += gain @ (target - seen) @ gain.T
    block[np.ix_(positions, positions)] = target
