"""Engines of others: the same summary from DuckDB, Dask and Spark, and only summaries travel."""

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sources.tables import COLUMNS, NAMES, STATISTICS, counts_of, pandas_frame, states_of, summary
from suffice.domain import Variable
from suffice.errors import DataError, MissingColumnError, OptionError, UnknownStateError
from suffice.models.glm.input import is_sparse
from suffice.models.markov.contingency import read_cells
from suffice.sources import Tally, open_source, summarize_source
from suffice.statistics import Counts, Moments, Summary

WEIGHTS = [2.0, 0.5, 1.0, 3.0, 1.0, 1.0, 4.0]


@pytest.fixture(scope="module")
def reference() -> Summary:
    return summary(COLUMNS)


def weighted(data: Any, **options: Any) -> Summary:
    source = open_source(data, **options)
    assert source.columns == NAMES
    return summarize_source(source, source.infer(NAMES, {"visits": Variable("visits", "count")}), STATISTICS)


def test_a_task_can_be_sent_to_another_process() -> None:
    task = Tally(STATISTICS, "available")
    assert pickle.loads(pickle.dumps(task)) == task


# DuckDB ---------------------------------------------------------------------------------------------------------------


@pytest.fixture
def connection() -> Iterator[Any]:
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect() as connection:
        connection.register("small", pandas_frame().assign(w=WEIGHTS))
        yield connection


def test_duckdb(connection: Any, reference: Summary) -> None:
    relation = connection.sql("select * exclude w from small")
    assert summary(relation) == reference
    assert summary(relation) == reference


def test_duckdb_weights(connection: Any) -> None:
    assert weighted(connection.sql("from small"), sample_weight="w") == weighted(COLUMNS, sample_weight=WEIGHTS)
    with pytest.raises(OptionError, match="name a column"):
        open_source(connection.sql("from small"), sample_weight=WEIGHTS)


def test_duckdb_types(connection: Any) -> None:
    relation = connection.sql(
        "select * from (values (1.5, 'u'::enum('w', 'v', 'u'), null, date '2024-01-01', 1)) "
        't(d, "the e", n, t, "a""b")'
    )
    source = open_source(relation)
    domain = source.infer()
    # Some versions of DuckDB call a column of nothing but gaps one of whole numbers.
    untyped = domain["n"].kind
    assert untyped in ("real", "discrete")
    assert {v.name: v.kind for v in domain.variables} == {
        "d": "real",
        "the e": "discrete",
        "n": untyped,
        "t": "discrete",
        'a"b': "discrete",
    }
    assert (domain["the e"].states, domain["the e"].origin) == (("w", "v", "u"), "category")
    assert counts_of(relation, "the e", 'a"b') == ((("w", "v", "u"), (1,)), [[0], [0], [1]])


def test_a_failed_pass_leaves_the_connection_free(connection: Any) -> None:
    relation = connection.sql("select 'a' || (range % 7) as v from range(1000000)")
    for _ in range(2):
        with pytest.raises(UnknownStateError, match="'a1'"):
            counts_of(relation, "v", declared={"v": Variable.discrete("v", ["a0"])})
    assert connection.sql("select 1").fetchall() == [(1,)]


def test_duckdb_reads_only_what_it_needs(connection: Any) -> None:
    relation = connection.sql("select 1 as fine, error('must not be read')::varchar as v from range(3)")
    source = open_source(relation)
    domain = source.infer(["fine"])
    assert summarize_source(source, domain, [Counts(("fine",))]).rows == 3


# Dask -----------------------------------------------------------------------------------------------------------------


@pytest.fixture
def dask_frame() -> Any:
    frames = pytest.importorskip("dask.dataframe")
    return frames.from_pandas(pandas_frame().assign(w=WEIGHTS), npartitions=3)


def test_dask(dask_frame: Any, reference: Summary) -> None:
    assert summary(dask_frame) == reference


def test_dask_weights(dask_frame: Any) -> None:
    assert weighted(dask_frame, sample_weight="w") == weighted(COLUMNS, sample_weight=WEIGHTS)
    with pytest.raises(OptionError, match="name a column"):
        open_source(dask_frame, sample_weight=WEIGHTS)


def test_dask_batches_and_categories(dask_frame: Any) -> None:
    frame = dask_frame.astype({"colour": "category"})
    for table in (frame, frame.categorize(columns=["colour"])):
        source = open_source(table)
        domain = source.infer(["colour", "price"])
        found = summarize_source(source, domain, [Counts(("colour",)), Moments(("price",))])
        assert dict(zip(found.domain["colour"].states, found[Counts(("colour",))].dense(), strict=True)) == {
            "blue": 2,
            "green": 1,
            "red": 4,
        }
        assert sum(batch.rows for batch in source.batches(domain)) == 7
        assert source.passes == 2


def test_dask_errors_come_back(dask_frame: Any) -> None:
    with pytest.raises(UnknownStateError, match="'green'"):
        counts_of(dask_frame, "colour", declared={"colour": Variable.discrete("colour", ["red", "blue"])})
    with pytest.raises(MissingColumnError, match="Did you mean 'colour'"):
        open_source(dask_frame).infer(["color"])


def test_dask_workers_in_other_processes(dask_frame: Any, reference: Summary) -> None:
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster,
        distributed.Client(cluster),
    ):
        assert summary(dask_frame) == reference


# Spark ----------------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")
def test_spark(spark: Any, reference: Summary) -> None:
    frame = spark.createDataFrame(pandas_frame().assign(w=WEIGHTS)).repartition(3)
    assert summary(frame.drop("w")) == reference
    assert weighted(frame, sample_weight="w") == weighted(COLUMNS, sample_weight=WEIGHTS)
    source = open_source(frame, columns=["size"])
    assert sum(batch.rows for batch in source.batches(source.infer())) == 7
    with pytest.raises(OptionError, match="name a column"):
        open_source(frame, sample_weight=WEIGHTS)
    empty = summary(frame.drop("w").limit(0), declared=dict(reference.domain))
    assert (empty.rows, states_of(empty.domain)) == (0, states_of(reference.domain))
    with pytest.raises(Exception, match="'green'"):
        counts_of(frame, "colour", declared={"colour": Variable.discrete("colour", ["red", "blue"])})


@pytest.mark.filterwarnings("ignore")
def test_sequences_on_spark_need_an_order(spark: Any) -> None:
    from sources.test_sequence_order import ORDERED, check_engine, transitions

    right = transitions(ORDERED, group="person")
    check_engine(spark.createDataFrame(ORDERED).repartition(7), right, ["step", "stamp", "time", "text"])


# Other frames --------------------------------------------------------------------------------------------------------


def test_frames_that_narwhals_wraps(reference: Summary) -> None:
    import narwhals.stable.v2 as nw
    import polars as pl

    assert summary(nw.from_native(pl.DataFrame(COLUMNS))) == reference
    assert summary(nw.from_native(pl.LazyFrame(COLUMNS))) == reference


def test_a_folder_of_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="holds no file"):
        open_source(tmp_path)


class AnyColumn:
    """A frame that takes any name for that of a column, as those of Spark Connect do."""

    def __getattr__(self, name: str) -> object:
        return object()


def test_a_frame_that_has_every_attribute_is_neither_sparse_nor_a_table_of_counts() -> None:
    assert not is_sparse(AnyColumn())
    assert read_cells(AnyColumn(), None, {}, ["a"], named=False) is None
