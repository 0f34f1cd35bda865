"""Queries to networks of tables: every answer against the list of all joint states."""

import math
from collections.abc import Hashable
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import suffice as sf
from random_networks import joint_states, same_state, table_networks
from suffice.domain import Domain, Variable
from suffice.models.bayesian.queries import tables as network_inference

Floats = NDArray[np.float64]


def share(net: sf.BayesianNetwork, likelihood: dict[Any, Any]) -> dict[Any, float]:
    """Weight of each joint state (as a tuple of pairs) under evidence; soft evidence is a dict by state."""
    found = {}
    for row, probability in joint_states(net):
        weight = probability
        for node, value in likelihood.items():
            if isinstance(value, dict):
                weight *= next(w for state, w in value.items() if same_state(state, row[node]))
            else:
                weight *= same_state(value, row[node])
        found[tuple((node, type(state), state) for node, state in row.items())] = weight
    return found


def marginal(net: sf.BayesianNetwork, weights: dict[Any, float], names: list[Hashable]) -> Floats:
    """P(names) from weights of joint states, axes in the order asked."""
    table = np.zeros([len(net.states(name)) for name in names])
    for key, weight in weights.items():
        row = {node: state for node, _, state in key}
        table[tuple(net.node(name).domain[name].index(row[name]) for name in names)] += weight
    return table / sum(weights.values())


@st.composite
def questions(draw: st.DrawFn) -> tuple[sf.BayesianNetwork, list[Hashable], dict[Any, Any]]:
    """A network, some of its nodes in any order, and evidence of positive probability, hard and soft."""
    net = draw(table_networks())
    asked = draw(st.lists(st.sampled_from(net.nodes), unique=True, min_size=1, max_size=3))
    rows = [row for row, probability in joint_states(net) if probability > 0]
    row = draw(st.sampled_from(rows))
    evidence: dict[Any, Any] = {}
    for node in draw(st.lists(st.sampled_from(net.nodes), unique=True, max_size=3)):
        soft = draw(st.booleans())
        weights = {state: draw(st.floats(0.1, 2.0)) for state in net.states(node)}
        evidence[node] = weights if soft else row[node]
    return net, asked, evidence


@settings(max_examples=80, deadline=None)
@given(questions())
def test_query_log_probability_and_marginals_equal_enumeration(case: Any) -> None:
    net, asked, evidence = case
    weights = share(net, evidence)
    np.testing.assert_allclose(net.query(asked, evidence).values, marginal(net, weights, asked), rtol=1e-9, atol=1e-14)
    assert net.log_probability(evidence) == pytest.approx(math.log(sum(weights.values())), rel=1e-9, abs=1e-12)
    for node, table in net.marginals(evidence).items():
        np.testing.assert_allclose(table.values, marginal(net, weights, [node]), rtol=1e-9, atol=1e-14)


@settings(max_examples=60, deadline=None)
@given(questions())
def test_leaving_out_what_does_not_matter_changes_nothing(case: Any) -> None:
    net, asked, evidence = case
    whole = net.query(asked, evidence).values, net.log_probability(evidence)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(network_inference, "SMALL_BYTES", -1)
        pruned = sf.BayesianNetwork.from_tables(
            Domain(net.node(n).domain[n] for n in net.nodes),
            {n: net.parents(n) for n in net.nodes},
            {n: net.table(n).values for n in net.nodes},
        )
        np.testing.assert_allclose(pruned.query(asked, evidence).values, whole[0], rtol=1e-9, atol=1e-14)
        assert pruned.log_probability(evidence) == pytest.approx(whole[1], rel=1e-9, abs=1e-13)
        rows = net.sample(3, random_state=0)
        some = {name: rows[name] for name in asked}
        np.testing.assert_allclose(pruned.score_samples(some), net.score_samples(some), rtol=1e-9, atol=1e-13)
        first = list(net.nodes[:1])
        expected = net.query_rows(first, some)
        np.testing.assert_allclose(pruned.query_rows(first, some), expected, rtol=1e-9, atol=1e-13)


@settings(max_examples=60, deadline=None)
@given(questions())
def test_the_most_probable_state_of_all_and_of_some_nodes(case: Any) -> None:
    net, asked, evidence = case
    weights = share(net, evidence)
    best = net.map_query(evidence)
    key = tuple((node, type(best[node]), best[node]) for node in net.nodes)
    assert weights[key] == pytest.approx(max(weights.values()), rel=1e-9)
    some = net.map_query(evidence, variables=asked)
    table = marginal(net, weights, asked)
    place = tuple(net.node(name).domain[name].index(some[name]) for name in asked)
    assert list(some) == asked
    assert table[place] == pytest.approx(table.max(), rel=1e-9)


@settings(max_examples=40, deadline=None)
@given(table_networks())
def test_the_joint_table_lists_every_joint_state(net: sf.BayesianNetwork) -> None:
    table = net.to_joint()
    assert table.variables == net.nodes
    for row, probability in joint_states(net):
        assert table.at(row) == pytest.approx(probability, rel=1e-12, abs=1e-300)
    assert table.values.sum() == pytest.approx(1.0, rel=1e-12)


@settings(max_examples=40, deadline=None)
@given(table_networks(), st.data())
def test_rows_of_evidence_give_what_single_queries_give(net: sf.BayesianNetwork, data: Any) -> None:
    rows = [row for row, probability in joint_states(net) if probability > 0]
    drawn = data.draw(st.lists(st.sampled_from(rows), min_size=1, max_size=6))
    gaps = data.draw(st.lists(st.sets(st.sampled_from(net.nodes)), min_size=len(drawn), max_size=len(drawn)))
    table = [{k: None if k in gone else v for k, v in row.items()} for row, gone in zip(drawn, gaps, strict=True)]
    columns = {node: _objects([row[node] for row in table]) for node in net.nodes}
    known = [{k: v for k, v in row.items() if v is not None} for row in table]
    asked = data.draw(st.lists(st.sampled_from(net.nodes), unique=True, min_size=1, max_size=3))
    expected = [net.query(asked, row).values for row in known]
    for threads in (1, 2):
        np.testing.assert_allclose(net.query_rows(asked, columns, threads=threads), expected, rtol=1e-9, atol=1e-13)
    logs = [net.log_probability(row) for row in known]
    np.testing.assert_allclose(net.score_samples(columns), logs, rtol=1e-9, atol=1e-14)
    target = asked[0]
    others = [{k: v for k, v in row.items() if k != target} for row in known]
    expected = [net.query(target, row).values for row in others]
    found = net.predict_proba(columns, target)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-13)
    labels = net.predict(columns, target).tolist()
    assert all(same_state(a, net.states(target)[k]) for a, k in zip(labels, found.argmax(axis=1), strict=True))


def _objects(values: list[Any]) -> NDArray[Any]:
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def chain(n: int, card: int = 2) -> sf.BayesianNetwork:
    """A chain of nodes 0, 1, ... with random tables."""
    rng = np.random.default_rng(0)
    domain = Domain(Variable.discrete(k, range(card)) for k in range(n))
    tables = {k: rng.dirichlet(np.ones(card), size=card if k else ()) for k in range(n)}
    return sf.BayesianNetwork.from_tables(domain, {k: [k - 1] if k else [] for k in range(n)}, tables)


def test_one_and_two_threads_give_the_same_bits() -> None:
    net = chain(12, 3)
    rows = net.sample(2_000, missing=0.3, random_state=0)
    for ask in (net.score_samples, partial(net.predict_proba, target=5)):
        one, two = (ask(rows, threads=threads) for threads in (1, 2))
        assert one.tobytes() == two.tobytes()
    with pytest.raises(sf.OptionError, match="threads is 0"):
        net.score_samples(rows, threads=0)


def test_no_rows_give_no_answers() -> None:
    net = chain(3)
    rows = net.sample(0, random_state=0)
    assert net.score_samples(rows).shape == (0,)
    assert net.predict_proba(rows, 1).shape == (0, 2)
    assert net.query_rows([0, 2], rows).shape == (0, 2, 2)


def test_what_is_too_large_is_said_with_its_size() -> None:
    net = chain(40)
    with pytest.raises(sf.SizeError, match=r"1,099,511,627,776 cells \(8.8 TB\)"):
        net.to_joint()
    with pytest.raises(sf.SizeError, match="Ask for fewer variables"):
        net.map_query(variables=list(range(30)))
    wide = sf.BayesianNetwork({**dict.fromkeys(range(40), ()), "sum": list(range(40))}, unseen="uniform")
    rng = np.random.default_rng(0)
    columns: dict[Hashable, NDArray[np.int64]] = {k: rng.integers(0, 2, 50) for k in range(40)}
    wide.fit({**columns, "sum": rng.integers(0, 2, 50)})
    with pytest.raises(sf.SizeError, match=r"engine='sampling'"):
        wide.query("sum", {0: 1})
    # What nothing asked depends on is left out, so that other questions are answered exactly.
    assert wide.query(1, {0: 1}).values == pytest.approx(wide.table(1).values, rel=1e-12)
    found = wide.query("sum", {0: 1}, engine="sampling", n=2_000, random_state=0)
    assert found.effective_sample_size > 500
    assert found.values.sum() == pytest.approx(1.0, rel=1e-12)


def test_evidence_that_cannot_be_read_is_an_error() -> None:
    net = chain(3)
    with pytest.raises(sf.OptionError, match="use query_rows"):
        net.query(0, [{1: 0}])  # type: ignore[arg-type]
    with pytest.raises(sf.OptionError, match="engine is 'gibbs'"):
        net.query(0, engine="gibbs")  # type: ignore[arg-type]
    with pytest.raises(sf.MissingColumnError, match="no variable 'z'"):
        net.query_rows("z", {0: [1]})
    with pytest.raises(sf.UnknownStateError, match="7"):
        net.query(0, {1: 7})


def test_impossible_rows_are_named() -> None:
    domain = Domain([Variable.discrete("a", [0, 1]), Variable.discrete("b", [0, 1])])
    net = sf.BayesianNetwork.from_tables(
        domain, {"a": [], "b": ["a"]}, {"a": np.array([1.0, 0.0]), "b": np.array([[0.5, 0.5], [0.5, 0.5]])}
    )
    with pytest.raises(sf.EstimateError, match="1 rows have probability 0 under the network, the first is row 1"):
        net.query_rows("b", {"a": [0, 1]})
    # Rows are counted from the first batch on.
    many = np.zeros(600_000, dtype=int)
    many[[400_000, 500_000]] = 1
    with pytest.raises(sf.EstimateError, match="2 rows have probability 0 under the network, the first is row 400000"):
        net.predict({"a": many}, "b")
    assert net.score_samples({"a": [0, 1], "b": [0, 0]}).tolist() == [math.log(0.5), -math.inf]
    with pytest.raises(sf.EstimateError, match="probability 0"):
        net.query("b", {"a": 1})


def test_score_counts_rows_with_gaps_by_what_they_show() -> None:
    net = chain(4)
    rows = net.sample(300, missing=0.3, random_state=1)
    fitted = sf.BayesianNetwork(net).fit(net.sample(500, random_state=2))
    assert fitted.score(rows) == pytest.approx(fitted.score_samples(rows).mean(), rel=1e-10)


def test_criteria_of_a_fit() -> None:
    net = chain(3)
    rows = net.sample(200, random_state=0)
    fitted = sf.BayesianNetwork({0: [], 1: [0], 2: [1]}).fit(rows)
    k, log_likelihood = 1 + 2 + 2, fitted.score_samples(rows).sum()
    assert fitted.n_params_ == k
    assert fitted.report_.aic == pytest.approx(2 * k - 2 * log_likelihood, rel=1e-12)
    assert fitted.report_.bic == pytest.approx(k * math.log(200) - 2 * log_likelihood, rel=1e-12)
