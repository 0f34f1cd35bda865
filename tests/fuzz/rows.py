"""Rows of any kind for every model: usual numbers among impossible ones, columns of mixed types, odd weights."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import numpy as np

import suffice as sf

LARGEST = float(np.finfo(np.float64).max)
USUAL: list[Any] = [0, 1, 2, 3, 0.5, 1.5, -1.0, 2.25, 7.0]
ENDS: list[Any] = [1e308, -1e308, LARGEST, 1e200, 1e154, 1e-154, 1e-300, 5e-324, -5e-324, -0.0, 2**63, 2**53 + 1, 1e16]
GAPS: list[Any] = [None, math.nan]
WRONG: list[Any] = [math.inf, -math.inf, 10**400, -(10**400), "a", "1", "", b"x", True, 1 + 2j, (1, 2), [1], {"a": 1}]
WRONG += [np.datetime64("2020-01-01"), np.float32(3e38), np.complex64(1), object]
LABELS: list[Any] = ["x", "y", "z", "", "é", 0, 1, True, None, 0.5, math.nan, (1, 2)]


def any_column(chance: random.Random, n: int) -> Any:
    """A column of n values: mostly usual, with a few strangers, or all alike, or an array of some type."""
    way = chance.randrange(8)
    if way == 0:
        return [chance.choice(USUAL)] * n
    if way == 1:
        return [chance.choice(LABELS) for _ in range(n)]
    if way == 2:
        kind = chance.choice(["float16", "float32", "int8", "uint64", "bool", "float64", "longdouble"])
        return np.array([chance.choice((0, 1, 2, 3)) for _ in range(n)], dtype=kind)
    strangers = [ENDS, ENDS, GAPS, WRONG, USUAL][chance.randrange(5)]
    rare = chance.choice((0.0, 0.2, 0.2, 1.0))
    column = [chance.choice(strangers) if chance.random() < rare else chance.choice(USUAL) for _ in range(n)]
    if way == 3 and all(isinstance(value, int | float) and abs(value) < 1e150 for value in column):
        return np.array(column, dtype=np.float64) * chance.choice((1.0, 1e150, 1e-150, 1e-300))
    return column


def any_table(chance: random.Random, names: str) -> Any:
    """Columns of these names, nearly always of one length."""
    n = chance.choice((0, 1, 2, 3, 5, 8, 8, 12))
    return {name: any_column(chance, n if chance.random() < 0.98 else n + 1) for name in names}


def any_weights(chance: random.Random, table: Any) -> Any:
    """None, or weights of the rows: usual, none, huge or wrong."""
    if chance.random() < 0.7:
        return None
    n = max((len(column) for column in table.values()), default=0)
    return [chance.choice((1, 2, 0.5, 0.0, 1e308, 1e-300, -1, math.nan, "a", 10**400)) for _ in range(n)]


def any_sequences(chance: random.Random, values: list[Any]) -> Any:
    return [[chance.choice(values) for _ in range(chance.choice((0, 1, 2, 4, 6)))] for _ in range(chance.randrange(4))]


LAWS: list[Callable[[], Any]] = [
    sf.Normal,
    lambda: sf.Normal(prior=sf.NormalInverseGamma(2, 1, 1, 0), estimate="map"),
    sf.Exponential,
    lambda: sf.Exponential(prior=sf.Gamma(2, 1)),
    sf.Gamma,
    lambda: sf.Gamma(shape=2.0, prior=sf.Gamma(1, 1)),
    sf.InverseGamma,
    sf.Beta,
    sf.Poisson,
    lambda: sf.Poisson(prior=sf.Gamma(1, 1), estimate="mean"),
    sf.Geometric,
    lambda: sf.NegativeBinomial(size=2.5, prior=sf.Beta(1, 1)),
    sf.Bernoulli,
    sf.Categorical,
    lambda: sf.Categorical(prior=1.0),
]
PRIORS: list[Any] = [None, 1.0, "bdeu", 1e-300, 1e300, 1e308, -1, "a", 1j]


def any_rows(chance: random.Random) -> tuple[str, Callable[[], Any]]:
    """The name of a model, and a call that fits it."""
    name = chance.choice(list(MODELS))
    return name, MODELS[name](chance)


def _law(chance: random.Random) -> Callable[[], Any]:
    law, table = chance.choice(LAWS)(), any_table(chance, "x")
    weights = any_weights(chance, table)
    return lambda: law.fit(table if chance.random() < 0.5 else table["x"], sample_weight=weights)


def _several(chance: random.Random) -> Callable[[], Any]:
    law = chance.choice((sf.MultivariateNormal, sf.Dirichlet))()
    table = any_table(chance, "xy")
    return lambda: law.fit(table, sample_weight=any_weights(chance, table))


def _network(chance: random.Random) -> Callable[[], Any]:
    table, prior = any_table(chance, "abc"), chance.choice(PRIORS)
    options: dict[str, Any] = {"prior": prior, "max_iter": 3}
    return lambda: sf.BayesianNetwork([("a", "b"), ("b", "c")], **options).fit(
        table, sample_weight=any_weights(chance, table)
    )


def _markov(chance: random.Random) -> Callable[[], Any]:
    table = any_table(chance, "abc")
    prior = chance.choice((None, sf.Normal(variance=4.0)))
    return lambda: sf.MarkovNetwork([("a", "b"), ("b", "c")], prior=prior, max_iter=5).fit(
        table, sample_weight=any_weights(chance, table)
    )


def _graph(chance: random.Random) -> Callable[[], Any]:
    table = any_table(chance, "abc")
    return lambda: sf.GaussianGraph([("a", "b"), ("b", "c")], max_iter=5).fit(
        table, sample_weight=any_weights(chance, table)
    )


def _regression(chance: random.Random) -> Callable[[], Any]:
    table = any_table(chance, "uvy")
    family = chance.choice(("gaussian", "poisson", "binomial", "gamma", "negative_binomial", "multinomial"))
    return lambda: sf.GLM(family, max_iter=10).fit(table, y="y", columns=["u", "v"])  # type: ignore[arg-type]


def _chain(chance: random.Random) -> Callable[[], Any]:
    order = chance.choice((1, 2, 3))
    smoothing = chance.choice((None, sf.KneserNey(), sf.Interpolation(), sf.AbsoluteDiscount(0.5)))
    return lambda: sf.MarkovChain(order, smoothing=smoothing).fit(any_sequences(chance, LABELS))


def _hidden_chain(chance: random.Random) -> Callable[[], Any]:
    law = chance.choice((sf.Categorical, sf.Normal, sf.Poisson, sf.Gamma))()
    values = chance.choice((USUAL, USUAL + ENDS, LABELS, USUAL + WRONG))
    return lambda: sf.HiddenMarkovModel(2, emission=law, max_iter=3).fit(any_sequences(chance, values))


def _tagger(chance: random.Random) -> Callable[[], Any]:
    X = [[{"w": chance.choice(LABELS), "v": chance.choice(USUAL + ENDS)} for _ in range(3)] for _ in range(2)]
    y = any_sequences(chance, ["D", "N", 1]) if chance.random() < 0.3 else [["D", "N", "D"], ["N", "N", "D"]]
    return lambda: sf.ChainCRF(prior=sf.Normal(variance=4.0), max_iter=5).fit(X, y)


MODELS: dict[str, Callable[[random.Random], Callable[[], Any]]] = {
    "law": _law,
    "distribution of several columns": _several,
    "network": _network,
    "Markov network": _markov,
    "Gaussian graph": _graph,
    "regression": _regression,
    "chain": _chain,
    "hidden chain": _hidden_chain,
    "tagger": _tagger,
}
