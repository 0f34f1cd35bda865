"""Observed sequences, and the chains of hidden states behind them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from suffice.engines.chain import Chains
from suffice.models.hidden_markov.emissions.contract import Data, Emission
from suffice.models.hidden_markov.parameters import Parameters

Floats = NDArray[np.float64]

#: Passes to expect of work that comes back: the path of the kernels must not depend on what was done before.
CALLS = 500


@dataclass(frozen=True, eq=False)
class Observed:
    """What was seen: the arrays of the emission, where sequences begin, their weights, and states that are known.

    `labels` (steps,) are codes of states, -1 where the state is not known; None where none is.
    """

    data: Data
    offsets: NDArray[np.int64]
    weights: Floats
    labels: NDArray[np.int32] | None = None

    @property
    def n_sequences(self) -> int:
        """How many sequences there are."""
        return len(self.offsets) - 1

    @property
    def n_steps(self) -> int:
        """How many steps they have."""
        return int(self.offsets[-1])

    @property
    def weight(self) -> float:
        """Steps, weighted."""
        return float(self.weights @ np.diff(self.offsets))

    @property
    def step_weights(self) -> Floats:
        """The weight of each step (steps,)."""
        return np.repeat(self.weights, np.diff(self.offsets))

    def merged(self) -> Observed:
        """Each sequence once, in the order of first ones, with the sum of its weights; those without any are gone."""
        first: dict[bytes, int] = {}
        weights: list[float] = []
        kept: list[int] = []
        parts = self.data if self.labels is None else (*self.data, self.labels)
        bounds = self.offsets.tolist()
        for at, weight in enumerate(self.weights.tolist()):
            if not weight > 0:
                continue
            key = b"".join(part[bounds[at] : bounds[at + 1]].tobytes() for part in parts)
            place = first.setdefault(key, len(kept))
            if place == len(kept):
                kept.append(at)
                weights.append(weight)
            else:
                weights[place] += weight
        if len(kept) == self.n_sequences:
            return self
        steps = np.concatenate([np.arange(bounds[at], bounds[at + 1]) for at in kept])
        offsets = np.concatenate([[0], np.cumsum(np.diff(self.offsets)[kept])]).astype(np.int64)
        labels = None if self.labels is None else self.labels[steps]
        return Observed(tuple(part[steps] for part in self.data), offsets, np.array(weights), labels)

    @cached_property
    def even(self) -> bool:
        """Whether every sequence counts once."""
        return bool((self.weights == 1.0).all())

    def take(self, first: int, last: int) -> Observed:
        """Some sequences in a row."""
        begin, end = int(self.offsets[first]), int(self.offsets[last])
        labels = None if self.labels is None else self.labels[begin:end]
        data = tuple(part[begin:end] for part in self.data)
        return Observed(data, self.offsets[first : last + 1] - begin, self.weights[first:last], labels)

    def steps(self, begin: int, end: int) -> Observed:
        """A stretch of steps of one sequence."""
        labels = None if self.labels is None else self.labels[begin:end]
        data = tuple(part[begin:end] for part in self.data)
        return Observed(data, np.array([0, end - begin], dtype=np.int64), self.weights[:1], labels)


def chains(
    observed: Observed,
    emission: Emission,
    parameters: Parameters,
    ends: Floats | None = None,
    *,
    out: Floats | None = None,
) -> Chains:
    """The sequences as chains of hidden states; `ends` (2, K) replaces the law of the first state and ends openly.

    out (steps, K) is memory that may be used for the potentials.
    """
    potentials, shift = emission.potentials(observed.data, parameters.emission, out)
    if observed.labels is not None:
        _forbid(potentials, observed.labels, 0.0)
        _rescale(potentials, shift, observed.labels)
    size = len(parameters.initial)
    edges = np.stack([parameters.initial, np.ones(size)]) if ends is None else ends

    def scores(span: slice) -> Floats:
        logs = emission.log_densities(tuple(part[span] for part in observed.data), parameters.emission)
        logs = logs - shift[span, None]
        if observed.labels is not None:
            _forbid(logs, observed.labels[span], -np.inf)
        return logs

    with np.errstate(divide="ignore"):
        logs, log_edges = np.log(parameters.transitions)[None], np.log(edges)
    matrices = np.ascontiguousarray(parameters.transitions)[None]
    return Chains(potentials, matrices, edges, observed.offsets, shift, scores, logs, log_edges)


def _forbid(rows: Floats, labels: NDArray[np.int32], value: float) -> None:
    """Set what contradicts a known state."""
    known = np.flatnonzero(labels >= 0)
    kept = rows[known, labels[known]]
    rows[known] = value
    rows[known, labels[known]] = kept


def _rescale(potentials: Floats, shift: Floats, labels: NDArray[np.int32]) -> None:
    """Steps of a known state have one potential that is not 0; it becomes 1. One that underflowed asks for logs."""
    known = np.flatnonzero(labels >= 0)
    own = potentials[known, labels[known]]
    some = known[own > 0]
    shift[some] += np.log(own[own > 0])
    potentials[some, labels[some]] = 1.0
