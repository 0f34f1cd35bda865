"""Contingency tables and published margins as summaries, so that a model learns from them as from rows.

What counts as a table, and never as rows:

- a `Table`;
- a pandas Series of numbers with a MultiIndex, one level for each variable, or whose index is named after a variable
  and which is not named after one itself, as ``value_counts`` makes it;
- a pandas DataFrame with a MultiIndex and a single column of numbers, none of whose columns is a variable of the model;
- a pandas DataFrame whose index and columns are both named after variables, as ``pandas.crosstab`` makes it;
- an array with named axes (``dims`` and ``coords``, as xarray has them);
- a NumPy array of three or more axes, named by ``columns=``. An array of two axes holds rows; one of counts that could
  be the two-way table of a model of two variables is refused, as nothing tells which it is: ``table=array`` says so;
- a dict from tuples of variables to tables or arrays: margins. A dict whose keys are variables holds columns;
- a list of tables that name their variables, which are margins too.

States without labels are 0, 1, 2, ... unless they are declared. Variables that the model does not know are summed out.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.answers import Answer, CountTable
from suffice.array_types import Floats
from suffice.domain import Domain, Variable, is_missing, sort_states
from suffice.double_double import exact_total
from suffice.errors import DataError, MissingColumnError, listing
from suffice.families.base import as_array, as_numbers
from suffice.models.counts_or_rows import refuse_counts
from suffice.solvers.margins import TOLERANCE
from suffice.statistics import Counts, Statistic, Summary
from suffice.table import Table

Names = tuple[Hashable, ...]

#: What tables call the sums over the states of a variable, in small letters.
NAMES_OF_SUMS = frozenset({"all", "sum", "total", "totals", "margin"})
#: Counts add up to at most this, and their shares are not below one over it.
MOST = 1e300
#: Cells up to which sums are compared with what they would be the sums of.
MOST_COMPARED = 2**22


@dataclass(frozen=True)
class Cells:
    """Counts by joint state: codes (k, variables) with their weights (k,); states of each variable in `domain`."""

    domain: Domain
    codes: NDArray[np.intp]
    weights: Floats

    def over(self, domain: Domain) -> Floats:
        """The table over these variables, summed over all others, states by label."""
        columns = []
        for variable in domain.variables:
            own = self.domain[variable.name]
            places = np.array([variable.index(state) for state in own.states], dtype=np.intp)
            codes = self.codes[:, self.domain.names.index(variable.name)]
            columns.append(codes if (places == np.arange(len(places))).all() else places[codes])
        shape = domain.shape(domain.names)
        flat = np.ravel_multi_index(columns, shape) if columns else np.zeros(len(self.weights), np.intp)
        return np.bincount(flat, self.weights, math.prod(shape)).astype(np.float64, copy=False).reshape(shape)


# -- what the data are ----------------------------------------------------------------------------------------------


def read_cells(
    data: object, columns: object, states: Mapping[Any, Variable], known: Sequence[Hashable], *, named: bool = False
) -> Cells | None:
    """The cells of a contingency table, or None where the data are rows; sums among its cells are an error.

    named: whether the user says that it is a table, by table=.
    """
    if not named:
        refuse_counts(data, columns, states, known)
    cells = _read_cells(data, columns, states, known)
    if cells is None and isinstance(data, np.ndarray | list | tuple) and named:
        cells = _from_axes(as_array(data, "table"), known if columns is None else columns, states)
    if cells is not None:
        for variable in cells.domain.variables:
            _refuse_sums(cells, variable)
    return cells


def _refuse_sums(cells: Cells, variable: Variable) -> None:
    """Refuse a state such as "All" that holds the sums over the others, as ``crosstab(..., margins=True)`` adds it.

    Where variables are nested, the sums over several of them have the state "" of the inner ones.
    """
    axis = cells.domain.names.index(variable.name)
    for code, state in enumerate(variable.states):
        if not (isinstance(state, str) and state.lower() in NAMES_OF_SUMS):
            continue
        here = cells.codes[:, axis] == code
        if here.all() or not here.any():
            continue
        others = [other for other in range(len(cells.domain)) if other != axis and not _is_blank(cells, other, here)]
        shape = [cells.domain.variables[other].card for other in others]
        if math.prod(shape) > MOST_COMPARED:
            continue
        flat = np.ravel_multi_index(list(cells.codes[:, others].T), shape) if others else np.zeros(len(here), np.intp)
        sums, rest = (np.bincount(flat[part], cells.weights[part], math.prod(shape)) for part in (here, ~here))
        if sums.any() and np.allclose(sums, rest, rtol=1e-9, atol=0.0):
            raise DataError(
                f"The state {state!r} of {variable.name!r} holds the sums over all its other states, so every count "
                "would be learned twice. Leave the sums out, as pandas.crosstab(..., margins=False) does, or drop "
                f"them: table.drop(index={state!r}), table.drop(columns={state!r})."
            )


def _is_blank(cells: Cells, axis: int, rows: NDArray[np.bool_]) -> bool:
    """Whether a variable has the state "" in all these cells."""
    return all(cells.domain.variables[axis].states[code] == "" for code in np.unique(cells.codes[rows, axis]))


def _read_cells(
    data: object, columns: object, states: Mapping[Any, Variable], known: Sequence[Hashable]
) -> Cells | None:
    if isinstance(data, Table):
        return _from_array(data.domain, data.values)
    pandas = sys.modules.get("pandas")
    if pandas is not None:
        if isinstance(data, pandas.Series) and _is_count_series(data, known, pandas):
            return _from_series(data, states)
        if isinstance(data, pandas.DataFrame) and _is_cross_table(data, known):
            return _from_series(_unrolled(data, pandas), states)
        if isinstance(data, pandas.DataFrame) and isinstance(data.index, pandas.MultiIndex):
            return _from_frame(data, states, known)
    # Asked of the type: a frame of Spark Connect takes any name for that of a column.
    if hasattr(type(data), "dims") and hasattr(type(data), "coords"):
        return _from_named_axes(data)
    if isinstance(data, np.ndarray) and data.ndim >= 3:
        return _from_axes(data, columns, states)
    return None


def _is_count_series(data: Any, known: Sequence[Hashable], pandas: Any) -> bool:
    if isinstance(data.index, pandas.MultiIndex):
        return True
    return data.index.name in known and data.name not in known and data.dtype.kind in "iuf"


def _is_cross_table(data: Any, known: Sequence[Hashable]) -> bool:
    names = (*data.index.names, *data.columns.names)
    return all(name is not None and name in known for name in names) and not set(known) & set(data.columns)


def _unrolled(data: Any, pandas: Any) -> Any:
    """A cross table as a Series, one level for each variable."""
    index, columns = data.index.to_frame(index=False), data.columns.to_frame(index=False)
    down = index.loc[index.index.repeat(len(columns))].reset_index(drop=True)
    across = pandas.concat([columns] * len(index), ignore_index=True) if len(index) else columns[:0]
    levels = pandas.MultiIndex.from_frame(pandas.concat([down, across], axis=1))
    return pandas.Series(data.to_numpy().ravel(), index=levels)


def is_margins(data: object, known: Sequence[Hashable]) -> bool:
    """Whether the data are a dict from tuples of variables to margins; a name that is no variable is an error."""
    if not isinstance(data, Mapping) or not data or any(key in known for key in data):
        return False
    if not all(isinstance(key, tuple) and len(key) for key in data):
        return False
    unknown = [(key, name) for key in data for name in key if name not in known]
    if unknown and any(isinstance(name, tuple) for name in known):
        return False  # The keys may be columns whose names are tuples.
    if unknown:
        key, name = unknown[0]
        raise DataError(f"The margin {key!r} names {name!r}, which is no variable of the model: {listing(known)}.")
    return True


def named_margins(data: object, known: Sequence[Hashable], *, named: bool) -> dict[Names, Any] | None:
    """Margins by the variables that each table of a list names; None where the data are no such list.

    named: whether the user says that they are a table, by table=, so that entries without names are an error.
    """
    if not isinstance(data, list | tuple) or not any(_is_labelled(entry) for entry in data):
        return None
    margins: dict[Names, Any] = {}
    for number, entry in enumerate(data):
        cells = _read_cells(entry, None, {}, known) if _is_labelled(entry) else None
        names = None if cells is None else tuple(cells.domain.names)
        if not named and (names is None or not set(names) <= set(known)):
            return None
        if names is None:
            raise DataError(
                f"table= is a list of {len(data)}, whose entry {number} does not name its variables. Name the levels "
                f"of its index after them, or give margins by name: table={{({known[0]!r},): ...}}."
            )
        if any(set(names) == set(other) for other in margins):
            raise DataError(f"table= has two margins of {listing(names)}. Give each once.")
        margins[names] = entry
    return margins


def _is_labelled(entry: object) -> bool:
    """Whether it is a table with labels: a Series, a frame, a `Table`, an array with named axes."""
    kind = type(entry)
    labelled = kind.__module__.partition(".")[0] == "pandas" and kind.__name__ in ("Series", "DataFrame")
    return labelled or isinstance(entry, Table) or (hasattr(kind, "dims") and hasattr(kind, "coords"))


def note_total(what: str, values: object) -> tuple[str, ...]:
    """What the report says about a total that is no number of rows: shares, or a sum that is no whole number."""
    numbers = np.asarray(values, dtype=np.float64)
    total = exact_total(numbers)
    whole = abs(total - round(total)) <= TOLERANCE * max(total, 1.0)
    if abs(total - 1.0) <= TOLERANCE and (numbers != np.round(numbers)).any():
        return (
            f"{what.lower()} sum{'s' * (what == 'The table')} to 1: shares of an unknown number of rows, so the "
            "log-likelihood, AIC, BIC and errors are those of a single row",
        )
    if whole:
        return ()
    return (
        f"{what.lower()} sum{'s' * (what == 'The table')} to {total:.10g}, neither 1 nor a whole number: taken as the "
        "number of rows; the distribution depends on the shares alone",
    )


def _checked(values: object, what: str) -> Floats:
    array = as_numbers(values, what, DataError)
    if not np.isfinite(array).all() or (array < 0).any():
        wrong = array[~np.isfinite(array) | (array < 0)].ravel()[0]
        raise DataError(f"{what} holds {wrong}; expected counts, finite and at least 0.")
    used = array[array > 0.0]
    largest, least = used.max(initial=0.0), used.min(initial=np.inf)
    if largest > MOST / max(used.size, 1) or least < max(1.0, largest) / MOST:
        wrong = largest if largest > MOST / max(used.size, 1) else least
        raise DataError(
            f"{what} holds {wrong:.6g}; counts are 0 or at least {1 / MOST:g} of the largest, and add up to at most "
            f"{MOST:g}. Divide all by a common number, or leave out what is as good as never seen."
        )
    return array


def _from_array(domain: Domain, values: object) -> Cells:
    array = np.ascontiguousarray(_checked(values, "The table"))
    used = np.flatnonzero(array)
    codes = np.array(np.unravel_index(used, array.shape), dtype=np.intp).reshape(len(domain), len(used))
    return Cells(domain, codes.T, array.reshape(-1)[used])


def _from_axes(data: NDArray[Any], columns: Any, states: Mapping[Any, Variable]) -> Cells:
    if isinstance(columns, str):
        raise DataError(
            f"columns= is the text {columns!r}; give a list of names, one for each of the {data.ndim} axes."
        )
    names = () if columns is None else tuple(columns)
    if len(names) != data.ndim:
        raise DataError(
            f"The array has {data.ndim} axes and columns= names {len(names)}; a contingency table needs one name for "
            f"each axis: give columns= with {data.ndim} names."
        )
    return _from_array(_array_domain(names, data.shape, states), data)


def _array_domain(names: Sequence[Hashable], shape: Sequence[int], states: Mapping[Any, Variable]) -> Domain:
    """Variables of the axes of an array: with declared states, else 0, 1, 2, ..."""
    variables = []
    for name, card in zip(names, shape, strict=True):
        variable = states[name] if name in states else Variable.discrete(name, range(card), "category")
        if variable.card != card:
            raise DataError(
                f"The axis of {name!r} has {card} cells and the variable {variable.card} states: "
                f"{listing(variable.states)}."
            )
        variables.append(variable)
    return Domain(variables)


def _from_named_axes(data: Any) -> Cells:
    names = tuple(data.dims)
    variables = []
    for name, card in zip(names, data.shape, strict=True):
        labels = np.asarray(data.coords[name]).tolist() if name in data.coords else range(card)
        variables.append(Variable.discrete(name, labels, "category"))
    return _from_array(Domain(variables), np.asarray(data.values))


def _from_frame(data: Any, states: Mapping[Any, Variable], known: Sequence[Hashable]) -> Cells | None:
    in_columns = [name for name in known if name in data.columns]
    in_index = [name for name in known if name in data.index.names]
    if in_columns and in_index:
        raise DataError(
            f"The frame has {listing(in_columns)} among its columns and {listing(in_index)} in its index, so it could "
            "be rows or a table. Use reset_index() for rows, or a Series of counts for a table."
        )
    if in_columns or not in_index:
        return None
    if data.shape[1] != 1 or data.dtypes.iloc[0].kind not in "iuf":
        raise DataError(
            f"The frame has its variables in the index and the columns {listing(data.columns)}; a contingency table "
            "has a single column of counts."
        )
    return _from_series(data.iloc[:, 0], states)


def _from_series(data: Any, states: Mapping[Any, Variable]) -> Cells:
    index = data.index if hasattr(data.index, "levels") else _one_level(data.index)
    names = tuple(index.names)
    if None in names or len(set(names)) != len(names):
        raise DataError(f"The levels of the index are named {listing(names)}; name every level after its variable.")
    weights = _checked(data.to_numpy(), "The table of counts")
    seen = np.flatnonzero(weights)
    variables, codes = [], []
    for level, name in enumerate(names):
        labels, used = index.levels[level], np.asarray(index.codes[level])
        if used.min(initial=0) < 0 or any(is_missing(label) for label in labels):
            raise DataError(f"The level {name!r} of the index has missing values; every cell needs a state.")
        variable = states[name] if name in states else _level_variable(name, labels)
        places = np.array([variable.index(label) for label in labels], dtype=np.intp)
        variables.append(variable)
        codes.append(places[used[seen]])
    return Cells(Domain(variables), np.array(codes).T, weights[seen])


def _one_level(index: Any) -> Any:
    """An index of one variable as a MultiIndex of one level."""
    return sys.modules["pandas"].MultiIndex.from_arrays([index], names=[index.name])


def _level_variable(name: Hashable, labels: Any) -> Variable:
    listed = labels.tolist()
    if type(labels).__name__ == "CategoricalIndex":
        return Variable.discrete(name, labels.categories.tolist(), "category")
    return Variable.discrete(name, sort_states(listed), "seen")


# -- summaries -------------------------------------------------------------------------------------------------------


def summary_of_cells(
    cells: Cells,
    known: Sequence[Hashable],
    states: Mapping[Any, Variable],
    ask: Callable[[Domain], Iterable[Statistic]],
) -> Summary:
    """The answers that rows with these counts would give."""
    missing = [name for name in known if name not in cells.domain]
    if missing:
        raise MissingColumnError(
            f"The table has the variables {listing(cells.domain.names)}; the model also needs {listing(missing)}."
        )
    domain = Domain(states.get(name, cells.domain[name]) for name in known)
    answers = {question: CountTable.of(cells.over(domain.select(question.variables))) for question in ask(domain)}
    total = exact_total(cells.weights)
    return Summary(domain, answers, math.ceil(total - TOLERANCE), total)


def read_margins(data: Mapping[Any, Any], states: Mapping[Any, Variable], known: Sequence[Hashable]) -> list[Table]:
    """Margins with axes in the order of their keys, all over one set of states."""
    margins = [(key, _read_margin(key, values, states)) for key, values in data.items()]
    _check_cards(data, margins, states)
    domain = Domain()
    for _, cells in margins:
        domain = domain.merge(cells.domain)
    missing = [name for name in known if name not in domain and name not in states]
    if missing:
        raise MissingColumnError(f"No margin holds {listing(missing)}. Give one, or declare states=.")
    return [Table(domain.select(key), cells.over(domain.select(key))) for key, cells in margins]


def _check_cards(
    data: Mapping[Any, Any], margins: Sequence[tuple[Names, Cells]], states: Mapping[Any, Variable]
) -> None:
    """Arrays without labels must agree on how many states a variable has."""
    first: dict[Hashable, tuple[Names, int]] = {}
    for key, cells in margins:
        plain = isinstance(data[key], np.ndarray | list | tuple)
        for name in key if plain else ():
            card = cells.domain[name].card
            before, known = first.setdefault(name, (key, card))
            if name not in states and card != known:
                raise DataError(
                    f"The margins {before!r} and {key!r} give {name!r} {known} and {card} states. Give tables with "
                    "labels, or declare states=."
                )


def _read_margin(key: Names, values: Any, states: Mapping[Any, Variable]) -> Cells:
    if len(set(key)) != len(key):
        raise DataError(f"The margin {listing(key)} names a variable twice.")
    cells = read_cells(values, None, states, key) if not isinstance(values, np.ndarray) else None
    if cells is None and type(values).__name__ == "Series" and values.index.name in (key[0], None) and len(key) == 1:
        variable = states.get(key[0], _level_variable(key[0], values.index))
        codes = np.array([[variable.index(label)] for label in values.index.tolist()], dtype=np.intp)
        cells = Cells(Domain([variable]), codes.reshape(-1, 1), _checked(values.to_numpy(), f"The margin {key!r}"))
    if cells is None:
        array = _checked(values, f"The margin of {listing(key)}")
        if array.ndim != len(key):
            raise DataError(f"The margin of {listing(key)} has {array.ndim} axes; expected {len(key)}.")
        cells = _from_array(_array_domain(key, array.shape, states), array)
    if set(cells.domain.names) != set(key):
        raise DataError(f"The margin of {listing(key)} is a table of {listing(cells.domain.names)}.")
    return cells


def summary_of_margins(margins: Sequence[Table], states: Mapping[Any, Variable]) -> Summary:
    """Margins as the answers to counts of their cliques; all are brought to the total of the largest."""
    scale = max(float(margin.values.sum()) for margin in margins)
    if not scale > 0:
        raise DataError("The margins add up to 0: there is nothing to learn from.")
    domain = Domain()
    for margin in margins:
        domain = domain.merge(margin.domain)
    domain = Domain([*domain.variables, *(variable for name, variable in states.items() if name not in domain)])
    answers: dict[Statistic, Answer] = {}
    for margin in margins:
        values = margin.values * (scale / float(margin.values.sum()))
        answers[Counts(margin.variables)] = CountTable.of(values)
    return Summary(domain, answers, math.ceil(scale - TOLERANCE), scale)
