"""Log-linear models by their definition, every joint state listed: the oracle of engines, solvers and models."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

Floats = NDArray[np.float64]
States = Mapping[Any, Sequence[Any]]
Features = Sequence[Callable[[Mapping[Any, Any]], float]]


# -- joint states and features ---------------------------------------------------------------------------------------


def joint_states(states: States) -> list[dict[Any, Any]]:
    """All joint states, the last variable fastest."""
    return [dict(zip(states, values, strict=True)) for values in itertools.product(*states.values())]


def table_features(cliques: Sequence[Sequence[Any]], states: States) -> Features:
    """One indicator for each cell of each clique, the last variable of the clique fastest."""

    def indicator(clique: Sequence[Any], cell: tuple[Any, ...]) -> Callable[[Mapping[Any, Any]], float]:
        return lambda x: float(tuple(x[name] for name in clique) == cell)

    return [indicator(clique, cell) for clique in cliques for cell in itertools.product(*(states[n] for n in clique))]


def design_of(features: Features, states: States) -> Floats:
    """Features (joint states, features)."""
    listed = joint_states(states)
    return np.array([[float(f(x)) for f in features] for x in listed]).reshape(len(listed), len(features))


def counts_of(rows: Sequence[Mapping[Any, Any]], states: States) -> Floats:
    """How often each joint state occurs."""
    listed = [tuple(x.values()) for x in joint_states(states)]
    found = [tuple(row[name] for name in states) for row in rows]
    return np.array([found.count(x) for x in listed], dtype=float)


# -- laws ------------------------------------------------------------------------------------------------------------


def law_of(design: Any, weights: Any) -> tuple[Any, Any]:
    """Log Z and the probability of every joint state; weights may be complex."""
    return normalised(design @ np.asarray(weights))


def normalised(scores: Any) -> tuple[Any, Any]:
    """Log of the sum of the exponentials, and their shares."""
    top = scores.real.max()
    total = np.exp(scores - top).sum()
    return top + np.log(total), np.exp(scores - top) / total


@dataclass(frozen=True)
class LogLinear:
    """The law ``exp(features @ weights) / Z`` on all states; features (states, k)."""

    features: Floats

    def __call__(self, weights: Floats) -> tuple[float, Floats]:
        """Log Z and the expected features, as an engine gives them."""
        return self.log_z(weights), self.features.T @ self.law(weights)

    def scores(self, weights: Floats) -> Floats:
        """The exponent of each state, where minus infinity times 0 is 0."""
        terms = np.zeros(self.features.shape)
        np.multiply(self.features, weights, out=terms, where=self.features != 0.0)
        return np.asarray(terms.sum(axis=1))

    def log_z(self, weights: Floats) -> float:
        return float(normalised(self.scores(weights))[0])

    def law(self, weights: Floats) -> Floats:
        return np.asarray(normalised(self.scores(weights))[1])

    def covariance(self, weights: Floats) -> Floats:
        law = self.law(weights)
        mean = self.features.T @ law
        return np.asarray((self.features.T * law) @ self.features - np.outer(mean, mean))

    def objective(self, observed: Floats, ridge: float = 0.0) -> Any:
        """Mean log-likelihood less a quadratic penalty, with its gradient."""

        def function(weights: Floats) -> tuple[float, Floats]:
            log_z, expected = self(weights)
            value = float(weights @ observed) - log_z - 0.5 * ridge * float(weights @ weights)
            return value, observed - expected - ridge * weights

        return function


def by_cells(cards: Mapping[Any, int], scopes: Sequence[Sequence[Any]]) -> LogLinear:
    """One indicator for each cell of each scope, tables one after another in C order."""
    states = {name: range(card) for name, card in cards.items()}
    return LogLinear(design_of(table_features(scopes, states), states))


# -- maxima ----------------------------------------------------------------------------------------------------------


def maximum(objective: Any, start: Floats) -> float:
    """The largest value, by a generic optimiser, restarted until it finds nothing more."""
    best = start
    for method in ("BFGS", "L-BFGS-B", "BFGS"):
        tight: Any = {"gtol": 1e-12} if method == "BFGS" else {"gtol": 1e-12, "ftol": 0.0, "maxiter": 10_000}
        found = minimize(lambda x: tuple(-part for part in objective(x)), best, jac=True, method=method, options=tight)
        best = found.x
    return float(objective(best)[0])


def proportional_fitting(targets: Mapping[tuple[int, ...], Floats], shape: tuple[int, ...], sweeps: int) -> Any:
    """IPF on the joint table, margin by margin; axes by number."""
    table = np.full(shape, 1.0 / np.prod(shape))
    for _ in range(sweeps):
        for axes, target in targets.items():
            rest = tuple(axis for axis in range(len(shape)) if axis not in axes)
            margin = table.sum(axis=rest, keepdims=True)
            wanted = target.reshape(margin.shape)
            table = table * np.divide(wanted, margin, out=np.zeros_like(margin), where=margin > 0)
    return table
