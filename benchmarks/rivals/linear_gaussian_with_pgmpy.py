"""pgmpy."""

from __future__ import annotations

import numpy as np
import pandas as pd
from pgmpy.models import LinearGaussianBayesianNetwork

from benchmarks.contender import Data, Run
from benchmarks.problems.linear_gaussian import families


def fit(data: Data) -> Run:
    parents = families(data)
    names = [f"v{node}" for node in range(len(parents))]
    frame = pd.DataFrame(dict(zip(names, data["columns"], strict=True)))
    edges = [(f"v{parent}", f"v{node}") for node, above in enumerate(parents) for parent in above]

    def run() -> object:
        model = LinearGaussianBayesianNetwork(edges)
        model.add_nodes_from(names)
        model.fit(frame)
        answers = []
        for node, above in enumerate(parents):
            law = model.get_cpds(f"v{node}")
            place = {name: at for at, name in enumerate(law.evidence)}
            weights = [law.beta[1 + place[f"v{parent}"]] for parent in above]
            answers.append(np.array([law.beta[0], *weights, law.std**2]))
        return answers

    return run
