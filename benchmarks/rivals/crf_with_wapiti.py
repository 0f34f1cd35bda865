"""Wapiti, a program that is looked for on the path; the package ``libwapiti`` has its sources, ``make`` builds it."""

from __future__ import annotations

import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.contender import Data, Run
from benchmarks.problems.crf import C2, sequences

_STEP = re.compile(r"\[\s*(\d+)\] obj=([\d.]+)")


@dataclass(frozen=True)
class Tagger:
    """A model as the bytes of its file, so that it can be sent to another process."""

    content: bytes

    def __call__(self, X: Any) -> list[list[str]]:
        """Labels of sequences."""
        with tempfile.TemporaryDirectory() as folder:
            model, rows = Path(folder) / "model", Path(folder) / "rows"
            model.write_bytes(self.content)
            rows.write_text("".join("".join(f"{_step(names)}\n" for names in steps) + "\n" for steps in X))
            done = subprocess.run(
                ["wapiti", "label", "-l", "-m", str(model), str(rows)], capture_output=True, text=True, check=True
            )
        return [part.split() for part in done.stdout.split("\n\n") if part.strip()]


def _step(names: list[str]) -> str:
    """Features of the label (u), and of a label after another (b)."""
    return " ".join(f"u{name}" for name in names) + " b"


def fit(data: Data, *, steps: int, threads: int) -> Run:
    """Wapiti reads its file and trains; both are timed. It has a weight for every feature and every label."""
    X, y = sequences(data, "train")
    text = "".join(
        "".join(f"{_step(names)} {label}\n" for names, label in zip(sequence, labels, strict=True)) + "\n"
        for sequence, labels in zip(X, y, strict=True)
    )

    def run() -> object:
        with tempfile.TemporaryDirectory() as folder:
            rows, model = Path(folder) / "rows", Path(folder) / "model"
            rows.write_text(text)
            # Its penalty is half the square times rho2; its own windows of changes must not stop it early.
            options = ["-a", "l-bfgs", "-1", "0", "-2", str(2 * C2), "-i", str(steps), "-t", str(threads)]
            options += ["-w", "10000", "-o", "10000"]
            done = subprocess.run(
                ["wapiti", "train", *options, str(rows), str(model)], capture_output=True, text=True, check=True
            )
            last, objective = _STEP.findall(done.stderr)[-1]
            return float(objective), int(last), Tagger(model.read_bytes())

    return run
