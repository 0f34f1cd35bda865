"""Windows of codes and words of texts, on both paths, against plain Python."""

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suffice.kernels import choice
from suffice.kernels.ngrams import CodedPart, count_parts, count_windows, find_children, with_ends
from suffice.kernels.words import WordNumbers

MODES = ("numpy", "compiled")


def by_hand(parts: list[CodedPart], order: int, past: Any, future: Any) -> list[tuple[tuple[int, ...], int]]:
    counts: Counter[tuple[int, ...]] = Counter()
    for part in parts:
        for begin, end in zip(part.offsets[:-1], part.offsets[1:], strict=True):
            codes = part.codes[begin:end]
            padded = [int(past[0])] * order + [int(past[code]) for code in codes]
            counts.update((*padded[at : at + order], int(future[code])) for at, code in enumerate(codes))
    return sorted(counts.items())


def some_parts(rng: np.random.Generator, most: int) -> list[CodedPart]:
    parts = []
    for sequences in (40, 1, 25):
        lengths = rng.integers(1, 12, sequences)
        # Few codes are frequent, so that some windows come often and groups are small and large.
        codes = (most ** rng.random(int(lengths.sum())) + 1).astype(np.int32)
        parts.append(CodedPart(codes, np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)))
    return parts


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("order", [1, 2, 3, 4])
@pytest.mark.parametrize("largest", [5, 60_000, 2_000_000])
def test_windows_are_counted_in_order(mode: str, order: int, largest: int) -> None:
    rng = np.random.default_rng(order)
    parts = some_parts(rng, 30)
    # 21 bits a code: four of them do not fit in a word, and at order 4 not even the histories.
    past, future = (np.sort(rng.choice(largest + 40, 40, replace=False)).astype(np.int32) for _ in range(2))
    past[-1] = future[-1] = largest + 40
    past[0], past[7] = past[7], past[0]
    expected = by_hand(parts, order, past, future)
    with choice.force(mode):
        cells, values = count_parts(list(parts), order, past, future)
    assert cells.dtype == np.int32
    assert values.dtype == np.float64
    assert list(zip(map(tuple, cells.tolist()), values.tolist(), strict=True)) == expected


def test_large_groups_are_sorted_too() -> None:
    rng = np.random.default_rng(0)
    codes = rng.integers(1, 5, 3000).astype(np.int32)
    parts = [CodedPart(codes, np.array([0, 1000, 3000]))]
    table = np.array([1 << 20, 3, 1 << 19, 5, 8], dtype=np.int32)
    with choice.force("compiled"):
        cells, values = count_parts(list(parts), 3, table, table)
    assert list(zip(map(tuple, cells.tolist()), values.tolist(), strict=True)) == by_hand(parts, 3, table, table)


@pytest.mark.parametrize("mode", MODES)
def test_weights_of_sequences_are_added_up(mode: str) -> None:
    part = CodedPart(np.array([1, 2, 1, 2], dtype=np.int32), np.array([0, 2, 4]), np.array([1.0, 1.0, 2.5, 2.5]))
    table = np.arange(3, dtype=np.int32)
    with choice.force(mode):
        cells, values = count_parts([part, CodedPart(part.codes, part.offsets)], 1, table, table)
    assert cells.tolist() == [[0, 1], [1, 2]]
    assert values.tolist() == [5.5, 5.5]


def test_the_parts_are_let_go() -> None:
    table = np.arange(3, dtype=np.int32)
    for mode in MODES:
        parts = [CodedPart(np.array([1, 2], dtype=np.int32), np.array([0, 2]))]
        with choice.force(mode):
            count_parts(parts, 1, table, table)
        assert parts == []


def test_no_windows_at_all() -> None:
    cells, values = count_windows([np.empty(0, np.int32)] * 3)
    assert cells.shape == (0, 3)
    assert values.shape == (0,)


@pytest.mark.parametrize("mode", MODES)
def test_children_are_found_by_word(mode: str) -> None:
    rng = np.random.default_rng(0)
    children = [np.sort(rng.choice(500, size, replace=False)) for size in (3, 0, 200, 1, 40)]
    starts = np.concatenate([[0], np.cumsum([len(words) for words in children])])
    words = np.concatenate(children).astype(np.int32)
    above = np.array([2, 4, 0, 2, 3])
    runs = [(history, int(w)) for history, node in enumerate(above) for w in children[node][:: 1 + history]]
    history, word = (np.array(column, dtype=np.int32) for column in zip(*runs, strict=True))
    with choice.force(mode):
        begins = np.searchsorted(history, np.arange(len(above) + 1)).astype(np.int32)
        found = find_children(above, starts, words, begins, word)
    assert (words[found] == word).all()
    assert (np.searchsorted(starts, found, side="right") - 1 == above[history]).all()


def test_every_sequence_is_followed_by_its_end() -> None:
    codes, offsets = with_ends(np.array([5, 6, 7], dtype=np.int32), np.array([0, 2, 3]), 1)
    assert codes.tolist() == [5, 6, 1, 7, 1]
    assert offsets.tolist() == [0, 3, 5]


# -- words -----------------------------------------------------------------------------------------------------------

LETTERS = st.sampled_from(
    [b"a", b"b", b"\x00", b"\x01", b"\x1f", b" ", b"\t", b"\n", b"\r", b"\x0b", b"\xc3\xa9", b"!"]
)
PIECES = st.lists(st.one_of(LETTERS, st.sampled_from([b"abcdefg", b"abcdefgh", b"abcdefghi", b"z" * 30])), max_size=60)


@settings(max_examples=150, deadline=None)
@given(PIECES.map(b"".join), PIECES.map(b"".join), st.sampled_from([None, 1]))
def test_words_are_those_of_python(first: bytes, second: bytes, end: int | None) -> None:
    known: dict[bytes, int] = {}
    for mode in MODES:
        numbers = WordNumbers(2, end)
        with choice.force(mode):
            for text in (first, second):
                lines = [line.split() for line in text.split(b"\n") if line.split()]
                closing = [] if end is None else [end]
                rows = [[known.setdefault(w, len(known)) + 2 for w in line] + closing for line in lines]
                codes, offsets = numbers.read(text)
                assert codes.tolist() == [code for row in rows for code in row]
                assert np.diff(offsets).tolist() == [len(row) for row in rows]
        assert numbers.words == list(known)
        assert len(numbers) == len(known)


def test_words_go_on_where_python_left_off() -> None:
    numbers = WordNumbers()
    with choice.force("numpy"):
        numbers.read(b"one two three")
    with choice.force("compiled"):
        codes, _ = numbers.read("three vier f\u00fcnfundzwanzig one".encode())
    assert codes.tolist() == [2, 3, 4, 0]
    assert numbers.texts == ["one", "two", "three", "vier", "f\u00fcnfundzwanzig"]


def test_a_word_longer_than_every_table() -> None:
    long = b"x" * 3_000_000
    with choice.force("compiled"):
        numbers = WordNumbers()
        codes, offsets = numbers.read(b"a " + long + b" b " + long + b"y " + long)
    assert codes.tolist() == [0, 1, 2, 3, 1]
    assert offsets.tolist() == [0, 5]
    assert numbers.words == [b"a", long, b"b", long + b"y"]
