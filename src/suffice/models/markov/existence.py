"""A short way to see that the maximum of the likelihood of a model of tables exists."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from suffice.engines.junction_tree import TreePlan
from suffice.engines.tree_scaling import TreeScaling
from suffice.models.markov.log_linear import LogLinear

Floats = NDArray[np.float64]

#: Most sweeps that are tried, and the most cells that one of them may pass over: a fit should not take twice as long.
SWEEPS, WORK = 60, 300_000
#: More than the sum of the absolute coefficients of a face: small integers on the few scopes that make a face.
STEEP = 1e4
#: Margins are computed no more exactly than this.
ROUNDING = 1e-15


def shown_to_exist(plan: TreePlan, model: LogLinear, margins: Floats) -> bool:
    """Whether a few sweeps of proportional fitting show that margins t (n_cells,) lie inside of the marginal polytope.

    If not, a face holds t: some g has g't = 0 and, scaled, g'f >= 1 in all joint states off the face, which fill at
    least one cell of a clique of the tree. A law with margins m gives these states no more than
    ``g'm = g'(m - t) <= |g|_1 max|m - t|``. So a law that comes close to t and gives every cell of every clique much
    more than that difference shows that there is no such face. False means that nothing was shown.
    """
    tables = [model.part(margins, place) for place in range(len(model.scopes))]
    if not (margins > 0.0).all() or any(abs(table.sum() - 1.0) > ROUNDING * 1e3 for table in tables):
        return False
    scaling = TreeScaling(plan, tables)
    if scaling.work > WORK:
        return False
    before = np.inf
    for _ in range(SWEEPS):
        change = scaling.sweep()
        if change <= 4 * ROUNDING or change > 0.9 * before:
            break
        before = change
    return scaling.smallest_cell() > STEEP * max(scaling.gap(), ROUNDING)
