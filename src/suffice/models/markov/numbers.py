"""Numbers that users give: real, and of a size that float64 can square and divide by."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.errors import OptionError, SufficeError

Floats = NDArray[np.float64]

#: Squares of larger numbers, and of smaller ones, leave the range of float64.
LARGEST, SMALLEST = 1e150, 1e-150


def real_numbers(values: Any, what: str, error: type[SufficeError] = OptionError) -> Floats:
    """The values as float64; text, complex numbers and whole numbers that no float holds are an error that shows one.

    what: who holds them, at the head of the sentence.
    """
    try:
        array = np.asarray(values)
        found = np.array(array, dtype=np.float64) if array.dtype.kind not in "cSU" else None
    except OverflowError:
        largest = max(np.ravel(values).tolist(), key=abs)
        raise error(f"{what} holds a number of {len(str(abs(largest)))} digits, more than float64 takes.") from None
    except (TypeError, ValueError):
        raise error(f"{what} has the values {values!r}; expected real numbers.") from None
    if found is None:
        shown = next(value for value in array.ravel() if not isinstance(value, complex) or value.imag)
        raise error(f"{what} holds {shown.item()!r}; expected real numbers.")
    return found


def check_size(values: Floats, what: str, least: float = SMALLEST) -> None:
    """Refuse numbers too large to be squared, and numbers that are all too small, 0 aside."""
    sizes = np.abs(values[values != 0.0]).ravel()
    largest = float(sizes.max(initial=0.0))
    if largest > LARGEST or (sizes.size and largest < least):
        raise OptionError(
            f"{what} holds {largest:.6g}; sizes between {SMALLEST:g} and {LARGEST:g} can be computed with. Use another "
            "unit."
        )
