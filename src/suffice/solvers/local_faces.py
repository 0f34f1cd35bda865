"""Which cells of the scopes of a log-linear model must vanish, judged by the scopes alone.

The marginal polytope of a large model is beyond a linear programme. Tables on its scopes that are not negative, add up
to one and agree on every single variable form a larger, simpler polytope, whose size is that of the scopes. A cell that
is 0 in all its points with the observed statistics is 0 in every distribution with them, so the maximum of the
likelihood is not attained. What is found is proven; what is not found is open.

The programme is that of `suffice.solvers.faces`. Weights that are tied, or that act on scopes inside of others, are
judged together by it.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from suffice.array_types import Flags, Floats
from suffice.solvers.face_programmes import positive_cells, shortest_direction
from suffice.solvers.polytope import project

Names = tuple[Hashable, ...]

#: Cells of all scopes together up to which the programme is tried.
MOST_CELLS = 20_000


def local_face(
    cards: Mapping[Any, int], scopes: Sequence[Names], design: Any, margins: Floats
) -> tuple[Flags, Floats] | None:
    """Cells of the scopes (cells,) that some tables with the observed statistics leave, and a direction (weights,).

    design: sparse (cells of all scopes one after another, weights). margins (cells,): the observed share of each cell.
    Along the direction the likelihood does not fall, the cells that are left stay and all others fall. None where the
    programme is too large or failed.

    Looked at are the scopes with a cell that was not seen and those inside of them, and the weights that act on no
    others: where all cells were seen, the direction is held at 0.
    """
    left, direction = np.ones(len(margins), np.bool_), np.zeros(design.shape[1])
    starts = np.cumsum([0, *(math.prod([cards[name] for name in scope]) for scope in scopes)])
    short = [frozenset(scope) for scope, (a, b) in zip(scopes, pairwise(starts), strict=True) if not margins[a:b].all()]
    if not short:
        return left, direction
    near = _near(short, scopes)
    cells = np.concatenate([np.arange(starts[number], starts[number + 1]) for number in near])
    if len(cells) > MOST_CELLS:
        return None
    inside = np.zeros(len(margins), np.bool_)
    inside[cells] = True
    entries = design.tocoo()
    outside = np.zeros(design.shape[1], np.bool_)
    outside[entries.col[~inside[entries.row]]] = True
    weights = np.flatnonzero(~outside)
    part = design.tocsr()[cells][:, weights]
    answer = _programme([scopes[number] for number in near], cards, part, margins[cells] > 0.0)
    if answer is None:
        return None
    left[cells], direction[weights] = answer
    return left, direction


def _near(short: Sequence[frozenset[Hashable]], scopes: Sequence[Names]) -> list[int]:
    """The scopes that are one of these, or inside of one."""
    holders: dict[Hashable, list[frozenset[Hashable]]] = {}
    for scope in short:
        for name in scope:
            holders.setdefault(name, []).append(scope)
    first = [next(iter(scope), None) for scope in scopes]
    return [n for n, scope in enumerate(scopes) if any(o.issuperset(scope) for o in holders.get(first[n], ()))]


def settled(cards: Mapping[Any, int], scopes: Sequence[Names], left: Flags) -> Flags:
    """The cells (cells,) of those left whose every variable has a state that all scopes leave."""
    starts = np.cumsum([0, *(math.prod([cards[name] for name in scope]) for scope in scopes)])
    left = left.copy()
    places = [[(name, project((name,), scope, cards)) for name in scope] for scope in scopes]
    while True:
        states = {name: np.ones(card, np.bool_) for name, card in cards.items()}
        for number, each in enumerate(places):
            mine = left[starts[number] : starts[number + 1]]
            for name, cells in each:
                states[name] &= np.bincount(cells[mine], minlength=cards[name]) > 0
        before = int(left.sum())
        for number, each in enumerate(places):
            for name, cells in each:
                left[starts[number] : starts[number + 1]] &= states[name][cells]
        if int(left.sum()) == before:
            return left


def _programme(
    scopes: Sequence[Names], cards: Mapping[Any, int], design: Any, seen: Flags
) -> tuple[Flags, Floats] | None:
    from scipy import sparse

    agreement = _agreement(cards, scopes)
    answer = positive_cells(sparse.vstack([agreement, design.T], format="csc"), ~seen, seen)
    if answer is None:
        return None
    left, multipliers = answer
    if left.all():
        return left, np.zeros(design.shape[1])
    shortest = shortest_direction(design, agreement.T, left, ~left)
    return left, multipliers[agreement.shape[0] :] if shortest is None else shortest


def _agreement(cards: Mapping[Any, int], scopes: Sequence[Names]) -> Any:
    """Rows that are 0 for tables that agree on each variable with the first scope that has it, and on the total."""
    from scipy import sparse

    starts = np.cumsum([0, *(math.prod([cards[name] for name in scope]) for scope in scopes)])
    first: dict[Hashable, int] = {}
    rows, columns, values = [], [], []
    height = 0
    for number, scope in enumerate(scopes):
        for name in scope:
            if first.setdefault(name, number) == number:
                continue
            for other, sign in ((number, 1.0), (first[name], -1.0)):
                cells = project((name,), scopes[other], cards)
                rows.append(height + cells)
                columns.append(np.arange(starts[other], starts[other + 1]))
                values.append(np.full(len(cells), sign))
            height += cards[name]
    for start, end in pairwise(starts):
        rows.append(np.full(end - start, height))
        columns.append(np.arange(start, end))
        values.append(np.ones(end - start))
        height += 1
    if not rows:
        return sparse.csc_array((height, int(starts[-1])))
    entries = (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns)))
    return sparse.csc_array(entries, shape=(height, int(starts[-1])))
