"""Blocks that Ray keeps, prepared: the digits of a fit in memory, whatever happens to a worker, and no row here."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import suffice as sf
from sources.held_works import (
    BETA,
    COLUMNS,
    Deadly,
    Gram,
    Places,
    Refusing,
    Running,
    Transitions,
    frame,
    gram_of,
    hold,
    process,
    pulled,
    slow_gram,
    steps,
    transitions_of,
)
from suffice.domain import Variable
from suffice.errors import DataError, MissingValueError, OptionError, UnknownStateError
from suffice.sources import open_source, partitions
from suffice.sources.partitions import Packed
from suffice.sources.ray import RaySource

ray_data = pytest.importorskip("ray.data")
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module", autouse=True)
def ray() -> Iterator[Any]:
    module = pytest.importorskip("ray")
    with pytest.MonkeyPatch.context() as patch:
        tests = str(Path(__file__).resolve().parent.parent)
        patch.setenv("PYTHONPATH", os.pathsep.join([os.environ.get("PYTHONPATH", ""), *sys.path, tests]))
        patch.setenv("RAY_AUTH_MODE", "disabled")
        module.init(num_cpus=2, include_dashboard=False, object_store_memory=2**28, logging_level="ERROR")
        ray_data.DataContext.get_current().enable_progress_bars = False
        logging.getLogger("ray.data").setLevel("ERROR")
        yield module
        module.shutdown()


def in_blocks(data: pd.DataFrame, *ends: int) -> Any:
    """A dataset of blocks that end at these rows."""
    return ray_data.from_arrow(
        [table_of(data.iloc[first:last]) for first, last in zip((0, *ends), (*ends, len(data)), strict=True)]
    )


def table_of(data: pd.DataFrame) -> Any:
    import pyarrow as pa

    return pa.Table.from_pandas(data, preserve_index=False)


def test_rounds_equal_those_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    data = frame()
    here = hold(data, Gram())
    with hold(in_blocks(data, 1000, 1001, 1500, 1500), Gram()) as held:
        for scale in (1.0, 5.0):
            total = held.sum(scale * BETA)
            np.testing.assert_allclose(total, here.sum(scale * BETA), rtol=1e-12, atol=1e-12)
            np.testing.assert_allclose(total, gram_of(data, scale * BETA), rtol=1e-11)
        assert (held.rounds, held.location, held.shards) == (2, "in the object store of Ray", 4)
        assert held.bytes_out / held.rounds / held.shards < 1000
        assert held.bytes_back / held.rounds < 1000
        monkeypatch.setattr(partitions, "BRANCHES", 2)  # Many answers are added in a tree: that of `add_answers`.
        np.testing.assert_array_equal(held.sum(5.0 * BETA), total)
        assert os.getpid() not in held.sum(None, by=process)


def test_a_killed_worker_changes_no_digit(tmp_path: Path) -> None:
    with hold(in_blocks(frame(), 700, 1400, 2100), Gram()) as held:
        before = held.sum(BETA)
        marker = tmp_path / "killed"
        np.testing.assert_array_equal(held.sum(BETA, by=Deadly(Gram().evaluate, str(marker))), before)
        assert marker.exists()


def test_rows_stay_on_the_workers() -> None:
    with hold(in_blocks(frame(), 1500), Places()) as held:
        answers = held.sum(None)
    assert os.getpid() not in {process for answer in answers for process in answer[:2]}
    assert sum(rows for _, _, rows in answers) == 3000
    with hold(in_blocks(frame().iloc[:0]), Places()) as held:
        assert held.sum(None) == ((os.getpid(), os.getpid(), 0),)


def test_an_interrupted_round_leaves_nothing_running() -> None:
    with hold(in_blocks(frame(), 500, 1000, 1500, 2000), Gram()) as held:
        before = held.sum(BETA)
        threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            held.sum((BETA, 1.0), by=slow_gram)
        np.testing.assert_array_equal(held.sum(BETA), before)


def test_errors_come_back_as_they_are() -> None:
    data = frame()
    data.loc[1607, "x"] = np.nan
    rows = in_blocks(data, 1000)
    with pytest.raises(MissingValueError, match=r"'x' has a missing value \(row 607\).*partition 1 of a Ray Dataset"):
        hold(rows, Refusing())
    with pytest.raises(ZeroDivisionError, match="of my own"):
        hold(rows, Refusing(own=True))
    source = open_source(rows)
    with pytest.raises(UnknownStateError, match=r"'s' holds '0 comes late'.*\(row 1995\).*partition 1"):
        source.settle(source.infer(["s"], {"s": Variable.discrete("s", ["a", "b", "c"])}))
    with pytest.raises(DataError, match="the rows changed between two passes"):
        source.hold(Gram(), open_source(data.iloc[:100]).settle(source.infer(["s"])))
    with pytest.raises(OptionError, match="no order to match an array of weights"):
        sf.BayesianNetwork([("s", "t")]).fit(rows, sample_weight=np.ones(len(data)))


def test_blocks_of_pandas_and_their_types() -> None:
    """Categories, whole numbers with missing values, truth values and texts, as the same frame in memory has them."""
    data = frame(40).assign(
        c=pd.Categorical(["p", "q"] * 20), i=pd.array([1, None, 2, 3] * 10, dtype="Int64"), b=[True, False] * 20
    )
    names = [*COLUMNS, "c", "i", "b"]
    there, here = open_source(ray_data.from_pandas([data[:25], data[25:]])), open_source(data)
    settled, right = there.settle(there.infer(names)), here.settle(here.infer(names))
    assert {name: settled.domain[name].kind for name in names} == {name: right.domain[name].kind for name in names}
    assert {name: set(settled.domain[name].states) for name in names} == {
        name: set(right.domain[name].states) for name in names
    }
    assert (settled.rows, settled.missing) == (right.rows, right.missing)
    assert [name for name in names if there.holds_numbers(name)] == ["x", "y", "i", "b"]


def test_sequences_are_brought_together() -> None:
    data = steps()
    source = open_source(in_blocks(data, 300, 600))
    settled = source.settle(source.infer(["s", "x"]))
    with pytest.raises(OptionError, match="in no order of their own"):
        source.hold(Transitions(), settled, group="g")
    with source.hold(Transitions(), settled, group="g", order="k", raw=["words"]) as held:
        np.testing.assert_array_equal(held.sum(1.0), transitions_of(data))
    by_group = source.map(Running(), settled.domain, group="g", order="k", raw=["words"]).to_pandas()
    right = data.sort_values(["g", "k"])
    by_group = by_group.sort_values(["g", "k"])
    np.testing.assert_allclose(by_group["sum"], right.groupby("g")["x"].cumsum(), rtol=1e-12)
    assert (by_group["words_"] == by_group["words"].map(len)).all()
    assert len(by_group) == len(data)
    assert pulled(source) == 0


def test_columns_of_every_row(tmp_path: Path) -> None:
    data = steps()
    source = open_source(in_blocks(data, 300))
    settled = source.settle(source.infer(["s", "x"]))
    columns = source.map(Running(), settled.domain)
    assert isinstance(columns, ray_data.Dataset)
    rows = columns.to_pandas()
    assert rows.columns.tolist() == [*data.columns, "state", "sum"]
    assert (rows["state"] == rows["s"]).all()
    folder = source.map(Running(), settled.domain, path=str(tmp_path / "made"))
    assert len(pd.read_parquet(folder)) == len(data)
    assert pulled(source) == 0


# Models -------------------------------------------------------------------------------------------------------------

MODELS: dict[str, tuple[Callable[[], Any], dict[str, Any], Callable[[Any], list[Any]]]] = {
    "tables": (
        lambda: sf.BayesianNetwork([("a", "c")]),
        {"columns": ["a", "c"]},
        lambda model: [model.table("a").values, model.table("c").values],
    ),
    "EM": (
        lambda: sf.BayesianNetwork([("a", "gaps"), ("gaps", "c")], max_iter=5),
        {"columns": ["a", "gaps", "c"]},
        lambda model: [model.table("gaps").values],
    ),
    "GLM": (
        lambda: sf.GLM("poisson"),
        {"y": "visits", "columns": ["x", "a"]},
        lambda model: [model.coefficients_, model.standard_errors_],
    ),
    "HMM": (
        lambda: sf.HiddenMarkovModel(2, emission=sf.Categorical(), random_state=0, max_iter=5),
        {"columns": "c", "group": "person", "order": "step"},
        lambda model: [model.initial_, model.transitions_],
    ),
    "CRF": (
        lambda: sf.ChainCRF(max_iter=5),
        {"y": "c", "columns": ["a", "x"], "group": "person", "order": "step"},
        lambda model: [model.weights_],
    ),
}


def table(rows: int = 1200) -> pd.DataFrame:
    """States of which some are missing, numbers, counts, and sequences of steps."""
    rng = np.random.default_rng(3)
    names = np.array(["u", "v", "w"])
    a = rng.integers(0, 3, rows)
    data = pd.DataFrame({"a": names[a], "x": rng.normal(size=rows)})
    data["c"] = names[(a + (rng.random(rows) < 0.3)) % 3]
    data["gaps"] = data["c"].where(rng.random(rows) > 0.2, None)
    data["visits"] = rng.poisson(np.exp(0.3 * data["x"]))
    return data.assign(person=np.arange(rows) // 12, step=np.arange(rows) % 12)


@pytest.fixture(scope="module")
def rows() -> Any:
    return in_blocks(table(), 1, 500, 500, 900)


@pytest.mark.parametrize("name", MODELS)
def test_a_fit_is_that_in_memory(name: str, rows: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """With small answers, and none of the rows in this process."""
    sizes: list[int] = []
    unpacked = Packed.opened

    def opened(packed: Packed) -> Any:
        sizes.append(len(packed.data))
        return unpacked(packed)

    def brought(*arguments: object) -> None:
        raise AssertionError("rows were brought into this process")

    monkeypatch.setattr(Packed, "opened", opened)
    monkeypatch.setattr(RaySource, "_brought", brought)
    model, options, parameters = MODELS[name]
    there, here = model().fit(rows, **options), model().fit(table(), **options)
    for value, right in zip(parameters(there), parameters(here), strict=True):
        np.testing.assert_allclose(np.asarray(value), np.asarray(right), rtol=1e-10, atol=1e-12)
    assert sizes
    assert max(sizes) < 8000


def test_predictions_stay_a_dataset(rows: Any) -> None:
    """A column beside those of the dataset."""
    model = sf.GLM("poisson").fit(table(), y="visits", columns=["x", "a"])
    made = model.predict(rows)
    assert isinstance(made, ray_data.Dataset)
    predicted = made.to_pandas().sort_values(["person", "step"])["prediction"]
    np.testing.assert_allclose(predicted, model.predict(table()), rtol=1e-12)
