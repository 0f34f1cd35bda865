"""Regressions with every solver, for the test that moves the results of solvers: see `tampered_cases`."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import special, stats

import suffice as sf
from tampered_cases import Case, Spoil, moved, patched

RNG = np.random.default_rng(31)
X = RNG.normal(size=(150, 2))
TABLE = {"s": X[:, 0], "t": X[:, 1]}
DESIGN = np.column_stack([np.ones(150), X])
ETA = 0.2 + X @ [0.8, -0.5]
YES = (RNG.random(150) < special.expit(ETA)).astype(int)
NUMBER = RNG.poisson(np.exp(0.5 * ETA))
REAL = ETA + RNG.normal(size=150)
POSITIVE = RNG.gamma(2.0, np.exp(0.5 * ETA) / 2.0)
LABELS = RNG.choice(list("abc"), 150, p=[0.3, 0.3, 0.4]).tolist()
LEVELS = np.digitize(ETA + RNG.logistic(size=150), [-0.8, 0.9])
PLANE = np.column_stack([REAL, ETA - RNG.normal(size=150)])
NORMAL, LAPLACE = sf.Normal(variance=0.5), sf.Laplace(scale=0.2)


def _spoiled(monkeypatch: Any) -> None:
    """Every solver of a regression returns coefficients that are off."""

    def off(beta: Any) -> Any:
        return beta + 0.3

    module = importlib.import_module("suffice.models.glm.regression")
    right = module.solve

    def wrong(*args: Any, **options: Any) -> Any:
        found = right(*args, **options)
        return replace(found, beta=off(found.beta), outcome=moved(found.outcome, off))

    monkeypatch.setattr(module, "solve", wrong)


def _beta(model: Any) -> Any:
    return np.array([model.intercept_, model.coefficients_["s"], model.coefficients_["t"]])


def _penalty(prior: Any, beta: Any) -> float:
    """The intercept has no prior."""
    sizes = {NORMAL: lambda b: float(b @ b), LAPLACE: lambda b: float(np.abs(b).sum()) / 0.2}
    return 0.0 if prior is None else sizes[prior](beta[1:])


def _glm(family: Any, y: Any, density: Callable[[Any, Any], Any], prior: Any = None, **options: Any) -> Case:
    def value(model: Any) -> float:
        beta = _beta(model)
        return float(np.sum(density(model, DESIGN @ beta))) - _penalty(prior, beta)

    def fit() -> Any:
        return sf.GLM(family, prior=prior, random_state=0, **options).fit(TABLE, y)

    return Case(fit, _spoiled, value, 150.0)


def _binomial(model: Any, eta: Any) -> Any:
    return stats.bernoulli.logpmf(YES, special.expit(eta))


def _poisson(model: Any, eta: Any) -> Any:
    return stats.poisson.logpmf(NUMBER, np.exp(eta))


def _gaussian(model: Any, eta: Any) -> Any:
    """At the variance of the largest likelihood for these coefficients."""
    return stats.norm.logpdf(REAL, eta, np.sqrt(np.mean((REAL - eta) ** 2)))


def _softmax_value(model: Any) -> float:
    """A column of coefficients for each class but the last, which has none."""
    eta = np.column_stack([DESIGN @ np.asarray(model.parameters_), np.zeros(150)])
    places = ["abc".index(label) for label in LABELS]
    return float((eta[np.arange(150), places] - special.logsumexp(eta, axis=1)).sum())


def _ordinal_value(model: Any) -> float:
    """``P(y <= k) = F(threshold_k - x . beta)`` with logistic F."""
    found = np.asarray(model.parameters_)
    below = special.expit(found[:2] - (X @ found[2:])[:, None])
    shares = np.diff(np.column_stack([np.zeros(150), below, np.ones(150)]), axis=1)
    return float(np.log(shares[np.arange(150), LEVELS]).sum())


def _vector_value(model: Any) -> float:
    """At the covariance of the largest likelihood for these coefficients."""
    away = PLANE - DESIGN @ np.asarray(model.parameters_)
    return float(stats.multivariate_normal.logpdf(away, np.zeros(2), away.T @ away / 150).sum())


def _vector(found: Any) -> Any:
    beta, information = found
    return beta + 0.3, information


VECTOR: Spoil = patched("suffice.models.glm.vectors._least_squares", _vector)
SMOOTH = ("irls", "lbfgs", "cg", "newton-cg", "sgd")
REGRESSIONS: dict[str, Case] = {
    **{f"glm-binomial-{solver}": _glm("binomial", YES, _binomial, solver=solver) for solver in SMOOTH},
    **{f"glm-poisson-{solver}": _glm("poisson", NUMBER, _poisson, solver=solver) for solver in ("irls", "lbfgs")},
    **{
        f"glm-normal-{solver}": _glm("binomial", YES, _binomial, NORMAL, solver=solver)
        for solver in ("irls", "lbfgs", "newton-cg")
    },
    **{f"glm-laplace-{solver}": _glm("binomial", YES, _binomial, LAPLACE, solver=solver) for solver in ("cd", "lbfgs")},
    "glm-gaussian": _glm("gaussian", REAL, _gaussian, solver="irls"),
    "glm-softmax": Case(lambda: sf.GLM("multinomial").fit(TABLE, LABELS), _spoiled, _softmax_value, 150.0),
    "glm-ordinal": Case(lambda: sf.GLM("ordinal").fit(TABLE, LEVELS), _spoiled, _ordinal_value, 150.0),
    "glm-vector": Case(lambda: sf.GLM("gaussian").fit(TABLE, PLANE), VECTOR, _vector_value, 150.0),
}
