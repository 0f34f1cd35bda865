"""Frames of Spark Connect: the parameters of the fits in memory, and no row in the process that asks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sources.connect_fits import NAMES

pytest.importorskip("pyspark.sql")
pytest.importorskip("grpc_status", reason="Spark Connect is not installed: pip install 'pyspark[connect]'")


def test_fits_are_those_in_memory(tmp_path: Path) -> None:
    tests = str(Path(__file__).resolve().parent.parent)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([os.environ["PYTHONPATH"], tests])}
    command = [sys.executable, "-m", "sources.connect_fits", str(tmp_path / "rows")]
    (tmp_path / "rows").mkdir()
    answer = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr[-5000:]
    lines = [json.loads(line) for line in answer.stdout.splitlines() if line.startswith("[")]
    assert [name for name, _, _ in lines] == [*NAMES, "predictions"]
    for name, away, most in lines:
        assert away < 1e-10, name
        assert most < 20_000, name
