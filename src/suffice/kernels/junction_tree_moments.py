"""Expected statistics of a log-linear model: many calibrations of the same tree with changing log-potentials."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from suffice.kernels.choice import use_compiled
from suffice.kernels.junction_tree import ENOUGH, KERNEL, calibrate, numpy_seconds
from suffice.kernels.junction_tree_layout import Layout, Scope
from suffice.kernels.junction_tree_numpy import project
from suffice.kernels.junction_tree_potentials import Potentials, scale_parts
from suffice.kernels.junction_tree_program import Program, Wiring, program_for

Floats = NDArray[np.float64]


class Moments:
    """The map from log-potentials to log Z and its gradient, the marginals of all scopes.

    scopes: variables of each factor, all in one clique. Both vectors hold the tables of all factors one after another,
    axes in the order of the scope. One object serves one thread.
    """

    def __init__(self, layout: Layout, scopes: Sequence[Scope]) -> None:
        self.layout = layout
        self.scopes = tuple(scopes)
        self.ends = np.cumsum([0, *(layout.size(scope) for scope in self.scopes)])
        self._work: tuple[Program, Floats] | None = None

    def __call__(self, logs: Floats) -> tuple[float, Floats]:
        """Return log Z and the marginals (numbers,) of log-potentials (numbers,), none of them NaN or plus infinity."""
        if use_compiled(KERNEL, numpy_seconds(self.layout)):
            values, shifts, leasts = scale_parts(logs, self.ends, log=True)
            found = self._compiled(values) if leasts.min(initial=1.0) > 0.0 else None
            if found is not None:
                return found[0] + float(shifts.sum()), found[1]
        return self._general(logs)

    def _compiled(self, values: Floats) -> tuple[float, Floats] | None:
        from suffice.kernels.compiled import junction_tree as loops

        program, buffer = self._work or self._prepared()
        buffer[program.inputs : program.inputs + len(values)] = values
        floors = np.ones(len(self.layout.cliques))
        floor = loops.calibrate(program.numbers, program.offsets, buffer, floors, program.entries.ravel(), True)
        if floor < ENOUGH:
            return None
        loops.leave(program.numbers, program.offsets, buffer, program.exits.ravel())
        marginals = buffer[program.outputs : program.outputs + len(values)].copy()
        return float(buffer[program.logs] * np.log(2.0)), marginals

    def _prepared(self) -> tuple[Program, Floats]:
        """The program and a buffer whose potentials are ones."""
        program = program_for(self.layout, Wiring(1, self.scopes, self.scopes, separate=True))
        self._work = program, np.ones(program.length)
        return self._work

    def _general(self, logs: Floats) -> tuple[float, Floats]:
        layout = self.layout
        potentials = Potentials(layout, self.scopes, logs, log=True)
        beliefs = calibrate(potentials, {})
        marginals = [
            project(beliefs.tables[home], layout.cliques[home], scope).ravel()
            for scope, home in zip(self.scopes, potentials.homes, strict=True)
        ]
        return beliefs.log_z, np.concatenate([np.zeros(0), *marginals])
