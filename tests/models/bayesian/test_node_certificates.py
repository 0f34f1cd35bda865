"""What certifies the estimates of nodes: slopes and bounds by hand at the maximum and away from it, and no numbers."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

import suffice as sf
from random_networks import certificate_at

Floats = NDArray[np.float64]
STATES = {name: [0, 1] for name in ("x0", "x1", "x2", "y")}


def caused_rows(n: int = 300) -> dict[str, NDArray[Any]]:
    """The last parent makes y less likely, so that its weight is 0 at the maximum."""
    rng = np.random.default_rng(7)
    x = (rng.random((n, 3)) < 0.4).astype(int)
    p = -np.expm1(-(0.2 + x @ np.array([1.0, 0.5, 0.0]))) * np.where(x[:, 2], 0.4, 1.0)
    return {"x0": x[:, 0], "x1": x[:, 1], "x2": x[:, 2], "y": (rng.random(n) < p).astype(int)}


def noisy_or(**options: Any) -> sf.BayesianNetwork:
    return sf.BayesianNetwork({"y": ["x0", "x1", "x2"]}, states=STATES, nodes={"y": "noisy-or"}, **options)


def slopes_by_hand(rows: dict[str, NDArray[Any]], weights: Floats, pseudo: float = 0.0) -> Floats:
    """Of the log-likelihood, with `pseudo` rows for and against each cause alone."""
    design = np.column_stack([np.ones(len(rows["y"])), rows["x0"], rows["x1"], rows["x2"]])
    slopes = design.T @ np.where(rows["y"] == 1, 1 / np.expm1(design @ weights), -1.0)
    return np.asarray(slopes + (pseudo / np.expm1(weights) - pseudo if pseudo else 0.0))


# -- noisy-OR --------------------------------------------------------------------------------------------------------


def test_the_slope_of_a_weight_of_zero_counts_only_upwards() -> None:
    rows = caused_rows()
    net = noisy_or().fit(rows)
    node, summary = net.node("y"), net.statistics_
    assert node.weights[3] == 0.0
    assert slopes_by_hand(rows, node.weights)[3] / 300 < -1e-2
    assert node.gap(summary) < 1e-12
    # The weight of a true cause at 0 wants to rise; that of the last parent above 0 wants to fall.
    for weights in (np.array([0.3, 0.0, 0.5, 0.0]), np.array([0.2, 1.0, 0.5, 1.0]), np.array([0.1, 0.0, 2.0, 0.0])):
        slopes = slopes_by_hand(rows, weights)
        expected = np.where(weights > 0, np.abs(slopes), np.maximum(slopes, 0.0)).max() / 300
        assert expected > 1e-2
        assert replace(node, weights=weights).gap(summary) == pytest.approx(expected, rel=1e-11)


def test_pseudo_rows_are_part_of_the_slope() -> None:
    rows = caused_rows()
    net = noisy_or(prior={"y": 4.0}).fit(rows)
    node, summary = net.node("y"), net.statistics_
    assert node.gap(summary) < 1e-12
    assert np.abs(slopes_by_hand(rows, node.weights)).max() > 1.0
    moved = node.weights + 0.3
    expected = np.abs(slopes_by_hand(rows, moved, 4.0)).max() / 300
    assert replace(node, weights=moved).gap(summary) == pytest.approx(expected, rel=1e-11)


@pytest.mark.parametrize("factor", [0.25, 0.5, 0.9, 1.5])
def test_the_bound_is_a_dual_value_at_feasible_multipliers(factor: float) -> None:
    """Multipliers s of the present rows with A' s <= (absent rows of each cause) bound every log-likelihood.

    The bound is the sum over distinct present rows of the largest n log(1 - e^-t) - s t; slopes n / (e^t - 1) at small
    weights are too large and must be scaled down.
    """
    rows = caused_rows()
    net = noisy_or().fit(rows)
    node, summary = net.node("y"), net.statistics_
    best, weights = node.log_likelihood(summary), node.weights * factor
    moved = replace(node, weights=weights)
    loss = moved.loss_bound(summary)
    assert loss is not None
    found = moved.log_likelihood(summary) + loss
    assert found >= best
    design = np.column_stack([np.ones(300), rows["x0"], rows["x1"], rows["x2"]])
    here = rows["y"] == 1
    causes, counts = np.unique(design[here], axis=0, return_counts=True)
    s = counts / np.expm1(causes @ weights)
    s *= min(1.0, float((design[~here].sum(axis=0) / (causes.T @ s)).min()))
    peaks = [
        -minimize_scalar(
            lambda t, n=n, m=m: m * t - n * math.log(-math.expm1(-t)), bounds=(1e-9, 60), options={"xatol": 1e-10}
        ).fun
        for n, m in zip(counts, s, strict=True)
    ]  # fmt: skip
    assert found == pytest.approx(sum(peaks), rel=1e-9)


def test_causes_that_are_never_apart_have_no_error() -> None:
    rows = caused_rows() | {"x1": caused_rows()["x0"]}
    node = noisy_or().fit(rows).node("y")
    assert (node.weights[1:3] > 0).all()
    assert np.isinf(node.standard_errors_.values[1:3]).all()
    assert 0 < node.standard_errors_.values[0] < 1
    alone = sf.BayesianNetwork({"y": ["x0", "x2"]}, nodes={"y": "noisy-or"}).fit(rows).node("y")
    assert node.standard_errors_.values[0] == pytest.approx(alone.standard_errors_.values[0], rel=1e-6)
    assert node.weights[1] + node.weights[2] == pytest.approx(alone.weights[1], rel=1e-9)


# -- what is no number -----------------------------------------------------------------------------------------------


def test_a_weight_that_is_no_number_touches_only_the_rows_it_is_active_in() -> None:
    rows = {"x": [0, 0, 1, 1, 0, 1], "u": [0] * 6, "z": [0, 0, 0, 1, 1, 1]}
    options: dict[str, Any] = {"states": {name: [0, 1] for name in "xuz"}, "nodes": {"z": "noisy-or"}}
    structure = {"x": [], "u": [], "z": ["x", "u"]}
    plain = sf.BayesianNetwork(structure, **options).fit(rows)
    net = sf.BayesianNetwork(structure, unseen="nan", **options).fit(rows)
    assert np.isnan(net.node("z").weights).tolist() == [False, False, True]
    # One of three rows without x, and two of three with it: the saturated table.
    expected = 2 * math.log(2 / 3) + math.log(1 / 3) + 2 * math.log(2 / 3) + math.log(1 / 3) + 6 * math.log(1 / 2)
    assert net.report_.log_likelihood == pytest.approx(expected, rel=1e-12)
    assert net.report_.certificate == plain.report_.certificate
    more = plain.fit({"x": [0, 1], "u": [1, 0], "z": [1, 1]}).statistics_
    (trials,) = net.node("z").trials(more)
    np.testing.assert_array_equal(np.isnan(trials.strengths(net.node("z").weights)), trials.active[:, 2] == 2)
    assert trials.strengths(np.array([math.inf, 0.5, math.nan])).tolist() == [math.inf, math.inf]
    assert math.isnan(net.node("z").log_likelihood(more))


@pytest.mark.parametrize("prior", [None, 1.0])
def test_what_is_no_number_is_never_certified(prior: Any) -> None:
    """In the weights or in the variance of a node that is not the first, and in the table of another."""
    rng = np.random.default_rng(0)
    rows = {"a": rng.integers(2, size=40), "x": rng.normal(size=40), "y": rng.normal(size=40)}
    linear = None if prior is None else sf.LinearGaussianPrior(2.0, 1.0)
    priors: Any = None if prior is None else {"a": prior, "x": linear, "y": linear}
    net = sf.BayesianNetwork({"a": [], "x": ["a"], "y": ["x"]}, prior=priors).fit(rows)
    assert net.report_.certificate.exists is True
    for name, changed in (("x", "weights"), ("x", "variance"), ("y", "weights"), ("y", "variance"), ("a", "rows")):
        node = net.fitted_.nodes[name]
        found = certificate_at(net, **{name: replace(node, **{changed: getattr(node, changed) * np.nan})})
        assert not found.moment_gap < math.inf
        assert found.value_gap is None
        assert found.exists is None
    assert certificate_at(net).exists is True


# -- linear-Gaussian nodes -------------------------------------------------------------------------------------------


def test_one_of_several_regressions_off_counts_by_its_share_of_rows() -> None:
    rng = np.random.default_rng(2)
    g = np.repeat([0, 1, 2], [50, 30, 20])
    rows = {"g": g, "y": rng.normal(size=100) + g}
    net = sf.BayesianNetwork([("g", "y")]).fit(rows)
    node, summary = net.node("y"), net.statistics_
    for k, share in enumerate((0.5, 0.3, 0.2)):
        one = np.arange(3) == k
        wide = replace(node, variance=np.where(one, 1.5, 1.0) * node.variance)
        assert wide.gap(summary) == pytest.approx(share / 3, rel=1e-9)
        # Off by d: the correlation of the residuals with 1 is d / sd, and the mean square is off by d^2 / v.
        moved = replace(node, weights=node.weights + 0.1 * one[:, None])
        correlation = 0.1 / math.sqrt(node.variance[k])
        assert moved.gap(summary) == pytest.approx(share * max(correlation, correlation**2), rel=1e-9)


# -- pseudo-counts of a prior network --------------------------------------------------------------------------------


def test_pseudo_counts_of_a_prior_network_are_its_joint_probabilities() -> None:
    """BDe: alpha(b, a) = 3.3 P(a) P(b | a), also where the learned network has the edge the other way."""
    domain = {"a": [0, 1], "b": ["u", "v", "w"]}
    share, link = np.array([0.3, 0.7]), np.array([[0.5, 0.3, 0.2], [0.1, 0.2, 0.7]])
    before = sf.BayesianNetwork([("a", "b")], states=domain, fixed={"a": share, "b": link})
    rows = {"a": [0, 1, 1, 1, 0], "b": ["u", "w", "w", "v", "v"]}
    before.fit(rows)
    net = sf.BayesianNetwork([("b", "a")], states=domain, prior=before, equivalent_sample_size=3.3).fit(rows)
    alpha = 3.3 * (share[:, None] * link).T
    counts = np.array([[1, 0], [1, 1], [0, 2]])
    np.testing.assert_allclose(net.table("b").values, (alpha + counts).sum(axis=1) / (3.3 + 5), rtol=1e-13)
    expected = (alpha + counts) / (alpha + counts).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(net.table("a").values, expected, rtol=1e-13)


def test_what_least_squares_leaves_is_certified() -> None:
    """Beside tables, regressions have their optimum in closed form: any other weights are that far from it."""
    rng = np.random.default_rng(3)
    a = rng.integers(2, size=200)
    x = rng.normal(1e6, 1.0, size=200)
    rows = {"a": a, "x": x, "y": 2 * x + a + rng.normal(0, 0.3, size=200), "z": rng.normal(size=200) - x}
    net = sf.BayesianNetwork({"a": [], "x": ["a"], "y": ["x", "a"], "z": ["x", "y"]}).fit(rows)
    found = net.report_.certificate
    assert found.value_gap is not None
    assert found.bound
    assert found.value_gap < 1e-12
    for name in ("x", "y", "z"):
        node = net.fitted_.nodes[name]
        moved = replace(node, weights=node.weights * (1 + 1e-7))
        loss = node.log_likelihood(net.statistics_) - moved.log_likelihood(net.statistics_)
        assert certificate_at(net, **{name: moved}).value_gap == pytest.approx(loss / 200, rel=1e-6)


# -- one unit of gaps --------------------------------------------------------------------------------------------------


def test_gaps_of_tables_are_binomial_standard_errors() -> None:
    """n of N rows have a state: |n - N p| / sqrt(N p (1 - p)), the prior's pseudo-counts among both."""
    rows = {"a": [0] * 40 + [1] * 60, "b": [0] * 10 + [1] * 30 + [0] * 45 + [1] * 15}
    for prior in (None, 2.0):
        net = sf.BayesianNetwork([("a", "b")], prior=prior).fit(rows)
        assert net.report_.certificate.moment_gap == 0.0 == net.report_.certificate.slope
        moved = np.array([[0.3, 0.7], net.node("b").rows[1]])
        certificate = certificate_at(net, b=replace(net.node("b"), rows=moved))
        n, total = 10 + (prior or 0.0), 40 + 2 * (prior or 0.0)
        assert certificate.slope == pytest.approx(total * 0.3 - n, rel=1e-12)
        assert certificate.moment_gap == pytest.approx((total * 0.3 - n) / math.sqrt(total * 0.3 * 0.7), rel=1e-12)


def test_gaps_of_regressions_are_scores_over_their_information() -> None:
    """By hand: the score of each coefficient of (1, x - mean) and of log v, over the root of its information."""
    rng = np.random.default_rng(3)
    x = rng.normal(2.0, 3.0, 200)
    y = 1.0 + 0.5 * x + rng.normal(0.0, 0.7, 200)
    net = sf.BayesianNetwork([("x", "y")]).fit({"x": x, "y": y})
    assert net.report_.certificate.moment_gap < 1e-12
    node = net.node("y")
    for weights, variance in (([1.1, 0.5], 0.5), ([1.0, 0.45], 0.5), (node.weights[0], 0.6)):
        moved = replace(node, weights=np.array([weights]), variance=np.array([variance]))
        certificate = certificate_at(net, y=moved)
        away = y - weights[0] - weights[1] * x
        design = np.stack([np.ones(200), x - x.mean()])
        scores = np.array([*(design @ away / variance), 0.5 * (away @ away / variance - 200)])
        information = np.array([*((design**2).sum(axis=1) / variance), 100.0])
        assert certificate.slope == pytest.approx(np.abs(scores).max(), rel=1e-9)
        assert certificate.moment_gap == pytest.approx((np.abs(scores) / np.sqrt(information)).max(), rel=1e-9)


def test_gaps_of_noisy_or_are_those_of_the_trials_of_each_cause() -> None:
    """By the logit of the probability q that a cause fails, its n trials have the variance n q (1 - q)."""
    rows = caused_rows()
    net = noisy_or().fit(rows)
    assert net.report_.certificate.moment_gap < 1e-9
    weights = np.array([0.3, 0.9, 0.6, 0.2])
    certificate = certificate_at(net, y=replace(net.node("y"), weights=weights))
    tried = np.array([300.0, *(np.sum(rows[name]) for name in ("x0", "x1", "x2"))])
    q = np.exp(-weights)
    scores = np.abs(slopes_by_hand(rows, weights)) * (1 - q)
    assert certificate.slope == pytest.approx(scores.max(), rel=1e-9)
    assert certificate.moment_gap == pytest.approx((scores / np.sqrt(tried * q * (1 - q))).max(), rel=1e-9)
