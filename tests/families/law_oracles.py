"""Slow, obvious twins of what a law computes: sums over a grid of values, derivatives by Cauchy's integral."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Grid:
    """Values x and weights w such that ``sum w f(x)`` is the sum or the integral of f over the support."""

    x: Floats
    w: Floats

    @classmethod
    def real(cls, low: float, high: float, n: int = 20_001) -> "Grid":
        """The trapezoidal rule, exact to rounding for smooth functions that vanish at both ends."""
        return cls(np.linspace(low, high, n), np.full(n, (high - low) / (n - 1)))

    @classmethod
    def positive(cls, low: float, high: float, n: int = 20_001) -> "Grid":
        """The same on x = exp(u), u from `low` to `high`."""
        logs = cls.real(low, high, n)
        return cls(np.exp(logs.x), logs.w * np.exp(logs.x))

    @classmethod
    def counts(cls, most: int) -> "Grid":
        return cls(np.arange(most + 1.0), np.ones(most + 1))

    def total(self, values: Floats) -> Any:
        return np.tensordot(self.w, values, axes=(0, 0))


def log_partition(law: Any, eta: Any, grid: Grid) -> float:
    """log of the sum of h exp(eta . T), from the definition."""
    exponent = law.log_base_measure(grid.x) + law.sufficient_statistics(grid.x) @ np.asarray(eta, dtype=float)
    top = exponent.max()
    return float(top + np.log(grid.total(np.exp(exponent - top))))


def statistics_moments(law: Any, eta: Any, grid: Grid) -> tuple[Floats, Floats]:
    """Mean and covariance of T under h exp(eta . T), normalised by the sum itself."""
    statistics = law.sufficient_statistics(grid.x)
    exponent = law.log_base_measure(grid.x) + statistics @ np.asarray(eta, dtype=float)
    p = grid.w * np.exp(exponent - exponent.max())
    p /= p.sum()
    mean = p @ statistics
    away = statistics - mean
    return mean, (away * p[:, None]).T @ away


def cauchy_cumulants(law: Any, eta: Any, direction: Any, grid: Grid, radius: float, order: int = 6) -> Floats:
    """Derivatives at 0 of ``K(t) = log E[exp(t direction . T)]`` by Cauchy's integral over a circle."""
    statistics = law.sufficient_statistics(grid.x)
    exponent = law.log_base_measure(grid.x) + statistics @ np.asarray(eta, dtype=float)
    logs = exponent - log_partition(law, eta, grid) + np.log(grid.w)
    values = statistics @ np.asarray(direction, dtype=float)
    centre = np.exp(logs) @ values
    turns = np.exp(2j * np.pi * np.arange(64) / 64)
    m = np.array([np.sum(np.exp(logs + radius * turn * (values - centre))) for turn in turns])
    k = np.log(np.abs(m)) + 1j * np.unwrap(np.angle(m))
    found = [float(np.real(np.mean(k * turns**-s)) * math.factorial(s) / radius**s) for s in range(1, order + 1)]
    return np.array([centre + found[0], *found[1:]])


def check_exponential_family(law: Any, eta: Any, grid: Grid, directions: list[tuple[Any, float]]) -> None:
    """A, its gradient, its Hessian and its cumulants against the grid, and the maps there and back."""
    here = law.with_natural_parameters(eta)
    np.testing.assert_allclose(here.natural_parameters_, eta, rtol=1e-13)
    mean, covariance = statistics_moments(law, eta, grid)
    np.testing.assert_allclose(here.log_normalizer(), log_partition(law, eta, grid), rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(law.log_normalizer(eta), here.log_normalizer(), rtol=1e-13)
    np.testing.assert_allclose(here.mean_parameters_, mean, rtol=1e-10, atol=1e-11)
    np.testing.assert_allclose(law.expected_statistics(eta), mean, rtol=1e-10, atol=1e-11)
    np.testing.assert_allclose(here.statistics_covariance(), covariance, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(law.statistics_covariance(eta), covariance, rtol=1e-9, atol=1e-10)
    back = law.with_mean_parameters(here.mean_parameters_)
    np.testing.assert_allclose(back.natural_parameters_, eta, rtol=1e-9)
    density = (
        here.log_base_measure(grid.x) + here.sufficient_statistics(grid.x) @ np.asarray(eta) - here.log_normalizer()
    )
    likely = density > -200
    np.testing.assert_allclose(here.log_prob(grid.x)[likely], density[likely], rtol=1e-10, atol=1e-10)
    for direction, radius in directions:
        expected = cauchy_cumulants(law, eta, direction, grid, radius)
        np.testing.assert_allclose(here.cumulants(6, direction), expected, rtol=1e-7, atol=1e-10)
    units = np.eye(len(np.atleast_1d(eta)))
    np.testing.assert_allclose(here.cumulants(3), [here.cumulants(3, unit) for unit in units], rtol=1e-13)


def check_entropy_and_divergence(law: Any, other: Any, grid: Grid) -> None:
    """-E[log p] and E[log p - log q] against the grid."""
    logs, others = law.log_prob(grid.x), other.log_prob(grid.x)
    p = np.exp(logs)
    used = p > 0
    w = (grid.w * p)[used]
    np.testing.assert_allclose(law.entropy(), -w @ logs[used], rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(law.kl_divergence(other), w @ (logs - others)[used], rtol=1e-8)
    assert law.kl_divergence(law) == 0.0


def maximise(objective: Callable[[Floats], float], start: ArrayLike) -> tuple[Floats, float]:
    """A generic maximiser that knows no derivative: point and value."""
    point = np.atleast_1d(np.asarray(start, dtype=float))
    search: Any = minimize  # its stubs do not know every option of this method
    steps = {"xatol": 1e-11, "fatol": 1e-13, "maxiter": 4000, "maxfev": 8000, "adaptive": len(point) > 4}
    for _ in range(3):
        found = search(lambda x: -objective(x), point, method="Nelder-Mead", options=steps)
        point = found.x
    return point, -float(found.fun)


def weighted(values: ArrayLike, counts: ArrayLike) -> Floats:
    """Rows repeated by whole weights."""
    return np.repeat(np.asarray(values), np.asarray(counts, dtype=int), axis=0)
