"""Networks whose tables are too large to write out answer where the evidence leaves little of them."""

from typing import Any

import numpy as np
import pytest

import suffice as sf
from suffice.errors import EstimateError, SizeError
from suffice.models.bayesian.queries import tables as network_inference
from suffice.models.bayesian.queries.evidence_first import EvidenceFirst

PARENTS = tuple(f"p{at}" for at in range(5))
CARD = 20


@pytest.fixture(scope="module")
def rows() -> dict[str, Any]:
    """300 rows of five parents and a child, 20 states each, and a child of the child."""
    rng = np.random.default_rng(0)
    found = {name: np.concatenate([np.arange(CARD), rng.integers(0, CARD, 280)]) for name in (*PARENTS, "c")}
    return {**found, "e": found["c"] % 2}


@pytest.fixture(scope="module")
def net(rows: dict[str, Any]) -> Any:
    return sf.BayesianNetwork({"c": list(PARENTS), "e": ["c"]}).fit(rows)


def test_the_table_is_too_large_for_a_tree(net: Any) -> None:
    with pytest.raises(SizeError, match="64,000,000 cells"):
        net.query("c")


def test_one_row_of_the_table_answers(net: Any, rows: dict[str, Any]) -> None:
    given = {name: int(rows[name][40]) for name in PARENTS}
    np.testing.assert_allclose(net.query("c", given).values, np.eye(CARD)[rows["c"][40]], atol=1e-15)
    np.testing.assert_allclose(net.query("e", given).values, np.eye(2)[rows["e"][40]], atol=1e-15)
    both = net.query(["e", "p1", "c"], given)
    assert both.values[rows["e"][40], given["p1"], rows["c"][40]] == pytest.approx(1.0, abs=1e-15)
    assert both.values.sum() == pytest.approx(1.0, abs=1e-15)
    root = sum(np.log((rows[name] == given[name]).mean()) for name in PARENTS)
    assert net.log_probability({**given, "c": int(rows["c"][40])}) == pytest.approx(root, rel=1e-13)
    with pytest.raises(EstimateError, match="probability 0"):
        net.query("e", {**given, "c": (int(rows["c"][40]) + 1) % CARD})


def test_unseen_rows_of_the_table_are_uniform(net: Any) -> None:
    given = dict.fromkeys(PARENTS, 0) | {"p0": 1}
    np.testing.assert_allclose(net.query("c", given).values, np.full(CARD, 1 / CARD), rtol=1e-13)
    law = net.table("e").values
    np.testing.assert_allclose(net.query("e", given).values, law.mean(axis=0), rtol=1e-13)
    soft = {**given, "e": {0: 0.25, 1: 1.0}}
    weights = law @ [0.25, 1.0]
    np.testing.assert_allclose(net.query("c", soft).values, weights / weights.sum(), rtol=1e-13)
    only = {name: code for name, code in given.items() if name != "p0"}
    joint = np.array([net.log_probability({**only, "p0": code, "c": 3}) for code in range(CARD)])
    found = net.query("p0", {**only, "c": 3}).values
    np.testing.assert_allclose(found, np.exp(joint) / np.exp(joint).sum(), rtol=1e-12)


def test_many_rows_at_once(net: Any, rows: dict[str, Any]) -> None:
    some = {name: rows[name][:6] for name in PARENTS}
    np.testing.assert_array_equal(net.predict(some, "c"), rows["c"][:6])
    np.testing.assert_array_equal(net.predict(some, "e"), rows["e"][:6])
    expected = sum(np.log(net.table(name).values[rows[name][:6]]) for name in PARENTS)
    np.testing.assert_allclose(net.score_samples({**some, "c": rows["c"][:6]}), expected, rtol=1e-13)
    gappy = {**some, "p0": [*some["p0"][:5].tolist(), None]}
    law = net.predict_proba(gappy, "e")[5]
    one = net.query("e", {name: int(some[name][5]) for name in PARENTS[1:]}).values
    np.testing.assert_allclose(law, one, rtol=1e-13)


def test_evidence_first_equals_the_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    data = {name: rng.integers(0, 3, 400) for name in "abcd"}
    small = sf.BayesianNetwork({"b": ["a"], "c": ["a", "b"], "d": ["b", "c"]}, prior=1.0).fit(data)
    nodes = dict(small.fitted_.nodes)
    cases: list[dict[Any, int]] = [{"a": 1}, {"d": 2, "b": 0}, {"a": 0, "b": 1, "c": 2, "d": 1}]
    for known in cases:
        log_probability, found = EvidenceFirst(nodes, frozenset(known)).condition(known, {})
        assert log_probability == pytest.approx(small.log_probability(known), rel=1e-13)
        for name in set("abcd") - set(known):
            assert found is not None
            np.testing.assert_allclose(found.marginal([name]), small.query(name, known).values, rtol=1e-12)
    with monkeypatch.context() as patch:
        patch.setattr("suffice.models.bayesian.queries.evidence_first.MOST_CELLS", 8)
        with pytest.raises(SizeError, match="a table still has 27 cells; the limit is 8"):
            EvidenceFirst(nodes, frozenset({"a"}))
    expected = small.predict_proba(data, "c"), small.score_samples({name: data[name] for name in "abd"})
    refusing = network_inference.TableInference(nodes)

    def refuse(*_: Any, **__: Any) -> Any:
        raise SizeError("too large")

    monkeypatch.setattr(network_inference, "plan_tree", refuse)
    columns = {name: data[name].astype(np.int32) for name in "abd"}
    laws, possible = refusing.predict_rows(columns, 400, "c")
    assert possible.all()
    np.testing.assert_allclose(laws, expected[0], rtol=1e-12)
    np.testing.assert_allclose(refusing.log_likelihood(columns, 400), expected[1], rtol=1e-12)
