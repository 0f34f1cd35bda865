"""A fitted network is its own: what a user does later to arrays, tables and templates does not reach it."""

import numpy as np
import pytest

import suffice as sf
from suffice.errors import NotFittedError

RNG = np.random.default_rng(0)
ROWS = {"a": RNG.integers(0, 2, 200), "b": RNG.integers(0, 2, 200)}


def test_a_fit_of_whole_rows_after_one_with_gaps_begins_anew() -> None:
    net = sf.BayesianNetwork({"b": ["a"]}, prior=1.0).fit({"a": [None, 0, 1], "b": [0, 1, 0]}).fit(ROWS)
    fresh = sf.BayesianNetwork({"b": ["a"]}, prior=1.0).fit(ROWS)
    assert net.report_ == fresh.report_
    assert net.report_.log_evidence is not None
    hidden = sf.BayesianNetwork({"b": ["a"]}, hidden={"a": 2}, prior=1.0, max_iter=5, tolerance=1.0).fit(ROWS)
    assert hidden.set_params(hidden=None).fit(ROWS).report_ == fresh.report_


def test_rows_that_join_rows_with_gaps_are_read_as_these_were() -> None:
    gaps = {"a": [None, 0, 1], "b": [0, 1, 0]}
    net = sf.BayesianNetwork({"b": ["a"]}, prior=1.0).fit(gaps).partial_fit(ROWS)
    together = {"a": [None, 0, 1, *map(int, ROWS["a"])], "b": [0, 1, 0, *map(int, ROWS["b"])]}
    whole = sf.BayesianNetwork({"b": ["a"]}, prior=1.0).fit(together)
    np.testing.assert_allclose(net.table("b").values, whole.table("b").values, atol=1e-6)


def test_a_fixed_table_is_a_copy() -> None:
    given = np.array([[0.5, 0.5], [0.2, 0.8]])
    net = sf.BayesianNetwork({"b": ["a"]}, fixed={"b": given}).fit(ROWS)
    expected = sf.BayesianNetwork({"b": ["a"]}, fixed={"b": given.copy()}).fit(ROWS).report_.log_likelihood
    given[:] = 0.5
    np.testing.assert_array_equal(net.table("b").values, [[0.5, 0.5], [0.2, 0.8]])
    assert net.report_.log_likelihood == expected


def test_the_values_of_a_table_cannot_be_written() -> None:
    net = sf.BayesianNetwork({"b": ["a"]}).fit(ROWS)
    with pytest.raises(ValueError, match="read-only"):
        net.table("b").values[:] = 0.5
    halved = net.table("b").values.copy()
    halved /= 2
    assert net.table("b").values.sum() == pytest.approx(2.0)


def test_a_template_of_a_node_may_be_used_again() -> None:
    rows = {"x": RNG.normal(size=100), "k": RNG.poisson(2.0, 100)}
    template = sf.GLM(family=sf.Poisson())
    net = sf.BayesianNetwork({"k": ["x"]}, nodes={"k": template}).fit(rows)
    template.set_params(family=sf.Gamma())
    assert net.report_.n_params == 4
    assert isinstance(net.node("k").glm_.get_params()["family"], sf.Poisson)


def test_an_option_that_is_assigned_is_that_of_the_next_fit() -> None:
    net = sf.BayesianNetwork({"b": ["a"]}).fit(ROWS)
    before = net.table("b").values.copy()
    net.prior = 5.0
    assert net.get_params()["prior"] == 5.0
    np.testing.assert_array_equal(net.table("b").values, before)
    given = sf.BayesianNetwork({"b": ["a"]}, prior=5.0).fit(ROWS)
    np.testing.assert_array_equal(net.fit(ROWS).table("b").values, given.table("b").values)


def test_another_structure_is_another_network() -> None:
    net = sf.BayesianNetwork({"b": ["a"]}).fit(ROWS).set_params(structure={"a": ["b"]})
    assert net.parents("b") == ()
    with pytest.raises(NotFittedError):
        net.table("b")
    assert net.fit(ROWS).table("a").variables == ("b", "a")
