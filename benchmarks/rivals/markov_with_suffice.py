"""Our own Markov network."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.contender import Data, Run
from benchmarks.log_linear import GAP, Cliques
from suffice import MarkovNetwork


def fit(data: Data, *, form: str = "pandas", report: bool = False) -> Run:
    """From rows to all potentials; report: read the report as well, for which the certificate is worked out."""
    cliques = Cliques.of(data)
    rows: Any = dict(zip(cliques.names, data["codes"], strict=True))
    if form == "pandas":
        import pandas as pd

        rows = pd.DataFrame(rows)

    def run() -> object:
        network = MarkovNetwork(cliques.named_scopes, tolerance=GAP).fit(rows)
        if report:
            assert network.report_.converged
        return [
            (scope, np.log(network.potential(names).values))
            for scope, names in zip(cliques.scopes, cliques.named_scopes, strict=True)
        ]

    return run


def fit_table(data: Data, *, form: str) -> Run:
    """From counts of all cells, as a Series with named levels, a frame with a column Freq, or an array."""
    cliques = Cliques.of(data)
    table: Any = cliques.table(data["codes"])
    options: dict[str, Any] = {"columns": cliques.names} if form == "array" else {}
    if form != "array":
        table = series_of(cliques, table)
    if form == "frame":
        table = table.rename("Freq").reset_index()
        options = {"sample_weight": "Freq"}

    def run() -> object:
        network = MarkovNetwork(cliques.named_scopes, tolerance=GAP)
        network.fit(table, **options) if form == "frame" else network.fit(table=table, **options)
        cells = network.marginal(cliques.names).values
        with np.errstate(divide="ignore"):
            return [(tuple(range(len(cliques.cards))), np.log(cells))]

    return run


def series_of(cliques: Cliques, table: Any) -> Any:
    """The counts of all cells, as `groupby().size()` or `value_counts` gives them."""
    import pandas as pd

    levels = pd.MultiIndex.from_product([range(card) for card in cliques.cards], names=cliques.names)
    return pd.Series(table.ravel(), levels)


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
