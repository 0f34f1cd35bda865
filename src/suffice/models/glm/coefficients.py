"""The parameters of a fitted regression by name: what its family needs to predict, and nothing about the fit."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from suffice.array_types import Floats
from suffice.models.glm.design import Design, NamedParameters, threshold_names


@dataclass(frozen=True, eq=False, kw_only=True)
class Coefficients:
    """A family and a link by name, with their coefficients.

    `beta` (k, m) is in the order of the names; `direction` (k, m) is where coefficients run to infinity. A column of
    `beta` belongs to each class but `reference`, or to each response of a vector, whose residuals have a covariance.
    Ordered labels have `thresholds` (K - 1,), which come before the coefficients wherever all parameters are meant.
    """

    design: Design
    family: str
    link: str
    beta: Floats
    dispersion: float = 1.0
    size: float | None = None
    classes: tuple[Hashable, ...] | None = None
    reference: int | None = None
    direction: Floats | None = None
    residual_covariance: Floats | None = None
    thresholds: Floats = field(default_factory=lambda: np.zeros(0))

    @cached_property
    def parameters(self) -> NamedParameters:
        """All parameters by name."""
        labels = self.classes if len(self.thresholds) and self.classes is not None else ()
        return NamedParameters(threshold_names(labels), self.design)

    @property
    def values(self) -> Floats:
        """All parameters (k, m), in the order of their names."""
        return np.concatenate((self.thresholds[:, None], self.beta)) if len(self.thresholds) else self.beta

    @property
    def single(self) -> bool:
        """Whether there is one number for each coefficient."""
        return self.reference is None and self.residual_covariance is None

    def limits(self) -> Floats:
        """All parameters (k, m) with those that run away at infinity."""
        if self.direction is None:
            return self.values
        return np.where(self.direction != 0.0, np.where(self.direction > 0.0, np.inf, -np.inf), self.values)

    def by_class(self) -> Floats:
        """The same with a column for each class, zero for the reference."""
        values = self.limits()
        return values if self.reference is None else np.insert(values, self.reference, 0.0, axis=1)

    def predictor_labels(self) -> list[Hashable]:
        """What each linear predictor is of: a class but the reference, or a response."""
        if self.classes is None:
            return [f"response {number}" for number in range(self.beta.shape[1])]
        return [label for number, label in enumerate(self.classes) if number != self.reference]

    def column_labels(self) -> list[str]:
        """The same as text."""
        return list(map(str, self.predictor_labels()))

    def flat_names(self) -> list[str]:
        """Names of all parameters, predictors first."""
        labels = self.column_labels() if self.beta.shape[1] > 1 else [""]
        return [f"{name} ({label})" if label else name for label in labels for name in self.parameters.names]
