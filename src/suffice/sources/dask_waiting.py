"""What Dask computes, waited for as long as its cluster can give it.

Dask waits without an end for a worker to come, and a cluster may have lost its last one for good: `LocalCluster` gives
up a worker that is away 15 s after one of its deaths (`distributed.deploy.lost-worker-timeout`), and so one that has
just died again and is about to come back.
"""

from __future__ import annotations

import sys
import threading
import time
import warnings
from collections.abc import Callable
from typing import Any

from suffice.errors import ClusterError, SufficeWarning, require

#: Seconds between two looks at a cluster that has not answered yet.
PULSE = 5.0
#: Seconds without a worker before that is an error; half of them before it is a warning.
WITHOUT_WORKERS = 300.0
#: Seconds in which workers have nothing to do, although an answer is due, before the cluster is taken to have lost it.
WITHOUT_WORK = 60.0
#: Times that a task is tried again after an error of the machine; a lost worker is Dask's own business.
RETRIES = 3


class LostTaskError(ClusterError):
    """Workers are there and idle, and an answer is due: what it needs may be computed anew."""


def dask() -> Any:
    """The library."""
    return require("dask", extra="dask", purpose="Reading a Dask DataFrame")


def current_client() -> Any:
    """The client that Dask computes with; None where it computes in this process."""
    return getattr(dask().base.get_scheduler(), "__self__", None)


def computed(graph: Callable[[], Any], forget: Callable[[], None] = lambda: None) -> Any:
    """The value of something delayed, by the scheduler that is in use.

    Where the cluster has lost it, `forget` makes anew what it depends on, and the graph is asked for once more.
    """
    try:
        return awaited(graph())
    except LostTaskError:
        forget()
        return awaited(graph())


def awaited(graph: Any) -> Any:
    """The value of something delayed, or an error where the cluster cannot give it."""
    client = current_client()
    if client is None or within_a_task():
        return graph.compute(retries=RETRIES)
    # Parameters may be large, and nobody can do anything about it.
    with dask().config.set({"distributed.admin.large-graph-warning-threshold": "1GB"}):
        future = client.compute(graph, retries=RETRIES)
    watch, done = ClusterWatch(client), threading.Event()
    # Not by `result(timeout=)`: its errors would keep the future, and all that it needs on the workers, until Python
    # collects cycles.
    future.add_done_callback(lambda _: done.set())
    while True:
        while not done.wait(PULSE):
            watch.look()
        try:
            return future.result(timeout=PULSE)
        except TimeoutError:
            if future.status == "error":  # It is that of a task, such as of a file that could not be read.
                raise
            watch.look()  # The worker that had the value is lost, and it is computed again.


def within_a_task() -> bool:
    """Whether this is a task on a worker, which has to leave its place to those that it asks for, as `compute` does."""
    distributed = sys.modules.get("distributed")
    try:
        return distributed is not None and distributed.get_worker() is not None
    except ValueError:
        return False


class ClusterWatch:
    """Whether a cluster still works, by a look at it every few seconds."""

    def __init__(self, client: Any) -> None:
        """It has just been asked."""
        self._client = client
        self._seen_workers = self._seen_work = time.monotonic()
        self._warned = False

    def look(self) -> None:
        """Go on, or raise: there was no worker for too long, or workers had no work for too long."""
        now, processing = time.monotonic(), self._client.processing()
        if processing:
            self._seen_workers = now
        if not processing or any(map(len, processing.values())):
            self._seen_work = now
        away, idle = now - self._seen_workers, now - self._seen_work
        if away >= WITHOUT_WORKERS:
            raise ClusterError(
                f"The cluster of Dask has had no worker for {away:.0f} s; the fit cannot go on. Give it workers, as "
                "by `cluster.scale(2)`, and fit again; `checkpoint=` of a model goes on from where it was."
            )
        if idle >= WITHOUT_WORK:
            raise LostTaskError(
                f"The cluster of Dask has {len(processing)} workers, which have had nothing to do for {idle:.0f} s "
                "although an answer is due, and was asked for once more. They may be paused for lack of memory, "
                "or lack what the frame asks of workers: see the dashboard, or start the cluster anew and fit again."
            )
        if away >= WITHOUT_WORKERS / 2 and not self._warned:
            self._warned = True
            warnings.warn(
                f"The cluster of Dask has had no worker for {away:.0f} s; the fit waits for one up to "
                f"{WITHOUT_WORKERS:.0f} s. `cluster.scale(2)` would give it some.",
                SufficeWarning,
                stacklevel=2,
            )
