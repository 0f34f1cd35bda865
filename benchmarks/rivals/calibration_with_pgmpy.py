"""pgmpy: variable elimination, one query a node."""

from __future__ import annotations

import itertools

import numpy as np
from pgmpy.inference import VariableElimination
from pgmpy.readwrite import BIFReader

from benchmarks.contender import Data, Run
from benchmarks.problems.calibration import question


def repeated(data: Data) -> Run:
    """A new case of evidence each time; observed nodes are answered by hand, as pgmpy does not query them."""
    path, evidence, states = question(data)
    inference = VariableElimination(BIFReader(path).get_model())
    turns = itertools.cycle(evidence)

    def run() -> object:
        given, found = next(turns), []
        for name, listed in states.items():
            if name in given:
                found.append(np.array([float(state == given[name]) for state in listed]))
                continue
            answer = inference.query([name], evidence=given, show_progress=False)
            found.append(answer.values[[answer.state_names[name].index(state) for state in listed]])
        return np.concatenate(found)

    return run
