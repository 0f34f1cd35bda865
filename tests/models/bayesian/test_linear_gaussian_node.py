"""Linear-Gaussian nodes by maximum likelihood: against numpy, scipy and figures published for real data."""

import gzip
import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import suffice as sf
from network_files import shared
from regression_data import codes_of, domain_of, learn, least_squares, mixed, summarised
from suffice.domain import Domain, Variable
from suffice.families.regression import EXACT_COLUMNS
from suffice.kernels.moments import FEW
from suffice.models.bayesian.nodes.linear_gaussian import LinearGaussianNode
from suffice.models.bayesian.nodes.linear_gaussian_batch import RegressionFigures, learn_together
from suffice.models.bayesian.nodes.linear_gaussian_learner import LinearGaussianLearner
from suffice.sources import open_source, summarize_source
from suffice.statistics import Moments, MomentsBy
from suffice.storage import load, save

# -- one regression ----------------------------------------------------------------------------------------------------


@given(st.integers(0, 10_000), st.integers(0, 4), st.integers(1, 40))
def test_weights_and_variance_are_those_of_least_squares(seed: int, parents: int, rows: int) -> None:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        rng.normal(rng.normal(0, 9, parents + 1), 1.0, (rows, parents + 1)), columns=range(parents + 1)
    )
    node = learn(frame, range(parents + 1))
    weights, variance = least_squares(frame, range(parents), parents)
    np.testing.assert_allclose(node.weights_, weights, rtol=1e-7, atol=1e-7 * np.abs(weights).max())
    assert node.variance_ == pytest.approx(variance, rel=1e-7, abs=1e-18)
    assert node.variance_ >= 0
    assert (node.variance_ == 0) == (rows <= parents + 1)
    assert node.n_params == parents + 2


def test_log_likelihood_is_the_sum_over_rows() -> None:
    frame = mixed()
    node = learn(frame, ("a", "b", "y"))
    mean = node.weights_[0] + frame.a * node.weights_[1] + frame.b * node.weights_[2]
    rows = stats.norm(mean, math.sqrt(node.variance_)).logpdf(frame.y)
    columns = codes_of(frame, node.domain)
    np.testing.assert_allclose(node.log_prob(columns), rows, rtol=1e-12)
    summary = summarised(frame, LinearGaussianLearner(), node.domain)
    assert node.log_likelihood(summary) == pytest.approx(rows.sum(), rel=1e-13)
    other = mixed(50, seed=5)
    theirs = summarised(other, LinearGaussianLearner(), node.domain)
    expected = node.log_prob(codes_of(other, node.domain)).sum()
    assert node.log_likelihood(theirs) == pytest.approx(expected, rel=1e-13)


def test_the_slope_is_zero_at_the_fit_and_only_there() -> None:
    frame = mixed()
    node = learn(frame, ("a", "b", "y"))
    summary = summarised(frame, LinearGaussianLearner(), node.domain)
    assert node.gap(summary) < 1e-14
    moved = replace(node, weights=node.weights + np.array([[0.0, 0.01, 0.0]]))
    x = frame.a - frame.a.mean()
    residual = frame.y - moved.weights_[0] - frame.a * moved.weights_[1] - frame.b * moved.weights_[2]
    expected = abs((residual * x).sum()) / math.sqrt((x**2).sum() * ((frame.y - frame.y.mean()) ** 2).sum())
    assert moved.gap(summary) >= expected > 1e-4
    wide = replace(node, variance=1.5 * node.variance)
    assert wide.gap(summary) == pytest.approx(1 / 3, rel=1e-12)


def test_standard_errors_come_from_the_information() -> None:
    frame = mixed(60)
    node = learn(frame, ("a", "b", "y"))
    x = np.column_stack([np.ones(60), frame.a, frame.b])
    expected = np.sqrt(node.variance_ * np.diag(np.linalg.inv(x.T @ x)))
    np.testing.assert_allclose(node.standard_errors_, expected, rtol=1e-11)


def test_residual_spread_is_that_of_the_residuals() -> None:
    # b = 2 a + 1 + N(0, 1): the deviation is 1, not that of b, which is 2.24.
    rng = np.random.default_rng(0)
    a = rng.normal(size=100_000)
    frame = pd.DataFrame({"a": a, "b": 2 * a + 1 + rng.normal(size=100_000)})
    node = learn(frame, ("a", "b"))
    assert math.sqrt(node.variance_) == pytest.approx(1.0, abs=0.01)
    assert math.sqrt(learn(frame, ("b",)).variance_) == pytest.approx(2.236, abs=0.02)


def test_intercept_first_then_parents_in_declared_order() -> None:
    # y = -2 x1 + 3 x2 + 7 x3 + 0.2, exactly.
    domain = Domain([*(Variable(name, "real") for name in ("x1", "x2", "x3", "y"))])
    node = LinearGaussianNode.given(domain, [0.2, -2, 3, 7], 0.0)
    rows = {name: np.random.default_rng(k).normal(size=5) for k, name in enumerate(("x1", "x2", "x3"))}
    expected = -2 * rows["x1"] + 3 * rows["x2"] + 7 * rows["x3"] + 0.2
    np.testing.assert_allclose(node.sample(rows, np.random.default_rng(0), 5), expected, rtol=1e-13)
    frame = pd.DataFrame({**rows, "y": expected})
    np.testing.assert_allclose(learn(frame, ("x1", "x2", "x3", "y")).weights_, [0.2, -2, 3, 7], rtol=1e-12)


def test_variance_is_a_variance() -> None:
    domain = Domain([Variable("x", "real")])
    node = LinearGaussianNode.given(domain, [1.0], 16.0)
    draws = node.sample({}, np.random.default_rng(0), 100_000)
    assert draws.std() == pytest.approx(4.0, abs=0.03)
    assert node.log_prob({"x": np.array([3.0])})[0] == pytest.approx(stats.norm(1.0, 4.0).logpdf(3.0), rel=1e-14)


@pytest.mark.parametrize("order", [("a", "b", "c"), ("c", "a", "b"), ("b", "c", "a")])
def test_the_order_of_parents_and_columns_does_not_matter(order: tuple[str, ...]) -> None:
    frame = mixed().drop(columns=["g", "h"]).assign(c=lambda t: np.sin(t.a) + t.b)
    reference = learn(frame, ("a", "b", "c", "y"))
    node = learn(frame[[*reversed(order), "y"]], (*order, "y"))
    assert node.at() == pytest.approx(reference.at(), rel=1e-12)


def test_weights_count_rows_and_parts_add_up() -> None:
    frame = mixed(90)
    learner = LinearGaussianLearner()
    for names in (("a", "b", "y"), ("g", "a", "y")):
        domain = domain_of(frame, names)
        counts = np.arange(90) % 3
        once = learner.learn(domain, summarised(frame, learner, domain, weights=counts))
        twice = learner.learn(domain, summarised(frame.loc[frame.index.repeat(counts)], learner, domain))
        np.testing.assert_allclose(once.weights, twice.weights, rtol=1e-13)
        np.testing.assert_allclose(once.variance, twice.variance, rtol=1e-13)
        whole = summarised(frame, learner, domain)
        parts = summarised(frame[:37], learner, domain) + summarised(frame[37:], learner, domain)
        assert learner.learn(domain, parts).weights.tolist() == learner.learn(domain, whole).weights.tolist()
        fewer = learner.learn(domain, whole - summarised(frame[37:], learner, domain))
        np.testing.assert_allclose(fewer.weights, learn(frame[:37], names).weights, rtol=1e-11)


# -- numbers -----------------------------------------------------------------------------------------------------------


def test_a_mean_a_billion_times_the_spread() -> None:
    rng = np.random.default_rng(0)
    x, noise = rng.integers(-50, 50, 200) / 64, rng.integers(-50, 50, 200) / 64
    near = learn(pd.DataFrame({"x": x, "y": 2 * x + noise}), ("x", "y"))
    far = learn(pd.DataFrame({"x": x + 2.0**30, "y": 2 * x + noise + 2.0**31}), ("x", "y"))
    assert far.weights_[1] == pytest.approx(near.weights_[1], rel=1e-12)
    assert far.variance_ == pytest.approx(near.variance_, rel=1e-6)  # the weights themselves are rounded to 1e-16
    assert far.standard_errors_[1] == pytest.approx(near.standard_errors_[1], rel=1e-6)


def test_residuals_a_billion_times_smaller_than_the_node() -> None:
    rng = np.random.default_rng(1)
    x = rng.random(500)
    noise = rng.normal(size=500)
    y = 1e9 * x + noise
    node = learn(pd.DataFrame({"x": x, "y": y}), ("x", "y"))
    weights, *_ = np.linalg.lstsq(np.column_stack([np.ones(500), x]), noise, rcond=None)
    expected = np.mean((noise - weights[0] - weights[1] * x) ** 2)
    assert node.variance_ == pytest.approx(expected, rel=1e-6)
    assert node.weights_[1] - 1e9 == pytest.approx(weights[1], abs=1e-5)


def test_nearly_dependent_columns() -> None:
    rng = np.random.default_rng(2)
    a = rng.integers(0, 2**20, 100) / 2**20
    d = rng.integers(0, 2**20, 100) / 2**40
    noise = rng.normal(0, 1e-3, 100)
    frame = pd.DataFrame({"a": a, "b": a + d, "y": a + 3 * d + noise})
    node = learn(frame, ("a", "b", "y"))
    # The same regression in the columns a and d, which are far from dependent.
    weights, variance = least_squares(frame.assign(d=d * 2**20), ("a", "d"), "y")
    assert node.variance_ == pytest.approx(variance, rel=1e-9)
    assert node.weights_[2] == pytest.approx(weights[2] * 2**20, rel=1e-6)


def test_products_of_many_columns_are_known_to_be_rounded() -> None:
    assert EXACT_COLUMNS == FEW


def test_one_pass_for_all_nodes() -> None:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(rng.normal(size=(3000, 40)) @ rng.normal(size=(40, 40)), columns=[f"x{k}" for k in range(40)])
    learner = LinearGaussianLearner(pool=tuple(frame.columns))
    source = open_source(frame)
    families = [tuple(frame.columns[max(0, k - 3) : k + 1]) for k in range(40)]
    domains = [domain_of(frame, family) for family in families]
    asked = dict.fromkeys(key for domain in domains for key in learner.statistics(domain))
    assert list(asked) == [Moments(tuple(frame.columns))]
    summary = summarize_source(source, source.infer(), list(asked))
    for family, domain in zip(families, domains, strict=True):
        node = learner.learn(domain, summary)
        weights, variance = least_squares(frame, family[:-1], family[-1])
        np.testing.assert_allclose(node.weights_, weights, rtol=1e-8, atol=1e-9)
        assert node.variance_ == pytest.approx(variance, rel=1e-9)
        assert node.gap(summary) < 1e-11
    with pytest.raises(sf.OptionError, match="does not hold all of the columns"):
        LinearGaussianLearner(pool=("x0",)).statistics(domains[1])


@pytest.mark.parametrize("prior", [None, sf.LinearGaussianPrior(2.0, 1.0, 0.5)])
def test_nodes_learned_together_are_those_learned_alone(prior: Any) -> None:
    frame = mixed(80).assign(c=lambda t: np.sin(t.a), d=lambda t: t.a + t.b)
    families = [("a",), ("a", "b"), ("b", "y"), ("g", "a", "y"), ("a", "b", "d"), ("c",), ("a", "c", "y")]
    pool = ("a", "b", "c", "d", "y")
    learners = [LinearGaussianLearner(prior, pool=pool) for _ in families]
    learners[-1] = LinearGaussianLearner(prior)
    domains = [domain_of(frame, family) for family in families]
    asked = dict.fromkeys(k for one, d in zip(learners, domains, strict=True) for k in one.statistics(d))
    source = open_source(frame)
    summary = summarize_source(source, source.infer(), list(asked))
    nodes = learn_together(learners, domains, summary)
    figures = RegressionFigures(nodes, summary)
    logs, gaps = figures.log_likelihoods(), figures.gaps()
    for learner, domain, node, log, gap in zip(learners, domains, nodes, logs, gaps, strict=True):
        alone = learner.learn(domain, summary)
        assert node.weights.tolist() == alone.weights.tolist()
        assert node.variance.tolist() == alone.variance.tolist()
        assert (node.notes, node.evidence, node.directions) == (alone.notes, alone.evidence, alone.directions)
        assert (log, gap) == (alone.log_likelihood(summary), alone.gap(summary))
    nothing = summarize_source(open_source(frame[:0]), source.infer(), list(asked))
    with pytest.raises(sf.EstimateError, match="no rows"):
        learn_together(learners[:1], domains[:1], nothing)


def test_a_perfect_fit_among_many_columns() -> None:
    rng = np.random.default_rng(4)
    frame = pd.DataFrame(rng.normal(size=(20_000, 20)), columns=[f"x{k}" for k in range(20)])
    frame["x19"] = frame.x0 - 2 * frame.x1 + 5
    node = learn(frame, ("x0", "x1", "x19"), pool=tuple(frame.columns))
    assert node.variance_ == 0.0
    np.testing.assert_allclose(node.weights_, [5, 1, -2], rtol=1e-12)


# -- the edge ----------------------------------------------------------------------------------------------------------


def test_dependent_columns_give_the_least_norm_and_a_warning() -> None:
    frame = mixed(50).assign(c=lambda t: t.a - 2 * t.b, k=7.0)
    node = learn(frame, ("a", "b", "c", "y"))
    weights, variance = least_squares(frame, ("a", "b", "c"), "y")
    np.testing.assert_allclose(node.weights_, weights, rtol=1e-9)
    assert node.variance_ == pytest.approx(variance, rel=1e-10)
    assert node.exists is None  # Of c rounding is left, and what that explains is not known.
    assert "weights of 'a', 'b', 'c' in the regression of 'y'" in node.notes[0]
    assert np.isinf(node.standard_errors_[1:]).all()
    assert np.isfinite(node.standard_errors_[0])
    constant = learn(frame, ("k", "b", "y"))
    np.testing.assert_allclose(constant.weights_, least_squares(frame, ("k", "b"), "y")[0], rtol=1e-9)
    assert "weights of 'k' and the intercept" in constant.notes[0]
    assert constant.standard_errors_[2] == pytest.approx(learn(frame, ("b", "y")).standard_errors_[1], rel=1e-10)
    whole = frame.assign(a=np.round(8 * frame.a), b=np.round(8 * frame.b)).assign(c=lambda t: t.a - 2 * t.b)
    sure = learn(whole, ("a", "b", "c", "y"))
    assert sure.exists is True
    assert "The rows do not determine" in sure.notes[0]


def test_a_function_of_its_parents_is_a_point_mass() -> None:
    a = np.linspace(-1, 1, 11)
    frame = pd.DataFrame({"a": a, "y": 0.1 + 0.3 * a})
    node = learn(frame, ("a", "y"))
    assert node.variance_ == 0.0
    assert not node.exists
    assert node.directions == ("variance of 'y' -> 0",)
    assert "explain it without error" in node.notes[0]
    rows = {"a": np.array([0.5, 0.5]), "y": np.array([0.25, 0.2500001])}
    assert node.log_prob(rows).tolist() == [0.0, -math.inf]
    assert node.sample(rows, np.random.default_rng(0), 2).tolist() == pytest.approx([0.25, 0.25], rel=1e-14)
    summary = summarised(frame, LinearGaussianLearner(), node.domain)
    assert node.log_likelihood(summary) == 0.0
    assert node.gap(summary) < 1e-12
    off = summarised(frame.assign(y=frame.y + 1e-3), LinearGaussianLearner(), node.domain)
    assert node.log_likelihood(off) == -math.inf
    assert node.gap(off) == math.inf


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_fewer_rows_than_weights(rows: int) -> None:
    frame = mixed(rows)
    node = learn(frame, ("a", "b", "y"))
    np.testing.assert_allclose(node.weights_, least_squares(frame, ("a", "b"), "y")[0], rtol=1e-10)
    assert node.variance_ == 0.0
    assert not node.exists
    assert ("The rows do not determine" in node.notes[0]) == (rows < 3)
    assert np.isfinite(node.weights_).all()


def test_a_constant_column_and_no_rows() -> None:
    node = learn(pd.DataFrame({"y": [0.1] * 7}), ("y",))
    assert (node.weights_.tolist(), node.variance_) == ([0.1], 0.0)
    empty = pd.DataFrame({"a": np.empty(0), "y": np.empty(0)})
    with pytest.raises(sf.EstimateError, match="no rows to learn 'y' from"):
        learn(empty, ("a", "y"))
    assert np.isnan(learn(empty, ("a", "y"), unseen="nan").weights_).all()


# -- discrete parents --------------------------------------------------------------------------------------------------


def test_one_regression_for_each_joint_state() -> None:
    frame = mixed()
    node = learn(frame, ("a", "g", "b", "h", "y"))
    assert node.weights_.shape == (3, 2, 3)
    assert node.n_params == 3 * 2 * 4
    assert (node.real_parents, node.discrete_parents) == (("a", "b"), ("g", "h"))
    logs = 0.0
    for (g, h), part in frame.groupby(["g", "h"]):
        alone = learn(part, ("a", "b", "y"))
        assert node.at(g=g, h=h) == pytest.approx(alone.at(), rel=1e-11)
        at = "uvw".index(g), ["no", "yes"].index(h)
        np.testing.assert_allclose(node.standard_errors_[at], alone.standard_errors_, rtol=1e-11)
        logs += alone.log_likelihood(summarised(part, LinearGaussianLearner(), alone.domain))
    summary = summarised(frame, LinearGaussianLearner(), node.domain)
    assert list(summary.answers) == [MomentsBy(("a", "b", "y"), ("g", "h"))]
    assert node.log_likelihood(summary) == pytest.approx(logs, rel=1e-13)
    assert node.log_prob(codes_of(frame, node.domain)).sum() == pytest.approx(logs, rel=1e-12)
    assert node.gap(summary) < 1e-13


def test_a_table_that_people_can_read() -> None:
    node = learn(mixed(), ("g", "a", "y"))
    table = node.table_
    assert table.variables == ("g", "coefficient")
    assert table.states["coefficient"] == ("(intercept)", "a", "(variance)")
    assert table.at(g="v", coefficient="a") == node.at(g="v")["a"] == node.weights_[1, 1]
    frame = node.to_frame()
    assert frame.loc["v", "(variance)"] == node.variance_[1]
    assert learn(mixed(), ("a", "y")).to_frame().shape == (1, 3)
    with pytest.raises(sf.OptionError, match="Give a state for each of 'g'"):
        node.at()
    odd = mixed().rename(columns={"g": "coefficient", "a": "(intercept)"})
    clash = learn(odd, ("coefficient", "(intercept)", "y")).table_
    assert clash.variables == ("coefficient", "(coefficient)")
    assert clash.states["(coefficient)"] == ("((intercept))", "(intercept)", "(variance)")


def test_joint_states_without_rows() -> None:
    frame = mixed()
    frame = frame[~((frame.g == "u") & (frame.h == "yes"))]
    names, states = ("g", "h", "a", "y"), {"g": ["u", "v", "w", "x"], "h": ["no", "yes"]}
    pooled = learn(frame, names, states)
    assert pooled.n_unseen == 3
    assert "without rows: g='u', h='yes'; g='x', h='no'; g='x', h='yes'; they use" in pooled.notes[0]
    expected, variance = least_squares(frame, ("a",), "y")
    np.testing.assert_allclose(pooled.weights_[0, 1], expected, rtol=1e-12)
    assert pooled.variance_[3, 0] == pytest.approx(variance, rel=1e-12)
    assert np.isinf(pooled.standard_errors_[3]).all()
    gone = learn(frame, names, states, unseen="nan")
    assert np.isnan(gone.weights_[3]).all()
    assert np.isnan(gone.variance_).sum() == 3
    nowhere = {"g": np.array([3]), "h": np.array([0]), "a": np.array([1.0])}
    with pytest.raises(sf.EstimateError, match="undefined"):
        gone.sample(nowhere, np.random.default_rng(0), 1)
    with pytest.raises(sf.EstimateError, match="Give a prior=, or unseen="):
        learn(frame, names, states, unseen="raise")
    with pytest.raises(sf.EstimateError, match="no rows to learn 'y'"):
        learn(frame[:0], names, states)


def test_a_joint_state_with_one_row_is_a_point() -> None:
    frame = mixed(100)
    frame.loc[0, "g"] = "solo"
    node = learn(frame, ("g", "a", "y"))
    assert node.at(g="solo")["(variance)"] == 0.0
    assert node.directions == ("variance of 'y' -> 0 at g='solo'",)
    assert np.isfinite(node.weights_).all()
    summary = summarised(frame, LinearGaussianLearner(), node.domain)
    rest = frame[1:]
    expected = node.log_prob(codes_of(rest, node.domain)).sum()
    assert node.log_likelihood(summary) == pytest.approx(expected, rel=1e-13)


def test_memory_follows_the_rows() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({f"p{k}": rng.integers(0, 40, 60).astype(str) for k in range(6)})
    frame["y"] = rng.normal(size=60)
    states = {f"p{k}": [str(code) for code in range(40)] for k in range(6)}
    node = learn(frame, (*(f"p{k}" for k in range(6)), "y"), states)
    assert node.n_configurations == 40**6
    assert len(node.weights) <= 60
    columns = codes_of(frame, node.domain)
    assert np.isfinite(node.log_prob(columns)).all()
    other = {**columns, "p0": (columns["p0"] + 1) % 40}
    np.testing.assert_allclose(
        node.log_prob(other), stats.norm(frame.y.mean(), frame.y.std(ddof=0)).logpdf(frame.y), rtol=1e-12
    )
    with pytest.raises(sf.SizeError, match="4,096,000,000 joint states"):
        _ = node.weights_


# -- given, saved, published -------------------------------------------------------------------------------------------


def test_given_numbers_are_checked() -> None:
    domain = Domain([Variable.discrete("z", ["p", "q"]), Variable("x", "real"), Variable("y", "real")])
    node = LinearGaussianNode.given(domain, [[1, 2], [3, 4]], [0.5, 0.0])
    assert node.at(z="q") == {"(intercept)": 3.0, "x": 4.0, "(variance)": 0.0}
    with pytest.raises(sf.OptionError, match=r"expected \(2, 2\), intercept first, and \(2,\)"):
        LinearGaussianNode.given(domain, [[1, 2, 3], [3, 4, 5]], [0.5, 0.0])
    with pytest.raises(sf.OptionError, match="not negative"):
        LinearGaussianNode.given(domain, [[1, 2], [3, 4]], [0.5, -1.0])
    with pytest.raises(sf.EstimateError, match="no standard errors"):
        _ = node.standard_errors_
    with pytest.raises(sf.EstimateError, match="without a prior"):
        node.credible_intervals()


@pytest.mark.parametrize("options", [{}, {"prior": sf.LinearGaussianPrior(2.0, 1.0, on="all")}])
@pytest.mark.parametrize("names", [("a", "y"), ("g", "a", "y")])
def test_saved_and_loaded(tmp_path: Any, names: tuple[str, ...], options: Any) -> None:
    node = learn(mixed(), names, **options)
    save(tmp_path / "node.json", node.to_dict())
    back = LinearGaussianNode.from_dict(load(tmp_path / "node.json"))
    assert back.weights.tolist() == node.weights.tolist()
    assert (back.domain, back.notes, back.evidence, back.pool) == (node.domain, node.notes, node.evidence, node.pool)
    frame = mixed(9, seed=3)
    columns = codes_of(frame, node.domain)
    assert back.log_prob(columns).tolist() == node.log_prob(columns).tolist()
    np.testing.assert_array_equal(back.standard_errors_, node.standard_errors_)


@pytest.mark.parametrize(
    "change",
    [
        {"weights": np.zeros((2, 2))},
        {"variance": np.array([-1.0, 1.0, 1.0])},
        {"variance": np.zeros(3, dtype=np.float32)},
        {"configurations": np.array([[0], [1], [7]], dtype=np.int32)},
        {"configurations": np.zeros((3, 2), dtype=np.int32)},
        {"default_variance": -1.0},
        {"domain": "y"},
    ],
)
def test_damaged_files_are_refused(change: Any) -> None:
    plain = learn(mixed(), ("g", "a", "y")).to_dict()
    with pytest.raises((sf.FileFormatError, AttributeError)):
        LinearGaussianNode.from_dict({**plain, **change})


def test_figures_published_for_gaussian_test() -> None:
    with gzip.open(shared("tables/gaussian.test.csv.gz"), "rt") as stream:
        frame = pd.read_csv(stream)
    expected = json.loads(shared("tables/expected.json").read_text())["bayesnet_fits"]["gaussian.test"]
    total, parameters = 0.0, 0
    for name, figures in expected["mle"].items():
        node = learn(frame, (*figures["parents"], name))
        wanted = [figures["coef"][key][0] for key in ("(Intercept)", *figures["parents"])]
        np.testing.assert_allclose(node.weights_, wanted, rtol=1e-10, atol=1e-11)
        # The published deviations are unbiased: divided by rows less weights.
        unbiased = node.variance_ * len(frame) / (len(frame) - len(wanted))
        assert math.sqrt(unbiased) == pytest.approx(figures["sd"], rel=1e-10)
        total += node.log_likelihood(summarised(frame, LinearGaussianLearner(), node.domain))
        parameters += node.n_params
    assert parameters == expected["nparams"]
    assert total == pytest.approx(expected["ml_variance_refit"]["loglik"], rel=1e-12)
    score = total - 0.5 * parameters * math.log(len(frame))
    assert score == pytest.approx(expected["published"]["bic_g"], rel=1e-12)
