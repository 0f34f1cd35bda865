"""The adaptors of the log-linear benchmark reach the same law, at a size where nothing is to be learnt from times."""

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest


@pytest.fixture(autouse=True)
def _root(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parent.parent))
    yield
    for name in [name for name in sys.modules if name.split(".")[0] == "benchmarks"]:
        del sys.modules[name]


def contender(module: str, function: str, data: Any, **options: Any) -> Any:
    return getattr(importlib.import_module(f"benchmarks.rivals.markov_with_{module}"), function)(data, **options)()


RIVALS: list[tuple[str, str, dict[str, Any]]] = [
    ("suffice", "fit", {}),
    ("suffice", "fit", {"form": "dict"}),
    ("suffice", "fit", {"report": True}),
    ("suffice", "fit_table", {"form": "series"}),
    ("suffice", "fit_table", {"form": "frame"}),
    ("suffice", "fit_table", {"form": "array"}),
    ("numpy", "lbfgs", {}),
    ("numpy", "table_ipf", {}),
    ("numpy", "table_ipf", {"series": True}),
    ("ipfn", "fit", {}),
]


@pytest.mark.parametrize("shape", ["grid", "pairs"])
def test_all_reach_the_gap_and_the_same_likelihood(shape: str) -> None:
    from benchmarks.log_linear import GAP, Cliques, Judge, draw

    cliques = Cliques.grid(3) if shape == "grid" else Cliques.all_pairs((2, 3, 4))
    data = draw(cliques, 500, strength=0.3, seed=0)
    judge = Judge(data)
    values = []
    for module, function, options in RIVALS:
        if module == "ipfn" and importlib.util.find_spec("ipfn") is None:
            continue
        gap, value = judge.measure(contender(module, function, data, **options))
        assert gap <= GAP
        values.append(value)
    np.testing.assert_allclose(values, values[0], rtol=0, atol=1e-7)


def test_calibrations_agree() -> None:
    from benchmarks.problems.markov import Calibrations

    problem = importlib.import_module("benchmarks.log_linear").Cliques.grid(3)
    data = Calibrations("", "", problem).make(1, 0)
    ours = contender("suffice", "calibrations", data, times=2)
    assert contender("numpy", "calibrations", data, times=2) == pytest.approx(ours, abs=1e-12)


def test_the_judge_sees_a_wrong_law() -> None:
    from benchmarks.log_linear import Cliques, Judge, draw

    cliques = Cliques.grid(2)
    data = draw(cliques, 500, strength=1.0, seed=0)
    gap, value = Judge(data).measure([(scope, np.zeros((2, 2))) for scope in cliques.scopes])
    # The uniform law: every pair of states has a quarter, and every row log 2 to the fourth.
    assert gap == pytest.approx(np.abs(data["margins"] - 0.25).max(), abs=1e-12)
    assert value == pytest.approx(-4 * np.log(2), abs=1e-12)
