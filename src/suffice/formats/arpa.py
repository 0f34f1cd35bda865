"""ARPA files of n-gram language models: text, log10 probabilities, one section for each length of run.

A line holds ``log10 p(last word | the others)``, the words, and, for runs that are histories, the log10 of the weight
with which they hand over to the shorter history. The marks are written as ``<s>``, ``</s>`` and ``<unk>``.
"""

from __future__ import annotations

import gzip
import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any

import numpy as np

from suffice.array_types import Floats, Ints
from suffice.errors import FileFormatError, OptionError
from suffice.models.markov_chain.declaration import MarkovChain
from suffice.models.markov_chain.distributions import BackoffDistribution
from suffice.models.markov_chain.input import Vocabulary
from suffice.models.markov_chain.levels import Level, Levels
from suffice.storage.files import replacing
from suffice.storage.unpacking import unpacked_text

FilePath = str | os.PathLike[str]

#: What stands for the logarithm of zero.
_NEVER = -99.0
_START, _END, _UNKNOWN = "<s>", "</s>", "<unk>"
#: Lines that are put together before they are written.
_BLOCK = 100_000
#: Sums of probabilities that were rounded, as tools with four digits write them, are off by less.
ROUNDED = 1e-3
#: Above every log10 of a weight: the weight itself is then no float any more.
MOST_WEIGHT = 300.0


def save(path: FilePath, model: object) -> None:
    """Write a Markov chain that backs off: one learned by maximum likelihood, one prior of all rows, or smoothing."""
    distribution, names = _writable(model)
    with replacing(path) as stream:
        if os.fspath(path).endswith(".gz"):
            with gzip.GzipFile(fileobj=stream, mode="wb", mtime=0) as packed:
                _write(packed, distribution, names)
        else:
            _write(stream, distribution, names)


def _writable(model: object) -> tuple[BackoffDistribution, list[str]]:
    if not isinstance(model, MarkovChain):
        raise OptionError(f"An ARPA file holds Markov chains; a {type(model).__name__} goes to '.json' or '.suffice'.")
    words: Vocabulary = model.fitted_.words
    distribution = model.fitted_.distribution
    if not isinstance(distribution, BackoffDistribution) or distribution.first is not None:
        raise OptionError(
            "An ARPA file holds chains that back off; mixtures and priors for single rows go to '.json' or '.suffice'."
        )
    marks = {words.start: _START, words.end: _END, words.unknown: _UNKNOWN}
    names = [marks.get(state, state) if state is not None else state for state in (*words.states, words.start)]
    for name in names:
        if not isinstance(name, str) or not name or name.split() != [name]:
            raise OptionError(f"The state {name!r} cannot be written: ARPA files hold words without blanks.")
    if len(set(names)) != len(names):
        raise OptionError("Two states would have the same name in the file; rename the one that looks like a mark.")
    return distribution, [str(name) for name in names]


def _write(stream: Any, distribution: BackoffDistribution, names: list[str]) -> None:
    levels = distribution.levels
    head = [f"ngram {n}={len(level)}" for n, level in enumerate(levels.levels, start=1)]
    stream.write(("\\data\\\n" + "\n".join(head) + "\n").encode())
    label = np.array(names, dtype=object)
    for n in range(1, levels.order + 2):
        stream.write(f"\n\\{n}-grams:\n".encode())
        spelled = levels.words(n)
        p = _tens(distribution.log_p[n - 1])
        weight = _tens(distribution.log_weight[n - 1]) if n <= levels.order else None
        for begin in range(0, len(spelled), _BLOCK):
            block = slice(begin, begin + _BLOCK)
            texts = [" ".join(row) for row in label[spelled[block]].tolist()]
            if weight is None:
                lines = [f"{a:.12g}\t{text}" for a, text in zip(p[block], texts, strict=True)]
            else:
                rows = zip(p[block], texts, weight[block], strict=True)
                lines = [f"{a:.12g}\t{text}\t{b:.12g}" for a, text, b in rows]
            stream.write(("\n".join(lines) + "\n").encode("utf-8"))
    stream.write(b"\n\\end\\\n")


def _tens(logs: Floats) -> Floats:
    return np.where(np.isfinite(logs), logs / math.log(10.0), _NEVER) + 0.0


# --------------------------------------------------------------------------------------------------------------------
# Reading
# --------------------------------------------------------------------------------------------------------------------


def load(path: FilePath) -> MarkovChain:
    """Read a chain; its counts are not in the file, its probabilities are."""
    with unpacked_text(path, newline="\n") as text:
        try:
            return _parsed(text, os.fspath(path))
        except UnicodeDecodeError as error:
            raise FileFormatError(f"{os.fspath(path)!r} is no UTF-8 text: {error}.") from None


def _parsed(stream: IO[str], name: str) -> MarkovChain:
    lines = _Lines(stream, name)
    sizes = _sizes(lines)
    numbers: dict[str, int] = {}
    sections = []
    for n, size in enumerate(sizes, start=1):
        lines.expect(f"\\{n}-grams:")
        sections.append(_section(lines, n, size, numbers, last=n == len(sizes)))
    lines.expect("\\end\\")
    return _chain(sections, list(numbers), lines)


class _Lines:
    """The lines of a file that are not empty, with their numbers."""

    def __init__(self, stream: IO[str], name: str) -> None:
        self._stream = stream
        self._name = name
        self.number = 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        for line in self._stream:
            self.number += 1
            if text := line.strip(" \t\r\n"):
                return text
        raise StopIteration

    def expect(self, text: str) -> None:
        """The next line must be this one."""
        line = next(self, None)
        if line != text:
            raise self.wrong(f"found {line!r}, expected {text!r}")

    def wrong(self, what: str, number: int | None = None) -> FileFormatError:
        """An error that names the place: the line read last, or another one."""
        return FileFormatError(f"{self._name}, line {self.number if number is None else number}: {what}.")


def _sizes(lines: _Lines) -> list[int]:
    """Numbers of runs of each length, and the place before the first section."""
    for line in lines:
        if line == "\\data\\":
            break
    else:
        raise lines.wrong("there is no line '\\data\\'; this is no ARPA file")
    sizes: list[int] = []
    position = None
    for line in lines:
        kind, _, rest = line.partition(" ")
        length, _, number = rest.partition("=")
        if kind != "ngram" or length.strip() != str(len(sizes) + 1) or not number.strip().isdecimal():
            position = line
            break
        sizes.append(int(number))
    if position != "\\1-grams:" or not sizes:
        raise lines.wrong(f"found {position!r}, expected 'ngram {len(sizes) + 1}=...' or '\\1-grams:'")
    lines._stream = _Again(position, lines._stream)  # type: ignore[assignment]
    lines.number -= 1
    return sizes


class _Again:
    """A stream with one line put back."""

    def __init__(self, line: str, stream: IO[str]) -> None:
        self._first: list[str] = [line + "\n"]
        self._stream = iter(stream)

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        return self._first.pop() if self._first else next(self._stream)


@dataclass(frozen=True, eq=False)
class _Section:
    """Words (size, n), log10 probabilities and log10 weights of the runs of one length, and their lines."""

    words: Ints
    p: Floats
    weights: Floats
    line: Ints


def _section(lines: _Lines, n: int, size: int, numbers: dict[str, int], *, last: bool) -> _Section:
    """The runs of one length."""
    rows: list[list[int]] = []
    p: list[float] = []
    weights: list[float] = []
    places: list[int] = []
    for _ in range(size):
        line = next(lines, None)
        parts = [] if line is None else line.split()
        if len(parts) not in ((n + 1,) if last else (n + 1, n + 2)):
            raise lines.wrong(f"found {line!r}, expected a log10 probability and {n} words")
        try:
            p.append(float(parts[0]))
            weights.append(float(parts[n + 1]) if len(parts) > n + 1 else 0.0)
        except ValueError:
            raise lines.wrong(f"found {line!r}, expected numbers before and after the words") from None
        if not (p[-1] <= 1e-6 and -math.inf < weights[-1] < MOST_WEIGHT):
            raise lines.wrong(f"found {line!r}, whose logarithms are no probabilities")
        if n == 1:
            if parts[1] in numbers:
                raise lines.wrong(f"the word {parts[1]!r} comes twice")
            numbers[parts[1]] = len(numbers)
        elif _START in parts[2 : n + 1]:
            raise lines.wrong(f"found {line!r}; the mark {_START!r} can only come first")
        try:
            rows.append([numbers[word] for word in parts[1 : n + 1]])
        except KeyError as error:
            raise lines.wrong(f"the word {error.args[0]!r} is not among the single words") from None
        places.append(lines.number)
    return _Section(
        np.array(rows, dtype=np.int64).reshape(-1, n), np.array(p), np.array(weights), np.array(places, dtype=np.int64)
    )


def _chain(sections: list[_Section], names: list[str], lines: _Lines) -> MarkovChain:
    """The chain over the words in sorted order, the start mark last."""
    states = sorted(name for name in names if name != _START)
    unknown = next((name for name in (_UNKNOWN, "<UNK>") if name in names), None)
    words = Vocabulary(tuple(states), _START, _END if _END in names else None, unknown)
    code_of = {name: codes for codes, name in enumerate([*states, _START])}
    renumber = np.array([code_of[name] for name in names], dtype=np.int64)
    if not states:
        raise lines.wrong("there are no words beside the start mark")
    card = len(states)
    first = np.full(card + 1, _NEVER), np.zeros(card + 1), np.zeros(card + 1, np.int64)
    codes = renumber[sections[0].words[:, 0]]
    first[0][codes], first[1][codes], first[2][codes] = sections[0].p, sections[0].weights, sections[0].line
    flat = np.zeros(card + 1, np.int64)
    levels = [Level(flat, np.arange(card + 1), flat, np.zeros(card + 1))]
    log_p, log_weight, line = [_naturals(first[0])], [_naturals(first[1])], [first[2]]
    for n, section in enumerate(sections[1:], start=2):
        runs = renumber[section.words]
        tree = Levels(card, tuple(levels))
        history = _walk(tree, runs[:, :-1])
        if (history < 0).any():
            row = int(np.argmax(history < 0))
            missing = [[*states, _START][code] for code in runs[row, :-1]]
            wrong = f"the run {' '.join(missing)!r} is a history and has no line of its own"
            raise lines.wrong(wrong, int(section.line[row]))
        order = np.lexsort((runs[:, -1], history))
        suffix = np.maximum(_walk(tree, runs[:, 1:]), 0)
        levels.append(Level(history[order], runs[order, -1], suffix[order], np.zeros(len(runs))))
        keys = levels[-1].history * (card + 1) + levels[-1].word
        if (twice := np.flatnonzero(np.diff(keys) == 0)).size:
            raise lines.wrong(f"a run of {n} words comes twice", int(section.line[order][twice[0] + 1]))
        log_p.append(_naturals(section.p[order]))
        log_weight.append(_naturals(section.weights[order]))
        line.append(section.line[order])
    distribution = BackoffDistribution(Levels(card, tuple(levels)), tuple(log_p), tuple(log_weight[:-1]))
    _check_sums(distribution, [*states, _START], line, lines)
    return MarkovChain.from_distribution(distribution, words)


def _check_sums(distribution: BackoffDistribution, names: list[str], line: list[Ints], lines: _Lines) -> None:
    """Raise where the words after some history have a probability of more than 1 together.

    The sum of a row is that of the words with a line after the history h, and the weight of h times what the shorter
    history leaves to the others: ``S(h) = sum p(w | h) + weight (S(h') - sum p(w | h'))``. It may be less than 1, as
    where the unknown word has no line. Probabilities of four digits make sums that are off by a part in a thousand.
    """
    levels, card = distribution.levels, distribution.card
    single = np.exp(distribution.log_p[0][:card])
    whole = [np.array([single.sum()])]
    if whole[0][0] > 1 + ROUNDED:
        last = int(line[0][int(np.argmax(single))])
        raise lines.wrong(f"the single words have the probability {whole[0][0]:.6g} together; expected at most 1", last)
    for n in range(2, levels.order + 2):
        level, size = levels.levels[n - 1], len(levels.levels[n - 2])
        shorter = BackoffDistribution(
            Levels(card, levels.levels[: n - 1]), distribution.log_p[: n - 1], distribution.log_weight[: n - 2]
        )
        spelled, histories = levels.words(n), levels.words(n - 1)
        own = np.bincount(level.history, np.exp(distribution.log_p[n - 1]), minlength=size)
        lower = np.bincount(level.history, np.exp(shorter.log_prob(spelled[:, 1:])), minlength=size)
        weight = np.exp(distribution.log_weight[n - 2])
        rest = _sums_of(levels, histories[:, 1:], whole)
        whole.append(own + weight * np.maximum(rest - lower, 0.0))
        high = np.flatnonzero(whole[-1] > 1 + ROUNDED * (1 + weight))
        if len(high):
            history = int(high[0])
            number = line[n - 2][history]  # The line of the weight, unless the words alone have too much.
            if own[history] > 1 + ROUNDED:
                mine = np.flatnonzero(level.history == history)
                number = line[n - 1][mine[int(np.argmax(distribution.log_p[n - 1][mine]))]]
            before = " ".join(names[code] for code in histories[history].tolist())
            wrong = (
                f"the words after {before!r} have the probability {whole[-1][history]:.6g} together; expected at most 1"
            )
            raise lines.wrong(wrong, int(number))


def _sums_of(levels: Levels, histories: Ints, whole: list[Floats]) -> Floats:
    """Sums of the rows of some histories (m, k), of their longest end that the file has where it has not all of one."""
    sums = np.full(len(histories), whole[0][0])
    length = histories.shape[1]
    for k in range(1, length + 1):
        rows = _walk(levels, histories[:, length - k :])
        sums = np.where(rows >= 0, whole[k][rows], sums)
    return sums


def _walk(tree: Levels, runs: Ints) -> Ints:
    """Places of runs in the level of their length; -1 for one that is not there."""
    node = runs[:, 0].copy()
    for n in range(2, runs.shape[1] + 1):
        node = tree.find(n, node, runs[:, n - 1])
    return node


def _naturals(tens: Floats) -> Floats:
    return np.where(tens <= _NEVER, -np.inf, tens * math.log(10.0))
