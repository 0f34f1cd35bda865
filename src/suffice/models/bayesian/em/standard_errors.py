"""Standard errors of an EM fit, from the observed information.

The score of the observed rows is the expected score of the complete ones (Fisher's identity), which the expected
statistics give exactly. Its derivative, by central differences, is minus the observed information; the counts that EM
expects would understate the errors, because they count what was filled in as if it had been seen.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.fitting.report import Curvature
from suffice.models.bayesian.em.coordinates import Coordinates, Units
from suffice.models.em.identifiability import Spectrum, curvature, spectrum
from suffice.models.em.information import score_differences
from suffice.statistics import Summary

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class _Parts:
    """Coordinates of the first node of each group; nodes of a group move together."""

    nodes: Mapping[Hashable, Any]
    groups: Sequence[Sequence[Hashable]]
    units: Units

    @cached_property
    def coordinates(self) -> list[Coordinates]:
        return [self.nodes[group[0]].coordinates(self.units) for group in self.groups]

    @cached_property
    def ends(self) -> list[int]:
        """Where the coordinates of each group begin, and last where they end."""
        return [0, *np.cumsum([part.size for part in self.coordinates], dtype=int).tolist()]

    def moved(self, delta: Floats) -> dict[Hashable, Any]:
        """The nodes at other coordinates."""
        found = dict(self.nodes)
        for part, group, start, stop in zip(self.coordinates, self.groups, self.ends, self.ends[1:], strict=False):
            shared = part.moved(delta[start:stop]).parameters()
            for name in group:
                found[name] = self.nodes[name].with_parameters(shared)
        return found

    def score(self, nodes: Mapping[Hashable, Any], summary: Summary) -> Floats:
        """The slope of the objective at some nodes, from expected statistics."""
        slopes = []
        for part, (first, *others) in zip(self.coordinates, self.groups, strict=True):
            more = (part.score(nodes[name].without_prior(), summary) for name in others)  # It counts once.
            slopes.append(sum(more, part.score(nodes[first], summary)))
        return np.concatenate([np.zeros(0), *slopes])


@dataclass
class ObservedErrors:
    """Standard errors of all nodes of a fit, and what the rows determine, computed when first asked for.

    That takes two E-steps for each free parameter. `step` is the largest change of a parameter by one more step of EM.
    """

    make_expectation: Any
    nodes: Mapping[Hashable, Any]
    groups: Sequence[Sequence[Hashable]]
    units: Units
    step: float
    found: dict[Hashable, Floats] = field(default_factory=dict)

    @cached_property
    def _parts(self) -> _Parts:
        return _Parts(self.nodes, self.groups, self.units)

    @property
    def size(self) -> int:
        """How many coordinates there are."""
        return self._parts.ends[-1]

    @cached_property
    def spectrum(self) -> Spectrum:
        """The eigenvalues of the observed information, in units of that of complete rows."""
        parts, expectation = self._parts, self.make_expectation()
        information = score_differences(
            lambda delta: parts.score(moved := parts.moved(delta), expectation.expect(moved)[1]), self.size
        )
        _, summary = expectation.expect(self.nodes)
        complete = np.abs(np.diag(score_differences(lambda d: parts.score(parts.moved(d), summary), self.size)))
        return spectrum(information, complete=complete, step=self.step)

    def curvature(self, scores: Sequence[float]) -> Curvature:
        """For the report; scores: the objectives of all runs."""
        called = [name for part in self._parts.coordinates for name in part.names()]
        return curvature(self.spectrum, called, scores)

    def of(self, name: Hashable) -> Floats:
        """The standard errors of a node, laid out as its table."""
        if not self.found:
            for part, group, start in zip(self._parts.coordinates, self.groups, self._parts.ends, strict=False):
                self.found |= dict.fromkeys(group, part.errors(partial(self._errors, start)))
        return self.found[name]

    def _errors(self, start: int, slopes: Floats) -> Floats:
        """Of functions with these slopes (n, size) in the coordinates of one group, which begin at `start`."""
        wide = np.zeros((len(slopes), self.size))
        wide[:, start : start + slopes.shape[1]] = slopes
        return self.spectrum.errors(wide)
