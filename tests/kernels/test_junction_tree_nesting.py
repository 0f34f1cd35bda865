"""Small tables inside large cliques: the same numbers from fewer passes."""

import math
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suffice.engines.junction_tree import TreePlan, plan_tree
from suffice.engines.tree_covariance import TreeCovariance
from suffice.engines.tree_scaling import TreeScaling
from suffice.kernels import choice
from suffice.kernels.junction_tree_layout import TreeLayout
from suffice.kernels.junction_tree_nesting import divide, nest

CARDS: dict[Any, int] = dict(zip("abcdefg", (4, 3, 4, 2, 3, 4, 3), strict=True))
PAIRS: list[tuple[Any, ...]] = [pair[::-1] if i % 3 else pair for i, pair in enumerate(combinations(CARDS, 2))]
PATHS = ("numpy", "compiled")


def one_clique(cards: tuple[int, ...]) -> TreeLayout:
    return TreeLayout(cards, (tuple(range(len(cards))),), (-1,), (0,))


def joint_law(plan: TreePlan, logs: np.ndarray) -> tuple[float, np.ndarray]:
    """Log Z and the law of all joint states, by listing them."""
    scores = np.zeros(tuple(CARDS.values()))
    start = 0
    for scope in plan.scopes:
        shape = tuple(CARDS[name] for name in scope)
        table = logs[start : start + math.prod(shape)].reshape(shape)
        order = sorted(range(len(scope)), key=lambda axis: list(CARDS).index(scope[axis]))
        scores += table.transpose(order).reshape([CARDS[name] if name in scope else 1 for name in CARDS])
        start += table.size
    log_z = np.log(np.exp(scores - scores.max()).sum()) + scores.max()
    return float(log_z), np.exp(scores - log_z)


def margins_of(law: np.ndarray) -> list[np.ndarray]:
    names = list(CARDS)
    found = []
    for scope in PAIRS:
        margin = law.sum(axis=tuple(axis for axis, name in enumerate(names) if name not in scope))
        found.append(margin if names.index(scope[0]) < names.index(scope[1]) else margin.T)
    return found


def test_margins_hang_inside_of_the_clique_and_hold_all_scopes() -> None:
    plan = plan_tree(CARDS, PAIRS)
    layout, nested = plan.layout, plan.nested_layout
    count = len(layout.cliques)
    assert count == 1
    assert len(nested.cliques) >= 4
    assert [set(clique) for clique in nested.cliques[:count]] == [set(clique) for clique in layout.cliques]
    for clique in range(count, len(nested.cliques)):
        assert set(nested.cliques[clique]) < set(nested.cliques[nested.parents[clique]])
        assert set(nested.separators[clique]) == set(nested.cliques[clique])
        assert nested.order.index(clique) < nested.order.index(nested.parents[clique])
    assert all(nested.home(numbers) >= count for numbers in plan.numbers)


@pytest.mark.parametrize("path", PATHS)
def test_moments_and_covariances_are_those_of_the_joint_table(path: str) -> None:
    plan = plan_tree(CARDS, PAIRS)
    rng = np.random.default_rng(0)
    logs = rng.normal(0.0, 1.0, sum(plan.moments().sizes))
    log_z, law = joint_law(plan, logs)
    with choice.force(path):
        found, marginals = plan.moments()(logs)
        direction = rng.normal(size=len(logs))
        product = TreeCovariance(plan).covariance_product(logs, direction)
    assert found == pytest.approx(log_z, rel=1e-13)
    expected = np.concatenate([margin.ravel() for margin in margins_of(law)])
    np.testing.assert_allclose(marginals, expected, rtol=1e-11)
    step = 1e-5
    ahead, behind = (
        np.concatenate([m.ravel() for m in margins_of(joint_law(plan, logs + s * direction)[1])]) for s in (step, -step)
    )
    np.testing.assert_allclose(product, (ahead - behind) / (2 * step), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("path", PATHS)
def test_sweeps_are_those_of_the_joint_table(path: str) -> None:
    plan = plan_tree(CARDS, PAIRS)
    rng = np.random.default_rng(1)
    target = rng.gamma(0.5, size=tuple(CARDS.values()))
    targets = margins_of(target / target.sum())
    names = list(CARDS)
    law = np.full(tuple(CARDS.values()), 1.0 / math.prod(CARDS.values()))
    with choice.force(path):
        scaling = TreeScaling(plan, targets)
        for _ in range(3):
            largest = 0.0
            for number in scaling.order:
                scope = PAIRS[number]
                others = tuple(axis for axis, name in enumerate(names) if name not in scope)
                margin = law.sum(axis=others, keepdims=True)
                wanted = targets[number] if names.index(scope[0]) < names.index(scope[1]) else targets[number].T
                wanted = wanted.reshape(margin.shape)
                largest = max(largest, float(np.abs(wanted - margin).max()))
                law *= wanted / margin
            assert scaling.sweep() == pytest.approx(largest, rel=1e-9, abs=1e-14)
        logs = scaling.log_potentials
    np.testing.assert_allclose(joint_law(plan, logs)[1], law, rtol=1e-9)


def test_small_cliques_and_single_factors_stay_as_they_are() -> None:
    small = one_clique((2,) * 6)
    assert nest(small, list(combinations(range(6), 2))) is small
    large = one_clique((4,) * 8)
    assert nest(large, [tuple(range(8))]) is large
    assert nest(large, [(0, 1)]) is large


def test_few_factors_of_a_large_clique_share_one_margin() -> None:
    nested = nest(one_clique((3,) * 10), [(0, 1), (1, 2), (2, 0)])
    assert [set(clique) for clique in nested.cliques[1:]] == [{0, 1, 2}]


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_every_scope_has_a_group_and_the_passes_are_fewer(data: st.DataObject) -> None:
    cards = tuple(data.draw(st.lists(st.integers(2, 5), min_size=5, max_size=9), label="cards"))
    variables = st.sets(st.integers(0, len(cards) - 1), min_size=1, max_size=4)
    scopes = {frozenset(scope) for scope in data.draw(st.lists(variables, min_size=1, max_size=25), label="scopes")}
    layout, clique = one_clique(cards), frozenset(range(len(cards)))
    groups = divide(layout, clique, scopes)
    inside = {scope for scope in scopes if scope < clique}
    if groups:
        assert set().union(*(taken for _, taken in groups)) == inside
        assert sum(len(taken) for _, taken in groups) == len(inside)
    for group, taken in groups:
        assert group < clique
        assert all(scope <= group for scope in taken)
    cells = math.prod(cards)
    after = sum(2 * cells + 2 * layout.size(tuple(group)) * (1 + len(taken)) for group, taken in groups)
    assert not groups or after < 2 * len(inside) * cells
