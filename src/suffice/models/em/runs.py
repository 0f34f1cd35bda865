"""Several runs of EM from different starts: limits for all together, and checkpoints from which they go on."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from suffice import storage
from suffice.errors import OptionError
from suffice.iteration import Control, Outcome, State

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

    `notes` are warnings.
    """

    best: T
    outcome: Outcome
    scores: tuple[float, ...]
    evaluations: int
    notes: tuple[str, ...] = ()


def run_all(
    problem: Climber[T], starts: Sequence[Callable[[], T]], control: Control, *, acceleration: str | None,
    fingerprint: str,
) -> Runs[T]:  # fmt: skip
    """Climb from each start and keep the best.

    A callback that returns True, Ctrl-C and `max_seconds` stop all runs; the best so far is then not converged. With a
    checkpoint, finished runs are kept beside it until all are done.
    """
    began, found, stopped = time.monotonic(), [], ""
    finished = _Finished.open(control.checkpoint, fingerprint) if len(starts) > 1 else None
    for number, start in enumerate(starts):
        begun = start()
        if finished is not None and number < len(finished.outcomes):
            found.append(problem.resumed(begun, finished.outcomes[number]))
            continue
        limit = control.max_seconds
        left = None if limit is None else max(limit - (time.monotonic() - began), 1e-9)
        mine = replace(control, max_seconds=left, checkpoint=_path(control.checkpoint, number))
        found.append(problem.run(begun, mine, acceleration=acceleration, fingerprint=f"{fingerprint}/{number}"))
        stopped = found[-1][1].stop_reason
        if stopped in ("interrupted", "callback", "max_seconds") and number + 1 < len(starts):
            break
        if finished is not None:
            finished.add(found[-1][1])
    best, outcome = max(found, key=lambda run: run[1].state.objective)
    if len(found) < len(starts):
        outcome = replace(outcome, converged=False, stop_reason=stopped)
    elif finished is not None:
        finished.close()
    scores = tuple(run.state.objective for _, run in found)
    return Runs(best, outcome, scores, sum(int(run.state.memory["evaluations"]) for _, run in found))


def _path(checkpoint: str | Path | None, number: int) -> Path | None:
    """The first run has the path itself, the others their number in it."""
    if checkpoint is None or number == 0:
        return None if checkpoint is None else Path(checkpoint)
    path = Path(checkpoint)
    return path.with_name(f"{path.stem}.run{number}{path.suffix}")


@dataclass
class _Finished:
    """The outcomes of finished runs, in a file beside the checkpoint."""

    path: Path | None
    fingerprint: str
    outcomes: list[Outcome]

    @classmethod
    def open(cls, checkpoint: str | Path | None, fingerprint: str) -> _Finished:
        path = None if checkpoint is None else Path(checkpoint).with_name(f"{Path(checkpoint).name}.runs.json")
        outcomes: list[Outcome] = []
        if path is not None and path.exists():
            tree = storage.load(path)
            if not isinstance(tree, dict) or tree.get("runs_of") != fingerprint:
                raise OptionError(
                    f"The checkpoint {path} belongs to another fit (other data or other options). Delete it, or choose "
                    "another path."
                )
            outcomes = [_outcome(plain) for plain in tree["outcomes"]]
        return cls(path, fingerprint, outcomes)

    def add(self, outcome: Outcome) -> None:
        self.outcomes.append(outcome)
        if self.path is not None:
            plain = [{**vars(done), "state": vars(done.state), "history": list(done.history)} for done in self.outcomes]
            storage.save(self.path, {"runs_of": self.fingerprint, "outcomes": plain})

    def close(self) -> None:
        if self.path is not None:
            self.path.unlink(missing_ok=True)


def _outcome(plain: dict[str, Any]) -> Outcome:
    return Outcome(State(**plain["state"]), plain["converged"], plain["stop_reason"], tuple(plain["history"]))
