"""Rows of which some columns are missing, under normal distributions: what was not seen is expected."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.families.gaussian import log_density


def _patterns(x: Floats) -> Iterator[tuple[NDArray[np.intp], NDArray[np.bool_]]]:
    """The rows of each pattern of missing values, and the columns that it has."""
    seen = ~np.isnan(x)
    kinds, label = np.unique(seen, axis=0, return_inverse=True)
    for kind, pattern in enumerate(kinds):
        yield np.flatnonzero(label.ravel() == kind), pattern


def marginal_log_densities(x: Floats, means: Floats, covariances: Floats) -> Floats:
    """Log density (n, K) of the columns that were seen; 0 for a row without any."""
    logs = np.zeros((len(x), len(means)))
    for rows, seen in _patterns(x):
        if not seen.any():
            continue
        for distribution, (mean, covariance) in enumerate(zip(means, covariances, strict=True)):
            logs[rows, distribution] = log_density(mean[seen], covariance[np.ix_(seen, seen)], x[np.ix_(rows, seen)])
    return logs


def completed(x: Floats, weights: Floats, means: Floats, covariances: Floats) -> dict[str, Floats]:
    """Weight, sums and products (K, ...) of rows with missing values, the missing columns expected given those seen.

    A missing column has the conditional mean, and its products the conditional covariance besides. Rows without any
    column seen say nothing about the distribution and are left out.
    """
    size, d = means.shape
    weight, sums, products = np.zeros(size), np.zeros((size, d)), np.zeros((size, d, d))
    for rows, seen in _patterns(x):
        if not seen.any():
            continue
        for distribution, (mean, covariance) in enumerate(zip(means, covariances, strict=True)):
            w = weights[rows, distribution]
            full = np.empty((len(rows), d))
            full[:, seen] = x[np.ix_(rows, seen)]
            gain = np.linalg.solve(covariance[np.ix_(seen, seen)], covariance[np.ix_(seen, ~seen)])
            full[:, ~seen] = mean[~seen] + (full[:, seen] - mean[seen]) @ gain
            rest = covariance[np.ix_(~seen, ~seen)] - covariance[np.ix_(~seen, seen)] @ gain
            weight[distribution] += w.sum()
            sums[distribution] += w @ full
            products[distribution] += (full * w[:, None]).T @ full
            products[distribution][np.ix_(~seen, ~seen)] += w.sum() * rest
    return {"weight": weight, "sums": sums, "products": products}
