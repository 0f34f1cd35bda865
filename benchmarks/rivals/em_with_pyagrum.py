"""pyAgrum's EM, one thread."""

from __future__ import annotations

import time

import numpy as np
import pyagrum as gum

from benchmarks.contender import Data, Run
from benchmarks.network import Network
from benchmarks.problems.em import text_columns
from benchmarks.rivals.networks_with_pyagrum import tables, template


def fit(data: Data, *, rate: float) -> Run:
    """Until its log-likelihood changes by less than this share of itself, from its usual start.

    A tiny pseudo-count, as pyAgrum refuses parent configurations without rows. The time of a step is that of all steps,
    without the reading of the frame, over their number.
    """
    import pandas as pd

    network = Network.of(data)
    columns = {name: np.where(column == None, "?", column) for name, column in text_columns(data).items()}  # noqa: E711
    frame = pd.DataFrame(columns)
    model = template(network)

    def run() -> object:
        learner = gum.BNLearner(frame, model, ["?"])
        learner.setNumberOfThreads(1)
        learner.useSmoothingPrior(1e-6)
        learner.useEM(rate)
        began = time.process_time()
        learned = learner.learnParameters(model.dag())
        steps = learner.EMnbrIterations()
        return [(time.process_time() - began) / steps] * steps, tables(learned, network)

    return run
