"""Normal distributions whose precision has zeros in given places: the largest ``log det K - tr(S K)`` by four methods.

At the maximum the covariance ``W = K^-1`` agrees with S on the diagonal and on the edges; K is 0 on all other pairs.
S has a unit diagonal here: the caller takes the units out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.errors import EstimateError
from suffice.fitting.control import Control, Outcome, State, iterate
from suffice.kernels import node_regression
from suffice.solvers.newton import HALVINGS, ROUNDING, solve_truncated
from suffice.solvers.registry import Objective

Places = NDArray[np.intp]

#: Free entries of K up to which Newton's equations are solved by a factor of the whole information from the first step,
#: and up to which they are once conjugate gradients have taken more products than a share of their number.
DENSE, MOST_DENSE, PRODUCTS = 250, 3_000, 1 / 12
#: Nodes from which products with K are taken over its entries alone; below, whole matrices are quicker.
SPARSE = 100
#: Regressions may cost so many times the cube of the nodes to give Newton's method a start, and hold so many numbers.
START_COST, START_NUMBERS = 4.0, 4_000_000
#: Variances beyond which the information, sums of products of two of them, is no number.
MOST_VARIANCE = math.sqrt(np.finfo(np.float64).max) / 4.0


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
    starts, neighbours = _neighbours(len(S), pairs)
    compiled = node_regression.compiled_pays(len(S), len(neighbours))

    def state(W: Floats, weights: Floats, change: float, before: float) -> State:
        K = _from_regressions(S, starts, neighbours, weights)
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


def _neighbours(p: int, pairs: Places) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Neighbours of all nodes in one array, and where those of each begin."""
    ends = np.concatenate([pairs, pairs[:, ::-1]]).astype(np.int64).reshape(-1, 2)
    order = np.lexsort((ends[:, 1], ends[:, 0]))
    counts = np.bincount(ends[:, 0], minlength=p)
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), np.ascontiguousarray(ends[order, 1])


def _from_regressions(S: Floats, starts: NDArray[np.int64], neighbours: NDArray[np.int64], weights: Floats) -> Floats:
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


# -- Newton ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ridge:
    """A normal prior on the free entries of K, the diagonal first and then the edges: its mean and precision, a row."""

    mean: Floats
    precision: Floats


@dataclass(frozen=True, eq=False)
class EntryObjective:
    """``(log det K - tr(S K)) / 2`` a row, less a ridge, as a function of the free entries of K, for any solver.

    The entries (m,) are the diagonal and then the edges `pairs` (m - p, 2). The information of two of them is
    ``tr(W E_a W E_b) / 2`` with W = K^-1 and E_a the matrix that is 1 where entry a stands.
    """

    S: Floats
    pairs: Places
    ridge: Ridge | None = None

    @cached_property
    def entries(self) -> tuple[Places, Places]:
        """Rows and columns of the free entries."""
        rows, columns = np.concatenate([np.tile(np.arange(len(self.S))[:, None], 2), self.pairs]).T
        return rows, columns

    @cached_property
    def _twice(self) -> Floats:
        """An edge stands in K twice, an entry of the diagonal once; with the half of the objective 1 and 1/2."""
        rows, columns = self.entries
        return np.where(rows == columns, 0.5, 1.0)

    def matrix(self, x: Floats) -> Floats:
        """K (p, p) from its free entries."""
        K, (rows, columns) = np.zeros_like(self.S), self.entries
        K[rows, columns] = K[columns, rows] = x
        return K

    def whole(self, x: Floats) -> tuple[float, Floats, Floats | None]:
        """Value, slope (m,) and W; minus infinity and None where K is not positive definite."""
        K = self.matrix(x)
        try:
            factor = np.linalg.cholesky(K)
        except np.linalg.LinAlgError:
            return -math.inf, np.zeros_like(x), None
        half = np.linalg.inv(factor)
        W = half.T @ half
        value = float(np.log(np.diag(factor)).sum() - 0.5 * np.vdot(self.S, K))
        slope = self._twice * (W - self.S)[self.entries]
        if self.ridge is None:
            return value, slope, W
        distance = x - self.ridge.mean
        pull = self.ridge.precision * distance
        return value - 0.5 * float(distance @ pull), slope - pull, W

    def evaluate(self, x: Floats) -> tuple[float, Floats]:
        """Value and slope (m,)."""
        return self.whole(x)[:2]

    def information(self, x: Floats) -> Floats:
        """Minus the Hessian (m, m)."""
        W = self.whole(x)[2]
        return np.eye(len(x)) if W is None else self.information_of(W)

    def information_of(self, W: Floats) -> Floats:
        """Minus the Hessian (m, m) where K^-1 is W (p, p)."""
        information = entry_information(W, *self.entries)
        return information if self.ridge is None else information + np.diag(self.ridge.precision)

    def products(self, x: Floats) -> Callable[[Floats], Floats]:
        """The function that multiplies minus the Hessian by a vector (m,)."""
        W = self.whole(x)[2]
        assert W is not None  # Asked only at points that were reached.
        return self.products_of(W)

    def products_of(self, W: Floats) -> Callable[[Floats], Floats]:
        """The same where K^-1 is W (p, p): entry (i, j) of ``W V W`` is row i of W times row j of ``(V W)'``."""
        (rows, columns), held = self.entries, 0.0 if self.ridge is None else self.ridge.precision
        left = W[rows]

        def product(vector: Floats) -> Floats:
            right = (self._sparse(vector) if len(W) >= SPARSE else self.matrix(vector)) @ W
            return np.asarray(self._twice * np.einsum("ij,ij->i", left, right.T[columns]) + held * vector)

        return product

    def length_of(self, W: Floats, vector: Floats) -> float:
        """The length of a direction D of K (m,) where K^-1 is W (p, p), as log det measures it: sqrt(tr(W D W D))."""
        moved = self.matrix(vector) @ W
        return math.sqrt(max(float(np.einsum("ij,ji->", moved, moved)), 0.0))

    def _sparse(self, x: Floats) -> Any:
        """K as a sparse array."""
        from scipy.sparse import csr_array

        taken, columns, starts = self._rows
        return csr_array((x[taken], columns, starts), shape=self.S.shape)

    @cached_property
    def _rows(self) -> tuple[Places, Places, Places]:
        """K by rows: which free entry each of its entries is, their columns, and where the rows begin."""
        rows, columns = self.entries
        p, every = len(self.S), np.arange(len(rows))
        taken, down = np.concatenate([every, every[p:]]), np.concatenate([rows, columns[p:]])
        across = np.concatenate([columns, rows[p:]])
        order = np.lexsort((across, down))
        return taken[order], across[order], np.concatenate([[0], np.cumsum(np.bincount(down, minlength=p))])

    def scale(self, x: Floats, slope: Floats) -> Floats:
        """One over the information of each entry by itself (m,), from the entries of W that the slope holds."""
        pull = 0.0 if self.ridge is None else self.ridge.precision * (x - self.ridge.mean)
        return self.scale_of((slope + pull) / self._twice + self.S[self.entries])

    def scale_of(self, entries: Floats) -> Floats:
        """The same from the entries of W (m,) themselves."""
        (rows, columns), held = self.entries, 0.0 if self.ridge is None else self.ridge.precision
        variances = entries[: len(self.S)]
        return np.asarray(1.0 / (self._twice**2 * (variances[rows] * variances[columns] + entries**2) + held))

    def objective(self, K: Floats, control: Control) -> Objective:
        """For solvers that know no model: from K (p, p)."""
        return Objective(self.evaluate, K[self.entries], control, lambda: self.scale, self.information, self.products)


def by_newton(
    S: Floats, K: Floats | None, pairs: Places, control: Control, *, ridge: Ridge | None = None, problem: str = ""
) -> Outcome:
    """Newton's method on the diagonal and the edges of K, from K or else from what regressions on S make of it.

    Few equations are solved by a factor, many by conjugate gradients as exactly as the distance is small, until these
    cost more than a factor. ``-log det`` is self-concordant: of a direction D of the length ``r = sqrt(tr(W D W D))``
    the step ``1 / (1 + r)`` stays positive definite and climbs (Nesterov and Nemirovskii 1994), so where a whole step
    does not, that one does. A ridge is quadratic and shortens no step. The gap is the largest slope of an entry in
    units of its own information. The parameters of the outcome are K (p, p), flat.
    """
    function = EntryObjective(S, pairs, ridge)

    def state(x: Floats, factored: bool) -> State | None:
        value, slope, W = function.whole(x)
        if W is None or not W.max() < MOST_VARIANCE:
            return None
        own = function.scale_of(W[function.entries])
        gap = float(np.max(np.abs(slope) * np.sqrt(own)))
        direction = np.zeros_like(x)
        if gap > control.tolerance and factored:
            units = np.sqrt(own)
            direction = units * np.linalg.solve(function.information_of(W) * units * units[:, None], units * slope)
            # The decrement is at least the gap of any entry: where it is not, the factor has lost all digits.
            factored = float(slope @ direction) > 0.5 * gap**2
        if gap > control.tolerance and not factored:
            direction, taken = solve_truncated(function.products_of(W), slope, own, min(0.1, 0.3 * math.sqrt(gap)))
            factored = len(x) <= MOST_DENSE and taken > PRODUCTS * len(x)
        rise = float(slope @ direction)
        kept = {"direction": direction, "slope": rise, "factored": factored}
        kept["length"] = math.sqrt(2.0 * max(rise, 0.0)) if ridge is None else function.length_of(W, direction)
        return State(x, value, gap, memory=kept)

    def step(before: State) -> State:
        slope = max(float(before.memory["slope"]), 0.0)
        # Where rounding hides the rise, the slopes tell whether the step was one.
        blind = slope <= ROUNDING * len(S) * max(1.0, abs(before.objective))
        sizes = [1.0, *(2.0**-k / (1.0 + float(before.memory["length"])) for k in range(HALVINGS))]
        for size in sizes[:1] if blind else sizes:
            moved = state(before.parameters + size * before.memory["direction"], bool(before.memory["factored"]))
            if moved is None:
                continue
            if moved.gap < before.gap if blind else moved.objective - before.objective >= 1e-4 * size * slope:
                return moved
        return replace(before, memory={**before.memory, "stalled": True})

    starts = (_regressed(S, pairs) if K is None else K, np.eye(len(S)))
    tried = (state(start[function.entries], len(function.entries[0]) <= DENSE) for start in starts)
    first = next(state for state in tried if state is not None)
    outcome = iterate(step, first, control, problem=problem)
    return replace(outcome, state=replace(outcome.state, parameters=function.matrix(outcome.state.parameters).ravel()))


def _regressed(S: Floats, pairs: Places) -> Floats:
    """K (p, p) of a regression of each node on its neighbours in the rows themselves, made symmetric.

    Near the maximum where rows are many; the identity where the regressions would cost too much or have no solution.
    """
    starts, neighbours = _neighbours(len(S), pairs)
    degrees = np.diff(starts)
    if float((degrees.astype(np.float64) ** 3).sum()) > START_COST * float(len(S)) ** 3:
        return np.eye(len(S))
    weights = np.zeros(len(neighbours))
    for degree in np.unique(degrees[degrees > 0]).tolist():
        alike = np.flatnonzero(degrees == degree)
        for nodes in np.array_split(alike, 1 + len(alike) * degree**2 // START_NUMBERS):
            places = starts[nodes][:, None] + np.arange(degree)
            near = neighbours[places]
            try:
                weights[places] = np.linalg.solve(
                    S[near[:, :, None], near[:, None, :]], S[near, nodes[:, None]][..., None]
                )[..., 0]
            except np.linalg.LinAlgError:
                return np.eye(len(S))
    with np.errstate(all="ignore"):  # A combination of columns without variance.
        K = _from_regressions(S, starts, neighbours, weights)
    return K if np.isfinite(K).all() else np.eye(len(S))


def entry_information(W: Floats, rows: Places, columns: Places) -> Floats:
    """Information of the free entries of K in one row (m, m), ``tr(W E_a W E_b) / 2``."""
    twice, first, second = np.where(rows == columns, 0.5, 1.0), W[rows], W[columns]
    information = first.take(rows, axis=1)
    information *= second.take(columns, axis=1)
    information += first.take(columns, axis=1) * second.take(rows, axis=1)
    information *= twice
    information *= twice[:, None]
    return information
