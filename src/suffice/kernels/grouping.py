"""Packing families of variables into few tables, so that a row costs few increments.

Counting costs one increment a row for each table, whatever its size while it fits in cache. Families are therefore
merged into super-tables over the union of their variables, and summed out afterwards.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Sequence

CELL_LIMIT = 8192
"""Largest table that merging may make: its replicas still fit in the second-level cache."""

_BATCH = 128  # Families looked at together: the search is quadratic in this number.


def group_families(
    cards: Sequence[int], families: Iterable[frozenset[int]], limit: int = CELL_LIMIT
) -> list[frozenset[int]]:
    """Return sets of variables such that each family is inside one of them.

    Greedy: merge the two tables that share the most, i.e. with the largest ratio |A| |B| / |A u B| of cells, as long as
    the union has at most `limit` cells. A family larger than that stays alone, and takes in its subsets.
    """

    def cells(variables: frozenset[int]) -> int:
        return math.prod([cards[variable] for variable in variables])

    distinct = sorted(dict.fromkeys(families), key=lambda family: (-cells(family), sorted(family)))
    groups: list[frozenset[int]] = []
    for start in range(0, len(distinct), _BATCH):
        batch = [family for family in distinct[start : start + _BATCH] if not any(family <= group for group in groups)]
        groups += _merge({index: (family, cells(family)) for index, family in enumerate(batch)}, cards, limit)
    return groups


def _merge(live: dict[int, tuple[frozenset[int], int]], cards: Sequence[int], limit: int) -> list[frozenset[int]]:
    """Merge tables, given as number -> (variables, cells), until no pair fits."""
    queue: list[tuple[float, int, int, int]] = []

    def offer(first: int, second: int) -> None:
        (small, size), (large, cells) = sorted((live[first], live[second]), key=lambda table: table[1])
        union = cells * math.prod([cards[variable] for variable in small - large])
        if union <= limit or union == cells:
            heapq.heappush(queue, (union / size / cells, union, first, second))

    for second in list(live):
        for first in range(second):
            offer(first, second)
    newest = len(live)
    while queue:
        _, union, first, second = heapq.heappop(queue)
        if first in live and second in live:
            variables = live.pop(first)[0] | live.pop(second)[0]
            live[newest] = (variables, union)
            for other in list(live)[:-1]:
                offer(other, newest)
            newest += 1
    return [variables for variables, _ in live.values()]
