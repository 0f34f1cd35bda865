"""Weighted samples: proposals that reach what a distribution makes rare, and how much their weights are worth."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats

#: Wide draws of a normal distribution are spread by this factor: 5 standard deviations of the distribution are 1.25 of
#: theirs.
WIDE = 4.0
#: A tail of weights has at least this many samples, or tells nothing.
SHORTEST_TAIL = 5


def share_of(nodes: int) -> float:
    """The share of draws that a node takes from its flat distribution, where so many nodes do.

    About one node of a sample is then drawn from a flat distribution, any number of them with positive probability, and
    no sample is worth more than ``(1 + 1 / nodes)^nodes < e`` times what it would be without: rare states are reached,
    and little is lost where none matters.
    """
    return 1.0 / (nodes + 1.0)


def draw_flattened(p: Floats, rng: np.random.Generator, share: float) -> tuple[NDArray[np.int32], Floats]:
    """Codes (n,) by rows of masses p (n, card), mixed with even ones on the same support, and log p/q of each.

    q = (1 - share) p / (sum of p) + share / (number of possible states): log p/q is the weight of a draw, -inf where
    no state is possible.
    """
    possible = p > 0.0
    total = p.sum(axis=1, keepdims=True)
    q = (1.0 - share) * p / np.where(total > 0.0, total, 1.0)
    q += share * possible / np.maximum(possible.sum(axis=1, keepdims=True), 1)
    sums = np.cumsum(q, axis=1)
    aim = rng.random((len(p), 1)) * sums[:, -1:]
    drawn = np.minimum((sums <= aim).sum(axis=1), p.shape[1] - 1).astype(np.int32)
    rows = np.arange(len(p))
    mass, chance = p[rows, drawn], q[rows, drawn]
    with np.errstate(divide="ignore"):
        return drawn, np.where(mass > 0.0, np.log(mass) - np.log(np.where(mass > 0.0, chance, 1.0)), -np.inf)


def draw_widened(mean: Floats, variance: Floats, rng: np.random.Generator, share: float) -> tuple[Floats, Floats]:
    """Numbers (n,) from normal distributions mixed with wider ones, and log p/q of each; points stay points."""
    spread = np.sqrt(variance)
    away = rng.standard_normal(len(mean)) * np.where(rng.random(len(mean)) < share, WIDE, 1.0)
    # In units of the spread, with the constant of the normal density left out of both.
    wide = share / WIDE * np.exp(0.5 * away**2 * (1.0 - WIDE**-2))
    return mean + spread * away, np.where(spread > 0.0, -np.log((1.0 - share) + wide), 0.0)


def effective_size(weights: NDArray[Any]) -> float:
    """(sum w)^2 / sum w^2: from 1 (one sample has all the weight) to the number of samples."""
    total = float(weights.sum())
    return total**2 / float((weights**2).sum()) if total > 0.0 else 0.0


def pareto_shape(weights: Floats) -> float | None:
    """The shape k of a generalised Pareto distribution fitted to the largest weights; None where the tail is short.

    Moments of order 1/k and above do not exist: from 1/2 on weights have no variance, and above 0.7 standard errors
    cannot be relied on at any feasible number of samples (Vehtari et al. 2024; the fit is that of Zhang and Stephens
    2009, with their weakly informative prior).
    """
    n = len(weights)
    size = min(n // 5, math.ceil(3.0 * math.sqrt(n)))
    if size < SHORTEST_TAIL:
        return None
    ordered = np.sort(weights)
    cut = ordered[-size - 1]
    tail = ordered[-size:] - cut
    tail = tail[tail > 0.0]
    # Weights of a few different values have no tail: the largest of them is the bound.
    if len(tail) < SHORTEST_TAIL or len(np.unique(tail)) < SHORTEST_TAIL:
        return -math.inf
    return _fitted_shape(tail)


def _fitted_shape(tail: Floats) -> float:
    """The shape for sorted positive excesses (m,), shrunk towards 1/2 as if by ten of them."""
    m = len(tail)
    grid = 30 + int(math.sqrt(m))
    quartile = tail[max(int(m / 4.0 + 0.5) - 1, 0)]
    places = np.arange(1, grid + 1) - 0.5
    b = 1.0 / tail[-1] + (1.0 - np.sqrt(grid / places)) / (3.0 * quartile)
    b = b[b != 0.0]  # Where the distribution is exponential, k is 0 as well, and their ratio is not a number.
    k = np.log1p(-b[:, None] * tail).mean(axis=1)
    profile = m * (np.log(-b / k) - k - 1.0)
    shares = np.exp(profile - profile.max())
    mean = float((b * shares).sum() / shares.sum())
    shape = float(np.log1p(-mean * tail).mean())
    return (m * shape + 10.0 * 0.5) / (m + 10.0)
