"""What models answer about rows elsewhere: columns of a frame, by names that are free, with errors that name rows."""

from __future__ import annotations

from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

import suffice as sf
from suffice.errors import DataError, EstimateError, OptionError, UnknownStateError

ROWS = 60


def table() -> pd.DataFrame:
    rng = np.random.default_rng(5)
    a = rng.integers(0, 2, ROWS)
    x = rng.normal(size=ROWS)
    data = pd.DataFrame({"a": np.array(["no", "yes"])[a], "b": np.array(["u", "v"])[(a + (x > 1)) % 2], "x": x})
    data["y"] = 2.0 * x + rng.normal(size=ROWS)
    data["group"] = np.arange(ROWS) // 10
    data["step"] = np.arange(ROWS)
    return data


def network() -> Any:
    return sf.BayesianNetwork([("a", "b")]).fit(table()[["a", "b"]])


def partitions(data: pd.DataFrame) -> Any:
    return dd.from_pandas(data, npartitions=3)


def test_columns_of_states_and_of_answers_have_free_names() -> None:
    rows = table()[["a", "b"]].rename(columns={"b": "prediction"})
    model: Any = sf.BayesianNetwork([("a", "prediction")]).fit(rows)
    assert list(model.predict(partitions(rows), "a").columns) == ["prediction_"]
    assert list(network().predict_proba(partitions(table()), "b").columns) == ["u", "v"]
    assert list(network().query_rows(["a", "b"], partitions(table())).columns) == ["no, u", "no, v", "yes, u", "yes, v"]


def test_rows_of_the_target_alone_say_nothing_but_its_distribution() -> None:
    rows = table()[["b"]]
    shares = network().predict_proba(partitions(rows), "b").compute().to_numpy()
    expected = rows["b"].value_counts(normalize=True).sort_index().to_numpy()
    np.testing.assert_allclose(shares, np.broadcast_to(expected, (ROWS, 2)), rtol=1e-12)


def test_a_network_with_a_target_predicts_it() -> None:
    rows = table()[["a", "b"]]
    model: Any = sf.BayesianNetwork([("a", "b")], target="b").fit(partitions(rows))
    assert model.predict(partitions(rows))["prediction"].compute().tolist() == model.predict(rows).tolist()


def test_bad_rows_are_named_once_they_are_computed() -> None:
    rows = table()[["a", "b"]]
    rows.loc[47, "b"] = "w"
    with pytest.raises(UnknownStateError, match=r"'w' .*row 7"):  # Of the third partition.
        network().predict(partitions(rows), "a").compute()
    never = pd.DataFrame({"a": ["no", "yes"], "b": ["u", "v"]})
    impossible = pd.DataFrame({"a": ["no", "yes", "no"], "b": ["u", "v", "v"]})
    chain: Any = sf.BayesianNetwork([("a", "b"), ("b", "c")]).fit(never.assign(c=["p", "q"]))
    with pytest.raises(EstimateError, match="first is row 2"):
        chain.predict(dd.from_pandas(impossible, npartitions=1), "c").compute()


def test_responses_are_drawn_in_this_process_alone() -> None:
    model = sf.GLM("gaussian").fit(table()[["x", "y"]], "y")
    with pytest.raises(OptionError, match="in this process"):
        model.sample(partitions(table()))


def test_a_sequence_that_cannot_be_is_called_by_its_name() -> None:
    rows = table().assign(a="no")
    model = sf.HiddenMarkovModel(
        ["s", "t"], emission=sf.Categorical(states=["no", "yes"]), prior={"initial": 1.0, "transitions": 1.0}
    ).fit(rows, states=np.where(np.arange(ROWS) % 2, "s", "t").tolist(), columns=["a"])
    rows.loc[33, "a"] = "yes"
    with pytest.raises(DataError, match="The sequence 3 is impossible"):
        model.filter(partitions(rows), group="group", order="step", columns=["a"])


def test_a_chain_calls_a_sequence_without_a_state_by_its_first_row(tmp_path: Any) -> None:
    rows = table()
    model = sf.MarkovChain().fit(rows, group="group", columns="b")
    rows.loc[33, "b"] = None
    rows.to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(DataError, match="The sequence of row 30 has a missing value at step 3"):
        model.score_samples(str(tmp_path / "rows.parquet"), group="group", columns="b")
