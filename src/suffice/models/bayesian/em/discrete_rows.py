"""The discrete part of a block of rows, given log-densities of its real part: two exact ways to the same answers.

Arrays have the rows as their last axis, so that sums over a few states run along contiguous memory.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.engines.junction_tree import TreePlan, plan_tree

Scope = tuple[Hashable, ...]
Codes = Mapping[Hashable, NDArray[np.int32]]

#: Joint states of the variables with missing values up to which they are listed; beyond, a junction tree pays.
LISTED = 512


@dataclass(frozen=True)
class RowPosterior:
    """Posterior of a block of n rows.

    `log_evidence` (n,), distributions (cards, n) of scopes of unseen variables, and for each scope counted the expected
    weight of its joint states (cards).
    """

    log_evidence: Floats
    marginals: Mapping[Scope, Floats]
    counts: Mapping[Scope, Floats]


class ListedRows:
    """All joint states of the variables with missing values, side by side.

    `codes` (n,) by variable, -1 for a missing value; a variable without a column is hidden. Rows share which variables
    have missing values, or else a missing value of some rows is a free variable of all, held by its states where they
    are known.
    """

    def __init__(self, cards: Mapping[Hashable, int], scopes: Mapping[Hashable, Scope], codes: Codes, n: int) -> None:
        """Take the tables' scopes (parents, node) and the codes."""
        self.cards, self.scopes, self.n = cards, scopes, n
        self.free = tuple(name for name in cards if name not in codes or (codes[name] < 0).any())
        self.axis = {name: axis for axis, name in enumerate(self.free)}
        self.shape = tuple(cards[name] for name in self.free)
        self.codes = {name: known for name, known in codes.items() if name not in self.axis}
        self.held = self._held(codes)
        self._flat: dict[Scope, NDArray[np.intp]] = {}

    def _held(self, codes: Codes) -> Floats | None:
        """Log of 0 or 1 (shape, n): states that contradict what some rows show."""
        logs = None
        for name in self.free:
            if name in codes and (codes[name] >= 0).any():
                shown = codes[name]
                wrong = (shown >= 0) & (shown != np.arange(self.cards[name])[:, None])
                logs = np.zeros((*self.shape, self.n)) if logs is None else logs
                logs += self._spread(np.where(wrong, -np.inf, 0.0), (name,))
        return logs

    def _spread(self, values: Floats, scope: Scope) -> Floats:
        """Values (cards of free variables, n or 1), placed among all free variables."""
        order = sorted(range(len(scope)), key=lambda axis: self.axis[scope[axis]])
        turned = values.reshape(*(self.cards[name] for name in scope), values.shape[-1])
        turned = turned.transpose(*order, len(scope))
        sizes = [card if name in scope else 1 for name, card in zip(self.free, self.shape, strict=True)]
        return turned.reshape(*sizes, values.shape[-1])

    def _split(self, scope: Scope) -> tuple[Scope, Scope, NDArray[np.intp] | None]:
        """Known and free variables of a scope, and the number of each row among the joint states of the known."""
        known = tuple(name for name in scope if name in self.codes)
        if known and known not in self._flat:
            codes = tuple(self.codes[name].astype(np.intp) for name in known)
            self._flat[known] = np.ravel_multi_index(codes, tuple(self.cards[name] for name in known))
        return known, tuple(name for name in scope if name in self.axis), self._flat.get(known)

    def _factor(self, table: Floats, scope: Scope) -> Floats:
        """The log of a table at the rows (free cards, n or 1)."""
        known, free, flat = self._split(scope)
        order = [scope.index(name) for name in (*free, *known)]
        turned = table.transpose(order).reshape(*(self.cards[name] for name in free), -1)
        return turned if flat is None else turned[..., flat]

    def solve(
        self, logs: Mapping[Hashable, Floats], factors: Sequence[tuple[Scope, Floats]], asked: Sequence[Scope],
        counts: Sequence[Scope], weights: Floats,
    ) -> RowPosterior:  # fmt: skip
        """Condition on each row.

        logs: logarithms of the tables; factors: log-factors (joint states, n) by scope of free variables; asked: scopes
        of free variables; counts: scopes whose expected weights are wanted.
        """
        total = np.zeros((*self.shape, self.n)) if self.held is None else self.held.copy()
        for name, scope in self.scopes.items():
            _, free, _ = self._split(scope)
            total += self._spread(self._factor(logs[name], scope), free)
        for scope, values in factors:
            total += self._spread(values, scope)
        lead = tuple(range(len(self.shape)))
        top = total.max(axis=lead)
        top = np.where(np.isfinite(top), top, 0.0)
        total -= top
        np.exp(total, out=total)
        mass = total.sum(axis=lead)
        with np.errstate(divide="ignore"):
            evidence = top + np.log(mass)
        total /= np.where(mass > 0, mass, 1.0)
        marginals = {scope: self._marginal(total, scope) for scope in asked}
        return RowPosterior(evidence, marginals, {scope: self._counts(total, scope, weights) for scope in counts})

    def _marginal(self, distribution: Floats, scope: Scope) -> Floats:
        """The distribution (cards, n) of free variables, axes in the order asked."""
        rest = tuple(axis for name, axis in self.axis.items() if name not in scope)
        summed = distribution.sum(axis=rest) if rest else distribution
        left = [name for name in self.free if name in scope]
        return summed.transpose(*(left.index(name) for name in scope), len(left))

    def _counts(self, distribution: Floats, scope: Scope, weights: Floats) -> Floats:
        known, free, flat = self._split(scope)
        part = self._marginal(distribution, free).reshape(-1, self.n)
        size = math.prod(self.cards[name] for name in known)
        if flat is None:
            sums = (part @ weights)[:, None]
        else:
            sums = np.stack([np.bincount(flat, row * weights, size) for row in part])
        turned = sums.reshape(*(self.cards[name] for name in (*free, *known)))
        return turned.transpose([(*free, *known).index(name) for name in scope])


class TreeRows:
    """The same by a junction tree, for variables with too many joint states to list."""

    def __init__(self, cards: Mapping[Hashable, int], scopes: Mapping[Hashable, Scope], codes: Codes, n: int) -> None:
        """Take the tables' scopes (parents, node) and the codes."""
        self.cards, self.scopes, self.n = cards, scopes, n
        self.names = tuple(codes)
        self.rows = np.stack([codes[name] for name in self.names], axis=1) if codes else np.zeros((n, 0), np.int32)
        self.free = tuple(name for name in cards if name not in codes or (codes[name] < 0).any())
        self._plans: dict[tuple[Scope, ...], TreePlan] = {}

    def solve(
        self, logs: Mapping[Hashable, Floats], factors: Sequence[tuple[Scope, Floats]], asked: Sequence[Scope],
        counts: Sequence[Scope], weights: Floats,
    ) -> RowPosterior:  # fmt: skip
        """As `ListedRows.solve`."""
        scopes = tuple(dict.fromkeys([*(scope for scope, _ in factors), *asked, *counts]))
        if scopes not in self._plans:
            self._plans[scopes] = plan_tree(self.cards, [*self.scopes.values(), *scopes])
        tables: list[Any] = [logs[name] for name in self.scopes]
        tree = self._plans[scopes].load([*tables, *(None for _ in scopes)], log=True)
        joined: dict[Scope, Floats] = {}
        for scope, values in factors:
            shaped = np.moveaxis(values.reshape(*(self.cards[name] for name in scope), self.n), -1, 0)
            joined[scope] = joined[scope] + shaped if scope in joined else shaped
        rows = tree.plan.rows(self.rows, self.names, joined)  # Checked: they come back at every step of EM.
        answers = tree.solve_rows(rows, scopes=scopes)
        marginals = {scope: np.moveaxis(answers.marginals[scope], 0, -1) for scope in asked}
        sums = {scope: np.tensordot(weights, answers.marginals[scope], 1) for scope in counts}
        return RowPosterior(answers.log_partition, marginals, sums)


def discrete_rows(
    cards: Mapping[Hashable, int], scopes: Mapping[Hashable, Scope], codes: Codes, n: int
) -> ListedRows | TreeRows:
    """The way that suits the number of joint states of what has missing values."""
    free = [name for name in cards if name not in codes or (codes[name] < 0).any()]
    return (ListedRows if math.prod(cards[name] for name in free) <= LISTED else TreeRows)(cards, scopes, codes, n)
