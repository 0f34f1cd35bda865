"""Numbers that are options, priors, weights or tables: real ones work, all others are refused by the package's error.

No warning of NumPy leaves the package, no imaginary part is dropped, and no sum of given numbers overflows unseen.
"""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import suffice as sf

ROWS = {"a": [0, 1, 0, 1], "b": [0, 1, 1, 1]}
STATES = {"a": [0, 1], "b": [0, 1]}
DOMAIN = sf.Domain([sf.Variable.discrete("a", [0, 1]), sf.Variable.discrete("b", [0, 1])])
LABELLED: Any = ([[["u"], ["v"]]] * 2, [["x", "y"]] * 2)
RNG = np.random.default_rng(0)
REALS = {"x": RNG.normal(size=8), "y": RNG.normal(size=8)}


def network(**options: Any) -> Any:
    return sf.BayesianNetwork([("a", "b")], states=STATES, **options).fit(ROWS)


def hidden(weights: Any = None, **options: Any) -> Any:
    return sf.HiddenMarkovModel(2, sf.Categorical(), random_state=0, **options).fit(
        [[0, 1], [1, 1]], sample_weight=weights
    )


def labelled(weights: Any) -> Any:
    X, y = LABELLED
    return sf.ChainCRF(prior=sf.Normal(variance=1.0)).fit(X, y, sample_weight=weights)


#: Who takes a table (2, 2), two numbers, or one.
TABLES: dict[str, Callable[[Any], Any]] = {
    "Table": lambda v: sf.Table(DOMAIN, v),
    "fixed table": lambda v: network(fixed={"b": v}),
    "prior of a table": lambda v: network(prior={"b": v}),
    "transitions": lambda v: hidden(transitions=v),
    "emissions": lambda v: hidden(emissions=v),
    "prior of transitions": lambda v: hidden(prior={"transitions": v}),
    "prior of rows": lambda v: sf.MarkovChain(1, prior=v).fit([[0, 1, 1]]),
    "covariance": lambda v: sf.GaussianGraph([("a", "b")], nodes=["a", "b"]).fit(covariance=v, n=10),
    "inverse scale": lambda v: sf.Wishart(5, v),
    "alphas": lambda v: sf.DirichletMixture([0.5, 0.5], v),
}
PAIRS: dict[str, Callable[[Any], Any]] = {
    "initial": lambda v: hidden(initial=v),
    "weights of hidden sequences": lambda v: hidden(v),
    "weights of sequences": lambda v: sf.MarkovChain(1).fit([[0, 1], [1, 1]], sample_weight=v),
    "weights of labelled sequences": lambda v: labelled(v),
    "weights of a mixture": lambda v: sf.DirichletMixture(v, [[1, 2], [2, 1]]),
    "mean of a normal-Wishart distribution": lambda v: sf.NormalWishart(v, 1, 5, np.eye(2)),
    "likelihoods of states": lambda v: network(prior=1.0).query(["a"], given={"b": v}),
    "pseudo-counts": lambda v: sf.Dirichlet(v),
}
NUMBERS: dict[str, Callable[[Any], Any]] = {
    "prior of a network": lambda v: network(prior=v),
    "equivalent sample size": lambda v: network(prior="bdeu", equivalent_sample_size=v),
    "prior of a chain": lambda v: sf.MarkovChain(1, prior=v).fit([[0, 1, 1]]),
    "prior of a hidden chain": lambda v: hidden(prior=v),
    "rows of a covariance": lambda v: sf.GaussianGraph([("a", "b")], nodes=["a", "b"]).fit(covariance=np.eye(2), n=v),
    "strength": lambda v: sf.NormalWishart([0, 0], v, 5, np.eye(2)),
    "shape of a variance": lambda v: sf.LinearGaussianPrior(v, 1.0),
    "scale of a variance": lambda v: sf.NormalInverseGamma(1.0, v, 1.0, 0.0),
}

WRONG_TABLES: dict[str, Any] = {
    "complex": np.full((2, 2), 1 + 1j),
    "complex without an imaginary part": np.full((2, 2), 0.5 + 0j),
    "text": np.full((2, 2), "a"),
    "numbers as text": np.full((2, 2), "0.5"),
    "dates": np.full((2, 2), np.datetime64("2020-01-01")),
    "ragged": [[1.0, 2.0], [3.0]],
    "objects": [[object(), 1.0], [2.0, 3.0]],
    "of another shape": np.ones((3, 3, 3)),
    "set": {1, 2},
}


def refused(use: Callable[[Any], Any], value: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(sf.SufficeError):
            use(value)


@pytest.mark.parametrize("wrong", WRONG_TABLES)
@pytest.mark.parametrize("where", TABLES)
def test_tables(where: str, wrong: str) -> None:
    refused(TABLES[where], WRONG_TABLES[wrong])


@pytest.mark.parametrize("wrong", [w for w in WRONG_TABLES if isinstance(WRONG_TABLES[w], np.ndarray)])
@pytest.mark.parametrize("where", PAIRS)
def test_pairs(where: str, wrong: str) -> None:
    refused(PAIRS[where], WRONG_TABLES[wrong][0])


@pytest.mark.parametrize("wrong", [np.complex128(1 + 1j), 1 + 1j, np.complex64(2), "1", object(), np.inf, np.nan, -1.0])
@pytest.mark.parametrize("where", NUMBERS)
def test_numbers(where: str, wrong: Any) -> None:
    refused(NUMBERS[where], wrong)


@pytest.mark.parametrize("where", [w for w in TABLES if w not in ("Table", "alphas")])
def test_tables_whose_sums_overflow(where: str) -> None:
    refused(TABLES[where], np.full((2, 2), 1e308))


@pytest.mark.parametrize("where", [w for w in PAIRS if w != "pseudo-counts"])
def test_pairs_whose_sums_overflow(where: str) -> None:
    refused(PAIRS[where], np.full(2, 1e308))


@pytest.mark.parametrize("where", NUMBERS)
def test_numbers_whose_sums_overflow(where: str) -> None:
    refused(NUMBERS[where], 1e308)


def number(value: float | None) -> float:
    assert value is not None
    return float(value)


def real_network(prior: Any) -> float:
    return number(sf.BayesianNetwork({"y": ["x"]}, prior=prior).fit(REALS).report_.log_evidence)


def normal(prior: Any) -> float:
    return number(sf.Normal(prior=prior).fit(REALS["x"]).report_.log_evidence)


def vector(prior: Any) -> float:
    return number(sf.MultivariateNormal(prior=prior).fit(np.stack(list(REALS.values()), axis=1)).report_.log_evidence)


def graph(prior: Any) -> float:
    return number(sf.GaussianGraph([("x", "y")], prior=prior).fit(REALS).report_.objective)


def chain(prior: Any) -> float:
    return number(sf.MarkovChain(1, prior=prior).fit([[0, 1, 1]]).report_.log_evidence)


FAR: dict[str, Callable[[float], float]] = {
    "shape of a regression": lambda v: real_network(sf.LinearGaussianPrior(v, 1.0)),
    "scale of a regression": lambda v: real_network(sf.LinearGaussianPrior(1.0, v)),
    "centre of a regression": lambda v: real_network(sf.LinearGaussianPrior(1.0, 1.0, v)),
    "dof of BGe": lambda v: real_network(sf.NormalWishart([0, 0], 1, v, np.eye(2), names=["x", "y"])),
    "centre of BGe": lambda v: real_network(sf.NormalWishart([v, 0], 1, 5, np.eye(2), names=["x", "y"])),
    "shape of a variance": lambda v: normal(sf.NormalInverseGamma(v, 1, 1, 0)),
    "scale of a variance": lambda v: normal(sf.NormalInverseGamma(1, v, 1, 0)),
    "strength of a mean": lambda v: normal(sf.NormalInverseGamma(1, 1, v, 0)),
    "centre of a mean": lambda v: normal(sf.NormalInverseGamma(1, 1, 1, v)),
    "dof": lambda v: vector(sf.NormalWishart([0, 0], 1, v, np.eye(2))),
    "strength": lambda v: vector(sf.NormalWishart([0, 0], v, 5, np.eye(2))),
    "inverse scale": lambda v: vector(sf.NormalWishart([0, 0], 1, 5, v * np.eye(2))),
    "centre": lambda v: vector(sf.NormalWishart([v, 0], 1, 5, np.eye(2))),
    "dof of a graph": lambda v: graph(sf.Wishart(v, np.eye(2))),
    "centre of a graph": lambda v: graph(sf.NormalWishart([v, 0], 1, 5, np.eye(2))),
    "ridge of a graph": lambda v: graph(sf.Normal(variance=1 / v)),
    "pseudo-counts of a chain": chain,
    "mixture of a chain": lambda v: chain(sf.DirichletMixture([0.5, 0.5], [[v, 1], [1, v]])),
}


@pytest.mark.parametrize("size", [1e308, 1e305, 1e300, 1e200, 1e150, 1e100])
@pytest.mark.parametrize("where", FAR)
def test_far_priors_are_refused_or_give_a_number(where: str, size: float) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            found = FAR[where](size)
        except sf.SufficeError:
            return
    assert np.isfinite(found)


@pytest.mark.parametrize("rows", [{}, {"x": [1.0, 2.0], "y": [1.0]}])
def test_tables_of_no_columns_or_of_different_lengths(rows: Any) -> None:
    refused(sf.MultivariateNormal([0, 0], np.eye(2)).log_prob, rows)
