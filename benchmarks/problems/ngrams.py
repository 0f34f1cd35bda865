"""Runs of neighbouring words in a text file: read, split, number and count, and Kneser-Ney on top."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.contender import Contender, Data

#: Words of a line, words that there are, and how many can follow one word.
WORDS, VOCABULARY, FOLLOWERS = 12, 40_000, 3_000

_OURS = "benchmarks.rivals.ngrams_with_suffice"
_PYTHON = "benchmarks.rivals.ngrams_with_python"
_NLTK = "benchmarks.rivals.ngrams_with_nltk"
_COMPILED = {"SUFFICE_KERNELS": "compiled"}

# Kept until the process ends: the contenders read the file from processes of their own.
_folders: list[tempfile.TemporaryDirectory[str]] = []


@dataclass(frozen=True)
class Runs:
    """Chains of one order; `rows` is the number of bytes of the text."""

    order: int

    ROWS = 6_000_000
    SIZES = (6_000_000, 100_000_000)
    REPEATS = 3
    FLOOR = ""
    OURS = "suffice"

    @property
    def NAME(self) -> str:  # noqa: N802  a constant of the problem
        return f"n-grams, order {self.order}"

    @property
    def CONTENDERS(self) -> tuple[Contender, ...]:  # noqa: N802  a constant of the problem
        order = {"order": self.order}
        return (
            Contender("collections.Counter", _PYTHON, "count", order),
            Contender("NLTK NgramCounter", _NLTK, "count", order, "nltk", most_rows=20_000_000),
            Contender(self.OURS, _OURS, "count", order, environment=_COMPILED),
            Contender("suffice, Python words", _OURS, "count", order, environment={"SUFFICE_KERNELS": "numpy"}),
            Contender("suffice, counts and Kneser-Ney", _OURS, "smooth", order, environment=_COMPILED),
            Contender("NLTK KneserNeyInterpolated", _NLTK, "smooth", order, "nltk", most_rows=20_000_000),
        )

    def title(self, rows: int) -> str:
        return f"Runs of {self.order + 1} words in a text of {rows / 1e6:,.0f} MB"

    def make(self, rows: int) -> Data:
        """The path of a text of about that many bytes."""
        folder = tempfile.TemporaryDirectory()
        _folders.append(folder)
        path = Path(folder.name) / "corpus.txt"
        with path.open("wb") as stream:
            for seed in range(-(-rows // 5_000_000)):
                stream.write(text(min(5_000_000, rows - seed * 5_000_000), seed))
        return {"path": np.array(str(path))}

    def judge(self, data: Data) -> Callable[[str, Any], str]:
        """Distinct runs, all runs and the most frequent one must agree with the first that answers."""
        first: list[Any] = []

        def verdict(name: str, answer: Any) -> str:
            if answer is None:
                return ""
            if not first:
                first.append(tuple(answer))
                return f"{answer[0]:,} distinct of {answer[1]:,}"
            return "the same counts" if tuple(answer) == first[0] else f"other counts: {answer}"

        return verdict


def text(size: int, seed: int) -> bytes:
    """Lines of words with frequencies as in natural text: few words are frequent, and each has its own followers."""
    rng = np.random.default_rng(seed)
    names = spelled(VOCABULARY)
    lengths = np.array([len(name) for name in names])
    lines = max(size // 30, 1)
    word: NDArray[np.int64] = zipf(rng, lines, VOCABULARY)
    columns = [word]
    for _ in range(WORDS - 1):
        # A follower is a rank among those of the word before, so that some pairs are frequent and most are rare.
        mixed = (columns[-1] * 2_654_435_761 + 97) % 1_000_003
        rank = zipf(rng, lines, FOLLOWERS)
        common = zipf(rng, lines, VOCABULARY)
        columns.append(np.where(rng.random(lines) < 0.5, common, (mixed + rank * 7919) % VOCABULARY))
    grid = np.stack(columns, axis=1)
    ends = np.cumsum((lengths[grid] + 1).sum(axis=1))
    grid = grid[: max(int(np.searchsorted(ends, size)), 1)]
    return b"\n".join(b" ".join(names[code] for code in row) for row in grid.tolist()) + b"\n"


def zipf(rng: np.random.Generator, size: int, ranks: int) -> NDArray[np.int64]:
    """Ranks with probability about 1 / rank."""
    return (np.exp(rng.random(size) * np.log(ranks)) - 1).astype(np.int64)


def spelled(size: int) -> list[bytes]:
    """Short names for frequent words."""
    letters = b"etaoinshrdlucmwfgypbvkjxqz"
    names = []
    for number in range(1, size + 1):
        name = bytearray()
        while number:
            number, letter = divmod(number, 26)
            name.append(letters[letter])
        names.append(bytes(name))
    return names


def cases() -> Iterator[Runs]:
    """Bigrams to 4-grams are chains of order 1 to 3; those asked for most are 2 and 3."""
    for order in (1, 2, 3):
        yield Runs(order)
