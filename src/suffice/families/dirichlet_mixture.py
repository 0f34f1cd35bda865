"""A mixture of Dirichlet distributions: a prior of probabilities that knows several kinds of rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from suffice.array_types import Floats
from suffice.errors import EstimateError, OptionError
from suffice.families.base import Distribution, Seed, are_shapes, as_floats, as_numbers, as_probabilities, generator
from suffice.families.conjugate import ConjugatePrior, tails
from suffice.families.dirichlet import Dirichlet
from suffice.families.simplex import others
from suffice.statistics import Counts, Summary


class DirichletMixture(Distribution, ConjugatePrior):
    """The distribution ``sum_c weights_c Dirichlet(alphas_c)`` on the simplex, a conjugate prior of `Categorical`.

    After counts n the component c has ``alphas_c + n`` and a weight proportional to ``weights_c B(alphas_c + n) /
    B(alphas_c)``: components that foresaw the counts gain.

    Args:
        weights: (C,) numbers of at least 0 that add up to 1.
        alphas: (C, K) positive numbers, one row for each component.

    >>> prior = DirichletMixture(weights=[0.5, 0.5], alphas=[[9, 1], [1, 9]])
    >>> prior.posterior([3, 0]).weights_.round(3)
    array([0.994, 0.006])
    """

    parameter_names = ("weights", "alphas")
    weights_: Floats
    alphas_: Floats

    def __init__(self, weights: ArrayLike, alphas: ArrayLike) -> None:
        """See the class."""
        super().__init__(weights=weights, alphas=alphas)

    # -- parameters --------------------------------------------------------------------------------------------------

    def _check(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        weights, alphas = as_probabilities(parameters["weights"], "weights"), as_floats(parameters["alphas"], "alphas")
        if alphas.ndim != 2 or len(alphas) != len(weights) or alphas.shape[1] == 0 or not are_shapes(alphas):
            raise OptionError(
                f"alphas has shape {alphas.shape}; expected {len(weights)} rows (one a weight) of positive numbers."
            )
        return {"weights": weights, "alphas": alphas}

    @property
    def components_(self) -> tuple[Dirichlet, ...]:
        """The Dirichlet distributions, in the order of the weights."""
        return tuple(Dirichlet(alpha) for alpha in self.alphas_)

    @property
    def _log_weights(self) -> Floats:
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.weights_))

    # -- evaluation --------------------------------------------------------------------------------------------------

    def log_prob(self, x: ArrayLike) -> Floats:
        """Log density of each row (n, K), or of one point (K,); -inf off the simplex."""
        used = np.flatnonzero(self.weights_)
        terms = [self._log_weights[c] + Dirichlet(self.alphas_[c]).log_prob(x) for c in used]
        return np.asarray(np.logaddexp.reduce(terms, axis=0))

    def sample(self, n: int = 1, random_state: Seed = None) -> Floats:
        """`n` draws (n, K)."""
        rng = generator(random_state)
        drawn = rng.multinomial(n, self.weights_)
        rows = [rng.dirichlet(alpha, size=k) for alpha, k in zip(self.alphas_, drawn, strict=True)]
        return rng.permutation(np.concatenate(rows))

    def mean(self) -> Floats:
        """Mean of the component means."""
        return np.asarray(self.weights_ @ (self.alphas_ / self.alphas_.sum(axis=1, keepdims=True)))

    def variance(self) -> Floats:
        """Variance of each part: within the components and between them."""
        means = np.stack([distribution.mean() for distribution in self.components_])
        within = np.stack([distribution.variance() for distribution in self.components_])
        return np.asarray(self.weights_ @ (within + (means - self.mean()) ** 2))

    def mode(self) -> NoReturn:
        """Refuse: the mode of a mixture has no closed form and need not be unique."""
        raise EstimateError(
            "A mixture of Dirichlet distributions has no closed-form mode, and may have several. "
            "Use estimate='mean', or a single Dirichlet."
        )

    def cdf(self, x: ArrayLike) -> Floats:
        """P(part k <= x_k) of each part by itself, (..., K): mixtures of beta distributions."""
        from scipy.special import betainc

        points = np.clip(as_numbers(x), 0.0, 1.0)
        each = [betainc(alpha, others(alpha), points) for alpha in self.alphas_]
        return np.asarray(np.tensordot(self.weights_, np.stack(each), axes=1))

    # -- as a prior --------------------------------------------------------------------------------------------------

    def _from_summary(self, summary: Summary) -> DirichletMixture:
        """Of a categorical column, its states in the order of the parts."""
        return self._from_counts(summary[Counts(summary.domain.names)].dense())

    def _from_counts(self, counts: Any) -> DirichletMixture:
        return DirichletMixture(
            weights=self.responsibilities(counts), alphas=self.alphas_ + as_floats(counts, "counts")
        )

    def _log_joint(self, counts: Any) -> Floats:
        """Log weight of each component times the probability that it gives to the counts (C,)."""
        evidence = [distribution.log_evidence(counts) for distribution in self.components_]
        return np.asarray(self._log_weights + np.array(evidence))

    def responsibilities(self, counts: ArrayLike) -> Floats:
        """Posterior probability of each component after these counts (C,)."""
        joint = self._log_joint(counts)
        shares = np.exp(joint - joint.max())
        return np.asarray(shares / shares.sum())

    def log_evidence(self, counts: ArrayLike) -> float:
        """Log probability of a sequence of rows with these counts."""
        return float(np.logaddexp.reduce(self._log_joint(counts)))

    def intervals(self, level: float = 0.95) -> Floats:
        """Central interval of each part (K, 2), from the mixture of its beta distributions."""
        return np.stack([self._quantiles(q) for q in tails(level)], axis=-1)

    def _quantiles(self, q: float) -> Floats:
        """The q-quantile of each part (K,), between the smallest and the largest of the components'."""
        from scipy.optimize import brentq
        from scipy.special import betainc, betaincinv

        used = self.weights_ > 0
        weights, alphas = self.weights_[used], self.alphas_[used]
        rests = np.stack([others(alpha) for alpha in alphas])
        ends = betaincinv(alphas, rests, q)
        quantiles = np.empty(alphas.shape[1])
        for k, (low, high) in enumerate(zip(ends.min(axis=0), ends.max(axis=0), strict=True)):

            def above(x: float, k: int = k) -> float:
                return float(weights @ betainc(alphas[:, k], rests[:, k], x)) - q

            # At the ends rounding may hide the sign that the theorem gives.
            inside = low < high and above(low) < 0 < above(high)
            quantiles[k] = brentq(above, low, high, xtol=1e-300, rtol=1e-14, maxiter=10_000) if inside else low
        return quantiles
