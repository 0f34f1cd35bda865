"""Numbers that options and features may be."""

from __future__ import annotations

from typing import Any

import numpy as np

from suffice.errors import OptionError

#: Numbers beyond this overflow when they are squared and summed.
LARGEST = 1e100


def whole_number(value: Any, name: str, least: int = 1) -> int:
    """A whole number of at least `least`, or an error that names the option; truth values are none."""
    if isinstance(value, bool | np.bool_) or not (isinstance(value, int | np.integer) and value >= least):
        raise OptionError(f"{name} is {value!r}; expected a whole number of at least {least}.")
    return int(value)


def too_large(what: str, value: float) -> str:
    """What is said about a number that is too large."""
    return f"{what} is {value:g}; sums of numbers beyond {LARGEST:g} overflow. Divide the feature by its largest value."
