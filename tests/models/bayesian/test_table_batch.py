"""Tables learned and judged together give what each of them gives alone."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.special import xlogy

import suffice as sf
from suffice.answers import CountTable
from suffice.domain import Domain, Variable
from suffice.errors import EstimateError
from suffice.models.bayesian.node_scores import NodeScores
from suffice.models.bayesian.nodes.table import TableNode
from suffice.models.bayesian.nodes.table_figures import TableFigures
from suffice.models.bayesian.nodes.table_learner import DirichletRows, TableLearner, learn_tables
from suffice.models.bayesian.nodes.table_objective import times_log
from suffice.statistics import Counts, Summary

CARDS = {"a": 2, "b": 3, "c": 2, "d": 4, "e": 3, "f": 2}
FAMILIES = (("a",), ("a", "b"), ("c",), ("b", "c", "d"), ("a", "b", "c", "e"), ("e", "f"), ("d", "e", "c", "f"))


def counted(seed: int, rows: int, *, weighted: bool = False) -> tuple[list[Domain], Summary]:
    """The families, and the summary of random rows: few enough that some configurations never occur."""
    rng = np.random.default_rng(seed)
    domain = Domain(Variable.discrete(name, range(card)) for name, card in CARDS.items())
    codes = {name: rng.integers(0, card, rows) for name, card in CARDS.items()}
    weights = rng.exponential(size=rows) if weighted else np.ones(rows)
    answers: dict[Any, Any] = {}
    for family in FAMILIES:
        table = np.zeros(domain.shape(family))
        np.add.at(table, tuple(codes[name] for name in family), weights)
        answers[Counts(family)] = CountTable.of(table)
    return [domain.select(family) for family in FAMILIES], Summary(domain, answers, rows, float(weights.sum()))


def learners(prior: str, unseen: str = "uniform", estimate: str = "mean") -> list[TableLearner]:
    """One for each family: without a prior, with one number, or with an array of pseudo-counts."""
    rng = np.random.default_rng(5)
    found = []
    for family in FAMILIES:
        shape = tuple(CARDS[name] for name in family)
        alphas = {"number": np.array(10 / math.prod(shape) + 1), "array": rng.uniform(1.1, 3, shape)}
        found.append(TableLearner(DirichletRows(alphas[prior]) if prior in alphas else None, estimate, unseen))
    return found


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("unseen", ["uniform", "nan"])
@pytest.mark.parametrize("prior", ["none", "number", "array"])
def test_together_as_alone(prior: str, unseen: str, weighted: bool) -> None:
    domains, summary = counted(1, 30, weighted=weighted)
    some = learners(prior, unseen)
    alone = [learner.learn(domain, summary) for learner, domain in zip(some, domains, strict=True)]
    for mine, theirs in zip(learn_tables(some, domains, summary), alone, strict=True):
        assert mine.domain is theirs.domain
        assert mine.estimate == theirs.estimate
        np.testing.assert_array_equal(mine.rows, theirs.rows)
        np.testing.assert_array_equal(mine.counts, theirs.counts)
        np.testing.assert_array_equal(mine.default, theirs.default)
        assert (mine.alpha is None) == (theirs.alpha is None)
        if mine.alpha is not None and theirs.alpha is not None:
            np.testing.assert_array_equal(mine.alpha, theirs.alpha)


def test_the_mode_is_learned_and_judged_as_alone() -> None:
    domains, summary = counted(2, 200)
    some = learners("array", estimate="map")
    nodes = learn_tables(some, domains, summary)
    for node, learner, domain in zip(nodes, some, domains, strict=True):
        assert learner.prior is not None
        excess = summary[Counts(domain.names)].dense() + learner.prior.alpha - 1
        np.testing.assert_allclose(node.table_.values, excess / excess.sum(axis=-1, keepdims=True), rtol=1e-14)
    assert max(TableFigures(nodes, summary).gaps()) < 1e-15


def test_an_undefined_row_is_refused_by_name() -> None:
    domains, summary = counted(3, 5)
    with pytest.raises(EstimateError, match="parent configurations of 'd' never occur"):
        learn_tables(learners("none", "raise"), domains, summary)


@pytest.mark.parametrize("prior", ["none", "number"])
def test_figures_are_those_of_each_node(prior: str) -> None:
    domains, summary = counted(4, 40)
    _, other = counted(5, 25)
    nodes = learn_tables(learners(prior), domains, summary)
    for rows in (summary, other):
        figures = NodeScores([(node, rows) for node in nodes])
        np.testing.assert_allclose(figures.log_likelihoods(), [n.log_likelihood(rows) for n in nodes], rtol=1e-13)
        np.testing.assert_allclose(figures.gaps(), [n.gap(rows) for n in nodes], rtol=1e-13, atol=1e-17)
        losses = [n.loss_bound(rows) for n in nodes]
        np.testing.assert_allclose(
            np.array(figures.loss_bounds(), float), np.array(losses, float), rtol=1e-13, atol=1e-28
        )
        assert figures.edges() == [n.edges(rows) for n in nodes]


def test_figures_of_nodes_with_summaries_of_their_own_and_of_large_tables() -> None:
    domains, summary = counted(6, 40)
    _, other = counted(7, 40)
    nodes: list[TableNode] = learn_tables(learners("none"), domains, summary)
    cells = np.array([[0, 0], [7, 1], [4_000_000, 1]], dtype=np.int32)
    wide = Domain([Variable.discrete("w", range(4_000_001)), Variable.discrete("x", range(2))])
    table = CountTable.sparse(wide.shape(wide.names), cells, np.array([2.0, 3.0, 1.0]))
    sparse = Summary(wide, {Counts(wide.names): table}, 6, 6.0)
    large = TableLearner().learn(wide, sparse)
    assert large.configurations is not None
    pairs = [(nodes[0], summary), (large, sparse), (nodes[1], other)]
    expected = [node.log_likelihood(rows) for node, rows in pairs]
    np.testing.assert_allclose(NodeScores(pairs).log_likelihoods(), expected, rtol=1e-13)
    assert expected[1] == 0.0


def test_an_impossible_event_has_log_likelihood_minus_infinity() -> None:
    net = sf.BayesianNetwork([("x", "y")]).fit({"x": [0, 0, 1], "y": ["a", "a", "b"]})
    assert net.score({"x": [0], "y": ["b"]}) == -math.inf


def test_times_log_is_xlogy() -> None:
    factor = np.array([0.0, 0.0, 0.0, 1.5, 2.0, 3.0])
    value = np.array([0.0, 2.0, np.nan, 0.25, 1.0, 0.0])
    expected = np.array([0.0, 0.0, 0.0, *xlogy(factor[3:], value[3:])])
    np.testing.assert_array_equal(times_log(factor, value), expected)


def test_real_and_discrete_nodes_in_one_network() -> None:
    rng = np.random.default_rng(0)
    kind, x = rng.integers(0, 2, 200), rng.normal(size=200)
    data = {"kind": kind, "x": x, "y": 2 * x + kind + rng.normal(size=200), "z": 0.5 * x + rng.normal(size=200)}
    net = sf.BayesianNetwork({"kind": [], "x": [], "y": ["kind", "x"], "z": ["x"]}).fit(data)
    total = sum(net.node(name).log_likelihood(net.statistics_) for name in net.nodes)
    assert net.report_.log_likelihood == pytest.approx(total, rel=1e-13)
    gap = max(net.node(name).gap(net.statistics_) for name in net.nodes)
    assert net.report_.certificate.moment_gap == pytest.approx(gap, rel=1e-6, abs=1e-15)
