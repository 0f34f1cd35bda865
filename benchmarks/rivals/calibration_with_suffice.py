"""Our own junction tree."""

from __future__ import annotations

import itertools

import numpy as np

import suffice as sf
from benchmarks.contender import Data, Run
from benchmarks.problems.calibration import fresh_process, question


def repeated(data: Data) -> Run:
    """A new case of evidence each time, from the same network; the network is read before."""
    path, evidence, states = question(data)
    net = sf.read(path)
    turns = itertools.cycle(evidence)

    def run() -> object:
        found = net.marginals(next(turns))
        return np.concatenate([found[name].values for name in states])

    return run


def fresh(data: Data) -> Run:
    """A process that starts, imports, reads the file, answers once and ends."""
    return fresh_process(_SCRIPT, data)


_SCRIPT = """
import json, sys
import suffice as sf
sf.read(sys.argv[1]).marginals(json.loads(sys.argv[2]))
"""
