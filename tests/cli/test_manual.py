"""The commands that the documents show run in the order shown, and print what the documents say."""

import re
import shlex
from pathlib import Path

import pytest

from command_line import Answer, Command

ROOT = Path(__file__).resolve().parent.parent.parent
BLOCK = re.compile(r"^(?:`(?P<file>[\w.-]+)`:\n\n)?```(?P<language>\w*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)


def run(line: str, command: Command) -> Answer:
    """One line of a shell: a command, or a file piped into one."""
    before, _, last = line.rpartition(" | ")
    words = shlex.split(last)
    assert words[0] == "suffice", line
    stdin = Path(shlex.split(before)[1]).read_text(encoding="utf-8") if before else ""
    return command(*words[1:], stdin=stdin)


@pytest.mark.parametrize("name", ["docs/command-line.md", "README.md"])
def test_the_commands_of_a_document(
    name: str, command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text, told, count, end = (ROOT / name).read_text(encoding="utf-8"), "", 0, 0
    for block in BLOCK.finditer(text):
        if block["file"] is not None:
            Path(block["file"]).write_text(block["body"], encoding="utf-8")
        elif block["language"] == "text" and told and not text[end : block.start()].strip():
            assert told == block["body"]
        told, end = "", block.end()
        lines = block["body"].splitlines() if block["language"] == "sh" else []
        for line in lines:
            if "pip install" in line:
                continue
            answer = run(line, command)
            refused = answer.err.startswith("suffice: ")
            assert (answer.code, bool(answer.err)) == (2, True) if refused else (0, False), (line, answer.err)
            told += answer.out + answer.err
            count += 1
    assert count >= 3
    # Only the last command of the manual is a mistake.
    assert refused == (name == "docs/command-line.md")
