"""What answers questions to a Markov network: marginals, queries, predictions, samples; here by a junction tree."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.checks import no_seed
from suffice.domain import Domain
from suffice.engines.contract import Model, Posterior
from suffice.engines.registry import Planner
from suffice.engines.workers import worker_count
from suffice.errors import EstimateError
from suffice.models.bayesian.nodes.contract import Columns
from suffice.models.evidence import RowDistributions, checked_given, read_evidence
from suffice.models.markov.family import LogLinearFamily
from suffice.table import Table


class NetworkInference(Protocol):
    """What answers the questions to a network, exactly or by samples."""

    domain: Domain

    def condition(self, given: Mapping[Any, Any] | None) -> Any:
        """The distribution given evidence."""

    def table(self, names: tuple[Hashable, ...], given: Mapping[Any, Any] | None, random_state: object = None) -> Table:
        """P(names | given)."""

    def tables(self, given: Mapping[Any, Any] | None, random_state: object = None) -> dict[Hashable, Table]:
        """P(variable | given) of every variable."""

    def most_probable(self, given: Mapping[Any, Any] | None) -> dict[Hashable, Hashable]:
        """The most probable joint state."""

    def log_probability(self, given: Mapping[Any, Any] | None) -> float:
        """Log-probability of evidence."""

    def log_likelihood(self, columns: Columns, n: int, threads: int | None) -> Floats:
        """Log-probability of each row."""

    def predict_rows(self, columns: Columns, n: int, target: Hashable, threads: int | None) -> RowDistributions:
        """P(target | row) of each row."""


class ExactInference:
    """The junction tree of a distribution, or the plan of another engine, loaded once and asked many times."""

    def __init__(
        self, family: LogLinearFamily, weights: Floats, log_partition: float, planner: Planner | None = None
    ) -> None:
        """Load it with the potentials at these weights; planner: of an engine other than the junction tree."""
        self.domain = family.model.domain
        self._family, self._weights, self._log_partition, self._planner = family, weights, log_partition, planner

    @cached_property
    def tree(self) -> Model:
        """The plan with its factors."""
        family, weights, planner = self._family, self._weights, self._planner
        return family.tree(weights) if planner is None else family.loaded(planner, weights)

    def condition(self, given: Mapping[Any, Any] | None) -> Posterior:
        """The distribution given evidence; impossible evidence is an error."""
        return self._whole if given is None else self._conditioned(given)

    @cached_property
    def _whole(self) -> Posterior:
        """The distribution without evidence, of which many marginals may be asked."""
        return self._conditioned(None)

    def _conditioned(self, given: Mapping[Any, Any] | None) -> Posterior:
        known = read_evidence(self.domain, given)
        calibration = self.tree.condition(known.states, known.likelihoods)
        if calibration.log_partition == -np.inf:
            raise EstimateError(
                f"The evidence {given!r} has probability 0 under the network, so nothing follows from it."
            )
        return calibration

    def table(self, names: tuple[Hashable, ...], given: Mapping[Any, Any] | None, random_state: object = None) -> Table:
        """P(names | given), axes in that order."""
        no_seed(random_state)
        family = self._family
        if (
            not checked_given(given)
            and len(names) == len(self.domain)
            and not family.masks
            and family.plan.split is not None
        ):
            cells = np.exp(family.log_joint(self._weights, self._log_partition))
            return Table(self.domain, cells).transpose(names)
        return Table(self.domain.select(names), self.condition(given).marginal(names))

    def tables(self, given: Mapping[Any, Any] | None, random_state: object = None) -> dict[Hashable, Table]:
        """P(variable | given) of every variable, from one calibration."""
        no_seed(random_state)
        marginals = self.condition(given).marginals()
        return {name: Table(self.domain.select([name]), values) for name, values in marginals.items()}

    def most_probable(self, given: Mapping[Any, Any] | None) -> dict[Hashable, Hashable]:
        """The most probable joint state that agrees with the evidence."""
        known = read_evidence(self.domain, given)
        best = self.tree.most_probable(known.states, known.likelihoods)
        return {name: self.domain[name].states[code] for name, code in best.states.items()}

    def log_probability(self, given: Mapping[Any, Any] | None) -> float:
        """Log-probability of the evidence, -inf where it is impossible."""
        known = read_evidence(self.domain, given)
        return self.tree.log_probability(known.states, known.likelihoods)

    def log_likelihood(self, columns: Columns, n: int, threads: int | None) -> Floats:
        """Log-probability of each row of codes, -1 for a missing value; absent columns are summed out.

        Whole rows need no tree.
        """
        rows, names = _matrix(columns, n)
        whole = (rows >= 0).all(axis=1) & (len(names) == len(self.domain))
        logs = np.empty(n)
        codes = rows[whole][:, [names.index(name) for name in self.domain.names]] if whole.any() else rows[:0]
        if len(codes):
            logs[whole] = self._family.log_cells(self._weights, codes, self._log_partition)
        if not whole.all():
            answers = self.tree.solve_rows(rows[~whole], names, threads=worker_count(threads))
            logs[~whole] = answers.log_partition - self._log_partition
        return logs

    def predict_rows(self, columns: Columns, n: int, target: Hashable, threads: int | None) -> RowDistributions:
        """P(target | row) of each row (n, card), and which rows are possible (n,)."""
        rows, names = _matrix({name: values for name, values in columns.items() if name != target}, n)
        answers = self.tree.solve_rows(rows, names, scopes=[(target,)], threads=worker_count(threads))
        return answers.marginals[(target,)], answers.log_partition > -np.inf


def _matrix(columns: Columns, n: int) -> tuple[NDArray[np.int32], tuple[Hashable, ...]]:
    """Columns of codes as rows (n, d), with their names."""
    names = tuple(columns)
    return np.stack([columns[k] for k in names], axis=1) if names else np.empty((n, 0), np.int32), names
