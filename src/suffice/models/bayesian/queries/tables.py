"""Exact inference in a network of tables: the junction tree of its families, planned once, loaded with its tables."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.domain import Domain, Variable
from suffice.engines.calibration import Calibration
from suffice.engines.junction_tree import JunctionTree, TreePlan, plan_tree
from suffice.engines.workers import worker_count
from suffice.errors import DataError, EstimateError, OptionError, SizeError, listing
from suffice.graphs.directed import ancestors
from suffice.models.bayesian.nodes.contract import Columns, DiscreteNode, Factor
from suffice.models.bayesian.queries.observed_families import without_observed
from suffice.models.bayesian.queries.undefined import UNDEFINED, Undefined
from suffice.models.evidence import Names, RowDistributions, read_evidence
from suffice.records import set_fields
from suffice.table import Table

if TYPE_CHECKING:
    from suffice.engines.registry import Planner
    from suffice.models.bayesian.queries.evidence_first import EvidenceFirst


#: A calibrated tree of at most this size is kept for further questions about the same evidence.
KEPT_BYTES = 2**26
#: One junction tree of at most this size answers every question; larger networks leave out what does not matter.
SMALL_BYTES = 2**18
#: Parts of a network that are kept with their plans.
KEPT_PARTS = 8


class TableInference:
    """Questions to a fitted network of tables."""

    kind = "tables"

    def __init__(self, nodes: Mapping[Hashable, DiscreteNode]) -> None:
        """Take the fitted nodes."""
        self.nodes = dict(nodes)
        self.domain = Domain(node.domain[name] for name, node in self.nodes.items())
        self._last: tuple[Any, Calibration] | None = None
        self._parts: dict[frozenset[Hashable], TableInference] = {}
        self._reduced: tuple[frozenset[Hashable], EvidenceFirst] | None = None
        #: What questions of the same form have in common when their derivatives are asked for; the last ones are kept.
        self.forms: dict[Any, Any] = {}

    @cached_property
    def plan(self) -> TreePlan:
        """The junction tree; a plan that would not fit is an error before any allocation."""
        scopes = [names for names, _ in self.factors]
        private = {name for names in scopes for name in names if name not in self.domain}
        return plan_tree(self._cards | _cards_of(private), scopes)

    @property
    def _cards(self) -> dict[Hashable, int]:
        return {variable.name: variable.card for variable in self.domain.variables}

    @cached_property
    def factors(self) -> list[Factor]:
        """The tables of all nodes; those of some nodes are products over private variables."""
        return [factor for node in self.nodes.values() for factor in node.factors()]

    @cached_property
    def factor_places(self) -> list[tuple[Hashable, int]]:
        """Whose table each factor is, and the how many-th of its own."""
        return [(name, number) for name, node in self.nodes.items() for number in range(len(node.factors()))]

    @cached_property
    def tree(self) -> JunctionTree:
        """The plan with the tables."""
        return self.plan.load(self.filled_tables)

    @property
    def filled_tables(self) -> list[Floats]:
        """The tables, with equal probabilities in undefined rows: no answer that these rows could touch is given."""
        if not self.undefined:
            return [table for _, table in self.factors]
        return [np.where(np.isnan(table), 1.0 / table.shape[-1], table) for _, table in self.factors]

    def at(self, nodes: Mapping[Hashable, DiscreteNode]) -> TableInference:
        """Questions to the same network with other numbers in its tables: the plan is the same."""
        other = TableInference(nodes)
        set_fields(other, plan=self.plan)
        return other

    @cached_property
    def undefined(self) -> Undefined:
        """Which joint states of the parents have no row (unseen="nan"), by node."""
        return Undefined.of(self.nodes)

    @cached_property
    def _whole_tree(self) -> JunctionTree:
        """The tree of whole tables: the largest product is not found through variables that have to be summed out."""
        if len(self.plan.space.cards) == len(self.domain):
            return self.tree
        plan = plan_tree(self._cards, [node.domain.names for node in self.nodes.values()])
        tables = [node.table_.values for node in self.nodes.values()]
        return plan.load([np.where(np.isnan(table), 1.0 / table.shape[-1], table) for table in tables])

    # -- evidence ----------------------------------------------------------------------------------------------------

    def evidence(self, given: Mapping[Any, Any] | None) -> tuple[dict[Hashable, int], dict[Hashable, Floats]]:
        """Hard evidence as codes; soft evidence as likelihoods, from a dict by state or an array of all states."""
        evidence = read_evidence(self.domain, given)
        return evidence.states, evidence.likelihoods

    @cached_property
    def _small(self) -> bool:
        """Whether the whole tree is so small that leaving nodes out would not pay."""
        if sum(math.prod(self.domain.shape(node.domain.names)) for node in self.nodes.values()) > SMALL_BYTES // 8:
            return False
        try:
            return self.plan.bytes <= SMALL_BYTES
        except SizeError:
            return False

    def relevant(self, names: Iterable[Hashable]) -> TableInference:
        """These nodes and their ancestors: given them all others are barren and sum to one."""
        if self._small:
            return self
        kept = frozenset(ancestors({name: node.domain.names[:-1] for name, node in self.nodes.items()}, names))
        if len(kept) == len(self.nodes):
            return self
        part = self._parts.pop(kept, None)
        if part is None:
            part = TableInference({name: node for name, node in self.nodes.items() if name in kept})
        self._parts = dict([*self._parts.items(), (kept, part)][-KEPT_PARTS:])
        return part

    # -- answers -----------------------------------------------------------------------------------------------------

    def query(self, variables: Names, given: Mapping[Any, Any] | None) -> Table:
        """P(variables | given), axes in the order asked."""
        names = self.domain.names_of(variables)
        hard, soft = self.evidence(given)
        part = self.relevant([*names, *hard, *soft])
        try:
            values = part.posterior(hard, soft, given, names).marginal(names)
        except SizeError as error:
            log_probability, calibrated = part._evidence_first(hard, soft, error)
            if log_probability == -np.inf:
                raise _impossible(given) from None
            values = part._spread(calibrated, hard, names)
        return Table(self.domain.select(names), values)

    def query_by(self, planner: Planner, variables: Any, given: Mapping[Any, Any] | None) -> Table:
        """The same by a registered engine, from the tables of all nodes."""
        names = self.domain.names_of(variables)
        hard, soft = self.evidence(given)
        scopes = [node.domain.names for node in self.nodes.values()]
        if self.undefined:
            raise OptionError("The network has rows that no data define; ask engine='exact'.")
        model = planner(self._cards, scopes).load([node.table_.values for node in self.nodes.values()])
        posterior = model.condition(hard, soft)
        if posterior.log_partition == -np.inf:
            raise _impossible(given)
        return Table(self.domain.select(names), posterior.marginal(names))

    def _evidence_first(
        self, hard: dict[Hashable, int], soft: dict[Hashable, Floats], error: SizeError
    ) -> tuple[float, Calibration | None]:
        """Log-probability of the evidence and the tree of what is unknown; for networks that are too large."""
        if not hard:
            raise error
        from suffice.models.bayesian.queries.evidence_first import EvidenceFirst

        known = frozenset(hard)
        if self._reduced is None or self._reduced[0] != known:
            try:
                self._reduced = (known, EvidenceFirst(self.nodes, known))
            except SizeError:
                raise error from None
        return self._reduced[1].condition(hard, soft)

    def _spread(self, calibrated: Calibration | None, hard: dict[Hashable, int], names: Sequence[Hashable]) -> Floats:
        """P(names | evidence) from the tree of what is unknown, None where nothing is."""
        from suffice.models.bayesian.queries.evidence_first import spread

        unknown = [name for name in names if name not in hard]
        distribution = np.ones(()) if calibrated is None or not unknown else calibrated.marginal(unknown)
        places = {axis: hard[name] for axis, name in enumerate(names) if name in hard}
        return spread(distribution, self.domain.shape(names), places)

    def marginals(self, given: Mapping[Any, Any] | None) -> dict[Hashable, Table]:
        """P(variable | given) of every variable, from one calibration."""
        hard, soft = self.evidence(given)
        marginals = self.posterior(hard, soft, given).marginals()
        return {name: Table.over(self.domain.select((name,)), marginals[name]) for name in self.domain.names}

    def posterior(
        self,
        hard: dict[Hashable, int],
        soft: dict[Hashable, Floats],
        given: Mapping[Any, Any] | None,
        asked: Iterable[Hashable] | None = None,
    ) -> Calibration:
        """The calibrated tree; the last one is kept, as several questions about the same evidence are common.

        Where an undefined row can be reached, and what is asked (by default all nodes) depends on it, that is an error.
        """
        key = (tuple(hard.items()), tuple((name, tuple(weights.tolist())) for name, weights in soft.items()))
        last = self._last  # Read once: another thread may replace it.
        if last is not None and last[0] == key:
            posterior = last[1]
        else:
            posterior = self.tree.condition(hard, soft)
            self._last = (key, posterior) if self.plan.bytes <= KEPT_BYTES else None
        if posterior.log_partition == -np.inf:
            raise _impossible(given)
        self.undefined.check(None if asked is None else [*asked, *hard, *soft], posterior.marginal)
        return posterior

    def map_query(self, given: Mapping[Any, Any] | None) -> dict[Hashable, Hashable]:
        """The most probable joint state that agrees with the evidence."""
        hard, soft = self.evidence(given)
        if self.undefined:
            self.posterior(hard, soft, given)
        try:
            best = self._whole_tree.most_probable(hard, soft)
        except DataError:  # The engine's word for evidence of probability 0.
            raise _impossible(given) from None
        if best.log_value == -np.inf:
            raise _impossible(given)
        return {name: self.domain[name].states[code] for name, code in best.states.items()}

    def log_probability(self, given: Mapping[Any, Any] | None) -> float:
        """Log-probability of the evidence, -inf where it is impossible."""
        hard, soft = self.evidence(given)
        part = self.relevant([*hard, *soft])
        try:
            value = part.tree.log_probability(hard, soft)
            if part.undefined and value > -np.inf:
                part.posterior(hard, soft, given, ())
            return value
        except SizeError as error:
            # Soft evidence counts relative to no evidence, as in the tree.
            return part._evidence_first(hard, soft, error)[0]

    # -- many rows ---------------------------------------------------------------------------------------------------

    def log_likelihood(
        self, columns: Columns, n: int, *, threads: int | None = None, calls: int | None = None
    ) -> Floats:
        """Log-probability of each row of codes, -1 for a missing value; absent columns are summed out.

        A row without missing values that meets a row of a table that is undefined (unseen='nan') has NaN.

        With calls, the number of calls like this one, the digits do not depend on what was asked before.
        """
        logs, rest = log_prob_of_whole_rows(self.nodes, columns, n)
        if len(rest):
            rows, names = _matrix({name: values[rest] for name, values in columns.items()}, len(rest))
            try:
                part = self.relevant(names)
                tree = part.tree
            except SizeError as error:
                some = {name: values[rest] for name, values in columns.items()}
                if (smaller := without_observed(self.nodes, some, len(rest))) is None:
                    logs[rest] = self._row_by_row(rows, names, [], error)[0]
                    return logs
                others = TableInference(smaller[0])
                logs[rest] = smaller[1] + others.log_likelihood(some, len(rest), threads=threads, calls=calls)
                return logs
            known = tree.plan.rows(rows, names, calls=calls)
            scopes = part.undefined.scopes(names)
            answers = tree.solve_rows(known, scopes=scopes, threads=worker_count(threads))
            part.undefined.check(names, answers.marginals.__getitem__)
            logs[rest] = answers.log_partition
        return logs

    def predict_rows(
        self, columns: Columns, n: int, target: Hashable, *, threads: int | None = None
    ) -> RowDistributions:
        """P(target | row) of each row (n, card)."""
        others = {name: values for name, values in columns.items() if name != target}
        return self.distributions_of_rows(others, n, [target], threads=threads)

    def distributions_of_rows(
        self, columns: Columns, n: int, names: Sequence[Hashable], *, threads: int | None = None
    ) -> RowDistributions:
        """P(names | row) of each row (n, cards...)."""
        rows, seen = _matrix(columns, n)
        scope = tuple(names)
        part = self.relevant([*seen, *scope])
        if part._wide and len(scope) == 1 and {*seen, *scope} == set(part.nodes) and (rows >= 0).all():
            return part._distributions_of_whole_rows(columns, n, scope[0])
        try:
            tree = part._tree_with(scope)
        except SizeError as error:
            logs, distributions = self._row_by_row(rows, seen, [scope], error)
            return distributions[scope], logs > -np.inf
        asked = (*seen, *scope)
        scopes = list(dict.fromkeys([scope, *part.undefined.scopes(asked)]))
        answers = tree.solve_rows(rows, seen, scopes=scopes, threads=worker_count(threads))
        part.undefined.check(asked, answers.marginals.__getitem__)
        return answers.marginals[scope], answers.log_partition > -np.inf

    def marginals_of_rows(
        self, columns: Columns, n: int, *, threads: int | None = None
    ) -> tuple[dict[Hashable, Floats], NDArray[np.bool_]]:
        """P(node | row) of every node and row (n, card), and which rows are possible (n,); one call for all."""
        rows, seen = _matrix(columns, n)
        singles = [(name,) for name in self.domain.names]
        try:
            tree = self.tree
        except SizeError as error:
            logs, marginals = self._row_by_row(rows, seen, singles, error)
        else:
            scopes = list(dict.fromkeys([*singles, *self.undefined.scopes(self.domain.names)]))
            answers = tree.solve_rows(rows, seen, scopes=scopes, threads=worker_count(threads))
            self.undefined.check(None, answers.marginals.__getitem__)
            logs, marginals = answers.log_partition, dict(answers.marginals)
        return {name: marginals[(name,)] for name in self.domain.names}, logs > -np.inf

    def _row_by_row(
        self,
        rows: NDArray[np.int32],
        seen: Sequence[Hashable],
        scopes: Sequence[tuple[Hashable, ...]],
        error: SizeError,
    ) -> tuple[Floats, dict[tuple[Hashable, ...], Floats]]:
        """Log-probabilities (n,) and P(scope | row) (n, cards...), evidence first, one distinct row after the other."""
        distinct, places = np.unique(rows, axis=0, return_inverse=True)
        logs = np.zeros(len(distinct))
        marginals = {scope: np.zeros((len(distinct), *self.domain.shape(scope))) for scope in scopes}
        asked = [name for scope in scopes for name in scope]
        for number, row in enumerate(distinct.tolist()):
            hard = {name: code for name, code in zip(seen, row, strict=True) if code >= 0}
            part = self.relevant([*hard, *asked])
            logs[number], calibrated = part._evidence_first(hard, {}, error)
            if logs[number] > -np.inf:
                for scope, distributions in marginals.items():
                    distributions[number] = part._spread(calibrated, hard, scope)
        label = places.ravel()
        return logs[label], {scope: distributions[label] for scope, distributions in marginals.items()}

    @cached_property
    def _wide(self) -> bool:
        """Whether a node has so many parents that its table cannot be written out."""
        try:
            return not self.factors
        except SizeError:
            return True

    def _distributions_of_whole_rows(self, columns: Columns, n: int, target: Hashable) -> RowDistributions:
        """P(target | row) (n, card) where every other node is known: by the nodes alone, without a tree."""
        return distributions_by_state(self.nodes, columns, n, self.domain[target])

    def _tree_with(self, scope: tuple[Hashable, ...]) -> JunctionTree:
        """The tree, or one in which the scope lies in a clique."""
        if len(scope) < 2 or any(set(scope) <= set(clique) for clique in self.plan.cliques):
            return self.tree
        return plan_tree(self.plan.space.cards, [*self.plan.scopes, scope]).load([*self.filled_tables, None])

    def sample_given(self, given: Mapping[Any, Any], n: int, rng: np.random.Generator) -> dict[Hashable, NDArray[Any]]:
        """`n` rows of codes by node, from the exact posterior."""
        codes = self.posterior(*self.evidence(given), given).sample(n, random_state=rng)
        return {name: codes[:, column] for column, name in enumerate(self.domain.names)}


def _cards_of(private: set[Hashable]) -> dict[Hashable, int]:
    """States of private variables of chains; networks without any load nothing of these."""
    if not private:
        return {}
    from suffice.models.bayesian.nodes.noisy_max_chain import card_of

    return {name: card_of(name) for name in private}


def _impossible(given: object) -> EstimateError:
    return EstimateError(f"The evidence {given!r} has probability 0 under the network, so nothing follows from it.")


def distributions_by_state(
    nodes: Mapping[Hashable, Any], columns: Columns, n: int, target: Variable
) -> RowDistributions:
    """P(target | row) (n, card) where all others in the families of these nodes are known: state by state."""
    logs = np.zeros((n, target.card))
    for state in range(target.card):
        filled = {**columns, target.name: np.full(n, state, dtype=np.int32)}
        logs[:, state] = np.sum([node.log_prob(filled) for node in nodes.values()], axis=0)
    if np.isnan(logs).any():
        raise EstimateError(UNDEFINED.format(listing(nodes)))
    top = logs.max(axis=1, keepdims=True, initial=-np.inf)
    distribution = np.exp(logs - np.where(top > -np.inf, top, 0.0))
    mass = distribution.sum(axis=1, keepdims=True)
    return distribution / np.where(mass > 0, mass, 1.0), top[:, 0] > -np.inf


def complete_rows(columns: Columns, names: Iterable[Hashable], n: int) -> NDArray[np.bool_]:
    """Which rows (n,) show all of some nodes."""
    complete = np.ones(n, dtype=bool)
    for name in names:
        values = columns.get(name)
        if values is None:
            return np.zeros(n, dtype=bool)
        complete &= values >= 0 if values.dtype.kind == "i" else ~np.isnan(values)
    return complete


def log_prob_of_whole_rows(nodes: Mapping[Any, Any], columns: Columns, n: int) -> tuple[Floats, NDArray[np.intp]]:
    """Log-probability of each complete row (n,), the sum over its nodes, and the numbers of the other rows."""
    whole, logs = complete_rows(columns, nodes, n), np.zeros(n)
    if whole.all() and n:
        logs = np.sum([node.log_prob(columns) for node in nodes.values()], axis=0)
    elif whole.any():
        some = {name: values[whole] for name, values in columns.items()}
        logs[whole] = np.sum([node.log_prob(some) for node in nodes.values()], axis=0)
    return logs, np.flatnonzero(~whole)


def _matrix(columns: Columns, n: int) -> tuple[NDArray[np.int32], tuple[Hashable, ...]]:
    """Columns of codes as rows (n, d), with their names."""
    names = tuple(columns)
    return np.stack([columns[k] for k in names], axis=1) if names else np.empty((n, 0), np.int32), names
