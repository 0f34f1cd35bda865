"""Text with one step a line, as taggers use it: fields of each step, and a fixed template of features.

A line holds the fields of a step, divided by tabs or spaces; a blank line ends a sequence. The template makes the
feature ``c[d]=value`` of a field ``c`` at a distance ``d`` from -2 to 2; the first field, taken as a word, also gives
its lower case, its first and last one to three letters, its shape, and pairs with its neighbours.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from suffice.errors import DataError
from suffice.storage.unpacking import unpacked_text

#: Steps on each side that a feature looks at, and letters of the beginnings and endings of words.
WINDOW, LETTERS = 2, 3

Steps = list[list[str]]
#: File, number from 1, and text.
Line = tuple[str, int, str]


def lines_of_file(path: str) -> Iterator[Line]:
    """The lines of a text, plain or gzipped."""
    with unpacked_text(path) as stream:
        try:
            yield from ((path, number, line.rstrip("\r\n")) for number, line in enumerate(stream, 1))
        except UnicodeDecodeError as error:
            raise DataError(f"{path} is not UTF-8 text: {error.reason} at byte {error.start}.") from None


def read_steps(lines: Iterable[Line]) -> list[Steps]:
    """Sequences of steps of fields; every step has as many."""
    sequences: list[Steps] = [[]]
    width = 0
    for path, number, line in lines:
        if not line.strip():
            sequences.append([])
            continue
        fields = line.split("\t") if "\t" in line else line.split()
        width = width or len(fields)
        if len(fields) != width:
            raise DataError(f"{path}, line {number}: found {len(fields)} fields; the lines before it have {width}.")
        sequences[-1].append(fields)
    filled = [steps for steps in sequences if steps]
    if not filled:
        raise DataError("There are no sequences in the text: every line is blank. Give at least one.")
    return filled


def features(steps: Steps, width: int) -> list[list[str]]:
    """The features of each step from its first `width` fields and those of its neighbours.

    >>> features([["Anna"], ["ran"]], 1)[1][:4]
    ['bias', '0[-2]=<s>', '0[-1]=Anna', '0[0]=ran']
    """
    columns = [["<s>"] * WINDOW + [step[c] for step in steps] + ["</s>"] * WINDOW for c in range(width)]
    rows = []
    for t in range(WINDOW, WINDOW + len(steps)):
        names = ["bias"]
        for c, column in enumerate(columns):
            names += [f"{c}[{d}]={column[t + d]}" for d in range(-WINDOW, WINDOW + 1)]
        rows.append(names + _of_word(columns[0], t))
    return rows


def _of_word(words: Sequence[str], t: int) -> list[str]:
    word = words[t]
    ends = [f"0.{side}={part}" for k in range(1, LETTERS + 1) for side, part in (("pre", word[:k]), ("suf", word[-k:]))]
    kinds = re.sub(r"\d", "0", re.sub(r"[a-z]", "x", re.sub(r"[A-Z]", "X", word)))
    shape = re.sub(r"(.)\1+", r"\1", kinds)
    pairs = [f"0[-1,0]={words[t - 1]} {word}", f"0[0,1]={word} {words[t + 1]}"]
    return [f"0.low={word.lower()}", f"0.shape={shape}", *dict.fromkeys(ends), *pairs]


def fields_of(names: Iterable[Any]) -> int | None:
    """How many fields the features of a model look at; None where the template did not make them."""
    matches = [re.match(r"(\d+)\[0\]=", str(name)) for name in names]
    places = [int(match[1]) for match in matches if match]
    return max(places) + 1 if places else None
