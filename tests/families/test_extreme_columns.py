"""Columns whose mean dwarfs their spread, whose squares leave float64, or whose rows were never in."""

from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

import suffice as sf

FAR = {
    "small": 1e13 + np.array([0.0, 1, 2]),
    "large": 1.7e18 + 256 * np.arange(1000),
    "two": np.array([1e13, 1e13 + 2**-3]),
}


def exact(values: Any) -> tuple[Fraction, Fraction]:
    """Mean and variance by rational arithmetic."""
    parts = [Fraction(float(value)) for value in values]
    mean = sum(parts, Fraction(0)) / len(parts)
    squares = [(part - mean) * (part - mean) for part in parts]
    return mean, sum(squares, Fraction(0)) / len(parts)


@pytest.mark.parametrize("values", FAR.values(), ids=FAR)
def test_a_spread_far_below_the_mean_is_no_constant(values: Any) -> None:
    mean, variance = exact(values)
    # Raw double-double sums keep the variance to 2^-104 (mean / sd)^2 of itself.
    error = 2.0**-104 * float(mean**2 / variance)
    law = sf.Normal().fit(values)
    assert law.mean_ == float(mean)
    assert law.variance_ == pytest.approx(float(variance), rel=max(error, 1e-15))
    other = np.random.default_rng(1).normal(size=len(values)) if len(values) > 2 else None
    if other is not None:
        both = sf.MultivariateNormal().fit({"far": values, "near": other})
        assert both.covariance_[0, 0] == pytest.approx(float(variance), rel=max(error, 1e-15))


@pytest.mark.parametrize("value", [0.1, 1 / 3, -7e-13, 1e15, 1.7e18, 3e150])
def test_a_constant_column_is_still_one(value: float) -> None:
    rng = np.random.default_rng(2)
    rows, weights = np.full(100_003, value), rng.uniform(0.1, 3, 100_003)
    for given in (None, weights):
        with pytest.raises(sf.EstimateError, match="constant"):
            sf.Normal().fit(rows, sample_weight=given)
        with pytest.raises(sf.EstimateError, match="'far' is constant"):
            sf.MultivariateNormal().fit({"far": rows, "near": weights}, sample_weight=given)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_values_whose_squares_overflow_are_named_so(sign: float) -> None:
    rows = sign * np.array([1e200, 2e200, -1e200])
    for law in (sf.Normal(), sf.Normal(variance=1.0), sf.Normal(prior=sf.NormalInverseGamma(2, 1, 1, 0))):
        with pytest.raises(sf.EstimateError, match=r"'x' holds values too large to square.*[Rr]escale"):
            law.fit(rows)
    with pytest.raises(sf.EstimateError, match=r"'b' holds values too large to square"):
        sf.MultivariateNormal().fit({"a": [1.0, 2.0, 5.0], "b": rows})
    with pytest.raises(sf.EstimateError, match="too large to square"):
        sf.Normal(0, 1).score(rows)


@pytest.mark.parametrize("scale", [1e-200, 1e-170, 1e-161, 1e-300])
def test_values_whose_squares_underflow_are_named_so(scale: float) -> None:
    rows = scale * np.array([1.0, 2.0, 4.0])
    with pytest.raises(sf.EstimateError, match=r"'x' holds values too small to square.*[Rr]escale"):
        sf.Normal().fit(rows)
    with pytest.raises(sf.EstimateError, match=r"'b' holds values too small to square"):
        sf.MultivariateNormal().fit({"a": [1.0, 2.0, 5.0], "b": rows})
    assert sf.Normal(variance=1.0).fit(rows).mean_ == pytest.approx(7 / 3 * scale, rel=1e-15)


def test_small_values_whose_squares_are_numbers_are_fitted() -> None:
    rows = 1e-140 * np.array([1.0, 2.0, 4.0])
    assert sf.Normal().fit(rows).variance_ == pytest.approx(14 / 9 * 1e-280, rel=1e-13)


# -- rows that were never in -----------------------------------------------------------------------------------------

STRANGERS: dict[str, tuple[Any, Any, Any]] = {
    "normal": (sf.Normal(), [1.0, 2, 3, 4], [9.0]),
    "normal with prior": (sf.Normal(prior=sf.NormalInverseGamma(2, 1, 1, 0)), [1.0, 2, 3, 4], [9.0]),
    "multivariate normal": (sf.MultivariateNormal(), [[1.0, 2], [3, 5], [4, 4], [2, 7]], [[9.0, 1]]),
    "dependence": (sf.MultivariateNormal(), [[1.0, 1], [-1, -1], [1, 1.1], [-1, -1.1], [2, 2.0]], [[2, -2.0]]),
    "normal-wishart": (
        sf.MultivariateNormal(prior=sf.NormalWishart([0, 0], 1, 4, np.eye(2))),
        [[1.0, 2], [3, 5], [4, 4], [2, 7]],
        [[9.0, 1]],
    ),
    "exponential": (sf.Exponential(), [1.0, 2, 3, 2], [9.0]),
    "exponential with prior": (sf.Exponential(prior=sf.Gamma(1, 1)), [1.0, 2, 3, 2], [9.0]),
    "gamma": (sf.Gamma(), [1.0, 2, 3, 1.5], [9.0]),
    "gamma, mean of logs": (sf.Gamma(), [1.0, 2, 3, 1.5], [0.001]),
    "gamma of known shape": (sf.Gamma(shape=2.0), [1.0, 2, 3, 1.5], [9.0]),
    "inverse gamma": (sf.InverseGamma(), [1.0, 2, 3, 1.5], [0.1]),
    "beta": (sf.Beta(), [0.4, 0.5, 0.6], [0.001]),
    "beta, sign": (sf.Beta(), [0.9, 0.99, 0.95], [0.1]),
    "dirichlet": (sf.Dirichlet(), [[0.4, 0.6], [0.5, 0.5], [0.45, 0.55]], [[0.001, 0.999]]),
    "poisson": (sf.Poisson(), [0, 2, 3], [7]),
}


@pytest.mark.parametrize(("law", "rows", "stranger"), STRANGERS.values(), ids=STRANGERS)
def test_taking_out_rows_that_were_never_in_is_seen(law: Any, rows: Any, stranger: Any) -> None:
    fitted = law.clone().fit(np.array(rows))
    before = fitted.parameters_
    with pytest.raises(sf.MergeError, match="never in"):
        fitted.unlearn(np.array(stranger))
    np.testing.assert_equal(fitted.parameters_, before)


def test_what_rounding_leaves_after_unlearning_is_not_a_stranger() -> None:
    rng = np.random.default_rng(3)
    same, wide = np.full(50, 0.1), rng.normal(1e6, 1e5, 200)
    weights = rng.uniform(0.5, 2, 250)
    mended = sf.Normal(prior=sf.NormalInverseGamma(2, 1, 1, 0))
    law = (
        mended.clone()
        .fit(np.concatenate([same, wide]), sample_weight=weights)
        .unlearn(wide, sample_weight=weights[50:])
    )
    assert law.variance_ == pytest.approx(mended.clone().fit(same, sample_weight=weights[:50]).variance_, rel=1e-9)


def test_thousands_of_states_never_seen_are_counted() -> None:
    law = sf.Categorical(states=range(5000)).fit([0, 1, 1])
    directions = law.report_.certificate.directions
    assert len(directions) == 21
    assert directions[0] == "log probability of 2 -> -inf (never seen)"
    assert directions[-1] == "log probabilities of 4978 more states -> -inf (never seen)"
    assert len(law.report_.warnings) == 21
    assert len(sf.Categorical(states=range(22)).fit([0, 1]).report_.certificate.directions) == 20
    column = pd.Categorical(["a"], categories=list("abc"))
    assert len(sf.Categorical().fit(pd.Series(column)).report_.certificate.directions) == 2
