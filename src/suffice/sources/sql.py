"""DuckDB relations, streamed as Arrow batches of the columns that are needed."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from suffice.domain import Domain
from suffice.errors import OptionError
from suffice.sources import base
from suffice.sources.columns import Column
from suffice.sources.stream import ArrowStream, chunk_rows

if TYPE_CHECKING:
    import duckdb


class RelationSource(ArrowStream):
    """A DuckDB relation: each pass runs its query for the columns that are needed."""

    unordered = "a DuckDB relation"

    def __init__(self, relation: duckdb.DuckDBPyRelation) -> None:
        """Ask for the schema without running the query."""
        base.check_names(tuple(relation.columns))
        self._relation = relation
        with _reader(relation.limit(0), 1) as reader:
            super().__init__(reader.schema, self._batches)

    def weigh(self, weights: Column) -> None:
        """Rows of a relation have no order."""
        raise OptionError(
            "The rows of a relation have no order to match an array of weights with; name a column instead."
        )

    def _batches(self, names: Sequence[Hashable]) -> Iterator[Any]:
        quoted = ('"' + str(name).replace('"', '""') + '"' for name in names)
        # The connection takes no other query while a result is open, so the reader is closed also after an error.
        with _reader(self._relation.project(", ".join(quoted)), chunk_rows(Domain(), names)) as reader:
            yield from reader


def _reader(relation: duckdb.DuckDBPyRelation, rows: int) -> Any:
    """A record batch reader; its name has changed between versions."""
    open_reader = getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader
    return open_reader(rows)
