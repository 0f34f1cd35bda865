"""One pool of threads for loops that release the GIL.

Workers take items from a shared iterator, so a core that is busy with something else does not hold up the rest. The
calling thread works too: nothing can deadlock when a task itself calls `run`, and one thread means no pool at all.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from suffice.errors import OptionError

Item = TypeVar("Item")

_MOST_THREADS = 256

_KEPT = 1 << 20
_memory = threading.local()

_pool: ThreadPoolExecutor | None = None
_lock = threading.Lock()


def thread_count() -> int:
    """Threads to use by default: the environment variable SUFFICE_THREADS, else the CPUs this process may use."""
    asked = os.environ.get("SUFFICE_THREADS")
    if asked is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
    if not asked.strip().isdecimal() or not 1 <= int(asked) <= _MOST_THREADS:
        raise OptionError(f"SUFFICE_THREADS is {asked!r}; it must be a whole number from 1 to {_MOST_THREADS}.")
    return int(asked)


def run(task: Callable[[Item, int], None], items: Iterable[Item], threads: int) -> None:
    """Call task(item, worker) for every item, in `threads` threads.

    worker counts from 0 to threads - 1 and is never in two calls at once, so it can index private memory. An exception
    (Ctrl-C included) stops the hand-out of items; calls under way end first, as they may be writing to shared arrays,
    and then it is raised here.
    """
    if threads == 1:
        for item in items:
            task(item, 0)
        return
    stop = threading.Event()
    queue = _Queue(iter(items), stop)

    def work(worker: int) -> None:
        try:
            for item in queue:
                task(item, worker)
        except BaseException:
            stop.set()
            raise

    others = [_executor().submit(work, worker) for worker in range(1, threads)]
    try:
        work(0)
    finally:
        _finish(others, stop)
    for future in others:
        if not future.cancelled():
            future.result()


class _Queue(Iterator[Any]):
    """Hands items to several threads, one at a time, until told to stop."""

    def __init__(self, items: Iterator[Any], stop: threading.Event) -> None:
        self._items = items
        self._stop = stop
        self._lock = threading.Lock()  # Two threads may not resume one generator at once.

    def __next__(self) -> Any:
        with self._lock:
            if self._stop.is_set():
                raise StopIteration
            return next(self._items)


def _finish(futures: list[Future[None]], stop: threading.Event) -> None:
    """Drop calls that have not begun and wait for the others."""
    for future in futures:
        future.cancel()
    try:
        wait(futures)
    except KeyboardInterrupt:
        stop.set()
        wait(futures)
        raise


def _executor() -> ThreadPoolExecutor:
    """The pool, made when first needed; it starts a thread only when none is idle."""
    global _pool
    with _lock:
        if _pool is None:
            _pool = ThreadPoolExecutor(_MOST_THREADS, thread_name_prefix="suffice")
        return _pool


def _forget_pool() -> None:
    """After a fork the child has neither the threads nor a usable lock."""
    global _pool, _lock, _one_blas_thread
    _pool = None
    _lock = threading.Lock()
    _one_blas_thread = _OneBlasThread()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)


def scratch(numbers: int) -> NDArray[np.float64]:
    """Memory of the calling thread for numbers that nobody needs after the next call; what it holds is anything.

    Fresh pages of memory cost more than a pass of arithmetic over them. Up to `_KEPT` numbers stay with the thread.
    """
    if numbers > _KEPT:
        return np.empty(numbers)
    held: NDArray[np.float64] | None = getattr(_memory, "held", None)
    if held is None or len(held) < numbers:
        held = _memory.held = np.empty(numbers)
    return held[:numbers]


class _OneBlasThread(AbstractContextManager[None]):
    """Blocks of several threads may overlap: the first to begin holds BLAS, the last to end lets it go."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._limit: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._limit = _blas_controller().limit(limits=1, user_api="blas")
            self._inside += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._limit.restore_original_limits()


_one_blas_thread = _OneBlasThread()


def one_blas_thread() -> AbstractContextManager[None]:
    """Hold BLAS to one thread inside the block, where threadpoolctl is installed."""
    return nullcontext() if _blas_controller() is None else _one_blas_thread


def blas_threads(threads: int) -> int:
    """Threads of our own for work that is mostly BLAS calls.

    Two pools fighting for the same cores are slower than one. Where BLAS cannot be held to one thread, it keeps its
    own threads and the calls come from a single one.
    """
    return threads if _blas_controller() is not None else 1


def _blas_controller() -> Any:
    """What holds BLAS to a number of threads; None without threadpoolctl."""
    return _controller_of("scipy.linalg" in sys.modules)


@cache
def _controller_of(scipy_loaded: bool) -> Any:
    """One for each state of the process: a controller knows the libraries that were loaded when it was made."""
    try:
        from threadpoolctl import ThreadpoolController
    except ImportError:
        return None
    return ThreadpoolController()
