"""Run the contenders of a problem in turns and compare them."""

from __future__ import annotations

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


class Problem(Protocol):
    """A problem to time: a module of `benchmarks.problems`."""

    NAME: str
    ROWS: int
    REPEATS: int
    FLOOR: str
    OURS: str
    CONTENDERS: Sequence[Contender]

    def title(self, rows: int) -> str:
        """Say what is computed."""
        ...

    def make(self, rows: int) -> Data:
        """Make the data."""
        ...

    def judge(self, data: Data) -> Callable[[str, Any], str]:
        """Return a function that says how good the answer of a contender is."""
        ...


@dataclass(frozen=True)
class Result:
    """What a contender achieved: seconds (minima over repeats), bytes beyond the data, a word on the answer."""

    name: str
    wall: float
    cpu: float
    first: float
    memory: int
    quality: str


@dataclass(frozen=True)
class Outcome:
    """All results of a problem, who could not take part, and who was left out as too slow for so many rows."""

    title: str
    results: tuple[Result, ...]
    absent: tuple[str, ...]
    repeats: int
    slow: tuple[str, ...] = ()


def run(problem: Problem, rows: int, repeats: int, only: Sequence[str] = ()) -> Outcome:
    """Time every contender whose package is installed, or those whose names contain a word of `only`."""
    chosen = [c for c in problem.CONTENDERS if not only or any(word in c.name for word in only)]
    present = [contender for contender in chosen if contender.present and rows <= (contender.most_rows or rows)]
    absent = tuple(f"{contender.name} ({contender.requires})" for contender in chosen if not contender.present)
    slow = tuple(contender.name for contender in chosen if contender.present and contender not in present)
    data = problem.make(rows)
    judge = problem.judge(data)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for key, array in data.items():
            np.save(folder / f"{key}.npy", array)
        del data
        results = tuple(_race(present, folder, repeats, judge))
    return Outcome(problem.title(rows), results, absent, repeats, slow)


def _race(
    contenders: Sequence[Contender], folder: Path, repeats: int, judge: Callable[[str, Any], str]
) -> Iterator[Result]:
    """Start all, let them warm up one by one, then repeat in turns."""
    with contextlib.ExitStack() as stack:
        pipes = [stack.enter_context(_process(contender, folder)) for contender in contenders]
        firsts = [_received(pipe) for pipe in pipes]
        timings: list[list[Timing]] = [[] for _ in pipes]
        for _ in range(repeats):
            for contender, pipe, found in zip(contenders, pipes, timings, strict=True):
                if not contender.once:
                    pipe.send(True)
                    found.append(_received(pipe))
        for contender, pipe, found, (first, answer) in zip(contenders, pipes, timings, firsts, strict=True):
            pipe.send(False)
            memory = _received(pipe)
            counted = found or [first]
            wall, cpu = min(t.wall for t in counted), min(t.cpu for t in counted)
            yield Result(contender.name, wall, cpu, first.wall, memory, judge(contender.name, answer))


@contextlib.contextmanager
def _process(contender: Contender, folder: Path) -> Iterator[Connection]:
    """Run a contender in a fresh process; the previous one has warmed up before the next one starts."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    with _environment(contender.environment):
        process = context.Process(target=serve, args=(contender, folder, there), daemon=True)
        process.start()
    try:
        here.poll(None)
        yield here
    finally:
        process.join(timeout=10)
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
