"""Loopy belief propagation: approximate marginals and the Bethe approximation of log Z.

Messages as on a tree, passed until they stand still. Exact where the factors form a tree; elsewhere an approximation,
whose beliefs are the slope of the Bethe log Z by the log-potentials (Yedidia, Freeman and Weiss 2005).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from suffice.array_types import Floats
from suffice.kernels.loopy import MessageLayout, beliefs, pass_messages


@dataclass(frozen=True, eq=False)
class LoopyResult:
    """Beliefs of all cells (cells,), the Bethe log Z, whether the messages stood still, and after how many passes."""

    shares: Floats
    log_partition: float
    converged: bool
    passes: int


class LoopyBeliefs:
    """Belief propagation for factors over some scopes; messages are kept, so that a small change costs little."""

    def __init__(
        self,
        cards: Sequence[int],
        scopes: Sequence[Sequence[int]],
        *,
        damping: float = 0.0,
        tolerance: float = 1e-13,
        most_passes: int = 2_000,
    ) -> None:
        """cards: states of each site; scopes: sites of each factor. damping: the share of a message that stays."""
        self._layout = MessageLayout.of(cards, scopes)
        self._messages = self._layout.silent()
        self._damping, self._tolerance, self._most = damping, tolerance, most_passes

    def forget(self) -> None:
        """Let the next messages begin in silence, whatever was solved before."""
        self._messages = self._layout.silent()

    def solve(self, logs: Floats) -> LoopyResult:
        """Pass messages for these log-potentials (cells,) until none changes by more than the tolerance."""
        damping, messages, converged, passes = self._damping, self._messages, False, 0
        while passes < self._most and not converged:
            messages, change = pass_messages(self._layout, logs, messages, damping)
            passes += 1
            converged = change <= self._tolerance
            if passes == self._most // 4:  # They go round in circles: hold them back.
                damping = max(damping, 0.5)
        if converged:
            self._messages = messages
        else:
            self.forget()
        shares, log_partition = beliefs(self._layout, logs, messages)
        return LoopyResult(shares, log_partition, converged, passes)
