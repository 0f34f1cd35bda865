"""Iterative proportional fitting on a junction tree: margins are fitted inside cliques, a sweep costs a calibration.

For margins t_C of scopes C that agree with each other and sum to one, the update ``p(x) <- p(x) t_C(x_C) / p(x_C)``
makes the margin of C right, leaves the partition function as it is, and never lowers the likelihood.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike

from suffice.engines.junction_tree import TreePlan
from suffice.engines.space import Floats
from suffice.errors import DataError, OptionError
from suffice.kernels.junction_tree_scaling import Fit, Scaling, UnreachableError

_SUM = 1e-9  # How far the sum of a margin may be from one.


class TreeScaling:
    """Fits margins, one for each scope of a plan.

    targets: one array for each scope, axes in its order, not negative and of sum one; start: log-potentials of all
    scopes as one vector (n,), zeros if None. A cell whose target is 0 dies: its log-potential becomes minus infinity
    (0 / 0 = 0), which gives the extended maximum of the likelihood.
    """

    def __init__(self, plan: TreePlan, targets: Sequence[ArrayLike], start: ArrayLike | None = None) -> None:
        self.plan = plan
        tables = plan.space.tables(plan.scopes, targets, log=False)
        for scope, table in zip(plan.scopes, tables, strict=True):
            if table is None or not abs(table.sum() - 1.0) <= _SUM:
                found = "is missing" if table is None else f"sums to {table.sum():.12g}"
                raise DataError(f"The margin of {scope!r} {found}; expected probabilities that sum to 1. Normalise it.")
        self.targets: Floats = np.concatenate([np.zeros(0), *(table.ravel() for table in tables)])
        self._numbers = [number for number, numbers in enumerate(plan.numbers) if numbers]
        self._moments = plan.moments()
        self.sizes = self._moments.sizes
        self._live = self._moments.live
        self._scaling = Scaling(self._moments.inner, self.targets[self._live])
        self.restart(np.zeros(len(self.targets)) if start is None else np.asarray(start, dtype=np.float64))

    @property
    def order(self) -> list[int]:
        """The scopes in the order in which a sweep fits them, by their place in the plan."""
        return [self._numbers[step.number] for step in self._scaling.steps if isinstance(step, Fit)]

    @property
    def log_potentials(self) -> Floats:
        """Log-potentials of all scopes (n,), one table after another; those of single-state scopes stay as given."""
        logs = self._given.copy()
        logs[self._live] = self._scaling.logs
        return logs

    @property
    def log_partition(self) -> float:
        """Log of the partition function, which no update changes."""
        return self._scaling.log_z + float(self._given[~self._live].sum())

    @property
    def objective(self) -> float:
        """The mean log-likelihood under the targets: ``sum_C t_C' log psi_C - log Z``."""
        logs, targets = self._scaling.logs, self._scaling.targets
        return float(np.where(targets > 0.0, logs, 0.0) @ targets) - self._scaling.log_z

    def restart(self, log_potentials: Floats) -> None:
        """Begin anew at these log-potentials (n,), finite or minus infinity."""
        if log_potentials.shape != self.targets.shape:
            raise OptionError(f"Log-potentials have shape {log_potentials.shape}; expected {self.targets.shape}.")
        if np.isnan(log_potentials).any() or (log_potentials == np.inf).any():
            raise OptionError("Log-potentials hold NaN or +inf; use finite numbers and -inf.")
        self._given = log_potentials.copy()
        self._scaling.restart(log_potentials[self._live])

    def sweep(self) -> float:
        """Fit every margin once; returns the largest difference between a target and its margin before its fit."""
        try:
            return self._scaling.sweep()
        except UnreachableError as error:
            raise self._contradiction(error) from None

    def updates(self) -> Iterator[int]:
        """The same sweep, fit by fit: yields the place of the scope that has just been fitted."""
        try:
            for number, _ in self._scaling.updates():
                yield self._numbers[number]
        except UnreachableError as error:
            raise self._contradiction(error) from None

    def gap(self) -> float:
        """The largest difference between a target and its margin, from a calibration of the present log-potentials."""
        return float(np.abs(self._moments(self.log_potentials)[1] - self.targets).max(initial=0.0))

    @property
    def work(self) -> int:
        """Cells that the fits of one sweep pass over."""
        inner = self._moments.inner
        return sum(inner.layout.sizes[home] for home in inner.homes)

    def smallest_cell(self) -> float:
        """The least probability of a cell of a clique, from a calibration of the present log-potentials."""
        inner = self._moments.inner
        tables = np.ones(inner.program.cells)
        inner.beliefs(self._scaling.logs, tables)
        places = zip(inner.program.starts, inner.layout.sizes, strict=True)
        return min((float(tables[start : start + size].min()) for start, size in places), default=1.0)

    def _contradiction(self, error: UnreachableError) -> DataError:
        scope = self.plan.scopes[self._numbers[error.number]]
        cell = np.unravel_index(error.cell, self.plan.space.shape(scope))
        return DataError(
            f"The margin of {scope!r} is {error.wanted:.6g} at the states {tuple(map(int, cell))}, where the model has "
            "probability 0: other margins, or the start, rule them out. Give margins that agree with each other."
        )
