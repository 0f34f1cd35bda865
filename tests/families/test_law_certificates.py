"""The certificate of a law: exact where the optimum is a formula, and blind to no change of the parameters.

The oracle is the log-likelihood by `scipy.stats`, at the parameters and at the maximum that a generic optimiser finds.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import optimize
from scipy import stats as scipy_stats

import suffice as sf
from moved_parameters import certificate_of, with_parameters

#: Their annotations say `float` for arrays too.
stats: Any = scipy_stats
minimize: Any = optimize.minimize

RNG = np.random.default_rng(11)
REAL = RNG.gamma(2.0, 1.5, 40)
COUNTS = RNG.poisson(3.0, 40)
SHARES = RNG.beta(2.0, 3.0, 40)
TRIALS = RNG.random(40) < 0.3
STATES = RNG.integers(0, 3, 40)
ROWS = RNG.normal(size=(40, 2)) @ np.array([[1.0, 0.4], [0.0, 0.5]]) + 3

LogLikelihood = Callable[[dict[str, Any], Any], float]

#: Law, rows, and the log-likelihood by SciPy.
CLOSED: dict[str, tuple[Any, Any, LogLikelihood]] = {
    "exponential": (sf.Exponential(), REAL, lambda p, x: stats.expon.logpdf(x, scale=1 / p["rate"]).sum()),
    "poisson": (sf.Poisson(), COUNTS, lambda p, x: stats.poisson.logpmf(x, p["rate"]).sum()),
    "geometric": (sf.Geometric(), COUNTS, lambda p, x: stats.nbinom.logpmf(x, 1, p["probability"]).sum()),
    "negative binomial": (
        sf.NegativeBinomial(size=2.5),
        COUNTS,
        lambda p, x: stats.nbinom.logpmf(x, 2.5, p["probability"]).sum(),
    ),
    "bernoulli": (sf.Bernoulli(), TRIALS, lambda p, x: stats.bernoulli.logpmf(x.astype(int), p["probability"]).sum()),
    "categorical": (sf.Categorical(), STATES, lambda p, x: float(np.log(p["probabilities"])[x].sum())),
    "normal": (sf.Normal(), REAL, lambda p, x: stats.norm.logpdf(x, p["mean"], math.sqrt(p["variance"])).sum()),
    "normal, known mean": (
        sf.Normal(mean=3.0),
        REAL,
        lambda p, x: stats.norm.logpdf(x, p["mean"], math.sqrt(p["variance"])).sum(),
    ),
    "normal, known variance": (
        sf.Normal(variance=3.0),
        REAL,
        lambda p, x: stats.norm.logpdf(x, p["mean"], math.sqrt(p["variance"])).sum(),
    ),
    "gamma, known shape": (
        sf.Gamma(shape=1.5),
        REAL,
        lambda p, x: stats.gamma.logpdf(x, p["shape"], scale=1 / p["rate"]).sum(),
    ),
    "multivariate normal": (
        sf.MultivariateNormal(),
        ROWS,
        lambda p, x: stats.multivariate_normal.logpdf(x, p["mean"], p["covariance"]).sum(),
    ),
}
ITERATED: dict[str, tuple[Any, Any, LogLikelihood]] = {
    "gamma": (sf.Gamma(), REAL, lambda p, x: stats.gamma.logpdf(x, p["shape"], scale=1 / p["rate"]).sum()),
    "inverse gamma": (
        sf.InverseGamma(),
        REAL,
        lambda p, x: stats.invgamma.logpdf(x, p["shape"], scale=p["scale"]).sum(),
    ),
    "beta": (sf.Beta(), SHARES, lambda p, x: stats.beta.logpdf(x, p["alpha"], p["beta"]).sum()),
}


def tampered(law: Any, factor: float) -> dict[str, Any]:
    """Parameters moved by a factor: those that are learned, inside their range."""
    moved = {}
    for name, value in law.parameters_.items():
        if law._options.get(name) is not None:
            moved[name] = value
        elif name == "probabilities":
            weights = np.asarray(value) * factor ** np.arange(len(value))
            moved[name] = weights / weights.sum()
        elif name == "probability":
            odds = value / (1 - value) * factor
            moved[name] = odds / (1 + odds)
        else:
            moved[name] = np.asarray(value) * factor if np.ndim(value) else value * factor
    return moved


@pytest.mark.parametrize("name", CLOSED)
@pytest.mark.parametrize("factor", [1 + 1e-9, 1.001, 0.8, 3.0, 100.0, 1e-6])
def test_the_value_gap_of_a_closed_form_is_what_was_lost(name: str, factor: float) -> None:
    law, rows, log_likelihood = CLOSED[name]
    fitted = law.clone().fit(rows)
    honest = fitted.report_.certificate
    assert honest.bound
    assert honest.exists
    assert honest.value_gap is not None
    assert honest.value_gap < 1e-25
    best = log_likelihood(fitted.parameters_, rows)
    fitted = with_parameters(fitted, tampered(fitted, factor))
    certificate = certificate_of(fitted)
    lost = (best - log_likelihood(fitted.parameters_, rows)) / len(rows)
    assert certificate.bound
    assert certificate.moment_gap > 1e-10
    # What SciPy's sums of logarithms can tell.
    assert certificate.value_gap == pytest.approx(lost, rel=1e-8, abs=1e-13)


@pytest.mark.parametrize("name", ITERATED)
@pytest.mark.parametrize("factor", [1.001, 0.8, 3.0, 100.0, 1e-6])
def test_the_certificate_of_an_iterated_law_sees_what_was_lost(name: str, factor: float) -> None:
    law, rows, log_likelihood = ITERATED[name]
    fitted = law.clone().fit(rows)
    names = list(fitted.parameters_)
    start = np.log(list(fitted.parameters_.values()))
    found = minimize(
        lambda z: -log_likelihood(dict(zip(names, np.exp(z), strict=True)), rows),
        start + 0.1,
        method="Nelder-Mead",
        options={"xatol": 1e-10, "fatol": 1e-12},
    )
    assert fitted.report_.certificate.value_gap < 1e-15
    for moved in names:
        fitted = with_parameters(fitted, fitted.parameters_ | {moved: fitted.parameters_[moved] * factor})
        certificate = certificate_of(fitted)
        lost = (-found.fun - log_likelihood(fitted.parameters_, rows)) / len(rows)
        assert certificate.moment_gap > 1e-5
        if certificate.bound:
            assert certificate.value_gap >= lost * (1 - 1e-9)
            assert factor < 0.5 or certificate.value_gap < 50 * lost
        fitted.fit(rows)
    assert fitted.report_.certificate.bound == (name != "beta")


#: Law with a prior, rows, log prior of its parameters by SciPy.
MODES: dict[str, tuple[Any, Any, LogLikelihood, Callable[[dict[str, Any]], float]]] = {
    "poisson": (
        sf.Poisson(prior=sf.Gamma(3, 2), estimate="map"),
        *CLOSED["poisson"][1:],
        lambda p: stats.gamma.logpdf(p["rate"], 3, scale=0.5),
    ),
    "exponential": (
        sf.Exponential(prior=sf.Gamma(3, 2), estimate="map"),
        *CLOSED["exponential"][1:],
        lambda p: stats.gamma.logpdf(p["rate"], 3, scale=0.5),
    ),
    "bernoulli": (
        sf.Bernoulli(prior=sf.Beta(2, 5), estimate="map"),
        *CLOSED["bernoulli"][1:],
        lambda p: stats.beta.logpdf(p["probability"], 2, 5),
    ),
    "categorical": (
        sf.Categorical(prior=sf.Dirichlet([2, 3, 4]), estimate="map"),
        *CLOSED["categorical"][1:],
        lambda p: stats.dirichlet.logpdf(p["probabilities"], [2, 3, 4]),
    ),
    "normal": (
        sf.Normal(prior=sf.NormalInverseGamma(3, 2, 1.5, 0.5), estimate="map"),
        *CLOSED["normal"][1:],
        lambda p: (
            stats.invgamma.logpdf(p["variance"], 3, scale=2)
            + stats.norm.logpdf(p["mean"], 0.5, math.sqrt(p["variance"] / 1.5))
        ),
    ),
    "multivariate normal": (
        sf.MultivariateNormal(prior=sf.NormalWishart([0, 0], 1.5, 5, 2 * np.eye(2)), estimate="map"),
        *CLOSED["multivariate normal"][1:],
        lambda p: (
            stats.wishart.logpdf(np.linalg.inv(p["covariance"]), 5, np.eye(2) / 2)
            + stats.multivariate_normal.logpdf(p["mean"], [0, 0], p["covariance"] / 1.5)
        ),
    ),
}


@pytest.mark.parametrize("name", MODES)
@pytest.mark.parametrize("factor", [1.001, 0.8, 1.5])
def test_the_value_gap_of_a_posterior_mode_is_what_was_lost(name: str, factor: float) -> None:
    law, rows, log_likelihood, log_prior = MODES[name]
    fitted = law.clone().fit(rows)
    certificate = fitted.report_.certificate
    assert certificate.bound
    assert certificate.value_gap is not None
    assert certificate.value_gap < 1e-25
    assert "at most" in str(fitted.report_)
    best = log_likelihood(fitted.parameters_, rows) + log_prior(fitted.parameters_)
    fitted = with_parameters(fitted, tampered(fitted, factor))
    certificate = certificate_of(fitted)
    lost = best - log_likelihood(fitted.parameters_, rows) - log_prior(fitted.parameters_)
    assert certificate.moment_gap > 1e-4
    assert certificate.bound
    assert certificate.value_gap == pytest.approx(lost / len(rows), rel=1e-7, abs=1e-13)


def test_a_posterior_mean_says_that_it_is_no_optimum() -> None:
    report = sf.Poisson(prior=sf.Gamma(3, 2)).fit(COUNTS).report_
    assert report.certificate.value_gap is None
    assert not report.certificate.bound
    assert "the mean of the posterior is a formula that maximises nothing" in str(report)
    assert "unknown" not in str(report)


def test_nearly_dependent_columns_loosen_the_bound() -> None:
    narrow = np.column_stack([ROWS[:, 0], ROWS[:, 0] + 1e-6 * ROWS[:, 1]])
    bound = sf.MultivariateNormal().fit(narrow).report_.certificate.value_gap
    usual = sf.MultivariateNormal().fit(ROWS).report_.certificate.value_gap
    assert usual is not None
    assert bound is not None
    assert bound > 1e10 * usual
