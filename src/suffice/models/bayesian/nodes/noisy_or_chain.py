"""A noisy-OR as a chain of small tables: has one of the first 1, 2, ... causes brought the node about?

The private variables of the chain have two states, no and yes. What has been caused stays caused, so that the rows in
which nothing was caused before tell all about the next cause: given the chain, the probability that a cause is
inhibited is the share of those rows in which still nothing is caused. Statistics grow linearly with the parents.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.domain import Domain
from suffice.statistics import Counts, Summary

Scope = tuple[Hashable, ...]

#: A node with more parents enters the junction tree as a chain of small tables.
MOST_IN_TABLE = 4
#: A family with more joint states is learned from missing values by its chain, not by the counts of all its joint
#: states.
CHAINED_CELLS = 2**12


@dataclass(frozen=True)
class Auxiliary:
    """A private variable: whether the leak or one of the first parents of a node has caused it; it has two states."""

    node: Hashable
    number: int


def learned_by_chain(domain: Domain) -> bool:
    """Whether EM learns a family (parents, node) from the counts of its chain."""
    return math.prod(domain.shape(domain.names)) > CHAINED_CELLS


def factor_scopes(domain: Domain, leak: bool) -> list[Scope]:
    """Variables of the tables of a node in the junction tree: the family, or the chain where parents are many."""
    return chain_scopes(domain, leak) if len(domain) - 1 > MOST_IN_TABLE else [domain.names]


def chain_scopes(domain: Domain, leak: bool) -> list[Scope]:
    """Variables of each table: the leak where there is one, then (caused before, parent, caused) for each parent."""
    *parents, name = domain.names
    scopes: list[Scope] = [(Auxiliary(name, 0),)] if leak else []
    for number, parent in enumerate(parents):
        before = (Auxiliary(name, number),) if leak or number else ()
        scopes.append((*before, parent, name if number == len(parents) - 1 else Auxiliary(name, number + 1)))
    return scopes


def chain_tables(leak: float | None, effects: Sequence[Floats], present: int) -> list[Floats]:
    """The tables of `chain_scopes` at the weight of the leak (None without one) and of each state of each parent."""
    tables = [] if leak is None else [_caused(np.asarray(leak))]
    for number, effect in enumerate(effects):
        caused = _caused(effect)
        if leak is not None or number:
            caused = np.stack([caused, np.broadcast_to([0.0, 1.0], caused.shape)], axis=0)
        last = number == len(effects) - 1
        tables.append(np.ascontiguousarray(caused[..., ::-1] if last and not present else caused))
    return tables


def _caused(strength: Floats) -> Floats:
    """P(not caused), P(caused) (..., 2)."""
    return np.stack([np.exp(-strength), -np.expm1(-strength)], axis=-1)


@dataclass(frozen=True)
class ChainCounts:
    """By weight (m,): how often a cause failed, and how often it worked, where nothing was caused before it."""

    failed: Floats
    worked: Floats
    total: float

    @classmethod
    def of(
        cls, domain: Domain, places: Sequence[NDArray[np.intp]], leak: bool, present: int, summary: Summary
    ) -> ChainCounts:
        """From the counts of the chain; `places` gives the weight of each state of each parent, -1 for none."""
        m = int(leak) + sum(len(weights) - 1 for weights in places)
        both, total = np.zeros((2, m)), 0.0
        scopes = chain_scopes(domain, leak)
        for number, scope in enumerate(scopes):
            table: Floats = summary[Counts(scope)].dense()
            total = float(table.sum())
            if number == len(scopes) - 1 and not present:
                table = table[..., ::-1]
            if leak and number == 0:
                both[:, 0] = table
                continue
            fresh = table[0] if len(scope) == 3 else table
            weights = places[number - int(leak)]
            both[:, weights[weights >= 0]] = fresh[weights >= 0].T
        return cls(both[0], both[1], total)

    def slopes(self, inhibitors: Floats) -> Floats:
        """Of the log-likelihood in the inhibition probabilities (m,)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(self.failed / inhibitors - self.worked / (1 - inhibitors))
