"""Margins of a table by way of the cliques against sums over its axes."""

from itertools import combinations
from typing import Any

import numpy as np
import pytest

from suffice.engines import tree_margins
from suffice.engines.junction_tree import plan_tree
from suffice.engines.tree_margins import margins_of_table

STRUCTURES: dict[str, tuple[dict[Any, int], list[tuple[Any, ...]]]] = {
    "pairs, nested": (dict(zip("abcdefg", (4, 3, 4, 2, 3, 4, 3), strict=True)), list(combinations("abcdefg", 2))),
    "cycle": (dict(zip("abcde", (2, 3, 2, 4, 3), strict=True)), [("b", "a"), ("c", "b"), ("d", "c"), ("a", "d")]),
    "apart": (dict(zip("abcd", (2, 3, 2, 2), strict=True)), [("a",), ("c", "b")]),
    "single states": (dict(zip("abcd", (2, 1, 3, 1), strict=True)), [("b", "a"), ("d", "b"), ("c", "d", "a")]),
    "no variables": ({"a": 2}, [(), ("a",)]),
}


@pytest.mark.parametrize("limit", [0, 2**16], ids=["by cliques", "at once"])
@pytest.mark.parametrize("name", STRUCTURES)
def test_margins_are_sums_over_axes(name: str, limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree_margins, "_AT_ONCE", limit)
    cards, scopes = STRUCTURES[name]
    names = list(cards)[::-1]
    table = np.random.default_rng(0).integers(0, 9, [cards[n] for n in names]).astype(float)
    found = margins_of_table(plan_tree(cards, scopes), table, names)
    assert len(found) == len(scopes)
    for scope, margin in zip(scopes, found, strict=True):
        np.testing.assert_array_equal(
            margin, np.einsum(table, list(range(len(names))), [names.index(n) for n in scope])
        )


def test_further_axes_are_summed_out() -> None:
    cards: dict[Any, int] = {"a": 2, "b": 3}
    table = np.arange(24.0).reshape(3, 4, 2)
    (margin,) = margins_of_table(plan_tree(cards, [("a", "b")]), table, ["b", "x", "a"])
    np.testing.assert_array_equal(margin, table.sum(axis=1).T)
