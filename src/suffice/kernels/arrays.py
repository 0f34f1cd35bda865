"""Arrays in the one form that compiled loops are made for."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

Scalar = TypeVar("Scalar", bound=np.generic)


def frozen(array: NDArray[Scalar], dtype: DTypeLike | None = None) -> NDArray[Scalar]:
    """Return the array in C order, aligned and read-only, copied only if need be.

    Numba compiles a loop anew for an array that cannot be written to, such as Arrow and pandas hand out. Inputs are
    therefore always passed as read-only views.
    """
    fits = dtype is None and array.flags.c_contiguous and array.flags.aligned
    view = array.view() if fits else np.require(array, dtype, ["C", "A"]).view()
    view.flags.writeable = False
    return view
