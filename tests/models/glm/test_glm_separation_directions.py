"""Directions that separate rows are proved: neither outliers, nor small overlaps, nor units change the verdict."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import optimize

import suffice as sf
from suffice.models.glm import directions
from suffice.models.glm.directions import programme


def logit_oracle(x: Any, y: Any) -> Any:
    def loss(b: Any) -> Any:
        return np.logaddexp(0.0, -(2 * y - 1) * (b[0] + b[1] * x)).sum()

    return optimize.minimize(loss, [-1.0, 1.0], method="Nelder-Mead", options={"xatol": 1e-10, "fatol": 1e-14}).x


@pytest.mark.parametrize("outlier", [1e10, 1e13])
@pytest.mark.parametrize("seed", range(3))
def test_an_outlier_does_not_separate_rows_that_overlap(outlier: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.uniform(0.0, 3.0, size=30)
    y = (rng.random(30) < 1 / (1 + np.exp(2 - 1.3 * x))).astype(float)
    model = sf.GLM("binomial").fit(np.append(x, outlier)[:, None], np.append(y, 1.0))
    assert model.report_.certificate.exists is not False
    # The outlier has a likelihood of 1 at all slopes of weight.
    np.testing.assert_allclose(model.parameters_, logit_oracle(x, y), rtol=1e-5)


def test_an_outlier_of_counts_does_not_separate() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(0.0, 2.0, size=30)
    y = rng.poisson(np.exp(0.2 + 0.5 * x)).astype(float)
    model = sf.GLM("poisson").fit(np.append(x, -1e10)[:, None], np.append(y, 0.0))
    alone = sf.GLM("poisson").fit(x[:, None], y)
    assert model.report_.certificate.exists is not False
    np.testing.assert_allclose(model.parameters_, alone.parameters_, rtol=1e-6)


@pytest.mark.parametrize("overlap", [1e-7, 1e-9, 1e-11, 1e-14, 2.0**-53])
def test_a_tiny_overlap_is_never_called_separated(overlap: float) -> None:
    x = np.r_[np.linspace(0.0, 0.4, 20), 0.5 + overlap, 0.5, np.linspace(0.6, 1.0, 20)]
    y = np.r_[np.zeros(21), np.ones(21)]
    assert x[20] > x[21]
    rows = np.where(y > 0, 1.0, -1.0)[:, None] * np.column_stack((np.ones_like(x), x))
    assert programme(rows, np.zeros(len(y), dtype=np.bool_)).exists is not False
    if overlap > 1e-12:
        assert programme(rows, np.zeros(len(y), dtype=np.bool_)).exists is True


@pytest.mark.parametrize("gap", [1e-7, 1e-9, 1e-11])
def test_a_tiny_gap_is_never_called_an_overlap(gap: float) -> None:
    x = np.r_[np.linspace(0.0, 0.4, 20), 0.5, 0.5 + gap, np.linspace(0.6, 1.0, 20)]
    y = np.r_[np.zeros(21), np.ones(21)]
    rows = np.where(y > 0, 1.0, -1.0)[:, None] * np.column_stack((np.ones_like(x), x))
    assert programme(rows, np.zeros(len(y), dtype=np.bool_)).exists is not True


@pytest.mark.parametrize("many", [5_000, 0])
def test_every_direction_holds_in_exact_arithmetic(monkeypatch: pytest.MonkeyPatch, many: int) -> None:
    monkeypatch.setattr(directions, "MANY", many)
    rng = np.random.default_rng(3)
    separated = 0
    for case in range(160):
        n, k = int(rng.integers(4, 30)), int(rng.integers(2, 5))
        rows = rng.integers(-2, 3, size=(n, k)) * 10.0 ** rng.integers(-9, 10, size=(n, 1))
        rows *= 10.0 ** rng.integers(-9, 10, size=k)
        if case % 2:
            rows[:, 0] = np.abs(rows[:, 0])
        fixed = rng.random(n) < 0.1
        found = programme(rows, fixed)
        if found.exists is not False or found.direction is None or found.decided is None:
            continue
        separated += 1
        for row, held, decided in zip(rows, fixed, found.decided, strict=True):
            terms = [Fraction(a) * Fraction(b) for a, b in zip(row.tolist(), found.direction.tolist(), strict=True)]
            along, size = sum(terms, Fraction(0)), sum(map(abs, terms), Fraction(0))
            # The direction is the exact one, rounded.
            assert along > 0 if decided else abs(along) <= Fraction(1, 10**15) * size
            assert not (held and decided)
    assert separated > 15


@pytest.mark.parametrize("unit", [1.0, 1e9, 1e-12, 1e50, 1e-50])
def test_what_runs_away_does_not_depend_on_the_unit(unit: float) -> None:
    x = np.array([1.0, 2, 3, 4, 5, 6])[:, None] * unit
    model = sf.GLM("binomial").fit(x, [0, 0, 0, 1, 1, 1])
    np.testing.assert_array_equal(model.parameters_, [-np.inf, np.inf])
    assert model.report_.certificate.directions == ("intercept to -infinity", "x0 to +infinity")
    np.testing.assert_array_equal(model.predict(x), [0, 0, 0, 1, 1, 1])


@pytest.mark.parametrize("unit", [1.0, 1e9, 1e-12])
def test_what_runs_away_in_a_node_does_not_depend_on_the_unit(unit: float) -> None:
    rows = {"x": np.array([1.0, 2, 3, 4, 5, 6]) * unit, "y": [0, 0, 0, 1, 1, 1]}
    network = sf.BayesianNetwork([("x", "y")], nodes={"y": sf.GLM("binomial")}, states={"x": "real"}).fit(rows)
    said = " ".join(network.report_.certificate.directions)
    assert "intercept to -infinity" in said
    assert "x to +infinity" in said


@pytest.mark.filterwarnings("ignore::suffice.errors.ConvergenceWarning")
@pytest.mark.parametrize("unit", [1.0, 1e9, 1e-12])
def test_labels_that_separate_do_so_in_any_unit(unit: float) -> None:
    x = np.array([1.0, 2, 3, 4, 5, 6, 7, 8, 9])[:, None] * unit
    several = sf.GLM("multinomial").fit(x, list("aaabbbccc"))
    assert (
        np.isinf(several.parameters_).sum()
        == np.isinf(sf.GLM("multinomial").fit(x / unit, list("aaabbbccc")).parameters_).sum()
    )
    ordered = sf.GLM("ordinal").fit(x, [1, 1, 1, 2, 2, 2, 3, 3, 3])
    np.testing.assert_array_equal(ordered.parameters_, [np.inf, np.inf, np.inf])


def test_an_outlier_does_not_separate_ordered_labels() -> None:
    rng = np.random.default_rng(2)
    x = rng.uniform(0.0, 3.0, size=60)
    y = np.digitize(x + rng.logistic(size=60), [1.0, 2.0])
    alone = sf.GLM("ordinal").fit(x[:, None], y)
    beside = sf.GLM("ordinal").fit(np.append(x, 1e10)[:, None], np.append(y, 2))
    assert beside.report_.certificate.exists is not False
    np.testing.assert_allclose(beside.parameters_, alone.parameters_, rtol=1e-5)
    several = sf.GLM("multinomial").fit(np.append(x, 1e10)[:, None], np.append(y, 2))
    assert several.report_.certificate.exists is not False


@pytest.mark.parametrize("tail", [None, (1e10, 1.0)])
def test_rows_of_a_file_overlap_beside_an_outlier(tail: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    x, y = rng.uniform(0.0, 3.0, size=40), rng.integers(0, 2, size=40).astype(float)
    if tail is not None:
        x, y = np.append(x, tail[0]), np.append(y, tail[1])
    path = tmp_path / "rows.csv"
    path.write_text("\n".join(["x,y", *(f"{a!r},{b!r}" for a, b in zip(x.tolist(), y.tolist(), strict=True))]) + "\n")
    model = sf.GLM("binomial").fit(path, "y")
    assert model.report_.certificate.exists is not False
    assert np.isfinite(model.parameters_).all()


def test_rows_of_a_file_that_are_separated_are_found_so(tmp_path: Path) -> None:
    x, group = np.arange(40.0) % 10, np.arange(40) // 20
    y = np.where(group == 1, 1.0, (np.arange(40) * 7 % 3 == 0) * 1.0)
    path = tmp_path / "rows.csv"
    lines = [f"{a},{g},{b}" for a, g, b in zip(x, group.astype(float), y, strict=True)]
    path.write_text("\n".join(["x,g,y", *lines]) + "\n")
    model = sf.GLM("binomial").fit(path, "y")
    assert model.report_.certificate.exists is False
    assert model.report_.certificate.directions == ("g to +infinity",)
