"""Whole rows that stay where they are, for the solvers that need more than the counts of cliques.

Value and slope of the pseudo-likelihood are sums over rows: one round each. Chains that begin at rows are handed the
few rows that were drawn, and those of many updates come in one round.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import blake2b
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats, Ints
from suffice.engines.gibbs import GibbsSampler
from suffice.models.markov.approximate.rows import CHAINS_AT_ROWS, CodedRows, coded_rows, draws_of
from suffice.sources.base import Batch
from suffice.sources.held import Held
from suffice.sources.releasing import Disclosed

#: States of rows that are drawn ahead in one round: 4 MB.
AHEAD = 2**22


@dataclass(frozen=True, eq=False)
class SampleShard:
    """The rows of a shard, and their digest: shards of equal digests hold equal rows."""

    rows: CodedRows
    digest: bytes

    @property
    def weight(self) -> float:
        """The sum of their weights."""
        return float(self.rows.weights.sum())


@dataclass(frozen=True)
class KeepSample:
    """The work of approximate solvers: coded rows, which answer log-potentials by their pseudo-likelihood.

    `cards` and `scopes` are those of the model, by number of the variables in `nodes`.
    """

    nodes: tuple[Hashable, ...]
    cards: tuple[int, ...]
    scopes: tuple[tuple[int, ...], ...]

    def prepare(self, batch: Batch) -> SampleShard:
        """Codes in the order of the nodes, of the rows with weight."""
        rows = coded_rows(batch, self.nodes).live
        return SampleShard(rows, blake2b(rows.states.tobytes() + rows.weights.tobytes(), digest_size=16).digest())

    def disclosed(self) -> Disclosed:
        """The slope at log-potentials of 0 has the counts of all cells."""
        return Disclosed(tuple(tuple(self.nodes[number] for number in scope) for scope in self.scopes))

    def evaluate(self, shard: SampleShard, logs: Floats) -> Floats:
        """The weighted sum over rows of log p(site | others), and its slope by log-potential (1 + cells,)."""
        if not len(shard.rows.weights):
            return np.zeros(1 + len(logs))
        value, cells = (
            shard_sampler(self.cards, self.scopes).at(logs).pseudo_likelihood(shard.rows.states, shard.rows.weights)
        )
        return np.concatenate([[value], cells])


@lru_cache(maxsize=4)
def shard_sampler(
    cards: tuple[int, ...], scopes: tuple[tuple[int, ...], ...], scan: str = "systematic"
) -> GibbsSampler:
    """The sampler of a model, made once in a process; shards are asked side by side, so that each has one thread."""
    return GibbsSampler(cards, scopes, scan=scan, threads=1)


@dataclass(frozen=True)
class _Listed:
    """Entries of shards, in the order of the shards: rows that were drawn, or digests of rows, and no sums."""

    entries: tuple[Any, ...]

    holds_rows: ClassVar[bool] = True
    instead: ClassVar[str] = CHAINS_AT_ROWS

    def __add__(self, other: _Listed) -> _Listed:
        return _Listed(self.entries + other.entries)


def _weights(shard: SampleShard, _: None) -> _Listed:
    return _Listed(((shard.digest, shard.weight),))


def _drawn(shard: SampleShard, draws: Mapping[bytes, tuple[Ints, Floats]]) -> _Listed:
    """The rows at which the running sum of weights passes the targets of this shard, and the numbers of the draws."""
    if shard.digest not in draws:
        return _Listed(())
    numbers, targets = draws[shard.digest]
    return _Listed(((numbers, shard.rows.passing(targets)),))


class HeldSample:
    """The rows of a fit, wherever they are: as `CodedRows`, by rounds."""

    def __init__(self, held: Held[SampleShard], variables: int, weight: float) -> None:
        """variables: how many the rows have; weight: the sum of their weights."""
        self._held, self._variables, self._weight = held, variables, weight
        self._drawn: dict[tuple[int, int, int], NDArray[np.uint8]] = {}

    @cached_property
    def _shards(self) -> tuple[list[bytes], Floats]:
        """Digests of the shards with weight, and the running sum of their weights from 0."""
        shards = [entry for entry in self._held.sum(None, _weights).entries if entry[1] > 0.0]
        return [digest for digest, _ in shards], np.cumsum([0.0, *(weight for _, weight in shards)])

    def pseudo_likelihood(self, sampler: GibbsSampler, logs: Floats) -> tuple[float, Floats]:
        """Mean over rows of the sum of log p(site | others), and its slope by log-potential (cells,): one round."""
        answer = self._held.sum(logs) / self._weight
        return float(answer[0]), answer[1:]

    def draw(self, seed: int, sweep: int, count: int, sweeps: int) -> NDArray[np.uint8]:
        """As `CodedRows.draw`: the same rows. Those of the updates that follow come in the same round."""
        if (seed, sweep, count) not in self._drawn:
            ahead = max(1, AHEAD // max(1, count * self._variables))
            coming = [sweep + number * sweeps for number in range(ahead)]
            uniform = np.concatenate([draws_of(seed, number, count) for number in coming])
            parts = np.split(self._rows_at(uniform), ahead, axis=1)
            self._drawn = {(seed, number, count): part for number, part in zip(coming, parts, strict=True)}
        return np.ascontiguousarray(self._drawn[seed, sweep, count])

    def _rows_at(self, uniform: Floats) -> NDArray[np.uint8]:
        """The rows (variables, n) at which the running sum of all weights passes these shares of it."""
        digests, sums = self._shards
        targets = uniform * sums[-1]
        shard = np.minimum(np.searchsorted(sums, targets, side="right") - 1, len(digests) - 1)
        within = targets - sums[shard]
        # Shards of equal rows answer alike, so that the draws of one may be put to all of them.
        numbers: dict[bytes, list[Ints]] = {}
        for number in np.unique(shard).tolist():
            numbers.setdefault(digests[number], []).append(np.flatnonzero(shard == number))
        joined = {digest: np.concatenate(parts) for digest, parts in numbers.items()}
        entries = self._held.sum({digest: (which, within[which]) for digest, which in joined.items()}, _drawn).entries
        states = np.empty((self._variables, len(targets)), np.uint8)
        for which, rows in entries:
            states[:, which] = rows
        return states

    @property
    def notes(self) -> tuple[str, ...]:
        """Rounds, shards and where the rows have stayed, for the report."""
        shards = "1 shard" if self._held.shards == 1 else f"{self._held.shards} shards"
        return (f"{self._held.rounds} rounds over {shards}; the rows stayed {self._held.location}",)

    def close(self) -> None:
        """Let the rows go."""
        self._held.close()
