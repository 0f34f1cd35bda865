"""Newton's method for normal distributions whose precision has zeros in given places, and their objective.

The free entries of the precision are its diagonal and its edges; see `suffice.solvers.covariance_selection`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np

from suffice.array_types import Floats
from suffice.fitting.control import Control, Outcome, State, iterate
from suffice.solvers.covariance_selection import Places, from_regressions, neighbours_of
from suffice.solvers.newton import HALVINGS, ROUNDING, solve_truncated
from suffice.solvers.registry import Objective

#: Free entries of K up to which Newton's equations are solved by a factor of the whole information from the first step,
#: and up to which they are once conjugate gradients have taken more products than a share of their number.
DENSE, MOST_DENSE, PRODUCTS = 250, 3_000, 1 / 12
#: Nodes from which products with K are taken over its entries alone and inverses by SciPy; below, NumPy is quicker.
SPARSE = 100
#: Shares of what regressions give off the diagonal, of which the first with a positive definite K is a start.
KEPT = (1.0, 0.99, 0.9, 0.5)
#: Regressions may cost so many times the cube of the nodes to give Newton's method a start, and hold so many numbers.
START_COST, START_NUMBERS = 4.0, 4_000_000
#: Variances beyond which the information, sums of products of two of them, is no number.
MOST_VARIANCE = math.sqrt(np.finfo(np.float64).max) / 4.0


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
        inverted = _inverted(K)
        if inverted is None:
            return -math.inf, np.zeros_like(x), None
        half_log_det, W = inverted
        value = half_log_det - 0.5 * float(np.vdot(self.S, K))
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
        information = entry_information(W, self.pairs)
        return information if self.ridge is None else information + np.diag(self.ridge.precision)

    def products(self, x: Floats) -> Callable[[Floats], Floats]:
        """The function that multiplies minus the Hessian by a vector (m,)."""
        W = self.whole(x)[2]
        assert W is not None  # Asked only at points that were reached.
        return self.products_of(W)

    def products_of(self, W: Floats) -> Callable[[Floats], Floats]:
        """The same where K^-1 is W (p, p): entry (i, j) of ``W V W`` is row i of W times row j of ``W V``."""
        p, held = len(W), 0.0 if self.ridge is None else self.ridge.precision
        rows, columns = self.pairs.T
        left = W[rows]

        def product(vector: Floats) -> Floats:
            moved = np.ascontiguousarray(((self._sparse(vector) if p >= SPARSE else self.matrix(vector)) @ W).T)
            image = np.empty_like(vector)
            np.einsum("ij,ij->i", W, moved, out=image[:p])
            np.einsum("ij,ij->i", left, moved[columns], out=image[p:])
            image *= self._twice
            image += held * vector
            return image

        return product

    def length_of(self, W: Floats, vector: Floats) -> float:
        """The length of a direction D of K (m,) where K^-1 is W (p, p), as log det measures it: sqrt(tr(W D W D))."""
        moved = self.matrix(vector) @ W
        return math.sqrt(max(float(np.einsum("ij,ji->", moved, moved)), 0.0))

    def _sparse(self, x: Floats) -> Any:
        """K as a sparse array, which is good until the next one is asked for."""
        taken, K = self._rows
        K.data = x[taken]
        return K

    @cached_property
    def _rows(self) -> tuple[Places, Any]:
        """Which free entry each entry of K by rows is, and a sparse array of K's places."""
        from scipy.sparse import csr_array

        rows, columns = self.entries
        p, every = len(self.S), np.arange(len(rows))
        taken, down = np.concatenate([every, every[p:]]), np.concatenate([rows, columns[p:]])
        across = np.concatenate([columns, rows[p:]])
        order = np.lexsort((across, down))
        starts = np.concatenate([[0], np.cumsum(np.bincount(down, minlength=p))])
        return taken[order], csr_array((np.zeros(len(order)), across[order], starts), shape=self.S.shape)

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
            information = function.information_of(W)
            information *= units
            information *= units[:, None]
            direction = units * _solved(information, units * slope)
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
        shorter = (2.0**-k / (1.0 + float(before.memory["length"])) for k in range(HALVINGS))
        for size in (1.0,) if blind else chain((1.0,), shorter):
            moved = state(before.parameters + size * before.memory["direction"], bool(before.memory["factored"]))
            if moved is None:
                continue
            if moved.gap < before.gap if blind else moved.objective - before.objective >= 1e-4 * size * slope:
                return moved
        return replace(before, memory={**before.memory, "stalled": True})

    starts = (*(_starts(_regressed(S, pairs)) if K is None else (K,)), np.eye(len(S)))
    # Where regressions are no precision themselves, conjugate gradients take many products for poor directions.
    few = len(function.entries[0])
    tried = (state(s[function.entries], few <= (MOST_DENSE if number else DENSE)) for number, s in enumerate(starts))
    first = next(state for state in tried if state is not None)
    outcome = iterate(step, first, control, problem=problem)
    return replace(outcome, state=replace(outcome.state, parameters=function.matrix(outcome.state.parameters).ravel()))


def _starts(K: Floats) -> Iterator[Floats]:
    """K with shares of its entries off the diagonal: what regressions give is often indefinite by little."""
    diagonal = np.diag(np.diag(K))
    for share in KEPT:
        yield K if share == 1.0 else diagonal + share * (K - diagonal)


def _regressed(S: Floats, pairs: Places) -> Floats:
    """K (p, p) of a regression of each node on its neighbours in the rows themselves, made symmetric.

    Near the maximum where rows are many; the identity where the regressions would cost too much or have no solution.
    """
    starts, neighbours = neighbours_of(len(S), pairs)
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
        K = from_regressions(S, starts, neighbours, weights)
    return K if np.isfinite(K).all() else np.eye(len(S))


def entry_information(W: Floats, pairs: Places) -> Floats:
    """Information of the diagonal and the edges of K in one row (m, m), ``tr(W E_a W E_b) / 2`` with W = K^-1 (p, p).

    Rows are gathered from arrays (p, m - p), as whole rows are copied the fastest.
    """
    p, (rows, columns) = len(W), pairs.T
    first, second = np.ascontiguousarray(W[rows].T), np.ascontiguousarray(W[columns].T)
    information = np.empty((p + len(pairs), p + len(pairs)))
    np.multiply(0.5 * W, W, out=information[:p, :p])
    across = np.multiply(first, second, out=information[:p, p:])
    information[p:, :p] = across.T
    edges, crossed = first[rows], second[rows]
    edges *= second[columns]
    np.add(edges, crossed * crossed.T, out=information[p:, p:])
    return information


def _inverted(K: Floats) -> tuple[float, Floats] | None:
    """Half the log-determinant of K and its inverse; None where it is not positive definite."""
    if len(K) < SPARSE:
        try:
            factor = np.linalg.cholesky(K)
        except np.linalg.LinAlgError:
            return None
        half = np.linalg.inv(factor)
        return float(np.log(np.diag(factor)).sum()), np.asarray(half.T @ half)
    from scipy.linalg.lapack import dpotrf, dpotri

    factor, failed = dpotrf(K)
    if failed:
        return None
    half_log_det = float(np.log(np.diag(factor)).sum())
    above, failed = dpotri(factor, overwrite_c=True)
    return None if failed else (half_log_det, np.where(np.tri(len(K), dtype=np.bool_), above.T, above))


def _solved(A: Floats, b: Floats) -> Floats:
    """The x of ``A x = b`` for a positive definite A, which is overwritten; no solution where A is not."""
    if len(A) <= DENSE:
        return np.asarray(np.linalg.solve(A, b), dtype=np.float64)
    from scipy.linalg.lapack import dposv

    _, x, failed = dposv(A.T, b, overwrite_a=True)
    return np.zeros_like(b) if failed else np.asarray(x)
