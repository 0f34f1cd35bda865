"""Kinds and states are those of the whole column, whatever the order of blocks and files."""

from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sources.tables import counts_of, same_types
from suffice.domain import Variable, sort_states
from suffice.errors import DataError
from suffice.sources import open_source, summarize_source
from suffice.sources.arrow import category
from suffice.sources.kinds import Declarations
from suffice.statistics import Counts, Moments

DISCRETE = {"v": Variable("v", "discrete")}


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("suffice.sources.csv.BLOCK_BYTES", 64)


def write(folder: Path, texts: Any) -> list[str]:
    paths = [folder / f"{at}.csv" for at in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_text("v\n" + text + "\n")
    return [str(path) for path in paths]


def whole(files: list[str]) -> Any:
    """The column as pandas reads it when all rows are in one file."""
    rows = "".join(Path(file).read_text().removeprefix("v\n") for file in files)
    joined = Path(files[0]).with_suffix(".joined")
    joined.write_text("v\n" + rows)
    return pd.read_csv(joined, low_memory=False)["v"]


PARTS = [
    ("1.5", "2"),
    ("2", "2", "2.5"),
    ("1", "x"),
    ("1.5", "x"),
    ("true", "1"),
    ("true", "maybe"),
    ("1", "NA"),
    ("1", "2"),
]


@pytest.mark.parametrize("parts", PARTS, ids=str)
def test_the_order_of_csv_files_does_not_matter(parts: tuple[str, ...], tmp_path: Path) -> None:
    for order in permutations(parts):
        files = write(tmp_path, order)
        column = whole(files).dropna()
        source = open_source(files)
        kind = "real" if column.dtype.kind == "f" and "NA" not in parts else "discrete"
        assert source.infer()["v"].kind == kind
        domain = open_source(files).infer(declared=DISCRETE)
        found = summarize_source(open_source(files), domain, [Counts(("v",))], missing="available")
        values = column.astype(int) if "NA" in parts else column
        expected = values.value_counts().sort_index()
        # A whole number is labelled as an integer, also beside others that are not whole.
        whole_ones = [int(v) if isinstance(v, float) and v.is_integer() else v for v in expected.index.tolist()]
        assert same_types(found.domain["v"].states, tuple(whole_ones))
        assert found[Counts(("v",))].dense().tolist() == expected.tolist()


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("late", ["2.5", "x"])
def test_a_late_value_settles_the_whole_column(late: str, threads: int, tmp_path: Path) -> None:
    for texts in (["1"] * 500 + [late], [late] + ["1"] * 500):
        files = write(tmp_path, ["\n".join(texts)])
        source = open_source(files)
        assert source.infer()["v"].kind == ("real" if late == "2.5" else "discrete")
        source = open_source(files)
        domain = source.infer(declared=DISCRETE)
        assert source.passes == 0
        found = summarize_source(source, domain, [Counts(("v",))], threads=threads)
        assert same_types(found.domain["v"].states, (1, 2.5) if late == "2.5" else ("1", "x"))
        assert found[Counts(("v",))].dense().tolist() == [500, 1]
        assert source.passes <= 3
        seen = [state for batch in open_source(files).batches(domain) for state in batch.domain["v"].states]
        assert all(isinstance(state, str) == (late == "x") for state in seen)


@pytest.mark.usefixtures("small_blocks")
def test_many_late_columns_cost_no_more_passes_than_one(tmp_path: Path) -> None:
    names = [f"c{at}" for at in range(6)]
    rows = [["1"] * 6 for _ in range(100)]
    for at in range(6):
        rows[50 + 5 * at][at] = "1.5"
    path = tmp_path / "t.csv"
    path.write_text("\n".join([",".join(names), *map(",".join, rows)]) + "\n")
    source = open_source(path)
    keys = [Counts((name,)) for name in names]
    found = summarize_source(source, source.infer(declared={n: Variable(n, "discrete") for n in names}), keys)
    assert all(same_types(found.domain[name].states, (1, 1.5)) for name in names)
    assert source.passes == 3


@pytest.mark.usefixtures("small_blocks")
def test_a_real_column_is_summed_whatever_its_first_block_holds(tmp_path: Path) -> None:
    source = open_source(write(tmp_path, ["\n".join(["1"] * 500 + ["2.5"])]))
    found = summarize_source(source, source.infer(), [Moments(("v",))])
    assert found[Moments(("v",))].total_pair[0].tolist() == [502.5]


@pytest.mark.parametrize("declared", [{}, DISCRETE])
def test_a_number_of_thousands_of_digits_is_named(declared: Any, tmp_path: Path) -> None:
    files = write(tmp_path, ["1\n" + "9" * 5000])
    with pytest.raises(DataError, match=r"'v' holds a whole number of 5000 digits \(row 1\); expected at most"):
        counts_of(files, "v", declared=declared)
    real = open_source(files)
    with pytest.raises(DataError, match=r"'v' holds inf \(row 1\); expected finite"):
        summarize_source(real, real.infer(declared={"v": Variable("v", "real")}), [Moments(("v",))])


# Parquet --------------------------------------------------------------------------------------------------------------


def parquet(folder: Path, columns: Any) -> list[str]:
    for at, column in enumerate(columns):
        pq.write_table(pa.table({"v": column}), folder / f"{at}.parquet")
    return [str(folder / f"{at}.parquet") for at in range(len(columns))]


@pytest.mark.parametrize(
    ("columns", "kind", "states"),
    [
        ((pa.array([1, 2]), pa.array([1.5])), "real", ()),
        ((pa.array([1, 2]), pa.array([1e300])), "real", ()),
        ((pa.array([1, 3]), pa.array([2.0, None, float("nan")])), "discrete", (1, 2, 3)),
        ((pa.array(["a"]), pa.nulls(2)), "discrete", ("a",)),
        ((pa.array([1.5]), pa.nulls(2)), "real", ()),
    ],
    ids=["fraction", "huge", "whole", "no values", "floats"],
)
def test_the_order_of_parquet_files_does_not_matter(
    columns: Any, kind: str, states: tuple[Any, ...], tmp_path: Path
) -> None:
    for order in permutations(columns):
        source = open_source(parquet(tmp_path, order))
        domain, _, _ = source.decide_kinds(source.infer(), {"v": Declarations("as states", "as numbers")})
        assert domain["v"].kind == kind
        key = Counts(("v",)) if kind == "discrete" else Moments(("v",))
        found = summarize_source(source, domain, [key], missing="available")
        assert same_types(found.domain["v"].states, states)


# Labels ---------------------------------------------------------------------------------------------------------------


def test_of_equal_numbers_the_whole_one_is_the_state() -> None:
    for values in ([1, 2, 1.0, 2.5], [1.0, 2.5, 2, 1], [2.5, 1, 2, 1.0]):
        assert same_types(sort_states(values), (1, 2, 2.5))
    left, right = Variable("v", "discrete", (1, 2)), Variable("v", "discrete", (1.0, 2.5))
    assert same_types(left.merge(right).states, (1, 2, 2.5))
    assert same_types(right.merge(left).states, (1, 2, 2.5))
    assert same_types(sort_states([True, 1, 1.0]), (True, 1))


def test_categories_are_told_apart_as_states_are() -> None:
    assert same_types(category("v", [True, 1, None, 1.0, "1"]).states, (True, 1, "1"))


def test_long_arrays_of_text_are_coded_as_short_ones_are() -> None:
    texts = np.array(["red", "", "a\0b", "a", "\ud800", "\U0001f600", "violet"])
    rows = np.random.default_rng(5).integers(0, len(texts), 120_000)
    for column in (texts[rows], texts.astype(">U9")[rows], np.repeat(texts[rows], 2)[::2]):
        ((states,), counts) = counts_of({"v": column}, "v")
        assert states == tuple(sorted(texts.tolist()))
        assert counts == np.bincount(rows)[np.argsort(texts.astype(object))].tolist()
