"""How means and covariances of a linear-Gaussian network depend on its weights and variances, given evidence.

With s the derivative of log p(x) by a parameter, d E[f(x) | e] = Cov(f(x), s(x) | e). The score of a weight is
r z / v and that of a variance (r^2 / v - 1) / (2 v), with r = y - w'z the residual and z = (1, parents). All of them
are quadratic in x, and x is normal given e, so that their covariances with x and with products of x have closed forms.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from suffice.array_types import Floats


def moment_derivatives(
    nodes: Mapping[Hashable, Any],
    order: Sequence[Hashable],
    mean: Floats,
    covariance: Floats,
    asked: Sequence[Hashable],
    wanted: Collection[Hashable],
) -> dict[Hashable, list[Floats]]:
    """By node the derivatives of the mean (a,) and then of the covariance (a, a) of what is asked, one below the other.

    `mean` (d,) and `covariance` (d, d) are those of all nodes given the evidence, in this order. Each node has an array
    (a + a * a, q) by its weights and one (a + a * a,) by its variance. A node without variance has none: a point mass
    stays one.
    """
    position = {name: number for number, name in enumerate(order)}
    rows = [position[name] for name in asked]
    derivatives = {}
    for name, node in nodes.items():
        variance = float(node.variance_) if name in wanted else 0.0
        if not variance > 0:
            continue
        above = [position[parent] for parent in node.domain.names[:-1]]
        weights = np.asarray(node.weights_)
        residual = np.zeros(len(order))
        residual[position[name]] = 1.0
        residual[above] -= weights[1:]
        rest = float(residual @ mean - weights[0])
        # z = (1, parents): its means, and its covariances with what is asked; those of r.
        z = np.append(1.0, mean[above])
        with_z = np.concatenate([np.zeros((len(rows), 1)), covariance[np.ix_(rows, above)]], axis=1)
        with_r = covariance[rows] @ residual
        by_weights = (rest * with_z + with_r[:, None] * z) / variance
        by_variance = rest * with_r / variance**2
        # Third moments of centred normal variables are 0: only products of covariances are left.
        cross = with_r[:, None, None] * with_z[None, :, :]
        squares_w = (cross + cross.swapaxes(0, 1)) / variance
        squares_v = np.outer(with_r, with_r) / variance**2
        derivatives[name] = [
            np.concatenate([by_weights, squares_w.reshape(-1, len(z))]),
            np.concatenate([by_variance, squares_v.ravel()]),
        ]
    return derivatives
