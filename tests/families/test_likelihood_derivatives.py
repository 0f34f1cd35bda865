"""Derivatives of the summed log-likelihood of m rows in the natural parameters, against differences of row densities.

In circulation are a gradient with E[T] instead of m E[T], and a Hessian of +Cov[T] instead of -m Cov[T].
"""

from typing import Any

import numpy as np
import pytest

import suffice as sf

ROWS = np.array([0.3, 1.7, 2.9, 0.4, 1.1, 5.2, 0.9])
COUNTS = np.array([0, 3, 1, 1, 0, 2, 5])

LAWS: dict[str, tuple[Any, Any]] = {
    "normal": (sf.Normal(mean=1.0, variance=2.0), ROWS),
    "gamma": (sf.Gamma(shape=2.0, rate=0.7), ROWS),
    "exponential": (sf.Exponential(rate=0.7), ROWS),
    "inverse gamma": (sf.InverseGamma(shape=2.0, scale=1.5), ROWS),
    "beta": (sf.Beta(alpha=2.0, beta=3.0), ROWS / 6),
    "poisson": (sf.Poisson(rate=1.4), COUNTS),
    "geometric": (sf.Geometric(probability=0.4), COUNTS),
    "negative binomial": (sf.NegativeBinomial(size=2.5, probability=0.4), COUNTS),
    "bernoulli": (sf.Bernoulli(probability=0.3), (COUNTS > 0).astype(int)),
    "categorical": (sf.Categorical(states=list("abc"), probabilities=[0.2, 0.3, 0.5]), list("abacbbc")),
}


@pytest.mark.parametrize(("law", "rows"), LAWS.values(), ids=LAWS)
def test_gradient_and_hessian_of_the_sum_carry_the_number_of_rows(law: Any, rows: Any) -> None:
    eta, m, step = law.natural_parameters_, len(rows), 1e-4

    def total(at: Any) -> float:
        return float(np.sum(law.with_natural_parameters(at).log_prob(rows)))

    moves = step * np.eye(len(eta))
    slope = np.array([(total(eta + d) - total(eta - d)) / (2 * step) for d in moves])
    expected = law.sufficient_statistics(rows).sum(axis=0) - m * law.expected_statistics()
    np.testing.assert_allclose(slope, expected, rtol=1e-4, atol=1e-5)
    bend = [
        [
            (total(eta + a + b) - total(eta + a - b) - total(eta - a + b) + total(eta - a - b)) / (4 * step**2)
            for b in moves
        ]
        for a in moves
    ]
    np.testing.assert_allclose(bend, -m * law.statistics_covariance(), rtol=1e-3, atol=1e-4)
