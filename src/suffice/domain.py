"""What a column may hold: names, states, real numbers, counts.

A `Variable` is discrete (an ordered tuple of states, any hashable), real, or a count (0, 1, 2, ...). A `Domain` is an
ordered collection of variables. States keep their order and their Python type: ``"1"``, ``1`` and ``True`` are three
different states.
"""

from __future__ import annotations

import datetime
import math
import operator
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import chain
from typing import Any, ClassVar, Literal

import numpy as np

from suffice.errors import (
    FileFormatError,
    MergeError,
    OptionError,
    UnknownStateError,
    listing,
    meant,
    shortened,
    unknown_variable,
)
from suffice.records import record, replace, set_fields
from suffice.spelled_states import other_type

Kind = Literal["discrete", "real", "count"]
Origin = Literal["declared", "category", "seen"]

#: Axes that an array can have; a table over more variables is sparse, however few its cells.
MOST_AXES = 64
#: The types of most states, with their names in `state_key`: what needs no closer look.
_PLAIN: Mapping[type, str] = {str: "str", int: "number", bool: "bool"}

_PLAIN_TYPES = frozenset(_PLAIN)
#: Variables of at most this many states are kept, so that fits of one structure, again and again, share them.
_FEW_STATES = 64
#: Parts of a domain, and domains, that are kept at most.
_MOST_PARTS = 8192
_MOST_DOMAINS = 64


def as_python(value: Any) -> Any:
    """A NumPy scalar as the Python value it stands for; anything else unchanged."""
    if type(value) in _PLAIN:
        return value
    return value.item() if isinstance(value, np.generic) and not isinstance(value, np.datetime64) else value


def is_missing(value: object) -> bool:
    """True for None, NaN, NaT and pandas' NA."""
    if type(value) in _PLAIN:
        return False
    if value is None:
        return True
    if isinstance(value, float | np.floating):
        return math.isnan(value)
    if isinstance(value, np.datetime64 | np.timedelta64):
        return bool(np.isnat(value))
    return type(value).__name__ in {"NAType", "NaTType"}


def state_key(value: Hashable) -> tuple[str, Hashable]:
    """What makes two values the same state.

    Python holds ``1 == True`` and hashes them alike, so states are told apart by type as well. Numbers of any width are
    one type: an integer column that a missing value has turned into floats still matches its integer states.
    """
    if type(value) in _PLAIN:
        return (_PLAIN[type(value)], value)
    value = as_python(value)
    if isinstance(value, bool):
        return ("bool", value)
    if isinstance(value, int | float):
        return ("number", value)
    if isinstance(value, tuple):
        return ("tuple", tuple(state_key(part) for part in value))
    if isinstance(value, datetime.datetime):  # pandas' Timestamp is a datetime
        return ("datetime", value)
    return (type(value).__name__, value)


def _numbered(states: tuple[Hashable, ...]) -> dict[Hashable, int]:
    """Places of states by key; those of one plain type, as most are, need no look at each."""
    types = set(map(type, states))
    if len(types) == 1 and (kind := _PLAIN.get(types.pop())) is not None:
        # Long lists are not kept for others.
        return _plain_codes(kind, states) if len(states) <= _FEW_STATES else _plain_codes.__wrapped__(kind, states)
    try:
        return {state_key(state): code for code, state in enumerate(states)}
    except TypeError:
        wrong = next(state for state in states if not isinstance(state, Hashable))
        raise OptionError(f"A state is {shortened(wrong)}; expected texts, numbers or truth values.") from None


@lru_cache(maxsize=1024)
def _plain_codes(kind: str, states: tuple[Hashable, ...]) -> dict[Hashable, int]:
    """Places of states of one plain type; columns with the same states, as most tables have many, share them."""
    return {(kind, state): code for code, state in enumerate(states)}


def sort_states(values: Iterable[Hashable]) -> tuple[Hashable, ...]:
    """Distinct states in an order that does not depend on the order of the rows; of 1 and 1.0, the whole number."""
    given = tuple(values)
    if len(kinds := set(map(type, given))) == 1 and not kinds.isdisjoint((bool, int, str)):
        return tuple(sorted(set(given)))  # type: ignore[type-var]
    distinct: dict[tuple[str, Hashable], Any] = {}
    for value in map(as_python, given):
        key = state_key(value)
        if key not in distinct or isinstance(value, int):
            distinct[key] = value
    by_type: dict[str, list[Any]] = {}
    for (kind, _), value in distinct.items():
        by_type.setdefault(kind, []).append(value)
    ordered: list[Hashable] = []
    for kind in sorted(by_type):
        try:
            ordered += sorted(by_type[kind])
        except TypeError:
            ordered += sorted(by_type[kind], key=repr)
    return tuple(ordered)


@record(frozen=True, eq=False)
class Variable:
    """One column: its name, its kind and, when discrete, its states in order.

    `origin` says where the states come from: ``"declared"`` by the user (closed: any other value is an error),
    ``"category"`` from a categorical column, ``"seen"`` in the data. The last two grow when summaries are merged.

    >>> Variable.discrete("smoker", ["no", "yes"]).index("yes")
    1
    """

    name: Hashable
    kind: Kind
    states: tuple[Hashable, ...] = ()
    origin: Origin = "seen"

    #: Whether it is the one variable of its name and states; see `_shared`.
    _is_shared: ClassVar[bool] = False

    def __init__(self, name: Hashable, kind: Kind, states: tuple[Hashable, ...] = (), origin: Origin = "seen") -> None:
        """Check that states belong to a discrete variable and differ."""
        if kind not in ("discrete", "real", "count"):
            raise OptionError(f"Variable {name!r} has kind {kind!r}; expected 'discrete', 'real' or 'count'.")
        if kind != "discrete" and states:
            raise OptionError(f"Variable {name!r} is {kind} and cannot have states.")
        codes = _numbered(states) if states else {}
        if len(codes) != len(states):
            raise OptionError(f"Variable {name!r} declares a state twice: {listing(states)}. States must differ.")
        # At once: a fit makes many variables, and setting the fields of a frozen class one by one takes longer.
        set_fields(self, name=name, kind=kind, states=states, origin=origin, _codes=codes)

    @classmethod
    def discrete(cls, name: Hashable, states: Iterable[Hashable], origin: Origin = "declared") -> Variable:
        """A variable with the given states, in the given order."""
        if isinstance(states, str):
            raise OptionError(f"The states of {name!r} are the string {states!r}; give a list of states.")
        if not isinstance(states, Iterable) or getattr(states, "ndim", 1) != 1:
            raise OptionError(f"The states of {name!r} are {shortened(states)}; give a list of states.")
        labels = tuple(states)
        types = set(map(type, labels))
        if not types <= _PLAIN_TYPES:
            labels = tuple(map(as_python, labels))
            if any(map(is_missing, labels)):
                raise OptionError(
                    f"The states of {name!r} contain a missing value (None or NaN); a missing value is not a state. "
                    "Leave it out."
                )
        elif len(types) == 1 and len(labels) <= _FEW_STATES and type(name) is str and cls is Variable:
            return _shared(name, types.pop(), labels, origin)
        return cls(name, "discrete", labels, origin)

    @classmethod
    def of_texts(cls, name: Hashable, states: tuple[str, ...], origin: Origin = "declared") -> Variable:
        """A variable whose states are known to be texts that differ, such as a vocabulary: nothing is checked."""
        made = object.__new__(cls)
        set_fields(made, name=name, kind="discrete", states=states, origin=origin)
        return made

    @cached_property
    def _codes(self) -> dict[Hashable, int]:
        """Places of states by key."""
        return _numbered(self.states)

    @cached_property
    def counts_up(self) -> bool:
        """Whether the states are the whole numbers 0, 1, 2, ..., so that every state is its own code."""
        return all(type(state) is int and state == code for code, state in enumerate(self.states))

    def lists(self, labels: Sequence[Hashable]) -> bool:
        """Whether these are the states in order, by a quick look: False where it would take a look at each."""
        if len(labels) != len(self.states):
            return False
        if all(map(operator.is_, labels, self.states)):
            return True
        types = set(map(type, labels))
        plain = len(types) == 1 and types < _PLAIN_TYPES and types == set(map(type, self.states))
        return plain and self.states == tuple(labels)

    @property
    def card(self) -> int:
        """Number of states."""
        return len(self.states)

    def __eq__(self, other: object) -> bool:
        """Same name, kind and states in the same order, told apart by type; the origin does not count."""
        if self is other:
            return True
        if not isinstance(other, Variable):
            return NotImplemented
        mine, theirs = (self.name, self.kind, tuple(self._codes)), (other.name, other.kind, tuple(other._codes))
        return mine == theirs

    def __hash__(self) -> int:
        """Hash by content."""
        return hash((self.name, self.kind, tuple(self._codes)))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle without the derived look-up table."""
        return (Variable, (self.name, self.kind, self.states, self.origin))

    def to_dict(self) -> dict[str, Any]:
        """Plain data for a file."""
        return {"name": self.name, "kind": self.kind, "states": list(self.states), "origin": self.origin}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Variable:
        """Rebuild from plain data; what no constructor would accept is an error."""
        name, kind, states, origin = (plain[key] for key in ("name", "kind", "states", "origin"))
        if origin not in ("declared", "category", "seen") or not isinstance(states, list):
            raise FileFormatError(f"The states of {name!r} are no list, or of unknown origin {origin!r}.")
        hash(name)
        return cls.discrete(name, states, origin) if kind == "discrete" else cls(name, kind, tuple(states), origin)

    def find(self, state: Hashable) -> int | None:
        """Position of a state, or None."""
        return self._codes.get(state_key(state))

    def index(self, state: Hashable) -> int:
        """Position of a state; an unknown one is an error that lists the known ones."""
        try:
            code = self.find(state)
        except TypeError:  # It cannot be hashed, so it is no state.
            code = None
        if code is None:
            raise UnknownStateError(
                f"Variable {self.name!r} has no state {shortened(as_python(state))} "
                f"({type(as_python(state)).__name__}).{meant(state, self.states)} Its "
                f"states are: {listing(self.states)}."
            )
        return code

    def unknown(self, state: Hashable, row: int | None = None) -> UnknownStateError:
        """The error for a value that is none of the states."""
        where = "" if row is None else f" (row {row})"
        value = as_python(state)
        return UnknownStateError(
            f"Column {self.name!r} holds {shortened(value)} ({type(value).__name__}){where}, which is not one of "
            f"its {self.card} states: "
            f"{listing(self.states)}.{meant(value, self.states)}{other_type(self.name, value, self.states)} Declare "
            "it in states=, or correct the data."
        )

    def merge(self, other: Variable) -> Variable:
        """The variable that covers both: the union of states unless the states were declared."""
        if self == other:
            return min((self, other), key=lambda variable: ("declared", "category", "seen").index(variable.origin))
        if self.kind != other.kind:
            raise MergeError(f"Column {self.name!r} is {self.kind} on one side and {other.kind} on the other.")
        if self.origin == "seen" and not self.states:  # It has met no row yet.
            return other if other.origin != "seen" else replace(other, states=sort_states(other.states))
        mine, theirs = set(self._codes), set(other._codes)
        for closed, rest, extra in ((self, other, theirs - mine), (other, self, mine - theirs)):
            if closed.origin == "declared" and extra:
                state = next(state for state in rest.states if state_key(state) in extra)
                raise MergeError(
                    f"Column {self.name!r} has the declared states {listing(closed.states)}; the other side also has "
                    f"{state!r}. Declare the same states on both sides."
                )
        for wide, narrow in ((self, other), (other, self)):
            if wide.origin != "seen" and set(narrow._codes) <= set(wide._codes):
                return wide
        if self.origin == "seen" and other.origin == "seen":
            return replace(self, states=sort_states((*self.states, *other.states)))
        first, second = (self, other) if self.origin != "seen" else (other, self)
        new = [state for state in second.states if state_key(state) not in first._codes]
        return replace(first, states=(*first.states, *new))


@lru_cache(maxsize=4096)
def _shared(name: str, kind: type, states: tuple[Hashable, ...], origin: Origin) -> Variable:
    """The one variable of that name with these states, all of one plain type: ``1`` and ``True`` are equal keys."""
    made = Variable(name, "discrete", states, origin)
    set_fields(made, _is_shared=True)
    return made


class Domain(Mapping[Hashable, Variable]):
    """Variables in order, found by name.

    >>> domain = Domain([Variable.discrete("rain", [False, True]), Variable("wind", "real")])
    >>> domain.names
    ('rain', 'wind')
    """

    def __init__(self, variables: Iterable[Variable] = ()) -> None:
        """Keep the variables in order; names must differ."""
        by_name: dict[Hashable, Variable] = {}
        for variable in variables:
            if not isinstance(variable, Variable):
                raise OptionError(f"A Domain holds Variables; found {variable!r}. Use Variable.discrete(name, states).")
            if variable.name in by_name:
                raise OptionError(f"Two variables are named {variable.name!r}; names must differ.")
            by_name[variable.name] = variable
        self._keep(by_name)

    @classmethod
    def of(cls, variables: Sequence[Variable]) -> Domain:
        """The domain of these variables; of shared ones the one that was made before, with the parts it knows."""
        # By identity, since equal variables may differ in origin; what a domain holds keeps its numbers.
        key = tuple(map(id, variables))
        known = _DOMAINS.get(key)
        if known is None:
            known = cls(variables)
            if all(variable._is_shared for variable in variables):
                if len(_DOMAINS) >= _MOST_DOMAINS:
                    _DOMAINS.clear()
                _DOMAINS[key] = known
        return known

    def _keep(self, variables: dict[Hashable, Variable]) -> None:
        self._variables = variables
        self._selected: dict[tuple[Hashable, ...], Domain] | None = None
        #: Names in order.
        self.names: tuple[Hashable, ...] = tuple(variables)
        #: Variables in order.
        self.variables: tuple[Variable, ...] = tuple(variables.values())

    @cached_property
    def numbers(self) -> tuple[Hashable, ...]:
        """Names of the real and count variables, in order."""
        return tuple(variable.name for variable in self.variables if variable.kind != "discrete")

    def __getitem__(self, name: Hashable) -> Variable:
        """The variable of that name."""
        try:
            return self._variables[name]
        except (KeyError, TypeError):  # What cannot be hashed is no name.
            raise unknown_variable(name, self.names) from None

    def __iter__(self) -> Iterator[Hashable]:
        """Names in order."""
        return iter(self._variables)

    def __len__(self) -> int:
        """Number of variables."""
        return len(self._variables)

    def __contains__(self, name: object) -> bool:
        """Whether there is a variable of that name."""
        try:
            return name in self._variables
        except TypeError:  # What cannot be hashed is no name.
            return False

    def __eq__(self, other: object) -> bool:
        """Same variables, same states, in any order of variables."""
        return isinstance(other, Domain) and self._variables == other._variables

    def __hash__(self) -> int:
        """Hash by content."""
        return hash(frozenset(self._variables.items()))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the variables alone."""
        return (Domain, (self.variables,))

    def __repr__(self) -> str:
        """Short, one line."""
        kinds = (f"{v.name!r}: {v.card if v.kind == 'discrete' else v.kind}" for v in self.variables)
        return f"Domain({', '.join(kinds)})"

    def to_dict(self) -> dict[str, Any]:
        """Plain data for a file."""
        return {"variables": list(self.variables)}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Domain:
        """Rebuild from plain data."""
        variables = plain["variables"]
        if not isinstance(variables, list) or not all(isinstance(variable, Variable) for variable in variables):
            raise FileFormatError("A domain is a list of variables; the file holds something else.")
        return cls(variables)

    @cached_property
    def cards(self) -> tuple[int, ...]:
        """Numbers of states of all variables, in order; 0 for numbers."""
        return tuple([len(variable.states) for variable in self.variables])

    def shape(self, names: Sequence[Hashable]) -> tuple[int, ...]:
        """Numbers of states of the named variables."""
        if names is self.names:
            return self.cards
        return tuple([len(self[name].states) for name in names])

    def names_of(self, variables: Any) -> list[Hashable]:
        """One name or several, as a list of known names; a tuple that is itself a name is one name."""
        several = isinstance(variables, list) or (isinstance(variables, tuple) and variables not in self)
        names: list[Hashable] = list(variables) if several else [variables]
        if not names:
            raise OptionError(f"No variable is asked for. Name one or more of {listing(self.names)}.")
        for name in names:
            self[name]
        if len(set(names)) != len(names):
            raise OptionError(f"A variable is asked for twice: {listing(names)}. Name it once.")
        return names

    def select(self, names: Iterable[Hashable]) -> Domain:
        """The named variables, in the order asked."""
        asked = tuple(names)
        kept = self._selected
        if kept is None or len(kept) >= _MOST_PARTS:
            kept = self._selected = {}
        if (before := kept.get(asked)) is not None:  # A domain never changes, and fits ask for the same parts again.
            return before
        if asked == self.names:
            return self
        known = self._variables
        chosen = {name: known[name] if name in known else self[name] for name in asked}
        if len(chosen) != len(asked):
            raise OptionError(f"A variable is asked for twice: {listing(asked)}. Name it once.")
        selected = Domain.__new__(Domain)
        selected._keep(chosen)
        kept[asked] = selected
        return selected

    def merge(self, other: Domain) -> Domain:
        """Variables of both; those in both are merged by label."""
        if other is self or not other._variables or self._variables == other._variables:
            return self
        joined = [v.merge(other[v.name]) if v.name in other else v for v in self.variables]
        return Domain([*joined, *(v for v in other.variables if v.name not in self)])


#: Domains of shared variables, by the identities of these.
_DOMAINS: dict[tuple[int, ...], Domain] = {}


def declare_all(states: Mapping[Any, Any]) -> dict[Hashable, Variable]:
    """Variables from what a user declares, by column."""
    if not isinstance(states, Mapping):
        raise OptionError(
            f"states is {shortened(states)}; expected a dict by variable, such as states={{'sky': ['clear', 'rain']}}."
        )
    if states and set(map(type, states)) == {str} and set(map(type, states.values())) == {list}:
        listed = tuple(map(tuple, states.values()))
        types = set(map(type, chain.from_iterable(listed)))
        # As above, all at once: lists of states of one plain type are declared again with each fit of a structure.
        if len(types) == 1 and types < _PLAIN_TYPES and max(map(len, listed)) <= _FEW_STATES:
            return dict(_declared(tuple(states), types.pop(), listed))
    return {name: declare(name, given) for name, given in states.items()}


@lru_cache(maxsize=_MOST_DOMAINS)
def _declared(names: tuple[str, ...], kind: type, states: tuple[tuple[Hashable, ...], ...]) -> dict[Hashable, Variable]:
    return {name: Variable.discrete(name, listed) for name, listed in zip(names, states, strict=True)}


def declare(name: Hashable, states: object) -> Variable:
    """A variable from what a user declares: a list of states, a kind (states seen, where discrete) or a `Variable`."""
    if type(states) is list:
        return Variable.discrete(name, states)
    if isinstance(states, Variable):
        return replace(states, name=name)
    if isinstance(states, str) and states in ("discrete", "real", "count"):
        return Variable(name, states)  # type: ignore[arg-type]
    if isinstance(states, str) or not isinstance(states, Iterable):
        raise OptionError(
            f"states[{name!r}] is {states!r}; expected a list of states, 'discrete', 'real', 'count' or a Variable."
        )
    return Variable.discrete(name, states)
