"""Small joint tables as the slow twin of log-linear methods: margins, designs and fits by listing every state."""

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import linprog

Floats = NDArray[np.float64]
Scope = tuple[Any, ...]

#: Named sets of scopes over the variables 0 to 4.
SCOPES: dict[str, list[Scope]] = {
    "single": [(0,)],
    "edge": [(1, 0)],
    "apart": [(0, 1), (2, 3)],
    "chain": [(0, 1), (2, 1), (2, 3)],
    "star": [(0, 1), (0, 2), (0, 3), (4, 0)],
    "triples": [(0, 1, 2), (3, 2, 1), (1, 3, 4)],
    "nested": [(0, 1, 2), (2, 1), (2,), (2, 3)],
    "doubled": [(0, 1), (1, 0), (1, 2)],
    "whole": [(3, 0, 2, 1)],
    "triangle": [(0, 1), (1, 2), (0, 2)],
    "cycle": [(0, 1), (1, 2), (2, 3), (3, 0)],
    "wheel": [(0, 1), (1, 2), (2, 3), (3, 0), (0, 4), (1, 4), (2, 4), (3, 4)],
    "mixed": [(0, 1, 2), (2, 3), (3, 0), (3, 4)],
}
DECOMPOSABLE = ("single", "edge", "apart", "chain", "star", "triples", "nested", "doubled", "whole")


def variables(scopes: Sequence[Scope]) -> list[Any]:
    return sorted({node for scope in scopes for node in scope})


def margin(table: NDArray[Any], scope: Sequence[Any], nodes: Sequence[Any]) -> NDArray[Any]:
    """Sum a table over everything but the scope; axes in its order."""
    kept = [node for node in nodes if node in scope]
    drop = tuple(axis for axis, node in enumerate(nodes) if node not in scope)
    return np.asarray(table.sum(axis=drop)).transpose([kept.index(node) for node in scope])


def spread(values: NDArray[Any], scope: Sequence[Any], nodes: Sequence[Any]) -> NDArray[Any]:
    """Give a table over a scope one axis for each node."""
    order = sorted(range(len(scope)), key=lambda axis: list(nodes).index(scope[axis]))
    sizes = dict(zip(scope, values.shape, strict=True))
    return values.transpose(order).reshape([sizes.get(node, 1) for node in nodes])


def joint(log_tables: Sequence[Floats], scopes: Sequence[Scope], shape: Sequence[int], nodes: Sequence[Any]) -> Floats:
    """The product of potentials at every state."""
    total = np.zeros(tuple(shape))
    for scope, values in zip(scopes, log_tables, strict=True):
        total = total + spread(values, scope, nodes)
    return np.asarray(np.exp(total), dtype=np.float64)


def design(scopes: Sequence[Scope], cards: Mapping[Any, int], nodes: Sequence[Any]) -> Floats:
    """Indicators (states, cells of all scopes one after another)."""
    states = np.indices([cards[node] for node in nodes]).reshape(len(nodes), -1)
    blocks = []
    for scope in scopes:
        shape = [cards[node] for node in scope]
        index = np.zeros(states.shape[1], dtype=np.intp)
        for node in scope:
            index = index * cards[node] + states[list(nodes).index(node)]
        blocks.append(np.eye(math.prod(shape))[index])
    return np.hstack(blocks)


def scale(table: Floats, scopes: Sequence[Scope], start: Floats, nodes: Sequence[Any], sweeps: int = 2_000) -> Floats:
    """Iterative proportional fitting on the joint table; 0 / 0 is 0."""
    found: Floats = start / start.sum() * table.sum()
    for _ in range(sweeps):
        before = found
        for scope in scopes:
            now, target = (spread(margin(each, scope, nodes), scope, nodes) for each in (found, table))
            found = found * np.divide(target, now, out=np.zeros_like(now), where=now > 0)
        if np.abs(found - before).max() <= 1e-15 * table.sum():
            break
    return found


def positive_states(rows: Floats, observed: Floats) -> NDArray[np.bool_]:
    """States that some law with the observed mean of the rows (states, statistics) makes positive, one at a time."""
    equations = np.vstack([rows.T, np.ones(len(rows))])
    right = np.append(observed, 1.0)
    answers = [linprog(-unit, A_eq=equations, b_eq=right, bounds=(0, None)) for unit in np.eye(len(rows))]
    values = [answer.fun for answer in answers if answer.fun is not None]
    assert len(values) == len(rows)
    return np.array(values) < -1e-7


@st.composite
def sparse_tables(draw: st.DrawFn, names: Sequence[str] = tuple(SCOPES)) -> tuple[list[Scope], list[Hashable], Floats]:
    """Scopes, their variables in order, and a table of small counts, many of them zero."""
    scopes = SCOPES[draw(st.sampled_from(list(names)))]
    nodes = variables(scopes)
    cards = [draw(st.integers(1, 3)) if len(nodes) < 4 else draw(st.integers(1, 2)) for _ in nodes]
    cells = math.prod(cards)
    counts = draw(st.lists(st.sampled_from([0, 0, 1, 1, 2, 7]), min_size=cells, max_size=cells))
    if not any(counts):
        counts[0] = 1
    return scopes, nodes, np.array(counts, dtype=np.float64).reshape(cards)
