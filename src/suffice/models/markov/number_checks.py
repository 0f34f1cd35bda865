"""Numbers that users give: real, and of a size that float64 can square and divide by."""

from __future__ import annotations

import numpy as np

from suffice.array_types import Floats
from suffice.errors import OptionError, SufficeError
from suffice.families.base import as_numbers

#: Squares of larger numbers, and of smaller ones, leave the range of float64.
LARGEST, SMALLEST = 1e150, 1e-150


def real_numbers(values: object, what: str, error: type[SufficeError] = OptionError) -> Floats:
    """The values as float64; text and complex numbers are an error that shows one. what: who holds them, for it."""
    try:
        return np.array(as_numbers(values, what))
    except OptionError as refused:
        raise error(str(refused)) from None


def check_size(values: Floats, what: str, least: float = SMALLEST) -> None:
    """Refuse numbers too large to be squared, and numbers that are all too small, 0 aside."""
    sizes = np.abs(values[values != 0.0]).ravel()
    largest = float(sizes.max(initial=0.0))
    if largest > LARGEST or (sizes.size and largest < least):
        raise OptionError(
            f"{what} holds {largest:.6g}; sizes between {SMALLEST:g} and {LARGEST:g} can be computed with. Use another "
            "unit."
        )
