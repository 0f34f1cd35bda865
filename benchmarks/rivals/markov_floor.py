"""What no calibration can beat: two passes over the cells of the junction tree that read and write each of them."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from benchmarks.contender import Data, Run
from benchmarks.log_linear import Cliques


@numba.njit(nogil=True)  # type: ignore[untyped-decorator]
def _scale(cells: Any, factor: float, times: int) -> None:
    for _ in range(times):
        for index in range(len(cells)):
            cells[index] *= factor
        for index in range(len(cells)):
            cells[index] *= factor


def passes(data: Data, *, times: int) -> Run:
    """As many cells as our own plan has."""
    from suffice.engines.junction_tree import plan_tree

    cliques = Cliques.of(data)
    cells = np.ones(plan_tree(dict(enumerate(cliques.cards)), cliques.scopes).cells)
    return lambda: _scale(cells, 1.0000001, times)
