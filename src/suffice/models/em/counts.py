"""The E-step of discrete variables: expected counts over the distinct rows, by a junction tree."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.engines.junction_tree import JunctionTree, TreePlan
from suffice.engines.rows import EvidenceRows
from suffice.graphs.nodes import Node
from suffice.models.em.rows import ObservedRows, code_matrix
from suffice.sources.reduction import Answers


@dataclass(frozen=True, eq=False)
class TreeCounts:
    """The E-step of discrete rows as a question to them, wherever they are; its parameters are a loaded tree.

    `keep` says that the rows as the tree takes them are made once: for one shard in this process.
    """

    threads: int = 1
    keep: bool = False

    def __getstate__(self) -> dict[str, Any]:
        """What is kept stays."""
        return {"threads": self.threads, "keep": self.keep}

    @cached_property
    def _kept(self) -> dict[tuple[int, int], ExpectedCounts]:
        """By the identity of plan and rows, which are held as long as this is."""
        return {}

    def __call__(self, rows: ObservedRows, tree: JunctionTree) -> Answers:
        """Sum of the log masses that agree with the rows, and the expected counts of all scopes of the tree."""
        key = id(tree.plan), id(rows)
        counts = self._kept.get(key)
        if counts is None:
            names, codes = code_matrix(rows)
            counts = ExpectedCounts(tree.plan, names, codes, rows.weights, self.threads)
            if self.keep:
                self._kept[key] = counts
        mass, tables = counts(tree)
        return Answers((mass, *tables))


@dataclass(frozen=True)
class ExpectedCounts:
    """Sums over rows of weight times P(scope | row), for all scopes of a plan.

    `rows` (k, d) hold the codes of the variables `names`, -1 for a missing value, with `weights` (k,). Rows of equal
    codes are worked on once.
    """

    plan: TreePlan
    names: tuple[Node, ...]
    rows: NDArray[np.int32]
    weights: Floats
    threads: int = 1

    @cached_property
    def _checked(self) -> EvidenceRows:
        return self.plan.rows(self.rows, self.names)

    def __call__(self, tree: JunctionTree) -> tuple[float, list[Floats]]:
        """Sum of weight times the log of the mass that agrees with each row, and the expected counts of all scopes.

        tree: the plan with its factors. The first is the observed log-likelihood where all factors together have the
        mass 1, and else larger by the weight of all rows times log Z.
        """
        answer = tree.expect(self._checked, weights=self.weights, threads=self.threads)
        seen = self.weights > 0
        return float(self.weights[seen] @ answer.log_partition[seen]), list(answer.tables)
