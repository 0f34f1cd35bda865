"""Our own approximate solvers and Gibbs sampler on Ising lattices."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.contender import Data, Run
from suffice import MarkovNetwork


def fit(data: Data, *, solver: str) -> Run:
    """From the array of spins to fields and couplings, with the report: its moment gap and likelihood by sampling."""
    side = round(np.sqrt(data["spins"].shape[1]))
    edges = MarkovNetwork.grid_edges(side, side)
    nodes: list[Any] = [(row, column) for row in range(side) for column in range(side)]

    def run() -> object:
        network = MarkovNetwork.ising(edges, solver=solver, random_state=0, max_iter=50_000, tolerance=1e-5)
        network.fit(data["spins"], columns=nodes)
        found = dict(zip(network.nodes, network.weights_[: len(nodes)], strict=True))
        return np.array([found[node] for node in nodes]), network.weights_[len(nodes) :]

    return run


def sweeps(data: Data, *, side: int, sweeps: int) -> Run:
    """One coupling for all edges."""
    from suffice.engines.gibbs import GibbsSampler

    number = np.arange(side**2).reshape(side, side)
    across = np.stack([number[:, :-1].ravel(), number[:, 1:].ravel()], axis=1)
    down = np.stack([number[:-1].ravel(), number[1:].ravel()], axis=1)
    pairs = np.concatenate([across, down])
    coupling = float(data["coupling"][0])
    sampler = GibbsSampler([2] * side**2, [tuple(pair) for pair in pairs.tolist()])
    sampler.load(np.tile([coupling, -coupling, -coupling, coupling], len(pairs)))
    chains = sampler.start(data["spins"].shape[1], 0, states=data["spins"])

    def run() -> object:
        sampler.sweep(chains, sweeps)
        spins = 2.0 * chains.states - 1.0
        return (spins[across[:, 0]] * spins[across[:, 1]]).mean()

    return run
