"""Tests between nested fits: likelihood ratios, scores, Wald tests."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import optimize
from scipy.stats import chi2
from scipy.stats import f as fisher

import suffice as sf
from curvature import hessian

RNG = np.random.default_rng(8)


def gaussian_rows(n: int = 150) -> pd.DataFrame:
    a = RNG.normal(size=n)
    b = 0.6 * a + RNG.normal(size=n)
    c = -0.5 * b + RNG.normal(size=n)
    return pd.DataFrame({"a": a, "b": b, "c": c, "d": 0.3 * a + 0.4 * c + RNG.normal(size=n)})


ROWS = gaussian_rows()
STATES = (ROWS > 0).astype(int)


def test_an_edge_of_a_gaussian_graph_is_tested_by_the_partial_correlation() -> None:
    """Against the saturated graph the deviance of one edge left out is -N log(1 - r^2), r the partial correlation."""
    nodes = list(ROWS.columns)
    pairs = [(one, two) for k, one in enumerate(nodes) for two in nodes[k + 1 :]]
    full, less = sf.GaussianGraph(pairs).fit(ROWS), sf.GaussianGraph(pairs[:-1], nodes=nodes).fit(ROWS)
    test = sf.likelihood_ratio_test(less, full)
    r = full.partial_correlations_[2, 3]
    assert test.statistic == pytest.approx(-len(ROWS) * math.log1p(-(r**2)), abs=1e-8)
    assert test.df == 1.0
    assert test.p_value == pytest.approx(float(chi2.sf(test.statistic, 1)))
    with pytest.raises(sf.OptionError, match="lacks the edge"):
        sf.likelihood_ratio_test(full, less)


def test_the_score_of_an_edge_is_that_of_the_larger_likelihood() -> None:
    nodes, edges = list(ROWS.columns), [("a", "b"), ("b", "c"), ("c", "d")]
    graph = sf.GaussianGraph(edges).fit(ROWS)
    places = [(k, k) for k in range(4)] + [(0, 1), (1, 2), (2, 3), (0, 3)]
    S = np.cov(ROWS[nodes].T, ddof=0)

    def value(point: np.ndarray) -> float:
        K = np.zeros((4, 4))
        for (i, j), entry in zip(places, point, strict=True):
            K[i, j] = K[j, i] = entry
        return 0.5 * len(ROWS) * (float(np.linalg.slogdet(K)[1]) - float(np.sum(S * K)))

    order = [graph.nodes.index(node) for node in nodes]
    K = graph.precision_[np.ix_(order, order)]
    here = np.array([K[i, j] for i, j in places])
    slope = optimize.approx_fprime(here, value, 1e-6)
    statistic = slope @ np.linalg.solve(-hessian(value, here), slope)
    assert sf.score_test(graph, ("a", "d")).statistic == pytest.approx(statistic, rel=1e-4)
    with pytest.raises(sf.OptionError, match="leaves apart"):
        sf.score_test(graph, ("a", "b"))


def test_independence_of_two_columns_has_the_published_tests() -> None:
    """Of independence against the saturated table: G^2, and the score test is Pearson's X^2."""
    from scipy.stats import chi2_contingency

    table = pd.crosstab(STATES["a"], STATES["b"]).to_numpy()
    apart, joined = sf.MarkovNetwork([("a",), ("b",)]).fit(STATES[["a", "b"]]), sf.MarkovNetwork([("a", "b")])
    test = sf.likelihood_ratio_test(apart, joined.fit(STATES[["a", "b"]]))
    ratio = chi2_contingency(table, correction=False, lambda_="log-likelihood")
    assert test.statistic == pytest.approx(ratio.statistic)
    assert test.df == ratio.dof
    assert test.p_value == pytest.approx(ratio.pvalue)
    score, pearson = sf.score_test(apart, ("a", "b")), chi2_contingency(table, correction=False)
    assert score.statistic == pytest.approx(pearson.statistic)
    assert score.df == pearson.dof
    with pytest.raises(sf.OptionError, match="nothing to test"):
        sf.score_test(joined.fit(STATES[["a", "b"]]), ("a", "b"))


def test_a_feature_lies_in_a_table_and_not_the_other_way_round() -> None:
    rows = STATES[["a", "b", "c"]]
    tables = sf.MarkovNetwork([("a", "b"), ("b", "c")]).fit(rows)
    equal = sf.Feature(("a", "b"), lambda a, b: float(a == b), name="equal")
    feature = sf.MarkovNetwork([("a",), ("b",), ("c",), equal]).fit(rows)
    test = sf.likelihood_ratio_test(feature, tables)
    assert test.df == 1.0
    assert test.statistic == pytest.approx(2 * (tables.log_likelihood_ - feature.log_likelihood_))
    triangle = sf.MarkovNetwork([("a", "b"), ("a", "c")]).fit(rows)
    with pytest.raises(sf.OptionError, match="cannot take all"):
        sf.likelihood_ratio_test(triangle, tables)


def test_networks_are_nested_by_their_independences() -> None:
    rows = STATES[["a", "b", "c"]]
    chain = sf.BayesianNetwork([("a", "b"), ("b", "c")]).fit(rows)
    turned = sf.BayesianNetwork([("c", "b"), ("b", "a"), ("c", "a")]).fit(rows)
    test = sf.likelihood_ratio_test(chain, turned)
    # a and c given b: G^2 summed over the two tables.
    total = 0.0
    for _, part in rows.groupby("b"):
        table = pd.crosstab(part["a"], part["c"]).to_numpy()
        expected = table.sum(1, keepdims=True) * table.sum(0) / table.sum()
        total += 2 * float((table * np.log(table / expected)).sum())
    assert test.statistic == pytest.approx(total)
    assert test.df == 2.0
    collider = sf.BayesianNetwork([("a", "b"), ("c", "b")]).fit(rows)
    with pytest.raises(sf.OptionError, match="independent of"):
        sf.likelihood_ratio_test(chain, collider)
    mirrored = sf.BayesianNetwork([("c", "b"), ("b", "a")]).fit(rows)
    with pytest.raises(sf.OptionError, match="nothing to test"):
        sf.likelihood_ratio_test(chain, mirrored)


def states_unseen(n: int = 99) -> tuple[pd.DataFrame, dict[str, list[Any]]]:
    rng = np.random.default_rng(1)
    a, b, c = np.array(["n", "y"])[rng.integers(0, 2, n)], rng.integers(0, 3, n), rng.integers(0, 2, n)
    return pd.DataFrame({"a": a, "b": b, "c": c}), {"a": ["n", "y", "never"], "b": [0, 1, 2], "c": [0, 1]}


def conditional_ratio(rows: pd.DataFrame, one: str, other: str, given: list[str]) -> tuple[float, int]:
    """G^2 of independence of two columns given others, and its degrees of freedom over the tables that have rows."""
    total, df = 0.0, 0
    for _, part in rows.groupby(given) if given else [(None, rows)]:
        table = pd.crosstab(part[one], part[other]).to_numpy()
        expected = table.sum(1, keepdims=True) * table.sum(0) / table.sum()
        seen = table > 0
        total += 2 * float((table[seen] * np.log(table[seen] / expected[seen])).sum())
        df += (table.shape[0] - 1) * (table.shape[1] - 1)
    return total, df


def test_a_state_that_never_occurs_changes_no_nesting_and_no_df(
    capfd: pytest.CaptureFixture[str],
) -> None:
    """A declared state without rows: which network lies in which is told by the features, not by what was seen."""
    rows, states = states_unseen()
    apart = sf.MarkovNetwork([("a", "c"), ("b",)], states=states).fit(rows)
    other = sf.MarkovNetwork([("a", "b"), ("b", "c")], states=states).fit(rows)
    with pytest.raises(sf.OptionError, match="cannot take all"):
        sf.likelihood_ratio_test(apart, other)
    assert not capfd.readouterr().err
    smaller = sf.MarkovNetwork([("a",), ("b", "c")], states=states).fit(rows)
    statistic, df = conditional_ratio(rows, "a", "b", [])
    collapsed = sf.likelihood_ratio_test(smaller, other)
    assert (collapsed.statistic, collapsed.df) == pytest.approx((statistic, df), abs=1e-7)


def test_a_table_that_happens_to_be_empty_somewhere_keeps_its_degrees_of_freedom() -> None:
    """A zero that the smaller fit expects to be positive is chance: both rows of a 2x3 table count (Geyer 2009)."""
    rows = pd.DataFrame({"a": [0] * 5 + [1] * 5, "b": [0, 0, 1, 1, 2, 0, 1, 1, 0, 1]})
    apart, joined = sf.MarkovNetwork([("a",), ("b",)]).fit(rows), sf.MarkovNetwork([("a", "b")]).fit(rows)
    statistic, _ = conditional_ratio(rows, "a", "b", [])
    test = sf.likelihood_ratio_test(apart, joined)
    assert (test.statistic, test.df) == pytest.approx((statistic, 2.0), abs=1e-7)
    arcs = [sf.BayesianNetwork({"a": [], "b": parents}).fit(rows) for parents in ([], ["a"])]
    assert sf.likelihood_ratio_test(*arcs).df == 2.0


def test_rows_of_tables_without_data_are_no_degrees_of_freedom() -> None:
    rows, states = states_unseen()
    smaller = sf.BayesianNetwork({"a": [], "b": ["a"], "c": []}, states=states).fit(rows)
    larger = sf.BayesianNetwork([("a", "b"), ("c", "b")], states=states).fit(rows)
    statistic, df = conditional_ratio(rows, "b", "c", ["a"])
    test = sf.likelihood_ratio_test(smaller, larger)
    assert (test.statistic, test.df) == pytest.approx((statistic, df), abs=1e-7)
    # Turned: what never occurs as a child is no state of the larger network's tables either.
    turned = sf.BayesianNetwork({"b": [], "c": ["b"], "a": ["b", "c"]}, states=states).fit(rows)
    again = sf.likelihood_ratio_test(smaller, turned)
    rest = conditional_ratio(rows, "b", "c", ["a"])[0] + conditional_ratio(rows, "a", "c", [])[0]
    assert (again.statistic, again.df) == pytest.approx((rest, 5.0), abs=1e-7)
    # Regressions at states of a discrete parent that no row has.
    numbers = rows.assign(x=np.random.default_rng(2).normal(size=len(rows)))[["a", "x"]]
    nets = [sf.BayesianNetwork({"a": [], "x": parents}, states={"a": states["a"]}) for parents in ([], ["a"])]
    assert sf.likelihood_ratio_test(*(net.fit(numbers) for net in nets)).df == 2.0


def test_histories_of_a_chain_that_never_occur_are_no_degrees_of_freedom() -> None:
    sequences = [list("abcabcabca"), list("abcabcab")]
    first, second = (sf.MarkovChain(order).fit(sequences) for order in (1, 2))
    with pytest.raises(sf.OptionError, match="nothing to test"):
        sf.likelihood_ratio_test(first, second)
    freely = [list("aabbaabab"), list("abbbaabba")]
    nested = [sf.MarkovChain(order, states=["a", "b", "never"]).fit(freely) for order in (0, 1)]
    assert sf.likelihood_ratio_test(*nested).df == 2.0


def test_networks_through_time_are_nested_slice_by_slice() -> None:
    """Against no arc from the slice before, the arc of a chain gains G^2 of a state and the one before it."""
    rng = np.random.default_rng(3)
    u = rng.integers(0, 2, 60)
    series = pd.DataFrame({"u": u, "v": (u + (rng.random(60) < 0.3)) % 2, "s": np.repeat(range(6), 10)})
    apart = sf.DynamicBayesianNetwork({"u": [], "v": ["u"]}, first={"u": [], "v": ["u"]}).fit(series, group="s")
    linked = sf.DynamicBayesianNetwork([("u", "v"), (("u", -1), "u")]).fit(series, group="s")
    moves = series.assign(before=series.groupby("s")["u"].shift()).dropna()
    # The linked network has one table of v for all slices; so has the one without the arc.
    plain = sf.DynamicBayesianNetwork([("u", "v")]).fit(series, group="s")
    own = sf.DynamicBayesianNetwork({"u": [], "v": ["u"]}, first={"u": [], "v": ["u"]})
    with pytest.raises(sf.OptionError, match="one table of 'v'"):
        sf.likelihood_ratio_test(own.fit(series, group="s"), linked)
    whole = sf.likelihood_ratio_test(plain, linked)
    first = series.groupby("s").first().reset_index()
    statistic, _ = conditional_ratio(moves.assign(before=moves["before"].astype(int)), "before", "u", [])
    labelled = pd.concat([first.assign(early=1), moves.assign(early=0)])
    early, _ = conditional_ratio(labelled, "early", "u", [])
    assert (whole.statistic, whole.df) == pytest.approx((statistic + early, 2.0), abs=1e-7)
    assert sf.likelihood_ratio_test(plain, apart).df == 3.0
    with pytest.raises(sf.OptionError, match="lacks parents"):
        sf.likelihood_ratio_test(linked, apart)


def test_nested_regressions_and_columns_that_are_not_there() -> None:
    X, y = ROWS[["a", "b"]], RNG.poisson(np.exp(0.3 * ROWS["a"]))
    small, large = sf.GLM("poisson").fit(X[["a"]], y), sf.GLM("poisson").fit(X, y)
    test = sf.likelihood_ratio_test(small, large)
    assert test.statistic == pytest.approx(2 * (large.log_likelihood_ - small.log_likelihood_))
    assert str(test) == str(small.likelihood_ratio_test(large))
    other = sf.GLM("poisson").fit(ROWS[["c", "d"]], y)
    with pytest.raises(sf.OptionError, match="no coefficient 'a'"):
        sf.likelihood_ratio_test(small, other)


def test_overdispersion_lies_on_the_edge() -> None:
    """Poisson against negative binomial: the p value is half that of chi-squared with one degree of freedom."""
    X = ROWS[["a"]]
    y = RNG.negative_binomial(4, 4 / (4 + np.exp(0.5 + 0.3 * ROWS["a"])))
    small, large = sf.GLM("poisson").fit(X, y), sf.GLM("negative_binomial", link="log").fit(X, y)
    test = sf.likelihood_ratio_test(small, large)
    assert test.name == "chi-bar2"
    assert test.df == 1.0
    assert test.p_value == pytest.approx(0.5 * float(chi2.sf(test.statistic, 1)))


def test_orders_of_a_chain_and_distributions() -> None:
    sequences = [RNG.integers(0, 2, 60).tolist() for _ in range(4)]
    first, second = (sf.MarkovChain(order, bounds=False).fit(sequences) for order in (1, 2))
    test = sf.likelihood_ratio_test(first, second)
    assert test.df == second.n_params_ - first.n_params_
    times = RNG.gamma(1.3, 2.0, 200)
    gamma, exponential = sf.Gamma().fit(times), sf.Exponential().fit(times)
    assert sf.likelihood_ratio_test(exponential, gamma).df == 1.0
    known = sf.Normal(variance=2.0).fit(times)
    assert sf.likelihood_ratio_test(known, sf.Normal().fit(times)).statistic >= 0.0
    with pytest.raises(sf.OptionError, match="no special case"):
        sf.likelihood_ratio_test(sf.Poisson().fit([1, 2, 3]), sf.Normal().fit([1.0, 2.0, 3.0]))


def test_fits_that_have_no_such_test_are_refused() -> None:
    rows = ROWS["a"].to_numpy()
    with pytest.raises(sf.DataError, match="same rows"):
        sf.likelihood_ratio_test(sf.Normal(variance=1.0).fit(rows), sf.Normal().fit(rows[:9]))
    prior = sf.BayesianNetwork([("a", "b")], prior=1.0).fit(STATES[["a", "b"]])
    with pytest.raises(sf.EstimateError, match="without a prior"):
        sf.likelihood_ratio_test(prior, prior)
    hidden = [sf.HiddenMarkovModel(k, sf.Normal()).fit([rows]) for k in (1, 2)]
    with pytest.raises(sf.OptionError, match="parametric bootstrap"):
        sf.likelihood_ratio_test(hidden[0], hidden[1])
    net, markov = (kind([("a", "b")]).fit(STATES[["a", "b"]]) for kind in (sf.BayesianNetwork, sf.MarkovNetwork))
    with pytest.raises(sf.OptionError, match="two fits of one class"):
        sf.likelihood_ratio_test(net, markov)
    kind = sf.BayesianNetwork({"a": [], "b": []}, fixed={"a": np.array([0.5, 0.5])})
    with pytest.raises(sf.OptionError, match="fixed= of its own"):
        sf.likelihood_ratio_test(sf.BayesianNetwork({"a": [], "b": []}).fit(STATES[["a", "b"]]), kind.fit(STATES))


def test_wald_tests_of_one_and_of_several() -> None:
    y = RNG.poisson(np.exp(0.3 * ROWS["a"]))
    model = sf.GLM("poisson").fit(ROWS[["a", "b", "c"]], y)
    one = sf.wald_test(model, "a")
    assert one.p_value == pytest.approx(model.summary().pvalues["a"])
    several: Any = sf.wald_test(model, {"b": 0.1, "c": 0.0})
    away = np.array([model.parameters_["b"] - 0.1, model.parameters_["c"]])
    expected = away @ np.linalg.inv(model.covariance_[2:, 2:]) @ away
    assert (several.statistic, several.df) == pytest.approx((expected, 2.0), abs=1e-7)
    least = sf.GLM().fit(ROWS[["a", "b"]], ROWS["d"])
    ratio = sf.wald_test(least, ["a", "b"])
    assert (ratio.name, ratio.df_rest) == ("F", len(ROWS) - 3.0)
    assert ratio.p_value == pytest.approx(float(fisher.sf(ratio.statistic, 2, len(ROWS) - 3)))
    with pytest.raises(sf.OptionError, match="Did you mean 'a'"):
        sf.wald_test(least, "A")
    table = sf.Categorical().fit(list("aabbbc"))
    with pytest.raises(sf.EstimateError, match="tied to one another"):
        sf.wald_test(table, {f"probabilities[{state}]": 1 / 3 for state in "abc"})
