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
_COMPILED = {"SUFFICE_KERNELS": "compiled", "OPENBLAS_NUM_THREADS": "1"}
_SINGLE = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


@dataclass(frozen=True)
class BaumWelch:
    """States that emit symbols or real numbers; rows are steps, in sequences of 10,000."""

    states: int
    law: str
    REPEATS: int = 3

    ROWS = 1_000_000
    FLOOR = "arithmetic: 6 T K^2 by BLAS"
    OURS = "suffice"

    @property
    def NAME(self) -> str:  # noqa: N802  a constant of the problem
        return f"hmm, {self.states} states, {self.law}"

    @property
    def CONTENDERS(self) -> tuple[Contender, ...]:  # noqa: N802  a constant of the problem
        law = {"law": self.law}
        most = None if self.states <= 10 else 200_000
        return (
            Contender(self.FLOOR, "benchmarks.rivals.hmm_floor", "passes", environment=_SINGLE),
            Contender("suffice", _OURS, "fit", {**law, "threads": 1}, environment=_COMPILED),
            Contender("suffice, 2 threads", _OURS, "fit", {**law, "threads": 2}, environment=_COMPILED),
            Contender("hmmlearn", "benchmarks.rivals.hmm_with_hmmlearn", "fit", law, "hmmlearn", _SINGLE),
            # They take minutes with 50 states; pomegranate runs once, dynamax once more after its compilation.
            Contender("pomegranate", f"{_RIVALS}.hmm_with_pomegranate", "fit", law, "pomegranate", _SINGLE, most, True),
            Contender("dynamax", f"{_RIVALS}.hmm_with_dynamax", "fit", law, "dynamax", _SINGLE, most),
        )

    def title(self, rows: int) -> str:
        return f"Baum-Welch, {ITERATIONS} iterations, {self.states} states, {self.law}, {rows:,} steps"

    def make(self, rows: int) -> Data:
        """Steps of a chain that tends to stay, and a start away from its parameters."""
        rng = np.random.default_rng(0)
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
        return {
            "x": x,
            "lengths": np.array([*[LENGTH] * (rows // LENGTH), *([rows % LENGTH] if rows % LENGTH else [])]),
            "initial": np.full(size, 1 / size),
            "transitions": 0.7 * np.eye(size) + 0.3 * rng.dirichlet(np.ones(size), size),
            "symbols": rng.dirichlet(np.ones(SYMBOLS), size),
            "means": means + rng.normal(size=size),
            "variances": np.full(size, 2.0),
        }

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
    for states in (10, 50):
        for law in ("symbols", "normal"):
            yield BaumWelch(states, law)
