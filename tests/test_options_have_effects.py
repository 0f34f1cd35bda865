"""Options do what they say, or are refused: every option of a generalised linear model.

For each option of `GLM`, as `get_params` lists them, the table names what a value that is not the default changes, or
the combinations in which it could change nothing and is therefore an error. Options that steer a run, and that any fit
may take without another result, are listed by name. An option that stands nowhere fails the first test.
"""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import suffice as sf

RNG = np.random.default_rng(3)
N = 120
X = RNG.normal(size=(N, 2))
ETA = 0.2 + X @ [0.5, -0.3]
COUNTS = RNG.poisson(np.exp(ETA))
REAL = ETA + RNG.normal(size=N)
LABELS = np.array(["a", "b", "c"])[np.digitize(ETA + RNG.logistic(size=N), [-0.5, 1.0])]
TWICE = np.column_stack((X, X[:, 0]))
WHOLE = {"g": RNG.integers(0, 3, N), "x": X[:, 0]}
FEW = {"g": np.array(["u", "v"])[RNG.integers(0, 2, N)], "x": X[:, 0]}
RIDGE = sf.Normal(variance=0.1)

CONJUGATE = sf.NormalInverseGamma(2.0, 1.0, 1.0, 0.0)

#: Options of a run: how long, where and how openly it goes, from which point, within which memory, in which order.
ANY_FIT = {
    *("max_iter", "tolerance", "max_seconds", "progress", "callback", "checkpoint", "memory_limit", "start"),
    "random_state",
}

Read = Callable[[Any], Any]


def poisson(read: Read = lambda model: model.parameters_) -> Callable[..., Any]:
    return lambda **options: read(sf.GLM(**{"family": "poisson", **options}).fit(X, COUNTS))


def gaussian(read: Read) -> Callable[..., Any]:
    return lambda **options: read(sf.GLM(**options).fit(X, REAL))


def node(model: sf.GLM) -> Any:
    return sf.BayesianNetwork([("x", "y")], nodes={"y": model}).fit({"x": X[:, 0], "y": REAL})


def online(**options: Any) -> Any:
    return sf.GLM("poisson", **options).partial_fit(X, COUNTS).parameters_


def pooled(**options: Any) -> Any:
    model = sf.GLM("poisson", **options).fit(FEW, COUNTS)
    try:
        return model.predict({"g": np.array(["new"]), "x": np.zeros(1)})
    except sf.UnknownStateError:
        return None


def dropped(**options: Any) -> Any:
    try:
        return sf.GLM("poisson", **options).fit(TWICE, COUNTS).parameters_
    except sf.EstimateError:
        return None


def with_holes(**options: Any) -> Any:
    holes = np.where(np.arange(len(X))[:, None] == 2, np.nan, X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sf.LeftOutWarning)
        try:
            return sf.GLM("poisson", **options).fit(holes, COUNTS).report_.rows
        except sf.MissingValueError:
            return None


#: By option: another value, other options that it goes with, and what it changes.
EFFECTS: dict[str, tuple[Any, dict[str, Any], Callable[..., Any]]] = {
    "family": ("gaussian", {}, poisson()),
    "link": ("sqrt", {}, poisson()),
    "fit_intercept": (False, {}, poisson(lambda model: model.coefficients_)),
    "prior": (RIDGE, {}, poisson()),
    "penalize_intercept": (True, {"prior": RIDGE}, poisson()),
    "solver": ("lbfgs", {}, poisson(lambda model: model.report_.method)),
    "dispersion": (2.5, {}, gaussian(lambda model: model.dispersion_)),
    "missing": ("drop", {}, with_holes),
    "covariance": ("robust", {}, poisson(lambda model: model.standard_errors_)),
    "categorical": (["g"], {}, lambda **options: sf.GLM("poisson", **options).fit(WHOLE, COUNTS).parameters_.names),
    "unknown": ("pool", {}, pooled),
    "collinear": ("drop", {}, dropped),
    "reference": (
        "a",
        {"family": "multinomial"},
        lambda **options: np.asarray(sf.GLM(**options).fit(X, LABELS).coefficients_),
    ),
    "states": (
        ["v", "u"],
        {"family": "binomial"},
        lambda **options: sf.GLM(**options).fit(X, np.where(COUNTS > 1, "v", "u")).coefficients_,
    ),
    "formula": ("x", {}, lambda **options: sf.GLM("poisson", **options).fit(FEW, COUNTS).parameters_.names),
    "keep_iterates": (True, {}, poisson(lambda model: len(model.history_[0:1]) and np.ndim(model.history_[0]))),
    "step_size": (0.05, {}, online),
    "decay": (0.5, {}, online),
    "batch_size": (7, {}, online),
}

#: By option: calls in which it could change nothing, and words of the error.
REFUSED: dict[str, list[tuple[Callable[[], Any], str]]] = {
    "link": [(lambda: sf.GLM("multinomial", link="log").fit(X, LABELS), "does not take the link")],
    "fit_intercept": [(lambda: sf.GLM("ordinal", fit_intercept=False).fit(X, LABELS), "thresholds")],
    "dispersion": [
        (lambda: sf.GLM("poisson", dispersion=2.5), r"it is 1 for this .*\(poisson\).*Leave dispersion= out"),
        (
            lambda: sf.GLM("poisson", dispersion="pearson"),
            r"'pearson', and it is 1 .*\(poisson\).*Leave dispersion= out",
        ),
        (lambda: sf.GLM("poisson").set_params(dispersion="pearson").fit(X, COUNTS), "it is 1 .*poisson"),
        (lambda: sf.GLM(prior=RIDGE, dispersion="pearson"), "no effect with a prior"),
        (lambda: sf.GLM(prior=CONJUGATE, dispersion=2.0), "no effect: the conjugate prior .*Leave dispersion= out"),
        (lambda: sf.GLM(prior=CONJUGATE, dispersion="ml"), "no effect: the conjugate prior"),
        (lambda: sf.GLM(dispersion="pearson").partial_fit(X, REAL), "no effect on partial_fit"),
        (lambda: sf.GLM("binomial", dispersion="ml"), "covariance='robust'"),
        (lambda: sf.GLM(sf.Exponential(), dispersion=3.0), "it is 1 for this distribution"),
        (lambda: sf.GLM("multinomial", dispersion=3.0), "multinomial"),
        (lambda: sf.GLM("ordinal", dispersion=3.0), "ordinal"),
        (lambda: sf.GLM(dispersion=2.0).fit(X, np.column_stack((REAL, ETA))), "multivariate_gaussian"),
        (lambda: sf.GLM(dispersion=2.0).set_params(family="poisson").fit(X, COUNTS), "poisson"),
    ],
    "penalize_intercept": [
        (lambda: sf.GLM(penalize_intercept=True), "without a prior"),
        (lambda: sf.GLM(penalize_intercept=True, prior=RIDGE, fit_intercept=False), "fit_intercept=False"),
    ],
    "solver": [
        (lambda: sf.GLM("multivariate_gaussian", solver="lbfgs").fit(X, np.column_stack((REAL, ETA))), "vectors"),
        (lambda: sf.GLM(prior=sf.NormalInverseGamma(2.0, 1.0, 1.0, 0.0), solver="cg").fit(X, REAL), "conjugate prior"),
    ],
    "covariance": [(lambda: sf.GLM("multinomial", covariance="HC3").fit(X, LABELS), "needs the leverage")],
    "categorical": [(lambda: sf.GLM(formula="y ~ g", categorical=["g"]), r"write C\(column\)")],
    "unknown": [
        (lambda: sf.GLM(formula="y ~ g", unknown="pool"), "no effect with a formula"),
        (lambda: sf.GLM("poisson", unknown="pool").fit(X, COUNTS), "no explanatory column holds levels.*categorical="),
        (lambda: sf.GLM("poisson", unknown="pool").fit({"x": X[:, 0]}, COUNTS), "no explanatory column holds levels"),
        (lambda: sf.GLM("poisson", unknown="pool").partial_fit(X, COUNTS), "no explanatory column holds levels"),
        (lambda: sf.GLM(unknown="pool").fit(X, np.column_stack((REAL, ETA))), "no explanatory column holds levels"),
        (lambda: sf.GLM("multinomial", unknown="pool").fit(X, LABELS), "no explanatory column holds levels"),
        (lambda: node(sf.GLM(unknown="pool")), "a network knows all states of the parents"),
    ],
    "reference": [(lambda: sf.GLM("poisson", reference="a").fit(X, COUNTS), "belongs to the multinomial family")],
    "states": [(lambda: sf.GLM("poisson", states=["a", "b"]), "belongs to families of labels")],
    "formula": [(lambda: sf.GLM("poisson", formula="x").fit(FEW, COUNTS, columns=["x"]), "columns= has no effect")],
    "keep_iterates": [
        (lambda: sf.GLM("poisson", keep_iterates=True, solver="lbfgs"), "Set solver='irls'"),
        (lambda: sf.GLM("multivariate_gaussian", keep_iterates=True).fit(X, X), "keep_iterates=True has no effect"),
    ],
    "decay": [(lambda: sf.GLM(step_size=lambda number: 0.1, decay=0.5), "step_size is a function")],
}


def test_every_option_is_in_a_table() -> None:
    options = set(sf.GLM().get_params())
    assert options == EFFECTS.keys() | ANY_FIT
    assert not EFFECTS.keys() & ANY_FIT
    assert REFUSED.keys() <= options


@pytest.mark.parametrize("name", EFFECTS)
def test_an_option_has_an_effect(name: str) -> None:
    if name == "formula":
        pytest.importorskip("formulaic")
    value, others, read = EFFECTS[name]
    plain, changed = read(**others), read(**others, **{name: value})
    assert changed is not None
    assert plain is None or not np.array_equal(plain, changed)


@pytest.mark.parametrize(("call", "words"), [case for cases in REFUSED.values() for case in cases])
def test_an_option_without_effect_is_an_error(call: Callable[[], Any], words: str) -> None:
    with pytest.raises(sf.OptionError, match=words):
        call()
