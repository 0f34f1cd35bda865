"""Tables of steps or nodes: which data are one, and answers for their rows in the kind of the table."""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic

import numpy as np
from numpy.typing import NDArray

from suffice.errors import MissingValueError, OptionError, listing
from suffice.models.conditional_field.decoding import E, FieldDecoder
from suffice.sources.base import Batch
from suffice.sources.sequences import is_table


def reads_table(X: object, columns: Mapping[str, Any], needed: Sequence[str]) -> bool:
    """Whether X is a table, whose columns are named by keywords; an error where those needed are not."""
    table = is_table(X) and not isinstance(X, list | tuple)
    missing = [f"{name}=" for name in needed if columns[name] is None]
    if table and missing:
        raise OptionError(
            f"X is a table; name its columns by {listing(missing)}, and the one of the labels by y=. group= tells the "
            "examples apart."
        )
    named = [f"{name}=" for name, value in columns.items() if value is not None]
    if named and not table:
        raise OptionError(
            f"{listing(named)} name columns of a table; X is a {type(X).__name__}. Leave it out, or give a table."
        )
    return table


def codes_in_column(batch: Batch, label: Hashable, unit: str) -> NDArray[Any]:
    """The codes of a column of labels (rows,), of which none may be missing; unit: what has a label, in words."""
    codes: NDArray[Any] = batch.codes[batch.discrete.index(label)]
    missing = codes == batch.domain[label].card
    if missing.any():
        row = batch.number(int(np.argmax(missing)))
        raise MissingValueError(
            f"Column {label!r} has a missing value (row {row}); every {unit} needs a label. Fill it in, or leave the "
            f"{unit} out."
        )
    return codes


@dataclass(frozen=True, eq=False)
class ScoreExamples(Generic[E]):
    """Log p(labels | example) of each example of a batch; `unit` is what has a label, in words."""

    decoder: FieldDecoder[E]
    read: Callable[[Batch], E]
    label: Hashable
    unit: str

    def __call__(self, batch: Batch, called: Callable[[int], str]) -> Sequence[float]:
        """Of examples that are called so."""
        codes = codes_in_column(batch, self.label, self.unit).astype(np.int64)
        logs: list[float] = self.decoder.log_likelihoods(self.read(batch), codes).tolist()
        return logs


def in_the_kind_of(X: Any, answer: Any) -> Any:
    """Columns for the rows of a table, as what the table is.

    Of pandas and polars a Series (several columns: a frame), of Arrow an array (a table), of files, queries and
    anything else in this process NumPy's array; what engines elsewhere give stays there.
    """
    import pyarrow as pa

    if not isinstance(answer, Iterable) or hasattr(answer, "columns"):
        return answer
    table = pa.Table.from_batches(list(answer))
    one = table.num_columns == 1
    pd, pl = sys.modules.get("pandas"), sys.modules.get("polars")
    if pd is not None and isinstance(X, pd.DataFrame):
        frame = table.to_pandas().set_axis(X.index)
        return frame[table.column_names[0]] if one else frame
    if pl is not None and isinstance(X, pl.DataFrame):
        frame = pl.from_arrow(table)
        return frame.to_series() if one else frame
    if isinstance(X, pa.Table | pa.RecordBatch):
        return table.column(0) if one else table
    columns = [column.to_numpy(zero_copy_only=False) for column in (part.combine_chunks() for part in table.columns)]
    return columns[0] if one else np.stack(columns, axis=1)
