"""Engines by name: those of the house agree, and one of somebody else is used by a model without touching it."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

import suffice as sf
from suffice import extend
from suffice.engines import registry
from suffice.engines.enumeration import EnumerationPlan, plan_enumeration
from suffice.errors import EstimateError, OptionError

ROWS = {"a": [0, 0, 1, 1, 1, 0], "b": [0, 1, 1, 1, 0, 0], "c": [1, 1, 0, 1, 0, 1]}


@pytest.fixture
def network() -> sf.BayesianNetwork:
    return sf.BayesianNetwork([("a", "b"), ("b", "c")], prior=1.0).fit(ROWS)


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """An engine that writes down the scopes that it was asked for, and leaves the registry as it was."""
    asked: list[tuple[str, ...]] = []

    def plan(cards: Mapping[Any, int], scopes: Sequence[Sequence[Any]]) -> EnumerationPlan:
        asked.extend(map(tuple, scopes))
        return plan_enumeration(cards, scopes)

    monkeypatch.setattr(registry._engines, "_known", dict(registry._engines._known))
    extend.register_engine("toy", plan)
    return asked


@pytest.mark.parametrize("engine", ["junction tree", "enumeration"])
@pytest.mark.parametrize("given", [None, {"c": 1}, {"a": [0.2, 0.7], "b": 0}])
def test_engines_of_the_house_agree(network: sf.BayesianNetwork, engine: Any, given: dict[str, Any] | None) -> None:
    for names in (["a"], ["c", "a"]):
        expected = network.query(names, given)
        answer = network.query(names, given, engine=engine)
        assert answer.domain.names == expected.domain.names
        np.testing.assert_allclose(answer.values, expected.values, rtol=1e-14)


def test_a_registered_engine_answers_for_a_network(network: sf.BayesianNetwork, toy: list[tuple[str, ...]]) -> None:
    answer = network.query("c", {"a": 1}, engine="toy")  # type: ignore[arg-type]
    np.testing.assert_allclose(answer.values, network.query("c", {"a": 1}).values, rtol=1e-14)
    assert toy == [("a",), ("a", "b"), ("b", "c")]
    assert "toy" in registry.names()


def test_a_name_is_taken_once(toy: list[tuple[str, ...]]) -> None:
    for name in ("toy", "junction tree", "exact", "sampling"):
        with pytest.raises(OptionError, match="already"):
            extend.register_engine(name, plan_enumeration)


def test_an_unknown_engine_is_refused_with_the_names_that_there_are(network: sf.BayesianNetwork) -> None:
    with pytest.raises(OptionError, match="engine is 'magic'; expected one of 'exact', 'sampling', 'junction tree'"):
        network.query("a", engine="magic")  # type: ignore[arg-type]


def test_impossible_evidence_is_an_error_by_any_engine() -> None:
    certain = sf.BayesianNetwork([("a", "b")]).fit({"a": [0, 1], "b": [0, 1]})
    with pytest.raises(EstimateError, match="probability 0"):
        certain.query("a", {"a": 0, "b": 1}, engine="enumeration")  # type: ignore[arg-type]


def test_an_engine_of_tables_refuses_real_nodes() -> None:
    real = sf.BayesianNetwork([("x", "y")]).fit({"x": [0.1, 0.9, 0.3], "y": [1.0, 2.0, 1.5]})
    with pytest.raises(OptionError, match="takes networks of tables"):
        real.query("y", engine="enumeration")  # type: ignore[arg-type]


@pytest.mark.parametrize("given", [None, {"c": 1}, {"a": [0.2, 0.7], "b": 0}])
def test_a_markov_network_is_asked_by_any_engine(toy: list[tuple[str, ...]], given: dict[str, Any] | None) -> None:
    # A cell that never occurs puts the network on a face, which masks describe.
    for cliques in ([("a", "b"), ("b", "c"), ("c", "a")], [("a", "b"), ("b", "c")]):
        network = sf.MarkovNetwork(cliques).fit(ROWS)
        answers = [network.query(["c", "a"], given, engine=engine).values for engine in ("exact", "toy", "enumeration")]  # type: ignore[arg-type]
        for answer in answers[1:]:
            np.testing.assert_allclose(answer, answers[0], rtol=1e-12, atol=1e-15)
    assert ("b", "c") in toy
    with pytest.raises(OptionError, match="engine is 'magic'; expected one of 'exact', 'junction tree'"):
        network.query("a", engine="magic")  # type: ignore[arg-type]
    with pytest.raises(EstimateError, match="probability 0"):
        sf.MarkovNetwork([("a", "b")]).fit({"a": [0, 1], "b": [0, 1]}).query("a", {"a": 0, "b": 1}, engine="toy")  # type: ignore[arg-type]


def test_samples_are_no_engine_by_name() -> None:
    network = sf.MarkovNetwork([("a", "b")], solver="pseudolikelihood", memory_limit=1).fit(ROWS)
    with pytest.raises(OptionError, match="answered by samples"):
        network.query("a", engine="enumeration")  # type: ignore[arg-type]


def test_a_registered_engine_learns_graphs(toy: list[tuple[int, ...]]) -> None:
    rng = np.random.default_rng(3)
    graphs: list[Any] = [sf.GraphExample.grid(rng.normal(size=(2, 3))) for _ in range(4)]
    graphs += [sf.GraphExample(rng.normal(size=(3, 1)), [(0, 1), (1, 2)], np.ones((2, 1))), (rng.normal(size=(2, 1)),)]
    labels = [rng.integers(0, 2, 6) for _ in range(4)] + [[0, 1, 1], [1, 0]]
    prior = sf.Normal(variance=1.0)
    exact = sf.GraphCRF(prior, inference="exact", tolerance=1e-10).fit(graphs, labels)
    model = sf.GraphCRF(prior, inference="toy", tolerance=1e-10).fit(graphs, labels)  # type: ignore[arg-type]
    np.testing.assert_allclose(model.fitted_.weights, exact.fitted_.weights, atol=1e-8)
    assert model.report_.plan == "softmax of each node for 1 graph, engine 'toy' for 5 graphs (2 shapes)"
    assert set(toy) >= {(0,), (0, 1), (1, 2)}
    np.testing.assert_allclose(model.log_partitions(graphs), exact.log_partitions(graphs), atol=1e-8)
    assert model.predict(graphs) == exact.predict(graphs)
    drawn = np.array(model.sample_labels(graphs[:1], 4_000, random_state=0))
    np.testing.assert_allclose(drawn[0].mean(axis=0), exact.predict_marginals(graphs[:1])[0][:, 1], atol=0.04)
    with pytest.raises(OptionError, match="inference is 'magic'; expected one of 'auto', 'exact'"):
        sf.GraphCRF(inference="magic")  # type: ignore[arg-type]
