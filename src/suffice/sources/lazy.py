"""Lazy frames: polars' own, streamed; those of other libraries, through narwhals."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from suffice.domain import Domain, Variable
from suffice.sources.frames import polars_column, polars_variable
from suffice.sources.stream import ArrowStream, Chunk, StreamSource, chunk_rows

if TYPE_CHECKING:
    import polars as pl


class LazyPolars(StreamSource):
    """A polars LazyFrame: each pass runs its query for the columns that are needed."""

    def __init__(self, frame: pl.LazyFrame) -> None:
        """Keep the query."""
        self._frame = frame
        self._schema = frame.collect_schema()
        super().__init__(self._schema.names())

    @property
    def rows(self) -> int | None:
        """Unknown before the query has run."""
        return None

    def holds_numbers(self, name: Hashable) -> bool:
        """By the type of polars."""
        import polars as pl

        return bool(self._schema[name].is_numeric() or self._schema[name] == pl.Boolean)

    def _infer(self, name: Hashable) -> Variable:
        return polars_variable(name, self._schema[name])

    def _chunks(self, domain: Domain, names: Sequence[Hashable]) -> Iterator[Chunk]:
        chosen = self._frame.select(list(names))
        rows = chunk_rows(domain, names)
        if hasattr(chosen, "collect_batches"):
            frames = chosen.collect_batches(chunk_size=rows)
        else:
            frames = chosen.collect().iter_slices(rows)
        start = 0
        for frame in frames:
            columns = {name: polars_column(name, frame[name], start) for name in names}
            yield Chunk(columns, frame.height)
            start += frame.height


def narwhals_source(frame: Any) -> ArrowStream:
    """A source from a lazy frame that narwhals wraps; its rows are collected as Arrow for each pass."""
    chosen = frame.head(0).collect("pyarrow").to_native()
    source = ArrowStream(
        chosen.schema, lambda names: frame.select(list(names)).collect("pyarrow").to_native().to_batches()
    )
    source.unordered = "a lazy frame of another library"
    return source
