"""Several runs of EM from different starts: limits for all together, and checkpoints from which they go on."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from suffice import storage
from suffice.errors import EstimateError, OptionError
from suffice.fitting.control import Control, Outcome, State

#: Objectives that differ by less than this share of them differ by rounding.
TIED = 1e-12
#: The parameters of a model, as its EM takes and gives them.
T = TypeVar("T")


class Climber(Protocol[T]):
    """EM from one start."""

    def run(self, start: T, control: Control, *, acceleration: str | None, fingerprint: str) -> tuple[T, Outcome]:
        """Climb from a start; returns the parameters where it ended and how."""
        ...

    def resumed(self, start: T, outcome: Outcome) -> tuple[T, Outcome]:
        """A run that was finished before, from the same start."""
        ...


@dataclass(frozen=True)
class Runs(Generic[T]):
    """What all runs came to: the best one, the objectives of all, and how often statistics were expected.

    The objective of a run that failed is -inf. `notes` are warnings.
    """

    best: T
    outcome: Outcome
    scores: tuple[float, ...]
    evaluations: int
    notes: tuple[str, ...] = ()


def run_all(
    problem: Climber[T],
    starts: Sequence[Callable[[], T]],
    control: Control,
    *,
    acceleration: str | None,
    fingerprint: str,
) -> Runs[T]:
    """Climb from each start and keep the best; a run that fails is left out, unless all do.

    A callback that returns True, Ctrl-C and `max_seconds` stop all runs; the best so far is then not converged. With a
    checkpoint, finished runs are kept beside it until all are done.
    """
    began, stopped = time.monotonic(), ""
    ended: list[tuple[T, Outcome] | EstimateError] = []
    finished = _Finished.open(control.checkpoint, fingerprint) if len(starts) > 1 else None
    for number, start in enumerate(starts):
        if finished is not None and number < len(finished.outcomes):
            done = finished.outcomes[number]
            ended.append(EstimateError(done) if isinstance(done, str) else problem.resumed(start(), done))
            continue
        limit = control.max_seconds
        left = None if limit is None else max(limit - (time.monotonic() - began), 1e-9)
        mine = replace(control, max_seconds=left, checkpoint=_path(control.checkpoint, number))
        try:
            run = problem.run(start(), mine, acceleration=acceleration, fingerprint=f"{fingerprint}/{number}")
        except EstimateError as error:
            ended.append(error)
        else:
            ended.append(run)
            stopped = run[1].stop_reason
            if stopped in ("interrupted", "callback", "max_seconds") and number + 1 < len(starts):
                break
        if finished is not None:
            last = ended[-1]
            finished.add(str(last) if isinstance(last, EstimateError) else last[1])
    return _kept(ended, len(starts), stopped, finished)


def first_best(objectives: Sequence[float]) -> int:
    """The first of those that no other exceeds by more than rounding.

    Runs often end at one maximum, with the states in another order. Which one is the highest then depends on the last
    bits, and the answer must not.
    """
    highest = max(objectives)
    if not math.isfinite(highest):
        return objectives.index(highest)
    return next(number for number, value in enumerate(objectives) if value >= highest - TIED * max(abs(highest), 1.0))


def _kept(
    runs: Sequence[tuple[T, Outcome] | EstimateError], wanted: int, stopped: str, finished: _Finished | None
) -> Runs[T]:
    """The best run of those that ended; the error of the first where none did."""
    ended = [run for run in runs if not isinstance(run, EstimateError)]
    if not ended:
        raise next(run for run in runs if isinstance(run, EstimateError))
    best, outcome = ended[first_best([run[1].state.objective for run in ended])]
    if len(runs) < wanted:
        outcome = replace(outcome, converged=False, stop_reason=stopped)
    elif finished is not None:
        finished.close()
    scores = tuple(-math.inf if isinstance(run, EstimateError) else run[1].state.objective for run in runs)
    notes = tuple(f"run {number} failed: {run}" for number, run in enumerate(runs) if isinstance(run, EstimateError))
    return Runs(best, outcome, scores, sum(int(run.state.memory["evaluations"]) for _, run in ended), notes)


def _path(checkpoint: str | Path | None, number: int) -> Path | None:
    """The first run has the path itself, the others their number in it."""
    if checkpoint is None or number == 0:
        return None if checkpoint is None else Path(checkpoint)
    path = Path(checkpoint)
    return path.with_name(f"{path.stem}.run{number}{path.suffix}")


@dataclass
class _Finished:
    """The outcomes of finished runs, in a file beside the checkpoint; of a run that failed, why."""

    path: Path | None
    fingerprint: str
    outcomes: list[Outcome | str]

    @classmethod
    def open(cls, checkpoint: str | Path | None, fingerprint: str) -> _Finished:
        path = None if checkpoint is None else Path(checkpoint).with_name(f"{Path(checkpoint).name}.runs.json")
        outcomes: list[Outcome | str] = []
        if path is not None and path.exists():
            tree = storage.load(path)
            if not isinstance(tree, dict) or tree.get("runs_of") != fingerprint:
                raise OptionError(
                    f"The checkpoint {path} belongs to another fit (other data or other options). Delete it, or choose "
                    "another path."
                )
            outcomes = [plain if isinstance(plain, str) else _outcome(plain) for plain in tree["outcomes"]]
        return cls(path, fingerprint, outcomes)

    def add(self, outcome: Outcome | str) -> None:
        self.outcomes.append(outcome)
        if self.path is not None:
            plain = [done if isinstance(done, str) else _plain(done) for done in self.outcomes]
            storage.save(self.path, {"runs_of": self.fingerprint, "outcomes": plain})

    def close(self) -> None:
        if self.path is not None:
            self.path.unlink(missing_ok=True)


def _plain(done: Outcome) -> dict[str, Any]:
    return {**vars(done), "state": vars(done.state), "history": list(done.history)}


def _outcome(plain: dict[str, Any]) -> Outcome:
    return Outcome(**{**plain, "state": State(**plain["state"]), "history": tuple(plain["history"])})
