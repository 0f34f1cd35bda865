"""Many calibrations of one tree: wide ranges without logarithms, and one specialisation of every loop."""

import math
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from log_linear import by_cells
from suffice.engines.junction_tree import plan_tree
from suffice.engines.tree_covariance import TreeCovariance
from suffice.engines.tree_scaling import TreeScaling
from suffice.kernels import choice
from suffice.kernels.junction_tree_moments import CliqueMoments

Floats = NDArray[np.float64]

CARDS: dict[Any, int] = dict.fromkeys(range(9), 2)
PAIRS: list[tuple[Any, ...]] = list(combinations(range(9), 2))


def fail(*_: Any) -> None:
    raise AssertionError("The slow path was taken.")


@pytest.mark.parametrize("spread", [1.0, 10.0, 40.0])
def test_many_factors_in_a_clique_need_no_logarithms(spread: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """36 factors whose least numbers multiply to far below the least double, though never in the same cell."""
    model = by_cells(CARDS, PAIRS)
    logs: Floats = np.random.default_rng(0).uniform(-spread, 0.0, size=(4 * len(PAIRS),))
    assert spread < 40.0 or np.minimum.reduceat(logs, np.arange(0, len(logs), 4)).sum() < -745
    moments = plan_tree(CARDS, PAIRS).moments()
    monkeypatch.setattr(CliqueMoments, "_general", fail)
    with choice.force("compiled"):
        log_z, marginals = moments(logs)
    expected = model(logs)
    assert log_z == pytest.approx(expected[0], rel=1e-13, abs=1e-12)
    np.testing.assert_allclose(marginals, expected[1], rtol=1e-10, atol=1e-300)


def test_a_long_chain_of_wide_messages_needs_no_logarithms(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hub with 300 neighbours, each of which shifts the odds of its states by up to e^20, one way or the other."""
    count = 300
    cards: dict[Any, int] = {"hub": 3, **dict.fromkeys(range(count), 2)}
    generator = np.random.default_rng(1)
    tables = generator.uniform(-10.0, 10.0, size=(count, 3, 2))
    tables -= tables.max(axis=2).mean(axis=0)[:, None] - generator.normal(scale=0.01, size=3)[:, None]
    monkeypatch.setattr(CliqueMoments, "_general", fail)
    with choice.force("compiled"):
        log_z, marginals = plan_tree(cards, [("hub", i) for i in range(count)]).moments()(tables.ravel())
    scores = np.logaddexp.reduce(tables, axis=2).sum(axis=0)
    assert log_z == pytest.approx(float(np.logaddexp.reduce(scores)), rel=1e-12)
    law = np.exp(scores - np.logaddexp.reduce(scores))
    np.testing.assert_allclose(marginals.reshape(count, 3, 2).sum(axis=2), np.tile(law, (count, 1)), rtol=1e-9)


def test_what_is_lost_is_done_with_logarithms() -> None:
    """Two states of weight e^-1000 each: no double holds them, and the sum is right all the same."""
    plan = plan_tree({"a": 2, "b": 2}, [("a",), ("a", "b"), ("b",)])
    logs = np.array([0.0, -1000.0, 0.0, -math.inf, -math.inf, 0.0, -1000.0, 0.0])
    with choice.force("compiled"):
        log_z, marginals = plan.moments()(logs)
    assert log_z == pytest.approx(-1000.0 + math.log(2.0), rel=1e-14)
    np.testing.assert_allclose(marginals, [0.5, 0.5, 0.5, 0.0, 0.0, 0.5, 0.5, 0.5], rtol=1e-12)


def test_impossible_models_have_no_partition() -> None:
    plan = plan_tree({"a": 2, "b": 2}, [("a",), ("a", "b")])
    logs = np.array([0.0, -math.inf, -math.inf, -math.inf, 0.0, 0.0])
    for path in ("numpy", "compiled"):
        with choice.force(path):
            log_z, marginals = plan.moments()(logs)
        assert log_z == -math.inf
        assert not marginals.any()


def test_every_loop_is_compiled_once() -> None:
    from suffice.kernels.compiled import junction_tree, junction_tree_tangents

    plan = plan_tree(CARDS, PAIRS)
    size = 4 * len(PAIRS)
    locked: Floats = np.zeros(size)
    locked.flags.writeable = False
    loops = [loop for module in (junction_tree, junction_tree_tangents) for loop in vars(module).values()]

    def counts() -> Any:
        return np.array([len(getattr(loop, "signatures", [])) for loop in loops])

    # Other tests of this process may have met other types; those of these calls are one.
    known = [counts()]
    with choice.force("compiled"):
        for logs in (locked, np.zeros(2 * size)[::2], [0.0] * size):
            plan.moments()(logs)
            TreeCovariance(plan).covariance_product(logs, np.ones(2 * size)[::2])
            TreeScaling(plan, [np.full((2, 2), 0.25)] * len(PAIRS), logs).sweep()
            known.append(counts())
    assert (known[1] - known[0] <= 1).all()
    np.testing.assert_array_equal(known[2], known[1])
    np.testing.assert_array_equal(known[3], known[1])
