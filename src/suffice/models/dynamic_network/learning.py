"""How a network through time learns: its families are nodes, each learned from the slices in which it holds."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.array_types import Floats
from suffice.domain import Domain, Variable
from suffice.errors import OptionError, listing, meant
from suffice.models.bayesian.learning import NodeLearning
from suffice.models.dynamic_network.series import Series
from suffice.models.dynamic_network.structure import SliceStructure, Span, lag_of, name_of, renamed, variables_of
from suffice.models.em.rows import ObservedRows, batch_of
from suffice.records import replace
from suffice.sources.tally import tally
from suffice.statistics import Statistic, Summary

if TYPE_CHECKING:
    from suffice.models.bayesian.nodes.contract import NodeOptions

#: Options that go by node, of which a family may have its own.
BY_FAMILY = ("nodes", "prior", "fixed", "start")
#: What a network says to its nodes that a network through time does not offer.
NOT_OFFERED = {"target": None, "objective": "joint"}


class FamilyLearning(NodeLearning):
    """Families as nodes, each of which reads its own statistics: they hold in different slices."""

    def node_options(self, node: Hashable, domain: Domain, *, prior: bool = True) -> NodeOptions:
        """Without a pool of columns, whose moments are those of the same rows."""
        return replace(super().node_options(node, domain, prior=prior), pool=())

    @cached_property
    def hidden(self) -> dict[Hashable, Variable]:
        """The variables that are never observed, under all names that families know them by."""
        declared = super().hidden
        names = dict.fromkeys(name for family, above in self.parents.items() for name in (*above, family))
        known = {name: renamed(declared[name_of(name)], name) for name in names if name_of(name) in declared}
        return {**declared, **known}

    def asked_by(self, families: Iterable[Hashable], domain: Domain) -> tuple[Statistic, ...]:
        """What the learners of some families read."""
        asked = [q for f in families for q in self.learner(f, domain, prior=False).statistics(self.family(f, domain))]
        return tuple(dict.fromkeys(asked))


def learning_of(structure: SliceStructure, options: Mapping[str, Any]) -> FamilyLearning:
    """The learners of all families, by the options of the model."""
    start = getattr(options["start"], "fitted_", options["start"])
    given = {**options, "start": getattr(start, "nodes", start)}
    by_family = {name: _by_family(name, given[name], structure) for name in BY_FAMILY}
    return FamilyLearning(structure.families, {**NOT_OFFERED, **options, **by_family})


def _by_family(option: str, given: Any, structure: SliceStructure) -> Any:
    """What an option says of a node is said of all of its families, where it is no table of one of them."""
    if not isinstance(given, Mapping):
        return given
    known = (*structure.families, *structure.nodes)
    unknown = [name for name in given if name not in known]
    if unknown:
        raise OptionError(
            f"{option}= names {listing(unknown)}, which is no node.{meant(unknown[0], known)} The nodes are: "
            f"{listing(structure.nodes)}; those of the first slices have names such as {(structure.nodes[0], 0)!r}."
        )
    spread: dict[Hashable, Any] = {}
    for name, value in given.items():
        shared = option == "nodes" or (option == "prior" and isinstance(value, str | int | float))
        if shared and name in structure.nodes:
            families = structure.versions(name)
            spread |= {family: given.get(family, _of_family(value, family, structure)) for family in families}
        else:
            spread[name] = value
    return spread


def _of_family(value: Any, family: Hashable, structure: SliceStructure) -> Any:
    """A kind of node as one of its families has it: in the first slices parents have other names, or are not there."""
    from suffice.models.bayesian.nodes.contract import NodeKind

    if not isinstance(value, NodeKind) or family in structure.parents:
        return value
    node, time = name_of(family), int(family[1])  # type: ignore[index]
    first = structure.first if time == 0 else None
    above = (structure.parents if first is None else first)[node]
    names = {parent: (name_of(parent), time - lag_of(parent)) for parent in above if lag_of(parent) <= time}
    return value.renamed({**names, node: family})


def family_rows(series: Series, structure: SliceStructure, families: Sequence[Hashable]) -> ObservedRows:
    """The rows of families of one span: their variables as columns, those of hidden nodes left out."""
    names = dict.fromkeys(name for family in families for name in structure.family_names(family))
    known = [name for name in names if name_of(name) in series.domain]
    domain = variables_of(known, series.domain)
    return series.window(structure.span(families[0]), known, domain)


@dataclass(frozen=True, eq=False)
class CompleteStatistics:
    """The statistics of series that show everything: each family counts the slices in which it holds.

    `asked` are those of the families of each span.
    """

    structure: SliceStructure
    domain: Domain
    asked: Mapping[Span, tuple[Statistic, ...]]

    @classmethod
    def of(cls, learning: FamilyLearning, structure: SliceStructure, base: Domain) -> CompleteStatistics:
        """Those that the learners of all families read; base: the nodes and inputs."""
        domain = structure.variables(base)
        spans = structure.spans.items()
        return cls(structure, domain, {span: learning.asked_by(families, domain) for span, families in spans})

    def __call__(self, series: Series, _: object = None) -> Summary:
        """Of some series."""
        answers: dict[Statistic, Any] = {}
        for span, families in self.structure.spans.items():
            rows = family_rows(series, self.structure, families)
            answers |= tally(batch_of(rows, rows.columns), self.asked[span]).answers
        return Summary(self.domain, answers, series.n_slices, series.weight)


def score_slices(series: Series, nodes: Mapping[Hashable, Any], structure: SliceStructure) -> Floats:
    """Log-probability of each slice given those before (slices,), of series that show everything."""
    total = np.zeros(series.n_slices)
    for span, families in structure.spans.items():
        rows = family_rows(series, structure, families)
        total[series.rows_of(span)] += sum(nodes[family].log_prob(rows.columns) for family in families)
    return total
