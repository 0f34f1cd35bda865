"""Laws with several modes: sampled answers are within their errors of sums over all joint states, or they warn."""

from __future__ import annotations

import itertools
import math
import pickle
import warnings
from typing import Any

import numpy as np
import pytest

import suffice as sf
from suffice.engines.gibbs import GibbsSampler
from suffice.engines.tempering import Lengths, Replicas, fresh_means

SITES = 10
NODES = [f"n{number}" for number in range(SITES)]
EDGES = list(itertools.combinations(NODES, 2))
#: All joint states (1024, 10) of spins.
SPINS = 2.0 * np.array(list(itertools.product([0, 1], repeat=SITES))) - 1.0
PAIRS = np.stack([SPINS[:, a] * SPINS[:, b] for a, b in itertools.combinations(range(SITES), 2)], axis=1)


def weights_of(coupling: float, field: float = 0.1) -> np.ndarray:
    return np.concatenate([np.full(SITES, field), np.full(len(EDGES), coupling)])


def probabilities(weights: np.ndarray) -> np.ndarray:
    """P of each joint state, by enumeration."""
    logs = np.concatenate([SPINS, PAIRS], axis=1) @ weights
    found = np.exp(logs - logs.max())
    return np.asarray(found / found.sum())


def sampled(weights: np.ndarray, **options: Any) -> Any:
    """The law, without a junction tree."""
    return sf.MarkovNetwork.ising(EDGES, solver="sml", memory_limit=200, **options).with_weights(weights)


@pytest.mark.parametrize("coupling", [0.3, 0.5, 0.8])
def test_answers_between_two_modes(coupling: float) -> None:
    weights = weights_of(coupling)
    law, p = sampled(weights, sampling=sf.GibbsSampling(draws=300)), probabilities(weights)
    exact = p @ (SPINS[:, 0] > 0)
    away = []
    for seed in range(4):
        table = law.query(["n0"], random_state=seed)
        assert table.levels > 1
        assert 1.0 <= table.r_hat < 1.05
        assert table.effective_sample_size > 1_000
        assert table.standard_errors.at(n0=1) < 0.015
        away.append((table.at(n0=1) - exact) / table.standard_errors.at(n0=1))
    # Four standard normal numbers: the largest is below 3.5 but for one time in 500, their mean below 1.75 in 2,000.
    assert np.abs(away).max() < 3.5
    assert abs(np.mean(away)) < 1.75


def test_marginals_pairs_evidence_and_draws() -> None:
    weights = weights_of(0.5)
    law, p = sampled(weights, sampling=sf.GibbsSampling(draws=300)), probabilities(weights)
    each = law.marginals(random_state=1)
    for site, name in enumerate(NODES):
        error = each[name].standard_errors.at({name: 1})
        assert abs(each[name].at({name: 1}) - p @ (SPINS[:, site] > 0)) < 4.5 * error
    pair = law.query(["n0", "n1"], {"n5": {1: 0.5, -1: 1.5}}, random_state=2)
    tilted = p * np.where(SPINS[:, 5] > 0, 0.5, 1.5)
    both = (tilted / tilted.sum()) @ ((SPINS[:, 0] > 0) & (SPINS[:, 1] > 0))
    assert abs(pair.at(n0=1, n1=1) - both) < 4.5 * pair.standard_errors.at(n0=1, n1=1)
    assert "R-hat 1.0" in str(pair)
    rows = law.sample(4_000, random_state=3)
    share, truth = (rows["n0"] == 1).mean(), p @ (SPINS[:, 0] > 0)
    assert abs(share - truth) < 4.5 * np.sqrt(truth * (1 - truth) / 4_000)


def test_without_tempering_chains_that_do_not_mix_are_said() -> None:
    law = sampled(weights_of(0.8), sampling=sf.GibbsSampling(tempering=False))
    with pytest.warns(sf.SamplingWarning, match=r"answer to P\(n0\).*do not agree \(R-hat is inf") as caught:
        table = law.query(["n0"], random_state=0)
    assert table.r_hat == np.inf
    assert caught[0].filename == __file__
    with pytest.warns(sf.SamplingWarning, match="rows drawn are not to be relied on"):
        law.sample(10, random_state=0)


def potts_share(sites: int, states: int, coupling: float) -> float:
    """P(two given sites are equal) in a Potts model on a complete graph, by sums over how many sites have each state.

    The weight of a joint state depends on these numbers alone, and Z = sites! times a coefficient of a power series.
    """
    series = np.array([math.exp(coupling * k * (k - 1) / 2) / math.factorial(k) for k in range(sites + 1)])
    rest = np.eye(1, sites + 1)[0]
    for _ in range(states - 1):
        rest = np.convolve(rest, series)[: sites + 1]
    first = series * rest[::-1]
    k = np.arange(sites + 1)
    return float(states * (first @ (k * (k - 1))) / first.sum() / (sites * (sites - 1)))


@pytest.mark.parametrize(("coupling", "mixes"), [(0.36, True), (0.5, True), (0.33, False)])
def test_a_law_that_changes_its_phase_at_once(coupling: float, mixes: bool) -> None:
    """Random states lead to disorder, cold ones to order. Replicas join the two, or R-hat says that they do not."""
    sites, states = 24, 40
    scopes = list(itertools.combinations(range(sites), 2))
    sampler = GibbsSampler([states] * sites, scopes)
    logs = np.tile((coupling * np.eye(states)).ravel(), len(scopes))
    rng = np.random.default_rng(0)

    def add(codes: np.ndarray, out: np.ndarray) -> None:
        for state in range(states):
            count = (codes == state).sum(axis=0)
            out[0] += count * (count - 1) / (sites * (sites - 1))

    sampler.load(logs)
    lengths = Lengths(burn_in=50, draws=150)
    found, walk = fresh_means(sampler, logs, lambda: sampler.start(32, rng), (add, 1), lengths, rng)
    assert found.mixed() == mixes
    if mixes:
        assert abs(found.mean[0] - potts_share(sites, states, coupling)) < 4.0 * found.error[0] < 0.01
    else:
        assert isinstance(walk, Replicas)
        assert found.r_hat[0] > 1.2


def test_learning_between_two_modes() -> None:
    """Persistent chains stay in their modes and drive the weights apart; replicas find the maximum."""
    weights = weights_of(0.3)
    rng = np.random.default_rng(4)
    drawn = SPINS[rng.choice(len(SPINS), 5_000, p=probabilities(weights))]
    rows = {name: drawn[:, site].astype(int) for site, name in enumerate(NODES)}
    fitted = sf.MarkovNetwork.ising(EDGES, solver="sml", random_state=0, memory_limit=200).fit(rows)
    certificate = fitted.report_.certificate
    carlo = certificate.monte_carlo
    assert fitted.converged_
    assert carlo is not None
    assert carlo.levels > 1
    assert carlo.r_hat < 1.05
    assert "replicas at several temperatures" in fitted.report_.method
    assert "tempering" in str(fitted.report_)
    # The exact gap, by enumeration, is what fresh replicas say it is.
    features = np.concatenate([SPINS, PAIRS], axis=1)
    expected = probabilities(fitted.weights_) @ features
    observed = np.concatenate([drawn, np.stack([drawn[:, a] * drawn[:, b] for a, b in PLACES], axis=1)], axis=1)
    deviation = np.sqrt(1.0 - expected**2)  # Of a product of spins.
    gap = np.sqrt(5_000) * (np.abs(observed.mean(axis=0) - expected) / deviation).max()
    assert gap < certificate.moment_gap + 4.0 * carlo.error
    best = sf.MarkovNetwork.ising(EDGES).fit(rows)
    lost = best.score(rows) - sf.MarkovNetwork.ising(EDGES).with_weights(fitted.weights_).score(rows)
    assert 0.0 <= lost < 0.01


PLACES = list(itertools.combinations(range(SITES), 2))


def test_a_fit_is_not_converged_against_its_certificate() -> None:
    """Without replicas the chains of the fit come to rest in their own modes, and fresh ones do not agree."""
    weights = weights_of(0.2)
    rng = np.random.default_rng(2)
    drawn = SPINS[rng.choice(len(SPINS), 500, p=probabilities(weights))]
    rows = {name: drawn[:, site].astype(int) for site, name in enumerate(NODES)}
    plain = sf.GibbsSampling(tempering=False)
    network = sf.MarkovNetwork.ising(EDGES, solver="sml", random_state=0, memory_limit=200, sampling=plain)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fitted = network.fit(rows)
    carlo = fitted.report_.certificate.monte_carlo
    assert carlo is not None
    assert carlo.r_hat > 1.05
    assert not fitted.converged_
    assert fitted.stop_reason_ == "denied by fresh chains"
    assert [w.category for w in caught] == [sf.ConvergenceWarning]
    assert "R-hat is 1" in str(caught[0].message)
    assert caught[0].filename == __file__


def test_matched_statistics_need_no_tree() -> None:
    weights = weights_of(0.05)
    rng = np.random.default_rng(0)
    drawn = SPINS[rng.choice(len(SPINS), 500, p=probabilities(weights))]
    rows = {name: drawn[:, site].astype(int) for site, name in enumerate(NODES)}
    fitted = sf.MarkovNetwork.ising(EDGES, solver="sml", random_state=0, memory_limit=200).fit(rows)
    matched = fitted.matched_statistics()
    assert matched is not None
    assert matched.errors is not None
    observed = np.concatenate([drawn, np.stack([drawn[:, a] * drawn[:, b] for a, b in PLACES], axis=1)], axis=1)
    np.testing.assert_allclose(matched.observed, observed.mean(axis=0), atol=1e-12)
    expected = probabilities(fitted.weights_) @ np.concatenate([SPINS, PAIRS], axis=1)
    assert (np.abs(matched.expected - expected) < 4.5 * matched.errors).all()


def test_what_chains_matched_is_not_lost_on_the_way() -> None:
    """A pickle and a file hold no chains: the judge's are drawn again, with his seed, and say the same."""
    drawn = SPINS[np.random.default_rng(0).choice(len(SPINS), 200, p=probabilities(weights_of(0.05)))]
    rows = {name: drawn[:, site].astype(int) for site, name in enumerate(NODES)}
    sampling = sf.GibbsSampling(chains=32, draws=100)
    network = sf.MarkovNetwork.ising(EDGES, solver="sml", random_state=0, memory_limit=200, sampling=sampling)
    matched = network.fit(rows).matched_statistics()
    twin = pickle.loads(pickle.dumps(network)).matched_statistics()
    assert matched is not None
    assert twin is not None
    np.testing.assert_array_equal(twin.errors, matched.errors)
    np.testing.assert_array_equal(twin.expected, matched.expected)


def test_the_judge_draws_chains_of_his_own() -> None:
    """Neither what the solver has measured nor its random numbers enter: the judge's are the same without a solver."""
    drawn = SPINS[np.random.default_rng(0).choice(len(SPINS), 200, p=probabilities(weights_of(0.05)))]
    rows = {name: drawn[:, site].astype(int) for site, name in enumerate(NODES)}
    sampling = sf.GibbsSampling(chains=32, draws=100)
    network = sf.MarkovNetwork.ising(EDGES, solver="sml", random_state=0, memory_limit=200, sampling=sampling)
    network.fit(rows)
    problem = network._task().problem(network._learned_data(), None)
    anew = problem.judge(network.fitted_)
    assert anew.certificate == network.report_.certificate
    assert anew.log_likelihood == network.report_.log_likelihood
    assert problem.judge(network.fitted_).certificate == anew.certificate
    spec = network._task().spec
    assert spec.judging_stream().random() == spec.judging_stream().random() != spec.solving_stream().random()


def test_a_fit_that_was_stopped_says_that_its_chains_do_not_mix() -> None:
    drawn = SPINS[np.random.default_rng(2).choice(len(SPINS), 500, p=probabilities(weights_of(0.2)))]
    rows = {name: drawn[:, site].astype(int) for site, name in enumerate(NODES)}
    plain = sf.GibbsSampling(tempering=False)
    network = sf.MarkovNetwork.ising(EDGES, solver="sml", random_state=0, memory_limit=200, sampling=plain)
    network.set_params(start=weights_of(0.8), callback=lambda state: True)
    with pytest.warns(sf.SamplingWarning, match="moment gap in the certificate is not to be relied on: its chains do"):
        fitted = network.fit(rows)
    assert fitted.stop_reason_ == "callback"
