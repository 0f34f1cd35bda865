"""When two trees of values are the same to the bit."""

import math
import struct
from typing import Any

import numpy as np

from suffice.domain import Domain, Variable


def identical(left: Any, right: Any) -> bool:
    """Same types, same order, same bits; every NaN is the same NaN."""
    if type(left) is not type(right):
        return False
    if isinstance(left, float):
        return struct.pack("<d", left) == struct.pack("<d", right) or (math.isnan(left) and math.isnan(right))
    if isinstance(left, list | tuple):
        return len(left) == len(right) and all(map(identical, left, right))
    if isinstance(left, dict):
        return identical(list(left.items()), list(right.items()))
    if isinstance(left, np.ndarray):
        if (left.dtype, left.shape) != (right.dtype, right.shape):
            return False
        gaps = left != left
        return bool((gaps == (right != right)).all()) and left[~gaps].tobytes() == right[~gaps].tobytes()
    if isinstance(left, Domain | Variable):
        return identical(left.to_dict(), right.to_dict())
    return bool(left == right)
