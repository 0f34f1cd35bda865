"""Gaps and weights: refused by name, or used as far as they go; a weight is a number of rows."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sources.tables import COLUMNS, FORMS, NAMES, STATISTICS, cut, pandas_frame, summary
from suffice.domain import Variable
from suffice.errors import DataError, EstimateError, MissingColumnError, MissingValueError, OptionError
from suffice.families.normal import Normal
from suffice.sources import Tally, open_source, summarize_source, tally
from suffice.statistics import Counts, Moments, Patterns, Statistic, Summary, Sums

GAPPY: dict[str, list[Any]] = {"a": ["x", None, "y", "x"], "b": [1, 2, None, 1], "r": [0.5, 2.0, 1.0, None]}


def summarize(data: Any, *statistics: Statistic, **options: Any) -> Summary:
    weights = options.pop("sample_weight", None)
    source = open_source(data, sample_weight=weights)
    names = dict.fromkeys(name for key in statistics for name in key.variables)
    return summarize_source(source, source.infer(names, options.pop("declared", {})), statistics, **options)


def gappy_tables(folder: Path) -> dict[str, Any]:
    nullable = pd.DataFrame(GAPPY).convert_dtypes()
    pl.DataFrame(GAPPY).write_parquet(folder / "gaps.parquet")
    pl.DataFrame(GAPPY).write_csv(folder / "gaps.csv")
    return {
        "lists": GAPPY,
        "NaN in lists": {k: [math.nan if v is None else v for v in values] for k, values in GAPPY.items()},
        "pd.NA in objects": nullable.astype({"a": object, "b": object, "r": "float64"}),
        "nullable": nullable,
        "Arrow-backed": nullable.convert_dtypes(dtype_backend="pyarrow"),
        "polars": pl.DataFrame(GAPPY),
        "Arrow": pa.table(GAPPY),
        "categories": nullable.astype({"a": "category", "b": "category", "r": "float64"}),
        "dicts without the key": [
            {k: v for k, v in zip(GAPPY, row, strict=True) if v is not None}
            for row in zip(*GAPPY.values(), strict=True)
        ],
        "Parquet": folder / "gaps.parquet",
        "CSV": folder / "gaps.csv",
    }


def test_gaps_of_every_kind_are_the_same_gaps(tmp_path: Path) -> None:
    keys = (Counts(("a", "b")), Counts(("b",)), Moments(("r",)), Patterns(("a", "b")), Patterns(("a", "r")))
    for name, table in gappy_tables(tmp_path).items():
        found = summarize(table, *keys, missing="available")
        assert found[keys[0]].dense().tolist() == [[2, 0], [0, 0]], name
        assert found[keys[1]].dense().tolist() == [2, 1], name
        assert (found[keys[2]].weight, found[keys[2]].mean.tolist()) == (3, [3.5 / 3]), name
        assert found[keys[3]].rows.tolist() == [[-1, 1], [0, 0], [1, -1]], name
        assert found[keys[3]].weights.tolist() == [1, 2, 1], name
        expected = [[0, 0.5], [0, math.nan], [1, 1.0], [math.nan, 2.0]]
        np.testing.assert_array_equal(found[keys[4]].rows, expected, err_msg=name)
        assert (found.rows, found.weight) == (4, 4.0), name


@pytest.mark.parametrize("size", [1, 2, 3])
def test_gaps_are_the_same_in_batches_of_any_size(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = (Counts(("a", "b")), Moments(("r",)), Patterns(("a", "b")), Patterns(("a", "r")))
    whole = summarize(GAPPY, *keys, missing="available")
    cut(monkeypatch, size)
    assert summarize(GAPPY, *keys, missing="available", threads=2) == whole


@pytest.mark.parametrize(
    ("statistic", "column", "row"),
    [
        (Counts(("a", "b")), "a", 1),
        (Counts(("b",)), "b", 2),
        (Moments(("r",)), "r", 3),
        (Sums.of(("r", "log")), "r", 3),
    ],
)
def test_gaps_are_refused_by_name(statistic: Statistic, column: str, row: int) -> None:
    with pytest.raises(MissingValueError) as caught:
        summarize(GAPPY, statistic)
    message = str(caught.value)
    assert f"Column {column!r} has 1 missing value among the rows 0 to 3, the first in row {row}" in message
    assert "Fill the missing values, or leave those rows out." in message


def test_patterns_take_gaps_without_asking() -> None:
    assert summarize(GAPPY, Patterns(("a", "b"))).rows == 4


def test_gaps_beside_the_statistic_do_not_matter() -> None:
    assert summarize({"a": [1, 1], "b": [None, None]}, Counts(("a",)))[Counts(("a",))].dense().tolist() == [2]


def test_sums_use_the_rows_in_which_all_their_variables_are_there() -> None:
    data = {"x": [1.0, 2.0, np.nan, 4.0], "y": [1.0, np.nan, 1.0, 3.0], "w": [1.0, 2.0, 3.0, 0.5]}
    key = Sums.of(("x", "x"), ("y", "reciprocal"))
    found = summarize(data, key, sample_weight="w", missing="available")[key]
    assert found.weight == 1.5
    np.testing.assert_allclose(found.sums_pair[0], [1 + 2, 1 + 0.5 / 3], rtol=1e-15)


def test_a_column_of_gaps_only() -> None:
    data = {"a": [None, None], "r": [np.nan, np.nan], "b": [1, 2]}
    keys = (Counts(("a", "b")), Counts(("a",)), Moments(("r",)), Patterns(("a", "b")))
    found = summarize(data, *keys, missing="available")
    assert found[keys[0]].dense().shape == (0, 2)
    assert found[keys[2]].weight == 0
    assert found[keys[3]].rows.tolist() == [[-1, 0], [-1, 1]]
    with pytest.raises(MissingValueError, match="'a' has 2 missing values"):
        summarize(data, keys[1])


def test_the_option_is_checked() -> None:
    with pytest.raises(OptionError, match=r"'drop'.*'raise' or 'available'"):
        Tally((Counts(("a",)),), "drop")  # type: ignore[arg-type]


def test_no_rows_give_the_empty_summary(tmp_path: Path) -> None:
    pandas_frame()[:0].to_parquet(tmp_path / "none.parquet")
    pandas_frame()[:0].to_csv(tmp_path / "none.csv", index=False)
    tables = {
        "pandas": pandas_frame()[:0],
        "polars": pl.DataFrame(COLUMNS)[:0],
        "lazy": pl.LazyFrame(COLUMNS).head(0),
        "Arrow": pa.table(COLUMNS)[:0],
        "dict": {name: values[:0] for name, values in COLUMNS.items()},
        "Parquet": tmp_path / "none.parquet",
        "CSV": tmp_path / "none.csv",
    }
    declared = {"price": Variable("price", "real"), "visits": Variable("visits", "count")}
    declared |= {name: Variable(name, "discrete") for name in NAMES[:3]}
    for name, table in tables.items():
        found = summary(table, declared=declared)
        assert (found.rows, found.weight) == (0, 0.0), name
        assert found[STATISTICS[0]].dense().shape == (0, 0), name
        assert found + summary(COLUMNS) == summary(COLUMNS), name


# Weights --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["dict of lists", "pandas", "polars", "polars lazy", "Arrow table", "Parquet", "CSV"])
def test_whole_weights_are_repeated_rows_to_the_bit(form: str, tmp_path: Path) -> None:
    weights = [2, 0, 1, 3, 1, 1, 4]
    repeated = summary({name: list(np.repeat(np.array(v, dtype=object), weights)) for name, v in COLUMNS.items()})
    data = FORMS[form](tmp_path)
    for given_weights in (
        weights,
        np.array(weights, dtype=np.float32),
        pd.Series(weights),
        pl.Series(weights),
        pa.array(weights),
    ):
        source = open_source(data, sample_weight=given_weights)
        domain = source.infer(NAMES, {"visits": Variable("visits", "count")})
        found = summarize_source(source, domain, STATISTICS)
        assert found.weight == repeated.weight == 12
        assert all(found[key] == repeated[key] for key in STATISTICS)


def test_weights_may_be_a_column(tmp_path: Path) -> None:
    frame = pandas_frame().assign(w=[0.5, 1, 2, 0, 1, 1, 0.25])
    frame.to_parquet(tmp_path / "w.parquet")
    frame.to_csv(tmp_path / "w.csv", index=False)
    expected = summarize(COLUMNS, Counts(("colour",)), Moments(("price",)), sample_weight=frame["w"])
    for data in (
        frame,
        pl.from_pandas(frame),
        pl.from_pandas(frame).lazy(),
        tmp_path / "w.parquet",
        tmp_path / "w.csv",
    ):
        source = open_source(data, sample_weight="w")
        assert source.columns == NAMES
        assert summarize(data, Counts(("colour",)), Moments(("price",)), sample_weight="w") == expected
    assert open_source(frame, columns=["size"], sample_weight="w").columns == ("size",)
    assert open_source(frame, columns=["size", "w"], sample_weight="w").columns == ("size",)
    assert open_source(frame.rename(columns={"w": 0}), sample_weight=0).columns == NAMES


def test_rows_of_weight_zero_are_as_good_as_gone() -> None:
    data: dict[str, list[Any]] = {"a": ["x", "y", None], "r": [1.0, 2.0, -1.0], "w": [1.0, 2.0, 0.0]}
    keys = (Counts(("a",)), Sums.of(("r", "log")), Patterns(("a", "r")))
    found = summarize(data, *keys, sample_weight="w")
    short = summarize({name: values[:2] for name, values in data.items()}, *keys, sample_weight="w")
    assert all(found[key] == short[key] for key in keys)
    assert (found.rows, found.weight) == (3, 3.0)


def test_all_weights_may_be_zero() -> None:
    found = summarize({"a": [1, 2]}, Counts(("a",)), sample_weight=[0, 0])
    assert (found.weight, found.rows, found[Counts(("a",))].dense().tolist()) == (0.0, 2, [0, 0])


@pytest.mark.parametrize(
    ("weights", "problem"),
    [
        ([1.0, math.nan, 1.0], r"sample_weight holds nan \(row 1\)"),
        ([1.0, None, 1.0], r"sample_weight holds nan \(row 1\)"),
        ([1.0, 1.0, -0.5], r"sample_weight holds -0.5 \(row 2\)"),
        ([math.inf, 1.0, 1.0], r"sample_weight holds inf \(row 0\)"),
        ([1.0, 1.0], "sample_weight has 2 values for 3 rows; give one weight a row"),
        ([1.0] * 4, "sample_weight has 4 values for 3 rows"),
        (["1", "1", "1"], r"'sample_weight' holds '1' \(str\) \(row 0\)"),
    ],
)
def test_wrong_weights_are_named(weights: list[Any], problem: str) -> None:
    with pytest.raises(DataError, match=problem):
        open_source({"a": [1, 2, 3]}, sample_weight=weights)


def test_weights_that_are_no_column_say_what_a_weight_is() -> None:
    for weight in (2.0, 3, True, np.float64(2.0)):
        with pytest.raises(
            DataError, match=r"sample_weight is .*; expected one weight a row, or the name of the column"
        ):
            open_source({"a": [1, 2]}, sample_weight=weight)
    for options in ({}, {"columns": ["a"]}):
        with pytest.raises(DataError, match="The only column, 'a', holds the weights"):
            open_source({"a": [1, 2], "b": [1, 2]} if options else {"a": [1, 2]}, sample_weight="a", **options)


def test_weights_that_cannot_be_added_up_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"sample_weight adds up to more than 1e\+300; divide"):
        open_source({"a": [1, 2]}, sample_weight=[1e308, 1e308])
    pd.DataFrame({"a": [1, 2], "w": [1e308, 1e308]}).to_parquet(tmp_path / "w.parquet")
    with pytest.raises(DataError, match="column of weights 'w' adds up to more than"):
        summarize(tmp_path / "w.parquet", Counts(("a",)), sample_weight="w")


def test_a_fit_to_weights_of_zero_says_so() -> None:
    with pytest.raises(EstimateError, match="All weights of the 2 rows are 0"):
        Normal().fit([1.0, 2.0], sample_weight=[0, 0])
    with pytest.raises(EstimateError, match="There are no rows"):
        Normal().fit(np.empty(0))


def test_wrong_weights_in_a_column_are_named(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": [1, 2, 3], "w": [1.0, 2.0, -1.0]})
    frame.to_parquet(tmp_path / "w.parquet")
    for data in (frame, tmp_path / "w.parquet"):
        with pytest.raises(DataError, match=r"weights 'w' holds -1.0 \(row 2\).*at least 0"):
            summarize(data, Counts(("a",)), sample_weight="w")
    with pytest.raises(MissingColumnError, match=r"no column 'W'.*mean 'w'"):
        open_source(frame, sample_weight="W")


def test_a_wrong_number_of_weights_for_a_file_is_found_while_reading(tmp_path: Path) -> None:
    write = pandas_frame().to_csv(tmp_path / "t.csv", index=False)
    assert write is None
    for weights in ([1.0] * 6, [1.0] * 8):
        with pytest.raises(DataError, match=f"sample_weight has {len(weights)} values"):
            summarize(tmp_path / "t.csv", Counts(("size",)), sample_weight=weights)
    pandas_frame().to_parquet(tmp_path / "t.parquet")
    with pytest.raises(DataError, match="sample_weight has 6 values for 7 rows"):
        open_source(tmp_path / "t.parquet", sample_weight=[1.0] * 6)


@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.sampled_from([0, 1]), st.floats(0, 4, width=16)), min_size=1, max_size=25
    ),
    st.integers(1, 9),
)
def test_weighted_counts_equal_exact_sums(rows: list[tuple[str, int, float]], size: int) -> None:
    # Weights of 16 bits add without rounding, so that every order of adding gives the same number.
    with pytest.MonkeyPatch.context() as patch:
        cut(patch, size)
        data = {"a": [row[0] for row in rows], "b": [row[1] for row in rows]}
        found = summarize(data, Counts(("a", "b")), sample_weight=[row[2] for row in rows], threads=2)
    table = found[Counts(("a", "b"))].dense()
    for i, a in enumerate(found.domain["a"].states):
        for j, b in enumerate(found.domain["b"].states):
            assert table[i, j] == math.fsum(row[2] for row in rows if row[:2] == (a, b))
    assert found.weight == math.fsum(row[2] for row in rows)


def test_a_tally_of_one_batch_is_its_summary() -> None:
    source = open_source(COLUMNS)
    (batch,) = source.batches(source.infer(["colour"]))
    assert tally(batch, [Counts(("colour",))]) == summarize(COLUMNS, Counts(("colour",)))


def test_statistics_must_fit_the_kinds() -> None:
    with pytest.raises(OptionError, match="Counts needs discrete variables, and 'price' is real"):
        summarize(COLUMNS, Counts(("price",)))
    with pytest.raises(OptionError, match="Moments needs real variables, and 'colour' is discrete"):
        summarize(COLUMNS, Moments(("colour",)))
