"""Loops that are compiled by another process while NumPy works."""

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from suffice.kernels import ahead


@pytest.fixture(autouse=True)
def beside(monkeypatch: pytest.MonkeyPatch, begin_beside: Callable[[str], bool]) -> None:
    monkeypatch.setattr(ahead, "begin", begin_beside)


@pytest.fixture(autouse=True)
def _a_new_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    for name in ("_ready", "_asked"):
        monkeypatch.setattr(ahead, name, set())
    monkeypatch.setattr(ahead, "_compilers", {})


BESIDE = """
from suffice.kernels import ahead
print(ahead.ready("logistic rows"))
assert ahead.begin("logistic rows")
assert ahead.begin("logistic rows")
ahead.finish()
print(ahead.ready("logistic rows"), ahead.ready("chain"))
import numba
from suffice.kernels import choice, row_distributions
import numpy as np
with choice.force("compiled"):
    row_distributions.logistic_rows(np.zeros(2), np.ones(2))
from suffice.kernels.compiled.exponentials import logistic
print(sum(logistic.stats.cache_hits.values()), sum(logistic.stats.cache_misses.values()))
"""


def test_another_process_compiles_what_this_one_then_finds(fresh_python: Callable[[str], str]) -> None:
    assert fresh_python(BESIDE).splitlines() == ["False", "True False", "1 0"]
    assert ahead.ready("logistic rows")


def test_a_process_that_ends_leaves_the_compiler_at_work(fresh_python: Callable[[str], str]) -> None:
    assert fresh_python("from suffice.kernels import ahead; print(ahead.begin('add by code'))") == "True\n"
    until = time.monotonic() + 300
    while not ahead.ready("add by code") and time.monotonic() < until:
        time.sleep(0.05)
    assert ahead.ready("add by code")


def test_one_process_at_a_time_compiles_a_kernel() -> None:
    with ahead.claimed("a") as mine:
        assert mine
        with ahead.claimed("a") as again, ahead.claimed("b") as other:
            assert not again
            assert other
        assert not ahead.ready("a")
    assert ahead.ready("a")
    with ahead.claimed("a") as done:
        assert not done


def test_what_fails_is_not_marked_and_may_be_claimed_again() -> None:
    with pytest.raises(ValueError, match="no loop"), ahead.claimed("a"):
        raise ValueError("no loop")
    with ahead.claimed("a") as mine:
        assert mine


def test_the_claim_of_a_process_that_is_gone_lapses() -> None:
    mark = ahead._mark("a")
    assert mark is not None
    lock = mark.with_suffix(".lock")
    lock.touch()
    with ahead.claimed("a") as mine:
        assert not mine
    os.utime(lock, (0, 0))
    with ahead.claimed("a") as mine:
        assert mine


def test_other_loops_or_another_numba_are_compiled_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    with ahead.claimed("a"):
        pass
    monkeypatch.setattr(ahead, "_version", lambda: "another")
    monkeypatch.setattr(ahead, "_ready", set())
    assert not ahead.ready("a")


def test_a_program_that_embeds_python_compiles_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", "/usr/bin/spreadsheet")
    assert not ahead.begin("a")


def test_where_nothing_can_be_written_each_process_compiles_by_itself(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file"))
    assert not ahead.begin("a")
    assert not ahead.ready("a")


def test_waiting_for_longer_than_a_second_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answers: Iterator[bool] = iter([False, False, True])
    monkeypatch.setattr(ahead, "ready", lambda kernel: next(answers))
    monkeypatch.setattr(ahead, "begin", lambda kernel: True)
    monkeypatch.setattr(ahead, "SAY_AFTER", 0.0)
    ahead.wait("chain")
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "suffice: compiling loops (chain), once on this machine: about 14 seconds ...\n"
