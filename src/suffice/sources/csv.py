"""CSV and TSV files, plain or gzipped, read in blocks; text becomes labels by rules that look at the whole column.

The states of a column are those that ``pandas.read_csv`` would give: whole numbers, ``True``/``False``, else text; a
column of numbers that are not all whole is real, and its states, where it is declared discrete, are floats; an empty
field and the usual words (``NA``, ``NaN``, ``None``) are missing values. Whole numbers with missing values stay whole
numbers. Declared states decide for themselves: their text is looked up first, so ``"1"`` or ``"None"`` may be declared
as text, and 1 as a number.

Neither kinds nor states depend on the order of blocks or files. The kind of a column that is not declared is inferred
from all of its fields, or from the first block if that holds text. A column that is declared discrete without states is
read as its first block suggests; if a field further down does not fit, the types of all such columns are taken from all
of their fields and the pass begins again.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.domain import Domain, Variable
from suffice.errors import DataError
from suffice.sources import base
from suffice.sources.arrow import ArrowColumn
from suffice.sources.base import Answer, Batch, Pace
from suffice.sources.columns import Coded
from suffice.sources.files import opened, reading
from suffice.sources.reduction import Origin
from suffice.sources.stream import Chunk, StreamSource
from suffice.sources.texts import (
    MISFIT,
    MISSING_TEXTS,
    TextType,
    common_type,
    declared_label,
    is_number,
    label_of,
    type_of,
)

if TYPE_CHECKING:
    import pyarrow as pa

#: Bytes read at a time.
BLOCK_BYTES = 1 << 22
#: Bytes within which a line of names ends, as far as its separator is looked for.
_LONGEST_NAMES = 1 << 20


class MisfitError(DataError):
    """A column holds a text that is not of the type that the column was read as."""


class CsvSource(StreamSource):
    """One or more files of text with the same columns, in any order, each with a line of names.

    The fields stand between commas, or between semicolons, tabs or bars where the line of names has these instead.
    """

    missing_texts = MISSING_TEXTS

    def __init__(self, files: Sequence[str]) -> None:
        """Read the names of the columns from the first file."""
        self._files = list(files)
        self._types: dict[Hashable, TextType] = {}
        self._resolved_names: set[Hashable] = set()
        self._rows: int | None = None
        super().__init__(_header(self._files[0]))

    @property
    def rows(self) -> int | None:
        """Number of rows, once they have been read."""
        return self._rows

    def infer(
        self,
        names: Iterable[Hashable] | None = None,
        declared: Mapping[Any, Variable] = MappingProxyType({}),
    ) -> Domain:
        """As for any source; columns that are not declared are read to the end, unless they begin with text."""
        wanted = self.columns if names is None else tuple(names)
        self.check_columns((*wanted, *declared))
        self._resolve_types(name for name in wanted if name not in declared)
        return super().infer(wanted, declared)

    def _resolved(self, name: Hashable, declared: Variable | None) -> Variable:
        """As declared: a CSV file brings no categories."""
        return self._infer(name) if declared is None else declared

    def holds_numbers(self, name: Hashable) -> bool:
        """By the fields that have been looked at."""
        return self._type(name) in ("whole", "truth", "number", "empty")

    def _infer(self, name: Hashable) -> Variable:
        return Variable(name, "real" if self._type(name) in ("number", "empty") else "discrete")

    def _type(self, name: Hashable) -> TextType:
        """The type of a column as far as it is known: by its first block unless it has been resolved."""
        if name not in self._types:
            unknown = [column for column in self.columns if column not in self._types]
            self._types |= _read_types(self._files, unknown, frozenset({"whole", "truth", "number", "text"}))[0]
        return self._types[name]

    def _resolve_types(self, names: Iterable[Hashable]) -> None:
        """Take the types of some columns from all of their fields; what has begun as text stays text."""
        left = [name for name in names if name not in self._resolved_names and self._types.get(name) != "text"]
        if left:
            types, blocks = _read_types(self._files, left, frozenset({"text"}))
            self._types |= types
            self._resolved_names.update(left)
            self.passes += blocks > 1

    def batches(self, domain: Domain) -> Iterator[Batch]:
        """As for any source; types are resolved first, since batches that are handed out cannot be taken back."""
        self.check_columns(domain)
        self._resolve_types(_typed_by_text(domain))
        return super().batches(domain)

    def _reduced(self, task: Callable[[Batch], Answer], domain: Domain, pace: Pace) -> Answer:
        """As for any source; begins again, once, if a column is not what its first block suggests."""
        try:
            return super()._reduced(task, domain, pace)
        except MisfitError:
            self._resolve_types(_typed_by_text(domain))
        self.passes += 1
        return super()._reduced(task, domain, pace)

    def _chunks(self, domain: Domain, names: Sequence[Hashable]) -> Iterator[Chunk]:
        coded = [name for name in names if name != self._weight_name]
        beside = [name for name in coded if name not in domain]
        self._resolve_types(beside)
        variables = {name: domain[name] if name in domain else self._infer(name) for name in coded}
        discrete = {name: self._label_reader(v) for name, v in variables.items() if v.kind == "discrete"}
        numbers = [name for name in names if name not in discrete]
        truths = frozenset(name for name in numbers if name != self._weight_name and self._type(name) == "truth")
        start = 0
        for path in self._files:
            begin = start
            try:
                for batch in _batches(path, texts=tuple(discrete), numbers=numbers, truths=truths):
                    columns = {name: ArrowColumn(name, batch.column(name), start) for name in numbers}
                    columns |= {
                        name: CsvColumn(name, batch.column(name), start, read) for name, read in discrete.items()
                    }
                    yield Chunk(columns, batch.num_rows, Origin(begin, path))
                    start += batch.num_rows
            except DataError:
                _check_numbers(path, numbers, begin)
                raise
        self._rows = start

    def _label_reader(self, variable: Variable) -> Callable[[str], Any]:
        """How the text of a discrete column becomes a label."""
        if variable.origin == "declared":
            return lambda text: declared_label(variable, text)
        learned = variable.states and all(isinstance(state, str) for state in variable.states)
        type_: TextType = "text" if learned else self._type(variable.name)
        return lambda text: label_of(type_, text)


def _typed_by_text(domain: Domain) -> Iterator[Hashable]:
    """Names of the variables whose labels depend on the type of the column."""
    return (v.name for v in domain.variables if v.kind == "discrete" and v.origin != "declared")


class CsvColumn(ArrowColumn):
    """A dictionary of text that is yet to become labels."""

    def __init__(self, name: Hashable, array: pa.DictionaryArray, start: int, read: Callable[[str], Any]) -> None:
        """Keep the array and how to read its text."""
        super().__init__(name, array, start)
        self._read = read

    def code(self) -> Coded:
        """Every distinct text is read once."""
        coded = super().code()
        labels: list[Any] = []
        for index, text in enumerate(map(str, coded.labels)):
            try:
                label = self._read(text)
            except ValueError:
                raise DataError(
                    f"Column {self.name!r} holds a whole number of {len(text.strip())} digits (row "
                    f"{self._row(coded, index)}); expected at most {sys.get_int_max_str_digits()} digits. Correct the "
                    "value, or declare the states of the column as text in states=."
                ) from None
            if label is MISFIT:
                raise MisfitError(
                    f"Column {self.name!r} holds {text!r} (row {self._row(coded, index)}), which the column did not "
                    "hold when its type was found. Read the files once they are no longer written to."
                )
            labels.append(label)
        return Coded(coded.indices, labels)

    def arrow(self) -> Any:
        """Whole numbers and truths by rows; text as it stands, also where it is empty."""
        import pyarrow as pa

        coded = self.code()
        if all(isinstance(label, str) or label is None for label in coded.labels):
            return super().arrow()
        held = pa.array(coded.indices, pa.int32(), mask=coded.indices >= len(coded.labels))
        return pa.array(coded.labels).take(held)

    def _row(self, coded: Coded, index: int) -> int:
        """The first row that holds a label."""
        return self.start + int(np.argmax(coded.indices == index))


# --------------------------------------------------------------------------------------------------------------------
# Reading blocks
# --------------------------------------------------------------------------------------------------------------------


def _open(path: str, types: Mapping[Hashable, Any] | None) -> Any:
    """A streaming reader of some columns (all by default)."""
    import pyarrow.csv as csv

    options = csv.ConvertOptions(
        column_types=types,
        include_columns=None if types is None else list(types),
        null_values=sorted(MISSING_TEXTS),
        strings_can_be_null=False,
    )
    separator = _separator(path)  # Before the file is opened for the rows: some file systems have one place in it.
    return csv.open_csv(
        opened(path),
        read_options=csv.ReadOptions(block_size=BLOCK_BYTES),
        parse_options=csv.ParseOptions(newlines_in_values=True, delimiter=separator),
        convert_options=options,
    )


def _separator(path: str) -> str:
    """What stands between the fields: a tab by the ending .tsv; else what the line of names has, a comma before others.

    A name that holds a comma is written in quotes, so that a line with neither comma nor quotes tells.
    """
    import pyarrow as pa

    if path.lower().endswith((".tsv", ".tsv.gz")):
        return "\t"
    with pa.input_stream(opened(path)) as stream:
        first = stream.read(_LONGEST_NAMES).partition(b"\n")[0]
    names = re.sub(rb'"[^"]*"', b"", first)
    return next((mark for mark in (",", ";", "\t", "|") if mark.encode() in names), ",")


def _refuse_decimal_commas(path: str, name: Hashable, texts: Iterable[object]) -> None:
    """Numbers such as 1,5, which files have whose fields stand between semicolons, would be taken for states."""
    shown = [str(text) for text in texts if str(text) not in MISSING_TEXTS]
    if shown and all(re.fullmatch(r"\s*[+-]?\d*,?\d+\s*", text) for text in shown):
        raise DataError(
            f"Column {name!r} of {path!r} holds {shown[0]!r}; expected numbers with a decimal point. Read the file by "
            "pandas.read_csv(path, sep=';', decimal=',') and give the frame."
        )


def _header(path: str) -> tuple[str, ...]:
    with reading(path), _open(path, None) as reader:
        return tuple(reader.schema.names)


def _batches(
    path: str, *, texts: Iterable[Hashable], numbers: Iterable[Hashable], truths: Container[Hashable] = ()
) -> Iterator[Any]:
    """Record batches: text as dictionaries, numbers as float64 or, where they are written True and False, as truths."""
    import pyarrow as pa

    types: dict[Hashable, Any] = {name: pa.dictionary(pa.int32(), pa.string()) for name in texts}
    types |= {name: pa.bool_() if name in truths else pa.float64() for name in numbers}
    known = _header(path)
    missing = [name for name in types if name not in known]
    if missing:
        raise base.missing_columns(missing, known, repr(path))
    with reading(path), _open(path, types) as reader:
        yield from reader


def _read_types(
    files: Sequence[str], names: Sequence[Hashable], final: frozenset[TextType]
) -> tuple[dict[Hashable, TextType], int]:
    """The type of each column, and the blocks read: until all types are final, or to the end."""
    types: dict[Hashable, TextType] = dict.fromkeys(names, "empty")
    blocks = 0
    for path in files:
        left = [name for name in names if types[name] not in final]
        for batch in _batches(path, texts=left, numbers=()) if left else ():
            blocks += 1
            for name in left:
                texts = batch.column(name).dictionary
                types[name] = common_type(types[name], type_of(texts))
                if types[name] == "text" and _separator(path) == ";":
                    _refuse_decimal_commas(path, name, texts)
            left = [name for name in left if types[name] not in final]
            if not left:
                break
    return types, blocks


def _check_numbers(path: str, numbers: Sequence[Hashable], start: int) -> None:
    """Name the value that could not be read as a number; does nothing where reading failed for another reason."""
    row = start
    for batch in _batches(path, texts=numbers, numbers=()):
        for name in numbers:
            column = ArrowColumn(name, batch.column(name), row)
            coded = column.code()
            wrong = [not (str(text) in MISSING_TEXTS or is_number(str(text))) for text in coded.labels]
            for index in np.flatnonzero(wrong):
                raise column.not_a_number(coded.labels[int(index)], int(np.argmax(coded.indices == index)))
        row += batch.num_rows
