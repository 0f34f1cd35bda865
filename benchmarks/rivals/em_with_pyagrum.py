"""pyAgrum's EM, one thread."""

from __future__ import annotations

import numpy as np
import pyagrum as gum

from benchmarks.contender import Data, Run
from benchmarks.network import Network
from benchmarks.problems.em import text_columns
from benchmarks.rivals.networks_with_pyagrum import tables, template


def fit(data: Data, *, steps: int) -> Run:
    """A given number of steps; a tiny pseudo-count, as pyAgrum refuses parent configurations without rows."""
    import pandas as pd

    network = Network.of(data)
    columns = {name: np.where(column == None, "?", column) for name, column in text_columns(data).items()}  # noqa: E711
    frame = pd.DataFrame(columns)
    model = template(network)

    def run() -> object:
        learner = gum.BNLearner(frame, model, ["?"])
        learner.setNumberOfThreads(1)
        learner.useSmoothingPrior(1e-6)
        learner.useEM(1e-12)
        learner.EMsetMaxIter(steps)
        learned = learner.learnParameters(model.dag())
        return learner.EMnbrIterations(), tables(learned, network)

    return run
