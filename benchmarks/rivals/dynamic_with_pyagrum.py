"""pyAgrum: the network of all slices, as its dynamic networks are unrolled, by lazy propagation."""

from __future__ import annotations

import numpy as np
import pyagrum as gum

from benchmarks.contender import Data, Run
from benchmarks.problems.dynamic import LENGTH, STATES, SYMBOLS


def smooth(data: Data) -> Run:
    """One engine, to which each series is given in turn; names are those of its unrolled networks: node and slice."""
    moves, emits, seen = data["moves"], data["emits"], data["seen"]
    chains = range(len(moves))
    model = gum.BayesNet()
    for time in range(LENGTH):
        for chain in chains:
            model.add(gum.LabelizedVariable(f"h{chain}_{time}", "", STATES))
            model.add(gum.LabelizedVariable(f"y{chain}_{time}", "", SYMBOLS))
    for time in range(LENGTH):
        for chain in chains:
            name = f"h{chain}_{time}"
            above = [f"h{other}_{time - 1}" for other in chains] if time else []
            for parent in above:
                model.addArc(parent, name)
            model.addArc(name, f"y{chain}_{time}")
            table = model.cpt(name)
            # Its axes are the parents, the last that was added first, and the node.
            axes = moves[chain].transpose([*reversed(chains), len(chains)])
            table[:] = np.ascontiguousarray(axes) if time else np.full(STATES, 1 / STATES)
            model.cpt(f"y{chain}_{time}")[:] = emits[chain]
    engine = gum.LazyPropagation(model)
    engine.setNumberOfThreads(1)
    targets = [f"h0_{time}" for time in range(LENGTH)]

    def run() -> object:
        answer = np.empty((len(seen), LENGTH, STATES))
        for number, one in enumerate(seen):
            places = [(chain, time) for time in range(LENGTH) for chain in chains]
            engine.setEvidence({f"y{chain}_{time}": int(one[time, chain]) for chain, time in places})
            engine.makeInference()
            answer[number] = [engine.posterior(name).toarray() for name in targets]
        return answer

    return run
