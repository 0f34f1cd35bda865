"""What arguments may be: one function for each kind of value, so that one mistake has one message.

Each returns the value as the library goes on with it, or raises an error that says what was found and what is expected.
`name` is what the message calls the argument; `otherwise` is what may be given instead, such as ", or None".
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Collection, Hashable, Iterable
from typing import Any, TypeGuard, TypeVar

import numpy as np
from numpy.typing import NDArray

from suffice.errors import DataError, FileFormatError, OptionError, SizeError, listing, meant, shortened
from suffice.options import doubles
from suffice.options import truth as truth

_Scalar = TypeVar("_Scalar", bound=np.generic)

#: Counts and sizes beyond it are no numbers of an array.
MOST_COUNT = 2**62
#: Draws beyond it fit in no memory.
MOST_DRAWS = 2**36
#: The most that weights may add up to, so that sums of them and of their products with shares stay finite.
MOST_WEIGHT = 1e300
#: Squares of larger numbers, and of smaller ones, leave the range of float64.
MOST_SIZE, LEAST_SIZE = 1e150, 1e-150
#: A size in words: a number, then bytes with a prefix of thousands or, with an "i", of 1024.
_SIZE = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<prefix>[kmgtp]?)(?P<binary>i?)b", re.IGNORECASE)


def whole_number(value: Any, name: str, least: int | None = 1, *, otherwise: str = "") -> int:
    """A whole number of at least `least`, or any with None, of any type that has them; truth values are none.

    >>> whole_number(np.int8(3), "n")
    3
    """
    try:
        whole = None if isinstance(value, bool | np.bool_) else operator.index(value)
    except TypeError:
        whole = None
    if whole is None or (least is not None and whole < least) or abs(whole) > MOST_COUNT:
        bound = "" if least is None else f" of at least {least}"
        bound += " below 2^62" if whole is not None and whole > MOST_COUNT else ""
        raise _refusal(name, value, f"a whole number{bound}", otherwise)
    return whole


def listed_names(value: Any, name: str, *, otherwise: str = "") -> tuple[Hashable, ...]:
    """Names, each of which can be looked up: one by itself, or several in a list, a tuple or an array.

    >>> listed_names("a", "columns"), listed_names(["a", ("b", 1)], "columns")
    (('a',), ('a', ('b', 1)))
    """
    if isinstance(value, np.ndarray) and value.ndim == 1:
        value = value.tolist()
    names = tuple(value) if is_list(value) else (value,)
    for each in names:
        if not is_name(each):
            raise OptionError(f"{name} holds {shortened(each)}; expected names, such as texts or numbers{otherwise}.")
    return names


def text(value: object, name: str) -> str:
    """A text, such as the name of an engine."""
    if not isinstance(value, str):
        raise _refusal(name, value, "a name", "")
    return value


def is_list(value: object) -> TypeGuard[Iterable[Any]]:
    """Whether a value holds several things in an order: no text, and no array without axes."""
    return isinstance(value, Iterable) and not isinstance(value, str | bytes) and getattr(value, "ndim", 1) != 0


def draw_count(value: Any, name: str = "n") -> int:
    """How many rows are to be drawn, or steps: a whole number that some memory could hold."""
    count = whole_number(value, name, 0)
    if count > MOST_DRAWS:
        raise SizeError(f"{name} is {count:,}, which no memory holds. Draw fewer at a time.")
    return count


def is_name(value: object) -> TypeGuard[Hashable]:
    """Whether a value can be looked up; lists, arrays and tuples of them cannot."""
    try:
        hash(value)
    except TypeError:
        return False
    return True


def column_name(value: object, name: str) -> None:
    """Refuse what names no column of a table: the values of one, as other libraries take them."""
    if not is_name(value):
        raise OptionError(
            f"{name} is a {type(value).__name__}; expected the name of a column. Join the values to the table as a "
            "column, and give its name."
        )


def number(value: object, name: str, least: float = -math.inf, *, otherwise: str = "") -> float:
    """A finite number of at least `least`."""
    if not (is_number(value) and value >= least):
        bound = "" if least == -math.inf else f" of at least {least:g}"
        raise _refusal(name, value, f"a finite number{bound}", otherwise)
    return float(value)


def positive(value: object, name: str, most: float = math.inf, *, otherwise: str = "") -> float:
    """A finite number above 0 and of at most `most`."""
    if not (is_number(value) and 0.0 < value <= most):
        bound = "" if most == math.inf else f" of at most {most:g}"
        raise _refusal(name, value, f"a positive number{bound}", otherwise)
    return float(value)


def share(value: object, name: str, *, otherwise: str = "") -> float:
    """A number from 0 to 1."""
    if not is_share(value):
        raise _refusal(name, value, "a number from 0 to 1", otherwise)
    return float(value)


def choice(value: Any, name: str, allowed: Collection[Any], *, otherwise: str = "") -> Any:
    """One of some values.

    >>> choice("b", "letter", ("a", "b"))
    'b'
    """
    try:
        known = value in allowed
    except (TypeError, ValueError):  # What cannot be hashed, and arrays, whose comparison is no truth value.
        known = False
    if not known:
        two = len(allowed) == 2 and not otherwise
        expected = " or ".join(map(repr, allowed)) if two else f"one of {listing(allowed, 20)}"
        near = meant(value, [other for other in allowed if isinstance(other, str)]) if isinstance(value, str) else ""
        raise OptionError(f"{name} is {shortened(value)}; expected {expected}{otherwise}.{near}")
    return value


def byte_count(value: object, name: str) -> int:
    """A number of bytes, at least 1, or a text such as "2GB", "500 MB" or "1.5 GiB".

    >>> byte_count("1.5 kB", "memory_limit")
    1500
    """
    text = _SIZE.fullmatch(value.strip()) if isinstance(value, str) else None
    if text is not None:
        prefix = text["prefix"].lower()
        count = float(text["number"]) * (1024 if text["binary"] else 1000) ** " kmgtp".index(prefix or " ")
    else:
        count = value if is_number(value) else 0.0
    if not 1.0 <= count < 2**62:
        raise _refusal(name, value, 'a number of bytes, or a text such as "2GB"', ", or None")
    return int(count)


def generator(random_state: Any) -> np.random.Generator:
    """A generator from a seed (0 is a seed), a Generator, or None; the global generator is never touched."""
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        raise OptionError(
            f"random_state is {random_state!r}; expected a whole number of at least 0, a NumPy Generator, or None."
        ) from None


def is_real(value: object) -> TypeGuard[float]:
    """Whether a value is a real number of Python or NumPy, finite or not; truth values are none."""
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def is_number(value: object) -> TypeGuard[float]:
    """Whether a value is such a number that is finite."""
    return is_real(value) and math.isfinite(value)


def is_share(value: object) -> TypeGuard[float]:
    """Whether a value is a number from 0 to 1."""
    return is_number(value) and bool(0.0 <= value <= 1.0)


def weights_of(
    sample_weight: object, count: int, one: str = "sequence", largest: float = MOST_WEIGHT
) -> NDArray[np.float64]:
    """Weights (n,) of sequences or examples: one for each, finite and at least 0; ones where none are given.

    Args:
        sample_weight: As given.
        count: How many there must be.
        one: What a weight belongs to, such as "example".
        largest: The largest one that can be computed with.
    """
    if sample_weight is None:
        return np.ones(count)
    try:
        weights = doubles(sample_weight)
    except (TypeError, ValueError):
        raise DataError(
            f"sample_weight holds values that are not numbers: {shortened(sample_weight)}; expected one for each {one}."
        ) from None
    if weights.shape != (count,):
        many = f"{count:,} {one}" + "s" * (count != 1)
        raise DataError(f"sample_weight has shape {weights.shape}; expected one weight for each of {many}.")
    good = np.isfinite(weights) & (weights >= 0.0)
    if not good.all():
        first = int(np.argmin(good))
        raise DataError(
            f"sample_weight of {one} {first} is {float(weights[first])!r}; expected finite numbers of at least 0."
        )
    highest = int(np.argmax(weights)) if count else 0
    if count and weights[highest] > largest:
        raise DataError(
            f"sample_weight of {one} {highest} is {weights[highest]:g}; sums of numbers beyond {largest:g} overflow. "
            "Divide all weights by the largest."
        )
    check_total(weights, "sample_weight")
    return weights


def checked_floats(
    value: object, shape: tuple[int, ...], what: str, *, least: float | None = None
) -> NDArray[np.float64]:
    """An array from a file: the right type and shape, finite, not below `least`."""
    array = np.asarray(value)
    if array.dtype != np.float64 or array.shape != shape:
        raise FileFormatError(f"{what} has shape {array.shape} and type {array.dtype}; expected {shape} and float64.")
    if not np.isfinite(array).all() or (least is not None and (array < least).any()):
        raise FileFormatError(f"{what} holds a value that is not finite{'' if least is None else ' or is negative'}.")
    return array


def check_size(values: NDArray[np.float64], what: str, least: float = LEAST_SIZE) -> None:
    """Refuse numbers too large to be squared, and numbers that are all too small, 0 aside."""
    sizes = np.abs(values[values != 0.0]).ravel()
    largest = float(sizes.max(initial=0.0))
    if largest > MOST_SIZE or (sizes.size and largest < least):
        raise OptionError(
            f"{what} holds {largest:.6g}; sizes between {LEAST_SIZE:g} and {MOST_SIZE:g} can be computed with. Use "
            "another unit."
        )


def no_seed(random_state: object) -> None:
    """Refuse the seed of samples where an answer is exact."""
    if random_state is not None:
        raise OptionError(
            f"random_state={shortened(random_state)} has no effect: it is the seed of samples, and this answer is "
            "exact. Leave it out."
        )


def read_only(array: NDArray[_Scalar]) -> NDArray[_Scalar]:
    """The same values in an array that cannot be written to: a fitted value is a value, and its arrays are.

    >>> read_only(np.zeros(2)).flags.writeable
    False
    """
    view = array.view()
    view.flags.writeable = False
    return view


def check_total(weights: NDArray[np.float64], name: str) -> None:
    """Refuse weights that are too many to be added up."""
    with np.errstate(over="ignore"):
        total = float(weights.sum())
    if total > MOST_WEIGHT:
        raise DataError(f"{name} adds up to more than {MOST_WEIGHT:.0e}; divide all weights by a common number.")


def _refusal(name: str, value: object, expected: str, otherwise: str) -> OptionError:
    return OptionError(f"{name} is {shortened(value)}; expected {expected}{otherwise}.")
