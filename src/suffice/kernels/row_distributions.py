"""What a row says about its linear predictor, for the response whose arithmetic is worth compiling."""

from __future__ import annotations

import numpy as np

from suffice.array_types import Floats
from suffice.kernels.choice import use_compiled

#: Seconds a row on the NumPy path, for the choice of the path.
_NUMPY_SECONDS = 6e-8


def logistic_rows(eta: Floats, y: Floats) -> tuple[Floats, Floats, Floats]:
    """Log-likelihood, score and information about eta of a Bernoulli response y with the logit link, each (n,)."""
    if use_compiled("logistic rows", _NUMPY_SECONDS * len(eta)):
        from suffice.kernels.compiled.exponentials import logistic

        value, score, information = np.empty_like(eta), np.empty_like(eta), np.empty_like(eta)
        logistic(np.ascontiguousarray(eta), np.ascontiguousarray(y), value, score, information)
        return value, score, information
    # With t = exp(-|eta|) nothing can overflow, and one minus the mean keeps its digits where the mean is near 1.
    t = np.exp(-np.abs(eta))
    near = 1.0 / (1.0 + t)
    far = t * near
    score = np.where(eta >= 0.0, y * far - (1.0 - y) * near, y * near - (1.0 - y) * far)
    return y * eta - np.maximum(eta, 0.0) - np.log1p(t), score, near * far
