"""A family and a link together: what each row says about its own linear predictor."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.engines.linear_predictor import logistic_rows
from suffice.errors import OptionError
from suffice.models.glm.families import FAMILIES, BinomialFamily, Family, NegativeBinomialFamily, PoissonFamily
from suffice.models.glm.links import Link, find_link

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
            if isinstance(self.family, BinomialFamily):
                return logistic_rows(eta, y) if self.link.name == "logit" else self._binomial(eta, y)
            if isinstance(self.family, PoissonFamily) and self.link.name == "log":
                mean = np.exp(eta)
                return y * eta - mean, y - mean, mean
            return self._general(eta, y)

    def _binomial(self, eta: Floats, y: Floats) -> tuple[Floats, Floats, Floats]:
        up, down, slope = self.link.log_mean(eta), self.link.log_rest(eta), self.link.log_slope(eta)
        outside = np.isnan(up) | np.isnan(down) | (up > 0.0) | (down > 0.0)
        value = np.where(y > 0.0, y * up, 0.0) + np.where(y < 1.0, (1.0 - y) * down, 0.0)
        score = np.where(y > 0.0, y * np.exp(slope - up), 0.0)
        score -= np.where(y < 1.0, (1.0 - y) * np.exp(slope - down), 0.0)
        weight = np.exp(2.0 * slope - up - down)
        weight = np.where(np.isfinite(weight), weight, 0.0)
        return np.where(outside, -np.inf, value), score, weight

    def _general(self, eta: Floats, y: Floats) -> tuple[Floats, Floats, Floats]:
        if not self.link.inside(eta):
            return np.full_like(eta, -np.inf), np.zeros_like(eta), np.zeros_like(eta)
        mean, slope = self.link.mean(eta), self.link.slope(eta)
        if not self.family.inside(mean):
            return np.full_like(eta, -np.inf), np.zeros_like(eta), np.zeros_like(eta)
        share = slope / self.family.variance(mean)
        return self.family.value(y, mean), (y - mean) * share, slope * share


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


def family_of(name: str, link: str | None, size: float | None = None) -> tuple[Family, Link]:
    """A family by name, with the link asked for or the canonical one."""
    kind = FAMILIES[name]
    family: Any = kind(size=1.0 if size is None else size) if kind is NegativeBinomialFamily else kind()
    chosen = find_link(kind.canonical if link is None else link)
    if chosen.name not in kind.links:
        raise OptionError(
            f"The {name} family does not take the link {chosen.name!r}; it takes {', '.join(kind.links)}."
        )
    return family, chosen
