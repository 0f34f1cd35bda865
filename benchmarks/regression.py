"""Rows of regressions, and how far a vector of coefficients is from the maximum: the largest slope of a mean row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.contender import Data

Floats = NDArray[np.float64]

#: No component of the gradient, divided by the number of rows, is larger than this at the end of a fit.
GAP = 1e-6
#: Tolerances that a contender tries, in its own unit, until one brings it to `GAP`.
TOLERANCES = tuple(10.0**-k for k in range(1, 13))
_PIECE = 65_536


def draw(family: str, rows: int, columns: int, seed: int, *, levels: int = 0, ridge: float = 0.0) -> Data:
    """Normal columns with a common part, a factor where `levels` are asked for, and a response of the model."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, columns))
    X += 0.5 * rng.normal(size=(rows, 1))
    beta = rng.normal(0.0, 0.5 / np.sqrt(columns), columns)
    eta = X @ beta - 0.5
    data: dict[str, Any] = {"X": X, "ridge": np.array(ridge), "family": np.array(family)}
    if levels:
        codes = rng.integers(0, levels, rows).astype(np.int32)
        codes[:levels] = np.arange(levels)
        eta += rng.normal(0.0, 0.5, levels)[codes]
        data |= {"codes": codes, "levels": np.array(levels)}
    y = rng.random(rows) < 1.0 / (1.0 + np.exp(-eta)) if family == "binomial" else rng.poisson(np.exp(eta))
    return {**data, "y": y.astype(np.float64)}


def slope(data: Data, beta: Floats) -> float:
    """The largest component of the mean row's gradient; the intercept is first, the first level is the reference."""
    X, y, codes = data["X"], data["y"], data.get("codes")
    columns = X.shape[1]
    gradient = np.zeros_like(beta)
    effects = np.concatenate(([0.0], beta[1 + columns :]))
    for at in range(0, len(X), _PIECE):
        rows = slice(at, at + _PIECE)
        eta = beta[0] + X[rows] @ beta[1 : 1 + columns] + (0.0 if codes is None else effects[codes[rows]])
        away = y[rows] - (1.0 / (1.0 + np.exp(-eta)) if str(data["family"]) == "binomial" else np.exp(eta))
        gradient[0] += away.sum()
        gradient[1 : 1 + columns] += away @ X[rows]
        if codes is not None:
            gradient[1 + columns :] += np.bincount(codes[rows], away, minlength=len(effects))[1:]
    gradient[1:] -= float(data["ridge"]) * beta[1:]
    return float(np.abs(gradient).max()) / len(X)


def loosest(data: Data, fit: Callable[[float], Floats], tolerances: tuple[float, ...] = TOLERANCES) -> float:
    """The largest tolerance with which a fit ends at `GAP`; the smallest one where none does."""
    return next((one for one in tolerances if slope(data, fit(one)) <= GAP), tolerances[-1])


class Judge:
    """Says how steep the objective still is at the coefficients of a contender."""

    def __init__(self, data: Data) -> None:
        self._data = data

    def __call__(self, _: str, answer: Any) -> str:
        return f"slope {slope(self._data, np.asarray(answer)):.0e}"


def indicators(data: Data) -> Any:
    """All columns in one sparse matrix, the first level left out."""
    from scipy import sparse

    rows = len(data["X"])
    levels = sparse.csr_array((np.ones(rows), data["codes"], np.arange(rows + 1)), shape=(rows, int(data["levels"])))
    return sparse.hstack([sparse.csr_array(data["X"]), levels[:, 1:]], format="csr")
