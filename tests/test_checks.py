"""Arguments: what is taken, as what, and what the error says about the rest."""

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from suffice import checks
from suffice.errors import DataError, OptionError

NO_NUMBERS = ["2", None, [2], math.nan, math.inf, -math.inf, 2j, True, np.True_, Decimal(1), Fraction(1), np.zeros(2)]


@pytest.mark.parametrize("value", [3, np.int8(3), np.uint64(3), np.array(3)])
def test_whole_numbers_of_any_type_are_taken_as_int(value: Any) -> None:
    found = checks.whole_number(value, "n")
    assert (found, type(found)) == (3, int)


@pytest.mark.parametrize("value", [*NO_NUMBERS, 3.0, np.float64(3), 0, -1])
def test_what_is_no_whole_number_is_named(value: Any) -> None:
    with pytest.raises(OptionError, match=r"^n is .*; expected a whole number of at least 1\.$"):
        checks.whole_number(value, "n")


def test_what_else_may_be_given_is_said() -> None:
    with pytest.raises(OptionError, match=r"^threads is 0; expected a whole number of at least 1, or None\.$"):
        checks.whole_number(0, "threads", otherwise=", or None")


@pytest.mark.parametrize("check", [checks.number, checks.positive, checks.share])
@pytest.mark.parametrize("value", [1, 0.5, np.float32(0.5), np.int64(1)])
def test_numbers_are_taken_as_float(check: Any, value: Any) -> None:
    found = check(value, "x")
    assert (found, type(found)) == (float(value), float)


@pytest.mark.parametrize("check", [checks.number, checks.positive, checks.share])
@pytest.mark.parametrize("value", NO_NUMBERS)
def test_what_is_no_number_is_named(check: Any, value: Any) -> None:
    with pytest.raises(OptionError, match=r"^x is .*; expected a .*number"):
        check(value, "x")


@pytest.mark.parametrize(
    ("check", "value", "bounds", "expected"),
    [
        (checks.number, -0.1, {"least": 0}, "a finite number of at least 0"),
        (checks.positive, 0.0, {}, "a positive number"),
        (checks.positive, 9.0, {"most": 5}, "a positive number of at most 5"),
        (checks.share, 1.5, {}, "a number from 0 to 1"),
        (checks.share, -1e-9, {}, "a number from 0 to 1"),
    ],
)
def test_numbers_out_of_range_are_named(check: Any, value: float, bounds: dict[str, float], expected: str) -> None:
    with pytest.raises(OptionError) as caught:
        check(value, "x", **bounds)
    assert str(caught.value) == f"x is {value!r}; expected {expected}."


@pytest.mark.parametrize("allowed", [("a", "b", "c"), {"a": 1, "b": 2, "c": 3}, frozenset("abc")])
@pytest.mark.parametrize("wrong", ["d", None, [], np.array(["a", "b"]), 1])
def test_a_choice_is_one_of_those_allowed(allowed: Any, wrong: Any) -> None:
    assert checks.choice("a", "letter", allowed) == "a"
    with pytest.raises(OptionError, match=r"^letter is .*; expected one of '[abc]', '[abc]', '[abc]'\.$"):
        checks.choice(wrong, "letter", allowed)


def test_of_two_choices_it_is_one_or_the_other() -> None:
    with pytest.raises(OptionError, match=r"^neighbours is 6; expected 4 or 8\.$"):
        checks.choice(6, "neighbours", (4, 8))
    with pytest.raises(OptionError, match=r"expected one of 4, 8, or None\.$"):
        checks.choice(6, "neighbours", (4, 8), otherwise=", or None")


def test_long_values_are_shortened() -> None:
    with pytest.raises(OptionError) as caught:
        checks.choice("x" * 10_000, "letter", ("a",))
    assert len(str(caught.value)) < 300


def test_weights_are_taken_as_numbers() -> None:
    np.testing.assert_array_equal(checks.weights_of(None, 2), [1.0, 1.0])
    np.testing.assert_array_equal(checks.weights_of([2, 0], 2), [2.0, 0.0])
    assert checks.weights_of([], 0).shape == (0,)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([1, "a"], r"^sample_weight holds values that are not numbers: \[1, 'a'\]; expected one for each example\.$"),
        ([1j, 1], "not numbers"),
        ([1.0], r"^sample_weight has shape \(1,\); expected one weight for each of 2 examples\.$"),
        (3.0, r"shape \(\); expected one weight"),
        ([1.0, -1.0], r"^sample_weight of example 1 is -1\.0; expected finite numbers of at least 0\.$"),
        ([math.nan, 1.0], "of example 0 is nan; expected finite"),
        ([1.0, math.inf], "of example 1 is inf; expected finite"),
        ([1.0, 1e200], r"of example 1 is 1e\+200; sums of numbers beyond 1e\+100 overflow"),
    ],
)
def test_weights_that_are_none_are_named(given: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        checks.weights_of(given, 2, "example", 1e100)


def test_weights_that_cannot_be_added_are_refused() -> None:
    with pytest.raises(DataError, match=r"adds up to more than 1e\+300"):
        checks.weights_of([9e299, 9e299], 2)


def test_truth_values_and_real_numbers_are_told_apart() -> None:
    assert checks.truth(np.True_, "shuffle") is True
    for value in (1, 0.0, "yes", None):
        with pytest.raises(OptionError, match=r"shuffle is .*; expected True or False\."):
            checks.truth(value, "shuffle")
    assert checks.is_real(np.float32(2.0))
    assert checks.is_real(float("nan"))
    assert not checks.is_number(float("inf"))
    assert not any(map(checks.is_real, (True, "1", None, 1j)))
