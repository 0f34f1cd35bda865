"""Compiled loops of Gibbs sampling and pseudo-likelihood: `states[site, chain]`, chains innermost.

Chains fill the vectors of the processor, so that a scan in any order over any graph runs in vectors. Every chain has a
xoshiro128+ stream of its own, `stream[4, chain]`: what it draws depends neither on other chains nor on threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from suffice.array_types import Floats, Ints, Singles, Span, States, Words32
from suffice.kernels.jit import fused, kernel

Graph = tuple[Ints, Ints]
"""Neighbours of site i: entries ``ptr[i]`` to ``ptr[i + 1]`` of the second."""

Factors = tuple[Ints, Ints, Ints, Ints]
"""First cell of each factor; where its sites begin in the third; sites, and what one state more is in cells."""

Places = tuple[Ints, Ints, Ints]
"""Where the factors of each site begin in the others; factors, and what one state more of the site is in cells."""

_F = np.float32
_U = np.uint32
_ONE, _HALF = _F(1.0), _F(0.5)
_SHIFT, _LOG2E, _LN2 = _F(12582912.0), _F(1.442695041), _F(0.6931471805599453)
_E3, _E4, _E5, _E6 = _F(1 / 6), _F(1 / 24), _F(1 / 120), _F(1 / 720)
_LEAST, _MOST = _F(-87.0), _F(87.0)
_BIAS, _PLACES = np.int32(127 << 23), np.int32(23)
_STEP23, _STEP32 = _F(2.0**-23), 2.0**-32


@fused
def _exp32(x: np.float32) -> Any:
    """Exponential of a float32 without a branch, so that loops run in vectors; beyond 87 it stays where it is."""
    x = _LEAST if x < _LEAST else x
    x = _MOST if x > _MOST else x
    t = x * _LOG2E + _SHIFT
    r = x - (t - _SHIFT) * _LN2
    p = _ONE + r * (_ONE + r * (_HALF + r * (_E3 + r * (_E4 + r * (_E5 + r * _E6)))))
    return p * np.int32(np.int32(np.float32(t).view(np.int32) << _PLACES) + _BIAS).view(np.float32)  # p 2^n


@kernel
def draw_bits(stream: Words32, first: int, last: int, out: Words32) -> None:
    """32 random bits for each chain from first to last, by xoshiro128+; out (last - first,) uint32."""
    s0, s1 = stream[0, first:last], stream[1, first:last]
    s2, s3 = stream[2, first:last], stream[3, first:last]
    for c in range(len(out)):
        x0, x1, x2, x3 = s0[c], s1[c], s2[c], s3[c]
        out[c] = _U(x0 + x3)
        t = _U(x1 << _U(9))
        x2 = _U(x2 ^ x0)
        x3 = _U(x3 ^ x1)
        x1 = _U(x1 ^ x2)
        x0 = _U(x0 ^ x3)
        x2 = _U(x2 ^ t)
        x3 = _U(_U(x3 << _U(11)) | _U(x3 >> _U(21)))
        s0[c], s1[c], s2[c], s3[c] = x0, x1, x2, x3


@fused
def _fields(
    i: int, ptr: Ints, neighbour: Ints, coupling: Singles, field: Singles, states: States, part: Span, out: Singles
) -> None:
    """Log-odds of state 1 of site i in each chain of the part; four neighbours, those of a grid, at once."""
    first, last = part
    k0, k1, h = ptr[i], ptr[i + 1], field[i]
    if k1 - k0 == 4:
        a, b = states[neighbour[k0], first:last], states[neighbour[k0 + 1], first:last]
        d, e = states[neighbour[k0 + 2], first:last], states[neighbour[k0 + 3], first:last]
        ja, jb, jd, je = coupling[k0], coupling[k0 + 1], coupling[k0 + 2], coupling[k0 + 3]
        for c in range(len(out)):
            out[c] = h + ja * _F(a[c]) + jb * _F(b[c]) + jd * _F(d[c]) + je * _F(e[c])
        return
    for c in range(len(out)):
        out[c] = h
    for k in range(k0, k1):
        a, ja = states[neighbour[k], first:last], coupling[k]
        for c in range(len(out)):
            out[c] += ja * _F(a[c])


@fused
def sweep_pairs(
    order: Ints,
    graph: Graph,
    coupling: Singles,
    field: Singles,
    states: States,
    stream: Words32,
    held: States,
    part: Span,
) -> None:
    """Visit the sites in this order: two states, log-odds field + sum of coupling times neighbour, all float32.

    State 1 is taken where u (1 + exp(-log-odds)) < 1, which needs no division. held (sites or 0, chains): not drawn.
    The random numbers are made in the same loop: kept in registers, they cost a third less.
    """
    ptr, neighbour = graph
    first, last = part
    chains = last - first
    odds, before = np.empty(chains, np.float32), np.empty(chains, np.uint8)
    s0, s1 = stream[0, first:last], stream[1, first:last]
    s2, s3 = stream[2, first:last], stream[3, first:last]
    for i in order:
        _fields(i, ptr, neighbour, coupling, field, states, part, odds)
        own = states[i, first:last]
        if len(held):
            before[:] = own
        for c in range(chains):
            x0, x1, x2, x3 = s0[c], s1[c], s2[c], s3[c]
            bits = _U(x0 + x3)
            t = _U(x1 << _U(9))
            x2 = _U(x2 ^ x0)
            x3 = _U(x3 ^ x1)
            s1[c] = _U(x1 ^ x2)
            s0[c] = _U(x0 ^ x3)
            s2[c] = _U(x2 ^ t)
            s3[c] = _U(_U(x3 << _U(11)) | _U(x3 >> _U(21)))
            u = (_F(np.int32(bits >> _U(9))) + _HALF) * _STEP23
            own[c] = np.uint8(u + u * _exp32(-odds[c]) < _ONE)
        if len(held):
            fixed = held[i, first:last]
            for c in range(chains):
                own[c] = before[c] if fixed[c] else own[c]


@fused
def sweep_potts(
    order: Ints,
    graph: Graph,
    coupling: Singles,
    field: Singles,
    states: States,
    stream: Words32,
    held: States,
    part: Span,
) -> None:
    """Visit the sites in this order: log-potential of state k is field[site, k] + coupling of neighbours in state k."""
    ptr, neighbour = graph
    first, last = part
    count, chains = field.shape[1], last - first
    logs = np.empty((count, chains), np.float32)
    bits, top = np.empty(chains, np.uint32), np.empty(chains, np.float32)
    for i in order:
        for k in range(count):
            row = logs[k]
            h = field[i, k]
            for c in range(chains):
                row[c] = h
            state = np.uint8(k)
            for e in range(ptr[i], ptr[i + 1]):
                other, w = states[neighbour[e], first:last], coupling[e]
                for c in range(chains):
                    row[c] += w * _F(other[c] == state)
        draw_bits(stream, first, last, bits)
        _draw32(logs, top, bits, states[i, first:last], held[i, first:last] if len(held) else held[:0, 0])


@fused
def _draw32(logs: Singles, top: Singles, bits: Words32, own: States, fixed: States) -> None:
    """Draw a state for each chain from log-potentials (states, chains), which become their running sums."""
    count, chains = logs.shape
    for c in range(chains):
        top[c] = logs[0, c]
    for k in range(1, count):
        row = logs[k]
        for c in range(chains):
            top[c] = row[c] if row[c] > top[c] else top[c]
    row = logs[0]
    for c in range(chains):
        row[c] = _exp32(row[c] - top[c])
    for k in range(1, count):
        before, row = logs[k - 1], logs[k]
        for c in range(chains):
            row[c] = before[c] + _exp32(row[c] - top[c])
    total = logs[count - 1]
    for c in range(chains):
        top[c] = (_F(np.int32(bits[c] >> _U(9))) + _HALF) * _STEP23 * total[c]
    drawn = np.zeros(chains, np.uint8)
    for k in range(count - 1):
        row = logs[k]
        for c in range(chains):
            drawn[c] += np.uint8(row[c] <= top[c])
    for c in range(chains):
        own[c] = own[c] if len(fixed) and fixed[c] else drawn[c]


@kernel
def _cells(f: int, skip: int, factors: Factors, states: States, part: Span, out: Ints) -> None:
    """Cell of factor f in each chain of the part, with the site `skip` in its state 0."""
    start, ptr, site, stride = factors
    first, last = part
    for c in range(len(out)):
        out[c] = start[f]
    for m in range(ptr[f], ptr[f + 1]):
        if site[m] != skip:
            row, step = states[site[m], first:last], stride[m]
            for c in range(len(out)):
                out[c] += step * np.int64(row[c])


@kernel
def _conditional(
    i: int,
    cards: Ints,
    places: Places,
    factors: Factors,
    logs: Floats,
    states: States,
    part: Span,
    work: tuple[Floats, Ints],
) -> None:
    """Log-potentials of the states of site i given all others: rows of work, for each chain of the part."""
    conditionals, cell = work
    ptr, factor, step = places
    for k in range(cards[i]):
        conditionals[k, :] = 0.0
    for e in range(ptr[i], ptr[i + 1]):
        _cells(factor[e], i, factors, states, part, cell)
        for k in range(cards[i]):
            row, shift = conditionals[k], k * step[e]
            for c in range(len(cell)):
                row[c] += logs[cell[c] + shift]


@kernel
def sweep_tables(
    order: Ints,
    cards: Ints,
    places: Places,
    factors: Factors,
    logs: Floats,
    states: States,
    stream: Words32,
    held: States,
    part: Span,
) -> None:
    """Visit the sites in this order, whatever their factors are. A chain whose site has no possible state keeps it."""
    first, last = part
    chains = last - first
    conditionals, cell = np.empty((cards.max(), chains)), np.empty(chains, np.int64)
    bits = np.empty(chains, np.uint32)
    for i in order:
        _conditional(i, cards, places, factors, logs, states, part, (conditionals, cell))
        draw_bits(stream, first, last, bits)
        own, count = states[i, first:last], cards[i]
        for c in range(chains):
            if len(held) and held[i, first + c]:
                continue
            top = conditionals[0, c]
            for k in range(1, count):
                top = max(top, conditionals[k, c])
            if top == -np.inf:
                continue
            total = 0.0
            for k in range(count):
                total += np.exp(conditionals[k, c] - top)
                conditionals[k, c] = total
            aim = (np.float64(bits[c]) + 0.5) * _STEP32 * total
            state = 0
            while conditionals[state, c] <= aim and state < count - 1:
                state += 1
            own[c] = state


@kernel
def count_cells(factors: Factors, states: States, weights: Floats, counts: Floats) -> None:
    """Add the weights (chains,) of the chains in each cell of each factor to counts (cells,)."""
    chains = states.shape[1]
    cell = np.empty(chains, np.int64)
    for f in range(len(factors[0])):
        _cells(f, -1, factors, states, (0, chains), cell)
        for c in range(chains):
            counts[cell[c]] += weights[c]


@kernel
def count_pairs(first: Ints, second: Ints, states: States, ones: Floats, both: Floats) -> None:
    """Chains in which a site is in state 1 (sites,), and in which both ends of a pair are (pairs,)."""
    chains = states.shape[1]
    for i in range(len(ones)):
        row = states[i]
        total = np.int32(0)
        for c in range(chains):
            total += np.int32(row[c])
        ones[i] = total
    for e in range(len(both)):
        a, b = states[first[e]], states[second[e]]
        total = np.int32(0)
        for c in range(chains):
            total += np.int32(a[c] & b[c])
        both[e] = total


@kernel
def add_features(factors: Factors, matrix: tuple[Ints, Ints, Floats], states: States, out: Floats) -> None:
    """Add the features of each chain to out (features, chains); matrix: rows of cells, as (ptr, column, value)."""
    ptr, column, value = matrix
    chains = states.shape[1]
    cell = np.empty(chains, np.int64)
    for f in range(len(factors[0])):
        _cells(f, -1, factors, states, (0, chains), cell)
        for c in range(chains):
            for e in range(ptr[cell[c]], ptr[cell[c] + 1]):
                out[column[e], c] += value[e]


@kernel
def add_logs(factors: Factors, logs: Floats, states: States, out: Floats) -> None:
    """Add the log-potentials of each chain to out (chains,)."""
    chains = states.shape[1]
    cell = np.empty(chains, np.int64)
    for f in range(len(factors[0])):
        _cells(f, -1, factors, states, (0, chains), cell)
        for c in range(chains):
            out[c] += logs[cell[c]]


@kernel
def pseudo_tables(
    sites: Ints,
    cards: Ints,
    places: Places,
    factors: Factors,
    logs: Floats,
    states: States,
    weights: Floats,
    slope: Floats,
) -> float:
    """Sum of weight times log p(site | others) over some sites and all rows; adds its slope by log-potential."""
    ptr, factor, step = places
    chains = states.shape[1]
    conditionals, cell = np.empty((cards.max(), chains)), np.empty(chains, np.int64)
    value = 0.0
    for i in sites:
        _conditional(i, cards, places, factors, logs, states, (0, chains), (conditionals, cell))
        own, count = states[i], cards[i]
        for c in range(chains):
            top = conditionals[0, c]
            for k in range(1, count):
                top = max(top, conditionals[k, c])
            total = 0.0
            for k in range(count):
                total += np.exp(conditionals[k, c] - top)
            value += weights[c] * (conditionals[own[c], c] - top - np.log(total))
            for k in range(count):
                conditionals[k, c] = -weights[c] * np.exp(conditionals[k, c] - top) / total
            conditionals[own[c], c] += weights[c]
        for e in range(ptr[i], ptr[i + 1]):
            _cells(factor[e], i, factors, states, (0, chains), cell)
            for k in range(count):
                for c in range(chains):
                    slope[cell[c] + k * step[e]] += conditionals[k, c]
    return value


@kernel
def pseudo_pairs(
    sites: Ints,
    graph: Graph,
    coupling: Floats,
    field: Floats,
    states: States,
    weights: Floats,
    slope: Floats,
    turned: Floats,
) -> float:
    """As `pseudo_tables` for two states and pairs; slope (sites,) by field, turned (ends of pairs,) by coupling."""
    ptr, neighbour = graph
    chains = states.shape[1]
    odds, rest = np.empty(chains), np.empty(chains)
    value = 0.0
    for i in sites:
        odds[:] = field[i]
        for k in range(ptr[i], ptr[i + 1]):
            row, j = states[neighbour[k]], coupling[k]
            for c in range(chains):
                odds[c] += j * row[c]
        own = states[i]
        total = 0.0
        for c in range(chains):
            t = np.exp(-abs(odds[c]))
            near = 1.0 / (1.0 + t)
            one = near if odds[c] >= 0.0 else t * near
            value += weights[c] * (own[c] * odds[c] - max(odds[c], 0.0) - np.log1p(t))
            rest[c] = weights[c] * (own[c] - one)
            total += rest[c]
        slope[i] += total
        for k in range(ptr[i], ptr[i + 1]):
            row = states[neighbour[k]]
            total = 0.0
            for c in range(chains):
                total += rest[c] * row[c]
            turned[k] += total
    return value
