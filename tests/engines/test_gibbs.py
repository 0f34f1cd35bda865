"""Gibbs sampling: the chains leave the law as it is, both paths draw the same, and errors are what they say."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from scipy import stats

from suffice.engines.chain_means import Tracker, track
from suffice.engines.gibbs import GibbsChains, GibbsSampler
from suffice.errors import OptionError, SizeError
from suffice.kernels.choice import force
from suffice.kernels.gibbs_layout import GibbsLayout

RING = ((0, 1), (1, 2), (2, 3), (3, 0))
#: Name, cards and scopes: each takes another loop.
MODELS = {
    "pairs": ((2, 2, 2, 2), (*RING, (0,), (2,))),
    "potts": ((3, 3, 3), ((0, 1), (1, 2), (0, 2), (1,))),
    "tables": ((2, 3, 2), ((0, 1, 2), (2, 1), (0,))),
}


def logs_of(name: str, seed: int = 0) -> np.ndarray:
    """Log-potentials of a model, in the form that its name says."""
    rng = np.random.default_rng(seed)
    cards, scopes = MODELS[name]
    parts = []
    for scope in scopes:
        shape = tuple(cards[site] for site in scope)
        table = rng.normal(0.0, 0.7, shape)
        if name == "potts" and len(scope) == 2:
            table = rng.normal(0, 0.5, (3, 1)) + rng.normal(0, 0.5, (1, 3)) + rng.normal(0, 0.8) * np.eye(3)
        parts.append(table.ravel())
    return np.concatenate(parts)


def joint_states(cards: tuple[int, ...]) -> np.ndarray:
    """Every joint state (sites, states)."""
    return np.array(list(itertools.product(*map(range, cards)))).T.astype(np.uint8)


def law_of(cards: tuple[int, ...], scopes: tuple[tuple[int, ...], ...], logs: np.ndarray) -> np.ndarray:
    """The law by enumeration (states,)."""
    states = joint_states(cards)
    total, start = np.zeros(states.shape[1]), 0
    for scope in scopes:
        shape = tuple(cards[site] for site in scope)
        size = int(np.prod(shape))
        total += logs[start : start + size].reshape(shape)[tuple(states[list(scope)])]
        start += size
    weights = np.exp(total - total.max())
    return np.asarray(weights / weights.sum())


def sampler_of(name: str, scan: str = "systematic", mode: str = "compiled") -> tuple[GibbsSampler, np.ndarray]:
    cards, scopes = MODELS[name]
    logs = logs_of(name)
    with force(mode):
        sampler = GibbsSampler(cards, scopes, scan=scan)
    sampler.load(logs)
    assert sampler.form == name
    return sampler, law_of(cards, scopes, logs)


def site_kernel(sampler: GibbsSampler, site: int) -> np.ndarray:
    """The transition matrix of one visit, from the conditionals that the sampler uses."""
    cards = tuple(sampler.layout.cards.tolist())
    states = joint_states(cards)
    chances = sampler.conditional(site, states)
    found = np.zeros((states.shape[1],) * 2)
    for state in range(cards[site]):
        moved = states.copy()
        moved[site] = state
        to = np.ravel_multi_index(tuple(moved.astype(int)), cards)
        found[np.arange(len(to)), to] += chances[state]
    return found


def sweep_kernel(sampler: GibbsSampler) -> np.ndarray:
    """The transition matrix of one sweep."""
    kernels = [site_kernel(sampler, site) for site in range(len(sampler.layout.cards))]
    if sampler.scan == "random":
        return np.linalg.matrix_power(sum(kernels) / len(kernels), len(kernels))
    found = np.eye(len(kernels[0]))
    for site in np.concatenate(sampler.layout.colours):
        found = found @ kernels[site]
    return found


@pytest.mark.parametrize("scan", ["systematic", "random"])
@pytest.mark.parametrize("name", MODELS)
def test_the_transition_matrix_leaves_the_law_invariant(name: str, scan: str) -> None:
    sampler, law = sampler_of(name, scan)
    kernel = sweep_kernel(sampler)
    np.testing.assert_allclose(kernel.sum(axis=1), 1.0, atol=1e-14)
    np.testing.assert_allclose(law @ kernel, law, atol=1e-14)
    # And no other law is: the chains forget where they began.
    assert np.sort(np.abs(np.linalg.eigvals(kernel)))[-2] < 0.99


@pytest.mark.parametrize("name", MODELS)
def test_visits_within_a_colour_commute(name: str) -> None:
    sampler, _ = sampler_of(name)
    for colour in sampler.layout.colours:
        for a, b in itertools.combinations(colour, 2):
            first, second = site_kernel(sampler, a), site_kernel(sampler, b)
            np.testing.assert_allclose(first @ second, second @ first, atol=1e-14)


@pytest.mark.parametrize("mode", ["numpy", "compiled"])
@pytest.mark.parametrize("name", MODELS)
def test_drawn_transitions_follow_the_matrix(name: str, mode: str) -> None:
    """One sweep from every joint state, many times: a chi-squared test against each row of the matrix."""
    sampler, _ = sampler_of(name, mode=mode)
    kernel, cards = sweep_kernel(sampler), tuple(sampler.layout.cards.tolist())
    repeats = 4_000
    begin = np.repeat(joint_states(cards), repeats, axis=1)
    chains = sampler.start(begin.shape[1], 3, states=begin)
    sampler.sweep(chains)
    ends = np.ravel_multi_index(tuple(chains.states.astype(int)), cards).reshape(-1, repeats)
    chances = []
    for row, chance in zip(ends, kernel, strict=True):
        counts, expected = np.bincount(row, minlength=len(chance)), repeats * chance
        rare = expected < 5.0
        if rare.any():
            counts = np.append(counts[~rare], counts[rare].sum())
            expected = np.append(expected[~rare], expected[rare].sum())
        chances.append(stats.chisquare(counts, expected).pvalue)
    assert min(chances) > 0.01 / len(chances)


@pytest.mark.parametrize("scan", ["systematic", "random"])
@pytest.mark.parametrize("name", MODELS)
def test_both_paths_draw_the_same_chains(name: str, scan: str) -> None:
    ends: list[tuple[Any, ...]] = []
    for mode in ("numpy", "compiled"):
        sampler, _ = sampler_of(name, scan, mode)
        clamped = np.random.default_rng(1).random((len(MODELS[name][0]), 70)) < 0.2
        chains = sampler.start(70, 7, clamped=clamped)
        before = chains.states.copy()
        sampler.sweep(chains, 20)
        assert (chains.states[clamped] == before[clamped]).all()
        weights = np.random.default_rng(2).random(70)
        ends.append((chains.states, chains.stream, sampler.shares(chains), sampler.counts(chains.states, weights)))
        ends[-1] += (
            sampler.log_values(chains.states, logs_of(name)),
            *sampler.pseudo_likelihood(chains.states, weights),
        )
    for first, second in zip(*ends, strict=True):
        np.testing.assert_allclose(first, second, rtol=1e-12, atol=1e-12)


def test_moments_agree_with_the_exact_covariance() -> None:
    """Means of independent chains: N d' C^-1 d follows the chi-squared law, with the covariance by enumeration."""
    sampler, law = sampler_of("pairs")
    states = joint_states(MODELS["pairs"][0]).astype(float)
    design = np.array([*states, *(states[a] * states[b] for a, b in RING)])
    mean = design @ law
    covariance = (design * law) @ design.T - np.outer(mean, mean)
    count = 50_000
    chains = sampler.start(count, 11)
    sampler.sweep(chains, 60)
    drawn = chains.states.astype(float)
    found = np.array([*drawn, *(drawn[a] * drawn[b] for a, b in RING)]).mean(axis=1)
    statistic = count * (found - mean) @ np.linalg.solve(covariance, found - mean)
    assert 0.005 < stats.chi2(len(mean)).sf(statistic) < 0.995


def test_chains_depend_on_the_seed_alone() -> None:
    np.random.seed(5)
    before = np.random.get_state()[1].copy()  # type: ignore[index]
    ends = []
    for threads in (1, 2, 1):
        sampler = GibbsSampler((2,) * 400, [(i, i + 1) for i in range(399)], threads=threads)
        sampler.load(np.tile([0.5, 0.0, 0.0, 0.5], 399))
        chains = sampler.start(1100, 4)
        sampler.sweep(chains, 3)
        ends.append(chains.states)
    assert (ends[0] == ends[1]).all()
    assert (ends[0] == ends[2]).all()
    other = sampler.start(1100, 5)
    sampler.sweep(other, 3)
    assert (other.states != ends[0]).any()
    assert (np.random.get_state()[1] == before).all()  # type: ignore[index]


def test_chains_go_on_from_their_arrays() -> None:
    for scan in ("systematic", "random"):
        sampler, _ = sampler_of("tables", scan)
        whole = sampler.start(40, 1)
        part = GibbsChains.from_arrays({name: array.copy() for name, array in whole.to_arrays().items()})
        sampler.sweep(whole, 9)
        sampler.sweep(part, 4)
        part = GibbsChains.from_arrays({name: array.copy() for name, array in part.to_arrays().items()})
        sampler.sweep(part, 5)
        assert (whole.states == part.states).all()


def test_clamped_sites_give_the_conditional_law() -> None:
    sampler, law = sampler_of("tables")
    cards = MODELS["tables"][0]
    begin = np.zeros((3, 40_000), np.uint8)
    begin[1] = 2
    chains = sampler.start(40_000, 2, states=begin, clamped=[False, True, False])
    sampler.sweep(chains, 30)
    given = law.reshape(cards)[:, 2, :]
    found = np.bincount(chains.states[0] * 2 + chains.states[2], minlength=4)
    assert stats.chisquare(found, 40_000 * given.ravel() / given.sum()).pvalue > 0.01


def test_impossible_cells_are_never_drawn() -> None:
    sampler = GibbsSampler((2, 2), [(0, 1)])
    sampler.load(np.array([0.0, 0.3, -np.inf, 0.1]))
    assert sampler.form == "tables"
    chains = sampler.start(500, 0, states=np.zeros((2, 500)))
    for _ in range(20):
        sampler.sweep(chains)
        assert not ((chains.states[0] == 1) & (chains.states[1] == 0)).any()


def test_colours_share_no_factor() -> None:
    layout = GibbsLayout.of((2,) * 9, [(i, i + 1) for i in range(8)] + [(0, 4, 8)])
    colour = {site: number for number, part in enumerate(layout.colours) for site in part}
    assert len(colour) == 9
    for scope in layout.scopes:
        assert len({colour[site] for site in scope}) == len(scope)


def test_the_error_of_a_mean_is_that_of_repeated_runs() -> None:
    """The stated error against the spread of the means of 200 runs from other seeds."""
    sampler, law = sampler_of("pairs")
    exact = (joint_states(MODELS["pairs"][0]) * law).sum(axis=1)

    def add(states: np.ndarray, out: np.ndarray) -> None:
        out += states

    means, errors, sizes = [], [], []
    for seed in range(200):
        chains = sampler.start(20, seed)
        sampler.sweep(chains, 20)
        found = track(sampler, chains, (add, 4), 30)
        means.append(found.mean)
        errors.append(found.error)
        sizes.append(found.effective_sample_size)
    spread = np.std(means, axis=0, ddof=1)
    np.testing.assert_allclose(np.sqrt(np.mean(np.square(errors), axis=0)), spread, rtol=0.2)
    assert (np.abs(np.mean(means, axis=0) - exact) < 4.0 * spread / np.sqrt(200)).all()
    # Correlated draws: fewer than all 600, more than the 20 chains.
    assert (np.median(sizes, axis=0) < 600).all()
    assert (np.median(sizes, axis=0) > 20).all()


def test_r_hat_tells_chains_that_do_not_mix() -> None:
    rng = np.random.default_rng(0)
    levels = rng.normal(0.0, 1.0, 16)

    def independent(_: np.ndarray, out: np.ndarray) -> None:
        out += rng.normal(0.0, 1.0, (1, 16))

    def stuck(_: np.ndarray, out: np.ndarray) -> None:
        out += levels + rng.normal(0.0, 0.3, (1, 16))

    found = {}
    for name, add in (("independent", independent), ("stuck", stuck)):
        tracker = Tracker((add, 1), 16, 400)
        for _ in range(400):
            tracker.add(np.zeros((1, 16), np.uint8))
        found[name] = tracker.result()
    assert abs(found["independent"].r_hat[0] - 1.0) < 0.05
    assert found["stuck"].r_hat[0] > 2.0
    assert found["independent"].effective_sample_size[0] > 2_000
    assert found["stuck"].effective_sample_size[0] < 60


def test_options_that_make_no_sense() -> None:
    with pytest.raises(OptionError, match="scan is 'upwards'"):
        GibbsSampler((2,), [(0,)], scan="upwards")
    with pytest.raises(SizeError, match="300 states"):
        GibbsSampler((300,), [(0,)])
    sampler = GibbsSampler((2, 2), [(0, 1)])
    with pytest.raises(OptionError, match="expected \\(2, 3\\) codes"):
        sampler.start(3, states=np.zeros((2, 2)))
