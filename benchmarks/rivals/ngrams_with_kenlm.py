"""KenLM's ``lmplz``, a program looked for on the path; the package ``kenlm`` has its sources, and CMake builds it."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from benchmarks.contender import Data, Run


def smooth(data: Data, order: int) -> Run:
    """Counts, modified Kneser-Ney, and the ARPA file that it always writes; 2 GB are its buffer."""
    path = str(data["path"])

    def run() -> None:
        with tempfile.TemporaryDirectory() as folder:
            # A text in which every word is frequent has no counts of one, from which it would take the discounts.
            options = ["-o", str(order + 1), "-S", "2G", "-T", folder, "--discount_fallback"]
            options += ["--arpa", str(Path(folder) / "model.arpa")]
            subprocess.run(["lmplz", *options, "--text", path], check=True, capture_output=True)

    return run
