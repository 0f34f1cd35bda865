"""Sequences in blocks of whole ones that fit in the cache, worked on in threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from suffice.engines.workers import worker_count
from suffice.kernels.chain_batches import WIDTH
from suffice.kernels.threads import one_blas_thread, run

Answer = TypeVar("Answer")

#: Numbers (steps times labels) in a block, and the most where a batch of sequences needs more.
BLOCK = 1 << 18
LARGE_BLOCK = 1 << 23


def blocks(offsets: NDArray[np.int64], size: int) -> list[tuple[int, int]]:
    """Ranges of whole sequences of about `BLOCK` numbers; they depend on the data alone, not on the threads."""
    some = WIDTH * int(np.diff(offsets).mean()) * size if len(offsets) > WIDTH else 0
    most = max((some if some <= LARGE_BLOCK else BLOCK, BLOCK)) // max(size, 1)
    most = max(most, 1)
    marks = np.searchsorted(offsets, np.arange(most, int(offsets[-1]), most))
    bounds = np.unique(np.concatenate(([0], marks, [len(offsets) - 1])))
    return list(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True))


def map_blocks(task: Callable[[Any], Answer], items: Sequence[Any], threads: int | None) -> list[Answer]:
    """The answers of a task in the order of the items, whatever the number of threads."""
    found: list[Any] = [None] * len(items)

    def work(at: int, _: int) -> None:
        found[at] = task(items[at])

    with one_blas_thread():
        run(work, range(len(items)), min(worker_count(threads), max(len(items), 1)))
    return found
