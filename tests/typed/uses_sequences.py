"""Every documented attribute of models of sequences and labels, as a checker in strict mode reads them."""

from collections.abc import Hashable
from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

import suffice as sf
from suffice.array_types import Floats
from suffice.models.chain_crf.top_weights import StateWeight, TransitionWeight
from suffice.models.conditional_field.evaluation import Evaluation
from suffice.models.conditional_field.marginals import Marginals
from suffice.models.hidden_markov.decoding import BestPaths


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
    assert_type(model.unseen_histories_, list[Any])
    assert_type(model.absorbing_states_, list[Hashable])
    assert_type(model.hitting_times("a"), sf.Table)
    assert_type(model.sample(2, length=3), list[list[Hashable]])
    assert_type(model.interpolation_weight_, Any)
    assert_type(sf.MarkovChain(1, prior=1.0).fit(["abab"]).prior_, Any)


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
    assert_type(model.columns_, list[Hashable] | None)
    assert_type(model.standard_errors_, dict[str, Any])
    assert_type(model.sample(3), tuple[Any, Any])
    assert_type(model.forecast(rows, 2), Floats | list[Floats])
    assert_type(model.filter(rows), Floats | list[Floats])
    assert_type(model.pairwise(rows), Floats | list[Floats])
    assert_type(model.predict_proba(rows), Floats | list[Floats])
    assert_type(model.best_paths(rows, 2), BestPaths)
    assert_type(model.match_states(rows, [["s", "t", "s", "t"], ["t", "t", "s"]]), dict[Hashable, Hashable])
    assert_type(model.predict(rows, method="posterior"), NDArray[Any] | list[NDArray[Any]])
    assert_type(model.decode(rows), tuple[float, NDArray[Any] | list[NDArray[Any]]])
    searched = sf.HiddenMarkovModel(2, sf.Categorical(), prior=1.0, n_init=2, random_state=0).fit(rows)
    assert_type(searched.scores_, tuple[float, ...])
    assert_type(searched.n_expectations_, int)
    normal = sf.HiddenMarkovModel(2, sf.MultivariateNormal(), covariance="diagonal", topology="left-right")
    normal.fit(np.random.default_rng(0).normal(size=(30, 1)))
    assert_type(normal.means_, Floats)
    assert_type(normal.covars_, Floats)
    lasting = sf.HiddenMarkovModel(2, sf.Normal(), durations=sf.Poisson()).fit([[0.0, 0.1, 3.0, 3.1, 0.2]])
    assert_type(lasting.durations_, list[Any])


def tagger() -> None:
    X, y = [[{"w": 1.0}, {"v": 1.0}], [{"v": 1.0}]], [["A", "B"], ["B"]]
    model = sf.ChainCRF(prior=sf.Normal(variance=1.0), solver="lbfgs").fit(X, y)
    assert_type(model.state_weights_, Floats)
    assert_type(model.transition_weights_, Floats)
    assert_type(model.labels_, tuple[Any, ...])
    assert_type(model.score(X, y), float)
    assert_type(model.accuracy(X, y), float)
    assert_type(model.classes_, list[Any])
    assert_type(model.feature_names_, tuple[Any, ...])
    assert_type(model.weight_names_, list[tuple[Any, ...]])
    assert_type(model.gradient_norm_, float)
    assert_type(model.predict_k_best(X, 2), list[list[tuple[list[Any], float]]])
    assert_type(model.top_features(3), list[StateWeight])
    assert_type(model.top_transitions(3), list[TransitionWeight])
    assert_type(model.evaluate(X, y), Evaluation)
    assert_type(model.predict(X), list[list[Any]])
    assert_type(model.predict_marginals(X), list[Marginals])
    framed = sf.ChainCRF(prior=sf.Normal(variance=1.0), boundaries=True, conditioned_transitions=True).fit(X, y)
    assert_type(framed.start_weights_, Floats)
    assert_type(framed.end_weights_, Floats)
    assert_type(framed.conditioned_transition_weights_, Floats)
    few = sf.ChainCRF(solver="perceptron").fit(X, y)
    assert_type(few.label_shares_, Floats | None)


def graph() -> None:
    example = sf.GraphExample(nodes=np.eye(2), edges=[[0, 1]])
    model = sf.GraphCRF(prior=sf.Normal(variance=1.0), edge_weights="equal", inference="exact").fit([example], [[0, 1]])
    assert_type(model.node_weights_, Floats)
    assert_type(model.edge_weights_, Floats)
    assert_type(model.log_partition(example), float)
    assert_type(model.template_weights("edges"), Floats)
    assert_type(model.evaluate([example], [[0, 1]]), Evaluation)
    assert_type(sf.GraphExample.grid(np.zeros((2, 2, 1))), sf.GraphExample)
    model.predict_marginals([example])


def main() -> None:
    for each in (chain, hidden, tagger, graph):
        each()
