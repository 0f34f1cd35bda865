"""Members of exponential families, ``p(x) = h(x) exp(eta . T(x) - A(eta))``: parameters, and what follows from them.

Maximum likelihood is moment matching, ``grad A(eta) = mean of T``; a conjugate prior turns into a conjugate posterior
by adding statistics. Both are written here, and in `families.task`, once for all families.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from suffice.array_types import Floats
from suffice.attributes import read_parameters
from suffice.checks import whole_number
from suffice.domain import Domain, Variable
from suffice.errors import NotFittedError, OptionError
from suffice.families.base import Seed, as_numbers, one_name, only_column, overflow_to_inf
from suffice.families.cumulants import numeric_cumulants
from suffice.fitting.control import Control, Outcome
from suffice.statistics import Statistic, Summary

if TYPE_CHECKING:
    from suffice.fitting.portrait import Portrait


#: What rounding may hide of a standardised gap, where observed and expected statistics are divided and subtracted.
ROUNDING = 16 * float(np.finfo(np.float64).eps)
#: How a member is found that has given expected statistics.
EXACT = Control(max_iter=200, tolerance=1e-13)


@dataclass(frozen=True, eq=False)
class FamilyMember(ABC):
    """A family, or one member of it: a value without options of a fit and without data.

    `known` holds what is no parameter to be learned: a size, states, columns, parameters that are given. `parameters`
    are None for the family as a whole, which still answers what needs none of them (T, h, A of natural parameters).

    A family provides, in this order: its parameters, its statistics (T, h, A and the derivatives of A), the maps
    between natural, mean and usual parameters, evaluation, and what it reads of a summary. One that has a closed form
    from mean parameters gives `match`; another gives `start` and is fitted by Newton.
    """

    #: Usual parameters, in the order of the constructor.
    parameter_names: ClassVar[tuple[str, ...]] = ()
    #: Further options that tell families of one name apart.
    constant_names: ClassVar[tuple[str, ...]] = ()
    #: Names of the components of T.
    statistic_names: ClassVar[tuple[str, ...]] = ()
    #: Names of the prior classes that are conjugate to the family.
    conjugate_priors: ClassVar[tuple[str, ...]] = ()

    title: str
    known: Mapping[str, Any] = field(default_factory=dict)
    parameters: Mapping[str, Any] | None = None

    def __init_subclass__(cls, **options: Any) -> None:
        """Let every evaluation overflow to inf without a warning."""
        super().__init_subclass__(**options)
        overflow_to_inf(cls)
        read_parameters(cls, cls.parameter_names)

    # -- parameters --------------------------------------------------------------------------------------------------

    def given(self) -> dict[str, Any] | None:
        """The parameters that are known when they are all there, else None."""
        return None if set(self.parameter_names) - set(self.known) else {n: self.known[n] for n in self.parameter_names}

    @abstractmethod
    def check(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Parameters in their final type; an impossible value is an error."""

    def at(self, parameters: Mapping[str, Any], **seen: Any) -> Self:
        """The member with these parameters; `seen` is what else the rows have shown, such as states."""
        return replace(self, parameters=self.check(parameters), known={**self.known, **seen})

    def restored(self, plain: Mapping[str, Any]) -> Self:
        """The member of a file."""
        return self.at(plain["parameters"])

    @property
    def n_params(self) -> int:
        """Parameters that are learned."""
        return sum(name not in self.known for name in self.parameter_names)

    @property
    def parameters_(self) -> Mapping[str, Any]:
        """The usual parameters by name."""
        if self.parameters is None:
            names = ", ".join(self.parameter_names)
            raise NotFittedError(
                f"This {self.title} has no parameters yet. Call fit, or give {names} in the constructor."
            )
        return self.parameters

    def portrait(self) -> Portrait:
        """What there is to see of it."""
        from suffice.families.portrait import member_portrait

        return member_portrait(self)

    def labels(self) -> tuple[Hashable, ...]:
        """The states that the parameters speak of, where there are some."""
        return ()

    def columns(self) -> tuple[Hashable, ...]:
        """Names of the columns, where there are several."""
        return ()

    # -- statistics --------------------------------------------------------------------------------------------------

    @abstractmethod
    def sufficient_statistics(self, x: Any) -> Floats:
        """T of each value, (n, k)."""

    @abstractmethod
    def log_base_measure(self, x: Any) -> Floats:
        """Log h of each value, (n,)."""

    @abstractmethod
    def log_normalizer(self, eta: ArrayLike | None = None) -> float:
        """A(eta) = log of the integral of h exp(eta . T); at its own parameters by default."""

    @abstractmethod
    def expected_statistics(self, eta: ArrayLike | None = None) -> Floats:
        """The gradient of A, which is E[T] (k,)."""

    @abstractmethod
    def statistics_covariance(self, eta: ArrayLike | None = None) -> Floats:
        """The Hessian of A, which is Cov[T] (k, k); also the Fisher information of eta."""

    def cumulants(self, order: int, direction: ArrayLike | None = None) -> Floats:
        """Cumulants 1 to `order` of ``direction . T(x)``.

        They are the derivatives of ``A(eta + t direction)`` at t = 0: cumulants, not central moments (the two differ
        from the fourth on). Without a direction, one row of cumulants for each component of T: (k, order).
        """
        whole_number(order, "order")
        size = len(self.natural_parameters())
        vectors = np.eye(size) if direction is None else as_numbers(direction, "direction")[None]
        if vectors.shape[1:] != (size,):
            shape = vectors.shape[1:]
            raise OptionError(f"direction has shape {shape}; expected ({size},), one entry for each statistic.")
        with np.errstate(over="ignore"):
            rows = np.array([self.cumulants_along(order, vector) for vector in vectors]).reshape(-1, order)
        return rows if direction is None else rows[0]

    def cumulants_along(self, order: int, direction: Floats) -> Floats:
        """Cumulants 1 to `order` of ``direction . T`` (order,); numerical derivatives unless a family has formulas."""
        return numeric_cumulants(self, order, direction)

    # -- maps --------------------------------------------------------------------------------------------------------

    @abstractmethod
    def to_natural(self, parameters: Mapping[str, Any]) -> Floats:
        """Natural parameters (k,) from usual ones; +-inf at the edge of the family."""

    @abstractmethod
    def from_natural(self, eta: Floats) -> dict[str, Any]:
        """Usual parameters from natural ones."""

    def natural_parameters(self) -> Floats:
        """Eta (k,)."""
        return self.to_natural(self.parameters_)

    def _eta(self, eta: ArrayLike | None) -> Floats:
        return self.natural_parameters() if eta is None else self.coordinates(eta, "eta")

    def coordinates(self, values: ArrayLike, name: str) -> Floats:
        """Natural or mean parameters (k,), one for each statistic, or an error that names the argument."""
        read = np.atleast_1d(as_numbers(values, name))
        size = len(self.statistic_names)
        if read.ndim != 1 or not len(read) or (size and len(read) != size):
            each = f", one for each of {', '.join(self.statistic_names)}" if size else ""
            raise OptionError(f"{name} has shape {read.shape}; expected {size or 'a vector of'} numbers{each}.")
        return read

    def match(self, mean: Floats, control: Control) -> tuple[dict[str, Any], Outcome | None]:
        """Usual parameters from mean parameters, and how the iteration ended; None for a closed form."""
        outcome = self._newton(mean, control)
        return self.from_natural(outcome.state.parameters), outcome

    def _newton(self, mean: Floats, control: Control) -> Outcome:
        """Find eta with ``grad A(eta) = mean`` by maximising the concave ``eta . mean - A(eta)``."""
        from suffice.solvers.newton import newton

        def function(eta: Floats) -> tuple[float, Floats, Floats]:
            value = float(eta @ mean) - self.log_normalizer(eta)
            if not np.isfinite(value):
                return -np.inf, mean, np.eye(len(mean))
            return value, mean - self.expected_statistics(eta), self.statistics_covariance(eta)

        return newton(function, self.start(mean), control, magnitude=np.abs(mean))

    def start(self, mean: Floats) -> Floats:
        """Natural parameters near those that match the mean, for Newton."""
        raise OptionError(f"{self.title} gives neither a closed form (match) nor a start for Newton (start).")

    def from_mean(self, mean: Floats) -> dict[str, Any]:
        """Usual parameters from mean parameters."""
        return self.match(mean, EXACT)[0]

    # -- evaluation --------------------------------------------------------------------------------------------------

    def log_prob(self, x: Any) -> Floats:
        """Log density or log probability of each value, natural logarithm; -inf outside the support."""
        inner = self.sufficient_statistics(x) @ self.natural_parameters()
        return np.asarray(inner - self.log_normalizer() + self.log_base_measure(x))

    def score_samples(self, x: Any) -> Floats:
        """Log density or log probability of each row (n,); a table of one column is read by that column."""
        return np.atleast_1d(self.log_prob(only_column(x, self.title)))

    @abstractmethod
    def sample(self, n: int = 1, random_state: Seed = None) -> Any:
        """`n` independent draws."""

    def entropy(self) -> float:
        """Expected -log p, in nats (differential entropy for a density), where log h is 0."""
        return self.log_normalizer() - float(self.natural_parameters() @ self.expected_statistics())

    def divergence(self, other: Self) -> float:
        """KL(self || other) in nats: ``A(eta') - A(eta) - (eta' - eta) . E[T]``, the Bregman divergence of A."""
        mine, theirs = self.natural_parameters(), other.natural_parameters()
        value = other.log_normalizer() - self.log_normalizer() - (theirs - mine) @ self.expected_statistics()
        return max(0.0, float(value))

    # -- rows by their statistics ------------------------------------------------------------------------------------

    def variable(self, name: Hashable) -> Variable:
        """The kind of column that the family describes."""
        return Variable(name, "real")

    def required(self, columns: Sequence[Hashable]) -> Mapping[Hashable, Variable | None]:
        """The variables to read, by column."""
        name = one_name(columns, self.title)
        return {name: self.variable(name)}

    @abstractmethod
    def ask(self, domain: Domain) -> tuple[Statistic, ...]:
        """The statistics that a fit needs."""

    @abstractmethod
    def observed(self, summary: Summary) -> Floats:
        """Mean of T over the rows (k,)."""

    def log_likelihood(self, summary: Summary) -> float:
        """Sum over the rows of a summary, natural logarithm, where log h is 0."""
        if not summary.weight > 0:
            return 0.0
        return summary.weight * float(self.natural_parameters() @ self.observed(summary) - self.log_normalizer())

    def seen_in(self, summary: Summary) -> Mapping[str, Any]:
        """What the rows have shown besides their statistics, such as states; see `at`."""
        return {}

    def refuse_given(self, summary: Summary) -> None:
        """Raise where every parameter is given: the fit would either do nothing or overrule the caller."""
        if self.given() is not None:
            names = " and ".join(self.parameter_names)
            raise OptionError(f"There is nothing to fit: {names} given in the constructor. Leave out what is unknown.")

    def maximise(self, summary: Summary, control: Control) -> tuple[dict[str, Any], Outcome | None]:
        """Parameters of maximum likelihood, and how the iteration ended; None for a closed form."""
        return self.match(self.observed(summary), control)

    def empirical_entropy(self, summary: Summary) -> float | None:
        """Entropy of the observed frequencies; None where the data are not discrete."""
        return None

    # -- what a certificate is made of -------------------------------------------------------------------------------

    def edge(self, summary: Summary) -> tuple[str, ...]:
        """What runs to infinity at the maximum-likelihood estimate; empty where the maximum is attained."""
        return ()

    def shortfall(self, summary: Summary) -> float | None:
        """How far the mean log-likelihood of a row is below its maximum, where a formula says so; None where none does.

        It is the divergence of the distribution that has the observed statistics from this one, a sum of terms that
        are never negative, and takes no part in the fit.
        """
        return None

    def rounding(self) -> float:
        """What rounding may hide of a standardised gap."""
        return ROUNDING

    def unavoidable(self) -> float:
        """The gap in standard deviations of a row that no parameters avoid, since they are floats."""
        return 0.0

    def gap(self, summary: Summary) -> tuple[float, float]:
        """Largest gap between observed and expected means in standard deviations of a row, and the Newton decrement."""
        spread = self.spread()
        spread = np.where(spread > 0, spread, 1.0)
        gaps = (self.observed(summary) - self.expected_statistics()) / spread
        if len(gaps) == 1:
            return (abs(float(gaps[0])),) * 2
        # Standardised first: statistics of very different sizes would look singular to the inverse.
        inverse = np.linalg.pinv(self.statistics_covariance() / np.outer(spread, spread), hermitian=True)
        return float(np.abs(gaps).max()), math.sqrt(max(float(gaps @ inverse @ gaps), 0.0))

    def spread(self) -> Floats:
        """Standard deviation of each statistic (k,), where its square may be beyond float64 too."""
        return np.sqrt(np.diag(self.statistics_covariance()))

    # -- as one of several, in mixtures and hidden states --------------------------------------------------------------

    #: Whether the sums of T are all that maximum likelihood needs; else members are learned from summaries.
    by_mean: ClassVar[bool] = False

    def points(self, values: Floats) -> Floats:
        """Values (n,) or (n, d) as points (n, d) whose distances say how near they are."""
        return values[:, None] if values.ndim == 1 else values

    def concentration(self) -> float:
        """What grows without bound as the distribution collapses to a point; 0 for families that cannot.

        Where all steps of a state are equal, the likelihood of a narrow family has no maximum. Members of at most some
        concentration are a convex set of natural parameters, in which the likelihood is concave: the best of them is
        the best of all, or lies on the border.
        """
        return 0.0

    def is_possible(self, mean: Floats) -> bool:
        """Whether some values have this mean of T: it lies among those of the family, or on their edge."""
        return True

    def narrowest(self, mean: Floats, most: float) -> dict[str, Any] | None:
        """The best parameters for a mean of T among those of the concentration `most`; None where there is no need."""
        return None

    def is_coercive(self, prior: Any) -> bool:
        """Whether a prior sends the objective to -inf at every edge, whatever the likelihood does there."""
        return False

    # -- with a prior ------------------------------------------------------------------------------------------------

    def conjugate_prior(self, prior: Any, summary: Summary) -> Any:
        """The prior as it is used; one whose class is not conjugate to the family is an error."""
        if type(prior).__name__ not in self.conjugate_priors:
            known = " or ".join(self.conjugate_priors) or "none"
            raise OptionError(f"prior is {prior!r}; expected the conjugate prior of {self.title}, {known}.")
        prior.parameters_  # noqa: B018  an unfitted prior has no parameters and says so
        return prior

    def update(self, prior: Any, summary: Summary) -> Any:
        """The posterior: the prior with the statistics of the rows added."""
        raise OptionError(f"{self.title} has no conjugate prior.")

    def from_point(self, point: Any) -> dict[str, Any]:
        """Parameters from the posterior's mean or mode."""
        return {self.parameter_names[0]: point}

    def point_space(self, estimate: str) -> str:
        """The parameters in which a mean or mode was taken."""
        return self.parameter_names[0]

    def prior_point(self) -> Any:
        """The current parameters in the form that the prior's density takes."""
        return self.parameters_[self.parameter_names[0]]

    def log_likelihoods(self, summary: Summary, points: Sequence[Mapping[str, Any]]) -> tuple[Floats, Any]:
        """Log-likelihoods of a summary under several members (n,), and their points as a prior's density takes them.

        points: the usual parameters of each.
        """
        members = [self.at(parameters) for parameters in points]
        return np.array([member.log_likelihood(summary) for member in members]), _stacked(
            [member.prior_point() for member in members]
        )

    def evidence(self, prior: Any, posterior: Any, summary: Summary) -> float | None:
        """Log marginal likelihood of the rows: ``p(x | point) p(point) / p(point | x)`` is the same at any point."""
        point = posterior.mean()
        ratio = float(prior.log_prob(point)) - float(posterior.log_prob(point))
        return self.at(self.from_point(point)).log_likelihood(summary) + ratio

    def predictive(self, posterior: Any) -> Any:
        """The distribution of one more row, with the parameters integrated out."""
        raise OptionError(f"{self.title} has no posterior predictive distribution in closed form.")


def _stacked(points: Sequence[Any]) -> Any:
    """Points of one form, numbers, arrays or a dict of these, with an axis before all others."""
    if isinstance(points[0], Mapping):
        return {name: np.array([point[name] for point in points]) for name in points[0]}
    return np.array(points)
