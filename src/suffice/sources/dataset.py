"""Arrow datasets: files in any number of folders, with the columns that the names of the folders hold."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from suffice.domain import Domain
from suffice.sources import base
from suffice.sources.stream import ArrowStream, chunk_rows


class DatasetSource(ArrowStream):
    """A `pyarrow.dataset.Dataset`, read in the order of its files."""

    def __init__(self, dataset: Any) -> None:
        """Keep the dataset."""
        base.check_names(tuple(dataset.schema.names))
        self._dataset = dataset
        super().__init__(dataset.schema, self._batches)

    @cached_property
    def rows(self) -> int:
        """Number of rows, which footers say."""
        return int(self._dataset.count_rows())

    def _batches(self, names: Sequence[Hashable]) -> Iterator[Any]:
        # Reading far ahead, the default of pyarrow, keeps many batches of many files.
        yield from self._dataset.to_batches(
            columns=list(names), batch_size=chunk_rows(Domain(), names), batch_readahead=2, fragment_readahead=1
        )


def is_partitioned(folder: Path) -> bool:
    """Whether a folder holds others that are named by a column and its value, as ``year=2024``."""
    return folder.is_dir() and any(inner.is_dir() and "=" in inner.name for inner in folder.iterdir())


def partitioned_folder(folder: Path) -> DatasetSource:
    """The Parquet files of all folders within, with a column for each part of their names."""
    import pyarrow.dataset as ds

    files = sorted(str(file) for file in folder.rglob("*.parquet"))
    return DatasetSource(ds.dataset(files, format="parquet", partitioning="hive", partition_base_dir=str(folder)))
