"""Distributions of models too large for exact inference: potentials are known, sums over joint states are not."""

from __future__ import annotations

from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.errors import SizeError
from suffice.models.markov.approximate.rows import model_sampler
from suffice.models.markov.family import LogLinearFamily, Masks
from suffice.models.markov.log_linear import LogLinear

INSTEAD = (
    "This needs exact inference. Approximately: marginal, query and sample answer by Gibbs sampling with stated "
    "errors, estimate_log_partition gives log Z and estimate_score the mean log-likelihood, both with standard errors."
)


class SampledFamily(LogLinearFamily):
    """As `LogLinearFamily`, without a junction tree: whatever asks for one is told what to call instead."""

    def __init__(self, model: LogLinear, masks: Masks = (), *, refusal: str) -> None:
        """refusal: why there is no tree. Masks on scopes of the model alone are taken."""
        super().__init__(model, masks)
        self.refusal = refusal

    @property
    def plan(self) -> NoReturn:
        """There is no tree, and whatever is made from one asks here."""
        raise SizeError(f"{self.refusal} {INSTEAD}")

    def over(self, model: LogLinear) -> SampledFamily:
        """As there: the potentials alone."""
        return self._over(model)

    def log_values(self, weights: Floats, states: NDArray[np.uint8]) -> Floats:
        """Sum of all log-potentials of joint states (variables, n): log p + log Z, each (n,)."""
        return model_sampler(self.model).log_values(states, self.potentials(weights))
