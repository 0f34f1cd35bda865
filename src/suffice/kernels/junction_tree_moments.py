"""Expected statistics of a log-linear model: many calibrations of the same tree with changing log-potentials."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from suffice.kernels.choice import use_compiled
from suffice.kernels.junction_tree import ENOUGH, KERNEL, calibrate, numpy_seconds
from suffice.kernels.junction_tree_layout import Layout, Scope
from suffice.kernels.junction_tree_numpy import project
from suffice.kernels.junction_tree_potentials import Potentials
from suffice.kernels.junction_tree_program import Numbers, Program, Wiring, program_for

Floats = NDArray[np.float64]


class Moments:
    """The map from log-potentials to log Z and its gradient, the marginals of all scopes.

    scopes: variables of each factor, all in one clique. Both vectors hold the tables of all factors one after another,
    axes in the order of the scope. One object serves one thread.
    """

    def __init__(self, layout: Layout, scopes: Sequence[Scope]) -> None:
        self.layout = layout
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
        found = self._compiled(logs) if self.scopes and use_compiled(KERNEL, self._seconds) else None
        if found is not None:
            return found
        log_z, tables = self._general(logs)
        marginals = [
            project(tables[home], self.layout.cliques[home], scope).ravel()
            for scope, home in zip(self.scopes, self.homes, strict=True)
        ]
        return log_z, np.concatenate([np.zeros(0), *marginals])

    def beliefs(self, logs: Floats, out: Floats) -> float:
        """Write the laws of all cliques to out (cells of the program,), each at its start; returns log Z."""
        program = self.program
        found = self._compiled(logs) if self.scopes and use_compiled(KERNEL, self._seconds) else None
        if found is not None:
            out[:] = self._work[0][: program.cells]
            return found[0]
        log_z, tables = self._general(logs)
        for start, table in zip(program.starts, tables, strict=True):
            out[start : start + table.size] = table.ravel()
        return log_z

    def _compiled(self, logs: Floats) -> tuple[float, Floats] | None:
        from suffice.kernels.compiled import junction_tree as loops

        program, (buffer, floors, entries, exits) = self.program, self._work
        buffer[program.inputs : program.inputs + len(logs)] = logs
        log_z, floor = loops.moments(program.numbers, program.offsets, buffer, floors, entries, exits)
        return (log_z, buffer[program.outputs : program.outputs + len(logs)].copy()) if floor >= ENOUGH else None

    @cached_property
    def _work(self) -> tuple[Floats, Floats, Numbers, Numbers]:
        """A buffer whose potentials are ones, their floors, and the rows of entries and exits."""
        program, floors = self.program, np.ones(len(self.layout.cliques))
        return np.ones(program.length), floors, program.entries.ravel(), program.exits.ravel()

    def _general(self, logs: Floats) -> tuple[float, Sequence[Floats]]:
        found = calibrate(Potentials(self.layout, self.scopes, logs, log=True), {})
        return found.log_z, found.tables
