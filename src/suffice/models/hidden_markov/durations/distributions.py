"""Distributions of how long a state lasts: a table, one step and a Poisson or negative binomial number, or plain.

Durations are 1, 2, ... steps. What is learned from are `ended` (D,), how many segments of d + 1 steps ended, and `cut`
(D,), how many were cut off by the end of their sequence after so many steps: these last as long or longer.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.checks import read_only
from suffice.families.categorical import Categorical
from suffice.families.geometric import Geometric
from suffice.families.negative_binomial import NegativeBinomial
from suffice.families.poisson import Poisson
from suffice.models.hidden_markov.emissions.contract import UNUSED
from suffice.models.hidden_markov.emissions.standing import Standing

#: Below this probability of lasting so long a segment cannot be.
_NEVER = 1e-290
#: Sizes of negative binomial distributions: beyond the largest one they are Poisson in all digits that matter.
SMALLEST, LARGEST = 1e-3, 1e6


class Duration(ABC):
    """The distribution of one state's durations, with its parameters: a value."""

    #: What `numbers` are: "simplex", rows of probabilities, or "real".
    kind: ClassVar[str] = "real"
    #: The name in files.
    name: ClassVar[str]

    @property
    @abstractmethod
    def numbers(self) -> Floats:
        """The parameters (n,)."""

    @abstractmethod
    def holding(self, numbers: Floats) -> Self:
        """The distribution with these parameters."""

    @property
    def titles(self) -> tuple[str, ...]:
        """The names of the parameters."""
        return ("mean", "size")[: len(self.numbers)]

    @property
    @abstractmethod
    def n_params(self) -> int:
        """Free parameters."""

    @abstractmethod
    def logs(self, most: int) -> tuple[Floats, Floats]:
        """Log-probabilities (D,) of lasting d + 1 steps, and of lasting as long or longer, of at most so many steps."""

    @abstractmethod
    def learned(self, ended: Floats, cut: Floats, pseudo: Floats) -> Self:
        """The most likely distribution; what no segment determines stays as it is."""

    @abstractmethod
    def lasting(self, mean: float) -> Self:
        """A distribution to begin with whose mean is about so many steps."""

    @abstractmethod
    def distribution(self) -> Any:
        """As a distribution of the library: of the steps (a table), or of the steps after the first."""

    @abstractmethod
    def draw(self, count: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Durations (count,)."""

    def vector(self) -> Floats:
        """The parameters in units in which changes compare."""
        return np.log1p(self.numbers)

    def of_vector(self, vector: Floats) -> Self:
        """The distribution that a vector holds."""
        return self.holding(np.expm1(vector))

    def inside(self) -> bool:
        """Whether the parameters are those of a distribution."""
        return bool(np.isfinite(self.numbers).all() and (self.numbers >= 0).all())

    def log_likelihood(self, ended: Floats, cut: Floats) -> float:
        """``sum ended log P(d) + sum cut log P(at least d)``."""
        lasts, stays = self.logs(len(ended))
        used = slice(0, len(lasts))
        beyond = float(ended[len(lasts) :].sum() + cut[len(lasts) :].sum())
        with np.errstate(invalid="ignore"):
            terms = np.where(ended[used] > 0, ended[used] * lasts, 0.0) + np.where(
                cut[used] > 0, cut[used] * stays, 0.0
            )
        return -math.inf if beyond > 0 else float(terms.sum())

    def log_prior(self, pseudo: Floats) -> float:
        """Pseudo-counts times log-probabilities."""
        return 0.0

    @abstractmethod
    def standing(self, ended: Floats, cut: Floats, pseudo: Floats, called: str) -> Standing:
        """Where it stands when the durations are known; `called` is the state in words."""

    def is_coercive(self, pseudo: Floats) -> bool:
        """Whether the prior keeps every parameter off its edge."""
        return False


@dataclass(frozen=True)
class Staying(Duration):
    """A state that stays by its transitions, as in a plain chain: its segments are single steps."""

    name: ClassVar[str] = "geometric"

    @property
    def numbers(self) -> Floats:
        """None: the transitions have them."""
        return np.zeros(0)

    def holding(self, numbers: Floats) -> Staying:
        """As it is."""
        return self

    @property
    def n_params(self) -> int:
        """None of its own."""
        return 0

    def logs(self, most: int) -> tuple[Floats, Floats]:
        """One step."""
        return np.zeros(1), np.zeros(1)

    def learned(self, ended: Floats, cut: Floats, pseudo: Floats) -> Staying:
        """As it is."""
        return self

    def lasting(self, mean: float) -> Staying:
        """As it is."""
        return self

    def distribution(self) -> Geometric:
        """Unfitted: the transitions say how probable it is to leave."""
        return Geometric()

    def draw(self, count: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """One step each."""
        return np.ones(count, np.int64)

    def standing(self, ended: Floats, cut: Floats, pseudo: Floats, called: str) -> Standing:
        """Nothing to be learned."""
        return Standing()

    def is_coercive(self, pseudo: Floats) -> bool:
        """It has no edge."""
        return True


@dataclass(frozen=True, eq=False)
class TableDuration(Duration):
    """A probability (L,) for each number of steps up to the longest one; those not `allowed` stay 0."""

    probabilities: Floats
    allowed: NDArray[np.bool_]

    kind: ClassVar[str] = "simplex"
    name: ClassVar[str] = "table"

    @property
    def numbers(self) -> Floats:
        """The probabilities."""
        return self.probabilities

    def holding(self, numbers: Floats) -> TableDuration:
        """With these probabilities."""
        return replace(self, probabilities=numbers)

    @property
    def titles(self) -> tuple[str, ...]:
        """Numbers of steps."""
        return tuple(f"{d + 1} step{'s' if d else ''}" for d in range(len(self.probabilities)))

    @property
    def n_params(self) -> int:
        """Probabilities that may be above 0, but one."""
        return int(self.allowed.sum()) - 1

    def logs(self, most: int) -> tuple[Floats, Floats]:
        """Of the table."""
        survival = np.minimum(self.probabilities[::-1].cumsum()[::-1], 1.0)
        survival[0] = 1.0
        with np.errstate(divide="ignore"):
            return np.log(self.probabilities)[:most], np.log(survival)[:most]

    def learned(self, ended: Floats, cut: Floats, pseudo: Floats) -> TableDuration:
        """Kaplan and Meier's estimate: of the segments that reach a step and are not cut there, the share that ends."""
        counts, risk = self._risk(ended, cut, pseudo)
        survival = self.probabilities[::-1].cumsum()[::-1]
        with np.errstate(divide="ignore", invalid="ignore"):
            before = np.where(survival > 0, self.probabilities / survival, 1.0)
            ending = np.where(risk > UNUSED, counts / risk, before)
        shares = ending * np.concatenate([[1.0], (1.0 - ending[:-1]).cumprod()])
        return self.holding(shares / shares.sum())

    def _risk(self, ended: Floats, cut: Floats, pseudo: Floats) -> tuple[Floats, Floats]:
        """Segments that end after each number of steps, and those of which this is known (L,)."""
        longest = len(self.probabilities)
        counts = _fitted(ended, longest) + _fitted(pseudo, longest)
        cuts = _fitted(cut, longest)
        return counts, counts[::-1].cumsum()[::-1] + cuts[::-1].cumsum()[::-1] - cuts

    def lasting(self, mean: float) -> TableDuration:
        """Geometric up to the longest; zeros are kept."""
        shares = (1.0 - 1.0 / max(mean, 1.0 + 1e-6)) ** np.arange(len(self.probabilities))
        shares = np.maximum(shares, 1e-3) * self.allowed
        return self.holding(shares / shares.sum())

    def distribution(self) -> Categorical:
        """Of the number of steps."""
        return Categorical(range(1, len(self.probabilities) + 1), read_only(self.probabilities))

    def draw(self, count: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """From the table."""
        return 1 + rng.choice(len(self.probabilities), size=count, p=self.probabilities)

    def vector(self) -> Floats:
        """The table."""
        return self.probabilities

    def of_vector(self, vector: Floats) -> TableDuration:
        """The table."""
        return self.holding(vector)

    def log_prior(self, pseudo: Floats) -> float:
        """The density of Dirichlet(1 + pseudo-counts)."""
        used = pseudo[: len(self.probabilities)] > 0
        with np.errstate(divide="ignore"):
            return float(pseudo[: len(used)][used] @ np.log(self.probabilities[used]))

    def standing(self, ended: Floats, cut: Floats, pseudo: Floats, called: str) -> Standing:
        """Each step's share of segments that end is that of a binomial count, and best at the share of the counts."""
        counts, risk = self._risk(ended, cut, pseudo)
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = [np.where(n > 0, n * np.log(n / risk), 0.0).sum() for n in (counts, risk - counts)]
        best = float(sum(terms))
        value = self.log_likelihood(ended, cut) + self.log_prior(pseudo)
        never = np.flatnonzero((counts == 0) & (risk > 0) & self.allowed)
        names = tuple(f"P({called} lasts {self.titles[d]}) -> 0: never seen" for d in never.tolist())
        return Standing(names, True, max(best - value, 0.0), True, abs(best) + abs(value))

    def is_coercive(self, pseudo: Floats) -> bool:
        """With a pseudo-count for every number of steps."""
        return bool((pseudo[: len(self.allowed)][self.allowed] > 0).all())


@dataclass(frozen=True)
class PoissonDuration(Duration):
    """One step and a Poisson number of others, of this mean."""

    mean: float

    name: ClassVar[str] = "poisson"

    @property
    def numbers(self) -> Floats:
        """The mean number of steps after the first."""
        return np.array([self.mean])

    def holding(self, numbers: Floats) -> PoissonDuration:
        """Of this mean."""
        return PoissonDuration(float(numbers[0]))

    @property
    def n_params(self) -> int:
        """The mean."""
        return 1

    def logs(self, most: int) -> tuple[Floats, Floats]:
        """Of as many steps as may be."""
        from scipy.special import gammainc, gammaln, xlogy

        more = np.arange(most, dtype=np.float64)
        survival = np.ones(most)
        survival[1:] = gammainc(more[1:], self.mean)
        return _reachable(xlogy(more, self.mean) - self.mean - gammaln(more + 1), survival)

    def learned(self, ended: Floats, cut: Floats, pseudo: Floats) -> PoissonDuration:
        """The root of the score, which falls: the logarithm of the distribution function of a gamma is concave."""
        from scipy.special import gammainc, gammaln, xlogy

        total, count, k, cuts = _moments(ended, cut)
        if not count > UNUSED:
            return self
        if not len(k):
            return PoissonDuration(total / count)

        def score(mean: float) -> float:
            with np.errstate(divide="ignore"):
                logs = xlogy(k - 1, mean) - mean - gammaln(k) - np.log(gammainc(k, mean))
            return float(total / mean - count + cuts @ np.exp(logs))

        return PoissonDuration(_falling_root(score, max(total / count, 1e-12)))

    def lasting(self, mean: float) -> PoissonDuration:
        """Of this mean."""
        return PoissonDuration(max(mean - 1.0, 1e-3))

    def distribution(self) -> Poisson:
        """Of the steps after the first."""
        return Poisson(rate=self.mean)

    def draw(self, count: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """One and a Poisson number."""
        return 1 + rng.poisson(self.mean, count)

    def standing(self, ended: Floats, cut: Floats, pseudo: Floats, called: str) -> Standing:
        """The log-likelihood is concave in the mean; its ends are an edge."""
        return _standing_of_mean(ended, cut, called)


@dataclass(frozen=True)
class NegativeBinomialDuration(Duration):
    """One step and a negative binomial number of others, of this mean and size; the size may be known."""

    mean: float
    size: float
    known: bool = False

    name: ClassVar[str] = "negative binomial"

    @property
    def numbers(self) -> Floats:
        """The mean number of steps after the first, and the size where it is learned."""
        return np.array([self.mean] if self.known else [self.mean, self.size])

    def holding(self, numbers: Floats) -> NegativeBinomialDuration:
        """With these."""
        return replace(self, mean=float(numbers[0]), size=self.size if self.known else float(numbers[1]))

    @property
    def n_params(self) -> int:
        """The mean, and the size where it is learned."""
        return 1 if self.known else 2

    def inside(self) -> bool:
        """A mean of at least 0, a size above it."""
        return super().inside() and SMALLEST <= self.size <= max(LARGEST, self.size * self.known)

    def logs(self, most: int) -> tuple[Floats, Floats]:
        """Of as many steps as may be."""
        from scipy.special import gammaln, xlogy

        more, r = np.arange(most, dtype=np.float64), self.size
        lasts = gammaln(more + r) - gammaln(more + 1) - gammaln(r)
        lasts = lasts + xlogy(more, self.mean / (r + self.mean)) - r * math.log1p(self.mean / r)
        return _reachable(lasts, self._survival(more))

    def _survival(self, k: Floats) -> Floats:
        from scipy.special import betainc

        values = np.ones(len(k))
        some = k > 0
        values[some] = betainc(k[some], self.size, self.mean / (self.size + self.mean))
        return values

    def learned(self, ended: Floats, cut: Floats, pseudo: Floats) -> NegativeBinomialDuration:
        """The root of the score in the mean, and where the size is learned in the size along it."""
        _, count, _, _ = _moments(ended, cut)
        if not count > UNUSED:
            return self
        candidates = [self._of_size(self.size, ended, cut)]
        if not self.known:
            candidates.append(self._of_size(self._best_size(ended, cut), ended, cut))
        return max([*candidates, self], key=lambda one: one.log_likelihood(ended, cut))

    def _of_size(self, size: float, ended: Floats, cut: Floats) -> NegativeBinomialDuration:
        """The best mean of a size.

        P(at least k) has the slope ``q^(k-1) (1 - q)^(r-1) / B(k, r)`` in ``q = mean / (r + mean)``.
        """
        from scipy.special import betaln

        total, count, k, cuts = _moments(ended, cut)
        if not len(k):
            return replace(self, mean=total / count, size=size)

        def score(mean: float) -> float:
            q = mean / (size + mean)
            with np.errstate(divide="ignore"):
                logs = (k - 1) * math.log(q) + (size - 1) * math.log1p(-q) - betaln(k, size)
                logs = logs - np.log(replace(self, mean=mean, size=size)._survival(k))
            slope = float(cuts @ np.exp(logs)) * size / (size + mean) ** 2
            return total / mean - (total + count * size) / (size + mean) + slope

        return replace(self, mean=_falling_root(score, max(total / count, 1e-12)), size=size)

    def _best_size(self, ended: Floats, cut: Floats) -> float:
        """Where the slope of the profile changes its sign; an end of the range where it does not."""
        from scipy.optimize import brentq

        def slope(log_size: float) -> float:
            # Along the best means the slope of the profile is that at a fixed mean.
            best = self._of_size(math.exp(log_size), ended, cut)
            sides = [replace(best, size=math.exp(log_size + h)).log_likelihood(ended, cut) for h in (1e-4, -1e-4)]
            return (sides[0] - sides[1]) / 2e-4

        last, step = math.log(self.size), 0.5
        sign = math.copysign(1.0, slope(last))
        edge = math.log(LARGEST if sign > 0 else SMALLEST)
        while sign * last < sign * edge:
            further = sign * min(sign * (last + sign * step), sign * edge)
            if slope(further) * sign <= 0:
                return math.exp(brentq(slope, last, further, xtol=1e-11))
            last, step = further, 2.0 * step
        return math.exp(edge)

    def lasting(self, mean: float) -> NegativeBinomialDuration:
        """Of this mean, geometric where the size is learned."""
        return replace(self, mean=max(mean - 1.0, 1e-3), size=self.size if self.known else 1.0)

    def distribution(self) -> NegativeBinomial:
        """Of the steps after the first."""
        return NegativeBinomial(size=self.size, probability=self.size / (self.size + self.mean))

    def draw(self, count: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """One and a negative binomial number."""
        return 1 + rng.negative_binomial(self.size, self.size / (self.size + self.mean), count)

    def standing(self, ended: Floats, cut: Floats, pseudo: Floats, called: str) -> Standing:
        """Its ends are an edge; a size at its largest is a Poisson distribution."""
        rest = _standing_of_mean(ended, cut, called)
        if not self.known and self.size >= LARGEST * (1 - 1e-6):
            edge = f"size of the durations of {called} -> infinity: a Poisson distribution"
            return replace(rest, directions=(*rest.directions, edge))
        return replace(rest, decided=bool(rest.directions) or self.known)


KINDS: dict[str, Callable[..., Duration]] = {
    one.name: one for one in (Staying, TableDuration, PoissonDuration, NegativeBinomialDuration)
}


def to_plain(duration: Duration) -> dict[str, Any]:
    """For a file."""
    return {"name": duration.name, **vars(duration)}


def from_plain(plain: dict[str, Any]) -> Duration:
    """From a file."""
    rest = {name: value for name, value in plain.items() if name != "name"}
    return KINDS[plain["name"]](**rest)


def _fitted(counts: Floats, longest: int) -> Floats:
    """Counts of so many numbers of steps; there are none beyond."""
    padded = np.zeros(longest)
    padded[: min(longest, len(counts))] = counts[:longest]
    return padded


def _reachable(lasts: Floats, survival: Floats) -> tuple[Floats, Floats]:
    """As far as a segment may last."""
    some = slice(0, max(int((survival > _NEVER).sum()), 1))
    return lasts[some], np.log(survival[some])


def _moments(ended: Floats, cut: Floats) -> tuple[float, float, Floats, Floats]:
    """Steps after the first of segments that ended, their number; those of segments that were cut, and how often."""
    more = np.arange(len(ended), dtype=np.float64)
    used = (cut > 0) & (more > 0)
    return float(ended @ more), float(ended.sum()), more[used], cut[used]


def _falling_root(score: Callable[[float], float], low: float) -> float:
    """Where a score that is not negative at `low` falls through 0."""
    from scipy.optimize import brentq

    high = low
    while score(high) > 0:
        low, high = high, 2.0 * high
    return low if high == low else float(brentq(score, low, high, xtol=1e-14 * high, rtol=1e-14))


def _standing_of_mean(ended: Floats, cut: Floats, called: str) -> Standing:
    total, count, _, cuts = _moments(ended, cut)
    if not count > UNUSED:
        edge = (f"duration of {called} -> infinity: no segment of it ends",) if cuts.sum() > 0 else ()
        return Standing(edge, lost=None)
    edge = (f"duration of {called} -> 1 step",) if total == 0 and not cuts.sum() > 0 else ()
    return Standing(edge, lost=None)
