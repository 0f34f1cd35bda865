"""The benchmark of large fits runs, at a size where nothing is to be learnt from the times."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parent.parent
FITS = ("EM", "IRLS", "CRF")


def tables(*arguments: str) -> list[dict[str, list[str]]]:
    """The tables that the command prints: cells by the first one of the row, the head under its own first cell."""
    path = os.pathsep.join((str(ROOT), str(ROOT / "src")))
    command = [sys.executable, "-m", "benchmarks.scale_out", *arguments]
    answer = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False
    )
    assert answer.returncode == 0, answer.stderr
    made: list[dict[str, list[str]]] = []
    inside = False
    for line in answer.stdout.splitlines():
        if line.startswith("|"):
            first, *cells = (cell.strip() for cell in line.strip("|").split("|"))
            if not inside:
                made.append({})
            made[-1][first] = cells
        inside = line.startswith("|")
    return made


def check_rounds(found: dict[str, list[str]], engine: str) -> None:
    _, _, _, _, out, back, rounds, _, cpu, difference, rows = found[engine]
    assert float(cpu) > 0
    assert float(difference) < 1e-10
    assert int(rounds) > 5
    assert rows == "0"
    assert float(out) > 0 < float(back)


def test_the_local_reader_has_a_table_for_each_fit_and_the_maximum() -> None:
    found = tables("--rows", "3000", "--iterations", "3", "--engine", "local Parquet")
    assert len(found) == len(FITS) + 1
    for table in found[:-1]:
        assert table[""][0] == "first answer s"
        assert set(table) == {"", "---", "local Parquet"}
        assert table["local Parquet"][9] == "0e+00"
    seconds, cpu, ratio, away, slope = found[-1]["suffice, local Parquet"]
    assert float(seconds) > 0 < float(cpu)
    assert ratio == "1.00"
    assert float(away) < 1e-8
    assert float(slope) < 1e-8


@pytest.mark.parametrize("engine", ["Dask", "Spark"])
def test_an_engine_has_the_parameters_of_the_local_fit_and_no_row_comes_here(engine: str) -> None:
    if engine == "Dask":
        pytest.importorskip("distributed")
    elif importlib.util.find_spec("pyspark") is None or shutil.which("java") is None:
        pytest.skip("no Spark, or no Java")
    (found,) = tables("--rows", "3000", "--iterations", "3", "--engine", engine, "--only", "IRLS")
    check_rounds(found, engine)


def test_memory_has_a_column_for_each_number_of_rows() -> None:
    (found,) = tables("--memory", "--rows", "2000", "4000", "--iterations", "2", "--only", "glm", "--only", "chain")
    assert found["peak MB of a process"][:2] == ["2,000 rows", "4,000 rows"]
    assert {name.partition(",")[0] for name in found} == {
        "peak MB of a process",
        "---",
        "logistic regression",
        "Markov chain",
    }
    *peaks, ratio, flat, _ = found["Markov chain, group="]
    assert max(map(float, peaks)) / min(map(float, peaks)) == pytest.approx(float(ratio), abs=0.02)
    assert flat == f"flat within 20%: {'yes' if float(ratio) <= 1.2 else 'no'}"


def test_the_reference_is_the_maximum(tmp_path: Path) -> None:
    optimize = pytest.importorskip("scipy.optimize")
    sys.path.insert(0, str(ROOT))
    try:
        from benchmarks.scale_out.race import reference
        from benchmarks.scale_out.rows import narrow_regression, write
    finally:
        sys.path.remove(str(ROOT))
    import pyarrow.parquet as pq

    write(tmp_path / "rows", narrow_regression, 2000, 1)
    table = pq.read_table(tmp_path / "rows").to_pandas()
    X, y = np.column_stack([np.ones(len(table)), table.drop(columns="y")]), table["y"].to_numpy()

    def value(beta: np.ndarray) -> float:
        return float(np.mean(np.logaddexp(0.0, X @ beta) - y * (X @ beta)))

    best = optimize.minimize(value, np.zeros(6), method="BFGS", options={"gtol": 1e-7})
    np.testing.assert_allclose(reference(tmp_path), best.x, atol=1e-5)
