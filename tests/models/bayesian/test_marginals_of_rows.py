"""All marginals of many rows of evidence: against the list of all joint states, pyAgrum and single questions."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import suffice as sf
from random_networks import joint_states, same_state, table_networks
from suffice.errors import EstimateError, OptionError, SizeError
from suffice.models.bayesian.queries import tables as network_inference


def matrix(net: sf.BayesianNetwork, rows: list[dict[Any, Any]]) -> NDArray[Any]:
    """Rows of states by node as an array, None where a node is not known."""
    found = np.empty((len(rows), len(net.nodes)), dtype=object)
    for number, row in enumerate(rows):
        found[number] = [row.get(name) for name in net.nodes]
    return found


def enumerated(net: sf.BayesianNetwork, row: dict[Any, Any], name: Any) -> NDArray[np.float64]:
    """P(name | row) by the list of all joint states."""
    law: NDArray[np.float64] = np.zeros(len(net.states(name)))
    for joint, probability in joint_states(net):
        if all(same_state(joint[other], state) for other, state in row.items()):
            law[net.node(name).domain[name].index(joint[name])] += probability
    law /= law.sum()
    return law


@settings(max_examples=40, deadline=None)
@given(table_networks(), st.data())
def test_every_marginal_equals_enumeration(net: sf.BayesianNetwork, data: Any) -> None:
    possible = [row for row, probability in joint_states(net) if probability > 0]
    drawn = data.draw(st.lists(st.sampled_from(possible), min_size=1, max_size=5))
    known = [{name: row[name] for name in data.draw(st.sets(st.sampled_from(net.nodes), max_size=3))} for row in drawn]
    found = net.marginals(matrix(net, known), columns=list(net.nodes), threads=data.draw(st.sampled_from([1, 2])))
    assert list(found) == list(net.nodes)
    for name, laws in found.items():
        expected = [enumerated(net, row, name) for row in known]
        np.testing.assert_allclose(laws, expected, rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("kernels", ["numpy", "compiled"])
def test_pyagrum_agrees_on_a_network_with_zeros(kernels: str, monkeypatch: pytest.MonkeyPatch) -> None:
    gum = pytest.importorskip("pyagrum")
    monkeypatch.setenv("SUFFICE_KERNELS", kernels)
    rng = np.random.default_rng(20261118)
    names = [f"n{number}" for number in range(14)]
    cards = rng.integers(2, 5, len(names)).tolist()
    parents = {name: [names[p] for p in sorted(rng.permutation(i)[:3].tolist())] for i, name in enumerate(names)}
    card = dict(zip(names, cards, strict=True))
    tables, other = {}, gum.BayesNet()
    for name in names:
        law = rng.dirichlet(np.full(card[name], 0.3), size=tuple(card[p] for p in parents[name]))
        law = np.where(law < 0.05, 0.0, law)
        tables[name] = law / law.sum(axis=-1, keepdims=True)
        other.add(gum.LabelizedVariable(name, name, card[name]))
    for name in names:
        for parent in parents[name]:
            other.addArc(parent, name)
    for name in names:
        size = [card[p] for p in parents[name]]
        for codes in np.ndindex(*size):
            other.cpt(name)[dict(zip(parents[name], codes, strict=True))] = tables[name][codes].tolist()
    domain = sf.Domain([sf.Variable.discrete(name, range(card[name])) for name in names])
    net = sf.BayesianNetwork.from_tables(domain, parents, tables)
    rows = np.stack([net.sample(30, random_state=7)[name] for name in names], axis=1).astype(object)
    rows[rng.random(rows.shape) > 0.2] = None
    found = net.marginals(rows, columns=names)
    engine = gum.LazyPropagation(other)
    for number, row in enumerate(rows):
        engine.setEvidence({name: int(state) for name, state in zip(names, row, strict=True) if state is not None})
        engine.makeInference()
        for name in names:
            np.testing.assert_allclose(found[name][number], engine.posterior(name).toarray(), rtol=1e-9, atol=1e-14)


@pytest.fixture(scope="module")
def net() -> Any:
    rng = np.random.default_rng(3)
    data = {name: rng.integers(0, 3, 300) for name in "abcd"}
    return sf.BayesianNetwork({"b": ["a"], "c": ["a", "b"], "d": ["b", "c"]}, prior=1.0).fit(data)


def test_one_and_two_threads_give_the_same_bits_and_equal_rows_equal_laws(net: Any) -> None:
    rows = np.random.default_rng(4).integers(0, 3, (500, 2))
    one, two = (net.marginals(rows, columns=["d", "a"], threads=threads) for threads in (1, 2))
    assert all(one[name].tobytes() == two[name].tobytes() for name in "abcd")
    assert len(np.unique(one["b"], axis=0)) <= 9
    assert net.marginals(rows[:0], columns=["d", "a"])["c"].shape == (0, 3)


def test_a_table_too_large_for_a_tree_is_read_at_the_evidence(net: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.random.default_rng(5).integers(0, 3, (20, 2))
    expected = net.marginals(rows, columns=["b", "c"])
    refusing = network_inference.TableInference(dict(net.fitted_.nodes))

    def refuse(*_: Any, **__: Any) -> Any:
        raise SizeError("too large")

    monkeypatch.setattr(network_inference, "plan_tree", refuse)
    codes = {"b": rows[:, 0].astype(np.int32), "c": rows[:, 1].astype(np.int32)}
    found, possible = refusing.marginals_of_rows(codes, len(rows))
    assert possible.all()
    for name in "abcd":
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-12)


def test_a_logistic_node_among_tables() -> None:
    rng = np.random.default_rng(6)
    a, b = rng.integers(0, 2, 400), rng.integers(0, 3, 400)
    data = {"a": a, "b": b, "y": (rng.random(400) < 0.2 + 0.3 * a + 0.1 * b).astype(int)}
    net = sf.BayesianNetwork({"b": ["a"], "y": ["a", "b"]}, nodes={"y": sf.GLM("binomial")}).fit(data)
    rows = [{"y": 1}, {"a": 0, "y": 0}, {}]
    found = net.marginals(matrix(net, rows), columns=list(net.nodes))
    for name, laws in found.items():
        np.testing.assert_allclose(laws, [enumerated(net, row, name) for row in rows], rtol=1e-12)


def test_what_cannot_be_answered_says_why(net: Any) -> None:
    with pytest.raises(OptionError, match="threads= are for many rows"):
        net.marginals({"a": 1}, threads=2)
    with pytest.raises(OptionError, match="Many rows of evidence are a frame"):
        net.marginals({"a": ["x", "y"]})
    real = sf.BayesianNetwork([("x", "y")]).fit({"x": np.arange(60.0) + 0.5, "y": np.arange(60.0) % 7 + 0.25})
    with pytest.raises(OptionError, match="'x', 'y' is real"):
        real.marginals(np.ones((2, 1)), columns=["x"])
    domain = sf.Domain([sf.Variable.discrete("a", [0, 1]), sf.Variable.discrete("b", [0, 1])])
    sure = sf.BayesianNetwork.from_tables(
        domain, {"a": [], "b": ["a"]}, {"a": np.array([1.0, 0.0]), "b": np.full((2, 2), 0.5)}
    )
    with pytest.raises(EstimateError, match="the first is row 1"):
        sure.marginals(np.array([[0], [1]]), columns=["a"])


def test_rows_that_no_data_define_are_not_answered() -> None:
    data = {"a": [0, 0, 1], "b": [0, 1, 1], "c": [0, 1, 1]}
    net = sf.BayesianNetwork({"c": ["a", "b"]}, unseen="nan").fit(data)
    with pytest.raises(EstimateError, match="undefined rows"):
        net.marginals(np.array([[1]]), columns=["a"])
    np.testing.assert_allclose(net.marginals(np.array([[0]]), columns=["a"])["c"], [[1 / 3, 2 / 3]], rtol=1e-13)
