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
    """Name of each contender and its figures; a blank line ends the table."""
    table = [line.split("  ", 1) for line in output.split("\n\n")[0].splitlines()[2:]]
    return {name: rest.split() for name, rest in table}


def test_the_problems_are_listed() -> None:
    assert {line.split()[0] for line in run("-m", "benchmarks", "--list").splitlines()} >= {
        "em",
        "linear-gaussian",
        "moments",
        "networks",
        "normal",
    }


@pytest.mark.parametrize("problem", ["normal", "moments"])
def test_moments_are_accurate(problem: str) -> None:
    only = ("--only", "suffice", "--only", "numpy")
    found = cells(run("-m", "benchmarks", problem, "--rows", "2000", "--repeats", "1", *only))
    assert all(float(figures[-2]) < 1e-15 for name, figures in found.items() if name.startswith("suffice"))


def test_tables_of_a_network_agree() -> None:
    only = ("--only", "suffice", "--only", "by hand, pandas")
    found = cells(run("-m", "benchmarks", "networks", "--rows", "3000", "--repeats", "1", *only))
    assert set(found) == {
        "suffice, pandas, MLE",
        "suffice, pandas, MLE, with the report",
        "suffice, pandas, BDeu",
        "suffice, dict of codes, MLE",
        "numpy bincount by hand, pandas, MLE",
        "numpy bincount by hand, pandas, BDeu",
    }
    assert all(float(figures[-2]) < 1e-15 for figures in found.values())


def test_linear_gaussian_networks_agree() -> None:
    only = ("--only", "suffice, dict", "--only", "numpy")
    found = cells(run("-m", "benchmarks", "linear-gaussian", "--rows", "1000", "--repeats", "1", *only))
    assert len(found) == 3
    assert all(float(figures[-2]) < 1e-11 for figures in found.values())


def test_tables_of_counts_are_fitted_alike_in_any_form() -> None:
    only = ("--only", "suffice", "--only", "by hand")
    asked = ("markov", "--table", "6-way", "--seed", "3", "--repeats", "1", *only)
    found = cells(run("-m", "benchmarks", *asked))
    assert set(found) == {
        "suffice, Series",
        "suffice, frame with Freq",
        "suffice, array",
        "numpy IPF by hand, Series",
    }
    assert len({figures[-3] for figures in found.values()}) == 1


def test_another_seed_is_another_instance() -> None:
    asked = ("normal", "--rows", "500", "--repeats", "1", "--only", "numpy")
    first, other = (run("-m", "benchmarks", *asked, "--seed", seed).splitlines()[0] for seed in "12")
    assert "seed 1," in first
    assert "seed 2," in other
    drawn = """
from benchmarks.problems import em, hmm, ngrams, normal
from benchmarks.problems.gaussian_graph import Graph
for make in (normal.make, em.make, hmm.BaumWelch(2, "3 columns").make, Graph(10, 4).make):
    one, again, other = (make(60, seed) for seed in (1, 1, 2))
    same = [all((one[key] == more[key]).all() for key in one) for more in (again, other)]
    print(*same)
"""
    assert run("-c", drawn).splitlines() == ["True False"] * 4


def test_em_says_which_likelihood_it_reached() -> None:
    found = cells(run("-m", "benchmarks", "em", "--rows", "60", "--repeats", "1", "--only", "suffice, 3 steps"))
    steps, likelihood = found["suffice, 3 steps"][-10], float(found["suffice, 3 steps"][-3])
    assert steps == "3"
    assert -30 < likelihood < -10


JUDGED = """
import math
import numpy as np
from benchmarks.network import Network
from benchmarks.problems import em

data = em.make(40, 0)
network = Network.of(data)
shapes = [network.shape(family) for family in network.families]
equal = np.concatenate([np.full(math.prod(shape), 1.0 / shape[-1]) for shape in shapes])
seen = [np.log(card) * (codes != 255).sum() for card, codes in zip(network.cards, data["codes"], strict=True)]
print(f"{-sum(seen) / 40:.5f}")
judge = em.judge(data)
print(judge("pyAgrum, until it stops", ([2.0] * 5, equal)))
print(judge("suffice, 3 steps", ([0.9, 0.02, 0.03], equal)))
"""


def test_em_is_compared_at_the_likelihood_of_the_other_library(tmp_path: Path) -> None:
    script = tmp_path / "judged.py"
    script.write_text(JUDGED)
    value, theirs, ours = run(str(script)).splitlines()
    assert theirs == f"5 steps of 2,000 CPU ms, log-likelihood {value} a row"
    assert ours == f"3 steps of 30 CPU ms, log-likelihood {value} a row, +0.00000 beside pyAgrum"


ONCE = """
from benchmarks.contender import Contender
from benchmarks.harness import run
from benchmarks.problems import em

slow = Contender("slow", "benchmarks.rivals.em_with_suffice", "fit", {"steps": 1}, once=True)
em.CONTENDERS = (slow, Contender("quick", "benchmarks.rivals.em_with_suffice", "fit", {"steps": 1}))
if __name__ == "__main__":
    for result in run(em, 30, 1, seed=0).results:
        print(result.name, result.process == result.late)
"""


def test_what_takes_minutes_runs_once(tmp_path: Path) -> None:
    script = tmp_path / "once.py"
    script.write_text(ONCE)
    assert run(str(script)).splitlines() == ["slow True", "quick False"]


REGRESSION = """
from benchmarks import table
from benchmarks.harness import run
from benchmarks.problems import glm

problem = next(glm.cases())
if __name__ == "__main__":
    print(table.text(run(problem, 2000, 1, ["suffice"], seed=1)))
"""


def test_regressions_reach_one_slope(tmp_path: Path) -> None:
    script = tmp_path / "regression.py"
    script.write_text(REGRESSION)
    found = cells(run(str(script)))
    assert set(found) == {"suffice, default", "suffice, equal slope", "suffice, with standard errors"}
    assert float(found["suffice, equal slope"][-1]) <= 1e-6


def test_a_regression_on_a_file_finds_the_law_of_its_rows() -> None:
    found = cells(run("-m", "benchmarks", "glm-parquet", "--rows", "20000", "--repeats", "1", "--only", "suffice"))
    assert float(found["suffice"][-3]) < 4.5


RUNS = """
from benchmarks import table
from benchmarks.harness import run
from benchmarks.problems import ngrams

problem = ngrams.Runs(2)
if __name__ == "__main__":
    print(table.text(run(problem, 20_000, 1, ["Counter", "suffice", "polars"], seed=1)))
"""


def test_runs_of_words_are_counted_alike(tmp_path: Path) -> None:
    script = tmp_path / "runs.py"
    script.write_text(RUNS)
    output = run(str(script))
    lines = {line.split("  ", 1)[0]: line for line in output.splitlines()[2:]}
    assert "distinct of" in lines["collections.Counter"]
    assert lines["suffice"].endswith("the same counts")
    assert lines["polars group_by"].endswith("the same counts")
    assert {"suffice, Kneser-Ney", "suffice, learned interpolation"} <= set(lines)


CHUNKS = """
from types import SimpleNamespace
import numpy as np
from benchmarks import table
from benchmarks.harness import run
from benchmarks.problems import crf

def make(rows, seed):
    words = np.array([["the", "DT", "B-NP"], ["big", "JJ", "I-NP"], ["dog", "NN", "I-NP"], ["barks", "VB", "O"]] * rows)
    offsets = np.arange(0, len(words) + 1, 4)
    parts = {"tokens": words, "offsets": offsets}
    found = {f"{part}_{name}": value for part in ("train", "test") for name, value in parts.items()}
    return {**found, "target": np.array(30.0)}

ours = tuple(one for one in crf.CONTENDERS if one.name.startswith("suffice"))
problem = SimpleNamespace(**{**vars(crf), "make": make, "CONTENDERS": ours})
if __name__ == "__main__":
    print(table.text(run(problem, 40, 1, seed=0)))
"""


def test_chains_are_learnt_and_their_labels_are_judged(tmp_path: Path) -> None:
    script = tmp_path / "chunks.py"
    script.write_text(CHUNKS)
    lines = {line.split("  ", 1)[0]: line for line in run(str(script)).splitlines()[2:]}
    assert len(lines) == 3
    assert all("accuracy 1.0000, chunk F1 1.0000" in line for line in lines.values())
    assert "after 1," not in lines["suffice"]
    assert float(lines["suffice, to where CRFsuite ends"].split("objective ")[-1].split()[0]) <= 30.0


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
    print(table.text(run(problem, 100, 1, seed=0)))
"""


def test_a_rival_that_is_not_installed_is_named(tmp_path: Path) -> None:
    script = tmp_path / "absent.py"
    script.write_text(ABSENT)
    *_, figures, last = run(str(script)).splitlines()
    assert figures.startswith("here ")
    assert last == "Not installed: away (no_such_package)."


LEADS = """
import sys
from pathlib import Path
from benchmarks import guard, table
from benchmarks.contender import Contender, Timing
from benchmarks.harness import Outcome, Result

def result(name, late, process, environment=None, **about):
    def timing(seconds):
        return None if seconds is None else Timing(seconds, seconds)
    return Result(Contender(name, "", "", **about), timing(late), timing(process), timing(environment), 0, "")

def outcome(ours):
    return Outcome("T", 1, (
        result("suffice", ours, 1.0, 5.0), result("slow", 0.9, 4.0), result("quick", 0.2, 3.0),
        result("reads the data", 0.001, 0.001, limit=True), result("other work", 0.001, 0.001, work="else"),
    ), (), 3)

print(*table.lost(outcome(0.4)), sep="\\n")
path = Path(sys.argv[1])
guard.save(outcome(0.1), "T", path)
print(guard.slower(outcome(0.13), "T", path=path), *guard.slower(outcome(0.2), "T", path=path), sep="\\n")
"""


def test_what_is_lost_is_said_and_ratios_are_guarded(tmp_path: Path) -> None:
    script = tmp_path / "leads.py"
    script.write_text(LEADS)
    assert run(str(script), str(tmp_path / "saved.json")).splitlines() == [
        "lost (tenth call): suffice, 0.50 of quick",
        "lost (first call of a fresh environment): suffice, 0.60 of quick",
        "[]",
        "T, suffice, tenth: 1.00 of quick, saved were 2.00",
    ]


JUDGED_CHOICES = """
import time
from benchmarks.choice.__main__ import judge
from benchmarks.choice.zoo import KINDS, Instance, drawn
from suffice.errors import OptionError

def fit(way):
    if way == "refused":
        raise OptionError("not here")
    until = time.process_time() + {"auto": 0.02, "quick": 0.005, "rough": 0.001}[way]
    while time.process_time() < until:
        pass
    return {"auto": -1.0, "quick": -1.0000001, "rough": -1.1}[way]

verdict = judge(Instance("t", ("quick", "rough", "refused"), fit, 1), 2)
print(verdict.way, verdict.near, verdict.ratio > 2)
rough = judge(Instance("t", ("rough",), lambda way: fit("rough" if way == "auto" else "quick"), 1), 1)
print(rough.near, rough.ratio)
for kind in KINDS:
    first, again = (list(drawn(kind, 3, 2))[1].title for _ in range(2))
    assert first == again
"""


def test_a_choice_is_compared_with_ways_that_come_as_near(tmp_path: Path) -> None:
    script = tmp_path / "choices.py"
    script.write_text(JUDGED_CHOICES)
    assert run(str(script)).splitlines() == ["quick True True", "False inf"]


def test_the_zoo_of_choices_is_fitted() -> None:
    asked = ("--seed", "1", "--instances", "1", "--repeats", "1", "--only", "GLM", "--only", "linear")
    lines = run("-m", "benchmarks.choice", *asked).splitlines()
    assert [line.split(" | ")[:2] for line in lines[-2:]] == [["| GLM", "1"], ["| kernels, linear-Gaussian", "1"]]
