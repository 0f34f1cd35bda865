"""The two linear programmes of a face, for tables of whatever kind: `faces` has the theorem.

Rows of `equations` are what tables must agree on, then their statistics; columns are cells. The programmes answer None
where their solver gives up, as it may for numbers of very different size.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from suffice.array_types import Flags, Floats


def positive_cells(equations: Any, asked: Flags, seen: Flags, seconds: float = math.inf) -> tuple[Flags, Floats] | None:
    """The cells that some change which leaves the equations alone can make positive, and multipliers (equations,).

    Those that are `seen` may change in either direction, those that are `asked` only upwards; others do not change.
    seconds: after which the solver gives up.
    """
    from scipy import optimize, sparse

    up, n_asked, n_seen = equations[:, asked], int(asked.sum()), int(seen.sum())
    answer = optimize.linprog(
        np.concatenate([-np.ones(n_asked), np.zeros(n_asked + n_seen)]),
        A_eq=sparse.hstack([up, up, equations[:, seen]], format="csc"),
        b_eq=np.zeros(equations.shape[0]),
        bounds=[(0.0, 1.0)] * n_asked + [(0.0, None)] * n_asked + [(None, None)] * n_seen,
        method="highs",
        options={"time_limit": seconds},
    )
    if answer.x is None or not answer.success:
        return None
    support = seen.copy()
    support[asked] = answer.x[:n_asked] > 0.5
    return support, np.asarray(answer.eqlin.marginals, dtype=np.float64)


def shortest_direction(
    design: Any, free: Any, support: Flags, off: Flags, seconds: float = math.inf, average: Floats | None = None
) -> Floats | None:
    """The direction (weights,) with the least sum of |weights| that is 0 on the support and at most -1 on cells `off`.

    design: sparse (cells, weights). free: sparse (cells, multipliers) of what may be added freely. average (weights and
    multipliers,): of it the direction is not below 0.
    """
    from scipy import optimize, sparse

    rows = sparse.hstack([design, -design, free], format="csr")
    n_weights, n_free = design.shape[1], free.shape[1]
    above, most = rows[off], -np.ones(int(off.sum()))
    if average is not None:
        both = np.concatenate([average[:n_weights], -average[:n_weights], average[n_weights:]])
        above, most = sparse.vstack([above, sparse.csr_array(-both[None, :])], format="csr"), np.append(most, 0.0)
    answer = optimize.linprog(
        np.concatenate([np.ones(2 * n_weights), np.zeros(n_free)]),
        A_ub=above,
        b_ub=most,
        A_eq=rows[support],
        b_eq=np.zeros(int(support.sum())),
        bounds=[(0.0, None)] * (2 * n_weights) + [(None, None)] * n_free,
        method="highs",
        options={"time_limit": seconds},
    )
    if answer.x is None or not answer.success:
        return None
    return np.asarray(answer.x[:n_weights] - answer.x[n_weights : 2 * n_weights], dtype=np.float64)
