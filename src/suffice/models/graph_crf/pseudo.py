"""Pseudo-likelihood: the sum over nodes of log p(label | labels of all others), for graphs too wide for exact work.

It is concave in the weights, as the likelihood is, and its maximum tends to the same weights (Besag 1975). Each node is
a softmax law whose scores are those of its cliques with all other members at their labels.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from suffice.models.graph_crf.graphs import Graphs
from suffice.models.graph_crf.structure import GraphStructure

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class PseudoLikelihood:
    """The pseudo-log-likelihood of labelled graphs, as a function of scores."""

    def __init__(self, structure: GraphStructure, graphs: Graphs, codes: Ints, shares: Floats) -> None:
        """Codes (nodes,) of the labels; shares (n,): how often each example counts."""
        self.codes, self.share = codes, shares[graphs.parts[0].owner]
        labels = np.arange(structure.size)
        #: For each template and member: the nodes (c,), and the cells (c, K) when only that member changes its label.
        self.visits: list[tuple[int, Ints, Ints]] = []
        for number, template in enumerate(structure.templates):
            members = graphs.places(number)
            if not len(members):
                continue
            cells = structure.cells(number, members, codes)
            for axis in range(template.size):
                stride = structure.size ** (template.size - 1 - axis)
                free = cells - codes[members[:, axis]] * stride
                self.visits.append((number, members[:, axis], free[:, None] + labels * stride))

    def __call__(self, scores: Sequence[Floats]) -> tuple[float, list[Floats]]:
        """Value, and its slope by the scores (c, cells) of each template."""
        count, size = len(self.codes), scores[0].shape[1]
        logs = np.zeros((count, size))
        for number, nodes, cells in self.visits:
            found = np.take_along_axis(scores[number], cells, axis=1)
            states = nodes[:, None] * size + np.arange(size)
            logs += np.bincount(states.ravel(), found.ravel(), count * size).reshape(count, size)
        tops = logs.max(axis=1, keepdims=True)
        shares = np.exp(logs - tops)
        sums = shares.sum(axis=1, keepdims=True)
        rows = np.arange(len(logs))
        own = logs[rows, self.codes] - (np.log(sums) + tops)[:, 0]
        surprise = -shares / sums
        surprise[rows, self.codes] += 1.0
        surprise *= self.share[:, None]
        slopes = [np.zeros_like(table) for table in scores]
        for number, nodes, cells in self.visits:
            at = np.arange(len(cells))[:, None]
            slopes[number][at, cells] += surprise[nodes]
        return float(self.share @ own), slopes
