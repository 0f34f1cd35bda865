"""Where rows may be: files read by this process, Dask with two processes, Spark with two threads."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from benchmarks.contender import cpu_seconds

WORKERS = 2
#: By name: the package that it needs.
ENGINES = {"local Parquet": "pyarrow", "Dask": "distributed", "Spark": "pyspark"}
LOCAL = "local Parquet"
#: What Spark needs to find this machine and this Python; everything else is as a user's process has it.
ENVIRONMENT = {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}

#: Makes a table of a folder of Parquet files.
Open = Callable[[Path], Any]


def present(engine: str) -> bool:
    """Whether its package is installed, and Java for Spark."""
    import shutil

    return importlib.util.find_spec(ENGINES[engine]) is not None and (engine != "Spark" or bool(shutil.which("java")))


def alone(task: Callable[..., Any], *arguments: Any) -> Any:
    """What a task answers in a fresh process, which ends after it."""
    os.environ.update(ENVIRONMENT)  # Workers inherit it too.
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(task, *arguments).result()


def tree_seconds() -> float:
    """CPU time of this process and of all that it has started: workers, the virtual machine and their children."""
    stats: dict[int, tuple[int, float]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:  # Ended meanwhile.
            continue
        # Parent; then user and system time, of the process and of those it has seen end.
        stats[int(path.parent.name)] = int(fields[1]), sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    if not stats:
        return cpu_seconds()
    ours = {os.getpid()}
    while grown := {process for process, (parent, _) in stats.items() if parent in ours} - ours:
        ours |= grown
    # The system counts others in hundredths of a second; of this process it tells more.
    return cpu_seconds() + sum(stats[process][1] for process in ours - {os.getpid()})


@contextmanager
def started(engine: str) -> Iterator[Open]:
    """The engine, running; it ends with the context."""
    with {LOCAL: _local, "Dask": _dask, "Spark": _spark}[engine]() as opened:
        yield opened


@contextmanager
def _local() -> Iterator[Open]:
    yield lambda folder: str(folder / "*.parquet")


@contextmanager
def _dask() -> Iterator[Open]:
    import dask.dataframe as frames
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=WORKERS, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster),
    ):
        yield lambda folder: frames.read_parquet(str(folder / "*.parquet"))


@contextmanager
def _spark() -> Iterator[Open]:
    from pyspark.sql import SparkSession

    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": str(2 * WORKERS),
        "spark.sql.execution.arrow.maxRecordsPerBatch": "131072",
        "spark.driver.memory": "4g",
    }
    session = SparkSession.builder.master(f"local[{WORKERS}]").config(map=settings).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    try:
        yield lambda folder: session.read.parquet(str(folder))
    finally:
        session.stop()
