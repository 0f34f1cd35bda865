"""Gibbs sampling on flat tables: which loop serves a model, and over how many threads.

Chains are columns of `states[site, chain]` (uint8). Where all sites have two states and factors join two of them at
most, log-odds are linear in the neighbours and a loop in float32 serves (a lattice of 64 x 64 runs at hundreds of
millions of draws a second); Potts models have a loop of their own; the general loop takes tables of any shape.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats, Ints, States
from suffice.kernels import gibbs_numpy, threads
from suffice.kernels.choice import use_compiled
from suffice.kernels.gibbs_layout import GibbsLayout

Stream = NDArray[np.uint32]

#: Seconds of one draw of a site, and of one draw more in another chain, on the NumPy path.
_NUMPY_SITE, _NUMPY_DRAW = 4e-5, 6e-8
#: Sweeps to expect of a sampler.
_SWEEPS = 5_000
#: Nanoseconds of a draw in the compiled loops, and the least work worth a thread of its own.
_DRAW_NS = {"pairs": 1.6, "potts": 8.0, "tables": 40.0}
_TASK_NS = 3e6
#: Nanoseconds of a member of a factor when log values are added up, and seconds of two calls.
_MEMBER_NS, _CALL = 3.0, 1e-4
#: Most chains that go through a loop together: their buffers stay in the cache.
_BLOCK = 512


class GibbsKernel:
    """Loops over one layout; `load` takes the log-potentials (cells,), which may change at any time."""

    def __init__(self, layout: GibbsLayout, *, most_threads: int | None = None) -> None:
        """Choose NumPy or compiled loops by the size of the model alone."""
        self.layout = layout
        self._threads = most_threads
        seconds = layout.n_sites * (_NUMPY_SITE + 32 * _NUMPY_DRAW)
        self._compiled = use_compiled("gibbs", seconds, calls=_SWEEPS, once=True)

    def load(self, logs: Floats) -> None:
        """Take log-potentials: finite, or minus infinity for cells that cannot be."""
        self.logs = np.ascontiguousarray(logs, dtype=np.float64)
        pairs = self.layout.pairs
        self._odds = None if pairs is None else pairs.odds(self.logs)
        self._potts = None if pairs is None or self._odds is not None else pairs.potts(self.logs)

    @property
    def form(self) -> str:
        """Which loop serves: "pairs", "potts" or "tables"."""
        return "pairs" if self._odds is not None else "potts" if self._potts is not None else "tables"

    def sweep(self, order: Ints, states: States, stream: Stream, held: NDArray[np.uint8]) -> None:
        """Draw the sites in this order, in place; held (sites or 0, chains): where it is not 0, a site is not drawn."""
        if not self._compiled:
            fine = self.form == "tables"
            gibbs_numpy.sweep(self.layout, self.logs, order, states, stream, held, fine=fine)
            return
        loop = self._loop(order, states, stream, held)
        chains = states.shape[1]
        work = _DRAW_NS[self.form] * len(order) * chains
        count = threads.thread_count() if self._threads is None else self._threads
        count = max(1, min(count, int(work / _TASK_NS), chains // 32))
        blocks = max(count, -(-chains // _BLOCK))
        edges = [32 * round(chains / 32 * block / blocks) for block in range(blocks)] + [chains]
        threads.run(lambda part, _: loop(part), list(pairwise(edges)), count)

    def seconds(self, chains: int, sweeps: int) -> float:
        """Estimated time of that many sweeps of that many chains, with their log values, on one core."""
        sites, members = self.layout.n_sites, len(self.layout.factors[2])
        if not self._compiled:
            return 2.0 * sweeps * sites * (_NUMPY_SITE + chains * _NUMPY_DRAW)
        return sweeps * (_CALL + 1e-9 * chains * (_DRAW_NS[self.form] * sites + _MEMBER_NS * members))

    def _loop(self, order: Ints, states: States, stream: Stream, held: NDArray[np.uint8]) -> Any:
        from suffice.kernels.compiled import gibbs as compiled

        pairs = self.layout.pairs
        special = self._odds if self._odds is not None else self._potts
        if pairs is not None and special is not None:
            field, coupling = special[0].astype(np.float32), special[1].astype(np.float32)[pairs.ends]
            loop = compiled.sweep_pairs if self._odds is not None else compiled.sweep_potts
            return lambda part: loop(order, pairs.graph, coupling, field, states, stream, held, part)
        tables = (self.layout.cards, self.layout.places, self.layout.factors, self.logs)
        return lambda part: compiled.sweep_tables(order, *tables, states, stream, held, part)

    def counts(self, states: States, weights: Floats | None = None) -> Floats:
        """Chains, or their weights (chains,), in each cell of each factor (cells,)."""
        ones = np.ones(states.shape[1]) if weights is None else weights
        if not self._compiled:
            return gibbs_numpy.count_cells(self.layout, states, ones)
        from suffice.kernels.compiled import gibbs as compiled

        pairs = self.layout.pairs
        if weights is None and pairs is not None and pairs.card == 2:
            one, both = np.empty(pairs.n_sites), np.empty(len(pairs.first))
            compiled.count_pairs(pairs.first, pairs.second, states, one, both)
            return pairs.counts(one, both, float(states.shape[1]))
        counts = np.zeros(self.layout.n_cells)
        compiled.count_cells(self.layout.factors, states, ones, counts)
        return counts

    def log_values(self, states: States, logs: Floats) -> Floats:
        """Sum of these log-potentials (cells,) in each chain (chains,)."""
        if not self._compiled:
            return gibbs_numpy.add_logs(self.layout, logs, states)
        from suffice.kernels.compiled.gibbs import add_logs

        values = np.zeros(states.shape[1])
        add_logs(self.layout.factors, np.ascontiguousarray(logs, dtype=np.float64), states, values)
        return values

    def add_features(self, matrix: tuple[Ints, Ints, Floats], states: States, out: Floats) -> None:
        """Add the features of each chain to out (features, chains); matrix: rows of cells, as (ptr, column, value)."""
        if not self._compiled:
            gibbs_numpy.add_features(self.layout, matrix, states, out)
            return
        from suffice.kernels.compiled.gibbs import add_features

        add_features(self.layout.factors, matrix, states, out)

    def conditional(self, site: int, states: States) -> Floats:
        """P(site | all others) in each chain (card, chains)."""
        logs = gibbs_numpy.conditional(self.layout, self.logs, site, states)
        logs = np.exp(logs - logs.max(axis=0))
        return np.asarray(logs / logs.sum(axis=0))

    def pseudo_likelihood(self, states: States, weights: Floats) -> tuple[float, Floats]:
        """Sum over rows (columns of states) and sites of weight times log p(site | others); its slope (cells,)."""
        if not self._compiled:
            return gibbs_numpy.pseudo_likelihood(self.layout, self.logs, states, weights)
        count = threads.thread_count() if self._threads is None else self._threads
        parts = np.array_split(np.arange(self.layout.n_sites), max(1, min(4 * count, self.layout.n_sites)))
        answers: list[tuple[float, Floats]] = [(0.0, np.zeros(0))] * len(parts)

        def work(number: int, _: int) -> None:
            answers[number] = self._pseudo_part(parts[number], states, weights)

        threads.run(work, range(len(parts)), min(count, len(parts)))
        value, slope = sum(part[0] for part in answers), np.sum([part[1] for part in answers], axis=0)
        if self._odds is None or self.layout.pairs is None:
            return value, slope
        pairs = self.layout.pairs
        ends = np.bincount(pairs.ends, slope[pairs.n_sites :], len(pairs.first)).astype(np.float64)
        return value, pairs.turned(slope[: pairs.n_sites], ends)

    def _pseudo_part(self, sites: Ints, states: States, weights: Floats) -> tuple[float, Floats]:
        """Value and slope over some sites: by field and by end of a pair where that form serves, else by cell."""
        from suffice.kernels.compiled import gibbs as compiled

        pairs, layout = self.layout.pairs, self.layout
        if self._odds is None or pairs is None:
            slope = np.zeros(layout.n_cells)
            tables = (layout.cards, layout.places, layout.factors, self.logs)
            return compiled.pseudo_tables(sites, *tables, states, weights, slope), slope
        field, coupling = self._odds
        slope, turned = np.zeros(pairs.n_sites), np.zeros(len(pairs.ends))
        given = (pairs.graph, coupling[pairs.ends], field, states, weights)
        value = compiled.pseudo_pairs(sites, *given, slope, turned)
        return value, np.concatenate([slope, turned])
