"""Standard errors of EM under priors and ties, its certificate and its report: numerical Hessians judge."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import multivariate_normal

import suffice as sf
from curvature import hessian
from random_networks import certificate_at
from suffice.models.bayesian.em.problem import NetworkEMProblem
from suffice.models.em.latent import Expected

# -- standard errors -------------------------------------------------------------------------------------------------


def graded_rows(n: int = 150) -> dict[str, Any]:
    """Three grades with a common hidden cause; some of the second are missing."""
    rng = np.random.default_rng(3)
    cause = rng.integers(2, size=n)
    law = np.array([[0.6, 0.3, 0.1], [0.1, 0.2, 0.7]])
    rows: dict[str, Any] = {f"y{k}": (rng.random((n, 1)) > law.cumsum(axis=1)[cause]).sum(axis=1) for k in range(3)}
    rows["y1"] = np.array([None if at % 4 == 0 else int(v) for at, v in enumerate(rows["y1"])], dtype=object)
    return rows


GRADED = {"h": [], "y0": ["h"], "y1": ["h"], "y2": ["h"]}
GRADES = {f"y{k}": [0, 1, 2] for k in range(3)}
KNOWN = np.array([[0.6, 0.3, 0.1], [0.1, 0.2, 0.7]])


@pytest.mark.parametrize("estimate", ["map", "mean"])
def test_tied_tables_with_gaps_and_one_prior(estimate: Any) -> None:
    """log p(rows) + s sum log p, each shared table once: s = alpha - 1 of the mode, alpha of the mean's steps."""
    rows = graded_rows()
    net = sf.BayesianNetwork(
        GRADED, hidden={"h": 2}, states=GRADES, prior=1.5, estimate=estimate, tied=[("y0", "y1")],
        fixed={"y2": KNOWN}, tolerance=1e-10, max_iter=5000,
    ).fit(rows)  # fmt: skip
    power = 0.5 if estimate == "map" else 1.5

    def value(theta: np.ndarray) -> float:
        causes, free = np.array([1 - theta[0], theta[0]]), theta[1:].reshape(2, 2)
        shared = np.column_stack([free, 1 - free.sum(axis=1)])
        joint = np.tile(causes, (len(rows["y0"]), 1))
        for name, table in (("y0", shared), ("y1", shared), ("y2", KNOWN)):
            seen = np.array([v is not None for v in rows[name]])
            joint[seen] *= table[:, rows[name][seen].astype(int)].T
        return float(np.log(joint.sum(axis=1)).sum() + power * (np.log(causes).sum() + np.log(shared).sum()))

    here = np.array([net.table("h").values[1], *net.table("y0").values[:, :2].ravel()])
    covariance = np.linalg.inv(-hessian(value, here, 1e-3))
    errors = np.sqrt(np.diag(covariance))
    last = [np.sqrt(covariance[k : k + 2, k : k + 2].sum()) for k in (1, 3)]  # Of 1 - p0 - p1.
    expected = np.column_stack([errors[1:].reshape(2, 2), last])
    np.testing.assert_allclose(net.node("h").standard_errors_.values, errors[0], rtol=1e-4)
    for name in ("y0", "y1"):
        np.testing.assert_allclose(net.node(name).standard_errors_.values, expected, rtol=1e-4)
    assert net.report_.objective == pytest.approx(value(here), rel=1e-11)


@pytest.mark.parametrize("estimate", ["map", "mean"])
def test_tied_regressions_with_gaps_and_one_prior(estimate: Any) -> None:
    """A chain x -> u -> w of normal columns, whose covariance is that of the product of its regressions."""
    rng = np.random.default_rng(4)
    x = rng.normal(size=60)
    u = 1 + 0.5 * x + 0.7 * rng.normal(size=60)
    w = 1 + 0.5 * u + 0.7 * rng.normal(size=60)
    x[::6], w[::5] = np.nan, np.nan
    prior = sf.LinearGaussianPrior(2.0, 1.0, on="all")
    net = sf.BayesianNetwork(
        {"x": [], "u": ["x"], "w": ["u"]}, tied=[("u", "w")], prior={"u": prior}, estimate=estimate, tolerance=1e-11,
        max_iter=5000,
    ).fit({"x": x, "u": u, "w": w})  # fmt: skip

    def value(theta: np.ndarray) -> float:
        m, log_v, a, b, log_s = theta
        spread = np.exp([log_v, log_s, log_s])
        mean = np.array([m, a + b * m, a + b * (a + b * m)])
        lift = np.array([[1, 0, 0], [b, 1, 0], [b * b, b, 1]])
        cover = lift * spread @ lift.T
        found = 0.0
        for row in np.column_stack([x, u, w]):
            k = ~np.isnan(row)
            found += float(multivariate_normal.logpdf(row[k], mean[k], cover[np.ix_(k, k)]))
        found += float(prior.log_prob((np.array([a, b]), np.exp(log_s))))
        # The posterior mean of the variance divides by N + 2 (alpha - 1), the mode by N + q + 2 (alpha + 1).
        return found + (0.5 * 6 * log_s if estimate == "mean" else 0.0)

    first, shared = net.node("x"), net.node("u")
    here = np.array([*first.weights_, np.log(first.variance_), *shared.weights_, np.log(shared.variance_)])
    # The log prior is -beta / v - ... up to a constant: -1 at weights of 0 and a variance of 1.
    constant = float(prior.log_prob((np.zeros(2), 1.0))) + 1.0
    assert net.report_.objective == pytest.approx(value(here) - constant, rel=1e-11)
    errors = np.sqrt(np.diag(np.linalg.inv(-hessian(value, here, 2e-3))))
    np.testing.assert_allclose(first.standard_errors_, errors[:1], rtol=1e-5)
    assert first.variance_errors_ == pytest.approx(errors[1] * first.variance_, rel=1e-5)
    for name in ("u", "w"):
        np.testing.assert_allclose(net.node(name).standard_errors_, errors[2:4], rtol=1e-5)
        assert net.node(name).variance_errors_ == pytest.approx(errors[4] * shared.variance_, rel=1e-5)


def test_rows_without_weight_keep_the_spread_of_the_prior() -> None:
    """One gap elsewhere changes nothing for a parent state that never occurs: its row is Dirichlet(1, 1) as before."""
    a, b = [0, 0, 1, 1, 1, 0, 0, 1], [0, 1, 1, 1, 0, 0, 0, 1]
    states = {"a": [0, 1, 2], "b": [0, 1]}
    closed = sf.BayesianNetwork([("a", "b")], states=states, prior=1.0).fit({"a": a, "b": b})
    gaps = sf.BayesianNetwork([("a", "b")], states=states, prior=1.0).fit({"a": a, "b": [*b[:-1], None]})
    np.testing.assert_allclose(gaps.node("b").standard_errors_.values[2], np.sqrt(1 / 12), rtol=1e-12)
    np.testing.assert_allclose(closed.node("b").standard_errors_.values[2], np.sqrt(1 / 12), rtol=1e-12)
    prior = {"b": np.array([[1.0, 1.0], [1.0, 1.0], [2.0, 6.0]])}
    gaps = sf.BayesianNetwork([("a", "b")], states=states, prior=prior).fit({"a": a, "b": [*b[:-1], None]})
    # The variance of Beta(2, 6) is 2 * 6 / (8^2 * 9).
    np.testing.assert_allclose(gaps.node("b").standard_errors_.values[2], np.sqrt(12 / 576), rtol=1e-12)
    assert np.isfinite(gaps.node("b").standard_errors_.values).all()


# -- the certificate -------------------------------------------------------------------------------------------------

A = [0] * 6 + [1] * 6
B: list[Any] = [0, 0, 0, 1, None, None, 1, 1, 1, 1, 0, None]


def test_the_certificate_is_one_more_step_by_hand() -> None:
    net = sf.BayesianNetwork([("a", "b")], tolerance=1e-12, max_iter=5000).fit({"a": A, "b": B})
    assert net.report_.certificate.moment_gap < 1e-11
    node = net.fitted_.nodes["b"]
    moved = certificate_at(net, b=replace(node, rows=np.array([[0.5, 0.5], node.rows[1]])))
    # The first row has 3 zeros, 1 one and 2 gaps, which are expected to be half and half.
    errors = math.sqrt(0.5 * (1 - 0.5) / 6)
    assert moved.moment_gap == pytest.approx(((3 + 2 * 0.5) / 6 - 0.5) / errors, rel=1e-9)
    assert moved.slope == pytest.approx((3 + 2 * 0.5) - 6 * 0.5, rel=1e-9)


def test_the_certificate_does_not_trust_the_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps that expect gaps to be half and half come to rest, at (3 + 1) / 6, where true steps would not."""
    honest = NetworkEMProblem.expect

    def broken(self: NetworkEMProblem, nodes: Any) -> Any:
        even = {**nodes, "b": replace(nodes["b"], rows=np.full((2, 2), 0.5))}
        return Expected(0.0, honest(self, even).statistics)

    monkeypatch.setattr(NetworkEMProblem, "expect", broken)
    with pytest.warns(sf.ConvergenceWarning, match="though its solver says so"):
        net = sf.BayesianNetwork([("a", "b")], tolerance=1e-12).fit({"a": A, "b": B})
    assert not net.report_.converged
    assert net.table("b").values[0, 0] == pytest.approx(4 / 6, rel=1e-12)
    errors = math.sqrt(4 / 6 * (1 - 4 / 6) / 6)
    assert net.report_.certificate.moment_gap == pytest.approx(abs((3 + 2 * 4 / 6) / 6 - 4 / 6) / errors, rel=1e-9)


# -- starts in which states are alike --------------------------------------------------------------------------------

CLASSES = {"H": [], "a": ["H"], "b": ["H"], "c": ["H"]}
NOTE = "start is symmetric in the states of 'H'"


def class_rows(n: int = 150) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(5)
    z = rng.random(n) < 0.4
    return {name: np.where(rng.random(n) < 0.85, z, ~z).astype(int) for name in "abc"}


@pytest.mark.parametrize("share", [[0.5, 0.5], [0.3, 0.7]])
def test_a_symmetric_start_is_said(share: list[float]) -> None:
    rows = class_rows()
    start = {"H": share} | {name: [[0.4, 0.6], [0.4, 0.6]] for name in "abc"}
    with pytest.warns(sf.SufficeWarning, match=NOTE):
        net = sf.BayesianNetwork(CLASSES, hidden={"H": 2}, start=start).fit(rows)
    assert any(text.startswith(NOTE) for text in net.report_.warnings)
    assert net.report_.certificate.exists is None
    # It is where the columns are independent: far below the maximum.
    p = np.array([rows[name].mean() for name in "abc"])
    assert net.report_.log_likelihood == pytest.approx(150 * float((p * np.log(p) + (1 - p) * np.log(1 - p)).sum()))
    assert (
        sf.BayesianNetwork(CLASSES, hidden={"H": 2}).fit(rows).report_.log_likelihood > net.report_.log_likelihood + 9
    )


def test_two_of_three_states_alike_are_enough() -> None:
    start = {"H": [0.2, 0.3, 0.5]} | {name: [[0.4, 0.6], [0.8, 0.2], [0.4, 0.6]] for name in "abc"}
    with pytest.warns(sf.SufficeWarning, match=NOTE):
        net = sf.BayesianNetwork(CLASSES, hidden={"H": 3}, start=start, max_iter=5000).fit(class_rows())
    table = net.table("a").values
    np.testing.assert_allclose(table[0], table[2], atol=1e-9)
    assert abs(table[0, 0] - table[1, 0]) > 0.1


def test_starts_that_tell_states_apart_are_not_blamed() -> None:
    """One column that differs is enough; so are parents of the hidden node, random nodes, and another, better run."""
    rows, even = class_rows(), [[0.4, 0.6], [0.4, 0.6]]
    start = {"H": [0.5, 0.5], "a": [[0.6, 0.4], [0.4, 0.6]], "b": even, "c": even}
    same = start | {"a": even}
    for structure, begin, more in (
        (CLASSES, start, {}),
        (CLASSES, {"H": [0.5, 0.5], "a": even}, {}),
        (CLASSES, same, {"n_init": 3}),
        ({"H": ["a"], "b": ["H"], "c": ["H"]}, {"H": [[0.7, 0.3], [0.3, 0.7]], "b": even, "c": even}, {}),
    ):
        options: dict[str, Any] = {"hidden": {"H": 2}, "start": begin, "max_iter": 5000, **more}
        net = sf.BayesianNetwork(structure, **options).fit(rows)
        assert not any("symmetric" in text for text in net.report_.warnings)


def test_real_columns_may_tell_states_apart() -> None:
    rng = np.random.default_rng(1)
    rows = {"x": np.concatenate([rng.normal(-2, 1, 60), rng.normal(2, 1, 60)])}
    states = {"H": [0.5, 0.5]}
    with pytest.warns(sf.SufficeWarning, match=NOTE):
        sf.BayesianNetwork({"x": ["H"]}, hidden={"H": 2}, start=states | {"x": ([[0.0], [0.0]], [1.0, 1.0])}).fit(rows)
    apart = states | {"x": ([[0.0], [0.0]], [1.0, 2.0])}
    net = sf.BayesianNetwork({"x": ["H"]}, hidden={"H": 2}, start=apart, max_iter=5000).fit(rows)
    assert not any("symmetric" in text for text in net.report_.warnings)
