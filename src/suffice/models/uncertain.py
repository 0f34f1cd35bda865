"""Answers that know how far the rows determine them: standard errors and intervals, worked out when asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from suffice.array_types import Floats
from suffice.checks import choice, generator, whole_number
from suffice.choices import IntervalMethod, choices
from suffice.errors import OptionError, shortened
from suffice.table import Table

if TYPE_CHECKING:
    from suffice.domain import Domain

#: Draws of the parameters for an interval, unless said.
DRAWS = 1000


class Spread(Protocol):
    """How answers (a,) vary with the parameters that the rows leave open."""

    def errors(self) -> Floats:
        """Standard errors (a,) by the delta method."""
        ...

    def draws(self, n: int, rng: np.random.Generator) -> Floats:
        """The answers (n, a) at draws of the parameters from their posterior."""
        ...


class LaterSpread:
    """A spread that is worked out when it is first asked for, by a function of these arguments."""

    def __init__(self, make: Callable[..., Spread], *arguments: Any) -> None:
        """Keep both."""
        self._make, self._arguments = make, arguments
        self._made: Spread | None = None

    def _spread(self) -> Spread:
        if self._made is None:
            self._made = self._make(*self._arguments)
        return self._made

    def errors(self) -> Floats:
        """Standard errors (a,)."""
        return self._spread().errors()

    def draws(self, n: int, rng: np.random.Generator) -> Floats:
        """The answers (n, a) at draws of the parameters."""
        return self._spread().draws(n, rng)


class UncertainTable(Table):
    """A table of probabilities that was estimated: with standard errors and intervals.

    The error bar is about the parameters: how far the answer may be from that of the distribution which the rows were
    drawn from, if the structure is right. Nothing of it is computed before it is read.
    """

    _varies: Spread
    _errors: Table | None = None

    @classmethod
    def of(cls, table: Table, spread: Spread) -> UncertainTable:
        """The same numbers with what they vary by."""
        answer = object.__new__(cls)
        answer._domain, answer._values, answer._varies = table.domain, table.values, spread
        return answer

    @property
    def standard_errors(self) -> Table:
        """The standard error of each probability, by the delta method.

        inf where the answer depends on parameters that no row and no prior determines; NaN where the probability is 0
        or 1 because its events were never seen: there, maximum likelihood has no normal limit. A prior mends both.
        """
        if self._errors is None:
            self._errors = Table(self.domain, self._varies.errors().reshape(self.values.shape))
        return self._errors

    def interval(
        self,
        level: float = 0.95,
        *,
        method: IntervalMethod = "delta",
        draws: int | None = None,
        random_state: Any = None,
    ) -> tuple[Table, Table]:
        """The lower and upper ends of an interval for each probability.

        Args:
            level: the share of data sets, or of the posterior, whose interval holds the true probability.
            method: ``"delta"``: normal on the scale of log odds, so that the ends lie between 0 and 1;
                ``"posterior"``: quantiles of the answer at draws of the parameters from their posterior.
            draws: how many, for ``"posterior"``; 1,000 by default.
            random_state: their seed.
        """
        size = checked_draws(method, draws, random_state)
        if size is None:
            ends = odds_interval(self.values, self.standard_errors.values, level)
        else:
            drawn = self._varies.draws(size, generator(random_state))
            ends = quantiles(drawn.reshape(size, *self.values.shape), level)
        return Table(self.domain, ends[0]), Table(self.domain, ends[1])

    def __reduce__(self) -> Any:
        """Pickles and copies hold the numbers, not the model that they came from."""
        return _plain, (self.domain, np.array(self.values))


def _plain(domain: Domain, values: Floats) -> Table:
    return Table(domain, values)


def checked_draws(method: str, draws: int | None, random_state: object) -> int | None:
    """How many draws of the parameters an interval takes; None for the delta method, which takes none."""
    if choice(method, "method", choices(IntervalMethod)) == "posterior":
        return DRAWS if draws is None else whole_number(draws, "draws", 2)
    if draws is not None or random_state is not None:
        raise OptionError("draws= and random_state= are for method='posterior'; the delta method draws nothing.")
    return None


def normal_quantile(level: float) -> float:
    """How many standard errors a central interval reaches to each side."""
    from statistics import NormalDist

    if isinstance(level, bool) or not isinstance(level, float | int) or not 0 < level < 1:
        raise OptionError(f"level is {shortened(level)}; expected a number between 0 and 1, such as 0.95.")
    return NormalDist().inv_cdf((1 + level) / 2)


def odds_interval(p: Floats, errors: Floats, level: float) -> tuple[Floats, Floats]:
    """Ends of intervals of probabilities, normal in log odds: d logit p = dp / (p (1 - p))."""
    inside, known = (p > 0) & (p < 1), np.where(np.isinf(errors), 0.0, errors)
    with np.errstate(over="ignore"):
        reach = np.exp(normal_quantile(level) * known / np.where(inside, p * (1 - p), 1.0))
    # On an edge there is an error of 0, or none at all.
    low = np.where(inside, p / (p + (1 - p) * reach), p + 0 * known)
    high = np.where(inside, p / (p + (1 - p) / reach), p + 0 * known)
    return np.where(np.isinf(errors), 0.0, low), np.where(np.isinf(errors), 1.0, high)


def quantiles(drawn: Floats, level: float) -> tuple[Floats, Floats]:
    """Central quantiles of draws (n, ...)."""
    normal_quantile(level)
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return low, high
