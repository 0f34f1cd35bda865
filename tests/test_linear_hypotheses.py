"""Linear hypotheses as text, names and matrices."""

from typing import Any

import numpy as np
import pytest

import suffice as sf
from suffice.fitting.linear_hypotheses import restrictions


@pytest.mark.parametrize(
    ("text", "R", "q"),
    [
        ("a = b, c = 0", [[1, -1, 0], [0, 0, 1]], [0, 0]),
        ("2*a - b/4 = 1 + c", [[2, -0.25, -1]], [1]),
        ("a = b = 3", [[1, -1, 0], [0, 1, 0]], [0, 3]),
        ("-(a + b)*2 + 1e1", [[-2, -2, 0]], [-10]),
        ("`a` = .5", [[1, 0, 0]], [0.5]),
    ],
)
def test_text_is_read_as_equations(text: str, R: list[Any], q: list[Any]) -> None:
    matrix, values = restrictions(text, ["a", "b", "c"])
    np.testing.assert_array_equal(matrix, R)
    np.testing.assert_array_equal(values, q)


def test_names_are_read_as_they_are_the_longest_first() -> None:
    names = ["a", "a b", "C(g, ref='u')[T.v]", "x:z", "a2"]
    matrix, _ = restrictions("a b = C(g, ref='u')[T.v], x:z = a2", names)
    np.testing.assert_array_equal(matrix, [[0, 1, -1, 0, 0], [0, 0, 0, 1, -1]])


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ("a = ", "the end"),
        ("a * b = 1", "not linear"),
        ("a / b = 1", "divides"),
        ("(a = b", "not closed"),
        ("aa = 1", "no parameter 'aa'"),
        ("1 = 2", "holds no parameter"),
        ("", "names no parameter"),
        ("a b", "not expected"),
        (np.ones((2, 4)), "expected 3 columns"),
        ((np.ones((1, 3)), [1.0, 2.0]), "a value for each row"),
        (np.zeros((1, 3)), "row of zeros"),
        (3.5, "expected 3 columns"),
        (object(), "expected text"),
    ],
)
def test_what_cannot_be_read_is_refused(asked: Any, words: str) -> None:
    with pytest.raises(sf.OptionError, match=words):
        restrictions(asked, ["a", "b", "c"])
