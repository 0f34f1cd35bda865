"""How many weights of a conditional random field can be told apart: the rank of its features, given what is known.

Weights that add the same number to every labelling of an example change no probability. So the parameters number as
many as the dimension of the span of ``phi(y, x) - phi(y', x)`` over all examples and labellings, which is also the rank
of the information at any weights. Vectors drawn at random from that span show its dimension.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from suffice.array_types import Floats
from suffice.engines.workers import with_one_blas_thread

#: Most weights, or columns, whose rank is computed: by a dense matrix of this size squared.
MOST = 1_000
#: Most entries that are read to draw vectors of the span.
MOST_ENTRIES = 5e7
#: A singular value below this share of the largest one counts as zero.
TOLERANCE = 1e-9
#: Vectors drawn beyond the number of weights; a dimension that half of them miss is missed by all once in 10^19 times.
SPARE = 64


@dataclass(frozen=True)
class FeatureRank:
    """The number of parameters; where it is not `exact`, it is a bound from above."""

    value: int
    exact: bool = True

    def notes(self) -> tuple[str, ...]:
        """What a report has to say about it."""
        if self.exact:
            return ()
        return (
            f"the number of parameters, {self.value:,}, is a bound from above, and so are AIC and BIC: of the weights "
            "that change nothing only the obvious ones are left out",
        )


def numerical_rank(matrix: Floats) -> int:
    """The rank of a matrix whose columns may have any units."""
    lengths = np.sqrt((matrix**2).sum(axis=0))
    columns = matrix[:, lengths > 0.0] / lengths[lengths > 0.0]
    if not columns.size:
        return 0
    values = with_one_blas_thread(lambda: np.linalg.svd(columns, compute_uv=False))
    return int((values > TOLERANCE * values[0]).sum())


def sketched(matrix: Any, seed: int | None = None) -> Floats:
    """A dense matrix with the row space of a tall SciPy matrix (n, m), of some 2 m rows.

    With a seed it has so many rows in any case, and the sum of those of several matrices spans the rows of all. Each
    row goes to three of them at random, times a random number: almost surely no dimension is lost, because the rows of
    a basis find a place each (as keys do in cuckoo hashing, at half the load).
    """
    from scipy import sparse

    n, m = matrix.shape
    most = 2 * m + SPARE
    if n <= most and seed is None:
        return np.asarray(matrix.toarray(), np.float64)
    rng = np.random.default_rng(0 if seed is None else [0, seed])
    places = (rng.integers(0, most, 3 * n), np.tile(np.arange(n), 3))
    mixing = sparse.csr_array((rng.standard_normal(3 * n), places), shape=(most, n))
    return np.asarray((mixing @ matrix).toarray(), np.float64)


def rank_of_draws(draws: Callable[[int, int], Floats], k: int, entries: float) -> int | None:
    """The dimension of the span of vectors (k,) that are drawn, or None where there are too many to draw.

    draws(count, seed): (count, k). entries: what a draw costs. Draws are doubled until they show no further dimension.
    """
    if k > MOST or 4.0 * (k + SPARE) * entries > MOST_ENTRIES:
        return None
    rows, rank = draws(k + SPARE, 0), -1
    while rank < (now := numerical_rank(rows)):
        rank = now
        rows = np.concatenate([rows, draws(len(rows), len(rows))])
    return rank
