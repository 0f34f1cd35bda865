"""Shards that Spark persists: the digits of a fit in memory, whatever happens to a Python worker."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sources.held_works import (
    BETA,
    Deadly,
    DistinctRows,
    Gram,
    Places,
    Refusing,
    Running,
    Transitions,
    frame,
    gram_of,
    hold,
    process,
    pulled,
    shard_files,
    slow_gram,
    steps,
    transitions_of,
    waited,
)
from suffice.domain import Variable
from suffice.errors import DataError, MissingValueError, OptionError, UnknownStateError
from suffice.sources import open_source
from suffice.sources import spark as spark_source

sql = pytest.importorskip("pyspark.sql")
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("kept", ["ShardFiles", "ShardFrame"])
def test_rounds_equal_those_in_memory(kept: str, spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """As rows of Python, and as the frames that Connect has."""
    monkeypatch.setattr(spark_source, "ShardFiles", getattr(spark_source, kept))
    data = frame()
    here = hold(data, Gram())
    with hold(spark.createDataFrame(data).repartition(5), Gram()) as held:
        for scale in (1.0, 5.0):
            total = held.sum(scale * BETA)
            np.testing.assert_allclose(total, here.sum(scale * BETA), rtol=1e-12, atol=1e-12)
            np.testing.assert_allclose(total, gram_of(data, scale * BETA), rtol=1e-11)
        assert (held.rounds, held.location, held.shards) == (2, "on the executors of Spark", 5)
        assert held.bytes_out / held.rounds / held.shards < 1000
        assert held.bytes_back / held.rounds / held.shards < 1000
        # Many answers are added by executors first: the same tree.
        monkeypatch.setattr(spark_source, "FEW_ANSWERS", 1)
        monkeypatch.setattr(spark_source, "BRANCHES", 2)
        back = held.bytes_back
        np.testing.assert_array_equal(held.sum(5.0 * BETA), total)
        assert held.bytes_back - back < 1000
        places = held.sum(None, by=process)
    assert os.getpid() not in places
    waited(lambda: not spark.sparkContext._jsc.getPersistentRDDs())


def test_distinct_rows_empty_partitions_and_chosen_shards(spark: Any) -> None:
    data = frame()
    rows = spark.createDataFrame(data)
    with hold(rows.where("x > 1000").union(rows), DistinctRows(), ["s", "t"]) as held:
        counts = pd.crosstab(data["s"], data["t"]).to_numpy()
        np.testing.assert_array_equal(held.sum(2.0), 2 * counts)
        assert held.shards == 2
        np.testing.assert_array_equal(held.sum(1.0, shards=[0]) + held.sum(1.0, shards=[1]), counts)
        np.testing.assert_array_equal(held.sum(1.0, shards=[0, 0]), 2 * held.sum(1.0, shards=[0]))


def test_rows_stay_on_the_executors(spark: Any) -> None:
    with hold(spark.createDataFrame(frame()).repartition(2), Places()) as held:
        answers = held.sum(None)
    assert os.getpid() not in {process for answer in answers for process in answer[:2]}
    assert sum(rows for _, _, rows in answers) == 3000
    with hold(spark.createDataFrame(frame()).limit(0), Places()) as held:
        assert held.sum(None) == ((os.getpid(), os.getpid(), 0),)


def test_a_killed_worker_changes_no_digit(spark: Any, tmp_path: Path) -> None:
    with hold(spark.createDataFrame(frame()).repartition(4), Gram()) as held:
        before = held.sum(BETA)
        marker = tmp_path / "killed"
        np.testing.assert_array_equal(held.sum(BETA, by=Deadly(Gram().evaluate, str(marker))), before)
        assert marker.exists()


@pytest.mark.parametrize("few", [64, 1])
def test_partitions_are_prepared_again_where_their_files_are_not(
    few: int, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on an executor that takes a task from another; also where executors add the answers."""
    monkeypatch.setattr(spark_source, "FEW_ANSWERS", few)
    monkeypatch.setattr(spark_source, "BRANCHES", 2)
    context = spark.sparkContext
    with hold(spark.createDataFrame(frame()).repartition(5), Gram()) as held:
        before = held.sum(BETA)
        (removed,) = context.parallelize([0], 1).map(lambda _: shard_files("remove")).collect()
        assert len(removed) == 5
        for _ in range(2):
            np.testing.assert_array_equal(held.sum(BETA), before)
        assert context.parallelize([0], 1).map(lambda _: shard_files("")).collect() == [removed]
    assert context.parallelize([0], 1).map(lambda _: shard_files("")).collect() == [frozenset()]


def test_an_interrupted_round_leaves_nothing_running(spark: Any) -> None:
    with hold(spark.createDataFrame(frame()).repartition(8), Gram()) as held:
        before = held.sum(BETA)
        threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            held.sum((BETA, 1.0), by=slow_gram)
        waited(lambda: not spark.sparkContext.statusTracker().getActiveJobsIds())
        np.testing.assert_array_equal(held.sum(BETA), before)


def test_errors_come_back_as_they_are(spark: Any) -> None:
    data = frame()
    data.loc[1607, "x"] = np.nan
    rows = spark.createDataFrame(data).coalesce(1)
    with pytest.raises(
        MissingValueError, match=r"'x' has a missing value \(row 1607\).*partition 0 of a Spark DataFrame"
    ):
        hold(rows, Refusing())
    with pytest.raises(ZeroDivisionError, match="of my own"):
        hold(rows, Refusing(own=True))
    source = open_source(rows)
    with pytest.raises(UnknownStateError, match=r"'s' holds '0 comes late'.*\(row 2995\).*partition 0"):
        source.settle(source.infer(["s"], {"s": Variable.discrete("s", ["a", "b", "c"])}))
    with pytest.raises(DataError, match="the rows changed between two passes"):
        source.hold(Gram(), open_source(data.iloc[:100]).settle(source.infer(["s"])))


def test_sequences_are_brought_together(spark: Any) -> None:
    data = steps()
    source = open_source(spark.createDataFrame(data))
    settled = source.settle(source.infer(["s"]))
    with pytest.raises(OptionError, match="in no order of their own"):
        source.hold(Transitions(), settled, group="g")
    with source.hold(Transitions(), settled, group="g", order="k", raw=["words"]) as held:
        np.testing.assert_array_equal(held.sum(1.0), transitions_of(data))
    assert pulled(source) == 0


def test_columns_of_every_row(spark: Any) -> None:
    data = steps()
    source = open_source(spark.createDataFrame(data).repartition(3))
    settled = source.settle(source.infer(["s", "x"]))
    columns = source.map(Running(), settled.domain)
    assert columns.columns == [*data.columns, "state", "sum"]
    rows = columns.toPandas()
    assert (rows["state"] == rows["s"]).all()
    by_group = source.map(Running(), settled.domain, group="g", order="k", raw=["words"]).toPandas()
    right = by_group.sort_values("k").groupby("g")["x"].cumsum()
    pd.testing.assert_series_equal(by_group["sum"].sort_index(), right.sort_index(), check_names=False)
    assert (by_group["words_"] == by_group["words"].str.len()).all()
    assert len(by_group) == len(data)
    assert pulled(source) == 0
