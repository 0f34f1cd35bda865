"""What a fit of a chain CRF holds at its peak, in bytes an entry of the design, as NumPy and Python report it."""

import tracemalloc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from suffice.models.chain_crf.features import read_sequences
from suffice.solvers.gradient import remember


@pytest.fixture
def traced() -> Iterator[Any]:
    """A function that gives the bytes at the peak of a call beyond those before it, and its answer."""
    tracemalloc.start()

    def measured(call: Any) -> Any:
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        answer = call()
        return tracemalloc.get_traced_memory()[1] - before, answer

    yield measured
    tracemalloc.stop()


def names(count: int = 1500, steps: int = 8, width: int = 12) -> Any:
    rng = np.random.default_rng(0)
    words = [f"feature {i}" for i in range(400)]
    picked = rng.integers(0, 400, size=(count, steps, width)).tolist()
    return [[[words[i] for i in step] for step in sequence] for sequence in picked]


def test_names_are_read_into_few_bytes_an_entry(traced: Any) -> None:
    """4 bytes an entry for its code, and an eighth for growth; 8 bytes a step (12 entries) for counts, and for ends."""
    X = names()
    entries = 1500 * 8 * 12
    peak, found = traced(lambda: read_sequences(X))
    assert found.values.matrix.indices.dtype == np.int32
    assert len(found.values.matrix.indices) == entries
    assert not len(found.values.matrix.values)
    assert peak < 9 * entries


def test_values_other_than_one_are_kept_in_their_places() -> None:
    found = read_sequences([[{"a": 1.0, "b": 2.5}, ["a", "c"]], [[], {"c": True, "d": False, "e": "x"}]])
    assert found.values.space.names == ("a", "b", "c", "d", "e:x")
    np.testing.assert_array_equal(found.values.matrix.indices, [0, 1, 0, 2, 2, 3, 4])
    np.testing.assert_array_equal(found.values.matrix.values, [1.0, 2.5, 1.0, 1.0, 1.0, 0.0, 1.0])
    np.testing.assert_array_equal(found.values.matrix.indptr, [0, 2, 4, 4, 7])


def test_pairs_are_shared_not_copied() -> None:
    rng = np.random.default_rng(1)
    pairs: Any = ([], [])
    kept = []
    for _ in range(4):
        step = rng.normal(size=9)
        kept.append(step)
        pairs = remember(pairs, step, 2.0 * step, 3)
    assert [one is other for one, other in zip(pairs[0], kept[1:], strict=True)] == [True] * 3
