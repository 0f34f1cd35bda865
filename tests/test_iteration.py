"""Long fits: limits, Ctrl-C, callbacks, progress and checkpoints."""

import math
import re
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from suffice import storage
from suffice.errors import EstimateError, FileFormatError, OptionError, SufficeWarning
from suffice.fitting import control as iteration
from suffice.fitting.control import Control, State, iterate


def halve(state: State) -> State:
    """Walk half of the way to zero: the objective is -x^2 and the gap |x|."""
    x = state.parameters * 0.5 + state.memory["drift"]
    return State(x, -float(x @ x), float(np.abs(x).max()), memory=state.memory)


def start() -> State:
    x = np.array([1.0, -math.pi])
    return State(x, -float(x @ x), math.pi, memory={"drift": np.array([1e-12, 0.0])})


def test_it_stops_at_the_tolerance() -> None:
    outcome = iterate(halve, start(), Control(max_iter=100, tolerance=1e-3))
    # pi / 2^12 is the first term below 1e-3
    assert (outcome.converged, outcome.stop_reason, outcome.state.iteration) == (True, "converged", 12)
    assert len(outcome.history) == 13
    assert all(np.diff(outcome.history) > 0)


def test_the_limit_is_not_convergence() -> None:
    outcome = iterate(halve, start(), Control(max_iter=5, tolerance=1e-3))
    assert re.search(r"max_iter.*after 5 iterations.*gap of 9\.8", outcome.warning)
    assert (outcome.converged, outcome.stop_reason, outcome.state.iteration) == (False, "max_iter", 5)


def test_a_limit_of_no_steps_returns_the_start() -> None:
    outcome = iterate(halve, start(), Control(max_iter=0))
    assert re.search("max_iter", outcome.warning)
    assert outcome.state.iteration == 0
    assert outcome.history == (start().objective,)


def test_seconds_run_out() -> None:
    def slow(state: State) -> State:
        time.sleep(0.02)
        return halve(state)

    outcome = iterate(slow, start(), Control(max_iter=10**6, tolerance=0.0, max_seconds=0.05))
    assert re.search("max_seconds", outcome.warning)
    assert outcome.stop_reason == "max_seconds"
    assert 1 <= outcome.state.iteration < 100


def test_interrupt_returns_the_best_so_far() -> None:
    def worse_then_stopped(state: State) -> State:
        if state.iteration == 3:
            raise KeyboardInterrupt
        moved = halve(state)
        return replace(moved, objective=-1e9) if state.iteration == 2 else moved

    outcome = iterate(worse_then_stopped, start(), Control(tolerance=0.0))
    assert (outcome.converged, outcome.stop_reason) == (False, "interrupted")
    assert outcome.state.iteration == 2  # the third step was worse
    assert len(outcome.history) == 4


def test_a_callback_sees_every_state_and_may_stop() -> None:
    seen: list[int] = []

    def watch(state: State) -> bool:
        seen.append(state.iteration)
        return state.iteration == 4

    outcome = iterate(halve, start(), Control(tolerance=0.0, callback=watch))
    assert (seen, outcome.stop_reason, outcome.converged) == ([1, 2, 3, 4], "callback", False)


@pytest.mark.parametrize("bad", [{"objective": math.nan}, {"gap": math.nan}, {"parameters": np.array([np.inf])}])
def test_not_a_number_is_an_error_that_names_the_iteration(bad: dict[str, object]) -> None:
    with pytest.raises(EstimateError, match="Iteration 1 gave a value that is not a number"):
        iterate(lambda state: replace(halve(state), **bad), start(), Control())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("option", "value"),
    [("max_iter", -1), ("max_iter", 1.5), ("tolerance", math.nan), ("tolerance", -1.0), ("max_seconds", 0.0)],
)
def test_limits_that_make_no_sense(option: str, value: object) -> None:
    with pytest.raises(OptionError, match=f"{option} is {value!r}"):
        Control(**{option: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["fit.json", "fit.suffice", "fit.checkpoint"])
def test_a_checkpoint_resumes_to_the_same_bits(tmp_path: Path, name: str) -> None:
    whole = iterate(halve, start(), Control(max_iter=40, tolerance=1e-9))
    path = tmp_path / name
    assert iterate(halve, start(), Control(max_iter=7, tolerance=1e-9, checkpoint=path), problem="p").warning
    resumed = iterate(halve, start(), Control(max_iter=40, tolerance=1e-9, checkpoint=path), problem="p")
    assert resumed.state.iteration == whole.state.iteration
    assert resumed.state.parameters.tobytes() == whole.state.parameters.tobytes()
    assert resumed.history == whole.history


def test_a_checkpoint_is_written_while_the_fit_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(iteration, "CHECKPOINT_SECONDS", 0.0)
    path = tmp_path / "fit.json"

    def dies(state: State) -> State:
        if state.iteration == 6:
            raise RuntimeError("power cut")
        return halve(state)

    with pytest.raises(RuntimeError, match="power cut"):
        iterate(dies, start(), Control(tolerance=1e-9, checkpoint=path), problem="p")
    resumed = iterate(halve, start(), Control(tolerance=1e-9, checkpoint=path), problem="p")
    whole = iterate(halve, start(), Control(tolerance=1e-9))
    assert resumed.state.parameters.tobytes() == whole.state.parameters.tobytes()


def test_an_interrupted_fit_resumes(tmp_path: Path) -> None:
    path = tmp_path / "fit.json"

    def stopped(state: State) -> State:
        if state.iteration == 6:
            raise KeyboardInterrupt
        return halve(state)

    first = iterate(stopped, start(), Control(tolerance=1e-9, checkpoint=path), problem="p")
    assert first.state.iteration == 6
    resumed = iterate(halve, start(), Control(tolerance=1e-9, checkpoint=path), problem="p")
    assert (
        resumed.state.parameters.tobytes()
        == iterate(halve, start(), Control(tolerance=1e-9)).state.parameters.tobytes()
    )


def test_a_checkpoint_of_another_fit_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "fit.json"
    assert iterate(halve, start(), Control(tolerance=1e-3, max_iter=2, checkpoint=path), problem="one").warning
    with pytest.raises(OptionError, match="belongs to another fit"):
        iterate(halve, start(), Control(tolerance=1e-3, checkpoint=path), problem="two")


def test_a_file_that_is_no_checkpoint_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    storage.save(path, {"something": "else"})
    with pytest.raises(FileFormatError, match="not a checkpoint"):
        iterate(halve, start(), Control(checkpoint=path), problem="one")


def test_progress_is_silent_unless_asked(capfd: pytest.CaptureFixture[str]) -> None:
    iterate(halve, start(), Control(tolerance=1e-3))
    assert capfd.readouterr() == ("", "")
    iterate(halve, start(), Control(tolerance=1e-3, progress=True))
    out, err = capfd.readouterr()
    assert out == ""
    assert "it" in err


def test_a_finished_fit_leaves_no_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "fit.json"
    iterate(halve, start(), Control(tolerance=1e-3, checkpoint=path), problem="one")
    assert not path.exists()


def test_a_resumed_fit_remembers_its_best_state(tmp_path: Path) -> None:
    objectives = [0.0, 5.0, 1.0, 2.0, 3.0]

    def wander(state: State) -> State:
        return State(np.array([float(state.iteration + 1)]), objectives[state.iteration + 1], 1.0)

    def run(max_iter: int, path: Path | None) -> State:
        outcome = iterate(wander, State(np.zeros(1), 0.0, 1.0), Control(max_iter, 0.0, checkpoint=path), problem="w")
        assert outcome.warning
        return outcome.state

    path = tmp_path / "fit.json"
    run(2, path)
    assert run(4, path).objective == run(4, None).objective == 5.0


def test_a_checkpoint_that_cannot_be_written_is_noticed_first(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="no writable folder"):
        Control(checkpoint=tmp_path / "missing" / "fit.json")


def test_a_disk_that_fails_does_not_lose_the_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: object, **options: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(storage, "save", full)
    stop = Control(9, 0.0, callback=lambda state: state.iteration == 5, checkpoint=tmp_path / "fit.json")
    with pytest.warns(SufficeWarning, match="no space left"):
        outcome = iterate(halve, start(), stop, problem="p")
    assert outcome.state.iteration == 5


def test_a_damaged_checkpoint_is_refused(tmp_path: Path) -> None:
    storage.save(tmp_path / "fit.json", {"checkpoint": "p", "state": 3})
    with pytest.raises(FileFormatError, match="damaged"):
        iterate(halve, start(), Control(checkpoint=tmp_path / "fit.json"), problem="p")


@pytest.mark.parametrize(
    ("option", "value"), [("tolerance", "a"), ("max_seconds", "a"), ("callback", 5), ("tolerance", None)]
)
def test_options_of_the_wrong_type(option: str, value: object) -> None:
    with pytest.raises(OptionError, match=f"{option} is"):
        Control(**{option: value})  # type: ignore[arg-type]
