"""What is read from a fitted chain: its weights, its predictions, how good they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from suffice.engines.label_scores import Packing
from suffice.errors import FileFormatError
from suffice.families.base import generator
from suffice.models.chain_crf.decoding import Decoder, Marginals
from suffice.models.chain_crf.evaluation import Evaluation, evaluate
from suffice.models.chain_crf.features import FeatureSpace, Sequences, read_sequences
from suffice.models.chain_crf.labels import code_of, listed_labels, read_labels, sequence_weights
from suffice.models.chain_crf.structure import Structure, check_lengths
from suffice.models.labelled import Labelled, read_walk, whole_number
from suffice.records import checked

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class StateWeight(NamedTuple):
    """The weight of a feature for a label."""

    feature: Any
    label: Any
    weight: float


class TransitionWeight(NamedTuple):
    """The weight of a step from one label to the next."""

    before: Any
    after: Any
    weight: float


@dataclass(frozen=True, eq=False)
class Trained:
    """A structure with its weights (k,), the relative norm of the slope there, and the number of updates so far.

    walk: vectors (k,) beside the weights from which `partial_fit` goes on.
    """

    structure: Structure
    weights: Floats
    gradient_norm: float
    updates: int = 0
    walk: Mapping[str, Floats] = field(default_factory=dict)

    def to_plain(self) -> dict[str, Any]:
        """Plain data for a file."""
        structure = self.structure
        return {
            "space": {
                "kind": structure.space.kind,
                "width": structure.space.width,
                "names": list(structure.space.names),
                "bias": structure.space.bias,
            },
            "labels": list(structure.labels),
            "pointers": structure.packing.pointers,
            "pair_labels": structure.packing.labels,
            "free": structure.free,
            "allowed": structure.allowed,
            "ends": structure.ends,
            "boundaries": structure.boundaries,
            "conditioned": structure.conditioned,
            "weights": self.weights,
            "gradient_norm": self.gradient_norm,
            "updates": self.updates,
            "walk": dict(self.walk),
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Trained:
        """Rebuild from plain data; parts that do not fit one another are an error."""
        space = plain["space"]
        labels = tuple(plain["labels"])
        packing = Packing(
            np.ascontiguousarray(plain["pointers"], np.int64),
            np.ascontiguousarray(plain["pair_labels"], np.int32),
            len(labels),
        )
        structure = Structure(
            checked(FeatureSpace(space["kind"], space["width"], tuple(space["names"]), space["bias"])),
            labels,
            packing,
            np.asarray(plain["free"], np.bool_),
            np.asarray(plain["allowed"], np.bool_),
            np.asarray(plain["ends"], np.bool_),
            bool(plain["boundaries"]),
            np.asarray(plain["conditioned"], np.int64),
        )
        weights = np.asarray(plain["weights"], np.float64)
        _check_parts(structure, weights)
        walk = read_walk(plain.get("walk", {}), len(weights), "ChainCRF")
        return cls(structure, weights, float(plain["gradient_norm"]), int(plain["updates"]), walk)


def _check_parts(structure: Structure, weights: Floats) -> None:
    """Refuse a file whose parts do not fit: compiled loops trust them."""
    size, packing, width = structure.size, structure.packing, structure.space.width
    pointers = packing.pointers
    fine = (
        structure.space.kind in ("named", "columns", "hashed")
        and structure.free.shape == structure.allowed.shape == (size, size)
        and structure.ends.shape == (2, size)
        and pointers.shape == (width + 1,)
        and pointers[0] == 0
        and pointers[-1] == len(packing.labels)
        and (np.diff(pointers) >= 0).all()
        and ((packing.labels >= 0) & (packing.labels < size)).all()
        and ((structure.conditioned >= 0) & (structure.conditioned < width)).all()
        and (structure.space.kind != "named" or len(structure.space.names) == width - structure.space.bias)
        and weights.shape == (structure.length,)
        and np.isfinite(weights).all()
    )
    if not fine:
        raise FileFormatError("The ChainCRF in this file is damaged: its weights and features do not fit one another.")


class Reading(Labelled):
    """The part of `ChainCRF` that reads what was learned."""

    # -- weights -----------------------------------------------------------------------------------------------------

    @property
    def feature_names_(self) -> tuple[Any, ...]:
        """The features, in the order of `state_weights_`: names, or numbers of columns."""
        return self._state.structure.space.labels

    @property
    def weight_names_(self) -> list[tuple[Any, ...]]:
        """The name of each weight: ("state", feature, label), ("transition", from, to), ("start", label) and so on."""
        return self._state.structure.names()

    @property
    def state_weights_(self) -> Floats:
        """Weights (feature, label); 0 for pairs that have none."""
        state = self._state
        return state.structure.packing.dense(state.structure.states(state.weights))

    @property
    def transition_weights_(self) -> Floats:
        """Weights (label, label), from rows to columns; 0 for pairs that have none, -inf for impossible ones."""
        return self._state.structure.transitions(self._state.weights)

    @property
    def start_weights_(self) -> Floats:
        """Weights of first labels (label,): 0 without `boundaries`, -inf for impossible ones."""
        return np.asarray(self._state.structure.end_weights(self._state.weights)[0])

    @property
    def end_weights_(self) -> Floats:
        """Weights of last labels (label,)."""
        return np.asarray(self._state.structure.end_weights(self._state.weights)[1])

    @property
    def conditioned_transition_weights_(self) -> Floats:
        """Weights (feature, label, label) of the features in `conditioned_transitions`."""
        return self._state.structure.conditioned_weights(self._state.weights)

    @property
    def gradient_norm_(self) -> float:
        """The norm of the objective's slope at the result, divided by that of the weights (at least 1)."""
        return self._state.gradient_norm

    def top_features(self, n: int = 20, *, label: Any = None, lowest: bool = False) -> list[StateWeight]:
        """The n largest (or lowest) state weights, of one label or of all: a table of feature, label and weight."""
        n = whole_number(n, "n", 0)
        structure, weights = self._state.structure, self._state.structure.states(self._state.weights)
        places = np.arange(len(weights))
        if label is not None:
            places = places[structure.packing.labels == code_of(label, structure.labels)]
        order = places[np.argsort(weights[places] if lowest else -weights[places], kind="stable")][:n]
        names, features = structure.space.labels, structure.packing.features
        return [
            StateWeight(names[features[p]], structure.labels[structure.packing.labels[p]], float(weights[p]))
            for p in order
        ]

    def top_transitions(self, n: int = 20, *, lowest: bool = False) -> list[TransitionWeight]:
        """The n largest (or lowest) transition weights: a table of before, after and weight."""
        n = whole_number(n, "n", 0)
        structure = self._state.structure
        matrix = structure.transitions(self._state.weights)
        cells = np.argwhere(structure.free)
        values = matrix[structure.free]
        order = np.argsort(values if lowest else -values, kind="stable")[:n]
        labels = structure.labels
        return [TransitionWeight(labels[i], labels[j], float(matrix[i, j])) for i, j in cells[order].tolist()]

    # -- predictions -------------------------------------------------------------------------------------------------

    def predict(self, X: Any) -> list[list[Any]]:
        """The most probable path of labels of each sequence (Viterbi)."""
        return self._decoder().paths(self._sequences(X))

    def predict_marginals(self, X: Any) -> list[Marginals]:
        """The probability of every label at every step, given the whole sequence: an array (steps, label) each.

        Rows are read by place or by label: ``marginals[0][2]["B-NP"]``.
        """
        return self._decoder().marginals(self._sequences(X))

    def predict_k_best(self, X: Any, k: int = 5) -> list[list[tuple[list[Any], float]]]:
        """The k most probable paths of each sequence (or all there are) with their log-probabilities, best first."""
        return self._decoder().best(self._sequences(X), k)

    def sample_labels(self, X: Any, n: int = 1, *, random_state: Any = None) -> list[list[list[Any]]]:
        """For each sequence n paths of labels drawn from p(y | x)."""
        return self._decoder().samples(self._sequences(X), n, generator(random_state))

    # -- how good ----------------------------------------------------------------------------------------------------

    def log_likelihoods(self, X: Any, y: Any) -> Floats:
        """Log p(y | x) of each sequence (n,), natural logarithm."""
        sequences = self._sequences(X)
        codes, _ = read_labels(y, sequences.offsets, self.labels_)
        return self._decoder().log_likelihoods(sequences, codes)

    def log_likelihood(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The sum over sequences of log p(y | x), natural logarithm."""
        found = self.log_likelihoods(X, y)
        return float(sequence_weights(sample_weight, len(found)) @ found)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Mean log-likelihood of a sequence (weighted), natural logarithm; `accuracy` counts labels instead."""
        found = self.log_likelihoods(X, y)
        return float(np.average(found, weights=sequence_weights(sample_weight, len(found))))

    def accuracy(self, X: Any, y: Any) -> float:
        """The share of steps whose label is predicted right."""
        return self.evaluate(X, y).accuracy

    def evaluate(self, X: Any, y: Any) -> Evaluation:
        """Token accuracy, precision, recall and F1 of each label and, for chunk labels, of chunks.

        Labels that the fit has not seen count as missed.
        """
        sequences = self._sequences(X)
        return evaluate(listed_labels(y, sequences.offsets), self._decoder().paths(sequences))

    def _sequences(self, X: Any) -> Sequences:
        found = read_sequences(X, space=self._state.structure.space).without_zeros()
        check_lengths(self._state.structure, found.offsets)
        return found

    def _decoder(self) -> Decoder:
        return Decoder(self._state.structure, self._state.weights, self._options["threads"])
