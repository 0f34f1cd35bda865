"""A labelled array over discrete variables: tables, marginals and potentials as people read them."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from suffice.array_types import Floats
from suffice.domain import Domain, Variable, state_key
from suffice.errors import FileFormatError, OptionError, listing, require, shortened
from suffice.options import doubles

#: A print shows at most this many rows of a table.
SHOWN = 20


class Table:
    """Values over the joint states of some variables, one axis for each variable.

    >>> table = Table(Domain([Variable.discrete("smoker", ["no", "yes"])]), [0.75, 0.25])
    >>> table.at(smoker="yes")
    0.25
    """

    def __init__(self, domain: Domain, values: ArrayLike) -> None:
        """Values (one axis for each variable of the domain, in its order)."""
        self._domain = domain
        # What a table shows may be the parameters of a model, which nobody changes by writing into a table.
        try:
            self._values = numbers = doubles(values).view()
        except (TypeError, ValueError):
            raise OptionError(
                f"The values over {listing(domain.names)} are {shortened(values)}; expected numbers."
            ) from None
        numbers.flags.writeable = False
        if numbers.shape != domain.shape(domain.names):
            raise OptionError(
                f"The values have shape {self._values.shape}; the variables {listing(domain.names)} have "
                f"{domain.shape(domain.names)} states."
            )

    @classmethod
    def over(cls, domain: Domain, values: Floats) -> Table:
        """A table of a view (shape of the domain) that nobody else writes to; it is read-only from now on."""
        values.setflags(write=False)
        table = object.__new__(cls)
        table._domain, table._values = domain, values
        return table

    # -- reading -----------------------------------------------------------------------------------------------------

    @property
    def variables(self) -> tuple[Hashable, ...]:
        """Names of the axes, in order."""
        return self._domain.names

    @property
    def states(self) -> dict[Hashable, tuple[Hashable, ...]]:
        """States of each axis, in order."""
        return {variable.name: variable.states for variable in self._domain.variables}

    @property
    def values(self) -> Floats:
        """The array."""
        return self._values

    @property
    def domain(self) -> Domain:
        """The variables."""
        return self._domain

    def at(self, where: Mapping[Hashable, Hashable] | None = None, /, **states: Hashable) -> Any:
        """The value at a joint state, or the smaller table where only some variables are named.

        Names that are not identifiers go into a dict: ``table.at({0: "a"})``.
        """
        named: dict[Hashable, Hashable] = dict(where or {})
        named.update(states)
        index = tuple(
            variable.index(named[variable.name]) if variable.name in named else slice(None)
            for variable in self._domain.variables
        )
        for name in named:
            self._domain[name]
        rest = [name for name in self.variables if name not in named]
        inside = self._values[index]
        return Table(self._domain.select(rest), inside) if rest else float(inside)

    def sel(self, where: Mapping[Hashable, Hashable] | None = None, /, **states: Hashable) -> Any:
        """The same as `at`, by the name that xarray has for it."""
        return self.at(where, **states)

    def __getitem__(self, states: Any) -> Any:
        """The value, or the smaller table, at the states of the first axes in their order: ``table["yes", "low"]``."""
        chosen = states if isinstance(states, tuple) else (states,)
        if len(chosen) == 1 < len(self.variables) and chosen[0] not in self._domain.variables[0].states:
            axes = [name for name, known in self.states.items() if chosen[0] in known]
            if axes:
                raise OptionError(
                    f"{chosen[0]!r} is a state of {listing(axes)}, and the first axis is {self.variables[0]!r}; write "
                    f"table.sel({{{axes[0]!r}: {chosen[0]!r}}})."
                )
        if len(chosen) > len(self.variables):
            raise OptionError(
                f"{len(chosen)} states are given for {len(self.variables)} axes: {listing(self.variables)}."
            )
        return self.at(dict(zip(self.variables, chosen, strict=False)))

    # An array on the left leaves arithmetic by label to the table.
    __array_priority__ = 1000.0

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Floats:
        """The values, for functions of NumPy."""
        return np.array(self._values, dtype=dtype, copy=copy)

    def items(self) -> Iterator[tuple[tuple[Hashable, ...], float]]:
        """Every joint state with its value, last variable fastest."""
        lists = [variable.states for variable in self._domain.variables]
        for cell in np.ndindex(*self._values.shape):
            yield tuple(states[code] for states, code in zip(lists, cell, strict=True)), float(self._values[cell])

    # -- reshaping ---------------------------------------------------------------------------------------------------

    def transpose(self, variables: Sequence[Hashable]) -> Table:
        """The same values with the axes in another order."""
        if len(variables) != len(self.variables) or set(variables) != set(self.variables):
            raise OptionError(f"The axes are {listing(self.variables)}; asked for {listing(variables)}.")
        axes = [self.variables.index(name) for name in variables]
        return Table(self._domain.select(variables), self._values.transpose(axes))

    def marginal(self, variables: Hashable | Sequence[Hashable]) -> Table:
        """Summed over every other variable; axes in the order asked."""
        names = self._domain.names_of(variables)
        kept = [name for name in self.variables if name in names]
        drop = tuple(axis for axis, name in enumerate(self.variables) if name not in names)
        return Table(self._domain.select(kept), self._values.sum(axis=drop)).transpose(names)

    def normalize(self) -> Table:
        """Divided by the sum of all values."""
        total = float(self._values.sum())
        if not (math.isfinite(total) and total > 0):
            raise OptionError(f"The values add up to {total}; a table is normalised by a positive sum.")
        return Table(self._domain, self._values / total)

    # -- arithmetic --------------------------------------------------------------------------------------------------

    def _combine(self, other: Table | ArrayLike, function: Callable[[Any, Any], Any], *, turned: bool = False) -> Table:
        if not isinstance(other, Table):
            values = function(other, self._values) if turned else function(self._values, other)
            return Table(self._domain, values)
        names = [*self.variables, *(name for name in other.variables if name not in self.variables)]
        domain = Domain([*self._domain.variables, *(other._domain[n] for n in names[len(self.variables) :])])
        return Table(domain, function(self._spread(names, domain), other._spread(names, domain)))

    def _spread(self, names: Sequence[Hashable], domain: Domain) -> Floats:
        """The values with one axis for each name, states in the order of the domain."""
        values = self._values
        for axis, variable in enumerate(self._domain.variables):
            wanted = domain[variable.name]
            if set(map(state_key, wanted.states)) != set(map(state_key, variable.states)):
                raise OptionError(
                    f"{variable.name!r} has the states {listing(variable.states)} in one table and "
                    f"{listing(wanted.states)} "
                    "in the other."
                )
            values = values.take([variable.index(state) for state in wanted.states], axis=axis)
        axes = [self.variables.index(name) for name in names if name in self.variables]
        shape = [domain[name].card if name in self.variables else 1 for name in names]
        return np.broadcast_to(values.transpose(axes).reshape(shape), domain.shape(names))

    def __add__(self, other: Table | ArrayLike) -> Table:
        return self._combine(other, operator.add)

    def __sub__(self, other: Table | ArrayLike) -> Table:
        return self._combine(other, operator.sub)

    def __mul__(self, other: Table | ArrayLike) -> Table:
        return self._combine(other, operator.mul)

    def __truediv__(self, other: Table | ArrayLike) -> Table:
        """0 / 0 = 0, as in every message of a junction tree."""
        return self._combine(other, _divide)

    def __radd__(self, other: ArrayLike) -> Table:
        return self._combine(other, operator.add, turned=True)

    def __rsub__(self, other: ArrayLike) -> Table:
        return self._combine(other, operator.sub, turned=True)

    def __rmul__(self, other: ArrayLike) -> Table:
        return self._combine(other, operator.mul, turned=True)

    def __rtruediv__(self, other: ArrayLike) -> Table:
        return self._combine(other, _divide, turned=True)

    def allclose(self, other: Table, *, rtol: float = 1e-9, atol: float = 0.0) -> bool:
        """Same variables in any order, same states in any order, values equal to the tolerance."""
        if set(self.variables) != set(other.variables):
            return False
        return bool(np.allclose(self._values, other._spread(self.variables, self._domain), rtol=rtol, atol=atol))

    # -- other forms -------------------------------------------------------------------------------------------------

    def to_series(self) -> Any:
        """A pandas Series with one index level for each variable."""
        pd = require("pandas", extra="all", purpose="Table.to_series")
        lists = [list(variable.states) for variable in self._domain.variables]
        if not lists:
            return pd.Series([float(self._values)])
        index = pd.MultiIndex.from_product(lists, names=list(self.variables))
        return pd.Series(self._values.ravel(), index=index if len(lists) > 1 else index.get_level_values(0))

    def to_frame(self) -> Any:
        """A pandas DataFrame: one row for each joint state of all but the last variable, which gives the columns."""
        pd = require("pandas", extra="all", purpose="Table.to_frame")
        if not self.variables:
            return pd.DataFrame({"value": [float(self._values)]})
        if len(self.variables) == 1:
            return self.to_series().rename("value").to_frame()
        last = self._domain.variables[-1]
        lists = [list(variable.states) for variable in self._domain.variables[:-1]]
        index = pd.MultiIndex.from_product(lists, names=list(self.variables[:-1]))
        columns = pd.Index(list(last.states), name=last.name)
        rows = self._values.reshape(-1, last.card)
        return pd.DataFrame(rows, index=index if len(lists) > 1 else index.get_level_values(0), columns=columns)

    def to_dict(self) -> dict[str, Any]:
        """Plain data: variables, states and nested values."""
        states = [list(variable.states) for variable in self._domain.variables]
        return {"variables": list(self.variables), "states": states, "values": self._values.tolist()}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Table:
        """Rebuild from plain data."""
        values = np.asarray(plain["values"])
        if "domain" in plain:  # As older versions wrote it.
            domain = plain["domain"]
        else:
            states = zip(plain["variables"], plain["states"], strict=True)
            domain = Domain(Variable.discrete(name, labels) for name, labels in states)
        if values.dtype != np.float64 or not isinstance(domain, Domain):
            raise FileFormatError("A table needs variables and an array of float64 values.")
        return cls(domain, values)

    # -- display -----------------------------------------------------------------------------------------------------

    def _grid(self) -> tuple[list[str], list[list[str]], int]:
        """Header, rows and the number of rows left out: the last variable runs along the columns."""
        *outer, last = self._domain.variables or (Variable.discrete("", [""]),)
        head = [str(v.name) for v in outer] + [f"{last.name}={s}" if last.name != "" else "value" for s in last.states]
        rows = self._values.reshape(-1, last.card)
        cells = np.ndindex(*(v.card for v in outer))
        body = [
            [str(v.states[code]) for v, code in zip(outer, codes, strict=True)] + [f"{value:.4g}" for value in row]
            for codes, row in zip(cells, rows[:SHOWN], strict=False)
        ]
        return head, body, len(rows) - len(body)

    def __str__(self) -> str:
        head, body, rest = self._grid()
        widths = [max(len(row[k]) for row in (head, *body)) for k in range(len(head))]
        lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in (head, *body)]
        return "\n".join([*lines, f"... ({rest:,} more rows)"] if rest else lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        import html

        head, body, rest = self._grid()

        def row(cells: Iterable[str], tag: str) -> str:
            return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"

        foot = f"<caption>{rest:,} more rows</caption>" if rest else ""
        rows = row(head, "th") + "".join(row(cells, "td") for cells in body)
        return f"<table class='suffice-table'>{foot}{rows}</table>"


def _divide(left: ArrayLike, right: ArrayLike) -> Floats:
    top, bottom = np.broadcast_arrays(np.asarray(left, dtype=np.float64), np.asarray(right, dtype=np.float64))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where((top == 0) & (bottom == 0), 0.0, top / bottom)
