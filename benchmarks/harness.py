"""Run the contenders of a problem in turns, as a user meets them, and compare them.

Every contender runs in an ordinary process of one thread, from the object in hand to the numbers read. Ours runs in
two: one finds no compiled loops on the machine, as after an installation; the next finds what the first has left. A
call is the tenth at least when it counts as a repeat.
"""

from __future__ import annotations

import compileall
import contextlib
import multiprocessing
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from benchmarks.contender import Contender, Data, Timing, serve

#: One thread for all, unless a contender says otherwise; the library decides by itself what it compiles.
ORDINARY = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "POLARS_MAX_THREADS": "1",
    "SUFFICE_THREADS": "1",
    "SUFFICE_KERNELS": "auto",
    "PYTHONDONTWRITEBYTECODE": "",
}
#: Calls before those that count, the first included; fewer where they take longer than `PATIENCE` seconds together.
BEFORE, PATIENCE = 9, 20.0


class Problem(Protocol):
    """A problem to time: a module of `benchmarks.problems`, or what its `cases` yields."""

    NAME: str
    ROWS: int
    REPEATS: int
    CONTENDERS: Sequence[Contender]

    def title(self, rows: int) -> str:
        """Say what is computed."""
        ...

    def make(self, rows: int, seed: int) -> Data:
        """Draw an instance: graph, parameters and data."""
        ...

    def judge(self, data: Data) -> Callable[[str, Any], str]:
        """Return a function that says how good the answer of a contender is."""
        ...


@dataclass(frozen=True)
class Result:
    """What a contender achieved: its best late call, its first ones, bytes beyond the data, a word on the answer.

    process: the first call of a process, import included; environment: the same where nothing was ever compiled.
    Neither is there for one that was tuned; only ours compiles.
    """

    contender: Contender
    late: Timing
    process: Timing | None
    environment: Timing | None
    memory: int
    quality: str

    @property
    def name(self) -> str:
        return self.contender.name


@dataclass(frozen=True)
class Outcome:
    """All results of a problem, who could not take part, and who was left out as too slow for so many rows."""

    title: str
    seed: int
    results: tuple[Result, ...]
    absent: tuple[str, ...]
    repeats: int
    slow: tuple[str, ...] = ()
    load: float = 0.0


def run(problem: Problem, rows: int, repeats: int, only: Sequence[str] = (), *, seed: int) -> Outcome:
    """Time every contender whose package is installed, or those whose names contain a word of `only`."""
    chosen = [c for c in problem.CONTENDERS if not only or any(word in c.name for word in only)]
    present = [contender for contender in chosen if contender.present and rows <= (contender.most_rows or rows)]
    absent = tuple(f"{contender.name} ({contender.requires})" for contender in chosen if not contender.present)
    slow = tuple(contender.name for contender in chosen if contender.present and contender not in present)
    data = problem.make(rows, seed)
    judge = problem.judge(data)
    _compile_bytecode()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for key, array in data.items():
            np.save(folder / f"{key}.npy", array)
        del data
        results = tuple(_race(present, folder, repeats, judge))
    return Outcome(problem.title(rows), seed, results, absent, repeats, slow, _load())


def _compile_bytecode() -> None:
    """As an installation does, so that a fresh process is not one that finds bare sources."""
    root = Path(__file__).resolve().parent
    for folder in (root, root.parent / "src" / "suffice"):
        compileall.compile_dir(folder, quiet=2)


def _load() -> float:
    """What else the machine does: processes that want to run."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0


def _race(
    contenders: Sequence[Contender], folder: Path, repeats: int, judge: Callable[[str, Any], str]
) -> Iterator[Result]:
    """Start all, let them call several times one by one, then repeat in turns."""
    with contextlib.ExitStack() as stack:
        caches = [Path(stack.enter_context(tempfile.TemporaryDirectory())) for _ in contenders]
        environments = [
            _first_of_environment(contender, folder, cache) if contender.ours and not contender.tuned else None
            for contender, cache in zip(contenders, caches, strict=True)
        ]
        pipes = [stack.enter_context(_process(c, folder, cache)) for c, cache in zip(contenders, caches, strict=True)]
        firsts = [_received(pipe) for pipe in pipes]
        for contender, pipe, (first, _) in zip(contenders, pipes, firsts, strict=True):
            spent, calls = first.cpu, 1
            while not contender.once and calls < BEFORE and spent < PATIENCE:
                spent, calls = spent + _again(pipe).cpu, calls + 1
        timings: list[list[Timing]] = [[] for _ in pipes]
        for _ in range(repeats):
            for contender, pipe, calls_of in zip(contenders, pipes, timings, strict=True):
                if not contender.once:
                    calls_of.append(_again(pipe))
        for at, (contender, pipe, (first, answer)) in enumerate(zip(contenders, pipes, firsts, strict=True)):
            pipe.send(False)
            counted = timings[at] or [first]
            late = Timing(min(t.wall for t in counted), min(t.cpu for t in counted))
            process = None if contender.tuned else first
            yield Result(contender, late, process, environments[at], _received(pipe), judge(contender.name, answer))


def _first_of_environment(contender: Contender, folder: Path, cache: Path) -> Timing:
    """The first call of a process that finds nothing compiled; it leaves there what it has compiled."""
    with _process(contender, folder, cache) as pipe:
        first, _ = _received(pipe)
        pipe.send(False)
        _received(pipe)
    return first  # type: ignore[no-any-return]


def _again(pipe: Connection) -> Timing:
    pipe.send(True)
    return _received(pipe)  # type: ignore[no-any-return]


@contextlib.contextmanager
def _process(contender: Contender, folder: Path, cache: Path) -> Iterator[Connection]:
    """Run a contender in a fresh process; the previous one has made its first call before the next one starts."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    with _environment({**ORDINARY, "NUMBA_CACHE_DIR": str(cache), **contender.environment}):
        process = context.Process(target=serve, args=(contender, folder, there), daemon=True)
        process.start()
    try:
        here.poll(None)
        yield here
        process.join()
    finally:
        process.kill()


@contextlib.contextmanager
def _environment(changes: Mapping[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update(changes)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _received(pipe: Connection) -> Any:
    message = pipe.recv()
    if isinstance(message, Exception):
        raise message
    return message
