"""Ising lattices that no exact engine takes: recovery of known couplings, and draws of a Gibbs sampler a second."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.contender import Contender, Data

_OURS = "benchmarks.rivals.ising_with_suffice"
_NUMPY = "benchmarks.rivals.ising_with_numpy"


def _ours(name: str, solver: str) -> Contender:
    return Contender(name, _OURS, "fit", {"solver": solver})


@dataclass(frozen=True)
class Recovery:
    """Rows of a lattice of spins with known fields and couplings; how far the learned couplings are from these."""

    NAME: str
    side: int

    ROWS = 10_000
    REPEATS = 1

    @property
    def CONTENDERS(self) -> tuple[Contender, ...]:  # noqa: N802  a constant of the problem
        return (
            _ours("suffice, stochastic maximum likelihood", "sml"),
            _ours("suffice, pseudo-likelihood", "pseudolikelihood"),
            Contender("scipy L-BFGS on a NumPy pseudo-likelihood", _NUMPY, "pseudo_likelihood", requires="scipy"),
        )

    def title(self, rows: int) -> str:
        return (
            f"{self.side}x{self.side} Ising lattice, {rows:,} rows, a field for each spin and a coupling for each edge"
        )

    def make(self, rows: int, seed: int) -> Data:
        from suffice import GibbsSampling, MarkovNetwork

        rng = np.random.default_rng(seed)
        edges = MarkovNetwork.grid_edges(self.side, self.side)
        fields, couplings = rng.normal(0.0, 0.1, self.side**2), rng.uniform(0.1, 0.4, len(edges))
        network = MarkovNetwork.ising(edges, solver="sml", sampling=GibbsSampling(burn_in=300))
        nodes: list[Any] = [(row, column) for row in range(self.side) for column in range(self.side)]
        order = [nodes.index(node) for node in network.nodes]
        drawn = network.with_weights(np.concatenate([fields[order], couplings])).sample(rows, random_state=seed)
        spins = np.stack([drawn[node] for node in nodes], axis=1).astype(np.int8)
        return {"spins": spins, "fields": fields, "couplings": couplings}

    def judge(self, data: Data) -> Callable[[str, Any], str]:
        """Root mean squared error of the couplings, and of the fields."""

        def verdict(_: str, answer: Any) -> str:
            fields, couplings = answer
            pairs = ((couplings, data["couplings"]), (fields, data["fields"]))
            errors = [float(np.sqrt(np.mean((found - true) ** 2))) for found, true in pairs]
            return f"couplings {errors[0]:.4f}, fields {errors[1]:.4f} off"

        return verdict


@dataclass(frozen=True)
class Sweeps:
    """Sweeps of 128 chains on a lattice of spins."""

    NAME: str = "ising, sweeps"
    side: int = 64
    sweeps: int = 50

    ROWS = 128
    REPEATS = 7

    @property
    def CONTENDERS(self) -> tuple[Contender, ...]:  # noqa: N802  a constant of the problem
        options = {"side": self.side, "sweeps": self.sweeps}
        return (
            Contender("suffice", _OURS, "sweeps", options),
            Contender("NumPy, chessboard", _NUMPY, "sweeps", options),
        )

    def title(self, rows: int) -> str:
        draws = self.side**2 * rows * self.sweeps / 1e6
        return f"{self.sweeps} sweeps of {rows} chains on a {self.side}x{self.side} lattice: {draws:.1f} million draws"

    def make(self, rows: int, seed: int) -> Data:
        spins = np.random.default_rng(seed).integers(0, 2, (self.side**2, rows)).astype(np.uint8)
        return {"spins": spins, "coupling": np.array([0.2])}

    def judge(self, data: Data) -> Callable[[str, Any], str]:
        """The mean product of neighbours along a row, which all contenders share up to noise."""
        return lambda _, answer: f"neighbours {float(answer):.3f}"


def cases() -> Iterator[Any]:
    yield Recovery("ising, 16x16", 16)
    yield Recovery("ising, 64x64", 64)
    yield Sweeps()
