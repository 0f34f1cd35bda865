"""What takes part in a problem, and the process it runs in."""

from __future__ import annotations

import importlib
import importlib.util
import os
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Data = Mapping[str, NDArray[Any]]
Run = Callable[[], Any]


@dataclass(frozen=True)
class Contender:
    """One way to solve a problem.

    `module` and `function` name the adaptor: called with the data and `options`, it prepares what is not to be timed
    and returns the call that is: from the object that a user has in hand to the numbers read. `requires` is the
    package, or the program, it needs. `environment` is set before its process starts. Beyond `most_rows` it is left
    out. One that takes minutes runs `once`: its first run is the one that counts.

    Those with the same `work` do the same and are compared; a `limit` does less, such as reading the data, and is no
    rival. One that is `tuned` fits before it is timed, to find out how, so that its first call says nothing.
    """

    name: str
    module: str
    function: str
    options: Mapping[str, Any] = field(default_factory=dict)
    requires: str = "numpy"
    environment: Mapping[str, str] = field(default_factory=dict)
    most_rows: int | None = None
    once: bool = False
    work: str = ""
    limit: bool = False
    tuned: bool = False

    @property
    def ours(self) -> bool:
        """Whether this is the library itself."""
        return self.name.startswith("suffice")

    @property
    def present(self) -> bool:
        """Whether its package, or its program, is installed."""
        return shutil.which(self.requires) is not None or importlib.util.find_spec(self.requires) is not None


@dataclass(frozen=True)
class Timing:
    """One repeat: seconds of wall clock and of all threads together."""

    wall: float
    cpu: float


def timed(run: Run) -> tuple[Timing, Any]:
    """Run once and measure."""
    cpu, wall = cpu_seconds(), time.perf_counter()
    answer = run()
    return Timing(time.perf_counter() - wall, cpu_seconds() - cpu), answer


def cpu_seconds() -> float:
    """CPU time of this process, and of those it has started and seen end."""
    try:
        import resource
    except ModuleNotFoundError:  # Windows
        return time.process_time()
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def serve(contender: Contender, folder: Path, pipe: Connection) -> None:
    """Live in a child process: prepare, run once, then repeat whenever asked.

    Sends the timing and the answer of the first run, with the import of the library in it, then a timing for each
    request, and at last the memory. It ends when the loops that are compiled beside it are done.
    """
    try:
        data = {path.stem: np.load(path) for path in sorted(folder.glob("*.npy"))}
        imported, module = timed(lambda: importlib.import_module(contender.module))
        run = getattr(module, contender.function)(data, **contender.options)
        before = forget_peak()
        first, answer = timed(run)
        pipe.send((Timing(imported.wall + first.wall, imported.cpu + first.cpu), answer))
        while pipe.recv():
            pipe.send(timed(run)[0])
        pipe.send(peak_memory() - before)
        if contender.ours:
            from suffice.kernels import ahead

            ahead.finish()
    except Exception as error:
        pipe.send(error)


def forget_peak() -> int:
    """Forget the largest memory of this process so far, where the system can; return the present memory in bytes."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        pass
    return peak_memory()


def peak_memory() -> int:
    """Return the largest memory of this process since `forget_peak`, in bytes."""
    status = Path("/proc/self/status")
    if status.exists():
        lines = status.read_text().splitlines()
        return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if os.uname().sysname == "Darwin" else 1024)
