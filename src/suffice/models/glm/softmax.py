"""The multinomial response: ``p(y = k) proportional to exp(eta_k)``, with eta = 0 for the reference class."""

from __future__ import annotations

import numpy as np

from suffice.array_types import Floats


def softmax(eta: Floats) -> Floats:
    """Probabilities (n, classes) of linear predictors (n, classes); no exponent is above 0."""
    shares = np.exp(eta - eta.max(axis=1, keepdims=True))
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


class SoftmaxDistribution:
    """Row distribution of `classes` labels; the last code is the reference, whose linear predictor is 0."""

    def __init__(self, classes: int) -> None:
        """Keep their number."""
        self.classes = classes

    def __call__(self, eta: Floats, y: Floats) -> tuple[Floats, Floats, Floats]:
        """Log-likelihood (n,), score (n, m) and information (n, m, m) = diag(p) - p p'.

        With two classes there is one linear predictor, given as (n,); score and information are then (n,) too.
        """
        if eta.ndim == 1:
            terms, score, information = self(eta[:, None], y)
            return terms, score[:, 0], information[:, 0, 0]
        top = np.maximum(eta.max(axis=1, initial=0.0), 0.0)
        rest = np.log(np.exp(eta - top[:, None]).sum(axis=1) + np.exp(-top)) + top
        codes = y.astype(np.intp)
        shares = np.exp(eta - rest[:, None])
        seen = np.flatnonzero(codes < self.classes - 1)
        own = np.zeros(len(eta))
        own[seen] = eta[seen, codes[seen]]
        score = -shares
        score[seen, codes[seen]] += 1.0
        information = -shares[:, :, None] * shares[:, None, :]
        diagonal = np.arange(shares.shape[1])
        information[:, diagonal, diagonal] += shares
        return own - rest, score, information
