"""Gibbs sampling of the labels of chains: labels at even and at odd steps are drawn in turn, all at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Ints
from suffice.engines.chain import Chains
from suffice.errors import OptionError


def gibbs(chains: Chains, paths: Ints, sweeps: int, rng: np.random.Generator) -> Ints:
    """Paths (n, steps) after some sweeps from given ones; each chain of samples keeps to itself.

    Given its neighbours a label has the distribution ``potentials[t, y] transitions[before, y] transitions[y, after]``.
    All of these numbers must be positive: a sampler that moves one label at a time cannot pass what is impossible.
    """
    if not ((chains.transitions > 0.0).all() and (chains.ends > 0.0).all()):
        raise OptionError(
            "Gibbs sampling needs transitions that are all possible; use expectations='sampled' or 'exact'."
        )
    paths = paths.copy()
    steps = len(chains.potentials)
    step_numbers = np.arange(steps) - np.repeat(chains.offsets[:-1], np.diff(chains.offsets))
    first = step_numbers == 0
    last = np.append(first[1:], True)
    for _ in range(sweeps):
        for parity in (0, 1):
            chosen = np.flatnonzero(step_numbers % 2 == parity)
            if len(chosen):
                paths[:, chosen] = _drawn(chains, paths, chosen, first, last, rng)
    return paths


def _drawn(
    chains: Chains,
    paths: Ints,
    chosen: Ints,
    first: NDArray[np.bool_],
    last: NDArray[np.bool_],
    rng: np.random.Generator,
) -> Ints:
    """New labels (n, len(at)) at steps none of which is next to another."""
    shared = len(chains.transitions) == 1
    distribution = np.broadcast_to(
        chains.potentials[chosen], (len(paths), len(chosen), chains.potentials.shape[1])
    ).copy()
    distribution[:, first[chosen]] *= chains.ends[0]
    distribution[:, last[chosen]] *= chains.ends[1]
    inner, outer = ~first[chosen], ~last[chosen]
    into = np.zeros_like(chosen) if shared else chosen
    distribution[:, inner] *= chains.transitions[into[inner], paths[:, chosen[inner] - 1]]
    after = np.zeros_like(chosen) if shared else np.minimum(chosen + 1, len(chains.potentials) - 1)
    distribution[:, outer] *= chains.transitions[after[outer], :, paths[:, (chosen + 1)[outer]]]
    sums = np.cumsum(distribution, axis=2)
    marks = rng.random(sums.shape[:2]) * sums[:, :, -1]
    return np.asarray(np.minimum((sums <= marks[..., None]).sum(axis=2), distribution.shape[2] - 1))
