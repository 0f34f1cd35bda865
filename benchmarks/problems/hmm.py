"""Baum-Welch of hidden Markov models: the same start, the same number of steps, the same likelihood."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.contender import Contender, Data

ITERATIONS = 5
SYMBOLS = 20
LENGTH = 10_000

_RIVALS = "benchmarks.rivals"
_OURS = "benchmarks.rivals.hmm_with_suffice"


@dataclass(frozen=True)
class BaumWelch:
    """States that emit symbols, real numbers or three of them at once; rows are steps, in sequences of 10,000."""

    states: int
    law: str
    REPEATS: int = 3

    ROWS = 200_000

    @property
    def NAME(self) -> str:  # noqa: N802  a constant of the problem
        return f"hmm, {self.states} states, {self.law}"

    @property
    def CONTENDERS(self) -> tuple[Contender, ...]:  # noqa: N802  a constant of the problem
        law = {"law": self.law}
        most = None if self.states <= 10 else 200_000
        # They take minutes with 50 states; pomegranate runs once, dynamax once more after its compilation.
        more = (
            Contender(
                "pomegranate", f"{_RIVALS}.hmm_with_pomegranate", "fit", law, "pomegranate", most_rows=most, once=True
            ),
            Contender("dynamax", f"{_RIVALS}.hmm_with_dynamax", "fit", law, "dynamax", most_rows=most),
        )
        return (
            Contender("arithmetic: 6 T K^2 by BLAS", "benchmarks.rivals.hmm_floor", "passes", limit=True),
            Contender("suffice", _OURS, "fit", law),
            Contender("hmmlearn", "benchmarks.rivals.hmm_with_hmmlearn", "fit", law, "hmmlearn"),
            *(more if self.law != "3 columns" else ()),
        )

    def title(self, rows: int) -> str:
        return f"Baum-Welch, {ITERATIONS} iterations, {self.states} states, {self.law}, {rows:,} steps"

    def make(self, rows: int, seed: int) -> Data:
        """Steps of a chain that tends to stay, and a start away from its parameters."""
        rng = np.random.default_rng(seed)
        size = self.states
        stay = 0.9 * np.eye(size) + 0.1 * rng.dirichlet(np.ones(size), size)
        laws = rng.dirichlet(np.full(SYMBOLS, 0.3), size)
        state, states = 0, np.empty(rows, np.int64)
        upper, draws = stay.cumsum(axis=1), rng.random(rows)
        for t in range(rows):
            state = min(int(np.searchsorted(upper[state], draws[t])), size - 1)
            states[t] = state
        means = 2.0 * np.arange(size)
        if self.law == "symbols":
            picks = (rng.random(rows)[:, None] > laws.cumsum(axis=1)[states]).sum(axis=1)
            x: Any = np.minimum(picks, SYMBOLS - 1)
        else:
            x = means[states] + rng.normal(size=rows)
            if self.law == "3 columns":
                x = np.stack([x, states % 3 + rng.normal(size=rows), rng.normal(size=rows)], axis=1)
        return {
            "x": x,
            "lengths": np.array([*[LENGTH] * (rows // LENGTH), *([rows % LENGTH] if rows % LENGTH else [])]),
            "initial": np.full(size, 1 / size),
            "transitions": 0.7 * np.eye(size) + 0.3 * rng.dirichlet(np.ones(size), size),
            "symbols": rng.dirichlet(np.ones(SYMBOLS), size),
            "means": self._start(means, rng),
            "variances": np.full((size, 3) if self.law == "3 columns" else size, 2.0),
        }

    def _start(self, means: Any, rng: Any) -> Any:
        first = means + rng.normal(size=len(means))
        return np.stack([first, *rng.normal(size=(2, len(means)))], axis=1) if self.law == "3 columns" else first

    def judge(self, data: Data) -> Callable[[str, Any], str]:
        """The log-likelihood of a step under the answer, computed alike for all contenders."""
        from benchmarks.rivals.hmm_with_suffice import model

        def verdict(_: str, answer: Any) -> str:
            if answer is None:
                return ""
            given = dict(zip(("initial", "transitions", "symbols", "means", "variances"), answer, strict=True))
            found = model(given, self.law, max_iter=0).fit(data["x"][:2000])
            value = found.score(data["x"], lengths=data["lengths"])
            return f"log-likelihood {value:.6f} a step"

        return verdict


def cases() -> Iterator[BaumWelch]:
    """Both kinds of emission, few and many states."""
    for law in ("symbols", "normal"):
        for states in (2, 4, 10, 50):
            yield BaumWelch(states, law)
    yield BaumWelch(10, "3 columns")
