"""Our own networks through time, and our hidden Markov model where the network is one."""

from __future__ import annotations

from typing import Any

import numpy as np

import suffice as sf
from benchmarks.contender import Data, Run
from benchmarks.problems.dynamic import STATES, SYMBOLS


def smooth(data: Data) -> Run:
    """From a list of tables to the posteriors of the first chain."""
    moves, emits, seen = data["moves"], data["emits"], data["seen"]
    names = [f"h{chain}" for chain in range(len(moves))]
    arcs: list[Any] = [((above, -1), below) for below in names for above in names]
    arcs += [(name, f"y{chain}") for chain, name in enumerate(names)]
    fixed: dict[Any, Any] = {(name, 0): np.full(STATES, 1.0 / STATES) for name in names}
    fixed |= {name: moves[chain] for chain, name in enumerate(names)}
    fixed |= {f"y{chain}": emits[chain] for chain in range(len(names))}
    net = sf.DynamicBayesianNetwork(
        arcs,
        hidden=dict.fromkeys(names, STATES),
        states={f"y{chain}": range(SYMBOLS) for chain in range(len(names))},
        fixed=fixed,
    )
    series = [{f"y{chain}": one[:, chain] for chain in range(len(names))} for one in seen]

    def run() -> object:
        return np.stack([one["h0"] for one in net.smooth(series, "h0")])

    return run


def smooth_hmm(data: Data) -> Run:
    """The same by a `HiddenMarkovModel`."""
    fixed = ["initial", "transitions", "emissions"]
    model = sf.HiddenMarkovModel(
        STATES,
        sf.Categorical(states=range(SYMBOLS)),
        initial=np.full(STATES, 1.0 / STATES),
        transitions=data["moves"][0],
        emissions=data["emits"][0],
        fixed=fixed,
        max_iter=0,
    )
    sequences = list(data["seen"][..., 0])
    model.fit(sequences[:2])

    def run() -> object:
        return np.stack([*model.predict_proba(sequences)])

    return run
