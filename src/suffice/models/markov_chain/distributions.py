"""Fitted distributions of the next word given those before: by backing off, by a mixture, or by a full table.

A distribution answers one question, `log_prob` of windows (m, order + 1) of word numbers, oldest first; the number
`card` is the start mark, and a number outside 0 to `card` a word that the chain does not know.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from suffice.array_types import Floats, Ints
from suffice.checks import checked_floats
from suffice.errors import FileFormatError
from suffice.models.markov_chain.levels import Levels, at_places


class NextState(Protocol):
    """What every distribution can do."""

    @property
    def card(self) -> int:
        """Number of words."""
        ...

    @property
    def order(self) -> int:
        """Words of a history."""
        ...

    @property
    def levels(self) -> Levels | None:
        """The runs that it is kept by; None for a table."""
        ...

    def log_prob(self, windows: Ints) -> Floats:
        """Log probability of the last word of each window given the others (m,); -inf, never NaN."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """Plain data for a file."""
        ...


def safe_log(values: Any) -> Floats:
    """Natural logarithm, -inf at zero without a warning."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.asarray(values, dtype=np.float64)))


def row(distribution: NextState, history: Ints) -> Floats:
    """Probabilities of every word after one history (order,)."""
    windows = np.empty((distribution.card, distribution.order + 1), np.int64)
    windows[:, :-1] = history
    windows[:, -1] = np.arange(distribution.card)
    return np.exp(distribution.log_prob(windows))


class _OverLevels:
    """A distribution kept by the runs of each length."""

    levels: Levels

    @property
    def card(self) -> int:
        """Number of words."""
        return self.levels.card

    @property
    def order(self) -> int:
        """Words of a history."""
        return self.levels.order


@dataclass(frozen=True, eq=False)
class BackoffDistribution(_OverLevels):
    """Runs with a probability of their own; any other word after a history has weight(history) p(word | suffix).

    `log_p[n - 1]` belongs to the runs of level n (as last word given the rest), `log_weight[n - 1]` to the same runs as
    histories. `first` (card,) replaces the distribution of the first word of a sequence.
    """

    levels: Levels
    log_p: tuple[Floats, ...]
    log_weight: tuple[Floats, ...]
    first: Floats | None = None

    def log_prob(self, windows: Ints) -> Floats:
        """By the longest run that has a probability, and the weights of the histories that have not."""
        past, word = windows[:, :-1], windows[:, -1]
        known = (word >= 0) & (word < self.card)
        safe = np.where(known, word, 0)
        logs = self.log_p[0][safe].copy()
        contexts = self.levels.contexts(past)
        for n in range(2, self.order + 2):
            context = contexts[n - 1]
            run = self.levels.find(n, context, safe)
            weight = at_places(self.log_weight[n - 2], context, 0.0)
            logs = np.where(run >= 0, at_places(self.log_p[n - 1], run, 0.0), weight + logs)
        if self.first is not None:
            begins = (past == self.card).all(axis=1)
            logs = np.where(begins, self.first[safe], logs)
        return np.where(known, logs, -np.inf)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for a file."""
        arrays = {"log_p": list(self.log_p), "log_weight": list(self.log_weight), "first": self.first}
        return {"kind": "backoff", "levels": self.levels.to_dict(), **arrays}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> BackoffDistribution:
        """Rebuild from plain data."""
        levels = Levels.from_dict(plain["levels"])
        log_p, log_weight = tuple(plain["log_p"]), tuple(plain["log_weight"])
        if len(log_p) != levels.order + 1 or len(log_weight) != levels.order:
            raise FileFormatError("The chain has arrays for another number of levels.")
        for n, level in enumerate(levels.levels):
            _check_logs(log_p[n], (len(level),))
            if n < levels.order:
                _check_logs(log_weight[n], (len(level),))
        if plain["first"] is not None:
            _check_logs(plain["first"], (levels.card,))
        return cls(levels, log_p, log_weight, plain["first"])


@dataclass(frozen=True, eq=False)
class LevelMixture(_OverLevels):
    """``p(w | h) = scale_h n(h, w) + sum_c share_hc mean_c(w)``: the posterior mean under a mixture of Dirichlet rows.

    `scale[n - 1]` (runs of level n,) and `share[n - 1]` (runs of level n, C) belong to runs as histories; `unseen` (C,)
    are the shares of a history without counts, `means` (C, card) the means of the components.
    """

    levels: Levels
    scale: tuple[Floats, ...]
    share: tuple[Floats, ...]
    unseen: Floats
    means: Floats
    first: Floats | None = None

    def log_prob(self, windows: Ints) -> Floats:
        """From the counts of the whole history and the means of the components."""
        past, word = windows[:, :-1], windows[:, -1]
        known = (word >= 0) & (word < self.card)
        safe = np.where(known, word, 0)
        depth = whole_history(past, self.card)
        contexts = self.levels.contexts(past)
        share = np.broadcast_to(self.unseen, (len(word), len(self.unseen))).copy()
        own = np.zeros(len(word))
        for n in range(1, self.order + 1):
            mine = np.flatnonzero((depth == n) & (contexts[n] >= 0))
            if len(mine):
                context = contexts[n][mine]
                share[mine] = self.share[n - 1][context]
                run = self.levels.find(n + 1, context, safe[mine])
                counts = at_places(self.levels.levels[n].count, run, 0.0)
                own[mine] = self.scale[n - 1][context] * counts
        logs = safe_log(own + np.einsum("mc,cm->m", share, self.means[:, safe]))
        if self.first is not None:
            logs = np.where((past == self.card).all(axis=1), self.first[safe], logs)
        return np.where(known, logs, -np.inf)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for a file."""
        return {
            "kind": "mixture",
            "levels": self.levels.to_dict(),
            "scale": list(self.scale),
            "share": list(self.share),
            "unseen": self.unseen,
            "means": self.means,
            "first": self.first,
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> LevelMixture:
        """Rebuild from plain data."""
        levels = Levels.from_dict(plain["levels"])
        parts = len(plain["unseen"])
        for n in range(levels.order):
            checked_floats(plain["scale"][n], (len(levels.levels[n]),), "The scale of the chain", least=0.0)
            checked_floats(plain["share"][n], (len(levels.levels[n]), parts), "The share of the chain", least=0.0)
        checked_floats(plain["unseen"], (parts,), "The unseen of the chain", least=0.0)
        checked_floats(plain["means"], (parts, levels.card), "The means of the chain", least=0.0)
        if plain["first"] is not None:
            _check_logs(plain["first"], (levels.card,))
        arrays = (tuple(plain["scale"]), tuple(plain["share"]), plain["unseen"], plain["means"], plain["first"])
        return cls(levels, *arrays)


@dataclass(frozen=True, eq=False)
class TableDistribution:
    """A full table of a chain of order 1: `log_table` (card + 1, card), the last row after the start mark."""

    log_table: Floats

    @property
    def card(self) -> int:
        """Number of words."""
        return int(self.log_table.shape[1])

    @property
    def order(self) -> int:
        """One."""
        return 1

    @property
    def levels(self) -> None:
        """A table keeps no runs."""

    def log_prob(self, windows: Ints) -> Floats:
        """By look-up."""
        past, word = windows[:, 0], windows[:, 1]
        known = (word >= 0) & (word < self.card) & (past >= 0) & (past <= self.card)
        return np.where(known, self.log_table[np.where(known, past, 0), np.where(known, word, 0)], -np.inf)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for a file."""
        return {"kind": "table", "log_table": self.log_table}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> TableDistribution:
        """Rebuild from plain data."""
        table = np.asarray(plain["log_table"])
        _check_logs(table, (table.shape[1] + 1, table.shape[1]))
        return cls(table)


def distribution_from_dict(plain: Mapping[str, Any]) -> NextState:
    """The distribution that plain data describe."""
    kinds: dict[str, Any] = {"backoff": BackoffDistribution, "mixture": LevelMixture, "table": TableDistribution}
    if plain["kind"] not in kinds:
        raise FileFormatError(f"There is no distribution of the kind {plain['kind']!r}.")
    distribution: NextState = kinds[plain["kind"]].from_dict(plain)
    return distribution


def whole_history(past: Ints, card: int) -> Ints:
    """Words that the history of each past (m, order) has, the start mark among them: less than order at the start."""
    marks = (past == card).sum(axis=1)
    return np.asarray(past.shape[1] - np.maximum(marks - 1, 0))


def _check_logs(values: Any, shape: tuple[int, ...]) -> None:
    array = np.asarray(values)
    if array.dtype != np.float64 or array.shape != shape or np.isnan(array).any() or (array == np.inf).any():
        raise FileFormatError(f"The chain holds log probabilities that are none, or not of shape {shape}.")
