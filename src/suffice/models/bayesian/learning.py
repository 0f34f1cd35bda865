"""How a network learns its nodes: the kind of each, its learner, fixed nodes, tied nodes."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.domain import Domain, Variable
from suffice.errors import DataError, OptionError, listing
from suffice.models.bayesian.nodes.contract import FittedNode, NodeOptions
from suffice.models.bayesian.nodes.table import TableNode
from suffice.models.bayesian.structure import Parents
from suffice.records import record

if TYPE_CHECKING:
    from suffice.models.bayesian.nodes.contract import NodeLearner
    from suffice.models.bayesian.nodes.tied import TiedLearner
    from suffice.statistics import Statistic, Summary

#: Sums of squares beyond this leave no room for the products that a regression forms of them.
MOST_SQUARES = 1e290
#: Mean square of a column below which products lose digits.
LEAST_SQUARE = 1e-280


@record(frozen=True, eq=False)
class NodeLearning:
    """What structure and options say about each node: its kind, how it is learned, whether it is fixed or tied."""

    parents: Parents
    options: Mapping[str, Any]

    def family(self, node: Hashable, domain: Domain) -> Domain:
        """The parents of a node in declared order, then the node."""
        return domain.select([*self.parents[node], node])

    @cached_property
    def hidden(self) -> dict[Hashable, Variable]:
        """The variables that are never observed: a number of states, a list of them, or "real"."""
        if not self.options["hidden"]:
            return {}
        from suffice.models.em.hidden import hidden_variables

        return hidden_variables(self.options["hidden"])

    # -- the target --------------------------------------------------------------------------------------------------

    @property
    def for_target(self) -> bool:
        """Whether the tables around the target are learned for it."""
        return bool(self.options["objective"] == "conditional")

    def around_target(self) -> Statistic:
        """The distinct rows of the target and all nodes that share a table with it."""
        from suffice.models.bayesian.blanket import blanket_families
        from suffice.statistics import Patterns

        families = [(*self.parents[node], node) for node in blanket_families(self.parents, self.options["target"])]
        return Patterns(tuple(dict.fromkeys(name for family in families for name in family)))

    # -- tied and fixed nodes ----------------------------------------------------------------------------------------

    @cached_property
    def groups(self) -> tuple[tuple[Hashable, ...], ...]:
        """The groups of tied nodes."""
        if self.options["tied"] is None:
            return ()
        from suffice.models.bayesian.nodes.tied import read_ties

        groups = read_ties(self.options["tied"], self.parents)
        both = [name for group in groups for name in group if name in self.fixed]
        if both:
            raise OptionError(
                f"{listing(both)} are fixed and tied. Fix all nodes of a group, or tie those that are free."
            )
        return groups

    def group_of(self, node: Hashable) -> tuple[Hashable, ...]:
        """The nodes that share the parameters of a node, itself included."""
        return next((group for group in self.groups if node in group), (node,))

    @property
    def fixed(self) -> Mapping[Hashable, Any]:
        """What is given of nodes that stay as they are."""
        given: Mapping[Hashable, Any] | None = self.options["fixed"]
        return given or {}

    @cached_property
    def leading(self) -> tuple[Hashable, ...]:
        """The nodes with parameters of their own: those that are not fixed, and the first of each tied group."""
        later = {name for group in self.groups for name in group[1:]}
        return tuple([name for name in self.parents if name not in self.fixed and name not in later])

    def given_nodes(self, domain: Domain) -> dict[Hashable, Any]:
        """The fixed nodes."""
        return {name: self.given_node(name, values, domain) for name, values in self.fixed.items()}

    def given_node(self, name: Hashable, values: Any, domain: Domain) -> Any:
        """A node whose parameters are given; a fitted node brings its kind with it."""
        from suffice.models.bayesian.nodes.kinds import kind_of

        family = self.family(name, domain)
        kind = kind_of(family, values.kind if isinstance(values, FittedNode) else self.chosen_kind(name))
        return kind.given(family, values, self.node_options(name, domain))

    # -- learners ----------------------------------------------------------------------------------------------------

    def chosen_kind(self, node: Hashable) -> Any:
        """What nodes= says about a node, or about another one of its group."""
        kinds = self.options["nodes"]
        if not kinds:
            return None
        return next((kinds[name] for name in (node, *self.group_of(node)) if name in kinds), None)

    def _tables_only(self, domain: Domain) -> bool:
        """Whether every node has a table: all columns hold states, and nobody names another kind."""
        return not self.options["nodes"] and not domain.numbers

    def statistics(self, domain: Domain) -> tuple[Statistic, ...]:
        """What the learners of all nodes read."""
        if self._tables_only(domain):
            return counts_of_families(tuple([(*above, node) for node, above in self.parents.items()]))
        families = {node: self.family(node, domain) for node in self.parents}
        asked = [q for n, f in families.items() for q in self.learner(n, domain, prior=False).statistics(f)]
        return tuple(dict.fromkeys(asked))

    def node_options(self, node: Hashable, domain: Domain, *, prior: bool = True) -> NodeOptions:
        """What the network says to a node; without the prior where that is not asked for."""
        return NodeOptions(
            prior=self.options["prior"] if prior else None,
            sample_size=self.options["equivalent_sample_size"],
            estimate=self.options["estimate"],
            unseen=self.options["unseen"],
            pool=domain.numbers,
            tied=len(self.group_of(node)) > 1,
        )

    def learner(self, node: Hashable, domain: Domain, *, prior: bool = True) -> NodeLearner:
        """How a node is learned by itself."""
        from suffice.models.bayesian.nodes.kinds import kind_of

        family = self.family(node, domain)
        return kind_of(family, self.chosen_kind(node)).learner(family, self.node_options(node, domain, prior=prior))

    def learners(self, domain: Domain) -> dict[Hashable, NodeLearner]:
        """How each node is learned, tied nodes from the statistics of their group."""
        if not self.groups and self._tables_only(domain):
            return self._table_learners(domain)
        learners: dict[Hashable, NodeLearner] = {node: self.learner(node, domain) for node in self.parents}
        for group in self.groups:
            learners |= dict.fromkeys(group, self._tied_learner(group, domain))
        return learners

    def _table_learners(self, domain: Domain) -> dict[Hashable, NodeLearner]:
        """The same for tables that are not tied.

        Without a prior one learner serves them all; with a number or a name those of one shape.
        """
        if self.options["prior"] is None:
            from suffice.models.bayesian.nodes.table_learner import TableLearner

            return dict.fromkeys(self.parents, TableLearner(unseen=self.options["unseen"]))
        from suffice.models.bayesian.nodes.kinds import KINDS

        kind, options = KINDS[TableNode.kind], self.node_options(next(iter(self.parents)), domain)
        families = {node: domain.select((*above, node)) for node, above in self.parents.items()}
        if not isinstance(options.prior, (str, int, float)):
            return {node: kind.learner(family, options) for node, family in families.items()}
        shapes = {node: family.shape(family.names) for node, family in families.items()}
        alike = {shape: node for node, shape in shapes.items()}
        learners = {shape: kind.learner(families[node], options) for shape, node in alike.items()}
        return {node: learners[shape] for node, shape in shapes.items()}

    def _tied_learner(self, group: tuple[Hashable, ...], domain: Domain, *, with_prior: bool = True) -> TiedLearner:
        from suffice.models.bayesian.nodes.tied import tie

        families = {name: self.family(name, domain) for name in group}
        prior = self.options["prior"]
        tie({name: self.learner(name, domain, prior=False) for name in group}, families)
        speaking = [name for name in group if not isinstance(prior, Mapping) or name in prior] or group
        return tie({name: self.learner(name, domain, prior=with_prior) for name in speaking}, families)

    def learned(
        self, summary: Summary, domain: Domain, learners: Mapping[Hashable, Any], given: Mapping[Hashable, Any]
    ) -> dict[Hashable, Any]:
        """All nodes, those with learners of one class together."""
        families = {n: domain.select((*above, n)) for n, above in self.parents.items() if n not in given}
        nodes_by_name: dict[Hashable, Any] = dict(given)
        for kind in dict.fromkeys([type(learners[node]) for node in families]):
            some = [node for node in families if type(learners[node]) is kind]
            nodes = kind.learn_many([learners[n] for n in some], [families[n] for n in some], summary)
            nodes_by_name |= dict(zip(some, nodes, strict=True))
        return {node: nodes_by_name[node] for node in self.parents}

    def statistics_of(self, node: Hashable, summary: Summary) -> Summary:
        """The statistics that the parameters of a node were learned from: those of its whole group."""
        group = self.group_of(node)
        if len(group) == 1:
            return summary
        return self._tied_learner(group, summary.domain, with_prior=False).pooled(summary)


def counts_of_families(families: tuple[tuple[Hashable, ...], ...]) -> tuple[Statistic, ...]:
    """The questions after the counts of families of variables; those of texts are kept for the next fit."""
    # Other names may be equal and not the same, such as 1 and True.
    plain = {type(family[-1]) for family in families} == {str}
    return _counts(families) if plain else _counts.__wrapped__(families)


@lru_cache(maxsize=64)
def _counts(families: tuple[tuple[Hashable, ...], ...]) -> tuple[Statistic, ...]:
    from suffice.statistics import Counts

    return tuple([Counts(family) for family in families])


def check_range(summary: Summary) -> None:
    """Refuse columns whose squares leave the range of floats: their moments would be inf, NaN or without digits."""
    from suffice.statistics import Counts, FamilyCounts, Moments, MomentsBy, Patterns

    huge: dict[Hashable, None] = {}
    tiny: dict[Hashable, None] = {}
    answer: Any
    good: Any
    for question in () if isinstance(summary.answers, FamilyCounts) else summary.answers:
        if type(question) is Counts:
            continue
        answer = summary.answers[question]
        if isinstance(question, Moments | MomentsBy):
            squares = np.abs(np.diagonal(answer.cross_pair[0], axis1=-2, axis2=-1)).reshape(-1, len(question.variables))
            good = (squares < MOST_SQUARES).all(axis=0)
            with np.errstate(over="ignore"):
                total = np.abs(answer.total_pair[0]).reshape(squares.shape).sum(axis=0)
            weight = answer.weight_pair[0].sum()
            lost = (total > 0) & (total < np.sqrt(LEAST_SQUARE) * weight)
            lost &= squares.sum(axis=0) < LEAST_SQUARE * weight
            tiny |= {name: None for name, small in zip(question.variables, lost, strict=True) if small}
        elif isinstance(question, Patterns) and answer.rows.dtype.kind == "f":
            with np.errstate(over="ignore"):  # Then it is infinite, and refused.
                sizes = np.nan_to_num(np.abs(answer.rows), nan=0.0, posinf=np.inf) * np.sqrt(answer.weights)[:, None]
            good = (sizes < np.sqrt(MOST_SQUARES / max(len(sizes), 1))).all(axis=0)
        else:
            continue
        huge |= {name: None for name, fine in zip(question.variables, good, strict=True) if not fine}
    refuse_huge(huge)
    if tiny:
        raise DataError(
            f"The values of {listing(tiny)} are so small that their squares have no digits left in float64. Multiply "
            "the columns by a constant, so that they are beyond about 1e-140."
        )


def refuse_huge(names: Iterable[Hashable]) -> None:
    """An error for columns whose squares leave the range of floats."""
    huge = tuple(names)
    if huge:
        raise DataError(
            f"The values of {listing(huge)} are so large that the sums of their squares leave the range of float64. "
            "Divide the columns by a constant, so that they stay below about 1e140."
        )


def plain_fixed(fixed: Mapping[Any, Any] | None) -> dict[Any, Any] | None:
    """Fixed nodes for a file: fitted nodes as plain data, numbers as they are."""
    if fixed is None:
        return None
    fitted: dict[Any, Any] = {name: value for name, value in fixed.items() if isinstance(value, FittedNode)}
    return {**fixed, **{name: node.to_dict() for name, node in fitted.items()}}


def read_fixed(fixed: Mapping[Any, Any] | None) -> dict[Any, Any] | None:
    """The inverse of `plain_fixed`."""
    if fixed is None:
        return None
    from suffice.models.bayesian.nodes.kinds import read_node

    return {name: read_node(value) if _is_plain(value) else value for name, value in fixed.items()}


def _is_plain(value: object) -> bool:
    """Whether a fixed node is the plain data of a fitted one, not numbers by state."""
    return isinstance(value, Mapping) and isinstance(value.get("kind"), str) and "domain" in value
