"""Networks through time: P(hidden node in a slice | the whole series), for given tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.contender import Contender, Data

LENGTH = 100
STATES, SYMBOLS = 3, 4

_RIVALS = "benchmarks.rivals"


@dataclass(frozen=True)
class Smoothing:
    """Hidden chains, one or two that act upon each other, each with a symbol; rows are slices, a hundred a series."""

    chains: int
    REPEATS: int = 3

    ROWS = 20_000

    @property
    def NAME(self) -> str:  # noqa: N802  a constant of the problem
        return f"dynamic, {self.chains} hidden chain{'s' * (self.chains > 1)}"

    @property
    def CONTENDERS(self) -> tuple[Contender, ...]:  # noqa: N802  a constant of the problem
        one = (
            Contender("suffice, HiddenMarkovModel", f"{_RIVALS}.dynamic_with_suffice", "smooth_hmm"),
            Contender("hmmlearn", f"{_RIVALS}.dynamic_with_hmmlearn", "smooth", requires="hmmlearn"),
            Contender("dynamax", f"{_RIVALS}.dynamic_with_dynamax", "smooth", requires="dynamax"),
        )
        return (
            Contender("suffice", f"{_RIVALS}.dynamic_with_suffice", "smooth"),
            *(one if self.chains == 1 else ()),
            # It makes the network of all slices, and asks it once a series.
            Contender(
                "pyAgrum, unrolled", f"{_RIVALS}.dynamic_with_pyagrum", "smooth", requires="pyagrum", most_rows=20_000
            ),
        )

    def title(self, rows: int) -> str:
        return f"Smoothing a network through time, {self.NAME.removeprefix('dynamic, ')}, {rows:,} slices"

    def make(self, rows: int, seed: int) -> Data:
        """Tables drawn from a seed, and series drawn from them."""
        rng = np.random.default_rng(seed)
        above = (STATES,) * self.chains
        moves = 0.2 * rng.dirichlet(np.ones(STATES), (self.chains, *above))
        for chain in range(self.chains):  # Each tends to stay where it is.
            for own in range(STATES):
                np.moveaxis(moves[chain], chain, 0)[own, ..., own] += 0.8
        emits = rng.dirichlet(np.full(SYMBOLS, 0.5), (self.chains, STATES))
        count = max(rows // LENGTH, 1)
        state: Any = rng.integers(0, STATES, (count, self.chains))
        seen = np.empty((count, LENGTH, self.chains), np.int64)
        for time in range(LENGTH):
            if time:
                before = tuple(state.T)
                state = np.stack([_draw(moves[chain][before], rng) for chain in range(self.chains)], axis=1)
            for chain in range(self.chains):
                seen[:, time, chain] = _draw(emits[chain][state[:, chain]], rng)
        return {"moves": moves, "emits": emits, "seen": seen}

    def judge(self, data: Data) -> Callable[[str, Any], str]:
        """How far the posteriors of the first chain are from a plain forward and backward pass over joint states."""
        exact = _smoothed(data)

        def verdict(_: str, answer: Any) -> str:
            return "" if answer is None else f"off by {np.abs(answer - exact).max():.1e}"

        return verdict


def _draw(shares: Any, rng: np.random.Generator) -> Any:
    return np.minimum((rng.random(len(shares))[:, None] > shares.cumsum(axis=1)).sum(axis=1), shares.shape[1] - 1)


def _smoothed(data: Data) -> Any:
    """P(first chain | series) (series, slices, states), by a chain of all joint states."""
    moves, emits, seen = data["moves"], data["emits"], data["seen"]
    chains = len(moves)
    states = np.array(list(np.ndindex(*(STATES,) * chains)))
    joint = np.ones((len(states), len(states)))
    for chain in range(chains):
        joint *= moves[chain][tuple(states.T)][:, states[:, chain]]
    likelihood = np.prod([emits[c][states[:, c]][:, seen[..., c]] for c in range(chains)], axis=0).transpose(1, 2, 0)
    ahead = np.empty_like(likelihood)
    row = np.full(len(states), 1.0 / len(states)) * likelihood[:, 0]
    for time in range(LENGTH):
        if time:
            row = (ahead[:, time - 1] @ joint) * likelihood[:, time]
        ahead[:, time] = row / row.sum(axis=1, keepdims=True)
    back, answer = np.ones((len(seen), len(states))), np.empty((len(seen), LENGTH, STATES))
    for time in reversed(range(LENGTH)):
        both = ahead[:, time] * back
        both /= both.sum(axis=1, keepdims=True)
        answer[:, time] = both @ np.eye(STATES)[states[:, 0]]
        back = (back * likelihood[:, time]) @ joint.T
        back /= back.sum(axis=1, keepdims=True)
    return answer


def cases() -> Iterator[Smoothing]:
    """A hidden Markov model, and two chains that act upon each other."""
    yield Smoothing(1)
    yield Smoothing(2)
