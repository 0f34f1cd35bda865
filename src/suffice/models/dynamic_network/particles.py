"""Particle filter: what is not seen is drawn slice by slice, weighted by what is, and drawn anew where that is uneven.

All that is asked of a node is to draw and to weigh (Gordon, Salmond and Smith 1993), so that nodes of every kind take
part, interfaces of any width, and numbers that are not seen beside states that are not.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.errors import EstimateError, SamplingWarning, warn
from suffice.models.dynamic_network.mixtures import NormalMixtures
from suffice.models.dynamic_network.series import Series
from suffice.models.dynamic_network.structure import is_timed, place_of

if TYPE_CHECKING:
    from suffice.models.dynamic_network.fitted import DynamicFitted

#: Particles by default.
PARTICLES = 10_000
#: Share of the particles that the weights must count for; below it they are drawn anew.
LEAST = 0.5
#: Effective particles below which an answer is remarked upon.
FEW = 100.0

#: Values of all particles (n,) by node and slice.
Values = dict[tuple[Hashable, int], NDArray[Any]]


@dataclass(frozen=True, eq=False)
class ParticleFilter:
    """P(node in a slice | the series up to it) by so many particles."""

    fitted: DynamicFitted
    series: Series
    particles: int
    rng: np.random.Generator

    def filtered(self, names: Sequence[Hashable]) -> dict[Hashable, Any]:
        """By node of states (slices, states), of numbers `NormalMixtures` of the particles, points with weights."""
        domain, series = self.fitted.domain, self.series
        answers: dict[Hashable, Any] = {}
        for name in names:
            discrete = domain[name].kind == "discrete"
            answers[name] = np.zeros((series.n_slices, domain[name].card if discrete else self.particles))
        weights = np.zeros((series.n_slices, self.particles if any(not _discrete(domain, n) for n in names) else 0))
        least = np.inf
        for number in range(series.n_series):
            begin, length = int(series.offsets[number]), int(series.lengths[number])
            for time, values, shares in self._slices(begin, length):
                least = min(least, 1.0 / float(shares @ shares))
                if weights.shape[1]:
                    weights[begin + time] = shares
                for name in names:
                    drawn = values[name, time]
                    if _discrete(domain, name):
                        answers[name][begin + time] = np.bincount(drawn, shares, domain[name].card)
                    else:
                        answers[name][begin + time] = drawn
        if least < FEW:
            warn(
                f"The weights of the {self.particles:,} particles of some slice count as {least:.0f}: what is said of "
                "it is rough. Give more of them, n=.",
                SamplingWarning,
            )
        return {
            n: a if _discrete(domain, n) else NormalMixtures(weights, a, np.zeros_like(a)) for n, a in answers.items()
        }

    def _slices(self, begin: int, length: int) -> Any:
        """Of one series, slice by slice: its number, the values of all particles, and their shares (n,)."""
        fitted, values, logs = self.fitted, Values(), np.zeros(self.particles)
        plan = fitted.structure.unrolled(min(length, fitted.structure.depth + 2))
        last = max(time for _, time in plan)
        early = {place_of(p, 0) for above in fitted.structure.families.values() for p in above if _is_early(p)}
        for time in range(length):
            for name in fitted.structure.inputs:
                values[name, time] = np.full(self.particles, self.series.columns[name][begin + time])
            for (name, number), (family, _) in plan.items():
                if number == min(time, last):
                    logs = logs + self._take(values, (name, time), family, begin)
            top = logs.max()
            if not np.isfinite(top):
                raise EstimateError(
                    f"No particle agrees with what is seen in {self.series.where(begin + time)}: it is impossible or "
                    f"too rare for {self.particles:,} of them. Give more, n=, or fit with a prior."
                )
            shares = np.exp(logs - top)
            shares /= shares.sum()
            yield time, values, shares
            logs = np.log(shares, where=shares > 0, out=np.full(self.particles, -np.inf))
            if 1.0 / float(shares @ shares) < LEAST * self.particles:
                chosen = self._chosen(shares)
                values = {own: drawn[chosen] for own, drawn in values.items()}
                logs = np.full(self.particles, -np.log(self.particles))
            since = time + 1 - fitted.structure.depth
            values = {own: drawn for own, drawn in values.items() if own[1] >= since or own in early}

    def _take(self, values: Values, position: tuple[Hashable, int], family: Hashable, begin: int) -> Floats | float:
        """Draw a node of a slice, or take the value that is seen; the log of what that weighs."""
        name, time = position
        node, row = self.fitted.nodes[family], begin + time
        columns = {p: values[place_of(p, time)] for p in self.fitted.structure.families[family]}
        seen = self.series.columns.get(name)
        if seen is None or bool(self.series.missing(name)[row]):
            values[position] = node.sample(columns, self.rng, self.particles)
            return 0.0
        values[position] = np.full(self.particles, seen[row])
        if name in self.series.cut and self.series.cut[name][row]:
            return 0.0
        return np.asarray(node.log_prob({**columns, family: values[position]}))

    def _chosen(self, shares: Floats) -> NDArray[np.int64]:
        """Systematic draws: each particle as often as its share says, but for less than one."""
        marks = (np.arange(self.particles) + self.rng.random()) / self.particles
        return np.minimum(np.searchsorted(np.cumsum(shares), marks), self.particles - 1).astype(np.int64)


def _discrete(domain: Any, name: Hashable) -> bool:
    return bool(domain[name].kind == "discrete")


def _is_early(parent: Hashable) -> bool:
    """Whether a parent is a node of one of the first slices."""
    return is_timed(parent) and parent[1] >= 0  # type: ignore[index]
