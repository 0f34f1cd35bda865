"""Packing families into super-tables."""

import itertools
import math

from hypothesis import given
from hypothesis import strategies as st

from suffice.kernels.grouping import CELL_LIMIT, group_families


def cells(cards: list[int], group: frozenset[int]) -> int:
    return math.prod(cards[variable] for variable in group)


@given(
    st.lists(st.integers(1, 12), min_size=1, max_size=10).flatmap(
        lambda cards: st.tuples(
            st.just(cards), st.lists(st.frozensets(st.sampled_from(range(len(cards))), max_size=5), max_size=12)
        )
    ),
    st.integers(1, 5000),
)
def test_every_family_has_a_home_and_no_merge_is_too_large(
    problem: tuple[list[int], list[frozenset[int]]], limit: int
) -> None:
    cards, families = problem
    groups = group_families(cards, families, limit)
    assert all(any(family <= group for group in groups) for family in families)
    largest = max((cells(cards, family) for family in families), default=0)
    assert all(cells(cards, group) <= max(limit, largest) for group in groups)
    assert len(groups) <= len(set(families))
    assert sorted(map(sorted, groups)) == sorted(map(sorted, group_families(cards, families[::-1], limit)))


def test_families_that_share_variables_are_merged_first() -> None:
    groups = group_families([10] * 6, [frozenset(f) for f in ((0, 1), (1, 2), (3, 4), (4, 5))], limit=1000)
    assert sorted(map(sorted, groups)) == [[0, 1, 2], [3, 4, 5]]


def test_a_large_family_takes_in_its_subsets() -> None:
    families = [frozenset(f) for f in ((0, 1, 2), (0, 1), (2,), (0, 2))]
    assert group_families([100] * 3, families) == [frozenset((0, 1, 2))]


def test_all_pairs_of_a_hundred_variables_fit_in_few_tables() -> None:
    pairs = [frozenset(pair) for pair in itertools.combinations(range(100), 2)]
    groups = group_families([2] * 100, pairs)
    assert all(any(pair <= group for group in groups) for pair in pairs)
    assert max(cells([2] * 100, group) for group in groups) <= CELL_LIMIT
    assert len(groups) < 300
