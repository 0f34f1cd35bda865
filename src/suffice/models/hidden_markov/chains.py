"""Observed sequences as chains of hidden states."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.engines.chain import Chains
from suffice.models.hidden_markov.emissions.contract import Data, Emission
from suffice.models.hidden_markov.parameters import ChainParameters
from suffice.sources.sequences import Sequences

#: What was seen: the arrays of the emission, with the weights of sequences and the codes of states that are known.
Observed: TypeAlias = Sequences[Data]

#: Passes to expect of work that comes back: the path of the kernels must not depend on what was done before.
CALLS = 500


def chains(
    observed: Observed,
    emission: Emission,
    parameters: ChainParameters,
    ends: Floats | None = None,
    *,
    out: Floats | None = None,
) -> Chains:
    """The sequences as chains of hidden states; `ends` (2, K) replaces the first state's distribution and ends openly.

    out (steps, K) is memory that may be used for the potentials.
    """
    potentials, shift = emission.potentials(observed.values, parameters.emission, out)
    if observed.labels is not None:
        _forbid(potentials, observed.labels, 0.0)
        _rescale(potentials, shift, observed.labels)
    size = len(parameters.initial)
    edges = np.stack([parameters.initial, np.ones(size)]) if ends is None else ends

    def scores(span: slice) -> Floats:
        logs = emission.log_densities(tuple(part[span] for part in observed.values), parameters.emission)
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
