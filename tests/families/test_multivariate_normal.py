"""The normal law of several columns against scipy.stats, Gauss-Hermite sums and a generic maximiser."""

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

import suffice as sf
from families.law_oracles import maximise, weighted
from moved_parameters import with_parameters
from untyped import untyped

Floats = NDArray[np.float64]

MEAN = np.array([1.0, -2.0, 0.5])
COVARIANCE = np.array([[2.0, 0.6, -0.3], [0.6, 1.5, 0.4], [-0.3, 0.4, 0.8]])
LAW = sf.MultivariateNormal(MEAN, COVARIANCE, columns=["a", "b", "c"])
ROWS = np.random.default_rng(3).multivariate_normal(MEAN, COVARIANCE, size=12).round(3)
W = np.array([1, 2, 1, 3, 1, 1, 2, 1, 1, 4, 1, 1])
FRAME = pd.DataFrame(ROWS, columns=["a", "b", "c"])


def hermite(mean: Floats, covariance: Floats, n: int = 12) -> tuple[Floats, Floats]:
    """Nodes (k, d) and weights (k,) that integrate polynomials of degree 2n - 1 against N(mean, covariance) exactly."""
    points, weights = np.polynomial.hermite_e.hermegauss(n)
    z = np.array(list(itertools.product(points, repeat=len(mean))))
    w = np.prod(np.array(list(itertools.product(weights / weights.sum(), repeat=len(mean)))), axis=1)
    return mean + z @ np.linalg.cholesky(covariance).T, w


def test_evaluation_equals_scipy() -> None:
    oracle = stats.multivariate_normal(MEAN, COVARIANCE)
    np.testing.assert_allclose(LAW.log_prob(ROWS), oracle.logpdf(ROWS), rtol=1e-13)
    assert LAW.log_prob(ROWS[0]).shape == ()
    np.testing.assert_allclose(LAW.log_prob(ROWS.reshape(3, 4, 3)), oracle.logpdf(ROWS).reshape(3, 4), rtol=1e-13)
    assert LAW.entropy() == pytest.approx(oracle.entropy(), rel=1e-13)
    np.testing.assert_array_equal(LAW.variance(), [2.0, 1.5, 0.8])
    np.testing.assert_array_equal(LAW.mode(), MEAN)
    np.testing.assert_allclose(LAW.precision_ @ COVARIANCE, np.eye(3), atol=1e-14)
    np.testing.assert_array_equal(LAW.log_prob([[np.nan, 0, 0], [np.inf, 0, 0], [1e200, 0, 0]]), np.full(3, -np.inf))


def test_tables_are_matched_by_the_names_of_their_columns() -> None:
    expected = LAW.log_prob(ROWS)
    np.testing.assert_array_equal(LAW.log_prob(FRAME[["c", "a", "b"]]), expected)
    np.testing.assert_array_equal(LAW.log_prob({"b": ROWS[:, 1], "c": ROWS[:, 2], "a": ROWS[:, 0]}), expected)
    with pytest.raises(sf.MissingColumnError, match="'c'"):
        LAW.log_prob(FRAME[["a", "b"]])
    with pytest.raises(sf.OptionError, match="3 numbers"):
        LAW.log_prob([1.0, 2.0])


def test_half_the_log_determinant_enters_the_density() -> None:
    away = ROWS[0] - MEAN
    square = away @ np.linalg.solve(COVARIANCE, away)
    log_det = math.log(np.linalg.det(COVARIANCE))
    right = -1.5 * math.log(2 * math.pi) - 0.5 * log_det - 0.5 * square
    assert LAW.log_prob(ROWS[0]) == pytest.approx(right, rel=1e-13)
    assert LAW.log_prob(ROWS[0]) != pytest.approx(right - 0.5 * log_det, rel=1e-3)


def test_log_normalizer_in_natural_parameters_is_that_of_the_integral() -> None:
    eta = LAW.natural_parameters_
    first, second = eta[:3], eta[3:].reshape(3, 3)
    np.testing.assert_allclose(first, np.linalg.solve(COVARIANCE, MEAN), rtol=1e-13)
    np.testing.assert_allclose(second, -0.5 * np.linalg.inv(COVARIANCE), rtol=1e-13)
    # The integral of h exp(eta . T) by importance from another normal law.
    nodes, w = hermite(MEAN, 1.3 * COVARIANCE, 40)
    exponent = LAW.log_base_measure(nodes) + LAW.sufficient_statistics(nodes) @ eta
    other = stats.multivariate_normal(MEAN, 1.3 * COVARIANCE).logpdf(nodes)
    assert LAW.log_normalizer(eta) == pytest.approx(math.log(w @ np.exp(exponent - other)), rel=1e-9)
    assert LAW.log_normalizer() == pytest.approx(LAW.log_normalizer(eta), rel=1e-13)
    log_det = math.log(np.linalg.det(-2 * second))
    assert LAW.log_normalizer() == pytest.approx(
        -0.25 * first @ np.linalg.solve(second, first) - 0.5 * log_det, rel=1e-12
    )
    misprint = -0.5 * np.trace(second @ np.outer(first, first)) - 0.5 * log_det
    assert LAW.log_normalizer() != pytest.approx(misprint, rel=1e-2)
    density = LAW.log_base_measure(ROWS) + LAW.sufficient_statistics(ROWS) @ eta - LAW.log_normalizer()
    np.testing.assert_allclose(LAW.log_prob(ROWS), density, rtol=1e-12)
    assert LAW.log_normalizer(-eta) == math.inf


def test_gradient_and_hessian_are_the_moments_of_the_statistics() -> None:
    nodes, w = hermite(MEAN, COVARIANCE)
    statistics = LAW.sufficient_statistics(nodes)
    mean = w @ statistics
    away = statistics - mean
    np.testing.assert_allclose(LAW.mean_parameters_, mean, rtol=1e-11)
    np.testing.assert_allclose(LAW.expected_statistics(LAW.natural_parameters_), mean, rtol=1e-11)
    np.testing.assert_allclose(LAW.statistics_covariance(), (away * w[:, None]).T @ away, rtol=1e-9, atol=1e-10)
    # The gradient is also the slope of A, here by a complex step through A written out.
    eta = LAW.natural_parameters_

    def a(values: NDArray[np.complex128]) -> complex:
        first, second = values[:3], values[3:].reshape(3, 3)
        second = (second + second.T) / 2
        return complex(-0.25 * first @ np.linalg.solve(second, first) - 0.5 * np.log(np.linalg.det(-2 * second)))

    slopes = [a(eta + 1e-20j * unit).imag / 1e-20 for unit in np.eye(12)]
    np.testing.assert_allclose(LAW.mean_parameters_, slopes, rtol=1e-11)


def test_the_form_is_overcomplete_and_the_free_parameters_are_fewer() -> None:
    covariance = LAW.statistics_covariance()
    assert np.linalg.matrix_rank(covariance) == 3 + 3 * 4 // 2 == 9
    twin = np.zeros(12)
    twin[3 + 1], twin[3 + 3] = 1, -1  # x_a x_b less x_b x_a
    assert twin @ covariance @ twin == pytest.approx(0, abs=1e-12)
    assert sf.MultivariateNormal().fit(FRAME).n_params_ == 9
    assert sf.MultivariateNormal(covariance=COVARIANCE).fit(FRAME).n_params_ == 3
    assert sf.MultivariateNormal(mean=MEAN).fit(FRAME).n_params_ == 6


def test_cumulants_up_to_the_sixth_against_exact_moments() -> None:
    nodes, w = hermite(MEAN, COVARIANCE, 14)
    rng = np.random.default_rng(0)
    for direction in (rng.normal(size=12), np.r_[MEAN, np.zeros(9)], np.eye(12)[5]):
        values = LAW.sufficient_statistics(nodes) @ direction
        raw = [w @ (values - w @ values) ** s for s in range(7)]
        expected = [w @ values, raw[2], raw[3], raw[4] - 3 * raw[2] ** 2, raw[5] - 10 * raw[3] * raw[2]]
        expected.append(raw[6] - 15 * raw[4] * raw[2] - 10 * raw[3] ** 2 + 30 * raw[2] ** 3)
        np.testing.assert_allclose(LAW.cumulants(6, direction), expected, rtol=1e-8, atol=1e-8)
    assert LAW.cumulants(2).shape == (12, 2)


def test_natural_mean_usual_and_information_forms_agree() -> None:
    for law in (
        LAW.with_natural_parameters(LAW.natural_parameters_),
        LAW.with_mean_parameters(LAW.mean_parameters_),
        sf.MultivariateNormal.from_information(*LAW.information_form(), columns=LAW.columns_),
    ):
        np.testing.assert_allclose(law.mean_, MEAN, rtol=1e-12)
        np.testing.assert_allclose(law.covariance_, COVARIANCE, rtol=1e-12)
        assert law.columns_ == ("a", "b", "c")
    h, J = LAW.information_form()
    np.testing.assert_allclose(J, np.linalg.inv(COVARIANCE), rtol=1e-12)
    np.testing.assert_allclose(h, J @ MEAN, rtol=1e-12)


def test_divergence_equals_its_definition() -> None:
    other = sf.MultivariateNormal([0.0, -1.0, 1.0], np.diag([1.0, 3.0, 0.5]) + 0.2)
    nodes, w = hermite(MEAN, COVARIANCE)
    expected = w @ (LAW.log_prob(nodes) - other.log_prob(nodes))
    assert LAW.kl_divergence(other) == pytest.approx(expected, rel=1e-10)
    assert LAW.kl_divergence(LAW) == 0
    near = sf.MultivariateNormal(MEAN, COVARIANCE * (1 + 1e-9))
    assert LAW.kl_divergence(near) == pytest.approx(3 * 0.25e-18, rel=1e-5)
    with pytest.raises(sf.OptionError, match="columns"):
        LAW.kl_divergence(sf.MultivariateNormal([0.0], [[1.0]]))


def test_marginals_and_conditionals_multiply_to_the_joint() -> None:
    part = LAW.marginal(["c", "a"])
    assert part.columns_ == ("c", "a")
    np.testing.assert_array_equal(part.covariance_, COVARIANCE[np.ix_([2, 0], [2, 0])])
    for row in ROWS[:4]:
        given_two = LAW.condition(on={"c": row[2], "a": row[0]})
        assert given_two.columns_ == ("b",)
        total = part.log_prob(row[[2, 0]]) + given_two.log_prob(row[[1]])
        assert total == pytest.approx(float(LAW.log_prob(row)), rel=1e-12)
    block = np.linalg.inv(np.linalg.inv(COVARIANCE)[:2, :2])
    np.testing.assert_allclose(LAW.condition(on={"c": 7.0}).covariance_, block, rtol=1e-13)
    with pytest.raises(sf.MissingColumnError, match="'z'"):
        LAW.condition(on={"z": 1.0})
    with pytest.raises(sf.OptionError, match="Every column"):
        LAW.condition(on={"a": 1, "b": 2, "c": 3})
    with pytest.raises(sf.OptionError, match="at least one"):
        LAW.marginal([])


def test_samples_are_reproducible_and_follow_the_law() -> None:
    draws = LAW.sample(20_000, random_state=0)
    np.testing.assert_array_equal(draws, LAW.sample(20_000, random_state=0))
    squares = np.einsum("ni,ij,nj->n", draws - MEAN, np.linalg.inv(COVARIANCE), draws - MEAN)
    assert stats.kstest(squares, stats.chi2(3).cdf).pvalue > 1e-4
    np.testing.assert_allclose(np.cov(draws.T), COVARIANCE, atol=0.06)


@pytest.mark.parametrize("weights", [None, W])
def test_maximum_likelihood(weights: NDArray[np.int64] | None) -> None:
    rows = ROWS if weights is None else weighted(ROWS, weights)
    law = sf.MultivariateNormal().fit(FRAME, sample_weight=weights)
    np.testing.assert_allclose(law.mean_, rows.mean(axis=0), rtol=1e-13)
    np.testing.assert_allclose(law.covariance_, np.cov(rows.T, ddof=0), rtol=1e-13)
    assert law.columns_ == ("a", "b", "c")
    value = stats.multivariate_normal(law.mean_, law.covariance_).logpdf(rows).sum()
    assert law.report_.log_likelihood == pytest.approx(value, rel=1e-13)
    assert law.report_.certificate.moment_gap < 1e-13
    assert law.report_.certificate.exists

    def objective(p: Floats) -> float:
        factor = np.array([[math.exp(p[2]), 0], [p[3], math.exp(p[4])]])
        return float(stats.multivariate_normal(p[:2], factor @ factor.T).logpdf(rows[:, :2]).sum())

    two = sf.MultivariateNormal().fit(FRAME[["a", "b"]], sample_weight=weights)
    best, value = maximise(objective, [0.0, 0.0, 0.0, 0.0, 0.0])
    np.testing.assert_allclose(two.mean_, best[:2], rtol=1e-5)
    assert two.report_.log_likelihood == pytest.approx(value, rel=1e-11)


def test_known_mean_or_covariance() -> None:
    known = sf.MultivariateNormal(mean=MEAN).fit(FRAME)
    np.testing.assert_allclose(known.covariance_, (ROWS - MEAN).T @ (ROWS - MEAN) / len(ROWS), rtol=1e-13)
    np.testing.assert_array_equal(known.mean_, MEAN)
    assert known.report_.certificate.moment_gap < 1e-13
    free = sf.MultivariateNormal(covariance=COVARIANCE).fit(FRAME)
    np.testing.assert_allclose(free.mean_, ROWS.mean(axis=0), rtol=1e-13)
    np.testing.assert_array_equal(free.covariance_, COVARIANCE)


def test_units_of_the_columns_do_not_matter() -> None:
    units = np.array([1e-9, 1.0, 1e12])
    plain, scaled = sf.MultivariateNormal().fit(ROWS), sf.MultivariateNormal().fit(ROWS * units)
    np.testing.assert_allclose(scaled.covariance_, plain.covariance_ * np.outer(units, units), rtol=1e-11)
    change = len(ROWS) * np.log(units).sum()
    assert scaled.report_.log_likelihood == pytest.approx(plain.report_.log_likelihood - change, rel=1e-12)
    far = sf.MultivariateNormal().fit(ROWS + 1e6)
    np.testing.assert_allclose(far.covariance_, plain.covariance_, rtol=1e-8)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"d": [5.0] * 12}, ["'d' is constant", "n = 12", "d = 4"]),
        ({"d": ROWS[:, 0] * 2 + 1}, ["'a', 'd' are linearly dependent"]),
        ({"d": ROWS[:, 0] - ROWS[:, 2]}, ["'a', 'c', 'd' are linearly dependent"]),
    ],
)
def test_a_singular_covariance_names_the_columns(change: dict[str, object], words: list[str]) -> None:
    with pytest.raises(sf.EstimateError) as caught:
        sf.MultivariateNormal().fit(FRAME.assign(**change))
    for word in words:
        assert word in str(caught.value)


def test_too_few_rows_are_refused_with_both_numbers() -> None:
    for n in (1, 2, 3):
        with pytest.raises(sf.EstimateError, match=f"n = {n} rows .d = 3 columns.") as caught:
            sf.MultivariateNormal().fit(FRAME[:n])
        assert n < 2 or "needs more than 3 rows" in str(caught.value)
    assert np.isfinite(sf.MultivariateNormal().fit(FRAME[:4]).report_.log_likelihood)


def test_normal_prior_on_the_mean_against_sequential_updates_and_quadrature() -> None:
    prior = sf.MultivariateNormal([0.5, 0.0], [[2.0, 0.3], [0.3, 1.0]])
    known = COVARIANCE[:2, :2]
    rows = ROWS[:5, :2]
    law = sf.MultivariateNormal(covariance=known, prior=prior).fit(rows)
    # One row at a time: gain form, each row predicted before it is learned.
    mean, spread, evidence = prior.mean_.copy(), prior.covariance_.copy(), 0.0
    for row in rows:
        evidence += float(stats.multivariate_normal(mean, spread + known).logpdf(row))
        gain = spread @ np.linalg.inv(spread + known)
        mean, spread = mean + gain @ (row - mean), spread - gain @ spread
    np.testing.assert_allclose(untyped(law.posterior_).mean_, mean, rtol=1e-12)
    np.testing.assert_allclose(untyped(law.posterior_).covariance_, spread, rtol=1e-12)
    precision = np.linalg.inv(prior.covariance_) + 5 * np.linalg.inv(known)
    np.testing.assert_allclose(np.linalg.inv(untyped(law.posterior_).covariance_), precision, rtol=1e-12)
    assert law.log_evidence_ == pytest.approx(evidence, rel=1e-12)
    np.testing.assert_allclose(untyped(law.predictive_).covariance_, spread + known, rtol=1e-12)
    nodes, w = hermite(prior.mean_, prior.covariance_, 60)
    joint = np.exp([stats.multivariate_normal(node, known).logpdf(rows).sum() + 15 for node in nodes])
    assert law.log_evidence_ == pytest.approx(math.log(w @ joint) - 15, rel=1e-7)
    np.testing.assert_allclose(law.mean_, (w * joint) @ nodes / (w @ joint), rtol=1e-6)
    mode = sf.MultivariateNormal(covariance=known, prior=prior, estimate="map").fit(rows)
    np.testing.assert_allclose(mode.mean_, law.mean_, rtol=1e-14)
    assert mode.report_.certificate.moment_gap < 1e-13
    assert mode.report_.parameterisation == "in mean (covariance known)"
    low, high = law.credible_intervals(0.9)["mean"].T
    np.testing.assert_allclose(
        stats.norm(mean, np.sqrt(np.diag(spread))).cdf([low, high]), [[0.05] * 2, [0.95] * 2], rtol=1e-10
    )


def test_a_prior_with_names_is_matched_by_name() -> None:
    prior = sf.MultivariateNormal([5.0, 0.0], [[1.0, 0.2], [0.2, 3.0]], columns=["b", "a"])
    turned = sf.MultivariateNormal([0.0, 5.0], [[3.0, 0.2], [0.2, 1.0]])
    one = sf.MultivariateNormal(covariance=np.eye(2), prior=prior).fit(FRAME[["a", "b"]])
    two = sf.MultivariateNormal(covariance=np.eye(2), prior=turned).fit(FRAME[["a", "b"]])
    np.testing.assert_allclose(one.mean_, two.mean_, rtol=1e-14)


def test_vague_and_sharp_priors_on_the_mean() -> None:
    for size in (1e-12, 1e12):
        prior = sf.MultivariateNormal(MEAN, size * np.eye(3))
        law = sf.MultivariateNormal(covariance=COVARIANCE, prior=prior).fit(FRAME)
        np.testing.assert_allclose(law.mean_, MEAN if size < 1 else ROWS.mean(axis=0), rtol=1e-8)
    empty = sf.summarize(sf.MultivariateNormal(), FRAME) * 0.0
    prior = sf.MultivariateNormal(MEAN, COVARIANCE / 7)
    law = sf.MultivariateNormal(covariance=COVARIANCE, prior=prior).fit(empty)
    np.testing.assert_array_equal(untyped(law.posterior_).mean_, MEAN)
    np.testing.assert_array_equal(untyped(law.posterior_).covariance_, COVARIANCE / 7)
    assert law.log_evidence_ == 0


def test_columns_of_further_rows_are_matched_by_name() -> None:
    whole = sf.MultivariateNormal().fit(FRAME)
    parts = sf.MultivariateNormal().fit(FRAME[:5]).partial_fit(FRAME[["c", "b", "a"]][5:])
    np.testing.assert_array_equal(parts.mean_, whole.mean_)
    np.testing.assert_array_equal(parts.covariance_, whole.covariance_)
    assert whole.score(FRAME[["b", "c", "a"]].assign(z="text")) == pytest.approx(whole.score(FRAME), rel=1e-14)
    np.testing.assert_allclose(parts.unlearn(FRAME[["b", "c", "a"]][5:]).mean_, ROWS[:5].mean(axis=0), rtol=1e-13)
    again = whole.fit(FRAME[["b", "a"]])
    assert again.columns_ == ("b", "a")
    np.testing.assert_array_equal(again.mean_, sf.MultivariateNormal(columns=["b", "a"]).fit(FRAME).mean_)


@settings(max_examples=25)
@given(st.permutations(range(12)), st.permutations(["a", "b", "c"]), st.integers(1, 11))
def test_order_of_rows_and_columns_and_batches_do_not_matter(order: list[int], names: list[str], cut: int) -> None:
    whole = sf.MultivariateNormal().fit(FRAME)
    law = sf.MultivariateNormal().fit(FRAME.iloc[order][names])
    places = [["a", "b", "c"].index(name) for name in names]
    np.testing.assert_array_equal(law.mean_, whole.mean_[places])
    np.testing.assert_array_equal(law.covariance_, whole.covariance_[np.ix_(places, places)])
    question = sf.MultivariateNormal()
    both = sf.summarize(question, FRAME[:cut]) + sf.summarize(question, FRAME[cut:])
    np.testing.assert_array_equal(question.fit(both).covariance_, whole.covariance_)


def test_options_are_checked() -> None:
    with pytest.raises(sf.OptionError, match="not symmetric"):
        sf.MultivariateNormal([0, 0], [[1, 0.5], [0.2, 1]])
    with pytest.raises(sf.OptionError, match="not positive definite"):
        sf.MultivariateNormal([0, 0], [[1, 2], [2, 1]])
    with pytest.raises(sf.OptionError, match="diagonal"):
        sf.MultivariateNormal([0, 0], [[1, 0], [0, -1]])
    with pytest.raises(sf.OptionError, match="shape"):
        sf.MultivariateNormal([0, 0], np.eye(3))
    with pytest.raises(sf.OptionError, match="2 different names"):
        sf.MultivariateNormal([0, 0], np.eye(2), columns=["a"])
    with pytest.raises(sf.OptionError, match="nothing to fit"):
        sf.MultivariateNormal(MEAN, COVARIANCE).fit(FRAME)
    with pytest.raises(sf.OptionError, match="3 columns"):
        sf.MultivariateNormal(covariance=np.eye(2)).fit(FRAME)
    with pytest.raises(sf.OptionError, match="known covariance"):
        sf.MultivariateNormal(prior=LAW).fit(FRAME)
    with pytest.raises(sf.OptionError, match="dimensions"):
        sf.MultivariateNormal(covariance=COVARIANCE, prior=sf.MultivariateNormal([0, 0], np.eye(2))).fit(FRAME)
    with pytest.raises(sf.OptionError, match="likelihood"):
        LAW.posterior(sf.summarize(sf.MultivariateNormal(), FRAME))
    with pytest.raises(sf.MissingValueError, match="'a'"):
        sf.MultivariateNormal().fit(FRAME.assign(a=np.nan))
    with pytest.raises(sf.OptionError, match="vector"):
        LAW.with_natural_parameters(np.ones(7))


def test_the_certificate_measures_wrong_parameters_as_its_definition_says() -> None:
    summary = sf.summarize(sf.MultivariateNormal(), FRAME, sample_weight=W)
    law = sf.MultivariateNormal().fit(FRAME)
    law = with_parameters(law, {"mean": MEAN, "covariance": COVARIANCE})
    gap, decrement = law.fitted_.member.gap(summary)
    rows = weighted(ROWS, W)
    statistics = LAW.sufficient_statistics(rows).mean(axis=0) - LAW.mean_parameters_
    # The decrement does not depend on the choice of statistics; the gap is that of centred ones.
    expected = math.sqrt(statistics @ np.linalg.pinv(LAW.statistics_covariance(), hermitian=True) @ statistics)
    assert decrement == pytest.approx(expected, rel=1e-9)
    away = rows - MEAN
    spread = np.sqrt(np.outer(np.diag(COVARIANCE), np.diag(COVARIANCE)) + COVARIANCE**2)
    gaps = [
        np.abs(away.mean(axis=0)) / np.sqrt(np.diag(COVARIANCE)),
        np.abs(away.T @ away / len(rows) - COVARIANCE) / spread,
    ]
    assert gap == pytest.approx(max(part.max() for part in gaps), rel=1e-11)


@pytest.mark.parametrize("units", [1.0, 1e-60, 1e60])
def test_log_likelihoods_of_several_members_are_those_of_scipy(units: float) -> None:
    member = sf.MultivariateNormal()._family
    scales = np.array([1.0, units, 1.0 / units])
    means = [MEAN, MEAN + 1.0, np.zeros(3)]
    covariances = [COVARIANCE, COVARIANCE @ COVARIANCE, np.eye(3)]
    points = [
        {"mean": mean * scales, "covariance": covariance * np.outer(scales, scales)}
        for mean, covariance in zip(means, covariances, strict=True)
    ]
    summary = sf.summarize(LAW, pd.DataFrame(ROWS * scales, columns=["a", "b", "c"]))
    found, at = member.log_likelihoods(summary, points)
    # A change of units adds a constant to the log density of each row.
    constant = -len(ROWS) * np.log(scales).sum()
    expected = [
        stats.multivariate_normal(mean, covariance).logpdf(ROWS).sum() + constant
        for mean, covariance in zip(means, covariances, strict=True)
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    precisions = [np.linalg.inv(covariance) / np.outer(scales, scales) for covariance in covariances]
    np.testing.assert_allclose(at["precision"], precisions, rtol=1e-9)
    np.testing.assert_array_equal(at["mean"], [point["mean"] for point in points])


def test_members_of_a_family_without_arrays_are_asked_one_by_one() -> None:
    counts = np.array([3, 1, 4, 1, 5])
    poisson = sf.Poisson(rate=1.0)
    found, at = poisson._family.log_likelihoods(sf.summarize(poisson, counts), [{"rate": 2.0}, {"rate": 3.5}])
    np.testing.assert_allclose(found, [stats.poisson(rate).logpmf(counts).sum() for rate in (2.0, 3.5)], rtol=1e-13)
    np.testing.assert_array_equal(at, [2.0, 3.5])


def test_members_of_one_column_are_asked_together_as_one_by_one() -> None:
    rows = np.array([0.3, 1.7, -0.9, 2.2])
    normal = sf.Normal()
    points = [{"mean": 0.0, "variance": 1.0}, {"mean": 0.8, "variance": 0.3}]
    found, at = normal._family.log_likelihoods(sf.summarize(normal, rows), points)
    np.testing.assert_allclose(
        found, [stats.norm(0.0, 1.0).logpdf(rows).sum(), stats.norm(0.8, 0.3**0.5).logpdf(rows).sum()]
    )
    np.testing.assert_array_equal([at["mean"], at["variance"]], [[0.0, 0.8], [1.0, 0.3]])
    letters = sf.Categorical(states=list("abc"))
    shares = [[0.2, 0.3, 0.5], [1.0, 0.0, 0.0]]
    summary = sf.summarize(letters, list("aab"))
    found, at = letters._family.log_likelihoods(summary, [{"probabilities": share} for share in shares])
    np.testing.assert_allclose(found, [2 * math.log(0.2) + math.log(0.3), -math.inf])
    np.testing.assert_array_equal(at, shares)


@pytest.mark.parametrize("columns", ["b", ("b",)])
def test_the_option_of_a_single_column_is_kept_as_given(columns: Any, tmp_path: Path) -> None:
    law = sf.MultivariateNormal().set_params(columns=columns)
    assert law.get_params()["columns"] is columns
    law.fit(FRAME).write(tmp_path / "law.json")
    for each in (law, sf.read(tmp_path / "law.json"), law.clone().fit(FRAME)):
        assert each.columns_ == ("b",)
        np.testing.assert_allclose(each.mean_, [ROWS[:, 1].mean()], rtol=1e-13)
