"""Every documented attribute of networks and graphs, as a checker in strict mode reads them."""

from collections.abc import Hashable
from typing import assert_type

import suffice as sf
from suffice.array_types import Floats
from suffice.choices import Registered

STATES = {"a": [0, 0, 1, 1, 1, 0], "b": [0, 1, 1, 1, 0, 0]}
NUMBERS = {"x": [1.0, 2.0, 4.0, 3.0], "y": [1.0, 3.0, 3.0, 5.0]}


def bayesian() -> None:
    net = sf.BayesianNetwork([("a", "b")], prior=1.0, estimate="mean", unseen="nan", missing="raise").fit(STATES)
    assert_type(net, sf.BayesianNetwork)
    assert_type(net.nodes, tuple[Hashable, ...])
    assert_type(net.edges, tuple[tuple[Hashable, Hashable], ...])
    assert_type(net.parents("b"), tuple[Hashable, ...])
    assert_type(net.states("b"), tuple[Hashable, ...])
    assert_type(net.table("b"), sf.Table)
    assert_type(net.table("b").values, Floats)
    assert_type(net.standard_errors_, dict[Hashable, sf.Table])
    assert_type(net.n_params_, int)
    assert_type(net.score(STATES), float)
    assert_type(net.score_samples(STATES), Floats)
    assert_type(net.predict_proba(STATES, "b"), Floats)
    assert_type(net.query_rows("b", STATES), Floats)
    assert_type(net.map_query({"a": 1}), dict[Hashable, Hashable])
    assert_type(net.log_probability({"a": 1}), float)
    assert_type(net.to_joint(), sf.Table)
    assert_type(net.log_predictive(STATES), Floats)
    assert_type(net.report_.to_html(), str)
    net.query("b", given={"a": 1}, engine="exact")
    net.query("b", engine=Registered("enumeration"))
    net.max_iter = 5


def markov() -> None:
    network = sf.MarkovNetwork([("a", "b")], solver="ipf", states={"a": [0, 1], "b": [0, 1]}).fit(STATES)
    assert_type(network.weights_, Floats)
    assert_type(network.weight_names_, tuple[str, ...])
    assert_type(network.log_partition_, float)
    assert_type(network.information_, Floats)
    assert_type(network.cliques, tuple[tuple[Hashable, ...], ...])
    assert_type(network.edges, tuple[tuple[Hashable, Hashable], ...])
    assert_type(network.deviance_, float)
    assert_type(network.df_, int)
    assert_type(network.p_value_, float)
    assert_type(network.chi2_, float)
    assert_type(network.fitted_counts_, sf.Table)
    assert_type(network.marginal("a"), sf.Table)
    assert_type(network.query("a", given={"b": 1}), sf.Table)
    assert_type(network.potential(("a", "b")), sf.Table)
    assert_type(network.marginals(), dict[Hashable, sf.Table])
    assert_type(network.score_samples(STATES), Floats)
    ising = sf.MarkovNetwork.ising([("a", "b")], coding="binary").fit(STATES)
    assert_type(ising.couplings_, dict[tuple[Hashable, ...], float])


def gaussian() -> None:
    graph = sf.GaussianGraph([("x", "y")], solver="auto").fit(NUMBERS)
    assert_type(graph.mean_, Floats)
    assert_type(graph.covariance_, Floats)
    assert_type(graph.precision_, Floats)
    assert_type(graph.correlations_, Floats)
    assert_type(graph.partial_correlations_, Floats)
    assert_type(graph.information_, Floats)
    assert_type(graph.standard_errors_, Floats)
    assert_type(graph.deviance_, float)
    assert_type(graph.df_, int)
    assert_type(graph.predict(NUMBERS, "y"), Floats)
    assert_type(graph.query("y", given={"x": 1.0}).mean, Floats)


def main() -> None:
    for each in (bayesian, markov, gaussian):
        each()
