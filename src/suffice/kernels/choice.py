"""NumPy or compiled: decided here, and only here.

Loading Numba and its cached loops costs more than half a second, compiling them several. Which work will follow is not
known, as data comes in batches. So the rule is that of renting until one has paid the price of buying: a kernel stays
on the NumPy path until this process has spent `PRICE` seconds there, and is compiled from then on. No choice made
without knowing the future is better in the worst case, and small problems never load Numba.

Work that is known to come back many times, such as a step of EM, is decided by its own size instead: the two paths may
differ in the last bit, and a fit must not depend on what the process did before it.

Loops that this machine has never compiled are compiled by a process beside this one (`ahead`), while NumPy goes on with
the work. The same rule tells how long: until NumPy has worked, by estimate, as long as compiling takes. Then the loops
are there, or waited for, so the first fit of an environment takes no longer than NumPy would. Within a fit (`one_path`)
the change comes by this count alone and not by the clock: where nothing was compiled, a fit is repeated to the bit too.

The environment variable `SUFFICE_KERNELS` overrides the rule: `numpy`, `compiled`, or `auto` (the default).
"""

from __future__ import annotations

import os
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from suffice.errors import OptionError

PRICE = 0.5
"""Seconds of NumPy work, by estimate, after which a kernel is worth loading."""

LOADED_PRICE = 0.02
"""The same where Numba is loaded already and both paths give the same bits: one more file is read."""

REPEATED = 100
"""Calls to expect of work that is prepared once for many calls."""

_MODES = ("auto", "numpy", "compiled")
_spent: defaultdict[str, float] = defaultdict(float)
_forced: list[str] = []
_here: set[str] = set()
_fits = 0
_settled: dict[str, bool] = {}
_rented: defaultdict[str, float] = defaultdict(float)


def use_compiled(
    kernel: str, seconds: float, *, calls: int | None = None, once: bool = False, exact: bool = False
) -> bool:
    """Say which path the next call takes.

    kernel names one compiled specialisation, e.g. ``"count uint8"``; seconds is the estimated time of this call on the
    NumPy path. calls: how many calls like this one are to be expected; the answer is then a function of the arguments
    alone where the kernel is compiled already, and the account of the process is left as it is. once: whether this
    answer is for all of these calls. exact: whether both paths give the same bits; what other kernels have made this
    process load may then decide too.
    """
    mode = _mode()
    if mode != "auto":
        if mode == "compiled" and numba_installed():
            _here.add(kernel)
            return True
        return False
    if calls is None:
        _spent[kernel] += seconds
    work = _spent[kernel] if calls is None else seconds * calls
    if work <= PRICE:
        return exact and work > LOADED_PRICE and _loaded() and _ready(kernel)
    return numba_installed() and _at_hand(kernel, work if once else seconds)


def _loaded() -> bool:
    return "numba" in sys.modules and numba_installed()


def _ready(kernel: str) -> bool:
    """Whether a kernel is compiled: by this process, or in the cache."""
    from suffice.kernels import ahead

    return kernel in _here or ahead.ready(kernel)


def _at_hand(kernel: str, seconds: float) -> bool:
    """Whether a kernel is there, or NumPy has worked in its place for as long as it takes to compile it.

    It is compiled beside this process, or here where that cannot be.
    """
    from suffice.kernels import ahead

    at_hand = _settled.get(kernel)
    if at_hand is None:
        at_hand = _ready(kernel) or not ahead.begin(kernel)
        if _fits:
            _settled[kernel] = at_hand
    if at_hand:
        return True
    _rented[kernel] += seconds
    if _rented[kernel] <= ahead.seconds(kernel):
        return False
    ahead.wait(kernel)
    return True


@contextmanager
def one_path() -> Iterator[None]:
    """Ask once for each kernel whether it is compiled: what another process does during a fit is no matter to it."""
    global _fits
    if not _fits:
        _settled.clear()
        _rented.clear()
    _fits += 1
    try:
        yield
    finally:
        _fits -= 1
        if not _fits:
            _settled.clear()


@contextmanager
def force(mode: str) -> Iterator[None]:
    """Take one path inside the block; used by tests, benchmarks and the warm-up."""
    _forced.append(_checked(mode))
    try:
        yield
    finally:
        _forced.pop()


def _mode() -> str:
    if _forced:
        return _forced[-1]
    return _checked(os.environ.get("SUFFICE_KERNELS", "auto"))


def _checked(mode: str) -> str:
    if mode not in _MODES:
        raise OptionError(f"SUFFICE_KERNELS is {mode!r}; it must be one of {', '.join(_MODES)}.")
    return mode


@cache
def numba_installed() -> bool:
    """Whether there is anything to compile with; Numba ships no wheels for some platforms."""
    from importlib.util import find_spec

    return find_spec("numba") is not None and os.environ.get("NUMBA_DISABLE_JIT", "0") in ("", "0")
