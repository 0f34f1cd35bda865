"""Runs of words counted by `collections.Counter`."""

from __future__ import annotations

from collections import Counter

from benchmarks.contender import Data, Run


def count(data: Data, order: int) -> Run:
    """Tuples of words, line by line."""
    path = str(data["path"])

    def run() -> tuple[int, int, int]:
        counts: Counter[tuple[str, ...]] = Counter()
        marks = ["<s>"] * order
        with open(path, encoding="utf-8") as stream:
            for line in stream:
                words = [*marks, *line.split(), "</s>"]
                counts.update(zip(*(words[shift:] for shift in range(order + 1)), strict=False))
        return len(counts), sum(counts.values()), max(counts.values())

    return run
