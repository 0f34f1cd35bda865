"""What depends on a structure alone is worked out once."""

from functools import partial

import numpy as np
import pytest

import suffice as sf
from suffice.engines import plans
from suffice.engines.junction_tree import plan_tree
from suffice.engines.plans import Kept, decompose_once, plan_once
from suffice.errors import SizeError

CYCLE = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")]


def test_the_same_structure_has_one_plan() -> None:
    cards = dict.fromkeys("abcd", 2)
    plan = plan_once(cards, CYCLE)
    assert plan_once(dict(cards), [list(scope) for scope in CYCLE]) is plan
    assert plan_once({**cards, "a": 3}, CYCLE) is not plan
    assert plan_once(cards, CYCLE[:3]) is not plan
    assert plan_once(cards, CYCLE, 10**6) is not plan
    fresh = plan_tree(cards, CYCLE)
    assert (plan.cliques, plan.scopes, str(plan)) == (fresh.cliques, fresh.scopes, str(fresh))
    plans.forget()
    assert plan_once(cards, CYCLE) is not plan


def test_equal_names_of_other_types_are_other_names() -> None:
    whole, half = plan_once({1: 2, 2: 2}, [(1, 2)]), plan_once({1.0: 2, 2: 2}, [(1.0, 2)])
    assert whole is not half
    assert [type(name) for name in half.space.nodes] == [float, int]


def test_what_is_too_large_is_refused_every_time() -> None:
    for _ in range(2):
        with pytest.raises(SizeError, match="junction tree needs"):
            plan_once(dict.fromkeys("abcd", 50), CYCLE, 1000)


def test_large_plans_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans, "CELLS", 7)
    cards = dict.fromkeys("abcd", 5)
    assert plan_once(cards, CYCLE) is not plan_once(cards, CYCLE)


def test_the_last_few_are_kept() -> None:
    kept: Kept[int] = Kept()
    made: list[int] = []

    def make(number: int) -> int:
        made.append(number)
        return number

    for number in (*range(plans.KEPT), 0, plans.KEPT, 0, 1):
        assert kept.answer(number, partial(make, number)) == number
    assert made == [*range(plans.KEPT + 1), 1]


def test_decompositions_are_those_of_the_scopes() -> None:
    cards = dict.fromkeys("abcd", 2)
    assert decompose_once(cards, CYCLE).tree is None
    assert decompose_once(cards, CYCLE[:3]).tree is not None
    assert decompose_once(cards, CYCLE) is decompose_once(cards, CYCLE)


def test_fits_that_share_a_plan_do_not_share_numbers() -> None:
    rng = np.random.default_rng(0)
    columns = [{name: rng.integers(0, 2, 300) for name in "abcd"} for _ in range(2)]
    first = sf.MarkovNetwork(CYCLE).fit(columns[0])
    alone = first.weights_.copy(), first.log_partition_, first.marginal("a").values.copy()
    second = sf.MarkovNetwork(CYCLE).fit(columns[1])
    assert second.plan_ is first.plan_
    assert not np.array_equal(second.weights_, first.weights_)
    again = sf.MarkovNetwork(CYCLE).fit(columns[0])
    for found in (first, again):
        np.testing.assert_array_equal(found.weights_, alone[0])
        assert found.log_partition_ == alone[1]
        np.testing.assert_array_equal(found.marginal("a").values, alone[2])
