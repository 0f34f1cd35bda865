"""What rows say about the means and the free entries of a precision."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from suffice.array_types import Floats
from suffice.fitting.inference import Drop, Inference
from suffice.solvers.covariance_newton import entry_information
from suffice.solvers.held import held_drop

if TYPE_CHECKING:
    from suffice.models.gaussian_graph.fitted import GaussianGraphFitted


def inference_of(fitted: GaussianGraphFitted, weight: float, *, prior: bool) -> Inference:
    """Means, unless they are known, then the diagonal of the precision and its edges, from so many rows.

    prior: whether there was one, of which the errors, from the information of the rows, know nothing.
    """
    rows, columns = fitted.structure.entries
    nodes = [str(node) for node in fitted.nodes]
    means = 0 if fitted.known_mean else len(nodes)
    names = [f"mean[{node}]" for node in nodes[:means]]
    names += [f"precision[{nodes[i]}, {nodes[j]}]" for i, j in zip(rows.tolist(), columns.tolist(), strict=True)]
    on_diagonal = np.concatenate([np.zeros(means, dtype=bool), rows == columns])
    return Inference.of_covariance(
        tuple(names),
        np.concatenate([fitted.mean[:means], fitted.precision[rows, columns]]),
        partial(_covariance, fitted, weight, means),
        lowest=np.where(on_diagonal, 0.0, -math.inf),
        tested=~on_diagonal,
        drop=None if prior else partial(_drop, fitted, weight, means),
        about="Errors are from the information of the rows at the estimate." if prior else "",
    )


def _covariance(fitted: GaussianGraphFitted, weight: float, means: int) -> Floats:
    """Block by block: means and precision are independent."""
    entries = np.linalg.inv(fitted.information) / weight
    whole = np.zeros((means + len(entries), means + len(entries)))
    whole[:means, :means] = fitted.covariance[:means, :means] / weight
    whole[means:, means:] = entries
    return whole


def _drop(fitted: GaussianGraphFitted, weight: float, means: int, number: int) -> Drop | None:
    """Of an entry of the precision, or of a mean, with all others free.

    What the other nodes are given a single one has parameters of its own, whatever the graph (Frydenberg 1990): a mean
    is that of one column. The covariance of the rows is that of the fit wherever the likelihood looks: on the diagonal
    and the edges.
    """
    if number < means:
        mean, variance = float(fitted.mean[number]), float(fitted.covariance[number, number])
        return lambda held: weight * math.log1p((held - mean) ** 2 / variance)
    rows, columns = fitted.structure.entries
    seen, twice = fitted.covariance[rows, columns], np.where(rows == columns, 1.0, 2.0)

    def evaluate(x: Floats) -> tuple[float, Floats, Floats]:
        precision = np.zeros_like(fitted.precision)
        precision[rows, columns] = precision[columns, rows] = x
        try:
            half = np.linalg.inv(np.linalg.cholesky(precision))
        except np.linalg.LinAlgError:
            return -math.inf, x, np.eye(len(x))
        spread = half.T @ half
        value = -float(np.log(np.diagonal(half)).sum()) - 0.5 * float((twice * seen) @ x)
        return (
            weight * value,
            0.5 * weight * twice * (spread[rows, columns] - seen),
            weight * entry_information(spread, fitted.structure.pairs),
        )

    return held_drop(evaluate, fitted.precision[rows, columns], number - means)
