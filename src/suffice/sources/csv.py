"""CSV files, plain or gzipped, read in blocks; text becomes labels by rules that look at the whole column.

The states of a column are those that ``pandas.read_csv`` would give: whole numbers, ``True``/``False``, else text; a
column of numbers that are not all whole is real; an empty field and the usual words (``NA``, ``NaN``, ``None``) are
gaps. Whole numbers with gaps stay whole numbers. Declared states decide for themselves: their text is looked up
first, so ``"1"`` or ``"None"`` may be declared as text, and 1 as a number.

The type of a column is taken from the first block. If a column of whole numbers or truth values turns out to hold text
further down, its pass begins again with the column read as text, as a reader that sees the whole file would have it.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from suffice.domain import Domain, Variable
from suffice.errors import DataError
from suffice.sources import base
from suffice.sources.arrow import ArrowColumn
from suffice.sources.base import Answer, Batch, Progress
from suffice.sources.columns import Coded
from suffice.sources.files import reading
from suffice.sources.stream import Chunk, StreamSource

TextType = Literal["whole", "truth", "number", "text", "empty"]

#: Bytes read at a time.
BLOCK_BYTES = 1 << 22

#: The words that stand for a gap unless they are declared as states; the same as those of pandas.
GAPS = frozenset(
    {
        *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN"),
        *("<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
    }
)
_TRUTH = {"True": True, "TRUE": True, "true": True, "False": False, "FALSE": False, "false": False}
_WHOLE = re.compile(r"\s*[+-]?[0-9]+\s*")
_NUMBER = re.compile(r"\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*|\s*[+-]?inf(inity)?\s*", re.IGNORECASE)


class TextFoundError(DataError):
    """A column that began as numbers or truth values holds text."""

    def __init__(self, column: Hashable, message: str) -> None:
        """Keep the name of the column."""
        super().__init__(message)
        self.column = column


class CsvSource(StreamSource):
    """One or more CSV files with the same columns, in any order, each with a line of names."""

    def __init__(self, files: Sequence[str]) -> None:
        """Read the names of the columns from the first file."""
        self._files = list(files)
        self._types: dict[Hashable, TextType] = {}
        self._rows: int | None = None
        super().__init__(_header(self._files[0]))

    @property
    def rows(self) -> int | None:
        """Number of rows, once they have been read."""
        return self._rows

    def _infer(self, name: Hashable) -> Variable:
        return Variable(name, "real" if self._type(name) in ("number", "empty") else "discrete")

    def _type(self, name: Hashable) -> TextType:
        if name not in self._types:
            self._types |= _sniff(self._files, [column for column in self.columns if column not in self._types])
        return self._types[name]

    def reduce(
        self,
        task: Callable[[Batch], Answer],
        domain: Domain,
        *,
        threads: int | None = None,
        progress: Progress | None = None,
    ) -> Answer:
        """As for any source; begins again when a column turns out to be text."""
        while True:
            try:
                return super().reduce(task, domain, threads=threads, progress=progress)
            except TextFoundError as found:
                if self._types.get(found.column) == "text" or domain[found.column].states:
                    raise
                self._types[found.column] = "text"

    def _chunks(self, domain: Domain, names: Sequence[Hashable]) -> Iterator[Chunk]:
        discrete = {
            name: self._label_reader(domain[name])
            for name in names
            if name in domain and domain[name].kind == "discrete"
        }
        numbers = [name for name in names if name not in discrete]
        start = 0
        for path in self._files:
            begin = start
            try:
                for batch in _batches(path, texts=tuple(discrete), numbers=numbers):
                    columns = {name: ArrowColumn(name, batch.column(name), start) for name in numbers}
                    columns |= {
                        name: CsvColumn(name, batch.column(name), start, read) for name, read in discrete.items()
                    }
                    yield Chunk(columns, batch.num_rows, path)
                    start += batch.num_rows
            except DataError:
                _check_numbers(path, numbers, begin)
                raise
        self._rows = start

    def _label_reader(self, variable: Variable) -> Callable[[str], Any]:
        """How the text of a discrete column becomes a label."""
        if variable.origin == "declared":
            return lambda text: _declared(variable, text)
        type_: TextType = (
            "text"
            if variable.states and all(isinstance(s, str) for s in variable.states)
            else self._type(variable.name)
        )
        return lambda text: None if text in GAPS else _label(variable.name, type_, text)


class CsvColumn(ArrowColumn):
    """A dictionary of text that is yet to become labels."""

    def __init__(self, name: Hashable, array: Any, start: int, read: Callable[[str], Any]) -> None:
        """Keep the array and how to read its text."""
        super().__init__(name, array, start)
        self._read = read

    def code(self) -> Coded:
        """Every distinct text is read once."""
        coded = super().code()
        labels: list[Any] = []
        for at, text in enumerate(coded.labels):
            try:
                labels.append(self._read(str(text)))
            except DataError as error:
                row = self.start + int(np.argmax(coded.indices == at))
                message = f"Column {self.name!r} holds {text!r} (row {row}){error}"
                raise (
                    TextFoundError(self.name, message) if isinstance(error, TextFoundError) else DataError(message)
                ) from None
        return Coded(coded.indices, labels)


def _label(name: Hashable, type_: TextType, text: str) -> Any:
    """The label of a text in a column of some type; a text that does not fit is an error without its place."""
    if type_ == "text":
        return text
    if type_ == "truth":
        if text in _TRUTH:
            return _TRUTH[text]
        raise TextFoundError(
            name, ", but its first rows are true or false. Declare the states of the column in states=."
        )
    if _WHOLE.fullmatch(text):
        return int(text)
    if not _NUMBER.fullmatch(text):
        raise TextFoundError(name, ", but its first rows are numbers. Declare the states of the column in states=.")
    if type_ == "number":
        return float(text)
    raise DataError(
        ", but its first rows are whole numbers, so that it was read as discrete. "
        f"Declare it: states={{{name!r}: 'real'}}, or list its states."
    )


def _declared(variable: Variable, text: str) -> Any:
    """The declared state that a text stands for; else a gap, or the text, which is then unknown."""
    if variable.find(text) is not None:
        return text
    for convert in (int, float, _TRUTH.__getitem__, datetime.datetime.fromisoformat, datetime.date.fromisoformat):
        try:
            label = convert(text)
        except (ValueError, KeyError):
            continue
        if variable.find(label) is not None:
            return label
    return None if text in GAPS else text


# --------------------------------------------------------------------------------------------------------------------
# Reading blocks
# --------------------------------------------------------------------------------------------------------------------


def _open(path: str, types: Mapping[Hashable, Any] | None) -> Any:
    """A streaming reader of some columns (all by default)."""
    import pyarrow.csv as csv

    options = csv.ConvertOptions(
        column_types=types,
        include_columns=None if types is None else list(types),
        null_values=sorted(GAPS),
        strings_can_be_null=False,
    )
    return csv.open_csv(
        path,
        read_options=csv.ReadOptions(block_size=BLOCK_BYTES),
        parse_options=csv.ParseOptions(newlines_in_values=True),
        convert_options=options,
    )


def _header(path: str) -> tuple[str, ...]:
    with reading(path), _open(path, None) as reader:
        return tuple(reader.schema.names)


def _batches(path: str, *, texts: Iterable[Hashable], numbers: Iterable[Hashable]) -> Iterator[Any]:
    """Record batches: text as dictionaries, numbers as float64."""
    import pyarrow as pa

    types: dict[Hashable, Any] = {name: pa.dictionary(pa.int32(), pa.string()) for name in texts}
    types |= {name: pa.float64() for name in numbers}
    known = _header(path)
    missing = [name for name in types if name not in known]
    if missing:
        raise base.missing_columns(missing, known, repr(path))
    with reading(path), _open(path, types) as reader:
        yield from reader


def _sniff(files: Sequence[str], names: Sequence[Hashable]) -> dict[Hashable, TextType]:
    """The type of each column by its first block, or by the first block in which it holds anything."""
    found: dict[Hashable, TextType] = dict.fromkeys(names, "empty")
    for path in files:
        left = [name for name, type_ in found.items() if type_ == "empty"]
        for batch in _batches(path, texts=left, numbers=()) if left else ():
            found |= {name: _type_of(batch.column(name).dictionary.to_pylist()) for name in left}
            left = [name for name in left if found[name] == "empty"]
            if not left:
                break
    return found


def _type_of(texts: Iterable[str]) -> TextType:
    """What all of some texts are."""
    held = [text for text in texts if text not in GAPS]
    if not held:
        return "empty"
    if all(text in _TRUTH for text in held):
        return "truth"
    if all(_WHOLE.fullmatch(text) for text in held):
        return "whole"
    return "number" if all(_NUMBER.fullmatch(text) for text in held) else "text"


def _check_numbers(path: str, numbers: Sequence[Hashable], start: int) -> None:
    """Name the value that could not be read as a number; does nothing where reading failed for another reason."""
    row = start
    for batch in _batches(path, texts=numbers, numbers=()):
        for name in numbers:
            column = ArrowColumn(name, batch.column(name), row)
            coded = column.code()
            wrong = [not (str(text) in GAPS or _NUMBER.fullmatch(str(text))) for text in coded.labels]
            for at in np.flatnonzero(wrong):
                raise column.not_a_number(coded.labels[int(at)], int(np.argmax(coded.indices == at)))
        row += batch.num_rows
