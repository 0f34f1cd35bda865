"""Numbers of a table that carry labels: a `Table`, a pandas DataFrame or Series, or a dict by state."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.domain import Domain, Variable
from suffice.errors import OptionError, UnknownStateError, listing
from suffice.options import doubles
from suffice.table import Table

#: One level of labels: the name that it goes by (None where it has none), and its labels.
Level = tuple[Hashable, list[Hashable]]


def by_label(values: Any, family: Domain, what: str) -> Any:
    """The numbers with axes (parents, node), read by label where they have labels; `what` they are, for messages.

    Labels are those of a `Table`; of a DataFrame whose rows are the joint states of the parents and whose columns are
    the states of the node (or the other way round, told by the names of the levels); of a Series over the states of a
    node without parents, or over all of (parents, node); and the keys of a dict by state, for a node without parents.
    Anything else is returned as it is.
    """
    if isinstance(values, Table):
        return labelled(values, family, what)
    if isinstance(values, Mapping):
        return _from_states(values, family, what)
    if not hasattr(values, "to_numpy"):
        return values
    if hasattr(values, "index"):
        return _from_pandas(values, family, what)
    if hasattr(values, "columns"):
        raise OptionError(
            f"The {what} of {family.names[-1]!r} is a {type(values).__name__} without labels of its rows; expected a "
            "pandas DataFrame with the states of the parents as index, a Table, or an array."
        )
    return values


def as_tables(by_node: Any, nodes: Mapping[Hashable, Any]) -> Any:
    """An option by node with the pandas objects in it as tables, which can be written to a file; `nodes` are fitted."""
    if not isinstance(by_node, Mapping):
        return by_node
    pandas = {n for n, value in by_node.items() if hasattr(value, "to_numpy") and hasattr(value, "index")}
    return {
        name: Table(nodes[name].domain, by_label(value, nodes[name].domain, "table")) if name in pandas else value
        for name, value in by_node.items()
    }


def labelled(table: Table, domain: Domain, what: str) -> Any:
    """The values of a table laid out as (parents, node), states by label; `what` the table is, for messages."""
    if set(table.variables) != set(domain.names):
        raise OptionError(
            f"The {what} of {domain.names[-1]!r} is a table over {listing(table.variables)}; expected "
            f"{listing(domain.names)}."
        )
    return (Table(domain, np.zeros(domain.shape(domain.names))) + table).values


def _from_states(values: Mapping[Any, Any], family: Domain, what: str) -> NDArray[np.float64]:
    """A number for each state of a node without parents."""
    if len(family) > 1:
        raise OptionError(
            f"The {what} of {family.names[-1]!r} is a dict; that is for a node without parents, and this one has the "
            f"parents {listing(family.names[:-1])}. Give an array of shape {family.shape(family.names)}, a Table or a "
            "DataFrame."
        )
    return _placed([(family.names[0], list(values))], list(values.values()), family, what)


def _from_pandas(values: Any, family: Domain, what: str) -> NDArray[np.float64]:
    node, parents = family.names[-1], family.names[:-1]
    if not hasattr(values, "columns"):
        return _placed(_named(_levels(values.index), family.names, family, what), values.to_numpy(), family, what)
    if not parents and values.shape[1] == 1:  # As `Table.to_frame` writes it: the states are the rows.
        return _from_pandas(values.iloc[:, 0], family, what)
    rows, columns = _levels(values.index), _levels(values.columns)
    turned = bool(parents) and [name for name, _ in rows] == [node] and {n for n, _ in columns} == set(parents)
    rows = _named(rows, (node,) if turned else parents, family, what)
    columns = _named(columns, parents if turned else (node,), family, what)
    tall, wide = values.shape
    levels = [(name, np.repeat(np.array(labels, dtype=object), wide).tolist()) for name, labels in rows]
    levels += [(name, labels * tall) for name, labels in columns]
    return _placed(levels, values.to_numpy().ravel(), family, what)


def _levels(index: Any) -> list[Level]:
    return [(name, index.get_level_values(level).tolist()) for level, name in enumerate(index.names)]


def _named(levels: Sequence[Level], wanted: Sequence[Hashable], family: Domain, what: str) -> list[Level]:
    """The levels, checked against the variables that they should stand for; a single one may go without a name."""
    names = [name for name, _ in levels]
    if len(wanted) == 1 and names == [None]:
        return [(wanted[0], levels[0][1])]
    if len(names) != len(wanted) or set(names) != set(wanted):
        raise OptionError(
            f"The {what} of {family.names[-1]!r} has labels of the levels {listing(names)}; expected "
            f"{listing(wanted)}. Name the levels: rows are the parents and columns the node."
        )
    return list(levels)


def _placed(levels: Sequence[Level], numbers: Any, family: Domain, what: str) -> NDArray[np.float64]:
    """The numbers in their cells; every cell must be given exactly once."""
    codes = {name: _codes(family[name], labels, what) for name, labels in levels}
    shape = family.shape(family.names)
    cells = np.ravel_multi_index(tuple(codes[name] for name in family.names), shape)
    times = np.bincount(cells, minlength=int(np.prod(shape)))
    if (times != 1).any():
        index = np.unravel_index(int(np.flatnonzero(times != 1)[0]), shape)
        cell = {v.name: v.states[int(code)] for v, code in zip(family.variables, index, strict=True)}
        count = "twice" if times.max() > 1 and times[np.ravel_multi_index(index, shape)] > 1 else "not at all"
        raise OptionError(
            f"The {what} of {family.names[-1]!r} gives {cell!r} {count}; expected one number for each joint state."
        )
    values = np.empty(cells.size)
    try:
        values[cells] = doubles(numbers)
    except (TypeError, ValueError):
        raise OptionError(f"The {what} of {family.names[-1]!r} holds {listing(numbers)}; expected numbers.") from None
    return values.reshape(shape)


def _codes(variable: Variable, labels: Sequence[Hashable], what: str) -> NDArray[np.intp]:
    try:
        return np.array([variable.index(label) for label in labels], dtype=np.intp)
    except UnknownStateError:
        known = set(variable.states)
        raise OptionError(
            f"The {what} names {listing([label for label in dict.fromkeys(labels) if label not in known])} as states "
            f"of {variable.name!r}, whose states are {listing(variable.states)}."
        ) from None
