"""Gibbs sampling: approximate inference in any discrete Markov network, by many chains side by side.

A visit of a site draws its state given all others, which leaves the law as it is (Geman and Geman 1984). A systematic
scan visits the sites colour by colour: those of one colour share no factor, so their order does not matter. A random
scan visits as many sites, each chosen at random. Chains persist: what `GibbsSampler` changes are the arrays of
`Chains`, which hold all there is to go on from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from suffice.errors import OptionError, SizeError, listing
from suffice.kernels.gibbs import GibbsKernel
from suffice.kernels.gibbs_layout import Floats, Ints, Layout

States = NDArray[np.uint8]
#: Features as a sparse matrix by rows of cells: pointer by cell, number of the feature, value.
Matrix = tuple[Ints, Ints, Floats]

SCANS = ("systematic", "random")
#: States of a site that fit into a byte.
MOST_STATES = 255
#: Draws at which the variance of a draw is looked at, across chains.
SNAPSHOTS = 32


@dataclass(eq=False)
class Chains:
    """Chains as they stand: states (sites, chains), random streams (4, chains), and the number of sweeps done.

    clamped (sites, chains): 1 where a site keeps its state, None if none does.
    """

    states: States
    stream: NDArray[np.uint32]
    scan: NDArray[np.uint64]
    clamped: NDArray[np.uint8] | None = None

    @property
    def count(self) -> int:
        """Number of chains."""
        return int(self.states.shape[1])

    def to_arrays(self) -> dict[str, Any]:
        """All that is needed to go on, for checkpoints."""
        return {"states": self.states, "stream": self.stream, "scan": self.scan}

    @classmethod
    def from_arrays(cls, arrays: dict[str, Any], clamped: NDArray[np.uint8] | None = None) -> Chains:
        """Chains that go on from where they stood."""
        kinds = {"states": np.uint8, "stream": np.uint32, "scan": np.uint64}
        found = {name: np.require(arrays[name], kind, ["C", "W"]) for name, kind in kinds.items()}
        return cls(**found, clamped=clamped)


class GibbsSampler:
    """Draws from p(x) proportional to exp(sum of log-potentials), one site at a time.

    Args:
        cards: number of states of each site.
        scopes: the sites of each factor, in the order of the axes of its table.
        scan: ``"systematic"``, colour by colour, or ``"random"``.
        threads: most threads, over chains; all cores by default. Results do not depend on it.
    """

    def __init__(
        self,
        cards: Sequence[int],
        scopes: Sequence[Sequence[int]],
        *,
        scan: str = "systematic",
        threads: int | None = None,
    ) -> None:
        """See the class."""
        if scan not in SCANS:
            raise OptionError(f"scan is {scan!r}; expected one of {listing(SCANS)}.")
        if max(cards, default=1) > MOST_STATES:
            raise SizeError(f"A variable has {max(cards):,} states; Gibbs sampling takes at most {MOST_STATES}.")
        self.layout = Layout.of(cards, scopes)
        self.scan = scan
        self._kernel = GibbsKernel(self.layout, most_threads=threads)
        self._order = np.concatenate([np.zeros(0, np.int64), *self.layout.colours]).astype(np.int64)

    def load(self, logs: Floats) -> None:
        """Take the log-potentials of all factors (cells,), finite or minus infinity."""
        self._kernel.load(logs)

    @property
    def form(self) -> str:
        """The loop that serves: "pairs" (two states), "potts" or "tables"."""
        return self._kernel.form

    def start(
        self, count: int, random_state: Any = None, *, states: ArrayLike | None = None, clamped: ArrayLike | None = None
    ) -> Chains:
        """New chains.

        states (sites, count): where they begin, at random by default; clamped (sites,) or (sites, count): truth values,
        sites that keep these states. random_state: a seed or a NumPy generator.
        """
        generator = np.random.default_rng(random_state)
        seeds = np.random.SeedSequence(generator.integers(0, 2**63, 2).tolist())
        stream = seeds.generate_state(4 * count, np.uint32).astype(np.uint32).reshape(4, count)
        if states is None:
            begin = (generator.random((self.layout.n_sites, count)) * self.layout.cards[:, None]).astype(np.uint8)
        else:
            begin = np.array(states, dtype=np.uint8, order="C")
            if begin.shape != (self.layout.n_sites, count) or (begin >= self.layout.cards[:, None]).any():
                raise OptionError(
                    f"The states have shape {begin.shape}; expected {(self.layout.n_sites, count)} codes."
                )
        held = None
        if clamped is not None:
            mask = np.asarray(clamped, dtype=bool)
            held = np.array(np.broadcast_to(mask.reshape(self.layout.n_sites, -1), begin.shape), np.uint8, order="C")
        scan = np.array([generator.integers(0, 2**63), 0], np.uint64)
        return Chains(begin, stream, scan, held)

    def sweep(self, chains: Chains, count: int = 1) -> None:
        """Move all chains by this many sweeps, in place."""
        held, order = np.zeros((0, chains.count), np.uint8), self._order
        if chains.clamped is not None:
            everywhere = np.asarray(chains.clamped.all(axis=1))
            order = order[~everywhere[order]]
            held = chains.clamped if chains.clamped[~everywhere].any() else held
        for _ in range(count):
            visits = order
            if self.scan == "random" and len(order):
                key = [int(part) for part in chains.scan]
                visits = order[np.random.Generator(np.random.Philox(key=key)).integers(0, len(order), len(order))]
            self._kernel.sweep(visits, chains.states, chains.stream, held)
            chains.scan[1] += np.uint64(1)

    def shares(self, chains: Chains) -> Floats:
        """Share of the chains in each cell of each factor (cells,)."""
        return self._kernel.counts(chains.states) / chains.count

    def counts(self, states: States, weights: Floats | None = None) -> Floats:
        """Weight of the rows, columns of states, in each cell of each factor (cells,)."""
        return self._kernel.counts(states, weights)

    def log_values(self, states: States, logs: Floats) -> Floats:
        """Sum of these log-potentials (cells,) in each chain (chains,)."""
        return self._kernel.log_values(states, logs)

    def add_features(self, matrix: Matrix, states: States, out: Floats) -> None:
        """Add the features of each chain to out (features, chains)."""
        self._kernel.add_features(matrix, states, out)

    def conditional(self, site: int, states: States) -> Floats:
        """P(site | all others) in each chain (card, chains)."""
        return self._kernel.conditional(site, states)

    def pseudo_likelihood(self, states: States, weights: Floats) -> tuple[float, Floats]:
        """Sum of weight times log p(site | others) over rows (columns of states) and sites; slope by log-potential."""
        return self._kernel.pseudo_likelihood(states, weights)


@dataclass(frozen=True, eq=False)
class ChainMeans:
    """Means of some functions (k,) over all draws, with what the chains say about their errors.

    The chains are independent, so the spread of their means gives the error of the overall mean, whatever their
    correlation in time: error = sd(chain means) / sqrt(chains). The effective sample size is the variance of a draw
    over the squared error. R-hat is the square root of the variance of a draw over that within half chains, 1 where
    they have mixed (Gelman et al. 2013, section 11.4).
    """

    mean: Floats
    error: Floats
    effective_sample_size: Floats
    r_hat: Floats
    draws: int


class Tracker:
    """Adds up functions (k, chains) over draws: sums of each half of a chain, and squares at some draws only."""

    def __init__(self, add: Callable[[States, Floats], None], size: int, chains: int, draws: int) -> None:
        """add(states, out): adds the functions of states to out (k, chains)."""
        self._add, self._draws, self._seen = add, draws, 0
        self._sums = np.zeros((2, size, chains))
        self._counts = [0, 0]
        self._every = max(1, draws // SNAPSHOTS)
        self._mean, self._squares, self._snapshots = np.zeros(size), np.zeros(size), 0

    def add(self, states: States) -> None:
        """One draw of all chains."""
        half = int(self._seen >= self._draws // 2)
        self._add(states, self._sums[half])
        self._counts[half] += 1
        if self._seen % self._every == 0:
            values = np.zeros(self._sums.shape[1:])
            self._add(states, values)
            mean = values.mean(axis=1)
            self._mean += mean
            self._squares += values.var(axis=1) + mean**2
            self._snapshots += 1
        self._seen += 1

    def result(self) -> ChainMeans:
        """Means and errors of what was added."""
        total, chains = self._seen, self._sums.shape[2]
        means = self._sums.sum(axis=0) / total
        mean = means.mean(axis=1)
        between = means.var(axis=1, ddof=1) if chains > 1 else np.full(len(means), np.nan)
        variance = np.maximum(self._squares / self._snapshots - (self._mean / self._snapshots) ** 2, 0.0)
        error, most = np.sqrt(between / chains), float(total * chains)
        with np.errstate(divide="ignore", invalid="ignore"):
            size = np.where(error > 0.0, variance / error**2, most)
        return ChainMeans(mean, error, np.minimum(size, most), self._r_hat(variance), total)

    def _r_hat(self, variance: Floats) -> Floats:
        """sqrt(variance / within), where the half chains differ by what the variance has beyond that within them."""
        if min(self._counts) < 2:
            return np.full(len(variance), np.nan)
        halves = [part / count for part, count in zip(self._sums, self._counts, strict=True)]
        between = np.concatenate(halves, axis=1).var(axis=1, ddof=1)
        within = variance - between
        with np.errstate(divide="ignore", invalid="ignore"):
            found = np.sqrt(variance / within)
        return np.where(within > 0.0, found, np.where(between > 0.0, np.inf, 1.0))


def track(
    sampler: GibbsSampler, chains: Chains, functions: tuple[Callable[[States, Floats], None], int], draws: int
) -> ChainMeans:
    """Means over draws, one sweep apart, of k functions of the states: `functions` is what adds them, and k."""
    tracker = Tracker(*functions, chains.count, draws)
    for _ in range(draws):
        sampler.sweep(chains)
        tracker.add(chains.states)
    return tracker.result()
