"""Standard errors of an EM fit, from the observed information.

The score of the observed rows is the expected score of the complete ones (Fisher's identity), which the expected
statistics give exactly. Its derivative, by central differences, is minus the observed information; the counts that EM
expects would understate the errors, because they count what was filled in as if it had been seen.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Protocol

import numpy as np

from suffice.array_types import Floats
from suffice.fitting.report import Curvature
from suffice.models.bayesian.em.coordinates import Coordinates, Units
from suffice.models.em.identifiability import Spectrum, curvature
from suffice.models.em.information import ObservedInformation
from suffice.statistics import Summary


@dataclass(frozen=True, eq=False)
class Parts:
    """Coordinates of the first node of each group; nodes of a group move together."""

    nodes: Mapping[Hashable, Any]
    groups: Sequence[Sequence[Hashable]]
    units: Units

    @cached_property
    def coordinates(self) -> list[Coordinates]:
        """Of the first node of each group."""
        return [self.nodes[group[0]].coordinates(self.units) for group in self.groups]

    @cached_property
    def ends(self) -> list[int]:
        """Where the coordinates of each group begin, and last where they end."""
        return [0, *np.cumsum([part.size for part in self.coordinates], dtype=int).tolist()]

    @property
    def size(self) -> int:
        """How many coordinates there are."""
        return self.ends[-1]

    @property
    def names(self) -> list[str]:
        """The coordinates in words."""
        return [name for part in self.coordinates for name in part.names()]

    def moved(self, delta: Floats) -> dict[Hashable, Any]:
        """The nodes at other coordinates."""
        nodes = dict(self.nodes)
        for part, group, start, stop in zip(self.coordinates, self.groups, self.ends, self.ends[1:], strict=False):
            shared = part.moved(delta[start:stop]).parameters()
            for name in group:
                nodes[name] = self.nodes[name].with_parameters(shared)
        return nodes

    def score(self, nodes: Mapping[Hashable, Any], summary: Summary) -> Floats:
        """The slope of the objective at some nodes, from expected statistics."""
        slopes = []
        for part, (first, *others) in zip(self.coordinates, self.groups, strict=True):
            more = (part.score(nodes[name].without_prior(), summary) for name in others)  # It counts once.
            slopes.append(sum(more, part.score(nodes[first], summary)))
        return np.concatenate([np.zeros(0), *slopes])


class Informed(Protocol):
    """A problem that says what its rows tell about nodes."""

    def parts(self, parameters: dict[Hashable, Any]) -> Parts:
        """The free coordinates of the nodes that EM learns."""

    def observed_information(self, parameters: dict[Hashable, Any]) -> ObservedInformation:
        """The observed information in these coordinates."""

    def at_rest(self) -> Informed:
        """The same without engines, and without rows that are held elsewhere."""


@dataclass(frozen=True, eq=False)
class ObservedErrors:
    """Standard errors of the nodes that EM has learned, and what the rows determine, computed when first asked for.

    That takes two E-steps for each free parameter. `step` is the largest change of a parameter by one more step of EM.
    """

    problem: Informed
    nodes: dict[Hashable, Any]
    step: float

    @cached_property
    def parts(self) -> Parts:
        """The free coordinates of the nodes."""
        return self.problem.parts(self.nodes)

    @cached_property
    def spectrum(self) -> Spectrum:
        """The eigenvalues of the observed information, in units of that of complete rows."""
        return self.problem.observed_information(self.nodes).spectrum(self.step)

    def curvature(self, scores: Sequence[float]) -> Curvature:
        """For the report; scores: the objectives of all runs."""
        return curvature(self.spectrum, self.parts.names, scores)

    @cached_property
    def _by_node(self) -> dict[Hashable, Floats]:
        errors: dict[Hashable, Floats] = {}
        for part, group, start in zip(self.parts.coordinates, self.parts.groups, self.parts.ends, strict=False):
            errors |= dict.fromkeys(group, part.errors(partial(self._errors, start)))
        return errors

    def at_rest(self) -> ObservedErrors:
        """The same without the engines of the problem, which are made anew if they are needed."""
        resting = ObservedErrors(self.problem.at_rest(), self.nodes, self.step)
        if "spectrum" in vars(self):
            vars(resting)["spectrum"] = self.spectrum
        return resting

    def knows(self, name: Hashable) -> bool:
        """Whether EM has learned a node."""
        return any(name in group for group in self.parts.groups)

    def of(self, name: Hashable) -> Floats:
        """The standard errors of a node, laid out as its table."""
        return self._by_node[name]

    def errors_of(self, derivatives: Mapping[Hashable, Sequence[Floats]], size: int) -> Floats:
        """Standard errors (size,) of functions with these derivatives (size, ...) by the numbers of each node."""
        slopes = np.zeros((size, self.parts.size))
        for part, group, start in zip(self.parts.coordinates, self.parts.groups, self.parts.ends, strict=False):
            for name in group:
                if name in derivatives:
                    slopes[:, start : start + part.size] += part.pulled(derivatives[name])
        return self.spectrum.errors(slopes)

    def draw(self, rng: np.random.Generator) -> dict[Hashable, Any]:
        """The nodes at a draw from the normal distribution around the estimate."""
        return self.parts.moved(self.spectrum.draw(rng))

    def _errors(self, start: int, slopes: Floats) -> Floats:
        """Of functions with these slopes (n, size) in the coordinates of one group, which begin at `start`."""
        wide = np.zeros((len(slopes), self.parts.size))
        wide[:, start : start + slopes.shape[1]] = slopes
        return self.spectrum.errors(wide)
