"""Student's t learned from rows, against scipy.stats and a generic optimiser."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from scipy import optimize, stats

import suffice as sf
from suffice.array_types import Floats
from suffice.families.student_fit import scored

ROWS = np.asarray(stats.t.rvs(3.5, 2.0, 1.7, size=300, random_state=1))


def best(rows: Floats) -> tuple[Floats, float]:
    """The maximum by Nelder and Mead's method."""

    def negative(v: Floats) -> float:
        return -float(stats.t.logpdf(rows, math.exp(v[0]), v[1], math.exp(v[2])).sum())

    solution = optimize.minimize(
        negative,
        np.array([1.0, float(np.median(rows)), 0.0]),
        method="Nelder-Mead",
        options={"xatol": 1e-10, "fatol": 1e-12, "maxiter": 5000, "maxfev": 5000},
    )
    return np.array([math.exp(solution.x[0]), solution.x[1], math.exp(solution.x[2])]), -float(solution.fun)


def test_maximum_likelihood_is_that_of_a_generic_optimiser() -> None:
    law = sf.StudentT().fit(ROWS)
    expected, value = best(ROWS)
    np.testing.assert_allclose(list(law.parameters_.values()), expected, rtol=1e-5)
    assert law.report_.log_likelihood == pytest.approx(value, rel=1e-12)
    assert law.report_.log_likelihood == pytest.approx(float(law.log_prob(ROWS).sum()), rel=1e-13)
    assert law.converged_
    assert law.n_params_ == 3
    certificate = law.report_.certificate
    assert certificate.moment_gap < 1e-6
    assert certificate.exists is None  # The likelihood has no bound where df and scale go to 0 together.
    assert law.score(ROWS) == pytest.approx(value / 300, rel=1e-12)


def test_the_score_is_the_slope_of_the_log_likelihood_and_the_information_its_variance() -> None:
    share = np.full(300, 1 / 300)
    here = (4.0, 1.5, 2.0)

    def value(v: Floats) -> float:
        return float(stats.t.logpdf(ROWS, here[0] * math.exp(v[2]), here[1] + v[0], here[2] * math.exp(v[1])).mean())

    there, slope, information = scored(ROWS, share, *here)
    assert there == pytest.approx(value(np.zeros(3)), rel=1e-12)
    np.testing.assert_allclose(slope, optimize.approx_fprime(np.zeros(3), value, 1e-7), atol=1e-6)
    x = np.asarray(stats.t(4.0, 1.5, 2.0).ppf((np.arange(200_000) + 0.5) / 200_000))
    steps = 1e-5 * np.eye(3)
    sides = [
        [stats.t.logpdf(x, 4.0 * math.exp(s * d[2]), 1.5 + s * d[0], 2.0 * math.exp(s * d[1])) for s in (1, -1)]
        for d in steps
    ]
    scores = np.array([(up - down) / 2e-5 for up, down in sides])
    np.testing.assert_allclose(information, scores @ scores.T / len(x), atol=2e-4)


def test_weights_are_repetitions_and_parts_add_up_and_come_out(tmp_path: Path) -> None:
    weights = np.arange(300) % 3
    weighted = sf.StudentT().fit(ROWS, sample_weight=weights)
    repeated = sf.StudentT().fit(np.repeat(ROWS, weights))
    assert list(weighted.parameters_.values()) == pytest.approx(list(repeated.parameters_.values()), rel=1e-9)
    parts = sf.StudentT().partial_fit(ROWS[:100]).partial_fit(ROWS[100:])
    whole = sf.StudentT().fit(ROWS)
    assert parts.parameters_ == pytest.approx(whole.parameters_, rel=1e-12)
    first = sf.StudentT().fit(ROWS[:100]).parameters_
    assert parts.unlearn(ROWS[100:]).parameters_ == pytest.approx(first, rel=1e-12)
    moved = sf.StudentT().fit(1e3 * ROWS + 5e3).parameters_
    assert moved == pytest.approx(
        {"df": whole.df_, "location": 1e3 * whole.location_ + 5e3, "scale": 1e3 * whole.scale_}, rel=1e-8
    )
    whole.write(tmp_path / "t.json")
    assert sf.read(tmp_path / "t.json").parameters_ == whole.parameters_


def test_tails_no_heavier_than_normal_ones_run_to_infinity_and_are_said() -> None:
    flat = np.linspace(-1.0, 2.0, 50)
    with pytest.warns(sf.ExistenceWarning, match="a normal distribution"):
        law = sf.StudentT().fit(flat)
    assert law.df_ == pytest.approx(1e6)
    assert law.report_.certificate.exists is False
    assert (law.location_, law.scale_) == pytest.approx((flat.mean(), flat.std()), rel=1e-5)


def test_what_makes_no_sense_is_an_error() -> None:
    with pytest.raises(sf.OptionError, match="without df="):
        sf.StudentT(scale=2.0)
    with pytest.raises(sf.OptionError, match="no effect"):
        sf.StudentT(df=3.0, max_iter=5)
    with pytest.raises(sf.OptionError, match="not fitted to rows"):
        sf.StudentT(df=3.0).fit(ROWS)
    with pytest.raises(sf.NotFittedError, match="has no parameters yet"):
        sf.StudentT().mean()
    with pytest.raises(sf.EstimateError, match="constant"):
        sf.StudentT().fit([2.0, 2.0, 2.0])
    with pytest.raises(sf.EstimateError, match="needs data"):
        sf.StudentT().fit([1.0, 2.0], sample_weight=[0, 0])
    assert sf.StudentT(3.0).n_params_ == 0
