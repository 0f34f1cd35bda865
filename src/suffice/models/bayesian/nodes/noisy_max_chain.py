"""A noisy-MAX as a chain of small tables: the largest of what the first 1, 2, ... causes have brought about.

The private variables of the chain have the states of the node, in their order; of a noisy-OR, whether something was
caused. What has been reached stays reached, so that the rows in which nothing as large was caused before tell all about
the next cause: given the chain, the probability that a cause stays below a state is the share of those rows in which
the state is still not reached. Statistics grow linearly with the parents.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.domain import Domain, Variable
from suffice.statistics import Counts, Summary

Scope = tuple[Hashable, ...]

#: A node with more parents enters the junction tree as a chain of small tables.
MOST_IN_TABLE = 4
#: A family with more joint states does so too, and is learned from missing values by its chain, not by the counts of
#: all its joint states.
CHAINED_CELLS = 2**12


@dataclass(frozen=True)
class Auxiliary:
    """A private variable: the largest of what the leak and the first parents of a node cause; one of `card` states."""

    node: Hashable
    number: int
    card: int = 2

    @property
    def variable(self) -> Variable:
        """The variable with its states."""
        return Variable.discrete(self, (False, True) if self.card == 2 else range(self.card))


def card_of(name: Hashable) -> int:
    """States of a private variable; those of other nodes have two."""
    return name.card if isinstance(name, Auxiliary) else 2


def learned_by_chain(domain: Domain) -> bool:
    """Whether EM learns a family (parents, node) from the counts of its chain."""
    return len(domain) > 1 and math.prod(domain.shape(domain.names)) > CHAINED_CELLS


def queried_by_chain(domain: Domain) -> bool:
    """Whether a family enters the junction tree as a chain."""
    return len(domain) - 1 > MOST_IN_TABLE or learned_by_chain(domain)


def factor_scopes(domain: Domain, leak: bool) -> list[Scope]:
    """Variables of the tables of a node in the junction tree: the family, or the chain where it is large."""
    return chain_scopes(domain, leak) if queried_by_chain(domain) else [domain.names]


def chain_scopes(domain: Domain, leak: bool) -> list[Scope]:
    """Variables of each table: the leak where there is one, then (reached before, parent, reached) for each parent."""
    *parents, name = domain.names
    card = domain.variables[-1].card
    scopes: list[Scope] = [(Auxiliary(name, 0, card),)] if leak else []
    for number, parent in enumerate(parents):
        before = (Auxiliary(name, number, card),) if leak or number else ()
        scopes.append((*before, parent, name if number == len(parents) - 1 else Auxiliary(name, number + 1, card)))
    return scopes


def chain_tables(leak: Floats | None, effects: Sequence[Floats], order: Sequence[int]) -> list[Floats]:
    """The tables of `chain_scopes` at the weights of the leak (L,), None without one, and of each parent (states, L).

    `order` lists the codes of the states of the node, from the one that nothing causes.
    """
    tables = [] if leak is None else [shares_of(leak)]
    for number, effect in enumerate(effects):
        caused = shares_of(effect)
        if leak is not None or number:
            caused = np.stack([_raised(caused, effect, state) for state in range(len(order))], axis=0)
        last = number == len(effects) - 1
        tables.append(np.ascontiguousarray(caused[..., np.argsort(order)] if last else caused))
    return tables


def _raised(shares: Floats, effect: Floats, reached: int) -> Floats:
    """P(the larger of a state that is reached and what a cause brings about) (..., L + 1)."""
    raised = shares.copy()
    raised[..., :reached] = 0.0
    raised[..., reached] = np.exp(-effect[..., reached:].sum(axis=-1))
    return raised


def shares_of(strength: Floats) -> Floats:
    """P(state), in the order of the states (..., L + 1), of the strengths (..., L) of the states above the lowest.

    A state is not exceeded with the probability exp(-(sum of the strengths above it)), and reached, if it is not
    exceeded, with 1 - exp(-strength).
    """
    above = _sums_above(strength)
    return np.concatenate([np.exp(-above[..., :1]), np.exp(-above[..., 1:]) * -np.expm1(-strength)], axis=-1)


def log_shares_of(strength: Floats) -> Floats:
    """Logarithms of `shares_of`."""
    above = _sums_above(strength)
    with np.errstate(divide="ignore"):
        return np.concatenate([-above[..., :1], np.log(-np.expm1(-strength)) - above[..., 1:]], axis=-1)


def _sums_above(strength: Floats) -> Floats:
    """Sums (..., L + 1) of the strengths above each state, 0 for the highest."""
    sums = np.zeros((*strength.shape[:-1], strength.shape[-1] + 1))
    sums[..., :-1] = np.cumsum(strength[..., ::-1], axis=-1)[..., ::-1]
    return sums


@dataclass(frozen=True)
class ChainCounts:
    """By cause and state above the lowest (m, L): how often the cause stayed below, and how often it reached the state.

    Only rows count that do not exceed the state; of those in which it was reached before, none.
    """

    failed: Floats
    worked: Floats
    total: float

    @classmethod
    def of(
        cls, domain: Domain, places: Sequence[NDArray[np.intp]], leak: bool, order: Sequence[int], summary: Summary
    ) -> ChainCounts:
        """From the counts of the chain; `places` gives the cause of each state of each parent, -1 for none."""
        m = int(leak) + sum(len(causes) - 1 for causes in places)
        card, total = len(order), 0.0
        failed, worked = np.zeros((2, m, card - 1))
        scopes = chain_scopes(domain, leak)
        for number, scope in enumerate(scopes):
            table: Floats = summary[Counts(scope)].dense()
            total = float(table.sum())
            if number == len(scopes) - 1:
                table = table[..., list(order)]
            causes = np.zeros(1, dtype=np.intp) if leak and number == 0 else places[number - int(leak)]
            if leak and number == 0:
                table = table[None]
            # The axes are what was reached before, the state of the parent, and what is reached.
            table = table[:, causes >= 0] if table.ndim == 3 else table[None, causes >= 0]
            below = np.cumsum(table.sum(axis=0), axis=-1)
            risen = np.tril(np.ones((card, card)), -1).T if len(table) > 1 else np.ones((1, card))
            failed[causes[causes >= 0]] = below[:, :-1]
            worked[causes[causes >= 0]] = np.einsum("bsa,ba->sa", table, risen)[:, 1:]
        return cls(failed, worked, total)

    def slopes(self, inhibitors: Floats) -> Floats:
        """Of the log-likelihood in the inhibition probabilities (m, L)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(self.failed / inhibitors - self.worked / (1 - inhibitors))
