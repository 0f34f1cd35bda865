"""Our own Markov network."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.contender import Data, Run
from benchmarks.log_linear import GAP, Cliques
from suffice import MarkovNetwork, summarize


def fit(
    data: Data,
    *,
    solver: str = "auto",
    existence: bool = True,
    frame: bool = False,
    report: bool = False,
    anew: bool = False,
) -> Run:
    """With construction and the question whether the maximum exists, from counts made before.

    Fits of one structure share its plan, so that all but the first find it made, as the rivals do. frame: from a pandas
    frame of rows; report: read the report, for which the certificate is worked out; anew: forget the plan first.
    """
    from suffice.engines import plans

    cliques = Cliques.of(data)
    options: dict[str, Any] = {"solver": solver, "check_existence": existence, "tolerance": GAP}
    table = dict(zip(cliques.names, data["codes"], strict=True))
    if frame:
        import pandas as pd

        rows: Any = pd.DataFrame(table)
    else:
        rows = summarize(MarkovNetwork(cliques.named_scopes), table)

    def run() -> object:
        if anew:
            plans.forget()
        network = MarkovNetwork(cliques.named_scopes, **options).fit(rows)
        if report:
            assert network.report_.converged
        return [
            (scope, np.log(network.potential(names).values))
            for scope, names in zip(cliques.scopes, cliques.named_scopes, strict=True)
        ]

    return run


def calibrations(data: Data, *, times: int) -> Run:
    """The same log-potentials again and again: log Z and all margins."""
    from suffice.engines.junction_tree import plan_tree

    cliques = Cliques.of(data)
    moments = plan_tree(dict(enumerate(cliques.cards)), cliques.scopes).moments()
    logs = data["logs"]

    def run() -> object:
        for _ in range(times):
            answer = moments(logs)
        return answer[0]

    return run


def sweeps(data: Data, *, times: int) -> Run:
    """Sweeps of iterative proportional fitting, each of which fits every margin once."""
    from suffice.engines.junction_tree import plan_tree
    from suffice.engines.tree_scaling import TreeScaling

    cliques = Cliques.of(data)
    plan = plan_tree(dict(enumerate(cliques.cards)), cliques.scopes)
    scaling = TreeScaling(plan, list(cliques.split(data["margins"])))

    def run() -> object:
        for _ in range(times):
            scaling.sweep()
        return None

    return run
