"""Proportional fitting on the tree against the same sweeps on the table of all joint states."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.factor_graphs import ZOO, Floats, Structure, models
from log_linear import by_cells
from suffice.engines.junction_tree import TreePlan, plan_tree
from suffice.engines.tree_scaling import TreeScaling
from suffice.errors import DataError, OptionError
from suffice.kernels import choice

PATHS = ("numpy", "compiled")


def margins(structure: Structure, law: Floats) -> list[Floats]:
    """The margins of a law (states,) over all scopes."""
    cards, scopes = structure
    flat = by_cells(cards, scopes).features.T @ law
    return split(structure, flat)


def split(structure: Structure, flat: Floats) -> list[Floats]:
    """A vector of cells as one table for each scope."""
    cards, scopes = structure
    shapes = [tuple(cards[node] for node in scope) for scope in scopes]
    ends = np.cumsum([0, *(math.prod(shape) for shape in shapes)])
    return [flat[a:b].reshape(shape) for (a, b), shape in zip(pairwise(ends), shapes, strict=True)]


def random_law(structure: Structure, seed: int, *, zeros: float = 0.0) -> Floats:
    """A law of all states, of which a share is set to 0."""
    generator = np.random.default_rng(seed)
    law = generator.gamma(0.4, size=math.prod(structure[0].values()))
    law[generator.random(len(law)) < zeros] = 0.0
    law[generator.integers(len(law))] += 0.1
    return np.asarray(law / law.sum())


class Listing:
    """Proportional fitting on the table of all joint states, by the definition."""

    def __init__(self, structure: Structure, targets: Sequence[Floats], logs: Floats | None = None) -> None:
        self.features = by_cells(*structure).features
        self.ends = np.cumsum([0, *(table.size for table in targets)])
        self.targets = [np.asarray(table).ravel() for table in targets]
        weights = np.zeros(self.features.shape[1]) if logs is None else logs
        self.law = np.exp(self.features @ weights)
        self.law /= self.law.sum()

    def fit(self, number: int) -> None:
        columns = self.features[:, self.ends[number] : self.ends[number + 1]]
        margin, target = columns.T @ self.law, self.targets[number]
        ratio = np.divide(target, margin, out=np.zeros_like(target), where=margin > 0.0)
        self.law = self.law * (columns @ ratio)


def law_of(structure: Structure, scaling: TreeScaling) -> Floats:
    """The law that the log-potentials and the partition function give, not normalised."""
    scores = by_cells(*structure).scores(scaling.log_potentials)
    return np.asarray(np.exp(scores - scaling.log_partition))


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("structure", ZOO.values(), ids=ZOO)
def test_every_sweep_is_that_of_the_full_table(structure: Structure, path: str) -> None:
    targets = margins(structure, random_law(structure, 1))
    start = np.random.default_rng(2).normal(size=sum(table.size for table in targets))
    with choice.force(path):
        scaling = TreeScaling(plan_tree(*structure), targets, start)
        slow = Listing(structure, targets, start)
        np.testing.assert_allclose(law_of(structure, scaling), slow.law, rtol=1e-11, atol=1e-15)
        for _ in range(4):
            scaling.sweep()
            for number in scaling.order:
                slow.fit(number)
            np.testing.assert_allclose(law_of(structure, scaling), slow.law, rtol=1e-10, atol=1e-15)
    live = [number for number, scope in enumerate(structure[1]) if any(structure[0][node] > 1 for node in scope)]
    assert sorted(scaling.order) == live


@pytest.mark.parametrize("path", PATHS)
@given(model=models(), seed=st.integers(0, 999), zeros=st.sampled_from([0.0, 0.3, 0.7]))
def test_random_structures_with_zeros(path: str, model: Any, seed: int, zeros: float) -> None:
    structure = model[0]
    law = random_law(structure, seed, zeros=zeros)
    targets = margins(structure, law)
    with choice.force(path):
        scaling = TreeScaling(plan_tree(*structure), targets)
        slow = Listing(structure, targets)
        for _ in range(3):
            scaling.sweep()
            for number in scaling.order:
                slow.fit(number)
        np.testing.assert_allclose(law_of(structure, scaling), slow.law, rtol=1e-9, atol=1e-15)
        flat = np.concatenate([np.zeros(0), *(table.ravel() for table in targets)])
        expected = by_cells(*structure).features.T @ slow.law
        assert scaling.gap() == pytest.approx(np.abs(expected - flat).max(initial=0.0), abs=1e-12)


@pytest.mark.parametrize("name", ["reversed", "grid", "complete", "nested", "apart", "families"])
def test_an_update_matches_its_margin_keeps_z_and_raises_the_likelihood(name: str) -> None:
    structure = ZOO[name]
    plan = plan_tree(*structure)
    targets = margins(structure, random_law(structure, 3))
    flat = np.concatenate([table.ravel() for table in targets])
    start = np.random.default_rng(4).normal(size=len(flat))
    listed = by_cells(*structure)
    scaling = TreeScaling(plan, targets, start)
    log_z = listed.log_z(start)
    likelihood = float(start @ flat) - log_z
    assert scaling.objective == pytest.approx(likelihood, rel=1e-13)
    for _ in range(3):
        for number in scaling.updates():
            logs = scaling.log_potentials
            assert listed.log_z(logs) == pytest.approx(log_z, abs=1e-12)
            assert scaling.log_partition == pytest.approx(log_z, abs=1e-12)
            fitted = split(structure, listed(logs)[1])[number]
            np.testing.assert_allclose(fitted, targets[number], rtol=1e-12, atol=1e-16)
            now = float(logs @ flat) - listed.log_z(logs)
            assert now >= likelihood - 1e-13
            assert scaling.objective == pytest.approx(now, rel=1e-12)
            likelihood = now


def test_both_paths_and_single_updates_agree() -> None:
    structure = ZOO["grid"]
    plan = plan_tree(*structure)
    targets = margins(structure, random_law(structure, 5, zeros=0.995))
    found = []
    for path in PATHS:
        with choice.force(path):
            scaling = TreeScaling(plan, targets)
            differences = [scaling.sweep() for _ in range(5)]
            found.append((differences, scaling.log_potentials))
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-9, atol=1e-12)
    assert (found[0][1] == -math.inf).any()


def test_a_path_may_change_between_sweeps() -> None:
    structure = ZOO["cycle"]
    targets = margins(structure, random_law(structure, 6))
    scaling, steady = (TreeScaling(plan_tree(*structure), targets) for _ in range(2))
    for sweep in range(6):
        with choice.force(PATHS[sweep % 2]):
            scaling.sweep()
        steady.sweep()
    np.testing.assert_allclose(scaling.log_potentials, steady.log_potentials, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("path", PATHS)
def test_one_sweep_fits_a_tree(path: str) -> None:
    structure = ZOO["tree"]
    with choice.force(path):
        scaling = TreeScaling(plan_tree(*structure), margins(structure, random_law(structure, 7, zeros=0.5)))
        scaling.sweep()
        assert scaling.gap() < 1e-14


@pytest.mark.parametrize("path", PATHS)
def test_zero_targets_give_the_extended_maximum(path: str) -> None:
    # Two binary variables and their product table; the cell (0, 1) was never seen.
    target = np.array([[0.5, 0.0], [0.2, 0.3]])
    with choice.force(path):
        scaling = TreeScaling(plan_tree({"a": 2, "b": 2}, [("a", "b")]), [target])
        for _ in range(3):
            scaling.sweep()
    np.testing.assert_allclose(np.exp(scaling.log_potentials - scaling.log_partition), target.ravel(), rtol=1e-14)
    assert scaling.log_potentials[1] == -math.inf
    assert scaling.objective == pytest.approx(sum(p * math.log(p) for p in (0.5, 0.2, 0.3)), rel=1e-14)
    assert scaling.gap() < 1e-15


@pytest.mark.parametrize("path", PATHS)
def test_margins_that_contradict_each_other_are_named(path: str) -> None:
    plan = plan_tree({"a": 2, "b": 2, "c": 2}, [("b", "c"), ("a", "b"), ("c", "a")])
    apart = np.array([[0.5, 0.0], [0.0, 0.5]])  # a = b and b = c, and c is not a
    with choice.force(path):
        scaling = TreeScaling(plan, [apart, apart, apart[::-1]])
        with pytest.raises(DataError, match=r"The margin of \(.*\) is 0\.5 at the states .*probability 0"):
            scaling.sweep()
    with pytest.raises(DataError, match=r"is 0\.5 at the states"):
        list(TreeScaling(plan, [apart, apart, apart[::-1]]).updates())


def test_margins_that_disagree_keep_cycling() -> None:
    plan = plan_tree({"a": 2, "b": 2, "c": 2}, [("a", "b"), ("b", "c")])
    scaling = TreeScaling(plan, [np.full((2, 2), 0.25), np.array([[0.5, 0.2], [0.2, 0.1]])])
    gaps = [scaling.sweep() for _ in range(20)]
    # The margin of b is (0.5, 0.5) in one target and (0.7, 0.3) in the other: half of 0.2 in each cell at each turn.
    assert gaps[-1] > 0.05
    assert gaps[-1] == pytest.approx(gaps[-2], rel=1e-6)


def test_a_restart_is_a_new_beginning() -> None:
    structure = ZOO["reversed"]
    targets = margins(structure, random_law(structure, 8))
    scaling, other = (TreeScaling(plan_tree(*structure), targets) for _ in range(2))
    for _ in range(3):
        scaling.sweep()
    halfway = scaling.log_potentials
    other.restart(halfway)
    assert (other.log_potentials == halfway).all()
    scaling.sweep()
    other.sweep()
    np.testing.assert_allclose(scaling.log_potentials, other.log_potentials, rtol=1e-12, atol=1e-13)
    start = np.zeros(len(halfway))
    scaling.restart(start)
    scaling.sweep()
    fresh = TreeScaling(plan_tree(*structure), targets, start)
    fresh.sweep()
    assert (scaling.log_potentials == fresh.log_potentials).all()


def test_subtrees_without_margins_are_left_alone() -> None:
    # A loop of five and a pair far away: the margins of the loop alone are given a scope, the rest stays uniform.
    structure: Structure = (dict.fromkeys(range(7), 2), [(i, (i + 1) % 5) for i in range(5)])
    targets = margins(structure, random_law(structure, 9))
    scaling = TreeScaling(plan_tree(*structure), targets)
    slow = Listing(structure, targets)
    for _ in range(3):
        scaling.sweep()
        for number in scaling.order:
            slow.fit(number)
    np.testing.assert_allclose(law_of(structure, scaling), slow.law, rtol=1e-11)


def plan_of_pair() -> TreePlan:
    return plan_tree({"a": 2, "b": 2}, [("a",), ("b", "a")])


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        ([np.full(2, 0.5)], "1 factors are given for 2 scopes"),
        ([np.full(2, 0.5), None], r"margin of \('b', 'a'\) is missing"),
        ([np.full(2, 0.5), np.full(4, 0.25)], r"shape \(4,\)"),
        ([np.array([1.5, -0.5]), np.full((2, 2), 0.25)], "negative"),
        ([np.full(2, 0.49), np.full((2, 2), 0.25)], r"margin of \('a',\) sums to 0\.98"),
        ([np.full(2, math.nan), np.full((2, 2), 0.25)], "not finite"),
    ],
)
def test_targets_are_checked(targets: Any, message: str) -> None:
    with pytest.raises((DataError, OptionError), match=message):
        TreeScaling(plan_of_pair(), targets)


def test_starts_are_checked() -> None:
    targets = [np.full(2, 0.5), np.full((2, 2), 0.25)]
    with pytest.raises(OptionError, match=r"shape \(5,\); expected \(6,\)"):
        TreeScaling(plan_of_pair(), targets, np.zeros(5))
    with pytest.raises(OptionError, match="NaN"):
        TreeScaling(plan_of_pair(), targets, np.full(6, math.nan))


@pytest.mark.parametrize("path", PATHS)
def test_recorded_sweeps_are_given_again_to_the_bit(path: str) -> None:
    structure = ZOO["grid"]
    targets = margins(structure, random_law(structure, 8))
    with choice.force(path):
        scaling, steady = (TreeScaling(plan_tree(*structure), targets) for _ in range(2))
        scaling.record()
        recorded = [scaling.sweep() for _ in range(4)]
        start = np.zeros(len(scaling.targets))
        scaling.restart(start)
        np.testing.assert_array_equal(scaling.log_potentials, start)
        for sweep in range(7):
            difference = scaling.sweep()
            assert difference == steady.sweep()
            assert sweep > 3 or difference == recorded[sweep]
            np.testing.assert_array_equal(scaling.log_potentials, steady.log_potentials)
            assert scaling.objective == steady.objective
            assert scaling.gap() == steady.gap()
            assert scaling.log_partition == steady.log_partition


def test_single_updates_and_other_starts_leave_the_record() -> None:
    structure = ZOO["grid"]
    targets = margins(structure, random_law(structure, 9))
    plan = plan_tree(*structure)
    start = np.zeros(sum(table.size for table in targets))
    other = np.random.default_rng(0).normal(size=len(start))
    for begin in (start, other):
        scaling, steady = TreeScaling(plan, targets), TreeScaling(plan, targets, begin)
        scaling.record()
        for _ in range(4):
            scaling.sweep()
        scaling.restart(begin)
        scaling.sweep()
        steady.sweep()
        assert list(scaling.updates()) == list(steady.updates())
        np.testing.assert_array_equal(scaling.log_potentials, steady.log_potentials)
        assert scaling.sweep() == steady.sweep()
        np.testing.assert_array_equal(scaling.log_potentials, steady.log_potentials)
