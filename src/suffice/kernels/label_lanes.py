"""Expected features of many chains at once, 32 side by side: see `suffice.kernels.compiled.label_lanes`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.kernels.arrays import frozen
from suffice.kernels.label_scores import Matrix, Packing, ranges

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Sequences side by side, and the numbers that labels are padded to a multiple of: for products, and for features.
LANES, TILE, BLOCK, PART = 32, 4, 8, 4
#: Bytes that the steps of one group may take.
MOST_BYTES = 64_000_000
#: What a sequence outside of the lanes costs more than its steps, in steps.
OUTSIDE = 300
#: Sums that are kept apart until the end: at most this many, and this many numbers in all.
MOST_SLOTS, SLOT_NUMBERS = 8, 4_000_000
#: Steps that are sorted out at once, and entries.
STEPS, ENTRIES = 4096, 65536
#: A scaled row with less mass than this sends its sequence to log space: what underflows is smaller still.
LEAST = 1e-200


@dataclass(frozen=True, eq=False)
class Lanes:
    """Groups of 32 sequences of similar length; sequences may be in none of them.

    `sequences` (g, 32): which, -1 for none; `lengths` (g, 32), falling, and `begins` (g,): the steps in groups before.
    `entries` as the compiled loops take them. `slots`: ranges of groups of about equal work. `places` (p,): where each
    packed weight is among `count` others, in which a feature with many labels has one for each of `width` labels.
    """

    sequences: Ints
    lengths: NDArray[np.uint64]
    begins: NDArray[np.uint64]
    slots: list[tuple[int, int]]
    entries: tuple[Any, ...]
    places: Ints
    count: int
    sizes: tuple[int, int, int]

    @property
    def longest(self) -> int:
        """Steps of the longest sequence in a group."""
        return int(self.lengths[:, 0].max(initial=0))


def plan_lanes(design: Matrix, packing: Packing, offsets: Ints) -> Lanes | None:
    """The groups for sequences; None where there are too few of them."""
    padded, width = _up(packing.size, TILE), _up(packing.size, BLOCK)
    lengths = np.diff(offsets)
    chosen = _grouped(lengths, MOST_BYTES // (16 * padded * LANES))
    if not len(chosen):
        return None
    inside = np.where(chosen >= 0, lengths[chosen], 0)
    steps = _in_order(offsets[:-1][chosen], inside)
    places, entries, count = _packed(design, packing, width, steps)
    most = max(2, min(MOST_SLOTS, SLOT_NUMBERS // max(count, 1)))
    work = np.cumsum(inside[:, 0])
    marks = np.searchsorted(work, work[-1] * np.arange(1, most) / most) + 1
    bounds = np.unique(np.concatenate(([0], np.minimum(marks, len(chosen)), [len(chosen)]))).tolist()
    begins = np.cumsum(inside.sum(axis=1)) - inside.sum(axis=1)
    return Lanes(
        chosen,
        inside.astype(np.uint64),
        begins.astype(np.uint64),
        list(pairwise(bounds)),
        tuple(frozen(part) for part in entries),
        places,
        count,
        (packing.size, padded, width),
    )


def _grouped(lengths: Ints, longest: int) -> Ints:
    """Sequences (g, 32) in groups where lanes pay, from the longest to the shortest; -1 for none."""
    order = np.argsort(-lengths, kind="stable")
    ordered = lengths[order].tolist()
    totals = np.concatenate(([0], np.cumsum(lengths[order]))).tolist()
    starts, at = [], 0
    while at < len(ordered):
        end = min(at + LANES, len(ordered))
        worth = 2 * (totals[end] - totals[at]) + OUTSIDE * (end - at)
        if ordered[at] <= longest and LANES * ordered[at] <= worth:
            starts.append(at)
            at = end
        else:
            at += 1
    places = np.array(starts, np.int64)[:, None] + np.arange(LANES)
    return np.asarray(np.append(order, -1)[np.minimum(places, len(order))])


def _in_order(starts: Ints, lengths: Ints) -> Ints:
    """The steps of groups, by step and lane: from first steps and lengths (g, 32)."""
    flat = lengths.ravel()
    time = ranges(np.zeros_like(flat), flat)
    lane = np.repeat(np.arange(flat.size), flat)
    keys = (lane // LANES * (int(lengths.max()) + 1) + time) * LANES + lane % LANES
    return ranges(starts.ravel(), flat)[np.argsort(keys, kind="stable")]


def _packed(design: Matrix, packing: Packing, width: int, steps: Ints) -> tuple[Ints, tuple[Any, ...], int]:
    """Places of the weights, the entries of the steps for the compiled loops, and the number of places.

    Weights lie in the order in which the steps need them first, so that those of rare features come one after another.
    """
    many = 3 * np.diff(packing.pointers) >= width
    counts, features, values, single_counts, single, single_values = _entries(design, packing, many, steps)
    base, whole = int(many.sum()) * width, many[packing.features]
    row_of = _by_first_use(features, np.flatnonzero(many), len(many)) * width
    order = _by_first_use(single, np.flatnonzero(~whole), len(whole))
    places = np.where(whole, row_of[packing.features] + packing.labels, base + order)
    labels = np.empty(len(single), np.uint16)
    for part in _blocks(len(single), ENTRIES):
        labels[part] = packing.labels[single[part]]
        single[part] = places[single[part]]
    for part in _blocks(len(features), ENTRIES):
        features[part] = row_of[features[part]]
    entries = (_ends(counts), features, values, _ends(single_counts), single, labels, single_values)
    return places, entries, base + int((~whole).sum())


def _entries(design: Matrix, packing: Packing, many: NDArray[np.bool_], steps: Ints) -> tuple[Any, ...]:
    """Entries of the steps: numbers by step, features and values of whole rows; the same of single weights.

    They are written to where they stay, some steps at a time: lists of parts would take the memory twice.
    """
    sizes, some = np.diff(packing.pointers), len(design.values) > 0
    uses = np.zeros(design.columns, np.int64)
    for part in _blocks(len(design.indices), ENTRIES):
        uses += np.bincount(design.indices[part], minlength=design.columns)
    most = int(uses[many].sum()), int((uses * sizes)[~many].sum())
    counts = np.zeros((2, len(steps)), np.uint32)
    found = [np.empty(number, np.uint32) for number in most]
    values = [np.empty(number if some else 0) for number in most]
    ends = [0, 0]
    for part in _blocks(len(steps), STEPS):
        here = design.indptr[steps[part]]
        lengths = design.indptr[steps[part] + 1] - here
        at, owner = ranges(here, lengths), np.repeat(np.arange(len(lengths)), lengths)
        columns, rows = design.indices[at], many[design.indices[at]]
        kept = sizes[columns[~rows]]
        counts[0, part] = np.bincount(owner[rows], minlength=len(lengths))
        counts[1, part] = np.bincount(owner[~rows], kept, minlength=len(lengths))
        fresh = (columns[rows], ranges(packing.pointers[columns[~rows]], kept))
        own = design.values[at] if some else design.values
        amounts = (own[rows], np.repeat(own[~rows], kept)) if some else (own, own)
        for place in range(2):
            first, ends[place] = ends[place], ends[place] + len(fresh[place])
            found[place][first : ends[place]] = fresh[place]
            values[place][first : ends[place] if some else 0] = amounts[place]
    few = [(counts[i], found[i][: ends[i]], values[i][: ends[i]]) for i in range(2)]
    return (*few[0], *few[1])


def _blocks(length: int, size: int) -> Iterator[slice]:
    """Ranges of at most some steps or entries."""
    return (slice(at, min(at + size, length)) for at in range(0, length, size))


def _ends(counts: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Where the entries of each step end, after a 0."""
    found = np.zeros(len(counts) + 1, np.uint32)
    np.cumsum(counts, out=found[1:])
    return found


def _by_first_use(used: NDArray[Any], others: NDArray[Any], size: int) -> Ints:
    """The rank of each of `size` things by where it is used first; then the others, then what is left."""
    first, at = np.full(size, np.iinfo(np.int64).max), 0
    parts = [used[block] for block in _blocks(len(used), ENTRIES)]
    for part in [*parts, others]:
        fresh = np.flatnonzero(first[part] == np.iinfo(np.int64).max)[::-1]
        first[part[fresh]] = at + fresh
        at += len(part)
    ranks = np.empty(size, np.int64)
    ranks[np.argsort(first, kind="stable")] = np.arange(size)
    return ranks


def expected(
    lanes: Lanes,
    weights: Floats,
    chain: tuple[Floats, Floats],
    span: tuple[int, int],
    shares: Floats,
    work: tuple[Floats, Floats],
    found: tuple[Floats, Floats, Floats, Floats],
) -> None:
    """Log masses and expected features of the groups of a span.

    weights (count,). chain: scaled transitions (K, K) and ends (2, K). shares (g, 32). work: two arrays of
    ``longest * padded * 32``. found: masses (g, 32), NaN for sequences that need log space and are in no sum; sums of
    features (count,); sums of transitions (padded * padded * 4,) without their factor; ends (2 * padded,).
    """
    from suffice.kernels.compiled.label_lanes import expected as loop

    size, padded, width = lanes.sizes
    matrix, ends = np.zeros((padded, padded)), np.zeros((2, padded))
    matrix[:size, :size], ends[:, :size] = chain
    own = (frozen(matrix.ravel()), frozen(matrix.T.ravel()), frozen(ends.ravel()))
    sizes = (np.uint64(size), np.uint64(padded), np.uint64(width))
    part = slice(*span)
    groups = (frozen(lanes.begins[part]), frozen(lanes.lengths[part]))
    out = (found[0][part], *found[1:])
    loop(lanes.entries, frozen(weights), own, groups, sizes, LEAST, frozen(shares[part]), work, out)


def _up(number: int, multiple: int) -> int:
    return -(-number // multiple) * multiple
