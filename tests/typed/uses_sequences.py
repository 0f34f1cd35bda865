"""Every documented attribute of models of sequences and labels, as a checker in strict mode reads them."""

from collections.abc import Hashable
from typing import Any, assert_type

import numpy as np

import suffice as sf
from suffice.array_types import Floats


def chain() -> None:
    model = sf.MarkovChain(1, smoothing="deleted", unseen="uniform").fit([["a", "b", "a"], ["b", "a"]])
    assert_type(model.initial_, sf.Table)
    assert_type(model.transitions_, sf.Table)
    assert_type(model.background_, sf.Table)
    assert_type(model.states_, tuple[Hashable, ...])
    assert_type(model.probability("a", ["b"]), float)
    assert_type(model.score([["a", "b"]]), float)
    assert_type(model.perplexity([["a", "b"]]), float)
    assert_type(model.stationary_distribution(), sf.Table)
    assert_type(model.n_unseen_histories_, int)


def hidden() -> None:
    rows = [["a", "b", "a", "b"], ["b", "b", "a"]]
    model = sf.HiddenMarkovModel(["s", "t"], sf.Categorical(), prior=1.0)
    model.fit(rows, states=[["s", "t", "s", "t"], ["t", "t", "s"]])
    assert_type(model.initial_, Floats)
    assert_type(model.transitions_, Floats)
    assert_type(model.startprob_, Floats)
    assert_type(model.transmat_, Floats)
    assert_type(model.emission_probabilities_, Floats)
    assert_type(model.emissions_, list[Any])
    assert_type(model.symbols_, tuple[Hashable, ...])
    assert_type(model.states_, tuple[Hashable, ...])
    assert_type(model.score_samples(rows), Floats)
    assert_type(model.score(rows), float)
    model.predict(rows, method="posterior")
    normal = sf.HiddenMarkovModel(2, sf.MultivariateNormal(), covariance="diagonal", topology="left-right")
    normal.fit(np.random.default_rng(0).normal(size=(30, 1)))
    assert_type(normal.means_, Floats)
    assert_type(normal.covars_, Floats)


def tagger() -> None:
    X, y = [[{"w": 1.0}, {"v": 1.0}], [{"v": 1.0}]], [["A", "B"], ["B"]]
    model = sf.ChainCRF(prior=sf.Normal(variance=1.0), solver="lbfgs").fit(X, y)
    assert_type(model.state_weights_, Floats)
    assert_type(model.transition_weights_, Floats)
    assert_type(model.labels_, tuple[Any, ...])
    assert_type(model.score(X, y), float)
    assert_type(model.accuracy(X, y), float)


def graph() -> None:
    example = sf.GraphExample(nodes=np.eye(2), edges=[[0, 1]])
    model = sf.GraphCRF(prior=sf.Normal(variance=1.0), edge_weights="equal", inference="exact").fit([example], [[0, 1]])
    assert_type(model.node_weights_, Floats)
    assert_type(model.edge_weights_, Floats)
    assert_type(model.log_partition(example), float)


def main() -> None:
    for each in (chain, hidden, tagger, graph):
        each()
