"""Every documented attribute of networks and graphs, as a checker in strict mode reads them."""

from collections.abc import Hashable
from typing import Any, Literal, assert_type

import polars
from numpy.typing import NDArray

import suffice as sf
from suffice.array_types import Floats
from suffice.choices import Registered
from suffice.engines.junction_tree import TreePlan
from suffice.fitting.hypotheses import HypothesisTest
from suffice.fitting.parameter_table import EstimateTable, NumberTable, ParameterTable
from suffice.fitting.report import MatchedStatistics
from suffice.models.bayesian.error_bars.effect import Effect
from suffice.models.bayesian.error_bars.explain import Explanation
from suffice.models.bayesian.error_bars.sensitivity import Sensitivity
from suffice.models.bayesian.size_report import SizeReport
from suffice.models.uncertain import UncertainTable

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
    assert net.impute({"a": [1, None], "b": [None, 0]})["b"][1] == 0
    assert_type(net.markov_blanket("a"), tuple[Hashable, ...])
    assert_type(net.d_separated("a", "b"), bool)
    assert_type(net.mutual_information("a", "b"), float)
    assert_type(net.arc_strengths(), NumberTable)
    assert_type(net.conflict({"a": 1, "b": 0}), float)
    assert_type(net.surprise(STATES, n=9), Floats)
    assert_type(net.node_scores(STATES), NumberTable)
    assert_type(net.predict_proba(STATES, "b"), Floats)
    assert_type(net.query_rows("b", STATES), Floats)
    assert_type(net.map_query({"a": 1}), dict[Hashable, Hashable])
    assert_type(net.log_probability({"a": 1}), float)
    assert_type(net.to_joint(), sf.Table)
    assert_type(net.log_predictive(STATES), Floats)
    assert_type(net.report_.to_html(), str)
    assert_type(net.posterior_, dict[Hashable, Any])
    assert_type(net.notes_, tuple[str, ...])
    framed = net.clone().fit(polars.DataFrame(STATES))
    assert_type(framed.n_features_in_, int)
    assert_type(framed.feature_names_in_, NDArray[Any])
    assert_type(framed.set_fit_request(sample_weight=True), sf.BayesianNetwork)
    assert_type(framed.set_score_request(sample_weight=True), sf.BayesianNetwork)
    assert_type(net.matched_statistics(), MatchedStatistics | None)
    assert_type(net.marginals(), dict[Hashable, Any])
    assert_type(net.to_dict(), dict[str, Any])
    assert_type(net.fitted_.n_params, int)
    assert_type(net.size_report(), SizeReport)
    assert_type(net.node("b").table_, Any)
    rising = sf.ConstrainedTable({"a": sf.Monotone("+", order=[0, 1])}, bounds={1: (0.1, None)}, order=[0, 1])
    assert_type(sf.Monotone("-").direction, Literal["+", "-"])
    graded = sf.NoisyMax(leak=False, order=[0, 1], inactive={"a": 0})
    assert_type(sf.BayesianNetwork([("a", "b")], nodes={"b": rising}).fit(STATES), sf.BayesianNetwork)
    assert_type(sf.BayesianNetwork([("a", "b")], nodes={"b": graded}), sf.BayesianNetwork)
    hidden = sf.BayesianNetwork([("h", "a"), ("h", "b")], hidden={"h": 2}, n_init=2, max_iter=5000).fit(STATES)
    assert_type(hidden.scores_, tuple[float, ...])
    assert_type(hidden.n_expectations_, int)
    linear = sf.BayesianNetwork([("x", "y")], states={"x": "real", "y": "real"}).fit(NUMBERS)
    assert_type(linear.joint_gaussian().mean, Floats)
    target = sf.BayesianNetwork([("a", "b")], target="b", objective="joint", prior=1.0).fit(STATES)
    assert_type(target.score(STATES, STATES["b"]), float)
    assert_type(target.classes_, NDArray[Any])
    assert_type(target.n_iter_, int)
    given = sf.BayesianNetwork.from_tables(
        net.table("b").domain, {"b": ["a"]}, {"a": [0.5, 0.5], "b": net.table("b").values}
    )
    assert_type(given, sf.BayesianNetwork)
    net.query("b", given={"a": 1}, engine="exact")
    net.query("b", engine=Registered("enumeration"))
    effect = net.effect("b", {"a": 1}, against={"a": 0})
    assert_type(effect, Effect)
    assert_type(effect.mean_error, float)
    assert_type(net.sensitivity("b", {"a": 1}), Sensitivity)
    assert_type(net.sensitivity("b", {"a": 1})[0].derivative, float)
    assert_type(net.explain("b", {"a": 1}), Explanation)
    assert_type(net.explain("b", {"a": 1}).after, sf.Table)
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
    assert_type(network.residuals("adjusted"), sf.Table)
    assert_type(network.effects("sum"), EstimateTable)
    assert_type(network.marginal("a"), sf.Table)
    assert_type(network.query("a", given={"b": 1}), UncertainTable)
    assert_type(network.query("a").interval(), tuple[sf.Table, sf.Table])
    assert_type(network.query("a").standard_errors, sf.Table)
    assert_type(network.potential(("a", "b")), sf.Table)
    assert_type(network.marginals(), dict[Hashable, sf.Table])
    assert_type(network.score_samples(STATES), Floats)
    assert_type(network.n_cells_, int)
    assert_type(network.adjusted_df_, int | None)
    assert_type(network.adjusted_n_params_, int | None)
    assert_type(network.standard_errors_, Floats)
    assert_type(network.weight_covariance_, Floats)
    assert_type(network.statistics_, sf.Summary)
    assert_type(network.summary(), ParameterTable)
    assert_type(network.with_weights(network.weights_), sf.MarkovNetwork)
    assert_type(network.gis_lower_bound(network.weights_), float)
    assert_type(network.features, tuple[sf.Feature, ...])
    assert_type(network.estimate_log_partition(chains=4, steps=4).value, float)
    assert_type(network.plan_, TreePlan)
    latent = sf.MarkovNetwork([("h", "a"), ("h", "b")], hidden={"h": 2}, max_iter=5000).fit(STATES)
    assert_type(latent.scores_, tuple[float, ...])
    assert_type(latent.n_expectations_, int)
    assert_type(sf.MarkovNetwork.grid(2, 2), sf.MarkovNetwork)
    assert_type(sf.MarkovNetwork.grid_edges(2, 2), list[tuple[Hashable, Hashable]])
    assert_type(sf.MarkovNetwork.potts([("a", "b")], [0, 1]), sf.MarkovNetwork)
    ising = sf.MarkovNetwork.ising([("a", "b")], coding="binary").fit(STATES)
    assert_type(ising.couplings_, dict[tuple[Hashable, ...], float])
    assert_type(ising.fields_, dict[Hashable, Any])


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
    assert_type(graph.edge_correlations(0.9), EstimateTable)
    assert_type(graph.edge_deviances(), NumberTable)
    assert_type(sf.independence_test(graph, "x", "y"), HypothesisTest)
    assert_type(graph.joint_.mean, Floats)
    assert_type(graph.mean_standard_errors_, Floats)
    assert_type(graph.is_chordal, bool)
    graph.to_frame("covariance")
    assert_type(graph.predict(NUMBERS, "y"), Floats)
    assert_type(graph.query("y", given={"x": 1.0}).mean, Floats)


def structures() -> None:
    graph = sf.DirectedGraph("a -> b <- c")
    assert_type(graph.markov_blanket("a"), tuple[Hashable, ...])
    assert_type(graph.ancestors("b") + graph.descendants("a") + graph.children("a"), tuple[Hashable, ...])
    assert_type(graph.topological_order(), tuple[Hashable, ...])
    assert_type(graph.d_separated("a", "c", given=["b"]), bool)
    assert_type(graph.equivalent("a -> b"), bool)
    assert_type(graph.v_structures(), tuple[tuple[Hashable, Hashable, Hashable], ...])
    moral = graph.moral()
    assert_type(moral, sf.UndirectedGraph)
    assert_type(moral.edges, tuple[tuple[Hashable, Hashable], ...])
    assert_type(moral.chordless_cycle() + moral.neighbours("a"), tuple[Hashable, ...])
    assert_type(moral.cliques() + moral.components(), tuple[tuple[Hashable, ...], ...])
    assert_type(moral.separated("a", "c"), bool)
    wide = moral.triangulate(rule="size", states={"a": 2, "b": 3, "c": 2})
    assert_type(wide.fill, tuple[tuple[Hashable, Hashable], ...])
    assert_type(wide.width + wide.cells, int)
    assert_type(wide.clique_tree().cliques, tuple[tuple[Hashable, ...], ...])
    assert_type(wide.clique_tree().separators, tuple[tuple[Hashable, ...], ...])


def through_time() -> None:
    days = [{"rain": [True, True, False], "umbrella": [True, True, True]}, {"rain": [False], "umbrella": [False]}]
    weather = sf.DynamicBayesianNetwork([(("rain", -1), "rain"), ("rain", "umbrella")]).fit(days)
    assert_type(weather.nodes_ + weather.tables_, tuple[Hashable, ...])
    assert_type(weather.table("umbrella"), sf.Table)
    weather.filter([{"umbrella": [True]}], "rain")
    weather.smooth([{"umbrella": [True]}], "rain", do={("rain", 0): True})
    weather.query(("rain", 2), given={("umbrella", 0): True})
    assert_type(weather.unroll(2), sf.BayesianNetwork)
    assert_type(sf.DynamicBayesianNetwork.linear_system(1, ["x"]), sf.DynamicBayesianNetwork)


def main() -> None:
    for each in (bayesian, markov, gaussian, structures, through_time):
        each()
