"""Draws come as a frame of the kind that a model was fitted to."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import suffice as sf

STATES: dict[str, Any] = {"a": ["x", "y", "y", "x", "y"], "b": [0, 1, 1, 1, 0]}
NUMBERS: dict[str, Any] = {"a": [1.0, 2.0, 4.0, 3.5], "b": [1.0, 3.0, 3.0, 5.0]}
MODELS: dict[str, tuple[Any, Any]] = {
    "network": (sf.BayesianNetwork([("a", "b")]), STATES),
    "Markov": (sf.MarkovNetwork([("a", "b")]), STATES),
    "Gaussian": (sf.GaussianGraph([("a", "b")]), NUMBERS),
}
FRAMES: dict[str, Any] = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("name", MODELS)
def test_frames_give_frames(name: str, kind: str, tmp_path: Path) -> None:
    unfitted, rows = MODELS[name]
    frame = FRAMES[kind](rows)
    model = unfitted.clone().fit(frame)
    drawn, plain = model.sample(7, random_state=3), unfitted.clone().fit(rows).sample(7, random_state=3)
    assert type(drawn) is type(frame)
    assert isinstance(plain, dict)
    for column, values in plain.items():
        np.testing.assert_array_equal(np.asarray(drawn[column]), values)
    # What was drawn can be learned from, and the model that joins rows still knows its kind.
    assert type(unfitted.clone().partial_fit(drawn).sample(2, random_state=0)) is type(frame)
    model.write(tmp_path / "model.json")
    assert isinstance(sf.read(tmp_path / "model.json").sample(2, random_state=0), dict)
