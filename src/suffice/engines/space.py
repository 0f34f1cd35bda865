"""Names, cards and checks: what the exact discrete engines have in common.

A `Space` is a set of discrete variables. Engines work on those with two states or more, numbered from 0 in the order of
`suffice.graphs.nodes`, so that no result depends on the order in which variables are given. A variable with a single
state is a constant: its axes are dropped on the way in and put back on the way out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from suffice.array_types import Floats
from suffice.checks import whole_number
from suffice.errors import DataError, OptionError, listing, meant
from suffice.graphs.nodes import Node, numbered
from suffice.records import record

Scope = tuple[int, ...]

Evidence: TypeAlias = Mapping[Any, int] | None
"""Observed states, by index."""

SoftEvidence: TypeAlias = Mapping[Any, ArrayLike] | None
"""How likely the rest of the evidence is: one number for each state of a variable."""


@record(frozen=True, eq=False)
class Space:
    """Discrete variables: cards gives the number of states of each, in the order in which answers list them."""

    cards: Mapping[Any, int]

    @classmethod
    def of(cls, cards: Mapping[Any, Any]) -> Space:
        """Check the cards: whole numbers of at least 1."""
        checked = {}
        for node, card in cards.items():
            checked[node] = whole_number(card, f"The card of {node!r}")
        return cls(checked)

    @property
    def nodes(self) -> tuple[Node, ...]:
        """All variables, in the order given."""
        return tuple(self.cards)

    @cached_property
    def number(self) -> dict[Node, int]:
        """Numbers of the variables that have two states or more."""
        return numbered(node for node, card in self.cards.items() if card > 1)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Cards of the numbered variables."""
        return tuple(self.cards[node] for node in self.number)

    def scope(self, nodes: Iterable[Node], *, what: str = "A scope") -> tuple[Node, ...]:
        """Check that these are different variables of the space."""
        if isinstance(nodes, str):
            raise OptionError(f"{what} is {nodes!r}; expected a sequence of variables, such as ({nodes!r},).")
        scope = tuple(nodes)
        unknown = [node for node in scope if node not in self.cards]
        if unknown:
            near = meant(unknown[0], self.cards)
            raise OptionError(f"{what} names {listing(unknown)}.{near} The variables are: {listing(self.cards)}.")
        if len(set(scope)) != len(scope):
            raise OptionError(f"{what} names a variable twice: {listing(scope)}.")
        return scope

    def numbers(self, scope: Iterable[Node]) -> Scope:
        """Numbers of the variables of a scope, constants left out."""
        return tuple(self.number[node] for node in scope if node in self.number)

    def shape(self, scope: Iterable[Node]) -> tuple[int, ...]:
        """Cards of these variables."""
        return tuple(self.cards[node] for node in scope)

    def size(self, scope: Iterable[Node]) -> int:
        """Cells of a table over these variables."""
        return math.prod(self.shape(scope))

    def tables(self, scopes: Sequence[Sequence[Node]], factors: Sequence[ArrayLike | None], *, log: bool) -> list[Any]:
        """Check factors, one for each scope: their shapes, and that their numbers can be; None stays None."""
        if len(factors) != len(scopes):
            raise OptionError(f"{len(factors)} factors are given for {len(scopes)} scopes; give one for each.")
        tables = [None if values is None else np.asarray(values, dtype=np.float64) for values in factors]
        for scope, table in zip(scopes, tables, strict=True):
            if table is not None and table.shape != self.shape(scope):
                raise OptionError(
                    f"The factor of {tuple(scope)!r} has shape {table.shape}; expected {self.shape(scope)}, the cards "
                    "of its variables in that order."
                )
        if not _possible(np.concatenate([np.zeros(0), *(table.ravel() for table in tables if table is not None)]), log):
            wrong = next(
                scope
                for scope, table in zip(scopes, tables, strict=True)
                if table is not None and not _possible(table, log)
            )
            content = "NaN or +inf; logarithms are finite or -inf" if log else "numbers that are negative or not finite"
            raise OptionError(f"The factor of {tuple(wrong)!r} holds {content}.")
        return tables

    def evidence(self, evidence: Mapping[Any, Any] | None) -> dict[Node, int]:
        """Check observed states, given by their index."""
        checked = {}
        for node, state in (evidence or {}).items():
            if node in self.cards and type(state) is int and 0 <= state < self.cards[node]:
                checked[node] = state
                continue
            self.scope((node,), what="The evidence")
            checked[node] = whole_number(state, f"The observed state of {node!r}", None)
            if not 0 <= checked[node] < self.cards[node]:
                raise DataError(
                    f"The evidence puts {node!r} in state {state!r}, and its states are 0 to {self.cards[node] - 1}."
                )
        return checked

    def likelihoods(self, likelihoods: SoftEvidence) -> dict[Node, Floats]:
        """Check soft evidence: for each variable one number for each state, finite and not negative."""
        checked = {}
        for node, values in (likelihoods or {}).items():
            self.scope((node,), what="The likelihoods")
            vector = np.asarray(values, dtype=np.float64)
            if vector.shape != (self.cards[node],):
                raise DataError(
                    f"The likelihood of {node!r} has shape {vector.shape}; expected one number for each of its "
                    f"{self.cards[node]} states."
                )
            if not (np.isfinite(vector).all() and (vector >= 0.0).all()):
                raise DataError(f"The likelihood of {node!r} holds numbers that are negative or not finite.")
            checked[node] = vector
        return checked

    def rows(self, rows: ArrayLike, nodes: Sequence[Node] | None) -> tuple[tuple[Node, ...], NDArray[np.int32]]:
        """Check rows of evidence (n, d): codes of the variables `nodes`, all of them if None, -1 where missing."""
        scope = self.nodes if nodes is None else self.scope(nodes, what="The columns of the rows")
        codes = np.asarray(rows)
        if codes.ndim != 2 or codes.shape[1] != len(scope) or codes.dtype.kind not in "iub":
            raise DataError(
                f"Rows have shape {codes.shape} and type {codes.dtype}; expected whole numbers, (rows, {len(scope)})."
            )
        cards = np.array(self.shape(scope), np.int64)
        outside = (codes.min(axis=0, initial=0) < -1) | (codes.max(axis=0, initial=0) >= cards)
        if outside.any():
            column = int(np.argmax(outside))
            node = scope[column]
            row = int(np.argmax((codes[:, column] < -1) | (codes[:, column] >= cards[column])))
            raise DataError(
                f"Row {row} has the code {codes[row, column]} for {node!r}; its codes are 0 to {self.cards[node] - 1}, "
                "and -1 for a missing value."
            )
        return scope, np.ascontiguousarray(codes, dtype=np.int32)

    def row_factors(self, factors: Mapping[Any, ArrayLike] | None, rows: int) -> dict[tuple[Node, ...], Floats]:
        """Check log-factors of rows: for each scope an array (rows, cards of its variables)."""
        checked = {}
        for nodes, values in (factors or {}).items():
            scope = self.scope(nodes, what="A row factor")
            table = np.asarray(values, dtype=np.float64)
            if table.shape != (rows, *self.shape(scope)):
                raise DataError(
                    f"The row factor of {scope!r} has shape {table.shape}; expected {(rows, *self.shape(scope))}."
                )
            if np.isnan(table).any() or (table == np.inf).any():
                raise DataError(f"The row factor of {scope!r} holds NaN or +inf; use finite logarithms and -inf.")
            checked[scope] = table.reshape(rows, self.size(scope))
        return checked


def _possible(numbers: Floats, log: bool) -> bool:
    """Whether no number is NaN, infinite or negative; of logarithms, whether none is NaN or plus infinity."""
    low, high = numbers.min(initial=0.0), numbers.max(initial=0.0)  # NaN if any is.
    return bool(high < np.inf) and bool(low >= (-np.inf if log else 0.0))
