"""Networks of tables as files hold them, before any model is made of them.

Every reader of a foreign format fills a `Draft`, whose `finish` checks the whole and gives a `TableNetwork`; every
writer takes one. In memory a table has one axis for each parent, in the order in which the parents are declared, and
the node last: P(node | parents), shape (card of parent 1, ..., card of parent k, card of node). Each format says how
its own order maps to this one.

Printed tables are rounded. A row whose sum is within 1e-12 of one is left as it is, to the bit; one within 1e-2 is
divided by its sum and counted in a note; anything else is refused, as are negative and infinite values and NaN.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from suffice.array_types import Floats
from suffice.domain import Domain, Variable
from suffice.errors import FileFormatError, SizeError, listing
from suffice.records import record, replace, set_fields

#: Sums this close to one are exact: the rounding of adding up a thousand float64.
EXACT = 1e-12
#: Sums this close to one are rounded print; 1e-12 more, since 1 - 0.99 is not 0.01 in binary.
ROUNDED = 1e-2 + 1e-12
#: A few bytes may declare a table of any size; no file may ask for more than a gibibyte of cells.
MOST_CELLS = 2**27
#: What some formats need and this one has not: tools write it for a network without a name, and readers drop it.
NAMELESS = "unknown"
#: Which parent of a table varies fastest after the node: the last one ("forward"), or the first.
#: NumPy's number of axes.
MOST_AXES = 64


@record(frozen=True, eq=False)
class GradedCauses:
    """P(node | parents) of a noisy-MAX, in its parts: the node is in the largest state that a cause brings about.

    `order` lists the codes of the states of the node from the lowest, `inactive` the code of the state of each parent
    that causes nothing. `leak` (card,) and, for each parent in declared order, `effects` (card of the parent, card) say
    what each cause brings about by itself, in codes.
    """

    order: tuple[int, ...]
    inactive: tuple[int, ...]
    leak: Floats
    effects: tuple[Floats, ...]

    def table(self) -> Floats:
        """The whole table, with axes (parents, node): the distribution functions of the causes are multiplied."""
        below = np.cumsum(self.leak[list(self.order)])
        for axis, effect in enumerate(self.effects):
            shape = [1] * len(self.effects) + [-1]
            shape[axis] = len(effect)
            below = below * np.cumsum(effect[:, self.order], axis=1).reshape(shape)
        return np.ascontiguousarray(np.diff(below, axis=-1, prepend=0.0)[..., np.argsort(self.order)])


@record(frozen=True, eq=False)
class TableNetwork:
    """A directed network of tables.

    Args:
        domain: All variables, discrete, in the order of the file.
        parents: Node -> its parents, in the order of the axes of its table.
        tables: Node -> P(node | parents), shape (parents ..., node); the last axis sums to one.
        causes: Node -> what stands in place of a table, of a noisy-MAX.
        notes: What the reader changed, in words.
        properties: What the file says beside the model; only parts that are there: ``"name"`` (text), ``"network"``
            (texts), ``"variables"`` and ``"tables"`` (node -> texts).
    """

    domain: Domain
    parents: dict[Hashable, tuple[Hashable, ...]]
    tables: dict[Hashable, Floats]
    notes: tuple[str, ...]
    properties: dict[str, Any]
    causes: dict[Hashable, GradedCauses]

    def __init__(
        self,
        domain: Domain,
        parents: dict[Hashable, tuple[Hashable, ...]],
        tables: dict[Hashable, Floats],
        notes: tuple[str, ...] = (),
        properties: dict[str, Any] | None = None,
        causes: dict[Hashable, GradedCauses] | None = None,
    ) -> None:
        """See the class."""
        beside, graded = properties or {}, causes or {}
        set_fields(self, domain=domain, parents=parents, tables=tables, notes=notes, properties=beside, causes=graded)

    def table(self, node: Hashable) -> Floats:
        """P(node | parents), written out where the file holds causes; one that is too large is an error."""
        if node not in self.causes:
            return self.tables[node]
        size = math.prod(self.domain.shape((*self.parents[node], node)))
        if size > MOST_CELLS or len(self.parents[node]) >= MOST_AXES:
            raise SizeError(
                f"The table of {node!r} has {size:,} cells; the format has no noisy-MAX nodes. Write '.xdsl', '.json' "
                "or '.suffice'."
            )
        return self.causes[node].table()


@record(frozen=True, eq=False)
class FactorNetwork:
    """An undirected network: the product of non-negative tables, not normalised.

    Args:
        domain: All variables, discrete, in the order of the file.
        factors: Pairs of a scope (names) and a table with one axis for each name, in that order.
        notes: What the reader changed, in words.
    """

    domain: Domain
    factors: tuple[tuple[tuple[Hashable, ...], Floats], ...]
    notes: tuple[str, ...] = ()


class Places(Protocol):
    """A file that can say where something in it stands."""

    def error(self, message: str, position: int) -> FileFormatError:
        """The error for what stands at a place, with the name of the file, the line and the column."""


@record(frozen=True, eq=False)
class _Definition:
    parents: tuple[Hashable, ...]
    table: Floats
    position: int
    rows_at: Mapping[int, int]
    causes: GradedCauses | None = None


def faulty_row(table: Floats) -> tuple[int, str] | None:
    """The first row that is no distribution, and why; `table` has shape (rows, card)."""
    with np.errstate(invalid="ignore", over="ignore"):
        sums = table.sum(axis=1)
        good = (np.abs(sums - 1.0) <= ROUNDED) & (table >= 0.0).all(axis=1)
    if good.all():
        return None
    row = int(np.flatnonzero(~good)[0])
    values = table[row].tolist()
    odd = next((value for value in values if not math.isfinite(value) or value < 0.0), None)
    if odd is None:
        return row, f"sums to {float(sums[row])!r}; expected 1, give or take 0.01"
    return row, f"holds {odd!r}; a probability is finite and not negative"


def row_label(variables: Sequence[Variable], row: int) -> str:
    """The states of the parents in a row of a table, by name: ``'rain'='yes', 'wind'='low'``."""
    parts = []
    for variable in reversed(variables):
        row, code = divmod(row, variable.card)
        parts.append(f"{variable.name!r}={variable.states[code]!r}")
    return ", ".join(reversed(parts))


def row_name(node: Hashable, variables: Sequence[Variable], row: int) -> str:
    """Which row of which table, in words."""
    return f"node {node!r}, row ({row_label(variables, row)})" if variables else f"node {node!r}"


class Draft:
    """Variables and tables as a reader meets them, with the place of each for messages."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._variables: dict[Hashable, Variable] = {}
        self._codes: dict[Hashable, dict[Hashable, int]] = {}
        self._positions: dict[Hashable, int] = {}
        self._definitions: dict[Hashable, _Definition] = {}
        self._cells = 0

    def declare(self, name: Hashable, states: Sequence[Hashable], position: int) -> None:
        """Add a variable with its states in order."""
        if name in self._variables:
            raise self._places.error(f"variable {name!r} is declared twice; names must differ", position)
        codes = {state: code for code, state in enumerate(states)}
        if not states:
            raise self._places.error(f"variable {name!r} has no states; at least one is needed", position)
        if len(codes) != len(states):
            twice = next(state for code, state in enumerate(states) if codes[state] != code)
            raise self._places.error(
                f"variable {name!r} declares the state {twice!r} twice; states must differ", position
            )
        self._variables[name] = Variable.discrete(name, states)
        self._codes[name] = codes
        self._positions[name] = position

    def __contains__(self, name: Hashable) -> bool:
        """Whether the variable is declared."""
        return name in self._variables

    def variable(self, name: Hashable) -> Variable:
        """A declared variable."""
        return self._variables[name]

    def codes(self, name: Hashable) -> Mapping[Hashable, int]:
        """State -> position, of a declared variable."""
        return self._codes[name]

    def family(self, node: Hashable, parents: Sequence[Hashable], position: int) -> tuple[int, ...]:
        """Shape of the table of a node, once it is sure that such a table may be made."""
        return self._sized(node, self._shape(node, parents, position), position)

    def _shape(self, node: Hashable, parents: Sequence[Hashable], position: int) -> tuple[int, ...]:
        """Shape of the table of a node whose family is sound, whatever its size."""
        if node not in self._variables:
            known = listing(self._variables)
            raise self._places.error(
                f"there is a table for {node!r}, which is no variable here; known: {known}", position
            )
        if node in self._definitions:
            raise self._places.error(f"node {node!r} has two tables; expected one", position)
        if len(parents) >= MOST_AXES:
            raise self._places.error(
                f"node {node!r} has {len(parents)} parents; at most {MOST_AXES - 1} are read", position
            )
        for number, parent in enumerate(parents):
            if parent not in self._variables:
                known = listing(self._variables)
                raise self._places.error(
                    f"node {node!r} has the parent {parent!r}, which is no variable here; known: {known}", position
                )
            if parent == node or parent in parents[:number]:
                again = "itself as a parent" if parent == node else f"the parent {parent!r} twice"
                raise self._places.error(f"node {node!r} has {again}", position)
        return tuple(self._variables[name].card for name in (*parents, node))

    def _sized(self, node: Hashable, shape: tuple[int, ...], position: int) -> tuple[int, ...]:
        self._cells += math.prod(shape)
        if self._cells > MOST_CELLS:
            size = math.prod(shape)
            raise self._places.error(
                f"the table of node {node!r} has {size} cells; a file may have {MOST_CELLS}", position
            )
        return shape

    def define(
        self,
        node: Hashable,
        parents: Sequence[Hashable],
        table: Floats,
        position: int,
        *,
        rows_at: Mapping[int, int] | None = None,
    ) -> None:
        """Set the table of a node: an array of the shape that `family` gave; `rows_at` has places of rows."""
        self._definitions[node] = _Definition(tuple(parents), table, position, rows_at or {})

    def fill(self, node: Hashable, parents: Sequence[Hashable], values: Floats, position: int) -> None:
        """Set the table of a node from flat values in the order of memory: parents as declared, then the node."""
        shape = self.family(node, parents, position)
        if values.size != math.prod(shape):
            times = " x ".join(map(str, shape))
            raise self._places.error(
                f"the table of node {node!r} has {values.size} values; expected {math.prod(shape)} ({times} for "
                f"{listing((*parents, node))})",
                position,
            )
        self.define(node, parents, values.reshape(shape), position)

    def choose(self, node: Hashable, parents: Sequence[Hashable], states: Sequence[Hashable], position: int) -> None:
        """Set the table of a node that is a function of its parents, from its state in each row."""
        shape = self.family(node, parents, position)
        codes = self._codes[node]
        if len(states) != math.prod(shape[:-1]):
            raise self._places.error(
                f"node {node!r} has {len(states)} resulting states; expected {math.prod(shape[:-1])}, one for each row",
                position,
            )
        if unknown := [state for state in states if state not in codes]:
            known = listing(codes)
            raise self._places.error(f"node {node!r} has the resulting state {unknown[0]!r}; known: {known}", position)
        table = np.zeros((len(states), shape[-1]))
        table[np.arange(len(states)), [codes[state] for state in states]] = 1.0
        self.define(node, parents, table.reshape(shape), position)

    def cause(
        self,
        node: Hashable,
        parents: Sequence[Hashable],
        strengths: Sequence[int],
        values: Floats,
        position: int,
    ) -> None:
        """Set a noisy-MAX from the codes of the states of all parents, strongest first, and what each brings about.

        The states of the node stand from the highest to the lowest. The last state of each parent causes nothing, and
        the leak comes last.
        """
        *cards, card = self._shape(node, parents, position)
        if len(strengths) != sum(cards) or values.size != (sum(cards) + 1) * card:
            raise self._places.error(
                f"the noisy-MAX node {node!r} has {len(strengths)} strengths and {values.size} parameters; expected "
                f"{sum(cards)}, one for each state of its parents, and {(sum(cards) + 1) * card}, {card} for each of "
                "these and for the leak",
                position,
            )
        rows = values.reshape(-1, card)
        effects, inactive, first = [], [], 0
        for parent, states in zip(parents, cards, strict=True):
            order = list(strengths[first : first + states])
            if sorted(order) != list(range(states)):
                raise self._places.error(
                    f"the strengths of {parent!r} in node {node!r} are {listing(order)}; expected 0 to {states - 1}, "
                    "each once",
                    position,
                )
            resting = rows[first + states - 1]
            if not (resting[:-1] == 0).all() or abs(resting[-1] - 1.0) > EXACT:
                raise self._places.error(
                    f"the weakest state of {parent!r} brings about {resting.tolist()} in the noisy-MAX node {node!r}; "
                    "expected the last state of the node, for certain",
                    position,
                )
            inactive.append(order[-1])
            effects.append(rows[first : first + states][np.argsort(order)])
            first += states
        causes = GradedCauses(tuple(range(card))[::-1], tuple(inactive), rows[-1], tuple(effects))
        by_code = np.concatenate([*effects, rows[-1:]])
        self._definitions[node] = _Definition(tuple(parents), by_code, position, {}, causes)

    def finish(self, properties: Mapping[str, Any] | None = None) -> TableNetwork:
        """The network, once every node has a proper table and there is no cycle."""
        if not self._variables:
            raise self._places.error("no variable is declared", 0)
        for name in self._variables:
            if name not in self._definitions:
                raise self._places.error(f"node {name!r} has no table", self._positions[name])
        parents = {name: self._definitions[name].parents for name in self._variables}
        if cycle := find_cycle(parents):
            arrows = " -> ".join(map(repr, cycle))
            raise self._places.error(f"the parents form a cycle: {arrows}", self._definitions[cycle[0]].position)
        tables, notes = self._normalised()
        causes = {
            node: _causes_of(kept.causes, tables.pop(node)) for node, kept in self._definitions.items() if kept.causes
        }
        domain = Domain(self._variables.values())
        return TableNetwork(domain, parents, tables, notes, self._kept(properties or {}), causes)

    def _kept(self, properties: Mapping[str, Any]) -> dict[str, Any]:
        """The parts that say something, nodes in the order of the variables."""
        kept: dict[str, Any] = {"name": properties.get("name", ""), "network": tuple(properties.get("network", ()))}
        for part in ("variables", "tables"):
            texts = properties.get(part, {})
            kept[part] = {node: tuple(texts[node]) for node in self._variables if texts.get(node)}
        return {key: value for key, value in kept.items() if value}

    def _normalised(self) -> tuple[dict[Hashable, Floats], tuple[str, ...]]:
        """Tables whose rows sum to one, and a note if any did not."""
        tables: dict[Hashable, Floats] = {}
        total = rescaled = 0
        worst: tuple[float, str, float] = (0.0, "", 1.0)
        for node in self._variables:
            definition = self._definitions[node]
            rows = definition.table.reshape(-1, definition.table.shape[-1])
            with np.errstate(invalid="ignore", over="ignore"):
                sums = rows.sum(axis=1)
                off = np.abs(sums - 1.0)
            most = off.max()  # NaN if any is.
            if not (most <= ROUNDED and rows.min() >= 0.0):
                self._check(node, rows)
            total += len(rows)
            if most > EXACT:
                wrong = np.flatnonzero(off > EXACT)
                rescaled += len(wrong)
                rows = rows.copy()
                rows[wrong] /= sums[wrong, None]
                if most > worst[0]:
                    row = int(off.argmax())
                    worst = (float(most), self._row_name(node, row), float(sums[row]))
            tables[node] = rows.reshape(definition.table.shape)
        if not rescaled:
            return tables, ()
        return tables, (
            f"{rescaled} of {total} rows did not sum to one and were divided by their sum; the worst, {worst[1]}, "
            f"summed to {worst[2]!r}.",
        )

    def _parents(self, node: Hashable) -> list[Variable]:
        return [self._variables[parent] for parent in self._definitions[node].parents]

    def _check(self, node: Hashable, rows: Floats) -> None:
        if fault := faulty_row(rows):
            row, reason = fault
            definition = self._definitions[node]
            position = definition.rows_at.get(row, definition.position)
            raise self._places.error(f"{self._row_name(node, row)} {reason}", position)

    def _row_name(self, node: Hashable, row: int) -> str:
        """Which row, in words: of a table by the states of the parents, of a noisy-MAX by the cause."""
        parents = self._parents(node)
        if self._definitions[node].causes is None:
            return row_name(node, parents, row)
        causes = [f"{parent.name!r}={state!r}" for parent in parents for state in parent.states]
        return f"node {node!r}, cause {[*causes, 'leak'][row]}"


def _causes_of(causes: GradedCauses, rows: Floats) -> GradedCauses:
    """The causes with rows that sum to one."""
    ends = np.cumsum([len(effect) for effect in causes.effects], dtype=int).tolist()
    *effects, leak = np.split(rows, ends)
    return replace(causes, leak=leak[0], effects=tuple(effects))


def find_cycle(parents: Mapping[Hashable, Sequence[Hashable]]) -> list[Hashable]:
    """One directed cycle, from a node along the arrows back to it, or an empty list."""
    waiting = {node: len(above) for node, above in parents.items()}
    children: dict[Hashable, list[Hashable]] = {node: [] for node in parents}
    for node, above in parents.items():
        for parent in above:
            children[parent].append(node)
    ready = [node for node, count in waiting.items() if not count]
    while ready:
        node = ready.pop()
        del waiting[node]
        for child in children[node]:
            waiting[child] -= 1
            if not waiting[child]:
                ready.append(child)
    if not waiting:
        return []
    # Every node left has a parent that is left: walking up must meet a node again.
    path: dict[Hashable, None] = {}
    node = next(iter(waiting))
    while node not in path:
        path[node] = None
        node = next(parent for parent in parents[node] if parent in waiting)
    walk = list(path)
    return [node, *reversed(walk[walk.index(node) :])]
