"""All marginals given evidence, in networks from elsewhere: again and again, and first thing in a fresh process."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.contender import Contender, Data, Run
from benchmarks.network import FOLDER

NAMES = ("alarm", "hailfinder", "munin1")
#: Number of nodes without children that are observed, and of cases that are asked in turns.
OBSERVED, CASES = 3, 40

_OURS = "benchmarks.rivals.calibration_with_suffice"
_PYAGRUM = "benchmarks.rivals.calibration_with_pyagrum"
_PGMPY = "benchmarks.rivals.calibration_with_pgmpy"

# Kept until the process ends: the contenders read the file from processes of their own.
_folders: list[tempfile.TemporaryDirectory[str]] = []


@dataclass(frozen=True)
class Calibration:
    """One network of the shared data; `rows` has no meaning here."""

    file: str

    ROWS = 1

    @property
    def NAME(self) -> str:  # noqa: N802  a constant of the problem
        return f"calibration, {self.file}"

    @property
    def large(self) -> bool:
        """Tables of tens of millions of cells: one answer takes the others minutes and gigabytes."""
        return self.file == "munin1"

    @property
    def REPEATS(self) -> int:  # noqa: N802  a constant of the problem
        return 1 if self.large else 9

    @property
    def CONTENDERS(self) -> tuple[Contender, ...]:  # noqa: N802  a constant of the problem
        lazy = Contender("pyAgrum, lazy propagation", _PYAGRUM, "repeated", {"engine": "LazyPropagation"}, "pyagrum")
        shafer = {"engine": "ShaferShenoyInference"}
        slow = (
            Contender("pyAgrum, Shafer-Shenoy", _PYAGRUM, "repeated", shafer, "pyagrum"),
            Contender("pgmpy, variable elimination", _PGMPY, "repeated", requires="pgmpy"),
            Contender("pyAgrum, read and asked in a process", _PYAGRUM, "fresh", requires="pyagrum", work="fresh"),
        )
        ours = (
            Contender("suffice", _OURS, "repeated"),
            Contender("suffice, read and asked in a process", _OURS, "fresh", work="fresh"),
        )
        return (lazy, *ours) if self.large else (lazy, *slow, *ours)

    def title(self, rows: int) -> str:
        return f"All marginals of {self.file.upper()} given {OBSERVED} observed leaves"

    def make(self, rows: int, seed: int) -> Data:
        """The path of the unpacked file, and the evidence as text: cases to be asked in turns."""
        import suffice as sf

        folder = tempfile.TemporaryDirectory()
        _folders.append(folder)
        path = Path(folder.name) / f"{self.file}.bif"
        path.write_bytes(gzip.decompress((FOLDER / f"{self.file}.bif.gz").read_bytes()))
        net = sf.read(path)
        busy = {parent for name in net.nodes for parent in net.parents(name)}
        leaves = [name for name in net.nodes if name not in busy]
        leaves = [leaves[at] for at in np.random.default_rng(seed).permutation(len(leaves))[:OBSERVED]]
        # All cases are possible: they are rows drawn from the network.
        drawn = net.sample(1000, random_state=seed)
        rows_of = list(dict.fromkeys(zip(*(drawn[leaf].tolist() for leaf in leaves), strict=True)))
        evidence = [dict(zip(leaves, row, strict=True)) for row in rows_of[:CASES]]
        states = {name: list(net.states(name)) for name in net.nodes}
        return {"path": np.array(str(path)), "question": np.array(json.dumps({"evidence": evidence, "states": states}))}

    def judge(self, data: Data) -> Callable[[str, Any], str]:
        """Largest difference of a probability of the first case from the first contender that answers."""
        first: list[Any] = []

        def verdict(name: str, answer: Any) -> str:
            if answer is None:
                return ""
            if not first:
                first.append((name, np.asarray(answer)))
                return "the others are compared with this"
            return f"{float(np.abs(np.asarray(answer) - first[0][1]).max()):.0e} off"

        return verdict


def question(data: Data) -> tuple[str, list[dict[str, str]], dict[str, list[str]]]:
    """The path, the cases of evidence, and the states of each node in the order of the answer."""
    asked = json.loads(str(data["question"]))
    return str(data["path"]), asked["evidence"], asked["states"]


def fresh_process(script: str, data: Data) -> Run:
    """Run a script in a new process, with the path and the first case as arguments; modules are compiled before."""
    path, evidence, _ = question(data)
    command = [sys.executable, "-c", script, path, json.dumps(evidence[0])]
    # Beside the data, so that it does not matter who may write beside the packages.
    cache = {"PYTHONPYCACHEPREFIX": str(Path(path).parent / "bytecode"), "PYTHONDONTWRITEBYTECODE": ""}

    def run() -> object:
        subprocess.run(command, check=True, env={**os.environ, **cache})
        return None

    return run


def cases() -> Iterator[Calibration]:
    """Those whose file is there; the others are named."""
    for name in NAMES:
        if (FOLDER / f"{name}.bif.gz").exists():
            yield Calibration(name)
        else:
            print(f"calibration: {name}.bif.gz is not in {FOLDER}; left out.")
