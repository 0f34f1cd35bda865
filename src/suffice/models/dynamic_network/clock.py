"""Times of slices: how long a slice is, and which of them a column of times leaves out."""

from __future__ import annotations

import datetime
import re
from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Ints
from suffice.errors import DataError, OptionError, shortened
from suffice.records import record

Flags = NDArray[np.bool_]

#: How long the units are that a text may name, in microseconds; months and what is made of them have no one length.
UNITS = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 7 * 86_400_000_000,
}
MONTHS = {"month": 1, "quarter": 3, "year": 12}
EXPECTED = "expected a timedelta, or a text such as '1 day', '15 minutes' or '1 month'"
#: Dates of one day of the month lie at least so far apart.
SHORTEST_MONTH = 28 * UNITS["day"]


@record(frozen=True)
class Step:
    """How long a slice is: so many months, or so many microseconds."""

    unit: str
    count: int

    def __str__(self) -> str:
        """In the largest units that divide it."""
        known = MONTHS if self.unit == "month" else UNITS
        names = [name for name, size in known.items() if self.count % size == 0 and name not in ("week", "quarter")]
        name = max(names, key=known.__getitem__)
        count = self.count // known[name]
        return f"{count} {name}" + ("" if count == 1 else "s")


def read_step(given: Any) -> Step:
    """What a user says about the length of a slice."""
    if isinstance(given, Step):
        return given
    if isinstance(given, np.timedelta64):
        if np.datetime_data(given.dtype)[0] in "YM":
            return _positive("month", int(given.astype("timedelta64[M]").astype(np.int64)), given)
        return _positive("microsecond", int(given.astype("timedelta64[us]").astype(np.int64)), given)
    if isinstance(given, datetime.timedelta):
        return _positive("microsecond", given // datetime.timedelta(microseconds=1), given)
    text = re.fullmatch(r"\s*(\d*)\s*([a-z]+?)s?\s*", given) if isinstance(given, str) else None
    name = text[2] if text else ""
    if text is None or name not in {**UNITS, **MONTHS}:
        raise OptionError(f"step is {shortened(given)}; {EXPECTED}.")
    count = int(text[1] or 1)
    if name in MONTHS:
        return _positive("month", count * MONTHS[name], given)
    return _positive("microsecond", count * UNITS[name], given)


def _positive(unit: str, count: int, given: Any) -> Step:
    if count < 1:
        raise OptionError(f"step is {shortened(given)}, and a slice takes some time; {EXPECTED}.")
    return Step(unit, count)


def same_step(given: Step | None, known: Step | None) -> Step | None:
    """The length of a slice, as it is said or was learned; two lengths are an error."""
    if given is not None and known is not None and given != known:
        raise OptionError(
            f"step= is {given}, and the network was fitted to slices of {known}. Leave step= out, or fit again with it."
        )
    return given or known


def jumps_of(
    times: NDArray[Any], offsets: Ints, name: Hashable, step: Step | None, *, guess: bool
) -> tuple[Ints, Step | None]:
    """How many slices each row comes after the one before it in its series, and how long a slice of dates is.

    step: the length that is known; where it is not, and the times are dates, their shortest step if `guess` allows it.
    The first row of a series is one slice after that of another.
    """
    numbers = _numbers(times)
    inner = np.ones(len(times), bool)
    inner[offsets[:-1]] = False
    if numbers is not None:
        jumps = np.where(inner, np.diff(numbers, prepend=numbers[:1]), 1)
        return jumps, None
    dates = _dates(times, name)
    if not inner.any():
        return np.ones(len(dates), np.int64), step
    if step is None and not guess:
        raise OptionError(
            f"The time column {name!r} holds dates, and how long a slice is has not been learned from any. Say so: "
            "step='1 day', or any other length."
        )
    if step is None:
        step = shortest_steps(times, offsets, name).shortest
        assert step is not None
    ticks, uneven = _ticks(dates, inner, step.unit)
    steps = np.diff(ticks, prepend=ticks[:1])
    uneven = inner & (uneven | (steps % step.count != 0))
    if uneven.any():
        row = int(np.flatnonzero(uneven)[0])
        raise DataError(
            f"The time column {name!r} goes from {times[row - 1]!r} to {times[row]!r}, which is no whole number of "
            f"slices of {step}. Round the times to slices, number the slices, or say how long they are by step=."
        )
    return np.where(inner, steps // step.count, 1), step


def _numbers(times: NDArray[Any]) -> Ints | None:
    """Times that are whole numbers; None for others."""
    if times.dtype.kind == "f" and (times == np.floor(times)).all():
        return times.astype(np.int64)
    whole = times.dtype.kind in "iu" or (
        times.dtype == object and all(isinstance(value, int | np.integer) for value in times.tolist())
    )
    return times.astype(np.int64) if whole else None


def _dates(times: NDArray[Any], name: Hashable) -> NDArray[np.datetime64]:
    """Times that are dates, to the microsecond."""
    read = times
    if times.dtype == object:
        try:
            if any(isinstance(value, str) and value.isdigit() for value in times.tolist()):
                raise ValueError  # NumPy reads digits as years, whose order is not that of the texts.
            read = np.array([np.datetime64(value) for value in times.tolist()])
        except (TypeError, ValueError):
            pass
    if read.dtype.kind != "M":
        raise DataError(
            f"The time column {name!r} holds {times[0]!r}; expected whole numbers or dates. For any other order of "
            "the rows, whose gaps do not matter, use order=."
        )
    return read.astype("datetime64[us]")


@record(frozen=True)
class ShortestSteps:
    """How fast the rows of some series follow one another.

    `dates` says whether their times are dates; `least` is the shortest step in microseconds, None where there is none;
    `months` that in months, None where some series is not always on one day of its months.
    """

    dates: bool = False
    least: int | None = None
    months: int | None = None

    def __add__(self, other: ShortestSteps) -> ShortestSteps:
        """Of both shards."""
        known = [steps for steps in (self, other) if steps.least is not None]
        if len(known) < 2:
            return ShortestSteps(
                self.dates or other.dates, *((known[0].least, known[0].months) if known else (None, None))
            )
        months = [steps.months for steps in known if steps.months is not None]
        least = min(steps.least for steps in known if steps.least is not None)
        return ShortestSteps(self.dates or other.dates, least, min(months) if len(months) == 2 else None)

    @property
    def shortest(self) -> Step | None:
        """The shortest step, in months where all dates of each series are one day of their months."""
        if self.least is None:
            return None
        if self.months is not None and self.least >= SHORTEST_MONTH:
            return Step("month", self.months)
        return Step("microsecond", self.least)


def shortest_steps(times: NDArray[Any], offsets: Ints, name: Hashable) -> ShortestSteps:
    """That of some series; `jumps_of` says what they are."""
    if not len(times) or _numbers(times) is not None:
        return ShortestSteps()
    dates = _dates(times, name)
    inner = np.ones(len(times), bool)
    inner[offsets[:-1]] = False
    if not inner.any():
        return ShortestSteps(True)
    months, uneven = _ticks(dates, inner, "month")
    least = int(np.diff(dates.astype(np.int64), prepend=0)[inner].min())
    even = not (inner & uneven).any()
    return ShortestSteps(True, least, int(np.diff(months, prepend=0)[inner].min()) if even else None)


def _ticks(dates: NDArray[np.datetime64], inner: Flags, unit: str) -> tuple[Ints, Flags]:
    """Dates as numbers of a unit, and which are not the same part of it as the date before.

    The last days of two months are the same day of them.
    """
    ticks = dates.astype(np.int64)
    if unit != "month":
        return ticks, np.zeros(len(dates), bool)
    months = dates.astype("datetime64[M]")
    within = ticks - months.astype("datetime64[us]").astype(np.int64)
    following = (months + 1).astype("datetime64[us]").astype(np.int64)
    left = following - ticks
    last = left <= UNITS["day"]
    same = np.diff(within, prepend=within[:1]) == 0
    same |= last & np.roll(last, 1) & (np.diff(left, prepend=left[:1]) == 0)
    return months.astype(np.int64), ~same
