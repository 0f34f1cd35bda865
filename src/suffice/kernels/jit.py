"""The one decorator of compiled loops.

Loops release the GIL (threads come from `suffice.kernels.threads`) and are cached on disk. Numba keys its cache by the
content of the file that holds a loop. It does not see changes in another file, so loops that call each other live in
one file, which takes nothing from the package but a decorator of this one. A decorator whose options change gets a
new name, which changes the files that use it; a test holds the options of each name.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
from numba.core import event

from suffice.errors import SufficeWarning
from suffice.kernels import ahead

Loop = TypeVar("Loop", bound=Callable[..., Any])

_OPTIONS: dict[str, Any] = {"nogil": True, "boundscheck": False, "error_model": "numpy"}
_warned = False


def kernel(loop: Loop) -> Loop:
    """Compile a loop at its first call, and cache it on disk where some directory is writable.

    Numba looks beside the package and in the home folder; where neither can be written, a folder of this user's own
    in the temporary directory serves.
    """
    return _compiled(loop, _OPTIONS)


def fused(loop: Loop) -> Loop:
    """As `kernel`, with products and sums rounded once where the processor can: for loops that sample."""
    return _compiled(loop, {**_OPTIONS, "fastmath": {"contract"}})


def reordered(loop: Loop) -> Loop:
    """As `fused`, for sums whose order is free, as it is in BLAS: the processor adds several terms at a time."""
    return _compiled(loop, {**_OPTIONS, "fastmath": {"contract", "reassoc", "nsz"}})


def _compiled(loop: Loop, options: dict[str, Any]) -> Loop:
    try:
        return cast(Loop, numba.njit(cache=True, **options)(loop))
    except RuntimeError as error:  # Numba found no directory to write to.
        if not numba.config.CACHE_DIR and (folder := ahead.private_folder()) is not None:
            numba.config.CACHE_DIR = str(folder)
            return _compiled(loop, options)
        _warn_once(error)
        return cast(Loop, numba.njit(cache=False, **options)(loop))


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


class Notice(event.Listener):  # type: ignore[misc]
    """Says once that loops are compiled here, where one takes longer than a second: no other process did it before."""

    def __init__(self) -> None:
        """Nothing is compiled yet."""
        self._timers: list[threading.Timer] = []
        self._silent = True

    def on_start(self, event: Any) -> None:
        """A loop begins to be compiled; those that it calls are compiled within."""
        timer = threading.Timer(ahead.SAY_AFTER, self._say, [event.data["dispatcher"].py_func.__module__])
        timer.daemon = True
        self._timers.append(timer)
        timer.start()

    def on_end(self, event: Any) -> None:
        """It is compiled, or has failed to be."""
        if self._timers:
            self._timers.pop().cancel()

    def _say(self, module: str) -> None:
        if self._silent and module.startswith("suffice."):
            self._silent = False
            ahead.say("compiling loops, once on this machine where they can be kept ...")


event.register("numba:compile", Notice())
