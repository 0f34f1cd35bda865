"""Tables that are read piece by piece: files, readers, lazy frames, databases."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.array_types import Floats
from suffice.domain import Domain, Variable
from suffice.errors import DataError
from suffice.sources.arrow import ArrowColumn, category, is_number, kind_of, variable_of
from suffice.sources.assembly import assemble
from suffice.sources.base import Batch, Layout, Piece, Progress, Source, by_kind
from suffice.sources.columns import Column
from suffice.sources.held import Settled
from suffice.sources.kinds import WholeFloats, check_declared, whole_floats
from suffice.sources.reduction import Origin, map_in_order, naming
from suffice.sources.scratch import Scratch
from suffice.sources.shards import MOST_PARTS, Steps, grouped_shards, joined, shard_rows
from suffice.sources.states import Growing, Translation
from suffice.sources.weights import check_length, check_weights

if TYPE_CHECKING:
    import pyarrow as pa


#: Most rows of a chunk, and most bytes of its columns, about: several chunks are in memory at a time, each in several
#: forms (decoded, coded, prepared). Four times as many took a quarter more memory and no less time.
BATCH_ROWS = 131_072
BATCH_BYTES = 1 << 22


def chunk_rows(domain: Domain, names: Sequence[Hashable]) -> int:
    """Rows of a chunk of these columns: fewer where there are many columns, so that memory does not follow them."""
    width = sum(4 if name in domain and domain[name].kind == "discrete" else 8 for name in names)
    return max(1, min(BATCH_ROWS, BATCH_BYTES // max(width, 1)))


@dataclass(frozen=True)
class Chunk:
    """Some rows of a stream, not yet coded; `origin` is the file that they come from, if there is one."""

    columns: Mapping[Hashable, Column]
    rows: int
    origin: Origin | None = None

    @property
    def origins(self) -> tuple[Origin, ...]:
        """As a batch has them."""
        return () if self.origin is None else (self.origin,)


class StreamSource(Source):
    """A table that comes in chunks; each pass reads it anew.

    The weights are None, an array (one for every row, in the order of the rows) or the name of a column.
    """

    def __init__(self, columns: Iterable[Hashable]) -> None:
        """Keep the names."""
        super().__init__(columns)
        self._weights: Floats | None = None

    @abstractmethod
    def _chunks(self, domain: Domain, names: Sequence[Hashable]) -> Iterator[Chunk]:
        """The chunks of the named columns, in order, read for the variables of a domain."""

    def weigh(self, weights: Column) -> None:
        """Take the weights from a column that is no part of the table."""
        values = weights.floats(slice(0, len(weights)))
        if self.rows is not None:
            check_length(len(values), self.rows)
        self._weights = check_weights(np.ascontiguousarray(values), 0)

    @property
    def _known_weight(self) -> float | None:
        return super()._known_weight if self._weights is None else float(self._weights.sum())

    def columns_in_parts(self, domain: Domain) -> Iterator[Mapping[Hashable, Column]]:
        """Chunk by chunk."""
        self.passes += 1
        return (chunk.columns for chunk in self._chunks(domain, domain.names))

    def _whole_floats(self, names: Sequence[Hashable]) -> Mapping[Hashable, WholeFloats]:
        """By reading the columns until each has shown a value that speaks against it, mostly in the first chunk."""
        whole = {name: WholeFloats() for name in names}
        chunks = 0
        for chunk in self._chunks(Domain(Variable(name, "real") for name in names), tuple(names)):
            chunks += 1
            left = [name for name in names if whole[name].possible]
            for name in left:
                whole[name].read(chunk.columns[name].floats(slice(0, chunk.rows)))
            if not any(whole[name].possible for name in left):
                break
        self.passes += chunks > 1
        return whole

    def _pieces(self, domain: Domain, threads: int | None) -> Generator[Piece]:
        growing = Growing(domain)
        start = 0
        for chunk in self._chunks(domain, self._with_weights(domain)):
            yield partial(self._batch, chunk, domain, growing, start)
            start += chunk.rows
        self._check_end(start)
        if start == 0:
            yield lambda: Batch.empty(domain)

    def _check_end(self, rows: int) -> None:
        """Raise unless there was one weight a row."""
        if self._weights is not None:
            check_length(len(self._weights), rows)

    def _shards(
        self, settled: Settled, layout: Layout, threads: int | None, limit: int | None, scratch: Scratch
    ) -> Generator[Piece]:
        """Some chunks each, or whole sequences from all of them."""
        growing = Growing(settled.domain)
        most = shard_rows(settled.domain, layout, limit)
        if layout.group is None and layout.order is None:
            for chunks, start in self._gathered(settled.domain, layout, most):
                yield partial(self._shard, chunks, settled.domain, layout, growing, start)
            return
        steps = map_in_order(lambda part: part(), self._steps(settled.domain, layout, growing), threads)
        count = 1 if layout.group is None else min(-(-settled.rows // most), MOST_PARTS)
        yield from grouped_shards(steps, layout, max(count, 1), scratch)

    def _wide_chunks(self, domain: Domain, layout: Layout) -> Iterator[Chunk]:
        """Chunks with the columns beside the variables; those that tell sequences apart are read by their own kinds."""
        names = dict.fromkeys((*self._with_weights(domain), *layout.beside))
        keys = self.infer(name for name in layout.keys if name not in domain)
        rows = 0
        for chunk in self._chunks(Domain.of((*domain.variables, *keys.variables)), tuple(names)):
            yield chunk
            rows += chunk.rows
        self._check_end(rows)

    def _gathered(self, domain: Domain, layout: Layout, most: int) -> Iterator[tuple[list[Chunk], int]]:
        """Chunks in a row, of at most so many rows together where none is longer, and the number of their first row."""
        waiting: list[Chunk] = []
        start = rows = 0
        for chunk in self._wide_chunks(domain, layout):
            if waiting and rows + chunk.rows > most:
                yield waiting, start
                waiting, start, rows = [], start + rows, 0
            waiting.append(chunk)
            rows += chunk.rows
        if waiting or start == 0:
            yield waiting, start

    def _shard(self, chunks: list[Chunk], domain: Domain, layout: Layout, growing: Growing, start: int) -> Batch:
        batches = []
        for chunk in chunks:
            batches.append(self._with_raw(chunk, layout, self._batch(chunk, domain, growing, start)))
            start += chunk.rows
        return joined(batches) if batches else Batch.empty(domain)

    def _steps(self, domain: Domain, layout: Layout, growing: Growing) -> Iterator[Callable[[], Steps]]:
        start = 0
        for chunk in self._wide_chunks(domain, layout):
            yield partial(self._chunk_steps, chunk, domain, layout, growing, start)
            start += chunk.rows

    def _chunk_steps(self, chunk: Chunk, domain: Domain, layout: Layout, growing: Growing, start: int) -> Steps:
        batch = self._with_raw(chunk, layout, self._batch(chunk, domain, growing, start))
        with naming(chunk.origins):
            return Steps.read(batch, chunk.columns, layout)

    @staticmethod
    def _with_raw(chunk: Chunk, layout: Layout, batch: Batch) -> Batch:
        with naming(chunk.origins):
            return replace(batch, raw={name: chunk.columns[name].arrow() for name in layout.raw})

    def _batch(self, chunk: Chunk, domain: Domain, growing: Growing, start: int) -> Batch:
        with naming(chunk.origins):
            return replace(self._coded(chunk, domain, growing, start), origins=chunk.origins)

    def _coded(self, chunk: Chunk, domain: Domain, growing: Growing, start: int) -> Batch:
        discrete, _ = by_kind(domain)
        coded = {name: chunk.columns[name].code() for name in discrete}
        resolved = Domain(
            growing.resolve(v.name, coded[v.name], start) if v.name in coded else v for v in domain.variables
        )
        check_declared(resolved, self.undeclared)
        translations = {name: Translation(resolved[name], coded[name]) for name in discrete}
        rows = slice(0, chunk.rows)
        weights = self._weights_of(chunk, start)
        return assemble(chunk.columns, resolved, translations, rows=rows, start=start, weights=weights)

    def _weights_of(self, chunk: Chunk, start: int) -> Floats | None:
        if self._weight_name is not None:
            values = chunk.columns[self._weight_name].floats(slice(0, chunk.rows))
            return check_weights(np.ascontiguousarray(values), start, self._weight_name)
        if self._weights is None:
            return None
        if start + chunk.rows > len(self._weights):
            raise DataError(
                f"sample_weight has {len(self._weights)} values, and the data have at least {start + chunk.rows} rows; "
                "give one weight a row."
            )
        return self._weights[start : start + chunk.rows]


def arrow_chunks(
    batches: Iterable[Any], names: Sequence[Hashable], rows: int, path: str = "", start: int = 0
) -> Iterator[Chunk]:
    """Chunks of so many rows from Arrow record batches or tables; short ones stay as they are."""
    origin = Origin(start, path) if path else None
    for whole in batches:
        for offset in range(0, whole.num_rows, rows):
            batch = whole.slice(offset, rows)
            columns = {name: ArrowColumn(name, batch.column(name), start) for name in names}
            yield Chunk(columns, batch.num_rows, origin)
            start += batch.num_rows


class ArrowStream(StreamSource):
    """Record batches of the named columns from a function that opens a reader anew for each pass."""

    def __init__(self, schema: pa.Schema, read: Callable[[Sequence[Hashable]], Iterable[Any]]) -> None:
        """Keep the schema and how to read."""
        super().__init__(schema.names)
        self._schema = schema
        self._read = read

    @property
    def rows(self) -> int | None:
        """Unknown before reading."""
        return None

    def _infer(self, name: Hashable) -> Variable:
        type_ = self._schema.field(name).type
        first = self._first(name) if kind_of(name, type_) == "category" else None
        return variable_of(name, type_) if first is None else category(name, first.column(name).dictionary.to_pylist())

    def holds_numbers(self, name: Hashable) -> bool:
        """By the Arrow type."""
        return is_number(self._schema.field(name).type)

    def _first(self, name: Hashable) -> Any:
        """The first record batch, or None: only rows carry the values of a dictionary."""
        return next(iter(self._read([name])), None)

    def _chunks(self, domain: Domain, names: Sequence[Hashable]) -> Iterator[Chunk]:
        return arrow_chunks(self._read(names), names, chunk_rows(domain, names))


class ReaderSource(ArrowStream):
    """A record batch reader: it can be read once, unless its rows are settled, which keeps them in a scratch folder."""

    one_pass = True

    def __init__(self, reader: pa.RecordBatchReader) -> None:
        """Keep the reader."""
        super().__init__(reader.schema, self._remaining)
        self._reader = iter(reader)
        self._seen: list[Any] = []
        self._spent = False

    def _whole_floats(self, names: Sequence[Hashable]) -> Mapping[Hashable, WholeFloats]:
        """By the first record batch where that tells; else all rows are written down, to be read twice."""
        if self.one_pass:
            first = self._first(names[0])
            columns = [] if first is None else [ArrowColumn(name, first.column(name)) for name in names]
            names = [column.name for column in columns if whole_floats(column).possible]
            if not names:
                return {}
            self._write()
        return super()._whole_floats(names)

    def _first(self, name: Hashable) -> Any:
        if not self._seen:
            self._seen = [batch for _, batch in zip(range(1), self._reader, strict=False)]
        return self._seen[0] if self._seen else None

    def settle(self, domain: Domain, *, threads: int | None = None, progress: Progress | None = None) -> Settled:
        """As for any source; the rows are written to a scratch folder, from where they can be read again."""
        if self.one_pass:
            self._write()
        return super().settle(domain, threads=threads, progress=progress)

    def _write(self) -> None:
        import pyarrow as pa

        self._scratch = Scratch()
        path = str(self._scratch.folder / "rows.arrow")
        with pa.OSFile(path, "wb") as file, pa.ipc.new_stream(file, self._schema) as writer:
            for batch in self._remaining(self._schema.names):
                writer.write_batch(batch)

        def read(names: Sequence[Hashable]) -> Iterator[Any]:
            with pa.OSFile(path) as file, pa.ipc.open_stream(file) as reader:
                for batch in reader:
                    yield batch.select(list(names))

        self._read, self.one_pass = read, False

    def _remaining(self, names: Sequence[Hashable]) -> Iterator[Any]:
        if self._spent:
            raise DataError(
                "A RecordBatchReader can be read only once, and this one has been read. "
                "Give a table or the path of a file to a fit that reads the rows several times."
            )
        self._spent = True
        first, self._seen = self._seen, []
        return (batch.select(list(names)) for batch in chain(first, self._reader))
