"""The one decorator of compiled loops.

Loops release the GIL (threads come from `suffice.kernels.threads`) and are cached on disk. Numba keys its cache by the
content of the file that holds a loop. It does not see changes in another file, so loops that call each other live in
one file, and each such file repeats the version of the package.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

from suffice.errors import SufficeWarning

Loop = TypeVar("Loop", bound=Callable[..., Any])

_OPTIONS = {"nogil": True, "boundscheck": False, "error_model": "numpy"}
_warned = False


def kernel(loop: Loop) -> Loop:
    """Compile a loop at its first call, and cache it on disk where some directory is writable."""
    try:
        return cast(Loop, numba.njit(cache=True, **_OPTIONS)(loop))
    except RuntimeError as error:  # Numba found no directory to write to.
        _warn_once(error)
        return cast(Loop, numba.njit(cache=False, **_OPTIONS)(loop))


def _warn_once(error: RuntimeError) -> None:
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(
            f"Compiled loops cannot be cached on disk ({error}), so each process compiles them anew. "
            "Set NUMBA_CACHE_DIR to a directory that is writable.",
            SufficeWarning,
            stacklevel=3,
        )
