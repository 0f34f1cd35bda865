"""What is read from a fitted graph CRF: its weights, its predictions, how good they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.errors import DataError, FileFormatError, OptionError, SamplingWarning, SizeError, warn
from suffice.families.base import generator
from suffice.models.chain_crf.decoding import Marginals
from suffice.models.chain_crf.evaluation import Evaluation, evaluate
from suffice.models.chain_crf.labels import counted, listed_labels, read_labels, sequence_weights
from suffice.models.graph_crf.decoding import beliefs_of, best_codes, drawn_codes, label_scores
from suffice.models.graph_crf.example import GraphExample
from suffice.models.graph_crf.graphs import EDGES, NODES, Graphs, read_graphs
from suffice.models.graph_crf.inference import Beliefs
from suffice.models.graph_crf.objective import Engine
from suffice.models.graph_crf.routes import spans
from suffice.models.graph_crf.sampling import SampledMarginals, SampledNodes
from suffice.models.graph_crf.structure import Structure, make_structure
from suffice.models.labelled import Labelled, read_walk, whole_number

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: What messages call the things that have labels, and the places of their labels.
EXAMPLES = ("example", "node")


@dataclass(frozen=True, eq=False)
class Trained:
    """A structure with its weights (k,), the forms of its templates, the relative slope there, and updates so far.

    walk: vectors (k,) beside the weights from which `partial_fit` goes on.
    """

    structure: Structure
    weights: Floats
    forms: Mapping[str, Any]
    gradient_norm: float
    updates: int = 0
    walk: Mapping[str, Floats] = field(default_factory=dict)

    def tabulated(self) -> dict[str, Any]:
        """The forms of the templates, with functions as the numbers they gave."""
        found = {}
        for template in self.structure.templates[1:]:
            form = self.forms[template.name]
            if callable(form) and template.matrix is not None:
                form = template.matrix.reshape(*template.shape, template.rows)
            found[template.name] = form
        return found

    def to_plain(self) -> dict[str, Any]:
        """Plain data for a file."""
        return {
            "labels": list(self.structure.labels),
            "widths": {name: list(width) for name, width in self.structure.widths.items()},
            "forms": self.tabulated(),
            "weights": self.weights,
            "gradient_norm": self.gradient_norm,
            "updates": self.updates,
            "walk": dict(self.walk),
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Trained:
        """Rebuild from plain data; parts that do not fit one another are an error."""
        try:
            widths = {str(name): (int(size), int(width)) for name, (size, width) in plain["widths"].items()}
            forms = dict(plain["forms"])
            rest = {name: form for name, form in forms.items() if name != EDGES}
            structure = make_structure(tuple(plain["labels"]), widths, forms[EDGES], rest)
        except (KeyError, OptionError, SizeError, TypeError, ValueError) as error:
            raise FileFormatError(f"The GraphCRF in this file is damaged: {error}.") from error
        weights = np.asarray(plain["weights"], np.float64)
        if weights.shape != (structure.length,) or not np.isfinite(weights).all():
            raise FileFormatError("The GraphCRF in this file is damaged: its weights do not fit its templates.")
        walk = read_walk(plain.get("walk", {}), len(weights), "GraphCRF")
        return cls(structure, weights, forms, float(plain["gradient_norm"]), int(plain["updates"]), walk)


class Reading(Labelled):
    """The part of `GraphCRF` that reads what was learned."""

    # -- weights -----------------------------------------------------------------------------------------------------

    @property
    def weight_names_(self) -> list[tuple[Any, ...]]:
        """The name of each weight: ("nodes", label, feature), ("edges", label, label, feature) and so on."""
        return self._state.structure.names()

    @property
    def node_weights_(self) -> Floats:
        """Weights (label, feature) of the nodes."""
        return self.template_weights(NODES)

    @property
    def edge_weights_(self) -> Floats:
        """Weights (label, label, feature) of the edges, as they act: an edge scores ``edge_weights_[a, b] @ f``.

        With ``edge_weights="symmetric"`` the two labels may change places, with "equal" all weights of two different
        labels are 0 and those of two equal ones do not depend on the label.
        """
        return self.template_weights(EDGES)

    def template_weights(self, name: str) -> Floats:
        """The weights of a template as they act, (label, ..., label, feature)."""
        state = self._state
        for number, template in enumerate(state.structure.templates):
            if template.name == name:
                return template.whole(state.structure.block(state.weights, number))
        names = [template.name for template in state.structure.templates]
        raise OptionError(f"There is no template {name!r}; the templates are {names}.")

    @property
    def gradient_norm_(self) -> float:
        """The norm of the objective's slope at the result, divided by that of the weights (at least 1)."""
        return self._state.gradient_norm

    # -- predictions -------------------------------------------------------------------------------------------------

    def predict(self, X: Any) -> list[list[Any]]:
        """The most probable labels of each example, one for each node.

        They are exact where the graph allows it; of graphs too wide, the best that loopy belief propagation and
        annealing find.
        """
        graphs = self._graphs(X)
        return self._named(self._best(graphs), graphs.offsets)

    def predict_marginals(self, X: Any) -> list[Marginals]:
        """The probability of every label at every node, given the whole example: an array (nodes, label) each.

        Those of Gibbs sampling (`inference="gibbs"`, graphs too wide) have `standard_errors` (nodes, label), an
        `effective_sample_size` and an `r_hat`; a warning says where their chains do not mix.
        """
        graphs = self._graphs(X)
        found, sampled = self._beliefs(graphs)
        if sampled is None:
            return [Marginals(found.tables[0][a:b], self.labels_) for a, b in spans(graphs.offsets)]
        places = enumerate(spans(graphs.offsets))
        return [SampledMarginals.drawn(found.tables[0][a:b], self.labels_, sampled, n, (a, b)) for n, (a, b) in places]

    def sample_labels(self, X: Any, n: int = 1, *, random_state: Any = None) -> list[list[list[Any]]]:
        """For each example n draws of its labels from p(labels | example)."""
        graphs, state = self._graphs(X), self._state
        n, rng = whole_number(n, "n", 0), generator(random_state)
        codes, said = drawn_codes(state.structure, graphs, state.weights, self._engine(), n, rng)
        if said is not None and said.words():
            warn(f"The labels drawn are not to be relied on: {said.words()}.", SamplingWarning)
        return [
            [[self.labels_[code] for code in draw[a:b].tolist()] for draw in codes] for a, b in spans(graphs.offsets)
        ]

    def log_partition(self, example: GraphExample) -> float:
        """Log Z of one example: the log of the sum over all labels of exp(score), natural logarithm.

        Of a graph too wide for exact inference it is Bethe's approximation, and a warning says so.
        """
        return float(self.log_partitions([example])[0])

    def log_partitions(self, X: Any) -> Floats:
        """Log Z of each example (n,)."""
        return self._beliefs(self._graphs(X), partition=True)[0].log_partition

    # -- how good ----------------------------------------------------------------------------------------------------

    def log_likelihoods(self, X: Any, y: Any) -> Floats:
        """Log p(labels | example) of each example (n,), natural logarithm."""
        graphs, state = self._graphs(X), self._state
        codes, _ = read_labels(flat_labels(y, graphs), graphs.offsets, self.labels_, words=EXAMPLES)
        scores = state.structure.scores(state.weights, graphs)
        own = label_scores(state.structure, graphs, scores, codes)
        return own - self._beliefs(graphs, partition=True)[0].log_partition

    def log_likelihood(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The sum over examples of log p(labels | example), natural logarithm."""
        found = self.log_likelihoods(X, y)
        return float(sequence_weights(sample_weight, len(found), words=EXAMPLES) @ found)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Mean log-likelihood of an example (weighted), natural logarithm; `accuracy` counts labels instead."""
        found = self.log_likelihoods(X, y)
        return float(np.average(found, weights=sequence_weights(sample_weight, len(found), words=EXAMPLES)))

    def accuracy(self, X: Any, y: Any) -> float:
        """The share of nodes whose label is predicted right."""
        return self.evaluate(X, y).accuracy

    def evaluate(self, X: Any, y: Any) -> Evaluation:
        """The share of nodes predicted right, and precision, recall and F1 of each label.

        Labels that the fit has not seen count as missed.
        """
        graphs = self._graphs(X)
        truth = listed_labels(flat_labels(y, graphs), graphs.offsets, words=EXAMPLES)
        return evaluate(truth, self._named(self._best(graphs), graphs.offsets))

    # -- behind the questions ----------------------------------------------------------------------------------------

    def _graphs(self, X: Any) -> Graphs:
        structure = self._state.structure
        return read_graphs(X, [template.name for template in structure.templates[2:]], structure.widths)

    def _engine(self) -> Engine:
        return Engine(self._options["inference"], self._options["max_cells"], self._options["threads"])

    def _best(self, graphs: Graphs) -> Ints:
        state, rng = self._state, generator(self._options["random_state"])
        return best_codes(state.structure, graphs, state.weights, self._engine(), rng)

    def _beliefs(self, graphs: Graphs, *, partition: bool = False) -> tuple[Beliefs, SampledNodes | None]:
        state, rng = self._state, generator(self._options["random_state"])
        found, wide, sampled = beliefs_of(state.structure, graphs, state.weights, self._engine(), rng)
        if sampled is not None and not partition and sampled.words():
            warn(f"The sampled marginals are not to be relied on: {sampled.words()}.", SamplingWarning)
        words = []
        if partition and len(wide):
            words.append(
                f"{counted(len(wide), 'graph')} {'is' if len(wide) == 1 else 'are'} too wide for exact inference, "
                f"example {int(wide[0])} the first: the log partition is Bethe's approximation."
            )
        if not found.converged and (partition or self._options["inference"] != "gibbs"):
            words.append("Loopy belief propagation did not come to rest; use inference='gibbs' for marginals.")
        if words:
            warn(" ".join(words))
        return found, sampled

    def _named(self, codes: Ints, offsets: Ints) -> list[list[Any]]:
        labels = self.labels_
        return [[labels[code] for code in codes[a:b].tolist()] for a, b in spans(offsets)]


def flat_labels(y: Any, graphs: Graphs) -> Any:
    """Labels with those of pictures, arrays of several axes, laid out row by row; a lone node may have a lone label."""
    if isinstance(y, str | bytes) or not hasattr(y, "__iter__"):
        raise DataError(f"y is a {type(y).__name__}; expected the labels of each example in a list.")
    given = list(y)
    if (np.diff(graphs.offsets) == 1).all() and not any(np.ndim(one) for one in given):
        return [[one] for one in given]
    for number, one in enumerate(given):
        rows = one if isinstance(one, list | tuple) else ()
        if (
            rows
            and all(isinstance(row, list | tuple | np.ndarray) for row in rows)
            and _nodes(graphs, number) > len(rows)
        ):
            raise DataError(
                f"Example {number} of y is a list of lists; expected one label for each node, or an array (height, "
                "width) of the labels of a picture: np.array(labels)."
            )
    return [one.ravel() if isinstance(one, np.ndarray) and one.ndim > 1 else one for one in given]


def _nodes(graphs: Graphs, example: int) -> int:
    return int(graphs.offsets[example + 1] - graphs.offsets[example]) if example < len(graphs) else 0
