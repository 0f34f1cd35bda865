"""Series as chains of what is carried from slice to slice: expected statistics, posteriors, paths.

Patterns of all pieces together make a **symbol** of each slice, and those of pieces that look back one matrix for each
**step**. Where all steps have one matrix and symbols are few, words of symbols are worked on as one step each.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from suffice.answers import Answer
from suffice.array_types import Floats, Ints
from suffice.engines.chain import Chains
from suffice.engines.chain_blocks import blocks, map_blocks
from suffice.engines.chain_messages import filtered
from suffice.engines.symbol_chains import SymbolChains
from suffice.models.dynamic_network.interface import SlicePlan
from suffice.models.dynamic_network.pieces import Nodes, Piece, RowPiece
from suffice.models.dynamic_network.series import Series
from suffice.statistics import Statistic

#: Passes to expect: the path of the kernels must not depend on what was done before.
CALLS = 500
#: Numbers (steps times pairs of states) of matrices of one block.
PAIRS = 1 << 22


@dataclass(frozen=True, eq=False)
class Labels:
    """Slices by the patterns of some pieces: `label` (slices,), and by label the pattern of each piece, -1: none."""

    label: Ints
    patterns: Ints

    @classmethod
    def of(cls, pieces: tuple[Piece, ...], rows: Ints, slices: int) -> Labels:
        """rows: the slices to be labelled; all others get the label -1."""
        columns = np.full((slices, len(pieces)), -1, np.int64)
        for number, piece in enumerate(pieces):
            columns[piece.rows, number] = piece.labels
        label = np.full(slices, -1, np.int64)
        if not len(rows):
            return cls(label, np.zeros((0, len(pieces)), np.int64))
        code, count = np.zeros(len(rows), np.int64), 1
        for number, piece in enumerate(pieces):
            size = piece.count + 1
            if count * size > 2**62:
                count = int(code.max()) + 1
            code = code * size + columns[rows, number] + 1
            if count * size > len(rows) * 4:
                code = np.unique(code, return_inverse=True)[1].astype(np.int64)
                count = int(code.max()) + 1
            else:
                count *= size
        _, firsts, code = np.unique(code, return_index=True, return_inverse=True)
        label[rows] = code
        return cls(label, columns[rows[firsts]])


@dataclass(frozen=True, eq=False)
class Loaded:
    """Numbers of all symbols and steps under some nodes: `table` (symbols, K), scaled, with `shift` (symbols,).

    `matrices` (steps, K, K), scaled, with `matrix_shift` (steps,).
    """

    table: Floats
    shift: Floats
    matrices: Floats
    matrix_shift: Floats


@dataclass(frozen=True, eq=False)
class SliceExpectation:
    """Log-likelihood of each series (n,), and expected statistics of all."""

    log_likelihood: Floats
    answers: Mapping[Statistic, Answer]


@dataclass(frozen=True, eq=False)
class SliceChains:
    """Some series, planned; asked under nodes as often as EM wants."""

    series: Series
    plan: SlicePlan
    threads: int = 1

    # -- symbols and steps -------------------------------------------------------------------------------------------

    @property
    def size(self) -> int:
        """How many joint states are carried."""
        return self.plan.interface.size

    @property
    def _each(self) -> bool:
        """Whether each slice is a symbol of its own: it shows numbers."""
        return any(isinstance(piece, RowPiece) for piece in self.plan.single)

    @cached_property
    def _symbols(self) -> Labels:
        every = np.arange(self.series.n_slices)
        if self._each:
            columns = np.full((len(every), len(self.plan.single)), -1, np.int64)
            for number, piece in enumerate(self.plan.single):
                columns[piece.rows, number] = piece.labels
            return Labels(every, columns)
        return Labels.of(self.plan.single, every, self.series.n_slices)

    @cached_property
    def _steps(self) -> Labels:
        inner = np.flatnonzero(self.series.place > 0)
        return Labels.of(self.plan.double, inner, self.series.n_slices)

    @cached_property
    def _single_places(self) -> list[Ints]:
        return [self.plan.interface.places_of(piece) for piece in self.plan.single]

    @cached_property
    def _double_places(self) -> list[Ints]:
        return [self.plan.interface.pairs_of(piece) for piece in self.plan.double]

    def load(self, single: Sequence[Floats], double: Sequence[Floats]) -> Loaded:
        """The numbers of all symbols and steps, from the logs of all pieces."""
        table, shift = self._table(self._symbols, single, self._single_places)
        return Loaded(table, shift, *self._matrices(double))

    def _table(self, labels: Labels, logs: Sequence[Floats], places: Sequence[Ints]) -> tuple[Floats, Floats]:
        """The numbers of symbols, scaled, from the logs of the pieces that they are made of."""
        symbols = np.zeros((len(labels.patterns), self.size))
        for number, (own, states) in enumerate(zip(logs, places, strict=True)):
            _add(symbols, own, labels.patterns[:, number], states)
        return _scaled(symbols, (1,))

    def _matrices(self, double: Sequence[Floats]) -> tuple[Floats, Floats]:
        """The numbers of steps, scaled."""
        steps = np.zeros((len(self._steps.patterns), self.size, self.size))
        for number, (logs, places) in enumerate(zip(double, self._double_places, strict=True)):
            _add(steps, logs, self._steps.patterns[:, number], places)
        steps[:, ~self.plan.interface.agreeing] = -np.inf
        if not len(steps):
            steps = np.zeros((1, self.size, self.size))
        return _scaled(steps, (1, 2))

    def under(self, nodes: Nodes) -> Loaded:
        """The numbers of all symbols and steps under some nodes."""
        plan = self.plan
        return self.load([piece.logs(nodes) for piece in plan.single], [piece.logs(nodes) for piece in plan.double])

    # -- chains ------------------------------------------------------------------------------------------------------

    @cached_property
    def _blocks(self) -> list[tuple[int, int]]:
        offsets = self.series.offsets
        if len(self._steps.patterns) <= 1:
            return blocks(offsets, self.size)
        most = max(PAIRS // self.size**2, 1)
        marks = np.unique(np.searchsorted(offsets, np.arange(most, int(offsets[-1]), most)))
        bounds = np.unique(np.concatenate([[0], np.minimum(marks, self.series.n_series), [self.series.n_series]]))
        return list(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True))

    def _chains(self, loaded: Loaded, first: int, last: int) -> Chains:
        """The series from `first` up to `last` as chains."""
        begin, end = int(self.series.offsets[first]), int(self.series.offsets[last])
        offsets = self.series.offsets[first : last + 1] - begin
        symbols, steps = self._symbols.label[begin:end], self._steps.label[begin:end]
        if self._each:
            potentials, shift = loaded.table[begin:end], loaded.shift[begin:end].copy()
        else:
            potentials, shift = loaded.table[symbols], loaded.shift[symbols]
        shared = len(loaded.matrices) == 1
        matrices = loaded.matrices if shared else loaded.matrices[steps]
        inner = steps >= 0
        shift[inner] += loaded.matrix_shift[0] if shared else loaded.matrix_shift[steps[inner]]
        ends = np.ones((2, self.size))

        def scores(span: slice) -> Floats:
            with np.errstate(divide="ignore"):
                return np.asarray(np.log(potentials[span]))

        with np.errstate(divide="ignore"):
            return Chains(
                potentials, matrices, ends, offsets, shift, scores, np.log(matrices), np.zeros((2, self.size))
            )

    @cached_property
    def _words(self) -> SymbolChains | None:
        """The slices as words of symbols, where that pays."""
        if len(self._steps.patterns) > 1 or self._each:
            return None
        labels, offsets = self._word_symbols, self.series.offsets
        return SymbolChains.of(labels.label.astype(np.int32), offsets, len(labels.patterns), self.size, calls=CALLS)

    @cached_property
    def _starting(self) -> tuple[list[int], list[int]]:
        """Pieces that say one thing of all first slices and nothing of others, and all other ones.

        They are no part of words: what is known before the first symbol stands by itself.
        """
        firsts = self.series.offsets[:-1]
        alike = [piece.count == 1 and np.array_equal(piece.rows, firsts) for piece in self.plan.single]
        numbers = range(len(alike))
        return [n for n in numbers if alike[n]], [n for n in numbers if not alike[n]]

    @cached_property
    def _word_symbols(self) -> Labels:
        every = np.arange(self.series.n_slices)
        return Labels.of(tuple(self.plan.single[n] for n in self._starting[1]), every, self.series.n_slices)

    @cached_property
    def _symbol_counts(self) -> Floats:
        """How often each series has each symbol of words (n, symbols)."""
        card = len(self._word_symbols.patterns)
        pairs = self.series.owner * card + self._word_symbols.label
        return np.bincount(pairs, minlength=self.series.n_series * card).reshape(-1, card).astype(np.float64)

    def expect(self, nodes: Nodes) -> SliceExpectation:
        """Log-likelihoods, and the expected statistics of all families that take part."""
        single = [piece.logs(nodes) for piece in self.plan.single]
        double = [piece.logs(nodes) for piece in self.plan.double]
        sums = self._by_words(single, double) if self._words is not None else None
        if sums is None:
            sums = self._by_steps(self.load(single, double))
        log_likelihood, weights_of_pieces, steps = sums
        answers: dict[Statistic, Answer] = {}
        for piece, weights in zip(self.plan.single, weights_of_pieces, strict=True):
            _join(answers, piece.expected(nodes, weights))
        for number, (piece, places) in enumerate(zip(self.plan.double, self._double_places, strict=True)):
            weights = _collected(steps, self._steps.patterns[:, number], places, piece)
            _join(answers, piece.expected(nodes, weights))
        return SliceExpectation(log_likelihood, answers)

    def _by_words(
        self, single: Sequence[Floats], double: Sequence[Floats]
    ) -> tuple[Floats, list[Floats], Floats] | None:
        """Log-likelihoods, weights of patterns with states of each piece of a slice, and of steps with pairs.

        None where logs are needed.
        """
        assert self._words is not None
        places, (starting, others) = self._single_places, self._starting
        labels = self._word_symbols
        table, shift = self._table(labels, [single[n] for n in others], [places[n] for n in others])
        matrices, matrix_shift = self._matrices(double)
        first = np.zeros((1, self.size))
        for number in starting:
            first += single[number][:, places[number]]
        begin, begin_shift = _scaled(first, (1,))
        sums = self._words.expectations(begin[0], matrices[0], table, self.series.weights, threads=self.threads)
        if not sums.exact:
            return None
        firsts, alone = sums.initial[None], np.zeros(1, np.int64)
        weights = {n: _collected(firsts, alone, places[n], self.plan.single[n]) for n in starting}
        for column, number in enumerate(others):
            patterns = labels.patterns[:, column]
            weights[number] = _collected(sums.symbols, patterns, places[number], self.plan.single[number])
        logs = sums.log_partition + self._symbol_counts @ shift + begin_shift[0]
        logs += matrix_shift[0] * np.maximum(self.series.lengths - 1, 0)
        return logs, [weights[number] for number in range(len(places))], sums.transitions[None]

    def _by_steps(self, loaded: Loaded) -> tuple[Floats, list[Floats], Floats]:
        """The same by one pass forward and backward."""
        logs, symbols, steps = self._step_sums(loaded)
        patterns = self._symbols.patterns.T
        pieces = zip(self.plan.single, self._single_places, patterns, strict=True)
        return logs, [_collected(symbols, own, places, piece) for piece, places, own in pieces], steps

    def _step_sums(self, loaded: Loaded) -> tuple[Floats, Floats, Floats]:
        """Log-likelihoods, and weights of symbols with states and of steps with pairs."""
        several = len(self._steps.patterns) > 1

        def task(span: tuple[int, int]) -> tuple[Floats, Floats, Floats]:
            begin, end = int(self.series.offsets[span[0]]), int(self.series.offsets[span[1]])
            chain = self._chains(loaded, *span)
            expected = chain.expectations(self.series.weights[span[0] : span[1]], pairs=several, threads=1, calls=CALLS)
            weights = self.series.slice_weights[begin:end]
            symbols = expected.posteriors * weights[:, None]
            if not self._each:
                symbols = _summed(symbols, self._symbols.label[begin:end], len(loaded.table))
            if not several:
                return expected.log_partition, symbols, expected.transition_sums[None]
            assert expected.pairs is not None
            inner = np.flatnonzero(self._steps.label[begin:end] >= 0)
            joint = expected.pairs[inner].reshape(len(inner), -1) * weights[inner, None]
            steps = _summed(joint, self._steps.label[begin:end][inner], len(loaded.matrices))
            return expected.log_partition, symbols, steps.reshape(-1, self.size, self.size)

        logs, symbols, steps = zip(*map_blocks(task, self._blocks, self.threads), strict=True)
        gathered = np.concatenate(symbols) if self._each else np.sum(symbols, axis=0)
        return np.concatenate(logs), gathered, np.sum(steps, axis=0)

    # -- questions ---------------------------------------------------------------------------------------------------

    def log_likelihoods(self, nodes: Nodes) -> Floats:
        """Of each series (n,), one pass forward."""
        loaded = self.under(nodes)
        logs = map_blocks(
            lambda span: self._chains(loaded, *span).log_partition(threads=1, calls=CALLS), self._blocks, self.threads
        )
        return np.concatenate([np.zeros(0), *logs])

    def smoothed(self, nodes: Nodes) -> tuple[Floats, Floats]:
        """Log-likelihoods (n,), and P(carried states of a slice | the whole series) (slices, K)."""
        loaded = self.under(nodes)

        def task(span: tuple[int, int]) -> tuple[Floats, Floats]:
            expected = self._chains(loaded, *span).expectations(threads=1)
            return expected.log_partition, expected.posteriors

        logs, rows = zip(*map_blocks(task, self._blocks, self.threads), strict=True)
        return np.concatenate(logs), np.concatenate(rows)

    def filtered(self, nodes: Nodes) -> tuple[Floats, Floats]:
        """Log-likelihoods (n,), and P(carried states of a slice | the series up to it) (slices, K)."""
        loaded = self.under(nodes)

        def task(span: tuple[int, int]) -> tuple[Floats, Floats]:
            return filtered(self._chains(loaded, *span), threads=1)

        logs, rows = zip(*map_blocks(task, self._blocks, self.threads), strict=True)
        return np.concatenate(logs), np.concatenate(rows)

    def best(self, nodes: Nodes) -> tuple[Floats, dict[Hashable, Ints]]:
        """The log of the most probable states of each series (n,), and these by node (slices,)."""
        single = [piece.best(nodes) for piece in self.plan.single]
        double = [piece.best(nodes) for piece in self.plan.double]
        loaded = self.load([choice.logs for choice in single], [choice.logs for choice in double])

        def task(span: tuple[int, int]) -> tuple[Floats, Ints]:
            paths, values = self._chains(loaded, *span).best_paths(threads=1)
            return values[:, 0], paths[0]

        logs, paths = zip(*map_blocks(task, self._blocks, self.threads), strict=True)
        path = np.maximum(np.concatenate(paths), 0)
        interface, series = self.plan.interface, self.series
        states = {name: interface.digits[name, 0][path] for name, lag in interface.positions if lag == 0}
        states |= {n: series.columns.get(n, np.full(series.n_slices, -1)).astype(np.int64) for n in self.plan.local}
        for piece, places, choice in zip(self.plan.single, self._single_places, single, strict=True):
            choice.fill(states, piece.rows, piece.labels, places[path[piece.rows]])
        for piece, places, choice in zip(self.plan.double, self._double_places, double, strict=True):
            choice.fill(states, piece.rows, piece.labels, places[path[piece.rows - 1], path[piece.rows]])
        return np.concatenate(logs), states

    def marginal(self, rows: Floats, node: Hashable) -> Floats:
        """The distribution of a carried node in each slice (slices, states), from that of the carried states."""
        interface = self.plan.interface
        digits = interface.digits[node, 0]
        card = interface.cards[interface.positions.index((node, 0))]
        return rows @ np.eye(card)[digits]


def _add(total: Floats, logs: Floats, patterns: Ints, places: Ints) -> None:
    """Add what each pattern says of carried states to the symbols that have one."""
    having = patterns >= 0
    alike = len(logs) == len(total) and logs.shape[1:] == total.shape[1:]
    if alike and (places == np.arange(places.size)).all() and (patterns == np.arange(len(patterns))).all():
        total += logs
    elif having.all():
        total += logs[patterns[:, None], places] if total.ndim == 2 else logs[patterns][:, places]
    else:
        total[having] += logs[patterns[having]][:, places]


def _scaled(logs: Floats, axes: tuple[int, ...]) -> tuple[Floats, Floats]:
    """Numbers with a maximum of 1, and the logarithms taken out."""
    if axes == (1,):
        # NumPy takes the largest of short rows one by one; of columns it takes them side by side.
        tops = logs[:, :1].copy()
        for column in range(1, logs.shape[1]):
            np.maximum(tops, logs[:, column : column + 1], out=tops)
    else:
        tops = logs.max(axis=axes, keepdims=True, initial=-np.inf)
    tops = np.where(np.isfinite(tops), tops, 0.0)
    return np.exp(logs - tops), tops.reshape(len(logs))


def _summed(rows: Floats, labels: Ints, count: int) -> Floats:
    """Rows (n, m) added by label (count, m)."""
    return np.stack([np.bincount(labels, column, minlength=count) for column in rows.T], axis=1)


def _collected(weights: Floats, patterns: Ints, places: Ints, piece: Piece) -> Floats:
    """The weight of each pattern of a piece with each of its carried states, from those of symbols or steps."""
    having = patterns >= 0
    states = int(np.prod(piece.cards, dtype=np.int64)) if piece.cards else 1
    flat = weights if having.all() else weights[having]
    flat = flat.reshape(len(flat), -1)
    same = len(places.ravel()) == states and bool((places.ravel() == np.arange(states)).all())
    by_state = flat if same else flat @ _indicator(places.ravel(), states)
    if isinstance(piece, RowPiece):  # Each slice is a pattern of its own.
        return by_state
    if len(patterns) == piece.count and bool((patterns == np.arange(piece.count)).all()):
        return by_state
    return _summed(by_state, patterns[having], piece.count)


def _indicator(places: Ints, states: int) -> Floats:
    matrix: Any = np.zeros((len(places), states))
    matrix[np.arange(len(places)), places] = 1.0
    return np.asarray(matrix)


def _join(answers: dict[Statistic, Answer], more: Mapping[Statistic, Answer]) -> None:
    for statistic, answer in more.items():
        answers[statistic] = answers[statistic] + answer if statistic in answers else answer
