"""Expected statistics of a log-linear model: many calibrations of the same tree with changing log-potentials."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from suffice.array_types import Floats
from suffice.kernels.choice import use_compiled
from suffice.kernels.junction_tree import ENOUGH, KERNEL, calibrate, numpy_seconds
from suffice.kernels.junction_tree_layout import Scope, TreeLayout
from suffice.kernels.junction_tree_numpy import project
from suffice.kernels.junction_tree_potentials import Potentials
from suffice.kernels.junction_tree_program import Numbers, Program, Wiring, program_for
from suffice.kernels.split_table import TINY, SplitTable


class CliqueMoments:
    """The map from log-potentials to log Z and its gradient, the marginals of all scopes.

    scopes: variables of each factor, all in one clique. Both vectors hold the tables of all factors one after another,
    axes in the order of the scope. One object serves one thread.
    """

    def __init__(self, layout: TreeLayout, scopes: Sequence[Scope], *, split: SplitTable | None = None) -> None:
        """split: the same table cut in two, where there is only one; it takes the NumPy path."""
        self.layout, self._split = layout, split
        self.scopes = tuple(scopes)
        self.homes = [layout.home(scope) for scope in self.scopes]
        self.ends = np.cumsum([0, *(layout.size(scope) for scope in self.scopes)])
        self._seconds = numpy_seconds(layout)

    @cached_property
    def program(self) -> Program:
        """The program whose entries and exits are the scopes, and whose potentials lie apart from the beliefs."""
        return program_for(self.layout, Wiring(1, self.scopes, self.scopes, separate=True))

    def __call__(self, logs: Floats) -> tuple[float, Floats]:
        """Return log Z and the marginals (numbers,) of log-potentials (numbers,), none of them NaN or plus infinity."""
        answer = self._compiled(logs) if self.scopes and use_compiled(KERNEL, self._seconds) else None
        if answer is not None:
            return answer
        if self._split is not None and np.minimum.reduce(logs) > -np.inf:
            log_z, margins, _ = self._split.moments(logs)
            if np.minimum.reduce(margins) > TINY:
                return log_z, margins
        log_z, tables = self._general(logs)
        return log_z, self._margins(tables)

    def distributions(self, logs: Floats) -> tuple[float, Floats, list[Floats]]:
        """The same, and the distribution of each clique (cells,); the tables hold until the next call."""
        answer = self._compiled(logs) if self.scopes and use_compiled(KERNEL, self._seconds) else None
        if answer is not None:
            buffer = self._work[0]
            starts = zip(self.program.starts, self.layout.sizes, strict=True)
            return *answer, [buffer[start : start + size] for start, size in starts]
        log_z, tables = self._general(logs)
        return log_z, self._margins(tables), [table.ravel() for table in tables]

    def _margins(self, tables: Sequence[Floats]) -> Floats:
        """The marginals of all scopes (numbers,) from the distributions of the cliques."""
        parts = [
            project(tables[home], self.layout.cliques[home], scope).ravel()
            for scope, home in zip(self.scopes, self.homes, strict=True)
        ]
        return np.concatenate([np.zeros(0), *parts])

    def beliefs(self, logs: Floats, out: Floats) -> float:
        """Write the distributions of all cliques to out (cells of the program,), each at its start; returns log Z."""
        program = self.program
        answer = self._compiled(logs) if self.scopes and use_compiled(KERNEL, self._seconds) else None
        if answer is not None:
            out[:] = self._work[0][: program.cells]
            return answer[0]
        log_z, tables = self._general(logs)
        for start, table in zip(program.starts, tables, strict=True):
            out[start : start + table.size] = table.ravel()
        return log_z

    def _compiled(self, logs: Floats) -> tuple[float, Floats] | None:
        """None where a number is too small for a double."""
        (exponentials, enough), loop = self._loops
        _, given, marginals, ends, rows = self._work
        given[:] = logs
        shift, least = exponentials(given, ends)
        if least < enough:
            return None
        log_z, floor = loop(*rows)
        return (log_z + shift, marginals.copy()) if floor >= ENOUGH else None

    @cached_property
    def _loops(self) -> tuple[tuple[Any, float], Any]:
        """The compiled loops, and the least logarithm that the first of them takes."""
        from suffice.kernels.compiled.exponentials import LEAST, exponentials
        from suffice.kernels.compiled.junction_tree import moments

        return (exponentials, LEAST), moments

    @cached_property
    def _work(self) -> tuple[Floats, Floats, Floats, Numbers, tuple[Any, ...]]:
        """A buffer whose potentials are ones, its small tables that are given and found, and what the loops read.

        That is the ends of the small tables; program, offsets, buffer, floors of the cliques, entries and exits.
        """
        program, floors, count = self.program, np.ones(len(self.layout.cliques)), int(self.ends[-1])
        buffer = np.ones(program.length)
        given = buffer[program.inputs : program.inputs + count]
        marginals = buffer[program.outputs : program.outputs + count]
        rows = program.numbers, program.offsets, buffer, floors, program.entries.ravel(), program.exits.ravel()
        return buffer, given, marginals, self.ends.astype(np.uint64), rows

    def _general(self, logs: Floats) -> tuple[float, Sequence[Floats]]:
        beliefs = calibrate(Potentials(self.layout, self.scopes, logs, log=True), {})
        return beliefs.log_z, beliefs.tables
