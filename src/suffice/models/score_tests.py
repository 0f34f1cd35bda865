"""Score tests of what a fit leaves out, without fitting the larger model (Rao 1948)."""

from __future__ import annotations

from typing import Any

import numpy as np

from suffice.errors import EstimateError, OptionError, listing, shortened
from suffice.fitting.estimator import Estimator
from suffice.fitting.hypotheses import HypothesisTest
from suffice.models.gaussian_graph.declaration import GaussianGraph
from suffice.models.markov.declaration import MarkovNetwork
from suffice.models.nesting import check_fits, chi2_test, design_of, matrix_rank
from suffice.solvers.covariance_newton import entry_information
from suffice.statistics import Moments


def score_test(model: Estimator, edge: Any) -> HypothesisTest:
    """Test whether an edge that a fitted graph leaves out is missing, without fitting the larger one (Rao's test).

    Args:
        model: a fitted `GaussianGraph` or `MarkovNetwork`.
        edge: two of its nodes; of a Markov network a clique of any size, which becomes a table.

    Returns:
        ``s' V^-1 s`` with the score s of the new parameters and its variance V given that of the others: chi-squared
        with as many degrees of freedom as the edge would bring.
    """
    check_fits(model, model)
    if isinstance(model, GaussianGraph):
        return _score_of_precision(model, edge)
    if isinstance(model, MarkovNetwork):
        return _score_of_table(model, tuple(edge))
    raise OptionError(f"score_test is for a GaussianGraph or a MarkovNetwork; found {shortened(model)}.")


def _score_of_precision(graph: GaussianGraph, edge: Any) -> HypothesisTest:
    fitted, nodes = graph.fitted_, graph.nodes
    first, second = (nodes.index(name) for name in fitted.domain.names_of(list(edge)))
    if first == second or fitted.precision[first, second] != 0.0 or frozenset(edge) in map(frozenset, graph.edges):
        raise OptionError(f"{edge!r} is no pair of different nodes that the graph leaves apart.")
    moments: Any = graph.statistics_[Moments(nodes)]
    seen = moments.scatter_about(fitted.mean) / moments.weight
    pairs = np.vstack([fitted.structure.pairs, [[first, second]]])
    information = moments.weight * entry_information(fitted.covariance, pairs)
    score = moments.weight * (fitted.covariance[first, second] - seen[first, second])
    across = information[-1, :-1]
    variance = information[-1, -1] - across @ np.linalg.solve(information[:-1, :-1], across)
    return chi2_test(float(score**2 / variance), 1.0)


def _score_of_table(network: MarkovNetwork, clique: tuple[Any, ...]) -> HypothesisTest:
    from suffice.models.markov.comparison import kept_joint

    fitted = network.fitted_
    if fitted.family.masks:
        raise EstimateError("The maximum of this fit is not attained, and its scores have no normal limit.")
    names = fitted.domain.names_of(list(clique))
    order, design = fitted.domain.names, design_of(network, fitted.domain.names)
    shape = fitted.domain.shape(order)
    axes = [order.index(name) for name in names]
    places = np.indices(shape).reshape(len(order), -1)[axes]
    sizes = [shape[axis] for axis in axes]
    cells = np.ravel_multi_index(tuple(places), sizes)
    whole = np.hstack([design, np.eye(int(np.prod(sizes)))[cells]])
    df = matrix_rank(whole) - matrix_rank(design)
    if not df:
        raise OptionError(f"The network can take every table of {listing(names)} already; there is nothing to test.")
    expected = np.exp(fitted.near.log_joint(fitted.finite, fitted.log_normaliser)).ravel()
    codes, counts = kept_joint(network.statistics_, order)
    weight = float(counts.sum())
    observed = np.zeros(expected.size)
    observed[np.ravel_multi_index(tuple(np.asarray(codes).T), shape)] = counts
    score = whole.T @ (observed - weight * expected)
    centred = whole - expected @ whole
    information = weight * (centred * expected[:, None]).T @ centred
    return chi2_test(float(score @ np.linalg.pinv(information, rcond=1e-10, hermitian=True) @ score), float(df))
