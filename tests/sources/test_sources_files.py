"""Files: paths, globs and folders; CSV as pandas reads it; damage is named; memory does not follow the rows."""

import gzip
import io
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import suffice as sf
from sources.tables import counts_of, same_types, write_parquet
from suffice.domain import Variable
from suffice.errors import DataError, MissingColumnError, UnknownStateError
from suffice.sources import open_source, summarize_source
from suffice.sources.kinds import Declarations
from suffice.statistics import Counts, Moments, Patterns


def csv(folder: Path, text: str, name: str = "t.csv") -> Path:
    (folder / name).write_text(text)
    return folder / name


# Paths ----------------------------------------------------------------------------------------------------------------


def test_missing_and_unknown_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no file '.*none.parquet'"):
        open_source(tmp_path / "none.parquet")
    with pytest.raises(DataError, match=r"No file matches '.*none\*.csv'"):
        open_source(str(tmp_path / "none*.csv"))
    with pytest.raises(DataError, match=r"holds no file that ends in .parquet or .csv or .csv.gz"):
        open_source(tmp_path)
    (tmp_path / "t.xlsx").write_text("")
    with pytest.raises(DataError, match=r"format of '.*t.xlsx' by its ending; expected .parquet"):
        open_source(tmp_path / "t.xlsx")
    with pytest.raises(DataError, match="different formats"):
        open_source([write_parquet(tmp_path), csv(tmp_path, "a\n1\n")])


def test_a_list_of_texts_is_a_column_unless_they_end_as_files_do(tmp_path: Path) -> None:
    assert counts_of(["a", "b.csv"], "x") == ((("a", "b.csv"),), [1, 1])
    path = csv(tmp_path, "a\n1\n")
    assert counts_of([str(path), path], "a") == (((1,),), [2])


def test_a_path_with_magic_characters_is_a_file_if_there_is_one(tmp_path: Path) -> None:
    assert counts_of(csv(tmp_path, "a\n1\n", "t[1].csv"), "a") == (((1,),), [1])


@pytest.mark.parametrize("name", ["cut.parquet", "text.parquet", "empty.csv", "ragged.csv", "cut.csv.gz", "binary.csv"])
def test_damaged_files_are_named(name: str, tmp_path: Path) -> None:
    whole = write_parquet(tmp_path).read_bytes()
    packed = gzip.compress(
        "".join(f"{n}\n" for n in ["a", *np.random.default_rng(0).integers(0, 2**40, 5000)]).encode()
    )
    content = {
        "cut.parquet": whole[: len(whole) // 2],
        "text.parquet": b"a,b\n1,2\n",
        "empty.csv": b"",
        "ragged.csv": b"a,b\n1,2\n3\n",
        "cut.csv.gz": packed[: len(packed) // 2],
        "binary.csv": b"a,b\n1,\xff\xfe\n",
    }
    (tmp_path / name).write_bytes(content[name])
    with pytest.raises(DataError, match=f"Cannot read the file '.*{name}'.*damaged or of another format"):
        counts_of(tmp_path / name, *(["a", "b"] if name == "binary.csv" else ["a"]))


def test_damage_inside_a_parquet_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    values = np.random.default_rng(0).integers(0, 2**40, 20_000)
    pq.write_table(pa.table({"a": values}), path, compression="none", use_dictionary=False, write_statistics=False)
    content = bytearray(path.read_bytes())
    content[4:200] = bytes(196)
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"Cannot read the file '.*t.parquet'"):
        counts_of(path, "a")


def test_a_file_that_lacks_a_column_is_named(tmp_path: Path) -> None:
    csv(tmp_path, "a,b\n1,x\n", "1.csv")
    csv(tmp_path, "a,c\n1,x\n", "2.csv")
    with pytest.raises(MissingColumnError, match=r"no column 'b' in '.*2.csv'.*'a', 'c'"):
        counts_of(str(tmp_path / "*.csv"), "b")
    assert counts_of(str(tmp_path / "*.csv"), "a") == (((1,),), [2])
    pd.DataFrame({"a": [1]}).to_parquet(tmp_path / "1.parquet")
    pd.DataFrame({"b": [1]}).to_parquet(tmp_path / "2.parquet")
    with pytest.raises(MissingColumnError, match=r"no column 'a' in '.*2.parquet'"):
        counts_of(str(tmp_path / "*.parquet"), "a")


def test_errors_say_which_file_the_row_is_in(tmp_path: Path) -> None:
    for at, value in enumerate(["x", "y"]):
        pd.DataFrame({"a": ["x", value]}).to_parquet(tmp_path / f"{at}.parquet")
    with pytest.raises(UnknownStateError, match=r"\(row 3\)") as caught:
        counts_of(str(tmp_path / "*.parquet"), "a", declared={"a": Variable.discrete("a", ["x"])})
    assert str(caught.value).endswith(f"That is row 1 of {str(tmp_path / '1.parquet')!r}.")


def test_predictions_say_which_file_the_row_is_in(tmp_path: Path) -> None:
    frame = pd.DataFrame({"x": np.arange(30.0), "n": [1, 2, 4] * 10})
    model = sf.GLM("poisson").fit(frame, y="n")
    frame.loc[25, "x"] = np.nan
    for part in range(3):
        frame[10 * part : 10 * part + 10].to_parquet(tmp_path / f"{part}.parquet")
    for ask in (model.predict, lambda rows: model.score(rows, "n"), lambda rows: model.score_samples(rows, "n")):
        with pytest.raises(sf.MissingValueError, match=r"'x' .*\(row 25\)") as caught:
            ask(str(tmp_path / "*.parquet"))
        assert str(caught.value).endswith(f"That is row 5 of {str(tmp_path / '2.parquet')!r}.")


def test_text_in_one_file_and_numbers_in_another_are_refused(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": [1, 2] * 20, "b": ["u", "u", "v", "v"] * 10})
    frame.to_parquet(tmp_path / "1.parquet")
    frame.assign(a=[1.0, None, 2.0, 1.0] * 10).to_parquet(tmp_path / "2.parquet")
    frame[:0].assign(a=pd.Series([], dtype=str)).to_parquet(tmp_path / "3.parquet")
    network = sf.BayesianNetwork([("a", "b")], states={"a": "discrete"}).fit(str(tmp_path / "*.parquet"))
    said = r"'a' holds integers in '.*1\.parquet' and floats in '.*2\.parquet': all are read as states"
    assert re.search(said, str(network.report_))
    frame.assign(a=frame.a.astype(str)).to_parquet(tmp_path / "4.parquet")
    for fit in (
        lambda rows: sf.BayesianNetwork([("a", "b")]).fit(rows),
        lambda rows: sf.GLM("binomial").fit(rows, y="b"),
        lambda rows: sf.MarkovChain().fit(rows, group="b", columns="a"),
    ):
        with pytest.raises(DataError, match=r"'a' holds text \(.*4\.parquet' and numbers \(.*1\.parquet', whose"):
            fit(str(tmp_path / "*.parquet"))


def test_types_may_differ_between_files(tmp_path: Path) -> None:
    pd.DataFrame({"a": [1, 2]}).to_parquet(tmp_path / "1.parquet")
    pd.DataFrame({"a": [1, None]}).to_parquet(tmp_path / "2.parquet")
    source = open_source(str(tmp_path / "*.parquet"))
    domain, few, _ = source.decide_kinds(source.infer(), {"a": Declarations("", "")})
    assert few == ("a",)
    found = summarize_source(source, domain, [Counts(("a",)), Patterns(("a",))], missing="available")
    assert same_types(found.domain["a"].states, (1, 2))
    assert found[Counts(("a",))].dense().tolist() == [2, 1]
    assert found[Patterns(("a",))].rows.tolist() == [[-1], [0], [1]]


# CSV ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "v\n1\n2\n1\n",
        "v\n007\n7\n-3\n+3\n",
        "v\nTrue\nfalse\nTRUE\n",
        "v\nyes\nno\nyes\n",
        "v\n1\nx\n2\n",
        "v\ntrue\n1\n",
        "v\n2024-01-01\n2024-01-02\n",
        "v\n12:30\n13:30\n",
        'v\n"a,b"\n"say ""hi"""\n"two\nlines"\n',
        "v,w\na,1\nNA,1\n,1\nNone,1\nnull,1\n",
        "v,w\ntrue,1\n,1\n",
        "v\n é\n\u4e2d\n",
        "\ufeffv\na\n",
        "v\r\na\r\nb\r\n",
        pytest.param(
            "v\n99999999999999999999999\n1\n",
            marks=pytest.mark.skipif(pd.__version__ < "3", reason="pandas 2 reads numbers beyond 64 bits as text"),
        ),
        "v\n18446744073709551615\n1\n",
    ],
)
def test_csv_has_the_states_that_pandas_reads(text: str, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(text.encode())
    frame = pd.read_csv(io.BytesIO(text.encode()))
    options: dict[str, Any] = {"missing": "available"}
    results = []
    for data in (path, frame):
        source = open_source(data)
        found = summarize_source(source, source.infer(["v"]), [Counts(("v",)), Patterns(("v",))], **options)
        results.append(found)
    assert same_types(results[0].domain["v"].states, results[1].domain["v"].states)
    assert results[0] == results[1]


@pytest.mark.parametrize("text", ["v\n1.5\n2\n", "v\n1e3\n.5\n-2.\n", "v,w\n1.5,1\n,1\nNaN,1\n", "v,w\n,1\n,1\n"])
def test_csv_numbers_are_those_that_pandas_reads(text: str, tmp_path: Path) -> None:
    path = csv(tmp_path, text)
    frame = pd.read_csv(path)
    results = []
    for data in (path, frame):
        source = open_source(data)
        assert source.infer()["v"].kind == "real"
        results.append(summarize_source(source, source.infer(["v"]), [Moments(("v",))], missing="available"))
    assert results[0] == results[1]


def test_whole_numbers_with_gaps_stay_whole_in_csv(tmp_path: Path) -> None:
    source = open_source(csv(tmp_path, "v,w\n2,1\n,1\n1,1\n"))
    (batch,) = source.batches(source.infer(["v"]))
    assert same_types(batch.domain["v"].states, (1, 2))
    assert batch.codes.tolist() == [[1, 2, 0]]


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("suffice.sources.csv.BLOCK_BYTES", 64)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("threads", [1, 2])
def test_a_column_that_turns_out_to_be_text_is_text_from_the_start(threads: int, tmp_path: Path) -> None:
    first = [f"{n % 3},{'true' if n % 2 else 'false'}" for n in range(200)]
    path = csv(tmp_path, "\n".join(["v,t", *first, "x,maybe", "1,true\n"]))
    source = open_source(path)
    domain = source.infer(declared={name: Variable(name, "discrete") for name in "vt"})
    found = summarize_source(source, domain, [Counts(("v",)), Counts(("t",))], threads=threads)
    frame = pd.read_csv(path, low_memory=False)
    assert found.domain["v"].states == tuple(sorted(frame["v"].unique())) == ("0", "1", "2", "x")
    assert found.domain["t"].states == ("false", "maybe", "true")
    assert found[Counts(("v",))].dense().tolist() == frame["v"].value_counts().sort_index().tolist()
    assert source.passes == 3
    assert source.rows == 202


@pytest.mark.usefixtures("small_blocks")
def test_text_in_a_real_column_of_csv_is_named(tmp_path: Path) -> None:
    csv(tmp_path, "\n".join(["v", *["1.5"] * 100, ""]), "1.csv")
    csv(tmp_path, "\n".join(["v", *["1.5"] * 50, "oops", "2.5\n"]), "2.csv")
    source = open_source(str(tmp_path / "*.csv"))
    with pytest.raises(DataError, match=r"'v' holds 'oops' \(str\) \(row 150\); expected a real number"):
        summarize_source(source, source.infer(declared={"v": Variable("v", "real")}), [Moments(("v",))])
    assert source.infer()["v"].kind == "discrete"


@pytest.mark.usefixtures("small_blocks")
def test_the_type_is_taken_from_the_first_block_that_holds_anything(tmp_path: Path) -> None:
    path = csv(tmp_path, "\n".join(["v,w", *[",1"] * 100, "5,1", "6,1\n"]))
    source = open_source(path)
    found = summarize_source(source, source.infer(["v"]), [Counts(("v",))], missing="available")
    assert same_types(found.domain["v"].states, (5, 6))


def test_declared_states_say_how_csv_text_is_read(tmp_path: Path) -> None:
    path = csv(tmp_path, "v\n1\n2\n1\n")
    for states in (["1", "2"], [1, 2], [1.0, 2.0], ["2", 1]):
        declared = {"v": Variable.discrete("v", states)}
        ((found,), counts) = counts_of(path, "v", declared=declared)
        assert same_types(found, tuple(states))
        assert counts == ([1, 2] if states[0] == "2" else [2, 1])
    with pytest.raises(UnknownStateError, match=r"'v' holds '2' \(str\) \(row 1\)"):
        counts_of(path, "v", declared={"v": Variable.discrete("v", [1, 3])})


def test_a_word_for_a_gap_may_be_declared_as_a_state(tmp_path: Path) -> None:
    path = csv(tmp_path, "v,w\nHigh,1\nNone,1\nNA,1\n")
    source = open_source(path)
    domain = source.infer(["v"], {"v": Variable.discrete("v", ["High", "None"])})
    found = summarize_source(source, domain, [Counts(("v",))], missing="available")
    assert found[Counts(("v",))].dense().tolist() == [1, 1]


def test_declared_dates_and_truths_are_found_in_csv(tmp_path: Path) -> None:
    import datetime as dt

    path = csv(tmp_path, "d,t\n2024-01-02,true\n2024-01-01,False\n")
    declared = {
        "d": Variable.discrete("d", [dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 2)]),
        "t": Variable.discrete("t", [True, False]),
    }
    assert counts_of(path, "d", "t", declared=declared)[1] == [[0, 1], [1, 0]]


def test_states_learned_before_say_how_csv_text_is_read(tmp_path: Path) -> None:
    path = csv(tmp_path, "v\n1\n3\n")
    assert counts_of(path, "v", declared={"v": Variable("v", "discrete", ("1", "2"), "seen")}) == (
        (("1", "2", "3"),),
        [1, 0, 1],
    )
    assert counts_of(path, "v", declared={"v": Variable("v", "discrete", (1, 2), "seen")}) == (((1, 2, 3),), [1, 0, 1])


def test_two_columns_of_one_name_in_a_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="Two columns are named 'a'"):
        open_source(csv(tmp_path, "a,a\n1,2\n"))


@given(
    st.lists(
        st.text("ab,\"' \n\u00e9", min_size=1, max_size=4).filter(lambda t: t.strip("\r\n") == t),
        min_size=1,
        max_size=30,
    ),
    st.sampled_from([64, 256, 1 << 20]),
)
def test_text_survives_csv(values: list[str], block: int) -> None:
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.setattr("suffice.sources.csv.BLOCK_BYTES", block)
        path = Path(folder) / "t.csv.gz"
        pd.DataFrame({"v": values, "w": 1}).to_csv(path, index=False)
        ((states,), counts) = counts_of(path, "v", declared={"v": Variable("v", "discrete", ("b",), "seen")})
    assert states == tuple(sorted({*values, "b"}))
    assert counts == [values.count(state) for state in states]


# Size -----------------------------------------------------------------------------------------------------------------

MEMORY = """
import resource, sys
import numpy as np, pyarrow as pa, pyarrow.parquet as pq
from suffice.sources import open_source, summarize_source
from suffice.sources.kinds import Declarations
from suffice.statistics import Counts, Moments

groups = int(sys.argv[1])
words = np.array([f"word {n}" for n in range(20)])
rng = np.random.default_rng(0)
columns = {f"c{k}": words[rng.integers(0, 20, 100_000)] for k in range(8)} | {"r": rng.normal(size=100_000)}
table = pa.table(columns)
with pq.ParquetWriter("t.parquet", table.schema) as writer:
    for _ in range(groups):
        writer.write_table(table)
del table, columns
source = open_source("t.parquet")
asked = [Counts((f"c{k}", f"c{k + 1}")) for k in range(7)] + [Moments(("r",))]
found = summarize_source(source, source.infer(), asked)
assert found.rows == groups * 100_000
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


def test_memory_does_not_follow_the_rows_of_a_parquet_file(
    fresh_python: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Three million rows more: their 32-bit indices alone would take 100 MB. One path of the kernels for both sizes, as
    # loading the compiler takes memory of its own.
    monkeypatch.setenv("SUFFICE_KERNELS", "numpy")
    few, many = (int(fresh_python(MEMORY.replace("sys.argv[1]", str(groups)))) for groups in (6, 36))
    assert many - few < 40


WIDE = """
import resource
import numpy as np
from suffice.sources import open_source, summarize_source
from suffice.sources.kinds import Declarations
from suffice.statistics import Counts
rng = np.random.default_rng(0)
data = {name: rng.integers(0, 20, 10_000) for name in "abcdef"}
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
source = open_source(data)
key = Counts(tuple("abcdef"))
found = summarize_source(source, source.infer(), [key])
table = found[key]
assert (table.shape, table.total, table.cells is not None) == ((20,) * 6, 10_000, True)
rows = np.stack([data[name] for name in "abcdef"], axis=1)
expected, counts = np.unique(rows, axis=0, return_counts=True)
assert np.array_equal(table.cells, expected) and np.array_equal(table.values, counts)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


def test_five_parents_of_twenty_states_take_memory_by_the_rows(fresh_python: Callable[[str], str]) -> None:
    # A dense table of 20^6 cells would take 488 MB.
    assert int(fresh_python(WIDE)) < 100


LIGHT = """
import sys
import numpy as np
from suffice.sources import open_source, summarize_source
from suffice.sources.kinds import Declarations
from suffice.statistics import Counts, Moments
rng = np.random.default_rng(0)
for data in (
    {"a": ["x", "y"] * 500, "b": [1, 2, 3, 4] * 250, "r": list(rng.normal(size=1000))},
    {"a": np.array(["x", "y"] * 500), "b": np.arange(1000) % 4, "r": rng.normal(size=1000)},
    [{"a": "x", "b": 1, "r": 0.5}] * 1000,
):
    source = open_source(data, sample_weight=[1.0] * 1000)
    summarize_source(source, source.infer(), [Counts(("a", "b")), Moments(("r",))])
heavy = {"pyarrow", "pandas", "polars", "numba", "scipy", "narwhals"}
print(sorted(heavy & set(sys.modules)))
"""


def test_small_tables_load_no_other_library(fresh_python: Callable[[str], str]) -> None:
    assert fresh_python(LIGHT).strip() == "[]"


HASHES = """
import os, sys
import pandas as pd
from suffice.sources import open_source, summarize_source
from suffice.statistics import Counts, Patterns
data = {"a": ["x", "y", 1, True, None, (1, "z"), "1"] * 3, "b": list("abcdefg") * 3}
for table in (data, pd.DataFrame(data)):
    source = open_source(table)
    found = summarize_source(source, source.infer(), [Counts(("b", "a")), Patterns(("a", "b"))], missing="available")
    print(found.domain["a"].states, found.domain["b"].states)
    print(found[Counts(("b", "a"))].dense().tolist(), found[Patterns(("a", "b"))].rows.tolist())
"""


def test_results_do_not_depend_on_hash_seeds(
    fresh_python: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    outputs = set()
    for seed in ("0", "1", "2"):
        monkeypatch.setenv("PYTHONHASHSEED", seed)
        outputs.add(fresh_python(HASHES))
    assert len(outputs) == 1
