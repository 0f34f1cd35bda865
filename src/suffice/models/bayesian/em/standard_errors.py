"""Standard errors of an EM fit, from the observed information.

The score of the observed rows is the expected score of the complete ones (Fisher's identity), which the expected
statistics give exactly. Its derivative, by central differences, is minus the observed information; the counts that EM
expects would understate the errors, because they count what was filled in as if it had been seen.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.models.bayesian.em.coordinates import Coordinates, Units
from suffice.models.em.information import inverse_information, score_differences
from suffice.statistics import Summary

Floats = NDArray[np.float64]


def observed_information(
    expect: Callable[[Mapping[Hashable, Any]], tuple[float, Summary]],
    nodes: Mapping[Hashable, Any],
    groups: Sequence[Sequence[Hashable]],
    units: Units,
) -> tuple[list[Coordinates], Floats]:
    """The coordinates of the first node of each group, and their information; nodes of a group move together."""
    chosen: list[Coordinates] = [nodes[group[0]].coordinates(units) for group in groups]
    ends = np.cumsum([0, *(part.size for part in chosen)])

    def score(delta: Floats) -> Floats:
        moved = dict(nodes)
        for part, group, start, stop in zip(chosen, groups, ends, ends[1:], strict=False):
            shared = part.moved(delta[start:stop]).parameters()
            for name in group:
                moved[name] = nodes[name].with_parameters(shared)
        _, summary = expect(moved)
        slopes = []
        for part, (first, *others) in zip(chosen, groups, strict=True):
            more = (part.score(moved[name].without_prior(), summary) for name in others)  # It counts once.
            slopes.append(sum(more, part.score(moved[first], summary)))
        return np.concatenate([np.zeros(0), *slopes])

    return chosen, score_differences(score, int(ends[-1]))


@dataclass
class ObservedErrors:
    """Standard errors of all nodes of a fit, computed when first asked for: two E-steps for each free parameter."""

    make_expectation: Any
    nodes: Mapping[Hashable, Any]
    groups: Sequence[Sequence[Hashable]]
    units: Units
    found: dict[Hashable, Floats] = field(default_factory=dict)

    def of(self, name: Hashable) -> Floats:
        """The standard errors of a node, laid out as its table."""
        if not self.found:
            self._compute()
        return self.found[name]

    def _compute(self) -> None:
        expectation = self.make_expectation()
        chosen, information = observed_information(expectation.expect, self.nodes, self.groups, self.units)
        covariance, unknown = inverse_information(information)
        start = 0
        for part, group in zip(chosen, self.groups, strict=True):
            some = slice(start, start + part.size)
            errors = part.errors(covariance[some, some], unknown[some])
            self.found |= dict.fromkeys(group, errors)
            start += part.size
