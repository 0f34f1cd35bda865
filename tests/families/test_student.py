"""Student's t in one and several dimensions against scipy.stats."""

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

import suffice as sf

SHAPE = np.array([[2.0, 0.6, -0.3], [0.6, 1.5, 0.4], [-0.3, 0.4, 0.8]])


@pytest.mark.parametrize(("df", "location", "scale"), [(0.5, 0.0, 1.0), (3.0, -2.0, 0.1), (40.0, 1e3, 25.0)])
def test_one_dimension_equals_scipy(df: float, location: float, scale: float) -> None:
    law, oracle = sf.StudentT(df, location, scale), stats.t(df, location, scale)
    x = oracle.ppf([1e-6, 0.2, 0.5, 0.9, 0.9999])
    np.testing.assert_allclose(law.log_prob(x), oracle.logpdf(x), rtol=1e-11)
    np.testing.assert_allclose(law.cdf(x), oracle.cdf(x), rtol=1e-10)
    q = [0, 1e-6, 0.3, 0.99, 1]
    np.testing.assert_allclose(law.quantile(q), oracle.ppf(q), rtol=1e-10)
    assert law.entropy() == pytest.approx(float(oracle.entropy()), rel=1e-10)
    assert law.mode() == location
    if df > 2:
        assert (law.mean(), law.variance()) == pytest.approx((oracle.mean(), oracle.var()), rel=1e-12)
    assert stats.kstest(law.sample(4000, random_state=0), oracle.cdf).pvalue > 1e-4


def test_many_degrees_of_freedom_are_normal_to_the_last_digits() -> None:
    x = np.array([0.0, 1.0, -3.0])
    law = sf.StudentT(df=1e14)
    np.testing.assert_allclose(law.log_prob(x), stats.norm.logpdf(x), rtol=1e-12)
    assert law.entropy() == pytest.approx(stats.norm.entropy(), rel=1e-12)
    wide = sf.MultivariateStudentT(1e14, np.zeros(3), SHAPE)
    np.testing.assert_allclose(
        wide.log_prob(np.eye(3)), stats.multivariate_normal(np.zeros(3), SHAPE).logpdf(np.eye(3)), rtol=1e-12
    )
    # At 1e7 degrees of freedom the first correction is (z^4 - 2 z^2 - 1) / (4 df).
    correction = sf.StudentT(df=1e7).log_prob(x) - stats.norm.logpdf(x)
    np.testing.assert_allclose(correction, (x**4 - 2 * x**2 - 1) / 4e7, rtol=1e-5)


def test_far_values_keep_their_tail_and_raise_no_warning() -> None:
    law = sf.StudentT(3.0)
    assert float(law.log_prob(1e200)) == pytest.approx(float(law.log_prob(1e100)) - 4 * 100 * math.log(10), rel=1e-13)
    np.testing.assert_array_equal(law.log_prob([np.inf, -np.inf, np.nan]), np.full(3, -np.inf))
    wide = sf.MultivariateStudentT(3.0, [0, 0], np.eye(2))
    assert float(wide.log_prob([1e200, 0])) == pytest.approx(
        float(wide.log_prob([1e100, 0])) - 5 * 100 * math.log(10), rel=1e-13
    )
    assert float(wide.log_prob([np.nan, 0])) == -np.inf


@pytest.mark.parametrize("df", [0.7, 4.0, 33.0])
def test_several_dimensions_equal_scipy(df: float) -> None:
    location = np.array([1.0, -2.0, 0.5])
    frozen: Any = stats.multivariate_t  # its stubs allow whole degrees of freedom only
    law, oracle = sf.MultivariateStudentT(df, location, SHAPE), frozen(location, SHAPE, df=df)
    rows = np.random.default_rng(0).normal(size=(6, 3)) * 5
    np.testing.assert_allclose(law.log_prob(rows), oracle.logpdf(rows), rtol=1e-12)
    assert law.log_prob(rows[0]).shape == ()
    np.testing.assert_allclose(law.log_prob(rows.reshape(2, 3, 3)), oracle.logpdf(rows).reshape(2, 3), rtol=1e-12)
    assert law.entropy() == pytest.approx(float(oracle.entropy()), rel=1e-10)
    np.testing.assert_array_equal(law.mode(), location)
    if df > 2:
        np.testing.assert_array_equal(law.mean(), location)
        np.testing.assert_allclose(law.covariance(), SHAPE * df / (df - 2), rtol=1e-14)
        np.testing.assert_allclose(law.variance(), np.diag(SHAPE) * df / (df - 2), rtol=1e-14)


def test_samples_in_several_dimensions_follow_the_law() -> None:
    law = sf.MultivariateStudentT(5.0, [1.0, -2.0, 0.5], SHAPE)
    draws = law.sample(5000, random_state=0)
    np.testing.assert_array_equal(draws, law.sample(5000, random_state=0))
    away = draws - law.location_
    squares = np.einsum("ni,ij,nj->n", away, np.linalg.inv(SHAPE), away) / 3
    assert stats.kstest(squares, stats.f(3, 5).cdf).pvalue > 1e-4


def test_one_dimension_is_a_special_case_of_several() -> None:
    x = np.array([-1.0, 0.3, 7.0])
    wide = sf.MultivariateStudentT(3.5, [0.5], [[4.0]])
    np.testing.assert_allclose(wide.log_prob(x[:, None]), sf.StudentT(3.5, 0.5, 2.0).log_prob(x), rtol=1e-13)


def test_what_does_not_exist_is_said() -> None:
    wide = sf.MultivariateStudentT(1.0, [0, 0], np.eye(2))
    for call, word in (
        (sf.StudentT(1.0).mean, "mean"),
        (sf.StudentT(2.0).variance, "variance"),
        (wide.mean, "mean"),
        (wide.covariance, "variance"),
        (wide.variance, "variance"),
    ):
        with pytest.raises(sf.EstimateError, match=word):
            call()
    for options in ({"df": 0}, {"scale": -1}, {"location": np.nan}):
        with pytest.raises(sf.OptionError, match=next(iter(options))):
            sf.StudentT(**{"df": 1.0, "location": 0.0, "scale": 1.0} | options)
    with pytest.raises(sf.OptionError, match="positive definite"):
        sf.MultivariateStudentT(3, [0, 0], [[1, 2], [2, 1]])
    with pytest.raises(sf.OptionError, match="symmetric"):
        sf.MultivariateStudentT(3, [0, 0], [[1.0, 0.5], [0.0, 1.0]])
    with pytest.raises(sf.OptionError, match="shape"):
        sf.MultivariateStudentT(3, [0, 0], np.eye(3))
    with pytest.raises(sf.OptionError, match="2 numbers"):
        wide.log_prob([1.0, 2.0, 3.0])
    with pytest.raises(sf.OptionError, match="not fitted"):
        wide.fit([1.0])
