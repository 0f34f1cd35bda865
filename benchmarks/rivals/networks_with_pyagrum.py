"""pyAgrum, one thread."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyagrum as gum

from benchmarks.contender import Data, Run
from benchmarks.network import EQUIVALENT_SAMPLE_SIZE, Network, frame_of


def template(network: Network) -> Any:
    """The structure without tables."""
    model = gum.BayesNet()
    for at, name in enumerate(network.names):
        model.add(gum.LabelizedVariable(name, name, network.states(at)))
    for parent, child in network.edges:
        model.addArc(parent, child)
    return model


def fit(data: Data, *, read: bool = True) -> Run:
    """BDeu only: without a prior pyAgrum refuses parent configurations without rows.

    With `read` the timed call also takes the frame in, as ours does; without, it only counts and divides.
    """
    network, frame = Network.of(data), frame_of(data)
    model = template(network)
    ready = None if read else _learner(frame, model)

    def run() -> object:
        learned = (_learner(frame, model) if ready is None else ready).learnParameters(model.dag())
        return tables(learned, network)

    return run


def _learner(frame: Any, model: Any) -> Any:
    learner = gum.BNLearner(frame, model)
    learner.setNumberOfThreads(1)
    learner.useBDeuPrior(EQUIVALENT_SAMPLE_SIZE)
    return learner


def tables(model: Any, network: Network) -> Any:
    """All tables in one array, axes (parents, node)."""
    found = []
    for name, parents in network.structure.items():
        table = model.cpt(name)
        # The array has the axes in the reverse of the order of `names`, the node last.
        axes = list(reversed(table.names))
        found.append(table.toarray().transpose([axes.index(other) for other in (*parents, name)]).ravel())
    return np.concatenate(found)
