"""Series that do not show everything meet a network: EM with exact expectations by the interface of slices.

It is EM of networks (`models/bayesian/em`), whose nodes are families: the steps, the parameters as one vector and the
observed information are the same. What differs is where expectations come from, and that each family holds in slices
of its own.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from suffice.domain import Domain
from suffice.engines.workers import worker_count
from suffice.fitting.contract import Found, Judgement
from suffice.fitting.control import Control
from suffice.fitting.summaries import SummaryData
from suffice.models.bayesian.em.observed import (
    difference,
    family_summary,
    never_in_leaves,
    never_shown,
    placeholders,
    refuse_impossible,
)
from suffice.models.bayesian.em.problem import NetworkEMProblem, Nodes
from suffice.models.bayesian.em.start import fillings_of, starting_summary
from suffice.models.bayesian.fitted import NetworkFitted
from suffice.models.bayesian.nodes.contract import FittedNode
from suffice.models.dynamic_network.expectation import (
    InWords,
    OfHeads,
    SeriesExpectation,
    SeriesRows,
    largest_difference,
)
from suffice.models.dynamic_network.fitted import DynamicFitted
from suffice.models.dynamic_network.held import HeldSeries
from suffice.models.dynamic_network.linear import LinearExpectation
from suffice.models.dynamic_network.pieces import joint_states
from suffice.models.dynamic_network.series import Series
from suffice.models.dynamic_network.structure import SliceStructure, name_of
from suffice.models.em.held_rows import HeldRows
from suffice.models.em.latent import Expected
from suffice.models.em.rows import ObservedRows, batch_of
from suffice.sources.tally import tally
from suffice.statistics import Summary


@dataclass(frozen=True, eq=False)
class FamilyEM(NetworkEMProblem):
    """EM of the families of a network through time, given series; `domain` has all variables of families.

    `base` has the nodes of a slice, hidden ones too, and the inputs.
    """

    structure: SliceStructure
    series: HeldSeries
    base: Domain

    def at_rest(self) -> FamilyEM:
        """The same without engines, and without series that are held elsewhere."""
        return replace(self, series=self.series.at_rest(), data=self.data.at_rest())  # type: ignore[attr-defined]

    # -- rows --------------------------------------------------------------------------------------------------------

    @cached_property
    def rows(self) -> Any:
        """All slices; questions about one family are put to the slices in which it holds."""
        return SeriesRows(self.series, self.domain)

    @cached_property
    def _spans(self) -> list[tuple[tuple[Hashable, ...], HeldRows]]:
        """Families that hold in the same slices, with the rows of these."""
        spans = []
        for families in self.structure.spans.values():
            spans.append((families, self.series.rows_of(self.structure, families, self.domain)))
        return spans

    @cached_property
    def weighted(self) -> frozenset[Hashable]:
        """The families without finite statistics that are learned from weighted rows: their numbers are seen.

        Such is a generalised linear model of hidden states. Its own number may be missing, where nothing depends on it.
        """
        some, above = set(), {name_of(p) for parents in self.structure.families.values() for p in parents}
        for families, rows in self._spans:
            shown = {name for name in rows.names if rows.show([name])}
            for family in families:
                own = self.learning.family(family, self.domain)
                node, learner = self.fixed.get(family), super().learners[family]
                needs = learner.needs_rows(own) if node is None else not node.is_exact
                gone = [variable for variable in own.variables if variable.name not in shown]
                if needs and gone and all(v.kind == "discrete" or name_of(v.name) not in above for v in gone):
                    some.add(family)
        return frozenset(some)

    @cached_property
    def learners(self) -> dict[Hashable, Any]:
        """How complete rows would be learned from, and those with every joint state of what they do not show."""
        weighted = self.weighted
        return {n: own.on_weighted_rows() if n in weighted else own for n, own in super().learners.items()}

    @cached_property
    def placeholders(self) -> dict[Hashable, Any]:
        """By name what stands for families that all of their slices show: these are learned beside EM."""
        others: dict[Hashable, Any] = {}
        for families, rows in self._spans:
            own = {n: self.learning.family(n, self.domain) for n in families if n not in self.weighted}
            others |= placeholders(rows, own, self.learners, self.fixed)
        return others

    @cached_property
    def _unseen(self) -> list[Hashable]:
        """The families of nodes of which no slice shows a value."""
        seen = {name_of(name) for name in self.rows.seen}
        return [family for family in self.structure.families if name_of(family) not in seen]

    # -- the steps ---------------------------------------------------------------------------------------------------

    def start(self, number: int, rng: np.random.Generator) -> Nodes:
        """The families to begin a run with; those that the user gave begin the first."""
        answers: dict[Any, Any] = {}
        for families, rows in self._spans:
            free = {name: self.families[name] for name in families if name in self.free}
            for name in [name for name in free if name in self.weighted]:
                answers |= self._weighted_start(rows, name, free.pop(name), rng, number)
            own = free
            asked = tuple(dict.fromkeys(q for name in own for q in self._steady[name].statistics(own[name])))
            # Variables of no family, such as those of slices before, are no private ones of wide nodes.
            known = {name: self.domain.select([name]) for name in rows.domain.names} | own
            if asked:
                answers |= starting_summary(rows, self.extended, known, asked, rng, number).answers
        nodes = self._learned(Summary(self.extended, answers, self.rows.count, self.rows.weight), self._steady)
        nodes = {name: node.begun() if name in self.free else node for name, node in nodes.items()}
        if number == 0:
            for name, node in self._given_start.items():
                if name in self.free:
                    nodes[name] = nodes[name].with_parameters(node.parameters())
        return nodes

    def _weighted_start(
        self, rows: HeldRows, name: Hashable, family: Domain, rng: np.random.Generator, number: int
    ) -> dict[Any, Any]:
        """The rows of a family with every joint state of what they do not show: half alike, half by what is near."""
        held = rows.local
        assert held is not None
        fillings = {filling.name: filling(held) for filling in fillings_of(rows, {name: family}, rng, number)}
        columns = {v.name: held.columns[v.name] for v in family.variables if v.name in held.columns}
        if family.variables[-1].kind != "discrete":
            some = ~np.isnan(columns[name])
            columns, fillings = ({n: c[some] for n, c in part.items()} for part in (columns, fillings))
            held = ObservedRows(family, columns, held.weights[some])
        gone = [v for v in family.variables if v.name not in columns or (columns[v.name] < 0).any()]
        gone = [v for v in gone if v.kind == "discrete"]
        states, weights = joint_states([variable.card for variable in gone]), held.weights[:, None]
        for variable, codes in zip(gone, states.T, strict=True):
            seen = columns.pop(variable.name, np.full(len(held.weights), -1))
            best = np.where(seen >= 0, seen, fillings.get(variable.name, rng.integers(0, variable.card, len(seen))))
            alike = np.full((len(seen), variable.card), 1.0 / variable.card)
            share = np.where(best[:, None] >= 0, 0.5 * alike + 0.5 * np.eye(variable.card)[best], alike)
            share = np.where(seen[:, None] >= 0, np.eye(variable.card)[best], share)
            weights = weights * share[:, codes]
        repeated = {n: np.repeat(values, len(states)) for n, values in columns.items()}
        repeated |= {v.name: np.tile(codes, len(held.weights)) for v, codes in zip(gone, states.T, strict=True)}
        whole = ObservedRows(family, repeated, weights.ravel())
        return dict(tally(batch_of(whole, repeated), self._steady[name].statistics(family)).answers)

    def _new_expectation(self) -> Any:
        taking_part = [name for name in self.structure.families if name not in self.placeholders]
        asked = {
            name: tuple(self._steady[name].statistics(self.families[name])) if name in self.free else ()
            for name in taking_part
        }
        keep = self.series.stays_prepared
        if self._is_linear:
            return LinearExpectation(self.structure, self.base, asked, self.extended, keep)
        threads = worker_count(self.learning.options["threads"]) if self.series.local is not None else 1
        return SeriesExpectation(self.structure, self.base, asked, self.extended, threads, keep)

    @property
    def _is_linear(self) -> bool:
        """Whether numbers are missing, and states are not."""
        gone = [self.base[name].kind for name in self.structure.nodes if not self.series.shown(name)]
        return bool(gone) and "discrete" not in gone

    # -- the fit -----------------------------------------------------------------------------------------------------

    def _notes_on_start(self, nodes: Nodes) -> tuple[str, ...]:
        """Nothing: states that are alike in one slice may differ by what follows them."""
        return ()

    def plan_in_words(self, fitted: NetworkFitted) -> str | None:
        """What is carried from slice to slice."""
        expectation: Any = self._expectation
        return str(self.series.ask(InWords(expectation), shards=[0]))

    def _with_shown(self, nodes: Nodes) -> tuple[Nodes, float]:
        """The families with those that all slices show, learned from these; and what they add to the objective."""
        learned, more = dict(nodes), 0.0
        for families, rows in self._spans:
            others = {name: self.placeholders[name] for name in families if name in self.placeholders}
            if not others:
                continue
            refuse_impossible(rows, {name: self.fixed[name] for name in others if name in self.fixed})
            shown: dict[Hashable, FittedNode] = {}
            for name in others:
                family, learner = self.learning.family(name, self.domain), self.learners[name].of_family()
                shown[name] = self.fixed.get(name) or learner.learn(family, family_summary(rows, family, learner))
            learned |= shown
            # Placeholders take no part in the chain, so theirs has to be added back.
            more += difference(rows, shown, others) + float(rows.ask(_log_likelihood, others))
        return learned, more

    # -- the judge ---------------------------------------------------------------------------------------------------

    def log_likelihood(self, fitted: NetworkFitted) -> float:
        """Of the series, whose missing values are summed out."""
        return float(self.series.ask(_log_likelihood_of, DynamicFitted.of(fitted, self.structure)))

    def expect_again(self, parameters: Nodes) -> Expected[Summary]:
        """By the interface: other code looks at the first slices, see `change`."""
        expected: Expected[Summary] = self.rows.ask(self._new_expectation(), parameters)
        return expected

    def change(self, parameters: Nodes, expected: Expected[Summary]) -> float:
        """The largest change of a parameter by one more step, or by which two computations of a step differ.

        The second one is a network of all slices of short series, without an interface; families that are no tables and
        no regressions have none.
        """
        change = super().change(parameters, expected)
        private = any(name not in self.domain for name in self.extended.names)
        if private or self.weighted or not self.free:
            return change
        expectation = self._new_expectation()
        both = [self.series.ask(OfHeads(expectation, unrolled), parameters, [0]) for unrolled in (False, True)]
        vectors = [self.vector(self.maximise(summary, parameters)) for summary in both]
        return max(change, largest_difference(*vectors))

    def _edges(self, free: Mapping[Hashable, Any], slopes: list[tuple[float, float]]) -> tuple[float, tuple[str, ...]]:
        """The largest slope a row of families that all slices show, and what runs to the edge."""
        gap, directions = 0.0, [direction for node in free.values() for direction in node.directions]
        inner = {parent for parents in self.learning.parents.values() for parent in parents}
        bases = {name_of(parent) for parent in inner}
        for families, rows in self._spans:
            own = {name: free[name] for name in families if name in free}
            for name in [name for name in own if name in self.placeholders]:
                summary = family_summary(rows, own[name].domain, self.learners[name].of_family())
                gap = max(gap, own[name].gap(summary))
                slopes.append(own[name].steepest(summary))
                directions += own[name].edges(summary)
            alone = {n: node for n, node in own.items() if len(self.learning.group_of(n)) == 1}
            expected = {name: node for name, node in alone.items() if name not in self.placeholders}
            directions += never_shown(rows, expected)
            leaves = {name: node for name, node in expected.items() if name_of(name) not in bases}
            directions += never_in_leaves(rows, leaves, {name: self.learners[name].of_family() for name in leaves})
        return gap, tuple(dict.fromkeys(directions))


@dataclass(frozen=True, eq=False)
class HiddenSeries:
    """Series that do not show everything meet a network through time: EM, see `FamilyEM`."""

    families: FamilyEM

    def solve(self, control: Control) -> Found[DynamicFitted]:
        """EM from every start, and keep the best."""
        solved: Any = self.families.solve(control)
        step = self.families.series.step
        return replace(solved, fitted=DynamicFitted.of(solved.fitted, self.families.structure, step))

    def judge(self, fitted: DynamicFitted) -> Judgement:
        """One more step by other code, what runs to the edge, and what the series determine."""
        return self.families.judge(fitted.network)

    def identity(self) -> Iterable[Any]:
        """The series, and options that steer the way."""
        return *self.families.identity(), repr(self.families.structure.families)


def _log_likelihood(rows: ObservedRows, nodes: Mapping[Hashable, Any]) -> float:
    """Of families that all rows show."""
    return float(sum(rows.weights @ node.log_prob(rows.columns) for node in nodes.values()))


def _log_likelihood_of(series: Series, fitted: DynamicFitted) -> float:
    """Of the series of a shard."""
    return fitted.log_likelihood_of(series)


def hidden_problem(learning: Any, structure: SliceStructure, data: SummaryData, series: HeldSeries) -> HiddenSeries:
    """The problem of some series."""
    names = (*structure.nodes, *structure.inputs)
    hidden = learning.hidden
    base = Domain(hidden[name] if name in hidden else series.domain[name] for name in names)
    return HiddenSeries(FamilyEM(learning, data, structure.variables(base), structure, series, base))
