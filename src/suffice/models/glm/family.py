"""What a generalised linear model asks of the family of its response, and what a family of one linear predictor says.

A family with dispersion phi has the density ``h(y, phi) exp((theta y - A(theta)) / phi)``, the mean ``A'(theta)`` and
the variance ``phi V(mean)``. All arrays have one entry a row; a weight is the number of rows that a row stands for.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from suffice.array_types import Flags, Floats
from suffice.errors import DataError, OptionError
from suffice.families.base import take_states
from suffice.models.glm.coefficients import Coefficients
from suffice.models.glm.design import DesignRows
from suffice.models.glm.links import Link, find_link

#: What a response is: numbers, successes out of trials, labels, ordered labels, or several numbers a row.
ResponseKind = Literal["numbers", "shares", "labels", "ordered", "vectors"]
#: Counts from which on it pays to look functions of them up.
FEW_COUNTS = 200


def of_counts(function: Callable[[Floats], Floats], y: Floats) -> Floats:
    """A function of each y: of many small counts looked up among those of 0, 1, 2, ..., which are the same digits."""
    largest = y.max(initial=0.0)
    if not 4.0 * largest + FEW_COUNTS < len(y):  # Nor where a number is missing.
        return function(y)
    counts = y.astype(np.intp)
    if not (counts == y).all() or counts.min() < 0:
        return function(y)
    return function(np.arange(largest + 1.0))[counts]


class ResponseFamily(ABC):
    """A family of distributions of the response.

    `links` are those that it takes, of which `canonical` is the default. A family that is written for
    `suffice.models.glm.registry.register` is a subclass of `Family`, which has one linear predictor.
    """

    name: str = ""
    canonical: str = "identity"
    links: tuple[str, ...] = ()
    response: ClassVar[ResponseKind]
    #: Whether phi is to be estimated.
    free_dispersion: ClassVar[bool] = False
    #: Whether there is a distribution, and with it a likelihood: else the variance is phi V(mean), and no more is said.
    has_likelihood: ClassVar[bool] = True
    #: Values that y may take, in words.
    support: ClassVar[str] = "finite numbers"

    @property
    def rows_like(self) -> str:
        """The family whose rows have this log-likelihood at phi = 1: what is known of that one holds here."""
        return self.name

    @property
    def labels(self) -> bool:
        """Whether the response is a label."""
        return self.response in ("shares", "labels", "ordered")

    def link(self, name: str) -> Link:
        """A link by its name."""
        return find_link(name)

    def check_options(self, options: Mapping[str, Any]) -> None:
        """Refuse options of a model that the family has no use for."""
        if not isinstance(options["reference"], Mapping | None) and self.response != "labels":
            raise OptionError(
                f"reference= belongs to the multinomial family; the {self.name} family has none. Leave it out, or give "
                "the levels of factors by column: reference={'dose': 'none'}."
            )

    @abstractmethod
    def linear(self, fitted: Coefficients, table: DesignRows, offset: Floats | None) -> Floats:
        """Linear predictors (n, m) of rows; infinite where a separating direction decides them."""

    @abstractmethod
    def predict(self, fitted: Coefficients, eta: Floats, kind: str) -> Any:
        """The answer of `GLM.predict` at linear predictors (n, m): "response", "link" or "class"."""

    @abstractmethod
    def log_prob_of_rows(self, fitted: Coefficients, eta: Floats, y: Floats, trials: Floats | None) -> Floats:
        """Log density or probability of each row (n,)."""

    @abstractmethod
    def draw(self, fitted: Coefficients, mean: Floats, rng: np.random.Generator) -> Any:
        """One response for each row of probabilities or means, (n,) or (n, m)."""


@dataclass(frozen=True)
class Totals:
    """What the rows add up to at the fitted means: enough for dispersion and log-likelihood.

    `weight` counts rows; `deviance`, `pearson` and `value`, the log-likelihood up to a term of y, are sums at phi = 1;
    `base` is the part of the log-likelihood at phi = 1 that the means do not enter, and `log_y` the sum of log y where
    the family needs it: both are known of the response alone.
    """

    weight: float
    deviance: float
    pearson: float
    value: float
    base: float = 0.0
    log_y: float = 0.0

    def __add__(self, other: Totals) -> Totals:
        """Both sets of rows."""
        return Totals(*(mine + theirs for mine, theirs in zip(vars(self).values(), vars(other).values(), strict=True)))


@dataclass(frozen=True)
class Family(ResponseFamily):
    """A distribution of the response; one `link` of `links` maps its mean to the linear predictor."""

    response: ClassVar[ResponseKind] = "numbers"
    #: What compiled loops call its rows under the canonical link, where they know them.
    law: ClassVar[str] = ""
    #: Whether the log-likelihood is concave in the linear predictor under every link that the family takes.
    log_concave: ClassVar[bool] = False

    def allowed(self, y: Floats) -> Flags:
        """Whether each y lies in the support."""
        return np.isfinite(y)

    def drawn(self, y: Floats) -> Flags:
        """Whether the distribution draws each y; of others that are allowed the likelihood is a quasi-likelihood."""
        return self.allowed(y)

    def is_quasi(self, y: Floats) -> bool:
        """Whether some y is none that the distribution draws."""
        return not bool(self.drawn(y).all())

    def check(self, y: Floats, start: int = 0, what: str = "The response") -> None:
        """Raise at the first y outside the support; start: the number of the first row; what: y, in words."""
        good = self.allowed(y)
        if not good.all():
            row = int(np.argmin(good))
            raise DataError(
                f"{what} holds {float(y[row])!r} (row {start + row}); the {self.name} family takes "
                f"{self.support}. Correct the value, leave its row out, or choose another family."
            )

    def inside(self, mean: Floats) -> bool:
        """Whether every mean is one that the family has."""
        return bool(np.isfinite(mean).all())

    @abstractmethod
    def variance(self, mean: Floats) -> Floats:
        """V(mean)."""

    @abstractmethod
    def deviance(self, y: Floats, mean: Floats) -> Floats:
        """Twice the log-likelihood that the mean loses against y itself, at phi = 1."""

    def value(self, y: Floats, mean: Floats) -> Floats:
        """Log-likelihood at phi = 1 up to a term of y alone."""
        return -0.5 * self.deviance(y, mean)

    def base(self, y: Floats) -> Floats:
        """What `value` leaves out, at phi = 1."""
        return np.zeros_like(y)

    def first_mean(self, y: Floats, average: float) -> Floats:
        """A mean near y from which the fit starts."""
        return 0.5 * (y + average)

    def ml_dispersion(self, totals: Totals) -> float:
        """The phi of the largest likelihood."""
        return totals.deviance / totals.weight

    def log_likelihood(self, totals: Totals, phi: float) -> float:
        """Sum over rows at dispersion phi."""
        return totals.value + totals.base

    def log_prob(self, y: Floats, mean: Floats, phi: float) -> Floats:
        """Log density of each row."""
        return self.value(y, mean) + self.base(y)

    @abstractmethod
    def sample(self, mean: Floats, phi: float, rng: np.random.Generator) -> Floats:
        """One draw for each mean."""

    def encoded(self, y: Floats) -> tuple[Floats, Floats | None]:
        """What is read as response, and a part of the log density of each row that it leaves out (None: nothing)."""
        return y, None

    def moments(self, link: Link, eta: Floats) -> tuple[Floats, Floats]:
        """Mean and variance of each row, at phi = 1."""
        mean = link.mean(eta)
        return mean, self.variance(mean)

    def deviances(self, link: Link, eta: Floats, y: Floats) -> Floats:
        """The deviance of each row."""
        return self.deviance(y, link.mean(eta))

    def figures(self, link: Link, eta: Floats, y: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Value, deviance, y less the mean, and variance of each row."""
        mean, variance = self.moments(link, eta)
        return self.rows(link, eta, y)[0], self.deviance(y, mean), y - mean, variance

    def sized(self, size: float | None) -> Family:
        """The same family at a size, where it has one."""
        return self

    def rows(self, link: Link, eta: Floats, y: Floats) -> tuple[Floats, Floats, Floats]:
        """Log-likelihood of each row up to a term of y, its slope in eta, and the expected information, at phi = 1.

        With the mean m = f(eta): ``(y - m) f' / V`` and ``f'^2 / V``. The value is -inf where eta is outside.
        """
        if not link.inside(eta):
            return np.full_like(eta, -np.inf), np.zeros_like(eta), np.zeros_like(eta)
        mean, slope = link.mean(eta), link.slope(eta)
        if not self.inside(mean):
            return np.full_like(eta, -np.inf), np.zeros_like(eta), np.zeros_like(eta)
        share = slope / self.variance(mean)
        return self.value(y, mean), (y - mean) * share, slope * share

    # -- rows of a fitted regression -----------------------------------------------------------------------------------

    def linear(self, fitted: Coefficients, table: DesignRows, offset: Floats | None) -> Floats:
        """The linear predictor (n, 1); infinite where a separating direction decides it."""
        eta = fitted.design.eta(table, fitted.beta)
        if offset is not None:
            eta += offset[:, None]
        if fitted.direction is None:
            return eta
        along = fitted.design.eta(table, fitted.direction)
        size = np.abs(along).max(initial=0.0)
        return np.where(np.abs(along) > 1e-7 * size, np.where(along > 0.0, np.inf, -np.inf), eta)

    def predict(self, fitted: Coefficients, eta: Floats, kind: str) -> Any:
        """The mean, the linear predictor, or the likeliest label."""
        if kind == "link":
            return eta[:, 0]
        with np.errstate(over="ignore"):
            mean = self.link(fitted.link).mean(eta[:, 0])
        if kind == "response":
            return mean
        if fitted.classes is None:
            raise OptionError(f"The {self.name} response has no labels; use kind='response'.")
        return take_states(fitted.classes, (mean > 0.5).astype(np.intp))

    def log_prob_of_rows(self, fitted: Coefficients, eta: Floats, y: Floats, trials: Floats | None) -> Floats:
        """Log density or probability of each row (n,)."""
        with np.errstate(all="ignore"):
            return self.sized(fitted.size).log_prob(y, self.link(fitted.link).mean(eta[:, 0]), fitted.dispersion)

    def draw(self, fitted: Coefficients, mean: Floats, rng: np.random.Generator) -> Any:
        """Numbers, or labels where the response came as such."""
        drawn = self.sized(fitted.size).sample(mean, fitted.dispersion, rng)
        return drawn if fitted.classes is None else take_states(fitted.classes, drawn.astype(np.intp))


class RowDistribution:
    """A family and a link: what each row says about its own eta.

    Calling it with eta and y (n,) gives the log-likelihood up to a term of y alone, its derivative in eta, and the
    expected information about eta, all at phi = 1; the value is -inf where eta is outside the model.
    """

    def __init__(self, family: Family, link: Link) -> None:
        """Keep both."""
        self.family = family
        self.link = link

    @property
    def law(self) -> str:
        """The name of the compiled loops that know it, where there are any."""
        return self.family.law if self.link.name == self.family.canonical else ""

    def __call__(self, eta: Floats, y: Floats) -> tuple[Floats, Floats, Floats]:
        """Value, score and information of each row."""
        with np.errstate(all="ignore"):
            return self.family.rows(self.link, eta, y)


class StartDistribution:
    """Least squares of the link of means near y: the row distribution whose one Newton step from zero gives a start."""

    def __init__(self, distribution: RowDistribution, average: float) -> None:
        """Keep the distribution and the average of y."""
        self.distribution = distribution
        self.average = average

    def __call__(self, eta: Floats, y: Floats) -> tuple[Floats, Floats, Floats]:
        """Weights of the start means, and the working residual against eta, which holds the offset."""
        with np.errstate(all="ignore"):
            mean = self.distribution.family.first_mean(y, self.average)
            if (
                self.distribution.link.positive
            ):  # A row whose own mean is none of the link begins at that of a small one.
                mean = np.where(mean > 0.0, mean, 0.1 * abs(self.average) or 1.0)
            wanted = self.distribution.link.eta(mean)
            weight = self.distribution.link.slope(wanted) ** 2 / self.distribution.family.variance(mean)
        weight = np.where(np.isfinite(weight), weight, 0.0)
        score = np.where(weight > 0.0, weight * (wanted - eta), 0.0)
        return np.zeros_like(eta), score, weight
