"""The covariance of the cells of a log-linear model on a junction tree: the curvature of its log Z."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from suffice.array_types import Floats
from suffice.engines.junction_tree import TreeMoments, TreePlan
from suffice.engines.memory import in_words
from suffice.errors import OptionError, SizeError
from suffice.kernels.junction_tree_tangents import Tangents


class TreeCovariance:
    """Covariances of the indicators of all cells of all scopes, as a function of the log-potentials.

    Vectors (n,) hold the tables of all scopes of the plan one after another, axes in the order of the scope, as in
    `TreeMoments`: the covariance is the derivative of its marginals. One calibration serves all products at the same
    log-potentials.
    """

    def __init__(self, plan: TreePlan, *, moments: TreeMoments | None = None) -> None:
        """Take a plan; moments: those of it, if they have been made."""
        self.plan = plan
        self._moments = plan.moments() if moments is None else moments
        self.sizes, self._live = self._moments.sizes, self._moments.live
        self._last: tuple[Floats, Tangents] | None = None

    def covariance_product(self, log_potentials: ArrayLike, direction: ArrayLike) -> Floats:
        """The covariance times a direction (n,): the derivative of all marginals along it."""
        return self.covariance_products(log_potentials)(np.asarray(direction, dtype=np.float64))

    def covariance_products(self, log_potentials: ArrayLike) -> Callable[[Floats], Floats]:
        """The function that multiplies the covariance at these log-potentials by a direction (n,)."""
        logs = np.array(log_potentials, dtype=np.float64)
        self._at(logs)
        whole = bool(self._live.all())

        def product(direction: Floats) -> Floats:
            if direction.shape != self._live.shape:
                raise OptionError(f"The direction has shape {direction.shape}; expected {self._live.shape}.")
            tangents = self._at(logs)
            if whole:
                return tangents.product(direction)
            answer = np.zeros(len(direction))
            answer[self._live] = tangents.product(direction[self._live])
            return answer

        return product

    def covariance(self, log_potentials: ArrayLike) -> Floats:
        """The covariance (n, n); raises SizeError if it would take more memory than the plan may."""
        count = len(self._live)
        if 16 * count**2 > self.plan.limit_bytes:
            raise SizeError(
                f"The covariance of {count:,} cells would take {in_words(16 * count**2)}, and the limit is "
                f"{in_words(self.plan.limit_bytes)}. Use covariance_product."
            )
        tangents = self._at(np.array(log_potentials, dtype=np.float64))
        matrix = np.zeros((count, count))
        inside = tangents.products(np.eye(int(self._live.sum())))
        matrix[np.ix_(self._live, self._live)] = 0.5 * (inside + inside.T)
        return matrix

    def _at(self, logs: Floats) -> Tangents:
        """The derivatives at these log-potentials; calibrates if the last ones were others."""
        if self._last is not None and (self._last[0] is logs or np.array_equal(self._last[0], logs)):
            return self._last[1]
        if logs.shape != self._live.shape:
            raise OptionError(f"Log-potentials have shape {logs.shape}; expected {self._live.shape}.")
        if not logs.max(initial=0.0) < np.inf:  # NaN if any is.
            raise OptionError("Log-potentials hold NaN or +inf; use finite numbers and -inf.")
        if self._last is None:
            tangents = Tangents(self._moments.inner, logs[self._live])
        else:
            tangents = self._last[1]
            tangents.move(logs[self._live])
        self._last = logs, tangents
        return tangents
