"""Loops that this machine has not compiled yet are compiled by another process, while NumPy works.

A thread would not do: Numba compiles under the interpreter's lock for the most part, and NumPy would wait for it. One
process reads the names of kernels from its input, compiles them one after the other into the cache on disk, and leaves
a mark for each beside the cache. It ends when its input does, and finishes what it has begun: the next process of this
user finds the loops, and so do all others that run now. Marks belong to the sources of the loops, to Numba, to Python
and to the processor. Where no process can be started or nothing can be written, loops are compiled where they are
needed.
"""

from __future__ import annotations

import atexit
import contextlib
import getpass
import hashlib
import os
import platform
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

_SECONDS = {
    "chain": 12.5,
    "count": 2.8,
    "gibbs": 8.2,
    "junction tree": 9.4,
    "junction tree tangents": 3.0,
    "junction tree walk": 4.0,
    "label scores": 5.8,
    "moments": 2.0,
    "segments": 9.0,
    "weighted moments": 1.6,
}
#: Starting Python, importing NumPy, Numba and the engines.
_START_SECONDS = 1.5
#: Seconds after which a user is told what takes so long.
SAY_AFTER = 1.0
_POLL_SECONDS = 0.02
#: A lock that is older was left by a process that is gone.
_STALE_SECONDS = 600.0

_ready: set[str] = set()
_asked: set[str] = set()
_compilers: dict[int, subprocess.Popen[str]] = {}


def seconds(kernel: str) -> float:
    """CPU seconds to compile a kernel, with the start of the process that does it; measured on a machine of 2021."""
    return _START_SECONDS + _SECONDS.get(kernel, _SECONDS.get(kernel.split()[0], 1.0))


def ready(kernel: str) -> bool:
    """Whether the loops of a kernel are in the cache, as far as marks tell."""
    if kernel not in _ready:
        mark = _mark(kernel)
        if mark is None or not mark.exists():
            return False
        _ready.add(kernel)
    return True


def begin(kernel: str) -> bool:
    """Have a kernel compiled beside this process; False where that cannot be, or has failed."""
    if kernel in _asked:
        compiler = _compilers.get(os.getpid())
        return compiler is not None and (compiler.poll() is None or _locked(kernel))
    if _mark(kernel) is None:
        return False
    compiler = _compiler()
    if compiler is None or compiler.stdin is None:
        return False
    try:
        compiler.stdin.write(f"{kernel}\n")
        compiler.stdin.flush()
    except OSError:
        return False
    _asked.add(kernel)
    return True


def wait(kernel: str) -> None:
    """Wait until a kernel that was begun is compiled, or its process has ended without; say so after a second."""
    start, silent = time.monotonic(), True
    while not ready(kernel) and begin(kernel):
        time.sleep(_POLL_SECONDS)
        if silent and time.monotonic() - start > SAY_AFTER:
            say(f"compiling loops ({kernel}), once on this machine: about {seconds(kernel):.0f} seconds ...")
            silent = False


def finish() -> None:
    """Wait until everything that was begun is compiled."""
    for kernel in sorted(_asked):
        wait(kernel)


def say(text: str) -> None:
    """A line where a user looks for what goes on, beside the results."""
    if sys.stderr is not None:
        print(f"suffice: {text}", file=sys.stderr, flush=True)


@contextlib.contextmanager
def claimed(kernel: str) -> Iterator[bool]:
    """Whether it falls to this process to compile a kernel; it is then marked as compiled when the block ends well."""
    mark = _mark(kernel)
    if mark is None or mark.exists() or _locked(kernel):
        yield False
        return
    lock = mark.with_suffix(".lock")
    lock.unlink(missing_ok=True)
    try:
        lock.touch(exist_ok=False)
    except OSError:  # Another process was quicker.
        yield False
        return
    try:
        yield True
        mark.touch()
    finally:
        lock.unlink(missing_ok=True)


def private_folder() -> Path | None:
    """A folder in the temporary directory that this user alone can write: cached code is executed."""
    try:
        user = str(os.getuid()) if hasattr(os, "getuid") else getpass.getuser()
        folder = Path(tempfile.gettempdir()) / f"suffice-kernels-{user}"
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
    except OSError:
        return None
    mine = not hasattr(os, "getuid") or status.st_uid == os.getuid()
    closed = stat.S_ISDIR(status.st_mode) and not (hasattr(os, "getuid") and status.st_mode & 0o022)
    return folder if mine and closed and os.access(folder, os.W_OK) else None


def _compiler() -> subprocess.Popen[str] | None:
    """The process that compiles for this one; a forked process has one of its own."""
    compiler = _compilers.get(os.getpid())
    if compiler is not None:
        return compiler if compiler.poll() is None else None
    if getattr(sys, "frozen", False) or not Path(sys.executable or "").name.lower().startswith("python"):
        return None  # A program that embeds Python: its executable takes other arguments.
    root = str(Path(__file__).resolve().parents[2])
    paths = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
    try:
        compiler = subprocess.Popen(
            [sys.executable, "-P", "-m", "suffice.warmup", "--beside"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": paths},
            start_new_session=True,  # Ctrl-C is for the work, not for what later work will find.
            text=True,
        )
    except OSError:
        return None
    _compilers[os.getpid()] = compiler
    atexit.register(_leave, compiler)
    return compiler


def _leave(compiler: subprocess.Popen[str]) -> None:
    """Let the process finish what it was asked for; nobody waits for it."""
    with contextlib.suppress(OSError):
        if compiler.stdin is not None:
            compiler.stdin.close()
    if compiler.poll() is None:
        compiler.returncode = 0  # Else the interpreter warns of a process that still runs, which is meant.


def _locked(kernel: str) -> bool:
    mark = _mark(kernel)
    try:
        return mark is not None and time.time() - mark.with_suffix(".lock").stat().st_mtime < _STALE_SECONDS
    except OSError:
        return False


def _mark(kernel: str) -> Path | None:
    folder = _folder(os.environ.get("NUMBA_CACHE_DIR", ""))
    return None if folder is None else folder / f"{_version()}-{kernel.replace(' ', '-')}.done"


@cache
def _folder(named: str) -> Path | None:
    """Where Numba keeps its cache, or beside it: where the user says, in the package, at home, in a private folder."""
    if named:
        return _writable(Path(named) / "suffice")
    within = Path(__file__).with_name("compiled") / "__pycache__"
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()) / "numba" / "suffice"
    return _writable(within) or _writable(home) or private_folder()


def _writable(folder: Path) -> Path | None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError:
        return None


@cache
def _version() -> str:
    """Of the loops and of all that compiles them: sources by time and size, as Numba tells them apart."""
    sources = [*sorted(Path(__file__).with_name("compiled").glob("*.py")), Path(__file__).with_name("jit.py")]
    numba = find_spec("numba")
    if numba is not None and numba.origin:
        sources.append(Path(numba.origin))
    stamps = [(source.name, source.stat().st_mtime_ns, source.stat().st_size) for source in sources]
    return hashlib.sha256(repr((stamps, sys.version, _processor())).encode()).hexdigest()[:16]


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    try:
        lines = info.read_text(errors="replace").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return "".join(sorted({line for line in lines if line.startswith(("model name", "flags", "Features"))}))
