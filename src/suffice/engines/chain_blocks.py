"""Sequences in blocks of whole ones that fit in the cache, worked on in threads."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

from suffice.array_types import Ints
from suffice.engines.workers import worker_count
from suffice.kernels.chain_batches import WIDTHS
from suffice.kernels.threads import one_blas_thread, run

Answer = TypeVar("Answer")

#: Numbers (steps times labels) in a block, and the most where a batch of sequences needs more.
BLOCK = 1 << 18
LARGE_BLOCK = 1 << 23


def blocks(offsets: Ints, size: int) -> list[tuple[int, int]]:
    """Ranges of whole sequences of about `BLOCK` numbers; they depend on the data alone, not on the threads.

    Where a block holds a batch of sequences it holds whole batches, as far as their lengths are alike.
    """
    width, steps, count = WIDTHS[0][0], int(offsets[-1]), len(offsets) - 1
    most, mean = max(BLOCK // max(size, 1), 1), steps / max(count, 1)
    batched = count >= width and width * mean * size <= LARGE_BLOCK
    if batched:
        most = max(int(most / (width * mean)), 1) * math.ceil(width * mean)
    marks = np.searchsorted(offsets, np.arange(most, steps, most))
    if batched:
        marks = np.round(marks / width).astype(np.int64) * width
    bounds = np.unique(np.concatenate(([0], np.minimum(marks, count), [count])))
    return list(pairwise(bounds.tolist()))


def map_blocks(task: Callable[[Any], Answer], items: Sequence[Any], threads: int | None) -> list[Answer]:
    """The answers of a task in the order of the items, whatever the number of threads."""
    answers: list[Any] = [None] * len(items)

    def work(index: int, _: int) -> None:
        answers[index] = task(items[index])

    with one_blas_thread():
        run(work, range(len(items)), min(worker_count(threads), max(len(items), 1)))
    return answers
