"""What is known about the parameters of a fitted network: posteriors, standard errors, predictions without them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from suffice.domain import Domain
from suffice.errors import (
    EstimateError,
    MissingColumnError,
    MissingValueError,
    SizeError,
    SufficeWarning,
    listing,
)
from suffice.models.bayesian.learning import NetworkLearning
from suffice.models.bayesian.nodes.contract import NO_POSTERIOR, Columns
from suffice.table import Table

if TYPE_CHECKING:
    from suffice.statistics import Summary

Floats = NDArray[np.float64]


class NetworkPosterior(NetworkLearning):
    """Mixed into the network: it learns its nodes, and says what is known about their parameters."""

    def node(self, node: Hashable) -> Any:
        """The fitted node."""
        raise NotImplementedError

    def _complete(self, summary: Summary) -> Summary:
        """The statistics of a closed form, where a summary holds distinct rows that show all nodes."""
        raise NotImplementedError

    def _refuse_gaps(self) -> None:
        from suffice.models.em.rows import has_gaps

        summary = self.__dict__.get("summary_")
        if summary is not None and has_gaps(self._complete(summary)):
            raise EstimateError(NO_POSTERIOR)

    @property
    def posterior_(self) -> dict[Hashable, Any]:
        """The posterior of the parameters of each node that has a prior; tied nodes have the same.

        Tables have independent Dirichlet rows, linear-Gaussian nodes a normal-inverse-gamma law, GLM nodes the normal
        law of Laplace's approximation. Without any prior it is an error; nodes without one are left out, and so are,
        with a warning, those whose table does not fit.
        """
        self._refuse_gaps()
        nodes = [node for node in self._free().values() if has_posterior(node, approximate=True)]
        if nodes:
            return ByNode.of("posterior", nodes, lambda node: node.posterior_)
        raise EstimateError("No node was fitted with a conjugate prior, so there is no posterior. Give prior=.")

    def standard_errors(self) -> dict[Hashable, Table]:
        """Standard errors of the parameters of each node that is not fixed, by label.

        Tables: of each probability, sqrt(p (1 - p) / n) with n the weight of its row. Linear-Gaussian nodes: of weights
        and variance, laid out as `table(node)`. Noisy-OR nodes: of the weights, NaN for those on the edge. GLM
        nodes: of the coefficients, infinite for those that run away. They are
        those of the observed information at the maximum; with a conjugate prior and complete rows, posterior standard
        deviations. A node whose table does not fit is left out with a warning, and is an error when it is asked for.
        """
        nodes = [self.node(name) for name in self._free()]
        return ByNode.of("standard errors", nodes, lambda node: node.error_table())

    def log_predictive(self, data: Any, *, columns: Any = None) -> Floats:
        """Log probability (density) of each row by itself given the rows learned, parameters integrated out (n,).

        Exact: for tables the posterior mean, for linear-Gaussian nodes Student's t; of tied nodes those that come
        later in a row learn from those before. Fixed nodes count as known. The rows must be complete.
        """
        nodes, free = self._nodes(), self._free()
        self._refuse_gaps()
        without = [name for name, node in free.items() if not has_posterior(node)]
        if without:
            raise EstimateError(f"{listing(without)} have no posterior in closed form. Give every node a prior=.")
        domain = Domain(node.domain[name] for name, node in nodes.items())
        tied = {name for group in self._groups() for name in group}
        parts = []
        from suffice.models.bayesian.queries.tables import coded_columns

        for found, n in coded_columns(data, domain, columns):
            check_complete(found, domain)
            total = np.zeros(n)
            for name, node in nodes.items():
                if name not in tied:
                    total += node.predictive_log_prob(found) if name in free else node.log_prob(found)
            for group in self._groups():
                total += OF_GROUP[nodes[group[0]].kind]([nodes[name] for name in group], found)
            parts.append(total)
        return np.concatenate(parts) if parts else np.empty(0)


class ByNode(dict[Hashable, Any]):
    """Results by node. Those that do not fit are not among them; reading one of them raises what says why."""

    refused: dict[Hashable, SizeError]

    @classmethod
    def of(cls, what: str, nodes: Sequence[Any], result: Callable[[Any], Any]) -> Self:
        """The results of some nodes, and a warning that names those without."""
        found = cls()
        found.refused = {}
        for node in nodes:
            try:
                found[node.name] = result(node)
            except SizeError as error:
                found.refused[node.name] = error
        if found.refused:
            warnings.warn(
                f"There is no room for the {what} of {listing(found.refused)}: left out. Read by name, each raises an "
                "error that gives its size.",
                SufficeWarning,
                stacklevel=3,
            )
        return found

    def __missing__(self, name: Hashable) -> Any:
        """The reason why a node has no result."""
        raise self.refused.get(name, KeyError(name))


def has_posterior(node: Any, *, approximate: bool = False) -> bool:
    """Whether a node has a posterior in closed form, or at least by Laplace's approximation."""
    return node.log_evidence() is not None or (approximate and getattr(node, "has_posterior", False))


def check_complete(columns: Columns, domain: Domain) -> None:
    """Raise where a column is missing or has a gap."""
    missing = [name for name in domain.names if name not in columns]
    if missing:
        raise MissingColumnError(f"The rows lack the columns {listing(missing)}; log_predictive takes complete rows.")
    gaps = [n for n, values in columns.items() if (values < 0 if values.dtype.kind == "i" else np.isnan(values)).any()]
    if gaps:
        raise MissingValueError(f"The columns {listing(gaps)} have gaps; log_predictive takes complete rows.")


def predictive_of_tables(nodes: Sequence[Any], columns: Columns) -> Floats:
    """Log predictive (n,) of tied tables: within a row, what the first members show is learned before the next.

    The i-th member has ``(alpha + counts + earlier members at this cell) / (the same, summed over its row)``.
    """
    cells = [np.stack([columns[name] for name in node.domain.names], axis=1) for node in nodes]
    total = np.zeros(len(cells[0]))
    for at, (node, mine) in enumerate(zip(nodes, cells, strict=True)):
        weight = node.posterior_weights(mine[:, :-1])
        above = [(other[:, :-1] == mine[:, :-1]).all(axis=1) for other in cells[:at]]
        same = [rows & (other[:, -1] == mine[:, -1]) for rows, other in zip(above, cells[:at], strict=True)]
        top = weight[np.arange(len(mine)), mine[:, -1]] + np.sum(same, axis=0, initial=0.0)
        total += np.log(top / (weight.sum(axis=1) + np.sum(above, axis=0, initial=0.0)))
    return total


def predictive_of_regressions(nodes: Sequence[Any], columns: Columns) -> Floats:
    """Log predictive (n,) of tied linear-Gaussian nodes, in the same way."""
    designs = [node.design(columns) for node in nodes]
    codes = [node.parent_codes(columns, len(designs[0][1])) for node in nodes]
    total = np.zeros(len(designs[0][1]))
    for at, (node, mine) in enumerate(zip(nodes, codes, strict=True)):
        laws = node.laws_of_rows(columns)
        for earlier in range(at):
            laws = laws.after(*designs[earlier], (codes[earlier] == mine).all(axis=1))
        total += laws.log_density(*designs[at])
    return total


#: The predictive of a group of tied nodes, by kind.
OF_GROUP = {"table": predictive_of_tables, "linear-gaussian": predictive_of_regressions}
