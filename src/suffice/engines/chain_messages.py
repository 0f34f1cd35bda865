"""One direction alone: the distribution of a label given the steps so far, and chains read from their end."""

from __future__ import annotations

import numpy as np

from suffice.array_types import Floats
from suffice.engines.chain import Chains
from suffice.engines.workers import worker_count
from suffice.kernels import chain as kernels
from suffice.kernels import chain_logs


def filtered(chains: Chains, *, threads: int | None = None, calls: int | None = None) -> tuple[Floats, Floats]:
    """The log of the mass of each sequence (n,), and the distribution of each label given the steps so far (steps, K).

    Final weights count in the mass alone; the rows of a sequence without a path
    are 0 from where it ends.
    """
    given = (chains.potentials, chains.transitions, chains.ends, chains.offsets)
    log_z, rows = kernels.masses(*given, threads=worker_count(threads), calls=calls)
    for s in np.flatnonzero(np.isnan(log_z)).tolist():
        span = slice(int(chains.offsets[s]), int(chains.offsets[s + 1]))
        shared = len(chains.log_transitions) == 1
        matrices = chains.log_transitions if shared else chains.log_transitions[span]
        logs = chain_logs.forward(chains.scores(span), matrices, chains.log_ends[0])
        log_z[s] = float(chain_logs.log_sum(logs[-1] + chains.log_ends[1], 0))
        tops = np.array([float(chain_logs.log_sum(row, 0)) for row in logs])
        rows[span] = np.exp(logs - np.where(np.isfinite(tops), tops, 0.0)[:, None])
    return log_z + chains.shifts, rows


def read_backwards(chains: Chains, final: Floats) -> Chains:
    """One sequence read from its end, shared transitions turned; `final` (K,) weighs the last label."""
    with np.errstate(divide="ignore"):
        logs = np.stack([np.log(final), np.zeros(len(final))])
    steps = len(chains.potentials)
    return Chains(
        np.ascontiguousarray(chains.potentials[::-1]),
        np.ascontiguousarray(chains.transitions.transpose(0, 2, 1)),
        np.stack([final, np.ones(len(final))]),
        chains.offsets,
        np.ascontiguousarray(chains.shift[::-1]),
        lambda span: chains.scores(slice(steps - span.stop, steps - span.start))[::-1],
        np.ascontiguousarray(chains.log_transitions.transpose(0, 2, 1)),
        logs,
    )
