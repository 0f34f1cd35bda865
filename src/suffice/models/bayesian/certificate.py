"""How near the nodes of a network are to the maximum of their objectives: the certificate of a fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from suffice.fitting.report import Certificate
from suffice.models.bayesian.node_scores import NodeScores
from suffice.statistics import Summary

EPSILON = float(np.finfo(np.float64).eps)
#: The unit of slopes: log-probabilities, weights with the parents about their means, log variances, logits of
#: inhibition probabilities, coefficients.
SLOPE_UNIT = "nats per unit of a parameter of a node"
#: Of tables it is the mode under pseudo-counts + 1, of regressions that under another power of the variance.
OF_MEANS = ", of the objective whose maximum is the posterior mean"


def closed_form_certificate(nodes: Sequence[tuple[Any, Summary]], weight: float) -> tuple[float, Certificate]:
    """The largest slope of a node, a row, and the certificate of complete rows: each node by itself.

    nodes: those with parameters of their own, each with the statistics that they were learned from.
    """
    scores, fitted = NodeScores(nodes), [node for node, _ in nodes]
    # Maxima of NumPy, which are NaN where a figure is: what cannot be judged is not certified.
    gap = float(np.max(scores.gaps(), initial=0.0))
    value = float(sum(scores.log_likelihoods()))
    if np.isnan(gap) or np.isnan(value):
        return np.nan, Certificate(np.nan)
    errors, slope = scores.steepest()
    edges = tuple(direction for some in scores.edges() for direction in some)
    bounds, loss = scores.loss_bounds(), None
    losses = [bound for bound in bounds if bound is not None]
    if len(losses) == len(bounds) and weight > 0:
        # Sums of logarithms are known to rounding: so much of them, and of one for each node and row.
        objective = value + float(sum([node.log_prior() for node in fitted]))
        loss = float(sum(losses)) / weight + EPSILON * (abs(objective) / weight + len(fitted))
    exists = False if edges else None if any(node.undecided for node in fitted) else True
    return gap, Certificate(
        errors,
        loss,
        bound=loss is not None,
        exists=exists,
        directions=edges,
        slope=slope,
        slope_unit=SLOPE_UNIT + (OF_MEANS if any(node.estimate == "mean" for node in fitted) else ""),
    )
