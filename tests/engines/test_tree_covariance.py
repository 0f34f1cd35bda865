"""Covariances on the tree against those of the table of all joint states."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.factor_graphs import ZOO, Structure, models
from log_linear import by_cells
from suffice.engines.junction_tree import plan_tree
from suffice.engines.tree_covariance import TreeCovariance
from suffice.errors import OptionError, SizeError
from suffice.kernels import choice, junction_tree_tangents

PATHS = ("numpy", "compiled")


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("structure", ZOO.values(), ids=ZOO)
def test_the_covariance_is_that_of_all_states(structure: Structure, path: str) -> None:
    listed = by_cells(*structure)
    generator = np.random.default_rng(0)
    point, direction = generator.normal(size=(2, listed.features.shape[1]))
    expected = listed.covariance(point)
    with choice.force(path):
        covariances = TreeCovariance(plan_tree(*structure))
        np.testing.assert_allclose(covariances.covariance(point), expected, rtol=1e-11, atol=1e-14)
        found = covariances.covariance_product(point, direction)
        np.testing.assert_allclose(found, expected @ direction, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("path", PATHS)
@given(model=models(), seed=st.integers(0, 999))
def test_dead_cells_do_not_move(path: str, model: Any, seed: int) -> None:
    structure = model[0]
    listed = by_cells(*structure)
    generator = np.random.default_rng(seed)
    point, direction = 3.0 * generator.normal(size=(2, listed.features.shape[1]))
    kept = listed.features[generator.integers(len(listed.features))] > 0.0  # One state at least stays alive.
    point[(generator.random(len(point)) < 0.3) & ~kept] = -math.inf
    with choice.force(path):
        found = TreeCovariance(plan_tree(*structure)).covariance_product(point, direction)
    np.testing.assert_allclose(found, listed.covariance(point) @ direction, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("path", PATHS)
def test_it_is_the_derivative_of_the_moments_of_a_wide_tree(path: str) -> None:
    cards = {(i, j): 2 + (i * j) % 2 for i in range(6) for j in range(6)}
    scopes = [((i, j), (i, j + 1)) for i in range(6) for j in range(5)]
    scopes += [((i + 1, j), (i, j)) for i in range(5) for j in range(6)]
    plan = plan_tree(cards, scopes)
    moments = plan.moments()
    generator = np.random.default_rng(1)
    point, direction = generator.normal(size=(2, sum(moments.sizes)))
    with choice.force(path):
        found = TreeCovariance(plan).covariance_product(point, direction)
        step = 1e-4
        slopes = [
            (moments(point + size * direction)[1] - moments(point - size * direction)[1]) / (2 * size)
            for size in (step, 2 * step)
        ]
    richardson = (4.0 * slopes[0] - slopes[1]) / 3.0
    np.testing.assert_allclose(found, richardson, rtol=1e-7, atol=1e-10)


def test_products_belong_to_their_point() -> None:
    structure = ZOO["grid"]
    listed = by_cells(*structure)
    covariances = TreeCovariance(plan_tree(*structure))
    generator = np.random.default_rng(2)
    first, second, direction = generator.normal(size=(3, listed.features.shape[1]))
    products = [covariances.covariance_products(point) for point in (first, second)]
    first_before = first.copy()
    first[:] = 0.0  # What the caller does with its vector is no matter of the product.
    for product, point in ((products[0], first_before), (products[1], second), (products[0], first_before)):
        np.testing.assert_allclose(product(direction), listed.covariance(point) @ direction, rtol=1e-11, atol=1e-13)


def test_directions_are_taken_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    structure = ZOO["families"]
    point = np.random.default_rng(3).normal(size=by_cells(*structure).features.shape[1])
    with choice.force("numpy"):
        whole = TreeCovariance(plan_tree(*structure)).covariance(point)
        monkeypatch.setattr(junction_tree_tangents, "_SPREAD", 200)
        parts = TreeCovariance(plan_tree(*structure)).covariance(point)
    np.testing.assert_allclose(parts, whole, rtol=1e-12, atol=1e-16)


def test_far_cells_that_are_nearly_impossible_keep_their_digits() -> None:
    # P(a = 1) is about e^-600 of the rest; its derivative is known exactly: Var of an indicator of probability p.
    plan = plan_tree({"a": 2, "b": 2}, [("a",), ("a", "b")])
    logs = np.array([0.0, -600.0, 0.1, 0.2, 0.3, 0.4])
    found = TreeCovariance(plan).covariance_product(logs, np.array([0.0, 1.0, 0.0, 0.0, 0.0, 0.0]))
    odds = math.exp(-600.0) * (math.exp(0.3) + math.exp(0.4)) / (math.exp(0.1) + math.exp(0.2))
    assert found[1] == pytest.approx(odds, rel=1e-12)


def test_arguments_are_checked() -> None:
    plan = plan_tree({"a": 2, "b": 2}, [("a", "b")])
    covariances = TreeCovariance(plan)
    with pytest.raises(OptionError, match=r"Log-potentials have shape \(3,\); expected \(4,\)"):
        covariances.covariance(np.zeros(3))
    with pytest.raises(OptionError, match="NaN"):
        covariances.covariance(np.full(4, math.nan))
    with pytest.raises(OptionError, match=r"direction has shape \(2,\)"):
        covariances.covariance_product(np.zeros(4), np.zeros(2))
    small = plan_tree({"a": 3, "b": 3}, [("a", "b")], limit_bytes=500)
    with pytest.raises(SizeError, match=r"covariance of 9 cells would take 1\.3 kB.*covariance_product"):
        TreeCovariance(small).covariance(np.zeros(9))
