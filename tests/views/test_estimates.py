"""Observed and expected statistics, and estimates beside one another, against their formulas."""

import copy
import gc
import pickle
import weakref
from typing import Any

import numpy as np
import pytest
from scipy import stats

import suffice as sf
from suffice.fitting.portrait import Interval
from suffice.views.charts import Scale, name_lines, text_width


def estimates_of(model: Any, *, level: float = 0.95, node: Any = None) -> list[Interval]:
    return list(model.portrait().estimates(level, node).intervals)


def note_of(model: Any) -> str:
    return str(model.portrait().estimates(0.95, None).note)


ROWS = {"a": [0, 0, 0, 1, 1], "b": ["x", "y", "y", "y", "y"]}


def test_a_law_of_one_column() -> None:
    law = sf.Bernoulli(prior=sf.Beta(2, 3), states=("no", "yes")).fit(["yes"] * 7 + ["no"] * 4)
    (found,) = estimates_of(law, level=0.9)
    posterior = stats.beta(2 + 7, 3 + 4)
    assert (found.low, found.high) == pytest.approx(posterior.interval(0.9), rel=1e-9)
    assert found.mle == pytest.approx(7 / 11, rel=1e-12)
    assert found.map == pytest.approx((2 + 7 - 1) / (16 - 2), rel=1e-12)
    assert found.mean == pytest.approx(9 / 16, rel=1e-12)


def test_cells_of_a_network() -> None:
    net = sf.BayesianNetwork([("a", "b")], prior=2.0).fit(ROWS)
    found = {one.name: one for one in estimates_of(net)}
    assert list(found) == ["a=0", "a=1", "b=x | a=0", "b=y | a=0", "b=x | a=1", "b=y | a=1"]
    one = found["b=x | a=0"]
    law = stats.beta(1 + 2, 2 + 2)
    assert (one.low, one.high) == pytest.approx(law.interval(0.95), rel=1e-9)
    assert (one.mle, one.map, one.mean) == pytest.approx((1 / 3, 2 / 5, 3 / 7), rel=1e-12)
    assert [one.name for one in estimates_of(net, node="a")] == ["a=0", "a=1"]
    assert estimates_of(sf.BayesianNetwork([("a", "b")]).fit(ROWS)) == []


def test_coefficients_have_wald_intervals() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(50, 1))
    glm = sf.GLM(family=sf.Poisson()).fit(x, rng.poisson(np.exp(0.3 + 0.5 * x[:, 0])))
    slope = estimates_of(glm)[1]
    assert slope.mle == pytest.approx(glm.coefficients_[0], rel=1e-12)
    assert (slope.map, slope.mean) == (None, None)
    assert slope.high - slope.low == pytest.approx(2 * stats.norm.ppf(0.975) * glm.standard_errors_[-1], rel=1e-9)


def test_matched_statistics_of_tables() -> None:
    free = sf.BayesianNetwork([("a", "b")]).fit(ROWS).matched_statistics()
    assert free is not None
    assert free.observed == pytest.approx(free.expected, abs=1e-15)
    pulled = sf.BayesianNetwork([("a", "b")], prior=2.0).fit(ROWS).matched_statistics()
    assert pulled is not None
    assert pulled.names[2] == "b=x | a=0"
    assert pulled.observed[2] == pytest.approx(1 / 5)
    assert pulled.expected[2] == pytest.approx(3 / 5 * 3 / 7)


def test_matched_statistics_of_markov_networks_graphs_and_laws() -> None:
    rng = np.random.default_rng(1)
    rows = {name: rng.choice(2, 80) for name in "ABC"}
    mrf = sf.MarkovNetwork([("A", "B"), ("B", "C"), ("C", "A")], solver="ipf").fit(rows)
    matched = mrf.matched_statistics()
    assert matched is not None
    assert matched.observed[:4].reshape(2, 2) == pytest.approx(
        np.array([[np.mean((rows["A"] == a) & (rows["B"] == b)) for b in (0, 1)] for a in (0, 1)])
    )
    assert matched.expected[:4] == pytest.approx(mrf.marginal(("A", "B")).values.ravel(), abs=1e-12)
    frame = {name: rng.normal(size=40) for name in "abc"}
    graph = sf.GaussianGraph([("a", "b"), ("b", "c")]).fit(frame).matched_statistics()
    assert graph is not None
    assert graph.names == ("cov(a, a)", "cov(b, b)", "cov(c, c)", "cov(a, b)", "cov(b, c)")
    S = np.cov(np.array(list(frame.values())), bias=True)
    assert graph.observed == pytest.approx([S[0, 0], S[1, 1], S[2, 2], S[0, 1], S[1, 2]])
    law = sf.Normal().fit(frame["a"]).matched_statistics()
    assert law is not None
    assert law.expected == pytest.approx([frame["a"].mean(), (frame["a"] ** 2).mean()])


def test_a_report_knows_its_model_and_stays_itself() -> None:
    net = sf.BayesianNetwork([("a", "b")], prior=1.0).fit(ROWS)
    report = net.report_
    assert report is net.report_
    bare = sf.Report.from_dict(report.to_dict())
    assert bare == report
    assert hash(bare) == hash(report)
    assert repr(bare) == repr(report)
    for twin in (pickle.loads(pickle.dumps(report)), copy.deepcopy(report)):
        assert twin == report
        assert "_portrait" not in vars(twin)
    assert pickle.loads(pickle.dumps(net)).report_ == report
    first = report
    net.fit({"a": [0, 1], "b": ["x", "y"]})
    assert net.report_ != first
    assert net.report_.rows == 2


def test_a_model_is_freed_at_once_and_its_report_holds_it() -> None:
    gc.collect()
    gc.disable()
    try:
        net: Any = sf.Normal().fit([1.0, 2.0])
        watched = weakref.ref(net)
        report = net.report_
        del net
        assert watched() is not None
        del report
        assert watched() is None
    finally:
        gc.enable()


def test_models_tables_and_reports_show_themselves_in_notebooks() -> None:
    net = sf.BayesianNetwork([("<a>", "b")])
    blank = net._repr_html_()
    assert "not fitted" in blank
    assert "&lt;a&gt;" in blank
    assert "<a>" not in blank
    fitted = net.fit({"<a>": [0, 1], "b": [1, 0]})
    shown = fitted._repr_html_()
    assert shown.count("<rect") == 2
    assert "log-likelihood" in shown
    assert "<table" in fitted.table("b")._repr_html_()
    assert fitted.report_._repr_html_() in shown
    assert "<svg" not in sf.Normal().fit([1.0, 2.0])._repr_html_()


def test_scales_reach_around_the_data() -> None:
    scale = Scale.over([0.03, 0.97], 10.0, 110.0)
    assert scale.ticks == pytest.approx([0.0, 0.2, 0.4, 0.6, 0.8, 1.0])
    assert (scale.at(0.0), scale.at(0.5), scale.at(1.0)) == pytest.approx((10.0, 60.0, 110.0))
    assert [scale.text(tick) for tick in scale.ticks] == ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]
    halves = Scale.over([-880.0, -868.5], 0.0, 1.0)
    assert [halves.text(tick) for tick in halves.ticks][:3] == ["-880.0", "-877.5", "-875.0"]
    decades = Scale.over([1e-9, 2.0, 0.0], 0.0, 1.0, log=True)
    assert decades.text(decades.ticks[0]) == "1e-10"
    assert decades.at(10.0 ** decades.ticks[-1]) == pytest.approx(1.0)
    assert Scale.over([3.0, 3.0], 0.0, 1.0).at(3.0) == pytest.approx(0.5)
    assert Scale.over([0, 2], 0.0, 1.0, whole=True).ticks == (0.0, 1.0, 2.0)


# -- more models side by side ------------------------------------------------------------------------------------------


def test_a_row_without_a_mode_does_not_hide_the_others() -> None:
    net = sf.BayesianNetwork([("a", "b")], prior={"a": 1.0, "b": 0.5}).fit(ROWS)
    found = {one.name: one for one in estimates_of(net)}
    assert found["b=x | a=0"].map == pytest.approx((1.5 - 1) / (4 - 2), rel=1e-12)
    assert found["b=x | a=1"].map is None
    assert "has a mode, the MAP, only where" in note_of(net)


def test_rows_of_chains_and_of_known_states() -> None:
    chain = sf.MarkovChain(prior=2.0).fit(["abab", "aab"])
    one = {one.name: one for one in estimates_of(chain)}["a → b"]
    law = stats.beta(3 + 2, 1 + 2)
    assert (one.low, one.high) == pytest.approx(law.interval(0.95), rel=1e-9)
    assert (one.mle, one.map, one.mean) == pytest.approx((3 / 4, 4 / 6, 5 / 8), rel=1e-12)
    assert one.mean == pytest.approx(chain.probability("b", "a"), rel=1e-12)
    assert estimates_of(sf.MarkovChain().fit(["abab", "aab"])) == []
    model = sf.HiddenMarkovModel(["F", "L"], emission=sf.Categorical(), prior=1.0)
    model.fit(["HTHH", "HHT"], states=["FFLL", "LLF"])
    found = {one.name: one for one in estimates_of(model)}
    assert found["L → L"].mean == pytest.approx(model.transitions_[1, 1], rel=1e-12)
    assert found["L → L"].mle == pytest.approx(2 / 3, rel=1e-12)
    assert found["F: H"].mean == pytest.approx(model.emission_probabilities_[0, 0], rel=1e-12)


def test_hidden_states_leave_maximum_likelihood_open() -> None:
    model = sf.HiddenMarkovModel(2, emission=sf.Categorical(), prior=1.0, random_state=0).fit(["abab", "aabb", "bbab"])
    found = estimates_of(model)
    assert {one.mle for one in found} == {None}
    at = {one.name: one for one in found}["0 → 1"]
    assert at.map == pytest.approx(model.transitions_[0, 1], abs=1e-5)
    assert "prior=None" in note_of(model)


def test_means_of_features_have_the_curvature_of_the_posterior() -> None:
    rows = {"a": [0, 0, 0, 1, 1, 1, 1, 0], "b": [0, 1, 0, 1, 1, 0, 1, 0]}
    net = sf.MarkovNetwork([sf.Feature(("a", "b"), lambda a, b: a == b)], prior=sf.Normal(variance=0.5)).fit(rows)
    (one,) = estimates_of(net)
    odds = np.exp(net.weights_[0])
    mean = odds / (1 + odds)
    spread = mean * (1 - mean)
    assert (one.mle, one.map) == pytest.approx((6 / 8, mean), rel=1e-9)
    error = np.sqrt(spread**2 / (8 * spread + 2.0))
    assert one.high - one.low == pytest.approx(2 * stats.norm.ppf(0.975) * error, rel=1e-9)
    assert estimates_of(sf.MarkovNetwork([("a", "b")]).fit(rows)) == []


def test_real_nodes_with_a_prior() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=40)
    rows = {"x": x, "y": 1 + 2 * x + rng.normal(size=40)}
    net = sf.BayesianNetwork([("x", "y")], prior={"y": sf.LinearGaussianPrior(2.0, 1.0)}).fit(rows)
    found = {one.name: one for one in estimates_of(net, node="y")}
    free = sf.BayesianNetwork([("x", "y")]).fit(rows).node("y")
    assert found["y: x"].mle == pytest.approx(free.at()["x"], rel=1e-9)
    assert found["y: x"].mean == pytest.approx(net.node("y").at()["x"], rel=1e-12)
    low, high = net.node("y").credible_intervals()
    assert (found["y: x"].low, found["y: x"].high) == (low.at(coefficient="x"), high.at(coefficient="x"))


def test_tables_learned_from_rows_with_gaps_have_standard_errors() -> None:
    rows = {"a": [0, 0, None, 1, 1, 0, 1, 0], "b": [0, 1, 1, None, 1, 0, 1, 0]}
    net = sf.BayesianNetwork([("a", "b")], prior=1.0).fit(rows)
    found = estimates_of(net)
    assert [one.map for one in found[:2]] == pytest.approx(net.table("a").values.tolist(), rel=1e-12)
    reach = stats.norm.ppf(0.975) * net.node("a").standard_errors_.values[0]
    assert found[0].high - found[0].low == pytest.approx(2 * reach, rel=1e-9)
    assert "Rows have missing values" in note_of(net)


def test_coefficients_with_a_prior_stand_beside_the_likelihood() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(50, 1))
    y = rng.poisson(np.exp(0.3 + 0.5 * x[:, 0]))
    found = estimates_of(sf.GLM("poisson", prior=sf.Normal(variance=0.01)).fit(x, y))
    free = sf.GLM("poisson").fit(x, y)
    assert found[1].mle == pytest.approx(free.coefficients_[0], rel=1e-6)
    assert found[1].map is not None
    assert abs(found[1].map) < abs(free.coefficients_[0])
    separated = sf.GLM("binomial", prior=sf.Normal(variance=1.0)).fit(x, x[:, 0] > 0)
    assert "no maximum" in note_of(separated)


def test_weights_of_a_crf_say_why_they_stand_alone() -> None:
    model = sf.ChainCRF(prior=sf.Normal(variance=10.0)).fit([[{"w": "a"}, {"w": "b"}]], [["X", "Y"]])
    assert estimates_of(model) == []
    assert "prior=None" in note_of(model)
    assert note_of(sf.ChainCRF(max_iter=3)) == ""


def test_long_names_take_two_lines() -> None:
    assert name_lines("a=1 | b=2") == ["a=1 | b=2"]
    long = "VENTLUNG=ZERO | INTUBATION=ESOPHAGEAL, KINKEDTUBE=TRUE, VENTTUBE=LOW"
    assert " ".join(name_lines(long)) == long
    first, second = name_lines("x" * 200)
    assert "…" in first
    assert "…" in second
    assert text_width(first) <= 312
