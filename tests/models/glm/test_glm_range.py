"""Links that do not reach every mean: the best point may lie on the edge, and other programs are never better."""

import warnings
from typing import Any

import numpy as np
import pytest
from scipy import optimize
from scipy.special import xlogy

import suffice as sf
from suffice.models.glm.families import NegativeBinomialFamily
from suffice.models.glm.family import Family
from suffice.models.glm.registry import FAMILIES

Floats = Any
SIZE = 2.0


def deviance(family: str, y: Floats, mean: Floats) -> float:
    with np.errstate(all="ignore"):
        if family == "binomial":
            return float(2 * (xlogy(y, y) + xlogy(1 - y, 1 - y) - xlogy(y, mean) - xlogy(1 - y, 1 - mean)).sum())
        if family == "poisson":
            return float(2 * (xlogy(y, y) - xlogy(y, mean) - (y - mean)).sum())
        away = np.log(y + SIZE) - np.log(mean + SIZE)
        return float(2 * (xlogy(y, y) - xlogy(y, mean) - (y + SIZE) * away).sum())


def mean_of(link: str, eta: Floats) -> Floats:
    if link == "log":
        return np.exp(np.clip(eta, -700.0, 700.0))
    return np.clip(eta, -1e100, 1e100) ** 2 if link == "sqrt" else eta


def possible(family: str, link: str, eta: Floats) -> bool:
    mean = mean_of(link, eta)
    inside = bool((mean >= 0.0).all()) and (link != "sqrt" or bool((eta >= 0.0).all()))
    return inside and (family != "binomial" or bool((mean <= 1.0).all()))


def problem(seed: int) -> tuple[str, str, Floats, Floats] | None:
    rng = np.random.default_rng([seed, 21])
    family, link = [
        *(("binomial", "identity"), ("binomial", "log"), ("poisson", "identity"), ("poisson", "sqrt")),
        *(("negative_binomial", "identity"), ("negative_binomial", "sqrt")),
    ][seed % 6]
    n, k = int(rng.integers(8, 50)), int(rng.integers(1, 4))
    X = rng.normal(size=(n, k)) if rng.random() < 0.5 else rng.integers(0, 3, (n, k)).astype(float)
    away = X @ rng.normal(size=k) * 0.3
    if family == "binomial":
        chance = np.clip(np.exp(-0.7 + away) if link == "log" else 0.5 + away, 0.02, 0.98)
        y = (rng.random(n) < chance).astype(float)
    else:
        mean = np.clip(1.0 + away, 0.05, None) ** (2 if link == "sqrt" else 1)
        y = rng.poisson(mean if family == "poisson" else mean * rng.gamma(SIZE, 1.0 / SIZE, n)).astype(float)
    if np.linalg.matrix_rank(np.column_stack([np.ones(n), X])) <= k or len(np.unique(y)) < 2:
        return None
    return family, link, X, y


def fitted(family: str, link: Any, X: Floats, y: Floats) -> Any:
    law: Any = sf.NegativeBinomial(size=SIZE) if family == "negative_binomial" else family
    return sf.GLM(law, link=link).fit(X, y)


@pytest.mark.filterwarnings("ignore::suffice.ConvergenceWarning")
def test_no_other_program_is_better() -> None:
    pytest.importorskip("statsmodels")
    import statsmodels.api as sm

    links = sm.families.links
    of_link = {"identity": links.Identity(), "log": links.Log(), "sqrt": links.Sqrt()}
    of_family = {
        "binomial": lambda link: sm.families.Binomial(link),
        "poisson": lambda link: sm.families.Poisson(link),
        "negative_binomial": lambda link: sm.families.NegativeBinomial(link, alpha=1.0 / SIZE),
    }
    compared = edges = 0
    for seed in range(150):
        if (found := problem(seed)) is None:
            continue
        family, link, X, y = found
        whole = np.column_stack([np.ones(len(X)), X])
        model = fitted(family, link, X, y)
        edges += bool(model.report_.warnings)
        for method in ("IRLS", "bfgs"):
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                try:
                    law = of_family[family](of_link[link])
                    other = np.asarray(sm.GLM(y, whole, family=law).fit(method=method, maxiter=300, disp=0).params)
                except (ValueError, np.linalg.LinAlgError):
                    continue
            eta = whole @ other
            if np.isfinite(eta).all() and possible(family, link, eta):
                compared += 1
                best = deviance(family, y, mean_of(link, eta))
                assert model.deviance_ <= best + 1e-8 * (1.0 + abs(best)), (seed, family, link, method)
    assert compared > 100
    assert edges > 20


@pytest.mark.parametrize(
    "pair", [("poisson", "identity"), ("poisson", "sqrt"), ("binomial", "identity"), ("binomial", "log")]
)
def test_the_edge_is_where_a_general_optimiser_with_constraints_ends(pair: tuple[str, str]) -> None:
    """Multipliers by another program: SLSQP with the linear constraints of all rows."""
    family, link = pair
    seen = {True: 0, False: 0}
    for seed in range(120):
        found = problem(seed)
        if found is None or found[:2] != pair:
            continue
        _, _, X, y = found
        whole = np.column_stack([np.ones(len(X)), X])
        model = fitted(family, link, X, y)
        certificate = model.report_.certificate
        if any("infinity" in one for one in certificate.directions):
            continue
        assert certificate.exists is not None
        assert model.converged_
        assert certificate.moment_gap < 1e-6
        assert certificate.value_gap < 1e-9
        seen[certificate.exists] += 1
        eta = whole @ np.asarray(model.parameters_)
        room = -eta if link == "log" else np.minimum(eta, 1.0 - eta) if family == "binomial" else eta
        errors = np.asarray(model.standard_errors_)
        if certificate.exists:
            assert room.min() > 0.0
            assert np.isfinite(errors).all()
        else:
            assert room.min() < 1e-6
            assert "edge of the link's range" in certificate.directions[0]
            np.testing.assert_array_equal(errors, np.inf)
            assert any("no standard errors" in one for one in model.report_.warnings)
        ends: list[Any] = [optimize.LinearConstraint(whole, -np.inf if link == "log" else 1e-12, _upper(family, link))]

        def loss(beta: Floats, whole: Floats = whole, y: Floats = y) -> float:
            value = deviance(family, y, mean_of(link, whole @ beta))
            return value if np.isfinite(value) else 1e6

        start = np.asarray(model.parameters_)
        for _ in range(2):  # From near the answer and from well inside.
            other = optimize.minimize(
                loss, start, method="SLSQP", constraints=ends, options={"maxiter": 500, "ftol": 1e-13}
            )
            if possible(family, link, whole @ other.x):
                assert model.deviance_ <= other.fun + 1e-6, seed
            start = np.zeros(whole.shape[1])
            start[0] = {"log": -1.0, "identity": 0.5 if family == "binomial" else y.mean(), "sqrt": np.sqrt(y.mean())}[
                link
            ]
    assert min(seen.values()) >= 3


def _upper(family: str, link: str) -> float:
    if link == "log":
        return -1e-12
    return 1.0 - 1e-12 if family == "binomial" else np.inf


def test_a_node_names_what_is_on_the_edge() -> None:
    x = np.repeat([0.0, 1.0, 2.0], 6)
    y = np.r_[5, 4, 6, 5, 4, 6, 2, 1, 3, 2, 2, 2, np.zeros(6)]
    counts = sf.GLM("poisson", link="identity")
    network = sf.BayesianNetwork([("x", "y")], nodes={"y": counts}, states={"x": "real"})
    found = network.fit({"x": x, "y": y}).report_.certificate
    assert found.exists is False
    assert any("mean of 6 rows -> 0" in one for one in found.directions)


@pytest.mark.parametrize("family", ["poisson", "negative_binomial", "gamma"])
def test_responses_and_offsets_beyond_all_floats_are_refused_in_a_sentence(family: Any) -> None:
    rows = np.array([[1.0], [2.0], [3.0], [4.0]])
    with pytest.raises(sf.EstimateError, match="too large for double precision"):
        sf.GLM(family).fit(rows, [1e300, 1.0, 2.0, 3.0])
    for offset in (1e308, -1e308):
        with pytest.raises(sf.EstimateError, match="start"):
            sf.GLM(family, link="log").fit(rows, [1.0, 1.0, 2.0, 3.0], offset=np.full(4, offset))


@pytest.mark.parametrize("family", [FAMILIES["poisson"], NegativeBinomialFamily(SIZE), FAMILIES["binomial"]])
def test_many_counts_have_the_digits_of_each_alone(family: Family) -> None:
    rng = np.random.default_rng(8)
    binomial = family.name == "binomial"
    mean = rng.uniform(0.05, 0.95, 2_000)
    for y in (
        rng.integers(0, 2, 2_000).astype(float),
        rng.integers(0, 5, 2_000) / 4.0 if binomial else rng.poisson(9.0, 2_000).astype(float),
        rng.random(2_000) if binomial else rng.integers(0, 10**6, 2_000).astype(float),
    ):
        for together, alone in (
            (family.deviance(y, mean), [family.deviance(y[[i]], mean[[i]])[0] for i in range(len(y))]),
            (family.base(y), [family.base(y[[i]])[0] for i in range(len(y))]),
        ):
            np.testing.assert_array_equal(together, alone)
    assert np.isnan(family.deviance(np.full(2_000, np.nan), mean)).all()


@pytest.mark.parametrize(
    ("family", "y", "mean", "dispersion", "expected"),
    [  # The densities in 60 digits.
        (FAMILIES["gamma"], 2.0, 2.0, 2.0**-46, 14.330299439114123),
        (NegativeBinomialFamily(1e12), 3.0, 2.5, 1.0, -1.5428872736069648),
        (NegativeBinomialFamily(1e7), 1e9, 1.00001e9, 1.0, -13.588626761369707),
        (FAMILIES["poisson"], 1e15, 1.00000001e15, 1.0, -18.238326730326682),
    ],
)
def test_densities_of_rows_keep_their_digits_beside_large_shapes_and_counts(
    family: Family, y: float, mean: float, dispersion: float, expected: float
) -> None:
    np.testing.assert_allclose(family.log_prob(np.array([y]), np.array([mean]), dispersion), expected, rtol=1e-14)
