"""Questions about every row to a Gaussian graph: its density, and what it says about one node."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from suffice.models.evidence import RowDistributions
from suffice.models.row_answers import PREDICTION, CodedColumns, RowNumber


class RowDensity(RowNumber):
    """Log density of each row; what it lacks is integrated out."""

    def __call__(self, columns: CodedColumns, n: int) -> RowDistributions:
        """Of rows (n,)."""
        return self.fitted.joint.log_prob(columns), np.ones(n, dtype=bool)


@dataclass(frozen=True, eq=False)
class RowMean(RowNumber):
    """The mean of a node given the other columns of each row; what a row lacks is integrated out."""

    column = PREDICTION
    target: Hashable

    def __call__(self, columns: CodedColumns, n: int) -> RowDistributions:
        """Of rows (n,)."""
        nodes = self.fitted.nodes
        rows = np.full((n, len(nodes)), np.nan)
        for column, name in enumerate(nodes):
            if name in columns and name != self.target:
                rows[:, column] = columns[name]
        means = self.fitted.joint.distribution.conditional_means(rows)[0]
        return means[:, nodes.index(self.target)], np.ones(n, dtype=bool)
