"""Answers of a fitted field about new examples: the best labels, marginals, draws, log-likelihoods."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from itertools import pairwise
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np

from suffice.array_types import Floats, Ints
from suffice.checks import draw_count
from suffice.models.conditional_field.evaluation import Evaluation, evaluate
from suffice.models.conditional_field.labels import SEQUENCES, Words, listed_labels, read_labels
from suffice.models.conditional_field.marginals import Marginals


class Examples(Protocol):
    """Examples that were read: sequences of steps, graphs of nodes."""

    @property
    def offsets(self) -> Ints:
        """Where the steps, or nodes, of each example begin (n + 1,)."""

    def __len__(self) -> int: ...


E = TypeVar("E", bound=Examples)


class FieldDecoder(ABC, Generic[E]):
    """Weights of a field, asked about examples as a user gives them."""

    #: What messages call the things that have labels, and what has one label.
    words: ClassVar[Words] = SEQUENCES

    def __init__(self, labels: tuple[Any, ...]) -> None:
        """The labels, in the order of their codes."""
        self.labels = labels

    # -- what a shape says -------------------------------------------------------------------------------------------

    @abstractmethod
    def read(self, X: Iterable[Any]) -> E:
        """The examples that a user gives."""

    @abstractmethod
    def best_codes(self, examples: E) -> Ints:
        """Codes (steps,) of the most probable labels."""

    @abstractmethod
    def marginals(self, examples: E) -> list[Marginals]:
        """Probabilities of all labels (steps, K) of each example."""

    @abstractmethod
    def drawn_codes(self, examples: E, count: int, rng: np.random.Generator) -> Ints:
        """Draws (count, steps) of the labels of all examples."""

    @abstractmethod
    def log_likelihoods(self, examples: E, codes: Ints) -> Floats:
        """Log p(labels | example) of each example (n,), for codes (steps,)."""

    def given_labels(self, y: Iterable[Any] | None, examples: E) -> Any:
        """The labels that a user gives, as one list for each example."""
        return y

    # -- what follows ------------------------------------------------------------------------------------------------

    def predict(self, X: Iterable[Any]) -> list[list[Any]]:
        """The most probable labels of each example."""
        examples = self.read(X)
        return self.named(self.best_codes(examples), examples.offsets)

    def predict_marginals(self, X: Iterable[Any]) -> list[Marginals]:
        """Probabilities of all labels (steps, K) of each example."""
        return self.marginals(self.read(X))

    def sample_labels(self, X: Iterable[Any], n: int, rng: np.random.Generator) -> list[list[list[Any]]]:
        """For each example n draws of its labels."""
        examples = self.read(X)
        draws = [self.named(codes, examples.offsets) for codes in self.drawn_codes(examples, draw_count(n), rng)]
        return [[draw[number] for draw in draws] for number in range(len(examples))]

    def score_samples(self, X: Iterable[Any], y: Iterable[Any] | None) -> Floats:
        """Log p(labels | example) of each example (n,), natural logarithm."""
        examples = self.read(X)
        codes, _ = read_labels(self.given_labels(y, examples), examples.offsets, self.labels, words=self.words)
        return self.log_likelihoods(examples, codes)

    def evaluate(self, X: Iterable[Any], y: Iterable[Any] | None) -> Evaluation:
        """Precision, recall and F1 of each label; labels that the fit has not seen count as missed."""
        examples = self.read(X)
        truth = listed_labels(self.given_labels(y, examples), examples.offsets, words=self.words)
        return evaluate(truth, self.named(self.best_codes(examples), examples.offsets))

    def named(self, codes: Ints, offsets: Ints) -> list[list[Any]]:
        """The labels of codes (steps,), for each example."""
        return [[self.labels[code] for code in codes[a:b].tolist()] for a, b in spans(offsets)]


def spans(offsets: Ints) -> list[tuple[int, int]]:
    """Begin and end of each example."""
    return list(pairwise(offsets.tolist()))
