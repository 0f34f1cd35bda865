"""pgmpy: mirror descent over belief propagation."""

from __future__ import annotations

import numpy as np
from pgmpy.estimators import MirrorDescentEstimator
from pgmpy.factors.discrete import DiscreteFactor
from pgmpy.models import FactorGraph

from benchmarks.contender import Data, Run
from benchmarks.log_linear import Cliques


def fit(data: Data, *, iterations: int = 100) -> Run:
    """Its law is the product of the beliefs it returns over those of the separators."""
    import pandas as pd

    cliques = Cliques.of(data)
    frame = pd.DataFrame(dict(zip(cliques.names, data["codes"].astype(np.int64), strict=True)))
    place = {name: at for at, name in enumerate(cliques.names)}

    def run() -> object:
        graph = FactorGraph()
        graph.add_nodes_from(cliques.names)
        for scope, names in zip(cliques.scopes, cliques.named_scopes, strict=True):
            shape = cliques.shape(scope)
            factor = DiscreteFactor(names, shape, np.zeros(shape))
            graph.add_factors(factor)
            graph.add_edges_from([(name, factor) for name in names])
        estimator = MirrorDescentEstimator(graph, frame)
        tree = estimator.estimate(cliques.named_scopes, iterations=iterations, show_progress=False)
        beliefs = tree.clique_beliefs
        found = [_logs(factor, place, 1.0) for factor in beliefs.values()]
        for one, other in tree.edges():
            apart = [name for name in one if name not in set(other)]
            found.append(_logs(beliefs[one].marginalize(apart, inplace=False), place, -1.0))
        return found

    return run


def _logs(factor: DiscreteFactor, place: dict[str, int], sign: float) -> tuple[tuple[int, ...], np.ndarray]:
    values = np.asarray(factor.values, dtype=np.float64)
    return tuple(place[name] for name in factor.variables), sign * np.log(values / values.sum())
