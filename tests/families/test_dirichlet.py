"""The Dirichlet law against scipy.stats, quadrature on the triangle and a generic maximiser."""

import math
import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats
from scipy.special import expit

import suffice as sf
from families.law_oracles import Grid, check_entropy_and_divergence, check_exponential_family, maximise, weighted

X = np.random.default_rng(3).dirichlet([2.0, 1.0, 4.0], size=12)
W = np.array([1, 2, 1, 3, 1, 1, 2, 1, 1, 4, 2, 1])
TABLE = {"a": X[:, 0], "b": X[:, 1], "c": X[:, 2]}


def triangle(n: int = 241) -> Grid:
    """The trapezoidal rule in two log odds: x = (s, (1 - s) t, (1 - s)(1 - t)), at points (n^2, 3)."""
    z = Grid.real(-30.0, 25.0, n)
    u, v = (grid.ravel() for grid in np.meshgrid(z.x, z.x, indexing="ij"))
    s, t = expit(u), expit(v)
    x = np.stack([s, expit(-u) * t, expit(-u) * expit(-v)], axis=1)
    return Grid(x, z.w[0] ** 2 * s * expit(-u) ** 2 * t * expit(-v))


@pytest.mark.parametrize("alpha", [[2.0, 3.0, 4.0], [0.3, 0.7], [1.0, 1.0, 1.0], [40.0, 0.5, 7.0, 1.0]])
def test_evaluation_equals_scipy(alpha: list[float]) -> None:
    law, oracle = sf.Dirichlet(alpha), stats.dirichlet(alpha)
    x = np.random.default_rng(0).dirichlet(np.ones(len(alpha)), size=20)
    np.testing.assert_allclose(law.log_prob(x), [oracle.logpdf(row) for row in x], rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(law.mean(), oracle.mean(), rtol=1e-14)
    np.testing.assert_allclose(law.variance(), oracle.var(), rtol=1e-13)
    assert law.entropy() == pytest.approx(float(oracle.entropy()), rel=1e-11, abs=1e-12)
    assert law.log_prob(x[0]).shape == ()


def test_off_the_simplex_and_on_its_edge() -> None:
    law = sf.Dirichlet([2.0, 1.0, 0.5])
    off = [[0.5, 0.4, 0.2], [1.2, -0.1, -0.1], [np.nan, 0.5, 0.5], [np.inf, 0, 0]]
    np.testing.assert_array_equal(law.log_prob(off), np.full(4, -np.inf))
    # x1 = 0 has no mass, x2 = 0 does not matter (alpha = 1), x3 = 0 is unbounded, and no mass wins over unbounded.
    edge = law.log_prob([[0.0, 0.5, 0.5], [0.5, 0.0, 0.5], [0.5, 0.5, 0.0], [0.0, 1.0, 0.0]])
    assert edge.tolist()[0] == -math.inf
    assert edge[1] == pytest.approx(stats.dirichlet([2, 1, 0.5]).logpdf([0.5, 1e-15, 0.5 - 1e-15]), rel=1e-9)
    assert edge.tolist()[2:] == [math.inf, -math.inf]


def test_statistics_maps_and_cumulants() -> None:
    for alpha, radius in (([2.5, 3.5, 1.5], 0.6), ([6.0, 2.0, 3.0], 0.8)):
        directions = [([1.0, 0.0, 0.0], radius), ([0.5, -0.5, 0.3], radius)]
        check_exponential_family(sf.Dirichlet(), np.array(alpha) - 1, triangle(), directions)


def test_expected_statistics_round_trip_for_any_shape() -> None:
    for alpha in ([1e-2] * 4, [0.01, 1.0, 100.0, 1e4], [1e3, 2e3, 3e3], list(np.linspace(0.5, 20, 30))):
        law = sf.Dirichlet(alpha)
        back = sf.Dirichlet().with_mean_parameters(law.mean_parameters_)
        np.testing.assert_allclose(back.alpha_, alpha, rtol=1e-9)
    with pytest.raises(sf.OptionError, match="mean of log x"):
        sf.Dirichlet().with_mean_parameters([-0.5, -0.5, -0.5])


def test_entropy_and_divergence() -> None:
    check_entropy_and_divergence(sf.Dirichlet([2.5, 3.5, 1.5]), sf.Dirichlet([4.0, 1.5, 2.0]), triangle())
    with pytest.raises(sf.OptionError, match="parts"):
        sf.Dirichlet([1, 2]).kl_divergence(sf.Dirichlet([1, 2, 3]))
    with pytest.raises(sf.OptionError, match="one family"):
        sf.Dirichlet([1, 2]).kl_divergence(sf.Beta(1, 2))


@given(st.floats(0.1, 50), st.floats(0.1, 50), st.floats(0.01, 0.99))
def test_two_parts_are_a_beta_law(a: float, b: float, x: float) -> None:
    pair, one = sf.Dirichlet([a, b]), sf.Beta(a, b)
    assert float(pair.log_prob([x, 1 - x])) == pytest.approx(float(one.log_prob(x)), rel=1e-12, abs=1e-12)
    assert pair.entropy() == one.entropy()
    np.testing.assert_array_equal(pair.cumulants(4), one.cumulants(4))
    assert pair.log_evidence([3, 2]) == one.log_evidence([3, 2])
    np.testing.assert_allclose(pair.intervals(0.9)[0], one.intervals(0.9))


def test_samples_are_reproducible_and_follow_the_law() -> None:
    law = sf.Dirichlet([2.0, 0.7, 1.5])
    draws = law.sample(5_000, random_state=0)
    np.testing.assert_array_equal(draws, law.sample(5_000, random_state=0))
    np.testing.assert_allclose(draws.sum(axis=1), 1)
    assert stats.kstest(draws[:, 1], stats.beta(0.7, 3.5).cdf).pvalue > 1e-4


# -- fitting ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weights", [None, W])
def test_maximum_likelihood(weights: np.ndarray | None) -> None:
    rows = X if weights is None else weighted(X, weights)
    law = sf.Dirichlet().fit(TABLE, sample_weight=weights)
    best, value = maximise(lambda z: float(stats.dirichlet(np.exp(z)).logpdf(rows.T).sum()), [0.0, 0.0, 0.0])
    np.testing.assert_allclose(law.alpha_, np.exp(best), rtol=1e-6)
    assert law.report_.log_likelihood == pytest.approx(value, rel=1e-11)
    assert law.report_.certificate.moment_gap < 1e-11
    assert law.report_.certificate.value_gap is not None
    assert law.report_.certificate.value_gap < 1e-20
    assert law.report_.certificate.exists is True
    assert law.converged_
    assert np.all(np.diff(law.history_) > -1e-12)
    assert law.score(TABLE, sample_weight=weights) == pytest.approx(value / len(rows), rel=1e-11)
    assert law.n_params_ == 3


@given(st.lists(st.floats(0.2, 20), min_size=2, max_size=5), st.integers(0, 10**6))
@settings(max_examples=25)
def test_fit_matches_the_observed_logarithms(alpha: list[float], seed: int) -> None:
    x = np.random.default_rng(seed).dirichlet(alpha, size=30) + 1e-12
    x /= x.sum(axis=1, keepdims=True)
    law = sf.Dirichlet().fit(x, columns=[f"x{k}" for k in range(len(alpha))])
    np.testing.assert_allclose(law.mean_parameters_, np.log(x).mean(axis=0), rtol=1e-8, atol=1e-11)


def test_nearly_equal_rows_converge_without_a_warning() -> None:
    rng = np.random.default_rng(0)
    for spread in (1e-3, 1e-5):
        x = np.array([0.2, 0.3, 0.5]) + spread * (rng.random((50, 3)) - 0.5)
        x /= x.sum(axis=1, keepdims=True)
        law = sf.Dirichlet().fit(x, columns=["a", "b", "c"])
        assert law.converged_
        np.testing.assert_allclose(law.mean(), x.mean(axis=0), rtol=spread)


def test_rows_add_up_and_can_be_taken_out() -> None:
    first, second = ({name: column[part] for name, column in TABLE.items()} for part in (slice(5), slice(5, None)))
    whole = sf.Dirichlet().fit(TABLE)
    parts = sf.Dirichlet().fit(first).partial_fit(second)
    np.testing.assert_allclose(parts.alpha_, whole.alpha_, rtol=1e-12)
    np.testing.assert_allclose(parts.unlearn(second).alpha_, sf.Dirichlet().fit(first).alpha_, rtol=1e-11)
    swapped = sf.Dirichlet().fit({name: TABLE[name][::-1] for name in ("c", "a", "b")})
    np.testing.assert_allclose(swapped.alpha_, whole.alpha_[[2, 0, 1]], rtol=1e-11)


def test_equal_rows_have_no_estimate() -> None:
    for row in ([0.2, 0.3, 0.5], [1e-9, 1e-9, 1 - 2e-9]):
        for n in (1, 5):
            with pytest.raises(sf.EstimateError, match="without bound"):
                sf.Dirichlet().fit(np.tile(row, (n, 1)), columns=["a", "b", "c"])


def test_rows_must_be_proportions() -> None:
    with pytest.raises(sf.DataError, match="add up to 2"):
        sf.Dirichlet().fit(2 * X, columns=["a", "b", "c"])
    # One on average, but not in every row.
    uneven = X * np.where(np.arange(len(X)) % 2, 0.9, 1.1)[:, None]
    uneven /= uneven.sum(axis=1).mean()
    with pytest.raises(sf.DataError, match="not all to one"):
        sf.Dirichlet().fit(uneven, columns=["a", "b", "c"])
    # Rounding of the data is no error.
    assert sf.Dirichlet().fit(X.astype(np.float32), columns=["a", "b", "c"]).converged_
    with pytest.raises(sf.DataError, match=r"'b' holds 0.0 \(row 1\)"):
        sf.Dirichlet().fit({"a": [0.5, 1.0], "b": [0.5, 0.0]})
    with pytest.raises(sf.OptionError, match="two or more columns"):
        sf.Dirichlet().fit([[0.5], [0.4]])
    with pytest.raises(sf.DataError, match="Expected 2D array"):
        sf.Dirichlet().fit([0.5, 0.4])
    with pytest.raises(sf.MissingValueError, match="missing value"):
        sf.Dirichlet().fit({"a": [0.5, np.nan], "b": [0.5, 0.3]})


def test_limits_and_checkpoints(tmp_path: Path) -> None:
    with pytest.warns(sf.ConvergenceWarning, match="max_iter"):
        assert not sf.Dirichlet(max_iter=1).fit(TABLE).converged_
    whole = sf.Dirichlet().fit(TABLE)
    with pytest.warns(sf.ConvergenceWarning):
        sf.Dirichlet(max_iter=2, checkpoint=tmp_path / "state.json").fit(TABLE)
    resumed = sf.Dirichlet(checkpoint=tmp_path / "state.json").fit(TABLE)
    np.testing.assert_array_equal(resumed.alpha_, whole.alpha_)
    assert resumed.history_ == whole.history_


# -- as a prior ------------------------------------------------------------------------------------------------------


def test_posterior_adds_counts() -> None:
    np.testing.assert_array_equal(sf.Dirichlet([1, 2, 3]).posterior([5, 0, 2]).alpha_, [6, 2, 5])
    np.testing.assert_array_equal(sf.Dirichlet(2).posterior([5, 0, 2]).alpha_, [7, 2, 4])
    summary = sf.summarize(sf.Categorical(states=["x", "y", "z"]), ["x", "z", "x"])
    np.testing.assert_array_equal(sf.Dirichlet([1, 2, 3]).posterior(summary).alpha_, [3, 2, 4])
    reordered = sf.Categorical(states=["z", "y", "x"])
    np.testing.assert_array_equal(sf.Dirichlet([1, 2, 3]).posterior(summary, likelihood=reordered).alpha_, [2, 2, 5])
    with pytest.raises(sf.OptionError, match="not a conjugate prior of Poisson"):
        sf.Dirichlet([1, 2]).posterior([1, 2], likelihood=sf.Poisson())


@given(st.lists(st.floats(0.05, 30), min_size=2, max_size=4), st.data())
def test_evidence_equals_the_product_of_predictions(alpha: list[float], data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.integers(0, len(alpha) - 1), min_size=1, max_size=10))
    law, chain = sf.Dirichlet(alpha), 0.0
    for row in rows:
        chain += math.log(law.mean()[row])
        law = law.posterior(np.eye(len(alpha))[row])
    counts = np.bincount(rows, minlength=len(alpha))
    assert sf.Dirichlet(alpha).log_evidence(counts) == pytest.approx(chain, rel=1e-11)


def test_evidence_equals_quadrature() -> None:
    alpha, counts = np.array([1.5, 0.8]), np.array([4, 2])
    direct = integrate.quad(
        lambda z: expit(z) ** 5.5 * expit(-z) ** 2.8 / (math.gamma(1.5) * math.gamma(0.8) / math.gamma(2.3)),
        -60,
        60,
        epsabs=0,
        epsrel=1e-12,
        limit=200,
    )[0]
    assert sf.Dirichlet(alpha).log_evidence(counts) == pytest.approx(math.log(direct), rel=1e-10)


def test_mode_is_the_highest_point_inside() -> None:
    alpha = np.array([3.0, 1.5, 2.0])
    best, _ = maximise(
        lambda z: float(stats.dirichlet(alpha).logpdf(np.exp(np.append(z, 0)) / np.exp(np.append(z, 0)).sum())),
        [0.0, 0.0],
    )
    share = np.exp(np.append(best, 0))
    law = sf.Dirichlet(alpha)
    np.testing.assert_allclose(law.mode(), share / share.sum(), rtol=1e-6)
    np.testing.assert_allclose(law.stationarity(law.mode()), 0, atol=1e-15)
    assert np.abs(law.stationarity(law.mean())).max() > 0.1
    np.testing.assert_allclose(sf.Dirichlet([1, 3]).mode(), [0, 1])
    with pytest.raises(sf.EstimateError, match=r"alpha\[0\] is 0.5"):
        sf.Dirichlet([0.5, 3]).mode()
    with pytest.raises(sf.EstimateError, match="flat"):
        sf.Dirichlet([1, 1, 1]).mode()


def test_intervals_hold_the_mass_they_promise() -> None:
    intervals = sf.Dirichlet([2.0, 0.5, 4.0]).intervals(0.8)
    for (low, high), a in zip(intervals, [2.0, 0.5, 4.0], strict=True):
        np.testing.assert_allclose(stats.beta(a, 6.5 - a).cdf([low, high]), [0.1, 0.9], rtol=1e-10)


def test_files_pickles_and_clones(tmp_path: Path) -> None:
    law = sf.Dirichlet().fit(TABLE)
    law.write(tmp_path / "law.json")
    for back in (sf.read(tmp_path / "law.json"), pickle.loads(pickle.dumps(law))):
        np.testing.assert_array_equal(back.alpha_, law.alpha_)
        assert back.history_ == law.history_
    prior = sf.Categorical(states=["a", "b"], prior=sf.Dirichlet(2)).fit(["a"])
    prior.write(tmp_path / "prior.json")
    again = sf.read(tmp_path / "prior.json").partial_fit(["b", "b"])
    np.testing.assert_allclose(again.probabilities_, [3 / 7, 4 / 7])


def test_options_are_checked() -> None:
    for alpha in ([0, 1], [-1, 1], [np.nan, 1], [[1, 2]], "x", []):
        with pytest.raises(sf.OptionError, match="alpha"):
            sf.Dirichlet(alpha)
    for counts in ([1], [1, 2, 3], [-1, 2], [np.nan, 1], "ab"):
        with pytest.raises(sf.OptionError, match="counts"):
            sf.Dirichlet([1, 1]).posterior(counts)
    with pytest.raises(sf.OptionError, match="last axis"):
        sf.Dirichlet([1, 2]).log_prob([0.2, 0.3, 0.5])
    with pytest.raises(sf.OptionError, match="nothing to fit"):
        sf.Dirichlet([1, 2, 3]).fit(TABLE)
    with pytest.raises(sf.NotFittedError, match="alpha"):
        sf.Dirichlet().mean()
