"""Batches to shards: some end to end, rows as whole sequences, and rows of files brought together by their sequence."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Ints
from suffice.domain import Domain, state_key
from suffice.errors import DataError
from suffice.sources.arrays import array_column, plain_time
from suffice.sources.base import Batch, Layout, Piece, by_kind
from suffice.sources.columns import Coded, Column, code_dtype
from suffice.sources.grouping import NO_SEQUENCES, check_group, concatenated, sequence_rows, values_of
from suffice.sources.scratch import Scratch, append, read_all

#: Bytes of the rows of a shard, about.
SHARD_BYTES = 1 << 25
#: Most files that rows are spread over.
MOST_PARTS = 1024


def row_bytes(domain: Domain, layout: Layout) -> int:
    """Bytes of a row once it is coded, about."""
    discrete, real = by_kind(domain)
    codes = np.dtype(code_dtype(max((domain[name].card for name in discrete), default=0))).itemsize
    return codes * len(discrete) + 8 * (len(real) + 2) + 16 * len(layout.keys) + 64 * len(layout.raw)


def joined(batches: Sequence[Batch]) -> Batch:
    """Batches of one domain end to end."""
    first = batches[0]
    if len(batches) == 1:
        return first
    import pyarrow as pa

    numbers = None if first.numbers is None else np.concatenate([batch.numbers for batch in batches])
    weights = None if first.weights is None else np.concatenate([batch.weights for batch in batches])
    return replace(
        first,
        codes=np.concatenate([batch.codes for batch in batches], axis=1),
        reals=np.concatenate([batch.reals for batch in batches], axis=1),
        weights=weights,
        rows=sum(batch.rows for batch in batches),
        complete=all(batch.complete for batch in batches),
        raw={name: pa.concat_arrays(_alike([batch.raw[name] for batch in batches], name)) for name in first.raw},
        numbers=numbers,
    )


def _alike(arrays: list[Any], name: Hashable) -> list[Any]:
    """Arrays of one type: that of the first which has one, as a chunk without a value has none."""
    import pyarrow as pa

    types = [array.type for array in arrays if not pa.types.is_null(array.type)]
    try:
        return [array if array.type == types[0] else array.cast(types[0]) for array in arrays] if types else arrays
    except pa.ArrowException as error:
        raise DataError(f"Column {name!r} is of several types, {types[0]} first; give one type: {error}") from None


def chosen_rows(batch: Batch, rows: Ints | slice, offsets: Ints | None = None) -> Batch:
    """Some rows of a batch in the order asked; `numbers` says which they were."""
    numbers = np.arange(batch.start, batch.start + batch.rows) if batch.numbers is None else batch.numbers
    taken = numbers[rows]
    return replace(
        batch,
        codes=np.ascontiguousarray(batch.codes[:, rows]),
        reals=np.ascontiguousarray(batch.reals[:, rows]),
        weights=None if batch.weights is None else batch.weights[rows],
        rows=len(taken),
        raw={name: array[rows] if isinstance(rows, slice) else array.take(rows) for name, array in batch.raw.items()},
        offsets=offsets,
        numbers=taken,
    )


@dataclass(frozen=True)
class Steps:
    """Rows with the sequence that each belongs to, and with the values that order them (None where rows do)."""

    batch: Batch
    group: Coded | None
    order: NDArray[Any] | None

    @classmethod
    def read(cls, batch: Batch, columns: Mapping[Hashable, Column], layout: Layout) -> Steps:
        """With the columns that the layout names."""
        group = None if layout.group is None else check_group(columns[layout.group].code(), layout.group, batch.start)
        return cls(batch, group, None if layout.order is None else values_of(columns[layout.order]))

    def chosen(self, rows: Ints) -> Steps:
        """Some rows, with the labels that they hold."""
        group = self.group
        if group is not None:
            used, indices = np.unique(group.indices[rows], return_inverse=True)
            group = Coded(indices.astype(np.uint32), [group.labels[label] for label in used.tolist()])
        return Steps(chosen_rows(self.batch, rows), group, None if self.order is None else self.order[rows])

    def sequences(self, layout: Layout) -> Batch:
        """The rows as whole sequences, one after the other."""
        order = None if self.order is None else array_column(layout.order, self.order)
        rows, offsets = sequence_rows(self.group, order, self.batch.rows)
        if offsets is None:
            offsets = np.array([0, self.batch.rows], np.int64)
        return replace(self.batch, offsets=offsets) if rows is None else chosen_rows(self.batch, rows, offsets)


def joined_steps(parts: Sequence[Steps]) -> Steps:
    """End to end; sequences are told apart by their labels."""
    batch = joined([part.batch for part in parts])
    order = None if parts[0].order is None else concatenated([part.order for part in parts if part.order is not None])
    if parts[0].group is None:
        return Steps(batch, None, order)
    numbers: dict[Hashable, int] = {}
    labels: list[Hashable] = []
    indices: list[NDArray[Any]] = []
    for group in (part.group for part in parts if part.group is not None):
        table = np.empty(len(group.labels), np.uint32)
        for own, label in enumerate(group.labels):
            table[own] = number = numbers.setdefault(state_key(plain_time(label)), len(labels))
            if number == len(labels):
                labels.append(label)
        indices.append(table[group.indices])
    return Steps(batch, Coded(np.concatenate(indices), labels), order)


def grouped_shards(steps: Iterable[Steps], layout: Layout, count: int, scratch: Scratch) -> Generator[Piece]:
    """Whole sequences from rows in any order, in `count` shards.

    Rows go to files by a hash of the label of their sequence, and each file is then sorted by itself: time is linear in
    the rows, and memory is that of a shard. Which shard a sequence is in, and where, depends on the rows alone. One
    shard needs no file.
    """
    if count == 1:
        everything = list(steps)
        if not everything:
            raise DataError(NO_SEQUENCES)
        yield lambda: joined_steps(everything).sequences(layout)
        return
    paths: dict[int, Path] = {}
    for part in steps:
        assert part.group is not None
        home = _homes(part.group.labels, count)[part.group.indices]
        rows = np.argsort(home, kind="stable")
        bounds = np.searchsorted(home[rows], np.arange(count + 1))
        for number in np.flatnonzero(np.diff(bounds)).tolist():
            if number not in paths:
                paths[number] = scratch.file()
            append(paths[number], part.chosen(rows[bounds[number] : bounds[number + 1]]))
    for number in sorted(paths):
        yield partial(_sequences_of_file, paths[number], layout)


def shard_rows(domain: Domain, layout: Layout, limit: int | None) -> int:
    """Rows of a shard, about: by bytes, and few enough that some shards fit a limit together."""
    room = SHARD_BYTES if limit is None else min(SHARD_BYTES, limit // 4)
    return max(1, room // row_bytes(domain, layout))


def _sequences_of_file(path: Path, layout: Layout) -> Batch:
    """The sequences of a file, which is then gone."""
    batch = joined_steps(list(read_all(path))).sequences(layout)
    path.unlink()
    return batch


def _homes(labels: Sequence[Hashable], count: int) -> Ints:
    """The shard of each label: by its value alone, whatever the process or the type of its number."""
    hashes = np.fromiter(map(_hash, labels), np.uint64, len(labels))
    # Fibonacci hashing: the upper half of the product depends on all bits, also of labels that count up.
    spread = (hashes * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32)
    return (spread % np.uint64(count)).astype(np.int64)


def _hash(label: Hashable) -> int:
    """Equal numbers of any type have one hash in Python; the one of text differs between processes."""
    if isinstance(label, int | float):
        return hash(label) & 0xFFFFFFFFFFFFFFFF
    return zlib.crc32(repr(plain_time(label)).encode())


def cut_sequences(batch: Batch, most: int) -> Iterator[Callable[[], Batch]]:
    """Whole sequences of a batch, some at a time: of at most so many rows where they are not longer than that."""
    assert batch.offsets is not None
    first = 0
    while first < len(batch.offsets) - 1:
        last = int(np.searchsorted(batch.offsets, batch.offsets[first] + most, side="right")) - 1
        last = max(last, first + 1)
        begin, end = int(batch.offsets[first]), int(batch.offsets[last])
        yield partial(chosen_rows, batch, slice(begin, end), batch.offsets[first : last + 1] - begin)
        first = last
