"""Answers by sampling where every state can be listed: how many of their own standard errors they are off.

Networks are small, and told to take themselves for too large for exact inference.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

import suffice as sf
from benchmarks.audit.markov_networks import Network, draw_ising, joint_codes
from benchmarks.audit.record import Problem, Record, Sampled

Floats = NDArray[np.float64]
Rng = np.random.Generator
Found = Iterator[Record]

SAMPLING = sf.GibbsSampling(chains=32, burn_in=50, draws=200)


def watched(ask: Callable[[], Any]) -> tuple[Any, bool]:
    """An answer, and whether it came with a warning that it is not to be relied on."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", sf.SamplingWarning)
        answer = ask()
    return answer, any(issubclass(warning.category, sf.SamplingWarning) for warning in caught)


def draw_law(rng: Rng, strength: float) -> tuple[Network, Floats, Floats]:
    """An Ising model, its weights, and the law of its joint states."""
    network = draw_ising(rng)
    weights = np.asarray(rng.normal(scale=strength, size=network.features.shape[1]))
    return network, weights, law_of(network, weights)


def law_of(network: Network, weights: Floats) -> Floats:
    scores = network.features @ weights
    heights = np.exp(scores - scores.max())
    return np.asarray(heights / heights.sum())


def too_large(network: Network, **options: Any) -> sf.MarkovNetwork:
    """The network, for which no junction tree fits in the memory allowed."""
    return sf.MarkovNetwork(
        network.terms, states=network.states, solver="sml", memory_limit=1, sampling=SAMPLING, **options
    )


def query(rng: Rng) -> Found:
    """P(variable | evidence) by Gibbs sampling."""
    network, weights, law = draw_law(rng, 0.4)
    asked, *others = rng.permutation(network.names).tolist()
    given = {name: int(rng.integers(2)) for name in others[:1] if rng.random() < 0.5}
    yield from _queried(rng, network, weights, law, asked, given, "query tables by Gibbs sampling")


def bimodal_query(rng: Rng) -> Found:
    """P(variable) of a law with two modes, strong couplings that all agree, and a small field."""
    network = draw_ising(rng)
    pairs = network.features.shape[1] - len(network.names)
    fields = np.full(len(network.names), rng.uniform(0.0, 0.1))
    weights = np.concatenate([fields, np.full(pairs, rng.uniform(0.3, 1.2))])
    law = law_of(network, weights)
    asked = str(rng.choice(network.names))
    yield from _queried(rng, network, weights, law, asked, {}, "query tables of bimodal distributions")


def _queried(
    rng: Rng, network: Network, weights: Floats, law: Floats, asked: str, given: dict[str, int], label: str
) -> Found:
    model, seed = too_large(network).with_weights(weights), int(rng.integers(2**31))
    table, warned = watched(lambda: model.query(asked, given=given, random_state=seed))
    codes, names = joint_codes(network.cards), network.names
    kept = np.all([codes[:, names.index(name)] == code for name, code in given.items()], axis=0) | (not given)
    truth = law[kept & (codes[:, names.index(asked)] == 1)].sum() / law[kept].sum()
    error = float(table.standard_errors.values[1])
    yield Sampled(label, (float(table.values[1]) - float(truth)) / error, warned)


def log_partition(rng: Rng) -> Found:
    """Log Z by annealed importance sampling, of laws with one mode or two."""
    network, weights, _ = draw_law(rng, float(rng.choice([0.3, 1.0])))
    model, seed = too_large(network).with_weights(weights), int(rng.integers(2**31))
    found, warned = watched(lambda: model.estimate_log_partition(chains=64, random_state=seed))
    scores = network.features @ weights
    truth = float(scores.max() + np.log(np.exp(scores - scores.max()).sum()))
    yield Sampled("log Z by annealed importance sampling", (found.value - truth) / found.standard_error, warned)


def stochastic_likelihood(rng: Rng) -> Found:
    """Means of features under a fit by SML, measured by fresh chains: one of them."""
    network, _, law = draw_law(rng, 0.3)
    codes = joint_codes(network.cards)[rng.choice(len(law), size=200, p=law)]
    rows = {name: codes[:, place].tolist() for place, name in enumerate(network.names)}
    model = too_large(network, random_state=int(rng.integers(2**31)), max_iter=200)
    fitted, warned = watched(lambda: model.fit(rows))
    weights = np.asarray(fitted.weights_)
    if not np.isfinite(weights).all():
        return
    matched, exact = fitted.matched_statistics(), law_of(network, weights) @ network.features
    place = int(rng.integers(len(weights)))
    z = (float(matched.expected[place]) - float(exact[place])) / float(matched.errors[place])
    yield Sampled("expected features of SML by fresh chains", z, warned)


PROBLEMS: dict[str, Problem] = {
    "sampled-query": query,
    "sampled-bimodal-query": bimodal_query,
    "sampled-log-partition": log_partition,
    "sampled-stochastic-likelihood": stochastic_likelihood,
}
