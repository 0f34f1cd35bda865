"""The positive phase of stochastic maximum likelihood: what rows are expected to hold, by chains clamped at them.

In this process the chains persist. Where rows are elsewhere they begin anew in each round, from random numbers that
follow from the values of their row and the number of the round: nothing is kept between rounds that a lost shard would
lose, and the answer depends neither on shards nor on the order of rows.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.engines.gibbs import GibbsChains
from suffice.models.em.held_rows import HeldRows, mixed_bits, row_marks
from suffice.models.em.rows import ObservedRows
from suffice.models.markov.approximate.held_sample import shard_sampler
from suffice.models.markov.approximate.options import GibbsSampling
from suffice.models.markov.approximate.problem import SampledProblem
from suffice.models.markov.approximate.rows import model_scopes
from suffice.models.markov.log_linear import LogLinear
from suffice.sources.reduction import Answers

#: Parts of the draws whose means give the error of the positive phase.
PARTS = 20
#: Sums that tell how much the rows repeat themselves, to sqrt(2 / SIGNS).
SIGNS = 64
#: What SplitMix64 adds for each number that it gives.
STEP = np.uint64(0x9E3779B97F4A7C15)


class PositivePhase(Protocol):
    """Chains that keep what their rows show and draw the rest."""

    @property
    def words(self) -> str:
        """What a report says about them."""

    @property
    def noise(self) -> float:
        """The variance of a mean over the chains, as a share of that of one."""

    def start(self, problem: SampledProblem) -> dict[str, Any]:
        """The chains as arrays, for checkpoints; the sampler of the problem is loaded."""

    def shares(self, problem: SampledProblem, weights: Floats, chains: dict[str, Any]) -> tuple[Floats, dict[str, Any]]:
        """Shares of all cells (n_cells,) at weights that the sampler has loaded, and the chains as they then stand."""

    def means(self, problem: SampledProblem, weights: Floats) -> tuple[Floats, Floats]:
        """Means of the features (n_weights,) that the rows are expected to have, by fresh chains, and their errors."""


# -- rows in this process ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ClampedRows:
    """Where chains are held: codes (sites, chains), 1 where they stay (sites, chains), shares of the rows (chains,)."""

    states: NDArray[np.uint8]
    clamped: NDArray[np.uint8]
    weights: Floats

    @classmethod
    def of(cls, rows: ObservedRows, model: LogLinear, chains: int, seed: np.random.Generator) -> ClampedRows:
        """At least one chain for each distinct row, and about `chains` in all, by the weights of the rows."""
        shares = rows.weights / rows.weights.sum()
        copies = np.maximum(1, np.round(chains * shares)).astype(np.intp)
        which = np.repeat(np.arange(len(shares)), copies)
        cards = np.array(model.domain.shape(model.domain.names))
        drawn = (seed.random((len(cards), len(which))) * cards[:, None]).astype(np.int32)
        codes = _codes(rows, model.domain.names)[:, which]
        states = np.where(codes >= 0, codes, drawn).astype(np.uint8)
        return cls(states, (codes >= 0).astype(np.uint8), (shares / copies)[which])

    @property
    def words(self) -> str:
        """How many they are."""
        return f"{len(self.weights):,} held at rows"

    @property
    def noise(self) -> float:
        """By the shares of the chains."""
        return float(np.sum(self.weights**2))

    def _begin(self, problem: SampledProblem) -> GibbsChains:
        sampler = problem.sampler
        bound = sampler.start(len(self.weights), problem.seed, states=self.states, clamped=self.clamped)
        sampler.sweep(bound, problem.sampling.burn_in)
        return bound

    def start(self, problem: SampledProblem) -> dict[str, Any]:
        """Chains that have forgotten where they began."""
        return self._begin(problem).to_arrays()

    def shares(self, problem: SampledProblem, weights: Floats, chains: dict[str, Any]) -> tuple[Floats, dict[str, Any]]:
        """The chains go on from where they stood."""
        walk = GibbsChains.from_arrays(chains, self.clamped)
        problem.sampler.sweep(walk, problem.sampling.sweeps)
        return problem.sampler.counts(walk.states, self.weights), walk.to_arrays()

    def means(self, problem: SampledProblem, weights: Floats) -> tuple[Floats, Floats]:
        """By the draws of all chains, in parts that follow each other."""
        sampler = problem.sampler
        problem.load(weights)
        bound = self._begin(problem)
        means, draws = np.zeros((PARTS, problem.model.n_weights)), max(1, problem.sampling.draws // PARTS)
        for part in means:
            for _ in range(draws):
                sampler.sweep(bound)
                part += problem.model.expected(sampler.counts(bound.states, self.weights))
        return _mean_and_error(means / draws)


def _codes(rows: ObservedRows, names: tuple[Hashable, ...]) -> NDArray[np.int32]:
    """What rows show (sites, n), -1 where they show nothing."""
    codes = np.full((len(names), len(rows.weights)), -1, np.int32)
    for site, name in enumerate(names):
        if name in rows.columns:
            codes[site] = rows.columns[name]
    return codes


def _mean_and_error(parts: Floats) -> tuple[Floats, Floats]:
    """Of parts (parts, k)."""
    return parts.mean(axis=0), np.sqrt(parts.var(axis=0, ddof=1) / len(parts))


# -- rows elsewhere ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class RestartedChains:
    """Chains that begin anew at each row in each round."""

    rows: HeldRows
    question: RestartedCounts
    noise: float

    @classmethod
    def of(cls, rows: HeldRows, model: LogLinear, sampling: GibbsSampling) -> RestartedChains:
        """One sweep draws exactly where no two variables that some row leaves open share a scope; else as a burn-in."""
        names = model.domain.names
        unseen = {name for name in names if not rows.show([name])}
        apart = all(len(unseen.intersection(scope)) < 2 for scope in model.scopes)
        sweeps = 1 if apart and sampling.scan == "systematic" else max(sampling.burn_in, sampling.sweeps)
        scopes, cards = tuple(model_scopes(model)), tuple(model.domain.shape(names))
        # Equal rows share their draws, wherever they are. Nothing here may depend on how many are in one shard.
        (signed,) = rows.ask(_signed_weights).parts
        noise = float(np.mean((signed / rows.weight) ** 2))
        copies = max(1, math.ceil(sampling.chains * noise))
        return cls(rows, RestartedCounts(names, cards, scopes, sampling.scan, sweeps, copies), noise / copies)

    @property
    def words(self) -> str:
        """How they run."""
        sweeps = "1 sweep" if self.question.sweeps == 1 else f"{self.question.sweeps:,} sweeps"
        return f"{self.rows.count * self.question.copies:,} begun anew at rows in each round, for {sweeps}"

    def start(self, problem: SampledProblem) -> dict[str, Any]:
        """The seed of the rounds, and how many there were."""
        return {"rounds": np.array([problem.seed.integers(0, 2**63), 0], np.uint64)}

    def shares(self, problem: SampledProblem, weights: Floats, chains: dict[str, Any]) -> tuple[Floats, dict[str, Any]]:
        """One round."""
        rounds = np.array(chains["rounds"], np.uint64)
        rounds[1] += np.uint64(1)
        seed = int(mixed_bits(rounds[:1] + mixed_bits(rounds[1:]))[0] >> np.uint64(1))
        (counts,) = self.rows.ask(self.question, (problem.model.log_potentials(weights), seed)).parts
        return counts / self.rows.weight, {"rounds": rounds}

    def means(self, problem: SampledProblem, weights: Floats) -> tuple[Floats, Floats]:
        """By rounds that know nothing of each other, which together make as many draws as the free chains."""
        chains, sampling = self.start(problem), problem.sampling
        rounds = max(PARTS, min(sampling.draws, math.ceil(sampling.chains * sampling.draws * self.noise)))
        means = np.empty((rounds, problem.model.n_weights))
        for part in means:
            shares, chains = self.shares(problem, weights, chains)
            part[:] = problem.model.expected(shares)
        return _mean_and_error(means)


@dataclass(frozen=True)
class RestartedCounts:
    """The weights of all cells (n_cells,) in `copies` chains that begin at each row, with log-potentials and a seed."""

    names: tuple[Hashable, ...]
    cards: tuple[int, ...]
    scopes: tuple[tuple[int, ...], ...]
    scan: str
    sweeps: int
    copies: int

    def __call__(self, rows: ObservedRows, parameters: tuple[Floats, int]) -> Answers:
        """Random numbers of a chain follow from the values of its row."""
        logs, seed = parameters
        sampler = shard_sampler(self.cards, self.scopes, self.scan).at(logs)
        codes = np.tile(_codes(rows, self.names), self.copies)
        marks = np.concatenate([row_marks(rows, tuple(rows.columns), seed + copy) for copy in range(self.copies)])
        states, clamped = np.empty(codes.shape, np.uint8), (codes >= 0).astype(np.uint8)
        for site, card in enumerate(self.cards):
            marks = mixed_bits(marks + STEP)
            drawn = ((marks >> np.uint64(11)) * 2.0**-53 * card).astype(np.uint8)
            states[site] = np.where(clamped[site], codes[site], drawn)
        stream = np.empty((4, len(marks)), np.uint32)
        for part in stream:
            marks = mixed_bits(marks + STEP)
            part[:] = marks >> np.uint64(32)
        chains = GibbsChains(states, stream, np.array([seed, 0], np.uint64), clamped)
        sampler.sweep(chains, self.sweeps)
        return Answers((sampler.counts(chains.states, np.tile(rows.weights, self.copies) / self.copies),))


def _signed_weights(rows: ObservedRows, _: None) -> Answers:
    """Sums of weights with random signs, whose squares are on average that of the weights of distinct rows.

    The sketch of Alon, Matias and Szegedy (1996): signs follow from values, so that equal rows of any shards have one.
    """
    sums = np.empty(SIGNS)
    for number in range(SIGNS):
        heads = row_marks(rows, tuple(rows.columns), number) >> np.uint64(63) == 0
        sums[number] = float(np.where(heads, rows.weights, -rows.weights).sum())
    return Answers((sums,))
