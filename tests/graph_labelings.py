"""Graph CRFs by enumeration: every labelling of a small graph, straight from the definition."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

import suffice as sf


def cliques_of(example: sf.GraphExample) -> dict[str, tuple[Any, Any]]:
    """Members and features of all cliques, by template."""
    nodes = np.asarray(example.nodes, float)
    found: dict[str, tuple[Any, Any]] = {"nodes": (np.arange(len(nodes))[:, None], nodes)}
    edges = np.asarray(example.edges)
    found["edges"] = (edges, np.ones((len(edges), 1)) if example.edge_features is None else example.edge_features)
    for name, given in example.cliques.items():
        members, features = given if isinstance(given, tuple) else (given, None)
        found[name] = (np.asarray(members), np.ones((len(members), 1)) if features is None else np.asarray(features))
    return found


def score_of(tables: dict[str, Any], example: sf.GraphExample, codes: Any) -> float:
    """The score of one labelling under weights as they act (K, ..., K, F)."""
    total = 0.0
    for name, (members, features) in cliques_of(example).items():
        for row, values in zip(members, features, strict=True):
            total += float(tables[name][tuple(codes[node] for node in row)] @ values)
    return total


def tables_of(model: sf.GraphCRF) -> dict[str, Any]:
    """The weights of a model as they act, by template."""
    names = ["nodes", "edges", *(model.get_params()["templates"] or {})]
    return {name: model.template_weights(name) for name in names}


class Enumerated:
    """The law of the labels of one example."""

    def __init__(self, tables: dict[str, Any], example: sf.GraphExample, labels: int) -> None:
        self.labels, self.nodes = labels, len(example.nodes)
        self.codes = np.array(list(itertools.product(range(labels), repeat=self.nodes)))
        self.scores = np.array([score_of(tables, example, codes) for codes in self.codes])
        top = self.scores.max()
        self.log_z = float(top + np.log(np.exp(self.scores - top).sum()))
        self.probabilities = np.exp(self.scores - self.log_z)

    def marginals(self) -> np.ndarray:
        """(nodes, labels)."""
        found = np.zeros((self.nodes, self.labels))
        for codes, p in zip(self.codes, self.probabilities, strict=True):
            found[np.arange(self.nodes), codes] += p
        return found

    def best(self) -> list[int]:
        """The most probable labelling."""
        return self.codes[int(np.argmax(self.scores))].tolist()  # type: ignore[no-any-return]


def features_of(example: sf.GraphExample, codes: Any, labels: int) -> np.ndarray:
    """The features (k,) of one labelling with full weights: for each template (labels, ..., labels, F), row by row."""
    parts = []
    for members, values in cliques_of(example).values():
        sums = np.zeros((*(labels,) * members.shape[1], values.shape[1]))
        for row, numbers in zip(members, values, strict=True):
            sums[tuple(codes[node] for node in row)] += numbers
        parts.append(sums.ravel())
    return np.concatenate(parts)
