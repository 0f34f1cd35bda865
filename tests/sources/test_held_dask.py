"""Shards that stay on the workers of Dask: the digits of a fit in memory, whatever happens to a worker."""

from __future__ import annotations

import os
import signal
import threading
import time
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
    DistinctRows,
    Gram,
    Places,
    Refusing,
    Running,
    Transitions,
    frame,
    gram_of,
    hold,
    pulled,
    slow_gram,
    steps,
    transitions_of,
    waited,
)
from suffice.domain import Variable
from suffice.errors import DataError, MissingColumnError, MissingValueError, OptionError, UnknownStateError
from suffice.sources import open_source
from suffice.sources.kinds import Declarations

dask = pytest.importorskip("dask")
dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")


def odd_partitions(data: pd.DataFrame) -> Any:
    """An empty first partition, one of a single row, an empty one between; categories that differ, and more than 8."""
    ends = [0, 0, 1, 400, 400, 1200, *np.linspace(1300, len(data), 9).astype(int).tolist()]
    parts = [data.iloc[a:b] for a, b in zip([0, *ends[:-1]], ends, strict=True)]
    return dd.from_map(
        lambda k: parts[k].astype({"t": "category"}), range(len(parts)), meta=data.iloc[:0].astype({"t": "category"})
    )


def test_rounds_equal_those_in_memory(client: Any) -> None:
    data = frame()
    here = hold(data, Gram())
    for table in (dd.from_pandas(data, npartitions=11), odd_partitions(data)):
        held = hold(table, Gram())
        for scale in (0.0, 1.0, 5.0):
            total = held.sum(scale * BETA)
            np.testing.assert_allclose(total, here.sum(scale * BETA), rtol=1e-12, atol=1e-12)
            np.testing.assert_allclose(total, gram_of(data, scale * BETA), rtol=1e-11)
        assert (held.rounds, held.location) == (3, "on the workers of Dask")
        assert held.bytes_out / held.rounds / held.shards < 1000
        assert held.bytes_back / held.rounds < 1000


def test_distinct_rows_and_chosen_shards(client: Any) -> None:
    data = frame()
    held = hold(dd.from_pandas(data, npartitions=5), DistinctRows(), ["s", "t"])
    counts = pd.crosstab(data["s"], data["t"]).to_numpy()
    np.testing.assert_array_equal(held.sum(2.0), 2 * counts)
    assert held.shards == 5
    np.testing.assert_array_equal(sum(held.sum(1.0, shards=[shard]) for shard in range(5)), counts)
    assert held.sum(1.0, shards=[1, 1]).sum() == 2 * held.sum(1.0, shards=[1]).sum()


def test_rows_stay_on_the_workers(client: Any) -> None:
    held = hold(dd.from_pandas(frame(), npartitions=4), Places())
    workers = set(client.run(os.getpid).values())
    answers = held.sum(None)
    assert {process for answer in answers for process in answer[:2]} <= workers
    assert os.getpid() not in workers
    assert sum(rows for _, _, rows in answers) == 3000
    names = {distributed.utils.key_split(key) for keys in client.has_what().values() for key in keys}
    assert "suffice-prepare" in names
    held.close()
    waited(lambda: not any(map(len, client.has_what().values())))


@pytest.mark.parametrize("scheduler", ["threads", "synchronous"])
def test_without_a_client(scheduler: str) -> None:
    data = frame()
    with dask.config.set(scheduler=scheduler):
        held = hold(odd_partitions(data), Gram())
        np.testing.assert_allclose(held.sum(BETA), gram_of(data, BETA), rtol=1e-11)
        assert held.location == "in memory"


def test_large_parameters(client: Any) -> None:
    held = hold(dd.from_pandas(frame(), npartitions=3), Places())
    large = np.arange(200_000.0)
    total = held.sum(large, by=_with_parameters)
    np.testing.assert_array_equal(total, 3 * large)


def _with_parameters(prepared: Any, parameters: np.ndarray) -> np.ndarray:
    return parameters


# What a lost worker held is made again -----------------------------------------------------------------------------


def test_a_worker_killed_between_rounds_changes_no_digit(client: Any) -> None:
    held = hold(dd.from_pandas(frame(), npartitions=9), Gram())
    before = held.sum(BETA)
    workers = client.run(os.getpid)
    os.kill(workers[min(workers)], signal.SIGKILL)
    np.testing.assert_array_equal(held.sum(BETA), before)


def test_a_worker_killed_during_a_round_changes_no_digit(client: Any, tmp_path: Path) -> None:
    held = hold(dd.from_pandas(frame(), npartitions=9), Gram())
    before = held.sum(BETA)
    marker = tmp_path / "killed"
    np.testing.assert_array_equal(held.sum(BETA, by=Deadly(Gram().evaluate, str(marker))), before)
    assert marker.exists()


def test_an_interrupted_round_leaves_nothing_running(client: Any) -> None:
    held = hold(dd.from_pandas(frame(), npartitions=20), Gram())
    before = held.sum(BETA)

    def interrupt() -> None:
        waited(lambda: any(map(len, client.processing().values())))
        os.kill(os.getpid(), signal.SIGINT)

    # A process that was started in the background, as a build may be, ignores Ctrl-C.
    ours = signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        held.sum((BETA, 0.5), by=slow_gram)
    signal.signal(signal.SIGINT, ours)
    waited(lambda: not any(map(len, client.processing().values())))
    np.testing.assert_array_equal(held.sum(BETA), before)


# Errors are values --------------------------------------------------------------------------------------------------


def with_a_gap() -> Any:
    data = frame()
    data.loc[1607, "x"] = np.nan
    return dd.from_pandas(data, npartitions=6, sort=False)


def erred(dask_scheduler: Any) -> int:
    """How many tasks have failed so far, as the scheduler sees it."""
    return sum(transition.finish == "erred" for transition in dask_scheduler.transition_log)


def test_an_expected_error_names_its_partition_and_row(client: Any) -> None:
    before = client.run_on_scheduler(erred)
    with pytest.raises(
        MissingValueError, match=r"'x' has a missing value \(row 107\).*partition 3 of a Dask DataFrame"
    ):
        hold(with_a_gap(), Refusing())
    source = open_source(with_a_gap())
    declared = {"s": Variable.discrete("s", ["a", "b", "c"])}
    with pytest.raises(UnknownStateError, match=r"'s' holds '0 comes late'.*\(row 495\).*partition 5"):
        source.settle(source.infer(["s"], declared))
    assert client.run_on_scheduler(erred) == before


def test_errors_of_a_user_come_back_as_they_are(client: Any) -> None:
    with pytest.raises(ZeroDivisionError, match="of my own") as caught:
        hold(with_a_gap(), Refusing(own=True))
    assert "partition 3" in "".join(caught.value.__notes__)
    held = hold(dd.from_pandas(frame(), npartitions=3), Refusing())
    with pytest.raises(LookupError, match="in a round"):
        held.sum("fail")
    assert held.sum(None) == 3000


def test_a_partition_without_a_column(client: Any) -> None:
    data = frame(40)

    def part(number: int) -> pd.DataFrame:
        return data if number < 2 else data.drop(columns="y")

    table = dd.from_map(part, range(3), meta=data.iloc[:0])
    with pytest.raises(MissingColumnError, match=r"no column 'y'.*partition 2"):
        hold(table, Gram())
    with pytest.raises(MissingColumnError, match=r"lacks columns that the frame says it has.*'y'"):
        hold(table, Gram(), ["x", "y"])


def test_no_rows_at_all(client: Any) -> None:
    held = hold(dd.from_pandas(frame(12).iloc[:0], npartitions=1), Places())
    assert held.shards == 0
    assert held.sum(None) == ((os.getpid(), os.getpid(), 0),)


def test_whole_numbers_are_told_on_the_workers(client: Any) -> None:
    rows = 600
    data = pd.DataFrame({"u": [0.0, 1.0, np.nan] * (rows // 3), "v": [1.0, 0.5, np.nan] * (rows // 3), "w": 1.0})
    source = open_source(dd.from_pandas(data, npartitions=4))
    domain, few, _ = source.decide_kinds(source.infer(), dict.fromkeys("uvw", Declarations("", "")))
    assert few == ("u", "w")
    assert [domain[name].kind for name in "uvw"] == ["discrete", "real", "discrete"]
    assert source.settle(domain).domain["u"].states == (0, 1)
    assert (source.passes, pulled(source)) == (2, 0)


# Sequences, and columns of every row ---------------------------------------------------------------------------------


def table_of_steps(data: pd.DataFrame) -> Any:
    """In partitions; Dask would make texts of lists."""
    with dask.config.set({"dataframe.convert-string": False}):
        return dd.from_map(lambda k: data.iloc[k::5], range(5), meta=data.iloc[:0])


def test_sequences_are_brought_together(client: Any) -> None:
    data = steps()
    source = open_source(table_of_steps(data))
    settled = source.settle(source.infer(["s"]))
    with pytest.raises(OptionError, match="in no order of their own"):
        source.hold(Transitions(), settled, group="g")
    held = source.hold(Transitions(), settled, group="g", order="k", raw=["words"])
    np.testing.assert_array_equal(held.sum(1.0), transitions_of(data))
    workers = client.run(os.getpid)
    os.kill(workers[min(workers)], signal.SIGKILL)
    np.testing.assert_array_equal(held.sum(1.0), transitions_of(data))
    one = source.hold(Transitions(), settled, group=None, order="x", raw=["words"])
    assert (one.shards, one.sum(1.0)[9], one.sum(1.0)[:9].sum()) == (1, 1, len(data) - 1)
    assert pulled(source) == 0


def test_an_error_in_sequences_says_that_rows_were_moved(client: Any) -> None:
    data = steps()
    data.loc[3, "g"] = None
    source = open_source(table_of_steps(data))
    with pytest.raises(DataError, match=r"'g' has a missing value.*once its rows are brought together by 'g'"):
        source.hold(Transitions(), source.settle(source.infer(["s"])), group="g", order="k", raw=["words"])


def test_columns_of_every_row(client: Any, tmp_path: Path) -> None:
    data = steps()
    source = open_source(table_of_steps(data))
    settled = source.settle(source.infer(["s", "x"]))
    columns = source.map(Running(), settled.domain)
    assert isinstance(columns, dd.DataFrame)
    assert columns.compute()["state"].sort_index().tolist() == data["s"].tolist()
    assert columns.npartitions == 5
    by_group = source.map(Running(), settled.domain, group="g", order="k", raw=["words"]).compute()
    pd.testing.assert_series_equal(by_group["words_"].sort_index(), data["words"].str.len(), check_names=False)
    right = data.sort_values("k").groupby("g")["x"].cumsum()
    pd.testing.assert_series_equal(by_group["sum"].sort_index(), right.sort_index(), check_names=False)
    assert by_group["g"].sort_index().tolist() == data["g"].tolist()
    path = source.map(Running(), settled.domain, path=tmp_path / "columns")
    assert pd.read_parquet(path)["state"].sort_index().tolist() == data["s"].tolist()
    assert pulled(source) == 0


def test_memory_is_limited_on_the_workers(client: Any) -> None:
    source = open_source(dd.from_pandas(frame(), npartitions=2))
    with pytest.raises(OptionError, match="these stay where they are"):
        source.hold(Gram(), source.settle(source.infer(COLUMNS)), memory_limit="1GB")


def test_a_fitted_model_holds_nothing_on_the_workers(client: Any) -> None:
    frames = pytest.importorskip("dask.dataframe")
    rng = np.random.default_rng(31)
    rows = pd.DataFrame({"x": rng.normal(size=400), "a": rng.choice(["u", "v"], 400)})
    rows["n"] = rng.poisson(np.exp(0.3 * rows.x))
    rows["label"] = rng.choice(["p", "q", "r"], 400)
    there = frames.from_pandas(rows, npartitions=2)

    def prepared() -> set[str]:
        return {str(key) for key in client.who_has() if "suffice-prepare" in str(key)}

    before = prepared()  # Other tests ask the same workers.
    models = [
        sf.GLM("poisson").fit(there, y="n", columns=["x", "a"]),
        sf.GLM("poisson", prior=sf.Normal(variance=3.0)).fit(there, y="n", columns=["x", "a"]),
        sf.GLM("multinomial").fit(there, y="label", columns=["x", "a"]),
        sf.GLM("poisson", formula="n ~ x + a", covariance="robust").fit(there),
    ]
    here = sf.GLM("poisson").fit(rows, y="n", columns=["x", "a"])
    assert all(model.report_.rows == 400 for model in models)

    for _ in range(100):
        if prepared() <= before:
            break
        time.sleep(0.05)
    assert prepared() <= before
    mine, other = models[0].matched_statistics(), here.matched_statistics()
    assert mine is not None
    assert other is not None
    np.testing.assert_allclose(mine.observed, other.observed, rtol=1e-10)
    np.testing.assert_allclose(mine.expected, other.expected, rtol=1e-9)
    assert models[1].likelihood_estimate() is None
