"""Steps in the order of a column: the same fit from every source and in any order of rows; ties and gaps refused."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import suffice as sf


def table(seed: int = 0, people: int = 9, steps: int = 40) -> pd.DataFrame:
    """Walks of a chain that stays with probability 0.8, one a person, in order."""
    rng = np.random.default_rng(seed)
    rows = []
    for person in range(people):
        state = int(rng.integers(2))
        for at in range(steps):
            state = state if rng.random() < 0.8 else 1 - state
            rows.append((f"p{person}", at, "ab"[state], rng.normal(loc=3.0 * state)))
    found = pd.DataFrame(rows, columns=["person", "step", "state", "value"])
    found["stamp"] = 1_700_000_000_000_000_000 + found["step"]  # Differ in the last digit of nanoseconds.
    found["time"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(found["step"], unit="h")
    found["text"] = [f"{at:04d}" for at in found["step"]]
    found["weight"] = found["person"].str[1].astype(int) % 3 + 1.0
    return found


ORDERED = table()
SHUFFLED = ORDERED.sample(frac=1.0, random_state=3).reset_index(drop=True)


def transitions(data: Any, **form: Any) -> np.ndarray:
    return np.asarray(sf.MarkovChain().fit(data, columns="state", **form).transitions_.values)


@pytest.fixture(scope="module")
def right() -> np.ndarray:
    found = transitions(ORDERED, group="person")
    assert abs(found[0, 0] - 0.8) < 0.06
    return found


@pytest.mark.parametrize("order", ["step", "stamp", "time", "text"])
def test_frames_and_files_are_sorted_within_each_sequence(right: np.ndarray, order: str, tmp_path: Path) -> None:
    polars = pytest.importorskip("polars")
    SHUFFLED.to_parquet(tmp_path / "rows.parquet", row_group_size=50)
    SHUFFLED.to_csv(tmp_path / "rows.csv", index=False)
    sources: list[Any] = [
        SHUFFLED,
        polars.from_pandas(SHUFFLED),
        polars.from_pandas(SHUFFLED).lazy(),
        tmp_path / "rows.parquet",
        str(tmp_path / "rows.csv"),
        {name: SHUFFLED[name].to_numpy() for name in SHUFFLED},
    ]
    assert not np.allclose(transitions(SHUFFLED, group="person"), right, atol=0.1)
    for data in sources:
        np.testing.assert_array_equal(transitions(data, group="person", order=order), right)


def test_one_sequence_is_sorted_whole() -> None:
    one = ORDERED[ORDERED["person"] == "p3"]
    mixed = one.sample(frac=1.0, random_state=1)
    np.testing.assert_array_equal(transitions(mixed, order="time"), transitions(one))


def test_the_order_and_the_group_hold_no_observations() -> None:
    frame = SHUFFLED[["person", "step", "state"]]
    chain = sf.MarkovChain().fit(frame, group="person", order="step")
    assert chain.states_ == ("a", "b")
    weighted = sf.MarkovChain().fit(
        SHUFFLED[["person", "step", "state", "weight"]], sample_weight="weight", group="person", order="step"
    )
    repeated = pd.concat([ORDERED.assign(person=ORDERED["person"] + f"/{k}")[ORDERED["weight"] > k] for k in range(3)])
    np.testing.assert_allclose(weighted.transitions_.values, transitions(repeated, group="person"), rtol=1e-12)


def test_every_question_takes_the_order() -> None:
    chain = sf.MarkovChain().fit(ORDERED, group="person", columns="state")
    form: dict[str, Any] = {"group": "person", "order": "step", "columns": "state"}
    plain: dict[str, Any] = {"group": "person", "columns": "state"}
    assert chain.score(SHUFFLED, **form) == pytest.approx(chain.score(ORDERED, **plain), rel=1e-13)
    assert chain.perplexity(SHUFFLED, **form) == pytest.approx(chain.perplexity(ORDERED, **plain), rel=1e-13)
    np.testing.assert_allclose(chain.score_samples(SHUFFLED, **form), chain.score_samples(ORDERED, **plain))
    twice = chain.clone().fit(SHUFFLED, **form).partial_fit(SHUFFLED, **form)
    assert twice.report_.weight == 2 * chain.report_.weight
    np.testing.assert_array_equal(twice.unlearn(SHUFFLED, **form).transitions_.values, chain.transitions_.values)


def test_hidden_chains_take_the_order() -> None:
    model = sf.HiddenMarkovModel(["a", "b"], sf.Normal(), prior={"transitions": 1.0}, tolerance=1e-4)
    form: dict[str, Any] = {"group": "person", "order": "time", "columns": "value"}
    plain = {"group": "person", "columns": "value"}
    for states in (None, "state"):
        found, expected = model.clone().fit(SHUFFLED, states, **form), model.clone().fit(ORDERED, states, **plain)
        np.testing.assert_array_equal(found.transitions_, expected.transitions_)
        for ask in ("predict", "predict_proba", "score_samples", "filter"):
            for left, right_ in zip(
                getattr(found, ask)(SHUFFLED, **form), getattr(found, ask)(ORDERED, **plain), strict=True
            ):
                np.testing.assert_array_equal(left, right_)
        assert found.accuracy(SHUFFLED, "state", **form) == found.accuracy(ORDERED, "state", **plain)  # type: ignore[arg-type]
        assert found.score(SHUFFLED, **form) == found.score(ORDERED, **plain)


def test_groups_come_in_the_order_of_their_names() -> None:
    chain = sf.MarkovChain().fit(ORDERED, group="person", columns="state")
    each = chain.score_samples(SHUFFLED, group="person", order="step", columns="state")
    by_name = [
        chain.score_samples(ORDERED[ORDERED["person"] == name], columns="state")[0]
        for name in sorted(ORDERED["person"].unique())
    ]
    np.testing.assert_allclose(each, by_name)


@pytest.mark.parametrize(
    ("change", "form", "message"),
    [
        ({"step": 7}, {"order": "step"}, "holds 7 twice in the sequence 'p0'"),
        ({"step": np.nan}, {"order": "step"}, "missing value"),
        ({}, {"order": "when"}, "no column 'when' in the data, which order= names"),
        ({}, {"order": "person"}, "both name 'person'"),
        ({"text": 3}, {"order": "text"}, "cannot be sorted"),
    ],
)
def test_what_does_not_order_steps_is_refused(change: dict[str, Any], form: dict[str, Any], message: str) -> None:
    frame = ORDERED.copy()
    for name, value in change.items():
        column = frame[name].astype(object) if name == "text" else frame[name].astype(float if value != 7 else int)
        column.iloc[9 if value == 7 else 4] = value
        frame[name] = column
    with pytest.raises((sf.DataError, sf.OptionError), match=message):
        transitions(frame, group="person", **form)


def test_the_order_is_that_of_a_table() -> None:
    with pytest.raises(sf.OptionError, match="no column names"):
        sf.MarkovChain().fit(["ab", "ba"], order="step")
    with pytest.raises(sf.OptionError, match="with lengths="):
        sf.MarkovChain().fit(ORDERED, lengths=[40] * 9, order="step", columns="state")
    with pytest.raises(sf.OptionError, match="order"):
        sf.MarkovChain().fit(iter(["ab", "ba"]), order="step")


# -- engines whose rows have no order --------------------------------------------------------------------------------


@pytest.fixture
def relation() -> Iterator[Any]:
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect() as connection:
        connection.register("steps", SHUFFLED)
        yield connection.sql("select * from steps")


def check_engine(frame: Any, right: np.ndarray, orders: list[str]) -> None:
    for model, columns in (
        (sf.MarkovChain(), "state"),
        (sf.HiddenMarkovModel(2, sf.Normal()), "value"),
    ):
        for form in ({"group": "person"}, {}):
            with pytest.raises(sf.OptionError, match=r"no order of their own.*order="):
                model.fit(frame, columns=columns, **form)
    for order in orders:
        np.testing.assert_array_equal(transitions(frame, group="person", order=order), right)
    known = sf.HiddenMarkovModel(["a", "b"], sf.Normal(), prior=1.0)
    form = {"group": "person", "order": orders[0], "columns": "value"}
    found = known.clone().fit(frame, "state", **form)
    expected = known.clone().fit(ORDERED, "state", group="person", columns="value")
    np.testing.assert_array_equal(found.transitions_, expected.transitions_)
    weighted = sf.MarkovChain().fit(frame, sample_weight="weight", group="person", order=orders[0], columns="state")
    by_rows = sf.MarkovChain().fit(ORDERED, sample_weight="weight", group="person", columns="state")
    np.testing.assert_allclose(weighted.transitions_.values, by_rows.transitions_.values, rtol=1e-13)


def test_duckdb_needs_an_order(relation: Any, right: np.ndarray) -> None:
    check_engine(relation, right, ["step", "stamp", "time", "text"])


def test_dask_needs_an_order(right: np.ndarray) -> None:
    dask_frames = pytest.importorskip("dask.dataframe")
    frame = dask_frames.from_pandas(ORDERED, npartitions=5).shuffle("value", npartitions=4)
    check_engine(frame, right, ["step", "stamp", "time", "text"])
