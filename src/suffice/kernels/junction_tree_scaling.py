"""Proportional fitting of margins on a calibrated junction tree, by a walk from clique to clique.

The walk starts at the root, fits in each clique the margins that live there, and goes on to a child with the message
new separator / old separator; coming back it brings such a message to the parent. So the clique at hand always holds
its marginal under the present distribution, and a sweep passes each edge twice, as one calibration does. Parts of the
tree without margins are not entered: nothing changes there but by messages that no one reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.kernels.choice import use_compiled
from suffice.kernels.junction_tree_layout import Edge, TreeLayout, other_axes
from suffice.kernels.junction_tree_moments import CliqueMoments
from suffice.kernels.junction_tree_program import Program

KERNEL = "junction tree walk"
_STEP = 1e-5  # NumPy path, seconds: a step of the walk, and a number touched.
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
        if self.logs.any():
            self.log_z = self.moments.beliefs(self.logs, self._buffer[: self._program.cells])
        else:  # As most fits begin: all joint states have the same probability.
            for table in self._tables:
                table[...] = 1.0 / table.size
            self.log_z = float(np.log(self.layout.cards).sum())
        for edge, separator in zip(self.layout.edges, self._separators, strict=True):
            np.add.reduce(self._tables[edge.child], axis=edge.child_axes, out=separator)

    def sweep(self) -> float:
        """Fit every margin once; returns the largest difference before the fits.

        A target above 0 where the model has 0 raises `UnreachableError`.
        """
        if not use_compiled(KERNEL, self._seconds):
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                for step in self.steps:
                    self._walk(step)
            return self._account(self.steps, slice(0, len(self.targets)))
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
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                self._walk(step)
            if isinstance(step, FitMargin):
                part = slice(self.moments.ends[step.number], self.moments.ends[step.number + 1])
                yield step.number, self._account([step], part)

    def _walk(self, step: FitMargin | PassMessage) -> None:
        """One step in NumPy; `_account` takes its fits into the log-potentials."""
        if not isinstance(step, FitMargin):
            self._move(self.layout.edges[step.number], self._separators[step.number], step.upward)
            return
        table, summed, target, wanted, margin, ratio = self._fits[step.number]
        np.add.reduce(table, axis=summed, out=margin, keepdims=True)
        np.divide(target, margin, out=ratio, where=wanted)
        np.multiply(table, ratio, out=table)

    def _account(self, steps: Sequence[FitMargin | PassMessage], part: slice) -> float:
        """Add what steps have done to the log-potentials of a part; returns the largest difference before their fits.

        A target that none of them could reach raises `UnreachableError`.
        """
        places, targets = self._places[part], self.targets[part]
        margins, ratios = self._fitted[0, places], self._fitted[1, places]
        if ((margins <= 0.0) & (targets > 0.0)).any():
            every = self._fitted[0, self._places]
            fits = (step for step in steps if isinstance(step, FitMargin))
            self._refuse(next(step for step in fits if self._lacking(step, every).any()), every)
        with np.errstate(divide="ignore"):
            self.logs[part] += np.log(ratios)
        return float(np.abs(targets - margins).max(initial=0.0))

    @cached_property
    def _fitted(self) -> Floats:
        """Margins and ratios of the last fits (2, numbers), each table with its axes in the order of its clique."""
        return np.zeros((2, len(self.targets)))

    @cached_property
    def _places(self) -> NDArray[np.intp]:
        """Where the numbers of all margins are in `_fitted`."""
        places = np.arange(len(self.targets))
        for number, scope in enumerate(self.moments.scopes):
            part = slice(self.moments.ends[number], self.moments.ends[number + 1])
            clique = self.layout.cliques[self.moments.homes[number]]
            kept = [variable for variable in clique if variable in scope]
            order = [kept.index(variable) for variable in scope]
            places[part] = places[part].reshape(self.layout.shape(kept)).transpose(order).ravel()
        return places

    @cached_property
    def _fits(self) -> list[tuple[Any, ...]]:
        """Of each margin the table of its clique, the axes to sum, target, where that is above 0, margin and ratio."""
        targets = np.zeros(len(self.targets))
        targets[self._places] = self.targets
        fits: list[tuple[Any, ...]] = []
        for number, scope in enumerate(self.moments.scopes):
            part = slice(self.moments.ends[number], self.moments.ends[number + 1])
            home = self.moments.homes[number]
            clique, table = self.layout.cliques[home], self._tables[home][..., 0]
            shape = [self.layout.cards[variable] if variable in scope else 1 for variable in clique]
            target, margin, ratio = (
                numbers[part].reshape(shape) for numbers in (targets, self._fitted[0], self._fitted[1])
            )
            wanted = True if self.positive else target > 0.0
            fits.append((table, other_axes(clique, scope), target, wanted, margin, ratio))
        return fits

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

    def _lacking(self, step: FitMargin, margins: Floats) -> NDArray[np.bool_]:
        """Where the margin of a step has 0 and its target more; margins of all scopes, as they were found."""
        part = slice(self.moments.ends[step.number], self.moments.ends[step.number + 1])
        return np.asarray((margins[part] <= 0.0) & (self.targets[part] > 0.0))

    def _refuse(self, step: FitMargin | PassMessage, margins: Floats) -> None:
        assert isinstance(step, FitMargin)
        cell = int(np.argmax(self._lacking(step, margins)))
        raise UnreachableError(step.number, cell, float(self.targets[self.moments.ends[step.number] + cell]))


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
