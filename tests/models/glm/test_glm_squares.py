"""Gaussian regressions of columns that nearly depend on each other, beside rational arithmetic."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from benchmarks.nist.data import REGRESSIONS

import exact_squares as exact
import suffice as sf
from suffice.engines.linear_predictor import CoefficientLayout, RowBlock
from suffice.models.glm.families import GaussianFamily
from suffice.models.glm.family import RowDistribution
from suffice.models.glm.held_rows import RegressionRows
from suffice.models.glm.links import Identity
from suffice.models.glm.problem import RegressionProblem
from suffice.models.glm.squares import METHOD, read_squares

FILIP = next(problem for problem in REGRESSIONS if problem.name == "Filip")
SOLUTION = exact.solution(FILIP.design, FILIP.y)


def test_the_kernel_is_that_of_networks() -> None:
    model = sf.GLM().fit(FILIP.columns, FILIP.y)
    node = sf.BayesianNetwork({"y": list(FILIP.columns)}).fit({**FILIP.columns, "y": FILIP.y}).node("y")
    np.testing.assert_array_equal(np.append(model.intercept_, model.coefficients_), node.weights_)
    np.testing.assert_allclose(model.parameters_, [float(value) for value in SOLUTION], rtol=1e-10)
    assert model.report_.method == METHOD
    left = float(exact.squares(FILIP.design, FILIP.y, SOLUTION))
    assert model.dispersion_ == pytest.approx(left / 71, rel=1e-12)
    assert model.report_.converged


def test_several_responses_have_the_digits_of_one() -> None:
    both = np.column_stack([FILIP.y, FILIP.y[::-1]])
    model = sf.GLM().fit(FILIP.design[:, 1:], both)
    expected = np.array([[float(value) for value in exact.solution(FILIP.design, y)] for y in both.T])
    np.testing.assert_allclose(np.column_stack([model.intercept_, model.coefficients_.T]), expected, rtol=1e-9)
    assert model.report_.converged


@pytest.mark.parametrize("dispersion", [None, 1e-5])
def test_tampered_coefficients_are_no_nearer_than_the_bound_says(dispersion: Any) -> None:
    model = sf.GLM(dispersion=dispersion).fit(FILIP.columns, FILIP.y)
    found = model.report_.certificate
    assert (found.bound, found.exists) == (True, True)
    assert found.value_gap is not None
    assert found.value_gap < 1e-12
    assert found.moment_gap < 1e-5
    squares = read_squares(filip_problem())
    assert squares is not None
    best = exact.squares(FILIP.design, FILIP.y, SOLUTION)
    rng = np.random.default_rng(0)
    for size in (1e-13, 1e-11, 1e-9):
        beta = np.array(model.parameters_) * (1 + size * rng.normal(size=11))
        here = exact.squares(FILIP.design, FILIP.y, exact.rational(beta))
        known = dispersion
        loss = 0.5 * np.log(float(here / best)) if known is None else float(here - best) / 2 / 82 / known
        bound = squares.certificate(beta, known).value_gap
        assert bound is None or loss * (1 - 1e-9) - 1e-15 <= bound <= 1.01 * loss + 1e-12
        assert bound is not None or loss > 5


def filip_problem() -> RegressionProblem:
    block = RowBlock(np.ascontiguousarray(FILIP.design[:, 1:]), FILIP.y)
    return RegressionProblem(
        RegressionRows.of(block), CoefficientLayout(True, 10), RowDistribution(GaussianFamily(), Identity())
    )


def test_rows_on_disk_weights_and_offsets_give_the_same_digits(tmp_path: Path) -> None:
    frame = pd.DataFrame({**FILIP.columns, "y": FILIP.y})
    frame.to_parquet(tmp_path / "filip.parquet")
    plain = sf.GLM().fit(FILIP.columns, FILIP.y)
    stored = sf.GLM().fit(tmp_path / "filip.parquet", "y")
    np.testing.assert_allclose(stored.parameters_, plain.parameters_, rtol=1e-12)
    weights = np.random.default_rng(1).integers(1, 4, 82)
    repeated = {name: np.repeat(column, weights) for name, column in FILIP.columns.items()}
    one = sf.GLM().fit(repeated, np.repeat(FILIP.y, weights))
    two = sf.GLM().fit(FILIP.columns, FILIP.y, sample_weight=weights)
    np.testing.assert_allclose(one.parameters_, two.parameters_, rtol=1e-9)
    assert one.report_.method == two.report_.method == METHOD


def test_columns_that_are_left_out_leave_the_others_exact() -> None:
    columns = {**FILIP.columns, "again": 2.0 * FILIP.columns["x3"]}
    with pytest.raises(sf.EstimateError, match="combination"):
        sf.GLM().fit(columns, FILIP.y)
    model = sf.GLM(collinear="drop").fit(columns, FILIP.y)
    np.testing.assert_allclose(model.parameters_[:11], [float(value) for value in SOLUTION], rtol=1e-10)
