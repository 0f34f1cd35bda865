"""The E-step of series that do not show everything, and the same once more by an engine that shares no code with it."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from suffice.answers import Answer
from suffice.array_types import Floats, Ints
from suffice.domain import Domain
from suffice.models.bayesian.em.check import expected_again
from suffice.models.bayesian.em.table_expectation import NOTHING, TablePlans
from suffice.models.bayesian.queries.evidence_reduction import placeholder
from suffice.models.dynamic_network.held import HeldSeries
from suffice.models.dynamic_network.interface import plan_slices
from suffice.models.dynamic_network.series import Series
from suffice.models.dynamic_network.slice_chains import SliceChains
from suffice.models.dynamic_network.structure import SliceStructure, name_of, place_of, renamed
from suffice.models.em.latent import Expected
from suffice.models.em.rows import ObservedRows, batch_of
from suffice.sources.tally import tally
from suffice.statistics import Statistic, Summary

Nodes = Mapping[Hashable, Any]

#: Slices of a series, and of all, that are computed again.
LONGEST, MOST = 40, 2_000


@dataclass(frozen=True, eq=False)
class SeriesRows:
    """The slices of a fit, wherever they are, as EM of networks asks about its rows."""

    series: HeldSeries
    domain: Domain

    @property
    def names(self) -> tuple[Hashable, ...]:
        """The variables of families that have a column."""
        return tuple(name for name in self.domain.names if name_of(name) in self.series.domain)

    @property
    def seen(self) -> tuple[Hashable, ...]:
        """Those of which some slice has a value."""
        shown = self.series.overview.values
        return tuple(name for name in self.names if shown.get(name_of(name), 0))

    @property
    def weight(self) -> float:
        """The weight of all slices."""
        return self.series.overview.weight

    @property
    def count(self) -> int:
        """How many slices are gone through in a round."""
        return self.series.overview.slices

    @cached_property
    def units(self) -> dict[Hashable, tuple[float, float]]:
        """Mean and standard deviation of the values seen of each variable that holds numbers."""
        return {name: self.series.units.get(name_of(name), (0.0, 1.0)) for name in self.domain.numbers}

    @property
    def notes(self) -> tuple[str, ...]:
        """Where series have stayed, for the report."""
        return self.series.rounds

    def ask(self, question: Any, parameters: Any = None) -> Any:
        """The answer to a question about all series."""
        return self.series.ask(question, parameters)

    def identity(self) -> Iterable[Any]:
        """What tells the series from others."""
        return self.series.identity()


@dataclass(frozen=True, eq=False)
class SeriesExpectation:
    """Log-likelihood and expected statistics of series, by the chain of what is carried from slice to slice.

    `statistics` are those of each family that takes part; `extended` has the private variables of wide ones besides.
    `keep` says that the same series come again, so that what was planned for them is kept.
    """

    structure: SliceStructure
    base: Domain
    statistics: Mapping[Hashable, tuple[Statistic, ...]]
    extended: Domain
    threads: int = 1
    keep: bool = True

    def __getstate__(self) -> dict[str, Any]:
        """Copies plan anew."""
        return {name: getattr(self, name) for name in self.__match_args__}

    @cached_property
    def _planned(self) -> dict[int, SliceChains]:
        """By the identity of series, which are held as long as this is."""
        return {}

    def chains(self, series: Series) -> SliceChains:
        """Some series as chains."""
        if not self.keep:
            return self._chains(series)
        if id(series) not in self._planned:
            self._planned[id(series)] = self._chains(series)
        return self._planned[id(series)]

    def _chains(self, series: Series) -> SliceChains:
        windows = self.structure.variables(self.base)
        private = Domain(v for v in self.extended.variables if v.name not in windows)
        tables = {family: self._is_table(family) for family in self.statistics}
        plan = plan_slices(series, self.structure, self.base, self.statistics, private, tables)
        return SliceChains(series, plan, self.threads)

    def in_words(self, series: Series) -> str:
        """What is carried from slice to slice."""
        interface = self.chains(series).plan.interface
        nodes = dict.fromkeys(str(name) for name, _ in interface.positions)
        return f"interface of slices: {interface.size:,} joint states of {', '.join(nodes) or 'nothing'}"

    def _is_table(self, family: Hashable) -> bool:
        return all(self.base[name_of(name)].kind == "discrete" for name in self.structure.family_names(family))

    def __call__(self, series: Series, nodes: Nodes) -> Expected[Summary]:
        """The E-step; the log-likelihood is -inf where some series is impossible."""
        expected = self.chains(series).expect(nodes)
        counted = series.weights > 0
        value = float(series.weights[counted] @ expected.log_likelihood[counted])
        answers = {statistic: _without_nothing(answer, series) for statistic, answer in expected.answers.items()}
        return Expected(value, Summary(self.extended, answers, series.n_slices, series.weight))


def _without_nothing(answer: Answer, series: Series) -> Answer:
    """Expected weights that no slice feels are 0, as in EM of networks."""
    from suffice.answers import CountTable

    if not isinstance(answer, CountTable):
        return answer
    least = NOTHING * float(series.weights[series.weights > 0].min(initial=1.0))
    table = answer.dense()
    return CountTable.of(np.where(table < least, 0.0, table))


@dataclass(frozen=True, eq=False)
class InWords:
    """What an expectation carries from slice to slice of some series, in words."""

    expectation: Any

    def __call__(self, series: Series, _: object) -> str:
        """Of a shard."""
        return str(self.expectation.in_words(series))


# --------------------------------------------------------------------------------------------------------------------
# Once more, for the judge
# --------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class OfHeads:
    """Expected statistics of the first slices of some series: by an expectation, or by the network of all slices."""

    expectation: Any
    unrolled: bool

    def __call__(self, series: Series, nodes: Nodes) -> Summary:
        """Of a shard."""
        head, by = heads(series), self.expectation
        if not self.unrolled:
            return replace(by, keep=False)(head, nodes).statistics  # type: ignore[no-any-return]
        more = (by.statistics, by.structure, by.extended, by.base)
        if isinstance(by, SeriesExpectation):
            return unrolled_expectation(alike_in_numbers(head), nodes, *more, leaving_out=True).statistics
        return unrolled_expectation([head], nodes, *more).statistics


def heads(series: Series) -> Series:
    """The first slices of the first series, as many as are computed again."""
    lengths = np.minimum(series.lengths, LONGEST)
    count = max(int(np.searchsorted(np.cumsum(lengths), MOST, side="right")), 1)
    rows = np.concatenate([np.arange(series.offsets[i], series.offsets[i] + lengths[i]) for i in range(count)])
    return _with_rows(series, rows, lengths[:count], series.weights[:count])


def _with_rows(series: Series, rows: Ints, lengths: Ints, weights: Floats) -> Series:
    """Series of some slices, so many each."""
    columns = {name: values[rows] for name, values in series.columns.items()}
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return replace(series, columns=columns, offsets=offsets, weights=weights)


def alike_in_numbers(series: Series) -> list[Series]:
    """The same series in parts that show their numbers in the same slices.

    A number that is not seen beside states that are not is left out of the statistics of its family: nothing depends on
    it. What learns from its expected value instead has the same fixed points, and other steps.
    """
    real = [name for name in series.columns if series.domain[name].kind != "discrete"]
    gone = np.stack([series.missing(name) for name in real], axis=1) if real else np.zeros((series.n_slices, 0), bool)
    if not gone.any():
        return [series]
    masks = np.array([gone[begin:end].tobytes() for begin, end in itertools.pairwise(series.offsets.tolist())], object)
    parts = []
    for mask in dict.fromkeys(masks.tolist()):
        some = np.array([own == mask for own in masks.tolist()])
        rows = np.flatnonzero(some[series.owner])
        parts.append(_with_rows(series, rows, series.lengths[some], series.weights[some]))
    return parts


def unrolled_expectation(
    parts: Sequence[Series],
    nodes: Nodes,
    statistics: Mapping[Hashable, Sequence[Statistic]],
    structure: SliceStructure,
    extended: Domain,
    base: Domain,
    *,
    leaving_out: bool = False,
) -> Expected[Summary]:
    """Expected statistics of short series, each as a row of the network of all its slices: no interface is used.

    leaving_out: numbers that a part does not show have no node there.
    """
    every = tuple(dict.fromkeys(statistic for asked in statistics.values() for statistic in asked))
    total = dict(tally(batch_of(ObservedRows(extended, {}, np.zeros(0)), {}), every).answers)
    value = 0.0
    for series, length in [(part, length) for part in parts for length in np.unique(part.lengths).tolist()]:
        some = np.flatnonzero(series.lengths == length)
        firsts = series.offsets[:-1][some]
        unrolled: dict[Hashable, Any] = {}
        asked: dict[Statistic, Statistic] = {}
        for (name, time), (family, _) in structure.unrolled(length).items():
            numbers = leaving_out and base[name].kind != "discrete" and name in series.columns
            if numbers and series.missing(name)[firsts + time].all():
                continue
            if family in statistics:
                unrolled[name, time] = _moved(nodes[family], time)
                for statistic in statistics[family]:
                    asked[_moved_statistic(statistic, time)] = statistic
        names = dict.fromkeys(name for node in unrolled.values() for name in node.domain.names)
        domain = Domain(renamed(base[name], (name, time)) for name, time in names)
        columns = {(n, t): series.columns[n][firsts + t] for n, t in names if n in series.columns}
        rows = ObservedRows(domain, columns, series.weights[some])
        # What every slice shows has no node here: any other one without parents can stand in its place.
        unrolled |= {n: placeholder(domain[n], 0.0, 1.0) for n in domain.names if n not in unrolled}
        plans = TablePlans(domain, tuple(asked))
        again = expected_again(rows, unrolled, plans)
        value += again.log_likelihood
        for moved, statistic in asked.items():
            answer = again.statistics[moved]
            total[statistic] = total[statistic] + answer
    slices, weight = sum(part.n_slices for part in parts), sum(part.weight for part in parts)
    return Expected(value, Summary(extended, total, slices, weight))


def _moved(node: Any, time: int) -> Any:
    from suffice.records import replace as changed

    return changed(node, domain=Domain(renamed(v, place_of(v.name, time)) for v in node.domain.variables))


def _moved_statistic(statistic: Statistic, time: int) -> Statistic:
    changes: dict[str, Any] = {"variables": tuple(place_of(name, time) for name in statistic.variables)}
    if hasattr(statistic, "by"):
        changes["by"] = tuple(place_of(name, time) for name in statistic.by)
    return replace(statistic, **changes)


def largest_difference(left: Floats, right: Floats) -> float:
    """Of two vectors of parameters."""
    return float(np.abs(left - right).max(initial=0.0))
