"""Columns and parameters at the ends of float64, of wrong types and mixed: an error that names them, or right numbers.

Any warning is an error here, as everywhere in the tests: none of NumPy's may leave the package.
"""

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest

import suffice as sf
from suffice.errors import shortened
from suffice.families.base import SMALLEST_NORMAL

LARGEST = float(np.finfo(np.float64).max)

COLUMNS: dict[str, Any] = {
    "1e308": [1e308, 1e308, 2.0],
    "largest": [LARGEST, LARGEST, LARGEST / 2],
    "large": [1e200, 2e200, 1.0],
    "large alike": [1e150, 2e150, 3e150],
    "small": [1e-300, 3e-300, 2e-300],
    "small and usual": [1e-300, 2e-300, 0.5],
    "squares are small": [1e-150, 2e-150, 4e-150],
    "denormal": [5e-324, 1e-323, 5e-324],
    "denormal and usual": [5e-324, 0.5, 0.25],
    "both ends": [1e308, 5e-324, 1.0],
    "both signs": [1e308, -1e308, 1.0],
    "minus zero": [-0.0, 1.0, 0.0],
    "minus zeros": [-0.0, 0.0, -0.0],
    "near one": [math.nextafter(1, 0), 0.5, 1 - 2**-52],
    "inf": [math.inf, 1.0, 2.0],
    "minus inf": [-math.inf, 1.0, 2.0],
    "nan": [math.nan, 1.0, 2.0],
    "huge integer": [10**400, 1, 2],
    "very huge integer": [10**5000, 1, 2],
    "minus huge integer": [-(10**400), 1, 2],
    "2^63": [2**63, 1, 2],
    "beyond 2^53": [2**53 + 1, 2**53, 3],
    "long double": np.array([1, 2, 3], dtype=np.longdouble),
    "long double beyond": np.array([1, 2, 3], dtype=np.longdouble) * np.longdouble(10) ** 4000,
    "unsigned": np.array([2**64 - 1, 1, 2], dtype=np.uint64),
    "half": np.array([1, 2, 6e4], dtype=np.float16),
    "complex": [1 + 2j, 2, 3],
    "complex array": np.array([1 + 0j, 2, 3]),
    "text": ["a", "b", "c"],
    "digits": ["1", "2", "3"],
    "bytes": [b"1", b"2", b"3"],
    "objects": [object(), 1, 2],
    "dict": [{"a": 1}, 2, 3],
    "truths": [True, False, True],
    "dates": np.array(["2020-01-01", "2021-01-01"], dtype="datetime64[D]"),
    "none": [None, 1, 2],
    "empty": [],
    "a number": 5,
    "three dimensions": np.zeros((2, 2, 2)),
}

LAWS: dict[str, Callable[[], Any]] = {
    "normal": sf.Normal,
    "normal, known variance": lambda: sf.Normal(variance=1.0),
    "normal, known mean": lambda: sf.Normal(mean=0.0),
    "normal, joint prior": lambda: sf.Normal(prior=sf.NormalInverseGamma(2, 1, 1, 0), estimate="map"),
    "normal, prior of the mean": lambda: sf.Normal(variance=2.0, prior=sf.Normal(0, 1)),
    "exponential": sf.Exponential,
    "exponential, prior": lambda: sf.Exponential(prior=sf.Gamma(2, 1), estimate="map"),
    "gamma": sf.Gamma,
    "gamma, known shape": lambda: sf.Gamma(shape=2.0),
    "gamma, prior": lambda: sf.Gamma(shape=2.0, prior=sf.Gamma(1, 1)),
    "inverse gamma": sf.InverseGamma,
    "beta": sf.Beta,
    "poisson": sf.Poisson,
    "poisson, prior": lambda: sf.Poisson(prior=sf.Gamma(2, 1)),
    "geometric": sf.Geometric,
    "geometric, prior": lambda: sf.Geometric(prior=sf.Beta(1, 1)),
    "negative binomial": lambda: sf.NegativeBinomial(size=3),
    "negative binomial, large size": lambda: sf.NegativeBinomial(size=1e300),
    "negative binomial, small size": lambda: sf.NegativeBinomial(size=1e-300),
    "negative binomial, prior": lambda: sf.NegativeBinomial(size=2.5, prior=sf.Beta(2, 2), estimate="map"),
    "bernoulli": sf.Bernoulli,
    "bernoulli, prior": lambda: sf.Bernoulli(prior=sf.Beta(1, 1)),
    "categorical": sf.Categorical,
    "categorical, prior": lambda: sf.Categorical(prior=sf.Dirichlet(1.0)),
}
SEVERAL: dict[str, Callable[[], Any]] = {
    "multivariate normal": sf.MultivariateNormal,
    "multivariate normal, prior": lambda: sf.MultivariateNormal(prior=sf.NormalWishart([0, 0], 1, 4, np.eye(2))),
    "dirichlet": sf.Dirichlet,
}
#: Values at which a law is evaluated, whatever it was fitted to.
POINTS = ([0.5], [1e308], [5e-324], [math.inf], [-math.inf], [-0.0])


def asked(law: Any, column: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Everything that may be asked of a fitted law."""
    yield "report", lambda: str(law.report_)
    names = ("mean", "variance", "mode", "entropy", "log_normalizer", "statistics_covariance", "matched_statistics")
    for name in names:
        if hasattr(type(law), name):
            yield name, getattr(law, name)
    for name in ("log_prob", "prob", "cdf"):
        for points in (column, *POINTS) if hasattr(type(law), name) else ():
            yield f"{name}({shortened(points)})", partial(getattr(law, name), points)
    if hasattr(type(law), "quantile"):
        yield "quantile", lambda: law.quantile([0.0, 0.1, 0.9, 1.0])
    yield "sample", lambda: law.sample(2, 0)
    yield "score", lambda: law.score(column)
    yield "natural", lambda: law.natural_parameters_
    yield "cumulants", lambda: law.cumulants(4)
    yield "kl", lambda: law.kl_divergence(law)
    yield "again", lambda: law.clone().fit(column).partial_fit(column).unlearn(column).parameters_
    if law._options.get("prior") is not None:
        yield "intervals", law.credible_intervals
        yield "predictive", lambda: law.predictive_.log_prob(column)
        yield "evidence", lambda: law.log_evidence_


def beside(column: Any, law: str) -> Any:
    """A second column for a law of several: what is left of one, for shares."""
    if not isinstance(column, list) or not all(isinstance(value, int | float) for value in column):
        return column
    return [1 - value for value in column] if law == "dirichlet" else [1.0, 3.0, 2.0][: len(column)]


def has_nan(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(has_nan, value.values()))
    if isinstance(value, tuple | list):
        return any(map(has_nan, value))
    return isinstance(value, float | np.ndarray) and np.asarray(value).dtype.kind == "f" and bool(np.isnan(value).any())


def names_something(text: str) -> bool:
    """Whether a message says which column, option or value is at fault."""
    return any(word in text for word in ("'x'", "'a'", "'b'", "rows", "values", "holds", " is ", "dimensions", "int"))


@pytest.mark.parametrize("law", [*LAWS, *SEVERAL])
def test_a_column_is_refused_by_name_or_fitted_without_a_foreign_word(law: str) -> None:
    refused: dict[str, str] = {}
    for what, column in COLUMNS.items():
        data = column if law in LAWS else {"a": column, "b": beside(column, law)}
        try:
            fitted = LAWS[law]() if law in LAWS else SEVERAL[law]()
            fitted.fit(data)
        except sf.SufficeError as error:
            refused[what] = str(error)
            continue
        assert not has_nan(fitted.parameters_), what
        for question, ask in asked(fitted, data):
            try:
                answer = ask()
            except (sf.SufficeError, NotImplementedError):
                continue
            except Exception as error:
                raise AssertionError(f"{what}: {question}: {type(error).__name__}: {error}") from error
            assert question in ("natural", "kl") or not has_nan(answer), (what, question, answer)
    assert all(map(names_something, refused.values())), refused


# -- right numbers ---------------------------------------------------------------------------------------------------


def exact_mean(values: Any) -> Fraction:
    return sum((Fraction(float(value)) for value in values), Fraction(0)) / len(values)


#: What maximum likelihood gives, by rational arithmetic from the mean.
CLOSED: dict[str, tuple[Callable[[], Any], str, Callable[[Fraction], Fraction]]] = {
    "exponential": (sf.Exponential, "rate", lambda mean: 1 / mean),
    "poisson": (sf.Poisson, "rate", lambda mean: mean),
    "geometric": (sf.Geometric, "probability", lambda mean: 1 / (1 + mean)),
    "negative binomial": (lambda: sf.NegativeBinomial(size=3), "probability", lambda mean: 3 / (3 + mean)),
    "gamma of known shape": (lambda: sf.Gamma(shape=2.0), "rate", lambda mean: 2 / mean),
    "normal of known variance": (lambda: sf.Normal(variance=1.0), "mean", lambda mean: mean),
}
WHOLE: dict[str, Any] = {
    "large": [1e200, 2e200, 1.0],
    "2^63": [2**63, 1, 2],
    "beyond 2^53": [2**53 + 1, 2**53, 3],
    "alike": [1e150, 3e150],
}
REAL: dict[str, Any] = {
    **WHOLE,
    "small": [1e-300, 3e-300, 2e-300],
    "denormal and usual": [5e-324, 0.5, 0.25],
    "ends": [1e307, 5e-324],
}


@pytest.mark.parametrize("law", CLOSED)
def test_closed_forms_at_the_ends_of_float64_are_right(law: str) -> None:
    make, name, formula = CLOSED[law]
    for what, column in (WHOLE if law in ("poisson", "geometric", "negative binomial") else REAL).items():
        if law.startswith("normal") and max(column) > 1e154:
            continue  # Its squares are beyond float64, and refused above.
        fitted = make().fit(column)
        expected = formula(exact_mean(column))
        assert abs(Fraction(getattr(fitted, name + "_")) / expected - 1) < Fraction(1, 10**15), what
        certificate = fitted.report_.certificate
        assert certificate.bound, what
        assert certificate.value_gap is not None
        # A mean is a float: of far columns with a known variance of 1 its rounding is a loss, and is counted.
        away = float(abs(Fraction(getattr(fitted, name + "_")) - expected)) if law.startswith("normal") else 0.0
        assert 0.5 * away * away <= certificate.value_gap <= 0.5 * away * away * (1 + 1e-9) + 1e-28, what
        assert certificate.moment_gap <= math.sqrt(len(column)) * away * (1 + 1e-9) + 1e-14, what


@pytest.mark.parametrize("power", [-900, -400, 400, 900])
def test_laws_of_positive_numbers_follow_the_unit(power: int) -> None:
    rows = np.array([0.5, 1.25, 3.0, 0.75, 2.0])
    unit = math.ldexp(1.0, power)
    for law, scaled, turn in ((sf.Gamma(), "rate", -1), (sf.InverseGamma(), "scale", 1)):
        near, far = law.clone().fit(rows), law.clone().fit(rows * unit)
        assert far.shape_ == pytest.approx(near.shape_, rel=1e-12)
        assert math.frexp(far.parameters_[scaled])[0] == pytest.approx(
            math.frexp(near.parameters_[scaled])[0], rel=1e-12
        )
        assert far.parameters_[scaled] / unit**turn == pytest.approx(near.parameters_[scaled], rel=1e-12)
        shift = len(rows) * power * math.log(2)
        assert far.report_.log_likelihood == pytest.approx(near.report_.log_likelihood - shift, rel=1e-12)


def test_divergences_of_laws_far_apart_are_numbers() -> None:
    # r - 1 - log r with r = 1e-200: the ratio is below the rounding of 1, its logarithm is not.
    expected = -1 + 200 * math.log(10)
    assert sf.Exponential(1.0).kl_divergence(sf.Exponential(1e-200)) == pytest.approx(expected, rel=1e-14)
    assert sf.Poisson(1.0).kl_divergence(sf.Poisson(1e-200)) == pytest.approx(expected, rel=1e-14)
    assert sf.Normal(0, 1e-200).kl_divergence(sf.Normal(0, 1.0)) == pytest.approx(expected / 2, rel=1e-14)
    gamma, other = sf.Gamma(2.0, 1e200), sf.Gamma(2.0, 1.0)
    assert gamma.kl_divergence(other) == pytest.approx(2 * expected, rel=1e-14)
    # Rows far below the mean of the law: -log-likelihood is -log(rate^2 x exp(-rate x)).
    row = 1e-200
    assert sf.Gamma(2.0, 7.0).score([row]) == pytest.approx(2 * math.log(7) + math.log(row), rel=1e-14)


@pytest.mark.parametrize(("size", "probability"), [(1.0, 0.3), (3.0, 1e-3), (2.5, 0.999), (1e-3, 0.5), (1e4, 0.01)])
def test_negative_binomial_probabilities_against_products(size: float, probability: float) -> None:
    law = sf.NegativeBinomial(size=size, probability=probability)
    counts = [0, 1, 2, 7, 40, 300]
    expected = []
    for count in counts:
        logs = [math.log((Fraction(size) + k) / (k + 1)) for k in range(count)]
        expected.append(math.fsum([*logs, size * math.log(probability), count * math.log1p(-probability)]))
    np.testing.assert_allclose(law.log_prob(counts), expected, rtol=1e-13, atol=1e-12)


def test_distribution_functions_beyond_the_reach_of_scipy() -> None:
    wide = sf.NegativeBinomial(size=3, probability=1e-200)
    np.testing.assert_allclose(wide.cdf([1e200, 2e200]), sf.Gamma(3, 1).cdf([1.0, 2.0]), rtol=1e-12)
    assert sf.Poisson(1e200).cdf([0.9e200, 1.1e200]).tolist() == [0.0, 1.0]
    low, high = sf.Beta(2, 1e200).intervals()
    near_low, near_high = sf.Gamma(2, 1).intervals()
    assert (low * 1e200, high * 1e200) == pytest.approx((near_low, near_high), rel=1e-10)


# -- parameters and points of wrong types ----------------------------------------------------------------------------

GIVEN: dict[str, tuple[Callable[..., Any], int]] = {
    "Normal": (sf.Normal, 2),
    "Exponential": (sf.Exponential, 1),
    "Gamma": (sf.Gamma, 2),
    "InverseGamma": (sf.InverseGamma, 2),
    "Beta": (sf.Beta, 2),
    "Poisson": (sf.Poisson, 1),
    "Geometric": (sf.Geometric, 1),
    "NegativeBinomial": (sf.NegativeBinomial, 2),
    "Bernoulli": (sf.Bernoulli, 1),
    "NormalInverseGamma": (sf.NormalInverseGamma, 4),
    "Lomax": (sf.Lomax, 2),
    "BetaPrime": (sf.BetaPrime, 3),
    "BetaNegativeBinomial": (sf.BetaNegativeBinomial, 3),
    "StudentT": (sf.StudentT, 3),
    "VonMises": (sf.VonMises, 2),
    "Laplace": (sf.Laplace, 1),
}
WRONG = ("a", "1", 1 + 2j, np.complex128(1), math.nan, math.inf, 10**400, 10**5000, b"1", {1.0}, {"a": 1}, object())
POOR = (*WRONG, np.datetime64("2020-01-01"), ["a", "b"], [1 + 1j, 2], [[1], [2, 3]])


@pytest.mark.parametrize("law", GIVEN)
def test_parameters_and_points_that_are_no_numbers_are_named(law: str) -> None:
    make, size = GIVEN[law]
    for place in range(size):
        for wrong in POOR:
            given: list[Any] = [0.5] * size
            given[place] = wrong
            with pytest.raises(sf.OptionError):
                make(*given)
    given = [0.5] * size
    for wrong in (5e-324, SMALLEST_NORMAL / 2):
        # The first parameter that must be positive.
        first = {"Normal": 1, "Bernoulli": None, "Poisson": None, "Laplace": None, "VonMises": None}.get(law, 0)
        if first is not None:
            with pytest.raises(sf.OptionError, match=r"2\.23e-308"):
                make(*[wrong if at == first else 0.5 for at in range(size)])
    fitted = make(*given)
    for points in (*WRONG[:4], ["a", "b"], [1 + 1j, 2]):
        with pytest.raises(sf.SufficeError):
            fitted.log_prob(points)
