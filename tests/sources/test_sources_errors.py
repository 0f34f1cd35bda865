"""What cannot be read is named: the column, the value, the row, and what to do."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from sources.tables import COLUMNS, FORMS, NAMES, counts_of, cut
from suffice.domain import Variable
from suffice.errors import DataError, MissingColumnError, OptionError
from suffice.sources import Batch, open_source, summarize_source
from suffice.statistics import Counts, Moments, MomentsBy, Patterns, Sums


def numbers(data: Any, *names: str, kind: Any = "real") -> Any:
    source = open_source(data)
    domain = source.infer(names, {name: Variable(name, kind) for name in names})
    return summarize_source(source, domain, [Moments(names)])[Moments(names)].total_pair[0].tolist()


# Columns --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["dict of lists", "pandas", "polars lazy", "Arrow table", "Parquet", "CSV"])
def test_a_missing_column_is_named_with_the_nearest_and_the_known_ones(form: str, tmp_path: Path) -> None:
    source = open_source(FORMS[form](tmp_path))
    with pytest.raises(MissingColumnError) as caught:
        source.infer(["Color"])
    message = str(caught.value)
    assert "no column 'Color'" in message
    assert "Did you mean 'colour'?" in message
    assert "'colour', 'size', 'sold', 'price', 'visits'" in message
    with pytest.raises(MissingColumnError, match="no column 'nothing'"):
        source.infer(declared={"nothing": Variable("nothing", "real")})
    with pytest.raises(MissingColumnError, match="no column 0"):
        open_source(FORMS[form](tmp_path), columns=["size", 0])


def test_all_missing_columns_are_named() -> None:
    with pytest.raises(
        MissingColumnError, match=r"There are no columns 'a', 'b' in the data. Its columns are: 'colour'"
    ):
        open_source(COLUMNS).infer(["size", "a", "b"])


def test_columns_of_different_length_are_both_named() -> None:
    with pytest.raises(DataError, match="'a' has 3 rows and column 'b' has 2; all columns must be equally long"):
        open_source({"a": [1, 2, 3], "b": np.array([1, 2])})
    with pytest.raises(DataError, match="Row 1 has 1 values and row 0 has 2"):
        open_source([(1, 2), (3,)])


@pytest.mark.parametrize(
    "data",
    [
        pd.DataFrame([[1, 2]], columns=["a", "a"]),
        pa.table([[1], [2]], names=["a", "a"]),
        pa.table([[1], [2]], names=["a", "a"]).to_reader(),
    ],
    ids=["pandas", "Arrow", "reader"],
)
def test_two_columns_of_one_name_are_refused(data: Any) -> None:
    with pytest.raises(DataError, match="Two columns are named 'a'; rename"):
        open_source(data)


def test_names_given_twice_are_refused() -> None:
    with pytest.raises(DataError, match="Two columns are named 'a'"):
        open_source(np.zeros((2, 2)), columns=["a", "a"])
    with pytest.raises(DataError, match="Two columns are named 'size'"):
        open_source(COLUMNS, columns=["size", "size"])


def test_a_wrong_number_of_names_is_refused() -> None:
    with pytest.raises(DataError, match="3 names for an array of 2 columns"):
        open_source(np.zeros((2, 2)), columns=["a", "b", "c"])
    with pytest.raises(DataError, match="2 names for a single column"):
        open_source([1, 2], columns=["a", "b"])
    with pytest.raises(DataError, match="1 names for rows of 2 values"):
        open_source([(1, 2)], columns=["a"])


@pytest.mark.parametrize("data", [{}, pd.DataFrame(), pl.DataFrame(), np.zeros((3, 0)), [{}, {}]], ids=str)
def test_no_columns_are_refused(data: Any) -> None:
    with pytest.raises(DataError, match="no columns"):
        open_source(data)


@pytest.mark.parametrize("data", [None, 3, 2.5, object(), b"x"])
def test_what_is_no_table_is_refused_with_a_list_of_what_is(data: Any) -> None:
    with pytest.raises(DataError, match=f"from {type(data).__name__}. Accepted are: pandas, polars"):
        open_source(data)


def test_columns_of_the_wrong_shape_are_refused() -> None:
    with pytest.raises(DataError, match=r"'a' has shape \(2, 1\)"):
        open_source({"a": np.zeros((2, 1))})
    with pytest.raises(DataError, match="'a' is the single value 'text'"):
        open_source({"a": "text"})
    with pytest.raises(DataError, match="'a' is the single value 3"):
        open_source({"a": 3})
    with pytest.raises(DataError, match="3 dimensions"):
        open_source(np.zeros((2, 2, 2)))


# Values ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [np.inf, -np.inf])
@pytest.mark.parametrize("make", [dict, pd.DataFrame, pl.DataFrame, pa.table])
def test_infinite_numbers_are_named(value: float, make: Any) -> None:
    with pytest.raises(DataError) as caught:
        numbers(make({"v": [1.0, 2.0, value]}), "v")
    message = str(caught.value)
    assert f"Column 'v' holds {value!r} (row 2); expected finite numbers" in message
    assert "missing value" in message


def test_large_finite_numbers_are_fine() -> None:
    source = open_source({"v": [1e308, 1e308, -1e308]})
    (batch,) = source.batches(source.infer())
    assert batch.reals.tolist() == [[1e308, 1e308, -1e308]]
    huge = open_source({"v": [1e308] * 8 + [-1e308] * 8})
    assert summarize_source(huge, huge.infer(), [Patterns(("v",)), Sums.of(("v", "x"))]).rows == 16


@pytest.mark.parametrize("make", [dict, lambda d: pd.DataFrame(d, dtype=object), pl.DataFrame, pa.table])
def test_text_in_a_real_column_is_named(make: Any) -> None:
    with pytest.raises(DataError, match=re.escape("'v' holds '1.5' (str) (row 1); expected a real number")):
        numbers(make({"v": [None, "1.5"]}), "v")


def test_text_among_numbers_is_named() -> None:
    with pytest.raises(DataError) as caught:
        numbers({"v": [1.0, "two"]}, "v")
    assert str(caught.value) == (
        "Column 'v' holds 'two' (str) (row 1); expected a real number. Correct the value, or leave its row out."
    )
    with pytest.raises(DataError, match=r"'v' holds Timestamp.*\(row 0\)"):
        numbers(pd.DataFrame({"v": pd.to_datetime(["2024-01-01"])}), "v")
    with pytest.raises(DataError, match=r"'v' holds 'a' \(str\) \(row 0\)"):
        numbers(pd.DataFrame({"v": pd.Categorical(["a"])}), "v")
    with pytest.raises(DataError, match=r"'v' holds 'a' \(str\) \(row 0\)"):
        numbers(pl.DataFrame({"v": pl.Series(["a"], dtype=pl.Enum(["a"]))}), "v")
    with pytest.raises(DataError, match=r"'v' holds np.datetime64"):
        numbers({"v": np.array(["2024-01-01"], dtype="M8[D]")}, "v")


def test_numbers_of_other_types_are_read_as_real() -> None:
    for column in ([1, True, 2], np.array([1, 1, 2], dtype=np.uint8), pd.Categorical([1, 1, 2]), pa.array([1, 1, 2])):
        assert numbers({"v": column}, "v") == [4.0]
    assert numbers(pa.table({"v": pa.array([1, None, 3], pa.int8()).dictionary_encode().slice(0, 1)}), "v") == [1.0]
    assert numbers({"v": np.array([0.1], dtype=np.float32)}, "v") == [float(np.float32(0.1))]


@pytest.mark.parametrize(("value", "shown"), [(-1, "-1.0"), (1.5, "1.5"), (-0.5, "-0.5")])
def test_counts_must_be_whole_and_not_negative(value: float, shown: str) -> None:
    with pytest.raises(DataError, match=re.escape(f"'v' holds {shown} (row 1); expected a count: 0, 1, 2, ...")):
        numbers({"v": [0, value, 3]}, "v", kind="count")
    with pytest.raises(DataError) as caught:
        numbers({"v": [0, value, 3]}, "v", kind="count")
    assert "states=" not in str(caught.value)
    source = open_source({"v": [2.0, None]})
    (batch,) = source.batches(source.infer(declared={"v": Variable("v", "count")}))
    np.testing.assert_array_equal(batch.reals, [[2.0, np.nan]])


@pytest.mark.parametrize("kind", ["real", "count"])
@pytest.mark.parametrize(
    ("value", "shown"), [(10**400, "1.000000e+400"), (-(10**5000), "-1.000000e+5000")], ids=["large", "larger"]
)
def test_whole_numbers_beyond_floats_are_named(value: int, shown: str, kind: str) -> None:
    with pytest.raises(DataError, match=re.escape(f"'v' holds {shown} (row 2); expected numbers of at most 1.8e+308")):
        numbers({"v": [1, None, value]}, "v", kind=kind)
    with pytest.raises(DataError, match=r"'sample_weight' holds 1.000000e\+400 \(row 0\)"):
        open_source({"v": [1]}, sample_weight=[10**400])


@pytest.mark.parametrize(
    ("function", "value", "condition"),
    [("log", 0.0, "positive"), ("log", -2.0, "positive"), ("reciprocal", 0.0, "positive"), ("log1m", 1.0, "below one")],
)
def test_values_outside_the_support_are_named(function: str, value: float, condition: str) -> None:
    values = [0.5] * 20
    values[17] = value
    key = Sums.of(("x", function))
    source = open_source({"x": values})
    with pytest.raises(DataError, match=rf"'x' holds {value} \(row 17\); expected {condition} values"):
        summarize_source(source, source.infer(), [key])


def test_rows_are_numbered_through_batches_and_gaps(monkeypatch: pytest.MonkeyPatch) -> None:
    cut(monkeypatch, 4)
    key = Sums.of(("x", "log"))
    source = open_source({"x": [1.0, np.nan, 2.0, 1.0, 1.0, np.nan, 0.0]}, sample_weight=[0, 1, 1, 1, 0, 1, 1])
    with pytest.raises(DataError, match=r"\(row 6\)"):
        summarize_source(source, source.infer(), [key], missing="available")


# Work -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("error", [RuntimeError("stop"), KeyboardInterrupt()], ids=["error", "Ctrl-C"])
def test_errors_in_a_task_come_out(threads: int, error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    cut(monkeypatch, 1)
    begun: list[int] = []

    def task(batch: Batch) -> int:
        begun.append(batch.start)
        if batch.start == 2:
            raise error
        return batch.rows

    source = open_source(range(1000))
    with pytest.raises(type(error)):
        source.reduce(task, source.infer(), threads=threads)
    assert len(begun) < 20


INTERRUPTED = """
import os, signal, threading
import suffice.sources.base
from suffice.sources import open_source

suffice.sources.base.BATCH_ROWS = 1
free = threading.Event()

def task(batch):
    if batch.start == 3:
        os.kill(os.getpid(), signal.SIGINT)
    if batch.start >= 3:
        free.wait(20)
        begun.append(batch.start)
    return 1

begun = []
source = open_source(range(1000))
try:
    source.reduce(task, source.infer(), threads=2)
except KeyboardInterrupt:
    print("interrupted", len(begun))
free.set()
"""


def test_ctrl_c_does_not_wait_for_the_work_in_flight(fresh_python: Callable[[str], str]) -> None:
    assert fresh_python(INTERRUPTED).strip() == "interrupted 0"


def test_the_first_wrong_row_is_reported_for_any_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    cut(monkeypatch, 2)
    values = [1.0] * 50
    values[11] = values[13] = values[37] = np.inf
    for threads in (1, 2, 4):
        source = open_source({"v": values})
        with pytest.raises(DataError, match=r"row 11\)"):
            summarize_source(source, source.infer(), [Moments(("v",))], threads=threads)


@pytest.mark.parametrize("threads", [1, 2])
def test_progress_is_told_in_order(threads: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cut(monkeypatch, 3)
    told: list[tuple[int, int | None]] = []

    def progress(done: int, total: int | None) -> None:
        told.append((done, total))

    source = open_source(COLUMNS)
    summarize_source(source, source.infer(["size"]), [Counts(("size",))], threads=threads, progress=progress)
    assert told == [(3, 7), (6, 7), (7, 7)]
    told.clear()
    source = open_source(FORMS["CSV"](tmp_path))
    for _ in range(2):
        summarize_source(source, source.infer(["size"]), [Counts(("size",))], threads=threads, progress=progress)
    assert told == [(7, None), (7, 7)]


def test_few_batches_are_in_flight(monkeypatch: pytest.MonkeyPatch) -> None:
    from suffice.sources.reduction import add_in_order

    alive = [0, 0]

    class Heavy:
        rows, origins = 1, ()

        def __init__(self) -> None:
            alive[0] += 1
            alive[1] = max(alive)

        def __del__(self) -> None:
            alive[0] -= 1

    assert add_in_order((Heavy for _ in range(500)), lambda batch: 1, threads=3) == 500
    assert alive[1] <= 8


def test_answers_are_added_in_the_order_of_rows() -> None:
    from suffice.sources.reduction import add_in_order

    class Numbered:
        def __init__(self, row: int) -> None:
            self.rows, self.row, self.origins = 1, row, ()

    pieces = [lambda row=row: Numbered(row) for row in range(37)]
    for threads in (1, 2, 5):
        assert add_in_order(pieces, lambda piece: (piece.row,), threads=threads) == tuple(range(37))


@pytest.mark.parametrize("threads", [0, -1])
def test_the_number_of_threads_is_checked(threads: int) -> None:
    source = open_source(COLUMNS)
    with pytest.raises(OptionError, match=f"threads is {threads}"):
        summarize_source(source, source.infer(["size"]), [Counts(("size",))], threads=threads)


def test_the_batch_is_what_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    cut(monkeypatch, 4)
    source = open_source(COLUMNS, sample_weight=range(7))
    batches = list(
        source.batches(source.infer(["price", "size", "visits", "sold"], {"visits": Variable("visits", "count")}))
    )
    assert [(batch.start, batch.rows) for batch in batches] == [(0, 4), (4, 3)]
    for batch in batches:
        assert (batch.discrete, batch.real) == (("size", "sold"), ("price", "visits"))
        assert batch.codes.flags.c_contiguous
        assert batch.codes.dtype == np.uint8
        assert batch.reals.dtype == np.float64
        assert batch.weights is not None
        assert batch.weights.tolist() == list(range(batch.start, batch.start + batch.rows))
    assert batches[0].domain is batches[1].domain
    assert batches[0].domain.names == ("price", "size", "visits", "sold")


def test_columns_are_listed_in_messages_and_not_in_full() -> None:
    wide = {f"column {at}": [1] for at in range(500)}
    with pytest.raises(MissingColumnError) as caught:
        counts_of(wide, "column 1000")
    assert len(str(caught.value)) < 500
    assert "488 more" in str(caught.value)


def test_names_are_known_without_reading(tmp_path: Path) -> None:
    for form, make in FORMS.items():
        assert set(open_source(make(tmp_path)).columns) == set(NAMES), form


# Statistics -----------------------------------------------------------------------------------------------------------


def test_a_name_that_no_column_has_is_named_with_the_columns_there_are() -> None:
    source = open_source({"age": [1.5], "sex": ["f"]})
    for statistic in (Moments(("agee",)), Counts(("agee", "sex"))):
        with pytest.raises(MissingColumnError, match=r"no column 'agee'.*mean 'age'\? Its columns are: 'age', 'sex'"):
            summarize_source(source, source.infer(), [statistic])
    assert source.passes == 0


@pytest.mark.parametrize("rows", [0, 2])
def test_statistics_that_do_not_fit_the_column_say_what_to_do(rows: int) -> None:
    source = open_source({"t": np.array(["a", "b"])[:rows], "r": np.array([0.5, 1.5])[:rows], "n": np.arange(rows)})
    domain = source.infer()
    cases = {
        Counts(("t", "r")): "Counts needs discrete variables, and 'r' is real. Declare the states",
        MomentsBy(("r",), ("r2",)): "no column 'r2'",
        MomentsBy(("n",), ("t",)): "MomentsBy needs real variables, and 'n' is discrete .*Declare the column 'real'",
        Sums.of(("n", "x")): "Sums needs real variables, and 'n' is discrete .*Declare the column 'real'",
    }
    if rows:
        cases[Moments(("t",))] = r"Moments needs real variables, and 't' is discrete \('a', 'b'\). Correct the column"
    for statistic, problem in cases.items():
        with pytest.raises((OptionError, MissingColumnError), match=problem):
            summarize_source(source, domain, [statistic])


def test_each_statistic_uses_the_rows_that_it_has() -> None:
    source = open_source({"t": ["a", None, "b"], "r": [0.5, 1.5, None], "n": [1, 1, 2]})
    keys = (Counts(("t",)), Counts(("n",)), Moments(("r",)), MomentsBy(("r",), ("t",)))
    found = summarize_source(source, source.infer(), keys, missing="available")
    assert found[keys[0]].dense().tolist() == [1, 1]
    assert found[keys[1]].dense().tolist() == [2, 1]
    assert found[keys[2]].total_pair[0].tolist() == [2.0]
    assert found.rows == 3
