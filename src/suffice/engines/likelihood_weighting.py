"""Approximate inference in conditional linear-Gaussian networks by weighted samples.

Nodes are drawn parents first; an observed node is not drawn, and the sample is weighted by its probability or density
there. Ancestors of evidence are drawn from a mixture of their own distribution and a flat one. Point masses outweigh
densities, as in exact inference.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats, RandomState
from suffice.checks import generator
from suffice.engines.importance import draw_flattened, draw_widened, effective_size, share_of
from suffice.engines.mixed_network import MixedNetwork
from suffice.engines.mixtures import GaussianMixture
from suffice.engines.square_root import log_density_or_mass
from suffice.errors import DataError, OptionError, listing
from suffice.graphs.nodes import Node

Draws = Mapping[Node, NDArray[Any]]


@dataclass(frozen=True)
class WeightedSamples:
    """Draws of some nodes (n,) by name, with weights (n,) that add up to one, given the evidence.

    `log_evidence` is an estimate. `effective_sample_size` is ``(sum w)^2 / sum w^2``: as many independent draws from
    the posterior would be about as good.
    """

    cards: Mapping[Node, int]
    draws: Mapping[Node, NDArray[Any]]
    weights: Floats
    log_evidence: float

    @property
    def effective_sample_size(self) -> float:
        """From 1 (one sample has all the weight) to the number of samples."""
        return effective_size(self.weights)

    def table(self, names: Sequence[Node]) -> Floats:
        """The joint distribution of discrete variables, axes in the order asked."""
        self._check(names, discrete=True)
        shape = tuple(self.cards[name] for name in names)
        cells = np.ravel_multi_index(tuple(self.draws[name] for name in names), shape) if shape else self.weights * 0
        sums = np.bincount(np.asarray(cells, dtype=np.intp), self.weights, math.prod(shape))
        return np.asarray(sums.reshape(shape))

    def mixture(self, names: Sequence[Node]) -> GaussianMixture:
        """The joint distribution of real variables: a point for each sample."""
        self._check(names, discrete=False)
        means = np.stack([self.draws[name] for name in names], axis=1)
        return GaussianMixture(tuple(names), self.weights, means, np.zeros((*means.shape, 0)))

    def _check(self, names: Sequence[Node], *, discrete: bool) -> None:
        wrong = [name for name in names if name not in self.draws or (name in self.cards) != discrete]
        if wrong:
            raise OptionError(f"{listing(wrong)} is no {'discrete' if discrete else 'real'} target of this query.")


def weigh_samples(
    network: MixedNetwork,
    evidence: Mapping[Any, Any] | None = None,
    targets: Sequence[Node] | None = None,
    *,
    n: int = 10_000,
    random_state: RandomState = None,
) -> WeightedSamples:
    """Draw n weighted samples of the targets (all nodes by default) given states (by index) and values."""
    states, values = network.split(evidence or {})
    known: dict[Node, Any] = {**states, **values}
    wanted = list(network.order if targets is None else targets)
    relevant = network.above([*wanted, *known])
    rng = generator(random_state)
    flat = set(network.above(list(known))) - set(known)
    share = share_of(len(flat))

    def take(node: Node, draws: Draws) -> tuple[NDArray[Any], Any, Any]:
        return _take(network, node, draws, known.get(node), (rng, n, share if node in flat else 0.0))

    draws, weights, log_evidence = draw_weighted([node for node in network.order if node in relevant], take, n)
    cards = {node: card for node, card in network.cards.items() if node in wanted}
    return WeightedSamples(cards, {node: draws[node] for node in wanted}, weights, log_evidence)


def draw_weighted(
    order: Sequence[Node], take: Callable[[Node, Draws], tuple[NDArray[Any], Any, Any]], n: int
) -> tuple[dict[Node, NDArray[Any]], Floats, float]:
    """Draws (n,) by node, weights (n,) that add up to one, and the estimate of the log evidence.

    `take` is called for each node of the order, parents first, with the draws so far. It returns the values of the
    node (n,), drawn or observed; the log weights of observing it; and where it is observed on a point mass.
    """
    draws: dict[Node, NDArray[Any]] = {}
    logs, points = np.zeros(n), np.zeros(n, dtype=np.intp)
    for node in order:
        draws[node], log, point = take(node, draws)
        logs += log
        points += point
    possible = np.isfinite(logs)
    if not possible.any():
        raise DataError(f"None of {n:,} samples agrees with the evidence. Use more samples, or exact inference.")
    logs[~(possible & (points == points[possible].max()))] = -np.inf
    top = float(logs.max())
    weights = np.exp(logs - top)
    return draws, weights / weights.sum(), top + math.log(weights.sum() / n)


def _take(
    network: MixedNetwork, node: Node, draws: Mapping[Node, NDArray[Any]], value: Any, source: tuple[Any, int, float]
) -> tuple[NDArray[Any], Any, Any]:
    """Values of a node (n,), drawn or observed; the log weights of observing it; and where it is a point."""
    rng, n, share = source
    if node in network.tables:
        above, table = network.tables[node]
        rows = np.asarray(table, dtype=np.float64)[tuple(draws[name] for name in above)]
        if value is not None:
            with np.errstate(divide="ignore"):
                return np.full(n, value), np.log(np.broadcast_to(rows[..., value], n)), 0
        return *draw_flattened(np.broadcast_to(rows, (n, rows.shape[-1])), rng, share), 0
    regression = network.regressions[node]
    cells = tuple(draws[name] for name in regression.discrete)
    weights = np.broadcast_to(np.asarray(regression.weights, dtype=np.float64)[cells], (n, len(regression.reals) + 1))
    variance = np.broadcast_to(np.asarray(regression.variance, dtype=np.float64)[cells], n)
    terms = np.stack(
        [weights[:, 0], *(w * draws[name] for w, name in zip(weights[:, 1:].T, regression.reals, strict=True))]
    )
    mean = terms.sum(axis=0)
    if value is None:
        return *draw_widened(mean, variance, rng, share), 0
    density = log_density_or_mass(value, mean, variance, np.abs(terms).sum(axis=0))
    return np.full(n, float(value)), density, (variance == 0).astype(np.intp)
