"""Gibbs sampling: approximate inference in any discrete Markov network, by many chains side by side.

A visit of a site draws its state given all others, which leaves the distribution as it is (Geman and Geman 1984). A
systematic scan visits the sites colour by colour: those of one colour share no factor, so their order does not matter.
A random scan visits as many sites, each chosen at random. Chains persist: what `GibbsSampler` changes are the arrays of
`GibbsChains`, which hold all there is to go on from.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from suffice.array_types import Floats, Ints, RandomState, States
from suffice.checks import choice, generator
from suffice.choices import Scan, choices
from suffice.errors import OptionError, SizeError
from suffice.kernels.gibbs import GibbsKernel
from suffice.kernels.gibbs_layout import GibbsLayout

#: Features as a sparse matrix by rows of cells: pointer by cell, number of the feature, value.
Matrix = tuple[Ints, Ints, Floats]

SCANS = choices(Scan)
#: States of a site that fit into a byte.
MOST_STATES = 255


@dataclass(eq=False)
class GibbsChains:
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
    def from_arrays(cls, arrays: dict[str, Any], clamped: NDArray[np.uint8] | None = None) -> GibbsChains:
        """Chains that go on from where they stood."""
        kinds = {"states": np.uint8, "stream": np.uint32, "scan": np.uint64}
        checked = {name: np.require(arrays[name], kind, ["C", "W"]) for name, kind in kinds.items()}
        return cls(**checked, clamped=clamped)


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
        choice(scan, "scan", SCANS)
        if max(cards, default=1) > MOST_STATES:
            raise SizeError(f"A variable has {max(cards):,} states; Gibbs sampling takes at most {MOST_STATES}.")
        self.layout = GibbsLayout.of(cards, scopes)
        self.scan = scan
        self._kernel = GibbsKernel(self.layout, most_threads=threads)
        self._order = np.concatenate([np.zeros(0, np.int64), *self.layout.colours]).astype(np.int64)

    def load(self, logs: Floats) -> None:
        """Take the log-potentials of all factors (cells,), finite or minus infinity."""
        self._kernel.load(logs)

    def at(self, logs: Floats) -> GibbsSampler:
        """The same sampler, with these log-potentials of its own."""
        other = copy.copy(self)
        other._kernel = copy.copy(self._kernel)
        other.load(logs)
        return other

    @property
    def form(self) -> str:
        """The loop that serves: "pairs" (two states), "potts" or "tables"."""
        return self._kernel.form

    def start(
        self,
        count: int,
        random_state: RandomState = None,
        *,
        states: ArrayLike | None = None,
        clamped: ArrayLike | None = None,
    ) -> GibbsChains:
        """New chains.

        states (sites, count): where they begin, at random by default; clamped (sites,) or (sites, count): truth values,
        sites that keep these states. random_state: a seed or a NumPy generator.
        """
        rng = generator(random_state)
        seeds = np.random.SeedSequence(rng.integers(0, 2**63, 2).tolist())
        stream = seeds.generate_state(4 * count, np.uint32).astype(np.uint32).reshape(4, count)
        if states is None:
            begin = (rng.random((self.layout.n_sites, count)) * self.layout.cards[:, None]).astype(np.uint8)
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
        scan = np.array([rng.integers(0, 2**63), 0], np.uint64)
        return GibbsChains(begin, stream, scan, held)

    def sweep(self, chains: GibbsChains, count: int = 1) -> None:
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

    def seconds(self, chains: int, sweeps: int) -> float:
        """Estimated time of that many sweeps of that many chains, with their log values, on one core."""
        return self._kernel.seconds(chains, sweeps)

    def shares(self, chains: GibbsChains) -> Floats:
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
