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
from suffice.sources.base import Batch, Layout, Piece
from suffice.sources.columns import Coded, Column
from suffice.sources.grouping import NO_SEQUENCES, check_group, concatenated, order_values, sequence_rows
from suffice.sources.scratch import Scratch, append, read_all

#: Bytes of the rows of a shard while it is read, about: one for each thread and one more are in memory at a time.
SHARD_BYTES = 1 << 24
#: Most files that rows are spread over.
MOST_PARTS = 1024


def row_bytes(domain: Domain, layout: Layout) -> int:
    """Bytes of a row while it is read, about: a short text takes as many as a number, whatever its code takes later."""
    return 8 * (len(domain) + 2) + 16 * len(layout.keys) + 64 * len(layout.raw)


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
        origins=tuple(dict.fromkeys(origin for batch in batches for origin in batch.origins)),
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
        group = None
        if layout.group is not None:
            coded = check_group(columns[layout.group].code(), layout.group, batch.start)
            group = Coded(coded.indices, _plain_labels(coded.labels))
        return cls(batch, group, None if layout.order is None else order_values(columns[layout.order], batch.start))

    def chosen(self, rows: Ints) -> Steps:
        """Some rows, with the labels that they hold."""
        group = self.group
        if group is not None:
            used, indices = np.unique(group.indices[rows], return_inverse=True)
            labels: Any = group.labels
            held: Any = labels[used] if isinstance(labels, np.ndarray) else [labels[label] for label in used.tolist()]
            group = Coded(indices.astype(np.uint32), held)
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
    groups = [part.group for part in parts if part.group is not None]
    return Steps(batch, _joined_groups(groups) if groups else None, order)


def _joined_groups(groups: Sequence[Coded]) -> Coded:
    """The sequences of all rows."""
    labels, tables = _numbered([group.labels for group in groups])
    return Coded(np.concatenate([table[group.indices] for table, group in zip(tables, groups, strict=True)]), labels)


def _numbered(parts: Sequence[Any]) -> tuple[list[Hashable], list[NDArray[np.uint32]]]:
    """All labels of some lists, and the number of each label of each list among them."""
    if all(isinstance(part, np.ndarray) for part in parts):
        distinct, inverse = np.unique(np.concatenate(parts), return_inverse=True)
        return distinct.tolist(), np.split(inverse.astype(np.uint32), np.cumsum([len(part) for part in parts])[:-1])
    labels: dict[Hashable, Hashable] = {}
    numbers: dict[Hashable, int] = {}
    tables = []
    for part in parts:
        plain = part.tolist() if isinstance(part, np.ndarray) else part
        keys = [state_key(plain_time(label)) for label in plain]
        tables.append(np.fromiter((numbers.setdefault(key, len(numbers)) for key in keys), np.uint32, len(keys)))
        for key, label in zip(keys, plain, strict=True):
            labels.setdefault(key, label)
    return list(labels.values()), tables


def _plain_labels(labels: Sequence[Hashable]) -> Any:
    """Whole numbers as an array, which takes no time for each of them; other labels as they are."""
    if not isinstance(labels, range) and set(map(type, labels)) != {int}:
        return labels
    array = np.asarray(labels)
    return array.astype(np.int64) if array.dtype.kind == "i" else labels


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
    domain = Domain()
    for part in steps:
        assert part.group is not None
        domain = part.batch.domain  # The same for all, so that it is not written with each.
        bare = replace(part, batch=replace(part.batch, domain=Domain()))
        home = _homes(part.group.labels, count)[part.group.indices]
        rows = np.argsort(home, kind="stable")
        bounds = np.searchsorted(home[rows], np.arange(count + 1))
        for number in np.flatnonzero(np.diff(bounds)).tolist():
            if number not in paths:
                paths[number] = scratch.file()
            append(paths[number], bare.chosen(rows[bounds[number] : bounds[number + 1]]))
    for number in sorted(paths):
        yield partial(_sequences_of_file, paths[number], layout, domain)


def shard_rows(domain: Domain, layout: Layout, limit: int | None) -> int:
    """Rows of a shard, about: by bytes, and few enough that some shards fit a limit together."""
    room = SHARD_BYTES if limit is None else min(SHARD_BYTES, limit // 4)
    return max(1, room // row_bytes(domain, layout))


def _sequences_of_file(path: Path, layout: Layout, domain: Domain) -> Batch:
    """The sequences of a file, which is then gone."""
    batch = joined_steps(list(read_all(path))).sequences(layout)
    path.unlink()
    return replace(batch, domain=domain)


def _homes(labels: Any, count: int) -> Ints:
    """The shard of each label: by its value alone, whatever the process or the type of its number."""
    if isinstance(labels, np.ndarray):
        hashes = labels.view(np.uint64)
    else:
        hashes = np.fromiter(map(_hash, labels), np.uint64, len(labels))
    # Fibonacci hashing: the upper half of the product depends on all bits, also of labels that count up.
    spread = (hashes * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32)
    return (spread % np.uint64(count)).astype(np.int64)


def _hash(label: Hashable) -> int:
    """A whole number of any type is its own; the hash of text that Python has differs between processes."""
    if isinstance(label, int) or (isinstance(label, float) and label.is_integer()):
        return int(label) & 0xFFFFFFFFFFFFFFFF
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
