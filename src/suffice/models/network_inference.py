"""Exact inference in a network of tables: the junction tree of its families, planned once, loaded with its tables."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.domain import Domain
from suffice.engines.junction_tree import JunctionTree, TreePlan, plan_tree
from suffice.errors import EstimateError, OptionError, listing
from suffice.models.nodes import Columns
from suffice.models.table_node import TableNode
from suffice.table import Table

Floats = NDArray[np.float64]


class TableInference:
    """Questions to a fitted network of tables."""

    def __init__(self, nodes: Mapping[Hashable, TableNode]) -> None:
        """Take the fitted nodes."""
        self.nodes = dict(nodes)
        self.domain = Domain(node.domain[name] for name, node in self.nodes.items())

    @cached_property
    def plan(self) -> TreePlan:
        """The junction tree; a plan that would not fit is an error before any allocation."""
        cards = {variable.name: variable.card for variable in self.domain.variables}
        return plan_tree(cards, [node.domain.names for node in self.nodes.values()])

    @cached_property
    def tree(self) -> JunctionTree:
        """The plan with the tables."""
        undefined = [name for name, node in self.nodes.items() if np.isnan(node.rows).any()]
        if undefined:
            raise EstimateError(
                f"The tables of {listing(undefined)} have undefined rows (unseen='nan'). Use a prior= or "
                "unseen='uniform'."
            )
        return self.plan.load([node.table_.values for node in self.nodes.values()])

    # -- evidence ----------------------------------------------------------------------------------------------------

    def evidence(self, given: Mapping[Any, Any] | None) -> tuple[dict[Hashable, int], dict[Hashable, Floats]]:
        """Hard evidence as codes; soft evidence as likelihoods, from a dict by state or an array of all states."""
        hard: dict[Hashable, int] = {}
        soft: dict[Hashable, Floats] = {}
        for name, value in (given or {}).items():
            variable = self.domain[name]
            if isinstance(value, Mapping):
                weights = np.zeros(variable.card)
                for state, weight in value.items():
                    weights[variable.index(state)] = weight
                soft[name] = weights
            elif isinstance(value, np.ndarray | list):
                soft[name] = np.asarray(value, dtype=np.float64)
            else:
                hard[name] = variable.index(value)
        for name, weights in soft.items():
            bad = weights.shape != (self.domain[name].card,) or not np.isfinite(weights).all() or (weights < 0).any()
            if bad or not weights.sum() > 0:
                raise OptionError(
                    f"The likelihoods of {name!r} are {weights.tolist()}; expected {self.domain[name].card} "
                    "numbers of at "
                    "least 0, not all 0."
                )
        return hard, soft

    # -- answers -----------------------------------------------------------------------------------------------------

    def query(self, variables: Any, given: Mapping[Any, Any] | None) -> Table:
        """P(variables | given), axes in the order asked."""
        names = self.domain.names_of(variables)
        hard, soft = self.evidence(given)
        values = self._posterior(hard, soft, given).marginal(names)
        return Table(self.domain.select(names), values)

    def marginals(self, given: Mapping[Any, Any] | None) -> dict[Hashable, Table]:
        """P(variable | given) of every variable, from one calibration."""
        hard, soft = self.evidence(given)
        found = self._posterior(hard, soft, given).marginals()
        return {name: Table(self.domain.select([name]), values) for name, values in found.items()}

    def _posterior(self, hard: Any, soft: Any, given: Any) -> Any:
        posterior = self.tree.condition(hard, soft)
        if posterior.log_partition == -np.inf:
            raise EstimateError(
                f"The evidence {given!r} has probability 0 under the network, so nothing follows from it."
            )
        return posterior

    def most_probable(self, given: Mapping[Any, Any] | None) -> dict[Hashable, Hashable]:
        """The most probable joint state that agrees with the evidence."""
        hard, soft = self.evidence(given)
        best = self.tree.most_probable(hard, soft)
        if best.log_value == -np.inf:
            raise EstimateError(
                f"The evidence {given!r} has probability 0 under the network, so nothing follows from it."
            )
        return {name: self.domain[name].states[code] for name, code in best.states.items()}

    def log_probability(self, given: Mapping[Any, Any] | None) -> float:
        """Log-probability of the evidence, -inf where it is impossible."""
        return self.tree.log_probability(*self.evidence(given))

    # -- many rows ---------------------------------------------------------------------------------------------------

    def log_likelihood(self, columns: Columns, n: int) -> Floats:
        """Log-probability of each row of codes, -1 for a gap; absent columns are summed out."""
        rows, names = _matrix(columns, n)
        return self.tree.solve_rows(rows, names).log_partition

    def predict_rows(self, columns: Columns, n: int, target: Hashable) -> Floats:
        """P(target | row) of each row (n, card); rows of probability 0 are an error that names the first."""
        rows, names = _matrix({name: values for name, values in columns.items() if name != target}, n)
        answers = self.tree.solve_rows(rows, names, scopes=[(target,)])
        impossible = np.flatnonzero(answers.log_partition == -np.inf)
        if len(impossible):
            raise EstimateError(
                f"{len(impossible)} rows have probability 0 under the network, the first is row {impossible[0]}. Fit "
                "with a prior, so that every event keeps some probability."
            )
        return answers.marginals[(target,)]

    def sample_given(self, given: Mapping[Any, Any], n: int, rng: np.random.Generator) -> dict[Hashable, NDArray[Any]]:
        """`n` rows of codes by node, from the exact posterior."""
        codes = self._posterior(*self.evidence(given), given).sample(n, random_state=rng)
        return {name: codes[:, place] for place, name in enumerate(self.domain.names)}


def _matrix(columns: Columns, n: int) -> tuple[NDArray[np.int32], tuple[Hashable, ...]]:
    """Columns of codes as rows (n, d), with their names."""
    names = tuple(columns)
    return np.stack([columns[k] for k in names], axis=1) if names else np.empty((n, 0), np.int32), names


def coded_columns(data: Any, domain: Domain, columns: Any) -> Iterator[tuple[dict[Hashable, NDArray[Any]], int]]:
    """The columns that the domain knows, batch by batch, with their length: codes (-1 for a gap), numbers (NaN)."""
    from suffice.sources import open_source

    source = open_source(data, columns=columns)
    names = [name for name in domain.names if name in source.columns]
    for batch in source.batches(source.infer(names, {name: domain[name] for name in names})):
        found: dict[Hashable, NDArray[Any]] = dict(zip(batch.real, batch.reals, strict=True))
        for name, codes in zip(batch.discrete, batch.codes, strict=True):
            signed = codes.astype(np.int32)
            signed[signed == domain[name].card] = -1
            found[name] = signed
        yield found, batch.rows
