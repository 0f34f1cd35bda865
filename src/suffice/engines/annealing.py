"""Annealed importance sampling: log Z of a Markov network that no exact engine takes, with its error.

Chains are drawn from the uniform distribution and carried to the distribution itself through a ladder of distributions
p_b proportional to exp(b * log-potentials), 0 = b_0 < ... < b_T = 1, one sweep at each. The weight
``w = prod_t exp((b_t - b_(t-1)) * log-potentials(x_(t-1)))`` has the mean Z / Z_0 exactly (Neal 2001). So the
logarithm of the mean weight estimates log Z, and the mean of log w is below it on average.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from suffice.array_types import Floats, RandomState
from suffice.checks import generator, whole_number
from suffice.engines.gibbs import GibbsSampler
from suffice.engines.importance import effective_size, pareto_shape
from suffice.errors import EstimateError
from suffice.fitting.report import distrust

#: Steps of the first ladder; each further one has twice as many ...
FIRST_STEPS = 100
#: ... until the log weights spread no more than this many nats, so that their mean weight is no matter of a few chains.
SPREAD = 1.0


@dataclass(frozen=True)
class LogPartition:
    """An estimate of log Z.

    `standard_error` is that of `value`, sd(w) / (mean(w) sqrt(chains)). `lower_bound` is the mean of the log weights,
    below log Z on average. `effective_sample_size` is (sum w)^2 / sum w^2 of `chains` weights; where it is near 1 the
    standard error is too small, and more steps are needed. `steps` is the length of the ladder. `pareto_k` is the shape
    of the tail of the weights: above 0.7 a few chains decide. The chains are independent from their first state on, so
    there is no R-hat: what they have in common, a mode that no random state leads to, none of them can tell.
    """

    value: float
    standard_error: float
    lower_bound: float
    effective_sample_size: float
    chains: int
    steps: int
    pareto_k: float | None = None

    @property
    def distrust(self) -> str:
        """What is against the estimate; empty where nothing is."""
        return distrust(self.effective_sample_size, self.chains, pareto_k=self.pareto_k)

    def __iter__(self) -> Iterator[float]:
        """Value and standard error."""
        return iter((self.value, self.standard_error))

    def __str__(self) -> str:
        return f"{self.value:.4f} +- {self.standard_error:.4f} ({self.steps} steps, {self.chains} chains)"

    __repr__ = __str__


def log_partition(
    sampler: GibbsSampler,
    logs: Floats,
    *,
    chains: int = 128,
    steps: int | None = None,
    random_state: RandomState = None,
) -> LogPartition:
    """Log of the sum over all joint states of exp(sum of log-potentials).

    steps: length of the ladder; None doubles it until the log weights spread by no more than one nat, or 2^14 steps are
    done. The sampler is left loaded with `logs`.
    """
    whole_number(chains, "chains", 2)
    if steps is not None:
        whole_number(steps, "steps", otherwise=", or None")
    rng = generator(random_state)
    length = FIRST_STEPS if steps is None else steps
    while True:
        weights = _log_weights(sampler, logs, chains, length, rng)
        if steps is not None or float(weights.std(ddof=1)) <= SPREAD or length >= FIRST_STEPS << 7:
            return _estimate(weights, float(np.log(sampler.layout.cards).sum()), length)
        length *= 2


def _log_weights(
    sampler: GibbsSampler, logs: Floats, chains: int, steps: int, generator: np.random.Generator
) -> Floats:
    """Log weights (chains,) of one ladder; cells that cannot be are left out of the ladder and weigh nothing."""
    impossible = np.isneginf(logs)
    finite = np.where(impossible, 0.0, logs)
    walk = sampler.start(chains, generator)
    total = np.zeros(chains)
    for step in range(steps):
        total += sampler.log_values(walk.states, finite) / steps
        sampler.load((step + 1) / steps * finite)
        sampler.sweep(walk)
    sampler.load(logs)
    if impossible.any():
        # The last distribution allows the impossible cells: what is left of it without them is the share of possible
        # chains.
        possible = sampler.log_values(walk.states, logs) > -np.inf
        total = np.where(possible, total, -np.inf)
        if not possible.any():
            raise EstimateError("No chain of the annealing ended in a possible state. Use more chains.")
    return total


def _estimate(weights: Floats, base: float, steps: int) -> LogPartition:
    top = float(weights.max())
    scaled = np.exp(weights - top)
    mean, count = float(scaled.mean()), len(weights)
    error = float(scaled.std(ddof=1)) / (mean * math.sqrt(count))
    size = effective_size(scaled)
    lower = float(weights.mean()) if np.isfinite(weights).all() else -math.inf
    return LogPartition(base + top + math.log(mean), error, base + lower, size, count, steps, pareto_shape(scaled))
