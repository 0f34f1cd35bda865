"""Many categorical distributions at once: rows of probabilities, as tables, chains and hidden states have them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.families import simplex
from suffice.families.simplex import relative_entropy

Codes = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Categoricals:
    """Categorical distributions over K states, one for each cell: probabilities (..., K).

    Values are codes 0, ..., K - 1, and -1 for a missing one. Statistics are counts (..., K), observed or expected.
    Answers about values have the values first: (n, ...); others one entry for each cell: (...).
    """

    probabilities: Floats

    # -- learning ----------------------------------------------------------------------------------------------------

    @classmethod
    def most_likely(cls, counts: Floats, *, before: Floats | float = np.nan, least: float = 0.0) -> Categoricals:
        """Counts divided by their sum, which maximises ``sum n log p``; cells of at most `least` stay as `before`.

        With pseudo-counts added to the counts it is the posterior mean under Dirichlet(pseudo), and the MAP under
        Dirichlet(1 + pseudo).
        """
        total = counts.sum(axis=-1, keepdims=True)
        used = total > least
        return cls(np.where(used, counts / np.where(used, total, 1.0), before))

    def log_likelihood(self, counts: Floats) -> Floats:
        """``sum n log p``, with 0 log 0 = 0 (...).

        Of pseudo-counts it is the log density of Dirichlet(1 + pseudo), up to a constant.
        """
        from scipy.special import xlogy

        return np.asarray(xlogy(counts, self.probabilities).sum(axis=-1))

    def shortfall(self, counts: Floats) -> Floats:
        """How far the mean log-likelihood of a row is below its maximum (...): KL(n / N || p), and 0 without counts."""
        best = self.most_likely(counts, before=self.probabilities).probabilities
        return relative_entropy(best, self.probabilities)

    def gap(self, counts: Floats) -> tuple[Floats, Floats]:
        """Largest gap of observed and expected shares in standard deviations of a row, and the Newton decrement (...).

        States of probability zero are left out of the decrement: no share leads out of them.
        """
        p = self.probabilities
        slope = self.most_likely(counts, before=p).probabilities - p
        used = p > 0
        gap = np.abs(slope) / np.where(used & (p < 1), np.sqrt(p * (1 - p)), 1.0)
        square = np.where(used, slope**2 / np.where(used, p, 1.0), 0.0).sum(axis=-1)
        return np.asarray(gap.max(axis=-1)), np.sqrt(square)

    def n_params(self, allowed: NDArray[np.bool_] | None = None) -> NDArray[np.int64]:
        """Free parameters of each cell (...): states that may occur, less one."""
        may = np.ones(self.probabilities.shape, bool) if allowed is None else allowed
        return np.asarray(np.maximum(may.sum(axis=-1, dtype=np.int64) - 1, 0))

    # -- evaluation --------------------------------------------------------------------------------------------------

    def prob(self, codes: Codes) -> Floats:
        """Probability of each value in each cell (n, ...); a missing value has probability one."""
        table = np.moveaxis(self.probabilities, -1, 0)
        # The code -1 of a missing value wraps to the last entry.
        return np.concatenate([table, np.ones((1, *table.shape[1:]))])[codes]

    def log_prob(self, codes: Codes) -> Floats:
        """Log probability of each value in each cell (n, ...); 0 for a missing one."""
        table = np.moveaxis(self.probabilities, -1, 0)
        with np.errstate(divide="ignore"):
            return np.concatenate([np.log(table), np.zeros((1, *table.shape[1:]))])[codes]

    def entropy(self) -> Floats:
        """-sum p log p (...)."""
        from scipy.special import entr

        return np.asarray(entr(self.probabilities).sum(axis=-1))

    def divergence(self, other: Categoricals) -> Floats:
        """KL of each cell from that of another (...); inf where the other gives a possible state no mass."""
        return relative_entropy(self.probabilities, other.probabilities)

    def sample(self, n: int, random: np.random.Generator) -> Any:
        """`n` codes in each cell (n, ...)."""
        cells = self.probabilities.reshape(-1, self.probabilities.shape[-1])
        drawn = [random.choice(cells.shape[1], size=n, p=row) for row in cells]
        return np.stack(drawn, axis=-1).reshape(n, *self.probabilities.shape[:-1])

    def draw_each(self, random: np.random.Generator) -> Codes:
        """One code of every cell of (C, K) along one axis (C,), by inversion."""
        below = np.cumsum(self.probabilities, axis=-1)[:, :-1]
        return np.asarray((random.random((len(below), 1)) > below).sum(axis=1))

    def draw(self, cells: Codes, random: np.random.Generator) -> Codes:
        """One code of each cell asked for (n,), of cells (C, K) along one axis, by inversion of the cumulated rows."""
        upper = np.cumsum(self.probabilities, axis=-1)
        upper[:, -1] = 1.0
        levels, codes = random.random(len(cells)), np.empty(len(cells), np.intp)
        for cell in range(len(upper)):
            own = cells == cell
            codes[own] = np.searchsorted(upper[cell], levels[own], side="right")
        return codes


@dataclass(frozen=True, eq=False)
class Dirichlets:
    """Dirichlet distributions of rows of probabilities, one for each cell: alpha (..., K).

    They are conjugate to `Categoricals`: after counts (..., K) alpha has become alpha + counts.
    """

    alpha: Floats

    def mean(self) -> Floats:
        """Alpha over its sum (..., K), which is also the probability of the next row."""
        return np.asarray(self.alpha / self.alpha.sum(axis=-1, keepdims=True))

    def mode(self) -> Floats | None:
        """(alpha - 1) / sum(alpha - 1) (..., K); None where some cell has no single mode.

        It has none where an alpha is below one, as the density has no bound there, or where all are one.
        """
        excess = self.alpha - 1
        total = excess.sum(axis=-1, keepdims=True)
        return None if (excess < 0).any() or not (total > 0).all() else np.asarray(excess / total)

    def variance(self) -> Floats:
        """Of each probability (..., K)."""
        mean = self.mean()
        return np.asarray(mean * (1 - mean) / (self.alpha.sum(axis=-1, keepdims=True) + 1))

    def quantiles(self, share: float) -> Floats:
        """Of each probability (..., K), which has a beta distribution."""
        from scipy.special import betaincinv

        rest = np.apply_along_axis(simplex.others, -1, self.alpha)
        return np.asarray(betaincinv(self.alpha, rest, share), dtype=np.float64)

    def log_evidence(self, counts: Floats) -> Floats:
        """Log probability of rows with these counts, in their order: log B(alpha + counts) - log B(alpha) (...)."""
        from scipy.special import gammaln

        after = self.alpha + counts
        totals = gammaln(self.alpha.sum(axis=-1)) - gammaln(after.sum(axis=-1))
        return np.asarray(totals + (gammaln(after) - gammaln(self.alpha)).sum(axis=-1))

    def log_prob(self, points: Floats) -> Floats:
        """Log density at probabilities (..., K), cell by cell (...)."""
        cells = zip(self.alpha.reshape(-1, self.alpha.shape[-1]), points.reshape(-1, points.shape[-1]), strict=True)
        logs = [float(simplex.log_density(alpha, point)) for alpha, point in cells]
        return np.array(logs).reshape(self.alpha.shape[:-1])

    def sample(self, n: int, random: np.random.Generator) -> Floats:
        """`n` draws in each cell (n, ..., K)."""
        cells = [random.dirichlet(alpha, size=n) for alpha in self.alpha.reshape(-1, self.alpha.shape[-1])]
        return np.stack(cells, axis=1).reshape(n, *self.alpha.shape)
