"""Fits on a session of Spark Connect; in a process of its own, as one has sessions of Connect or others, never both.

Prints a line of JSON for each model: its name, the largest difference of its parameters to those of the fit in memory,
and the largest answer in bytes.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from sources.test_models_on_engines import CASES, choose, table
from suffice.sources.partitions import Packed
from suffice.sources.spark import ShardFrame, SparkHeld, SparkSource

#: Closed forms, rounds over tables, over rows and over sequences, with options that keep them short.
NAMES: dict[str, dict[str, Any]] = {
    "tables": {},
    "EM of tables": {"max_iter": 3},
    "Poisson regression": {},
    "hidden Markov model": {"max_iter": 3},
    "chain CRF": {"max_iter": 3},
}


def main(folder: str) -> None:
    """Fit all of them to Parquet files that are written to a folder."""
    from pyspark.sql import SparkSession

    warnings.simplefilter("ignore")
    os.environ |= {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    settings = {
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.memory": "1g",
    }
    session = SparkSession.builder.remote("local[2]").config(map=settings).getOrCreate()
    data = table()
    for part in range(2):
        data.iloc[part::2].to_parquet(Path(folder) / f"part-{part}.parquet")
    rows: Any = session.read.parquet(folder)
    assert type(rows).__module__.startswith("pyspark.sql.connect")
    sizes: list[int] = []
    unpacked, begin = Packed.opened, SparkHeld.__init__

    def opened(packed: Packed) -> Any:
        sizes.append(len(packed.data))
        return unpacked(packed)

    def held(shards: Any, *given: Any) -> None:
        begin(shards, *given)
        assert isinstance(shards._shards, ShardFrame)

    def brought(*given: object) -> None:
        raise AssertionError("rows were brought into this process")

    Packed.opened = opened  # type: ignore[assignment, method-assign]
    SparkHeld.__init__ = held  # type: ignore[assignment, method-assign]
    SparkSource._brought = brought  # type: ignore[assignment, method-assign]
    for name, options in NAMES.items():
        case = CASES[name]
        here = case.model().set_params(**options).fit(data[case.columns], **case.options)
        sizes.clear()
        there = case.model().set_params(**options).fit(choose(rows, case.columns), **case.options)
        away = [
            np.abs(np.asarray(value) - np.asarray(right)).max()
            for value, right in zip(case.parameters(there), case.parameters(here), strict=True)
        ]
        print(json.dumps([name, float(max(away)), max(sizes)]), flush=True)
    model = CASES["Poisson regression"].model().fit(data, **CASES["Poisson regression"].options)
    predicted = model.predict(rows).toPandas().sort_values("row")["prediction"].to_numpy()
    print(json.dumps(["predictions", float(np.abs(predicted - model.predict(data)).max()), 0]))
    session.stop()


if __name__ == "__main__":
    main(sys.argv[1])
