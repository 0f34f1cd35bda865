"""Columns that are codes already are taken as they stand, all together; whatever is not one of them is still found."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import pytest

import suffice as sf
from suffice.domain import Domain, Variable
from suffice.errors import MissingValueError, UnknownStateError
from suffice.sources import open_source, summarize_source

STATES = {"a": [0, 1, 2], "b": [0, 1]}
CODES = {"a": np.array([0, 2, 1, 2], np.uint8), "b": np.array([1, 0, 1, 1], np.uint8)}
QUESTIONS = (sf.Counts(("a", "b")), sf.Counts(("b",)))


def expected(columns: dict[str, Any], weights: Any = None) -> Any:
    """Counts of (a, b) by `np.add.at`."""
    table = np.zeros((3, 2))
    np.add.at(table, (columns["a"], columns["b"]), 1.0 if weights is None else weights)
    return table


def frame(columns: dict[str, Any]) -> pd.DataFrame:
    labels = {"a": ["low", "mid", "high"], "b": ["no", "yes"]}
    return pd.DataFrame({name: pd.Categorical.from_codes(codes, labels[name]) for name, codes in columns.items()})


def counted(data: Any, states: Any = None, **options: Any) -> Any:
    return sf.summarize(QUESTIONS, data, states=states, **options)[QUESTIONS[0]].dense()


@pytest.mark.parametrize("weights", [None, [0.5, 2.0, 0.0, 1.0]])
def test_codes_and_categories_are_counted_alike(weights: Any) -> None:
    for data, states in ((CODES, STATES), (frame(CODES), None)):
        np.testing.assert_array_equal(counted(data, states, sample_weight=weights), expected(CODES, weights))


def test_one_batch_holds_the_codes_themselves() -> None:
    source = open_source(frame(CODES))
    (batch,) = source.batches(source.infer())
    assert batch.codes.dtype == np.uint8
    np.testing.assert_array_equal(batch.codes, [CODES["a"], CODES["b"]])
    assert batch.domain["a"].states == ("low", "mid", "high")


def test_a_code_beyond_the_declared_states_is_named_with_its_row() -> None:
    wrong = {**CODES, "a": np.array([0, 2, 3, 1], np.uint8)}
    with pytest.raises(UnknownStateError, match=r"Column 'a' holds 3 \(int\) \(row 2\)"):
        counted(wrong, STATES)


def test_a_gap_in_a_category_is_a_gap() -> None:
    data = frame({"a": np.array([0, -1, 1, 2], np.int8), "b": CODES["b"].astype(np.int8)})
    with pytest.raises(
        MissingValueError, match="Column 'a' has 1 missing value among the rows 0 to 3, the first in row 1"
    ):
        counted(data)
    source = open_source(data)
    found = summarize_source(source, source.infer(), QUESTIONS, missing="available")
    np.testing.assert_array_equal(found[QUESTIONS[1]].dense(), [1.0, 3.0])
    assert found[QUESTIONS[0]].dense().sum() == 3.0


def test_truth_values_and_numbers_are_different_states() -> None:
    assert sf.Domain([sf.Variable.discrete("a", [False, True])])["a"].find(0) is None
    with pytest.raises(UnknownStateError):
        counted({"a": CODES["a"], "b": CODES["b"]}, {"a": [0, 1, 2], "b": [False, True]})


def test_states_in_another_order_are_told_by_label() -> None:
    turned = counted(CODES, {"a": [2, 1, 0], "b": [0, 1]})
    np.testing.assert_array_equal(turned, expected(CODES)[::-1])
    data = frame(CODES)
    turned = counted(data, {"a": ["high", "mid", "low"], "b": ["no", "yes"]})
    np.testing.assert_array_equal(turned, expected(CODES)[::-1])


def test_categories_that_are_numbers_may_be_weights() -> None:
    weights = pd.Categorical([2.0, 1.0, 1.0, 0.5])
    data = frame(CODES).assign(w=weights)
    np.testing.assert_array_equal(counted(data, sample_weight="w"), expected(CODES, [2.0, 1.0, 1.0, 0.5]))


def test_a_frame_without_a_way_in_is_read_by_its_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(pd.DataFrame, "_get_column_array", raising=False)
    np.testing.assert_array_equal(counted(frame(CODES)), expected(CODES))


def test_no_rows_at_all() -> None:
    empty = {name: codes[:0] for name, codes in CODES.items()}
    for data, states in ((empty, STATES), (frame(empty), None)):
        np.testing.assert_array_equal(counted(data, states), np.zeros((3, 2)))


@pytest.mark.parametrize("kind", [np.int64, np.int32, np.uint8, np.uint64])
@pytest.mark.parametrize("numbers", [(0, 1), (3,), (0, 5, 7), (-4, 2), (0, 254), (0, 255), (1, 256), (250, 900)])
def test_whole_numbers_have_the_states_that_rows_hold(kind: Any, numbers: tuple[int, ...]) -> None:
    if not np.iinfo(kind).min <= min(numbers) <= max(numbers) <= np.iinfo(kind).max:
        pytest.skip("the type does not hold them")
    for last in (numbers[-1], numbers[0]):  # Known by the last row alone, or by many.
        values = np.array([numbers[0], *numbers[:-1]] * 5_000 + [last], dtype=kind)
        held = Counter(values.tolist())
        question = sf.Counts(("x",))
        kept = summarize_source(open_source({"x": values}), Domain([Variable("x", "discrete")]), [question])
        assert kept.domain["x"].states == tuple(sorted(held))
        assert kept[question].dense().tolist() == [held[state] for state in sorted(held)]
