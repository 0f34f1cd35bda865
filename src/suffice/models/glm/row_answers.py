"""What rows answer at their predictors, a mean or probabilities of labels, and how that follows the parameters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from suffice.array_types import Floats
from suffice.models.glm.fitted import GLMFitted
from suffice.models.glm.links import find_link
from suffice.models.glm.softmax import softmax

#: Steps of central differences, in units of the size of what is changed.
STEP = 6e-6


@dataclass(frozen=True, eq=False)
class MeanAnswers:
    """Answers p (n, C) of rows at predictors eta (n, q): the mean, a probability for each label, or a vector.

    Of ordered labels a predictor is a threshold less the linear predictor, which they share.
    """

    fitted: GLMFitted

    def predictors(self, X: Floats, offset: Floats | None) -> Floats:
        """Eta (n, q) of rows of the design."""
        eta = self._linear(X, offset)
        return self.fitted.thresholds - eta if len(self.fitted.thresholds) else eta

    def along(self, moved: Floats, offset: Floats | None) -> Floats:
        """The derivative of eta (n, q) in a column, by those of the design and of the offset."""
        along = self._linear(moved, offset)
        held = len(self.fitted.thresholds)
        return np.repeat(-along, held, axis=1) if held else along

    def _linear(self, X: Floats, offset: Floats | None) -> Floats:
        eta = X @ self.fitted.beta
        return eta if offset is None else eta + offset[:, None]

    def values(self, eta: Floats) -> Floats:
        """P (n, C)."""
        fitted = self.fitted
        if fitted.family == "multivariate_gaussian":
            return eta
        if fitted.reference is not None:
            return np.asarray(softmax(np.insert(eta, fitted.reference, 0.0, axis=1)))
        mean = find_link(fitted.link).mean(eta)
        if not len(fitted.thresholds):
            return mean
        return np.diff(np.column_stack((np.zeros(len(eta)), mean, np.ones(len(eta)))), axis=1)

    def slopes(self, eta: Floats) -> Floats:
        """The derivatives of p in eta (n, C, q)."""
        fitted, (count, size) = self.fitted, eta.shape
        if fitted.family == "multivariate_gaussian":
            return np.broadcast_to(np.eye(size), (count, size, size))
        if fitted.reference is not None:
            shares, classes = self.values(eta), size + 1
            own = np.delete(np.arange(classes), fitted.reference)
            same = np.arange(classes)[:, None] == own
            return np.asarray(shares[:, :, None] * (same - shares[:, None, own]))
        slope = find_link(fitted.link).slope(eta)
        if not len(fitted.thresholds):
            return slope[:, :, None]
        slopes = np.zeros((count, size + 1, size))
        numbers = np.arange(size)
        slopes[:, numbers, numbers] = slope
        slopes[:, numbers + 1, numbers] = -slope
        return slopes

    def bent(self, eta: Floats, along: Floats) -> Floats:
        """The derivatives in eta (n, C, q) of the slopes along a direction (n, q)."""
        if self.fitted.family == "multivariate_gaussian":
            return np.zeros((len(eta), eta.shape[1], eta.shape[1]))
        columns = []
        for number in range(eta.shape[1]):
            step = np.zeros_like(eta)
            step[:, number] = STEP * np.maximum(1.0, np.abs(eta[:, number]))
            high, low = eta + step, eta - step
            ends = [np.einsum("ncq,nq->nc", self.slopes(end), along) for end in (high, low)]
            columns.append((ends[0] - ends[1]) / (high - low)[:, number, None])
        return np.stack(columns, axis=2)

    def gathered(self, slopes: Floats, X: Floats, weights: Floats, *, constants: bool = True) -> Floats:
        """Sums over rows of derivatives in eta as derivatives in the parameters (C, K), in the order of the names.

        constants: whether the thresholds enter, as they do where X is no derivative itself.
        """
        whole = np.einsum("n,ncq,nk->cqk", weights, slopes, X)
        if not len(self.fitted.thresholds):
            return np.asarray(whole.reshape(len(whole), -1))
        ahead = np.einsum("n,ncq->cq", weights, slopes) * constants
        return np.concatenate((ahead, -whole.sum(axis=1)), axis=1)
