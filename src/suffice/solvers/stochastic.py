"""Stochastic ascent: the gradient is known only up to noise, as when expectations come from a few Markov chains.

One update is ``x <- x + step_t * g / spread^2`` with a noisy gradient g of the objective, which is ascended: g is
observed minus expected, and x moves along it. Steps fall as ``(1 + t / DELAY)^-decay`` (Robbins and Monro 1951). What
is returned is the mean of the iterates over a stage (Polyak and Juditsky 1992). Stages double; after each one the mean
gradient is measured at the mean iterate, which stays put meanwhile, and that is what the tolerance is compared with.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from suffice.array_types import Floats
from suffice.checks import share
from suffice.fitting.control import Control, Outcome, State, iterate
from suffice.solvers.online import step_sizes

Chains = dict[str, Any]

#: Updates of the first stage.
FIRST_STAGE = 50
#: Updates after which a step has fallen to about 2^-decay of the first.
DELAY = 100.0
#: The share of a measurement that is left out, while the chains forget where they come from.
FORGET = 0.25
#: No update moves a parameter by more than this many units of 1 / spread.
LONGEST = 0.5


class NoisyGradient(Protocol):
    """A noisy gradient at x (k,) from chains, which it moves in place."""

    def __call__(self, x: Floats, chains: Chains, *, measuring: bool) -> Floats:
        """The gradient; measuring: at an x that stays put, where minibatches would only add noise."""
        ...


@dataclass(frozen=True)
class AscentSteps:
    """Step sizes: a number to begin with, or a function of the number of the update; None adapts them.

    Adaptive steps are halved when two gradients in a row point against each other by more than their noise explains,
    and grow slowly while they agree by more than that.
    """

    size: float | Callable[[int], float] | None = None
    decay: float = 0.6

    def __post_init__(self) -> None:
        """Refuse steps that make no sense."""
        if self.size is not None:
            step_sizes(self.size, self.decay)
        share(self.decay, "decay")

    def at(self, t: int, base: float) -> float:
        """The step of update t."""
        if callable(self.size):
            return float(self.size(t))
        return float((base if self.size is None else self.size) / (1.0 + t / DELAY) ** self.decay)

    def adapted(self, base: float, agreement: float, noise: float) -> float:
        """The base of the next steps, where the last two gradients have this inner product."""
        if self.size is not None or abs(agreement) <= noise:
            return base
        return 0.5 * base if agreement < 0.0 else min(1.1 * base, 4.0)


def ascend(x: Floats, gradient: Floats, spread: Floats, step: float) -> Floats:
    """One update: ``x + step * gradient / spread^2``, cut where it would be longer than `LONGEST / spread`."""
    return np.asarray(x + np.clip(step * gradient / spread, -LONGEST, LONGEST) / spread)


def stochastic_ascent(
    gradient: NoisyGradient,
    start: Floats,
    chains: Chains,
    control: Control,
    *,
    spread: Floats,
    noise: float,
    steps: AscentSteps | None = None,
    problem: str = "",
) -> Outcome:
    """Follow a noisy gradient uphill.

    spread (k,): standard deviation of what each component of the gradient observes; the gap is the largest component of
    the mean gradient in these units. noise: variance of one noisy gradient in the same units, all components together.
    The state's memory holds the chains, so that a checkpoint goes on to the same result.
    """
    rule = AscentSteps() if steps is None else steps
    size = len(start)
    significant = noise * (1.0 + 3.0 * np.sqrt(2.0 / max(size, 1)))

    def step(state: State) -> State:
        memory = dict(state.memory)
        return (_measure if memory["measuring"] else _climb)(state, memory)

    def _climb(state: State, memory: dict[str, Any]) -> State:
        answer = gradient(memory["walk"], memory["chains"], measuring=False)
        # No dot product: for long vectors it would wake all threads of BLAS, each time.
        agreement = float(np.sum(answer / spread * (memory["last"] / spread)))
        base = rule.adapted(float(memory["base"]), agreement, significant)
        walk = ascend(memory["walk"], answer, spread, rule.at(int(memory["updates"]), base))
        memory |= {"walk": walk, "last": answer, "base": base, "updates": int(memory["updates"]) + 1}
        memory |= {"sum": memory["sum"] + walk, "done": int(memory["done"]) + 1}
        parameters = memory["sum"] / memory["done"] if memory["stage"] == FIRST_STAGE else state.parameters
        if memory["done"] == memory["stage"]:
            parameters = memory["sum"] / memory["done"]
            memory |= {"measuring": True, "done": 0, "sum": np.zeros(size)}
            return State(parameters, state.objective, state.gap, state.iteration, {**memory, "walk": parameters})
        return State(parameters, state.objective, state.gap, state.iteration, memory)

    def _measure(state: State, memory: dict[str, Any]) -> State:
        answer = gradient(memory["walk"], memory["chains"], measuring=True)
        done, length = int(memory["done"]) + 1, int(memory["stage"]) // 2
        skipped = int(FORGET * length)
        memory |= {"done": done, "sum": memory["sum"] + answer if done > skipped else memory["sum"]}
        if done < length:
            return State(state.parameters, state.objective, state.gap, state.iteration, memory)
        gap = float(np.abs(memory["sum"] / (length - skipped) / spread).max(initial=0.0))
        memory |= {"measuring": False, "done": 0, "stage": 4 * length, "sum": np.zeros(size), "last": np.zeros(size)}
        return State(memory["walk"], -gap, gap, state.iteration, memory)

    first = gradient(start, chains, measuring=False)
    gap = float(np.abs(first / spread).max(initial=0.0))
    memory: dict[str, Any] = {"walk": start, "last": first, "base": 0.5, "updates": 0, "sum": np.zeros(size)}
    memory |= {"done": 0, "stage": FIRST_STAGE, "measuring": False, "chains": chains}
    # The first gradient is one noisy draw: it can be small by chance, but a fit has to be measured before it may end.
    begin = State(start, -gap, max(gap, np.nextafter(control.tolerance, np.inf)), memory=memory)
    return iterate(step, begin, control, problem=problem)
