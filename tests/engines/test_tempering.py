"""Replicas against laws that are enumerated, R-hat against chains made by hand, weights against their definition."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from suffice.engines.chain_means import ChainMeans, Tracker
from suffice.engines.gibbs import GibbsSampler
from suffice.engines.importance import draw_flattened, draw_widened, effective_size, pareto_shape, share_of
from suffice.engines.tempering import Ladder, Replicas, raised, set_up, spread_out

# -- replicas --------------------------------------------------------------------------------------------------------

CARDS = (2, 3, 2)
SCOPES = [(0, 1), (1, 2), (0,)]
STATES = np.array(list(itertools.product(*map(range, CARDS))))


def potentials() -> np.ndarray:
    """Two modes far apart, and one cell that cannot be."""
    both = np.array([[5.0, -3.0, -6.0], [-6.0, -1.0, 5.5]])
    other = np.array([[4.0, -2.0], [-1.0, -np.inf], [-2.0, 4.0]])
    return np.concatenate([both.ravel(), other.ravel(), [0.3, -0.3]])


def law_at(power: float) -> np.ndarray:
    """P of each joint state, by enumeration."""
    logs = potentials()
    both, other, own = logs[:6].reshape(2, 3), logs[6:12].reshape(3, 2), logs[12:]
    with np.errstate(invalid="ignore"):
        parts = [both[STATES[:, 0], STATES[:, 1]], other[STATES[:, 1], STATES[:, 2]], own[STATES[:, 0]]]
        total = np.sum([np.where(np.isneginf(part), -np.inf, power * part) for part in parts], axis=0)
    total = np.where(np.isnan(total), 0.0, total)
    impossible = np.isneginf(other[STATES[:, 1], STATES[:, 2]])
    found = np.where(impossible, 0.0, np.exp(np.where(impossible, 0.0, total)))
    return np.asarray(found / found.sum())


def test_every_rung_keeps_its_own_law() -> None:
    """8,000 ladders after 30 sweeps with exchanges, from states of the law of each rung: they stay so distributed."""
    logs, chains = potentials(), 8_000
    sampler = GibbsSampler(CARDS, SCOPES)
    sampler.load(logs)
    rng = np.random.default_rng(0)
    powers = np.array([0.0, 0.2, 0.5, 1.0])
    rungs = []
    for power in powers:
        drawn = STATES[rng.choice(len(STATES), chains, p=law_at(float(power)))]
        rungs.append(sampler.start(chains, rng, states=drawn.T))
    ladder, replicas = Ladder(sampler, logs, powers), Replicas(powers, rungs, np.random.default_rng(1))
    ladder.sweep(replicas, 30)
    for power, rung in zip(powers, rungs, strict=True):
        cells = np.ravel_multi_index(tuple(rung.states.astype(np.intp)), CARDS)
        shares, law = np.bincount(cells, minlength=len(STATES)) / chains, law_at(float(power))
        assert (np.abs(shares - law) <= 4.5 * np.sqrt(law * (1.0 - law) / chains)).all()
    assert 0.0 < ladder.weakest() < 1.0
    assert ladder.weakest() == 1.0  # Nothing was tried since.


def test_states_travel_from_a_mode_to_another() -> None:
    logs = potentials()
    sampler = GibbsSampler(CARDS, SCOPES)
    sampler.load(logs)
    rng = np.random.default_rng(0)
    chains = 2_000
    stuck = sampler.start(chains, rng, states=np.zeros((3, chains)))
    ladder, replicas = set_up(sampler, logs, stuck, rng)
    for rung in replicas.rungs[1:]:
        rung.states[:] = 0
    assert replicas.powers[0] == 0.0
    assert replicas.powers[-1] == 1.0
    assert (np.diff(replicas.powers) > 0.0).all()
    ladder.sweep(replicas, 200)
    sampler.sweep(stuck, 200)
    truth = law_at(1.0) @ (STATES[:, 0] == 1)
    assert abs((replicas.states[0] == 1).mean() - truth) < 4.5 * math.sqrt(truth * (1 - truth) / chains)
    assert (stuck.states[0] == 1).mean() < 0.5 * truth


def test_powers_leave_the_impossible_impossible() -> None:
    assert raised(np.array([2.0, -np.inf]), 0.0).tolist() == [0.0, -np.inf]
    assert raised(np.array([2.0, -np.inf]), 0.5).tolist() == [1.0, -np.inf]


def test_cold_starts_leave_every_other_chain_and_what_is_known() -> None:
    logs = potentials()
    sampler = GibbsSampler(CARDS, SCOPES)
    sampler.load(logs)
    begin = np.tile(np.array([[0], [2], [1]], np.uint8), (1, 8))
    chains = sampler.start(8, 0, states=begin, clamped=np.array([True, False, False]))
    spread_out(sampler, logs, chains)
    assert (chains.states[:, ::2] == begin[:, ::2]).all()
    assert (chains.states[0] == 0).all()
    assert (chains.states[1:, 1::2] == 0).all()  # The best states beside the one that is known.


# -- R-hat -----------------------------------------------------------------------------------------------------------


def tracked(values: np.ndarray) -> ChainMeans:
    """Numbers (draws, chains) as the draws of one function."""
    tracker, left = Tracker((lambda _, out: np.add(out, next(rows), out=out), 1), values.shape[1], len(values)), values
    rows = iter(left)
    for _ in values:
        tracker.add(np.zeros((1, values.shape[1]), np.uint8))
    return tracker.result()


def test_r_hat_of_chains_that_stand_still_is_infinite() -> None:
    still = np.tile(np.array([0.0, 1.0, 1.0, 0.0, 1.0]), (100, 1))
    found = tracked(still)
    assert found.r_hat.tolist() == [np.inf]
    assert not found.mixed()
    one = np.zeros((100, 64))
    one[:, 3] = 1.0  # One chain of many, in a mode of its own.
    assert not tracked(one).mixed()
    assert tracked(np.ones((100, 5))).mixing() == (np.inf, 1.0)


@pytest.mark.parametrize("draws", [4, 20, 1_000])
def test_r_hat_of_independent_draws_is_one_whatever_their_number(draws: int) -> None:
    values = np.random.default_rng(0).normal(size=(draws, 400))
    found = tracked(values)
    assert found.r_hat[0] == pytest.approx(1.0, abs=0.1 if draws < 20 else 0.02)
    # Its definition, by hand: the pooled variance over the mean variance of half chains.
    halves = np.concatenate([values[: draws // 2], values[draws // 2 :]], axis=1)
    by_hand = np.sqrt(values.var() / halves.var(axis=0, ddof=1).mean())
    assert found.r_hat[0] == pytest.approx(max(1.0, by_hand), rel=1e-9)
    assert found.error[0] == pytest.approx(values.mean(axis=0).std(ddof=1) / 20.0, rel=1e-12)


def test_what_varies_too_seldom_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where squares are kept at some draws only, a rare event may have no variance there."""
    monkeypatch.setattr("suffice.engines.chain_means.NUMBERS", 1)
    rare = (np.random.default_rng(0).random((3_200, 16)) < 1e-4).astype(float)
    found = tracked(rare)
    assert np.isnan(found.r_hat[0])
    assert found.mixing() == (np.inf, 1.0)


# -- weights ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.5, 0.1, 0.0])
def test_flat_draws_are_worth_what_the_law_says(share: float) -> None:
    rng = np.random.default_rng(0)
    p = np.array([0.999, 0.001, 0.0])
    n = 40_000
    drawn, logs = draw_flattened(np.tile(p, (n, 1)), rng, share)
    q = (1 - share) * p + share * np.array([0.5, 0.5, 0.0])
    np.testing.assert_allclose(logs, np.log(p[drawn] / q[drawn]), atol=1e-12)
    assert (np.exp(logs) <= 1.0 / (1.0 - share) + 1e-12).all()
    shares = np.bincount(drawn, minlength=3) / n
    assert (np.abs(shares - q) <= 4.5 * np.sqrt(q * (1 - q) / n)).all()
    assert np.exp(logs).mean() == pytest.approx(1.0, abs=4.5 * np.exp(logs).std() / math.sqrt(n) + 1e-12)


def test_masses_need_not_add_up_to_one() -> None:
    p = np.array([[0.2, 0.06], [0.0, 0.0]])
    drawn, logs = draw_flattened(np.repeat(p, 1_000, axis=0), np.random.default_rng(0), 0.0)
    np.testing.assert_allclose(logs[:1_000], math.log(0.26), atol=1e-12)
    assert abs((drawn[:1_000] == 1).mean() - 0.06 / 0.26) < 4.5 * math.sqrt(0.06 * 0.2 / 0.26**2 / 1_000)
    assert (logs[1_000:] == -np.inf).all()


def test_wide_draws_are_worth_what_the_law_says() -> None:
    n = 100_000
    drawn, logs = draw_widened(np.full(n, 3.0), np.full(n, 4.0), np.random.default_rng(0), 0.3)
    density = stats.norm(3, 2).pdf(drawn)
    mixed = 0.7 * density + 0.3 * stats.norm(3, 8).pdf(drawn)
    np.testing.assert_allclose(logs, np.log(density / mixed), atol=1e-9)
    weights = np.exp(logs)
    tail = weights * (drawn > 3.0 + 2.0 * 4.5)
    assert tail.mean() == pytest.approx(stats.norm.sf(4.5), abs=4.5 * tail.std() / math.sqrt(n))
    point, none = draw_widened(np.array([1.0]), np.array([0.0]), np.random.default_rng(0), 0.5)
    assert (point[0], none[0]) == (1.0, 0.0)


def test_a_sample_loses_less_than_e() -> None:
    assert [(1.0 - share_of(m)) ** -m <= math.e for m in (1, 2, 10, 1_000)] == [True] * 4
    assert effective_size(np.ones(7)) == pytest.approx(7.0)
    assert effective_size(np.array([1.0, 0.0, 0.0])) == 1.0


@pytest.mark.parametrize("shape", [0.1, 0.5, 0.9])
def test_the_shape_of_a_tail_is_found(shape: float) -> None:
    found = [pareto_shape(stats.genpareto(shape, scale=2.0).rvs(20_000, random_state=seed)) for seed in range(10)]
    # The fit to 425 of them has a standard deviation of about (1 + k) / sqrt(425), the mean of ten a third of it.
    assert np.mean(np.array(found, float)) == pytest.approx(shape, abs=0.12)


def test_weights_without_a_tail() -> None:
    assert pareto_shape(np.ones(1_000)) == -math.inf
    assert pareto_shape(np.repeat([1.0, 2.0], 500)) == -math.inf
    assert pareto_shape(np.arange(20.0)) is None


def test_tails_over_many_orders_of_magnitude_are_fitted_without_overflow() -> None:
    weights = np.concatenate([np.full(900, 1e-12), np.geomspace(1e-10, 1.0, 100)])
    found = pareto_shape(weights / weights.sum())
    assert found is not None
    assert found > 0.7
    assert pareto_shape(np.concatenate([np.full(900, 1.0), 1.0 + 1e-9 * np.arange(100)])) < 0.5  # type: ignore[operator]
