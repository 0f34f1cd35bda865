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
_POLARS = "benchmarks.rivals.ngrams_with_polars"
_KENLM = "benchmarks.rivals.ngrams_with_kenlm"

#: Bytes from which a text is large: what takes minutes runs once, and what takes much longer is left out.
LARGE = 20_000_000

# Texts by size, kept until the process ends: the contenders read the file from processes of their own.
_folders: dict[tuple[int, int], tempfile.TemporaryDirectory[str]] = {}


@dataclass(frozen=True)
class Runs:
    """Chains of one order; `rows` is the number of bytes of the text."""

    order: int
    size: int = 6_000_000

    @property
    def ROWS(self) -> int:  # noqa: N802  a constant of the problem
        return self.size

    @property
    def SIZES(self) -> tuple[int, ...]:  # noqa: N802  a constant of the problem
        return (self.size,)

    @property
    def REPEATS(self) -> int:  # noqa: N802  a constant of the problem
        return 3 if self.size < LARGE else 1

    @property
    def NAME(self) -> str:  # noqa: N802  a constant of the problem
        return f"n-grams, order {self.order}"

    @property
    def CONTENDERS(self) -> tuple[Contender, ...]:  # noqa: N802  a constant of the problem
        order = {"order": self.order}
        # NLTK takes a minute for its Kneser-Ney of 6 MB; one order shows how it compares.
        slowest = LARGE if self.order == 1 else 1
        large = self.size >= LARGE
        return (
            Contender("collections.Counter", _PYTHON, "count", order, once=large, work="counts"),
            Contender("polars group_by", _POLARS, "count", order, "polars", once=large, work="counts"),
            Contender("NLTK NgramCounter", _NLTK, "count", order, "nltk", most_rows=LARGE, once=True, work="counts"),
            Contender("suffice", _OURS, "count", order, once=large, work="counts"),
            Contender(
                "suffice, learned interpolation",
                _OURS,
                "smooth",
                {**order, "by": "interpolation"},
                once=large,
                work="counts",
            ),
            Contender("suffice, Kneser-Ney", _OURS, "smooth", order, once=large, work="Kneser-Ney"),
            Contender("KenLM lmplz", _KENLM, "smooth", order, "lmplz", once=large, work="Kneser-Ney"),
            Contender(
                "NLTK KneserNeyInterpolated",
                _NLTK,
                "smooth",
                order,
                "nltk",
                most_rows=slowest,
                once=True,
                work="Kneser-Ney",
            ),
        )

    def title(self, rows: int) -> str:
        return f"Runs of {self.order + 1} words in a text of {rows / 1e6:,.0f} MB"

    def make(self, rows: int, seed: int) -> Data:
        """The path of a text of about that many bytes."""
        if (rows, seed) not in _folders:
            _folders[rows, seed] = tempfile.TemporaryDirectory()
            with (Path(_folders[rows, seed].name) / "corpus.txt").open("wb") as stream:
                for part in range(-(-rows // 5_000_000)):
                    stream.write(text(min(5_000_000, rows - part * 5_000_000), 1_000 * seed + part))
        path = Path(_folders[rows, seed].name) / "corpus.txt"
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
    return np.asarray(np.exp(rng.random(size) * np.log(ranks)) - 1, dtype=np.int64)


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
    """Bigrams and trigrams: chains of order 1 and 2."""
    for size in (6_000_000, 100_000_000):
        for order in (1, 2):
            yield Runs(order, size)
