"""Labels in are labels out: types are kept, categories keep their place, declared states decide."""

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sources.tables import counts_of, cut, same_types
from suffice.domain import Variable, sort_states, state_key
from suffice.errors import DataError, UnknownStateError
from suffice.sources import open_source, summarize_source
from suffice.statistics import Counts

NOON = dt.datetime(2024, 5, 1, 12)
LATER = dt.datetime(2024, 5, 2, 12)


@pytest.mark.parametrize(
    ("values", "states"),
    [
        (["b", "a", "b"], ("a", "b")),
        ([2, 1, 2], (1, 2)),
        ([True, False, True], (False, True)),
        ([LATER, NOON, LATER], (NOON, LATER)),
        ([dt.date(2024, 1, 2), dt.date(2024, 1, 1)], (dt.date(2024, 1, 1), dt.date(2024, 1, 2))),
        ([dt.timedelta(2), dt.timedelta(1)], (dt.timedelta(1), dt.timedelta(2))),
    ],
    ids=["str", "int", "bool", "datetime", "date", "timedelta"],
)
@pytest.mark.parametrize("make", [dict, pl.DataFrame, pa.table, lambda d: pd.DataFrame(d, dtype=object)])
def test_types_are_kept(values: list[Any], states: tuple[Any, ...], make: Any) -> None:
    ((found,), counts) = counts_of(make({"v": values}), "v")
    assert same_types(found, states)
    assert counts == [values.count(state) for state in states]


def test_numpy_scalars_become_python_values() -> None:
    for values in (np.array(["b", "a"]), np.array(["b", "a"], dtype=object), [np.str_("b"), np.str_("a")]):
        assert same_types(counts_of({"v": values}, "v")[0][0], ("a", "b"))
    for numbers in (np.array([2, 1], dtype=np.int16), [np.int64(2), np.int64(1)]):
        assert same_types(counts_of({"v": numbers}, "v")[0][0], (1, 2))
    assert same_types(counts_of({"v": [np.True_, np.False_]}, "v")[0][0], (False, True))


def test_pandas_dates_are_timestamps() -> None:
    frame = pd.DataFrame({"v": pd.to_datetime(["2024-01-02", "2024-01-01", "2024-01-02"])})
    ((states,), counts) = counts_of(frame, "v")
    assert same_types(states, (pd.Timestamp("2024-01-01"), pd.Timestamp("2024-01-02")))
    assert counts == [1, 2]
    zoned = frame["v"].dt.tz_localize("UTC")
    assert counts_of(zoned, "v")[0][0] == tuple(sorted(zoned.unique()))
    months = pd.DataFrame({"v": pd.period_range("2024-01", periods=2, freq="M")})
    assert counts_of(months, "v")[0][0] == (pd.Period("2024-01"), pd.Period("2024-02"))


def test_numpy_dates_keep_their_type_and_match_declared_dates() -> None:
    values = np.array(["2024-05-02T12", "2024-05-01T12", "NaT"], dtype="M8[ns]")
    source = open_source({"v": values})
    (batch,) = source.batches(source.infer())
    assert batch.domain["v"].states == (np.datetime64(NOON), np.datetime64(LATER))
    assert batch.codes.tolist() == [[1, 0, 2]]
    for states in ([NOON, LATER], [np.datetime64(NOON), np.datetime64(LATER)], [pd.Timestamp(NOON), LATER]):
        declared = {"v": Variable.discrete("v", states)}
        for data in (values[:2], pd.Series(values[:2]), pl.Series(values[:2])):
            assert counts_of({"v": data}, "v", declared=declared) == ((tuple(states),), [1, 1])


def test_one_and_true_and_text_differ_within_a_column() -> None:
    values = ["1", 1, True, 1.0, "1", False, 0, None]
    for column in (
        values,
        np.array(values, dtype=object),
        pd.Series(values, dtype=object),
        pl.Series(values, dtype=pl.Object),
    ):
        source = open_source({"v": column})
        (batch,) = source.batches(source.infer())
        states = batch.domain["v"].states
        assert same_types(states, (False, True, 0, 1, "1"))
        assert batch.codes.tolist() == [[4, 3, 1, 3, 4, 0, 2, 5]]


def test_tuples_are_states() -> None:
    values = [(1, "a"), (True, "a"), (1, "a")]
    source = open_source({"v": values})
    (batch,) = source.batches(source.infer())
    assert batch.codes.tolist() in ([[0, 1, 0]], [[1, 0, 1]])
    assert {state_key(state) for state in batch.domain["v"].states} == {state_key(value) for value in values}


# Kinds ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1.0, 2.0], "real"),
        ([1.5, None], "real"),
        ([1, 2.5], "real"),
        ([Decimal("1.5"), Decimal(2)], "real"),
        ([1, None], "discrete"),
        ([1, float("nan")], "discrete"),
        ([True, 0.5], "discrete"),
        (["a", 0.5], "discrete"),
        ([None, None], "discrete"),
    ],
)
def test_kinds_of_lists_follow_their_values(values: list[Any], kind: str) -> None:
    assert open_source({"v": values}).infer()["v"].kind == kind
    assert open_source({"v": np.array(values, dtype=object)}).infer()["v"].kind == kind


def test_kinds_follow_the_types_of_columns(tmp_path: Path) -> None:
    frame = pl.DataFrame({"f": [1.5], "i": [1], "s": ["a"], "b": [True], "d": [NOON], "z": [Decimal("1.5")]})
    frame.write_parquet(tmp_path / "t.parquet")
    expected = {"f": "real", "i": "discrete", "s": "discrete", "b": "discrete", "d": "discrete", "z": "real"}
    for data in (
        frame,
        frame.lazy(),
        frame.to_arrow(),
        frame.to_pandas(use_pyarrow_extension_array=True),
        tmp_path / "t.parquet",
    ):
        assert {v.name: v.kind for v in open_source(data).infer().variables} == expected


def test_declared_kinds_win() -> None:
    data = {"i": [1, 2, 2], "f": [1.0, 2.0, 2.0]}
    declared = {"i": Variable("i", "real"), "f": Variable.discrete("f", [2, 1])}
    source = open_source(data)
    (batch,) = source.batches(source.infer(declared=declared))
    assert batch.reals.tolist() == [[1.0, 2.0, 2.0]]
    assert batch.codes.tolist() == [[1, 0, 0]]
    assert same_types(batch.domain["f"].states, (2, 1))


def test_floats_may_be_declared_as_states() -> None:
    declared = {"v": Variable.discrete("v", [0.5, 2, 1e300])}
    for column in ([2.0, 0.5, 1e300, 2.0], np.array([2.0, 0.5, 1e300, 2.0]), pa.array([2.0, 0.5, 1e300, 2.0])):
        assert counts_of({"v": column}, "v", declared=declared) == (((0.5, 2, 1e300),), [1, 2, 1])
    assert counts_of({"v": [2.0, 0.5]}, "v", declared={"v": Variable("v", "discrete")}) == (((0.5, 2.0),), [1, 1])


def test_an_integer_column_that_a_gap_made_float_matches_its_declared_states() -> None:
    frame = pd.DataFrame({"v": [1, None, 2, 2]})
    assert frame["v"].dtype == "float64"
    source = open_source(frame)
    (batch,) = source.batches(source.infer(declared={"v": Variable.discrete("v", [2, 1])}))
    assert batch.codes.tolist() == [[1, 2, 0, 0]]
    assert same_types(batch.domain["v"].states, (2, 1))


# Categories -----------------------------------------------------------------------------------------------------------


def test_unused_categories_keep_their_place(tmp_path: Path) -> None:
    levels = ["never", "high", "low"]
    frame = pd.DataFrame({"v": pd.Categorical(["low", "high", "low", None], categories=levels)})
    frame.to_parquet(tmp_path / "t.parquet")
    encoded = pa.DictionaryArray.from_arrays(pa.array([2, 1, 2, None]), pa.array(levels))
    tables = {
        "pandas": frame,
        "polars enum": pl.DataFrame({"v": pl.Series(["low", "high", "low", None], dtype=pl.Enum(levels))}),
        "polars lazy enum": pl.LazyFrame({"v": pl.Series(["low", "high", "low", None], dtype=pl.Enum(levels))}),
        "Arrow": pa.table({"v": encoded}),
        "Arrow reader": pa.table({"v": encoded}).to_reader(),
        "Parquet": tmp_path / "t.parquet",
    }
    for name, table in tables.items():
        source = open_source(table)
        domain = source.infer()
        assert (domain["v"].states, domain["v"].origin) == (tuple(levels), "category"), name
        (batch,) = source.batches(domain)
        assert (batch.domain["v"].states, batch.codes.tolist()) == (tuple(levels), [[2, 1, 2, 3]]), name


@pytest.mark.parametrize("levels", [[3, 1, 2], [True, False], [0.5, 0.25], [pd.Timestamp(NOON), pd.Timestamp(LATER)]])
def test_categories_keep_their_type(levels: list[Any]) -> None:
    frame = pd.DataFrame({"v": pd.Categorical([levels[0]], categories=levels)})
    assert same_types(open_source(frame).infer()["v"].states, levels)


def test_a_variable_declared_discrete_takes_the_categories() -> None:
    frame = pd.DataFrame({"v": pd.Categorical(["b", "a"], categories=["unused", "b", "a"])})
    domain = open_source(frame).infer(declared={"v": Variable("v", "discrete")})
    assert domain["v"].states == ("unused", "b", "a")


def test_declared_states_win_over_categories() -> None:
    frame = pd.DataFrame({"v": pd.Categorical(["b", "a"], categories=["unused", "a", "b"])})
    assert counts_of(frame, "v", declared={"v": Variable.discrete("v", ["b", "a"])}) == ((("b", "a"),), [1, 1])
    with pytest.raises(UnknownStateError, match=r"'b' \(str\) \(row 0\)"):
        counts_of(frame, "v", declared={"v": Variable.discrete("v", ["a"])})


def test_a_dictionary_may_hold_gaps_and_repeat_values() -> None:
    array = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 3, None]), pa.array(["a", None, "a", "b"]))
    source = open_source(pa.table({"v": array}))
    (batch,) = source.batches(source.infer())
    assert batch.domain["v"].states == ("a", "b")
    assert batch.codes.tolist() == [[0, 2, 0, 1, 2]]


def test_dictionaries_that_change_between_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    groups = [["s1", "s0", "s1"], ["s0", "s1", "s2"], ["s3", "s0", "s0"]]
    path = tmp_path / "groups.parquet"
    with pq.ParquetWriter(path, pa.schema([("v", pa.string())])) as writer:
        for group in groups:
            writer.write_table(pa.table({"v": group}))
    expected = ((("s0", "s1", "s2", "s3"),), [4, 3, 1, 1])
    assert counts_of(path, "v") == expected
    declared = {"v": Variable.discrete("v", ["s3", "s2", "s1", "s0", "s4"])}
    assert counts_of(path, "v", declared=declared) == ((("s3", "s2", "s1", "s0", "s4"),), [1, 1, 3, 4, 0])
    cut(monkeypatch, 2)
    assert counts_of(path, "v") == expected


def test_categories_that_grow_between_row_groups_are_appended(tmp_path: Path) -> None:
    path = tmp_path / "groups.parquet"
    schema = pa.schema([("v", pa.dictionary(pa.int32(), pa.string()))])
    with pq.ParquetWriter(path, schema) as writer:
        for group in (["b", "a"], ["d", "a"], ["c", "b"]):
            writer.write_table(pa.table({"v": pa.array(group).dictionary_encode()}, schema=schema))
    for threads in (1, 3):
        source = open_source(path)
        found = summarize_source(source, source.infer(), [Counts(("v",))], threads=threads)
        assert found.domain["v"].states == ("b", "a", "d", "c")
        assert found[Counts(("v",))].dense().tolist() == [2, 2, 1, 1]


# States that are known before ----------------------------------------------------------------------------------------


def test_declared_but_unseen_states_keep_their_row() -> None:
    declared = {"v": Variable.discrete("v", ["c", "b", "a"])}
    assert counts_of({"v": ["a", "b", "a"]}, "v", declared=declared) == ((("c", "b", "a"),), [0, 1, 2])


def test_states_seen_before_are_kept_and_grow() -> None:
    earlier = {"v": Variable("v", "discrete", ("a", "c"), "seen")}
    assert counts_of({"v": ["b", "c"]}, "v", declared=earlier) == ((("a", "b", "c"),), [0, 1, 1])
    category = {"v": Variable("v", "discrete", ("c", "a"), "category")}
    assert counts_of({"v": ["b", "c"]}, "v", declared=category) == ((("c", "a", "b"),), [1, 0, 1])


@pytest.mark.parametrize("value", ["1", True, 2, 1.5, dt.date(2024, 1, 1), None])
def test_an_undeclared_state_is_named_with_its_row_and_the_known_ones(value: Any) -> None:
    values = [1, 1, value, 1]
    declared = {"v": Variable.discrete("v", [1, 0])}
    for column in (values, pd.Series(values, dtype=object)):
        if value is None:
            assert counts_of({"v": column[:2]}, "v", declared=declared)[1] == [2, 0]
            continue
        with pytest.raises(UnknownStateError) as caught:
            counts_of({"v": column}, "v", declared=declared)
        message = str(caught.value)
        assert "'v'" in message
        assert f"{value!r} ({type(value).__name__}) (row 2)" in message
        assert "1, 0" in message
        assert "states=" in message


def test_the_first_undeclared_row_is_named_whatever_the_order_of_labels() -> None:
    with pytest.raises(UnknownStateError, match=r"'z' \(str\) \(row 1\)"):
        counts_of({"v": ["a", "z", "b", "b"]}, "v", declared={"v": Variable.discrete("v", ["a"])})
    long = np.zeros(20_000, dtype=int)
    long[[15_000, 19_000]] = 9, 8
    with pytest.raises(UnknownStateError, match=r"9 \(int\) \(row 15000\)"):
        counts_of(long, "x", declared={"x": Variable.discrete("x", [0])})


def test_values_that_cannot_be_states_are_named() -> None:
    with pytest.raises(DataError, match=r"'v' holds \[1\] \(list\) \(row 1\).*hashable"):
        counts_of({"v": [(1,), [1]]}, "v")
    with pytest.raises(DataError, match=r"'v' has the Arrow type list"):
        open_source(pa.table({"v": [[1]]})).infer()
    with pytest.raises(DataError, match=r"'v' has the Arrow type large_list"):
        open_source(pl.DataFrame({"v": [[1]]})).infer()
    with pytest.raises(DataError, match=r"'v' has the type complex128"):
        open_source({"v": np.array([1j])}).infer()


def test_long_columns_of_objects_are_coded_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    words = np.array(["a", "b", None, "c", float("nan")], dtype=object)[rng.integers(0, 5, 3000)]
    fresh = [None if word is None or word != word else (word + "x")[:1] for word in words]
    mixed = np.array(["1", 1, True, None], dtype=object)[rng.integers(0, 4, 3000)]
    short = {}
    for name, values in (("words", words), ("fresh", fresh), ("mixed", mixed)):
        source = open_source({name: values})
        (batch,) = source.batches(source.infer())
        short[name] = (batch.domain[name].states, batch.codes)
    monkeypatch.setattr("suffice.sources.columns._MANY_ROWS", 1000)
    for name, values in (("words", words), ("fresh", fresh), ("mixed", mixed), ("words", list(words))):
        source = open_source({name: values})
        (batch,) = source.batches(source.infer())
        assert same_types(batch.domain[name].states, short[name][0])
        np.testing.assert_array_equal(batch.codes, short[name][1])
    words[2000] = [1]
    with pytest.raises(DataError, match=r"\[1\] \(list\) \(row 2000\)"):
        counts_of({"v": words}, "v")


# Laws -----------------------------------------------------------------------------------------------------------------

SCALARS = st.one_of(
    st.text(max_size=3), st.integers(), st.booleans(), st.dates(), st.sampled_from([None, float("nan"), 0.5, -1e300])
)


@given(st.lists(SCALARS, max_size=20), st.integers(1, 7), st.sampled_from([(10**6, 1), (1, 10**6), (1, 1)]))
def test_coding_an_object_column_loses_nothing(values: list[Any], size: int, limits: tuple[int, int]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        cut(patch, size)
        # Few rows; many rows of the same objects; many rows of different objects.
        patch.setattr("suffice.sources.columns._MANY_ROWS", limits[0])
        patch.setattr("suffice.sources.objects._SAMPLE", limits[1])
        source = open_source({"v": np.array([*values, None], dtype=object)[:-1]})
        domain = source.infer(declared={"v": Variable("v", "discrete")})
        batches = list(source.batches(domain))
    states = batches[0].domain["v"].states
    decoded = [None if code == len(states) else states[code] for batch in batches for code in batch.codes[0].tolist()]
    gaps = [value is None or value != value for value in values]
    assert [value is None for value in decoded] == gaps
    kept = [(a, b) for a, b, gap in zip(values, decoded, gaps, strict=True) if not gap]
    assert all(state_key(a) == state_key(b) for a, b in kept)
    assert states == sort_states(value for value, gap in zip(values, gaps, strict=True) if not gap)


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=30))
def test_coding_whole_numbers_loses_nothing(values: list[int]) -> None:
    ((states,), counts) = counts_of(np.array(values), "x")
    assert states == tuple(sorted(set(values)))
    assert counts == [values.count(state) for state in states]


@given(st.lists(st.one_of(st.none(), st.text("abc\n,\"'é ", max_size=3)), min_size=1, max_size=15))
def test_text_is_coded_alike_by_every_library(values: list[str | None]) -> None:
    array = pa.array(values, pa.string())
    tables = {
        "pandas": pd.DataFrame({"v": pd.Series(values, dtype="str")}),
        "polars": pl.DataFrame({"v": pl.Series(values, dtype=pl.String)}),
        "Arrow": pa.table({"v": array}),
        "Arrow dictionary": pa.table({"v": array.dictionary_encode()}),
        "list": {"v": values},
    }
    for name, table in tables.items():
        source = open_source(table)
        (batch,) = source.batches(source.infer())
        states = batch.domain["v"].states
        assert name == "Arrow dictionary" or states == tuple(
            sorted({value for value in values if value is not None})
        ), name
        assert [None if code == len(states) else states[code] for code in batch.codes[0]] == values, name
