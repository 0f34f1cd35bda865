"""Networks with missing values and hidden nodes, learned where their rows are: the same as from rows in memory."""

from __future__ import annotations

import json
import pickle
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import dask.dataframe as dd
import duckdb
import numpy as np
import pandas as pd
import pytest

import suffice as sf
from suffice.answers import PatternTable
from suffice.models.em import held_rows
from suffice.models.em.held_rows import KeepRows
from suffice.sources import shards as shards_of_batches
from suffice.sources import stream

pytestmark = pytest.mark.filterwarnings("ignore::suffice.errors.SufficeWarning")

ROWS = 300
EDGES = [("a", "b"), ("a", "x"), ("b", "y"), ("x", "y")]
TABLES, REALS = [("a", "b"), ("a", "c"), ("b", "c")], [("x", "y"), ("x", "z"), ("y", "z")]
NETWORKS: dict[str, tuple[Any, dict[str, Any]]] = {
    "tables": (TABLES, {}),
    "tables with a prior": (TABLES, {"prior": 1.0}),
    "linear-Gaussian": (REALS, {}),
    "mixed": (EDGES, {}),
    "hidden states": ([("h", "a"), ("h", "b"), ("h", "c")], {"hidden": {"h": 2}, "n_init": 2}),
    "hidden states of numbers": ([("h", "x"), ("h", "y"), ("h", "b")], {"hidden": {"h": 3}, "n_init": 2}),
    "a hidden number": ([("f", "x"), ("f", "y"), ("f", "z")], {"hidden": {"f": "real"}}),
    "noisy-OR": ({"e": ["s", "t"]}, {"nodes": {"e": "noisy-or"}}),
    "a fixed node": (EDGES, {"fixed": {"a": [0.2, 0.3, 0.5]}}),
    "tied nodes": ([("a", "b"), ("c", "d")], {"tied": [["b", "d"]]}),
    "a family that all rows show": ([("whole", "b"), ("whole", "full")], {}),
    "extrapolated": (TABLES, {"acceleration": "squarem"}),
}


def table(rows: int = ROWS) -> pd.DataFrame:
    """Values of every kind with one in seven missing, but for two columns."""
    rng = np.random.default_rng(3)
    a = rng.integers(0, 3, rows)
    b = (a + (rng.random(rows) < 0.3)) % 3
    x = a + rng.normal(size=rows)
    y = 1e3 + 2 * x - b + rng.normal(size=rows)
    s, t = rng.integers(0, 2, (2, rows))
    labels = np.array(["u", "v", "w"])
    columns: dict[str, Any] = {
        "a": labels[a],
        "b": labels[b],
        "c": labels[(a + b) % 3],
        "d": labels[(b + (rng.random(rows) < 0.3)) % 3],
        "x": x,
        "y": y,
        "z": x - 0.01 * y + rng.normal(size=rows),
        "s": s.astype(bool),
        "t": t.astype(bool),
        "e": (s * (rng.random(rows) < 0.8) + t * (rng.random(rows) < 0.4)) > 0,
    }
    frame = pd.DataFrame(columns).astype(dict.fromkeys("abcdste", object))
    for name in frame.columns:
        frame.loc[rng.random(rows) < 1 / 7, name] = None
    return frame.assign(whole=labels[a], full=labels[(a + (rng.random(rows) < 0.5)) % 3])


@pytest.fixture(scope="module")
def parquet(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("rows") / "rows.parquet"
    table().to_parquet(path, row_group_size=40)
    return str(path)


@pytest.fixture
def shards(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several small shards, and no distinct rows that are few enough to be brought together."""
    monkeypatch.setattr(held_rows, "FEW_NUMBERS", 0)
    monkeypatch.setattr(held_rows, "BLOCK_ROWS", 60)
    monkeypatch.setattr(shards_of_batches, "SHARD_BYTES", 1)
    monkeypatch.setattr(stream, "BATCH_ROWS", 80)


@pytest.fixture
def travelling(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Shards, questions and answers are pickled in every round, as between machines; gives the bytes of each round."""
    plain, sent = KeepRows.evaluate, []

    def evaluate(self: KeepRows, blocks: Any, parameters: Any) -> Any:
        travels = pickle.dumps((self, parameters))
        sent.append(len(travels))
        work, received = pickle.loads(travels)
        return pickle.loads(pickle.dumps(plain(work, pickle.loads(pickle.dumps(blocks)), received)))

    monkeypatch.setattr(KeepRows, "evaluate", evaluate)
    return sent


def sources(path: str) -> dict[str, Any]:
    return {
        "Parquet": path,
        "DuckDB": duckdb.sql(f"select * from '{path}'"),
        "Dask": dd.from_pandas(pd.read_parquet(path), npartitions=4),
    }


def numbers(net: sf.BayesianNetwork) -> np.ndarray:
    return np.concatenate([np.ravel(node.parameters()) for node in net.fitted_.nodes.values()])


def network(kind: str, **more: Any) -> sf.BayesianNetwork:
    structure, options = NETWORKS[kind]
    return sf.BayesianNetwork(structure, **{"max_iter": 15, **options, **more})


@pytest.mark.usefixtures("shards")
@pytest.mark.parametrize("kind", NETWORKS)
def test_a_network_learned_where_its_rows_are_is_that_of_rows_in_memory(kind: str, parquet: str) -> None:
    there = network(kind).fit(pd.read_parquet(parquet))
    for name, data in sources(parquet).items():
        here = network(kind).fit(data)
        np.testing.assert_allclose(numbers(here), numbers(there), rtol=1e-10, atol=1e-12, err_msg=name)
        np.testing.assert_allclose(here.history_, there.history_, rtol=1e-10, err_msg=name)
        assert here.n_iter_ == there.n_iter_
        mine, theirs = here.report_, there.report_
        assert mine.log_likelihood == pytest.approx(theirs.log_likelihood, rel=1e-10)
        assert mine.certificate.moment_gap == pytest.approx(theirs.certificate.moment_gap, rel=1e-4, abs=1e-9)
        assert mine.certificate.directions == theirs.certificate.directions
        assert mine.n_params == theirs.n_params
        assert here.score(data) == pytest.approx(there.score(pd.read_parquet(parquet)), rel=1e-12)
        assert any(re.search("over [2-9] shards; the rows stayed", note) for note in mine.warnings)


@pytest.mark.usefixtures("shards")
@pytest.mark.parametrize("kind", ["tables", "mixed", "hidden states of numbers", "a hidden number", "noisy-OR"])
def test_what_travels_can_travel_and_is_small(kind: str, parquet: str, travelling: list[int]) -> None:
    here = network(kind, max_iter=4).fit(parquet)
    most = max(travelling)
    there = network(kind, max_iter=4).fit(pd.read_parquet(parquet))
    np.testing.assert_allclose(numbers(here), numbers(there), rtol=1e-10, atol=1e-12)
    assert most < 12_000


@pytest.mark.usefixtures("shards")
def test_errors_are_those_of_rows_in_memory_and_the_rows_are_let_go(parquet: str) -> None:
    there = network("mixed", max_iter=500).fit(pd.read_parquet(parquet))
    here = network("mixed", max_iter=500).fit(parquet)
    for name, errors in there.standard_errors_.items():
        np.testing.assert_allclose(here.standard_errors_[name].values, errors.values, rtol=1e-6, err_msg=str(name))
    again = pickle.loads(pickle.dumps(here))
    np.testing.assert_allclose(again.standard_errors_["y"].values, here.standard_errors_["y"].values)
    assert len(pickle.dumps(here)) < 40_000
    patterns = next(iter(here.statistics_.answers.values()))
    assert isinstance(patterns, PatternTable)
    assert not patterns.rows.size


@pytest.mark.usefixtures("shards")
def test_rows_that_stayed_elsewhere_cannot_be_joined(parquet: str, tmp_path: Path) -> None:
    net = network("tables").fit(parquet)
    for change in (net.partial_fit, net.unlearn):
        with pytest.raises(sf.OptionError, match=r"300 rows that were learned .* stayed where they were"):
            change(table(10))
    net.write(tmp_path / "net.json")
    read = sf.read(tmp_path / "net.json")
    assert read.score(parquet) == net.score(parquet)
    with pytest.raises(sf.OptionError, match="stayed where they were"):
        read.standard_errors_  # noqa: B018


@pytest.mark.usefixtures("shards")
def test_a_summary_holds_the_distinct_rows_wherever_they_were(parquet: str) -> None:
    net = network("tables")
    assert sf.summarize(net, parquet) == sf.summarize(net, pd.read_parquet(parquet))
    joined = network("tables").partial_fit(parquet)
    np.testing.assert_array_equal(numbers(joined), numbers(net.fit(pd.read_parquet(parquet))))


def test_few_distinct_rows_are_one_shard_with_the_digits_of_rows_in_memory(parquet: str) -> None:
    there = network("tables").fit(pd.read_parquet(parquet))
    for data in sources(parquet).values():
        here = network("tables").fit(data)
        np.testing.assert_array_equal(numbers(here), numbers(there))
        assert here.statistics_ == there.statistics_
        assert here.report_.passes == 2
        here.partial_fit(table(10))


def test_rows_on_other_machines_are_not_fetched_unless_they_are_counts(parquet: str) -> None:
    frame = dd.from_pandas(pd.read_parquet(parquet), npartitions=4)
    notes = network("linear-Gaussian").fit(frame).report_.warnings
    assert any("the rows stayed" in note for note in notes)


@pytest.mark.usefixtures("shards")
def test_a_column_without_a_value_in_some_shard_and_one_without_any(parquet: str, tmp_path: Path) -> None:
    frame = pd.read_parquet(parquet)
    frame.loc[:159, "b"] = None
    frame["c"] = pd.Series([None] * len(frame), dtype=object)
    frame.to_parquet(tmp_path / "gone.parquet")
    options = {"states": {"c": ["u", "v", "w"]}}
    there = network("tables", **options).fit(frame)
    here = network("tables", **options).fit(tmp_path / "gone.parquet")
    np.testing.assert_allclose(numbers(here), numbers(there), rtol=1e-10, atol=1e-12)
    numeric = pd.read_parquet(parquet).assign(x=np.nan)
    numeric.to_parquet(tmp_path / "numeric.parquet")
    with pytest.raises(sf.EstimateError, match="hold no value at all"):
        network("linear-Gaussian").fit(tmp_path / "numeric.parquet")


@pytest.mark.usefixtures("shards")
def test_weights_and_checkpoints_of_rows_elsewhere(parquet: str, tmp_path: Path) -> None:
    frame = pd.read_parquet(parquet).assign(w=np.arange(ROWS) % 4 * 0.5)
    frame.to_parquet(tmp_path / "weighted.parquet")
    there = network("mixed").fit(frame, sample_weight="w")
    here = network("mixed").fit(tmp_path / "weighted.parquet", sample_weight="w")
    np.testing.assert_allclose(numbers(here), numbers(there), rtol=1e-10, atol=1e-12)
    check = {"checkpoint": tmp_path / "em.json"}
    network("mixed", max_iter=3, **check).fit(parquet)
    whole = network("mixed", max_iter=9).fit(parquet)
    np.testing.assert_allclose(numbers(network("mixed", max_iter=9, **check).fit(parquet)), numbers(whole), rtol=1e-12)
    with pytest.raises(sf.OptionError, match="another fit"):
        network("mixed", **check).fit(tmp_path / "weighted.parquet", sample_weight="w")


@pytest.mark.usefixtures("shards")
def test_numbers_beyond_the_range_of_floats_are_refused_where_they_are(tmp_path: Path) -> None:
    frame = pd.DataFrame({"x": [1e200, np.nan, 2e200, 1.0], "y": [1.5, 2.0, np.nan, 4.0]})
    frame.to_parquet(tmp_path / "huge.parquet")
    with pytest.raises(sf.DataError, match="leave the range of float64"):
        sf.BayesianNetwork([("x", "y")]).fit(tmp_path / "huge.parquet")


MEMORY = """
import json, resource, sys
import numpy as np, pyarrow as pa, pyarrow.parquet as pq
import suffice as sf
path, rows = sys.argv[1], int(sys.argv[2])
names, rng = [f"v{k}" for k in range(20)], np.random.default_rng(0)
schema = pa.schema([(name, pa.int8()) for name in names])
with pq.ParquetWriter(path, schema) as file:
    for _ in range(rows // 50_000):
        block, gone = rng.integers(0, 3, (20, 50_000), np.int8), rng.random((20, 50_000)) < 0.1
        arrays = [pa.array(values, mask=mask) for values, mask in zip(block, gone)]
        file.write_table(pa.table(arrays, schema=schema))
sf.BayesianNetwork([(f"v{k}", f"v{k+1}") for k in range(19)], max_iter=1, threads=1).fit(path)
print(json.dumps(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024))
"""


def test_memory_does_not_follow_the_rows(tmp_path: Path) -> None:
    """All distinct rows together took 0.78 GB a million; what is held of them takes the bytes of their codes."""
    peaks = {}
    for rows in (150_000, 450_000):
        script = [sys.executable, "-W", "ignore", "-c", MEMORY, str(tmp_path / "rows.parquet"), str(rows)]
        ran = subprocess.run(script, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stderr
        peaks[rows] = float(json.loads(ran.stdout))
    assert peaks[450_000] - peaks[150_000] < 0.15e-3 * 300_000, peaks
