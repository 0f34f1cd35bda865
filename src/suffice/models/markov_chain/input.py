"""From data to windows of numbered words: what is read, which words are known, which are rare."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress, repeat
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Codes, Floats, Ints
from suffice.checks import byte_count, weights_of
from suffice.domain import Variable, sort_states, state_key
from suffice.errors import DataError, EstimateError, OptionError, UnknownStateError, listing, meant, shortened
from suffice.fitting.contract import Inputs
from suffice.fitting.summaries import SummaryData, rows_bar
from suffice.sources import open_source
from suffice.sources.ngrams import (
    WindowLayout,
    are_texts,
    count_sequences,
    count_stream,
    count_table,
    count_text,
    read_lines,
)
from suffice.sources.sequences import SequenceForm, Sequences, is_table, several_observations
from suffice.statistics import Summary

_HELD = "held out: "


Split = Callable[[Any], Iterable[Hashable]]


def splitter(tokens: Any) -> Split | None:
    """How a text becomes states; None leaves sequences as they are."""
    if tokens is None:
        return None
    if callable(tokens):
        chosen: Split = tokens
        return chosen
    kinds: dict[str, Split] = {"words": str.split, "characters": list}
    if not isinstance(tokens, str) or tokens not in kinds:
        raise OptionError(f"tokens is {tokens!r}; expected 'words', 'characters', a function of a text, or None.")
    return kinds[tokens]


def read_data(
    data: object,
    form: SequenceForm,
    layout: WindowLayout,
    tokens: object,
    *,
    sample_weight: object = None,
    held_out: object = None,
    memory_limit: int | str | None = None,
    progress: bool = False,
) -> SummaryData:
    """The summary of the data, and of what is held out beside it."""
    read = _read_table(data, form, layout, sample_weight, memory_limit, progress=progress)
    if read is None:
        read = SummaryData(_read(data, form, layout, tokens, sample_weight, memory_limit), 1)
    if held_out is None:
        return read
    summary, aside = read.statistics, replace(layout, prefix=_HELD)
    beside = _read(held_out, SequenceForm(), aside, tokens, None, memory_limit if _once(held_out) else None)
    both = {**summary.answers, **beside.answers}
    return replace(read, statistics=Summary(summary.domain.merge(beside.domain), both, summary.rows, summary.weight))


def _read_table(
    data: Any,
    form: SequenceForm,
    layout: WindowLayout,
    sample_weight: Any,
    memory_limit: int | str | None,
    *,
    progress: bool,
) -> SummaryData | None:
    """Counts of a table whose sequences stay where they are; None for other data."""
    weight = sample_weight if isinstance(sample_weight, str) else None
    source = None if weight is None and sample_weight is not None else form.elsewhere(data, weight)
    if source is None:
        return None
    columns = form.observations(source)
    if len(columns) != 1:
        raise several_observations(columns)
    beside: dict[str, Any] = {"group": form.group, "order": form.order, "weight": weight, "memory_limit": memory_limit}
    with rows_bar(progress) as advance:
        summary = count_table(source, columns[0], layout, progress=advance, **beside)
    return SummaryData(summary, source.passes)


def _once(data: Any) -> bool:
    """Whether data are read once: a file, or an iterator."""
    return _is_file(data) or isinstance(data, Iterator)


def _read(
    data: Any,
    form: SequenceForm,
    layout: WindowLayout,
    tokens: object,
    sample_weight: Any,
    memory_limit: int | str | None,
) -> Summary:
    grouped = (form.group is not None or form.order is not None) and is_table(data)
    limit = None if memory_limit is None else byte_count(memory_limit, "memory_limit")
    if not grouped and _once(data):
        if any(option is not None for option in (sample_weight, *vars(form).values())):
            raise OptionError(
                "A file or an iterator is read once, sequence by sequence: it takes no weights, lengths, groups, order "
                "or columns."
            )
        return _read_once(data, layout, tokens, limit)
    if limit is not None and not is_table(data):
        raise OptionError(
            "memory_limit is for files, iterators and tables; sequences in lists are in memory already. Leave it out."
        )
    if isinstance(sample_weight, str):
        column = form.reading([sample_weight]).open(data)
        if form.columns is None:
            apart = (form.group, form.order, sample_weight)
            form = form.reading([name for name in open_source(data).columns if name not in apart])
        sample_weight = _in_sequences(column, sample_weight)
    sequences = opened(data, form, tokens)
    weights = None if sample_weight is None else weights_of(sample_weight, sequences.n_sequences)
    return count_sequences(replace(sequences, sample_weight=weights), layout)


def _is_file(data: Any) -> bool:
    if isinstance(data, os.PathLike):
        return True
    if not isinstance(data, str):
        return False
    if "\n" not in data and len(data) < 4096 and os.path.isfile(data):
        return True
    raise DataError(
        f"The data are the text {data[:40]!r}, and there is no file of that name. Give [text] for the sequence of its "
        "characters, [text.split()] for that of its words, or the path of a text file."
    )


def _read_once(data: Any, layout: WindowLayout, tokens: Any, memory_limit: int | None) -> Summary:
    split = splitter(tokens)
    if isinstance(data, Iterator):
        return count_stream(data, layout, split, memory_limit)
    if not Path(data).is_file():
        raise DataError(f"There is no file {os.fspath(data)!r}.")
    if split is None or split is str.split:
        if layout.states is None:
            return count_text(data, layout, memory_limit)
        split = str.split
    parts = (words for line in read_lines(data) if (words := list(split(line))))
    return count_stream(parts, layout, None, memory_limit)


def opened(data: Any, form: SequenceForm, tokens: object = None) -> Sequences[NDArray[Any]]:
    """The sequences in memory, texts split where that was asked."""
    if form.columns is not None and not is_table(data):
        raise OptionError(
            f"columns={shortened(form.columns)} names the column of a table that holds the states; the data are a "
            f"{type(data).__name__}. Leave it out, or give a table."
        )
    split = splitter(tokens)
    if split is not None and isinstance(data, list | tuple) and all(isinstance(item, str) for item in data):
        data = [list(split(item)) for item in data]
    return form.open(data)


def _in_sequences(column: Sequences[NDArray[Any]], name: str) -> Floats:
    """The weight of each sequence, from a column of a table that holds it at every step."""
    try:
        values = column.values.astype(np.float64)
    except (TypeError, ValueError):
        raise DataError(f"The column of weights {name!r} holds other values than numbers; expected numbers.") from None
    first = values[column.offsets[:-1]]
    changes = np.repeat(first, column.lengths) != values
    if changes.any():
        number, _ = column.where(int(np.argmax(changes)))
        raise DataError(f"The column of weights {name!r} changes within sequence {number}; a sequence has one weight.")
    return first


# --------------------------------------------------------------------------------------------------------------------
# Words
# --------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """The words that the chain predicts, in order; `unknown` stands for every other one, `end` ends a sequence."""

    states: tuple[Hashable, ...]
    start: Hashable
    end: Hashable | None
    unknown: Hashable | None

    def __post_init__(self) -> None:
        """Make the look-up; texts, of which there may be many, are looked up as they are."""
        table: dict[Any, int] | None = None
        if are_texts(self.states):
            table = dict(zip(self.states, range(self.card), strict=True))
        plain = table is not None and len(table) == self.card
        made = Variable.of_texts("to", self.states) if plain else Variable.discrete("to", self.states)  # type: ignore[arg-type]
        object.__setattr__(self, "variable", made)
        object.__setattr__(self, "_texts", table)

    variable: Variable = None  # type: ignore[assignment]
    _texts: dict[Any, int] | None = None

    @property
    def card(self) -> int:
        """Number of words; also the number of the start mark."""
        return len(self.states)

    @cached_property
    def words(self) -> tuple[Hashable, ...]:
        """The words that can be part of a history: all but the end."""
        end = None if self.end is None else self._find(self.end)
        return self.states if end is None else (*self.states[:end], *self.states[end + 1 :])

    def _find(self, state: Hashable) -> int | None:
        return self.variable.find(state) if self._texts is None else self._texts.get(state)

    def places(self, states: Iterable[Hashable]) -> Ints:
        """Numbers of words; those not known are the unknown word, or -1."""
        rest = None if self.unknown is None else self._find(self.unknown)
        if rest is None:
            if self.unknown is not None:
                raise self.variable.unknown(self.unknown)
            rest = -1
        if self._texts is not None:
            return np.fromiter(map(self._texts.get, states, repeat(rest)), np.int64)
        codes = (self.variable.find(state) for state in states)
        return np.array([rest if code is None else code for code in codes], dtype=np.int64)

    def place(self, state: Hashable, *, history: bool = False) -> int:
        """The number of one word, or of the start mark in a history; one that is not known is an error."""
        if not isinstance(state, Hashable):
            raise UnknownStateError(f"{state!r} is no state: expected a text, a number or another value that hashes.")
        if history and state_key(state) == state_key(self.start):
            return self.card
        code = int(self.places([state])[0])
        if code < 0:
            raise UnknownStateError(
                f"{state!r} ({type(state).__name__}) is no state of this chain.{meant(state, self.states)} Its "
                f"{self.card} states are: {listing(self.states)}. Give unknown= to let one state stand for all others."
            )
        return code


def vocabulary(summary: Summary, layout: WindowLayout, declared: Any, unknown: Any, min_count: int) -> Vocabulary:
    """The words that counts give: those declared, or seen at least `min_count` times."""
    variable = summary.domain[layout.names[-1]]
    marks = [] if layout.end is None else [layout.end]
    if declared is not None:
        states = [*declared, *(mark for mark in marks if state_key(mark) not in set(map(state_key, declared)))]
    else:
        cells, values = summary[layout.question].items()
        counts = np.bincount(cells[:, -1], values, minlength=variable.card)
        enough = counts >= max(float(min_count), np.finfo(float).tiny)
        if variable.origin == "category" and min_count <= 1:
            enough[:] = True  # Categories are states, also those that no step holds.
        for mark in marks:
            if (code := _place(variable, mark)) is not None:
                enough[code] = counts[code] > 0
        states = list(compress(variable.states, enough.tolist()))
    if unknown is not None and _place(states, unknown) is None:
        states.append(unknown)
    if not states:
        raise EstimateError("Nothing has been counted, so that the chain has no states. Declare them by states=.")
    ordered = tuple(states) if declared is not None or variable.origin == "category" else _sorted(states)
    return Vocabulary(ordered, layout.start, layout.end, unknown)


def _sorted(states: list[Hashable]) -> tuple[Hashable, ...]:
    return tuple(sorted(states)) if are_texts(states) else sort_states(states)  # type: ignore[type-var]


def _place(states: Variable | list[Hashable], state: Hashable) -> int | None:
    """The place of a state, or None; a text is looked for once, without a table of all states."""
    known = states.states if isinstance(states, Variable) else states
    if type(state) is str:
        return known.index(state) if state in known else None
    if isinstance(states, Variable):
        return states.find(state)
    key = state_key(state)
    return next((code for code, other in enumerate(known) if state_key(other) == key), None)


def windows_of(summary: Summary, layout: WindowLayout, words: Vocabulary) -> tuple[Codes, Floats]:
    """Windows (m, order + 1) of word numbers and their weights; a word not known is -1, the start mark `card`."""
    cells, values = summary[layout.question].items()
    if not (values > 0).all():
        cells, values = cells[values > 0], values[values > 0]
    past, future = summary.domain[layout.names[0]], summary.domain[layout.names[-1]]
    before = words.places(past.states).astype(np.int32)
    if layout.order > 0:
        before[_place(past, layout.start)] = words.card
    after = words.places(future.states).astype(np.int32)
    # Column by column in memory, as they are written here and read later.
    windows = np.empty(cells.shape[::-1], np.int32).T
    for column, name in enumerate(layout.names):
        table = after if name == layout.names[-1] else before
        windows[:, column] = table[cells[:, column]]
    return windows, values


def held_out_of(summary: Summary, layout: WindowLayout, words: Vocabulary) -> tuple[Ints, Floats] | None:
    """Windows of what is held out, or None."""
    beside = replace(layout, prefix=_HELD)
    if beside.question not in summary.answers:
        return None
    windows, values = windows_of(summary, beside, words)
    return windows.astype(np.int64), values


def read_again(model: Any, rows: Mapping[str, Any]) -> Any:
    """What the task of a model reads of sequences that are given again, by the names of the arguments of its `fit`."""
    form = SequenceForm(*(rows.get(name) for name in ("lengths", "group", "order", "columns")))
    more = {name: rows.get(name) for name in ("sample_weight", "held_out")}
    return model._task().read(Inputs(rows["data"], {**more, "form": form}), None, "fit")
