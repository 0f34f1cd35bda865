"""ipfn: iterative proportional fitting on the joint table."""

from __future__ import annotations

import contextlib
import io
import math
from typing import Any

import numpy as np
from ipfn import ipfn

from benchmarks.contender import Data, Run
from benchmarks.log_linear import GAP, Cliques


def fit(data: Data) -> Run:
    """Its criterion is relative to each margin, so it stops at the share of the smallest that is the gap of all."""
    cliques = Cliques.of(data)
    targets = [np.ascontiguousarray(table) for table in cliques.split(data["margins"])]
    largest = max(float(table.max()) for table in targets)
    dimensions = [list(scope) for scope in cliques.scopes]

    def run() -> object:
        start = np.full(cliques.cards, 1.0 / math.prod(cliques.cards))
        fitter: Any = ipfn.ipfn(start, targets, dimensions, convergence_rate=GAP / largest, rate_tolerance=0.0)
        with contextlib.redirect_stdout(io.StringIO()):
            joint = fitter.iteration()
        with np.errstate(divide="ignore"):
            return [(tuple(range(len(cliques.cards))), np.log(joint))]

    return run
