"""What no contender can beat: reading the bytes once."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from benchmarks.contender import Data, Run
from suffice.kernels.threads import run as run_threads


@numba.njit(nogil=True)  # type: ignore[untyped-decorator]
def _fold(words: Any) -> Any:
    """Combine 64-bit words by exclusive or: one instruction a vector, so memory is the limit."""
    mixed = np.uint64(0)
    for word in words:
        mixed ^= word
    return mixed


@numba.njit(nogil=True)  # type: ignore[untyped-decorator]
def _add(words: Any, start: int, stop: int) -> Any:
    """Add 64-bit words in a plain loop over a range, as a counting loop in Numba would be written first."""
    total = np.uint64(0)
    for index in range(start, stop):
        total += words[index]
    return total


def read(data: Data, names: tuple[str, ...], threads: int = 1) -> Run:
    """Read the named arrays."""
    words = [_words(data[name]) for name in names]
    chunks = [part for array in words for part in np.array_split(array, 8 * threads if threads > 1 else 1)]
    return lambda: run_threads(lambda chunk, _: _fold(chunk), chunks, threads)


def plain_loop(data: Data, names: tuple[str, ...]) -> Run:
    """Read the named arrays by the plain loop."""
    words = [_words(data[name]) for name in names]
    return lambda: [_add(array, 0, len(array)) for array in words] and None


def _words(array: Any) -> Any:
    flat = array.reshape(-1).view(np.uint8)
    return flat[: len(flat) // 8 * 8].view(np.uint64)
