"""Distributions of whole numbers 0, 1, 2, ...: what they share."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Hashable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from suffice.array_types import Floats
from suffice.domain import Domain, Variable
from suffice.errors import DataError, MissingValueError, SizeError
from suffice.families.base import as_numbers, as_shares, only_variable
from suffice.families.gamma_function import rest
from suffice.families.scalar import ScalarMember
from suffice.statistics import Patterns, Statistic, Summary

#: Distributions of counts are sampled up to this mean; draws are whole numbers of 64 bits.
LARGEST_MEAN = 1e18


def in_support(x: ArrayLike) -> NDArray[np.bool_]:
    """Whether each value is a whole number of at least 0."""
    values = as_numbers(x)
    return np.asarray(np.isfinite(values) & (values >= 0) & (values == np.floor(values)))


def entropy_of_weights(weights: Floats) -> float:
    """Entropy of the frequencies w / sum w in nats."""
    from scipy.special import entr

    return float(entr(weights / weights.sum()).sum())


def log_choices(x: Floats, size: Floats | float) -> Floats:
    """Log of ``Gamma(x + size) / (Gamma(size) Gamma(x + 1))``, by terms that neither cancel nor overflow."""
    some = np.where(x > 0, x, 1.0)
    with np.errstate(over="ignore"):
        bulk = some * np.log1p(size / some) + size * np.log1p(some / size) - np.log(some)
    return np.asarray(np.where(x > 0, bulk + rest(some + size) - rest(some) - rest(size), 0.0))


def weighted_sum(weights: Floats, values: Floats) -> float:
    """The sum of w x, rounded once; +-inf beyond the range of numbers. Rows without weight count for nothing."""
    used = weights > 0
    with np.errstate(over="ignore"):
        products = weights[used] * values[used]
    try:
        return math.fsum(products)
    except OverflowError:
        return float(np.sign(products[np.argmax(np.abs(products))])) * math.inf


def refuse_long_draws(mean: Floats | float) -> None:
    """Raise where counts are too large to be drawn as whole numbers of 64 bits."""
    most = float(np.max(mean, initial=0.0))
    if not most < LARGEST_MEAN:
        raise SizeError(f"The distribution has a mean of {most:g}; counts are drawn up to a mean of {LARGEST_MEAN:g}.")


class CountMember(ScalarMember):
    """Base of the distributions on 0, 1, 2, ... with T(x) = x.

    They ask for the distinct values of a column with their weights: the sum of x, the sum of log h(x) and the entropy
    of the observed frequencies then follow without another look at the rows.
    """

    statistic_names = ("x",)

    # -- statistics --------------------------------------------------------------------------------------------------

    def sufficient_statistics(self, x: ArrayLike) -> Floats:
        """X of each value, (n, 1)."""
        return as_numbers(x)[..., None]

    @abstractmethod
    def log_gamma_base(self, x: Floats) -> Floats:
        """Log h by gamma functions, which know it between the counts too."""

    def log_base_measure(self, x: ArrayLike) -> Floats:
        """Log h of each value; -inf off 0, 1, 2, ..."""
        return self._on_counts(x, self.log_gamma_base)

    # -- evaluation --------------------------------------------------------------------------------------------------

    @abstractmethod
    def log_gamma_prob(self, x: Floats) -> Floats:
        """Log probability by gamma functions, of any number of at least 0: there it adds up to no distribution."""

    def log_prob(self, x: ArrayLike) -> Floats:
        """Log probability of each value; -inf off 0, 1, 2, ..."""
        return self._on_counts(x, self.log_gamma_prob)

    @staticmethod
    def _on_counts(x: ArrayLike, function: Callable[[Floats], Floats]) -> Floats:
        """A function of each count; -inf off the counts."""
        values = as_numbers(x)
        inside = in_support(values)
        return np.asarray(np.where(inside, function(np.where(inside, values, 0.0)), -np.inf))

    def log_kernel(self, x: Floats) -> Floats:
        """``x eta - A``, the log probability of each count less log h, and less the digits that `log_prob` keeps."""
        with np.errstate(invalid="ignore"):
            return np.asarray(np.where(x == 0, 0.0, x * self.natural_parameters()[0]) - self.log_normalizer())

    def quantile(self, q: ArrayLike) -> Floats:
        """The smallest whole number x with P(X <= x) >= q; inf for q = 1 where the support has no end."""
        shares = as_shares(q, "q")
        low, high = np.full(shares.shape, -1.0), np.where((shares == 1) & (self.variance() > 0), np.inf, 0.0)
        while (below := (self.cdf(high) < shares) & np.isfinite(high)).any():
            low, high = np.where(below, high, low), np.where(below, 2 * high + 1, high)
        # Beyond 2^53 neighbours are further apart than one, and the middle meets an end.
        while (apart := ((middle := np.floor(low + (high - low) / 2)) > low) & (middle < high)).any():
            middle = np.where(apart, middle, 0.0)
            enough = self.cdf(middle) >= shares
            low, high = np.where(apart & ~enough, middle, low), np.where(apart & enough, middle, high)
        return high

    # -- fitting -----------------------------------------------------------------------------------------------------

    def variable(self, name: Hashable) -> Variable:
        """The kind of column that the family describes."""
        return Variable(name, "count")

    def ask(self, domain: Domain) -> tuple[Statistic, ...]:
        """The statistics that a fit needs."""
        return (Patterns(domain.names),)

    def _values(self, summary: Summary) -> tuple[Floats, Floats]:
        """Distinct values and their weights."""
        name = only_variable(summary, self.title).name
        table = summary[Patterns((name,))]
        values = np.asarray(table.rows[:, 0], dtype=np.float64)
        if np.isnan(values).any():
            raise MissingValueError(
                f"Column {name!r} has missing values and {self.title} takes none. Leave those rows out."
            )
        wrong = values[~in_support(values)]
        if len(wrong):
            raise DataError(f"Column {name!r} holds {float(wrong[0])!r}; expected whole numbers of at least 0.")
        return values, table.weights

    def _total(self, summary: Summary) -> float:
        """Weighted sum of the values."""
        values, weights = self._values(summary)
        total = weighted_sum(weights, values)
        if not math.isfinite(total):
            raise DataError(
                f"Column {summary.domain.names[0]!r} holds {float(values.max())!r}, and the sum of its values is "
                "beyond the largest number, 1.8e+308. Correct the values, or give the column in another unit."
            )
        return total

    def observed(self, summary: Summary) -> Floats:
        """Mean of T over the rows (k,)."""
        return np.array([self._total(summary) / summary.weight])

    def log_likelihood(self, summary: Summary) -> float:
        """Sum over the rows of a summary, natural logarithm, where log h is 0."""
        values, weights = self._values(summary)
        return weighted_sum(weights, self.log_prob(values))

    def _log_base(self, summary: Summary) -> float:
        """Weighted sum of log h."""
        values, weights = self._values(summary)
        return weighted_sum(weights, self.log_base_measure(values))

    def empirical_entropy(self, summary: Summary) -> float | None:
        """Entropy of the observed frequencies; None where the data are not discrete."""
        weights = self._values(summary)[1]
        return entropy_of_weights(weights) if weights.sum() > 0 else None

    def edge(self, summary: Summary) -> tuple[str, ...]:
        """All rows zero: the distribution that never leaves zero, which has no natural parameter."""
        return ("eta -> -inf (every value is 0)",) if self._total(summary) == 0 else ()
