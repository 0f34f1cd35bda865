"""Means over Markov chains, and what the chains say about them: standard errors, effective sample size, R-hat."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats, States
from suffice.fitting.report import MIXED

#: What adds k functions of states (sites, chains) to an array (k, chains), and k.
Functions = tuple[Callable[[States, Floats], None], int]

#: Least number of draws at which the variance of a draw is looked at, across chains ...
SNAPSHOTS = 32
#: ... and as many as give this many numbers, up to all draws.
NUMBERS = 1 << 26
#: A variance whose own standard error is a larger share of it than this tells nothing about mixing.
UNSURE = 0.3


class Walk(Protocol):
    """Chains as they stand."""

    @property
    def states(self) -> States:
        """Codes (sites, chains)."""
        ...

    @property
    def count(self) -> int:
        """Number of chains."""
        ...


@dataclass(frozen=True, eq=False)
class ChainMeans:
    """Means of some functions (k,) over all draws, with what the chains say about their errors.

    The chains are independent, so the spread of their means gives the error of the overall mean, whatever their
    correlation in time: error = sd(chain means) / sqrt(chains). The effective sample size is the variance of a draw
    over the squared error. R-hat is the square root of the variance of a draw over that within half chains, 1 where
    they have mixed and infinite where a function moves in no chain and differs between them (Gelman et al. 2013,
    section 11.4). Both are NaN for functions that vary too seldom for their variance to be known.

    `levels` is the number of temperatures where replicas were exchanged, 1 for chains of the distribution alone.
    """

    mean: Floats
    error: Floats
    effective_sample_size: Floats
    r_hat: Floats
    draws: int
    levels: int = 1

    def mixing(self, judged: NDArray[np.bool_] | None = None) -> tuple[float, float]:
        """The smallest effective sample size and the largest R-hat of functions that vary; judged (k,): some of them.

        Infinity and 1 where no function varies.
        """
        known = ~np.isnan(self.r_hat) & ~np.isnan(self.effective_sample_size)
        if judged is not None:
            known &= judged
        size = self.effective_sample_size[known].min(initial=np.inf)
        return float(size), float(self.r_hat[known].max(initial=1.0))

    def mixed(self, judged: NDArray[np.bool_] | None = None) -> bool:
        """Whether the chains agree with one another, and are long beside their memory."""
        return self.mixing(judged)[1] <= MIXED


class Tracker:
    """Adds up functions (k, chains) over draws: sums of each half of a chain, and squares at some draws."""

    def __init__(self, functions: Functions, chains: int, draws: int) -> None:
        """See `track`."""
        (self._add, size), self._draws, self._seen = functions, draws, 0
        self._sums = np.zeros((2, size, chains))
        self._counts = [0, 0]
        wanted = max(SNAPSHOTS, NUMBERS // max(1, size * chains))
        self._every = max(1, draws // min(wanted, draws))
        self._mean, self._squares, self._snapshots = np.zeros(size), np.zeros(size), 0
        self._spread, self._spread_squares = np.zeros(size), np.zeros(size)

    def add(self, states: States) -> None:
        """One draw of all chains."""
        half = int(self._seen >= self._draws // 2)
        sums = self._sums[half]
        if self._seen % self._every == 0:
            values = np.zeros(sums.shape)
            self._add(states, values)
            sums += values
            mean, spread = values.mean(axis=1), values.var(axis=1)
            self._mean += mean
            self._squares += mean**2
            self._spread += spread
            self._spread_squares += spread**2
            self._snapshots += 1
        else:
            self._add(states, sums)
        self._counts[half] += 1
        self._seen += 1

    def result(self) -> ChainMeans:
        """Means and errors of what was added."""
        total, chains = self._seen, self._sums.shape[2]
        means = self._sums.sum(axis=0) / total
        mean = means.mean(axis=1)
        between = means.var(axis=1, ddof=1) if chains > 1 else np.full(len(means), np.nan)
        variance, known = self._variance()
        error, most = np.sqrt(between / chains), float(total * chains)
        with np.errstate(divide="ignore", invalid="ignore"):
            size = np.where(error > 0.0, variance / error**2, most)
        size = np.where(known, np.minimum(size, most), np.nan)
        return ChainMeans(mean, error, size, np.where(known, self._r_hat(variance), np.nan), total)

    def _variance(self) -> tuple[Floats, NDArray[np.bool_]]:
        """The variance of a draw (k,), over chains and over time, and where it is known well enough."""
        count = self._snapshots
        spread = self._spread / count
        over_time = self._squares / count - (self._mean / count) ** 2
        variance = np.maximum(spread + over_time, 0.0)
        if self._every == 1:
            return variance, variance > 0.0
        scatter = np.maximum(self._spread_squares / count - spread**2, 0.0)
        return variance, (variance > 0.0) & (np.sqrt(scatter / count) <= UNSURE * spread)

    def _r_hat(self, variance: Floats) -> Floats:
        """sqrt(variance / within), where half chains differ by what the variance has beyond that within them."""
        length = min(self._counts)
        if length < 2:
            return np.full(len(variance), np.nan)
        halves = [part / count for part, count in zip(self._sums, self._counts, strict=True)]
        between = np.concatenate(halves, axis=1).var(axis=1)
        # The mean of a half chain takes up a degree of freedom: independent draws have R-hat 1 whatever its length.
        within = (variance - between) * length / (length - 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = np.sqrt(variance / within)
        stuck = within <= 1e-9 * variance
        return np.where(stuck, np.where(between > 0.0, np.inf, 1.0), np.maximum(ratios, 1.0))


W = TypeVar("W", bound=Walk, contravariant=True)


class Sweeper(Protocol[W]):
    """What moves chains."""

    def sweep(self, chains: W, count: int = 1) -> None:
        """Move all chains by this many sweeps, in place."""
        ...


def track(sampler: Sweeper[W], chains: W, functions: Functions, draws: int, thin: int = 1) -> ChainMeans:
    """Means over draws, `thin` sweeps apart, of k functions of the states."""
    tracker = Tracker(functions, chains.count, draws)
    for _ in range(draws):
        sampler.sweep(chains, thin)
        tracker.add(chains.states)
    return tracker.result()
