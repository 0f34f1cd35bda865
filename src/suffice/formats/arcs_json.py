"""Networks as JSON: nodes, arcs, and for each node a regression or a table; read only.

::

    {"nodes": ["age", "dose"],
     "arcs": [["age", "dose"]],
     "cpds": {
       "age": {"parents": [], "levels": ["young", "old"], "cpt": {"young": 0.6, "old": 0.4}},
       "dose": {"parents": ["age"], "dparents": ["age"], "gparents": [], "dlevels": {"age": ["young", "old"]},
                "coefficients": {"(Intercept)": {"0": 1.5, "1": 1}}, "sd": {"0": 0.5, "1": 0.25}}}}

An arc may also be ``{"from": ..., "to": ...}``. The kind of a node is its ``type``, or follows from its parts:

- ``discrete``: ``levels`` and ``cpt``; the rows of a node with parents have keys such as ``"age=young,sex=f"``.
- ``gaussian``: x = (Intercept) + sum of coefficient * parent + noise; each figure is a number or a list of one.
- ``cgnode``: the same for each configuration of the discrete parents ``dparents``. Configurations are numbered from 0
  by the levels in ``dlevels``, the first discrete parent fastest.

The noise has ``variance`` (or ``variances``), or the standard deviation ``sd``; it may be 0.
"""

from __future__ import annotations

import math
import os
import re
import reprlib
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from suffice.array_types import Floats
from suffice.domain import Variable
from suffice.errors import FileFormatError, listing
from suffice.formats import streams
from suffice.formats.networks import MOST_AXES, Draft, find_cycle
from suffice.models.bayesian.declaration import BayesianNetwork
from suffice.storage.document import parse

PARTS = ("nodes", "arcs", "cpds")
INTERCEPT = "(Intercept)"
#: Names of the noise -> the power that makes a variance of it.
NOISE = {"variance": 1, "variances": 1, "sd": 2}
#: The part that only nodes of a kind have, in the order in which they are looked for.
SIGNS = {"cpt": "discrete", "dparents": "cgnode", "coefficients": "gaussian"}

#: How files of the library itself begin; they need not be parsed twice.
_OWN = re.compile(rb'\s*\{\s*"format"\s*:')
_BETWEEN = re.compile(r"\s*[,;|&]\s*")


def holds_network(path: streams.FilePath) -> bool:
    """Whether a file is JSON that lists nodes and their distributions, and not one that the library wrote."""
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as stream:
        if _OWN.match(stream.read(64)):
            return False
    try:
        document = parse(streams.decoded(streams.read(path))[0])
    except FileFormatError:
        return False
    return type(document) is dict and "format" not in document and {"nodes", "cpds"} <= set(document)


def load(source: streams.Source) -> BayesianNetwork:
    """Read a network from a path (also gzipped) or a stream; it answers, samples and scores without a fit."""
    content = streams.read(source)
    text, notes = streams.decoded(content)
    try:
        document = parse(text)
    except FileFormatError as error:
        raise FileFormatError(f"{content.name}: {error}.") from error
    model = _NetworkReader(content.name, document).model()
    model.notes_ = (*notes, *model.notes_)
    return model


class _NetworkReader:
    """One file: its nodes in order, their parents and what it says about each."""

    def __init__(self, name: str, document: object) -> None:
        self._name = name
        if type(document) is not dict or not set(PARTS) <= set(document):
            have = listing(document) if type(document) is dict else f"a {type(document).__name__}"
            raise self.error(f"the file holds {have}; expected an object with {listing(PARTS)}")
        self._nodes = self._names(document["nodes"], "'nodes'")
        if not self._nodes:
            raise self.error("'nodes' is empty; expected at least one name")
        self._cpds = self._distributions(document["cpds"])
        self._parents: dict[Hashable, list[str]] = {
            node: self._names(self._part(node, "parents"), f"node {node!r}: 'parents'") for node in self._nodes
        }
        self._check_parents()
        self._check_arcs(document["arcs"])
        self._kinds = {node: self._kind(node) for node in self._nodes}

    def error(self, message: str, position: int = 0) -> FileFormatError:
        """The error of this file; values of JSON have no place, so that `at` says nothing."""
        return FileFormatError(f"{self._name}: {message}.")

    def model(self) -> BayesianNetwork:
        """The network, with every node as the file gives it."""
        values: dict[Hashable, Any] = {}
        notes: tuple[str, ...] = ()
        states: dict[Hashable, Any] = dict.fromkeys(self._nodes, "real")
        discrete = [node for node in self._nodes if self._kinds[node] == "discrete"]
        levels: dict[Hashable, Variable] = {}
        if discrete:
            tables = self._tables(discrete).finish()
            notes, levels = tables.notes, {variable.name: variable for variable in tables.domain.variables}
            values |= tables.tables
            states |= {node: list(variable.states) for node, variable in levels.items()}
        for node in self._nodes:
            if node not in levels:
                values[node] = self._regressions(node, levels)
        given = BayesianNetwork(self._parents, states=states, fixed=values)
        # Not fixed: like a network from any other file, this one learns anew from rows it is fitted to.
        plain = BayesianNetwork(self._parents, states=states).to_dict()
        fitted = {"nodes": [given.node(node).to_dict() for node in given.nodes]}
        model = BayesianNetwork.from_dict({**plain, "fitted": fitted, "summary": None, "report": None})
        model.notes_ = notes
        return model

    # -- structure ---------------------------------------------------------------------------------------------------

    def _names(self, value: object, what: str) -> list[str]:
        """A list of different texts."""
        if type(value) is not list or not all(type(name) is str for name in value):
            raise self.error(f"{what} is {_short(value)}; expected a list of names")
        counts = Counter(value)
        if len(counts) != len(value):
            raise self.error(f"{what} lists {counts.most_common(1)[0][0]!r} twice; names must differ")
        return value

    def _distributions(self, cpds: object) -> dict[str, dict[str, Any]]:
        if type(cpds) is not dict:
            raise self.error(f"'cpds' is {_short(cpds)}; expected an object with one entry for each node")
        for node in self._nodes:
            if type(cpds.get(node)) is not dict:
                raise self.error(f"node {node!r} has no entry in 'cpds'; expected an object")
        if others := list(cpds.keys() - set(self._nodes)):
            raise self.error(f"'cpds' has an entry for {min(others)!r}, which is not in 'nodes'")
        return cpds

    def _part(self, node: str, part: str) -> Any:
        if part not in self._cpds[node]:
            raise self.error(f"node {node!r} has no {part!r}; its entry has {listing(self._cpds[node])}")
        return self._cpds[node][part]

    def _check_parents(self) -> None:
        for node, parents in self._parents.items():
            if missing := [parent for parent in parents if parent not in self._parents]:
                raise self.error(f"node {node!r} has the parent {missing[0]!r}, which is not in 'nodes'")
        if cycle := find_cycle(self._parents):
            raise self.error(f"the parents form a cycle: {' -> '.join(map(repr, cycle))}")

    def _check_arcs(self, arcs: object) -> None:
        """Arcs and parents say the same."""
        if type(arcs) is not list:
            raise self.error(f"'arcs' is {_short(arcs)}; expected a list")
        listed: set[tuple[str, str]] = set()
        for arc in arcs:
            ends = [arc.get("from"), arc.get("to")] if type(arc) is dict else arc
            if type(ends) is not list or len(ends) != 2 or not all(type(end) is str for end in ends):
                raise self.error(f'an arc is {_short(arc)}; expected ["from", "to"] or {{"from": ..., "to": ...}}')
            start, end = ends
            if start not in self._parents or end not in self._parents:
                raise self.error(f"the arc {start!r} -> {end!r} has an end that is not in 'nodes'")
            if start not in self._parents[end]:
                have = listing(self._parents[end]) if self._parents[end] else "none"
                raise self.error(f"there is an arc {start!r} -> {end!r}, and the parents of node {end!r} are {have}")
            listed.add((start, end))
        for node, parents in self._parents.items():
            if lost := [parent for parent in parents if (parent, node) not in listed]:
                raise self.error(f"node {node!r} has the parent {lost[0]!r}, and 'arcs' has no arc from it")

    def _kind(self, node: str) -> str:
        cpd = self._cpds[node]
        kind = cpd.get("type", next((kind for sign, kind in SIGNS.items() if sign in cpd), None))
        if kind not in SIGNS.values():
            given = f"the type {_short(kind)}" if "type" in cpd else f"the parts {listing(cpd)}"
            raise self.error(f"node {node!r} has {given}; expected one of the types {listing(SIGNS.values())}")
        return str(kind)

    # -- tables ------------------------------------------------------------------------------------------------------

    def _tables(self, nodes: Sequence[str]) -> Draft:
        draft = Draft(self)
        for node in nodes:
            draft.declare(node, self._names(self._part(node, "levels"), f"node {node!r}: 'levels'"), 0)
        for node in nodes:
            parents = self._parents[node]
            if real := [parent for parent in parents if parent not in draft]:
                raise self.error(f"node {node!r} is discrete, and its parent {real[0]!r} is not; a table needs levels")
            draft.define(node, parents, self._table(node, draft, draft.family(node, parents, 0)), 0)
        return draft

    def _table(self, node: str, draft: Draft, shape: tuple[int, ...]) -> Floats:
        cpt = self._object(self._part(node, "cpt"), f"node {node!r}: 'cpt'")
        above = [draft.variable(parent) for parent in self._parents[node]]
        states = [str(state) for state in draft.variable(node).states]
        if not above:
            return self._by_key(cpt, states, f"node {node!r}: 'cpt'")
        rows = math.prod(shape[:-1])
        if len(cpt) != rows:
            raise self.error(
                f"node {node!r}: 'cpt' has {len(cpt)} rows; expected {rows}, one for each joint level of "
                f"{listing(self._parents[node])}"
            )
        numbers = _row_keys(above)
        table = np.full((rows, shape[-1]), np.nan)
        for key, row in cpt.items():
            number = numbers.get(frozenset([key]), numbers.get(frozenset(_BETWEEN.split(key))))
            if number is None or not np.isnan(table[number, 0]):
                reason = "again" if number is not None else "which is no joint level of the parents"
                example = ",".join(f"{variable.name}={variable.states[0]}" for variable in above)
                raise self.error(
                    f"node {node!r}: 'cpt' has the row {key!r}, {reason}; expected rows such as {example!r}"
                )
            what = f"node {node!r}, row {key!r}"
            table[number] = self._by_key(self._object(row, what), states, what)
        return table.reshape(shape)

    # -- regressions -------------------------------------------------------------------------------------------------

    def _regressions(self, node: str, levels: Mapping[Hashable, Variable]) -> tuple[Floats, Floats]:
        """Weights (discrete parents ..., 1 + real parents), intercept first, and variances (discrete parents ...)."""
        discrete = [parent for parent in self._parents[node] if parent in levels]
        real = [parent for parent in self._parents[node] if parent not in levels]
        if len(discrete) >= MOST_AXES:
            raise self.error(f"node {node!r} has {len(discrete)} discrete parents; at most {MOST_AXES - 1} are read")
        if self._kinds[node] == "cgnode":
            self._check_split(node, {"dparents": discrete, "gparents": real})
        elif discrete:
            raise self.error(
                f"node {node!r} is gaussian and has the discrete parent {discrete[0]!r}; expected a cgnode"
            )
        coefficients = self._object(self._part(node, "coefficients"), f"node {node!r}: 'coefficients'")
        terms = [INTERCEPT, *real]
        if set(coefficients) != set(terms):
            raise self.error(f"node {node!r} has coefficients for {listing(coefficients)}; expected {listing(terms)}")
        weights = [self._figures(node, coefficients[term], f"coefficient of {term!r}", levels) for term in terms]
        return np.stack(weights, axis=-1), self._variances(node, levels)

    def _check_split(self, node: str, expected: Mapping[str, list[str]]) -> None:
        for part, parents in expected.items():
            names = self._names(self._part(node, part), f"node {node!r}: {part!r}")
            if set(names) != set(parents):
                raise self.error(f"node {node!r}: {part!r} is {names}; its parents of that kind are {parents}")

    def _variances(self, node: str, levels: Mapping[Hashable, Variable]) -> Floats:
        names = [name for name in NOISE if name in self._cpds[node]]
        if len(names) != 1:
            have = listing(names) if names else "none"
            raise self.error(f"node {node!r} has {have} of {listing(NOISE)}; expected exactly one")
        figures = self._figures(node, self._cpds[node][names[0]], names[0], levels)
        with np.errstate(over="ignore"):
            variances: Floats = figures ** NOISE[names[0]]
        if (figures < 0.0).any() or not np.isfinite(variances).all():
            odd = figures[(figures < 0.0) | ~np.isfinite(variances)][0].item()
            raise self.error(
                f"node {node!r} has the {names[0]} {odd!r}; expected a number from 0 on, with a finite square"
            )
        return variances

    def _figures(self, node: str, value: object, what: str, levels: Mapping[Hashable, Variable]) -> Floats:
        """One number for each configuration, with an axis for each discrete parent in the order of the parents."""
        what = f"node {node!r}: the {what}"
        if self._kinds[node] == "gaussian":
            return np.array(self._number(value, what))
        order = list(self._cpds[node]["dparents"])
        listed = [self._levels_of(node, parent, levels[parent]) for parent in order]
        flat = self._by_configuration(value, math.prod(map(len, listed)), what)
        # The first parent is fastest: in the order of memory it is the last axis.
        figures = flat.reshape([len(names) for names in reversed(listed)]).transpose()
        for axis, (parent, names) in enumerate(zip(order, listed, strict=True)):
            figures = np.take(figures, [names.index(str(state)) for state in levels[parent].states], axis=axis)
        mine = [parent for parent in self._parents[node] if parent in levels]
        return np.ascontiguousarray(figures.transpose([order.index(parent) for parent in mine]))

    def _levels_of(self, node: str, parent: str, variable: Variable) -> list[str]:
        what = f"node {node!r}: 'dlevels'"
        dlevels = self._object(self._part(node, "dlevels"), what)
        names = self._names(dlevels.get(parent), f"{what} of {parent!r}")
        if set(names) != set(variable.states):
            raise self.error(f"{what} of {parent!r} are {listing(names)}; its levels are {listing(variable.states)}")
        return names

    def _by_configuration(self, value: object, size: int, what: str) -> Floats:
        named = {str(number): part for number, part in enumerate(value)} if type(value) is list else value
        figures = self._object(named, what)
        if len(figures) != size:
            raise self.error(f"{what} has {len(figures)} figures; expected {size}, one for each configuration")
        return self._by_key(figures, [str(number) for number in range(size)], what)

    # -- values ------------------------------------------------------------------------------------------------------

    def _object(self, value: object, what: str) -> dict[str, Any]:
        if type(value) is not dict:
            raise self.error(f"{what} is {_short(value)}; expected an object")
        return value

    def _by_key(self, figures: Mapping[str, Any], keys: Sequence[str], what: str) -> Floats:
        if set(figures) != set(keys):
            raise self.error(f"{what} has figures for {listing(figures)}; expected {listing(keys)}")
        return np.array([self._number(figures[key], f"{what} at {key!r}") for key in keys])

    def _number(self, value: Any, what: str) -> float:
        """A number, or a list of one, as programs write that know vectors only."""
        bare = value[0] if type(value) is list and len(value) == 1 else value
        try:
            number = float(bare) if type(bare) in (int, float) else math.nan
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            raise self.error(f"{what} is {_short(value)}; expected a finite number")
        return number


def _row_keys(above: Sequence[Variable]) -> dict[frozenset[str], int]:
    """Row of a table by the set of its ``parent=level``, and by all of them joined by commas."""
    numbers: dict[frozenset[str], int] = {}
    for number, states in enumerate(product(*(variable.states for variable in above))):
        parts = [f"{variable.name}={state}" for variable, state in zip(above, states, strict=True)]
        numbers[frozenset(parts)] = number
        numbers[frozenset([",".join(parts)])] = number
    return numbers


def _short(value: object) -> str:
    return reprlib.repr(value)
