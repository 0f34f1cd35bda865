"""Annealed importance sampling within its errors of the exact log Z; loopy propagation exact on trees."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import suffice as sf
from suffice.engines.annealing import log_partition
from suffice.engines.gibbs import GibbsSampler
from suffice.engines.junction_tree import plan_tree
from suffice.engines.loopy import LoopyBeliefs


def grid_scopes(rows: int, columns: int) -> list[tuple[int, ...]]:
    pairs = [(r * columns + c, r * columns + c + 1) for r in range(rows) for c in range(columns - 1)]
    pairs += [(r * columns + c, (r + 1) * columns + c) for r in range(rows - 1) for c in range(columns)]
    return [*pairs, *((site,) for site in range(rows * columns))]


def exact(cards: list[int], scopes: Sequence[tuple[int, ...]], logs: np.ndarray) -> tuple[float, np.ndarray]:
    log_z, margins = plan_tree(dict(enumerate(cards)), scopes).moments()(logs)
    return float(log_z), margins


@pytest.mark.parametrize("strength", [0.3, 1.0])
def test_annealing_is_within_its_error_bars(strength: float) -> None:
    scopes, cards = grid_scopes(6, 6), [2] * 36
    rng = np.random.default_rng(0)
    logs = rng.normal(0.0, strength, 4 * 60 + 2 * 36)
    log_z, _ = exact(cards, scopes, logs)
    sampler = GibbsSampler(cards, scopes)
    errors = []
    for seed in range(12):
        found = log_partition(sampler, logs, random_state=seed)
        errors.append((found.value - log_z) / found.standard_error)
        assert found.standard_error < 0.15
        value, error = found
        assert (value, error) == (found.value, found.standard_error)
        assert found.lower_bound < found.value
    assert max(map(abs, errors)) < 4.0
    assert 0.3 < np.std(errors) < 2.0


def test_annealing_with_impossible_cells() -> None:
    scopes, cards = [(0, 1), (1, 2)], [3, 2, 2]
    logs = np.array([0.2, -np.inf, 0.5, 0.1, -0.4, 0.9, 0.3, 0.0, -np.inf, 1.0])
    log_z, _ = exact(cards, scopes, logs)
    found = log_partition(GibbsSampler(cards, scopes), logs, chains=4000, steps=30, random_state=0)
    assert abs(found.value - log_z) < 4.0 * found.standard_error < 0.2


def test_annealing_needs_two_chains() -> None:
    with pytest.raises(sf.OptionError, match="chains is 1; expected a whole number of at least 2"):
        log_partition(GibbsSampler([2], [(0,)]), np.zeros(2), chains=1)


def test_loopy_propagation_is_exact_on_a_tree() -> None:
    cards = [2, 3, 2, 4, 2, 3]
    scopes = [(0, 1), (1, 2, 3), (3, 4), (5,), (1,)]
    rng = np.random.default_rng(1)
    logs = rng.normal(0.0, 1.0, sum(int(np.prod([cards[s] for s in scope])) for scope in scopes))
    found = LoopyBeliefs(cards, scopes).solve(logs)
    log_z, margins = exact(cards, scopes, logs)
    assert found.converged
    np.testing.assert_allclose(found.shares, margins, atol=1e-12)
    assert found.log_partition == pytest.approx(log_z, abs=1e-11)


def test_beliefs_are_the_slope_of_the_bethe_log_z() -> None:
    cards, scopes = [2] * 9, grid_scopes(3, 3)
    rng = np.random.default_rng(2)
    logs = rng.normal(0.0, 0.4, 4 * 12 + 2 * 9)
    engine = LoopyBeliefs(cards, scopes)
    found = engine.solve(logs)
    assert found.converged
    slopes = []
    for cell in range(len(logs)):
        moved = [logs.copy(), logs.copy()]
        moved[0][cell] += 1e-5
        moved[1][cell] -= 1e-5
        up, down = (engine.solve(part).log_partition for part in moved)
        slopes.append((up - down) / 2e-5)
    np.testing.assert_allclose(slopes, found.shares, atol=1e-8)
    log_z, margins = exact(cards, scopes, logs)
    # On a graph with loops both are near, and not equal.
    assert 1e-6 < abs(found.log_partition - log_z) < 0.1
    assert 1e-6 < np.abs(found.shares - margins).max() < 0.05


def test_impossible_cells_in_messages() -> None:
    cards, scopes = [2, 2, 2], [(0, 1), (1, 2)]
    logs = np.array([0.0, -np.inf, 0.2, 0.1, 0.4, -np.inf, -np.inf, 0.3])
    found = LoopyBeliefs(cards, scopes).solve(logs)
    log_z, margins = exact(cards, scopes, logs)
    np.testing.assert_allclose(found.shares, margins, atol=1e-12)
    assert found.log_partition == pytest.approx(log_z, abs=1e-11)
