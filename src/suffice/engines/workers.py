"""How many threads an engine works with."""

from __future__ import annotations

from typing import SupportsIndex

from suffice.errors import OptionError


def worker_count(threads: int | None) -> int:
    """The number asked for; None is one for each core (or SUFFICE_THREADS)."""
    from suffice.kernels.threads import thread_count

    if threads is None:
        return thread_count()
    if isinstance(threads, bool) or not isinstance(threads, SupportsIndex) or threads.__index__() < 1:
        raise OptionError(f"threads is {threads!r}; expected a whole number of at least 1, or None for all cores.")
    return threads.__index__()
