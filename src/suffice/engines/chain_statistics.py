"""What the emissions of hidden states ask of steps: sums weighted by posteriors, and densities."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.engines.square_root import LOG_2PI
from suffice.kernels import chain_statistics as kernels
from suffice.kernels.choice import REPEATED

#: Products of columns are made for all distributions at once up to this many columns.
_FEW_COLUMNS = 8


def counts_by_code(codes: NDArray[np.int32], weights: Floats, cards: int) -> Floats:
    """Sums of rows of weights (n, K) by code: (cards, K); steps with the code -1 are left out."""
    return kernels.add_by_code(codes, weights, cards, calls=REPEATED)


def products_by_weight(x: Floats, weights: Floats) -> dict[str, Floats]:
    """Weight (K,), sums (K, d) and products (K, d, d) of rows x (n, d) under each column of weights (n, K)."""
    n, d = x.shape
    size = weights.shape[1]
    sums = {"weight": np.ones(n) @ weights, "sums": weights.T @ x}  # A product of BLAS: `sum` adds row by row.
    if d <= _FEW_COLUMNS:
        products = weights.T @ (x[:, :, None] * x[:, None, :]).reshape(n, d * d)
        return {**sums, "products": products.reshape(size, d, d)}
    return {**sums, "products": np.stack([(x * column[:, None]).T @ x for column in weights.T])}


def diagonal_log_densities(x: Floats, means: Floats, variances: Floats) -> Floats:
    """Log density (n, K) of rows x (n, d) under normal distributions of independent columns, moments (K, d)."""
    logs = np.empty((len(x), len(means)))
    for distribution, (mean, variance) in enumerate(zip(means, variances, strict=True)):
        with np.errstate(over="ignore"):  # The square of a huge number is inf, and its density 0.
            square = ((x - mean) ** 2) @ (1.0 / variance)
        logs[:, distribution] = -0.5 * (square + np.log(variance).sum() + x.shape[1] * LOG_2PI)
    return logs


def diagonal_potentials(
    x: Floats, means: Floats, variances: Floats, out: Floats | None = None
) -> tuple[Floats, Floats]:
    """The densities of `diagonal_log_densities` divided by the largest of their step, and the logs taken out.

    out (n, K) is memory that may be used for the answer.
    """
    scaled = kernels.normal_potentials(x, means, variances, out, calls=REPEATED)
    if scaled is None:
        logs = diagonal_log_densities(x, means, variances)
        shift = logs.max(axis=1)
        with np.errstate(invalid="ignore"):
            scaled = np.exp(logs - shift[:, None]), shift
    potentials, shift = scaled
    if not np.isfinite(shift.min(initial=0.0)):
        none = ~np.isfinite(shift)  # Too far from every distribution: no state emits such a step.
        potentials[none], shift[none] = 0.0, 0.0
    return potentials, shift
