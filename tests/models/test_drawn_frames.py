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
SHARES: dict[str, Any] = {"a": [0.2, 0.3, 0.6, 0.45], "b": [0.8, 0.7, 0.4, 0.55]}
#: Steps of two sequences, with a column of numbers and one of words.
STEPS: dict[str, Any] = {
    "g": [1, 1, 1, 2, 2, 2],
    "u": [1.0, 1.5, 4.0, 4.5, 4.2, 1.2],
    "w": list("xxyyyx"),
    "z": list("sstttt"),
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


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize(("law", "rows"), [(sf.MultivariateNormal, NUMBERS), (sf.Dirichlet, SHARES)])
def test_frames_give_frames_of_the_columns_of_a_distribution(law: Any, rows: dict[str, Any], kind: str) -> None:
    frame = FRAMES[kind](rows)
    model = law().fit(frame, columns=["b", "a"])
    drawn, plain = model.sample(7, random_state=3), law().fit(rows, columns=["b", "a"]).sample(7, random_state=3)
    assert type(drawn) is type(frame)
    assert isinstance(plain, np.ndarray)
    for number, name in enumerate(("b", "a")):
        np.testing.assert_array_equal(np.asarray(drawn[name]), plain[:, number])
    assert type(law().partial_fit(drawn).sample(2, random_state=0)) is type(frame)
    # A distribution whose parameters are given knows of no frame.
    assert isinstance(model.with_mean_parameters(model.mean_parameters_).sample(2, random_state=0), np.ndarray)


def test_one_column_is_drawn_as_an_array() -> None:
    """A frame of one column may stand for its column, so that the draws of one are its values."""
    drawn = sf.Normal().fit(pd.DataFrame({"a": [1.0, 2.0, 4.0]})).sample(5, random_state=0)
    assert isinstance(drawn, np.ndarray)
    assert drawn.shape == (5,)
    chain = sf.HiddenMarkovModel(["s", "t"], sf.Normal(), prior=1.0)
    chain.fit(pd.DataFrame({"u": STEPS["u"], "z": STEPS["z"]}), "z")
    assert isinstance(chain.sample(5, random_state=0)[0], np.ndarray)


@pytest.mark.parametrize("kind", FRAMES)
def test_frames_give_frames_of_the_steps_of_hidden_chains(kind: str) -> None:
    unfitted = sf.HiddenMarkovModel(["s", "t"], [sf.Normal(), sf.Categorical()], prior=1.0)
    frame = FRAMES[kind](STEPS)
    model = unfitted.clone().fit(frame, "z", group="g")
    rows, states = model.sample(4, 3, random_state=0)
    plain, same = unfitted.clone().fit(STEPS, "z", group="g").sample(4, 3, random_state=0)
    for one, other, path, again in zip(rows, plain, states, same, strict=True):
        assert type(one) is type(frame)
        assert isinstance(other, np.ndarray)
        np.testing.assert_array_equal(path, again)
        np.testing.assert_array_equal(np.asarray(one["u"]), other[:, 0].astype(float))
        assert np.asarray(one["w"]).tolist() == other[:, 1].tolist()
    # Sequences that were drawn can be learned from, and one by itself is a frame.
    assert unfitted.clone().fit(rows, states).states_ == ("s", "t")
    assert type(model.sample(2, random_state=0)[0]) is type(frame)
    assert type(model.unlearn(frame[:3], "z", group="g").sample(2)[0]) is type(frame)
