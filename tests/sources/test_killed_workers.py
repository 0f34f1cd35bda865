"""Fits whose workers are killed, whose partitions are odd, and that are interrupted: undisturbed, or as in memory."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import suffice as sf
from sources.held_works import Deadly, Interrupting, waited
from suffice.models.em import held_rows
from suffice.sources.held import Held
from suffice.sources.partitioned import HeldElsewhere

pytestmark = pytest.mark.filterwarnings("ignore")

ROWS, PARTS = 1200, 4


@dataclass(frozen=True)
class Case:
    """A model that iterates, its columns, what its fit is told, and its parameters."""

    model: Callable[..., Any]
    columns: list[str]
    parameters: Callable[[Any], list[Any]]
    options: dict[str, Any]

    def fit(self, rows: Any, **run: Any) -> Any:
        return self.model(**run).fit(rows[self.columns], **self.options)


SEQUENCES = {"group": "person", "order": "step"}

CASES: dict[str, Case] = {
    "EM": Case(
        lambda **run: sf.BayesianNetwork([("a", "gaps"), ("gaps", "c")], **{"max_iter": 5, **run}),
        ["a", "gaps", "c"],
        lambda model: [model.table(node).values for node in ("a", "gaps", "c")],
        {},
    ),
    "SML": Case(
        lambda **run: sf.MarkovNetwork(
            [("a", "gaps"), ("gaps", "c"), ("h", "a"), ("h", "c")],
            solver="sml",
            hidden={"h": 2},
            random_state=0,
            sampling=sf.GibbsSampling(chains=16, burn_in=5, draws=20),
            **{"max_iter": 5, **run},
        ),
        ["a", "gaps", "c"],
        lambda model: [model.weights_],
        {},
    ),
    "GLM": Case(
        lambda **run: sf.GLM("poisson", **run),
        ["x", "a", "visits"],
        lambda model: [model.coefficients_, model.standard_errors_],
        {"y": "visits", "columns": ["x", "a"]},
    ),
    "HMM": Case(
        lambda **run: sf.HiddenMarkovModel(2, emission=sf.Categorical(), random_state=0, **{"max_iter": 5, **run}),
        ["person", "step", "c"],
        lambda model: [model.initial_, model.transitions_],
        {**SEQUENCES, "columns": "c"},
    ),
    "CRF": Case(
        lambda **run: sf.ChainCRF(**{"max_iter": 5, **run}),
        ["person", "step", "a", "x", "c"],
        lambda model: [model.weights_],
        {**SEQUENCES, "y": "c", "columns": ["a", "x"]},
    ),
}

#: Chains persist in memory and begin anew elsewhere: their draws are others.
AS_IN_MEMORY = [name for name in CASES if name != "SML"]


def table() -> pd.DataFrame:
    """States of which some are missing, numbers, counts, and sequences of steps."""
    rng = np.random.default_rng(3)
    names = np.array(["u", "v", "w"])
    a = rng.integers(0, 3, ROWS)
    b = (a + (rng.random(ROWS) < 0.3)) % 3
    data = pd.DataFrame({"a": names[a], "x": rng.normal(size=ROWS)})
    data["gaps"] = pd.Series(names[b]).where(rng.random(ROWS) > 0.3, None)
    data["c"] = names[(b + (rng.random(ROWS) < 0.2)) % 3]
    data["visits"] = rng.poisson(np.exp(0.3 * data["x"]))
    return data.assign(person=np.arange(ROWS) // 12, step=np.arange(ROWS) % 12)


@pytest.fixture(autouse=True)
def rows_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Distinct rows stay with the workers, however few they are."""
    monkeypatch.setattr(held_rows, "FEW_NUMBERS", 0)


def in_partitions(data: pd.DataFrame) -> Any:
    return pytest.importorskip("dask.dataframe").from_pandas(data, npartitions=PARTS, sort=False)


@pytest.fixture(scope="module")
def undisturbed(client: Any) -> Callable[[str], Any]:
    """The fit on the same cluster to which nothing happens, by the name of the case."""
    return cache(lambda name: CASES[name].fit(in_partitions(table())))


def assert_same(case: Case, model: Any, right: Any) -> None:
    """To the last bit: answers are added in the order of the partitions, whichever worker gives them."""
    for value, expected in zip(case.parameters(model), case.parameters(right), strict=True):
        np.testing.assert_array_equal(np.asarray(value), np.asarray(expected))
    assert model.report_.iterations == right.report_.iterations


# Killed in the middle of a fit --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CASES)
def test_a_worker_killed_between_two_iterations_changes_no_digit(name: str, client: Any, undisturbed: Any) -> None:
    """What it held is prepared again, by the other one or by that which takes its place."""
    killed: list[int] = []

    def kill(state: Any) -> None:
        if state.iteration == 2 and not killed:
            workers = client.run(os.getpid)
            killed.append(workers[min(workers)])
            os.kill(killed[0], signal.SIGKILL)

    right = undisturbed(name)
    assert_same(CASES[name], CASES[name].fit(in_partitions(table()), callback=kill), right)
    assert killed
    assert right.report_.iterations > 2


@pytest.fixture
def third_round_kills(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[], Path]:
    """From now on the third round of a fit kills the first process that it asks; the file is there when it has."""
    marker, ask = tmp_path / "killed", Held.sum

    def deadly(held: Held[Any], parameters: Any, by: Any = None, *, shards: Any = None) -> Any:
        if held.rounds == 2 and isinstance(held, HeldElsewhere):
            by = Deadly(held.work.evaluate if by is None else by, str(marker))
        return ask(held, parameters, by, shards=shards)

    def begin() -> Path:
        monkeypatch.setattr(Held, "sum", deadly)
        return marker

    return begin


@pytest.mark.parametrize("name", CASES)
def test_a_worker_killed_while_it_answers_changes_no_digit(name: str, undisturbed: Any, third_round_kills: Any) -> None:
    right = undisturbed(name)
    marker = third_round_kills()
    assert_same(CASES[name], CASES[name].fit(in_partitions(table())), right)
    assert marker.exists()


@pytest.mark.parametrize("name", ["EM", "GLM", "HMM", "CRF"])
def test_a_python_worker_of_spark_killed_while_it_answers(name: str, spark: Any, third_round_kills: Any) -> None:
    case, rows = CASES[name], spark.createDataFrame(table()).coalesce(2)
    right = case.fit(rows)
    marker = third_round_kills()
    assert_same(case, case.fit(rows), right)
    assert marker.exists()


# Odd partitions, bad values, Ctrl-C ---------------------------------------------------------------------------------


def in_pieces(data: pd.DataFrame, ends: list[int]) -> Any:
    """Partitions that end at these rows, each with the categories that it holds."""
    frames, dask = pytest.importorskip("dask.dataframe"), pytest.importorskip("dask")
    data = data.astype({"a": "category"})
    parts = [data.iloc[i:j] for i, j in zip([0, *ends[:-1]], ends, strict=True)]
    parts = [part.assign(a=part["a"].cat.remove_unused_categories()) for part in parts]
    with dask.config.set({"dataframe.convert-string": False}):
        meta = data.iloc[:0].assign(a=pd.Categorical([]))
        return frames.from_map(lambda k: parts[k], range(len(parts)), meta=meta)


@pytest.mark.parametrize("name", AS_IN_MEMORY)
def test_odd_partitions(name: str, client: Any) -> None:
    """An empty one first and one in the middle, one of a single row, and a category that the first ones lack."""
    case, data = CASES[name], table()
    data.loc[:400, "a"] = data.loc[:400, "a"].replace("u", "w")
    model, here = case.fit(in_pieces(data, [0, 1, 400, 400, 800, ROWS])), case.fit(data)
    for value, right in zip(case.parameters(model), case.parameters(here), strict=True):
        np.testing.assert_allclose(np.asarray(value), np.asarray(right), rtol=1e-10, atol=1e-12)


BAD: dict[str, tuple[str, Any, str]] = {
    "EM": ("c", "?", r"Column 'c' holds '\?'"),
    "GLM": ("x", np.nan, "Column 'x' has a missing value"),
    "HMM": ("x", np.inf, "Column 'x' holds"),
    "CRF": ("x", np.nan, "Column 'x' is nan"),
    "CRF, label": ("c", None, "Column 'c' has a missing value"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_value_in_one_partition(name: str, client: Any) -> None:
    """The class of the error here, and where the value is."""
    column, value, words = BAD[name]
    case, data = CASES[name.partition(",")[0]], table()
    if name == "EM":
        case = replace(case, model=partial(case.model, states={key: ["u", "v", "w"] for key in case.columns}))
    if name == "HMM":
        case = replace(case, model=lambda: sf.HiddenMarkovModel(2, emission="normal"), columns=["person", "step", "x"])
        case = replace(case, options={**SEQUENCES, "columns": "x"})
    data.loc[907, column] = value
    with pytest.raises(sf.SufficeError, match=words) as here:
        case.fit(data)
    with pytest.raises(type(here.value), match=rf"{words}.*\(row \d+\).*partition \d of a Dask DataFrame") as there:
        case.fit(in_pieces(data, [300, 300, 600, 900, ROWS]))
    assert type(there.value) is type(here.value)
    assert "(row 7)" in str(there.value)
    assert "partition 4" in str(there.value)


@pytest.mark.parametrize("name", AS_IN_MEMORY)
def test_an_interrupt_in_a_round_gives_the_best_so_far(
    name: str, client: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """That of an interrupt here after as many iterations, and no task goes on."""
    case, ask, marker = CASES[name], Held.sum, tmp_path / "interrupted"
    iterations: list[int] = []

    def interrupted(held: Held[Any], parameters: Any, by: Any = None, *, shards: Any = None) -> Any:
        if len(iterations) == 2:
            by = Interrupting(held.work.evaluate if by is None else by, str(marker), os.getpid())
        return ask(held, parameters, by, shards=shards)

    def stop(state: Any) -> None:
        if state.iteration == 2:
            raise KeyboardInterrupt

    here = case.fit(table(), callback=stop)
    monkeypatch.setattr(Held, "sum", interrupted)
    model = case.fit(in_partitions(table()), callback=iterations.append)
    assert marker.exists()
    for fitted in (model, here):
        assert (fitted.report_.converged, fitted.report_.stop_reason) == (False, "interrupted")
    for value, right in zip(case.parameters(model), case.parameters(here), strict=True):
        np.testing.assert_allclose(np.asarray(value), np.asarray(right), rtol=1e-10, atol=1e-12)
    waited(lambda: not any(map(len, client.processing().values())))
