"""pyAgrum."""

from __future__ import annotations

import itertools

import numpy as np
import pyagrum as gum

from benchmarks.contender import Data, Run
from benchmarks.problems.calibration import fresh_process, question


def repeated(data: Data, *, engine: str) -> Run:
    """A new case of evidence each time, in the same engine; the network is read before."""
    path, evidence, states = question(data)
    model = gum.loadBN(path)
    inference = getattr(gum, engine)(model)
    order = {name: [model.variable(name).labels().index(state) for state in listed] for name, listed in states.items()}
    turns = itertools.cycle(evidence)

    def run() -> object:
        inference.setEvidence(next(turns))
        inference.makeInference()
        return np.concatenate([inference.posterior(name).toarray()[places] for name, places in order.items()])

    return run


def fresh(data: Data) -> Run:
    """A process that starts, imports, reads the file, answers once and ends."""
    return fresh_process(_SCRIPT, data)


_SCRIPT = """
import json, sys
import pyagrum as gum
model = gum.loadBN(sys.argv[1])
engine = gum.LazyPropagation(model)
engine.setEvidence(json.loads(sys.argv[2]))
engine.makeInference()
for name in model.names():
    engine.posterior(name)
"""
