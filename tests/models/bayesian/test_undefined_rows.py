"""Undefined rows (unseen="nan"): answers that no such row can touch are given, all others are errors."""

import itertools
import math
from typing import Any

import numpy as np
import pytest

import suffice as sf

# The joint state (1, 1) of a and b never occurs; d hangs below c, e beside it.
ROWS: dict[str, Any] = {
    "a": [0, 0, 0, 1, 1, 0],
    "b": [0, 1, 1, 0, 0, 1],
    "c": ["u", "v", "u", "v", "v", "u"],
    "d": [0, 1, 0, 1, 0, 1],
    "e": [1, 0, 0, 1, 0, 0],
}
STRUCTURE = {"a": [], "b": [], "c": ["a", "b"], "d": ["c"], "e": ["a"]}


@pytest.fixture(scope="module")
def net() -> sf.BayesianNetwork:
    return sf.BayesianNetwork(STRUCTURE, unseen="nan").fit(ROWS)


def filled(net: sf.BayesianNetwork, share: float) -> sf.BayesianNetwork:
    """The same network with some law in the undefined row."""
    tables = {name: net.table(name).values.copy() for name in STRUCTURE}
    tables["c"][1, 1] = [share, 1 - share]
    return sf.BayesianNetwork.from_tables(
        sf.Domain([net.node(name).domain[name] for name in STRUCTURE]), STRUCTURE, tables
    )


@pytest.mark.parametrize(
    ("asked", "known"),
    [
        ("c", {"a": 0}),
        ("d", {"a": 1, "b": 0}),
        ("b", {"e": 1}),
        ("a", {}),
        (["a", "b"], {}),
        ("e", {"b": 1}),
        ("b", {"a": 0, "d": 1}),
    ],
)
def test_what_no_undefined_row_touches_is_answered(net: sf.BayesianNetwork, asked: Any, known: dict[str, Any]) -> None:
    found = net.query(asked, known).values
    for share in (0.1, 0.8):
        other = filled(net, share)
        np.testing.assert_allclose(found, other.query(asked, known).values, rtol=1e-12)
        np.testing.assert_allclose(net.log_probability(known), other.log_probability(known), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize(
    ("asked", "known"), [("c", {}), ("d", {"a": 1}), ("a", {"c": "u"}), ("b", {"a": 1, "d": 1}), ("c", {"b": 1})]
)
def test_what_an_undefined_row_touches_is_an_error(net: sf.BayesianNetwork, asked: str, known: dict[str, Any]) -> None:
    """The answers would depend on the law in the row, so there is none."""
    answers = [filled(net, share).query(asked, known).values for share in (0.1, 0.8)]
    assert not np.allclose(*answers)
    with pytest.raises(sf.EstimateError, match=r"'c' has undefined rows.*\{'a': 1, 'b': 1\} can be reached"):
        net.query(asked, known)


def test_rows_and_samples(net: sf.BayesianNetwork) -> None:
    rows = {"a": [0, 0, 1], "b": [0, 1, 0], "d": [0, 1, 1]}
    np.testing.assert_allclose(net.predict_proba(rows, "c"), filled(net, 0.3).predict_proba(rows, "c"), rtol=1e-12)
    np.testing.assert_allclose(net.score_samples(rows), filled(net, 0.3).score_samples(rows), rtol=1e-12)
    with pytest.raises(sf.EstimateError, match="can be reached"):
        net.predict_proba({"a": [0, 1], "d": [0, 1]}, "c")
    with pytest.raises(sf.EstimateError, match="can be reached"):
        net.score_samples({"a": [1], "d": [0]})
    whole = {name: [values[0]] for name, values in ROWS.items()}
    assert math.isnan(net.score_samples(whole | {"a": [1], "b": [1]})[0])
    drawn = net.sample(50, given={"a": 0}, random_state=0)
    assert set(drawn["a"]) == {0}
    with pytest.raises(sf.EstimateError, match="can be reached"):
        net.sample(5, given={"e": 1}, random_state=0)
    assert net.map_query({"a": 0}) == filled(net, 0.5).map_query({"a": 0})
    with pytest.raises(sf.EstimateError, match="can be reached"):
        net.marginals()


def test_every_question_against_two_fillings(net: sf.BayesianNetwork) -> None:
    """All single questions with up to two facts: an answer exactly where two laws in the row agree about it."""
    low, high = filled(net, 0.05), filled(net, 0.9)
    answered = 0
    for known_names in itertools.chain.from_iterable(itertools.combinations(STRUCTURE, k) for k in range(3)):
        for states in itertools.product(*(net.states(name) for name in known_names)):
            known = dict(zip(known_names, states, strict=True))
            for asked in (name for name in STRUCTURE if name not in known):
                one, two = low.query(asked, known).values, high.query(asked, known).values
                try:
                    found = net.query(asked, known).values
                except sf.EstimateError:
                    continue
                answered += 1
                np.testing.assert_allclose(found, one, rtol=1e-10)
                np.testing.assert_allclose(found, two, rtol=1e-10)
    assert answered > 60
