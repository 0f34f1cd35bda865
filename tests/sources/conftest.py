"""Engines in processes of their own, for a module of tests each: two workers that may die often."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

#: A LocalCluster gives up a worker that is away this long after one of its deaths. By default that is 15 s: killed once
#: more just before it, a worker would never come back, and tests kill theirs more often than accidents do.
KILLED_OFTEN = {"distributed.deploy.lost-worker-timeout": "1 hour"}


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """Dask, with two processes of one thread."""
    distributed = pytest.importorskip("distributed")
    with (
        pytest.importorskip("dask").config.set(KILLED_OFTEN),
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Spark with two cores and four attempts at a task: with one, as in local[2], it survives no loss."""
    sql = pytest.importorskip("pyspark.sql")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        tests = str(Path(__file__).resolve().parent.parent)
        patch.setenv("PYTHONPATH", os.pathsep.join([os.environ.get("PYTHONPATH", ""), tests]))
        settings = {
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
            "spark.driver.memory": "1g",
            "spark.sql.shuffle.partitions": "3",
        }
        session = sql.SparkSession.builder.master("local[2,4]").config(map=settings).getOrCreate()
        yield session
        session.stop()
