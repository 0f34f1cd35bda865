"""What a pass over the rows of a regression costs at least."""

from __future__ import annotations

import pyarrow.parquet as pq

from benchmarks.contender import Data, Run


def decode(data: Data) -> Run:
    """Read every column of the file once and do nothing with it."""

    def run() -> None:
        for _ in pq.ParquetFile(str(data["path"])).iter_batches(use_threads=False):
            pass

    return run
