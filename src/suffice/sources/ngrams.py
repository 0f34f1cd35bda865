"""Counts of runs of states: what a Markov chain asks of sequences, texts and iterators, in one pass.

The answer is an ordinary `Summary` with one question: the weight of every window of ``order + 1`` states. A window
ends at a step of a sequence; where it reaches back before the first step it holds the start mark. Every shorter run can
be summed from the windows. Only windows that occur are kept.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.answers import CountTable
from suffice.array_types import Codes, Floats, Ints
from suffice.domain import Domain, Origin, Variable, is_missing, sort_states, state_key
from suffice.errors import DataError, MissingValueError, OptionError
from suffice.kernels.ngrams import CodedPart, count_parts, count_windows, windows, with_ends
from suffice.kernels.words import WordNumbers
from suffice.records import copy_with
from suffice.sources.base import Batch, Progress, Source
from suffice.sources.releasing import Disclosed
from suffice.sources.sequences import Sequences, code_states
from suffice.sources.sorted_runs import RunsOnDisk
from suffice.statistics import Counts, Summary
from suffice.storage.unpacking import unpacked, unpacked_text

#: Codes of a stream that are held before they are counted.
HELD = 1 << 25
#: Bytes of a file, and sequences of an iterator, that are read at a time.
CHUNK_BYTES, CHUNK_SEQUENCES = 1 << 24, 1 << 14
#: Numbers of the marks among the numbers of the words of a stream.
_START, _END, _WORDS = 0, 1, 2


@dataclass(frozen=True)
class WindowLayout:
    """What is counted: windows of ``order + 1`` states, with marks before the first and after the last step.

    `states` are the declared ones or those of a category, as `origin` says, or None for those seen; `end` is None where
    the end of a sequence is no event.
    """

    order: int
    start: Hashable = "<s>"
    end: Hashable | None = None
    states: tuple[Hashable, ...] | None = None
    prefix: str = ""
    origin: Origin = "declared"

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the places of a window, oldest first: "from" and "to", or "from_2", "from_1", "to"."""
        lags = ["from"] if self.order == 1 else [f"from_{lag}" for lag in range(self.order, 0, -1)]
        return tuple(self.prefix + name for name in (*lags, "to"))

    @property
    def question(self) -> Counts:
        """The one question."""
        return Counts(self.names)

    def domain(self, states: Iterable[Hashable]) -> Domain:
        """The variables of a window over these states, the marks among them."""
        known_states = tuple(states) if self.states is None else self.states
        marks = [self.start] + ([] if self.end is None else [self.end])
        known = set(known_states)
        for mark in marks:
            if mark in known and state_key(mark) in set(map(state_key, known_states)):
                raise _marked(mark)
        ends = () if self.end is None else (self.end,)
        if self.states is not None:
            before = [Variable.discrete(name, (self.start, *known_states), self.origin) for name in self.names[:-1]]
            return Domain([*before, Variable.discrete(self.names[-1], (*known_states, *ends), self.origin)])
        past = Variable.discrete(self.names[0], sort_states((self.start, *known_states)), origin="seen")
        future = Variable.discrete(self.names[-1], sort_states((*known_states, *ends)), origin="seen")
        return self._over(past, future)

    def text_domain(self, words: list[str]) -> tuple[Domain, tuple[Codes, Codes]]:
        """As `domain` for texts that differ and marks that are texts, with the codes of their numbers.

        Numbers are 0 for the start, 1 for the end and then those of the words; a code is -1 where it cannot be.
        """
        ordered = sorted(words)
        ranks = dict(zip(ordered, range(len(ordered)), strict=True))
        rank = np.fromiter(map(ranks.__getitem__, words), np.int32, len(words))
        begin = self._room(ordered, self.start)
        past = Variable.of_texts(self.names[0], (*ordered[:begin], str(self.start), *ordered[begin:]), origin="seen")
        before = np.concatenate([[begin, -1], rank + (rank >= begin)]).astype(np.int32)
        if self.end is None:
            future = Variable.of_texts(self.names[-1], tuple(ordered), origin="seen")
            return self._over(past, future), (before, np.concatenate([[-1, -1], rank]).astype(np.int32))
        last = self._room(ordered, self.end)
        future = Variable.of_texts(self.names[-1], (*ordered[:last], str(self.end), *ordered[last:]), origin="seen")
        after = np.concatenate([[-1, last], rank + (rank >= last)]).astype(np.int32)
        return self._over(past, future), (before, after)

    @staticmethod
    def _room(ordered: list[str], mark: Any) -> int:
        """Where a mark goes among sorted words."""
        index = bisect_left(ordered, mark)
        if index < len(ordered) and ordered[index] == mark:
            raise _marked(mark)
        return index

    def _over(self, past: Variable, future: Variable) -> Domain:
        """The variables of a window, of which those before the last share their states."""
        if self.order == 0:
            return Domain([future])
        return Domain([past, *(_renamed(past, name) for name in self.names[1:-1]), future])


def _marked(mark: Hashable) -> DataError:
    return DataError(
        f"The data hold the state {mark!r}, which marks the bounds of sequences. Choose other marks by "
        "bounds=(start, end), or leave the marks out of the data."
    )


def are_texts(states: Iterable[Hashable]) -> bool:
    """Whether every state is a text: a vocabulary needs no look at the types of its words."""
    return set(map(type, states)) == {str}


def _renamed(variable: Variable, name: Hashable) -> Variable:
    """The same states under another name, with the look-up table that is there already."""
    return copy_with(variable, name=name)


def count_sequences(sequences: Sequences[NDArray[Any]], layout: WindowLayout) -> Summary:
    """The summary of sequences in memory; a sequence of weight 2 counts as two."""
    single = sequences.single()
    typed = None if single.variables is None else single.variables[0]
    if layout.states is None and typed is not None:
        codes, states = code_states(single.values, typed)
        layout = replace(layout, states=states, origin=typed.origin)
    else:
        codes, states = code_states(single.values, layout.states)
    if (codes < 0).any():
        number, step = single.where(int(np.argmax(codes < 0)))
        raise MissingValueError(
            f"Sequence {number} has a missing value at step {step}; a chain needs every state. Cut the sequence in two "
            "there."
        )
    counter = _Counter(layout)
    counter.add(codes + np.int32(_WORDS), single.offsets, single.sample_weight)
    return counter.summary(states)


@dataclass(frozen=True)
class WindowCounts:
    """The windows of a column, counted where its sequences are: a `Work` whose shards are summaries, which add up."""

    layout: WindowLayout
    column: Hashable
    weight: Hashable | None = None

    def prepare(self, batch: Batch) -> Summary:
        """The summary of the whole sequences of a shard."""
        variable, offsets, codes = batch.domain[self.column], batch.offsets, batch.codes[0]
        assert offsets is not None
        if not batch.complete and (missing := codes == variable.card).any():
            raise MissingValueError(
                f"Column {self.column!r} has a missing value (row {batch.number(int(np.argmax(missing)))}); a chain "
                "needs every state. Cut the sequence in two there."
            )
        counter = _Counter(self.layout)
        counter.add(codes.astype(np.int32) + np.int32(_WORDS), offsets, self._weights(batch, offsets))
        return counter.summary(variable.states)

    def _weights(self, batch: Batch, offsets: Ints) -> Floats | None:
        """The weight of each sequence, which every step of it holds."""
        if batch.weights is None:
            return None
        first = batch.weights[offsets[:-1]]
        changes = np.repeat(first, np.diff(offsets)) != batch.weights
        if changes.any():
            raise DataError(
                f"The column of weights {self.weight!r} changes within a sequence (row "
                f"{batch.number(int(np.argmax(changes)))}); a sequence has one weight."
            )
        return first

    def disclosed(self) -> Disclosed:
        """Nothing beside the tables of the summary."""
        return Disclosed()

    def evaluate(self, prepared: Summary, parameters: object) -> Summary:
        """The summary itself."""
        return prepared


def count_table(
    source: Source,
    column: Hashable,
    layout: WindowLayout,
    *,
    group: Hashable,
    order: Hashable | None = None,
    weight: Hashable | None = None,
    memory_limit: int | str | None = None,
    progress: Progress | None = None,
) -> Summary:
    """The summary of a table that is not in memory: only counts leave the place where its rows are."""
    declared = Variable(column, "discrete") if layout.states is None else Variable.discrete(column, layout.states)
    domain = source.infer([column], {column: declared})
    settled = source.settle(domain)
    variable = settled.domain[column]
    if layout.states is None and variable.origin == "category":
        layout = replace(layout, states=variable.states, origin="category")
    work = WindowCounts(layout, column, weight)
    with source.hold(work, settled, group=group, order=order, memory_limit=memory_limit, progress=progress) as held:
        summary: Summary = held.sum(None)
    return summary


def count_stream(
    stream: Iterator[Any],
    layout: WindowLayout,
    split: Callable[[Any], Iterable[Hashable]] | None = None,
    memory_limit: int | None = None,
) -> Summary:
    """The summary of an iterator of sequences, read once; `split` makes the states of each item.

    memory_limit: bytes that steps may take while they are counted; others wait in a scratch folder.
    """
    numbers: dict[Hashable, int] = {}
    labels: list[Hashable] = []
    counter = _Counter(layout, memory_limit)
    read = 0
    while chunk := list(islice(stream, CHUNK_SEQUENCES)):
        parts = [_listed(item, split, read + number) for number, item in enumerate(chunk)]
        read += len(chunk)
        flat = [_number(state, numbers, labels) for part in parts for state in part]
        offsets = np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64)
        counter.add(np.array(flat, dtype=np.int32), offsets)
    if read == 0:
        raise DataError("There are no sequences: the iterator gave none. Give at least one.")
    return counter.summary(labels)


def _listed(item: Any, split: Callable[[Any], Iterable[Hashable]] | None, number: int) -> list[Any]:
    if split is None and (item is None or not hasattr(item, "__iter__")):
        raise DataError(f"Sequence {number} of the iterator is {item!r}; expected a list of states.")
    states = list(item if split is None else split(item))
    if not states:
        raise DataError(f"Sequence {number} of the iterator is empty; each sequence needs at least one step.")
    if any(map(is_missing, states)):
        raise MissingValueError(
            f"Sequence {number} of the iterator holds a missing value; a Markov chain needs every state."
        )
    return states


def _number(state: Hashable, numbers: dict[Hashable, int], labels: list[Hashable]) -> int:
    """The number of a state; texts are looked up as they are, anything else by type and value."""
    key: Hashable = state if type(state) is str else state_key(state)
    code = numbers.get(key)
    if code is None:
        code = numbers[key] = len(labels) + _WORDS
        labels.append(state)
    return code


def count_text(path: str | os.PathLike[str], layout: WindowLayout, memory_limit: int | None = None) -> Summary:
    """The summary of a text file, one sequence a line, its words separated by blanks; read once, in pieces.

    Lines without words are left out. A name that ends in ``.gz`` is unpacked on the way. `memory_limit` is as for
    `count_stream`.
    """
    numbers = WordNumbers(_WORDS, None if layout.end is None else _END)
    counter = _Counter(layout, memory_limit)
    for piece in _pieces(path, CHUNK_BYTES if memory_limit is None else min(CHUNK_BYTES, max(memory_limit // 16, 1))):
        counter.hold(CodedPart(*numbers.read(piece)))
    if len(numbers) == 0:
        raise DataError(f"{os.fspath(path)!r} holds no words.")
    try:
        return counter.summary(numbers.texts)
    except UnicodeDecodeError as error:
        raise DataError(f"{os.fspath(path)!r} is no UTF-8 text: {error}. Convert it first.") from None


def read_lines(path: str | os.PathLike[str]) -> Iterator[str]:
    """The lines of a text file that are not empty, without their ends."""
    with unpacked_text(path, newline="\n") as stream:
        for line in stream:
            if text := line.rstrip("\r\n"):
                yield text


def _pieces(path: str | os.PathLike[str], size: int) -> Iterator[bytes]:
    """Pieces of whole lines, of about that many bytes."""
    rest = b""
    with unpacked(path) as stream:
        while piece := stream.read(size):
            cut = piece.rfind(b"\n") + 1
            if cut == 0:
                rest += piece
                continue
            yield rest + piece[:cut] if rest else piece[:cut]
            rest = piece[cut:]
    if rest:
        yield rest


class _Counter:
    """Adds up the windows of sequences whose states are numbered; numbers 0 and 1 are the marks."""

    def __init__(self, layout: WindowLayout, memory_limit: int | None = None) -> None:
        self._layout = layout
        self._runs = None if memory_limit is None else RunsOnDisk(layout.order, memory_limit)
        self._held: list[CodedPart] = []
        self._size = 0
        self._counted: list[tuple[Codes, Floats]] = []
        self._rows = 0
        self._weight = 0.0

    def add(self, codes: Codes, offsets: Ints, weights: Floats | None = None) -> None:
        """Some more whole sequences, without the mark of their ends."""
        if self._layout.end is not None:
            codes, offsets = with_ends(codes, offsets, _END)
        self.hold(CodedPart(codes, offsets, None if weights is None else np.repeat(weights, np.diff(offsets))))

    def hold(self, part: CodedPart) -> None:
        """Some more whole sequences, with the mark of their ends where that is an event."""
        self._rows += len(part.codes)
        self._weight += float(len(part.codes)) if part.weights is None else float(part.weights.sum())
        self._held.append(part)
        self._size += len(part.codes)
        if self._runs is not None:
            if self._size >= self._runs.steps:
                self._runs.keep(self._held)
                self._held, self._size = [], 0
            return
        # Not before as much is held as has been counted, so that no window is merged more than a few times.
        if self._size >= max(HELD, sum(len(values) for _, values in self._counted)):
            highest = max(int(held.codes.max(initial=_WORDS)) for held in self._held)
            same = np.arange(highest + 1, dtype=np.int32)
            self._flush((same, same))

    def _flush(self, tables: tuple[Codes, Codes]) -> None:
        """Count what is held, in the numbers that the tables give."""
        if self._held:
            self._counted.append(count_parts(self._held, self._layout.order, *tables))
            self._held, self._size = [], 0
        if len(self._counted) > 1:
            self._counted = [_summed(self._counted)]

    def summary(self, states: Iterable[Hashable]) -> Summary:
        """The windows by the states of the numbers from 2 on."""
        labels = list(states)
        domain, tables = self._coded(labels)
        if self._runs:
            if self._held:
                self._runs.keep(self._held)
            cells, values = self._runs.count(*tables)
        else:
            self._counted = [count_windows(_renumbered(cells, tables), values) for cells, values in self._counted]
            self._flush(tables)
            cells, values = self._counted[0]
        table = CountTable.sparse(domain.shape(self._layout.names), cells, values)
        return Summary(domain, {self._layout.question: table}, self._rows, self._weight)

    def _coded(self, labels: list[Any]) -> tuple[Domain, tuple[Codes, Codes]]:
        """The domain, and the code of each number in the past of a window and at its end; -1 where it cannot be."""
        layout = self._layout
        marks = [layout.start] if layout.end is None else [layout.start, layout.end]
        if layout.states is None and are_texts(chain(labels, marks)):
            return layout.text_domain(labels)
        domain = layout.domain(labels)
        past, future = domain[layout.names[0]], domain[layout.names[-1]]
        end = -1 if layout.end is None else future.index(layout.end)
        after = [-1, end, *(future.index(label) for label in labels)]
        if layout.order == 0:
            return domain, (np.array(after, dtype=np.int32),) * 2
        before = [past.index(layout.start), -1, *(past.index(label) for label in labels)]
        return domain, (np.array(before, dtype=np.int32), np.array(after, dtype=np.int32))


def _renumbered(cells: Codes, tables: tuple[Codes, Codes]) -> list[Codes]:
    return [tables[int(column == cells.shape[1] - 1)][cells[:, column]] for column in range(cells.shape[1])]


def _summed(parts: list[tuple[Codes, Floats]]) -> tuple[Codes, Floats]:
    cells = np.concatenate([part for part, _ in parts])
    values = np.concatenate([weights for _, weights in parts])
    return count_windows([cells[:, column] for column in range(cells.shape[1])], values)


def check_marks(bounds: Any) -> tuple[Hashable, Hashable | None]:
    """The start mark, and the end mark where the ends of sequences are events."""
    if bounds is None or bounds is False:
        return "<s>", None
    if bounds is True:
        return "<s>", "</s>"
    marks = tuple(bounds) if isinstance(bounds, list | tuple) else ()
    if (
        len(marks) != 2
        or not all(isinstance(mark, Hashable) for mark in marks)
        or state_key(marks[0]) == state_key(marks[1])
    ):
        raise OptionError(f"bounds is {bounds!r}; expected True, False or two different marks, (start, end).")
    return marks[0], marks[1]


def sequence_windows(codes: Ints, offsets: Ints, order: int, start: int, end: int | None) -> tuple[Ints, Ints]:
    """Every window (events, order + 1) of coded sequences, and the offsets of the events of each sequence.

    The end of a sequence is an event where it has a code.
    """
    whole = codes.astype(np.int32)
    if end is not None:
        whole, offsets = with_ends(whole, offsets, end)
    columns = windows(whole, offsets, order, start)
    return np.stack(columns, axis=1).astype(np.int64), offsets
