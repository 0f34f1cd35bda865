"""The structure of a network through time: arcs inside a slice and from slices before, and a first slice of its own.

A **family** is a node with its parents, and the slices in which it holds. Names of variables are

- ``"x"``: x in the slice that is looked at,
- ``("x", -2)``: x two slices before,
- ``("x", 0)``: x in the first slice, ``("x", 1)`` in the second, and so on.

A node whose oldest parent lies k slices back has no such parent in the first k slices. Its families there are nodes of
their own, ``("x", 0)`` to ``("x", k - 1)``, with those parents that exist.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from suffice.checks import is_list
from suffice.domain import Domain, Variable
from suffice.errors import OptionError, listing, meant, shortened
from suffice.graphs.directed import check_acyclic, topological_order
from suffice.models.bayesian.structure import Parents
from suffice.records import record

EXPECTED = (
    "expected arcs [(parent, child), ...] or a dict {child: parents}, where a parent is a name, or (name, -1) for the "
    "slice before, (name, -2) for the one before that"
)
#: Slices that an arc may reach back.
FARTHEST = 12
#: A node and how many slices back: a variable as one slice sees it.
Position = tuple[Hashable, int]
#: The slices in which a family holds: from the first up to the second, which is none of them; None: to the end.
Span = tuple[int, int | None]


@record(frozen=True, eq=False)
class SliceStructure:
    """Parents of each node: in its own slice by name, in slices before as (name, -lag).

    `first` are the parents of each node in the first slice, where that is a network of its own; `inputs` are variables
    that are given in every slice, and have no family; of those in `carry` the last value holds until there is another.
    """

    parents: Parents
    first: Parents | None = None
    inputs: tuple[Hashable, ...] = ()
    carry: tuple[Hashable, ...] = ()

    @property
    def nodes(self) -> tuple[Hashable, ...]:
        """The nodes of a slice, in the order in which the structure names them."""
        return tuple(self.parents)

    @cached_property
    def lags(self) -> dict[Hashable, int]:
        """How far back the oldest parent of each node lies."""
        return {node: max([lag_of(p) for p in above], default=0) for node, above in self.parents.items()}

    @property
    def depth(self) -> int:
        """How many slices back the longest arc reaches."""
        return max(self.lags.values(), default=0)

    @cached_property
    def families(self) -> Parents:
        """The parents of every family, those of the first slices first; each after its parents."""
        early: Parents = {}
        own = 1 if self.first is not None else 0
        for time in range(max(self.depth, own)):
            for node in self._order:
                if time == 0 and self.first is not None:
                    early[node, 0] = tuple((parent, 0) for parent in self.first[node])
                elif time < self.lags[node]:
                    early[node, time] = self._parents_at(node, time)
        return {**early, **{node: self.parents[node] for node in self._order}}

    def _parents_at(self, node: Hashable, time: int) -> tuple[Hashable, ...]:
        """The parents of a node that exist in an early slice."""
        above = [(name_of(parent), time - lag_of(parent)) for parent in self.parents[node] if lag_of(parent) <= time]
        return tuple(above)

    @cached_property
    def _order(self) -> tuple[Hashable, ...]:
        """The nodes of a slice, each after its parents in the same one."""
        inside = {node: [p for p in above if p in self.parents] for node, above in self.parents.items()}
        return tuple(topological_order(inside))

    def plain(self) -> dict[str, Any]:
        """The options that declare it, as plain data."""
        plain: dict[str, Any] = {"structure": {node: list(above) for node, above in self.parents.items()}}
        if self.first is not None:
            plain["first"] = {node: list(above) for node, above in self.first.items()}
        return plain | {"inputs": self.inputs, "carry": self.carry}

    def span(self, family: Hashable) -> Span:
        """The slices in which a family holds."""
        if family in self.parents:
            return max(self.lags[family], 0 if self.first is None else 1), None
        time = family[1]  # type: ignore[index]
        return time, time + 1

    @cached_property
    def spans(self) -> dict[Span, tuple[Hashable, ...]]:
        """The families by the slices in which they hold."""
        spans: dict[Span, list[Hashable]] = {}
        for family in self.families:
            spans.setdefault(self.span(family), []).append(family)
        return {span: tuple(families) for span, families in spans.items()}

    def at(self, node: Hashable, time: int) -> Hashable:
        """The family of a node in a slice."""
        return (node, time) if (node, time) in self.families else node

    def versions(self, node: Hashable) -> tuple[Hashable, ...]:
        """The families of a node."""
        return tuple(family for family in self.families if name_of(family) == node)

    def family_names(self, family: Hashable) -> tuple[Hashable, ...]:
        """Parents and node."""
        return (*self.families[family], family)

    def positions(self, family: Hashable, time: int) -> dict[Hashable, Position]:
        """Where the variables of a family are, as seen from a slice."""
        return {name: (node, time - own) for name in self.family_names(family) for node, own in [place_of(name, time)]}

    def variables(self, base: Domain) -> Domain:
        """All variables of all families, with the states of the nodes and inputs that they are values of."""
        names = dict.fromkeys(name for family in self.families for name in self.family_names(family))
        return variables_of(names, base)

    @property
    def interface(self) -> dict[Hashable, int]:
        """The nodes on which later slices depend, and for how many slices."""
        kept: dict[Hashable, int] = {}
        for above in self.parents.values():
            for parent in above:
                name, lag = name_of(parent), lag_of(parent)
                if lag and name in self.parents:
                    kept[name] = max(kept.get(name, 0), lag)
        return kept

    def unrolled(self, slices: int) -> dict[tuple[Hashable, int], tuple[Hashable, tuple[tuple[Hashable, int], ...]]]:
        """By (node, slice) the family that holds there, and its parents as (node, slice)."""
        nodes = {}
        for time in range(slices):
            for node in self._order:
                family = self.at(node, time)
                above = tuple(place_of(parent, time) for parent in self.families[family])
                nodes[node, time] = (family, above)
        return nodes


def is_timed(name: object) -> bool:
    """Whether a name has the form (name, whole number)."""
    whole = isinstance(name, tuple) and len(name) == 2 and isinstance(name[1], int | np.integer)
    return whole and not isinstance(name[1], bool)  # type: ignore[index]


def name_of(variable: Hashable) -> Hashable:
    """The node whose value a variable is."""
    return variable[0] if is_timed(variable) else variable  # type: ignore[index]


def lag_of(variable: Hashable) -> int:
    """How many slices back a parent lies; 0 in the same slice."""
    return -int(variable[1]) if is_timed(variable) and variable[1] < 0 else 0  # type: ignore[index]


def place_of(variable: Hashable, time: int) -> tuple[Hashable, int]:
    """Node and slice of a variable of a family that holds in slice `time`."""
    if is_timed(variable) and variable[1] >= 0:  # type: ignore[index]
        return name_of(variable), int(variable[1])  # type: ignore[index]
    return name_of(variable), time - lag_of(variable)


def renamed(variable: Variable, name: Hashable) -> Variable:
    """The same variable under another name."""
    return Variable(name, variable.kind, variable.states, variable.origin)


def variables_of(names: Iterable[Hashable], base: Domain) -> Domain:
    """Variables of families, with the states of the nodes and inputs that they are values of."""
    return Domain(renamed(base[name_of(name)], name) for name in names)


# --------------------------------------------------------------------------------------------------------------------
# Well-known structures
# --------------------------------------------------------------------------------------------------------------------


def names_of(observed: Any) -> list[Hashable]:
    """One name, or several."""
    names = list(observed) if is_list(observed) else [observed]
    for name in names:
        _hashable(name)
    return names


def chain_cards(hidden: Any, node: Hashable) -> dict[Hashable, Any]:
    """The states of each of several hidden chains, which are numbered."""
    if not is_list(hidden):
        raise OptionError(f"hidden is {shortened(hidden)}; expected a list with the number of states of each chain.")
    return {f"{node}{number}": card for number, card in enumerate(hidden)}


def arcs_of_chains(hidden: list[Any], observed: Any, *, coupled: bool = False) -> list[Any]:
    """Hidden nodes that move from slice to slice, together or each by itself, and what all of them emit."""
    seen = names_of(observed)
    for name in hidden:
        _hashable(name)
    if not hidden or not seen:
        raise OptionError("There are no nodes. Name at least one that is hidden, and one that is observed.")
    moves = [((above, -1), below) for below in hidden for above in hidden if coupled or above == below]
    return [*moves, *((above, below) for below in seen for above in hidden)]


# --------------------------------------------------------------------------------------------------------------------
# Reading
# --------------------------------------------------------------------------------------------------------------------


def read_slices(structure: Any, first: Any, inputs: Any, extra: Iterable[Hashable], carry: Any = ()) -> SliceStructure:
    """The structure that a user declares; extra: further nodes, which have no arc."""
    given = tuple(dict.fromkeys(names_of(inputs)))
    carried = tuple(dict.fromkeys(names_of(carry)))
    for name in carried:
        if name not in given:
            raise OptionError(
                f"carry= names {name!r}, which is none of inputs={listing(given) if given else '()'}: values of inputs "
                "alone are carried on. A node that has none is a missing value."
            )
    parents = _parents(structure, "structure", lags=True)
    for name in extra:
        if name not in given:
            parents.setdefault(name_of(name), ())
    for name in given:
        if parents.pop(name, ()):
            raise OptionError(
                f"{name!r} is one of inputs=, which are given, and the structure has the arc {parents_text(name)}. "
                "Leave the arcs into it out, or leave it out of inputs=."
            )
    unknown = {name_of(p) for above in parents.values() for p in above} - parents.keys() - set(given)
    for name in sorted(unknown, key=repr):
        parents[name] = ()
    if not parents:
        raise OptionError(f"The structure has no nodes; {EXPECTED}.")
    known = {*parents, *given}
    for name in parents:
        if isinstance(name, tuple) and len(name) == 2 and name[0] in known:
            raise OptionError(
                f"The name {name!r} is that of the node {name[0]!r} with {name[1]!r} in place of a whole number of "
                f"slices. Write ({name[0]!r}, -1) for the slice before."
            )
    check_acyclic({n: [p for p in above if lag_of(p) == 0 and p not in given] for n, above in parents.items()})
    for node, above in parents.items():
        if len(set(above)) != len(above):
            twice = next(parent for number, parent in enumerate(above) if parent in above[:number])
            raise OptionError(f"The arc {twice!r} -> {node!r} is given more than once. Give it once.")
    return SliceStructure(parents, None if first is None else _first(first, parents, known), given, carried)


def parents_text(name: Hashable) -> str:
    """An arc into a node, in words."""
    return f"... -> {name}"


def _first(first: Any, parents: Parents, known: set[Hashable]) -> Parents:
    """The parents of every node in the first slice."""
    read = _parents(first, "first", lags=False)
    mentioned = {*read, *(parent for above in read.values() for parent in above)}
    for name in sorted(mentioned - known, key=repr):
        raise OptionError(
            f"first= names {name!r}, which is no node.{meant(name, tuple(known))} The nodes are: "
            f"{listing(tuple(parents))}."
        )
    for name in mentioned - parents.keys():
        if read.get(name):
            raise OptionError(f"first= has an arc into {name!r}, which is one of inputs=. Leave it out.")
    whole = {node: read.get(node, ()) for node in parents}
    check_acyclic({node: [parent for parent in above if parent in parents] for node, above in whole.items()})
    return whole


def _parents(structure: Any, option: str, *, lags: bool) -> Parents:
    """Parents of each node, from arcs or from a dict."""
    if isinstance(structure, Mapping):
        pairs = []
        for child, above in structure.items():
            if not is_list(above):
                raise OptionError(f"The parents of {child!r} are {above!r}; {EXPECTED}.")
            pairs += [(None, child), *((parent, child) for parent in above)]
    elif not is_list(structure):
        raise OptionError(f"{option} is {shortened(structure)}; {EXPECTED}.")
    else:
        pairs = [_pair(arc) for arc in structure]
    parents: dict[Hashable, list[Hashable]] = {}
    for parent, child in pairs:
        parent, child = _in_one_slice(parent, child) if lags else (parent, child)
        if is_timed(child):
            raise OptionError(
                f"The arc {parent!r} -> {child!r} ends at a slice other than the one that is declared. End arcs at a "
                "plain name; of one that leads to the next slice, give the parent as (name, -1)."
            )
        _hashable(child)
        parents.setdefault(child, [])
        if parent is not None:
            parents[child].append(_parent(parent, child, option, lags=lags))
    for name in [name_of(parent) for above in parents.values() for parent in above if lag_of(parent) == 0]:
        parents.setdefault(name, [])
    return {child: tuple(above) for child, above in parents.items()}


def _in_one_slice(parent: Any, child: Any) -> tuple[Any, Any]:
    """An arc between numbered slices, ``(("x", 0), ("y", 1))`` as of pgmpy, as one that ends in the slice looked at."""
    if not (is_timed(parent) and is_timed(child) and 0 <= parent[1] <= child[1]):
        return parent, child
    lag = int(child[1]) - int(parent[1])
    return ((parent[0], -lag) if lag else parent[0]), child[0]


def _pair(arc: Any) -> tuple[Any, Any]:
    if isinstance(arc, str) or not isinstance(arc, tuple | list) or len(arc) != 2:
        raise OptionError(f"An arc is a pair (parent, child); found {shortened(arc)}; {EXPECTED}.")
    parent, child = arc
    return (tuple(parent) if isinstance(parent, list) else parent), child


def _parent(parent: Any, child: Hashable, option: str, *, lags: bool) -> Any:
    _hashable(parent)
    if not is_timed(parent):
        return parent
    name, slices = parent[0], int(parent[1])
    if not lags:
        raise OptionError(f"{option}= is about one slice, and has the parent {parent!r}; give plain names there.")
    if slices == 0:
        return name
    if slices > 0:
        raise OptionError(
            f"The arc {parent!r} -> {child!r} comes from a later slice. Give slices before as negative "
            f"numbers: ({name!r}, {-slices})."
        )
    if -slices > FARTHEST:
        raise OptionError(
            f"The arc {parent!r} -> {child!r} reaches {-slices} slices back; the limit is {FARTHEST}. Give a slice "
            "more time, or carry what matters in a node of its own."
        )
    return name, slices


def _hashable(name: object) -> None:
    try:
        hash(name)
    except TypeError:
        raise OptionError(f"A node is named {name!r}; a name must be hashable, such as a text or a number.") from None
