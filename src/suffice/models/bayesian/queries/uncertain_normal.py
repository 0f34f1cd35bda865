"""A normal distribution as an answer, with the error bars of its means and covariances."""

from __future__ import annotations

from typing import Any

import numpy as np

from suffice.array_types import Floats
from suffice.checks import generator
from suffice.choices import IntervalMethod
from suffice.models.bayesian.queries.joint_gaussian import JointGaussian
from suffice.models.uncertain import Spread, checked_draws, normal_quantile, quantiles


class UncertainNormal(JointGaussian):
    """A normal distribution that follows from estimates: its means and covariances have standard errors."""

    _spread: Spread
    _errors: Floats | None = None

    @classmethod
    def of(cls, answer: JointGaussian, spread: Spread) -> UncertainNormal:
        """The same distribution with what it varies by."""
        made = cls(answer.distribution)
        made._spread = spread
        return made

    @property
    def _all_errors(self) -> Floats:
        if self._errors is None:
            self._errors = self._spread.errors()
        return self._errors

    def __reduce__(self) -> Any:
        """Pickles and copies hold the distribution, not the model that it came from."""
        return JointGaussian, (self.distribution,)

    @property
    def standard_errors(self) -> Floats:
        """Standard errors of the means (d,), by the delta method; see `covariance_errors` for those of covariances."""
        return self._all_errors[: len(self.names)]

    @property
    def covariance_errors(self) -> Floats:
        """Standard errors of the covariances (d, d)."""
        d = len(self.names)
        return self._all_errors[d:].reshape(d, d)

    def interval(
        self,
        level: float = 0.95,
        *,
        method: IntervalMethod = "delta",
        draws: int | None = None,
        random_state: Any = None,
    ) -> tuple[Floats, Floats]:
        """Lower and upper ends (d,) of an interval for each mean; arguments as those of `UncertainTable.interval`."""
        d, size = len(self.names), checked_draws(method, draws, random_state)
        if size is None:
            reach = normal_quantile(level) * self.standard_errors
            return self.mean - reach, self.mean + reach
        return quantiles(self._spread.draws(size, generator(random_state))[:, :d], level)

    def variance_interval(
        self,
        level: float = 0.95,
        *,
        method: IntervalMethod = "delta",
        draws: int | None = None,
        random_state: Any = None,
    ) -> tuple[Floats, Floats]:
        """The same (d,) for each variance; by the delta method normal on the scale of its logarithm."""
        d, size = len(self.names), checked_draws(method, draws, random_state)
        variance = np.diag(self.covariance)
        if size is None:
            with np.errstate(divide="ignore", invalid="ignore"):
                reach = np.exp(normal_quantile(level) * np.diag(self.covariance_errors) / variance)
            reach = np.where(variance > 0, reach, 1.0)
            return variance / reach, variance * reach
        drawn = self._spread.draws(size, generator(random_state))[:, d:].reshape(size, d, d)
        return quantiles(np.diagonal(drawn, axis1=1, axis2=2), level)
