"""Columns that nearly say the same as others, or as a constant: what is claimed about the maximum is true there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import expit, log_expit, logsumexp

import suffice as sf

Floats = NDArray[np.float64]


def crossing(overlap: float) -> tuple[Floats, Floats]:
    """A time and a label that turns from 0 to 1, but for two rows `overlap` apart."""
    rng = np.random.default_rng(5)
    early, late = rng.integers(0, 50_000, 100), rng.integers(50_000, 100_000, 100)
    z = np.r_[early, late, 50_000 + overlap, 50_000].astype(np.float64)
    return z, np.r_[np.zeros(100), np.ones(100), 0.0, 1.0]


def best_of_binary(z: Floats, y: Floats) -> tuple[float, float, float]:
    """The largest log-likelihood of a logit with one column, its slope, and the standard error of the slope."""
    unit = (z - 50_000.0) / 25.0

    def loss(beta: Floats) -> float:
        eta = beta[0] + beta[1] * unit
        return -float(np.where(y > 0.0, log_expit(eta), log_expit(-eta)).sum())

    found = minimize(loss, np.zeros(2), method="Nelder-Mead", options={"xatol": 1e-10, "fatol": 1e-13})
    p = expit(found.x[0] + found.x[1] * unit)
    X = np.column_stack([np.ones_like(unit), unit])
    errors = np.sqrt(np.diag(np.linalg.inv((X * (p * (1.0 - p))[:, None]).T @ X)))
    return -float(found.fun), float(found.x[1]) / 25.0, float(errors[1]) / 25.0


@pytest.mark.parametrize("overlap", [20.0, 5.0])
@pytest.mark.filterwarnings("ignore::suffice.ConvergenceWarning")
def test_a_fit_that_has_not_arrived_does_not_say_so(overlap: float) -> None:
    """The information is definite at the start, and no more at the result; sparse columns have no exact root."""
    z, y = crossing(overlap)
    best, _, _ = best_of_binary(z, y)
    model = sf.GLM("binomial").fit(sparse.csr_array((1.7e9 + z)[:, None]), y)
    assert (best - model.log_likelihood_) / len(y) > 1e-4
    assert not model.converged_
    assert model.stop_reason_ == "flat"
    assert model.report_.certificate.value_gap is None


def test_a_flat_likelihood_warns_once() -> None:
    z, y = crossing(20.0)
    with pytest.warns(sf.ConvergenceWarning, match="flat") as told:
        sf.GLM("binomial").fit(sparse.csr_array((1.7e9 + z)[:, None]), y)
    assert len(told) == 1


@pytest.mark.parametrize("overlap", [20.0, 5.0])
@pytest.mark.parametrize("solver", ["auto", "irls"])
def test_seconds_since_1970_fit_as_well_as_seconds_from_the_middle(overlap: float, solver: Any) -> None:
    z, y = crossing(overlap)
    best, slope, error = best_of_binary(z, y)
    model = sf.GLM("binomial", solver=solver).fit((1.7e9 + z)[:, None], y)
    assert model.converged_
    assert model.report_.certificate.exists
    assert abs(best - model.log_likelihood_) / len(y) < 1e-9
    assert model.report_.certificate.value_gap is not None
    assert model.report_.certificate.value_gap < 1e-9
    np.testing.assert_allclose(model.coefficients_, [slope], rtol=1e-4)
    np.testing.assert_allclose(model.standard_errors_[1], error, rtol=1e-4)


@pytest.mark.parametrize("family", ["gamma", "negative_binomial"])
def test_dispersion_and_size_are_those_of_the_coefficients_found(family: Any) -> None:
    rng = np.random.default_rng(3)
    z = 1e8 + rng.normal(size=500)
    mean = np.exp(0.5 + 0.8 * (z - 1e8))
    y = rng.gamma(2.0, mean) if family == "gamma" else rng.poisson(rng.gamma(1.5, mean))
    prior = sf.Normal(variance=10.0)
    model = sf.GLM(family, link="log", prior=prior).fit(z[:, None], y)
    plain = sf.GLM(family, link="log", prior=prior).fit((z - 1e8)[:, None], y)
    assert abs(plain.log_likelihood_ - model.log_likelihood_) / len(y) < 1e-7
    np.testing.assert_allclose(model.standard_errors_[1], plain.standard_errors_[1], rtol=1e-5)


# -- labels ------------------------------------------------------------------------------------------------------------


def labelled(offset: float = 0.0) -> tuple[Floats, Floats, NDArray[np.intp]]:
    """A column, one that differs from it by 3e-8 of another (or the other plus an offset), and labels by the other."""
    rng = np.random.default_rng(3)
    a, d = rng.normal(size=500), rng.normal(size=500)
    b = offset + d if offset else a + 3e-8 * d
    other = b - offset if offset else (b - a) / 3e-8
    noise = np.random.default_rng(1).gumbel(size=(500, 3))
    y = (np.column_stack([other, 0.0 * other, -other]) + noise).argmax(axis=1)
    return np.column_stack([a, b]), np.column_stack([a, other]), y


def best_of_labels(family: str, X: Floats, y: NDArray[np.intp]) -> float:
    """The largest log-likelihood by quasi-Newton steps on columns that are far from collinear."""
    rows = np.arange(len(y))

    def softmax(beta: Floats) -> float:
        eta = np.column_stack([np.ones(len(X)), X]) @ np.column_stack([beta.reshape(3, 2), np.zeros(3)])
        return float((logsumexp(eta, axis=1) - eta[rows, y]).sum())

    def ordered(beta: Floats) -> float:
        edges = np.r_[-np.inf, beta[0], beta[0] + np.exp(beta[1]), np.inf]
        eta = X @ beta[2:]
        return -float(np.log(expit(edges[y + 1] - eta) - expit(edges[y] - eta)).sum())

    loss, size = (softmax, 6) if family == "multinomial" else (ordered, 4)
    return -float(minimize(loss, np.zeros(size), method="BFGS").fun)


@pytest.mark.parametrize("family", ["multinomial", "ordinal"])
@pytest.mark.parametrize("offset", [0.0, 1e8])
def test_labels_find_what_only_a_small_difference_of_columns_tells(family: Any, offset: float) -> None:
    X, turned, y = labelled(offset)
    best = best_of_labels(family, turned, y)
    model = sf.GLM(family).fit(X, y)
    certificate = model.report_.certificate
    assert model.converged_
    assert certificate.exists
    assert abs(best - model.log_likelihood_) / len(y) < 1e-7
    assert certificate.value_gap is not None
    assert certificate.value_gap < 1e-7
    # The law of the labels is that of the other columns, and so are the errors of what both have.
    plain = sf.GLM(family).fit(turned, y)
    shrink = 1.0 if offset else 3e-8
    np.testing.assert_allclose(model.standard_errors_[-1] * shrink, plain.standard_errors_[-1], rtol=1e-4)


def test_nodes_of_networks_do_as_well() -> None:
    X, turned, y = labelled(1e8)
    labels = [f"label {at}" for at in y]
    table, shifted = {"z": X[:, 1], "y": labels}, {"z": turned[:, 1], "y": labels}
    node = {"y": sf.GLM("multinomial")}
    model = sf.BayesianNetwork([("z", "y")], nodes=node).fit(table)
    assert model.converged_
    own = sf.GLM("multinomial").fit(turned[:, 1:], y).log_likelihood_
    z = X[:, 1]
    best = own - 0.5 * len(z) * (np.log(2.0 * np.pi * z.var()) + 1.0)
    assert abs(best - model.score_samples(table).sum()) / len(y) < 1e-7
    plain = sf.BayesianNetwork([("z", "y")], nodes=node).fit(shifted)
    assert abs(plain.score_samples(shifted).sum() - model.score_samples(table).sum()) / len(y) < 1e-7


# -- numbers at the ends of double precision ---------------------------------------------------------------------------


def small() -> tuple[np.random.Generator, Floats]:
    rng = np.random.default_rng(0)
    return rng, rng.normal(size=(30, 2))


def test_squares_that_are_no_floats_are_refused_with_the_value() -> None:
    rng, X = small()
    with pytest.raises(sf.EstimateError, match=r"value 2\.\d+e\+200"):
        sf.GLM().fit(X, X[:, 0] / np.abs(X[:, 0]).max() * 2.5e200)
    with pytest.raises(sf.EstimateError, match=r"value [0-9.]+e\+154"):
        sf.GLM().fit(X, (3.0 + rng.normal(size=(30, 2))) * 1e154)


def test_a_response_of_zeros_with_a_log_link_is_a_perfect_fit() -> None:
    _, X = small()
    with pytest.raises(sf.EstimateError, match="perfect"):
        sf.GLM(link="log").fit(X, np.zeros(30))


def test_the_shape_of_gamma_responses_far_from_their_means() -> None:
    """``log s - psi(s)`` is ``1 / s`` for small s, so that the dispersion is half the mean deviance."""
    rng, X = small()
    y, offset = rng.gamma(2.0, 1.0, 30), np.zeros(30)
    offset[3] = 1e30
    model = sf.GLM("gamma", dispersion="ml").fit(X, y, offset=offset)
    np.testing.assert_allclose(model.dispersion_, 1e30 * y[3] / 30.0, rtol=1e-9)
    with pytest.raises(sf.EstimateError, match="Pearson's statistic is inf"):
        sf.GLM("gamma").fit(X, y, offset=np.full(30, 1e154))


@pytest.mark.parametrize("family", ["binomial", "poisson", "multinomial", "ordinal"])
def test_weights_that_are_nearly_no_floats_warn_of_nothing(family: Any) -> None:
    rng, X = small()
    sf.GLM(family).fit(X, (rng.random(30) < 0.5).astype(np.float64), sample_weight=np.full(30, 1e-320))


def test_a_prior_whose_rate_is_no_float_is_refused() -> None:
    rng, X = small()
    with pytest.raises(sf.OptionError, match="is 1e-320"):
        sf.GLM("binomial", prior=sf.Laplace(scale=1e-320)).fit(X, (rng.random(30) < 0.5).astype(np.float64))


@pytest.mark.parametrize(("link", "offset"), [("sqrt", 1e100), ("identity", 1e200)])
@pytest.mark.filterwarnings("ignore::suffice.ConvergenceWarning")
def test_counts_with_a_huge_offset_leak_no_warnings_of_overflow(link: Any, offset: float) -> None:
    rng, X = small()
    model = sf.GLM("negative_binomial", link=link).fit(X, rng.poisson(3.0, 30), offset=np.full(30, offset))
    assert not model.converged_


def test_a_start_far_outside_is_refused() -> None:
    rng, X = small()
    with pytest.raises(sf.EstimateError, match="start="):
        sf.GLM("inverse_gaussian", link="inverse", start=[1e200] * 3).fit(X, rng.gamma(2.0, 1.0, 30))
