"""What every oracle needs: a fit that may be refused, a generic ascent, and the records made of the two."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from benchmarks.audit.record import Existence, Value
from suffice import DataError, EstimateError

Floats = NDArray[np.float64]
Objective = Callable[[Floats], float]


def fitted(model: Any, *data: Any, **options: Any) -> Any:
    """The model fitted to the data, or None where it refused them; warnings are part of the certificate's table."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model.fit(*data, **options)
            model.report_.certificate  # noqa: B018  Some figures are worked out when they are first read.
        except (EstimateError, DataError):
            return None
    return model


def verdict(name: str, model: Any, truth: bool) -> Existence:
    """What a fit, or its refusal, says about the existence of the maximum."""
    return Existence(name, bool(truth), "refused" if model is None else model.report_.certificate.exists)


def search(down: Any, start: Any, **options: Any) -> Any:
    """SciPy's search for a minimum; its stubs want every option literal."""
    return minimize(down, start, **options)


def highest(objective: Objective, *starts: Any, gradient: Callable[[Floats], Floats] | None = None) -> float:
    """The highest value that quasi-Newton ascent finds from any start, and then a simplex search around it."""
    best, point = -np.inf, np.zeros(0)

    def down(x: Floats) -> float:
        value = objective(x)
        return -value if np.isfinite(value) else 1e300

    slope = None if gradient is None else (lambda x: -gradient(x))
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for start in starts:
            begin = np.atleast_1d(np.asarray(start, dtype=np.float64))
            if not np.all(np.isfinite(begin)):
                continue
            found = search(down, begin, jac=slope, method="BFGS", options={"gtol": 1e-10})
            for value, at in ((-down(begin), begin), (-float(found.fun), found.x)):
                if value > best:
                    best, point = value, at
        if slope is None and 0 < len(point) <= 3:
            small = {"xatol": 1e-9, "fatol": 1e-14, "maxiter": 200}
            best = max(best, -float(search(down, point, method="Nelder-Mead", options=small).fun))
    return best


def shortfall(name: str, model: Any, reached: float, best: float, rows: float, rounding: float = 1e-12) -> Value:
    """How far `reached`, the oracle's objective at the returned parameters, is below `best`, beside what was claimed.

    Both are sums over the rows; `rounding` is relative to the objective of a row.
    """
    certificate = model.report_.certificate
    truth = max(best - reached, 0.0) / rows
    scale = max(abs(best), abs(reached), rows) / rows
    return Value(name, truth, certificate.value_gap, certificate.bound, bool(model.converged_), rounding * scale)


def agreement(name: str, said: float, truth: float, rows: float, tolerance: float) -> Value:
    """A figure that has one right value, as a bound of 0 on its distance from the oracle's, in nats per row."""
    return Value(name, abs(said - truth) / rows, 0.0, True, True, tolerance * max(1.0, abs(truth) / rows))


def stationary(name: str, model: Any, reached: float, best: float, rows: float) -> Iterator[Value]:
    """What EM says of its distance, and whether a local search from a converged fit rises by 1e-3 nats in TOTAL.

    A fit that calls its own point a saddle has said that the search will rise.
    """
    yield shortfall(name, model, reached, best, rows)
    curvature = model.report_.certificate.curvature
    told = curvature is not None and curvature.point == "saddle"
    if model.converged_ and not told:
        yield Value(f"{name}: rise in total", max(best - reached, 0.0), 1e-3, True, True, 1e-9)
