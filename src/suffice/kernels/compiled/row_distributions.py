"""Compiled loops of row distributions."""

from __future__ import annotations

import math

from suffice.array_types import Floats
from suffice.kernels.jit import kernel


@kernel
def logistic(eta: Floats, y: Floats, value: Floats, score: Floats, information: Floats) -> None:
    """Bernoulli response with the logit link, row by row; with t = exp(-|eta|) nothing can overflow."""
    for i in range(len(eta)):
        e = eta[i]
        t = math.exp(-abs(e))
        near = 1.0 / (1.0 + t)
        far = t * near
        if e >= 0.0:
            value[i] = (y[i] - 1.0) * e - math.log1p(t)
            score[i] = y[i] * far - (1.0 - y[i]) * near
        else:
            value[i] = y[i] * e - math.log1p(t)
            score[i] = y[i] * near - (1.0 - y[i]) * far
        information[i] = near * far
