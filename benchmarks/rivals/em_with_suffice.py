"""Our own EM."""

from __future__ import annotations

import time
import warnings

import numpy as np

from benchmarks.contender import Data, Run
from benchmarks.network import Network
from benchmarks.problems.em import text_columns
from suffice import BayesianNetwork


def fit(data: Data, *, steps: int) -> Run:
    """A given number of plain steps, from a pandas frame of categories with gaps.

    The time of a step is that between two calls back; the first begins with the fit, and takes the reading of the frame
    and the start with it.
    """
    import pandas as pd

    network = Network.of(data)
    columns = text_columns(data)
    frame = pd.DataFrame(
        {name: pd.Categorical(columns[name], network.states(at)) for at, name in enumerate(network.names)}
    )

    def run() -> object:
        marks = [time.process_time()]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # A limit on the steps is reached, as asked.
            net = BayesianNetwork(
                network.structure, max_iter=steps, callback=lambda _: marks.append(time.process_time())
            ).fit(frame)
        tables = [net.table(name).values.ravel() for name in network.names]
        return np.diff(marks).tolist(), np.concatenate(tables)

    return run
