"""The junction tree beyond small tables: plans, paths that agree, many rows, joint laws, independence of order."""

import math
import os
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.factor_graphs import ZOO, Floats, Structure, random_factors
from suffice.engines import memory
from suffice.engines.enumeration import plan_enumeration
from suffice.engines.junction_tree import JunctionTree, TreePlan, plan_tree
from suffice.engines.memory import in_words
from suffice.errors import DataError, OptionError, SizeError
from suffice.graphs.nodes import Node
from suffice.kernels import choice, junction_tree, junction_tree_cases


def random_structure(seed: int, count: int = 40, factors: int = 60) -> Structure:
    """Scopes of one to three variables that lie near each other, so that cliques stay small."""
    chance = random.Random(seed)
    cards: dict[Node, int] = {i: chance.choice([2, 2, 3, 4]) for i in range(count)}
    scopes: list[tuple[Node, ...]] = []
    for _ in range(factors):
        start = chance.randrange(count - 4)
        scopes.append(tuple(chance.sample(range(start, start + 4), chance.randint(1, 3))))
    return cards, scopes


@pytest.fixture(scope="module")
def large() -> tuple[Structure, list[Floats]]:
    structure = random_structure(1)
    return structure, random_factors(structure, 2, zeros=0.05)


def rows_of(structure: Structure, count: int, seed: int = 0, gaps: float = 0.4) -> Any:
    """Random codes with gaps, some rows repeated."""
    generator = np.random.default_rng(seed)
    rows = np.stack([generator.integers(0, card, count) for card in structure[0].values()], axis=1)
    rows[generator.random(rows.shape) < gaps] = -1
    return rows[generator.integers(0, count, count)]


# Plans ---------------------------------------------------------------------------------------------------------------


def test_the_plan_tells_its_size() -> None:
    plan = plan_tree({"a": 2, "b": 2, "c": 2, "d": 2}, [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")])
    assert str(plan) == "junction tree: width 2, largest table 8 cells, 224 B"
    assert plan.describe().splitlines()[1:] == [
        "             8 cells       64 B  a, b, d",
        "             8 cells       64 B  b, c, d",
    ]
    assert (plan.width, plan.cells, plan.largest, plan.bytes) == (2, 16, 8, 224)


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (3_100_000, "3.1 MB"), (10**13, "10.0 TB"), (2**200, "10^60 B")],
)
def test_bytes_in_words(count: int, text: str) -> None:
    assert in_words(count) == text


def test_the_default_limit_is_half_of_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_control_group", lambda: 1 << 62)
    if hasattr(os, "sysconf"):
        monkeypatch.setattr(os, "sysconf", {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 1 << 20}.__getitem__)
        assert memory.default_limit() == 2 << 30
        monkeypatch.setattr(memory, "_control_group", lambda: 1 << 30)
        assert memory.default_limit() == 1 << 29
        monkeypatch.delattr(os, "sysconf")
    assert 0 < memory.default_limit() <= 4 << 30


def test_what_does_not_fit_raises_before_it_allocates() -> None:
    cards = dict.fromkeys(range(200), 2)
    pairs = [(i, j) for i in range(200) for j in range(i)]
    with pytest.raises(SizeError, match=r"clique has 200 variables and 1,606,.* cells.*: 0, 1, 2, .*limit_bytes"):
        plan_tree(cards, pairs)


def test_the_limit_is_yours() -> None:
    cards, scopes = dict.fromkeys(range(5), 4), [tuple(range(5))]
    assert plan_tree(cards, scopes, limit_bytes=2 * 8 * 4**5).largest == 4**5
    with pytest.raises(SizeError, match=r"needs 16\.4 kB, and the limit is 16\.4 kB.*5 variables and 1,024 cells"):
        plan_tree(cards, scopes, limit_bytes=2 * 8 * 4**5 - 1)


def test_too_many_states_to_enumerate() -> None:
    with pytest.raises(SizeError, match=r"all 1,073,741,824 joint states would take 8\.6 GB"):
        plan_enumeration(dict.fromkeys(range(30), 2), [])
    assert str(plan_enumeration({"a": 3, "b": 4}, [])) == "enumeration over 12 joint states"


def test_more_tries_may_be_asked_for() -> None:
    structure = random_structure(5, 60, 140)
    assert plan_tree(*structure, tries=40).cells <= plan_tree(*structure, tries=0).cells


# Paths ---------------------------------------------------------------------------------------------------------------


def test_both_paths_agree(large: tuple[Structure, list[Floats]]) -> None:
    structure, factors = large
    model = plan_tree(*structure).load(factors)
    evidence: dict[Node, int] = {3: 1, 20: 0}
    likelihoods: dict[Node, Any] = {11: np.linspace(0.1, 1.0, structure[0][11])}
    found = []
    for path in ("numpy", "compiled"):
        with choice.force(path):
            posterior = model.condition(evidence, likelihoods)
            found.append([posterior.log_partition, *posterior.marginals().values(), *posterior.factor_marginals()])
            assert posterior.log_partition == pytest.approx(model.log_partition(evidence, likelihoods), rel=1e-13)
    for first, second in zip(*found, strict=True):
        np.testing.assert_allclose(first, second, rtol=1e-11, atol=1e-15)


@pytest.mark.parametrize("path", ["numpy", "compiled"])
def test_many_rows_are_as_one_by_one(large: tuple[Structure, list[Floats]], path: str) -> None:
    structure, factors = large
    model = plan_tree(*structure).load(factors)
    rows = rows_of(structure, 50)
    scopes = structure[1][:7]
    with choice.force(path):
        answers = model.solve_rows(rows, scopes=scopes)
        for index, codes in enumerate(rows):
            seen = {node: int(code) for node, code in zip(structure[0], codes, strict=True) if code >= 0}
            posterior = model.condition(seen)
            assert answers.log_partition[index] == pytest.approx(posterior.log_partition, rel=1e-12)
            if posterior.log_partition > -math.inf:
                for scope in scopes:
                    expected = posterior.marginal(scope)
                    np.testing.assert_allclose(answers.marginals[scope][index], expected, rtol=1e-10, atol=1e-14)
            else:
                assert not any(answers.marginals[scope][index].any() for scope in scopes)


def test_paths_and_threads_agree_on_expected_counts(large: tuple[Structure, list[Floats]]) -> None:
    structure, _ = large
    model = plan_tree(*structure).load(random_factors(structure, 3))
    rows = rows_of(structure, 3000)
    weights = np.random.default_rng(5).random(len(rows))
    with choice.force("numpy"):
        reference = model.expect(rows, weights=weights)
    with choice.force("compiled"):
        one, two = (model.expect(rows, weights=weights, threads=threads) for threads in (1, 2))
    np.testing.assert_allclose(one.log_partition, reference.log_partition, rtol=1e-12)
    assert (one.log_partition == two.log_partition).all()
    for scope, table, same, other in zip(structure[1], reference.tables, one.tables, two.tables, strict=True):
        assert (same == other).all()
        np.testing.assert_allclose(same, table, rtol=1e-11)
        assert table.sum() == pytest.approx(weights.sum(), rel=1e-12)
        assert table.shape == tuple(structure[0][node] for node in scope)


def test_trees_too_large_for_lanes_take_the_rows_one_by_one(
    large: tuple[Structure, list[Floats]], monkeypatch: pytest.MonkeyPatch
) -> None:
    structure, factors = large
    rows = rows_of(structure, 100)
    found = []
    for batches in (((1 << 40, 16),), ()):
        monkeypatch.setattr(junction_tree_cases, "_BATCHES", batches)
        model = plan_tree(*structure).load(factors)
        with choice.force("compiled"):
            found.append(model.expect(rows))
    np.testing.assert_allclose(found[0].log_partition, found[1].log_partition, rtol=1e-12)
    for first, second in zip(found[0].tables, found[1].tables, strict=True):
        np.testing.assert_allclose(first, second, rtol=1e-11, atol=1e-14)


def test_equal_rows_are_solved_once(monkeypatch: pytest.MonkeyPatch) -> None:
    structure = ZOO["families"]
    model = plan_tree(*structure).load(random_factors(structure, 3))
    seen = []
    solve = junction_tree_cases.solve_cases

    def spy(potentials: Any, cases: Any, *rest: Any, **options: Any) -> Any:
        seen.append(len(cases))
        return solve(potentials, cases, *rest, **options)

    monkeypatch.setattr(junction_tree_cases, "solve_cases", spy)
    rows = np.array([[0, -1, 1, -1, -1], [0, -1, 1, -1, -1], [1, -1, -1, -1, 0], [0, -1, 1, -1, -1]])
    counts = model.expect(rows, weights=[1.0, 2.0, 0.5, 4.0])
    assert seen == [2]
    assert counts.log_partition.shape == (4,)
    again = model.expect(rows[[0, 2]], weights=[7.0, 0.5])
    for first, second in zip(counts.tables, again.tables, strict=True):
        np.testing.assert_allclose(first, second, rtol=1e-13)


def test_rows_may_be_checked_beforehand() -> None:
    structure = ZOO["families"]
    plan = plan_tree(*structure)
    rows = rows_of(structure, 30)
    checked = plan.rows(rows)
    for seed in (1, 2):
        model = plan.load(random_factors(structure, seed))
        with choice.force("numpy"):
            assert (model.expect(checked).tables[2] == model.expect(rows).tables[2]).all()
            assert (model.solve_rows(checked).log_partition == model.solve_rows(rows).log_partition).all()


def test_wide_rows_are_told_apart_in_several_words() -> None:
    count = 60
    cards = dict.fromkeys(range(count), 9)
    model = plan_tree(cards, [(i,) for i in range(count)]).load([np.arange(1.0, 10.0)] * count)
    rows = np.full((count, count), -1)
    np.fill_diagonal(rows, np.arange(count) % 9)
    logs = model.solve_rows(np.concatenate([rows, rows])).log_partition
    expected = count * math.log(45.0) - math.log(45.0) + np.log(np.arange(count) % 9 + 1.0)
    np.testing.assert_allclose(logs, np.tile(expected, 2), rtol=1e-13)


def test_large_models_answer_large_queries(large: tuple[Structure, list[Floats]]) -> None:
    """A joint law of far variables, by the chain rule: P(a, b, c) = P(a) P(b | a) P(c | a, b)."""
    structure, factors = large
    model = plan_tree(*structure).load(factors)
    whole = model.condition()
    joint = whole.marginal((35, 0, 17))
    assert joint.sum() == pytest.approx(1.0, rel=1e-12)
    for a, first in enumerate(whole.marginals()[35]):
        if first > 0:
            given_a = model.condition({35: a})
            for b, second in enumerate(given_a.marginals()[0]):
                if second > 0:
                    third = model.condition({35: a, 0: b}).marginals()[17]
                    np.testing.assert_allclose(joint[a, b], first * second * third, rtol=1e-10, atol=1e-15)


def test_a_joint_law_that_does_not_fit_is_refused() -> None:
    cards = dict.fromkeys(range(60), 2)
    posterior = plan_tree(cards, [(i, i + 1) for i in range(59)]).load([None] * 59).condition()
    with pytest.raises(SizeError, match=r"60 variables would have 1,152,921,504,606,846,976 cells"):
        posterior.marginal(range(60))


def test_rows_ask_for_scopes_inside_a_clique() -> None:
    model = plan_tree({"a": 2, "b": 2, "c": 2}, [("a", "b"), ("b", "c")]).load([None, None])
    with pytest.raises(OptionError, match=r"'a', 'c' are not together in a clique.*load None"):
        model.solve_rows([[0, 0, 0]], scopes=[("a", "c")])
    with pytest.raises(OptionError, match="not together in a clique"):
        model.expect([[0, 0, 0]], row_factors={("a", "c"): np.zeros((1, 2, 2))})


def test_weights_are_checked() -> None:
    model = plan_tree({"a": 2}, [("a",)]).load([None])
    with pytest.raises(DataError, match="one for each row"):
        model.expect([[0], [1]], weights=[1.0])
    with pytest.raises(DataError, match="negative or not finite"):
        model.expect([[0]], weights=[-1.0])
    with pytest.raises(OptionError, match="threads is 0"):
        model.expect([[0]], threads=0)
    with pytest.raises(OptionError, match="must not be negative"):
        model.condition().sample(-1)


# Log-linear models ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["numpy", "compiled"])
@pytest.mark.parametrize("structure", ZOO.values(), ids=ZOO)
def test_moments_are_the_slope_of_log_z(structure: Structure, path: str) -> None:
    plan = plan_tree(*structure)
    moments = plan.moments()
    generator = np.random.default_rng(0)
    point = generator.normal(size=sum(moments.sizes))
    direction = generator.normal(size=len(point))
    with choice.force(path):
        value, slope = moments(point)
        ahead, behind = moments(point + 1e-5 * direction)[0], moments(point - 1e-5 * direction)[0]
        assert (ahead - behind) / 2e-5 == pytest.approx(slope @ direction, rel=1e-7, abs=1e-8)
        parts = np.split(point, np.cumsum(moments.sizes)[:-1]) if moments.sizes else []
        tables = [part.reshape(plan.space.shape(scope)) for part, scope in zip(parts, plan.scopes, strict=True)]
        posterior = plan.load(tables, log=True).condition()
    assert value == pytest.approx(posterior.log_partition, rel=1e-12, abs=1e-12)
    expected = np.concatenate([np.zeros(0), *(table.ravel() for table in posterior.factor_marginals())])
    np.testing.assert_allclose(slope, expected, rtol=1e-11, atol=1e-14)


def test_moments_check_their_vector() -> None:
    moments = plan_tree({"a": 2}, [("a",)]).moments()
    with pytest.raises(OptionError, match=r"shape \(3,\); expected \(2,\)"):
        moments(np.zeros(3))
    with pytest.raises(OptionError, match="NaN"):
        moments([0.0, math.nan])


# Independence of order -----------------------------------------------------------------------------------------------


@given(seed=st.integers(0, 10_000))
def test_order_does_not_matter(seed: int) -> None:
    """Shuffled variables, factors and axes give the same tree, and the same law of every variable."""
    chance = random.Random(seed)
    cards, scopes = random_structure(seed, 10, 12)
    factors = random_factors((cards, scopes), seed)
    plan = plan_tree(cards, scopes)
    nodes = list(cards)
    chance.shuffle(nodes)
    numbers = list(range(len(scopes)))
    chance.shuffle(numbers)
    turned_scopes, turned_factors = [], []
    for number in numbers:
        axes = list(range(len(scopes[number])))
        chance.shuffle(axes)
        turned_scopes.append(tuple(scopes[number][axis] for axis in axes))
        turned_factors.append(np.transpose(factors[number], axes))
    other = plan_tree({node: cards[node] for node in nodes}, turned_scopes)
    assert other.cliques == plan.cliques
    assert other.tree.parents == plan.tree.parents
    first, second = plan.load(factors).condition(), other.load(turned_factors).condition()
    assert first.log_partition == pytest.approx(second.log_partition, rel=1e-12)
    laws, others = first.marginals(), second.marginals()
    for node in cards:
        np.testing.assert_allclose(laws[node], others[node], rtol=1e-12, atol=1e-15)


SEEDS = """
import numpy as np
from suffice.engines.junction_tree import plan_tree
names = ["n%d" % (i * 7 % 13) for i in range(13)]
cards = {name: 2 + len(name) % 2 for name in names}
scopes = [(names[i], names[(i * i + 1) % 13], names[(i + 5) % 13]) for i in range(13)]
scopes = [tuple(dict.fromkeys(scope)) for scope in scopes]
tables = [np.random.default_rng(i).random([cards[n] for n in scope]) for i, scope in enumerate(scopes)]
plan = plan_tree(cards, scopes)
posterior = plan.load(tables).condition({"n3": 1})
print(plan.describe(), posterior.log_partition.hex(), [x.hex() for v in posterior.marginals().values() for x in v])
print(posterior.sample(5, random_state=0).tolist(), plan.load(tables).most_probable())
"""


def test_hash_seeds_do_not_matter(fresh_python: Callable[[str], str], monkeypatch: pytest.MonkeyPatch) -> None:
    answers = set()
    for seed in ("0", "1", "77"):
        monkeypatch.setenv("PYTHONHASHSEED", seed)
        answers.add(fresh_python(SEEDS))
    assert len(answers) == 1


# Loading -------------------------------------------------------------------------------------------------------------


def test_small_work_loads_no_compiler(fresh_python: Callable[[str], str]) -> None:
    code = SEEDS + "\nimport sys\nprint([name for name in ('numba', 'scipy') if name in sys.modules])"
    assert fresh_python(code).splitlines()[-1] == "[]"


def test_each_loop_is_compiled_once(large: tuple[Structure, list[Floats]]) -> None:
    from suffice.kernels.compiled import junction_tree as loops

    structure, factors = large
    for table in factors:
        table.flags.writeable = False
    plan = plan_tree(*structure)
    model = plan.load(factors)
    rows = rows_of(structure, 40)
    rows.flags.writeable = False
    with choice.force("compiled"):
        model.condition({0: 1}, {1: np.ones(structure[0][1], np.float32)})
        model.log_partition()
        plan.moments()(np.zeros(sum(plan.moments().sizes)))
        model.solve_rows(rows.astype(np.int8), scopes=structure[1][:2])
        model.expect(
            np.asfortranarray(rows), weights=np.ones(40, int), row_factors={(5,): np.zeros((40, plan.space.cards[5]))}
        )
    for loop in (loops.calibrate, loops.leave, loops.cases):
        assert len(getattr(loop, "signatures", [0])) == 1


def as_model(plan: TreePlan) -> JunctionTree:
    return plan.load([None] * len(plan.scopes))


def test_factors_that_are_left_out_are_ones() -> None:
    plan = plan_tree({"a": 2, "b": 3}, [("a", "b"), ("b",)])
    assert as_model(plan).log_partition() == pytest.approx(math.log(6.0), rel=1e-14)
    np.testing.assert_allclose(as_model(plan).condition().marginal(("b", "a")), np.full((3, 2), 1 / 6), rtol=1e-14)


def test_plain_numbers_need_no_logarithms(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scaling is enough for a thousand variables of everyday range, whatever the product comes to."""

    def fail(*_: Any) -> None:
        raise AssertionError("The range of these factors is not wide.")

    monkeypatch.setattr(junction_tree, "_calibrate_logs", fail)
    cards: dict[Node, int] = dict.fromkeys(range(1000), 3)
    plan = plan_tree(cards, [(i, i + 1) for i in range(999)])
    factors = random_factors((cards, list(plan.scopes)), 0)
    for path in ("numpy", "compiled"):
        with choice.force(path):
            posterior = plan.load([1e-3 * factor for factor in factors]).condition({500: 1})
            assert posterior.log_partition < -3000
