"""The threads that an engine works with: its own, and those of BLAS."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from suffice.checks import whole_number

Answer = TypeVar("Answer")


def worker_count(threads: int | None) -> int:
    """The number asked for; None is one for each core (or SUFFICE_THREADS)."""
    from suffice.kernels.threads import thread_count

    if threads is None:
        return thread_count()
    return whole_number(threads, "threads", otherwise=", or None for all cores")


def with_one_blas_thread(call: Callable[[], Answer], *, of_scipy: bool = True) -> Answer:
    """Make a call in which many small products follow each other: threads inside each would wait for one another.

    of_scipy: whether they are SciPy's, whose own BLAS can be held to one thread once it is loaded; loading it takes
    longer than many a fit.
    """
    if of_scipy:
        import scipy.linalg.blas  # noqa: F401

    from suffice.kernels.threads import one_blas_thread

    with one_blas_thread():
        return call()
