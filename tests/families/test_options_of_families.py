"""Options of distributions do what they say, or are refused: every option of every constructor, by introspection."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import suffice as sf

pytestmark = pytest.mark.filterwarnings("ignore::suffice.errors.SufficeWarning")

#: How long and how openly a fit goes.
STEERING = {"max_iter", "tolerance", "max_seconds", "progress", "callback", "checkpoint"}

POSITIVE = [0.5, 1.5, 0.7, 2.0]
SHARES = [0.2, 0.5, 0.4, 0.7]
PAIRS = np.array([[0.3, 0.7], [0.6, 0.4], [0.1, 0.9], [0.5, 0.5]])
POINTS = np.array([[0.1, 1.0], [2.0, -1.0], [0.3, 0.2], [1.0, 0.4]])
EYE = np.eye(2)


def fit(name: str, data: Any, read: str = "parameters_") -> Callable[..., Any]:
    return lambda **options: getattr(getattr(sf, name)(**options).fit(data), read)


def log_prob(name: str, x: Any) -> Callable[..., Any]:
    return lambda **options: getattr(sf, name)(**options).log_prob(x)


#: By distribution: what is read, and for each option a value with the options that it goes with.
EFFECTS: dict[str, tuple[Callable[..., Any], dict[str, tuple[Any, dict[str, Any]]]]] = {
    "Bernoulli": (
        fit("Bernoulli", [0, 1, 1]),
        {
            "states": ([1, 0], {}),
            "prior": (sf.Beta(2.0, 2.0), {}),
            "estimate": ("map", {"prior": sf.Beta(2.0, 2.0)}),
        },
    ),
    "Categorical": (
        fit("Categorical", ["u", "v", "u"]),
        {"states": (["v", "u"], {}), "prior": (1.0, {}), "estimate": ("map", {"prior": 2.0})},
    ),
    "Exponential": (
        fit("Exponential", POSITIVE),
        {"prior": (sf.Gamma(2.0, 2.0), {}), "estimate": ("map", {"prior": sf.Gamma(2.0, 2.0)})},
    ),
    "Poisson": (
        fit("Poisson", [0, 2, 5]),
        {"prior": (sf.Gamma(2.0, 2.0), {}), "estimate": ("map", {"prior": sf.Gamma(2.0, 2.0)})},
    ),
    "Geometric": (
        fit("Geometric", [0, 2, 5]),
        {"prior": (sf.Beta(2.0, 2.0), {}), "estimate": ("map", {"prior": sf.Beta(2.0, 2.0)})},
    ),
    "NegativeBinomial": (
        fit("NegativeBinomial", [0, 2, 1]),
        {
            "size": (3.0, {"size": 2.0}),
            "prior": (sf.Beta(2.0, 2.0), {"size": 2.0}),
            "estimate": ("map", {"size": 2.0, "prior": sf.Beta(2.0, 2.0)}),
        },
    ),
    "Normal": (
        fit("Normal", POSITIVE),
        {
            "mean": (1.0, {}),
            "variance": (2.0, {}),
            "prior": (sf.NormalInverseGamma(2.0, 1.0, 1.0, 0.0), {}),
            "estimate": ("map", {"prior": sf.NormalInverseGamma(2.0, 1.0, 1.0, 0.0)}),
        },
    ),
    "MultivariateNormal": (
        fit("MultivariateNormal", {"p": POINTS[:, 0], "q": POINTS[:, 1]}),
        {
            "mean": ([0.0, 0.0], {}),
            "covariance": (EYE, {}),
            "columns": (["q", "p"], {}),
            "prior": (sf.NormalWishart([0.0, 0.0], 1.0, 4.0, EYE), {}),
            "estimate": ("map", {"prior": sf.NormalWishart([0.0, 0.0], 1.0, 4.0, EYE)}),
        },
    ),
    "Gamma": (
        fit("Gamma", POSITIVE),
        {
            "shape": (2.0, {}),
            "prior": (sf.Gamma(2.0, 2.0), {"shape": 2.0}),
            "estimate": ("map", {"shape": 2.0, "prior": sf.Gamma(2.0, 2.0)}),
        },
    ),
    "InverseGamma": (log_prob("InverseGamma", 0.5), {}),
    "VonMises": (log_prob("VonMises", 0.5), {}),
    "Beta": (log_prob("Beta", 0.5), {}),
    "Dirichlet": (fit("Dirichlet", {"p": PAIRS[:, 0], "q": PAIRS[:, 1]}), {"columns": (["q", "p"], {})}),
    "BetaPrime": (log_prob("BetaPrime", 0.5), {"scale": (2.0, {"alpha": 2.0, "beta": 1.0})}),
    "Lomax": (log_prob("Lomax", 0.5), {"scale": (2.0, {"shape": 2.0})}),
    "Laplace": (log_prob("Laplace", 0.4), {"scale": (2.0, {}), "mean": (1.0, {})}),
    "StudentT": (log_prob("StudentT", 0.4), {"location": (1.0, {"df": 3.0}), "scale": (2.0, {"df": 3.0})}),
    "LinearGaussianPrior": (
        lambda **options: (
            sf.BayesianNetwork([("x", "y")], prior={"y": sf.LinearGaussianPrior(1.0, 1.0, **options)})
            .fit({"x": POINTS[:, 0], "y": POINTS[:, 1]})
            .score({"x": POINTS[:, 0], "y": POINTS[:, 1]})
        ),
        {"mean": (5.0, {}), "on": ("all", {})},
    ),
    "NormalWishart": (
        lambda **options: (
            sf.MultivariateNormal(prior=sf.NormalWishart([0.0, 9.0], 1.0, 4.0, EYE, **options))
            .fit({"p": POINTS[:, 0], "q": POINTS[:, 1]})
            .mean_
        ),
        {"names": (["q", "p"], {})},
    ),
}

#: Parameters that are given, or learned together with the others: none of them is an option of a fit by itself.
PARAMETERS = {"probability", "probabilities", "rate", "alpha", "beta"}
ALONE = {
    ("InverseGamma", "shape"),
    ("InverseGamma", "scale"),
    ("VonMises", "direction"),
    ("VonMises", "concentration"),
    ("StudentT", "df"),
}
#: What takes nothing but parameters, and `Wishart`, whose names are those of the variables of a network.
BARE = {
    "BetaNegativeBinomial",
    "DirichletMixture",
    "DirichletMultinomial",
    "MultivariateStudentT",
    "NormalInverseGamma",
}


def optional(name: str) -> set[str]:
    parameters = inspect.signature(getattr(sf, name).__init__).parameters.values()
    return {p.name for p in parameters if p.default is not p.empty}


def test_every_option_is_in_the_table() -> None:
    distributions = {name for name in sf.__all__ if hasattr(getattr(sf, name), "log_prob")}
    assert distributions - EFFECTS.keys() == BARE | {"Mixture", "Wishart"}
    assert not any(optional(name) for name in BARE)
    for name, (_, options) in EFFECTS.items():
        steered = STEERING | PARAMETERS | {option for family, option in ALONE if family == name}
        assert optional(name) - steered == options.keys() - steered


@pytest.mark.parametrize(("name", "option"), [(name, option) for name, (_, row) in EFFECTS.items() for option in row])
def test_an_option_has_an_effect(name: str, option: str) -> None:
    read, (value, others) = EFFECTS[name][0], EFFECTS[name][1][option]
    without = {other: given for other, given in others.items() if other != option or given != value}
    plain, changed = (repr(read(**options)) for options in (without, {**others, option: value}))
    assert plain != changed


@pytest.mark.parametrize("option", ["max_iter", "tolerance", "max_seconds", "callback", "checkpoint"])
def test_a_rate_in_closed_form_takes_no_limit_of_newton(option: str) -> None:
    value: Any = {"callback": print, "checkpoint": "state.json"}.get(option, 3)
    assert sf.Gamma(**{option: None if option == "checkpoint" else value}).fit(POSITIVE).shape_ > 0  # type: ignore[arg-type]
    with pytest.raises(sf.OptionError, match=f"{option}=.* has no effect: with a known shape="):
        sf.Gamma(shape=2.0, **{option: value}).fit(POSITIVE)


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: sf.Normal(0.0, 1.0, prior=sf.NormalInverseGamma(2.0, 1.0, 1.0, 0.0)), "prior="),
        (lambda: sf.Poisson(2.0, estimate="map"), "estimate="),
        (lambda: sf.Beta(2.0, 1.0, max_iter=3), "max_iter="),
        (lambda: sf.Categorical(["u", "v"], [0.5, 0.5], prior=1.0), "prior="),
    ],
)
def test_options_of_a_fit_beside_given_parameters_are_refused(make: Callable[[], Any], named: str) -> None:
    with pytest.raises(sf.OptionError, match=f"{named}.* would have no effect: .* nothing to fit"):
        make()


def test_a_prior_with_names_is_read_by_them() -> None:
    prior = sf.NormalWishart([0.0, 100.0], 1.0, 4.0, np.diag([1.0, 2.0]), names=["p", "q"])
    columns = {"p": POINTS[:, 0], "q": POINTS[:, 1]}
    one = sf.MultivariateNormal(prior=prior).fit(columns)
    other = sf.MultivariateNormal(prior=prior).fit({name: columns[name] for name in ("q", "p")})
    np.testing.assert_array_equal(one.mean_, other.mean_[::-1])
    np.testing.assert_array_equal(one.covariance_, other.covariance_[::-1, ::-1])
    with pytest.raises(sf.OptionError, match=r"of the columns 'p', 'q' .* the data have 'r', 's'"):
        sf.MultivariateNormal(prior=prior).fit({"r": POINTS[:, 0], "s": POINTS[:, 1]})
