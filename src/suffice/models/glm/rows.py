"""From what a user gives to `fit` to the rows of a regression."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.domain import Domain, Variable
from suffice.engines.linear_predictor import Block
from suffice.errors import DataError, MissingValueError, OptionError
from suffice.models.glm import response as responses
from suffice.models.glm.design import Design, Parameters, Table
from suffice.models.glm.families import BinomialFamily, Family
from suffice.models.glm.formula import INTERCEPT, as_frame, model_matrices
from suffice.models.glm.input import (
    Coding,
    Roles,
    Rows,
    StreamRows,
    batch_table,
    checked_weights,
    explanatory,
    is_matrix,
    is_sparse,
    offset_of,
    open_rows,
    read_columns,
    read_matrix,
    side_column,
    stream_design,
    unnamed_width,
)
from suffice.models.glm.response import Response, check_finite
from suffice.sources import open_source
from suffice.sources.base import Batch, Source
from suffice.sources.columns import Column
from suffice.sources.memory import MemorySource

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Asked:
    """What `fit` was given beside X."""

    y: Any
    sample_weight: Any = None
    offset: Any = None
    exposure: Any = None
    trials: Any = None
    columns: Any = None


@dataclass(frozen=True, eq=False)
class Read:
    """The rows of a fit, ready for the engine; `constant` is the part of the log-likelihood that trials bring.

    `ahead` names the parameters before the coefficients: the thresholds between ordered labels. Rows without weight are
    not among `rows`: they say nothing, and at the coefficients of the others a link may not even allow them. `given` is
    the number of rows with them.
    """

    design: Design
    rows: Rows | StreamRows
    weight: float
    classes: tuple[Hashable, ...] | None = None
    constant: float = 0.0
    has_offset: bool = False
    specification: Any = None
    ahead: tuple[str, ...] = ()
    given: int = 0

    @property
    def parameters(self) -> Parameters:
        """All parameters, by name."""
        return Parameters(self.ahead, self.design)


@dataclass(frozen=True)
class Kind:
    """What response is wanted: "numbers", "shares", "labels", "ordered" or "vectors"; `states` where declared."""

    response: str
    states: tuple[Hashable, ...] | None = None
    family: Family | None = None
    link: str = "identity"

    def design(self, found: Design) -> Design:
        """The design for this response: thresholds take the place of the constant."""
        if self.response == "ordered":
            return replace(found, constant=False)
        return replace(found, blocked=False) if self.response == "labels" else found

    def ahead(self, classes: tuple[Hashable, ...] | None) -> tuple[str, ...]:
        """Names of the thresholds between ordered labels."""
        return threshold_names(classes or ()) if self.response == "ordered" else ()

    def read(self, y: Any, trials: Any) -> Response:
        """The response of rows in memory."""
        if trials is not None and self.response != "shares":
            raise OptionError("trials= belongs to the binomial family.")
        if self.response == "shares":
            return responses.read_shares(y, trials, self.states)
        if self.response == "labels":
            return responses.read_labels(y, self.states)
        if self.response == "ordered":
            return responses.read_ordered(y, self.states)
        if self.response == "vectors":
            return responses.read_vectors(y)
        found = responses.read_numbers(y)
        if self.family is not None:
            self.family.check(found.y)
        return found


def threshold_names(labels: Sequence[Hashable]) -> tuple[str, ...]:
    """Each threshold by the labels on its two sides."""
    return tuple(f"{low}|{high}" for low, high in pairwise(labels))


def read_rows(X: Any, asked: Asked, kind: Kind, coding: Coding, formula: str | None) -> Read:
    """Any data to rows."""
    if formula is not None:
        return _from_formula(X, asked, kind, coding, formula)
    if is_sparse(X) or is_matrix(X):
        design, table = read_matrix(X, asked.columns, coding)
        return _joined(design, table, asked.y, asked, kind, None)
    source = open_rows(X, asked.columns)
    if not isinstance(source, MemorySource):
        return _from_stream(source, asked, kind, coding)
    y = asked.y
    pair = isinstance(y, tuple) and len(y) >= 2 and all(_is_name(one, source) for one in y) and not _is_name(y, source)
    named = pair or _is_name(y, source)
    taken = [
        name for name in (asked.sample_weight, asked.offset, asked.exposure, asked.trials) if _is_name(name, source)
    ]
    columns = asked.columns if unnamed_width(X) is None else None  # Those of an array were names, for all of them.
    names = explanatory(source, [*taken, y] if named else taken, columns)
    design, table = read_columns(names, source.column, source.rows, coding)
    if pair:
        y = np.column_stack([responses.numbers(source.column(one)) for one in y])
    elif named:
        y = source.column(y)
    return _joined(design, table, y, asked, kind, source)


def _is_name(value: Any, source: Source) -> bool:
    try:
        return bool(isinstance(value, Hashable) and value in source.columns)
    except (TypeError, ValueError):
        return False


def _joined(design: Design, table: Table, y: Any, asked: Asked, kind: Kind, source: Source | None) -> Read:
    if y is None:
        raise DataError("There is no response: give y=, an array or the name of a column.")
    if isinstance(y, str):
        raise DataError(f"y is {y!r}, which is no column of the data; give its values or the name of a column.")
    trials = side_column(asked.trials, source, table.rows, "trials")
    response = kind.read(y, trials)
    if len(response.y) != table.rows:
        raise DataError(f"The response has {len(response.y)} rows and X has {table.rows}; give one response a row.")
    weights = checked_weights(side_column(asked.sample_weight, source, table.rows, "sample_weight"))
    offset = side_column(asked.offset, source, table.rows, "offset")
    offset = offset_of(offset, side_column(asked.exposure, source, table.rows, "exposure"), kind.link)
    weight = float(table.rows) if weights is None else float(weights.sum())
    constant = 0.0
    if response.trials is not None:
        choices = responses.log_choices(response.y * response.trials, response.trials)
        constant = float(choices.sum() if weights is None else weights @ choices)
        weights = response.trials if weights is None else weights * response.trials
    design = kind.design(design)
    block = design.block(table, response.y, weights, offset)
    ahead, rows = kind.ahead(response.classes), Rows(block, response.trials)
    if weights is not None and not weights.all():
        kept = np.flatnonzero(weights)
        rows = Rows(block.chosen(kept), None if response.trials is None else response.trials[kept])
    return Read(design, rows, weight, response.classes, constant, offset is not None, ahead=ahead, given=table.rows)


def _from_formula(X: Any, asked: Asked, kind: Kind, coding: Coding, formula: str) -> Read:
    """Model matrices by formulaic; it also brings the intercept, which is then not added again."""
    source = open_source(as_frame(X))
    y, right = _label_column(source, formula, kind)
    left, frame, specification = model_matrices(formula if y is None else right, X)
    if isinstance(source, MemorySource) and len(frame) != source.rows:
        raise MissingValueError(
            f"{source.rows - len(frame)} of {source.rows} rows have gaps in the columns of the formula; a regression "
            "needs every value. Leave these rows out, or fill the gaps."
        )
    names = list(frame.columns)
    constant = INTERCEPT in names and coding.constant
    kept = [name for name in names if name != INTERCEPT]
    values = np.ascontiguousarray(frame[kept].to_numpy(dtype=np.float64)) if kept else np.empty((len(frame), 0))
    check_finite(values, "The model matrix")
    if left is not None:
        y = _one_column(left)
    elif y is None:
        y = source.column(asked.y) if isinstance(source, MemorySource) and _is_name(asked.y, source) else asked.y
    found = _joined(Design(constant, tuple(kept)), Table(values), y, asked, kind, source)
    return replace(found, specification=specification)


def _label_column(source: Source, formula: str, kind: Kind) -> tuple[Column | None, str]:
    """The column of labels on the left of a formula, of which formulaic would make indicators, and what is right."""
    left, _, right = formula.partition("~")
    name = left.strip().strip("`")
    labels = kind.response in ("shares", "labels", "ordered") and isinstance(source, MemorySource)
    if not (right and labels and name in source.columns):
        return None, formula
    return source.column(name), right  # type: ignore[attr-defined]


def _one_column(left: Any) -> Any:
    found = np.asarray(left)
    return found[:, 0] if found.ndim == 2 and found.shape[1] == 1 else found


def formula_response(formula: str, X: Any, kind: Kind) -> Any:
    """The response of rows as a formula names it; None where it names none."""
    column, _ = _label_column(open_source(as_frame(X)), formula, kind)
    if column is not None:
        return column
    left = model_matrices(formula, X)[0]
    return None if left is None else _one_column(left)


# -- streams -----------------------------------------------------------------------------------------------------------


def _from_stream(source: Source, asked: Asked, kind: Kind, coding: Coding) -> Read:
    if asked.sample_weight is not None:
        if not _is_name(asked.sample_weight, source):
            raise DataError("The weights of data that is read in batches must be the name of a column.")
        source.weigh_by(asked.sample_weight)
    if asked.y is None:
        raise DataError("There is no response: give y=, the name of a column.")
    if kind.response == "vectors" or asked.trials is not None:
        raise DataError("Data that is read in batches takes one response column, or (successes, failures).")
    roles = Roles(asked.y, None, asked.offset, asked.exposure)
    roles.check(source)
    names = explanatory(source, [asked.y, asked.offset, asked.exposure], asked.columns)
    pair = isinstance(asked.y, tuple) and asked.y not in source.columns
    label = _label_variable(source, asked.y, kind) if not pair else None
    design, found, rows = stream_design(source, names, coding, [] if label is None else [label])
    design = kind.design(design)
    classes = None
    if label is not None:
        label = found[label.name]
        classes = label.states
        if kind.response == "shares" and label.card != 2:
            raise DataError(f"The response has {label.card} labels; the binomial family takes two.")
        if kind.response == "ordered" and kind.states is None:
            responses.check_ordered(label.states, known=False)
    elif kind.response == "shares" and not pair:
        classes = (0, 1)
    numbers = [Variable(name, "real") for name in (asked.y if pair else () if label else (asked.y,))]
    numbers += [Variable(name, "real") for name in (asked.offset, asked.exposure) if name is not None]
    entries = [f.variable for f in design.factors]
    domain = Domain([Variable(n, "real") for n in design.reals] + [*entries, *([label] if label else []), *numbers])
    make = _maker(design, asked, kind, label, pair)
    stream = StreamRows(source, domain, make, rows)
    weight, constant = _stream_constants(stream, asked, pair)
    moved = asked.offset is not None or asked.exposure is not None
    return Read(design, stream, weight, classes, constant, moved, ahead=kind.ahead(classes), given=rows)


def _label_variable(source: Source, y: Hashable, kind: Kind) -> Variable | None:
    """A response of labels is discrete; 0 and 1 are numbers already."""
    if kind.states is not None:
        return Variable.discrete(y, kind.states)
    if kind.response in ("labels", "ordered"):
        found = source.infer([y])[y]
        return found if found.kind == "discrete" else Variable(y, "discrete")
    if kind.response == "shares":
        found = source.infer([y])[y]
        return found if found.kind == "discrete" else None
    return None


def _maker(design: Design, asked: Asked, kind: Kind, label: Variable | None, pair: bool) -> Callable[[Batch], Block]:
    def column(batch: Batch, name: Hashable) -> Floats:
        values: Floats = batch.reals[batch.real.index(name)]
        check_finite(values, f"Column {name!r}", batch.start)
        return values

    def make(batch: Batch) -> Block:
        table = batch_table(batch, design)
        weights = batch.weights
        if pair:
            successes, failures = (column(batch, name) for name in asked.y)
            trials = successes + failures
            y = np.divide(successes, trials, out=np.zeros_like(trials), where=trials > 0.0)
            weights = trials if weights is None else weights * trials
        elif label is not None:
            codes = batch.codes[batch.discrete.index(label.name)]
            if (codes == label.card).any():
                raise DataError(
                    f"The response {label.name!r} has a gap (row {batch.start + int(np.argmax(codes == label.card))})."
                )
            y = codes.astype(np.float64)
        else:
            y = column(batch, asked.y)
            (kind.family or BinomialFamily()).check(y, batch.start)
        offset = None if asked.offset is None else column(batch, asked.offset)
        offset = offset_of(offset, None if asked.exposure is None else column(batch, asked.exposure), kind.link)
        block = design.block(table, y, weights, offset, batch.start)
        return block if weights is None or weights.all() else block.chosen(np.flatnonzero(weights))

    return make


@dataclass(frozen=True)
class _Constants:
    weight: float
    constant: float

    def __add__(self, other: _Constants) -> _Constants:
        return _Constants(self.weight + other.weight, self.constant + other.constant)


def _stream_constants(stream: StreamRows, asked: Asked, pair: bool) -> tuple[float, float]:
    """Weight of all rows, and what trials add to the log-likelihood."""

    def task(batch: Batch) -> _Constants:
        weights = np.ones(batch.rows) if batch.weights is None else batch.weights
        if not pair:
            return _Constants(float(weights.sum()), 0.0)
        successes, failures = (batch.reals[batch.real.index(name)] for name in asked.y)
        choices = responses.log_choices(successes, successes + failures)
        return _Constants(float(weights.sum()), float(weights @ choices))

    found = stream.source.reduce(task, stream.domain)
    return found.weight, found.constant


def recode(rows: Any, turned: Floats) -> None:
    """Codes of the labels with the reference last."""
    if rows.in_memory:
        rows.block = replace(rows.block, y=turned[rows.block.y.astype(np.intp)])
        return
    make = rows.make

    def remade(batch: Any) -> Any:
        block = make(batch)
        return replace(block, y=turned[block.y.astype(np.intp)])

    rows.make = remade
