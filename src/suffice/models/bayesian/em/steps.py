"""EM for networks of any kinds of node: hidden variables and gaps, by exact expectations.

The E-step answers the statistics that complete rows would answer, in expectation; the M-step is what complete rows are
learned by. The observed log-likelihood (plus the log prior) never falls, which is checked at every step.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from suffice.errors import EstimateError
from suffice.fitting.control import Control, Outcome
from suffice.solvers.fixed_point import Climb, climb
from suffice.statistics import Summary

Floats = NDArray[np.float64]
Nodes = dict[Hashable, Any]


class Expectation(Protocol):
    """The E-step."""

    def expect(self, nodes: Mapping[Hashable, Any]) -> tuple[float, Summary]:
        """Observed log-likelihood at some nodes, and the expected statistics."""
        ...


@dataclass(frozen=True)
class NetworkEM:
    """One EM problem.

    `maximise` learns all nodes from statistics; `free` names those that are not fixed, and `priors` those whose prior
    counts (of nodes that share their parameters only one). `units` are centre and scale of each real variable: steps
    are measured in them. Variances stay at `floor` times the variance of their column or more.
    """

    expect: Callable[[Mapping[Hashable, Any]], tuple[float, Summary]]
    maximise: Callable[[Summary], Nodes]
    free: tuple[Hashable, ...]
    priors: tuple[Hashable, ...]
    units: Mapping[Hashable, tuple[float, float]]
    floor: float = 0.0
    size: float = 1.0

    # -- steps -------------------------------------------------------------------------------------------------------

    def learned(self, summary: Summary) -> Nodes:
        """The nodes of some statistics, variances held above their floors.

        The objective of a variance has one peak, so the best value above the floor is the floor where the peak is
        below it.
        """
        found = self.maximise(summary)
        return {name: self._held(node) if name in self.free else node for name, node in found.items()}

    def _held(self, node: Any) -> Any:
        return node.held(self.floor * self.units.get(node.name, (0.0, 1.0))[1] ** 2)

    def log_prior(self, nodes: Mapping[Hashable, Any]) -> float:
        """Log prior density of the parameters up to a constant, as the M-step maximises it."""
        return float(sum(nodes[name].log_prior() for name in self.priors))

    # -- parameters as one vector ------------------------------------------------------------------------------------

    def vector(self, nodes: Mapping[Hashable, Any]) -> Floats:
        """Parameters of the free nodes one after another, regressions in units of their columns."""
        parts = [nodes[name].in_units(nodes[name].parameters(), self.units, forward=True) for name in self.free]
        return np.concatenate([np.zeros(0), *parts])

    def nodes_at(self, vector: Floats, like: Mapping[Hashable, Any]) -> Nodes:
        """The nodes with these parameters; EstimateError where some are outside their range."""
        found, at = dict(like), 0
        for name in self.free:
            size = like[name].parameters().size
            part = like[name].in_units(vector[at : at + size], self.units, forward=False)
            found[name] = like[name].with_parameters(part)
            at += size
        return found

    # -- runs --------------------------------------------------------------------------------------------------------

    def run(
        self, start: Mapping[Hashable, Any], control: Control, *, acceleration: str | None, fingerprint: str
    ) -> tuple[Nodes, Outcome]:
        """Climb from a start; returns the nodes where it ended and how."""
        like = self.learned(self.expect(start)[1])

        def evaluate(vector: Floats) -> tuple[float, Floats]:
            nodes = self.nodes_at(vector, like)
            value, summary = self.expect(nodes)
            if value == -np.inf:
                return value, vector
            return value + self.log_prior(nodes), self.vector(self.learned(summary))

        def inside(vector: Floats) -> bool:
            try:
                self.nodes_at(vector, like)
            except EstimateError:
                return False
            return True

        def hold(vector: Floats) -> Floats:
            """Variances below their floors brought up to them."""
            try:
                nodes = self.nodes_at(vector, like)
                held = {name: self._held(nodes[name]) for name in self.free}
            except EstimateError:
                return vector
            return vector if all(held[name] is nodes[name] for name in self.free) else self.vector(held)

        begun = {name: like[name].with_parameters(start[name].parameters()) for name in self.free}
        first = self.vector(begun)
        problem = Climb(evaluate, inside, self.size, hold)
        outcome = climb(problem, first, control, acceleration=acceleration, fingerprint=fingerprint)
        return self.nodes_at(outcome.state.parameters, like), outcome

    def resumed(self, start: Mapping[Hashable, Any], outcome: Outcome) -> tuple[Nodes, Outcome]:
        """A run that was finished before, from the same start."""
        like = self.learned(self.expect(start)[1])
        return self.nodes_at(outcome.state.parameters, like), outcome

    def finished(self, nodes: Mapping[Hashable, Any], maximise: Callable[[Summary], Nodes]) -> Nodes:
        """The nodes with what learning from the expected statistics says about them besides their parameters."""
        _, summary = self.expect(nodes)
        found = replace(self, maximise=maximise).learned(summary)
        for name in self.free:
            if not np.isnan(found[name].parameters()).any():
                found[name] = found[name].with_parameters(nodes[name].parameters())
        return found


def shared(learners: Mapping[Hashable, Any], free: Iterable[Hashable]) -> tuple[Hashable, ...]:
    """The free nodes, of those that share their parameters only the first."""
    seen: dict[Hashable, Hashable] = {}
    for name in free:
        members = getattr(learners[name], "members", None)
        seen.setdefault(name if members is None else ("tied", members[0].names), name)
    return tuple(seen.values())
