"""Rows of evidence: equal ones are worked on once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from suffice.array_types import Floats
from suffice.engines.space import Scope, Space
from suffice.errors import DataError
from suffice.graphs.nodes import Node
from suffice.kernels.choice import REPEATED

_WORD = 1 << 63


@dataclass(frozen=True)
class EvidenceRows:
    """Checked rows of evidence.

    codes (k, d): the distinct rows, columns for the numbered variables `variables`; label (n,): the distinct row that
    each row equals; factors: scopes with the log-factors (n, numbers) of the rows, with which no two rows are equal;
    constants (n,): log-factors without variables. calls: how often they are to be worked on, by estimate; the path of
    the kernels is chosen by it and by the rows alone, so that the digits do not depend on earlier work. None where
    nothing is known about it.
    """

    variables: tuple[int, ...]
    codes: NDArray[np.int32]
    label: NDArray[np.intp]
    factors: tuple[tuple[Scope, Floats], ...]
    constants: Floats
    calls: int | None = REPEATED

    @classmethod
    def of(
        cls,
        space: Space,
        rows: ArrayLike,
        nodes: Sequence[Node] | None,
        row_factors: Mapping[Any, ArrayLike] | None = None,
    ) -> EvidenceRows:
        """Check rows (n, d) of codes of the variables `nodes`, and log-factors (n, cards of the scope) by scope."""
        scope, codes = space.rows(rows, nodes)
        live = [index for index, node in enumerate(scope) if node in space.number]
        given = [(space.numbers(nodes), table) for nodes, table in space.row_factors(row_factors, len(codes)).items()]
        factors = tuple((numbers, table) for numbers, table in given if numbers)
        constants = sum((table[:, 0] for numbers, table in given if not numbers), np.zeros(len(codes)))
        codes = np.ascontiguousarray(codes[:, live])
        variables = space.numbers(scope)
        if factors:
            return cls(variables, codes, np.arange(len(codes)), factors, constants)
        firsts, label = distinct_rows(codes, [space.sizes[variable] for variable in variables])
        return cls(variables, codes[firsts], label, factors, constants)

    def weights(self, weights: ArrayLike | None, possible: NDArray[np.bool_]) -> Floats:
        """Check one weight for each row, and add up those of equal rows that are possible (n,); returns (k,)."""
        given = np.ones(len(self.label)) if weights is None else np.asarray(weights, dtype=np.float64)
        if given.shape != self.label.shape:
            raise DataError(f"Weights have shape {given.shape} for {len(self.label)} rows; give one for each row.")
        if not (np.isfinite(given).all() and (given >= 0.0).all()):
            raise DataError("Weights hold numbers that are negative or not finite.")
        return np.bincount(self.label, np.where(possible, given, 0.0), len(self.codes)).astype(np.float64, copy=False)


def distinct_rows(codes: NDArray[np.int32], cards: Sequence[int]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """A row of codes (n, d) for each distinct one (k,), and which of them each row equals (n,).

    Rows become numbers in mixed radix, as many columns to a word as fit; words are joined by the ranks of their values.
    """
    label = np.zeros(len(codes), np.intp)
    count = min(len(codes), 1)
    column = 0
    while column < len(cards) and len(codes):
        word = np.zeros(len(codes), np.int64)
        radix = 1
        while column < len(cards) and radix * (cards[column] + 1) * count < _WORD:
            word = word * (cards[column] + 1) + (codes[:, column] + 1)
            radix *= cards[column] + 1
            column += 1
        distinct, label = np.unique(label * radix + word, return_inverse=True)
        count = len(distinct)
    firsts = np.empty(count, np.intp)
    firsts[label[::-1]] = np.arange(len(codes))[::-1]
    return firsts, label
