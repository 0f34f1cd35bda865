"""The same table in every accepted form has the same summary, and that summary is what counting by hand gives."""

import datetime
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from sources.tables import COLUMNS, FORMS, NAMES, ROWS, STATISTICS, counts_of, cut, pandas_frame, states_of, summary
from suffice.domain import Domain, Variable
from suffice.errors import DataError, OptionError
from suffice.sources import assembly, open_source, summarize_source
from suffice.statistics import Counts, Moments, Patterns, Summary, Sums


@pytest.fixture(scope="module")
def reference() -> Summary:
    return summary(COLUMNS)


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_summary(form: str, reference: Summary, tmp_path: Path) -> None:
    assert summary(FORMS[form](tmp_path)) == reference


@pytest.mark.parametrize("form", ["dict of lists", "pandas", "polars", "Arrow table", "Parquet", "CSV"])
def test_threads_do_not_change_the_summary(
    form: str, reference: Summary, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut(monkeypatch, 2)
    data = FORMS[form](tmp_path)
    assert summary(data, threads=1) == summary(data, threads=2) == summary(data, threads=5) == reference


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_batches_of_any_size_give_the_same_summary(
    size: int, reference: Summary, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut(monkeypatch, size)
    for form in ("dict of arrays", "Arrow table", "Parquet", "polars lazy"):
        assert summary(FORMS[form](tmp_path)) == reference


def test_the_summary_is_what_counting_by_hand_gives(reference: Summary) -> None:
    assert states_of(reference.domain) == {
        "colour": ("blue", "green", "red"),
        "size": (1, 2, 3),
        "sold": (False, True),
        "price": (),
        "visits": (),
    }
    pairs = Counter((row[0], row[1]) for row in ROWS)
    expected = [[pairs[c, s] for s in (1, 2, 3)] for c in ("blue", "green", "red")]
    assert reference[STATISTICS[0]].dense().tolist() == expected
    assert reference[Counts(("sold",))].dense().tolist() == [2, 5]
    assert (reference.rows, reference.weight) == (7, 7.0)


def test_sums_are_exact(reference: Summary) -> None:
    moments = reference[Moments(("price", "visits"))]
    prices, visits = ([Fraction(value) for value in COLUMNS[name]] for name in ("price", "visits"))
    assert moments.weight == 7
    assert moments.total_pair[0].tolist() == [float(sum(prices)), float(sum(visits))]
    cross = float(sum(p * v for p, v in zip(prices, visits, strict=True)))
    assert moments.cross_pair[0].tolist() == [
        [float(sum(p * p for p in prices)), cross],
        [cross, float(sum(v * v for v in visits))],
    ]
    logs = float(sum(Fraction(float(np.log(price))) for price in COLUMNS["price"]))
    assert reference[Sums.of(("price", "log"), ("visits", "x"))].sums_pair[0].tolist() == [logs, 12.0]


def test_patterns_are_the_distinct_rows(reference: Summary) -> None:
    found = reference[Patterns(("colour", "sold"))]
    seen = Counter((("blue", "green", "red").index(row[0]), int(row[2])) for row in ROWS)
    assert [tuple(row) for row in found.rows.tolist()] == sorted(seen)
    assert found.weights.tolist() == [seen[key] for key in sorted(seen)]
    mixed = reference[Patterns(("size", "price"))]
    values = Counter((float((1, 2, 3).index(row[1])), row[3]) for row in ROWS)
    assert [tuple(row) for row in mixed.rows.tolist()] == sorted(values)
    assert mixed.weights.tolist() == [values[key] for key in sorted(values)]


def test_order_of_columns_and_rows_does_not_matter(reference: Summary) -> None:
    shuffled = pandas_frame()[["visits", "sold", "colour", "price", "size"]].iloc[[6, 2, 4, 0, 5, 1, 3]]
    assert summary(shuffled) == reference


def test_chunks_add_up_to_the_whole(reference: Summary) -> None:
    frame = pandas_frame()
    parts = [summary(frame[a:b]) for a, b in ((0, 2), (2, 3), (3, 3), (3, 7))]
    assert sum(parts) == reference
    assert parts[3] + parts[1] + parts[0] == reference
    assert reference - parts[0] == parts[1] + parts[3]


def test_only_the_columns_asked_for_are_read() -> None:
    frame = pd.DataFrame({"a": ["x", "y"], "broken": [[1], [2]]})
    assert counts_of(frame, "a") == ((("x", "y"),), [1, 1])
    table = pa.table({"a": ["x", "y"], "nested": [[1], [2]]})
    assert counts_of(table, "a") == ((("x", "y"),), [1, 1])
    assert counts_of(table.to_reader(), "a") == ((("x", "y"),), [1, 1])


# One column and arrays ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        [1, 2, 2],
        (1, 2, 2),
        np.array([1, 2, 2]),
        np.array([[1], [2], [2]]),
        pd.Series([1, 2, 2]),
        pl.Series([1, 2, 2]),
        pa.array([1, 2, 2]),
        pa.chunked_array([[1], [2, 2]]),
        pd.Index([1, 2, 2]),
        pd.array([1, 2, 2]),
    ],
    ids=lambda data: type(data).__name__,
)
def test_one_column(data: Any) -> None:
    assert counts_of(data, "n", columns=["n"]) == (((1, 2),), [1, 2])
    name = 0 if getattr(data, "ndim", 1) == 2 else "x"
    assert open_source(data).columns == (name,)


def test_a_series_keeps_its_name() -> None:
    assert open_source(pd.Series([1.0], name=("a", 1))).columns == (("a", 1),)
    assert open_source(pl.Series("b", [1.0])).columns == ("b",)


def test_ranges_and_empty_lists() -> None:
    assert counts_of(range(3), "x") == (((0, 1, 2),), [1, 1, 1])
    empty = open_source([])
    assert (empty.columns, empty.rows) == (("x",), 0)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["uint8", "int8", "int64", "uint64", "bool", "float32", "U3", "object"])
def test_matrices(dtype: str, order: Any) -> None:
    values = np.array([[0, 1, 1], [1, 1, 0], [1, 0, 1]]).astype(dtype).copy(order=order)
    source = open_source(values, columns=["a", "b", "c"])
    declared = [Variable(name, "discrete") for name in "abc"]
    found = summarize_source(source, source.infer(declared={v.name: v for v in declared}), [Counts(("a", "b", "c"))])
    expected = Counter(map(tuple, values.tolist()))
    states = [found.domain[name].states for name in "abc"]
    assert all(same == tuple(sorted(set(values[:, 0].tolist()))) for same in states)
    table = found[Counts(("a", "b", "c"))].dense()
    assert {
        (states[0][i], states[1][j], states[2][k]): int(table[i, j, k]) for i, j, k in np.argwhere(table)
    } == expected


def test_matrices_longer_than_a_block_are_turned() -> None:
    values = np.random.default_rng(0).integers(-3, 4, (20_000, 3))
    found = counts_of(values, 0, 2)
    expected = np.zeros((7, 7))
    np.add.at(expected, (values[:, 0] + 3, values[:, 2] + 3), 1)
    assert found == ((tuple(range(-3, 4)), tuple(range(-3, 4))), expected.tolist())


def test_default_names_of_a_matrix_are_numbers() -> None:
    assert open_source(np.zeros((2, 3))).columns == (0, 1, 2)
    assert open_source([[1, 2], [3, 4]]).columns == (0, 1)
    assert counts_of([("a", 1), ("b", 1)], "k", "v", columns=["k", "v"]) == ((("a", "b"), (1,)), [[1], [1]])


def test_whole_numbers_of_any_size() -> None:
    big = [2**64 - 1, 2**64 - 2, 2**64 - 1]
    assert counts_of(np.array(big, dtype=np.uint64), "x") == (((2**64 - 2, 2**64 - 1),), [1, 2])
    assert counts_of([10**30, 5], "x") == (((5, 10**30),), [1, 1])
    assert counts_of(np.array([-(2**63), 2**63 - 1]), "x") == (((-(2**63), 2**63 - 1),), [1, 1])
    assert counts_of(np.array([-128, 127], dtype=np.int8), "x") == (((-128, 127),), [1, 1])
    assert counts_of(np.array([300, 70_000, 300]), "x") == (((300, 70_000),), [2, 1])


def test_many_states_take_wider_codes() -> None:
    values = np.arange(70_000) * 3
    source = open_source({"few": values % 2, "many": values})
    (batch,) = source.batches(source.infer())
    assert batch.codes.dtype == np.uint32
    assert batch.codes[1].tolist() == list(range(70_000))
    (narrow,) = source.batches(source.infer(["few"]))
    assert narrow.codes.dtype == np.uint8


def test_masked_arrays_have_gaps() -> None:
    values = np.ma.MaskedArray([1, 2, 3], mask=[False, True, False])
    source = open_source(values)
    (batch,) = source.batches(source.infer())
    assert (batch.domain["x"].states, batch.codes.tolist()) == ((1, 3), [[0, 2, 1]])


# Names ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [0, "", ("a", 1), 2.5, datetime.date(2024, 1, 1), None, False])
def test_any_hashable_is_a_name(name: Any) -> None:
    assert counts_of({name: [1, 1], "other": [0, 1]}, name) == (((1,),), [2])
    assert counts_of(pd.DataFrame({name: [1, 1]}), name) == (((1,),), [2])


def test_columns_selects_from_tables_that_have_names(tmp_path: Path) -> None:
    for form in ("pandas", "polars lazy", "Arrow table", "Parquet", "CSV", "dict of lists", "structured array"):
        source = open_source(FORMS[form](tmp_path), columns=["size", "colour"])
        assert source.columns == ("size", "colour")
        assert source.infer().names == ("size", "colour")
    assert open_source(COLUMNS, columns="size").columns == ("size",)


def test_an_open_source_passes_through() -> None:
    source = open_source(COLUMNS)
    assert open_source(source) is source
    with pytest.raises(OptionError, match="open already"):
        open_source(source, columns=["size"])


def test_passes_are_counted() -> None:
    source = open_source(COLUMNS)
    domain = source.infer(["size"])
    assert source.passes == 0
    list(source.batches(domain))
    summarize_source(source, domain, [Counts(("size",))])
    assert (source.passes, source.rows, source.columns) == (2, 7, NAMES)


def test_a_reader_is_read_once() -> None:
    source = open_source(pa.table(COLUMNS).to_reader())
    domain = source.infer(["size"])
    summarize_source(source, domain, [Counts(("size",))])
    with pytest.raises(DataError, match="only once"):
        summarize_source(source, domain, [Counts(("size",))])


def test_columns_that_lie_behind_one_another_are_summed_where_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assembly, "_LARGE", 1)
    table = np.random.default_rng(0).normal(size=(4, 50))
    before = table.copy()
    places = {"all": [0, 1, 2, 3], "every second": [0, 2], "one": [1], "backwards": [2, 1, 0], "twice": [1, 1]}
    for rows in (*places.values(), [0, 1, 3]):
        for columns in ([table[row] for row in rows], [table[row].copy() for row in rows], list(table[rows, ::2])):
            names = [f"x{number}" for number in range(len(rows))]
            source = open_source(dict(zip(names, columns, strict=True)))
            (batch,) = source.batches(Domain(Variable(name, "real") for name in names))
            np.testing.assert_array_equal(batch.reals, np.array(columns))
            apart = rows in (places["all"], places["every second"], places["one"]) and columns[0].base is table
            assert np.shares_memory(batch.reals, table) == apart
            assert batch.reals.flags.writeable != np.shares_memory(batch.reals, columns[0])
    np.testing.assert_array_equal(table, before)
    domain = Domain(Variable(name, "real") for name in "abcd")
    table[2, 7] = np.inf
    with pytest.raises(DataError, match=r"'c' holds inf \(row 7\)"):
        summarize_source(open_source(dict(zip("abcd", table, strict=True))), domain, [Moments(tuple("abcd"))])
