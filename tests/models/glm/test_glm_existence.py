"""Whether a regression has a maximum, against linear programmes of their own, whatever the units of the columns."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy import optimize

import suffice as sf
from suffice.engines.linear_predictor import CoefficientLayout, RowBlock
from suffice.models.glm.family import Family, RowDistribution
from suffice.models.glm.held_rows import RegressionRows
from suffice.models.glm.problem import RegressionProblem, largest_move
from suffice.models.glm.registry import FAMILIES
from suffice.models.glm.separation import STILL, rules_out, share_of_slopes

Floats = Any


def best_rise(rows: Floats, fixed: Floats) -> float:
    """The largest sum of ``rows d`` over d in a box with ``rows d >= 0``, and 0 where fixed; columns of size 1."""
    rows = rows / np.abs(rows).max(axis=0)
    free = rows[~fixed]
    found = optimize.linprog(
        -free.sum(axis=0),
        A_ub=-free if len(free) else None,
        b_ub=np.zeros(len(free)) if len(free) else None,
        A_eq=rows[fixed] if fixed.any() else None,
        b_eq=np.zeros(int(fixed.sum())) if fixed.any() else None,
        bounds=(-1.0, 1.0),
    )
    assert found.fun is not None
    return -float(found.fun)


def attained(matrix: Floats, y: Floats, family: str) -> bool:
    """Whether no direction raises some rows and lowers none."""
    if family == "binomial":
        rise = best_rise(np.where(y >= 1.0, 1.0, -1.0)[:, None] * matrix, (y > 0.0) & (y < 1.0))
    elif family == "multinomial":
        rise = best_rise(*_label_rows(matrix, y))
    elif family == "ordinal":
        rise = best_rise(*_ordered_rows(matrix, y))
    else:
        rise = best_rise(-matrix, y > 0.0)
    return rise < 1e-6


def _label_rows(matrix: Floats, y: Floats) -> tuple[Floats, Floats]:
    labels, k = int(y.max()) + 1, matrix.shape[1]
    found = []
    for row, own in zip(matrix, y.astype(int), strict=True):
        for other in range(labels):
            if other != own:
                one = np.zeros((labels, k))
                one[own] += row
                one[other] -= row
                found.append(one[:-1].ravel())
    return np.array(found), np.zeros(len(found), dtype=bool)


def _ordered_rows(matrix: Floats, y: Floats) -> tuple[Floats, Floats]:
    ends = int(y.max())
    found = []
    for row, own in zip(matrix[:, 1:], y.astype(int), strict=True):
        if own < ends:
            found.append(np.r_[np.eye(ends)[own], -row])
        if own > 0:
            found.append(np.r_[-np.eye(ends)[own - 1], row])
    return np.array(found), np.zeros(len(found), dtype=bool)


def problem(rng: np.random.Generator, family: str) -> tuple[Floats, Floats]:
    """Few rows of columns with few values, so that separated and overlapping rows are both frequent."""
    n, k = int(rng.integers(7, 15)), int(rng.integers(1, 4))
    if family in ("multinomial", "ordinal"):
        n, k = 2 * n, min(k, 2)
    while True:
        X = rng.integers(-2, 3, size=(n, k)).astype(float)
        eta = X @ rng.normal(size=k) * rng.choice([0.3, 2.0, 10.0]) + rng.normal()
        if family in ("poisson", "negative_binomial"):
            y = rng.poisson(np.exp(np.clip(eta, -8.0, 1.5))).astype(float)
        else:
            cuts = [0.0] if family == "binomial" else [-1.0, 1.0]
            y = np.searchsorted(cuts, eta + 0.5 * rng.logistic(size=n)).astype(float)
        whole = np.column_stack([np.ones(n), X])
        enough = len(np.unique(y)) == (3 if family in ("ordinal", "multinomial") else 2) or family in (
            "poisson",
            "negative_binomial",
        )
        if enough and y.any() and np.linalg.matrix_rank(whole) == k + 1:
            return X, y


CASES = [
    *(("binomial", link) for link in ("logit", "probit", "cloglog", "loglog")),
    *(("poisson", "log"), ("negative_binomial", "log"), ("multinomial", None)),
    *(("ordinal", link) for link in ("logit", "probit", "cloglog", "loglog")),
]


@pytest.mark.filterwarnings("ignore::suffice.ConvergenceWarning")
@pytest.mark.parametrize(("family", "link"), CASES)
def test_existence_is_that_of_a_linear_programme_in_every_unit(family: str, link: Any) -> None:
    seen = {True: 0, False: 0}
    for seed in range(24):
        rng = np.random.default_rng([seed, 77])
        X, y = problem(rng, family)
        truth = attained(np.column_stack([np.ones(len(X)), X]), y, family)
        seen[truth] += 1
        law: Any = sf.NegativeBinomial(size=2.0) if family == "negative_binomial" else family
        units = [np.full(X.shape[1], 1.0), *(10.0 ** rng.integers(-9, 10, X.shape[1]) for _ in range(3))]
        for unit in units:
            found = sf.GLM(law, link=link).fit(X * unit, y).report_.certificate
            assert found.exists is truth, (seed, unit, found)
            assert bool(found.directions) is not truth
    assert min(seen.values()) >= 3


@pytest.mark.filterwarnings("ignore::suffice.ConvergenceWarning")
@pytest.mark.parametrize("family", ["binomial", "multinomial", "poisson"])
def test_existence_without_an_intercept_in_every_unit(family: Any) -> None:
    for seed in range(12):
        X, y = problem(np.random.default_rng([seed, 78]), family)
        truth = attained(X, y, family)
        for unit in (1e-9, 1e-3, 1.0, 1e6):
            found = sf.GLM(family, fit_intercept=False).fit(X * unit, y).report_.certificate
            assert found.exists is truth, (seed, unit)


def test_a_dose_in_any_unit_is_quasi_separated() -> None:
    mg = np.array([1, 1, 2, 2, 3, 3, 4, 4, 5, 5.0])
    dead = [0, 0, 0, 0, 0, 1, 1, 1, 1, 1]
    for unit, link in product((1.0, 1e-3, 1e-9, 1e9), ("logit", "probit", "cloglog", "loglog")):
        model = sf.GLM("binomial", link=link).fit({"dose": mg * unit}, dead)  # type: ignore[arg-type]
        assert model.report_.certificate.exists is False
        np.testing.assert_array_equal(model.standard_errors_, np.inf)
        rows = {"dose": mg * unit, "dead": dead}
        response = sf.GLM("binomial", link=link)  # type: ignore[arg-type]
        node = sf.BayesianNetwork([("dose", "dead")], nodes={"dead": response}, states={"dose": "real"}).fit(rows)
        assert node.report_.certificate.exists is False


def test_many_rows_in_any_unit() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=150_000)
    for y, truth in (((x > 0.0), False), (x + rng.logistic(size=len(x)) > 0.0, True)):
        for unit in (1e-4, 1.0):
            found = sf.GLM("binomial").fit({"x": unit * x}, y.astype(float)).report_.certificate
            assert found.exists is truth, unit


# -- other links -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("family", "link", "group"),
    [
        ("binomial", "log", np.zeros(10)),
        ("gaussian", "log", np.zeros(10)),
        ("gaussian", "log", np.full(10, -3.0)),
        ("gaussian", "inverse", np.tile([1.0, -1.0], 5)),
        ("gaussian", "inverse", np.zeros(10)),
    ],
)
def test_a_group_at_the_end_of_the_links_range_has_no_maximum(family: Any, link: Any, group: Floats) -> None:
    x = np.repeat([0.0, 1.0], 10)
    first = [0, 1, 0, 0, 1, 0, 1, 0, 0, 1] if family == "binomial" else np.linspace(2, 4, 10)
    for unit in (1e-6, 1.0, 1e6):
        model = sf.GLM(family, link=link).fit({"x": unit * x}, np.r_[first, group])
        assert model.report_.certificate.exists is False
        assert model.report_.certificate.directions == (f"x to {'+' if link == 'inverse' else '-'}infinity",)
        assert model.standard_errors_["x"] == np.inf
        assert np.isfinite(model.standard_errors_["intercept"])
        np.testing.assert_allclose(model.predict({"x": unit * x})[10:], 0.0, atol=1e-12)


@pytest.mark.filterwarnings("ignore::suffice.ConvergenceWarning")
def test_relative_risks_run_away_where_a_linear_programme_says_so() -> None:
    seen = {True: 0, False: 0}
    for seed in range(40):
        rng = np.random.default_rng([seed, 79])
        n, k = int(rng.integers(8, 16)), int(rng.integers(1, 3))
        X = rng.integers(0, 3, size=(n, k)).astype(float)
        y = (rng.random(n) < np.minimum(0.9, np.exp(-0.5 - X @ rng.exponential(1.0, size=k)))).astype(float)
        whole = np.column_stack([np.ones(n), X])
        if np.linalg.matrix_rank(whole) <= k or not y.any():
            continue
        truth = best_rise(-whole, y > 0.0) < 1e-6
        seen[truth] += 1
        for unit in (1.0, 1e-6):
            found = sf.GLM("binomial", link="log").fit(unit * X, y).report_.certificate
            # What is False otherwise is on the edge of the link's range, with finite coefficients.
            runs = found.exists is False and any("infinity" in one for one in found.directions)
            assert runs is not truth, (seed, found)
    assert min(seen.values()) >= 5


def test_pairs_that_fall_for_ever_at_both_ends_have_a_maximum() -> None:
    rng = np.random.default_rng(2)
    X = rng.uniform(size=(40, 2))
    y = rng.gamma(5.0, 0.2 * (1.0 + X @ [1.0, 0.5]))
    for family, link in (
        *(("gaussian", "identity"), ("gamma", "inverse"), ("gamma", "log"), ("gamma", "identity"), ("gamma", "sqrt")),
        *(("inverse_gaussian", "inverse_square"), ("inverse_gaussian", "inverse"), ("gaussian", "log")),
    ):
        assert sf.GLM(family, link=link).fit(X, y).report_.certificate.exists is True, (family, link)  # type: ignore[arg-type]


def test_a_noisy_gaussian_response_under_a_log_link_is_undecided() -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 1))
    found = sf.GLM("gaussian", link="log").fit(X, np.exp(0.1 * X[:, 0]) + 3.0 * rng.normal(size=60)).report_.certificate
    assert found.exists is None


@pytest.mark.filterwarnings("ignore::suffice.ConvergenceWarning")
def test_a_gaussian_prior_holds_coefficients_whatever_the_sign_of_the_response() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    y = X @ [1.0, 2.0] + rng.normal(size=30)
    for shift, prior in product((5.0, 0.0, -5.0), (sf.Normal(variance=1.0), sf.Laplace(scale=1.0))):
        assert sf.GLM("gaussian", prior=prior).fit(X, y + shift).report_.certificate.exists is True
    # A fit that is perfect has a dispersion of 0, which no prior on the coefficients keeps away.
    few = sf.GLM("gaussian", prior=sf.Normal(variance=1.0)).fit(rng.normal(size=(4, 5)), rng.normal(size=4))
    assert few.report_.certificate.exists is not True


# -- standard errors ---------------------------------------------------------------------------------------------------


def test_means_that_run_to_the_end_of_the_range_leave_no_error() -> None:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(50, 2))
    y = -1.0 - np.abs(rng.normal(size=50))
    for covariance in ("expected", "observed", "robust"):
        model = sf.GLM("gaussian", link="log", covariance=covariance).fit(X, y)
        assert model.report_.certificate.exists is False
        np.testing.assert_array_equal(model.standard_errors_, np.inf)
        np.testing.assert_allclose(model.predict(X), 0.0, atol=1e-6)


def test_a_plateau_is_no_convergence() -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(30, 2))
    with pytest.warns(sf.ConvergenceWarning, match="flat"):
        model = sf.GLM("gaussian", link="log").fit(X, -1.0 + rng.normal(size=30))
    assert model.report_.certificate.exists is None
    assert not model.converged_
    assert np.isinf(model.standard_errors_).all()


def test_predictions_about_which_separation_leaves_nothing_have_no_ends() -> None:
    x, z = np.repeat([0.0, 1.0], [8, 4]), np.r_[np.zeros(8), 1.0, 2.0, 3.0, 5.0]
    y = np.r_[0, 1, 0, 1, 1, 0, 1, 0, np.ones(4)]
    model = sf.GLM("binomial").fit(np.column_stack([x, z]), y)
    told = model.predict(np.array([[0.0, 0.0], [0.0, 1.0]]), interval=0.9)
    assert 0.0 < told[0, 1] < told[0, 2] < 1.0
    assert told[1, 1:].tolist() == [0.0, 1.0]


@pytest.mark.parametrize("link", ["log", "inverse"])
def test_rounding_is_no_proof_that_a_maximum_is_attained(link: Any) -> None:
    """Two groups, one of which has the mean 0: whatever the other's numbers, no linear predictor gives that mean."""
    for seed in range(60):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(2, 7))
        x, y = np.repeat([0.0, 1.0], 2 * n), np.append(rng.uniform(2, 4, 2 * n), np.tile([1.0, -1.0], n))
        model = sf.GLM("gaussian", link=link).fit(x[:, None], y)
        assert model.report_.certificate.exists is False, seed


def test_nothing_is_said_about_maxima_that_may_be_elsewhere() -> None:
    """Of an objective that is not concave a small slope says nothing about how much better another maximum is."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = rng.gamma(2.0, np.exp(0.3 * X[:, 0]) / 2.0)
    gaps = {link: sf.GLM("gamma", link=link).fit(X, y).report_.certificate.value_gap for link in ("log", "sqrt")}
    assert gaps["log"] == pytest.approx(0.0, abs=1e-12)
    assert gaps["sqrt"] is None


@pytest.mark.parametrize(("name", "link"), [("binomial", "logit"), ("poisson", "log"), ("binomial", "probit")])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_step_rules_a_direction_out_exactly_where_its_share_of_every_slope_is_small(
    name: str, link: str, weighted: bool
) -> None:
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(300, 3)), rng.integers(0, 2 if name == "binomial" else 4, 300).astype(float)
    weights = rng.integers(0, 3, 300).astype(float) if weighted else None
    family = FAMILIES[name]
    assert isinstance(family, Family)
    rows = RegressionRows.of(RowBlock(X, y, weights, rng.normal(size=300)))
    problem = RegressionProblem(rows, CoefficientLayout(True, 3), RowDistribution(family, family.link(link)))
    kind, answers, bounded = "binomial" if name == "binomial" else "count", [], 0
    for scale, apart, stands in product((0.0, 1e-3, 0.02, 0.1, 0.3, 3.0), (0.0, 0.1, 1.0, 400.0), (1.0, 10.0)):
        beta, step = rng.normal(size=4), scale * rng.normal(size=4)
        origin = None if apart == 0.0 else beta + apart * rng.normal(size=4)
        share = share_of_slopes(problem, kind, beta, step, origin)
        if link != "probit" and origin is None:
            assert share <= largest_move(problem, step) * (1.0 + 1e-12)
            bounded += 1
        answers.append(rules_out(problem, kind, beta, step, origin, stands))
        assert answers[-1] == (stands * share <= STILL)
    assert {True, False} == set(answers)
    assert bounded == (0 if link == "probit" else 12)
