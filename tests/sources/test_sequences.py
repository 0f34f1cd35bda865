"""Sequences in: every form lays the same steps end to end, and what cannot be read says why."""

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import suffice as sf
from suffice.sources.sequences import Sequences, code_states, open_sequences

STATES = st.sampled_from(["a", "b", "long"])


@settings(max_examples=30, deadline=None)
@given(st.lists(st.lists(st.integers(-3, 3), min_size=1, max_size=5), min_size=1, max_size=5))
def test_forms_of_numbers_agree(sequences: list[list[int]]) -> None:
    flat = np.array([value for sequence in sequences for value in sequence])
    lengths = [len(sequence) for sequence in sequences]
    frame = pd.DataFrame({"g": np.repeat(np.arange(len(sequences)), lengths), "x": flat})
    forms: list[Sequences[Any]] = [
        open_sequences(sequences),
        open_sequences([np.array(s) for s in sequences]),
        open_sequences([pd.Series(s) for s in sequences]),
        open_sequences(flat, lengths=lengths),
        open_sequences(flat.tolist(), lengths=lengths),
        open_sequences(pd.Series(flat), lengths=lengths),
        open_sequences(pl.Series(flat), lengths=lengths),
        open_sequences(frame, group="g"),
        open_sequences(pl.from_pandas(frame), group="g"),
        open_sequences(frame[["x"]], lengths=lengths),
        open_sequences(iter(sequences)),
    ]
    for found in forms:
        assert found.values.tolist() == flat.tolist()
        assert found.lengths.tolist() == lengths
        assert (found.n_sequences, found.n_steps, len(found)) == (len(lengths), len(flat), len(lengths))
        assert [found[at].tolist() for at in range(len(found))] == sequences


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), STATES), min_size=1, max_size=12))
def test_rows_of_a_group_keep_their_order(rows: list[tuple[int, str]]) -> None:
    frame = pd.DataFrame(rows, columns=["g", "x"])
    found = open_sequences(frame, group="g")
    order = list(dict.fromkeys(group for group, _ in rows))
    expected = [[value for other, value in rows if other == group] for group in order]
    assert [found[at].tolist() for at in range(len(found))] == expected


def test_several_observations_a_step() -> None:
    matrices = [np.arange(6.0).reshape(3, 2), np.arange(4.0).reshape(2, 2)]
    whole = np.concatenate(matrices)
    frame = pd.DataFrame({"g": [1, 1, 1, 2, 2], "u": whole[:, 0], "v": whole[:, 1]})
    for found in (
        open_sequences(matrices),
        open_sequences([matrix.tolist() for matrix in matrices]),
        open_sequences(whole, lengths=[3, 2]),
        open_sequences(frame, group="g"),
    ):
        assert np.array_equal(found.values, whole)
        assert found.offsets.tolist() == [0, 3, 5]
        assert found.width == 2
    assert open_sequences(frame, group="g").columns == ["u", "v"]
    assert open_sequences(frame, group="g", columns="v").values.tolist() == whole[:, 1].tolist()
    assert open_sequences(np.zeros((2, 3, 4))).offsets.tolist() == [0, 3, 6]
    assert open_sequences(whole[:, :1]).single().values.ndim == 1


def test_values_keep_their_types() -> None:
    assert open_sequences([[1, True], ["1"]]).values.tolist() == [1, True, "1"]
    assert open_sequences([[1.5, None]]).values.tolist()[0] == 1.5
    assert np.isnan(open_sequences([[1.5, None]]).values[1])
    assert open_sequences([[("a", 1), ("b", 2)]]).values.tolist() == [("a", 1), ("b", 2)]
    masked = open_sequences(np.ma.array([1, 2, 3], mask=[False, True, False]))
    assert np.isnan(masked.values[1])
    assert open_sequences(masked) is masked


def test_states_are_coded_in_order() -> None:
    codes, states = code_states(np.array(["b", None, "a"], dtype=object))
    assert (codes.tolist(), states) == ([1, -1, 0], ("a", "b"))
    codes, states = code_states(np.array([3.0, np.nan]), [1, 2, 3])
    assert (codes.tolist(), states) == ([2, -1], (1, 2, 3))
    with pytest.raises(sf.UnknownStateError, match="'c'"):
        code_states(np.array(["c"], dtype=object), ["a"])


@pytest.mark.parametrize(
    ("data", "options", "error", "message"),
    [
        (3, {}, sf.DataError, "from int"),
        ("abc", {}, sf.DataError, "the text 'abc'"),
        (np.array([]), {}, sf.DataError, "no steps"),
        ([np.zeros((2, 2)), np.zeros((1, 3))], {}, sf.DataError, "sequence 1 has 3 observations"),
        ([[[1, 2], [3]]], {}, sf.DataError, "Step 1 of sequence 0"),
        (np.zeros((2, 2, 2, 2)), {}, sf.DataError, "shape"),
        (np.arange(3), {"lengths": [1.5, 1.5]}, sf.DataError, "whole number"),
        (np.arange(3), {"lengths": np.array([], dtype=int)}, sf.DataError, "there is none"),
        (np.arange(3), {"columns": ["a", "b"]}, sf.DataError, "2 names for 1"),
        (pd.DataFrame({"g": [1, None], "x": [1, 2]}), {"group": "g"}, sf.DataError, "missing value"),
        (pd.DataFrame({"g": [1]}), {"group": "g"}, sf.DataError, "none holds observations"),
        (pd.DataFrame({"x": [1]}), {"columns": ["y"]}, sf.MissingColumnError, "'y'"),
        (pd.DataFrame({"x": [1]}), {"group": "x", "lengths": [1]}, sf.OptionError, "not both"),
    ],
)
def test_what_cannot_be_read_says_why(data: Any, options: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        open_sequences(data, **options)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=4), min_size=1, max_size=6), st.data())
def test_parts_of_sequences_are_those_sequences(lists: list[list[int]], data: st.DataObject) -> None:
    opened = open_sequences(lists)
    weights = np.arange(1.0, len(lists) + 1)
    whole = opened.reading((opened.values, opened.values[:, None] * 2.0), sample_weight=weights, labels=opened.values)
    numbers = data.draw(st.lists(st.integers(0, len(lists) - 1), min_size=1))
    chosen = whole.chosen(numbers)
    assert [chosen[number][0].tolist() for number in range(len(numbers))] == [lists[number] for number in numbers]
    assert chosen.labels is not None
    assert chosen.values[1][:, 0].tolist() == (2 * chosen.values[0]).tolist() == (2 * chosen.labels).tolist()
    assert chosen.weights.tolist() == weights[numbers].tolist()
    first, last = sorted((numbers[0], len(lists)))
    span = whole.take(first, last)
    assert [span[number][0].tolist() for number in range(len(span))] == lists[first:last]
    assert span.weight == sum(w * len(part) for w, part in zip(weights[first:last], lists[first:last], strict=True))
    assert [whole.where(step) for step in range(whole.n_steps)] == [
        (number, step) for number, part in enumerate(lists) for step in range(len(part))
    ]
    assert whole.head(3).n_steps <= max(3, whole.n_steps * (whole.n_steps <= 3))
    begun = whole.chosen(numbers, most=2)
    assert [begun[number][0].tolist() for number in range(len(numbers))] == [lists[number][:2] for number in numbers]
