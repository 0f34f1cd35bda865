"""Least squares in rational numbers: the exact answer for the float64 numbers that a program is given."""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def rational(values: Floats) -> list[Fraction]:
    """The numbers as they are stored."""
    return [Fraction(float(value)) for value in values]


def solution(design: Floats, y: Floats) -> list[Fraction]:
    """The coefficients of least squares, by elimination in the normal equations; the columns must be independent."""
    rows, right = [rational(row) for row in design], rational(y)
    p = len(rows[0])
    left = [
        [sum((row[i] * row[j] for row in rows), Fraction()) for j in range(p)]
        + [sum((row[i] * value for row, value in zip(rows, right, strict=True)), Fraction())]
        for i in range(p)
    ]
    for i in range(p):
        for k in range(p):
            if k != i:
                factor = left[k][i] / left[i][i]
                left[k] = [a - factor * b for a, b in zip(left[k], left[i], strict=True)]
    return [left[i][p] / left[i][i] for i in range(p)]


def squares(design: Floats, y: Floats, coefficients: list[Fraction]) -> Fraction:
    """The sum of squared residuals at some coefficients."""
    found = Fraction()
    for row, value in zip(design, rational(y), strict=True):
        fitted = sum((a * b for a, b in zip(rational(row), coefficients, strict=True)), Fraction())
        found += (value - fitted) ** 2
    return found
