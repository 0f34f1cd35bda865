"""Exact sums over discrete variables by a junction tree: potentials in, beliefs and log Z out.

`Potentials` holds the factors of one model; `calibrate` gives the beliefs of all cliques under evidence, `log_sum` only
log Z, `maximize` the best assignment. Each runs in NumPy or compiled, on scaled numbers; where their range is too wide
for that, which the floors of the tree tell, it is done again with logarithms.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, overload

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.kernels.choice import use_compiled
from suffice.kernels.junction_tree_layout import TreeLayout
from suffice.kernels.junction_tree_numpy import (
    Linear,
    Logarithmic,
    aligned,
    best_states,
    clique_tables,
    collect,
    distribute,
)
from suffice.kernels.junction_tree_potentials import Potentials, Scaled
from suffice.records import record

# Small work never comes to it.
if TYPE_CHECKING:
    from suffice.kernels.junction_tree_program import Program


ENOUGH = 2.0**-960
"""Floors below this leave too little room above the smallest double."""

KERNEL = "junction tree"
_EDGE = 3e-5  # NumPy path, seconds: an edge of the tree, and a number touched.
_TOUCH = 1.5e-9

Likelihoods = Mapping[int, Scaled]
"""Evidence: for some variables, how likely it is in each of their states."""


class Views(Sequence[Floats]):
    """Arrays that lie in one buffer, seen as arrays when they are asked for: a question needs few of them."""

    def __init__(self, buffer: Floats, starts: Sequence[int], shapes: Sequence[tuple[int, ...]]) -> None:
        """Take the buffer, and where each array begins in it."""
        self._buffer, self._starts, self._shapes = buffer, starts, shapes

    def __len__(self) -> int:
        return len(self._starts)

    @overload
    def __getitem__(self, index: int) -> Floats: ...

    @overload
    def __getitem__(self, index: slice) -> list[Floats]: ...

    def __getitem__(self, index: int | slice) -> Floats | list[Floats]:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        shape, start = self._shapes[index], self._starts[index]
        return self._buffer[start : start + math.prod(shape)].reshape(shape)


@record(frozen=True)
class CliqueBeliefs:
    """Result of a calibration: the distribution of each clique, axes in the order of its variables.

    known: the distribution of each variable, where it is at hand.
    """

    layout: TreeLayout
    log_z: float
    tables: Sequence[Floats]
    known: Sequence[Floats] | None = None

    @cached_property
    def singles(self) -> Sequence[Floats]:
        """The distribution of each variable."""
        if self.known is not None:
            return self.known
        cliques, homes = self.layout.cliques, self.layout.homes
        return [
            self.tables[home].sum(axis=tuple(axis for axis, other in enumerate(cliques[home]) if other != variable))
            for variable, home in enumerate(homes)
        ]


def numpy_seconds(layout: TreeLayout, batch: int = 1) -> float:
    """Estimated time of one calibration on the NumPy path."""
    return _EDGE * (1 + len(layout.edges)) + _TOUCH * batch * (layout.touches + layout.cells)


def calibrate(potentials: Potentials, likelihoods: Likelihoods) -> CliqueBeliefs:
    """Beliefs of all cliques, and log of the sum of the product of all factors and likelihoods."""
    if use_compiled(KERNEL, numpy_seconds(potentials.layout)):
        beliefs = _calibrate_compiled(potentials, likelihoods)
    else:
        beliefs = _calibrate_linear(potentials, likelihoods)
    return beliefs or _calibrate_logs(potentials, likelihoods)


def log_sum(potentials: Potentials, likelihoods: Likelihoods) -> float:
    """Log of the sum of the product of all factors and likelihoods."""
    shift = _shift(potentials, likelihoods)
    if use_compiled(KERNEL, numpy_seconds(potentials.layout) / 2):
        program, buffer, floor = _run(potentials, likelihoods, both=False)
        if floor >= ENOUGH:
            return float(buffer[program.logs] * np.log(2.0)) + shift
    else:
        tables, algebra = _linear(potentials, likelihoods)
        collect(potentials.layout, tables, algebra)
        if algebra.floors.min(initial=1.0) >= ENOUGH:
            return float(algebra.log_z[0]) + shift
    logs = Logarithmic(1)
    collect(potentials.layout, _log_tables(potentials, likelihoods), logs)
    return float(logs.log_z[0]) + shift


def maximize(potentials: Potentials, likelihoods: Likelihoods) -> tuple[NDArray[np.int64], float]:
    """The best states (variables,) and the log of the product of all factors and likelihoods there."""
    layout = potentials.layout
    tables = _log_tables(potentials, likelihoods)
    algebra = Logarithmic(1, maximum=True)
    collect(layout, tables, algebra)
    return best_states(layout, tables)[0], float(algebra.log_z[0]) + _shift(potentials, likelihoods)


def _shift(potentials: Potentials, likelihoods: Likelihoods) -> float:
    return potentials.shift + float(sum(likelihood.shift for likelihood in likelihoods.values()))


# NumPy path ----------------------------------------------------------------------------------------------------------


def _linear(potentials: Potentials, likelihoods: Likelihoods) -> tuple[list[Floats], Linear]:
    """Potentials times likelihoods, and the algebra to pass messages between them."""
    layout = potentials.layout
    tables = clique_tables(layout, potentials.fresh(), 1)
    algebra = Linear(layout, 1, potentials.floors)
    for variable, likelihood in likelihoods.items():
        home = layout.homes[variable]
        tables[home] *= aligned(likelihood.values[:, None], (variable,), layout.cliques[home])
        algebra.floors[home] *= likelihood.least
    return tables, algebra


def _calibrate_linear(potentials: Potentials, likelihoods: Likelihoods) -> CliqueBeliefs | None:
    layout = potentials.layout
    tables, algebra = _linear(potentials, likelihoods)
    messages = collect(layout, tables, algebra)
    if algebra.floors.min(initial=1.0) < ENOUGH:
        return None
    distribute(layout, tables, messages, algebra)
    log_z = float(algebra.log_z[0]) + _shift(potentials, likelihoods)
    return CliqueBeliefs(layout, log_z, [table[..., 0] for table in tables])


def _log_tables(potentials: Potentials, likelihoods: Likelihoods) -> list[Floats]:
    layout = potentials.layout
    tables = clique_tables(layout, potentials.fresh(logarithms=True), 1)
    for variable, likelihood in likelihoods.items():
        home = layout.homes[variable]
        tables[home] += aligned(likelihood.logarithms[:, None], (variable,), layout.cliques[home])
    return tables


def _calibrate_logs(potentials: Potentials, likelihoods: Likelihoods) -> CliqueBeliefs:
    layout = potentials.layout
    tables = _log_tables(potentials, likelihoods)
    algebra = Logarithmic(1)
    distribute(layout, tables, collect(layout, tables, algebra), algebra)
    log_z = float(algebra.log_z[0]) + _shift(potentials, likelihoods)
    return CliqueBeliefs(layout, log_z, [np.exp(table[..., 0]) for table in tables])


# Compiled path -------------------------------------------------------------------------------------------------------


def _run(potentials: Potentials, likelihoods: Likelihoods, *, both: bool) -> tuple[Program, Floats, float]:
    """Follow the program in a fresh buffer; returns the program, the buffer and the least floor."""
    from suffice.kernels.compiled import junction_tree as loops
    from suffice.kernels.junction_tree_program import Wiring, program_for

    layout, factors = potentials.layout, len(potentials.scopes)
    program = program_for(layout, Wiring(1, (*potentials.scopes, *layout.singles), layout.singles))
    buffer = np.empty(program.length)
    buffer[: program.cells] = 1.0
    buffer[program.inputs : program.inputs + len(potentials.values)] = potentials.values
    chosen = list(range(factors))
    for variable, likelihood in likelihoods.items():
        chosen.append(factors + variable)
        start = int(program.entries[factors + variable, 1])
        buffer[start : start + len(likelihood.values)] = likelihood.values
    entries = program.entries[chosen].ravel()
    floor = loops.calibrate(program.numbers, program.offsets, buffer, potentials.kept, entries, both)
    if both:
        loops.leave(program.numbers, program.offsets, buffer, program.exits.ravel())
    return program, buffer, min(floor, min((likelihood.least for likelihood in likelihoods.values()), default=1.0))


def _calibrate_compiled(potentials: Potentials, likelihoods: Likelihoods) -> CliqueBeliefs | None:
    layout = potentials.layout
    program, buffer, floor = _run(potentials, likelihoods, both=True)
    if floor < ENOUGH:
        return None
    tables = Views(buffer, program.starts, layout.shapes)
    singles = Views(buffer, program.exits_at, [(card,) for card in layout.cards])
    log_z = float(buffer[program.logs] * np.log(2.0)) + _shift(potentials, likelihoods)
    return CliqueBeliefs(layout, log_z, tables, singles)
