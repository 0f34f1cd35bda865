"""Proportional fitting of margins on a calibrated junction tree, by a walk from clique to clique.

The walk starts at the root, fits in each clique the margins that live there, and goes on to a child with the message
new separator / old separator; coming back it brings such a message to the parent. So the clique at hand always holds
its marginal under the present distribution, and a sweep passes each edge twice, as one calibration does. Parts of the
tree without margins are not entered: nothing changes there but by messages that no one reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.kernels.choice import use_compiled
from suffice.kernels.junction_tree_layout import Edge, TreeLayout
from suffice.kernels.junction_tree_moments import CliqueMoments
from suffice.kernels.junction_tree_numpy import aligned, project
from suffice.kernels.junction_tree_program import Program

KERNEL = "junction tree walk"
_STEP = 3e-5  # NumPy path, seconds: a step of the walk, and a number touched.
_TOUCH = 1.5e-9
_SIDE = 8  # Numbers of a side.


@dataclass(frozen=True)
class FitMargin:
    """The margin `number` is fitted in its clique."""

    number: int
    clique: int


@dataclass(frozen=True)
class PassMessage:
    """A message over the edge `number` of the layout, to the parent if upward."""

    number: int
    upward: bool


def walk(layout: TreeLayout, homes: Sequence[int]) -> list[FitMargin | PassMessage]:
    """The steps of one sweep; homes: the clique of each margin."""
    fits: dict[int, list[FitMargin]] = {}
    for number, clique in enumerate(homes):
        fits.setdefault(clique, []).append(FitMargin(number, clique))
    children: dict[int, list[int]] = {}
    for clique in layout.order:  # Children come before their parent, so what lies below a clique is known by then.
        if clique in fits or clique in children:
            children.setdefault(layout.parents[clique], []).append(clique)
    numbers = {edge.child: number for number, edge in enumerate(layout.edges)}
    steps: list[FitMargin | PassMessage] = []
    ahead: list[int | PassMessage] = [*reversed(children.get(-1, []))]
    while ahead:
        goal = ahead.pop()
        if isinstance(goal, PassMessage):
            steps.append(goal)
            continue
        if goal in numbers:
            steps.append(PassMessage(numbers[goal], upward=False))
            ahead.append(PassMessage(numbers[goal], upward=True))
        steps.extend(fits.get(goal, []))
        ahead.extend(reversed(children.get(goal, [])))
    return steps


class Scaling:
    """Proportional fitting of the margins of all scopes of `moments`.

    targets: the margins one after another, axes in the order of the scope, each of sum 1. `logs` are log-potentials in
    the same order, and `log_z` is the log of their partition function, which updates do not change.
    """

    def __init__(self, moments: CliqueMoments, targets: Floats) -> None:
        self.moments = moments
        self.layout = layout = moments.layout
        self.targets = targets
        #: Whether no target is 0.
        self.positive = bool((targets > 0.0).all())
        self._program = program = moments.program
        self.steps, self._rows = _walk_of(moments)
        self.logs = np.zeros(len(targets))
        self.log_z = 0.0
        self._buffer = np.zeros(program.length)
        self._buffer[program.inputs : program.inputs + len(targets)] = targets
        self._ratios = self._buffer[program.outputs : program.outputs + len(targets)]
        self._tables = [
            self._buffer[start : start + size].reshape((*shape, 1))
            for start, size, shape in zip(program.starts, layout.sizes, layout.shapes, strict=True)
        ]
        self._separators = [
            self._buffer[start : start + layout.separator_sizes[edge.child]].reshape(
                (*layout.shape(layout.separators[edge.child]), 1)
            )
            for edge, start in zip(layout.edges, program.messages[:, 0].tolist(), strict=True)
        ]
        #: Cells that one sweep passes over.
        self.work = sum(layout.sizes[home] for home in moments.homes) + layout.touches
        self._seconds = _STEP * len(self.steps) + _TOUCH * self.work

    def restart(self, logs: Floats) -> None:
        """Begin at log-potentials (n,), none of them NaN or plus infinity."""
        self.logs = np.array(logs, dtype=np.float64)
        self.log_z = self.moments.beliefs(self.logs, self._buffer[: self._program.cells])
        for edge, separator in zip(self.layout.edges, self._separators, strict=True):
            np.add.reduce(self._tables[edge.child], axis=edge.child_axes, out=separator)

    def sweep(self) -> float:
        """Fit every margin once; returns the largest difference before the fits.

        A target above 0 where the model has 0 raises `UnreachableError`.
        """
        if not use_compiled(KERNEL, self._seconds):
            return max((difference for _, difference in self.updates()), default=0.0)
        from suffice.kernels.compiled import junction_tree as loops

        program = self._program
        most, stop = loops.walk(program.numbers, program.offsets, self._buffer, self._rows)
        if stop < len(self.steps):
            self._refuse(self.steps[int(stop)], self._ratios)
        if self.positive:  # Then all ratios are.
            self.logs = self.logs + np.log(self._ratios)
        else:
            with np.errstate(divide="ignore"):
                self.logs = self.logs + np.log(self._ratios)
        return float(most)

    def updates(self) -> Iterator[tuple[int, float]]:
        """The same sweep fit by fit: yields the number of the margin, and its largest difference before."""
        for step in self.steps:
            if isinstance(step, FitMargin):
                yield step.number, self._fit(step)
            else:
                self._move(self.layout.edges[step.number], self._separators[step.number], step.upward)

    def _fit(self, step: FitMargin) -> float:
        layout, scope = self.layout, self.moments.scopes[step.number]
        part = slice(self.moments.ends[step.number], self.moments.ends[step.number + 1])
        target, table = self.targets[part], self._tables[step.clique]
        margin = project(table[..., 0], layout.cliques[step.clique], scope).ravel()
        if ((margin <= 0.0) & (target > 0.0)).any():
            self._ratios[part] = margin
            self._refuse(step, self._ratios)
        ratio = np.divide(target, margin, out=np.zeros_like(target), where=margin > 0.0)
        table *= aligned(ratio.reshape(layout.shape(scope)), scope, layout.cliques[step.clique])[..., None]
        with np.errstate(divide="ignore"):
            self.logs[part] += np.log(ratio)
        return float(np.abs(target - margin).max())

    def _move(self, edge: Edge, separator: Floats, upward: bool) -> None:
        if upward:
            new = np.add.reduce(self._tables[edge.child], axis=edge.child_axes)
        else:
            new = np.add.reduce(self._tables[edge.parent], axis=edge.parent_axes).transpose(edge.back_order)
        ratio = np.divide(new, separator, out=np.zeros_like(separator), where=separator > 0.0)
        separator[...] = new
        if upward:
            self._tables[edge.parent] *= ratio.transpose(edge.parent_order)[edge.parent_index]
        else:
            self._tables[edge.child] *= ratio[edge.child_index]

    def _refuse(self, step: FitMargin | PassMessage, margins: Floats) -> None:
        assert isinstance(step, FitMargin)
        part = slice(self.moments.ends[step.number], self.moments.ends[step.number + 1])
        cell = int(np.argmax((margins[part] <= 0.0) & (self.targets[part] > 0.0)))
        raise UnreachableError(step.number, cell, float(self.targets[part][cell]))


class UnreachableError(Exception):
    """A margin asks for probability where the model has none: number of the scope, cell, and what it asks for."""

    def __init__(self, number: int, cell: int, wanted: float) -> None:
        super().__init__(number, cell, wanted)
        self.number, self.cell, self.wanted = number, cell, wanted


def _walk_of(moments: CliqueMoments) -> tuple[list[FitMargin | PassMessage], NDArray[np.uint64]]:
    """The steps of a sweep and what the compiled loop reads, kept with the program."""
    kept = moments.program.derived
    if KERNEL not in kept:
        steps = walk(moments.layout, moments.homes)
        kept[KERNEL] = steps, _rows(moments.program, steps)
    steps_and_rows: tuple[list[FitMargin | PassMessage], NDArray[np.uint64]] = kept[KERNEL]
    return steps_and_rows


def _rows(program: Program, steps: Sequence[FitMargin | PassMessage]) -> NDArray[np.uint64]:
    """The steps as the compiled loop reads them (numbers,)."""
    entries, messages = program.entries, program.messages
    side, child, parent = entries[:, -_SIDE:], messages[:, -2 * _SIDE : -_SIDE], messages[:, -_SIDE:]
    own = np.ones((len(entries), 1), np.uint64)
    room = np.full((len(messages), 1), program.fresh, np.uint64)
    still = np.zeros_like(room)
    fits = np.hstack([own, entries[:, 1:3], program.exits[:, 1:2], side, side])
    rises = np.hstack([still, messages[:, :2], room, child, parent])
    falls = np.hstack([still, messages[:, :2], room, parent, child])
    count = len(fits)
    chosen = [
        step.number if isinstance(step, FitMargin) else count + step.number + (0 if step.upward else len(rises))
        for step in steps
    ]
    return np.concatenate([fits, rises, falls])[np.array(chosen, np.intp)].ravel()
