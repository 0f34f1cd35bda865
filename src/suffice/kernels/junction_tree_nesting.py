"""Smaller tables inside the cliques of a junction tree, so that many factors of a large clique cost few passes over it.

A margin of a clique is as good a place for a factor as the clique itself, if it holds its variables. With the margin as
a further clique that hangs on the large one, two passes over the large table serve all factors that live in the margin,
instead of two for each. All pairs of ten variables live in three such margins, the unions of two of three blocks of
variables; and each margin can be divided again.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from suffice.kernels.junction_tree_layout import Scope, TreeLayout, arrange

Group = frozenset[int]

#: Numbers that a sweep has to pass over less for each further table, or the table is not worth making.
GAIN = 10_000
#: Into how many blocks the variables of a clique are divided, and how large first-fit groups may be (as a power of the
#: size of the clique).
BLOCKS, LIMITS = (3, 4), (0.5, 0.67)


def nest(layout: TreeLayout, scopes: Sequence[Scope]) -> TreeLayout:
    """The layout with margins hung on cliques where that saves passes; the cliques that it has keep their numbers."""
    held: dict[int, set[Group]] = {}
    for scope in scopes:
        held.setdefault(layout.home(scope), set()).add(frozenset(scope))
    cliques: list[tuple[int, ...]] = list(layout.cliques)
    parents = list(layout.parents)
    order: list[int] = []
    for clique in layout.order:
        ahead = [(clique, held.get(clique, set()))]
        tables = [clique]
        while ahead:
            above, live = ahead.pop()
            for group, inside in divide(layout, frozenset(cliques[above]), live):
                ahead.append((len(cliques), inside))
                tables.append(len(cliques))
                parents.append(above)
                cliques.append(tuple(variable for variable in cliques[above] if variable in group))
        order += reversed(tables)
    return layout if len(cliques) == len(layout.cliques) else arrange(layout.cards, cliques, parents, order)


def divide(layout: TreeLayout, clique: Group, scopes: Iterable[Group]) -> list[tuple[Group, set[Group]]]:
    """The margins to hang on a clique, with the scopes that each of them takes; none where that does not pay."""
    live = sorted((scope for scope in scopes if scope < clique), key=sorted)
    size = layout.size(tuple(clique))
    if (len(live) - 1) * size < GAIN:
        return []
    best: list[tuple[Group, set[Group]]] = []
    least = 2 * len(live) * size
    for groups in _candidates(layout, clique, live):
        if clique in groups:
            continue
        shared = _share(layout, groups, live)
        inside = sum(2 * layout.size(tuple(group)) * (1 + len(taken)) for group, taken in shared)
        cost = 2 * len(shared) * size + inside + GAIN * len(shared)
        if cost < least:
            best, least = shared, cost
    return best


def _share(layout: TreeLayout, groups: Iterable[Group], scopes: Sequence[Group]) -> list[tuple[Group, set[Group]]]:
    """Each scope in the smallest group that holds it; groups that take none are left out."""
    ranked = sorted(groups, key=lambda group: (layout.size(tuple(group)), sorted(group)))
    taken: dict[Group, set[Group]] = {}
    for scope in scopes:
        taken.setdefault(next(group for group in ranked if scope <= group), set()).add(scope)
    return list(taken.items())


def _candidates(layout: TreeLayout, clique: Group, scopes: Sequence[Group]) -> Iterator[set[Group]]:
    """Sets of groups that hold all scopes: unions of blocks of variables, and scopes joined as they come."""
    for count in BLOCKS:
        if len(clique) > count:
            blocks = _blocks(layout, clique, count)
            yield _largest({frozenset().union(*(block for block in blocks if block & scope)) for scope in scopes})
    for power in LIMITS:
        yield _first_fit(layout, scopes, layout.size(tuple(clique)) ** power)


def _first_fit(layout: TreeLayout, scopes: Sequence[Group], limit: float) -> set[Group]:
    """Join each scope to the group that it widens least, as long as that stays within the limit."""
    groups: list[Group] = []
    sizes: list[int] = []
    for scope in scopes:
        wider = [size * layout.size(tuple(scope - group)) for size, group in zip(sizes, groups, strict=True)]
        least = min(wider, default=math.inf)
        if least <= limit:
            group_index = wider.index(int(least))
            groups[group_index] |= scope
            sizes[group_index] = wider[group_index]
        else:
            groups.append(scope)
            sizes.append(layout.size(tuple(scope)))
    return _largest(set(groups))


def _blocks(layout: TreeLayout, clique: Group, count: int) -> list[Group]:
    """The variables in blocks of about the same number of joint states, large variables first."""
    blocks: list[Group] = [frozenset()] * count
    for variable in sorted(clique, key=lambda variable: (-layout.cards[variable], variable)):
        block = min(range(count), key=lambda block: (layout.size(tuple(blocks[block])), block))
        blocks[block] |= {variable}
    return blocks


def _largest(groups: set[Group]) -> set[Group]:
    """Those that lie in no other."""
    return {group for group in groups if not any(group < other for other in groups)}
