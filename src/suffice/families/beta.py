"""The beta distribution on (0, 1): a distribution of shares, and the conjugate prior of a probability."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from suffice.array_types import Floats
from suffice.checks import draw_count
from suffice.domain import Domain, Variable
from suffice.errors import DataError, EstimateError, OptionError, listing
from suffice.families import simplex
from suffice.families.base import (
    Seed,
    as_float,
    as_floats,
    as_numbers,
    as_shape,
    as_shares,
    generator,
    never_in,
    only_variable,
)
from suffice.families.conjugate import ConjugatePrior
from suffice.families.exponential_family import answered_by
from suffice.families.moments import read_sums
from suffice.families.scalar import ScalarFamily, ScalarMember
from suffice.families.shares import ShareMember
from suffice.fitting.control import Control, Outcome
from suffice.options import NewtonOptions
from suffice.statistics import Counts, Statistic, Summary, Sums

#: What x and 1 - x may miss a sum of one by, in means of logarithms.
ROUNDING = 1e-9


class BetaMember(ShareMember, ScalarMember):
    """The beta distribution, density ``x^(alpha - 1) (1 - x)^(beta - 1) / B(alpha, beta)``."""

    parameter_names = ("alpha", "beta")
    alpha_: float
    beta_: float
    statistic_names = ("log x", "log(1 - x)")

    # -- parameters --------------------------------------------------------------------------------------------------

    def check(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Parameters in their final type; an impossible value is an error."""
        return {name: as_shape(parameters[name], name) for name in self.parameter_names}

    @property
    def n_params(self) -> int:
        """Two."""
        return 2

    # -- statistics --------------------------------------------------------------------------------------------------

    def sufficient_statistics(self, x: ArrayLike) -> Floats:
        """(log x, log(1 - x)) of each value, (n, 2)."""
        values = as_numbers(x)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.stack([np.log(values), np.log1p(-values)], axis=-1)

    def log_base_measure(self, x: ArrayLike) -> Floats:
        """0 for each value: h = 1 with natural parameters (alpha - 1, beta - 1); -inf outside [0, 1]."""
        values = as_numbers(x)
        return np.where((values >= 0) & (values <= 1), 0.0, -np.inf)

    # -- maps --------------------------------------------------------------------------------------------------------

    def _usual(self, eta: ArrayLike | None) -> Floats:
        """(alpha, beta)."""
        return np.array([self.alpha_, self.beta_]) if eta is None else self._eta(eta) + 1

    def to_natural(self, parameters: Mapping[str, Any]) -> Floats:
        """Natural parameters (k,) from usual ones; +-inf at the edge of the family."""
        return np.array([parameters["alpha"] - 1, parameters["beta"] - 1])

    def from_natural(self, eta: Floats) -> dict[str, Any]:
        """Usual parameters from natural ones."""
        return {"alpha": float(eta[0]) + 1, "beta": float(eta[1]) + 1}

    # -- evaluation --------------------------------------------------------------------------------------------------

    def log_prob(self, x: ArrayLike) -> Floats:
        """Log density of each value; -inf outside [0, 1]."""
        values = as_numbers(x)
        inside = (values >= 0) & (values <= 1)
        points = np.where(inside, values, 0.5)
        both = np.stack([points, 1 - points], axis=-1)
        density = simplex.log_density(self._usual(None), both, both[..., ::-1])
        return np.asarray(np.where(inside, density, -np.inf))

    def cdf(self, x: ArrayLike) -> Floats:
        """P(X <= x), the regularised incomplete beta function."""
        from scipy.special import betainc, gammainc, gammaincc

        x, a, b = np.clip(as_numbers(x), 0.0, 1.0), self.alpha_, self.beta_
        shares = betainc(a, b, x)
        # Out of SciPy's reach it is, in its limit, the distribution of a gamma variable over b, or of 1 less one over
        # a.
        limit = gammainc(a, b * x) if a < b else gammaincc(b, a * (1 - x))
        return np.asarray(np.where(np.isnan(shares), limit, shares))

    def quantile(self, q: ArrayLike) -> Floats:
        """The value below which a share q of the mass lies."""
        return simplex.beta_quantile(self.alpha_, self.beta_, as_shares(q, "q"))

    def sample(self, n: int = 1, random_state: Seed = None) -> Floats:
        """`n` draws (n,)."""
        return generator(random_state).beta(self.alpha_, self.beta_, size=draw_count(n))

    def mean(self) -> float:
        """``alpha / (alpha + beta)``."""
        return float(self.alpha_ / (self.alpha_ + self.beta_))

    def variance(self) -> float:
        """``alpha beta / ((alpha + beta)^2 (alpha + beta + 1))``."""
        total = self.alpha_ + self.beta_
        return float(self.alpha_ / total * (self.beta_ / total) / (total + 1))

    def mode(self) -> float:
        """(alpha - 1) / (alpha + beta - 2); exists where neither is below one."""
        for name, value, end in (("alpha", self.alpha_, 0), ("beta", self.beta_, 1)):
            if value < 1:
                raise EstimateError(
                    f"The density has no mode: {name} is {value:g}, below one, so it is unbounded at {end}. "
                    "Use estimate='mean', or a prior of at least 1."
                )
        excess = self.alpha_ - 1 + (self.beta_ - 1)
        if not excess > 0:
            raise EstimateError(
                "The density is flat (alpha and beta are 1), so it has no single mode. Use estimate='mean'."
            )
        return float((self.alpha_ - 1) / excess)

    # -- fitting -----------------------------------------------------------------------------------------------------

    def ask(self, domain: Domain) -> tuple[Statistic, ...]:
        """The statistics that a fit needs."""
        return (Sums.of(*((name, function) for name in domain.names for function in ("log", "log1m"))),)

    def observed(self, summary: Summary) -> Floats:
        """Mean of T over the rows (k,)."""
        means = np.asarray(read_sums(summary, self.ask(summary.domain)[0]).means)
        if not simplex.are_possible(means, ROUNDING):
            raise never_in(f"a mean of (log x, log(1 - x)) of {means!r}")
        return means

    def refuse_given(self, summary: Summary) -> None:
        """Raise where every parameter is given: the fit would either do nothing or overrule the caller."""
        super().refuse_given(summary)
        if self.known.get("alpha") is not None or self.known.get("beta") is not None:
            raise OptionError("Beta is fitted in both alpha and beta; give neither in the constructor.")

    def maximise(self, summary: Summary, control: Control) -> tuple[dict[str, Any], Outcome | None]:
        """Parameters of maximum likelihood, and how the iteration ended; None for a closed form."""
        if simplex.are_alike(self.observed(summary)):
            raise EstimateError(
                f"The column is constant over {summary.rows} rows: the likelihood grows without bound "
                "with alpha and beta. A beta distribution needs values that differ."
            )
        simplex.refuse_corner(self.observed(summary), summary.rows)
        return super().maximise(summary, control)

    def narrowest(self, mean: Floats, most: float) -> dict[str, Any]:
        """The largest sum of alpha."""
        alpha, beta = simplex.of_total(mean, most)
        return {"alpha": float(alpha), "beta": float(beta)}

    # -- as a prior of a probability ---------------------------------------------------------------------------------

    def stationarity(self, point: Any) -> Floats:
        """Slope of the log density in the log odds: (alpha - 1) - x (alpha + beta - 2), zero at the mode."""
        return np.atleast_1d((self.alpha_ - 1) - as_numbers(point) * (self.alpha_ - 1 + (self.beta_ - 1)))

    def below_mode(self, point: Any) -> float | None:
        """That of a Dirichlet distribution of two parts."""
        share = as_float(point, "point")
        return simplex.below_mode(self._usual(None), np.array([share, 1 - share]))


class Beta(ScalarFamily, ConjugatePrior):
    """The beta distribution, density ``x^(alpha - 1) (1 - x)^(beta - 1) / B(alpha, beta)``.

    As a prior of a probability, `alpha` counts successes and `beta` failures: the posterior mean is
    ``(alpha + successes) / (alpha + beta + rows)``, the mode has one less in each. As a distribution of data it is
    fitted to a column of numbers strictly between 0 and 1 by Newton.

    Args:
        alpha: weight of the logarithm of x, above 0.
        beta: weight of the logarithm of 1 - x, above 0.
        run: see `NewtonOptions`.

    >>> posterior = Beta(1, 1).posterior([7, 3])
    >>> posterior.alpha_, posterior.beta_, round(posterior.mean(), 4)
    (8.0, 4.0, 0.6667)
    """

    member_class = BetaMember
    alpha_: float
    beta_: float

    def __init__(
        self,
        alpha: float | None = None,
        beta: float | None = None,
        **run: Unpack[NewtonOptions],
    ) -> None:
        """See the class."""
        super().__init__(alpha=alpha, beta=beta, **run)

    stationarity = answered_by(BetaMember.stationarity)
    below_mode = answered_by(BetaMember.below_mode)
    intervals = answered_by(BetaMember.intervals)

    def _from_summary(self, summary: Summary) -> Beta:
        """Of a column of successes and failures."""
        only_variable(summary, type(self).__name__)
        failures, successes = trial_counts(summary)
        return self._from_counts([successes, failures])

    def _from_counts(self, counts: Any) -> Beta:
        trials = as_floats(counts, "counts")
        if trials.shape != (2,) or (trials < 0).any():
            raise OptionError(f"counts is {counts!r}; expected (successes, failures), two numbers of at least 0.")
        return Beta(self.alpha_ + float(trials[0]), self.beta_ + float(trials[1]))

    def log_evidence(self, counts: ArrayLike) -> float:
        """Log probability of a sequence of trials with these (successes, failures): log B(posterior) - log B(prior)."""
        self._from_counts(counts)
        return simplex.log_evidence(np.array([self.alpha_, self.beta_]), as_floats(counts, "counts"))


# --------------------------------------------------------------------------------------------------------------------
# Columns of successes and failures
# --------------------------------------------------------------------------------------------------------------------


def trial_states(variable: Variable) -> tuple[Hashable, Hashable]:
    """(failure, success) of a discrete variable: as declared, or one of False/True, 0/1 and 0.0/1.0."""
    states = variable.states
    if variable.origin == "declared" and len(states) == 2:
        return states[0], states[1]
    kinds = {type(state) for state in states}
    if kinds == {bool}:
        return False, True
    if kinds <= {int, float} and set(states) <= {0, 1}:
        return (0.0, 1.0) if kinds == {float} else (0, 1)
    raise DataError(
        f"Column {variable.name!r} holds the states {listing(states)}; a success is 1 or True, a failure 0 or False. "
        "Declare which is which by states=(failure, success)."
    )


def trial_counts(summary: Summary, states: tuple[Hashable, Hashable] | None = None) -> tuple[float, float]:
    """Weights of failures and successes in a summary of one discrete column."""
    (variable,) = summary.domain.variables
    distribution = Variable.discrete(variable.name, trial_states(variable) if states is None else states)
    placed = np.zeros(2)
    for state, count in zip(variable.states, summary[Counts((variable.name,))].dense(), strict=True):
        placed[distribution.index(state)] += count
    return float(placed[0]), float(placed[1])
