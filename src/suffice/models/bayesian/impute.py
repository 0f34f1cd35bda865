"""Missing values of rows filled in by a fitted network: the most probable, means, or draws for multiple imputation."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Flags, Floats
from suffice.checks import choice, no_seed, whole_number
from suffice.choices import Imputation, choices
from suffice.errors import DataError, OptionError, SizeError, listing
from suffice.fitting.estimator import frame_of
from suffice.fitting.matrices import matrix_of
from suffice.models.bayesian.fitted import NetworkFitted
from suffice.models.evidence import check_possible

Codes = dict[Hashable, NDArray[Any]]

#: Cells of the joint table of what one row lacks, and numbers worked on at a time.
MOST_CELLS, STEP = 2**12, 2**22


def impute(
    net: Any,
    rows: Any,
    method: Imputation = "map",
    *,
    n: int | None = None,
    random_state: Any = None,
    columns: Any = None,
) -> Any:
    """The rows with their missing values filled in, from the distribution given what each row shows.

    Args:
        net: the network.
        rows: a frame, a dict of columns, or an array with `columns`; what it has no column of is summed out.
        method: ``"map"`` is the most probable of all joint states that a row may have where values are missing, and
            for numbers their mean given these states, which is the mode; ``"mean"`` takes each cell by itself: the
            mean of a number, the most probable state; ``"draws"`` draws a row from the joint distribution.
        n: how many completed tables are drawn, for `sf.pool`; without it a single one.
        random_state: seed of the draws.
        columns: for an array, the names of its columns.

    Returns:
        Rows of the kind that was given; with `n` a list of them. Draws are from the fitted parameters, so that the
        uncertainty about these is not in them: draw from refits of a bootstrap where rows are few.
    """
    choice(method, "method", choices(Imputation))
    if method != "draws":
        no_seed(random_state)
        if n is not None:
            raise OptionError(f"n= is the number of tables that are drawn and has no effect with method={method!r}.")
    count = 1 if n is None else whole_number(n, "n", 1)
    fitted: NetworkFitted = net.fitted_
    inexact = [name for name, node in fitted.nodes.items() if not node.is_exact]
    if inexact:
        raise OptionError(
            f"{listing(inexact)} have kinds of nodes given whose values others follow no table and no normal "
            "distribution. impute takes tables and linear-Gaussian nodes."
        )
    from suffice.models.row_answers import coded_columns

    parts = [part for part, _ in coded_columns(rows, fitted.inference.domain, columns)]
    known: Codes = {name: np.concatenate([part[name] for part in parts]) for name in (parts[0] if parts else {})}
    lacking = {name: _missing(values) for name, values in known.items()}
    filling = IncompleteRows(fitted, known, {name: where for name, where in lacking.items() if where.any()})
    if method == "draws":
        from suffice.families.base import generator

        rng = generator(random_state)
        tables = [_completed(fitted, rows, columns, filling.draw(rng), filling.lacking) for _ in range(count)]
        return tables[0] if n is None else tables
    filled = filling.most_probable() if method == "map" else filling.means()
    return _completed(fitted, rows, columns, filled, filling.lacking)


def _missing(values: NDArray[Any]) -> Flags:
    """Where codes are -1, or numbers NaN."""
    return np.isnan(values) if values.dtype.kind == "f" else values < 0


class IncompleteRows:
    """Rows by column, codes and numbers, and where each column lacks some."""

    def __init__(self, fitted: NetworkFitted, known: Codes, lacking: Mapping[Hashable, Flags]) -> None:
        """Take the columns that the rows have, and those of them that lack values."""
        self.fitted, self.known, self.lacking = fitted, known, lacking
        self.infer = fitted.inference
        self.states = [name for name in lacking if fitted.domain[name].kind == "discrete"]
        self.reals = [name for name in lacking if fitted.domain[name].kind != "discrete"]

    def means(self) -> Codes:
        """Each cell by itself."""
        filled = {name: self.known[name].copy() for name in self.lacking}
        for name in self.states:
            for some in self._steps(np.flatnonzero(self.lacking[name]), self.fitted.domain[name].card):
                filled[name][some] = self._distributions(self.known, some, [name]).argmax(axis=1)
        for name in self.reals:
            some = np.flatnonzero(self.lacking[name])
            filled[name][some] = self._mean(self.known, some, name)
        return filled

    def most_probable(self) -> Codes:
        """States jointly, then numbers given these."""
        filled = {name: values.copy() for name, values in self.known.items()}
        for names, some in _patterns(self.lacking, self.states):
            cards = [self.fitted.domain[name].card for name in names]
            if math.prod(cards) > MOST_CELLS:
                self._search(filled, names, some)
                continue
            for part in self._steps(some, math.prod(cards)):
                best = self._distributions(self.known, part, names).reshape(len(part), -1).argmax(axis=1)
                for name, codes in zip(names, np.unravel_index(best, cards), strict=True):
                    filled[name][part] = codes
        given = {name: filled[name] if name in self.states else values for name, values in self.known.items()}
        for name in self.reals:
            some = np.flatnonzero(self.lacking[name])
            filled[name][some] = self._mean(given, some, name)
        return filled

    def _search(self, filled: Codes, names: Sequence[Hashable], rows: NDArray[np.intp]) -> None:
        """The most probable states where their joint table would be large, one distinct row after the other."""
        if self.infer.kind != "tables" or set(self.known) != set(self.fitted.nodes):
            raise SizeError(
                f"Row {rows[0]} lacks {listing(names)}, whose joint table has more than {MOST_CELLS:,} cells. Use "
                "method='mean', which takes each cell by itself, or method='draws'."
            )
        domain, order = self.fitted.domain, list(self.known)
        cells = np.stack([self.known[name][rows] for name in order], axis=1)
        distinct, pattern_of = np.unique(cells, axis=0, return_inverse=True)
        for number, row in enumerate(distinct.tolist()):
            seen = {name: domain[name].states[code] for name, code in zip(order, row, strict=True) if code >= 0}
            best = self.infer.map_query(seen)
            for name in names:
                filled[name][rows[pattern_of.ravel() == number]] = domain[name].states.index(best[name])

    def draw(self, rng: np.random.Generator) -> Codes:
        """A draw for each row: one column after the other, each given what is known and what was drawn before it.

        Numbers follow a normal distribution once all states are known: states that the rows have no column of are
        drawn too.
        """
        domain = self.fitted.domain
        filled = {name: values.copy() for name, values in self.known.items()}
        n = len(next(iter(filled.values()))) if filled else 0
        lacking = dict(self.lacking)
        if self.reals:
            unknown = np.any([self.lacking[name] for name in self.reals], axis=0)
            for variable in domain.variables:
                if variable.kind == "discrete" and variable.name not in filled:
                    filled[variable.name], lacking[variable.name] = np.full(n, -1, dtype=np.int32), unknown
        states = [name for name in lacking if domain[name].kind == "discrete"]
        for name in states:
            for some in self._steps(np.flatnonzero(lacking[name]), domain[name].card):
                upto = self._distributions(filled, some, [name]).cumsum(axis=1)
                drawn = (upto[:, :-1] < rng.random(len(some))[:, None] * upto[:, -1:]).sum(axis=1)
                filled[name][some] = drawn
        for name in self.reals:
            some = np.flatnonzero(lacking[name])
            means, deviations = self._mean(filled, some, name), self._deviations(filled, some, name)
            filled[name][some] = means + deviations * rng.standard_normal(len(some))
        return filled

    # -- what follows from some rows ---------------------------------------------------------------------------------

    def _steps(self, rows: NDArray[np.intp], width: int) -> Iterator[NDArray[np.intp]]:
        step = max(1, STEP // width)
        yield from (rows[start : start + step] for start in range(0, len(rows), step))

    def _distributions(self, given: Codes, rows: NDArray[np.intp], names: Sequence[Hashable]) -> Floats:
        """P(names | row) of some rows, which lack these."""
        seen = {name: values[rows] for name, values in given.items()}
        distributions, possible = self.infer.distributions_of_rows(seen, len(rows), list(names))
        check_possible(possible, lambda number: int(rows[number]))
        return np.asarray(distributions)

    def _mean(self, given: Codes, rows: NDArray[np.intp], name: Hashable) -> Floats:
        """The mean of a number given each of some rows."""
        seen = {name: values[rows] for name, values in given.items()}
        means, possible = self.infer.predict_rows(seen, len(rows), name)
        check_possible(possible, lambda number: int(rows[number]))
        return np.asarray(means)

    def _deviations(self, given: Codes, rows: NDArray[np.intp], name: Hashable) -> Floats:
        """The standard deviation of a number given each of some rows, whose states are all known.

        It depends on the states and on which numbers are known, never on their values.
        """
        domain, order = self.fitted.domain, list(given)
        key = np.stack(
            [given[k][rows] if domain[k].kind == "discrete" else ~np.isnan(given[k][rows]) for k in order], axis=1
        )
        _, first, pattern_of = np.unique(key.astype(np.int64), axis=0, return_index=True, return_inverse=True)
        deviations = np.empty(len(first))
        for number, row in enumerate(rows[first].tolist()):
            seen: dict[Hashable, Any] = {}
            for other in order:
                value = given[other][row]
                if domain[other].kind == "discrete":
                    seen[other] = domain[other].states[int(value)]
                elif not math.isnan(value):
                    seen[other] = float(value)
            answer = self.infer.query([name], seen)
            deviations[number] = math.sqrt(max(0.0, float(np.asarray(answer.covariance)[0, 0])))
        return deviations[pattern_of.ravel()]


def _patterns(
    lacking: Mapping[Hashable, Flags], names: Sequence[Hashable]
) -> Iterator[tuple[list[Hashable], NDArray[np.intp]]]:
    """Which of these columns are missing together, and in which rows."""
    if not names:
        return
    flags = np.stack([lacking[name] for name in names], axis=1)
    patterns, pattern_of = np.unique(flags, axis=0, return_inverse=True)
    for number, pattern in enumerate(patterns):
        if pattern.any():
            missing = [name for name, is_missing in zip(names, pattern, strict=True) if is_missing]
            yield missing, np.flatnonzero(pattern_of.ravel() == number)


# -- rows of the kind given --------------------------------------------------------------------------------------------


def _completed(fitted: NetworkFitted, rows: Any, columns: Any, filled: Codes, lacking: Mapping[Hashable, Flags]) -> Any:
    """The rows as they were given, with the missing cells filled in."""
    cells = {}
    for name, where in lacking.items():
        places = np.flatnonzero(where)
        cells[name] = places, fitted.labels_of(name, filled[name][places]).tolist()
    package = frame_of(rows)
    if package == "pandas":
        return _in_pandas(rows, cells)
    if package is not None:
        return _in_arrow(rows, cells) if package == "pyarrow" else _in_polars(rows, cells)
    if isinstance(rows, Mapping):
        return {name: _in_column(values, *cells[name]) if name in cells else values for name, values in rows.items()}
    matrix = matrix_of(rows)
    if matrix is None or not isinstance(rows, np.ndarray | list):
        raise DataError(
            f"impute fills rows in memory: a frame of pandas, polars or pyarrow, a dict of columns or an array; this "
            f"is a {type(rows).__name__}."
        )
    table = matrix.columns(columns)
    return np.column_stack([_in_column(v, *cells[name]) if name in cells else v for name, v in table.items()])


def _in_column(values: Any, places: NDArray[np.intp], labels: list[Any]) -> Any:
    """A column with some values set: a list as one, an array of numbers where all are numbers."""
    if isinstance(values, list | tuple):
        return _filled(list(values), places, labels)
    column = np.array(values, dtype=object)
    for row, label in zip(places.tolist(), labels, strict=True):
        column[row] = label
    kinds = {type(value) for value in column.tolist()}
    numbers = all(issubclass(kind, int | float | np.number) and kind is not bool for kind in kinds)
    return np.array(column.tolist()) if numbers else column


def _in_pandas(rows: Any, cells: Mapping[Hashable, tuple[NDArray[np.intp], list[Any]]]) -> Any:
    frame = rows.copy()
    for name, (places, labels) in cells.items():
        column = frame[name]
        if hasattr(column, "cat"):
            column = column.cat.add_categories([s for s in dict.fromkeys(labels) if s not in column.cat.categories])
        elif column.dtype.kind in "iu" and any(isinstance(label, float) for label in labels):
            column = column.astype("Float64")
        else:
            column = column.copy()
        column.iloc[places] = labels
        frame[name] = column
    return frame


def _in_polars(rows: Any, cells: Mapping[Hashable, tuple[NDArray[np.intp], list[Any]]]) -> Any:
    import polars as pl

    made = []
    for name, (places, labels) in cells.items():
        kind = rows[name].dtype
        wide = kind.is_integer() and any(isinstance(label, float) for label in labels)
        made.append(pl.Series(str(name), _filled(rows[name].to_list(), places, labels), pl.Float64 if wide else kind))
    return rows.with_columns(made)


def _in_arrow(rows: Any, cells: Mapping[Hashable, tuple[NDArray[np.intp], list[Any]]]) -> Any:
    import pyarrow as pa

    for name, (places, labels) in cells.items():
        number = rows.column_names.index(name)
        kind = rows.schema.field(number).type
        wide = pa.types.is_integer(kind) and any(isinstance(label, float) for label in labels)
        values = _filled(rows.column(number).to_pylist(), places, labels)
        rows = rows.set_column(number, name, pa.array(values, pa.float64() if wide else kind))
    return rows


def _filled(values: list[Any], places: NDArray[np.intp], labels: list[Any]) -> list[Any]:
    for row, label in zip(places.tolist(), labels, strict=True):
        values[row] = label
    return values
