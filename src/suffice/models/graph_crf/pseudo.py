"""Pseudo-likelihood: the sum over nodes of log p(label | labels of all others), for graphs too wide for exact work.

It is concave in the weights, as the likelihood is, and its maximum tends to the same weights (Besag 1975). Each node is
a softmax distribution whose scores are those of its cliques with all other members at their labels.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from suffice.array_types import Floats, Ints
from suffice.models.graph_crf.graphs import Graphs
from suffice.models.graph_crf.structure import CliqueStructure


class PseudoLikelihood:
    """The pseudo-log-likelihood of labelled graphs, as a function of scores."""

    def __init__(self, structure: CliqueStructure, graphs: Graphs, codes: Ints, shares: Floats) -> None:
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

    def conditionals(self, scores: Sequence[Floats]) -> Floats:
        """Log-probabilities (nodes, K) of the label of each node, given those of all others."""
        count, size = len(self.codes), scores[0].shape[1]
        logs = np.zeros((count, size))
        for number, nodes, cells in self.visits:
            states = nodes[:, None] * size + np.arange(size)
            terms = np.take_along_axis(scores[number], cells, axis=1)
            logs += np.bincount(states.ravel(), terms.ravel(), count * size).reshape(count, size)
        tops = logs.max(axis=1, keepdims=True)
        return np.asarray(logs - (np.log(np.exp(logs - tops).sum(axis=1, keepdims=True)) + tops))

    def variances(self, structure: CliqueStructure, graphs: Graphs, scores: Sequence[Floats]) -> Floats:
        """The sum over nodes, weighted, of the variance of every feature (k,) where that node's label alone is open.

        Of a feature that takes the values m(a) under the labels a of a node it is ``E m^2 - (E m)^2``. The terms of an
        example are divided by one more than the most neighbours of any of its nodes: so many colours suffice to give
        neighbours different ones (greedily), and nodes of one colour share no clique.
        """
        from scipy.sparse import csr_array

        shares, owner = np.exp(self.conditionals(scores)), graphs.parts[0].owner
        count, size = shares.shape
        neighbours, most = np.zeros(count), np.zeros(len(graphs))
        for number, nodes, _ in self.visits:
            np.add.at(neighbours, nodes, structure.templates[number].size - 1.0)
        np.maximum.at(most, owner, neighbours)
        weight = self.share / (1.0 + most[owner])
        entries = (shares.ravel(), np.arange(count * size), size * np.arange(count + 1))
        means = csr_array(entries, shape=(count, count * size))
        variances = [((weight[:, None] * shares * (1.0 - shares)).T @ graphs.parts[0].features ** 2).ravel()]
        for number, template in list(enumerate(structure.templates))[1:]:
            visits = [(nodes, cells) for other, nodes, cells in self.visits if other == number]
            states = np.concatenate([np.zeros(0, np.int64), *(nodes for nodes, _ in visits)])[:, None] * size
            cells = np.concatenate([np.zeros((0, size), np.int64), *(cells for _, cells in visits)])
            places = (states + np.arange(size)).ravel(), cells.ravel()
            by_feature = np.zeros((template.rows, template.features))
            for feature in range(template.features):
                terms = np.tile(graphs.parts[number].features[:, feature], len(visits))
                values = csr_array((np.repeat(terms, size), places), shape=(count * size, template.cells))
                values = values if template.matrix is None else values @ csr_array(template.matrix)
                squares = (weight[:, None] * shares).ravel() @ values.power(2)
                by_feature[:, feature] = squares - weight @ (means @ values).power(2)
            variances.append(by_feature.ravel())
        return np.concatenate(variances)

    def __call__(self, scores: Sequence[Floats]) -> tuple[float, list[Floats]]:
        """Value, and its slope by the scores (c, cells) of each template."""
        logs = self.conditionals(scores)
        rows = np.arange(len(logs))
        own, surprise = logs[rows, self.codes], -np.exp(logs)
        surprise[rows, self.codes] += 1.0
        surprise *= self.share[:, None]
        slopes = [np.zeros_like(table) for table in scores]
        for number, nodes, cells in self.visits:
            slopes[number][np.arange(len(cells))[:, None], cells] += surprise[nodes]
        return float(self.share @ own), slopes
