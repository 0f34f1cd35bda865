"""Our own sources, from the file to the tables."""

from __future__ import annotations

import numpy as np

from benchmarks.alarm import CARDS, FAMILIES, VARIABLES
from benchmarks.contender import Data, Run
from suffice.domain import Variable
from suffice.sources import open_source, summarize_source
from suffice.statistics import Counts


def counts(data: Data, *, threads: int, declared: bool = True) -> Run:
    """One pass over the file for all families."""
    names = list(VARIABLES)
    asked = [Counts(tuple(names[variable] for variable in family)) for family in FAMILIES]
    states = {
        name: Variable.discrete(name, [f"s{state}" for state in range(card)])
        for name, card in zip(names, CARDS, strict=True)
    }

    def run() -> object:
        source = open_source(str(data["path"]))
        domain = source.infer(names, states if declared else {})
        found = summarize_source(source, domain, asked, threads=threads)
        return np.concatenate([found[key].dense().ravel() for key in asked]).astype(np.int64)

    return run
