"""Many cases on one junction tree: log Z of each, marginals of each, and weighted sums of the beliefs of all.

Cases lie side by side in batch, so that one pass over the tree serves many. Sums are formed in blocks of cases that do
not depend on the number of threads, and the blocks are added in double-double.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.double_double import add, rounded, two_sum
from suffice.kernels.choice import use_compiled
from suffice.kernels.junction_tree import ENOUGH, KERNEL, numpy_seconds
from suffice.kernels.junction_tree_layout import Scope, TreeLayout
from suffice.kernels.junction_tree_numpy import (
    Linear,
    Logarithmic,
    aligned,
    best_states,
    clique_tables,
    collect,
    distribute,
    project,
)
from suffice.kernels.junction_tree_potentials import Potentials
from suffice.kernels.junction_tree_program import Program, Wiring, program_for

_BATCHES = ((2048, 32), (32768, 16))  # Compiled path: cells of a tree up to which so many cases go side by side.
_NUMPY_NUMBERS = 1 << 18  # Numbers in the tables of one block of the NumPy path.
_BLOCK_SECONDS = 4e-3  # Time of a block of the compiled path, and the least number of cases in it.
_LEAST_BLOCK = 64


@dataclass(frozen=True)
class Cases:
    """What is known of n cases.

    codes (d, n): the state of each of `variables`, negative where it was not observed. values (n, numbers): a table
    over each of `scopes` that multiplies the potentials, one after another; each divided by exp of its part of shifts
    (n,), so that its largest number is 1. logs: their logarithms.
    """

    variables: tuple[int, ...]
    codes: NDArray[np.int32]
    scopes: tuple[Scope, ...]
    values: Floats
    logs: Floats
    shifts: Floats

    @classmethod
    def of(
        cls, variables: Sequence[int], codes: NDArray[np.int32], scopes: Sequence[Scope], logs: Sequence[Floats]
    ) -> Cases:
        """Take codes as rows (n, d), and scale the tables, given as logarithms (n, numbers of the scope)."""
        rows = len(codes)
        shifts = np.zeros(rows)
        moved = []
        for table in logs:
            top = table.max(axis=1, initial=-np.inf)
            top = np.where(np.isfinite(top), top, 0.0)
            shifts += top
            moved.append(table - top[:, None])
        joined = np.concatenate([np.zeros((rows, 0)), *moved], axis=1)
        return cls(tuple(variables), np.ascontiguousarray(codes.T), tuple(scopes), np.exp(joined), joined, shifts)

    def __len__(self) -> int:
        return int(self.codes.shape[1])

    @cached_property
    def lost(self) -> NDArray[np.bool_]:
        """Cases (n,) with a number that is too small for a double."""
        return np.asarray(((self.values == 0.0) & (self.logs > -np.inf)).any(axis=1))


@dataclass(frozen=True)
class CaseAnswers:
    """log_z (n,); marginals (n, numbers) of all outputs one after another; sums (cells,) of weighted beliefs.

    A case of probability 0 has log_z of minus infinity, and marginals of 0.
    """

    log_z: Floats
    marginals: Floats
    sums: Floats


def solve_cases(
    potentials: Potentials,
    cases: Cases,
    outputs: Sequence[Scope] = (),
    weights: Floats | None = None,
    *,
    threads: int = 1,
    calls: int | None = None,
) -> CaseAnswers:
    """Solve all cases; with weights (n,) also add up their beliefs; calls as in `use_compiled`."""
    layout = potentials.layout
    width = sum(layout.size(scope) for scope in outputs)
    answers = CaseAnswers(
        np.full(len(cases), np.nan), np.zeros((len(cases), width)), np.zeros(0 if weights is None else layout.cells)
    )
    if not len(cases):
        return answers
    work = _Work(potentials, cases, tuple(outputs), weights, answers)
    block = _numpy_block(layout)
    blocks = math.ceil(len(cases) / block)
    if use_compiled(KERNEL, blocks * numpy_seconds(layout, block), calls=calls):
        sums = work.compiled(threads)
    else:
        sums = work.in_numpy(np.arange(len(cases)), logarithms=False)
    wide = np.flatnonzero(np.isnan(answers.log_z))
    if len(wide):
        sums = add(sums, work.in_numpy(wide, logarithms=True))
    answers.marginals[answers.log_z == -np.inf] = 0.0  # Trees that the evidence does not touch still have beliefs.
    answers.log_z[:] += cases.shifts + potentials.shift
    answers.sums[:] = rounded(sums)
    return answers


def maximize_cases(potentials: Potentials, cases: Cases) -> tuple[NDArray[np.int64], Floats]:
    """The best states (n, variables) of each case, and the log of the product of all factors there (n,)."""
    layout = potentials.layout
    states = np.empty((len(cases), len(layout.cards)), np.int64)
    best = np.empty(len(cases))
    for start in range(0, len(cases), _numpy_block(layout)):
        rows = np.arange(start, min(start + _numpy_block(layout), len(cases)))
        tables = _log_tables(potentials, cases, rows)
        algebra = Logarithmic(len(rows), maximum=True)
        collect(layout, tables, algebra)
        states[rows] = best_states(layout, tables)
        best[rows] = algebra.log_z + cases.shifts[rows] + potentials.shift
    return states, best


def _numpy_block(layout: TreeLayout) -> int:
    """Cases of one block of the NumPy path."""
    return max(1, min(1024, _NUMPY_NUMBERS // max(layout.cells, 1)))


@dataclass
class _Work:
    """One call of `solve_cases`; sums are returned as pairs (2, cells)."""

    potentials: Potentials
    cases: Cases
    outputs: tuple[Scope, ...]
    weights: Floats | None
    answers: CaseAnswers

    def in_numpy(self, rows: NDArray[np.intp], *, logarithms: bool) -> Floats:
        """Solve some cases block by block; those whose range is too wide keep a log Z of NaN."""
        sums = np.zeros((2, len(self.answers.sums)))
        size = _numpy_block(self.potentials.layout)
        for start in range(0, len(rows), size):
            part = self._block(rows[start : start + size], logarithms)
            sums[0], error = two_sum(sums[0], part)
            sums[1] += error
        return sums

    def _block(self, rows: NDArray[np.intp], logarithms: bool) -> Floats:
        layout = self.potentials.layout
        both = bool(self.outputs) or self.weights is not None
        if logarithms:
            tables = _log_tables(self.potentials, self.cases, rows)
            logs = Logarithmic(len(rows))
            messages = collect(layout, tables, logs)
            if both:
                distribute(layout, tables, messages, logs)
                tables = [np.exp(table) for table in tables]
            return self._finish(rows, tables, logs.log_z)
        tables, linear = _linear_tables(self.potentials, self.cases, rows)
        messages = collect(layout, tables, linear)
        if both:
            distribute(layout, tables, messages, linear)
        trusted = (linear.floors >= ENOUGH).all(axis=0) & ~self.cases.lost[rows]
        return self._finish(rows, tables, np.where(trusted, linear.log_z, np.nan))

    def _finish(self, rows: NDArray[np.intp], tables: Sequence[Floats], log_z: Floats) -> Floats:
        """Write the answers of a block; returns its sums (cells,), or nothing without weights."""
        layout, answers = self.potentials.layout, self.answers
        answers.log_z[rows] = log_z
        column = 0
        for scope in self.outputs:
            home = layout.home(scope)
            marginal = project(tables[home], layout.cliques[home], scope).reshape(-1, len(rows))
            answers.marginals[rows, column : column + len(marginal)] = marginal.T
            column += len(marginal)
        if self.weights is None:
            return np.zeros(0)
        factors = np.where(np.isfinite(log_z), self.weights[rows], 0.0)
        return np.concatenate([np.zeros(0), *((table @ factors).ravel() for table in tables)])

    def compiled(self, threads: int) -> Floats:
        """Solve all cases in blocks, by several threads."""
        from suffice.kernels.threads import run

        layout, cases = self.potentials.layout, self.cases
        batch = next((batch for cells, batch in _BATCHES if layout.cells <= cells), 1)
        singles = tuple((variable,) for variable in cases.variables)
        wiring = Wiring(batch, (*cases.scopes, *singles), self.outputs, coded=len(singles), separate=True)
        program = program_for(layout, wiring)
        seconds = 2e-6 + 4e-10 * layout.touches
        size = batch * math.ceil(max(_BLOCK_SECONDS / seconds, _LEAST_BLOCK) / batch)
        blocks = range(0, len(cases), size)
        threads = min(threads, max(1, len(blocks)))
        missing = (
            -len(cases) % batch
        )  # The last group repeats the last case in the places of the batch that are left over.
        table = (
            np.pad(cases.codes, ((0, 0), (0, missing)), "edge"),
            np.pad(cases.values, ((0, missing), (0, 0)), "edge"),
        )
        workers = [_Worker(self, program, table) for _ in range(threads)]
        run(lambda start, worker: workers[worker].solve(start, min(start + size, len(cases))), blocks, threads)
        self.answers.log_z[cases.lost] = np.nan
        total = workers[0].total
        for worker in workers[1:]:
            total = add(total, worker.total)
        return total


class _Worker:
    """The private memory of one thread."""

    def __init__(self, work: _Work, program: Program, table: tuple[NDArray[np.int32], Floats]) -> None:
        layout = work.potentials.layout
        self.work = work
        self.program = program
        self.table = table
        self.buffer = np.empty(program.length)
        for origin, start, size in zip(program.origins, layout.starts, layout.sizes, strict=False):
            self.buffer[origin : origin + size] = work.potentials.psi[start : start + size]
        self.sums = np.zeros((len(work.answers.sums), program.batch))
        self.total = np.zeros((2, len(work.answers.sums)))
        weights = np.zeros(0) if work.weights is None else np.where(work.cases.lost, 0.0, work.weights)
        self.answers = (work.answers.log_z, work.answers.marginals, weights, self.sums.ravel())

    def solve(self, start: int, stop: int) -> None:
        from suffice.kernels.compiled import junction_tree as loops

        program, floors = self.program, self.work.potentials.floors
        rows = (program.entries.ravel(), program.exits.ravel())
        self.sums[:] = 0.0
        loops.cases(
            program.numbers, program.offsets, self.buffer, floors, rows, self.table, (start, stop), self.answers, ENOUGH
        )
        self.total[0], error = two_sum(
            self.total[0], self.sums.sum(axis=1) if self.program.batch > 1 else self.sums[:, 0]
        )
        self.total[1] += error


def _observed(cases: Cases, rows: NDArray[np.intp], layout: TreeLayout) -> list[tuple[int, Floats]]:
    """For each observed column the variable and its likelihood (card, rows)."""
    observed = []
    for column, variable in enumerate(cases.variables):
        codes = cases.codes[column, rows]
        states = np.arange(layout.cards[variable])[:, None]
        observed.append((variable, ((codes < 0) | (codes == states)).astype(np.float64)))
    return observed


def _inputs(cases: Cases, rows: NDArray[np.intp], layout: TreeLayout, numbers: Floats) -> list[tuple[Scope, Floats]]:
    """For each table of the cases its scope and its numbers (cards, rows)."""
    inputs = []
    column = 0
    for scope in cases.scopes:
        size = layout.size(scope)
        part = numbers[rows, column : column + size].T
        inputs.append((scope, part.reshape((*layout.shape(scope), len(rows)))))
        column += size
    return inputs


def _linear_tables(potentials: Potentials, cases: Cases, rows: NDArray[np.intp]) -> tuple[list[Floats], Linear]:
    layout = potentials.layout
    tables = clique_tables(layout, np.repeat(potentials.psi, len(rows)), len(rows))
    algebra = Linear(layout, len(rows), potentials.floors)
    for variable, likelihood in _observed(cases, rows, layout):
        home = layout.homes[variable]
        tables[home] *= aligned(likelihood, (variable,), layout.cliques[home])
    for scope, values in _inputs(cases, rows, layout, cases.values):
        home = layout.home(scope)
        tables[home] *= aligned(values, scope, layout.cliques[home])
        algebra.lower(home, values)
    return tables, algebra


def _log_tables(potentials: Potentials, cases: Cases, rows: NDArray[np.intp]) -> list[Floats]:
    layout = potentials.layout
    tables = clique_tables(layout, np.repeat(potentials.log_psi, len(rows)), len(rows))
    with np.errstate(divide="ignore"):
        for variable, likelihood in _observed(cases, rows, layout):
            home = layout.homes[variable]
            tables[home] += aligned(np.log(likelihood), (variable,), layout.cliques[home])
    for scope, logs in _inputs(cases, rows, layout, cases.logs):
        home = layout.home(scope)
        tables[home] += aligned(logs, scope, layout.cliques[home])
    return tables
