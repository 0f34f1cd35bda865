"""Clusters of Dask that have no workers, for a while or for good, and such as lose sight of what they were asked."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import suffice as sf
from sources.held_works import COLUMNS, Gram, frame, gram_of
from suffice.sources import dask_waiting, open_source
from suffice.sources.dask import DaskHeld
from suffice.sources.held import Held

dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")

BETA = np.linspace(-0.3, 0.4, 7)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """One worker in this process, whose memory nobody watches; a driver that looks at it often."""
    monkeypatch.setattr(dask_waiting, "PULSE", 0.05)
    options = {"n_workers": 1, "threads_per_worker": 1, "processes": False, "dashboard_address": ":0"}
    with distributed.LocalCluster(**options, memory_limit=0) as cluster, distributed.Client(cluster):
        yield cluster


def hold() -> Held[Any]:
    source = open_source(dd.from_pandas(frame(), npartitions=3))
    return source.hold(Gram(), source.settle(source.infer(COLUMNS)))


def without_workers(cluster: Any) -> None:
    cluster.scale(0)
    cluster.sync(cluster._correct_state)


def set_status(name: str) -> None:
    """A worker that is `paused`, as for lack of memory, begins with no task."""
    distributed.get_client().run(lambda dask_worker: setattr(dask_worker, "status", distributed.Status[name]))


def test_a_round_waits_for_workers_that_come_back(cluster: Any) -> None:
    """What they held is made again."""
    held = hold()
    without_workers(cluster)
    threading.Timer(0.5, cluster.scale, (1,)).start()
    np.testing.assert_allclose(held.sum(BETA), gram_of(frame(), BETA), rtol=1e-11)


def test_a_cluster_that_stays_without_workers_is_an_error(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    held = hold()
    without_workers(cluster)
    monkeypatch.setattr(dask_waiting, "WITHOUT_WORKERS", 0.4)
    with (
        pytest.warns(sf.SufficeWarning, match="waits for one up to"),
        pytest.raises(sf.ClusterError, match=r"no worker for 0 s.*cluster\.scale"),
    ):
        held.sum(BETA)


def test_an_answer_that_the_cluster_has_lost_is_asked_for_once_more(
    cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With shards that are prepared anew."""
    held, prepare = hold(), DaskHeld._prepare
    assert isinstance(held, DaskHeld)
    before, again = held.sum(BETA), []

    def prepared(held: DaskHeld[Any]) -> None:
        again.append([shard.key for shard in held._shards])
        prepare(held)
        set_status("running")

    monkeypatch.setattr(dask_waiting, "WITHOUT_WORK", 0.3)
    monkeypatch.setattr(DaskHeld, "_prepare", prepared)
    set_status("paused")
    np.testing.assert_array_equal(held.sum(BETA), before)
    assert len(again) == 1
    assert not {shard.key for shard in held._shards} & {*again[0]}


def test_workers_that_stay_idle_are_an_error(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    source = open_source(dd.from_pandas(frame(), npartitions=3))
    monkeypatch.setattr(dask_waiting, "WITHOUT_WORK", 0.2)
    set_status("paused")
    with pytest.raises(sf.ClusterError, match=r"1 workers, which have had nothing to do.*paused"):
        source.settle(source.infer(COLUMNS))


def slow_failure(number: int) -> Any:
    raise TimeoutError("of the storage")


def test_a_time_out_of_a_task_is_its_own(cluster: Any) -> None:
    table = dd.from_map(slow_failure, range(2), meta=frame(1))
    with pytest.raises(TimeoutError, match="of the storage"):
        sf.BayesianNetwork([("s", "t")]).fit(table)


def fitted_in_a_task() -> Any:
    source = open_source(dd.from_pandas(frame(), npartitions=3))
    return os.getpid(), source.hold(Gram(), source.settle(source.infer(COLUMNS))).sum(BETA)


def test_a_fit_within_a_task_leaves_it_to_those_that_it_asks(cluster: Any) -> None:
    """The one thread of the worker would else wait for itself."""
    process, total = distributed.get_client().submit(fitted_in_a_task).result(timeout=60)
    assert process == os.getpid()
    np.testing.assert_allclose(total, gram_of(frame(), BETA), rtol=1e-11)
