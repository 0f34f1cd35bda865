"""How many threads an engine works with."""

from __future__ import annotations

from suffice.checks import whole_number


def worker_count(threads: int | None) -> int:
    """The number asked for; None is one for each core (or SUFFICE_THREADS)."""
    from suffice.kernels.threads import thread_count

    if threads is None:
        return thread_count()
    return whole_number(threads, "threads", otherwise=", or None for all cores")
