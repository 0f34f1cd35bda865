"""How the command starts and ends: what it loads, what it says on stderr, and its exit codes."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import suffice as sf
from command_line import Command

COMMANDS = (
    *("fit", "summarize", "merge", "round", "plan", "query", "table"),
    *("score", "predict", "sample", "convert", "show", "demo"),
)


def test_help_loads_nothing_slow(fresh_python: Callable[[str], str]) -> None:
    heavy = ("numpy", "scipy", "numba", "llvmlite", "pyarrow", "narwhals", "pandas", "tqdm", "rich", "pygments")
    code = (
        "import sys; sys.argv = ['suffice', '--help']\n"
        "from suffice.cli import main\n"
        "try:\n    main()\nexcept SystemExit as ended:\n    assert ended.code == 0\n"
        f"print('LOADED', *[name for name in {heavy!r} if name in sys.modules])\n"
        "print('OWN', *sorted(name for name in sys.modules if name.startswith('suffice')))"
    )
    text, _, loaded = fresh_python(code).partition("LOADED")
    assert text.startswith("Usage: suffice")
    names, _, own = loaded.partition("OWN")
    assert names.split() == []
    cli = {f"suffice.cli.{name}" for name in ("application", "learning", "questions")}
    expected = {"suffice", "suffice.cli", *cli, "suffice.fitting", "suffice.fitting.outlets"}
    assert set(own.split()) == expected


def test_help_names_every_command(good: Command) -> None:
    text = good("--help").out
    for name in COMMANDS:
        assert f"\n  {name} " in text
        assert "--help" in good(name, "--help").out


def test_every_command_that_answers_takes_json(good: Command) -> None:
    assert [name for name in COMMANDS if "--json" not in good(name, "--help").out] == []


def test_the_version(good: Command) -> None:
    assert good("--version").out == f"suffice {sf.__version__}\n"


def test_without_a_command_the_help_is_shown(good: Command) -> None:
    assert good().out == good("--help").out
    assert good("--debug").out == good("--help").out


@pytest.mark.parametrize("at", [0, 1, 3])
def test_debug_shows_where_wherever_it_stands(command: Command, place: Path, at: int) -> None:
    arguments = ["show", "nowhere.json", "--json"]
    arguments.insert(at, "--debug")
    answer = command(*arguments)
    assert answer.code == 2
    assert answer.err.startswith("Traceback")
    assert answer.err.endswith("suffice: No such file or directory: nowhere.json\n")
    assert "Traceback" not in command("show", "nowhere.json").err


def test_an_error_of_another_package_is_one_line_too(command: Command, place: Path) -> None:
    answer = command("fit", "visits ~ no_such_function(x)", "rows.csv", "--model", "glm")
    assert answer.code == 2
    assert answer.err.count("\n") == 1
    assert answer.err.startswith("suffice: ")


def started(*arguments: str, **options: object) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "suffice", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)  # type: ignore[call-overload, no-any-return]


def test_a_closed_pipe_is_no_error(good: Command, place: Path) -> None:
    good("fit", "rain -> wet", "rows.csv", "-o", "net.json")
    process = started("sample", "net.json", "-n", "50000")
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline() == "rain,wet\n"
    process.stdout.close()
    assert (process.stderr.read(), process.wait()) == ("", 141)
    process.stderr.close()


@pytest.mark.skipif(os.name == "nt", reason="signals of this kind are those of POSIX")
def test_an_interrupt_ends_with_one_line(place: Path) -> None:
    process = started("fit", "rain -> wet", "-", stdin=subprocess.PIPE)
    assert process.stdin is not None
    # More than a pipe holds: when all is written, the command has begun to read, and waits for an end.
    process.stdin.write("rain,wet\n" * 100_000)
    process.stdin.flush()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    assert (process.returncode, out, err) == (130, "", "suffice: interrupted.\n")


def test_a_fit_that_is_interrupted_is_written_and_said(
    command: Command, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from suffice.fitting import control as iteration

    calls, verdict = [], iteration._verdict

    def interrupt(*arguments: Any) -> str:
        calls.append(1)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return verdict(*arguments)

    monkeypatch.setattr(iteration, "_verdict", interrupt)
    answer = command("fit", "rain--wet; wet--sprinkler; rain--sprinkler", "rows.csv", "-o", "net.json", "--json")
    assert (answer.code, answer.err) == (130, "suffice: interrupted.\n")
    found = answer.json
    assert (found["stop_reason"], found["converged"], found["iterations"]) == ("interrupted", False, 3)
    assert sf.read("net.json").report_.stop_reason == "interrupted"


RING = ("fit", "rain--wet; wet--sprinkler; rain--sprinkler", "rows.csv")


def test_progress_is_shown_where_it_is_asked_for(command: Command, place: Path) -> None:
    # Standard error is no terminal here, so that nothing is shown unless it is asked for.
    assert command(*RING).err == ""
    assert "it/s" in command(*RING, "--progress").err


@pytest.mark.skipif(os.name == "nt", reason="terminals of this kind are those of POSIX")
@pytest.mark.parametrize(("option", "shown"), [((), True), (("--no-progress",), False)])
def test_progress_is_shown_on_a_terminal(place: Path, option: tuple[str, ...], shown: bool) -> None:
    import fcntl
    import pty
    import struct
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
    command = [sys.executable, "-m", "suffice", *RING, *option]
    # A bar is short enough for the buffer of a terminal, so that it may be read when all is over.
    answer = subprocess.run(command, stdout=subprocess.PIPE, stderr=theirs, text=True, check=True)
    os.write(theirs, b".")
    seen = os.read(ours, 65536)
    os.close(theirs)
    os.close(ours)
    assert answer.stdout.startswith("model              MarkovNetwork")
    assert (b"it/s" in seen) is shown
