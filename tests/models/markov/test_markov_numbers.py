"""Numbers beyond float64, complex numbers and text: an error of ours that shows the value, and no warning of NumPy."""

import warnings
from typing import Any

import numpy as np
import pytest

import suffice as sf

ROWS = {"a": [0, 1, 1]}
DOMAIN = sf.Domain([sf.Variable.discrete("a", [0, 1]), sf.Variable.discrete("b", [0, 1])])


def fit_feature(values: Any, **options: Any) -> Any:
    return sf.MarkovNetwork([sf.Feature("a", values)], states={"a": [0, 1]}, **options).fit(ROWS)


def fit_counts(values: Any) -> Any:
    return sf.MarkovNetwork([("a", "b")]).fit({("a", "b"): values})


def fit_cube(value: Any) -> Any:
    return sf.MarkovNetwork([("a", "b"), ("b", "c"), ("c", "a")]).fit(np.full((2, 2, 2), value), columns=list("abc"))


@pytest.fixture(autouse=True)
def no_foreign_warning() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        (np.array([0.0, 1e308]), "1e\\+308"),
        (np.array([-1e308, 1e308]), "1e\\+308"),
        (lambda a: 1e200 * a, "1e\\+200"),
        (np.array([0.0, 1e-200]), "1e-200"),
        (np.array([0.0, 5e-324]), "e-324"),
        (np.array([0.0, 2j]), "0j .complex"),
        ({0: 1j}, "1j"),
        ({0: "x"}, "'x'"),
        ({0: 10**400}, "not finite"),
        (lambda a: 10**400, "not finite"),
        (np.array(["u", "v"]), "'u'"),
    ],
)
def test_values_of_features(values: Any, shown: str) -> None:
    with pytest.raises(sf.OptionError, match=shown):
        fit_feature(values)


def test_large_and_small_values_that_can_be_squared_are_fitted() -> None:
    for size in (1e-149, 1e149):
        mrf = fit_feature(np.array([0.0, size]))
        assert mrf.weights_[0] * size == pytest.approx(np.log(2))
        assert mrf.standard_errors_[0] * size == pytest.approx(np.sqrt(1.5))
        assert mrf.report_.log_likelihood == pytest.approx(2 * np.log(2 / 3) + np.log(1 / 3))


@pytest.mark.parametrize(
    ("counts", "shown"),
    [
        (np.array([[1e308, 1e308], [1, 2]]), "1e\\+308"),
        (np.array([[1e300, 1e-300], [1, 2]]), "1e\\+300"),
        (np.array([[1.0, 1e-310], [1, 2]]), "1e-310"),
        (np.array([[1, 2j], [1, 2]]), "complex"),
        (np.array([[10**400, 1], [1, 2]], object), "inf"),
        (np.array([["x", 1], [1, 2]], object), "'x'"),
        (np.array([[np.inf, 1], [1, 2]]), "inf"),
    ],
)
def test_counts(counts: Any, shown: str) -> None:
    with pytest.raises(sf.DataError, match=shown):
        fit_counts(counts)


def test_tables_of_counts() -> None:
    for value, shown in ((1e308, "1e\\+308"), (5e-324, "e-324"), (1j, "complex numbers")):
        with pytest.raises(sf.DataError, match=shown):
            fit_cube(value)
    with pytest.raises(sf.DataError, match="1e\\+308"):
        sf.MarkovNetwork([("a", "b")]).fit(sf.Table(DOMAIN, np.array([[1e308, 1e308], [1, 2]])))
    small, plain = fit_cube(1e-290), fit_cube(1.0)
    np.testing.assert_allclose(small.to_joint().values, plain.to_joint().values)
    np.testing.assert_allclose(small.standard_errors_, plain.standard_errors_ * 1e145)


@pytest.mark.parametrize("prior", [sf.Normal(variance=1e-300), sf.Normal(variance=1e300), sf.Laplace(scale=1e-300)])
def test_priors(prior: Any) -> None:
    with pytest.raises(sf.OptionError, match=r"of the prior holds 1e[+-]300"):
        fit_feature(np.array([0.0, 1.0]), prior=prior)


def test_starts_weights_and_potentials() -> None:
    values, network = np.array([0.0, 1.0]), sf.MarkovNetwork(["a"], states={"a": [0, 1]})
    with pytest.raises(sf.OptionError, match=r"start= holds 1e\+308"):
        fit_feature(values, start=[1e308])
    for wrong, shown in (([1j], "1j"), (["x"], "'x'")):
        with pytest.raises(sf.OptionError, match=shown):
            fit_feature(values, start=wrong)
    with pytest.raises(sf.OptionError, match="1j"):
        network.with_weights([1j, 0.0])
    with pytest.raises(sf.OptionError, match="1j"):
        sf.MarkovNetwork.from_potentials({("a", "b"): np.array([[1j, 1], [1, 1]])})
