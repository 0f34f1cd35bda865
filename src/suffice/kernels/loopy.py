"""Sum-product messages between factors and sites, all factors of one shape at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from suffice.array_types import Floats, Ints

#: Logarithms of messages stay above this, so that no two of them make a NaN.
LEAST = -700.0


@dataclass(frozen=True, eq=False)
class FactorGroup:
    """Factors of one shape: cells (factors, *shape) of their tables; for each axis the site states (factors, card)."""

    cells: Ints
    places: tuple[Ints, ...]


@dataclass(frozen=True, eq=False)
class MessageLayout:
    """Groups of factors, the number of cells, of site states, and how many factors each site is in."""

    groups: tuple[FactorGroup, ...]
    n_cells: int
    first: Ints
    degrees: Ints

    @classmethod
    def of(cls, cards: Sequence[int], scopes: Sequence[Sequence[int]]) -> MessageLayout:
        """Group the factors by shape."""
        first = np.cumsum([0, *cards], dtype=np.int64)
        degrees = np.zeros(len(cards), np.int64)
        by_shape: dict[tuple[int, ...], list[tuple[int, Sequence[int]]]] = {}
        start = 0
        for scope in scopes:
            shape = tuple(int(cards[site]) for site in scope)
            by_shape.setdefault(shape, []).append((start, scope))
            degrees[list(scope)] += 1
            start += int(np.prod(shape, dtype=np.int64))
        groups = []
        for shape, members in by_shape.items():
            starts = np.array([begin for begin, _ in members], np.int64)
            cells = starts.reshape(-1, *[1] * len(shape)) + np.arange(int(np.prod(shape))).reshape(shape)
            sites = np.array([scope for _, scope in members], np.int64)
            places = tuple(first[sites[:, axis]][:, None] + np.arange(card) for axis, card in enumerate(shape))
            groups.append(FactorGroup(cells, places))
        return cls(tuple(groups), start, first, degrees)

    def silent(self) -> list[list[Floats]]:
        """Messages that say nothing: logarithms, for each group and axis (factors, card)."""
        return [[np.full(states.shape, -np.log(states.shape[1])) for states in group.places] for group in self.groups]


def _log_sum(table: Floats, keep: int) -> Floats:
    """Log of the sum of exp over all axes but the first and `keep`; then each row less the log of its sum."""
    axes = tuple(axis for axis in range(1, table.ndim) if axis != keep)
    top = table.max(axis=tuple(range(1, table.ndim)), keepdims=True)
    sums = np.exp(table - top).sum(axis=axes)
    sums /= sums.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore"):
        return np.asarray(np.maximum(np.log(sums), LEAST))


def gathered(layout: MessageLayout, messages: list[list[Floats]]) -> Floats:
    """Sum of all log messages to each state of each site (site states,)."""
    total = np.zeros(int(layout.first[-1]))
    for group, parts in zip(layout.groups, messages, strict=True):
        for states, part in zip(group.places, parts, strict=True):
            total += np.bincount(states.ravel(), part.ravel(), len(total))
    return total


def joined(group: FactorGroup, logs: Floats, inward: list[Floats]) -> Floats:
    """Log-potentials of a group plus the messages to it (factors, *shape)."""
    table = logs[group.cells]
    for axis, part in enumerate(inward):
        table = table + part.reshape(part.shape[0], *(-1 if other == axis else 1 for other in range(len(inward))))
    return np.asarray(table)


def inward_messages(group: FactorGroup, total: Floats, outward: list[Floats]) -> list[Floats]:
    """What each site tells its factors: all it hears but from the factor itself."""
    return [total[states] - part for states, part in zip(group.places, outward, strict=True)]


def pass_messages(
    layout: MessageLayout, logs: Floats, messages: list[list[Floats]], damping: float
) -> tuple[list[list[Floats]], float]:
    """All messages once, from those before; and the largest change of a message."""
    total, renewed, change = gathered(layout, messages), [], 0.0
    for group, outward in zip(layout.groups, messages, strict=True):
        inward = inward_messages(group, total, outward)
        table = joined(group, logs, inward)
        fresh = []
        for axis, (own, before) in enumerate(zip(inward, outward, strict=True)):
            shape = (own.shape[0], *(-1 if other == axis else 1 for other in range(len(inward))))
            sent = _log_sum(table - own.reshape(shape), axis + 1)
            change = max(change, float(np.abs(np.exp(sent) - np.exp(before)).max(initial=0.0)))
            fresh.append((1.0 - damping) * sent + damping * before)
        renewed.append(fresh)
    return renewed, change


def beliefs(layout: MessageLayout, logs: Floats, messages: list[list[Floats]]) -> tuple[Floats, float]:
    """Beliefs of all cells (cells,), and the Bethe approximation of log Z at them."""
    total = gathered(layout, messages)
    tables, log_z = np.zeros(layout.n_cells), 0.0
    for group, outward in zip(layout.groups, messages, strict=True):
        table = joined(group, logs, inward_messages(group, total, outward))
        axes = tuple(range(1, table.ndim))
        table = np.exp(table - table.max(axis=axes, keepdims=True))
        table /= table.sum(axis=axes, keepdims=True)
        tables[group.cells] = table
        used = table > 0.0
        log_z += float((table[used] * (logs[group.cells][used] - np.log(table[used]))).sum())
    for site, degree in enumerate(layout.degrees):
        part = total[layout.first[site] : layout.first[site + 1]]
        own = np.exp(part - part.max())
        own /= own.sum()
        own = own[own > 0.0]
        log_z += (1.0 - float(degree)) * float(-(own * np.log(own)).sum())
    return tables, log_z
