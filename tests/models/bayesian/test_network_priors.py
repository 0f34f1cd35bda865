"""Priors of networks: every prior given is used or refused, joint priors have names, and what is left without rows."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest
from scipy import special

import suffice as sf
from suffice.models.bayesian.nodes import table_layout

ROWS = {"a": [0, 0, 1, 1, 2], "b": ["x", "y", "x", "x", "y"]}
REALS = {"x": [1.0, 2.0, 3.0, 5.0], "y": [2.0, 3.0, 5.0, 9.0]}
LINEAR = sf.LinearGaussianPrior(2, 1)
INVERSE_GAMMA = sf.NormalInverseGamma(alpha=2, beta=1, gamma=3, delta=0.5)


# --------------------------------------------------------------------------------------------------------------------
# Used or refused
# --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prior", "message"),
    [
        ("bdeu", "'bdeu' has no effect: it is for tables, and there is no table node"),
        (1.0, "has no effect"),
        ("foo", "the priors with a name are"),
        (object(), "expected a number"),
        (sf.Beta(1, 1), "expected a number"),
        ({"x": "bdeu"}, "The prior of 'x', a linear-Gaussian node, is 'bdeu'"),
        ({"x": 1.0}, "expected a LinearGaussianPrior"),
        ({"y": INVERSE_GAMMA}, "without real parents; these are 'x'"),
        (INVERSE_GAMMA, "without real parents"),
    ],
)
def test_a_prior_that_says_nothing_about_real_nodes(prior: Any, message: str) -> None:
    with pytest.raises(sf.OptionError, match=message):
        sf.BayesianNetwork([("x", "y")], states={"x": "real", "y": "real"}, prior=prior).fit(REALS)


@pytest.mark.parametrize(
    ("prior", "message"),
    [
        (LINEAR, "has no effect: it is for nodes of real numbers"),
        ({"a": LINEAR}, "The prior of 'a', a table, is LinearGaussianPrior"),
        ({"a": sf.Beta(1, 1)}, "a table, is Beta"),
        (True, "expected a number"),
    ],
)
def test_a_prior_that_says_nothing_about_tables(prior: Any, message: str) -> None:
    with pytest.raises(sf.OptionError, match=message):
        sf.BayesianNetwork([("a", "b")], prior=prior).fit(ROWS)


def test_a_number_for_tables_leaves_the_real_nodes_of_a_mixed_network() -> None:
    rows = {"k": [0, 1, 0, 1], "y": [1.0, 2.0, 3.0, 5.0]}
    net = sf.BayesianNetwork([("k", "y")], states={"y": "real"}, prior=1.0).fit(rows)
    assert net.table("y").at(k=0).values.tolist() == [2.0, 1.0]
    assert net.report_.estimate == "posterior mean and maximum likelihood"


def test_a_normal_inverse_gamma_prior_of_a_root() -> None:
    net = sf.BayesianNetwork([("x", "y")], states={"x": "real", "y": "real"}, prior={"x": INVERSE_GAMMA}).fit(REALS)
    x = np.array(REALS["x"])
    gamma, alpha = 3 + 4, 2 + 2
    beta = 1 + 0.5 * ((x - x.mean()) ** 2).sum() + 0.5 * 3 * 4 / 7 * (x.mean() - 0.5) ** 2
    found = net.node("x")
    assert found.weights_[0] == pytest.approx((3 * 0.5 + x.sum()) / 7, rel=1e-14)
    assert found.variance_ == pytest.approx(beta / (alpha - 1), rel=1e-13)
    evidence = special.gammaln(alpha) - special.gammaln(2) - alpha * math.log(beta) + 0.5 * math.log(3 / gamma)
    assert found.log_evidence() == pytest.approx(evidence - 2 * math.log(2 * math.pi), rel=1e-13)


def test_a_prior_network_with_an_impossible_state() -> None:
    domain = sf.BayesianNetwork([("a", "b")]).fit(ROWS).node("b").domain
    certain = {"a": [0.5, 0.5, 0.0], "b": [[0.5, 0.5]] * 3}
    prior = sf.BayesianNetwork.from_tables(domain, {"a": [], "b": ["a"]}, certain)
    with pytest.raises(sf.OptionError, match=r"gives 'a' no pseudo-counts at \{'a': 2\}"):
        sf.BayesianNetwork([("a", "b")], prior=prior).fit(ROWS)
    with pytest.raises(sf.OptionError, match=r"gives 'b' no pseudo-counts at \{'a': 2, 'b': 'x'\}"):
        sf.BayesianNetwork([("a", "b")], prior={"b": prior}).fit(ROWS)


# --------------------------------------------------------------------------------------------------------------------
# One joint prior of all real columns
# --------------------------------------------------------------------------------------------------------------------

RNG = np.random.default_rng(5)
PAIR = {"u": RNG.normal(size=20), "v": RNG.normal(5, 3, size=20)}


def uneven(names: list[str] | None = None) -> sf.NormalWishart:
    return sf.NormalWishart(mean=[0, 5], strength=3, dof=4, inverse_scale=[[1, 0.5], [0.5, 10]], names=names)


def joint_evidence(law: sf.NormalWishart, rows: Any) -> float:
    """Log marginal likelihood of rows under a normal-Wishart law, from the normalising constants before and after."""
    n, d = rows.shape
    away = rows.mean(axis=0) - law.mean_
    scatter = (rows - rows.mean(axis=0)).T @ (rows - rows.mean(axis=0))
    after = law.inverse_scale_ + scatter + law.strength_ * n / (law.strength_ + n) * np.outer(away, away)
    dof = law.dof_ + n
    found = special.multigammaln(dof / 2, d) - special.multigammaln(law.dof_ / 2, d)
    found += 0.5 * law.dof_ * np.linalg.slogdet(law.inverse_scale_)[1] - 0.5 * dof * np.linalg.slogdet(after)[1]
    found += 0.5 * d * math.log(law.strength_ / (law.strength_ + n)) - 0.5 * n * d * math.log(math.pi)
    return float(found)


def test_equivalent_networks_have_the_same_evidence_under_a_joint_prior() -> None:
    expected = joint_evidence(uneven(), np.stack([PAIR["u"], PAIR["v"]], axis=1))
    turned = sf.NormalWishart([5, 0], 3, 4, [[10, 0.5], [0.5, 1]], names=["v", "u"])
    for law in (uneven(["u", "v"]), turned):
        for edges in ([("u", "v")], [("v", "u")]):
            net = sf.BayesianNetwork(edges, prior=law).fit(PAIR)
            assert net.report_.log_evidence == pytest.approx(expected, rel=1e-12)


def test_a_joint_prior_without_names_must_not_depend_on_the_order() -> None:
    with pytest.raises(sf.OptionError, match=r"does not say which column each dimension is.*'u', 'v'"):
        sf.BayesianNetwork([("u", "v")], prior=uneven()).fit(PAIR)
    even = sf.NormalWishart(mean=[1, 1], strength=3, dof=4, inverse_scale=[[2, 0.5], [0.5, 2]])
    assert even.exchangeable
    assert not uneven().exchangeable
    found = [sf.BayesianNetwork([e], prior=even).fit(PAIR).report_.log_evidence for e in (("u", "v"), ("v", "u"))]
    assert found[0] == pytest.approx(joint_evidence(even, np.stack([PAIR["u"], PAIR["v"]], axis=1)), rel=1e-12)
    assert found[1] == pytest.approx(found[0], rel=1e-13)


def test_names_of_a_joint_prior() -> None:
    with pytest.raises(sf.OptionError, match="expected 2 different names"):
        uneven(["u"])
    with pytest.raises(sf.OptionError, match="expected 2 different names"):
        uneven(["u", "u"])
    with pytest.raises(sf.OptionError, match="has also the real columns 'v'"):
        sf.BayesianNetwork([("u", "v")], prior=uneven(["u", "w"])).fit(PAIR)
    assert uneven(["u", "v"]).marginal([1]).names == ["v"]  # type: ignore[attr-defined]
    scale = np.array([[1, 0, 0.5], [0, 2, 0], [0.5, 0, 10]])
    wider = sf.NormalWishart([0, 9, 5], 3, 5, scale, names=["u", "w", "v"])
    some = sf.BayesianNetwork([("u", "v")], prior=wider).fit(PAIR)
    same = sf.BayesianNetwork([("u", "v")], prior=uneven(["u", "v"])).fit(PAIR)
    assert some.report_.log_evidence == pytest.approx(same.report_.log_evidence, rel=1e-13)


# --------------------------------------------------------------------------------------------------------------------
# Nothing to learn from
# --------------------------------------------------------------------------------------------------------------------


def test_undefined_rows_are_not_drawn_from_and_do_not_spoil_others() -> None:
    rows = {"a": [0, 1, 0], "b": [0, 1, 0], "c": [0, 1, 1]}
    net = sf.BayesianNetwork({"c": ["a", "b"]}, unseen="nan").fit(rows)
    found = net.score_samples({"a": [0, 0], "b": [0, 1], "c": [1, 1]})
    assert found[0] == pytest.approx(math.log(2 / 3 * 2 / 3 * 1 / 2), rel=1e-14)
    assert math.isnan(found[1])
    with pytest.raises(sf.EstimateError, match=r"The row of 'c' at \{'a': \d, 'b': \d\} is undefined"):
        net.sample(50, random_state=0)
    kinds = {"k": [0, 1, 2], "y": "real"}
    mixed = sf.BayesianNetwork([("k", "y")], states=kinds, unseen="nan", fixed={"k": [0.1, 0.1, 0.8]})
    mixed.fit({"k": [0, 1, 0, 1], "y": [1.0, 2.0, 3.0, 5.0]})
    with pytest.raises(sf.EstimateError, match=r"The regression of 'y' at \{'k': 2\} is undefined"):
        mixed.sample(50, random_state=0)


def test_weights_of_nothing_but_zeros() -> None:
    for edges, rows, count in (([("a", "b")], ROWS, 5), ([("x", "y")], REALS, 4)):
        with pytest.raises(sf.EstimateError, match="no rows to learn"):
            sf.BayesianNetwork(edges).fit(rows, sample_weight=[0.0] * count)
    net = sf.BayesianNetwork([("a", "b")], prior=1.0).fit(ROWS, sample_weight=[0.0] * 5)
    np.testing.assert_allclose(net.table("b").values, 0.5, rtol=1e-15)


def test_a_column_without_a_single_value() -> None:
    with pytest.raises(sf.EstimateError, match=r"The columns 'y' hold no value at all.*hidden="):
        sf.BayesianNetwork([("x", "y")]).fit({"x": [1.0, 2.0, 3.0], "y": [math.nan] * 3})
    rows = {"a": ["u", "v", "u"], "b": [None] * 3}
    net = sf.BayesianNetwork([("a", "b")], states={"b": ["p", "q"]}).fit(rows)
    assert net.report_.warnings[0] == "The columns 'b' hold no value at all and are treated as hidden, see hidden=."


@pytest.mark.parametrize(
    ("options", "ending"),
    [
        ({}, "they use the regression of all rows together."),
        ({"unseen": "nan"}, "their regression is undefined (NaN)."),
        ({"prior": sf.LinearGaussianPrior(2, 1, on="all")}, "they have the estimate of the prior alone."),
    ],
)
def test_what_joint_states_without_rows_get_is_said_once(options: dict[str, Any], ending: str) -> None:
    rows = {"k": [0, 1, 0, 1], "y": [1.0, 2.0, 3.0, 5.0]}
    net = sf.BayesianNetwork([("k", "y")], states={"k": [0, 1, 2], "y": "real"}, **options).fit(rows)
    start = "Joint states of the discrete parents of 'y' without rows: k=2; "
    assert net.report_.warnings == (start + ending,)


def test_the_estimate_of_em_under_a_prior() -> None:
    """The M-step (n + alpha) / sum climbs sum of log-likelihood and alpha log p: the mode under alpha + 1."""
    gaps = {"a": [0, 1, None, 1, 0], "b": [0, 1, 1, None, 0]}
    mean = sf.BayesianNetwork([("a", "b")], prior=1.5, tolerance=1e-12).fit(gaps)
    mode = sf.BayesianNetwork([("a", "b")], prior=2.5, estimate="map", tolerance=1e-12).fit(gaps)
    np.testing.assert_allclose(mean.table("b").values, mode.table("b").values, rtol=1e-9)
    assert mean.report_.estimate == "MAP"
    assert "under Dirichlet priors of the pseudo-counts + 1" in str(mean.report_)
    assert mode.report_.estimate == "MAP"
    with pytest.raises(sf.EstimateError, match=r"pseudo-counts \+ 1 with estimate='mean'"):
        _ = mean.node("b").posterior_


# --------------------------------------------------------------------------------------------------------------------
# Size
# --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("card", [3, 40])
def test_parameters_do_not_depend_on_how_a_table_is_kept(card: int) -> None:
    rng = np.random.default_rng(1)
    parents = [f"p{k}" for k in range(4)]
    rows = {name: rng.integers(card, size=500) for name in parents} | {"c": rng.integers(3, size=500)}
    net = sf.BayesianNetwork({"c": parents}, states={name: list(range(card)) for name in parents}).fit(rows)
    assert net.node("c").n_params == 2 * card**4
    k = 2 * card**4 + 4 * (card - 1)
    assert net.report_.bic == pytest.approx(k * math.log(500) - 2 * net.report_.log_likelihood, rel=1e-14)
    occurring = len(np.unique(np.stack([rows[name] for name in parents]), axis=1).T)
    assert net.size_report()["c"].observed == occurring


def test_parameters_beyond_the_range_of_floats() -> None:
    parents = [f"p{k}" for k in range(1100)]
    rng = np.random.default_rng(2)
    rows = {name: rng.integers(2, size=20) for name in parents} | {"c": rng.integers(2, size=20)}
    net = sf.BayesianNetwork({"c": parents}, states={name: [0, 1] for name in rows}).fit(rows)
    assert net.n_params_ == 2**1100 + 1100
    assert net.report_.bic == math.inf


def test_columns_that_number_the_rows_are_refused_before_any_allocation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_layout, "default_limit", lambda: 10**8)
    rows = {"a": np.arange(3000), "b": np.arange(3000)}
    with pytest.raises(sf.SizeError, match=r"'b' given 'a' would keep 3,000 rows of 3,000 states.*the limit is 100"):
        sf.BayesianNetwork([("a", "b")], states={"a": "discrete", "b": "discrete"}).fit(rows)


# --------------------------------------------------------------------------------------------------------------------
# Rows that were never learned
# --------------------------------------------------------------------------------------------------------------------


def _samples() -> dict[str, Any]:
    rng = np.random.default_rng(3)
    x = rng.normal(size=100)
    return {"x": x, "y": 2 * x + rng.normal(size=100), "g": rng.integers(2, size=100)}


@pytest.mark.parametrize("parents", [["x"], ["x", "g"]])
def test_real_rows_that_were_never_learned_cannot_be_unlearned(parents: list[str]) -> None:
    rows = _samples()
    net = sf.BayesianNetwork({"y": parents}).fit(rows)
    before = net.node("y").weights_.copy()
    with pytest.raises(sf.MergeError, match="never in"):
        net.unlearn({"x": [50.0], "y": [-3.0], "g": [1]})
    with pytest.raises(sf.MergeError, match="never in"):
        net.unlearn({**rows, "x": rows["x"] + 1})
    np.testing.assert_array_equal(net.node("y").weights_, before)


@pytest.mark.parametrize("parents", [["x"], ["x", "g"]])
@pytest.mark.parametrize(("offset", "scale"), [(0.0, 1.0), (1e6, 1.0), (0.0, 1e-8)])
def test_rows_that_were_learned_can_be_unlearned(parents: list[str], offset: float, scale: float) -> None:
    rows = _samples()
    rows["x"] = offset + scale * rows["x"]
    first, rest = ({name: v[part] for name, v in rows.items()} for part in (slice(90), slice(90, None)))
    found = sf.BayesianNetwork({"y": parents}).fit(rows).unlearn(first).node("y")
    expected = sf.BayesianNetwork({"y": parents}).fit(rest).node("y")
    np.testing.assert_allclose(found.weights_, expected.weights_, rtol=1e-12)
    np.testing.assert_allclose(found.variance_, expected.variance_, rtol=1e-12)


# -- pseudo-counts at the ends of float64 -----------------------------------------------------------------------------


def test_pseudo_counts_that_no_sum_can_hold_are_named() -> None:
    rows = {"a": [0, 1, 1, 0], "b": [0, 1, 0, 0]}
    for prior, found in ((1e308, r"1e\+308"), (5e-324, "5e-324"), (10**400, "inf"), (math.inf, "inf")):
        with pytest.raises(sf.OptionError, match=found):
            sf.BayesianNetwork([("a", "b")], prior=prior).fit(rows)
        with pytest.raises(sf.OptionError, match="equivalent_sample_size"):
            sf.BayesianNetwork([("a", "b")], prior="bdeu", equivalent_sample_size=prior).fit(rows)
    for cell in (1e308, 5e-324):
        with pytest.raises(sf.OptionError, match=re.escape(repr(cell))):
            sf.BayesianNetwork([("a", "b")], prior={"b": np.full((2, 2), cell)}).fit(rows)
    heavy = sf.BayesianNetwork([("a", "b")], prior=1e300).fit(rows)
    assert heavy.table("b").values.tolist() == [[0.5, 0.5], [0.5, 0.5]]
    assert math.isfinite(heavy.report_.log_likelihood)
    light = sf.BayesianNetwork([("a", "b")], prior=1e-300).fit(rows)
    np.testing.assert_allclose(light.table("b").values, [[1.0, 0.0], [0.5, 0.5]], atol=1e-15)
