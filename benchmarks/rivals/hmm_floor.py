"""What no Baum-Welch can beat: its multiplications alone, as three matrix products of blocks that stay in the cache."""

from __future__ import annotations

import numpy as np

from benchmarks.contender import Data, Run
from benchmarks.problems.hmm import ITERATIONS

BLOCK = 1024


def passes(data: Data) -> Run:
    """Forward, backward and the sums of joint posteriors: 2 T K^2 operations each."""
    size, steps = len(data["initial"]), len(data["x"])
    rows, matrix, out = np.full((BLOCK, size), 0.5), np.full((size, size), 0.5), np.empty((BLOCK, size))

    def run() -> None:
        for _ in range(ITERATIONS * 3 * (steps // BLOCK + 1)):
            np.matmul(rows, matrix, out=out)

    return run
