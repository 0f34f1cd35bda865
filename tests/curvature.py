"""Second derivatives of a function that can only be evaluated."""

import itertools
from collections.abc import Callable

import numpy as np


def hessian(value: Callable[[np.ndarray], float], at: np.ndarray, step: float = 2e-4) -> np.ndarray:
    """By central differences, extrapolated from two steps (Richardson)."""

    def differences(h: float) -> np.ndarray:
        found = np.empty((len(at), len(at)))
        for i, j in itertools.combinations_with_replacement(range(len(at)), 2):
            a, b = h * np.eye(len(at))[[i, j]]
            corners = value(at + a + b) - value(at + a - b) - value(at - a + b) + value(at - a - b)
            found[i, j] = found[j, i] = corners / (4 * h * h)
        return found

    return np.asarray((4 * differences(step) - differences(2 * step)) / 3)
