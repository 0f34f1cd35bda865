"""How much memory an engine may take, and sizes in words."""

from __future__ import annotations

import os

from suffice.errors import OptionError

_UNKNOWN = 8 << 30  # Taken for the memory of a machine that does not tell.


def default_limit() -> int:
    """Half of the memory of the machine, or of the control group that the process is in, in bytes."""
    return min(_physical(), _control_group()) // 2


def _physical() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return _UNKNOWN


def _control_group() -> int:
    try:
        with open("/sys/fs/cgroup/memory.max", encoding="ascii") as file:
            text = file.read().strip()
    except OSError:
        return 1 << 62
    return int(text) if text.isdecimal() else 1 << 62


def in_words(count: int) -> str:
    """A number of bytes for people: 3.1 MB."""
    if count < 1000:
        return f"{count} B"
    value = float(count)
    for unit in ("kB", "MB", "GB", "TB", "PB"):
        value /= 1000
        if value < 999.5:
            return f"{value:.1f} {unit}"
    return f"{value:,.0f} PB" if value < 1e15 else f"10^{len(str(count)) - 1} B"


def check_limit(limit_bytes: object) -> None:
    """Refuse a limit that is neither a number of bytes nor None."""
    if limit_bytes is not None and (isinstance(limit_bytes, bool) or not isinstance(limit_bytes, int | float)):
        raise OptionError(f"limit_bytes is {limit_bytes!r}; expected a number of bytes, or None.")
