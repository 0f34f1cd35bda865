"""The objective of a conditional random field: the SUM over examples of log p(labels | example), less the penalties.

Its slope is the observed less the expected sum of every feature, ``sum_i phi(y_i, x_i) - E[phi(y, x_i) | x_i]``: the
expectation is over labels, with what is known about the example as it is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.models.conditional_field.priors import WeightPenalties
from suffice.solvers.gradient import pseudo_gradient


class FieldStructure(Protocol):
    """The labels and the weights of a field."""

    @property
    def labels(self) -> tuple[Any, ...]:
        """The labels, in the order of their codes."""

    @property
    def size(self) -> int:
        """The number of labels, K."""

    @property
    def length(self) -> int:
        """The number of weights, k."""

    def names(self) -> list[tuple[Any, ...]]:
        """The name of each weight."""

    def arrays(self) -> list[NDArray[Any]]:
        """What tells it from others."""


S = TypeVar("S", bound=FieldStructure)


class FieldObjective(ABC, Generic[S]):
    """A log-likelihood of labels, or what takes its place, less the penalties of a prior.

    `features` (k,) are the sums over the labels given of those examples whose likelihood is exact; `weight` is how many
    examples there are.
    """

    structure: S
    features: Floats
    penalties: WeightPenalties
    weight: float

    @property
    def exact(self) -> bool:
        """Whether every expectation is exact."""
        return True

    @property
    def concave(self) -> bool:
        """Whether what was maximised is concave and known, so that a prior bounds what is left of it."""
        return True

    @property
    def at_most_one(self) -> bool:
        """Whether what takes the place of a probability is at most 1, so that with a prior there is a maximum."""
        return True

    @property
    def engine_in_words(self) -> str:
        """How expectations were computed that are not exact; empty where all are."""
        return ""

    def observed(self) -> Floats:
        """The features (k,) of the labels of all examples, weighted and summed."""
        return self.features

    @abstractmethod
    def evaluate(self, weights: Floats) -> tuple[float, Floats]:
        """The log-likelihood, a sum over examples, natural logarithm, and its slope (k,)."""

    @abstractmethod
    def variance(self, weights: Floats) -> Floats:
        """A bound from below of the variance of the sum of every feature (k,) over labels drawn from the model.

        The variance itself takes the covariance of all pairs of steps. Instead one label is open at a time, the others
        stand as given: of labels no two of which share a clique the terms add up, and by the law of total variance
        their sum is no more than the variance, in the mean over labels. The terms of all labels are divided by the
        number of such sets that the labels can be split into: 2 for a chain.
        """

    def log_likelihood(self, weights: Floats) -> float:
        """The sum over examples, natural logarithm."""
        return self.evaluate(weights)[0]

    def smooth(self, weights: Floats) -> tuple[float, Floats]:
        """Value and slope (k,) of the log-likelihood less the Gaussian penalty."""
        total, slope = self.evaluate(weights)
        taken, prior_gradient = self.penalties.smooth(weights)
        return total - taken, slope - prior_gradient


def relative_gap(x: Floats, slopes: Floats) -> float:
    """The norm of the slopes relative to that of the weights, at least 1."""
    return float(np.linalg.norm(slopes)) / max(1.0, float(np.linalg.norm(x)))


def slopes(objective: FieldObjective[Any], x: Floats) -> tuple[float, Floats, Floats]:
    """Value and slope of the whole objective, and the slope of its log-likelihood.

    With a Laplace prior the slope is the one of least size.
    """
    value, gradient = objective.smooth(x)
    likelihood = gradient + objective.penalties.smooth(x)[1]
    laplace = objective.penalties.laplace
    if laplace is None:
        return value, gradient, likelihood
    return value - laplace.value(x), pseudo_gradient(x, gradient, laplace.rate), likelihood


def measured(objective: FieldObjective[Any], x: Floats) -> tuple[float, float]:
    """Value and relative gap at x."""
    value, slope, _ = slopes(objective, x)
    return value, relative_gap(x, slope)
