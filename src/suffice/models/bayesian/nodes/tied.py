"""Tied nodes: several nodes that share one set of parameters.

The families of a group have the same states position by position: the node with the node, each parent with the parent
at its place. Their statistics add up by position, so that the shared parameters are learned as those of one node.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any, Self

from suffice.domain import Domain, Variable, state_key
from suffice.errors import OptionError, listing, meant
from suffice.models.bayesian.nodes.contract import NodeLearner
from suffice.statistics import Statistic, Summary


def read_ties(tied: Any, nodes: Iterable[Hashable]) -> tuple[tuple[Hashable, ...], ...]:
    """The groups of tied nodes, checked: known nodes, two or more in each, none in two."""
    if tied is None:
        return ()
    if isinstance(tied, str) or not isinstance(tied, list | tuple | set | frozenset):
        raise OptionError(f"tied is {tied!r}; expected groups of nodes, [('X1', 'X2', 'X3'), ...].")
    known, seen, groups = set(nodes), set[Hashable](), []
    for group in tied:
        if not isinstance(group, list | tuple) or len(group) < 2:
            raise OptionError(f"tied= holds the group {group!r}; expected a list or tuple of two or more nodes.")
        unknown = [name for name in group if name not in known]
        if unknown:
            near = meant(unknown[0], known)
            raise OptionError(
                f"tied= names {listing(unknown)}, which is no node.{near} The nodes are: {listing(known)}."
            )
        twice = [name for number, name in enumerate(group) if name in seen or name in group[:number]]
        if twice:
            raise OptionError(f"tied= names {listing(twice)} twice; a node shares its parameters in one group.")
        seen |= set(group)
        groups.append(tuple(group))
    return tuple(groups)


@dataclass(frozen=True)
class TiedLearner(NodeLearner):
    """Learns the nodes of a group from the statistics of all of them.

    `alone` learns one node; `members` are the families of the group. Every member gets the same parameters, to the bit.
    """

    alone: NodeLearner
    members: tuple[Domain, ...]

    def statistics(self, domain: Domain) -> tuple[Statistic, ...]:
        """Those of the member's own family."""
        return self.alone.statistics(domain)

    @property
    def of_one(self) -> Any:
        """The learner of one node of the group."""
        return self.alone

    @property
    def asks_rows(self) -> bool:
        """As one node does."""
        return self.alone.asks_rows

    def of_family(self) -> Self:
        """Tied nodes read their own families."""
        return replace(self, alone=self.alone.of_family())

    def for_em(self, *, filled: bool) -> Self:
        """The steps of one node, for the whole group."""
        return replace(self, alone=self.alone.for_em(filled=filled))

    def pooled(self, summary: Summary) -> Summary:
        """The statistics of all members together, as those of the first."""
        questions = [self.alone.statistics(member) for member in self.members]
        answers = {
            first: reduce(add, (summary[question] for question in (first, *others)))
            for first, *others in zip(*questions, strict=True)
        }
        return Summary(self.members[0], answers, summary.rows, summary.weight)

    def learn(self, domain: Domain, summary: Summary) -> Any:
        """The node with the parameters of the group."""
        return replace(self.alone.learn(self.members[0], self.pooled(summary)), domain=domain)

    @classmethod
    def learn_many(cls, learners: Sequence[Any], domains: Sequence[Domain], summary: Summary) -> list[Any]:
        """Each group once."""
        groups: dict[tuple[Hashable, ...], Any] = {}
        for learner in learners:
            if (key := learner.members[0].names) not in groups:
                groups[key] = learner.learn(learner.members[0], summary)
        return [
            replace(groups[learner.members[0].names], domain=domain)
            for learner, domain in zip(learners, domains, strict=True)
        ]


def tie(learners: Mapping[Hashable, NodeLearner], families: Mapping[Hashable, Domain]) -> TiedLearner:
    """The learner of a group from those of its members, whose families and learners must be alike.

    `families` lists the group; `learners` those members that have something to say, at least one.
    """
    first, *others = families
    for other in others:
        _check_alike(families[first], families[other])
    speaker, *rest = learners
    for other in rest:
        if learners[speaker] != learners[other]:
            raise OptionError(
                f"{speaker!r} and {other!r} are tied and have different kinds, options or priors: "
                f"{learners[speaker]!r} and {learners[other]!r}. Give them once for the group, or alike."
            )
    return TiedLearner(learners[speaker], tuple(families.values()))


def _check_alike(first: Domain, other: Domain) -> None:
    node, tied = first.names[-1], other.names[-1]
    if len(first) != len(other):
        raise OptionError(
            f"{node!r} and {tied!r} are tied; {node!r} has the {len(first) - 1} parents {listing(first.names[:-1])} "
            f"and {tied!r} the {len(other) - 1} parents {listing(other.names[:-1])}. Tied nodes have as many parents."
        )
    for mine, theirs in zip(first.variables, other.variables, strict=True):
        if mine.kind != theirs.kind or _states(mine) != _states(theirs):
            raise OptionError(
                f"{node!r} and {tied!r} are tied, and {mine.name!r} and {theirs.name!r}, at the same place of their "
                f"families, differ: {_described(mine)} and {_described(theirs)}. Declare the same states= for both."
            )


def _states(variable: Variable) -> tuple[Hashable, ...]:
    return tuple(map(state_key, variable.states))


def _described(variable: Variable) -> str:
    return f"the states {listing(variable.states)}" if variable.kind == "discrete" else f"{variable.kind} numbers"
