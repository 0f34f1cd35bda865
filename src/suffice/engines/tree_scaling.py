"""Iterative proportional fitting on a junction tree: margins are fitted inside cliques, a sweep costs a calibration.

For margins t_C of scopes C that agree with each other and sum to one, the update ``p(x) <- p(x) t_C(x_C) / p(x_C)``
makes the margin of C right, leaves the partition function as it is, and never lowers the likelihood.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike

from suffice.array_types import Floats
from suffice.engines.junction_tree import TreeMoments, TreePlan
from suffice.errors import DataError, OptionError
from suffice.kernels.junction_tree_scaling import FitMargin, Scaling, UnreachableError

_RECORDED = 2**22  # Most numbers of recorded sweeps.
_SUM = 1e-9  # How far the sum of a margin may be from one.


class TreeScaling:
    """Fits margins, one for each scope of a plan.

    targets: one array for each scope, axes in its order, not negative and of sum one; start: log-potentials of all
    scopes as one vector (n,), zeros if None; moments: those of the plan, if they have been made. A cell whose target is
    0 dies: its log-potential becomes minus infinity (0 / 0 = 0), which gives the extended maximum of the likelihood.
    """

    def __init__(
        self,
        plan: TreePlan,
        targets: Sequence[ArrayLike],
        start: ArrayLike | None = None,
        *,
        moments: TreeMoments | None = None,
    ) -> None:
        self.plan = plan
        tables = plan.space.tables(plan.scopes, targets, log=False)
        for scope, table in zip(plan.scopes, tables, strict=True):
            if table is None or not abs(np.add.reduce(table, axis=None) - 1.0) <= _SUM:
                state = "is missing" if table is None else f"sums to {table.sum():.12g}"
                raise DataError(f"The margin of {scope!r} {state}; expected probabilities that sum to 1. Normalise it.")
        self.targets: Floats = np.concatenate([np.zeros(0), *(table.ravel() for table in tables)])
        self._numbers = [number for number, numbers in enumerate(plan.numbers) if numbers]
        self.moments = plan.moments() if moments is None else moments
        self.sizes = self.moments.sizes
        self._live = self.moments.live
        self._whole = bool(self._live.all())
        self._sweeps: list[tuple[Floats, float]] = []  # Those recorded: log-potentials after each, and differences.
        self._begun: Floats | None = None  # Where the recorded sweeps begin.
        self._done, self._recording = 0, False
        self._scaling = Scaling(self.moments.inner, self.targets[self._live])
        self.restart(np.zeros(len(self.targets)) if start is None else np.asarray(start, dtype=np.float64))

    @property
    def order(self) -> list[int]:
        """The scopes in the order in which a sweep fits them, by their place in the plan."""
        return [self._numbers[step.number] for step in self._scaling.steps if isinstance(step, FitMargin)]

    @property
    def log_potentials(self) -> Floats:
        """Log-potentials of all scopes (n,), one table after another; those of single-state scopes stay as given."""
        if self._whole:
            return self._logs.copy()
        logs = self._given.copy()
        logs[self._live] = self._logs
        return logs

    @property
    def _logs(self) -> Floats:
        """Log-potentials of the scopes with two states or more; not to be changed."""
        if self._done == len(self._sweeps):
            return self._scaling.logs
        return self._sweeps[self._done - 1][0] if self._done else self._given[self._live]

    @property
    def log_partition(self) -> float:
        """Log of the partition function, which no update changes."""
        return self._scaling.log_z + float(self._given[~self._live].sum())

    @property
    def objective(self) -> float:
        """The mean log-likelihood under the targets: ``sum_C t_C' log psi_C - log Z``."""
        logs, targets = self._logs, self._scaling.targets
        if not self._scaling.positive:
            logs = np.where(targets > 0.0, logs, 0.0)
        return float(logs @ targets) - self._scaling.log_z

    def restart(self, log_potentials: Floats) -> None:
        """Begin anew at these log-potentials (n,), finite or minus infinity.

        Where recorded sweeps begin at the same, `sweep` first gives these, to the bit, without doing them again.
        """
        if log_potentials.shape != self.targets.shape:
            raise OptionError(f"Log-potentials have shape {log_potentials.shape}; expected {self.targets.shape}.")
        if np.isnan(log_potentials).any() or (log_potentials == np.inf).any():
            raise OptionError("Log-potentials hold NaN or +inf; use finite numbers and -inf.")
        self._given, self._done, self._recording = log_potentials.copy(), 0, False
        if self._begun is None or not np.array_equal(self._begun, log_potentials):
            self._sweeps, self._begun = [], None
            self._scaling.restart(log_potentials[self._live])

    def record(self) -> None:
        """Remember the sweeps from here on, which is where it was restarted, until the next restart."""
        self._sweeps, self._begun, self._done, self._recording = [], self._given.copy(), 0, True

    def sweep(self) -> float:
        """Fit every margin once; returns the largest difference between a target and its margin before its fit."""
        if self._done < len(self._sweeps):
            self._done += 1
            return self._sweeps[self._done - 1][1]
        try:
            difference = self._scaling.sweep()
        except UnreachableError as error:
            raise self._contradiction(error) from None
        if self._recording and (len(self._sweeps) + 1) * len(self.targets) <= _RECORDED:
            self._sweeps.append((self._scaling.logs.copy(), difference))
            self._done += 1
        else:  # The record would not go on to where the tables are.
            self._forget()
        return difference

    def _forget(self) -> None:
        self._sweeps, self._begun, self._done, self._recording = [], None, 0, False

    def updates(self) -> Iterator[int]:
        """The same sweep, fit by fit: yields the place of the scope that has just been fitted."""
        if self._done < len(self._sweeps):
            self._scaling.restart(self._given[self._live])
            for _ in range(self._done):
                self._scaling.sweep()
        self._forget()
        try:
            for number, _ in self._scaling.updates():
                yield self._numbers[number]
        except UnreachableError as error:
            raise self._contradiction(error) from None

    def gap(self) -> float:
        """The largest difference between a target and its margin, from a calibration of the present log-potentials."""
        return float(np.abs(self.moments(self.log_potentials)[1] - self.targets).max(initial=0.0))

    @property
    def work(self) -> int:
        """Cells that one sweep passes over."""
        return self._scaling.work

    def _contradiction(self, error: UnreachableError) -> DataError:
        scope = self.plan.scopes[self._numbers[error.number]]
        cell = np.unravel_index(error.cell, self.plan.space.shape(scope))
        return DataError(
            f"The margin of {scope!r} is {error.wanted:.6g} at the states {tuple(map(int, cell))}, where the model has "
            "probability 0: other margins, or the start, rule them out. Give margins that agree with each other."
        )
