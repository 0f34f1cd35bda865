"""What a fitted hidden Markov model says about sequences: states, their probabilities, what follows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from suffice.engines.chain import Chains
from suffice.engines.chain_blocks import blocks, map_blocks
from suffice.engines.chain_messages import filtered
from suffice.errors import OptionError
from suffice.families.base import as_floats, take_states
from suffice.models.hidden_markov.chains import Observed, chains
from suffice.models.hidden_markov.emissions.distributions import MixtureDistribution
from suffice.models.hidden_markov.expectation import Expectation
from suffice.models.hidden_markov.fitted import HiddenMarkovFitted
from suffice.models.hidden_markov.input import check_possible

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Decoder:
    """A fitted value, asked about sequences; what is impossible has no posterior, and is an error that names it."""

    fitted: HiddenMarkovFitted
    threads: int | None

    def smoothed(self, observed: Observed) -> Floats:
        """P(state at a step | whole sequence) (steps, K)."""
        return np.concatenate(self._by_block(observed, _posteriors))

    def filtered(self, observed: Observed) -> Floats:
        """P(state at a step | sequence up to that step) (steps, K)."""
        return np.concatenate(self._by_block(observed, lambda chain: filtered(chain, threads=1)))

    def pairs(self, observed: Observed) -> list[Floats]:
        """P(state at a step, state at the next | whole sequence) (steps - 1, K, K) of each sequence."""
        whole = np.concatenate(self._by_block(observed, _pairs))
        return [whole[a + 1 : b] for a, b in zip(observed.offsets, observed.offsets[1:], strict=False)]

    def paths(self, observed: Observed, most: int) -> tuple[Codes, Floats]:
        """The most probable paths (most, steps) of all sequences, best first, and log P(path, sequence) (n, most)."""

        def task(chain: Chains) -> tuple[Floats, tuple[Any, Floats]]:
            codes, values = chain.best_paths(most, threads=1)
            return values[:, 0], (codes, values)

        found = self._by_block(observed, task)
        return np.concatenate([part[0] for part in found], axis=1), np.concatenate([part[1] for part in found])

    def best(self, observed: Observed, most: int) -> list[list[tuple[NDArray[Any], float]]]:
        """Of each sequence its most probable paths by name, each with its log-probability."""
        codes, values = self.paths(observed, most)
        found = []
        for s in range(observed.n_sequences):
            span = slice(int(observed.offsets[s]), int(observed.offsets[s + 1]))
            ranks = [rank for rank in range(most) if values[s, rank] > -np.inf]
            found.append([(self.named(codes[rank, span]), float(values[s, rank])) for rank in ranks])
        return found

    def drawn_paths(self, observed: Observed, n: int, rng: np.random.Generator) -> Codes:
        """Paths (n, steps) of states drawn from P(states | sequence)."""
        fitted = self.fitted
        check_possible(Expectation(observed, fitted.emission, self.threads).log_likelihoods(fitted.parameters))
        chain = chains(observed, fitted.emission, fitted.parameters)
        return np.asarray(chain.sample(n, random_state=rng, threads=self.threads))

    def ahead(self, observed: Observed, steps: int) -> Floats:
        """P(state | sequence) (n, steps, K) for the steps that follow each sequence."""
        rows, found = self.filtered(observed)[observed.offsets[1:] - 1], []
        for _ in range(steps):
            rows = rows @ self.fitted.parameters.transitions
            found.append(rows)
        return np.stack(found, axis=1)

    def mixed(self, shares: Any) -> MixtureDistribution:
        """The distribution of an observation whose state has the probabilities `shares` (K,)."""
        weights = np.atleast_1d(as_floats(shares, "shares"))
        if weights.shape != (len(self.fitted.states),):
            raise OptionError(f"shares has shape {weights.shape}; expected one probability for each state.")
        if (weights < 0).any() or not weights.sum() > 0:
            raise OptionError(f"shares is {shares!r}; expected numbers of at least 0, not all of them 0.")
        return MixtureDistribution(self.fitted.emissions, weights=weights / weights.sum())

    def drawn(self, count: int, steps: int, rng: np.random.Generator) -> tuple[NDArray[Any], NDArray[Any]]:
        """Observations (count * steps, ...) and states (count * steps,) of new sequences, end to end."""
        parameters = self.fitted.parameters
        codes = np.empty((count, steps), np.intp)
        rows = np.vstack([parameters.initial, parameters.transitions]).cumsum(axis=1)
        rows[:, -1] = 1.0
        before = np.zeros(count, np.intp)
        for t in range(steps):
            u = rng.random(count)
            codes[:, t] = (u[:, None] >= rows[before]).sum(axis=1)
            before = codes[:, t] + 1
        columns = self.fitted.emission.draw(codes.ravel(), parameters.emission, rng)
        values = columns[0] if len(columns) == 1 else _side_by_side(columns)
        return values, self.named(codes.ravel())

    def named(self, codes: Codes) -> NDArray[Any]:
        """States by name."""
        return take_states(self.fitted.states, codes)

    def _by_block(self, observed: Observed, task: Callable[[Chains], tuple[Floats, T]]) -> list[T]:
        """Answers for blocks of sequences; the task gives log P of each sequence of a block, then its answer."""
        fitted = self.fitted

        def work(span: tuple[int, int]) -> tuple[Floats, T]:
            return task(chains(observed.take(*span), fitted.emission, fitted.parameters))

        found = map_blocks(work, blocks(observed.offsets, fitted.emission.size), self.threads)
        check_possible(np.concatenate([mass for mass, _ in found]))
        return [answer for _, answer in found]


def whole_number(value: Any, name: str) -> int:
    """A whole number of at least 1."""
    if not (isinstance(value, int | np.integer) and not isinstance(value, bool) and value >= 1):
        raise OptionError(f"{name} is {value!r}; expected a whole number of at least 1.")
    return int(value)


def _posteriors(chain: Chains) -> tuple[Floats, Floats]:
    found = chain.expectations(threads=1)
    return found.log_partition, found.posteriors


def _pairs(chain: Chains) -> tuple[Floats, Any]:
    found = chain.expectations(pairs=True, threads=1)
    return found.log_partition, found.pairs


def _side_by_side(columns: list[NDArray[Any]]) -> NDArray[Any]:
    if all(column.dtype.kind in "biuf" for column in columns):
        return np.stack(columns, axis=1)
    return np.stack([column.astype(object) for column in columns], axis=1)
