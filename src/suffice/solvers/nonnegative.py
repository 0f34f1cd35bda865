"""Newton's method for a smooth concave function of numbers that are not negative."""

from __future__ import annotations

import numpy as np

from suffice.array_types import Floats
from suffice.errors import EstimateError
from suffice.solvers.newton import HALVINGS, Concave

#: Steps before the method gives up.
MOST_STEPS = 200
#: A rise, as a share of the value, that rounding may hide.
HIDDEN = 1e-12
#: Added to the information in units of its diagonal, so that directions without curvature stay where they are.
RIDGE = 1e-13


def newton_nonnegative(function: Concave, start: Floats) -> tuple[Floats, bool]:
    """Maximise a concave function over x >= 0; returns the point (k,), and whether the method came to rest there.

    `function(x)` returns the value, the gradient (k,) and the information, minus the Hessian (k, k); outside its domain
    the value is -inf. Every step maximises the quadratic model over x >= 0, then shortens the way until the value
    rises: numbers whose best value is 0 become exactly 0, and convergence is quadratic in the others.
    """
    with np.errstate(all="ignore"):
        x = np.asarray(start, dtype=np.float64)
        value, gradient, information = function(x)
        if not np.isfinite(value):
            raise EstimateError(f"The objective is not finite at the start {start!r}; choose another start.")
        before = np.inf
        for _ in range(MOST_STEPS):
            way = best_of_model(x, gradient, information) - x
            slope = float(gradient @ way)
            blind = slope <= HIDDEN * max(abs(value), 1.0)
            # In the quadratic regime the predicted rise falls fast until only rounding is left.
            if not slope > 0 or (blind and not slope < 0.25 * before):
                return x, True
            before = slope
            size = 1.0
            for _ in range(HALVINGS):
                moved = np.maximum(x + size * way, 0.0)
                reached, slopes, curvature = function(moved)
                if np.isfinite(reached) and (blind or reached - value >= 1e-4 * size * slope):
                    break
                size *= 0.5
            else:
                return x, False
            x, value, gradient, information = moved, reached, slopes, curvature
    return x, False


def best_of_model(x: Floats, gradient: Floats, information: Floats) -> Floats:
    """The point z >= 0 with the largest ``g . (z - x) - (z - x)' I (z - x) / 2`` (k,): non-negative least squares."""
    from scipy.optimize import nnls

    units = np.sqrt(np.diag(information))
    units = np.where(units > 0, units, 1.0)
    scaled = information / units / units[:, None] + RIDGE * np.eye(len(x))
    target = scaled @ (x * units) + gradient / units
    factor = np.linalg.cholesky(scaled)
    z = nnls(factor.T, np.linalg.solve(factor, target))[0]
    inside = z > 0
    sharp = np.zeros(len(x))
    sharp[inside] = np.linalg.solve(scaled[np.ix_(inside, inside)], target[inside])
    return np.asarray((sharp if (sharp >= 0).all() else z) / units)
