"""What the demo makes: a fitted model with what is worth saying about it."""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Say = Callable[[str], None]

HERE = Path(__file__).parent
#: Lines of a receipt that the demo prints; the reports hold all of them.
SHORT = ("rows", "estimate", "method", "iterations", "log-likelihood", "moment gap", "from optimum", "warning")
#: Most characters of a line of a short receipt.
WIDE = 110


@dataclass(frozen=True)
class Exhibit:
    """A fitted model: the stem of its files, a title, what it is, and what came out.

    The parts of `finding` are sentences, of one line, and tables, of several.
    """

    name: str
    title: str
    about: str
    finding: tuple[str, ...]
    model: Any

    def show(self, folder: Path, say: Say) -> None:
        """Print finding and receipt; write the model and its report."""
        finding = "\n".join(self.finding)
        say(f"--- {self.title}\n{self.about}\n\n{finding}\n")
        lines = [f"{label:<18} {text}" for label, text in self.model.report_.lines() if label in SHORT]
        say("\n".join(line if len(line) <= WIDE else line[: WIDE - 3] + "..." for line in lines) + "\n")
        self.model.write(folder / f"{self.name}.json")
        self.model.report_.to_html(folder / f"{self.name}.html")


def bundled(name: str) -> Path:
    """The path of a bundled file."""
    return HERE / name


def unpack(folder: Path) -> None:
    """Write the bundled data as plain files, to be used by commands."""
    folder.mkdir(parents=True, exist_ok=True)
    for packed in sorted(HERE.glob("*.gz")):
        with gzip.open(packed, "rb") as source, (folder / packed.stem).open("wb") as target:
            shutil.copyfileobj(source, target)
