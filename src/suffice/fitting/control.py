"""Long fits, one mechanism for all iterative models.

`iterate` drives any method that improves a `State` step by step: progress, a callback, limits on steps and seconds,
Ctrl-C, and checkpoints from which a later fit goes on to the same result, to the bit.
"""

from __future__ import annotations

import hashlib
import math
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from suffice import storage
from suffice.array_types import Floats
from suffice.checks import byte_count, generator, number, positive, whole_number
from suffice.errors import EstimateError, FileFormatError, OptionError, warn

#: Seconds between two checkpoints.
CHECKPOINT_SECONDS = 5.0
#: Options of models that steer a run, as a `Control` has them.
RUN_OPTIONS = ("max_iter", "tolerance", "max_seconds", "progress", "callback", "checkpoint")
#: Options that a fit may change when it goes on from a checkpoint: they do not say what is being solved.
LIMITS = frozenset({*RUN_OPTIONS, "threads", "memory_limit"})


@dataclass(frozen=True)
class State:
    """Where an iterative fit stands.

    `objective` is to be maximised; `gap` is the distance to stationarity that `tolerance` is compared with; `memory`
    holds whatever else the method needs to go on (arrays only, so that it can be saved).
    """

    parameters: Floats
    objective: float
    gap: float
    iteration: int = 0
    memory: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Control:
    """How long to go on, and whom to tell."""

    max_iter: int = 100
    tolerance: float = 1e-10
    max_seconds: float | None = None
    progress: bool = False
    callback: Callable[[State], Any] | None = None
    checkpoint: str | Path | None = None
    #: What is being solved, by its fingerprint: a checkpoint of another problem is refused.
    problem: str = ""

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Control:
        """By the options of a model, checked; those that it does not have stay at their defaults."""
        if options.get("threads") is not None:
            whole_number(options["threads"], "threads", otherwise=", or None for all cores")
        if options.get("memory_limit") is not None:
            byte_count(options["memory_limit"], "memory_limit")
        seed = options.get("random_state")
        if type(seed) is not int or seed < 0:  # Making a generator takes longer than a look.
            generator(seed)
        return cls(**{name: options[name] for name in RUN_OPTIONS if name in options})

    def __post_init__(self) -> None:
        """Refuse limits that make no sense."""
        whole_number(self.max_iter, "max_iter", 0)
        number(self.tolerance, "tolerance", 0)
        if self.max_seconds is not None:
            positive(self.max_seconds, "max_seconds", otherwise=" or None")
        if self.callback is not None and not callable(self.callback):
            raise OptionError(f"callback is {self.callback!r}; expected a function of the state, or None.")
        if self.checkpoint is not None:
            if not isinstance(self.checkpoint, str | os.PathLike):
                raise OptionError(f"checkpoint is {self.checkpoint!r}; expected the path of a file, or None.")
            folder = Path(self.checkpoint).absolute().parent
            if not folder.is_dir() or not os.access(folder, os.W_OK):
                raise OptionError(
                    f"The checkpoint {self.checkpoint} cannot be written: {folder} is no writable folder. Check the "
                    f"path."
                )


@dataclass(frozen=True)
class Outcome:
    """How an iterative fit ended: the best state, and why it stopped.

    `warning` says what to do where it stopped before its end; the driver warns of it, once a fit.
    """

    state: State
    converged: bool
    stop_reason: str
    history: tuple[float, ...]
    warning: str = ""


def iterate(step: Callable[[State], State], start: State, control: Control, *, problem: str = "") -> Outcome:
    """Apply `step` until the gap is below the tolerance, a limit is reached, or somebody says stop.

    Ctrl-C, a limit or a callback that returns True give the best state so far, marked as not converged. `problem`
    identifies what is being solved: a checkpoint of another problem is refused.
    """
    problem = problem or control.problem
    state, best, history = _resume(control.checkpoint, problem) or (start, start, [start.objective])
    began = last_saved = time.monotonic()
    reason = "interrupted"
    try:
        with _bar(control) as advance:
            while not (reason := _verdict(state, control, time.monotonic() - began)):
                state = replace(step(state), iteration=state.iteration + 1)
                history.append(state.objective)
                best = state if not state.objective < best.objective else best
                advance(state)
                if control.callback is not None and control.callback(state) is True:
                    reason = "callback"
                    break
                if control.checkpoint is not None and time.monotonic() - last_saved > CHECKPOINT_SECONDS:
                    _save(control.checkpoint, problem, state, best, history)
                    last_saved = time.monotonic()
    except KeyboardInterrupt:
        reason = "interrupted"
    converged = reason == "converged"
    if control.checkpoint is not None and converged:
        Path(control.checkpoint).unlink(missing_ok=True)  # a finished fit leaves nothing to go on from
    elif control.checkpoint is not None:
        _save(control.checkpoint, problem, state, best, history)
    warning = ""
    if reason in ("max_iter", "max_seconds", "stalled"):
        warning = (
            f"The fit stopped ({reason}) after {state.iteration} iterations with a gap of {state.gap:.2e}; "
            f"tolerance is {control.tolerance:.2e}. Raise {reason if reason != 'stalled' else 'tolerance'}."
        )
    return Outcome(state if converged else best, converged, reason, tuple(history), warning)


def _verdict(state: State, control: Control, seconds: float) -> str:
    """Why to stop now, or the empty string. A NaN is an error, never a convergence."""
    if math.isnan(state.objective) or math.isnan(state.gap) or not np.isfinite(state.parameters).all():
        raise EstimateError(f"Iteration {state.iteration} gave a value that is not a number; the fit was stopped.")
    if state.gap <= control.tolerance:
        return "converged"
    if state.memory.get("stalled", False):
        return "stalled"
    if state.memory.get("slow", False):
        return "slow"
    if state.iteration >= control.max_iter:
        return "max_iter"
    if control.max_seconds is not None and seconds >= control.max_seconds:
        return "max_seconds"
    return ""


@contextmanager
def _bar(control: Control) -> Iterator[Callable[[State], None]]:
    if not control.progress:
        yield lambda state: None
        return
    from tqdm.auto import tqdm

    with tqdm(total=control.max_iter, unit="it", leave=False) as bar:

        def advance(state: State) -> None:
            bar.set_postfix(objective=f"{state.objective:.6g}", gap=f"{state.gap:.1e}", refresh=False)
            bar.update(1)

        yield advance


def fingerprint(*parts: object) -> str:
    """A short digest that tells one problem from another."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(storage.dumps(part).encode())
    return digest.hexdigest()[:32]


def _container(path: str | Path) -> str:
    """Readable text where the path asks for it, else the zip, whatever the path is called."""
    return ".json" if Path(path).suffix.lower() == ".json" else ".suffice"


def _save(path: str | Path, problem: str, state: State, best: State, history: list[float]) -> None:
    """Write where the fit stands; a disk that fails is a warning, not the loss of the fit."""
    tree = {"checkpoint": problem, "state": vars(state), "best": vars(best), "history": history}
    try:
        storage.save(path, tree, ending=_container(path))
    except OSError as error:
        warn(f"The checkpoint {path} could not be written: {error}.")


def _resume(path: str | Path | None, problem: str) -> tuple[State, State, list[float]] | None:
    if path is None or not Path(path).exists():
        return None
    tree = storage.load(path, ending=_container(path))
    if not isinstance(tree, dict) or "checkpoint" not in tree:
        raise FileFormatError(f"{path} is not a checkpoint. Choose another path for checkpoint=.")
    if tree["checkpoint"] != problem:
        raise OptionError(
            f"The checkpoint {path} belongs to another fit (other data, another solver or other options). Delete it, "
            "or choose another path."
        )
    try:
        return State(**tree["state"]), State(**tree["best"]), [float(value) for value in tree["history"]]
    except (KeyError, TypeError, ValueError) as error:
        raise FileFormatError(f"The checkpoint {path} is damaged. Delete it to start anew.") from error
