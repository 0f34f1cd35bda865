"""What networks say where something does not fit or is not there: by name, with its size, and for that node alone."""

from typing import Any

import numpy as np
import pytest

import suffice as sf
from suffice.errors import OptionError, SizeError, SufficeWarning

DATA = {"a": [0, 1, 1, 0], "b": [0, 1, 1, 1], "c": [1, 1, 0, 0]}
CHAIN = [("a", "b"), ("b", "c")]


def test_a_prior_network_without_a_node_is_refused_by_the_name_of_the_node() -> None:
    known = sf.BayesianNetwork([("a", "b")], prior=1.0).fit(DATA)
    with pytest.raises(OptionError, match=r"has no node 'c', which the prior of 'c' needs; its nodes are 'a', 'b'"):
        sf.BayesianNetwork(CHAIN, prior=known).fit(DATA)
    with pytest.raises(OptionError, match="has no node 'c'"):
        sf.BayesianNetwork(CHAIN, prior={"c": known}).fit(DATA)


@pytest.mark.parametrize("value", [2.5, 2.0, True, None, "three", float("nan")])
@pytest.mark.parametrize("model", [sf.BayesianNetwork, sf.MarkovNetwork])
def test_what_hidden_nodes_may_be_is_said_of_hidden(model: Any, value: Any) -> None:
    with pytest.raises(OptionError, match=r"hidden\['h'\] is .*; expected a whole number of states"):
        model([("h", "a"), ("h", "b")], hidden={"h": value}).fit(DATA)


def test_a_hidden_node_without_states_is_refused() -> None:
    with pytest.raises(OptionError, match=r"hidden\['h'\] lists no states"):
        sf.BayesianNetwork([("h", "a")], hidden={"h": []}).fit(DATA)


def test_a_number_of_states_may_come_from_numpy() -> None:
    net = sf.BayesianNetwork([("h", "a"), ("h", "b")], hidden={"h": np.int64(2)}, random_state=1).fit(DATA)
    assert net.states("h") == (0, 1)


def wide(**options: Any) -> sf.BayesianNetwork:
    rng = np.random.default_rng(0)
    data = {f"p{at}": rng.integers(10, size=200) for at in range(9)} | {"y": rng.integers(2, size=200)}
    return sf.BayesianNetwork([(f"p{at}", "y") for at in range(9)], **options).fit(data)


def test_a_node_too_large_for_a_table_leaves_the_errors_of_the_others() -> None:
    net = wide()
    with pytest.warns(SufficeWarning, match="no room for the standard errors of 'y'"):
        errors = net.standard_errors_
    assert list(errors) == [f"p{at}" for at in range(9)]
    share = net.table("p4").values
    np.testing.assert_allclose(errors["p4"].values, np.sqrt(share * (1 - share) / 200), rtol=1e-12)
    with pytest.raises(SizeError, match=r"'y' given 'p0'.* 2,000,000,000 cells \(16\.0 GB\)"):
        errors["y"]
    with pytest.raises(KeyError, match="nobody"):
        errors["nobody"]
    assert errors.get("y") is None


def test_a_node_too_large_for_a_table_leaves_the_posteriors_of_the_others() -> None:
    net = wide(prior=1.0)
    with pytest.warns(SufficeWarning, match="no room for the posterior of 'y'"):
        posterior = net.posterior_
    np.testing.assert_allclose(posterior["p0"].mean().values, net.table("p0").values, rtol=1e-12)
    with pytest.raises(SizeError, match="'y' given"):
        posterior["y"]
