"""Score tests of what a fit leaves out, without fitting the larger model (Rao 1948)."""

from __future__ import annotations

from typing import Any

import numpy as np

from suffice.errors import EstimateError, OptionError, listing, shortened
from suffice.fitting.estimator import Estimator
from suffice.fitting.hypotheses import HypothesisTest
from suffice.fitting.row_marks import check_marks
from suffice.fitting.samples import fit_arguments
from suffice.models.bayesian.declaration import BayesianNetwork
from suffice.models.em.rows import has_missing
from suffice.models.gaussian_graph.declaration import GaussianGraph
from suffice.models.glm.declaration import GLM
from suffice.models.glm.scores import score_of_columns
from suffice.models.markov.declaration import MarkovNetwork
from suffice.models.nesting import check_fits, chi2_test, design_of, matrix_rank
from suffice.solvers.covariance_newton import entry_information
from suffice.statistics import Counts, Moments


def score_test(model: Estimator, edge: Any, data: object = None, y: object = None, **given: Any) -> HypothesisTest:
    """Test whether what a fit leaves out is missing, without fitting the larger one (Rao's test).

    Args:
        model: a fitted `GaussianGraph`, `MarkovNetwork`, `BayesianNetwork` or `GLM`.
        edge: two of its nodes; of a Markov network a clique of any size, which becomes a table; of a Bayesian network
            an arc (parent, child) of states; of a regression the name of a coefficient, or a list of names.
        data: the rows of the fit, for an arc; of a regression with the further columns.
        y: their response.
        given: what else `fit` takes beside the rows, by name.

    Returns:
        ``s' V^-1 s`` with the score s of the new parameters and its variance V given that of the others: chi-squared
        with as many degrees of freedom as they are. Of an arc it is Pearson's statistic within each state of the
        parents there are. A dispersion is that of the fit.
    """
    check_fits(model, model)
    rows = fit_arguments(data, y, given)
    if isinstance(model, BayesianNetwork):
        return _score_of_arc(model, tuple(edge), rows)
    if isinstance(model, GLM):
        return chi2_test(*score_of_columns(model, [edge] if isinstance(edge, str) else list(edge), rows))
    if rows:
        raise OptionError(f"The score of an edge of a {type(model).__name__} follows from what it keeps; give no rows.")
    if isinstance(model, GaussianGraph):
        return _score_of_precision(model, edge)
    if isinstance(model, MarkovNetwork):
        return _score_of_table(model, tuple(edge))
    raise OptionError(
        f"score_test is for a GaussianGraph, a MarkovNetwork, a BayesianNetwork or a GLM; found {shortened(model)}."
    )


def _score_of_arc(net: BayesianNetwork, arc: tuple[Any, ...], rows: dict[str, Any]) -> HypothesisTest:
    """Pearson's statistic of two nodes within each joint state of the parents of the second."""
    if len(arc) != 2 or not set(arc) <= set(net.nodes) or arc[0] in net.parents(arc[1]):
        raise OptionError(f"{arc!r} is no arc (parent, child) between nodes that the network leaves out.")
    parent, child = arc
    kinds = [net.node(name).kind for name in arc]
    if set(kinds) != {"table"}:
        raise OptionError(f"Scores of arcs are those of tables; {arc!r} joins a {kinds[0]} and a {kinds[1]} node.")
    if not rows:
        raise OptionError("The score of an arc needs the rows of the fit: score_test(net, (parent, child), rows).")
    family = (*net.parents(child), parent, child)
    structure = {node: list(net.parents(node)) for node in net.nodes} | {child: list(family[:-1])}
    larger = net.clone().set_params(structure=structure)
    data = larger._read_again(rows)
    check_marks(net, data)
    if has_missing(data.statistics):
        raise EstimateError("Rows with missing values have no counts of an arc. Use likelihood_ratio_test.")
    counts = data.statistics[Counts(family)].dense()
    counts = counts.reshape(-1, *counts.shape[-2:])
    sizes, across, down = counts.sum(axis=(1, 2)), counts.sum(axis=2), counts.sum(axis=1)
    expected = across[:, :, None] * down[:, None, :] / np.where(sizes > 0.0, sizes, 1.0)[:, None, None]
    seen = expected > 0.0
    statistic = float(((counts[seen] - expected[seen]) ** 2 / expected[seen]).sum())
    free = (across > 0.0).sum(axis=1) - 1, (down > 0.0).sum(axis=1) - 1
    df = float((free[0].clip(0) * free[1].clip(0)).sum())
    if not df:
        raise OptionError(f"The rows do not tell the arc {arc!r}: there is nothing to test.")
    return chi2_test(statistic, df)


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
