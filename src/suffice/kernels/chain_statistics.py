"""Sums over steps weighted by the posteriors of labels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.kernels.arrays import frozen
from suffice.kernels.choice import use_compiled

#: Seconds for each step and label on the NumPy path, for the choice of the path.
_NUMPY_SECONDS = 4e-9


def add_by_code(codes: NDArray[np.int32], weights: Floats, cards: int, *, calls: int | None) -> Floats:
    """Sums of rows of weights (n, K) by code: (cards, K); steps with the code -1 are left out."""
    if use_compiled("add by code", _NUMPY_SECONDS * weights.size, calls=calls):
        from suffice.kernels.compiled.chain_statistics import add_by_code as loop

        sums = np.zeros((cards + 1, weights.shape[1]))
        loop(frozen(codes), frozen(weights), sums)
        return sums[:cards]
    seen = codes >= 0
    some = codes if seen.all() else codes[seen]
    rows = weights if seen.all() else weights[seen]
    columns = [np.bincount(some, weights=column, minlength=cards) for column in rows.T]
    return np.stack(columns, axis=1) if columns else np.zeros((cards, 0))


def normal_potentials(
    x: Floats, means: Floats, variances: Floats, out: Floats | None = None, *, calls: int | None
) -> tuple[Floats, Floats] | None:
    """Normal densities of independent columns, scaled by the largest of their step, and the logs taken out.

    out (n, K): where the densities go, C-contiguous. None where the NumPy path is to be taken.
    """
    if not use_compiled("normal potentials", 10 * _NUMPY_SECONDS * len(x) * means.size, calls=calls):
        return None
    from suffice.kernels.compiled.exponentials import normal_potentials as loop

    potentials, shift = np.empty((len(x), len(means))) if out is None else out, np.empty(len(x))
    constants = -0.5 * np.log(2 * np.pi * variances).sum(axis=1)
    given = (frozen(x), frozen(means.ravel()), frozen((-0.5 / variances).ravel()), frozen(constants))
    loop(*given, potentials.reshape(-1), shift)
    return potentials, shift
