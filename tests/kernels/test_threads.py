"""The pool of threads."""

import os
import threading
import time
from collections.abc import Callable

import pytest

from suffice.errors import OptionError
from suffice.kernels import threads


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_every_item_is_done_once(workers: int) -> None:
    done: list[list[int]] = [[] for _ in range(workers)]
    threads.run(lambda item, worker: done[worker].append(item), range(1000), workers)
    assert sorted(item for items in done for item in items) == list(range(1000))


def test_a_worker_is_never_in_two_calls_at_once() -> None:
    inside = [threading.Lock() for _ in range(4)]
    clashes: list[int] = []

    def task(item: int, worker: int) -> None:
        if not inside[worker].acquire(blocking=False):
            clashes.append(item)
            return
        time.sleep(0.0005)
        inside[worker].release()

    threads.run(task, range(100), 4)
    assert clashes == []


def test_generators_can_be_shared() -> None:
    found: list[int] = []
    threads.run(lambda item, _: found.append(item), (number for number in range(500)), 3)
    assert sorted(found) == list(range(500))


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_stops_the_work_and_is_raised(workers: int, error: type[BaseException]) -> None:
    done: list[int] = []

    def task(item: int, _: int) -> None:
        if item == 5:
            raise error("at five")
        time.sleep(0.0002)
        done.append(item)

    with pytest.raises(error, match="at five"):
        threads.run(task, range(100_000), workers)
    assert len(done) < 1000


def test_tasks_may_run_tasks() -> None:
    found: list[tuple[int, int]] = []

    def outer(item: int, _: int) -> None:
        threads.run(lambda inner, _: found.append((item, inner)), range(20), 3)

    threads.run(outer, range(20), 3)
    assert sorted(found) == [(a, b) for a in range(20) for b in range(20)]


def test_the_default_is_what_the_process_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SUFFICE_THREADS", raising=False)
    assert threads.thread_count() >= 1
    monkeypatch.setenv("SUFFICE_THREADS", "7")
    assert threads.thread_count() == 7


@pytest.mark.parametrize("text", ["0", "-1", "two", "", "1.5", "100000"])
def test_a_wrong_default_is_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("SUFFICE_THREADS", text)
    with pytest.raises(OptionError, match="SUFFICE_THREADS"):
        threads.thread_count()


def test_ctrl_c_ends_the_work(fresh_python: Callable[[str], str]) -> None:
    code = """
import signal, time
from suffice.kernels.threads import run
done = []
def task(item, worker):
    time.sleep(0.001)
    done.append(item)
    if item == 20:
        signal.raise_signal(signal.SIGINT)
try:
    run(task, range(100_000), 3)
except KeyboardInterrupt:
    print("stopped", len(done) < 5000)
"""
    assert fresh_python(code) == "stopped True\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_makes_a_pool_of_its_own(fresh_python: Callable[[str], str]) -> None:
    code = """
import os, sys, warnings
warnings.simplefilter("ignore")
from suffice.kernels.threads import run
def total(workers):
    found = []
    run(lambda item, worker: found.append(item), range(100), workers)
    return sum(found)
assert total(3) == 4950
child = os.fork()
if child == 0:
    os._exit(0 if total(3) == 4950 else 1)
print(os.waitpid(child, 0)[1], total(3))
"""
    assert fresh_python(code) == "0 4950\n"


def test_blas_keeps_its_threads_where_it_cannot_be_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "_blas_controller", lambda: None)
    assert threads.blas_threads(4) == 1
    with threads.one_blas_thread():
        pass


def test_blas_is_held_to_one_thread() -> None:
    threadpoolctl = pytest.importorskip("threadpoolctl")

    def blas() -> list[int]:
        return [entry["num_threads"] for entry in threadpoolctl.threadpool_info() if entry["user_api"] == "blas"]

    threads._controller_of.cache_clear()  # Libraries that other tests have loaded since count too.
    before = blas()
    with threads.one_blas_thread():
        assert set(blas()) <= {1}
    assert blas() == before
    assert threads.blas_threads(4) == 4
