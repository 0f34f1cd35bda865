"""The command run in this process, in an empty folder with a table."""

import io
import sys
from pathlib import Path

import pytest

from command_line import Answer, Command, table, write_csv
from suffice.cli import main


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Run ``suffice`` with some arguments; `stdin` is what it can read."""

    def run(*arguments: object, stdin: str = "") -> Answer:
        monkeypatch.setattr(sys, "argv", ["suffice", *map(str, arguments)])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode()), encoding="utf-8"))
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        return Answer(int(ended.value.code or 0), said.out, said.err)

    return run


@pytest.fixture
def good(command: Command) -> Command:
    """Run a command that must succeed in silence on stderr."""

    def run(*arguments: object, stdin: str = "") -> Answer:
        answer = command(*arguments, stdin=stdin)
        assert (answer.code, answer.err) == (0, "")
        return answer

    return run


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to stand in, with ``rows.csv``."""
    monkeypatch.chdir(tmp_path)
    write_csv("rows.csv", table())
    return tmp_path
