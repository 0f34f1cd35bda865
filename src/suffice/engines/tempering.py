"""Replica exchange: chains that would stay in one mode of a distribution are carried to others by warmer ones.

Each chain is a ladder of replicas of distributions p_b proportional to exp(b * log-potentials), from b = 0, the uniform
distribution, to b = 1, the distribution itself. After every sweep neighbours exchange their states with probability
``min(1, exp((b_i - b_j) (E_j - E_i)))``, E the log-potential of a state, which leaves the product of all distributions
as it is (Swendsen and Wang 1986; Geyer 1991). Even and odd pairs take turns, so that states travel along the ladder
instead of diffusing (Syed et al. 2022). Rungs are set while a population is annealed, a standard deviation of E apart:
about half of the exchanges are then accepted.

Chains that never leave the basin where they begin agree with one another as long as all begin in the same one. So
`fresh_means` begins half of its chains at random, and half where others have been cooled far below the distribution:
where the two halves agree (R-hat), the distribution is theirs, and where they do not, replicas take over.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats, States
from suffice.engines.chain_means import ChainMeans, Functions, track
from suffice.engines.gibbs import GibbsChains, GibbsSampler

#: How far apart rungs are, in standard deviations of the log-potential: at first, and where that was too far.
STEPS = (1.0, 0.3)
#: Sweeps at each rung while the ladder is set up.
SETTLE = 10
#: Exchanges between neighbours that are accepted while the ladder is set up, at least.
EXCHANGED = 0.3
#: Most rungs, and how near they may be.
MOST_RUNGS, LEAST = 80, 1e-6
#: Sweeps of a ladder before its first draw, for each rung: a state needs about two of them to climb one.
CLIMB = 10
#: Cold starts: the distribution is sharpened up to this power, in so many steps of so many sweeps.
COLD, COOLINGS, SWEEPS = 4.0, 20, 3
#: Every other chain.
ODD = slice(1, None, 2)


@dataclass(eq=False)
class Replicas:
    """Chains at each rung of a ladder, the uniform distribution first; powers (rungs,); which pairs exchange next.

    step: how far apart the rungs were to be.
    """

    powers: Floats
    rungs: list[GibbsChains]
    generator: np.random.Generator
    step: float = STEPS[0]
    odd: bool = False

    @property
    def states(self) -> States:
        """States (sites, chains) of the distribution itself."""
        return self.rungs[-1].states

    @property
    def count(self) -> int:
        """Number of ladders."""
        return self.rungs[-1].count


class Ladder:
    """A sampler of a distribution at several powers; `load` takes other log-potentials."""

    def __init__(self, sampler: GibbsSampler, logs: Floats, powers: Floats) -> None:
        """powers: from 0 to 1."""
        self.powers = powers
        #: Exchanges accepted with the next rung, (rungs - 1,), and how many times each was tried.
        self._accepted, self._tried = np.zeros(len(powers) - 1), np.zeros(len(powers) - 1)
        self._samplers = [sampler.at(raised(logs, float(power))) for power in powers]
        self.load(logs)

    def load(self, logs: Floats) -> None:
        """Take the log-potentials of all factors (cells,), finite or minus infinity."""
        self._finite = np.where(np.isneginf(logs), 0.0, logs)
        for power, sampler in zip(self.powers, self._samplers, strict=True):
            sampler.load(raised(logs, float(power)))

    def weakest(self) -> float:
        """The least share of exchanges between two rungs that were accepted since this was last asked."""
        shares = self._accepted / np.maximum(self._tried, 1.0)
        least = float(shares[self._tried > 0.0].min(initial=1.0))
        self._accepted[:], self._tried[:] = 0.0, 0.0
        return least

    def sweep(self, chains: Replicas, count: int = 1) -> None:
        """Move all replicas by this many sweeps with an exchange after each, in place."""
        for _ in range(count):
            for sampler, rung in zip(self._samplers, chains.rungs, strict=True):
                sampler.sweep(rung)
            self._exchange(chains)

    def _exchange(self, chains: Replicas) -> None:
        first = int(chains.odd)
        chains.odd = not chains.odd
        for low in range(first, len(chains.rungs) - 1, 2):
            cool, warm = chains.rungs[low + 1], chains.rungs[low]
            values = [self._samplers[low].log_values(rung.states, self._finite) for rung in (warm, cool)]
            gain = (self.powers[low + 1] - self.powers[low]) * (values[0] - values[1])
            taken = np.flatnonzero(np.log(chains.generator.random(chains.count)) < gain)
            self._accepted[low] += len(taken) / chains.count
            self._tried[low] += 1.0
            cool.states[:, taken], warm.states[:, taken] = warm.states[:, taken], cool.states[:, taken]


def raised(logs: Floats, power: float) -> Floats:
    """Log-potentials of a distribution to some power; what cannot be stays impossible at every power."""
    impossible = np.isneginf(logs)
    return np.where(impossible, -np.inf, power * np.where(impossible, 0.0, logs))


def set_up(
    sampler: GibbsSampler, logs: Floats, start: GibbsChains, seed: np.random.Generator, apart: float = STEPS[0]
) -> tuple[Ladder, Replicas]:
    """A ladder for this distribution, and replicas that were annealed from these chains, one ladder for each."""
    finite = np.where(np.isneginf(logs), 0.0, logs)
    walk = _settled(sampler, raised(logs, 0.0), start, seed)
    powers, rungs = [0.0], [walk]
    while powers[-1] < 1.0:
        values = sampler.log_values(walk.states, finite)
        left, spread = 1.0 - powers[-1], float(values.std())
        least = left if len(rungs) + 1 >= MOST_RUNGS else LEAST
        step = min(left, max(least, apart / spread if spread > 0.0 else left))
        while True:
            walk = _settled(sampler, raised(logs, powers[-1] + step), rungs[-1], seed)
            gain = step * (values - sampler.log_values(walk.states, finite))
            # Where the distribution changes its phase the spread does not tell how far the next one is.
            if step <= least or float(np.exp(np.minimum(gain, 0.0)).mean()) >= EXCHANGED:
                break
            step = max(least, 0.5 * step)
        powers.append(1.0 if step >= left else powers[-1] + step)
        rungs.append(walk)
    ladder = np.array(powers)
    return Ladder(sampler, logs, ladder), Replicas(ladder, rungs, np.random.default_rng(seed.integers(0, 2**63)), apart)


def _settled(sampler: GibbsSampler, logs: Floats, chains: GibbsChains, seed: np.random.Generator) -> GibbsChains:
    """Chains that begin where others stand, with random numbers of their own, after some sweeps at `logs`."""
    renewed = _renewed(sampler, chains, seed)
    sampler.at(logs).sweep(renewed, SETTLE)
    return renewed


def _renewed(sampler: GibbsSampler, chains: GibbsChains, seed: np.random.Generator) -> GibbsChains:
    """Chains at the same states, with random numbers of their own."""
    fresh = sampler.start(chains.count, seed, states=chains.states)
    fresh.clamped = chains.clamped
    return fresh


# -- fresh chains ----------------------------------------------------------------------------------------------------


def spread_out(sampler: GibbsSampler, logs: Floats, start: GibbsChains) -> None:
    """Cool every other chain far below the distribution, in place: hot and cold starts lie on both sides of it.

    The sampler is left loaded with `logs`.
    """
    cold = GibbsChains(
        np.ascontiguousarray(start.states[:, ODD]),
        np.ascontiguousarray(start.stream[:, ODD]),
        start.scan.copy(),
        None if start.clamped is None else np.ascontiguousarray(start.clamped[:, ODD]),
    )
    for power in np.linspace(0.0, COLD, COOLINGS + 1)[1:]:
        sampler.load(raised(logs, float(power)))
        sampler.sweep(cold, SWEEPS)
    start.states[:, ODD], start.stream[:, ODD] = cold.states, cold.stream
    sampler.load(logs)


@dataclass(frozen=True)
class Lengths:
    """How long fresh chains run: sweeps before the first draw, draws, and sweeps from one to the next.

    tempering: whether replicas take over where the chains do not mix; seconds: unless this would take longer, by
    estimate. R-hat then says that the chains have not mixed.
    """

    burn_in: int
    draws: int
    tempering: bool = True
    thin: int = 1
    seconds: float = 60.0


def fresh_means(
    sampler: GibbsSampler,
    logs: Floats,
    start: Callable[[], GibbsChains],
    functions: Functions,
    lengths: Lengths,
    seed: np.random.Generator,
    judged: NDArray[np.bool_] | None = None,
) -> tuple[ChainMeans, GibbsChains | Replicas]:
    """Means of some functions under a distribution, by chains that know nothing of it, and where these ended.

    start: chains at random states, anew at each call; judged (k,): the functions whose R-hat counts, all by default.
    Where the chains do not mix, the means are those of replicas. The sampler is left loaded with `logs`.
    """
    chains = start()
    spread_out(sampler, logs, chains)
    sampler.sweep(chains, lengths.burn_in)
    tracker, walk = (
        track(sampler, chains, functions, lengths.draws, lengths.thin),
        cast("GibbsChains | Replicas", chains),
    )
    for apart in STEPS if lengths.tempering else ():
        if tracker.mixed(judged):
            break
        ladder, replicas = set_up(sampler, logs, start(), seed, apart)
        sweeps = lengths.burn_in + lengths.thin * lengths.draws
        if len(replicas.powers) * sampler.seconds(replicas.count, sweeps) > lengths.seconds:
            break
        climb(sampler, logs, ladder, replicas, lengths.burn_in, seed)
        tracker, walk = track(ladder, replicas, functions, lengths.draws, lengths.thin), replicas
        tracker = replace(tracker, levels=len(replicas.powers))
    return tracker, walk


def climbed(
    sampler: GibbsSampler,
    logs: Floats,
    start: GibbsChains,
    burn_in: int,
    seed: np.random.Generator,
    apart: float = STEPS[0],
) -> tuple[Ladder, Replicas]:
    """A ladder and its replicas, after enough sweeps for states to have travelled from one end to the other."""
    ladder, replicas = set_up(sampler, logs, start, seed, apart)
    climb(sampler, logs, ladder, replicas, burn_in, seed)
    return ladder, replicas


def climb(
    sampler: GibbsSampler, logs: Floats, ladder: Ladder, replicas: Replicas, burn_in: int, seed: np.random.Generator
) -> None:
    """Let states travel along a ladder.

    Every other ladder begins with cold states at all of its rungs but the first: where a distribution changes its phase
    at once, states do not travel, and the two kinds of ladders disagree.
    """
    cold = _renewed(sampler, replicas.rungs[0], seed)
    spread_out(sampler, logs, cold)
    for rung in replicas.rungs[1:]:
        rung.states[:, ODD] = cold.states[:, ODD]
    ladder.sweep(replicas, max(burn_in, CLIMB * len(replicas.powers)))
