"""Shards that stay prepared: rounds give what one pass over all rows gives."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from suffice.domain import Variable
from suffice.sources import open_source
from suffice.sources.base import Batch


@dataclass(frozen=True)
class Powers:
    """Sums of a power of a column."""

    def prepare(self, batch: Batch) -> np.ndarray:
        return batch.reals[0].copy()

    def evaluate(self, prepared: np.ndarray, parameters: int) -> np.ndarray:
        return np.array([(prepared**parameters).sum(), len(prepared)])


def largest(prepared: np.ndarray, parameters: object) -> np.ndarray:
    """Another question to the same shards."""
    return np.array([prepared.max()])


def frame(rows: int = 1000) -> pd.DataFrame:
    rng = np.random.default_rng(5)
    return pd.DataFrame({"x": rng.normal(size=rows), "s": np.array(["a", "b", "c"])[rng.integers(0, 3, rows)]})


def test_a_table_is_settled_by_its_labels_and_missing_values(tmp_path) -> None:
    data = frame()
    data.loc[::10, "x"] = np.nan
    data.loc[990:, "s"] = "0 comes last and sorts first"
    path = tmp_path / "rows.parquet"
    data.to_parquet(path, row_group_size=100)
    for given in (data, str(path)):
        source = open_source(given)
        settled = source.settle(source.infer(["x", "s"]))
        assert settled.domain["s"].states == ("0 comes last and sorts first", "a", "b", "c")
        assert settled.rows == 1000
        assert settled.weight == 1000.0
        assert dict(settled.missing) == {"x": 100}


def test_rounds_ask_all_shards_or_some(tmp_path) -> None:
    data = frame()
    path = tmp_path / "rows.parquet"
    data.to_parquet(path, row_group_size=100)
    source = open_source(str(path))
    settled = source.settle(source.infer(["x"], {"x": Variable("x", "real")}))
    with source.hold(Powers(), settled) as held:
        for power in (1, 2, 3):
            total, rows = held.sum(power)
            np.testing.assert_allclose(total, (data["x"] ** power).sum(), rtol=1e-12)
            assert rows == 1000
        assert held.rounds == 3
        first = held.sum(1, shards=[0])
        assert 0 < first[1] <= 1000
        assert held.sum(None, by=largest)[0] > 0
