"""Exponential families: ``p(x) = h(x) exp(eta . T(x) - A(eta))``.

Maximum likelihood is moment matching, ``grad A(eta) = mean of T``; a conjugate prior turns into a conjugate posterior
by adding statistics. Both are written here, and in `families.task`, once for all families.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from suffice.domain import Domain
from suffice.errors import OptionError
from suffice.families.base import Distribution, as_numbers
from suffice.families.cumulants import numeric_cumulants
from suffice.families.fitted import FamilyFitted
from suffice.families.task import FamilyTask
from suffice.fitting.control import Control, Outcome
from suffice.statistics import Statistic, Summary

if TYPE_CHECKING:
    from suffice.fitting.portrait import Portrait

Floats = NDArray[np.float64]

#: What rounding may hide of a standardised gap, where observed and expected statistics are divided and subtracted.
ROUNDING = 16 * float(np.finfo(np.float64).eps)

ESTIMATES = ("mle", "map", "mean")
#: How a distribution is found that has given expected statistics.
EXACT = Control(max_iter=200, tolerance=1e-13)


class ExponentialFamily(Distribution):
    """Base of the exponential families.

    A family provides, in this order: its parameters, its statistics (T, h, A and the derivatives of A), the maps
    between natural, mean and usual parameters, evaluation, and fitting. One that has a closed form from mean
    parameters gives `_match`; another gives `_start` and is fitted by Newton.
    """

    #: Names of the components of T.
    statistic_names: ClassVar[tuple[str, ...]] = ()
    #: Names of the prior classes that are conjugate to the law.
    conjugate_priors: ClassVar[tuple[str, ...]] = ()

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
        if not (isinstance(order, int) and order >= 1):
            raise OptionError(f"order is {order!r}; expected a whole number of at least 1.")
        size = len(self.natural_parameters_)
        vectors = np.eye(size) if direction is None else as_numbers(direction, "direction")[None]
        if vectors.shape[1:] != (size,):
            shape = vectors.shape[1:]
            raise OptionError(f"direction has shape {shape}; expected ({size},), one entry for each statistic.")
        with np.errstate(over="ignore"):
            found = np.array([self._cumulants(order, vector) for vector in vectors]).reshape(-1, order)
        return found if direction is None else found[0]

    def _cumulants(self, order: int, direction: Floats) -> Floats:
        """Cumulants 1 to `order` of ``direction . T`` (order,); numerical derivatives unless a family has formulas."""
        return numeric_cumulants(self, order, direction)

    def portrait(self) -> Portrait:
        """What there is to see of it: what pages, plots and notebooks show."""
        from suffice.families.portrait import exponential_portrait

        return exponential_portrait(self)

    # -- maps --------------------------------------------------------------------------------------------------------

    @abstractmethod
    def _to_natural(self, parameters: Mapping[str, Any]) -> Floats:
        """Natural parameters (k,) from usual ones; +-inf at the edge of the family."""

    @abstractmethod
    def _from_natural(self, eta: Floats) -> dict[str, Any]:
        """Usual parameters from natural ones."""

    def _match(self, mean: Floats, control: Control) -> tuple[dict[str, Any], Outcome | None]:
        """Usual parameters from mean parameters, and how the iteration ended; None for a closed form."""
        outcome = self._newton(mean, control)
        return self._from_natural(outcome.state.parameters), outcome

    def _newton(self, mean: Floats, control: Control) -> Outcome:
        """Find eta with ``grad A(eta) = mean`` by maximising the concave ``eta . mean - A(eta)``."""
        from suffice.solvers.newton import newton

        def function(eta: Floats) -> tuple[float, Floats, Floats]:
            value = float(eta @ mean) - self.log_normalizer(eta)
            if not np.isfinite(value):
                return -np.inf, mean, np.eye(len(mean))
            return value, mean - self.expected_statistics(eta), self.statistics_covariance(eta)

        return newton(function, self._start(mean), control, magnitude=np.abs(mean))

    def _start(self, mean: Floats) -> Floats:
        """Natural parameters near those that match the mean, for Newton."""
        raise OptionError(
            f"{type(self).__name__} gives neither a closed form (_match) nor a start for Newton (_start)."
        )

    def _from_mean(self, mean: Floats) -> dict[str, Any]:
        """Usual parameters from mean parameters."""
        return self._match(mean, EXACT)[0]

    @property
    def natural_parameters_(self) -> Floats:
        """Eta (k,)."""
        return self._to_natural(self.parameters_)

    @property
    def mean_parameters_(self) -> Floats:
        """E[T] (k,)."""
        return self.expected_statistics()

    def with_natural_parameters(self, eta: ArrayLike) -> Self:
        """The distribution of this family that has the given natural parameters."""
        return self._with(**self._from_natural(np.atleast_1d(as_numbers(eta))))

    def with_mean_parameters(self, mean: ArrayLike) -> Self:
        """The distribution of this family that has the given expected statistics."""
        return self._with(**self._from_mean(np.atleast_1d(as_numbers(mean))))

    def _eta(self, eta: ArrayLike | None) -> Floats:
        return self.natural_parameters_ if eta is None else np.atleast_1d(as_numbers(eta))

    # -- evaluation --------------------------------------------------------------------------------------------------

    def prob(self, x: Any) -> Floats:
        """Density or probability of each value."""
        return np.exp(self.log_prob(x))

    @abstractmethod
    def entropy(self) -> float:
        """Expected -log p, in nats (differential entropy for a density)."""

    def kl_divergence(self, other: Self) -> float:
        """KL(self || other) in nats: ``A(eta') - A(eta) - (eta' - eta) . E[T]``, the Bregman divergence of A."""
        if type(other) is not type(self):
            raise OptionError(
                f"KL is between two laws of one family, not {type(self).__name__} and {type(other).__name__}."
            )
        mine, theirs = self.natural_parameters_, other.natural_parameters_
        value = other.log_normalizer() - self.log_normalizer() - (theirs - mine) @ self.expected_statistics()
        return max(0.0, float(value))

    # -- fitting -----------------------------------------------------------------------------------------------------

    def _task(self) -> FamilyTask[Self]:
        return FamilyTask(self._options, self._with_fit(None))

    @abstractmethod
    def _ask(self, domain: Domain) -> tuple[Statistic, ...]:
        """The statistics that a fit needs."""

    @abstractmethod
    def _observed(self, summary: Summary) -> Floats:
        """Mean of T over the rows (k,)."""

    def _states_in(self, summary: Summary) -> tuple[Hashable, ...] | None:
        """The states that the rows showed; None where the distribution has none."""
        return None

    def _refuse_given(self, summary: Summary) -> None:
        """Raise where every parameter is given: the fit would either do nothing or overrule the caller."""
        if self._given() is not None:
            names = " and ".join(self.parameter_names)
            raise OptionError(f"There is nothing to fit: {names} given in the constructor. Leave out what is unknown.")

    def _maximise(self, summary: Summary, control: Control) -> tuple[dict[str, Any], Outcome | None]:
        """Parameters of maximum likelihood, and how the iteration ended; None for a closed form."""
        return self._match(self._observed(summary), control)

    def _empirical_entropy(self, summary: Summary) -> float | None:
        """Entropy of the observed frequencies; None where the data are not discrete."""
        return None

    # -- what a certificate is made of -------------------------------------------------------------------------------

    def _edge(self, summary: Summary) -> tuple[str, ...]:
        """What runs to infinity at the maximum-likelihood estimate; empty where the maximum is attained."""
        return ()

    def _shortfall(self, summary: Summary) -> float | None:
        """How far the mean log-likelihood of a row is below its maximum, where a formula says so; None where none does.

        It is the divergence of the distribution that has the observed statistics from this one, a sum of terms that
        are never negative, and takes no part in the fit.
        """
        return None

    def _rounding(self) -> float:
        """What rounding may hide of a standardised gap."""
        return ROUNDING

    def _gap(self, summary: Summary) -> tuple[float, float]:
        """Largest standardised gap between observed and expected statistics, and the Newton decrement."""
        spread = self._spread()
        spread = np.where(spread > 0, spread, 1.0)
        gaps = (self._observed(summary) - self.expected_statistics()) / spread
        if len(gaps) == 1:
            return (abs(float(gaps[0])),) * 2
        # Standardised first: statistics of very different sizes would look singular to the inverse.
        inverse = np.linalg.pinv(self.statistics_covariance() / np.outer(spread, spread), hermitian=True)
        return float(np.abs(gaps).max()), math.sqrt(max(float(gaps @ inverse @ gaps), 0.0))

    def _spread(self) -> Floats:
        """Standard deviation of each statistic (k,), where its square may be beyond float64 too."""
        return np.sqrt(np.diag(self.statistics_covariance()))

    # -- with a prior ------------------------------------------------------------------------------------------------

    def _estimate(self) -> str:
        estimate, prior = self._options.get("estimate"), self._options.get("prior")
        if estimate is None:
            return "mle" if prior is None else "mean"
        if estimate not in ESTIMATES:
            raise OptionError(f"estimate is {estimate!r}; expected one of {', '.join(map(repr, ESTIMATES))}.")
        if (estimate == "mle") != (prior is None):
            raise OptionError(f"estimate={estimate!r} {'needs a prior=' if prior is None else 'takes no prior'}.")
        return str(estimate)

    def _prior(self, summary: Summary) -> Any:
        """The prior object, or None; a class that is not conjugate to the family is an error."""
        prior = self._options.get("prior")
        if prior is None:
            return None
        if type(prior).__name__ not in self.conjugate_priors:
            known = " or ".join(self.conjugate_priors) or "none"
            raise OptionError(f"prior is {prior!r}; the conjugate prior of {type(self).__name__} is {known}.")
        prior.parameters_  # noqa: B018  an unfitted prior has no parameters and says so
        return prior

    def _update(self, prior: Any, summary: Summary) -> Any:
        """The posterior: the prior with the statistics of the rows added."""
        raise OptionError(f"{type(self).__name__} has no conjugate prior.")

    def _from_point(self, point: Any) -> dict[str, Any]:
        """Parameters from the posterior's mean or mode."""
        return {self.parameter_names[0]: point}

    def _point_space(self, estimate: str) -> str:
        """The parameters in which a mean or mode was taken."""
        return self.parameter_names[0]

    def _evidence(self, prior: Any, posterior: Any, summary: Summary) -> float | None:
        """Log marginal likelihood of the rows."""
        return None

    def _prior_point(self) -> Any:
        """The current parameters in the form that the prior's density takes."""
        return self.parameters_[self.parameter_names[0]]

    # -- posterior ---------------------------------------------------------------------------------------------------

    @property
    def posterior_(self) -> Any:
        """The conjugate posterior, itself a distribution over the parameters."""
        posterior = None if self._fit is None else self._fit.fitted.posterior
        if posterior is None:
            raise OptionError(
                f"This {type(self).__name__} was not fitted with a prior, so it has no posterior_. Give prior=."
            )
        return posterior

    @property
    def predictive_(self) -> Any:
        """The posterior predictive distribution of one more row."""
        return self._predictive(self.posterior_)

    def _predictive(self, posterior: Any) -> Any:
        raise OptionError(f"{type(self).__name__} has no posterior predictive distribution in closed form.")

    @property
    def log_evidence_(self) -> float:
        """Log marginal likelihood of the rows under the prior."""
        value = self.report_.log_evidence
        if value is None:
            raise OptionError("There is no evidence without a prior. Give prior=.")
        return value

    def credible_intervals(self, level: float = 0.95) -> dict[str, Any]:
        """Central posterior intervals of the parameters, by name."""
        found = self.posterior_.intervals(level)
        return found if isinstance(found, dict) else {self.parameter_names[0]: found}

    def _fitted_from(self, plain: Mapping[str, Any]) -> FamilyFitted:
        fitted, posterior = super()._fitted_from(plain), plain.get("posterior")
        if posterior is not None and type(posterior).__name__ not in self.conjugate_priors:
            raise OptionError(f"{type(posterior).__name__} is not a posterior of {type(self).__name__}.")
        return replace(fitted, posterior=posterior)
