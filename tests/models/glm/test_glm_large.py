"""Fits of many rows by way of some: one optimum with the other solvers, and standard errors made when they are read."""

import copy
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import special

import suffice as sf
from suffice.models.glm import sample
from suffice.solvers.gradient import lbfgs
from suffice.solvers.information import LaterInformation
from suffice.solvers.irls import irls

N = 8_000
RNG = np.random.default_rng(11)
X = RNG.normal(size=(N, 4)) * [1.0, 0.1, 10.0, 1.0] + [0.0, 1.0, 5.0, 0.0]
ETA = X @ [0.3, 2.0, 0.02, -0.2] - 2.0
WEIGHTS = RNG.integers(0, 4, N).astype(float)
OFFSET = RNG.normal(scale=0.3, size=N)
GAMMA = RNG.gamma(3.0, np.exp(ETA) / 3.0)
COUNTS = RNG.poisson(np.exp(ETA)).astype(float)
HEADS = (RNG.random(N) < special.expit(ETA)).astype(float)
SQUARES = RNG.poisson((3.0 + 0.1 * ETA) ** 2).astype(float)
SPREAD = RNG.negative_binomial(2.0, 2.0 / (2.0 + np.exp(ETA))).astype(float)

CASES: dict[str, tuple[dict[str, Any], Any, dict[str, Any]]] = {
    "logit": ({"family": "binomial"}, HEADS, {}),
    "probit, weights": ({"family": "binomial", "link": "probit"}, HEADS, {"sample_weight": WEIGHTS}),
    "cloglog, offset": ({"family": "binomial", "link": "cloglog"}, HEADS, {"offset": OFFSET}),
    "poisson, offset": ({"family": "poisson"}, COUNTS, {"offset": OFFSET, "sample_weight": WEIGHTS}),
    "poisson, sqrt": ({"family": "poisson", "link": "sqrt"}, SQUARES, {}),
    "gamma, log": ({"family": "gamma", "link": "log"}, GAMMA, {}),
    "inverse gaussian": ({"family": "inverse_gaussian", "link": "log"}, GAMMA, {"sample_weight": WEIGHTS}),
    "gaussian": ({"family": "gaussian"}, ETA + RNG.normal(size=N), {"offset": OFFSET}),
    "negative binomial": ({"family": "negative_binomial"}, SPREAD, {}),
    "ridge": ({"family": "binomial", "prior": sf.Normal(variance=0.01)}, HEADS, {"sample_weight": WEIGHTS}),
    "ridge, gamma": ({"family": "gamma", "link": "log", "prior": sf.Normal(variance=0.01)}, GAMMA, {}),
    "no intercept": ({"family": "poisson", "fit_intercept": False}, COUNTS, {}),
}


@pytest.fixture(autouse=True)
def _few_rows_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sample, "MANY_ENTRIES", 1_000)
    monkeypatch.setattr(sample, "LEAST_SAMPLE", 400)


@pytest.mark.parametrize("few", [40, 8_000])
@pytest.mark.parametrize("case", CASES)
def test_one_optimum_with_irls(case: str, few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sample, "LEAST_OF_SAMPLE", few)
    options, y, rows = CASES[case]
    auto = sf.GLM(**options).fit(X, y, **rows)
    irls = sf.GLM(**options, solver="irls").fit(X, y, **rows)
    assert auto.report_.method == "L-BFGS with the information of some rows"
    assert auto.converged_
    away = np.abs(np.asarray(auto.parameters_) - np.asarray(irls.parameters_))
    assert (away / np.asarray(irls.standard_errors_)).max() < 1e-6
    np.testing.assert_allclose(auto.standard_errors_, irls.standard_errors_, rtol=1e-7)
    assert auto.log_likelihood_ == pytest.approx(irls.log_likelihood_, rel=1e-10)
    assert auto.dispersion_ == pytest.approx(irls.dispersion_, rel=1e-7)


def test_a_loose_fit_is_as_near_as_its_certificate_says() -> None:
    model = sf.GLM("binomial", tolerance=1e-2).fit(X, HEADS)
    design = np.column_stack((np.ones(N), X))
    mean = special.expit(design @ np.asarray(model.parameters_))
    gradient = design.T @ (HEADS - mean)
    information = design.T @ (design * (mean * (1.0 - mean))[:, None])
    decrement = float(np.sqrt(gradient @ np.linalg.solve(information, gradient)))
    assert 0.0 < decrement < 1e-2
    assert model.report_.certificate.value_gap == pytest.approx(0.5 * decrement**2 / N, rel=0.3)
    gap = np.abs(gradient) / np.sqrt(np.diagonal(information))
    assert model.report_.certificate.moment_gap == pytest.approx(gap.max(), rel=0.2)


@pytest.mark.parametrize("few", [40, 8_000])
@pytest.mark.parametrize("size", [0.5, 3.0])
def test_the_tolerance_is_kept_though_the_start_is_far(size: float, few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sample, "LEAST_OF_SAMPLE", few)
    # With strong effects the rows at the maximum have a small part of the information that they have at the start.
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(N, 12))
    y = (rng.random(N) < special.expit(rows @ (size * rng.normal(size=12) / np.sqrt(12)))).astype(float)
    model = sf.GLM("binomial", tolerance=1e-3).fit(rows, y)
    assert "some rows" in model.report_.method
    design = np.column_stack((np.ones(N), rows))
    mean = special.expit(design @ np.asarray(model.parameters_))
    gradient = design.T @ (y - mean)
    information = design.T @ (design * (mean * (1.0 - mean))[:, None])
    assert float(np.sqrt(gradient @ np.linalg.solve(information, gradient))) < 1e-3


def pending(model: sf.GLM) -> bool:
    information = model.fitted_.information
    return isinstance(information, LaterInformation) and information.__dict__["_made"] is None


def test_standard_errors_are_made_when_they_are_read_and_the_rows_let_go() -> None:
    model = sf.GLM("binomial").fit(X, HEADS)
    model.predict(X[:3])
    assert model.report_.converged
    assert pending(model)
    model.standard_errors_  # noqa: B018
    assert not pending(model)
    assert model.fitted_.information.__dict__["_make"] is None


@pytest.mark.parametrize("covariance", ["robust", "observed"])
def test_other_covariances_are_those_of_irls(covariance: Any) -> None:
    auto = sf.GLM("poisson", covariance=covariance).fit(X, COUNTS)
    irls = sf.GLM("poisson", covariance=covariance, solver="irls").fit(X, COUNTS)
    np.testing.assert_allclose(auto.standard_errors_, irls.standard_errors_, rtol=1e-6)


def test_rows_that_were_written_to_are_found_out() -> None:
    rows = X.copy()
    model = sf.GLM("binomial").fit(rows, HEADS)
    rows[0, 0] += 1.0
    with pytest.raises(sf.EstimateError, match="rows have changed since the fit"):
        model.standard_errors_  # noqa: B018
    rows[0, 0] = X[0, 0]
    np.testing.assert_allclose(model.standard_errors_, sf.GLM("binomial").fit(X, HEADS).standard_errors_)


def test_copies_and_files_hold_the_standard_errors(tmp_path: Path) -> None:
    rows = X.copy()
    expected = sf.GLM("binomial").fit(X, HEADS).standard_errors_
    model = sf.GLM("binomial").fit(rows, HEADS)
    assert pending(model)
    model.write(tmp_path / "model.suffice")
    again = sf.GLM("binomial").fit(rows, HEADS)
    others = [sf.read(tmp_path / "model.suffice"), pickle.loads(pickle.dumps(again)), copy.deepcopy(again)]
    rows[:] = 0.0
    for other in others:
        assert not pending(other)
        np.testing.assert_allclose(other.standard_errors_, expected, rtol=1e-9)


def test_copies_and_files_made_after_the_rows_changed_have_no_standard_errors(tmp_path: Path) -> None:
    rows = X.copy()
    model = sf.GLM("binomial").fit(rows, HEADS)
    rows *= 2.0
    model.write(tmp_path / "model.suffice")
    for other in (sf.read(tmp_path / "model.suffice"), pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        np.testing.assert_array_equal(other.parameters_, model.parameters_)
        np.testing.assert_array_equal(other.predict(X[:5]), model.predict(X[:5]))
        for name in ("standard_errors_", "covariance_"):
            with pytest.raises(sf.NotFittedError, match="rows had been written to"):
                getattr(other, name)
        with pytest.raises(sf.NotFittedError, match="rows had been written to"):
            other.summary()


def test_rows_that_are_far_apart_bring_no_warning() -> None:
    model = sf.GLM("binomial").fit(X, (X[:, 0] > 0.0).astype(float))
    assert model.separated_
    assert model.coefficients_["x0"] == np.inf


@pytest.mark.parametrize("tolerance", [1e-1, 1e-8])
@pytest.mark.parametrize("share", [0.5, 0.02])
@pytest.mark.parametrize("few", [40, 8_000])
def test_separated_rows_are_found_by_way_of_some(
    tolerance: float, share: float, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sample, "LEAST_OF_SAMPLE", few)
    rng = np.random.default_rng(2)
    marked = rng.random(N) < share
    rows = np.column_stack((X[:, 0], marked))
    y = np.where(marked, 1.0, HEADS)
    model = sf.GLM("binomial", tolerance=tolerance).fit(rows, y)
    assert model.separated_
    assert model.report_.certificate.exists is False
    assert model.coefficients_["x1"] == np.inf
    rest = sf.GLM("binomial").fit(rows[~marked, :1], y[~marked])
    assert model.coefficients_["x0"] == pytest.approx(rest.coefficients_["x0"], abs=2.0 * tolerance)


def test_counts_that_run_to_zero_are_found_by_way_of_some() -> None:
    marked = np.arange(N) % 3 == 0
    model = sf.GLM("poisson").fit(np.column_stack((X[:, 0], marked)), np.where(marked, 0.0, COUNTS))
    assert model.coefficients_["x1"] == -np.inf


def test_an_order_of_the_rows_that_repeats_is_no_obstacle() -> None:
    # Eight rows stand behind each one of the sample: a fixed stride would meet one phase of eight only.
    phase = np.arange(N) % 8
    rows = np.column_stack([X[:, 0], *(phase == k for k in range(1, 8))])
    y = (np.random.default_rng(0).random(N) < special.expit(0.5 * X[:, 0] + 0.1 * phase - 0.5)).astype(float)
    auto, irls = sf.GLM("binomial").fit(rows, y), sf.GLM("binomial", solver="irls").fit(rows, y)
    assert auto.report_.method == "L-BFGS with the information of some rows"
    np.testing.assert_allclose(auto.parameters_, irls.parameters_, atol=1e-8)


def test_factors_and_columns_that_are_left_out_go_the_same_way() -> None:
    level = np.array(["low", "mid", "high"])[RNG.integers(0, 3, N)]
    table = {"a": X[:, 0], "level": level, "b": X[:, 3], "twice": 2.0 * X[:, 0]}
    fits = [sf.GLM("poisson", collinear="drop", solver=solver).fit(table, COUNTS) for solver in ("auto", "irls")]
    assert fits[0].report_.method == "L-BFGS with the information of some rows"
    assert fits[0].parameters_["twice"] == 0.0
    np.testing.assert_allclose(fits[0].parameters_, fits[1].parameters_, atol=1e-8)
    np.testing.assert_allclose(fits[0].standard_errors_, fits[1].standard_errors_, rtol=1e-7)


def test_an_interruption_of_the_sample_ends_the_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*given: Any, **options: Any) -> Any:
        found = irls(*given, **options)
        return replace(found, outcome=replace(found.outcome, converged=False, stop_reason="interrupted"))

    monkeypatch.setattr(sample, "irls", interrupted)
    with pytest.warns(sf.ConvergenceWarning):
        model = sf.GLM("poisson").fit(X, COUNTS)
    assert model.stop_reason_ == "interrupted"
    assert not model.converged_
    np.testing.assert_allclose(model.parameters_, sf.GLM("poisson", solver="irls").fit(X, COUNTS).parameters_, atol=0.5)


def test_the_sample_is_the_same_in_every_fit() -> None:
    first, second = (sf.GLM("binomial", tolerance=1e-1).fit(X, HEADS) for _ in range(2))
    assert np.array_equal(first.parameters_, second.parameters_)


def test_a_rare_column_that_no_sample_meets_falls_back() -> None:
    rows = np.column_stack((X[:, 0], np.zeros(N)))
    rows[:6, 1], y = [1.0, 1.0, 1.0, 1.0, -1.0, -1.0], HEADS.copy()
    y[:6] = [1.0, 0.0, 1.0, 0.0, 1.0, 0.0]
    auto, irls = sf.GLM("binomial").fit(rows, y), sf.GLM("binomial", solver="irls").fit(rows, y)
    np.testing.assert_allclose(auto.parameters_, irls.parameters_, atol=1e-7)
    np.testing.assert_allclose(auto.standard_errors_, irls.standard_errors_, rtol=1e-6)


def test_limits_and_callbacks_hold_on_the_way() -> None:
    seen: list[np.ndarray] = []
    with pytest.warns(sf.ConvergenceWarning, match="max_iter"):
        model = sf.GLM("poisson", max_iter=1, callback=lambda state: seen.append(state.parameters)).fit(X, COUNTS)
    assert not model.converged_
    assert model.n_iter_ == 1
    np.testing.assert_allclose(seen[-1], model.parameters_, rtol=1e-12)
    exact = sf.GLM("poisson", solver="irls").fit(X, COUNTS)
    np.testing.assert_allclose(model.parameters_, exact.parameters_, atol=0.2)
    stopped = sf.GLM("poisson", callback=lambda state: True).fit(X, COUNTS)
    assert stopped.stop_reason_ == "callback"


def test_a_search_that_stalls_goes_on_by_irls(monkeypatch: pytest.MonkeyPatch) -> None:
    def stalled(*given: Any, **options: Any) -> Any:
        found = lbfgs(given[0], given[1], replace(given[2], tolerance=1.0), **options)
        return replace(found, converged=False, stop_reason="stalled")

    monkeypatch.setattr(sample, "lbfgs", stalled)
    model = sf.GLM("binomial").fit(X, HEADS)
    assert model.report_.method == "L-BFGS with the information of some rows, then IRLS"
    assert model.converged_
    exact = sf.GLM("binomial", solver="irls").fit(X, HEADS)
    np.testing.assert_allclose(model.parameters_, exact.parameters_, atol=1e-8)
