"""The likelihood of a noisy-OR: sum over rows of -t (absent) or log(1 - exp(-t)) (present), t = A w.

It is concave in w. Rows without the node enter only through the number of times each cause was active in them.

That of a noisy-MAX is a sum of such likelihoods, one for each state above the lowest: among the rows that do not exceed
the state, is it reached? Each has weights of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats

#: Rows of the design made at a time, and numbers of a design that is kept between steps.
BLOCK_ROWS = 2**15
MOST_KEPT = 2**24
#: Rows of one product of matrices: it stays in the cache, and below the size that is worth a second thread.
PRODUCT_ROWS = 512

#: How often a prior lets each cause alone fail, and work.
Pseudo = tuple[float, float]
NO_PSEUDO: Pseudo = (0.0, 0.0)


@dataclass(frozen=True)
class Trials:
    """Counts by distinct causes; there are m weights.

    `active` (k, s) holds the positions of the weights of the causes of each distinct present row, m where there is
    none; `present` (k,) their weight; `absent` (m,) the weight of the rows without the node in which a cause was
    active; `m` the number of weights.
    """

    active: NDArray[np.intp]
    present: Floats
    absent: Floats
    m: int

    @classmethod
    def of(
        cls,
        places: Sequence[NDArray[np.intp]],
        leak: bool,
        cells: NDArray[Any],
        caused: NDArray[np.bool_],
        weights: Floats,
    ) -> Trials:
        """From joint codes (n, p + 1) of (parents, node), whether the node is present in them, and their weights."""
        m = int(leak) + sum(len(positions) - 1 for positions in places)
        columns = [np.where(positions < 0, m, positions)[cells[:, axis]] for axis, positions in enumerate(places)]
        if leak:
            columns.insert(0, np.zeros(len(cells), dtype=np.intp))
        active = np.stack(columns, axis=1) if columns else np.empty((len(cells), 0), dtype=np.intp)
        gone = active[~caused]
        absent = np.bincount(gone.ravel(), np.repeat(weights[~caused], gone.shape[1]), minlength=m + 1)[:m]
        return cls(active[caused], weights[caused], absent.astype(np.float64), m)

    @cached_property
    def seen(self) -> Floats:
        """Weight of the present rows in which each cause was active (m,)."""
        return self._spread(self.present)

    def _spread(self, values: Floats) -> Floats:
        """A' values: sums (m,) over the rows in which each cause is active, of values (k,)."""
        total = np.zeros(self.m)
        for rows, design in self._blocks():
            total += values[rows] @ design
        return total

    def with_pseudo(self, pseudo: Pseudo) -> Trials:
        """With rows against and for each cause alone, which is what a prior stands for."""
        failed, worked = pseudo
        if not (failed or worked):
            return self
        alone = np.full((self.m, self.active.shape[1]), self.m)
        alone[:, 0] = np.arange(self.m)
        present = np.concatenate([self.present, np.full(self.m, worked)])
        return Trials(np.concatenate([self.active, alone]), present, self.absent + failed, self.m)

    def without(self, gone: NDArray[np.bool_]) -> tuple[Trials, NDArray[np.intp]]:
        """The problem without some weights (m,) and the rows they cause, and the positions of the weights left."""
        kept = np.flatnonzero(~gone)
        if not gone.any():
            return self, kept
        rows = ~np.append(gone, False)[self.active].any(axis=1)
        renumber = np.full(self.m + 1, len(kept), dtype=np.intp)
        renumber[kept] = np.arange(len(kept))
        return Trials(renumber[self.active[rows]], self.present[rows], self.absent[kept], len(kept)), kept

    def strengths(self, weights: Floats) -> Floats:
        """The strength t of the causes of each present row (k,)."""
        # Zero times inf or NaN is no number: such weights are added where they are active.
        finite = np.where(np.isfinite(weights), weights, 0.0)
        total = np.concatenate([np.zeros(0), *(design @ finite for _, design in self._blocks())])
        # An infinite cause is certain, whatever an unknown one beside it is worth: it comes last.
        for special, value in ((np.isnan(weights), np.nan), (np.isinf(weights), np.inf)):
            if special.any():
                total[np.append(special, False)[self.active].any(axis=1)] = value
        return total

    def log_likelihood(self, weights: Floats) -> float:
        """At some weights (m,), which may be inf; NaN where a row depends on a weight that is NaN."""
        from scipy.special import xlogy

        gone = np.where(self.absent > 0, self.absent, 0.0)
        finite = np.where(self.absent > 0, weights, 0.0)
        with np.errstate(divide="ignore"):
            return float(xlogy(self.present, -np.expm1(-self.strengths(weights))).sum() - gone @ finite)

    def gradient(self, weights: Floats, pseudo: Pseudo = NO_PSEUDO) -> Floats:
        """Slopes (m,): sum of present / (e^t - 1), less the absent rows; `pseudo` as in `objective`."""
        failed, worked = pseudo
        with np.errstate(divide="ignore", over="ignore"):
            slopes = self._spread(self.present / np.expm1(self.strengths(weights))) - self.absent
            return slopes + (worked / np.expm1(weights) - failed if worked else 0.0)

    def objective(self, weights: Floats, pseudo: Pseudo = NO_PSEUDO) -> tuple[float, Floats, Floats]:
        """Value, gradient and information of the log-likelihood with rows against and for each cause alone."""
        failed, worked = pseudo
        strength = self.strengths(weights)
        value = float(self.present @ np.log(-np.expm1(-strength)) - self.absent @ weights)
        odds = 1 / np.expm1(strength)
        gradient = self._spread(self.present * odds) - self.absent
        information = self._weighted_products(self.present * odds * (1 + odds))
        if worked:
            value += float((worked * np.log(-np.expm1(-weights)) - failed * weights).sum())
            odds = 1 / np.expm1(weights)
            gradient += worked * odds - failed
            information += np.diag(worked * odds * (1 + odds))
        return value, gradient, information

    def _weighted_products(self, values: Floats) -> Floats:
        """A' diag(values) A (m, m)."""
        total = np.zeros((self.m, self.m))
        for rows, design in self._blocks():
            mine = values[rows]
            for start in range(0, len(mine), PRODUCT_ROWS):
                part = design[start : start + PRODUCT_ROWS]
                total += part.T @ (part * mine[start : start + PRODUCT_ROWS, None])
        return total

    def _blocks(self) -> Iterator[tuple[slice, Floats]]:
        if len(self.active) * self.m <= MOST_KEPT:
            yield slice(None), self._design
            return
        for start in range(0, len(self.active), BLOCK_ROWS):
            rows = slice(start, start + BLOCK_ROWS)
            yield rows, _design(self.active[rows], self.m)

    @cached_property
    def _design(self) -> Floats:
        return _design(self.active, self.m)

    def upper_bound(self, weights: Floats) -> float:
        """A log-likelihood that no weights exceed.

        For multipliers s >= 0 of the present rows with A' s <= absent, the dual value
        ``sum over rows of max over t of (n log(1 - e^-t) - s t)`` is an upper bound. The slopes ``s = n / (e^t - 1)``,
        scaled down until they are feasible, make it tight at the maximum.
        """
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            slope = self.present / np.expm1(self.strengths(weights))
            if not np.isfinite(slope).all():
                return 0.0
            spread = self._spread(slope)
            share = min(1.0, float(np.where(spread > 0, self.absent / spread, 1.0).min(initial=1.0)))
            s, n = slope * share, self.present
            terms = -s * np.log1p(n / s) - n * np.log1p(s / n)
        return float(np.where((s > 0) & (n > 0), terms, 0.0).sum())


def levels_of(
    places: Sequence[NDArray[np.intp]], leak: bool, order: Sequence[int], cells: NDArray[Any], weights: Floats
) -> tuple[Trials, ...]:
    """The trials of each state above the lowest, from joint codes (n, p + 1) and weights; `order` as in the node."""
    reached = np.argsort(order)[cells[:, -1]]
    levels = []
    for level in range(1, len(order)):
        some = reached <= level
        levels.append(Trials.of(places, leak, cells[some], reached[some] == level, weights[some]))
    return tuple(levels)


def pseudo_of(pseudo: float | None, level: int) -> Pseudo:
    """The pseudo-rows of a state: each cause alone brings about every state so many times, `level` of them lower."""
    return (level * (pseudo or 0.0), pseudo or 0.0)


def _design(active: NDArray[np.intp], m: int) -> Floats:
    """The causes of each row as zeros and ones (k, m)."""
    design = np.zeros((len(active), m + 1))
    np.put_along_axis(design, active, 1.0, axis=1)
    return np.ascontiguousarray(design[:, :m])
