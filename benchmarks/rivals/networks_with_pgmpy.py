"""pgmpy."""

from __future__ import annotations

from typing import Any

import numpy as np
from pgmpy.models import DiscreteBayesianNetwork
from pgmpy.parameter_estimator import DiscreteBayesianEstimator, DiscreteMLE

from benchmarks.contender import Data, Run
from benchmarks.network import EQUIVALENT_SAMPLE_SIZE, Network, frame_of


def fit(data: Data, *, prior: str | None = None) -> Run:
    network, frame = Network.of(data), frame_of(data)
    states = {name: network.states(at) for at, name in enumerate(network.names)}

    def run() -> object:
        model = DiscreteBayesianNetwork(network.edges)
        model.add_nodes_from(network.names)
        estimator = (
            DiscreteMLE(state_names=states)
            if prior is None
            else DiscreteBayesianEstimator(
                state_names=states, prior_type="BDeu", equivalent_sample_size=EQUIVALENT_SAMPLE_SIZE
            )
        )
        model.fit(frame, estimator=estimator)
        return np.concatenate([tables_of(model.get_cpds(name), parents) for name, parents in network.structure.items()])

    return run


def tables_of(cpd: Any, parents: list[str]) -> Any:
    """P(node | parents) with the node last, flat; pgmpy keeps the node first and orders the parents itself."""
    order = [cpd.variables.index(name) for name in (*parents, cpd.variable)]
    return cpd.values.transpose(order).ravel()
