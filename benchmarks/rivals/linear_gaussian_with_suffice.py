"""Our own network of regressions."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.contender import Data, Run
from benchmarks.problems.linear_gaussian import families
from suffice import BayesianNetwork


def fit(data: Data, *, frame: bool = False) -> Run:
    """From a matrix of rows, or from a pandas frame, with construction, certificate and report."""
    names = [f"v{node}" for node in range(len(data["columns"]))]
    structure = {f"v{node}": [f"v{parent}" for parent in above] for node, above in enumerate(families(data))}
    table: Any = dict(zip(names, data["columns"], strict=True))
    if frame:
        import pandas as pd

        table = pd.DataFrame(table)

    def run() -> object:
        net = BayesianNetwork(structure).fit(table)
        return [np.append(net.node(name).weights_, net.node(name).variance_) for name in names]

    return run
