"""A feature of a log-linear model: a function of a few discrete variables with one weight."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from suffice.array_types import Floats
from suffice.calls import explain_methods
from suffice.checks import check_size
from suffice.domain import Domain, state_key
from suffice.errors import FileFormatError, OptionError, listing
from suffice.families.base import as_numbers
from suffice.table import Table

Names = tuple[Hashable, ...]


def _rebuilt(placements: tuple[Names, ...], values: object, name: str) -> Feature:
    """A feature from its pickle."""
    return Feature(list(placements), values, name=name)


@explain_methods
class Feature:
    """f(x) with one weight: the model holds the factor exp(weight * f(x)).

    Args:
        variables: a tuple of variables, or one variable; a list of tuples places the same function on each of them, and
            the weight is shared: f(x) is then the sum over the tuples.
        values: a function of the states (their labels, in the order of the variables) that returns a number or a truth
            value; a `Table`; a dict from joint states to numbers, 0 where a state is left out; an array with one axis
            for each variable, states in their order; or a list of these, one for each tuple.
        name: what the weight is called.

    >>> both = Feature(("A", "B"), lambda a, b: a == 1 and b == 1)
    >>> chain = Feature([("A", "B"), ("B", "C")], lambda a, b: a == b, name="agree")
    >>> chain.placements
    (('A', 'B'), ('B', 'C'))
    """

    def __init__(self, variables: object, values: object, *, name: str | None = None) -> None:
        """See the class."""
        self.placements = _read_placements(variables)
        self.values = values
        self._evaluated: dict[tuple[int, tuple[Any, ...]], Floats] = {}
        if isinstance(values, list) and len(values) != len(self.placements):
            raise OptionError(
                f"A feature on {len(self.placements)} tuples of variables has {len(values)} lists of values; give one "
                "for each tuple, or a single function for all of them. An array is given as np.array(...)."
            )
        shown = "; ".join(", ".join(map(str, scope)) for scope in self.placements[:2])
        self.name = name if name is not None else f"f({shown}{'; ...' if len(self.placements) > 2 else ''})"

    @property
    def variables(self) -> Names:
        """All variables that the feature reads, in the order in which they are named."""
        return tuple(dict.fromkeys(name for scope in self.placements for name in scope))

    def __repr__(self) -> str:
        return f"Feature({self.name!r} on {listing(self.placements, 3)})"

    def tables(self, domain: Domain) -> list[Floats]:
        """The values on each tuple of variables, one axis for each variable."""
        each = self.values if isinstance(self.values, list) else [self.values] * len(self.placements)
        several = isinstance(self.values, list)
        parts = enumerate(zip(self.placements, each, strict=True))
        return [self._table(domain.select(scope), one, number if several else 0) for number, (scope, one) in parts]

    def _table(self, domain: Domain, values: object, number: int) -> Floats:
        """The values on one tuple of variables; a function is called once for the same states."""
        key = (number, tuple(tuple(map(state_key, variable.states)) for variable in domain.variables))
        if callable(values) and key in self._evaluated:
            return self._evaluated[key]
        table = _evaluate(values, domain, self.name)
        if not np.isfinite(table).all():
            raise OptionError(f"The feature {self.name!r} on {listing(domain.names)} has values that are not finite.")
        check_size(table, f"The feature {self.name!r} on {listing(domain.names)}")
        if callable(values):
            self._evaluated[key] = table
        return table

    def __deepcopy__(self, memo: dict[int, Any]) -> Feature:
        """Values are copied, functions shared."""
        return Feature(list(self.placements), copy.deepcopy(self.values, memo), name=self.name)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle; of a function that cannot be pickled, such as a lambda, the values at the states of the fit."""
        values = self.values
        if isinstance(values, list):
            values = [self._picklable(one, number) for number, one in enumerate(values)]
        else:
            values = self._picklable(values, 0)
        return (_rebuilt, (self.placements, values, self.name))

    def _picklable(self, values: object, number: int) -> Any:
        if not callable(values):
            return values
        try:
            pickle.dumps(values)
        except Exception as error:  # What a lambda raises depends on the version of Python.
            refused = error
        else:
            return values
        known: dict[tuple[Any, ...], float] = {}
        for (owner, states), table in self._evaluated.items():
            for cell in np.ndindex(*table.shape) if owner == number else ():
                known[tuple(keys[code] for keys, code in zip(states, cell, strict=True))] = float(table[cell])
        if not known:
            raise OptionError(
                f"The feature {self.name!r} is a function that cannot be pickled (a lambda, or one inside another "
                "function) and was not called yet. Use a function of a module, or fit first."
            ) from refused
        return KnownValues(self.name, known)

    def tabulated(self, domain: Domain) -> Feature:
        """The same feature with its values as labelled tables, which can be saved."""
        tables = [
            Table(domain.select(scope), values)
            for scope, values in zip(self.placements, self.tables(domain), strict=True)
        ]
        return Feature(list(self.placements), tables, name=self.name)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for a file; a function has to be tabulated first."""
        if not isinstance(self.values, list) or not all(isinstance(table, Table) for table in self.values):
            raise OptionError(
                f"The feature {self.name!r} is a Python function or has no labels yet, and cannot be saved before the "
                "states are known. Fit the network, declare states=, or use feature.tabulated(domain)."
            )
        return {"placements": [list(scope) for scope in self.placements], "tables": self.values, "name": self.name}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Feature:
        """Rebuild from plain data."""
        placements, tables, name = plain["placements"], plain["tables"], plain["name"]
        if not isinstance(name, str) or not all(isinstance(table, Table) for table in tables):
            raise FileFormatError("A feature needs a name and labelled tables.")
        return cls([tuple(scope) for scope in placements], list(tables), name=name)


def _read_placements(variables: object) -> tuple[Names, ...]:
    """Tuples of variables. A tuple is one place, a list of tuples several, anything else one variable."""
    if isinstance(variables, list):
        if not variables or not all(isinstance(scope, tuple | list) for scope in variables):
            raise OptionError(
                f"A feature is placed on {variables!r}; give a tuple of variables, or a list of tuples for several "
                "places."
            )
        placements = tuple(tuple(scope) for scope in variables)
    else:
        placements = (variables if isinstance(variables, tuple) else (variables,),)
    for scope in placements:
        if not scope or len(set(scope)) != len(scope):
            raise OptionError(f"A feature is placed on {scope!r}; give one or more different variables.")
    return placements


def _evaluate(values: object, domain: Domain, name: str) -> Floats:
    """Values on every joint state of the domain, states found by their labels."""
    shape = domain.shape(domain.names)
    if isinstance(values, Table):
        return _by_label(values, domain, name)
    if isinstance(values, Mapping):
        return _from_mapping(values, domain, name)
    if callable(values):
        return _from_function(values, domain, name)
    if isinstance(values, str):
        raise OptionError(f"The feature {name!r} is {values!r}; expected numbers or a function of its variables.")
    array = np.array(as_numbers(values, f"The feature {name!r}"))
    if array.shape != shape:
        raise OptionError(
            f"The feature {name!r} has values of shape {array.shape}; its variables {listing(domain.names)} have "
            f"{shape} states. Give one number for each joint state."
        )
    return array


def _by_label(table: Table, domain: Domain, name: str) -> Floats:
    """The table's values; its axes stand for the variables by name, or by place when the names differ."""
    named = set(table.variables) == set(domain.names)
    if not named and len(table.variables) != len(domain):
        raise OptionError(
            f"The feature {name!r} has a table of {listing(table.variables)} for the variables {listing(domain.names)}."
        )
    axes = list(domain.names) if named else list(table.variables)
    values = table.transpose(axes).values
    for axis, (own, variable) in enumerate(zip(axes, domain.variables, strict=True)):
        values = values.take([table.domain[own].index(state) for state in variable.states], axis=axis)
    return np.array(values)


def _from_mapping(values: Mapping[Any, Any], domain: Domain, name: str) -> Floats:
    table = np.zeros(domain.shape(domain.names))
    for states, value in values.items():
        joint: Sequence[Hashable] = states if isinstance(states, tuple) and len(domain) > 1 else (states,)
        if isinstance(states, tuple) and len(domain) == 1 and len(states) == 1:
            joint = states
        if len(joint) != len(domain):
            raise OptionError(f"The joint state {states!r} of a feature does not name {listing(domain.names)}.")
        cell = tuple(variable.index(state) for variable, state in zip(domain.variables, joint, strict=True))
        table[cell] = as_numbers(value, f"The feature {name!r} at {listing(joint)}")
    return table


def _from_function(function: Callable[..., Any], domain: Domain, name: str) -> Floats:
    table = np.empty(domain.shape(domain.names))
    lists = [variable.states for variable in domain.variables]
    for cell in np.ndindex(*table.shape):
        labels = [states[code] for states, code in zip(lists, cell, strict=True)]
        where = f"The feature {name!r} on {listing(domain.names)}"
        try:
            value = function(*labels)
        except Exception as error:
            raise OptionError(
                f"{where} raised {type(error).__name__} for the states {listing(labels)}: {error}. Its function is "
                f"called with {len(labels)} labels, one for each variable, and returns a number."
            ) from error
        table[cell] = _number(value)
        if not np.isfinite(table[cell]):
            raise OptionError(
                f"{where} gave {value!r} for the states {listing(labels)}, which is not finite or no number; expected "
                "a number or a truth value."
            )
    return table


def _number(value: Any) -> float:
    """A number or truth value as a float; NaN for anything else. Text is no number, whatever it spells."""
    if isinstance(value, str | bytes) or np.ndim(value):
        return np.nan
    try:
        return float(value)
    except OverflowError:
        return np.inf
    except (TypeError, ValueError):
        return np.nan


class KnownValues:
    """A function of states that is known where it was called, in place of one that cannot be pickled."""

    def __init__(self, name: str, values: Mapping[tuple[Any, ...], float]) -> None:
        """Keep the values by the keys of the states."""
        self.name = name
        self.values: dict[tuple[Any, ...], float] = dict(values)

    def __call__(self, *labels: Hashable) -> float:
        """The value at these states."""
        key = tuple(map(state_key, labels))
        if key not in self.values:
            raise OptionError(
                f"only its values at the states of the fit were pickled, and {listing(labels)} is none of them; a "
                "function of a module can be pickled itself"
            )
        return self.values[key]
