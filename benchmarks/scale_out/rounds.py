"""Rounds: how long one takes and what travels, from files, on Dask and on Spark."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.scale_out.engines import ENGINES, LOCAL, alone, present, started, tree_seconds
from benchmarks.scale_out.fits import ROUNDS
from benchmarks.scale_out.rows import write
from suffice.sources.held import Held
from suffice.sources.partitioned import PartitionedSource

#: Rows of the table that every process fits first, so that imports and compiled code are there.
WARM_ROWS = 2000


@dataclass(frozen=True)
class Round:
    """One question to held rows: when it was asked and answered, its CPU time, and the bytes that travelled for it."""

    question: Hashable
    asked: float
    answered: float
    cpu: float
    out: int
    back: int


@dataclass
class Watch:
    """Sees every round that a fit asks in this process, and every source of rows elsewhere, by a clock."""

    clock: Callable[[], float] = time.perf_counter
    cpu: Callable[[], float] = tree_seconds
    rounds: list[Round] = field(default_factory=list)
    sources: list[PartitionedSource] = field(default_factory=list)

    def begin(self) -> None:
        """Watch from now on, until the process ends."""
        ask: Callable[..., Any] = Held.sum
        open_frame: Callable[..., None] = PartitionedSource.__init__

        def watched(held: Held[Any], parameters: Any, by: Any = None, **chosen: Any) -> Any:
            out, back, cpu, asked = held.bytes_out, held.bytes_back, self.cpu(), self.clock()
            answer = ask(held, parameters, by, **chosen)
            answered, cpu = self.clock(), self.cpu() - cpu
            # EM sends its question along with the parameters.
            question = parameters[0] if by is None and isinstance(parameters, tuple) else by
            name = getattr(question, "__name__", type(question).__name__)
            travelled = held.bytes_out - out, held.bytes_back - back
            self.rounds.append(Round(name, asked, answered, cpu, *travelled))
            return answer

        def seen(source: PartitionedSource, *arguments: Any) -> None:
            open_frame(source, *arguments)
            self.sources.append(source)

        Held.sum = watched  # type: ignore[assignment, method-assign]
        PartitionedSource.__init__ = seen  # type: ignore[assignment, method-assign]

    @property
    def longest(self) -> list[Round]:
        """The rounds of the question that took most of the time: the step of the solver."""
        seconds: dict[Hashable, float] = {}
        for one in self.rounds:
            seconds[one.question] = seconds.get(one.question, 0.0) + one.answered - one.asked
        step = max(seconds, key=lambda question: seconds[question])
        return [one for one in self.rounds if one.question == step]


@dataclass(frozen=True)
class Cost:
    """What a fit took: seconds to the first answer, of a median round and in all; bytes of such a round; rounds.

    `pulled` is the number of rows that were brought into the process that asks.
    """

    first: float
    round: float
    round_cpu: float
    total: float
    total_cpu: float
    out: float
    back: float
    rounds: int
    pulled: int
    parameters: NDArray[Any]


def measure(name: str, engine: str, folder: Path, iterations: int) -> Cost:
    """Fit in this process, after a small fit."""
    warnings.simplefilter("ignore")  # A fit of few iterations says that it has not converged.
    fit, watch = ROUNDS[name], Watch()
    with started(engine) as opened:
        fit.fitted(opened(folder / "warm"), max_iter=2)
        watch.begin()
        table, cpu, begin = opened(folder / "rows"), tree_seconds(), time.perf_counter()
        model = fit.fitted(table, max_iter=iterations)
        total, total_cpu = time.perf_counter() - begin, tree_seconds() - cpu
        parameters = fit.parameters(model)
    steps = watch.longest
    return Cost(
        watch.rounds[0].answered - begin,
        median(step.answered - step.asked for step in steps),
        median(step.cpu for step in steps),
        total,
        total_cpu,
        median(step.out for step in steps),
        median(step.back for step in steps),
        len(watch.rounds),
        sum(source.pulled for source in watch.sources),
        parameters,
    )


HEAD = (
    "",
    "first answer s",
    "round s",
    "round CPU s",
    "x local CPU",
    "kB out",
    "kB back",
    "rounds",
    "fit s",
    "fit CPU s",
    "difference",
    "rows here",
)


def draw(name: str, folder: Path, rows: int, seed: int) -> None:
    """The table, and the small one."""
    fit = ROUNDS[name]
    write(folder / "rows", fit.draw, rows // fit.share, seed)
    write(folder / "warm", fit.draw, min(WARM_ROWS, rows), seed)


def compare(
    name: str, folder: Path, rows: int, seed: int, iterations: int, engines: Iterable[str]
) -> list[tuple[str, ...]]:
    """The table of a fit: each engine in a process of its own, the local reader first."""
    alone(draw, name, folder, rows, seed)
    local: Cost = alone(measure, name, LOCAL, folder, iterations)
    cells: list[tuple[str, ...]] = []
    for engine in (LOCAL, *(engine for engine in ENGINES if engine != LOCAL and engine in engines and present(engine))):
        cost = local if engine == LOCAL else alone(measure, name, engine, folder, iterations)
        away = np.abs(cost.parameters - local.parameters) / np.maximum(1.0, np.abs(local.parameters))
        cells.append(
            (
                engine,
                f"{cost.first:.2f}",
                f"{cost.round:.3f}",
                f"{cost.round_cpu:.3g}",
                f"{cost.round_cpu / local.round_cpu:.2f}" if local.round_cpu else "",
                f"{cost.out / 1e3:.1f}",
                f"{cost.back / 1e3:.1f}",
                str(cost.rounds),
                f"{cost.total:.3g}",
                f"{cost.total_cpu:.3g}",
                f"{away.max():.0e}",
                "read here" if engine == LOCAL else str(cost.pulled),
            )
        )
    return cells
