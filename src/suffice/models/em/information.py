"""The observed information of an EM fit, from its score.

The score of the observed rows is the expected score of the complete ones (Fisher's identity), which one E-step gives
exactly; minus its derivative is the information.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from suffice.array_types import Floats
from suffice.fitting.report import Curvature
from suffice.models.em.identifiability import Spectrum, curvature, spectrum

#: Step of the central differences, in coordinates that vary by about one.
STEP = 1e-4
#: The largest change by one more step of EM from where curvatures say something about the point that it goes to.
STOPPED = 1e-4
#: Where EM has not come so far, or where it would take longer than EM itself.
NOT_COMPUTED = (
    "whether the rows determine all parameters was not computed: that takes two E-steps for each of them, from where "
    "EM has converged"
)


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
