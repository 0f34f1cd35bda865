"""Series whose missing values are all numbers, of linear-Gaussian nodes: expectations by Kalman's recursions.

The state of a slice holds the nodes that may be missing, in this slice and in as many slices before as arcs reach back,
so that every family lies in one state. Nodes that every slice shows are what is observed, or known terms of others.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.answers import Answer
from suffice.array_types import Floats, Ints
from suffice.domain import Domain
from suffice.engines.linear_system import LinearStep, LinearSystems, States
from suffice.errors import OptionError, listing
from suffice.models.bayesian.em.expected_moments import ExpectedMoments
from suffice.models.dynamic_network.learning import family_rows
from suffice.models.dynamic_network.series import Series
from suffice.models.dynamic_network.structure import Position, SliceStructure, lag_of, name_of
from suffice.models.em.latent import Expected
from suffice.models.em.rows import batch_of
from suffice.sources.tally import tally
from suffice.statistics import Moments, MomentsBy, Statistic, Summary

Nodes = Mapping[Hashable, Any]
#: Intercepts with all that is known (n,), slopes of what is not by position, and variances (n,).
Terms = tuple[Floats, dict[Position, Floats], Floats]
#: The variance of a normal distribution whose density is 1 at its mean.
DENSITY_ONE = 1.0 / (2.0 * np.pi)


def unseen_numbers(series: Series, domain: Domain, names: Sequence[Hashable]) -> list[Hashable]:
    """The nodes of numbers that some slice does not show."""
    real = [name for name in names if domain[name].kind != "discrete"]
    return [name for name in real if name not in series.columns or series.missing(name).any()]


def is_linear(series: Series, domain: Domain, names: Sequence[Hashable]) -> bool:
    """Whether numbers are missing, and states are not."""
    discrete = [name for name in names if domain[name].kind == "discrete"]
    shown = all(name in series.columns and not series.missing(name).any() for name in discrete)
    return shown and bool(unseen_numbers(series, domain, names))


@dataclass(frozen=True, eq=False)
class LinearSeries:
    """Some series as linear systems; `families` are those that take part."""

    series: Series
    structure: SliceStructure
    base: Domain
    families: tuple[Hashable, ...]

    # -- what is unseen ----------------------------------------------------------------------------------------------

    @cached_property
    def unseen(self) -> tuple[Hashable, ...]:
        """The nodes of the state."""
        return tuple(unseen_numbers(self.series, self.base, self.structure.nodes))

    @cached_property
    def _depth(self) -> int:
        """How many slices back the state reaches."""
        lags = [lag_of(p) for f in self.structure.families.values() for p in f if name_of(p) in self.unseen]
        return max(lags, default=0)

    @cached_property
    def places(self) -> dict[Position, int]:
        """Where each position is in the state."""
        positions = [(name, lag) for lag in range(self._depth + 1) for name in self.unseen]
        return {position: number for number, position in enumerate(positions)}

    @cached_property
    def partly(self) -> tuple[Hashable, ...]:
        """The nodes of the state that some slices show."""
        return tuple(name for name in self.unseen if name in self.series.columns)

    def active(self, time: int) -> list[Hashable]:
        """The families that hold in a slice and of which something is not seen."""
        held = [self.structure.at(node, time) for node in self.structure.nodes]
        held = [family for family in held if family in self.families]
        return [f for f in held if any(p in self.places for p in self.structure.positions(f, time).values())]

    @cached_property
    def order(self) -> Ints:
        """The series, longest first."""
        return np.argsort(-self.series.lengths, kind="stable")

    def rows(self, time: int) -> Ints:
        """The slices at a place of the series that have one, longest first."""
        active = self.order[self.series.lengths[self.order] > time]
        return self.series.offsets[:-1][active] + time

    # -- the system --------------------------------------------------------------------------------------------------

    def systems(self, nodes: Nodes) -> LinearSystems:
        """The systems under some nodes."""
        for family in {f for time in range(self._last + 1) for f in self.active(time)}:
            if not nodes[family].linear:
                raise OptionError(
                    f"{family!r} is no linear-Gaussian node, and it or its parents hold numbers that are not seen: "
                    "that has no closed form. Fill the missing values in, or leave those series out."
                )
        lengths = tuple(self.series.lengths[self.order].tolist())
        weights = {family: _tables(nodes[family]) for family in self.families if nodes[family].linear}
        return LinearSystems(lengths, lambda time: self._step(weights, time))

    @cached_property
    def _last(self) -> int:
        return max((self.structure.span(family)[0] for family in self.families), default=0)

    def _step(self, weights: Mapping[Hashable, Any], time: int) -> LinearStep:
        """One slice: regressions of unseen nodes move the state, those of seen nodes observe it."""
        rows, places = self.rows(time), self.places
        n, u, m = len(rows), len(self.unseen), len(places)
        inner, back = np.zeros((n, u, u)), np.zeros((n, u, m))
        constant, variance = np.zeros((n, u)), np.zeros((n, u))
        loadings, offsets, errors, values = [], [], [], []
        for family in self.active(time):
            intercept, slopes, spread = self._terms(weights[family], family, rows, time)
            node = name_of(family)
            if node in self.series.cut:
                cut, values_here = self.series.cut[node][rows], self.series.columns[node][rows]
                intercept, slopes, spread = _where_set(cut, values_here, (intercept, slopes, spread))
            if node in self.unseen:
                own = places[node, 0]
                constant[:, own], variance[:, own] = intercept, spread
                for (name, lag), slope in slopes.items():
                    if lag:
                        back[:, own, places[name, lag - 1]] += slope
                    else:
                        inner[:, own, places[name, 0]] += slope
            else:
                row = np.zeros((n, m))
                for position, slope in slopes.items():
                    row[:, places[position]] += slope
                loadings.append(row)
                offsets.append(intercept)
                errors.append(spread)
                values.append(self.series.columns[node][rows])
        for node in self.partly:
            row = np.zeros((n, m))
            row[:, places[node, 0]] = 1.0
            loadings.append(row)
            offsets.append(np.zeros(n))
            errors.append(np.zeros(n))
            values.append(self.series.columns[node][rows])
        solved = np.linalg.inv(np.eye(u) - inner)
        transition, noise = np.zeros((n, m, m)), np.zeros((n, m, m))
        transition[:, :u] = solved @ back
        transition[:, np.arange(u, m), np.arange(m - u)] = 1.0
        noise[:, :u, :u] = (solved * variance[:, None, :]) @ np.swapaxes(solved, 1, 2)
        full = np.zeros((n, m))
        full[:, :u] = (solved @ constant[..., None])[..., 0]
        stacked = [np.stack(part, axis=1) if part else np.zeros((n, 0)) for part in (offsets, errors, values)]
        observed = np.stack(loadings, axis=1) if loadings else np.zeros((n, 0, m))
        return LinearStep(transition, full, noise, observed, *stacked)

    def _terms(self, tables: Any, family: Hashable, rows: Ints, time: int) -> Terms:
        """Intercept with all that is known (n,), slopes of what is not by position, and variance (n,)."""
        above, real, weights, variance = tables
        where = self.structure.positions(family, time)
        codes = tuple(self.series.columns[where[name][0]][rows - where[name][1]] for name in above)
        own = np.broadcast_to(weights[codes], (len(rows), weights.shape[-1]))
        intercept, slopes = own[:, 0].copy(), {}
        for number, name in enumerate(real, start=1):
            node, lag = where[name]
            if (node, lag) in self.places:
                slopes[node, lag] = own[:, number]
            else:
                intercept += own[:, number] * self.series.columns[node][rows - lag]
        return intercept, slopes, np.broadcast_to(variance[codes], len(rows))


def _where_set(cut: NDArray[np.bool_], values: Floats, terms: Terms) -> Terms:
    """The terms of a family that says nothing where it is cut: there it is a density of 1 at the value that was set."""
    intercept, slopes, spread = terms
    kept = {position: np.where(cut, 0.0, slope) for position, slope in slopes.items()}
    return np.where(cut, values, intercept), kept, np.where(cut, DENSITY_ONE, spread)


def _tables(node: Any) -> tuple[tuple[Hashable, ...], tuple[Hashable, ...], Floats, Floats]:
    return node.discrete_parents, node.real_parents, np.asarray(node.weights_), np.asarray(node.variance_)


# --------------------------------------------------------------------------------------------------------------------
# Expectations
# --------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class LinearExpectation:
    """The E-step of linear-Gaussian families; `statistics` are those of each family that takes part.

    `keep` says that the same series come again, so that what was planned for them is kept.
    """

    structure: SliceStructure
    base: Domain
    statistics: Mapping[Hashable, tuple[Statistic, ...]]
    extended: Domain
    keep: bool = True

    def __getstate__(self) -> dict[str, Any]:
        """Copies plan anew."""
        return {name: getattr(self, name) for name in self.__match_args__}

    @cached_property
    def _planned(self) -> dict[int, LinearSeries]:
        """By the identity of series, which are held as long as this is."""
        return {}

    def systems(self, series: Series) -> LinearSeries:
        """Some series as linear systems."""
        if not self.keep:
            return LinearSeries(series, self.structure, self.base, tuple(self.statistics))
        if id(series) not in self._planned:
            self._planned[id(series)] = LinearSeries(series, self.structure, self.base, tuple(self.statistics))
        return self._planned[id(series)]

    def in_words(self, series: Series) -> str:
        """What is carried from slice to slice."""
        linear = self.systems(series)
        return f"Kalman recursions: a state of {len(linear.places)} numbers, of {listing(linear.unseen)}"

    def __call__(self, series: Series, nodes: Nodes) -> Expected[Summary]:
        """Log-likelihood and expected statistics."""
        linear = self.systems(series)
        if not linear.unseen:  # A shard may show everything.
            answers, value = self._of_seen(series, linear, nodes)
            return Expected(value, Summary(self.extended, answers, series.n_slices, series.weight))
        logs, states = linear.systems(nodes).smoothed()
        counted = series.weights[linear.order] > 0
        value = float(series.weights[linear.order][counted] @ logs[counted])
        answers, more = self._of_seen(series, linear, nodes)
        answers |= {s: gathered.answer() for s, gathered in self._gathered(series, linear, states).items()}
        return Expected(value + more, Summary(self.extended, answers, series.n_slices, series.weight))

    def _of_seen(self, series: Series, linear: LinearSeries, nodes: Nodes) -> tuple[dict[Statistic, Answer], float]:
        """Families that every slice shows: their statistics as they are, and their log-likelihood."""
        answers: dict[Statistic, Answer] = {}
        value = 0.0
        for family, asked in self.statistics.items():
            if any(name_of(name) in linear.unseen for name in self.structure.family_names(family)):
                continue
            rows = family_rows(series, self.structure, [family])
            answers |= tally(batch_of(rows, rows.columns), asked).answers
            counted = rows.weights > 0
            value += float(rows.weights[counted] @ nodes[family].log_prob(rows.columns)[counted])
        return answers, value

    def _gathered(
        self, series: Series, linear: LinearSeries, states: Sequence[States]
    ) -> dict[Statistic, ExpectedMoments]:
        """Moments of all other families, from the states of all slices."""
        parts: dict[Statistic, list[tuple[Floats, Floats, Floats, Ints]]] = {}
        for time, here in enumerate(states):
            rows = linear.rows(time)
            weights = series.slice_weights[rows]
            for family in linear.active(time):
                for statistic in self.statistics[family]:
                    part = self._moments(series, linear, statistic, family, time, here)
                    parts.setdefault(statistic, []).append((weights, *part))
        gathered = {}
        for statistic, pieces in parts.items():
            sums = ExpectedMoments(_moments_of(statistic), self.extended)
            _add(sums, *(np.concatenate(column) for column in zip(*pieces, strict=True)))
            gathered[statistic] = sums
        for family, asked in self.statistics.items():
            # An early family that no series reaches has seen nothing.
            hidden = any(name_of(name) in linear.unseen for name in self.structure.family_names(family))
            for statistic in asked if hidden else ():
                gathered.setdefault(statistic, ExpectedMoments(_moments_of(statistic), self.extended))
        return gathered

    def _moments(
        self, series: Series, linear: LinearSeries, statistic: Statistic, family: Hashable, time: int, here: States
    ) -> tuple[Floats, Floats, Ints]:
        """Means (n, q) and covariances (n, q, q) of the numbers of a family, and the cell of each slice (n,)."""
        rows, where = linear.rows(time), linear.structure.positions(family, time)
        asked = _moments_of(statistic)
        n, q = len(rows), len(asked.variables)
        means, spread = np.empty((n, q)), np.zeros((n, q, q))
        inside = [(number, linear.places.get(where[name])) for number, name in enumerate(asked.variables)]
        for number, slot in inside:
            node, lag = where[asked.variables[number]]
            means[:, number] = series.columns[node][rows - lag] if slot is None else here.means[:, slot]
        kept = [(number, slot) for number, slot in inside if slot is not None]
        for first, one in kept:
            for second, other in kept:
                spread[:, first, second] = here.covariances[:, one, other]
        cells = np.zeros(n, np.int64)
        for name in asked.by if isinstance(asked, MomentsBy) else ():
            node, lag = where[name]
            cells = cells * self.base[node].card + series.columns[node][rows - lag]
        return means, spread, cells


def _moments_of(statistic: Statistic) -> Moments | MomentsBy:
    if not isinstance(statistic, Moments | MomentsBy):
        raise OptionError(f"EM cannot give the expected answer to {statistic!r} where numbers are not seen.")
    return statistic


def _add(sums: ExpectedMoments, weights: Floats, means: Floats, spread: Floats, cells: Ints) -> None:
    """Add slices to their cells: the spread of what is expected, and what is not known about it."""
    count = len(sums.weight)
    total = np.bincount(cells, weights, minlength=count).astype(np.float64, copy=False)
    share = np.where(total > 0, total, 1.0)
    totals = np.stack([np.bincount(cells, weights * column, minlength=count) for column in means.T], axis=1)
    centre = totals / share[:, None]
    away = means - centre[cells]
    products = weights[:, None, None] * (away[:, :, None] * away[:, None, :] + spread)
    scatter = np.zeros((count, *products.shape[1:]))
    np.add.at(scatter, cells, products)
    kept = np.flatnonzero(total > 0)
    sums.add(kept, total[kept], centre[kept], scatter[kept])
