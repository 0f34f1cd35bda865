"""statsmodels: the same model as a Poisson regression on the cells of the table."""

from __future__ import annotations

import numpy as np
import statsmodels.api as sm

from benchmarks.contender import Data, Run
from benchmarks.log_linear import GAP, Cliques


def fit(data: Data) -> Run:
    """Main effects and products of two, the first state of each variable left out; counts are made before."""
    cliques, codes = Cliques.of(data), data["codes"].astype(np.intp)
    counts = np.zeros(cliques.cards)
    np.add.at(counts, tuple(codes), 1.0)
    cells = np.indices(cliques.cards).reshape(len(cliques.cards), -1)
    single = [[cells[at] == state for state in range(1, card)] for at, card in enumerate(cliques.cards)]
    columns = [np.ones(cells.shape[1]), *(column for columns in single for column in columns)]
    columns += [one & other for i, j in cliques.scopes for one in single[i] for other in single[j]]
    design = np.column_stack(columns).astype(np.float64)

    def run() -> object:
        model = sm.GLM(counts.ravel(), design, family=sm.families.Poisson())
        found = model.fit(tol=GAP, tol_criterion="params", maxiter=100)
        return [(tuple(range(len(cliques.cards))), np.log(found.fittedvalues).reshape(cliques.cards))]

    return run
