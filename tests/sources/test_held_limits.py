"""Shards beyond a memory limit, in a scratch folder or prepared again: sums are those in memory to the bit."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import tempfile
import textwrap
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from suffice.checks import byte_count
from suffice.errors import DataError, OptionError, UnknownStateError
from suffice.sources import Source, open_source, scratch, stream
from suffice.sources.base import Batch
from suffice.sources.held import Settled

ROWS = 4000


@dataclass(frozen=True)
class Slopes:
    """Value and slope of a logistic regression: sums of floats, whose last bits show their order."""

    def prepare(self, batch: Batch) -> tuple[np.ndarray, np.ndarray]:
        return batch.reals.copy(), batch.codes[0].copy()

    def evaluate(self, prepared: tuple[np.ndarray, np.ndarray], parameters: np.ndarray) -> np.ndarray:
        columns, response = prepared
        eta = parameters @ columns
        return np.append(columns @ (response - 1 / (1 + np.exp(-eta))), (response * eta - np.logaddexp(0, eta)).sum())


def interrupted(prepared: object, parameters: object) -> float:
    """As if Ctrl-C came in the middle of a round."""
    raise KeyboardInterrupt


PARAMETERS = np.array([0.3, -1.2])


def frame() -> pd.DataFrame:
    rng = np.random.default_rng(2)
    return pd.DataFrame({"y": rng.integers(0, 2, ROWS), "u": rng.normal(size=ROWS), "v": rng.normal(size=ROWS)})


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(stream, "BATCH_ROWS", 256)
    monkeypatch.setattr("suffice.sources.shards.SHARD_BYTES", 8_000)
    frame().to_parquet(tmp_path / "rows.parquet", row_group_size=500)
    return str(tmp_path / "rows.parquet")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where scratch folders are made, and are gone after each test."""
    inside = tmp_path / "scratch"
    inside.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(inside))
    yield inside
    gc.collect()
    assert list(inside.iterdir()) == []


def opened(data: object) -> tuple[Source, Settled]:
    source = open_source(data)
    return source, source.settle(source.infer(["y", "u", "v"]))


def test_shards_add_up_to_the_whole(path: str) -> None:
    source, settled = opened(frame())
    with source.hold(Slopes(), settled) as held:
        assert held.shards == 1
        whole = held.sum(PARAMETERS)
    for threads in (1, 2):
        source, settled = opened(path)
        with source.hold(Slopes(), settled, threads=threads) as held:
            assert held.shards > 10
            assert held.location == "in memory"
            np.testing.assert_allclose(held.sum(PARAMETERS), whole, rtol=1e-12)


def test_written_and_prepared_again_are_in_memory_to_the_bit(
    path: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, settled = opened(path)
    chosen = [7, 0, 3, 3, 12]
    with source.hold(Slopes(), settled) as held:
        kept, some = held.sum(PARAMETERS), held.sum(PARAMETERS, shards=chosen)
        count, passes = held.shards, source.passes
    for threads in (1, 2):
        with source.hold(Slopes(), settled, memory_limit=40_000, threads=threads) as held:
            assert held.location == "in a scratch folder"
            assert held.shards == count
            (used,) = folder.iterdir()
            assert 0 < len(list(used.iterdir())) < count
            for _ in range(2):
                assert np.array_equal(held.sum(PARAMETERS), kept)
                assert np.array_equal(held.sum(PARAMETERS, shards=chosen), some)
        assert list(folder.iterdir()) == []
    assert source.passes == passes + 2
    monkeypatch.setattr(scratch.Scratch, "has_room", lambda self, size: False)
    with source.hold(Slopes(), settled, memory_limit=40_000) as held:
        assert held.location == "prepared again in each round"
        for _ in range(2):
            assert np.array_equal(held.sum(PARAMETERS), kept)
            assert np.array_equal(held.sum(PARAMETERS, shards=chosen), some)


@dataclass(frozen=True)
class Refusing:
    """Refuses a value, as a model does."""

    def prepare(self, batch: Batch) -> Counter[str]:
        wrong = np.flatnonzero(batch.reals[0] > 100)
        if len(wrong):
            raise UnknownStateError(f"no such value (row {batch.number(int(wrong[0]))})")
        return Counter()

    def evaluate(self, prepared: Counter[str], parameters: None) -> int:
        return 0


def test_errors_of_the_work_name_the_row_and_the_file(path: str) -> None:
    frame().assign(u=np.where(np.arange(ROWS) == 3210, 1e3, 0.0)).to_parquet(path, row_group_size=500)
    source, settled = opened(path)
    for call in (
        lambda: source.hold(Refusing(), settled),
        lambda: source.reduce(Refusing().prepare, settled.domain),
        lambda: list(source.map(Refusing().prepare, settled.domain)),
    ):
        with pytest.raises(UnknownStateError, match=r"row 3210") as caught:
            call()
        assert str(caught.value).endswith(f"That is row 3210 of {path!r}.")
    with pytest.raises(UnknownStateError, match=r"row 3210"):
        source.hold(Refusing(), settled, group="v")


def test_free_memory_is_the_limit_of_files_and_not_of_data_in_memory(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("suffice.sources.base.free_memory", lambda: 60_000)
    for data, location in ((path, "in a scratch folder"), (frame(), "in memory")):
        source, settled = opened(data)
        with source.hold(Slopes(), settled) as held:
            assert held.location == location


def test_progress_counts_rows(path: str) -> None:
    source, settled = opened(path)
    calls: list[tuple[int, int | None]] = []
    source.hold(Slopes(), settled, progress=lambda done, total: calls.append((done, total)))
    assert calls[-1] == (ROWS, ROWS)
    assert len(calls) > 10
    assert [done for done, _ in calls] == sorted(done for done, _ in calls)


def test_the_folder_is_gone_with_the_shards(path: str, folder: Path) -> None:
    source, settled = opened(path)
    held = source.hold(Slopes(), settled, memory_limit=1)
    assert len(list(folder.iterdir())) == 1
    del held
    gc.collect()
    assert list(folder.iterdir()) == []


def test_errors_and_interrupts_leave_nothing_behind(path: str, folder: Path) -> None:
    source, settled = opened(path)
    before = set(threading.enumerate())
    with source.hold(Slopes(), settled, memory_limit=1, threads=2) as held:
        first = held.sum(PARAMETERS)
        with pytest.raises(KeyboardInterrupt):
            held.sum(PARAMETERS, by=interrupted)
        for thread in set(threading.enumerate()) - before:
            thread.join(10)
        assert set(threading.enumerate()) <= before
        assert np.array_equal(held.sum(PARAMETERS), first)
    frame().assign(u=np.where(np.arange(ROWS) == 3210, np.inf, 0.0)).to_parquet(path, row_group_size=500)
    with pytest.raises(DataError, match=r"'u' holds inf \(row 3210\)"):
        source.hold(Slopes(), settled, memory_limit=1)
    assert list(folder.iterdir()) == []


def test_the_folder_is_gone_after_ctrl_c_and_at_the_end_of_the_process(path: str, folder: Path) -> None:
    script = f"""
        import os, signal, sys
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        from suffice.sources import open_source, stream
        from test_held_limits import Slopes, opened
        stream.BATCH_ROWS = 256
        source, settled = opened({path!r})
        held = source.hold(Slopes(), settled, memory_limit=1)
        assert os.listdir({str(folder)!r})
        os.kill(os.getpid(), signal.SIGINT)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], env={**os.environ, "TMPDIR": str(folder)}, check=False
    )
    assert done.returncode != 0


def test_what_a_killed_process_left_is_removed_by_the_next(folder: Path) -> None:
    """Its lock is free; the folder of a process that lives has a lock that is held, and stays."""
    script = """
        import os, signal
        from suffice.sources.scratch import Scratch, append
        scratch = Scratch()
        append(scratch.file(), list(range(1000)))
        os.kill(os.getpid(), signal.SIGKILL)
    """
    here = scratch.Scratch()
    scratch.append(here.file(), "mine")
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], env={**os.environ, "TMPDIR": str(folder)}, check=False
    )
    assert done.returncode == -9
    assert len(list(folder.iterdir())) == 2
    there = scratch.Scratch()
    folders = {there.folder, here.folder}
    assert set(folder.iterdir()) == folders
    there.close()
    assert list(scratch.read_all(here.folder / "1.pickle")) == ["mine"]
    here.close()
    assert list(folder.iterdir()) == []


def test_data_that_change_between_passes_are_an_error(tmp_path: Path) -> None:
    target = tmp_path / "states.parquet"
    pq.write_table(pa.table({"y": ["a", "b"], "u": [0.0, 1.0], "v": [0.0, 1.0]}), target)
    source, settled = opened(str(target))
    pq.write_table(pa.table({"y": ["a", "A"], "u": [0.0, 1.0], "v": [0.0, 1.0]}), target)
    with pytest.raises(DataError, match="changed since their states"):
        source.hold(Slopes(), settled)


def test_sizes_are_numbers_or_words() -> None:
    assert [byte_count(size, "memory_limit") for size in (5e3, "2GB", "500 mb", "1.5 KiB", "12b")] == [
        *(5000, 2 * 10**9, 5 * 10**8, 1536, 12)
    ]
    for wrong in (0, -1, "2 G", "much", None, float("inf"), True):
        with pytest.raises(OptionError, match=r"memory_limit is .* expected a number of bytes"):
            byte_count(wrong, "memory_limit")


MEASURED = """
    import sys
    sys.path.insert(0, {here!r})
    from suffice.sources import open_source
    from test_held_limits import Lengths
    source = open_source({path!r})
    settled = source.settle(source.infer(["s", *(f"x{{k}}" for k in range(8))]))
    with source.hold(Lengths(), settled, group="g", order="t", memory_limit="8MB", threads=1) as held:
        assert held.location == "in a scratch folder"
        rows, sequences = held.sum(None)
        assert (rows, sequences) == ({rows}, {rows} // 10), (rows, sequences)
    with open("/proc/self/status") as status:
        print(next(line.split()[1] for line in status if line.startswith("VmHWM")))
"""


@dataclass(frozen=True)
class Lengths:
    """Rows and sequences of shards that are kept as they are."""

    def prepare(self, batch: Batch) -> Batch:
        return batch

    def evaluate(self, prepared: Batch, parameters: None) -> np.ndarray:
        assert prepared.offsets is not None
        return np.array([prepared.rows, len(prepared.offsets) - 1])


@pytest.mark.skipif(sys.platform != "linux", reason="Linux tells the peak memory of a process")
def test_memory_does_not_follow_the_rows(tmp_path: Path) -> None:
    peaks = []
    for rows in (400_000, 1_200_000):
        path = str(tmp_path / f"{rows}.parquet")
        number = np.arange(rows)
        # Steps of a sequence are far from each other, in all files of the scratch folder.
        columns: dict[str, np.ndarray] = {"g": number % (rows // 10), "t": -number, "s": number % 7}
        columns |= {f"x{k}": number / (rows + k) for k in range(8)}
        pq.write_table(pa.table(columns), path, row_group_size=100_000)
        script = textwrap.dedent(MEASURED.format(here=str(Path(__file__).parent), path=path, rows=rows))
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        peaks.append(int(done.stdout) * 1024)
    # The shards of the larger file take 70 MB more than those of the smaller one.
    assert peaks[1] - peaks[0] < 35e6, peaks
