"""Exponential families: ``p(x) = h(x) exp(eta . T(x) - A(eta))``.

Maximum likelihood is moment matching, ``grad A(eta) = mean of T``; a conjugate prior turns into a conjugate posterior
by adding statistics. Both are written here once for all laws.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from suffice.errors import EstimateError, OptionError
from suffice.families.base import Distribution, as_numbers
from suffice.fitting.control import Control, Outcome, fingerprint
from suffice.fitting.report import Certificate, MatchedStatistics
from suffice.fitting.template import Solution
from suffice.statistics import Summary

if TYPE_CHECKING:
    from suffice.fitting.portrait import Portrait

Floats = NDArray[np.float64]

#: What rounding may hide of a standardised gap, where observed and expected statistics are divided and subtracted.
ROUNDING = 16 * float(np.finfo(np.float64).eps)

#: Gaps in posterior standard deviations that the numerical derivatives of the check may leave.
WELL_BELOW = 1e-3

ESTIMATES = ("mle", "map", "mean")


class ExponentialFamily(Distribution):
    """Base of the exponential families.

    A law provides, in this order: its parameters, its statistics (T, h, A and the derivatives of A), the maps between
    natural, mean and usual parameters, evaluation, and fitting.
    """

    #: Names of the components of T.
    statistic_names: ClassVar[tuple[str, ...]] = ()
    #: Names of the prior classes that are conjugate to the law.
    conjugate_priors: ClassVar[tuple[str, ...]] = ()

    # -- statistics --------------------------------------------------------------------------------------------------

    def sufficient_statistics(self, x: Any) -> Floats:
        """T of each value, (n, k)."""
        raise NotImplementedError

    def log_base_measure(self, x: Any) -> Floats:
        """Log h of each value, (n,)."""
        raise NotImplementedError

    def log_normalizer(self, eta: ArrayLike | None = None) -> float:
        """A(eta) = log of the integral of h exp(eta . T); at the law's own parameters by default."""
        raise NotImplementedError

    def expected_statistics(self, eta: ArrayLike | None = None) -> Floats:
        """The gradient of A, which is E[T] (k,)."""
        raise NotImplementedError

    def statistics_covariance(self, eta: ArrayLike | None = None) -> Floats:
        """The Hessian of A, which is Cov[T] (k, k); also the Fisher information of eta."""
        raise NotImplementedError

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
        """Cumulants 1 to `order` of ``direction . T`` (order,)."""
        raise NotImplementedError

    # -- maps --------------------------------------------------------------------------------------------------------

    def _to_natural(self, parameters: Mapping[str, Any]) -> Floats:
        """Natural parameters (k,) from usual ones; +-inf at the edge of the family."""
        raise NotImplementedError

    def _from_natural(self, eta: Floats) -> dict[str, Any]:
        """Usual parameters from natural ones."""
        raise NotImplementedError

    def _from_mean(self, mean: Floats) -> dict[str, Any]:
        """Usual parameters from mean parameters; by Newton on A unless the law has a closed form."""
        outcome = self._match(mean, Control(max_iter=200, tolerance=1e-13))
        return self._from_natural(outcome.state.parameters)

    @property
    def natural_parameters_(self) -> Floats:
        """Eta (k,)."""
        return self._to_natural(self.parameters_)

    @property
    def mean_parameters_(self) -> Floats:
        """E[T] (k,)."""
        return self.expected_statistics()

    def with_natural_parameters(self, eta: ArrayLike) -> Self:
        """The law of this family that has the given natural parameters."""
        return self._with(**self._from_natural(np.atleast_1d(as_numbers(eta))))

    def with_mean_parameters(self, mean: ArrayLike) -> Self:
        """The law of this family that has the given expected statistics."""
        return self._with(**self._from_mean(np.atleast_1d(as_numbers(mean))))

    def _eta(self, eta: ArrayLike | None) -> Floats:
        return self.natural_parameters_ if eta is None else np.atleast_1d(as_numbers(eta))

    # -- evaluation --------------------------------------------------------------------------------------------------

    def prob(self, x: Any) -> Floats:
        """Density or probability of each value."""
        return np.exp(self.log_prob(x))

    def entropy(self) -> float:
        """Expected -log p, in nats (differential entropy for a density)."""
        raise NotImplementedError

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

    def _observed(self, summary: Summary) -> Floats:
        """Mean of T over the rows (k,)."""
        raise NotImplementedError

    def _maximise(self, summary: Summary) -> Outcome | None:
        """Set the parameters of maximum likelihood; None for a closed form, else how the iteration ended."""
        self._parameters = self._check(self._from_mean(self._observed(summary)))
        return None

    def _refuse_given(self) -> None:
        """Raise where every parameter is given: the fit would either do nothing or overrule the caller."""
        if self._given() is not None:
            names = " and ".join(self.parameter_names)
            raise OptionError(f"There is nothing to fit: {names} given in the constructor. Leave out what is unknown.")

    def _edge(self, summary: Summary) -> tuple[str, ...]:
        """What runs to infinity at the maximum-likelihood estimate; empty where the maximum is attained."""
        return ()

    def _start(self, mean: Floats) -> Floats:
        """Natural parameters near those that match the mean, for Newton."""
        raise NotImplementedError

    def _match(self, mean: Floats, control: Control, problem: str = "") -> Outcome:
        """Find eta with ``grad A(eta) = mean`` by maximising the concave ``eta . mean - A(eta)``."""
        from suffice.solvers.newton import newton

        def function(eta: Floats) -> tuple[float, Floats, Floats]:
            value = float(eta @ mean) - self.log_normalizer(eta)
            if not np.isfinite(value):
                return -np.inf, mean, np.eye(len(mean))
            return value, mean - self.expected_statistics(eta), self.statistics_covariance(eta)

        return newton(function, self._start(mean), control, problem=problem, magnitude=np.abs(mean))

    def _maximise_by_newton(self, summary: Summary) -> Outcome:
        mean = self._observed(summary)
        outcome = self._match(mean, self._control(), fingerprint(type(self).__name__, mean))
        self._parameters = self._check(self._from_natural(outcome.state.parameters))
        return outcome

    def _solve(self, summary: Summary) -> Solution:
        prior, estimate = self._prior(summary), self._estimate()
        if prior is None:
            self.__dict__.pop("_posterior", None)
            if summary.weight <= 0:
                found = f"All weights of the {summary.rows} rows are 0" if summary.rows else "There are no rows"
                raise EstimateError(f"{found}: the maximum-likelihood {type(self).__name__} needs data, or a prior=.")
            outcome = self._maximise(summary)
            closed = "closed form: expected statistics equal the observed ones"
            method = closed if outcome is None else "Newton on the log-likelihood"
            warnings = tuple(f"{text}: the estimate lies on the edge of the family" for text in self._edge(summary))
            return Solution(method, "maximum likelihood", outcome=outcome, warnings=warnings)
        posterior = self._update(prior, summary)
        self._posterior = posterior
        point = posterior.mode() if estimate == "map" else posterior.mean()
        self._parameters = self._check(self._from_point(point))
        return Solution(
            method=f"closed form: conjugate {type(prior).__name__} posterior",
            estimate="MAP" if estimate == "map" else "posterior mean",
            parameterisation=f"in {self._point_space(estimate)}",
            log_evidence=self._evidence(prior, posterior, summary),
        )

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
        """The prior object, or None; a class that is not conjugate to the law is an error."""
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
        raise NotImplementedError

    def _from_point(self, point: Any) -> dict[str, Any]:
        """Parameters from the posterior's mean or mode."""
        return {self.parameter_names[0]: point}

    def _point_space(self, estimate: str) -> str:
        """The parameters in which a mean or mode was taken."""
        return self.parameter_names[0]

    def _evidence(self, prior: Any, posterior: Any, summary: Summary) -> float | None:
        """Log marginal likelihood of the rows."""
        return None

    def _log_likelihood(self, summary: Summary) -> float:
        raise NotImplementedError

    def _objective(self, summary: Summary, log_likelihood: float) -> float:
        if "_posterior" not in self.__dict__ or self._estimate() != "map":
            return log_likelihood
        prior, point = self._prior(summary), self._prior_point()
        value = log_likelihood + float(prior.log_prob(point))
        if math.isnan(value):
            # On the edge an unbounded prior density meets a likelihood of 0; the product is evidence times posterior.
            value = float(self._posterior.log_prob(point)) + (self._evidence(prior, self._posterior, summary) or 0.0)
        return value

    def _prior_point(self) -> Any:
        """The current parameters in the form that the prior's density takes."""
        return self.parameters_[self.parameter_names[0]]

    def _certify(self, summary: Summary) -> Certificate:
        if "_posterior" in self.__dict__:
            return self._certify_posterior(summary)
        edge = self._edge(summary)
        gap, decrement = self._gap(summary)
        short = self._shortfall(summary)
        if short is None:
            return Certificate(gap, 0.5 * decrement * decrement, bound=False, exists=not edge, directions=edge)
        # It is quadratic in the standardised gap, of which rounding may hide a part.
        most = (math.sqrt(max(short, 0.0)) + self._rounding()) ** 2 if short < math.inf else math.inf
        return Certificate(gap, most, bound=True, exists=not edge, directions=edge)

    def _shortfall(self, summary: Summary) -> float | None:
        """How far the mean log-likelihood of a row is below its maximum, where a formula says so; None where none does.

        It is the divergence of the law that has the observed statistics from this one, a sum of terms that are never
        negative, and takes no part in the fit.
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

    def _certify_posterior(self, summary: Summary) -> Certificate:
        """Bayes' theorem at the estimate, and the estimate as the mode or the mean; see `posterior_check`.

        The rise of the log posterior is half the squared slope in standard deviations, spread over the rows.
        """
        from suffice.families.posterior_check import SCALE, check_posterior, on_edge

        found = check_posterior(self, self._prior(summary), summary, mode=self._estimate() == "map")
        rise = None if found.rise is None else found.rise / max(summary.weight, 1.0)
        short = self._posterior.below_mode(self._prior_point()) if found.rise is not None else None
        # Where Bayes' theorem holds, the objective is the log posterior and a constant.
        bound = short is not None and found.bayes < WELL_BELOW
        if short is not None and bound:
            rise = (math.sqrt(short) + self._rounding() * math.sqrt(summary.weight + 1)) ** 2 / max(summary.weight, 1.0)
        edge: tuple[str, ...] = ()
        if on_edge(self.parameters_):
            seen = self._edge(summary) if summary.weight > 0 else ()
            edge = seen or ("a natural parameter -> +-inf (the prior has its mode on the edge)",)
        mean = "" if self._estimate() == "map" else "the mean of the posterior"
        return Certificate(found.gap, rise, bound=bound, exists=not edge, directions=edge, scale=SCALE, formula=mean)

    def matched_statistics(self) -> MatchedStatistics | None:
        """The means of T over the rows, and E[T]; None without rows."""
        if not self.summary_.weight > 0:
            return None
        observed, expected = self._observed(self.summary_), self.expected_statistics()
        several = len(self.statistic_names) == len(observed)
        names = self.statistic_names if several else tuple(f"T{at + 1}" for at in range(len(observed)))
        return MatchedStatistics(names, observed, expected)

    # -- posterior ---------------------------------------------------------------------------------------------------

    @property
    def posterior_(self) -> Any:
        """The conjugate posterior, itself a distribution over the parameters."""
        if "_posterior" not in self.__dict__:
            raise OptionError(
                f"This {type(self).__name__} was not fitted with a prior, so it has no posterior_. Give prior=."
            )
        return self._posterior

    @property
    def predictive_(self) -> Any:
        """The posterior predictive law of one more row."""
        return self._predictive(self.posterior_)

    def _predictive(self, posterior: Any) -> Any:
        raise NotImplementedError

    @property
    def log_evidence_(self) -> float:
        """Log marginal likelihood of the rows under the prior."""
        value = self.report_.log_evidence
        if value is None:
            raise OptionError("There is no evidence without a prior. Give prior=.")
        return value

    def portrait(self) -> Portrait:
        """What there is to see of it: what pages, plots and notebooks show."""
        from suffice.families.portrait import exponential_portrait

        return exponential_portrait(self)

    def credible_intervals(self, level: float = 0.95) -> dict[str, Any]:
        """Central posterior intervals of the parameters, by name."""
        found = self.posterior_.intervals(level)
        return found if isinstance(found, dict) else {self.parameter_names[0]: found}

    def _fitted_state(self) -> dict[str, Any]:
        state = super()._fitted_state()
        return state | ({"posterior": self._posterior} if "_posterior" in self.__dict__ else {})

    def _restore(self, state: Mapping[str, Any]) -> None:
        super()._restore(state)
        if "posterior" in state:
            if type(state["posterior"]).__name__ not in self.conjugate_priors:
                raise OptionError(f"{type(state['posterior']).__name__} is not a posterior of {type(self).__name__}.")
            self._posterior = state["posterior"]
