"""Edges of a Gaussian graph: partial correlations with intervals, and what leaving each of them out costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from suffice.errors import EstimateError
from suffice.fitting.inference import two_sided, wald_intervals
from suffice.fitting.parameter_table import EstimateTable, NumberTable, interval_titles

if TYPE_CHECKING:
    from suffice.models.gaussian_graph.declaration import GaussianGraph


def edge_correlations(graph: GaussianGraph, level: float = 0.95) -> EstimateTable:
    """The partial correlation of every edge with its standard error, test and interval.

    Errors are those of the delta method at the fitted graph, from the information of its free entries: with all edges
    ``(1 - r^2) / sqrt(n)``, and less where edges are left out. Test and interval are normal on Fisher's scale,
    ``z = atanh(r)``, so that an interval ends within -1 and 1.

    Args:
        graph: a fitted graph.
        level: probability of each interval.
    """
    fitted, pairs = graph.fitted_, graph.fitted_.structure.pairs
    p, m = len(graph.nodes), len(pairs)
    first, second = pairs.T
    r = fitted.partial_correlations[first, second]
    diagonal, edges = np.diagonal(fitted.precision), np.arange(m)
    slopes = np.zeros((m, p + m))
    slopes[edges, first], slopes[edges, second] = -0.5 * r / diagonal[first], -0.5 * r / diagonal[second]
    slopes[edges, p + edges] = -1.0 / np.sqrt(diagonal[first] * diagonal[second])
    covariance = slopes @ np.linalg.solve(fitted.information, slopes.T) / graph.statistics_.weight
    errors, centres = np.sqrt(np.diagonal(covariance)), np.arctanh(r)
    on_scale = errors / (1.0 - r**2)
    z = centres / on_scale
    ends = np.tanh(wald_intervals(centres, on_scale, level, None))
    names = [f"{one} - {other}" for one, other in graph.edges]
    rows = np.column_stack((r, errors, z, two_sided(z), ends)).tolist()
    prior = graph.report_.estimate != "maximum likelihood"
    return EstimateTable(
        (("partial correlations", "delta method at the fitted graph; z and intervals on Fisher's scale"),),
        ("correlation", "std. error", "z", "p value", *interval_titles(level)),
        tuple((name, tuple(row)) for name, row in zip(names, rows, strict=True)),
        notes=("Errors are from the information of the rows at the estimate.",) if prior else (),
        covariance=lambda: covariance,
    )


def edge_deviances(graph: GaussianGraph) -> NumberTable:
    """What leaving each edge out costs: twice the fall of the log-likelihood of a refit without it, and its p value.

    Chi-squared with one degree of freedom if the edge is not needed. With all edges joined it is
    ``-n log(1 - r^2)``, with r the partial correlation (Dempster 1972; Whittaker 1990).

    Args:
        graph: a graph fitted by maximum likelihood.
    """
    from scipy.special import chdtrc

    if graph.report_.estimate != "maximum likelihood":
        raise EstimateError(
            f"The fit is {graph.report_.estimate}; deviances are of maximum likelihood, without prior=."
        )
    options = {name: graph.get_params(deep=False)[name] for name in ("mean", "max_iter", "tolerance")}
    whole, rows = graph.log_likelihood_, []
    for left_out in graph.edges:
        rest = [edge for edge in graph.edges if edge != left_out]
        smaller = type(graph)(rest, graph.nodes, **options).fit(graph.statistics_)
        deviance = max(0.0, 2.0 * (whole - smaller.log_likelihood_))
        rows.append((f"{left_out[0]} - {left_out[1]}", (deviance, 1.0, float(chdtrc(1.0, deviance)))))
    head = (("edges left out", "one at a time, each graph fitted anew"),)
    return NumberTable(head, ("deviance", "df", "p value"), tuple(rows))
