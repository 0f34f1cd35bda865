"""EM for networks of every kind of node: steps by hand, optima, standard errors, starts, limits, laws.

The judges are EM written by hand, brute force over completions, generic optimisers and numerical Hessians.
"""

import itertools
import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, norm

import suffice as sf
from curvature import hessian
from suffice.fitting.summaries import SummaryData
from suffice.models.bayesian.em import discrete_rows
from suffice.models.bayesian.em.problem import NetworkEMProblem
from suffice.statistics import Moments, MomentsBy

optimise: Any = optimize.minimize
LIMIT = pytest.mark.filterwarnings("ignore::suffice.ConvergenceWarning")


def line_with_gaps(n: int = 150, seed: int = 0, offset: float = 0.0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n) + 1
    y = 0.5 - 1.5 * x + 0.7 * rng.normal(size=n)
    x[rng.random(n) < 0.25] = np.nan
    y[rng.random(n) < 0.25] = np.nan
    return {"x": x + offset, "y": y + offset}


def mixed_with_gaps(n: int = 120, seed: int = 3) -> dict[str, Any]:
    """A table k -> t, and real nodes x | k and y | k, x; every column has gaps."""
    rng = np.random.default_rng(seed)
    k = rng.integers(2, size=n)
    t = (rng.random(n) < np.where(k == 1, 0.8, 0.3)).astype(int)
    x = rng.normal(size=n) + 2.0 * k
    y = np.where(k == 1, 1 + x, -1 - 0.5 * x) + 0.8 * rng.normal(size=n)
    gap = {name: rng.random(n) < 0.2 for name in "ktxy"}
    return {
        "k": np.array([None if g else int(v) for g, v in zip(gap["k"], k, strict=True)], dtype=object),
        "t": np.array([None if g else int(v) for g, v in zip(gap["t"], t, strict=True)], dtype=object),
        "x": np.where(gap["x"], np.nan, x),
        "y": np.where(gap["y"], np.nan, y),
    }


MIXED = {"k": [], "t": ["k"], "x": ["k"], "y": ["k", "x"]}


def mixed_log_likelihood(rows: dict[str, Any], theta: np.ndarray) -> float:
    """By formula: theta is logit P(k), logits P(t | k), x by k (mean, log v), y by k (intercept, slope, log v)."""
    p, t = 1 / (1 + np.exp(-theta[0])), 1 / (1 + np.exp(-theta[1:3]))
    x, y = rows["x"], rows["y"]
    no_x, no_y = np.isnan(x), np.isnan(y)
    logs = np.empty((2, len(x)))
    for k in (0, 1):
        (m, lv), (a, b, lw) = theta[3:7].reshape(2, 2)[k], theta[7:13].reshape(2, 3)[k]
        v, w = math.exp(lv), math.exp(lw)
        logs[k] = math.log(p if k else 1 - p)
        logs[k] += np.array([0.0 if tt is None else math.log(t[k] if tt else 1 - t[k]) for tt in rows["t"]])
        logs[k] += np.where(no_x, 0.0, norm.logpdf(np.nan_to_num(x), m, math.sqrt(v)))
        at, s = np.where(no_x, a + b * m, a + b * np.nan_to_num(x)), np.where(no_x, w + b * b * v, w)
        logs[k] += np.where(no_y, 0.0, norm.logpdf(np.nan_to_num(y), at, np.sqrt(s)))
        logs[k] += np.array([0.0 if kk in (None, k) else -np.inf for kk in rows["k"]])
    return float(logsumexp(logs, axis=0).sum())


def mixed_theta(net: sf.BayesianNetwork) -> np.ndarray:
    def logit(p: Any) -> Any:
        return np.log(p / (1 - p))

    x, y = net.node("x"), net.node("y")
    return np.concatenate([
        [logit(net.table("k").values[1])],
        logit(net.table("t").values[:, 1]),
        np.stack([x.weights_[:, 0], np.log(x.variance_)], axis=1).ravel(),
        np.concatenate([y.weights_, np.log(y.variance_)[:, None]], axis=1).ravel(),
    ])  # fmt: skip


# -- steps and optima ------------------------------------------------------------------------------------------------


def normal_step(rows: np.ndarray, mean: np.ndarray, cover: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """One step of EM for a bivariate normal law with gaps, by conditional means and covariances."""
    value, total, square = 0.0, np.zeros(2), np.zeros((2, 2))
    for row in rows:
        o, m = np.flatnonzero(~np.isnan(row)), np.flatnonzero(np.isnan(row))
        full, extra = row.copy(), np.zeros((2, 2))
        if len(o):
            value += multivariate_normal(mean[o], cover[np.ix_(o, o)]).logpdf(row[o])
        gain = cover[np.ix_(m, o)] @ np.linalg.inv(cover[np.ix_(o, o)]) if len(o) else np.zeros((len(m), 0))
        full[m] = mean[m] + gain @ (row[o] - mean[o])
        extra[np.ix_(m, m)] = cover[np.ix_(m, m)] - gain @ cover[np.ix_(o, m)]
        total += full
        square += np.outer(full, full) + extra
    mean = total / len(rows)
    return value, mean, square / len(rows) - np.outer(mean, mean)


@LIMIT
def test_a_line_with_gaps_takes_the_steps_of_em_by_hand() -> None:
    data = line_with_gaps()
    rows = np.stack([data["x"], data["y"]], axis=1)
    mean, cover = np.array([0.0, 1.0]), np.array([[2.0, 0.5], [0.5, 1.0]])
    slope = cover[0, 1] / cover[0, 0]
    start = {
        "x": ([mean[0]], cover[0, 0]),
        "y": ([mean[1] - slope * mean[0], slope], cover[1, 1] - slope * cover[0, 1]),
    }
    for steps in (1, 2, 3):
        value, mean, cover = normal_step(rows, mean, cover)
        net = sf.BayesianNetwork([("x", "y")], start=start, max_iter=steps, tolerance=0.0).fit(data)
        slope = cover[0, 1] / cover[0, 0]
        assert net.history_[steps - 1] == pytest.approx(value, rel=1e-12)
        np.testing.assert_allclose(net.node("x").weights_, mean[:1], rtol=1e-10)
        np.testing.assert_allclose(net.node("x").variance_, cover[0, 0], rtol=1e-10)
        np.testing.assert_allclose(net.node("y").weights_, [mean[1] - slope * mean[0], slope], rtol=1e-10)
        np.testing.assert_allclose(net.node("y").variance_, cover[1, 1] - slope * cover[0, 1], rtol=1e-10)


def test_far_from_the_origin_the_digits_stay() -> None:
    near = sf.BayesianNetwork([("x", "y")], tolerance=1e-10).fit(line_with_gaps())
    far = sf.BayesianNetwork([("x", "y")], tolerance=1e-8).fit(line_with_gaps(offset=2.0**24))
    assert far.node("y").variance_ == pytest.approx(near.node("y").variance_, rel=1e-6)
    assert far.node("y").weights_[1] == pytest.approx(near.node("y").weights_[1], rel=1e-6)
    assert far.report_.log_likelihood == pytest.approx(near.report_.log_likelihood, abs=1e-5)


def test_mixed_nodes_with_gaps_reach_a_maximum_of_the_observed_likelihood() -> None:
    rows = mixed_with_gaps()
    net = sf.BayesianNetwork(MIXED, tolerance=1e-9, max_iter=5000).fit(rows)
    here = mixed_theta(net)
    assert net.report_.log_likelihood == pytest.approx(mixed_log_likelihood(rows, here), rel=1e-12)
    assert net.history_[-1] == pytest.approx(net.report_.log_likelihood, rel=1e-12)
    assert (np.diff(net.history_) >= -1e-9).all()
    assert net.report_.certificate.moment_gap < 1e-8
    assert net.report_.certificate.exists is None
    assert net.report_.certificate.value_gap is None
    best = optimise(
        lambda theta: -mixed_log_likelihood(rows, theta), here + 0.01, method="BFGS", options={"maxiter": 25}
    )
    assert -best.fun <= net.report_.log_likelihood + 1e-6


def test_complete_rows_and_one_that_says_nothing_give_the_closed_form() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=60)
    rows = {"k": np.array(["a", "b"] * 30, dtype=object), "x": x, "y": 2 * x + rng.normal(size=60)}
    structure = {"y": ["k", "x"]}
    closed = sf.BayesianNetwork(structure).fit(rows)
    silent = {"k": [*rows["k"], None], "x": [*x, math.nan], "y": [*rows["y"], math.nan]}
    em = sf.BayesianNetwork(structure, tolerance=1e-13).fit(silent)
    assert em.report_.method.startswith("EM")
    for name in ("x", "y"):
        np.testing.assert_allclose(em.node(name).weights_, closed.node(name).weights_, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(em.node(name).variance_, closed.node(name).variance_, rtol=1e-10)
    np.testing.assert_allclose(em.table("k").values, closed.table("k").values, rtol=1e-12)
    assert em.report_.log_likelihood == pytest.approx(closed.report_.log_likelihood, rel=1e-12)


@pytest.mark.parametrize("estimate", ["map", "mean"])
def test_priors_of_tables_and_regressions_enter_the_objective(estimate: Any) -> None:
    """The steps climb log-likelihood + log prior, whose slope is zero where they end."""
    rows = mixed_with_gaps(60)
    linear = sf.LinearGaussianPrior(alpha=2.0, beta=1.0, on="all")
    prior: dict[str, Any] = {"k": 2.0, "t": 3.0, "x": linear, "y": linear}
    net = sf.BayesianNetwork(MIXED, prior=prior, estimate=estimate, tolerance=1e-10, max_iter=5000).fit(rows)
    assert (np.diff(net.history_) >= -1e-9).all()
    assert net.report_.objective == pytest.approx(net.history_[-1], rel=1e-12)

    def value(theta: np.ndarray) -> float:
        p = 1 / (1 + np.exp(-theta[:3]))
        power = np.array([1.0, 2.0, 2.0]) + (estimate == "mean")  # The mean under alpha is the mode under alpha + 1.
        found = mixed_log_likelihood(rows, theta) + float((power * (np.log(p) + np.log(1 - p))).sum())
        for weights, logs in (
            (theta[3:7].reshape(2, 2)[:, :1], theta[4:7:2]),
            (theta[7:].reshape(2, 3)[:, :2], theta[9::3]),
        ):
            found += linear.log_prob((weights, np.exp(logs))).sum()
            if estimate == "mean":  # 2 (alpha' - 1) in place of N + q + 2 alpha + 2.
                found += 0.5 * float(((weights.shape[1] + 4) * logs).sum())
        return found

    here = mixed_theta(net)
    slopes = [
        (value(here + 1e-5 * np.eye(13)[j]) - value(here - 1e-5 * np.eye(13)[j])) / 2e-5 for j in range(13)
    ]  # fmt: skip
    np.testing.assert_allclose(slopes, 0, atol=2e-5)


# -- standard errors -------------------------------------------------------------------------------------------------


def test_standard_errors_are_those_of_the_observed_information() -> None:
    rows = mixed_with_gaps()
    net = sf.BayesianNetwork(MIXED, tolerance=1e-10, max_iter=5000).fit(rows)
    here = mixed_theta(net)
    errors = np.sqrt(np.diag(np.linalg.inv(-hessian(lambda theta: mixed_log_likelihood(rows, theta), here))))
    p = np.array([net.table("k").values[1], *net.table("t").values[:, 1]])
    table = errors[:3] * p * (1 - p)
    np.testing.assert_allclose(net.node("k").standard_errors_.values, table[0], rtol=1e-5)
    np.testing.assert_allclose(net.node("t").standard_errors_.values, np.stack([table[1:]] * 2, axis=1), rtol=1e-5)
    np.testing.assert_allclose(net.node("x").standard_errors_[:, 0], errors[[3, 5]], rtol=1e-5)
    np.testing.assert_allclose(net.node("x").variance_errors_, errors[[4, 6]] * net.node("x").variance_, rtol=1e-5)
    np.testing.assert_allclose(net.node("y").standard_errors_, errors[[[7, 8], [10, 11]]], rtol=1e-5)
    np.testing.assert_allclose(net.node("y").variance_errors_, errors[[9, 12]] * net.node("y").variance_, rtol=1e-5)


def test_filled_in_counts_would_understate_the_errors() -> None:
    rng = np.random.default_rng(0)
    rows: dict[str, Any] = {"a": [int(v) if rng.random() < 0.5 else None for v in rng.integers(2, size=200)]}
    net = sf.BayesianNetwork({"a": []}, tolerance=1e-12).fit(rows)
    seen = [v for v in rows["a"] if v is not None]
    p = sum(seen) / len(seen)
    assert net.table("a").values[1] == pytest.approx(p, rel=1e-9)
    assert net.node("a").standard_errors_.values[1] == pytest.approx(math.sqrt(p * (1 - p) / len(seen)), rel=1e-6)


def test_events_without_probability_and_states_without_rows_have_no_finite_error() -> None:
    rows = {"a": ["x", "y", "x", "x", "y", "x"], "b": [0, 1, 0, None, 1, 0]}
    net = sf.BayesianNetwork([("a", "b")], states={"a": ["x", "y", "z"]}, tolerance=1e-12, max_iter=5000).fit(rows)
    found = net.node("b").standard_errors_.values
    np.testing.assert_allclose(found[:2], 0.0, atol=1e-6)
    assert np.isinf(found[2]).all()
    assert net.node("a").standard_errors_.values[2] == 0.0
    assert net.node("a").standard_errors_.values[0] == pytest.approx(math.sqrt(4 / 6 * 2 / 6 / 6), rel=1e-6)


# -- starts, runs and limits -----------------------------------------------------------------------------------------

CLASSES = [("H", name) for name in "abc"]


def class_rows(n: int = 150) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(5)
    z = rng.random(n) < 0.4
    return {name: np.where(rng.random(n) < 0.85, z, ~z).astype(int) for name in "abc"}


def test_a_fitted_network_is_a_start() -> None:
    rows = mixed_with_gaps()
    net = sf.BayesianNetwork(MIXED, tolerance=1e-8, max_iter=5000).fit(rows)
    again = sf.BayesianNetwork(MIXED, tolerance=1e-8, start=net).fit(rows)
    assert again.n_iter_ <= 1
    assert again.report_.log_likelihood == pytest.approx(net.report_.log_likelihood, rel=1e-12)
    with pytest.raises(sf.OptionError, match="start= names 'q'"):
        sf.BayesianNetwork(MIXED, start={"q": [0.5, 0.5]})
    with pytest.raises(sf.OptionError, match="start is 3"):
        sf.BayesianNetwork(MIXED, start=3)


def test_an_impossible_start_is_an_error() -> None:
    with pytest.raises(sf.EstimateError, match="at the start"):
        sf.BayesianNetwork({"a": [], "b": ["a"]}, start={"a": [1.0, 0.0]}).fit({"a": [0, 1, None], "b": [0, 1, 1]})


def test_the_best_of_several_runs_is_kept() -> None:
    net = sf.BayesianNetwork(CLASSES, hidden={"H": 2}, n_init=5, tolerance=1e-7, max_iter=20_000).fit(class_rows())
    assert len(net.scores_) == 5
    assert net.report_.log_likelihood == pytest.approx(max(net.scores_), rel=1e-12)
    assert net.n_expectations_ > 5


def test_a_callback_stops_all_runs() -> None:
    seen: list[int] = []

    def stop(state: Any) -> bool:
        seen.append(state.iteration)
        return len(seen) >= 4

    net = sf.BayesianNetwork(CLASSES, hidden={"H": 2}, n_init=5, tolerance=1e-12, callback=stop).fit(class_rows())
    assert len(seen) == 4
    assert (net.converged_, net.stop_reason_) == (False, "callback")
    assert len(net.scores_) == 1


def test_the_seconds_are_those_of_all_runs() -> None:
    options: dict[str, Any] = {"hidden": {"H": 2}, "n_init": 4, "tolerance": 0.0, "max_seconds": 1e-6}
    with pytest.warns(sf.ConvergenceWarning, match="max_seconds"):
        net = sf.BayesianNetwork(CLASSES, **options).fit(class_rows())
    assert (net.converged_, net.stop_reason_, len(net.scores_)) == (False, "max_seconds", 1)


def test_a_fit_can_be_copied_and_sent() -> None:
    net = sf.BayesianNetwork(MIXED, max_iter=5000).fit(mixed_with_gaps(60))
    errors = net.node("y").standard_errors_
    twin = pickle.loads(pickle.dumps(net))
    np.testing.assert_array_equal(twin.node("y").standard_errors_, errors)


def test_an_interrupted_fit_goes_on_to_the_same_result(tmp_path: Path) -> None:
    rows = class_rows()
    options: dict[str, Any] = {"hidden": {"H": 2}, "n_init": 3, "tolerance": 1e-6, "max_iter": 20_000}
    whole = sf.BayesianNetwork(CLASSES, **options).fit(rows)
    calls: list[int] = []

    def interrupt(state: Any) -> None:
        calls.append(state.iteration)
        if calls.count(3) == 2:  # In the second run.
            raise KeyboardInterrupt

    path = tmp_path / "em.json"
    cut = sf.BayesianNetwork(CLASSES, **options, checkpoint=path, callback=interrupt).fit(rows)
    assert (cut.converged_, cut.stop_reason_, len(cut.scores_)) == (False, "interrupted", 2)
    steps: list[int] = []
    rest = sf.BayesianNetwork(CLASSES, **options, checkpoint=path, callback=lambda s: steps.append(s.iteration)).fit(
        rows
    )
    assert rest.scores_ == whole.scores_
    assert rest.table("a").values.tobytes() == whole.table("a").values.tobytes()
    assert steps[0] == 4  # The first run was not made again, and the second went on.
    assert list(tmp_path.iterdir()) == []
    calls.clear()
    sf.BayesianNetwork(CLASSES, **options, checkpoint=path, callback=interrupt).fit(rows)
    with pytest.raises(sf.OptionError, match="another fit"):
        sf.BayesianNetwork(CLASSES, **options, checkpoint=path).fit({**rows, "a": rows["b"]})


def test_threads_do_not_change_the_result() -> None:
    one, two = (
        sf.BayesianNetwork(CLASSES, hidden={"H": 3}, threads=threads, tolerance=1e-5, max_iter=5000).fit(class_rows())
        for threads in (1, 2)
    )
    np.testing.assert_allclose(one.table("a").values, two.table("a").values, rtol=0, atol=1e-15)
    assert one.n_iter_ == two.n_iter_


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"n_init": 0}, "n_init is 0"),
        ({"variance_floor": -1.0}, "variance_floor is -1.0"),
        ({"acceleration": "fast"}, "acceleration is 'fast'"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any], match: str) -> None:
    with pytest.raises(sf.OptionError, match=match):
        sf.BayesianNetwork(CLASSES, hidden={"H": 2}, **options).fit(class_rows(20))
    with pytest.raises(sf.OptionError, match=r"hidden\['H'\] is 0"):
        sf.BayesianNetwork(CLASSES, hidden={"H": 0}).fit(class_rows(20))


def test_an_infinite_number_is_no_gap() -> None:
    with pytest.raises(sf.DataError, match="holds inf"):
        sf.BayesianNetwork([("x", "y")]).fit({"x": [1.0, math.inf, math.nan], "y": [0.5, 1.0, 2.0]})


# -- the laws --------------------------------------------------------------------------------------------------------


def same(left: sf.BayesianNetwork, right: sf.BayesianNetwork) -> None:
    for name in ("k", "t"):
        np.testing.assert_allclose(left.table(name).values, right.table(name).values, atol=1e-6)
    for name in ("x", "y"):
        np.testing.assert_allclose(left.node(name).weights_, right.node(name).weights_, atol=1e-5)
        np.testing.assert_allclose(left.node(name).variance_, right.node(name).variance_, atol=1e-5)


OPTIONS: dict[str, Any] = {
    "tolerance": 1e-9,
    "max_iter": 5000,
    "acceleration": "squarem",
    "states": {"k": [0, 1], "t": [0, 1]},
}


@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 100))
def test_weights_are_repetitions_and_orders_do_not_matter(seed: int) -> None:
    rows = mixed_with_gaps(50)
    rng = np.random.default_rng(seed)
    weights = rng.integers(1, 4, size=50)
    base = sf.BayesianNetwork(MIXED, **OPTIONS).fit(rows, sample_weight=weights)
    order = rng.permutation(np.repeat(np.arange(50), weights))
    names = list(rng.permutation(list(rows)))
    same(base, sf.BayesianNetwork(MIXED, **OPTIONS).fit({str(name): rows[str(name)][order] for name in names}))


def test_parts_add_up_and_can_be_taken_out() -> None:
    rows = mixed_with_gaps(120)

    def part(start: int, stop: int) -> dict[str, Any]:
        return {name: values[start:stop] for name, values in rows.items()}

    whole = sf.BayesianNetwork(MIXED, **OPTIONS).fit(rows)
    parts = sf.BayesianNetwork(MIXED, **OPTIONS).fit(part(0, 50)).partial_fit(part(50, 120))
    same(whole, parts)
    assert parts.statistics_ == whole.statistics_
    first = sf.BayesianNetwork(MIXED, **OPTIONS).fit(part(0, 50))
    same(parts.unlearn(part(50, 120)), first)
    merged = sf.BayesianNetwork(MIXED, **OPTIONS).fit(whole.statistics_)
    assert merged.node("y").weights_.tobytes() == whole.node("y").weights_.tobytes()


def test_files_keep_the_fit_and_its_errors(tmp_path: Path) -> None:
    net = sf.BayesianNetwork(MIXED, **OPTIONS).fit(mixed_with_gaps())
    net.write(tmp_path / "net.json")
    twin = sf.read(tmp_path / "net.json")
    assert twin.node("y").weights_.tobytes() == net.node("y").weights_.tobytes()
    np.testing.assert_allclose(twin.node("y").standard_errors_, net.node("y").standard_errors_, rtol=1e-12)


def test_lists_trees_and_query_engines_expect_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three ways to the expected statistics: a list of joint states, a junction tree, and the engines of queries."""
    net = sf.BayesianNetwork({**MIXED, "h": ["k"], "z": ["h", "y"]}, hidden={"h": 3}, max_iter=4, tolerance=0.0)
    rows = {**mixed_with_gaps(80), "z": np.random.default_rng(0).normal(size=80)}
    with pytest.warns(sf.ConvergenceWarning):
        net.fit(rows)
    nodes = {name: net.node(name) for name in net.nodes}
    data, domain = SummaryData(net.statistics_), net.statistics_.domain.merge(net.fitted_.domain)
    listed = NetworkEMProblem(net._task().learning, data, domain)
    expected = listed.expect(nodes)
    assert expected.log_likelihood == pytest.approx(net.score_samples(rows).sum(), rel=1e-12)
    monkeypatch.setattr(discrete_rows, "LISTED", 0)
    again, judged = NetworkEMProblem(net._task().learning, data, domain).expect(nodes), listed.expect_again(nodes)
    for statistic in listed.statistics:
        for found in (again, judged):
            assert found.log_likelihood == pytest.approx(expected.log_likelihood, rel=1e-13)
            mine, theirs = expected.statistics[statistic], found.statistics[statistic]
            if isinstance(statistic, Moments | MomentsBy):
                np.testing.assert_allclose(mine.mean, theirs.mean, rtol=1e-9, atol=1e-11)
                np.testing.assert_allclose(mine.scatter, theirs.scatter, rtol=1e-9, atol=1e-9)
            else:
                np.testing.assert_allclose(mine.dense(), theirs.dense(), rtol=1e-10, atol=1e-12)


def test_other_kinds_of_node_and_tied_ones_need_no_code_of_their_own() -> None:
    rng = np.random.default_rng(2)
    a, b = rng.integers(2, size=(2, 200))
    c = ((rng.random(200) < 0.8) & (a == 1)) | ((rng.random(200) < 0.5) & (b == 1)) | (rng.random(200) < 0.1)
    full = dict(zip("abc", (a, b, c), strict=True))
    rows = {name: [None if rng.random() < 0.15 else int(v) for v in values] for name, values in full.items()}
    net = sf.BayesianNetwork(
        {"c": ["a", "b"]}, nodes={"c": "noisy-or"}, tied=[("a", "b")], tolerance=1e-7, max_iter=3000
    )
    net.fit(rows)
    assert (np.diff(net.history_) >= -1e-9).all()
    assert net.table("a").values.tobytes() == net.table("b").values.tobytes()
    inhibited = net.node("c").parameters()

    def value(theta: np.ndarray) -> float:
        p, q = 1 / (1 + math.exp(-theta[0])), 1 / (1 + np.exp(-theta[1:]))
        total = 0.0
        for row in zip(*(rows[name] for name in "abc"), strict=True):
            mass = 0.0
            for x, y in itertools.product(*((0, 1) if v is None else (v,) for v in row[:2])):
                absent = q[0] * q[1] ** x * q[2] ** y
                chance = 1.0 if row[2] is None else (1 - absent if row[2] else absent)
                mass += (p if x else 1 - p) * (p if y else 1 - p) * chance
            total += math.log(mass)
        return total

    here = np.array([net.table("a").values[1], *inhibited])
    here = np.log(here / (1 - here))
    assert value(here) == pytest.approx(net.report_.log_likelihood, rel=1e-12)
    best = optimise(lambda theta: -value(theta), here, method="BFGS", options={"maxiter": 10})
    assert -best.fun <= value(here) + 1e-5


def test_a_gap_costs_less_than_a_row() -> None:
    """EM uses what the rows with gaps show: it is nearer to the truth than deletion of rows, in sum over many draws."""
    chance = 0.3
    loss = {"em": 0.0, "deleted": 0.0}
    for seed in range(20):
        rng = np.random.default_rng(seed)
        a = (rng.random(200) < chance).astype(int)
        b = (rng.random(200) < np.where(a == 1, 0.8, 0.2)).astype(int)
        rows: dict[str, Any] = {"a": [None if rng.random() < 0.4 else int(v) for v in a], "b": b.tolist()}
        em = sf.BayesianNetwork([("a", "b")], tolerance=1e-6).fit(rows)
        kept = [i for i, v in enumerate(rows["a"]) if v is not None]
        less = sf.BayesianNetwork([("a", "b")]).fit({name: [values[i] for i in kept] for name, values in rows.items()})
        for name, net in (("em", em), ("deleted", less)):
            p = net.table("a").values[1]
            loss[name] += chance * math.log(chance / p) + (1 - chance) * math.log((1 - chance) / (1 - p))
    assert loss["em"] < loss["deleted"]


def test_gaussian_gaps_use_the_line() -> None:
    rows = line_with_gaps(400)
    net = sf.BayesianNetwork([("x", "y")], tolerance=1e-9).fit(rows)
    y, only = net.node("y"), np.isnan(rows["x"]) & ~np.isnan(rows["y"])
    x = net.node("x")
    at = y.weights_[0] + y.weights_[1] * x.weights_[0]
    spread = y.variance_ + y.weights_[1] ** 2 * x.variance_
    found = net.score_samples({name: values[only] for name, values in rows.items()})
    np.testing.assert_allclose(found, norm.logpdf(rows["y"][only], at, math.sqrt(spread)), rtol=1e-10)
