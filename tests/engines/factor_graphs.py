"""Named factor graphs, random ones, and the slowest way to solve them: listing every joint state in plain Python."""

import math
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from suffice.graphs.nodes import Node

Floats = NDArray[np.float64]
Structure = tuple[dict[Node, int], list[tuple[Node, ...]]]


def _grid(rows: int, columns: int) -> Structure:
    cards: dict[Node, int] = {(i, j): 2 + (i + j) % 2 for i in range(rows) for j in range(columns)}
    across: list[tuple[Node, ...]] = [((i, j), (i, j + 1)) for i in range(rows) for j in range(columns - 1)]
    down: list[tuple[Node, ...]] = [((i, j), (i + 1, j)) for i in range(rows - 1) for j in range(columns)]
    return cards, across + down


ZOO: dict[str, Structure] = {
    "nothing": ({}, []),
    "constant": ({}, [(), ()]),
    "single": ({"a": 3}, [("a",)]),
    "no factors": ({"a": 2, "b": 3}, []),
    "one state each": ({"a": 1, "b": 1}, [("a", "b"), ("b",), ()]),
    "some of one state": ({"a": 1, "b": 2, "c": 1, "d": 3}, [("a", "b", "c"), ("c",), ("d", "a"), ()]),
    "pair": ({"a": 2, "b": 3}, [("a", "b")]),
    "reversed": ({"c": 2, "b": 3, "a": 4}, [("b", "a"), ("c", "b"), ("a", "c")]),
    "chain": ({i: 2 + i % 3 for i in range(6)}, [(i, i + 1) for i in range(5)]),
    "tree": ({i: 2 + i % 2 for i in range(7)}, [((i - 1) // 2, i) for i in range(1, 7)]),
    "star": (dict.fromkeys(range(7), 2), [(0, i) for i in range(1, 7)]),
    "cycle": ({i: 2 + i % 2 for i in range(6)}, [(i, (i + 1) % 6) for i in range(6)]),
    "grid": _grid(3, 3),
    "apart": ({"a": 2, "b": 3, "c": 2, "d": 2, "e": 4}, [("a", "b"), ("d", "c"), ("c",)]),
    "complete": (dict.fromkeys(range(6), 2), [(i, j) for i in range(6) for j in range(i)]),
    "whole": ({"a": 2, "b": 3, "c": 4}, [("c", "a", "b")]),
    "nested": ({"a": 2, "b": 3, "c": 2}, [("a", "b", "c"), ("b",), ("c", "a"), ("a", "b", "c")]),
    "twice": ({"a": 2, "b": 3}, [("a", "b"), ("b", "a"), ("a", "b"), ("a",), ("a",)]),
    "hard names": ({0: 2, "": 3, (1, "x"): 2, None: 2}, [(0, ""), ("", (1, "x")), (None, 0), (1, "x")[:0]]),
    "families": (
        {"p": 2, "q": 3, "r": 2, "s": 4, "t": 2},
        [("p",), ("q",), ("p", "q", "r"), ("r", "s"), ("q", "s", "t")],
    ),
}


def random_factors(structure: Structure, seed: int, *, zeros: float = 0.0) -> list[Floats]:
    """Tables of random numbers, of which a share is set to 0."""
    cards, scopes = structure
    generator = np.random.default_rng(seed)
    tables = []
    for scope in scopes:
        table = np.asarray(generator.gamma(0.7, size=[cards[node] for node in scope]))
        tables.append(np.where(generator.random(table.shape) < zeros, 0.0, table))
    return tables


@st.composite
def models(draw: st.DrawFn) -> tuple[Structure, list[Floats | None]]:
    """Random structures, cards, orders of axes, factors with zeros, and missing factors."""
    count = draw(st.integers(1, 5))
    cards: dict[Node, int] = {f"x{i}": draw(st.sampled_from([1, 2, 2, 3, 4])) for i in range(count)}
    scope = st.lists(st.sampled_from(list(cards)), unique=True, max_size=3).map(tuple)
    scopes: list[tuple[Node, ...]] = list(draw(st.lists(scope, max_size=6)))
    zeros = draw(st.sampled_from([0.0, 0.2, 0.6]))
    factors: list[Floats | None] = list(random_factors((cards, scopes), draw(st.integers(0, 999)), zeros=zeros))
    for index in draw(st.sets(st.integers(0, 5), max_size=2)):
        if index < len(factors):
            factors[index] = None
    return (cards, scopes), factors


def weigh(structure: Structure, factors: Sequence[Floats | None]) -> dict[tuple[int, ...], float]:
    """The product of all factors in every joint state, in the order of the cards."""
    cards, scopes = structure
    place = {node: index for index, node in enumerate(cards)}
    weights = {}
    for state in product(*(range(card) for card in cards.values())):
        weight = 1.0
        for scope, factor in zip(scopes, factors, strict=True):
            if factor is not None:
                weight *= float(factor[tuple(state[place[node]] for node in scope)])
        weights[state] = weight
    return weights


def observe(
    structure: Structure,
    weights: Mapping[tuple[int, ...], float],
    evidence: Mapping[Node, int],
    likelihoods: Mapping[Node, Any],
) -> dict[tuple[int, ...], float]:
    """Weights of joint states given evidence."""
    place = {node: index for index, node in enumerate(structure[0])}
    found = {}
    for state, weight in weights.items():
        agrees = all(state[place[node]] == value for node, value in evidence.items())
        soft = math.prod(float(vector[state[place[node]]]) for node, vector in likelihoods.items())
        found[state] = weight * soft if agrees else 0.0
    return found


def law(structure: Structure, weights: Mapping[tuple[int, ...], float], scope: Sequence[Node]) -> Floats:
    """The joint law of some variables."""
    cards = structure[0]
    place = {node: index for index, node in enumerate(cards)}
    table = np.zeros([cards[node] for node in scope])
    for state, weight in weights.items():
        table[tuple(state[place[node]] for node in scope)] += weight
    return table / sum(weights.values())


def log_sum(weights: Mapping[tuple[int, ...], float]) -> float:
    total = math.fsum(weights.values())
    return math.log(total) if total > 0 else -math.inf
