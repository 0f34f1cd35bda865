"""Columns of numbers: what real distributions read, and the units of a column."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.domain import is_missing
from suffice.errors import DataError

#: Standard deviations and values whose squares, and the products of those, are no floats any more.
SMALLEST, LARGEST = 1e-150, 1e150
#: From here on floats skip whole numbers, so that a count is none.
MOST_COUNTED = 2.0**53


class StepError(DataError):
    """A value of one step that a distribution cannot read; those who know the row of the step name it."""

    def __init__(self, step: int, value: str, expected: str, counted: str = "step") -> None:
        """step: counted over all sequences, or as `counted` says; value, expected: the message before and after it."""
        super().__init__(f"{value} ({counted} {step}){expected}")
        self.step, self.value, self.expected, self.counted = step, value, expected, counted

    def __reduce__(self) -> tuple[type[StepError], tuple[int, str, str, str], dict[str, Any]]:
        """As it travels from a worker, with what has been said besides."""
        return type(self), (self.step, self.value, self.expected, self.counted), {"args": self.args}


@contextmanager
def naming_rows(number: Callable[[int], int]) -> Iterator[None]:
    """An error of a step becomes that of its row, by the number that a row has in the table."""
    try:
        yield
    except StepError as error:
        raise StepError(number(error.step), error.value, error.expected, "row") from None


def called(title: Hashable) -> str:
    """A column in words; one without a name is the observations."""
    return "The observations" if title is None else f"Column {title!r}"


def as_reals(column: NDArray[Any], title: Hashable = None) -> Floats:
    """A column of numbers as float64; missing values become NaN, anything else is an error that names the column."""
    if column.dtype.kind in "biuf":
        reals = column.astype(np.float64)
    elif column.dtype.kind == "O":
        reals = np.array([_real(value, title) for value in column], dtype=np.float64)
    else:
        reals = np.array([_real(value, title) for value in column[:1]] or [], dtype=np.float64)
    infinite = np.isinf(reals)
    if infinite.any():
        raise DataError(
            f"{called(title)} hold{_s(title)} an infinite number (step {int(np.argmax(infinite))}); leave it out or "
            "give it as a missing value (NaN)."
        )
    return reals


def _s(title: Hashable) -> str:
    return "" if title is None else "s"


def _real(value: Any, title: Hashable) -> float:
    if is_missing(value):
        return np.nan
    if isinstance(value, int | float | np.integer | np.floating | np.bool_ | Decimal | Fraction):
        try:
            return float(value)
        except OverflowError as error:
            raise DataError(
                f"{called(title)} hold{_s(title)} a number of about {len(str(abs(int(value))))} digits, beyond "
                "float64. Give the column in other units, or leave the value out."
            ) from error
    raise DataError(
        f"{called(title)} hold{_s(title)} {value!r} ({type(value).__name__}); the distributions of the states take "
        "numbers. Correct the value, or choose a distribution of symbols such as Categorical()."
    )


def in_range(values: Floats, title: Hashable, *, counts: bool = False) -> Floats:
    """The values, where distributions can compute with them; an error names one too large or too near to 0."""
    size = np.abs(values)
    most, least = (MOST_COUNTED, 0.0) if counts else (LARGEST, SMALLEST)
    wrong = (size > most) | ((size > 0) & (size < least))
    if wrong.any():
        limits = f"counts up to {most:.0f}" if counts else f"0, or sizes of {least:g} to {most:g}"
        value = float(values[wrong].flat[0])
        raise StepError(
            int(np.argwhere(wrong)[0, 0]),
            f"{called(title)} hold{_s(title)} {value!r}",
            f", with which float64 cannot compute a density; expected {limits}. Give the column in other units, or "
            "leave the value out.",
        )
    return values


def centre_and_scale(values: Floats, weights: Floats, titles: Any = None) -> tuple[Floats, Floats]:
    """Mean and standard deviation of columns (steps, d) without missing values, of steps with weights (steps,).

    The scale of a constant column is the size of its value, or 1. A column of missing values alone is an error, and so
    is one whose variance is no float.
    """
    seen = ~np.isnan(values) & (weights > 0)[:, None]
    mass = np.where(seen, weights[:, None], 0.0)
    count = mass.sum(axis=0)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        centre = (mass * np.where(seen, values, 0.0)).sum(axis=0) / count
        away = np.where(seen, values - centre, 0.0)
        most = np.abs(away).max(axis=0)
        unit = np.where((most > 0) & np.isfinite(most), most, 1.0)
        scale = unit * np.sqrt((mass * (away / unit) ** 2).sum(axis=0) / count)
    return checked_units(centre, scale, np.asarray(seen.any(axis=0)), titles)


def checked_units(centre: Floats, scale: Floats, seen: NDArray[np.bool_], titles: Any = None) -> tuple[Floats, Floats]:
    """Means and standard deviations (d,) of columns as their units; seen (d,): whether a column has a value."""
    names = [None] * len(centre) if titles is None or len(titles) != len(centre) else list(titles)
    several = len(centre) > 1
    for column in np.flatnonzero(~seen).tolist():
        title = column if names[column] is None and several else names[column]
        raise DataError(
            f"{called(title)} hold{_s(title)} missing values alone: there is nothing to learn a distribution from. "
            "Leave it out."
        )
    floor = 1e-14 * np.maximum(np.abs(centre), 1e-300)
    units = np.where(scale > floor, scale, np.where(np.abs(centre) > 0, np.abs(centre), 1.0))
    for column in np.flatnonzero(~((units > SMALLEST) & (units < LARGEST))).tolist():
        title = column if names[column] is None and several else names[column]
        raise DataError(
            f"{called(title)} ha{'ve' if title is None else 's'} a spread of {units[column]:.3g}, whose square is no "
            "float64; expected about 1e-150 to 1e150. Give it in other units."
        )
    return centre, units
