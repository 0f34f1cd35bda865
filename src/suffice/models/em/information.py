"""The observed information of an EM fit, from its score.

The score of the observed rows is the expected score of the complete ones (Fisher's identity), which one E-step gives
exactly; minus its derivative is the information.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.fitting.report import Curvature
from suffice.models.em.identifiability import Spectrum, curvature, spectrum

#: Step of the central differences, in coordinates that vary by about one.
STEP = 1e-4
#: An eigenvalue of the information, scaled to a unit diagonal, below which the rows do not determine a direction.
FLAT = 1e-7


@dataclass(frozen=True, eq=False)
class ObservedInformation:
    """What the observed rows say about k coordinates of the parameters, where EM has stopped.

    `observed` (k, k) is minus the Hessian of the log-likelihood and `objective` (k, k) that of the objective, which is
    the same without a prior. `complete` and `complete_objective` (k,) are what complete rows would say about each
    coordinate. `names` (k) call the coordinates in words.
    """

    names: Sequence[str]
    observed: Floats
    objective: Floats
    complete: Floats
    complete_objective: Floats

    def spectrum(self, step: float = 0.0) -> Spectrum:
        """For standard errors: eigenvalues in units of the complete information, without the prior.

        step: the largest change of a coordinate by one more step of EM.
        """
        return spectrum(self.observed, complete=self.complete, step=step)

    def curvature(self, step: float, scores: Sequence[float]) -> Curvature:
        """For the certificate: rank and kind of point of the objective; scores: the objectives of all runs."""
        eigenvalues = spectrum(self.objective, complete=self.complete_objective, step=step)
        return curvature(eigenvalues, self.names, scores)


def score_differences(score: Callable[[Floats], Floats], size: int) -> Floats:
    """Minus the derivative (size, size) of a score at 0, by central differences."""
    information = np.empty((size, size))
    for number in range(size):
        delta = np.zeros(size)
        delta[number] = STEP
        information[:, number] = (score(-delta) - score(delta)) / (2 * STEP)
    return (information + information.T) / 2


def inverse_information(information: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """The covariance, and which coordinates have none because some direction of theirs is flat or not a maximum."""
    scale = np.sqrt(np.maximum(np.diag(information), 0.0))
    scale = np.where(scale > 0, scale, 1.0)
    values, vectors = np.linalg.eigh(information / np.outer(scale, scale))
    good = values > FLAT
    covariance = (vectors[:, good] / values[good]) @ vectors[:, good].T / np.outer(scale, scale)
    return covariance, (np.abs(vectors[:, ~good]) > 1e-4).any(axis=1)
