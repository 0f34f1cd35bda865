"""Runs of words counted by Polars: the words of a line side by side, then a `group_by`."""

from __future__ import annotations

import polars as pl

from benchmarks.contender import Data, Run


def count(data: Data, order: int) -> Run:
    """One long column of words with marks between lines; a run is a row of shifted columns that crosses no mark."""
    path = str(data["path"])

    def run() -> tuple[int, int, int]:
        lines = pl.read_csv(path, has_header=False, separator="\x01", quote_char=None, new_columns=["line"])
        words = lines.select((("<s> " * order) + pl.col("line") + " </s>").str.split(" ").alias("w")).with_row_index()
        column = words.explode("w")
        shifted = [pl.col("w").shift(-shift).alias(f"w{shift}") for shift in range(order + 1)]
        same = pl.col("index") == pl.col("index").shift(-order)
        counts = column.select(*shifted, same.alias("same")).filter("same").drop("same")
        numbers = counts.group_by([f"w{shift}" for shift in range(order + 1)]).len()["len"]
        return len(numbers), int(numbers.sum()), int(numbers.max())

    return run
