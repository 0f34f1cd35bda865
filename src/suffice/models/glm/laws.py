"""A family and a link together: what each row says about its own linear predictor."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from suffice.models.glm.family import Family
from suffice.models.glm.links import Link

Floats = NDArray[np.float64]


class RowLaw:
    """A family and a link: what each row says about its own eta.

    Calling it with eta and y (n,) gives the log-likelihood up to a term of y alone, its derivative in eta, and the
    expected information about eta, all at phi = 1; the value is -inf where eta is outside the model.
    """

    def __init__(self, family: Family, link: Link) -> None:
        """Keep both."""
        self.family = family
        self.link = link

    def __call__(self, eta: Floats, y: Floats) -> tuple[Floats, Floats, Floats]:
        """Value, score and information of each row."""
        with np.errstate(all="ignore"):
            return self.family.rows(self.link, eta, y)


class StartLaw:
    """Least squares of the link of means near y: the row law whose one Newton step from zero gives a start."""

    def __init__(self, law: RowLaw, average: float) -> None:
        """Keep the law and the average of y."""
        self.law = law
        self.average = average

    def __call__(self, eta: Floats, y: Floats) -> tuple[Floats, Floats, Floats]:
        """Weights of the start means, and the working residual against eta, which holds the offset."""
        with np.errstate(all="ignore"):
            mean = self.law.family.first_mean(y, self.average)
            if self.law.link.positive:  # A row whose own mean is none of the link begins at that of a small one.
                mean = np.where(mean > 0.0, mean, 0.1 * abs(self.average) or 1.0)
            wanted = self.law.link.eta(mean)
            weight = self.law.link.slope(wanted) ** 2 / self.law.family.variance(mean)
        weight = np.where(np.isfinite(weight), weight, 0.0)
        score = np.where(weight > 0.0, weight * (wanted - eta), 0.0)
        return np.zeros_like(eta), score, weight
