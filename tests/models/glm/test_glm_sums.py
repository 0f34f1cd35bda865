"""A Gaussian response of rows that are not in memory is learned from sums of products, where these say all."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

import suffice as sf

ROWS = 60


def table() -> pd.DataFrame:
    rng = np.random.default_rng(5)
    x = rng.normal(size=ROWS)
    data = pd.DataFrame({"a": np.array(["no", "yes"])[rng.integers(0, 2, ROWS)], "x": x})
    return data.assign(y=2.0 * x + rng.normal(size=ROWS))


def test_a_regression_reads_a_file_of_numbers_once(tmp_path: Path) -> None:
    path = str(tmp_path / "rows.parquet")
    table().to_parquet(path)
    model = sf.GLM("gaussian").fit(path, "y", columns=["x"])
    x, y = table()["x"].to_numpy(), table()["y"].to_numpy()
    slope = np.cov(x, y)[0, 1] / np.var(x, ddof=1)
    np.testing.assert_allclose(model.coefficients_["x"], slope, rtol=1e-12)
    assert model.report_.passes == 1
    assert model.report_.rows == ROWS
    rest = y - y.mean() - slope * (x - x.mean())
    np.testing.assert_allclose(model.residuals(path, "y", kind="response"), rest, atol=1e-12)


def test_regressions_whose_rows_say_more_than_sums_see_them(tmp_path: Path) -> None:
    path = str(tmp_path / "rows.parquet")
    table().assign(w=np.arange(ROWS) % 3, known=1.5).to_parquet(path)
    for options, more in (
        ({"covariance": "robust"}, {}),
        ({}, {"offset": "known"}),
        ({}, {"sample_weight": "w"}),
        ({"prior": sf.Normal(variance=2.0)}, {}),
    ):
        here = sf.GLM("gaussian", **options).fit(pd.read_parquet(path), "y", columns=["x", "a"], **more)
        there = sf.GLM("gaussian", **options).fit(path, "y", columns=["x", "a"], **more)
        np.testing.assert_allclose(there.coefficients_, here.coefficients_, rtol=1e-10)
        np.testing.assert_allclose(there.standard_errors_, here.standard_errors_, rtol=1e-9)
        np.testing.assert_allclose(there.log_likelihood_, here.log_likelihood_, rtol=1e-10)


def test_many_joint_levels_are_learned_from_the_rows(tmp_path: Path) -> None:
    path = str(tmp_path / "rows.parquet")
    rng = np.random.default_rng(6)
    levels = {f"f{k}": np.char.add("l", rng.integers(0, 40, 800).astype(str)) for k in range(3)}
    pd.DataFrame({**levels, "x": rng.normal(size=800), "y": rng.normal(size=800)}).to_parquet(path)
    here, there = sf.GLM("gaussian").fit(pd.read_parquet(path), "y"), sf.GLM("gaussian").fit(path, "y")
    assert "shard" in str(there.report_.plan)
    np.testing.assert_allclose(there.coefficients_, here.coefficients_, rtol=1e-9, atol=1e-12)


def test_columns_that_sums_would_round_away_are_learned_from_the_rows(tmp_path: Path) -> None:
    path = str(tmp_path / "rows.parquet")
    rng = np.random.default_rng(7)
    seconds = 1.6e9 + rng.uniform(0.0, 1e3, ROWS)
    nearly = table()["x"] + 1e-6 * rng.normal(size=ROWS)
    for columns in ({"seconds": seconds}, {"nearly": nearly}, {"y": 2.0 * table()["x"] + 1e-7 * rng.normal(size=ROWS)}):
        rows = table().assign(**columns)
        rows.to_parquet(path)
        here, there = sf.GLM("gaussian").fit(rows, "y"), sf.GLM("gaussian").fit(path, "y")
        assert "shard" in str(there.report_.plan)
        np.testing.assert_allclose(there.parameters_, here.parameters_, rtol=1e-12)
        np.testing.assert_allclose(there.dispersion_, here.dispersion_, rtol=1e-12)
