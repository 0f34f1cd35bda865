"""The fit of a generalised linear model against generic optimisers and formulas."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import optimize, special, stats

import suffice as sf

Floats = NDArray[np.float64]

RNG = np.random.default_rng(7)
X = RNG.normal(size=(200, 3))
TRUE = np.array([0.4, 0.6, -0.5, 0.2])
ETA = TRUE[0] + X @ TRUE[1:]
WEIGHTS = RNG.integers(0, 4, 200).astype(float)
DESIGN = np.column_stack([np.ones(200), X])


def responses(family: str, link: str) -> Floats:
    rng = np.random.default_rng(11)
    if family == "binomial":
        return np.asarray(rng.random(200) < special.expit(ETA), dtype=np.float64)
    mean = {"log": np.exp(ETA), "identity": 5 + ETA, "inverse": 1 / (3 + 0.3 * ETA), "sqrt": (3 + 0.3 * ETA) ** 2}
    mu = mean.get(link, 1 / np.sqrt(3 + 0.3 * ETA))
    draw = {
        "gaussian": lambda: mu + 0.3 * rng.normal(size=200),
        "poisson": lambda: rng.poisson(mu).astype(float),
        "gamma": lambda: rng.gamma(4.0, mu / 4.0),
        "inverse_gaussian": lambda: rng.wald(mu, 5.0),
        "negative_binomial": lambda: rng.negative_binomial(2.0, 2.0 / (2.0 + mu)).astype(float),
    }
    return np.asarray(draw[family]())


MEANS: dict[str, Any] = {
    "identity": lambda e: e,
    "log": np.exp,
    "logit": special.expit,
    "probit": stats.norm.cdf,
    "cloglog": lambda e: -np.expm1(-np.exp(e)),
    "inverse": lambda e: 1 / e,
    "inverse_square": lambda e: 1 / np.sqrt(e),
    "sqrt": lambda e: e**2,
}


def log_density(family: str, y: Floats, mu: Floats, phi: float) -> Any:
    with np.errstate(all="ignore"):
        if family == "binomial":
            return stats.bernoulli.logpmf(y, np.clip(mu, 1e-15, 1 - 1e-15))
        if family == "poisson":
            return stats.poisson.logpmf(y, mu)
        if family == "negative_binomial":
            return stats.nbinom.logpmf(y, 2.0, 2.0 / (2.0 + mu))
        if family == "gaussian":
            return stats.norm.logpdf(y, mu, np.sqrt(phi))
        if family == "gamma":
            return stats.gamma.logpdf(y, 1 / phi, scale=mu * phi)
        return stats.invgauss.logpdf(y, mu * phi, scale=1 / phi)


CASES = [
    ("gaussian", "identity"),
    ("gaussian", "log"),
    ("binomial", "logit"),
    ("binomial", "probit"),
    ("binomial", "cloglog"),
    ("poisson", "log"),
    ("poisson", "identity"),
    ("poisson", "sqrt"),
    ("gamma", "inverse"),
    ("gamma", "log"),
    ("gamma", "identity"),
    ("inverse_gaussian", "inverse_square"),
    ("inverse_gaussian", "log"),
    ("negative_binomial", "log"),
]


def option(family: str) -> Any:
    return sf.NegativeBinomial(size=2.0) if family == "negative_binomial" else family


@pytest.mark.parametrize(("family", "link"), CASES)
def test_the_fit_is_the_joint_maximum_of_coefficients_and_dispersion(family: Any, link: Any) -> None:
    y = responses(family, link)
    free = family in ("gaussian", "gamma", "inverse_gaussian")
    dispersion = "ml" if free else None
    model = sf.GLM(option(family), link=link, dispersion=dispersion).fit(X, y, sample_weight=WEIGHTS)  # type: ignore[arg-type]

    def loss(theta: Floats) -> float:
        mu = MEANS[link](DESIGN @ theta[:4])
        phi = np.exp(theta[4]) if free else 1.0
        value = float(WEIGHTS @ log_density(family, y, mu, phi))
        return -value if np.isfinite(value) else 1e10

    at = np.append(model.parameters_, np.log(model.dispersion_)) if free else np.asarray(model.parameters_)
    assert -loss(at) == pytest.approx(model.log_likelihood_, rel=1e-10)
    slope = optimize.approx_fprime(at, loss, 1e-6)
    # The slope in units of the score's standard deviation.
    assert np.abs(slope[:4] * model.standard_errors_).max() < 1e-3
    assert np.abs(slope).max() < 0.05
    for move in 1e-3 * np.vstack([np.eye(len(at)), -np.eye(len(at))]):
        assert loss(at + move) > loss(at)
    assert model.report_.certificate.moment_gap < 2e-8
    assert model.report_.certificate.exists


@pytest.mark.parametrize(("family", "link"), CASES)
def test_standard_errors_are_those_of_the_expected_information(family: Any, link: Any) -> None:
    y = responses(family, link)
    model = sf.GLM(option(family), link=link).fit(X, y)
    eta = DESIGN @ model.parameters_
    mu = MEANS[link](eta)
    slope = (MEANS[link](eta + 1e-6) - MEANS[link](eta - 1e-6)) / 2e-6
    variance = {
        "gaussian": np.ones_like(mu),
        "binomial": mu * (1 - mu),
        "poisson": mu,
        "negative_binomial": mu + mu**2 / 2.0,
        "gamma": mu**2,
        "inverse_gaussian": mu**3,
    }[family]
    phi = np.sum((y - mu) ** 2 / variance) / 196 if family in ("gaussian", "gamma", "inverse_gaussian") else 1.0
    assert model.dispersion_ == pytest.approx(phi, rel=1e-8)
    information = DESIGN.T @ (DESIGN * (slope**2 / variance)[:, None]) / phi
    np.testing.assert_allclose(model.covariance_, np.linalg.inv(information), rtol=1e-6, atol=1e-12)
    assert model.pearson_chi2_ == pytest.approx(np.sum((y - mu) ** 2 / variance), rel=1e-8)


@pytest.mark.parametrize("solver", ["irls", "lbfgs", "cg", "newton-cg", "sgd", "cd"])
@pytest.mark.parametrize("family", ["binomial", "poisson"])
@pytest.mark.parametrize("prior", [None, sf.Normal(variance=0.5)])
def test_all_solvers_find_one_optimum(solver: Any, family: Any, prior: Any) -> None:
    y = responses(family, "log")
    exact = sf.GLM(family, prior=prior, solver="irls", tolerance=1e-12).fit(X, y, sample_weight=WEIGHTS)
    model = sf.GLM(family, prior=prior, solver=solver, max_iter=2000, random_state=0).fit(X, y, sample_weight=WEIGHTS)
    assert model.converged_
    np.testing.assert_allclose(model.parameters_, exact.parameters_, atol=1e-8)
    np.testing.assert_allclose(model.standard_errors_, exact.standard_errors_, rtol=1e-6)


def test_iterates_are_newton_steps_and_weighted_least_squares() -> None:
    y = responses("binomial", "logit")
    model = sf.GLM("binomial", keep_iterates=True).fit(X, y)
    beta: Floats = np.zeros(4)
    np.testing.assert_array_equal(model.history_[0], beta)
    for found in model.history_[1:4]:
        mu = special.expit(DESIGN @ beta)
        w = mu * (1 - mu)
        z = DESIGN @ beta + (y - mu) / w
        beta = np.asarray(np.linalg.solve(DESIGN.T @ (DESIGN * w[:, None]), DESIGN.T @ (w * z)), dtype=np.float64)
        np.testing.assert_allclose(found, beta, rtol=1e-10, atol=1e-12)


def test_a_gaussian_fit_takes_one_step_from_any_start() -> None:
    y = responses("gaussian", "identity")
    model = sf.GLM(start=[3.0, -2.0, 1.0, 8.0], keep_iterates=True).fit(X, y)
    np.testing.assert_allclose(model.history_[1], np.linalg.lstsq(DESIGN, y, rcond=None)[0], rtol=1e-10)


@pytest.mark.parametrize("family", ["gaussian", "binomial", "poisson", "gamma"])
def test_a_weight_repeats_its_row(family: Any) -> None:
    y = responses(family, "log")
    weighted = sf.GLM(family, link="log" if family == "gamma" else None).fit(X, y, sample_weight=WEIGHTS)
    repeat = WEIGHTS.astype(int)
    repeated = sf.GLM(family, link="log" if family == "gamma" else None).fit(
        np.repeat(X, repeat, axis=0), np.repeat(y, repeat)
    )
    np.testing.assert_allclose(weighted.parameters_, repeated.parameters_, rtol=1e-9)
    np.testing.assert_allclose(weighted.standard_errors_, repeated.standard_errors_, rtol=1e-9)
    for figure in ("deviance_", "null_deviance_", "log_likelihood_", "aic_", "bic_", "dispersion_"):
        assert getattr(weighted, figure) == pytest.approx(getattr(repeated, figure), rel=1e-9)


def test_offset_and_exposure() -> None:
    y = responses("poisson", "log")
    exposure = np.linspace(0.5, 2.0, 200)
    model = sf.GLM("poisson").fit(X, y, exposure=exposure)
    same = sf.GLM("poisson").fit(X, y, offset=np.log(exposure))
    np.testing.assert_array_equal(model.parameters_, same.parameters_)
    score = DESIGN.T @ (y - exposure * np.exp(DESIGN @ model.parameters_))
    assert np.abs(score).max() < 1e-7
    with pytest.raises(sf.OptionError, match="log link"):
        sf.GLM("gaussian").fit(X, y, exposure=exposure)


def test_without_intercept() -> None:
    y = responses("poisson", "log")
    model = sf.GLM("poisson", fit_intercept=False).fit(X, y)
    assert model.intercept_ == 0.0
    assert np.abs(X.T @ (y - np.exp(X @ model.coefficients_))).max() < 1e-7


def test_successes_out_of_trials_equal_single_trials() -> None:
    rng = np.random.default_rng(3)
    trials = rng.integers(1, 6, 40)
    x = rng.normal(size=(40, 2))
    hits = rng.binomial(trials, special.expit(x @ [1.0, -0.5]))
    model = sf.GLM("binomial").fit(x, hits, trials=trials)
    pair = sf.GLM("binomial").fit(x, np.column_stack([hits, trials - hits]))
    single_x = np.repeat(x, trials, axis=0)
    single_y = np.concatenate([[1] * h + [0] * (n - h) for h, n in zip(hits, trials, strict=True)])
    single = sf.GLM("binomial").fit(single_x, single_y)
    np.testing.assert_allclose(model.parameters_, single.parameters_, rtol=1e-9)
    np.testing.assert_allclose(pair.standard_errors_, single.standard_errors_, rtol=1e-9)
    expected = float(np.sum(stats.binom.logpmf(hits, trials, model.predict(x))))
    assert model.log_likelihood_ == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("labels", [(0, 1), (-1, 1), (False, True), ("no", "yes")])
def test_codings_of_a_binary_response(labels: tuple[Any, Any]) -> None:
    y = responses("binomial", "logit")
    coded = np.array(labels)[y.astype(int)]
    model = sf.GLM(family=sf.Bernoulli()).fit(X, coded)
    np.testing.assert_allclose(model.parameters_, sf.GLM("binomial").fit(X, y).parameters_, rtol=1e-12)
    assert tuple(model.classes_) == labels
    assert set(model.predict(X, kind="class")) <= set(labels)
    assert model.score(X, coded) == pytest.approx(model.log_likelihood_ / 200, rel=1e-12)


def test_negative_binomial_with_estimated_size() -> None:
    y = responses("negative_binomial", "log")
    model = sf.GLM(family=sf.NegativeBinomial()).fit(X, y)

    def loss(theta: Floats) -> float:
        size, mu = np.exp(theta[4]), np.exp(DESIGN @ theta[:4])
        return -float(np.sum(stats.nbinom.logpmf(y, size, size / (size + mu))))

    best = optimize.minimize(loss, np.append(TRUE, 0.5), method="BFGS", options={"gtol": 1e-6})
    np.testing.assert_allclose(model.parameters_, best.x[:4], atol=1e-5)
    assert model.size_ == pytest.approx(np.exp(best.x[4]), rel=1e-4)
    assert model.log_likelihood_ >= -best.fun - 1e-8
    assert model.n_params_ == 5


def test_multinomial_against_a_generic_optimiser() -> None:
    rng = np.random.default_rng(5)
    labels = np.array(["red", "green", "blue"])[rng.integers(0, 3, 200)]
    labels[X[:, 0] > 0.8] = "red"
    model = sf.GLM(family=sf.Categorical(states=["red", "green", "blue"]), prior=sf.Normal(variance=2.0)).fit(X, labels)
    codes = np.array([["red", "green", "blue"].index(label) for label in labels])

    def loss(theta: Floats) -> float:
        eta = np.column_stack([DESIGN @ theta.reshape(4, 2), np.zeros(200)])
        value = (eta[np.arange(200), codes] - special.logsumexp(eta, axis=1)).sum()
        return float(-value + 0.25 * (theta.reshape(4, 2)[1:] ** 2).sum())

    best = optimize.minimize(loss, np.zeros(8), method="BFGS", options={"gtol": 1e-7})
    np.testing.assert_allclose(model.parameters_, best.x.reshape(4, 2), atol=1e-5)
    assert model.report_.objective == pytest.approx(-best.fun, rel=1e-10)
    eta = np.column_stack([DESIGN @ np.asarray(model.parameters_), np.zeros(200)])
    np.testing.assert_allclose(model.predict_proba(X), special.softmax(eta, axis=1), rtol=1e-10)
    other = sf.GLM(family=sf.Categorical(), reference="blue").fit(X, labels)
    plain = sf.GLM(family=sf.Categorical(), reference="red", solver="lbfgs", max_iter=500).fit(X, labels)
    np.testing.assert_allclose(other.predict_proba(X), plain.predict_proba(X), atol=1e-7)


def test_multivariate_response() -> None:
    rng = np.random.default_rng(6)
    Y = DESIGN @ rng.normal(size=(4, 2)) + rng.multivariate_normal([0, 0], [[1, 0.5], [0.5, 2]], 200)
    model = sf.GLM(family=sf.MultivariateNormal()).fit(X, Y)
    theta = np.linalg.lstsq(DESIGN, Y, rcond=None)[0]
    np.testing.assert_allclose(model.parameters_, theta, rtol=1e-9)
    left = Y - DESIGN @ theta
    sigma = left.T @ left / 200
    np.testing.assert_allclose(model.residual_covariance_, sigma, rtol=1e-10)
    expected = float(np.sum(stats.multivariate_normal.logpdf(left, [0, 0], sigma)))
    assert model.log_likelihood_ == pytest.approx(expected, rel=1e-10)
    cov = np.kron(sigma, np.linalg.inv(DESIGN.T @ DESIGN))
    np.testing.assert_allclose(model.standard_errors_.T.ravel(), np.sqrt(np.diag(cov)), rtol=1e-8)
    np.testing.assert_allclose(sf.GLM().fit(X, Y).parameters_, theta, rtol=1e-9)


def test_a_size_that_runs_to_infinity_has_no_maximum() -> None:
    """Counts with less variance than Poisson counts: the likelihood rises with the size for ever."""
    X = np.random.default_rng(0).normal(size=(200, 2))
    y = 3.0 + (X[:, 0] > 0)
    fitted = sf.GLM("negative_binomial").fit(X, y)
    certificate = fitted.report_.certificate
    assert certificate.exists is False
    assert certificate.directions == ("size -> inf: Poisson counts",)
    assert "runs to infinity" in fitted.report_.warnings[0]
    assert "size -> inf" in str(fitted.report_)
    poisson = sf.GLM("poisson").fit(X, y)
    np.testing.assert_allclose(fitted.parameters_, poisson.parameters_, atol=1e-7)
    mean, size = poisson.predict(X), np.array([1e2, 1e4, 1e6])[:, None]
    values = np.sum(stats.nbinom.logpmf(y, size, size / (size + mean)), axis=1)
    assert (np.diff(values) > 0).all()
    assert poisson.log_likelihood_ > values[-1]
    # Where the mean of some rows vanishes as well, both are named.
    never = np.repeat([0.0, 1.0], [200, 20])[:, None]
    both = sf.GLM("negative_binomial").fit(never, np.r_[y, np.zeros(20)]).report_.certificate
    assert both.exists is False
    assert both.directions[-1] == "size -> inf: Poisson counts"
    assert len(both.directions) == 2
    assert "x0" in both.directions[0]
    spread = sf.GLM("negative_binomial").fit(X, np.random.default_rng(1).negative_binomial(2, 0.3, 200))
    assert spread.report_.certificate.exists is True
    assert spread.report_.certificate.directions == ()


@pytest.mark.parametrize(
    ("options", "extra"),
    [
        ({"family": sf.Exponential()}, 0),
        ({"family": "gamma", "dispersion": 0.5}, 0),
        ({"family": "gaussian", "dispersion": 1.0}, 0),
        ({"family": "gamma"}, 1),
        ({"family": "gaussian", "dispersion": "ml"}, 1),
        ({"family": "poisson", "dispersion": 1.0}, 0),
    ],
)
def test_a_known_dispersion_is_no_parameter(options: Any, extra: int) -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(80, 2))
    y = rng.integers(1, 9, size=80).astype(float)
    fitted = sf.GLM(**options, link="log").fit(X, y)
    assert fitted.n_params_ == 3 + extra
    assert fitted.aic_ == pytest.approx(2 * (3 + extra) - 2 * fitted.log_likelihood_)
    online = sf.GLM(**options, link="log", step_size=1e-4).partial_fit(X, y)
    assert online.n_params_ == 3 + extra


def test_exponential_responses_have_normal_intervals_and_their_own_likelihood() -> None:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(60, 1))
    y = rng.exponential(np.exp(0.3 + 0.5 * X[:, 0]))
    fitted = sf.GLM(sf.Exponential(), link="log").fit(X, y)
    assert fitted.log_likelihood_ == pytest.approx(stats.expon.logpdf(y, scale=fitted.predict(X)).sum())  # type: ignore[union-attr]
    reach = stats.norm.ppf(0.975) * np.asarray(fitted.standard_errors_)
    np.testing.assert_allclose(np.asarray(fitted.intervals())[:, 1] - np.asarray(fitted.parameters_), reach)
    online = sf.GLM(sf.Exponential(), link="log", step_size=1e-3).partial_fit(X, y)
    assert online.log_likelihood_ == pytest.approx(stats.expon.logpdf(y, scale=online.predict(X)).sum())  # type: ignore[union-attr]
