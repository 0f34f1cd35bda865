"""NumPy and SciPy on Ising lattices: the pseudo-likelihood of all spins, and chessboard sweeps."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.contender import Data, Run

Floats = NDArray[np.float64]


def _edges(side: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Both ends of each edge, row by row, to the right before down."""
    number = np.arange(side**2).reshape(side, side)
    found = [
        (number[r, c], other)
        for r in range(side)
        for c in range(side)
        for other in ([number[r, c + 1]] if c + 1 < side else []) + ([number[r + 1, c]] if r + 1 < side else [])
    ]
    ends = np.array(found)
    return ends[:, 0], ends[:, 1]


def pseudo_likelihood(data: Data) -> Run:
    """Mean of sum_i log sigma(2 x_i (u_i + sum_j w_ij x_j)), by sparse products."""
    from scipy import optimize, sparse, special

    spins = np.ascontiguousarray(data["spins"].T, dtype=np.float64)
    size, rows = spins.shape
    first, second = _edges(round(np.sqrt(size)))

    def loss(weights: Floats) -> tuple[float, Floats]:
        coupling = sparse.csr_array((weights[size:], (first, second)), shape=(size, size))
        field = weights[:size, None] + (coupling + coupling.T) @ spins
        value = special.log_expit(2.0 * spins * field).sum() / rows
        rest = 2.0 * spins * special.expit(-2.0 * spins * field)
        slope = np.einsum("ij,ij->i", rest[first], spins[second]) + np.einsum("ij,ij->i", rest[second], spins[first])
        return -value, -np.concatenate([rest.sum(axis=1), slope]) / rows

    def run() -> object:
        found: Any = optimize.minimize(loss, np.zeros(size + len(first)), jac=True, method="L-BFGS-B", tol=1e-9)
        return found.x[:size], found.x[size:]

    return run


def sweeps(data: Data, *, side: int, sweeps: int) -> Run:
    """All spins of one colour at once."""
    rng = np.random.default_rng(0)
    spins = (2 * data["spins"].T.reshape(-1, side, side).astype(np.int8) - 1).astype(np.int8)
    coupling = np.float32(2.0 * data["coupling"][0])
    board = np.indices((side, side)).sum(axis=0) % 2

    def run() -> object:
        for _ in range(sweeps):
            for colour in (0, 1):
                field = np.zeros(spins.shape, np.float32)
                field[:, 1:] += spins[:, :-1]
                field[:, :-1] += spins[:, 1:]
                field[:, :, 1:] += spins[:, :, :-1]
                field[:, :, :-1] += spins[:, :, 1:]
                up = rng.random(spins.shape, dtype=np.float32) < 1.0 / (1.0 + np.exp(-coupling * field))
                np.copyto(spins, np.where(up, 1, -1).astype(np.int8), where=board == colour)
        return (spins[:, :, 1:] * spins[:, :, :-1]).mean()

    return run
