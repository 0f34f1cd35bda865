"""Counts of windows beyond memory are those in memory: windows, texts, iterators; and the memory that they take."""

import tracemalloc
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import suffice as sf
from suffice.kernels.ngrams import CodedPart
from suffice.sources.ngrams import WindowLayout, count_text
from suffice.sources.scratch import Scratch
from suffice.sources.sorted_runs import Run, RunsOnDisk, merged_pieces


@pytest.mark.parametrize("order", [0, 1, 2, 3])
@pytest.mark.parametrize("limit", [1, 2_000, 100_000])
def test_runs_are_merged_to_the_counts_of_all_windows(order: int, limit: int) -> None:
    rng = np.random.default_rng(order)
    runs = RunsOnDisk(order, limit)
    assert not runs
    table = np.concatenate([[0], 1 + rng.permutation(40)]).astype(np.int32)
    expected: Counter[tuple[int, ...]] = Counter()
    for weighted in (False, True, False):
        sequences = [1 + rng.zipf(1.3, rng.integers(1, 40)) % 40 for _ in range(60)]
        weights = rng.integers(1, 4, len(sequences)) if weighted else np.ones(len(sequences), int)
        offsets = np.concatenate([[0], np.cumsum(list(map(len, sequences)))])
        each = np.repeat(weights, np.diff(offsets)).astype(float) if weighted else None
        runs.keep([CodedPart(np.concatenate(sequences).astype(np.int32), offsets, each)])
        for sequence, weight in zip(sequences, weights.tolist(), strict=True):
            padded = [0] * order + table[sequence].tolist()
            for step in range(len(sequence)):
                expected[tuple(padded[step : step + order + 1])] += weight
    assert runs
    cells, counts = runs.count(table, table)
    assert list(map(tuple, cells.tolist())) == sorted(expected)
    assert counts.tolist() == [expected[window] for window in sorted(expected)]
    assert not runs


def test_pieces_are_as_small_as_asked_and_in_order() -> None:
    rng = np.random.default_rng(3)
    runs = []
    for _ in range(4):
        windows = np.unique(rng.zipf(1.5, (3_000, 3)) % 50, axis=0)
        runs.append(Run(windows.T.astype(np.int32), rng.integers(1, 9, len(windows)).astype(float)))
    pieces = list(merged_pieces(runs, 200))
    assert len(pieces) > 5
    assert max(map(len, pieces)) <= 200
    everything = np.concatenate([piece.codes.T for piece in pieces])
    assert everything.tolist() == np.unique(everything, axis=0).tolist()
    assert sum(piece.weights.sum() for piece in pieces) == sum(run.weights.sum() for run in runs)


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(8)
    lines = [" ".join(f"w{code}" for code in rng.zipf(1.2, 9) % 3_000) for _ in range(4_000)]
    path = tmp_path_factory.mktemp("texts") / "corpus.txt"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("order", [1, 3])
def test_a_limit_changes_no_digit(text: Path, order: int) -> None:
    options: dict[str, Any] = {"smoothing": "kneser-ney", "bounds": True, "tokens": "words"}
    whole = sf.MarkovChain(order, **options).fit(text)
    small = sf.MarkovChain(order, memory_limit=100_000, **options).fit(text)
    assert small.log_likelihood_ == whole.log_likelihood_
    for mine, other in zip(small.fitted_.counted.levels, whole.fitted_.counted.levels, strict=True):
        for name in ("history", "word", "suffix", "count"):
            np.testing.assert_array_equal(getattr(mine, name), getattr(other, name))
    lines = text.read_text(encoding="utf-8").splitlines()
    streamed = sf.MarkovChain(order, memory_limit=100_000, **options).fit(iter(lines))
    assert streamed.log_likelihood_ == whole.log_likelihood_


def test_scratch_files_are_gone_after_the_fit_and_after_an_error(text: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folders = []
    named = Scratch.file

    def file(scratch: Scratch) -> Path:
        folders.append(scratch.folder)
        return named(scratch)

    monkeypatch.setattr(Scratch, "file", file)
    sf.MarkovChain(2, memory_limit=50_000, tokens="words").fit(text)
    assert folders
    assert not any(folder.exists() for folder in folders)
    text_with_mark = text.parent / "marked.txt"
    text_with_mark.write_text(text.read_text(encoding="utf-8") + "a <s> b\n", encoding="utf-8")
    folders.clear()
    with pytest.raises(sf.DataError, match="<s>"):
        sf.MarkovChain(2, memory_limit=50_000, tokens="words").fit(text_with_mark)
    assert folders
    assert not any(folder.exists() for folder in folders)


def test_lists_take_no_limit() -> None:
    with pytest.raises(sf.OptionError, match="sequences in lists are in memory already"):
        sf.MarkovChain(memory_limit="1MB").fit(["ab", "ba"])


def test_steps_do_not_stay_in_memory(tmp_path: Path) -> None:
    """A million steps of few windows: their codes alone take 4 MB, counting them at once four times that."""
    rng = np.random.default_rng(1)
    line = " ".join(f"w{code}" for code in rng.integers(0, 200, 100_000))
    path = tmp_path / "long.txt"
    path.write_text("".join(f"{part}\n" for part in line.split(" w7 ")) * 10, encoding="utf-8")
    peaks = []
    for limit in (None, 1_000_000):
        tracemalloc.start()
        summary = count_text(path, WindowLayout(1, end="</s>"), limit)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert summary.rows > 900_000
    # Of the limited one the most is room for windows that may differ, which is asked for and not used.
    assert peaks[1] < 0.5 * peaks[0]
