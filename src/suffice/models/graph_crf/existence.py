"""Does the maximum exist? Labels of graphs that some direction of the weights separates from all others."""

from __future__ import annotations

import numpy as np

from suffice.array_types import Floats, Ints
from suffice.models.conditional_field.existence import SeparableLabels, separation
from suffice.models.conditional_field.priors import WeightPenalties
from suffice.models.conditional_field.shards import LabelSeparation
from suffice.models.graph_crf.decoding import best_codes, label_scores
from suffice.models.graph_crf.graphs import Graphs
from suffice.models.graph_crf.objective import Engine, GraphObjective
from suffice.models.graph_crf.structure import CliqueStructure


class SeparableGraphs(SeparableLabels):
    """Labels of graphs given, codes (nodes,), and all others: see `SeparableLabels`."""

    def __init__(self, structure: CliqueStructure, graphs: Graphs, codes: Ints, engine: Engine) -> None:
        """See the class."""
        self.structure, self.graphs, self.codes, self.engine = structure, graphs, codes, engine
        self.once = np.ones(len(graphs))
        self.observed = structure.observed(graphs, codes, self.once)

    def separation(self, direction: Floats) -> LabelSeparation:
        """What a direction (k,) does to the labels given."""
        return separation(self._extremes, direction)

    def _extremes(self, x: Floats) -> tuple[Floats, Floats]:
        """Scores of the labels given, and of the best labels, of each example (n,)."""
        scores, best = self.structure.scores(x, self.graphs), self._best(x)
        own, top = (label_scores(self.structure, self.graphs, scores, codes) for codes in (self.codes, best))
        return own, top

    def best_features(self, x: Floats) -> Floats:
        """The features (k,) of the best labels under x."""
        return self.structure.observed(self.graphs, self._best(x), self.once)

    def _best(self, x: Floats) -> Ints:
        return best_codes(self.structure, self.graphs, x, self.engine, np.random.default_rng(0))

    def first_slope(self) -> Floats:
        """The slope (k,) at weights of 0."""
        even = GraphObjective(self.structure, self.graphs, self.codes, self.once, WeightPenalties(), self.engine)
        return even.evaluate(np.zeros(self.structure.length))[1]

    def ends(self) -> tuple[Floats, Floats]:
        """Bounds (k,) of the sum of every feature over all labels: each clique at the cell that suits it best."""
        structure = self.structure
        if structure.size == 1:  # One label alone leaves nothing to choose, and no feature its cell.
            still = np.zeros(structure.length)
            return still, still
        low, high = [], []
        for template, part in zip(structure.templates, self.graphs.parts, strict=True):
            rises, falls = np.maximum(part.features, 0.0).sum(axis=0), np.minimum(part.features, 0.0).sum(axis=0)
            least, most = template.bounds
            high.append((np.outer(most, rises) + np.outer(least, falls)).ravel())
            low.append((np.outer(least, rises) + np.outer(most, falls)).ravel())
        return np.concatenate(low), np.concatenate(high)

    def ranges(self) -> Floats:
        """Bounds (k,) of the range of every feature over the labels of any one example."""
        bounds = []
        for template, part in zip(self.structure.templates, self.graphs.parts, strict=True):
            sums = np.zeros((len(self.graphs), template.features))
            np.add.at(sums, part.owner, np.abs(part.features))
            least, most = template.bounds
            bounds.append(np.outer(most - least, sums.max(axis=0, initial=0.0)).ravel())
        return np.concatenate(bounds)
