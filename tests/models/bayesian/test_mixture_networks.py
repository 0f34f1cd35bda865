"""Mixtures as plain networks: naive Bayes, latent classes, Gaussian mixtures, mixtures of regressions.

The judges are EM written by hand, scikit-learn, and a generic optimiser on the observed log-likelihood.
"""

import math
from typing import Any

import numpy as np
import pytest
from scipy import optimize
from scipy.special import logsumexp, xlogy
from scipy.stats import multivariate_normal, norm

import suffice as sf

optimise: Any = optimize.minimize
pytestmark = pytest.mark.filterwarnings("ignore::suffice.ConvergenceWarning")


def blobs(n: int = 300, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    centres = np.array([[0.0, 0.0, 1.0], [3.0, 1.0, -1.0], [-2.0, 4.0, 0.0]])
    return centres[rng.integers(3, size=n)] + rng.normal(size=(n, 3)) * [1.0, 0.7, 1.3]


def frame(rows: np.ndarray) -> dict[str, np.ndarray]:
    return {f"x{j}": rows[:, j] for j in range(rows.shape[1])}


# -- latent classes --------------------------------------------------------------------------------------------------


def latent_class_rows(n: int = 500) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(2)
    z = (rng.random(n) < 0.35).astype(int)
    return {name: (rng.random(n) < np.where(z == 1, 0.75, 0.3)).astype(int) for name in "abcd"}


START = {
    "H": np.array([0.4, 0.6]),
    "a": np.array([[0.3, 0.7], [0.6, 0.4]]),
    "b": np.array([[0.2, 0.8], [0.5, 0.5]]),
    "c": np.array([[0.45, 0.55], [0.7, 0.3]]),
    "d": np.array([[0.35, 0.65], [0.55, 0.45]]),
}
CLASSES = [("H", name) for name in "abcd"]


def latent_class_step(rows: dict[str, np.ndarray], now: dict[str, np.ndarray]) -> tuple[float, dict[str, np.ndarray]]:
    logs = np.log(now["H"]) + sum(np.log(now[name][:, values]).T for name, values in rows.items())
    share = np.exp(logs - logsumexp(logs, axis=1, keepdims=True))
    found = {"H": share.mean(axis=0)}
    for name, values in rows.items():
        counts = np.stack([share[values == state].sum(axis=0) for state in (0, 1)], axis=1)
        found[name] = counts / counts.sum(axis=1, keepdims=True)
    return float(logsumexp(logs, axis=1).sum()), found


def test_latent_classes_take_the_steps_of_em_by_hand() -> None:
    rows = latent_class_rows()
    now = START
    for steps in (1, 2, 3):
        value, now = latent_class_step(rows, now)
        net = sf.BayesianNetwork(CLASSES, hidden={"H": 2}, start=START, max_iter=steps, tolerance=0.0).fit(rows)
        for name, table in now.items():
            np.testing.assert_allclose(net.table(name).values, table, rtol=1e-12)
        assert net.history_[steps - 1] == pytest.approx(value, rel=1e-13)


def test_extrapolation_reaches_the_same_classes_with_fewer_expectations() -> None:
    rows = latent_class_rows()
    plain, fast = (
        sf.BayesianNetwork(CLASSES, hidden={"H": 2}, start=START, tolerance=1e-9, max_iter=20_000, acceleration=method)
        for method in (None, "squarem")
    )
    plain.fit(rows)
    fast.fit(rows)
    assert plain.converged_
    assert fast.converged_
    assert fast.report_.log_likelihood == pytest.approx(plain.report_.log_likelihood, rel=1e-9)
    np.testing.assert_allclose(fast.table("a").values, plain.table("a").values, atol=1e-5)
    assert fast.n_expectations_ < plain.n_expectations_ / 5
    assert (np.diff(fast.history_) >= -1e-9).all()


def test_naive_bayes_with_unlabelled_rows_beats_none_of_its_neighbours() -> None:
    """Some classes are known, some cells are missing: a generic optimiser finds no better point."""
    rng = np.random.default_rng(4)
    z = rng.integers(2, size=200)
    rows: dict[str, Any] = {name: (rng.random(200) < np.where(z == 1, 0.8, 0.25)).astype(int) for name in "abc"}
    seen = {k: [None if rng.random() < 0.2 else int(v) for v in values] for k, values in rows.items()}
    seen["H"] = [None if rng.random() < 0.6 else int(v) for v in z]
    net = sf.BayesianNetwork([("H", name) for name in "abc"], tolerance=1e-10).fit(seen)

    def value(free: np.ndarray) -> float:
        p = 1 / (1 + np.exp(-free))
        logs = np.log(np.array([1 - p[0], p[0]]))[None] + np.zeros((200, 1))
        for at, name in enumerate("abc"):
            for i, v in enumerate(seen[name]):
                if v is not None:
                    chance = p[1 + 2 * at : 3 + 2 * at]
                    logs[i] += np.log(chance if v else 1 - chance)
        for i, v in enumerate(seen["H"]):
            if v is not None:
                logs[i, 1 - v] = -np.inf
        return float(logsumexp(logs, axis=1).sum())

    here = np.array([net.table("H").values[1], *(net.table(x).values[h, 1] for x in "abc" for h in (0, 1))])
    free = np.log(here / (1 - here))
    assert value(free) == pytest.approx(net.report_.log_likelihood, rel=1e-12)
    best = optimise(lambda x: -value(x), free + 0.1, method="BFGS", options={"gtol": 1e-4, "maxiter": 60})
    assert -best.fun <= net.report_.log_likelihood + 1e-7


# -- Gaussian mixtures -----------------------------------------------------------------------------------------------

MEANS = np.array([[0.5, 0.5, 0.0], [2.0, 1.0, -1.0], [-1.0, 3.0, 1.0]])


def diagonal_step(
    rows: np.ndarray, share: np.ndarray, means: np.ndarray, variances: np.ndarray
) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
    logs = np.log(share) + np.asarray(norm.logpdf(rows[:, None], means, np.sqrt(variances))).sum(axis=2)
    odds = np.exp(logs - logsumexp(logs, axis=1, keepdims=True))
    size = odds.sum(axis=0)
    moved = odds.T @ rows / size[:, None]
    spread = np.stack([(odds[:, k : k + 1] * (rows - moved[k]) ** 2).sum(axis=0) / size[k] for k in range(len(size))])
    return float(logsumexp(logs, axis=1).sum()), size / size.sum(), moved, spread


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_a_diagonal_mixture_takes_the_steps_of_em_by_hand(offset: float) -> None:
    rows = blobs() + offset
    share, means, variances = np.full(3, 1 / 3), MEANS + offset, np.full((3, 3), 2.0)
    start: dict[str, Any] = {"H": share}
    start |= {f"x{j}": (means[:, j : j + 1], variances[:, j]) for j in range(3)}
    for steps in (1, 2, 3):
        value, share, means, variances = diagonal_step(rows - offset, share, means - offset, variances)
        means = means + offset
        net = sf.BayesianNetwork([("H", f"x{j}") for j in range(3)], hidden={"H": 3}, start=start, max_iter=steps)
        net.set_params(tolerance=0.0).fit(frame(rows))
        tight = 1e-11 if offset == 0 else 1e-8
        np.testing.assert_allclose(net.table("H").values, share, rtol=tight)
        for j in range(3):
            np.testing.assert_allclose(net.node(f"x{j}").weights_[:, 0], means[:, j], rtol=tight, atol=tight)
            np.testing.assert_allclose(net.node(f"x{j}").variance_, variances[:, j], rtol=tight)
        assert net.history_[steps - 1] == pytest.approx(value, rel=tight)


def test_a_diagonal_mixture_is_where_scikit_learn_ends() -> None:
    mixture = pytest.importorskip("sklearn.mixture")
    rows = blobs()
    net = sf.BayesianNetwork([("H", f"x{j}") for j in range(3)], hidden={"H": 3}, n_init=5, tolerance=1e-9)
    net.fit(frame(rows))
    other = mixture.GaussianMixture(3, covariance_type="diag", reg_covar=0, tol=1e-12, max_iter=5000, n_init=5)
    other.set_params(random_state=0).fit(rows)
    assert net.report_.log_likelihood == pytest.approx(other.score(rows) * len(rows), rel=1e-9)
    assert len(net.scores_) == 5
    assert max(net.scores_) == pytest.approx(net.report_.log_likelihood, rel=1e-12)


def test_a_full_mixture_is_a_network_with_edges_among_its_columns() -> None:
    mixture = pytest.importorskip("sklearn.mixture")
    rng = np.random.default_rng(0)
    rows = blobs() @ np.array([[1.0, 0.4, 0.0], [0.0, 1.0, -0.5], [0.2, 0.0, 1.0]]) + rng.normal(size=3)
    edges = [("H", f"x{j}") for j in range(3)] + [("x0", "x1"), ("x0", "x2"), ("x1", "x2")]
    net = sf.BayesianNetwork(edges, hidden={"H": 3}, n_init=4, tolerance=1e-8, max_iter=5000).fit(frame(rows))
    other = mixture.GaussianMixture(3, reg_covar=0, tol=1e-12, max_iter=5000, n_init=6, random_state=0).fit(rows)
    assert net.report_.log_likelihood == pytest.approx(other.score(rows) * len(rows), rel=1e-8)
    # The regressions of a component multiply to its normal law.
    order = np.argsort(net.table("H").values)
    theirs = np.argsort(other.weights_)
    np.testing.assert_allclose(net.table("H").values[order], other.weights_[theirs], atol=1e-5)
    for mine, their in zip(order, theirs, strict=True):
        law = net.query(["x0", "x1", "x2"], given={"H": int(mine)})
        np.testing.assert_allclose(law.mean, other.means_[their], atol=1e-4)


def test_a_full_mixture_rests_where_a_step_by_hand_does() -> None:
    """Shares, means and covariances weighted by the odds of each row are those of the regressions they came from."""
    rows = blobs() @ np.array([[1.0, 0.4, 0.0], [0.0, 1.0, -0.5], [0.2, 0.0, 1.0]])
    edges = [("H", f"x{j}") for j in range(3)] + [("x0", "x1"), ("x0", "x2"), ("x1", "x2")]
    net = sf.BayesianNetwork(edges, hidden={"H": 3}, tolerance=1e-10, max_iter=5000).fit(frame(rows))
    share = net.table("H").values
    laws = [net.query(["x0", "x1", "x2"], given={"H": k}) for k in range(3)]
    logs = np.log(share) + np.stack([multivariate_normal(w.mean, w.covariance).logpdf(rows) for w in laws], axis=1)
    assert net.report_.log_likelihood == pytest.approx(logsumexp(logs, axis=1).sum(), rel=1e-11)
    odds = np.exp(logs - logsumexp(logs, axis=1, keepdims=True))
    np.testing.assert_allclose(odds.mean(axis=0), share, atol=1e-7)
    for k, law in enumerate(laws):
        mean = odds[:, k] @ rows / odds[:, k].sum()
        away = rows - mean
        np.testing.assert_allclose(mean, law.mean, atol=1e-6)
        np.testing.assert_allclose((odds[:, k, None] * away).T @ away / odds[:, k].sum(), law.covariance, atol=1e-6)
    # Components that are alike would rest anywhere; these are apart.
    assert min(np.abs(laws[i].mean - laws[j].mean).max() for i, j in ((0, 1), (0, 2), (1, 2))) > 0.5


def test_a_mixture_with_gaps_by_hand() -> None:
    """Missing cells of conditionally independent columns drop out of the densities and keep their expectations."""
    rows = blobs(120, seed=3)
    rows[np.random.default_rng(5).random(rows.shape) < 0.25] = np.nan
    net = sf.BayesianNetwork([("H", f"x{j}") for j in range(3)], hidden={"H": 3}, tolerance=1e-9).fit(frame(rows))
    share = net.table("H").values
    means = np.stack([net.node(f"x{j}").weights_[:, 0] for j in range(3)], axis=1)
    variances = np.stack([net.node(f"x{j}").variance_ for j in range(3)], axis=1)
    terms = np.where(np.isnan(rows[:, None]), 0.0, norm.logpdf(np.nan_to_num(rows)[:, None], means, np.sqrt(variances)))
    logs = np.log(share) + terms.sum(axis=2)
    assert logsumexp(logs, axis=1).sum() == pytest.approx(net.report_.log_likelihood, rel=1e-12)
    odds = np.exp(logs - logsumexp(logs, axis=1, keepdims=True))
    for j in range(3):
        seen = ~np.isnan(rows[:, j])
        size = odds[seen].sum(axis=0)
        moved = odds[seen].T @ rows[seen, j] / size  # The expectation of a missing cell is the mean itself.
        np.testing.assert_allclose(moved, means[:, j], atol=1e-6)


# -- mixtures of regressions -----------------------------------------------------------------------------------------


def regression_rows(n: int = 300) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(8)
    x, z = rng.uniform(-2, 2, n), rng.integers(2, size=n)
    return {"x": x, "y": np.where(z == 1, 1 + 2 * x, -1 - x) + 0.6 * rng.normal(size=n)}


def test_a_mixture_of_regressions_takes_the_steps_of_em_by_hand_and_reaches_the_optimum() -> None:
    """The density of y given x is the sum of pi_k N(y | w_k0 + w_k1 x, v_k)."""
    rows = regression_rows()
    x, y = rows["x"], rows["y"]
    design = np.stack([np.ones_like(x), x], axis=1)
    share, weights, variance = np.array([0.5, 0.5]), np.array([[0.5, 1.0], [-0.5, -0.5]]), np.array([1.0, 1.0])
    start = {"H": share, "y": (weights.copy(), variance.copy()), "x": (np.array([0.0]), 1.0)}
    options: dict[str, Any] = {"hidden": {"H": 2}, "start": start}
    for steps in (1, 2, 3):
        logs = np.log(share) + norm.logpdf(y[:, None], design @ weights.T, np.sqrt(variance))
        odds = np.exp(logs - logsumexp(logs, axis=1, keepdims=True))
        share = odds.mean(axis=0)
        for k in (0, 1):
            w = odds[:, k]
            weights[k] = np.linalg.solve(design.T @ (w[:, None] * design), design.T @ (w * y))
            variance[k] = w @ (y - design @ weights[k]) ** 2 / w.sum()
        net = sf.BayesianNetwork([("H", "y"), ("x", "y")], **options, max_iter=steps, tolerance=0.0).fit(rows)
        np.testing.assert_allclose(net.node("y").weights_, weights, rtol=1e-10)
        np.testing.assert_allclose(net.node("y").variance_, variance, rtol=1e-10)
        np.testing.assert_allclose(net.table("H").values, share, rtol=1e-11)
    net = sf.BayesianNetwork([("H", "y"), ("x", "y")], hidden={"H": 2}, n_init=6, tolerance=1e-9).fit(rows)

    def value(free: np.ndarray) -> float:
        p = 1 / (1 + math.exp(-free[0]))
        at = design @ free[1:5].reshape(2, 2).T
        logs = np.log([p, 1 - p]) + norm.logpdf(y[:, None], at, np.exp(0.5 * free[5:]))
        return float(logsumexp(logs, axis=1).sum())

    node = net.node("y")
    p = float(net.table("H").values[0])
    here = np.concatenate([[math.log(p / (1 - p))], node.weights_.ravel(), np.log(node.variance_)])
    alone = norm.logpdf(x, x.mean(), x.std()).sum()
    assert value(here) + alone == pytest.approx(net.report_.log_likelihood, rel=1e-12)
    best = optimise(lambda free: -value(free), here + 0.05, method="BFGS")
    assert -best.fun <= value(here) + 1e-8
    slopes = np.sort(node.weights_[:, 1])
    np.testing.assert_allclose(slopes, [-1.0, 2.0], atol=0.2)


# -- starts and edges ------------------------------------------------------------------------------------------------


def test_starts_are_apart_and_repeat_to_the_bit() -> None:
    rows = frame(blobs())

    def fit(seed: int) -> sf.BayesianNetwork:
        net = sf.BayesianNetwork([("H", f"x{j}") for j in range(3)], hidden={"H": 3}, n_init=4, random_state=seed)
        return net.fit(rows)

    one, again = fit(1), fit(1)
    assert one.scores_ == again.scores_
    assert one.node("x0").weights_.tobytes() == again.node("x0").weights_.tobytes()
    assert np.ptp(one.node("x1").weights_) > 2
    assert fit(2).report_.log_likelihood == pytest.approx(one.report_.log_likelihood, rel=1e-6)


def test_a_state_that_shrinks_onto_one_row_stops_at_the_floor() -> None:
    rows = {"x": np.array([0.0, 0.1, -0.1, 0.2, -0.2, 0.05, 50.0])}
    start = {"H": [0.5, 0.5], "x": ([[0.0], [50.0]], [1.0, 1.0])}
    net = sf.BayesianNetwork([("H", "x")], hidden={"H": 2}, start=start, variance_floor=1e-5).fit(rows)
    least = 1e-5 * rows["x"].var()
    assert net.node("x").variance_[1] == pytest.approx(least, rel=1e-9)
    assert net.report_.certificate.exists is False
    assert net.report_.certificate.directions == ("variance of 'x' -> 0 in 1 of 2 joint states",)
    assert net.report_.certificate.moment_gap < 1e-5
    assert any("held at" in text for text in net.report_.warnings)
    expected = norm.logpdf(50.0, 50.0, math.sqrt(least)) + math.log(1 / 7)
    inside = rows["x"][:-1]
    expected += (norm.logpdf(inside, inside.mean(), inside.std()) + math.log(6 / 7)).sum()
    assert net.report_.log_likelihood == pytest.approx(expected, rel=1e-9)
    with pytest.raises(sf.EstimateError, match="variance of 'x' shrinks to 0"):
        sf.BayesianNetwork([("H", "x")], hidden={"H": 2}, start=start, variance_floor=0).fit(rows)


def test_a_prior_keeps_the_variances_of_small_states_away_from_zero() -> None:
    rows = {"x": np.array([0.0, 0.1, -0.1, 0.2, -0.2, 0.05, 50.0])}
    start = {"H": [0.5, 0.5], "x": ([[0.0], [50.0]], [1.0, 1.0])}
    prior: dict[str, Any] = {"x": sf.LinearGaussianPrior(alpha=2.0, beta=1.0, on="all"), "H": 2.0}
    net = sf.BayesianNetwork([("H", "x")], hidden={"H": 2}, start=start, prior=prior, estimate="map", tolerance=1e-10)
    net.fit(rows)
    assert net.report_.certificate.exists is None

    def value(free: np.ndarray) -> float:
        p, w, v = 1 / (1 + math.exp(-free[0])), free[1:3], np.exp(free[3:])
        logs = np.log([p, 1 - p]) + norm.logpdf(rows["x"][:, None], w, np.sqrt(v))
        law = prior["x"].log_prob((w[:, None], v)).sum() + xlogy(1.0, p) + xlogy(1.0, 1 - p)
        return float(logsumexp(logs, axis=1).sum() + law)

    p = float(net.table("H").values[0])
    here = np.array([math.log(p / (1 - p)), *net.node("x").weights_[:, 0], *np.log(net.node("x").variance_)])
    best = optimise(lambda free: -value(free), here + 0.01, method="BFGS", options={"gtol": 1e-7})
    assert -best.fun <= value(here) + 1e-8
    np.testing.assert_allclose(best.x, here, atol=1e-4)


def test_extrapolation_goes_on_when_a_variance_is_held_at_its_floor() -> None:
    """Seven rows, two hidden nodes: variances of two nodes go to 0, and the others must not go on by plain steps."""
    nan = np.nan
    rows = {
        "v0": [-0.1777, nan, -1.5605, nan, nan, 1.4433, nan],
        "v2": ["s0", "s0", "s0", "s0", "s2", "s0", "s1"],
        "v3": [0.5001, -0.6596, -1.6043, -1.6302, -0.2084, 0.1607, -0.7034],
        "v5": [0.9985, 0.9066, -1.0705, 0.9939, nan, nan, 0.7234],
    }
    structure = {"v0": [], "v1": [], "v2": ["v1"], "v3": ["v0", "v2"], "v4": [], "v5": ["v4", "v0"]}
    net = sf.BayesianNetwork(structure, hidden={"v1": 3, "v4": 2}, acceleration="squarem", random_state=0).fit(rows)
    assert net.converged_
    assert net.n_iter_ < 100
    assert any("held at" in text for text in net.report_.warnings)
    assert (np.diff(net.history_) >= -1e-9).all()


def test_one_hidden_number_is_a_factor_analysis() -> None:
    """With a hidden real parent the columns are normal with covariance a a' var + diag: a generic optimum of it."""
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(200, 1)) * [1.0, 2.0, -1.0, 0.5] + rng.normal(size=(200, 4)) + [3.0, 0.0, 1.0, 5.0]
    net = sf.BayesianNetwork([("Z", f"x{j}") for j in range(4)], hidden={"Z": "real"}, tolerance=1e-8, max_iter=20_000)
    net.set_params(acceleration="squarem").fit(frame(rows))
    weights = np.stack([net.node(f"x{j}").weights_ for j in range(4)])
    noise = np.array([net.node(f"x{j}").variance_ for j in range(4)])
    root = net.node("Z")
    cover = np.outer(weights[:, 1], weights[:, 1]) * root.variance_ + np.diag(noise)
    law = multivariate_normal(weights[:, 0] + weights[:, 1] * root.weights_[0], cover)
    assert law.logpdf(rows).sum() == pytest.approx(net.report_.log_likelihood, rel=1e-12)
    sample = np.cov(rows.T, bias=True)

    def value(free: np.ndarray) -> float:
        inner = np.outer(free[:4], free[:4]) + np.diag(np.exp(free[4:]))
        return float(-100 * (np.linalg.slogdet(2 * math.pi * inner)[1] + np.trace(np.linalg.solve(inner, sample))))

    here = np.concatenate([weights[:, 1] * math.sqrt(root.variance_), np.log(noise)])
    best = optimise(lambda free: -value(free), here + 0.05, method="BFGS")
    assert -best.fun <= net.report_.log_likelihood + 1e-6
    assert np.isinf(net.node("x0").standard_errors_).all()  # Scale and sign of Z are free.
