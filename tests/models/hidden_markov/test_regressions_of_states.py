"""States that emit by a regression on covariates, against plain regressions, statsmodels and generic optimisers."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import optimize, special, stats

import suffice as sf
from suffice.array_types import Floats
from suffice.models.hidden_markov.emissions.regression import RegressionEmission, StateRegression

RNG = np.random.default_rng(3)
STATES = np.repeat([0, 1, 0, 1, 0, 1], 50)
X = np.column_stack([RNG.uniform(-1, 2, 300), RNG.normal(size=300)])
LINEAR = np.where(STATES == 1, 2.0 - 1.0 * X[:, 0], 0.3 + 0.8 * X[:, 0]) + 0.3 * X[:, 1]
RESPONSES: dict[str, Floats] = {
    "gaussian": LINEAR + 0.4 * RNG.normal(size=300),
    "poisson": RNG.poisson(np.exp(LINEAR)).astype(float),
    "binomial": (RNG.random(300) < special.expit(4 * (LINEAR - 1))).astype(float),
}
FAMILY = pytest.mark.parametrize("family", RESPONSES)
TIGHT: dict[str, Any] = {"tolerance": 1e-10, "max_iter": 5000, "acceleration": "squarem"}


def rows_of(family: str) -> Floats:
    return np.column_stack([RESPONSES[family], X])


def log_density(family: str, y: Floats, linear: Floats, variance: float) -> Floats:
    if family == "gaussian":
        return np.asarray(stats.norm.logpdf(y, linear, math.sqrt(variance)))
    if family == "poisson":
        return np.asarray(stats.poisson.logpmf(y, np.exp(linear)))
    return np.asarray(stats.bernoulli.logpmf(y, special.expit(linear)))


@FAMILY
def test_one_state_and_known_states_are_plain_regressions(family: Any) -> None:
    rows = rows_of(family)
    alone = sf.HiddenMarkovModel(1, sf.GLM(family), **TIGHT).fit([rows])
    plain = (
        sf.GLM(family, dispersion="ml").fit(X, rows[:, 0])
        if family == "gaussian"
        else sf.GLM(family).fit(X, rows[:, 0])
    )
    np.testing.assert_allclose(alone.emissions_[0].row, np.append(plain.intercept_, plain.coefficients_), rtol=1e-6)
    assert alone.report_.log_likelihood == pytest.approx(plain.log_likelihood_, rel=1e-9)
    known = sf.HiddenMarkovModel(2, sf.GLM(family), **TIGHT).fit([rows], states=[STATES])
    for state in range(2):
        some = STATES == state
        own = sf.GLM(family).fit(X[some], rows[some, 0])
        np.testing.assert_allclose(
            known.emissions_[state].row, np.append(own.intercept_, own.coefficients_), rtol=1e-5, atol=1e-6
        )


@FAMILY
def test_em_ends_where_a_generic_optimiser_finds_no_slope(family: Any) -> None:
    rows = rows_of(family)
    first: dict[str, Any] = {"initial": [0.5, 0.5], "fixed": ["initial"]}
    model = sf.HiddenMarkovModel(2, sf.GLM(family), **first, **TIGHT).fit([rows])
    design = np.column_stack([np.ones(300), X])

    def value(v: Floats) -> float:
        stay = special.expit(v[:2])
        moves = np.log(np.array([[stay[0], 1 - stay[0]], [1 - stay[1], stay[1]]]))
        logs = np.stack(
            [log_density(family, rows[:, 0], design @ v[2 + 3 * k : 5 + 3 * k], math.exp(v[8 + k])) for k in range(2)],
            axis=1,
        )
        row = math.log(0.5) + logs[0]
        for step in logs[1:]:
            row = np.logaddexp.reduce(row[:, None] + moves, axis=0) + step
        return float(np.logaddexp.reduce(row))

    own = [one.row for one in model.emissions_]
    spread = [math.log(one.variance_) for one in model.emissions_]
    here = np.concatenate([special.logit(np.diag(model.transitions_)), *own, spread])
    assert value(here) == pytest.approx(model.report_.log_likelihood, rel=1e-12)
    np.testing.assert_allclose(optimize.approx_fprime(here, value, 1e-6), 0.0, atol=5e-3)
    assert model.accuracy([rows], [STATES]) > 0.8
    # Standard errors of the coefficients, by the curvature.
    if family == "poisson":
        step, size = 1e-3, 8
        eye, curvature = step * np.eye(10)[:size], np.empty((size, size))
        for i in range(size):
            for j in range(size):
                corners = [value(here + a * eye[i] + b * eye[j]) for a, b in ((1, 1), (1, -1), (-1, 1), (-1, -1))]
                curvature[i, j] = (corners[0] - corners[1] - corners[2] + corners[3]) / (4 * step**2)
        errors = np.sqrt(np.diag(np.linalg.inv(-curvature)))[2:].reshape(2, 3)
        np.testing.assert_allclose(model.standard_errors_["emissions"]["coefficients"], errors, rtol=1e-3)


def test_the_likelihood_of_a_switching_regression_is_that_of_statsmodels() -> None:
    regime = pytest.importorskip("statsmodels.tsa.regime_switching.markov_regression")
    rows = rows_of("gaussian")
    model = sf.HiddenMarkovModel(2, sf.GLM("gaussian"), initial="stationary", **TIGHT).fit([rows])
    peer = regime.MarkovRegression(rows[:, 0], k_regimes=2, exog=X, switching_variance=True)
    one, two = model.emissions_
    coefficients = np.column_stack([one.row, two.row]).ravel()
    leave = model.transitions_[0, 0], model.transitions_[1, 0]
    assert peer.loglike(np.array([*leave, *coefficients, one.variance_, two.variance_])) == pytest.approx(
        model.report_.log_likelihood, rel=1e-10
    )


@pytest.mark.parametrize("family", ["poisson", "binomial"])
def test_a_step_of_scoring_never_lowers_the_likelihood_however_far_it_begins(family: Any) -> None:
    rows = rows_of(family)
    columns = [np.ascontiguousarray(column) for column in rows.T]
    emission = RegressionEmission(1, family, np.abs(np.column_stack([np.ones(300), X])).max(axis=0), 1.0, 1.0)
    data, weights = emission.read(columns), np.ones((300, 1))
    for seed in range(12):
        begun = {"coefficients": np.random.default_rng(seed).normal(0.0, 3.0, size=(1, 3))}
        for _ in range(6):
            moved = emission.maximise(emission.statistics(data, weights, begun), begun)
            before, after = (float(emission.log_densities(data, one).sum()) for one in (begun, moved))
            assert after >= before - 1e-9 * abs(before)
            begun = moved


def test_the_quadratic_has_the_slope_and_the_curvature_of_the_log_likelihood() -> None:
    rows = rows_of("poisson")
    emission = RegressionEmission(1, "poisson", np.ones(3), 1.0, 1.0)
    data = emission.read([np.ascontiguousarray(column) for column in rows.T])
    weights, here = np.linspace(0.1, 1.0, 300)[:, None], np.array([0.4, 0.5, 0.1])
    sums = emission.statistics(data, weights, {"coefficients": here[None]})
    design = np.column_stack([np.ones(300), X])

    def expected(v: Floats) -> float:
        return float(emission.expected(sums, {"coefficients": v[None]})[0])

    def observed(v: Floats) -> float:
        return float(weights[:, 0] @ stats.poisson.logpmf(rows[:, 0], np.exp(design @ v)))

    slopes = [optimize.approx_fprime(here, f, 1e-7) for f in (expected, observed)]
    np.testing.assert_allclose(slopes[0], slopes[1], rtol=1e-4, atol=1e-3)
    bent = design.T @ ((weights[:, 0] * np.exp(design @ here))[:, None] * design)
    np.testing.assert_allclose(sums["curvature"][0], bent, rtol=1e-12)


def test_missing_responses_frames_copies_and_durations(tmp_path: Path) -> None:
    rows = rows_of("poisson")
    frame = pd.DataFrame({"who": np.repeat([0, 1, 2], 100), "n": rows[:, 0], "x": X[:, 0], "z": X[:, 1]})
    model = sf.HiddenMarkovModel(2, sf.GLM("poisson"), tolerance=1e-4)
    of_frame: dict[str, Any] = {"group": "who", "columns": ["n", "x", "z"]}
    here = model.clone().fit(frame, **of_frame)
    there = model.clone().fit([rows[:100], rows[100:200], rows[200:]])
    np.testing.assert_allclose(there.transitions_, here.transitions_, rtol=1e-9)
    frame.to_parquet(tmp_path / "steps.parquet")
    held = model.clone().fit(str(tmp_path / "steps.parquet"), **of_frame)
    np.testing.assert_allclose(held.transitions_, here.transitions_, rtol=1e-9)
    here.write(tmp_path / "m.json")
    again = sf.read(tmp_path / "m.json")
    np.testing.assert_array_equal(again.score_samples(frame, group="who"), here.score_samples(frame, group="who"))
    gaps = rows[:100].copy()
    gaps[3, 0] = np.nan
    assert np.isfinite(there.score_samples([gaps])[0])
    assert there.forecast([gaps], 2)[0].shape == (2, 2)
    lasting = sf.HiddenMarkovModel(2, sf.GLM("poisson"), durations=sf.Poisson(), tolerance=1e-4).fit([rows])
    assert lasting.accuracy([rows], [STATES]) > 0.8
    through = sf.HiddenMarkovModel(1, sf.GLM("poisson", fit_intercept=False), **TIGHT).fit([rows])
    own = sf.GLM("poisson", fit_intercept=False).fit(X, rows[:, 0])
    np.testing.assert_allclose(through.emissions_[0].coefficients_, own.coefficients_, rtol=1e-6)
    assert through.emissions_[0].intercept_ == 0.0
    assert through.fitted_.n_params == 2


def test_what_makes_no_sense_is_an_error() -> None:
    rows = rows_of("poisson")
    with pytest.raises(sf.OptionError, match="of the families"):
        sf.HiddenMarkovModel(2, sf.GLM("gamma")).fit([rows])
    with pytest.raises(sf.OptionError, match=r"prior=.* would have no effect"):
        sf.HiddenMarkovModel(2, sf.GLM("poisson", prior=sf.Normal(variance=1.0))).fit([rows])
    with pytest.raises(sf.DataError, match="after it, covariates"):
        sf.HiddenMarkovModel(2, sf.GLM("poisson")).fit([rows[:, :1]])
    with pytest.raises(sf.DataError, match="a poisson response has counts"):
        sf.HiddenMarkovModel(2, sf.GLM("poisson")).fit([rows + 0.5])
    bad = rows.copy()
    bad[7, 1] = np.nan
    with pytest.raises(sf.DataError, match="response alone may be missing"):
        sf.HiddenMarkovModel(2, sf.GLM("poisson")).fit([bad])
    with pytest.raises(sf.OptionError, match="an intercept and coefficients"):
        sf.HiddenMarkovModel(2, sf.GLM("poisson"), emissions=[[0.0, 1.0]] * 2).fit([rows])
    with pytest.raises(sf.OptionError, match="hidden node of a DynamicBayesianNetwork"):
        sf.HiddenMarkovModel(2, sf.Normal(), transitions=sf.GLM("multinomial")).fit([rows[:, 0]])
    model = sf.HiddenMarkovModel(1, sf.GLM("poisson")).fit([rows])
    with pytest.raises(sf.OptionError, match="depends on covariates"):
        model.sample(3)
    with pytest.raises(sf.OptionError, match="expected one of"):
        StateRegression("gamma", 0.0, [1.0])
