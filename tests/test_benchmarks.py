"""The benchmarks run, at a size where nothing is to be learnt from the times."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def run(*arguments: str) -> str:
    path = os.pathsep.join((str(ROOT), str(ROOT / "src")))
    command = [sys.executable, "-W", "error", *arguments]
    answer = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False
    )
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


def cells(output: str) -> dict[str, list[str]]:
    """Name of each contender and its figures."""
    table = [line.split("  ", 1) for line in output.splitlines()[2:]]
    return {name: rest.split() for name, rest in table}


def test_the_problems_are_listed() -> None:
    assert {line.split()[0] for line in run("-m", "benchmarks", "--list").splitlines()} >= {
        "counts",
        "em",
        "linear-gaussian",
        "moments",
        "networks",
        "normal",
    }


def test_counts_are_exact() -> None:
    only = ("--only", "bincount", "--only", "suffice, 2")
    found = cells(run("-m", "benchmarks", "counts", "--rows", "3000", "--repeats", "1", *only))
    assert found["suffice, 2 threads"][-1] == "exact"
    assert found["numpy bincount"][-1] == "exact"
    assert float(found["numpy bincount, weighted"][-2]) < 1e-12


@pytest.mark.parametrize("problem", ["normal", "moments"])
def test_moments_are_accurate(problem: str) -> None:
    only = ("--only", "suffice", "--only", "numpy")
    found = cells(run("-m", "benchmarks", problem, "--rows", "2000", "--repeats", "1", *only))
    assert all(float(figures[-2]) < 1e-15 for name, figures in found.items() if name.startswith("suffice"))


def test_tables_of_a_network_agree() -> None:
    only = ("--only", "suffice, codes", "--only", "by hand, codes", "--only", "suffice, NumPy")
    found = cells(run("-m", "benchmarks", "networks", "--rows", "3000", "--repeats", "1", *only))
    assert set(found) == {
        "suffice, codes, MLE",
        "suffice, codes, BDeu",
        "suffice, NumPy path, codes, MLE",
        "numpy bincount by hand, codes, MLE",
        "numpy bincount by hand, codes, BDeu",
    }
    assert all(float(figures[-2]) < 1e-15 for figures in found.values())


def test_linear_gaussian_networks_agree() -> None:
    only = ("--only", "suffice, matrix", "--only", "numpy")
    found = cells(run("-m", "benchmarks", "linear-gaussian", "--rows", "1000", "--repeats", "1", *only))
    assert len(found) == 3
    assert all(float(figures[-2]) < 1e-11 for figures in found.values())


def test_em_says_which_likelihood_it_reached() -> None:
    found = cells(run("-m", "benchmarks", "em", "--rows", "60", "--repeats", "1", "--only", "suffice, 3 steps"))
    steps, likelihood = found["suffice, 3 steps"][-6], float(found["suffice, 3 steps"][-3])
    assert steps == "3"
    assert -30 < likelihood < -10


ABSENT = """
from types import SimpleNamespace
from benchmarks import table
from benchmarks.contender import Contender
from benchmarks.harness import run
from benchmarks.problems import normal

here = Contender("here", "benchmarks.rivals.with_numpy", "mean_and_variance")
away = Contender("away", "benchmarks.rivals.with_nothing", "mean_and_variance", requires="no_such_package")
problem = SimpleNamespace(**{**vars(normal), "CONTENDERS": (here, away)})
if __name__ == "__main__":
    print(table.text(run(problem, 100, 1), problem))
"""


def test_a_rival_that_is_not_installed_is_named(tmp_path: Path) -> None:
    script = tmp_path / "absent.py"
    script.write_text(ABSENT)
    *_, figures, last = run(str(script)).splitlines()
    assert figures.startswith("here ")
    assert last == "Not installed: away (no_such_package)."
