"""From what a user gives to `fit` to the rows of a regression."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from suffice.array_types import Floats
from suffice.domain import Domain, Variable
from suffice.engines.linear_predictor import RowBlock
from suffice.errors import DataError, MissingValueError, OptionError
from suffice.fitting.contract import Inputs
from suffice.models.glm import response as responses
from suffice.models.glm.design import Design, DesignRows, NamedParameters, threshold_names
from suffice.models.glm.family import Family, ResponseFamily
from suffice.models.glm.fit_options import FitOptions
from suffice.models.glm.formula import INTERCEPT, as_frame, model_matrices
from suffice.models.glm.input import (
    Coding,
    RowsInMemory,
    StreamRows,
    batch_table,
    check_roles,
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
from suffice.models.glm.natural_family import NaturalFamily
from suffice.models.glm.response import Response, check_finite
from suffice.sources import open_source
from suffice.sources.base import Batch, Source
from suffice.sources.columns import Column
from suffice.sources.memory import MemorySource


@dataclass(frozen=True, eq=False)
class RegressionData:
    """The rows of a fit, ready for the engine; `constant` is the part of the log-likelihood that trials bring.

    `ahead` names the parameters before the coefficients: the thresholds between ordered labels. Rows without weight are
    not among `blocks`: they say nothing, and at the coefficients of the others a link may not even allow them. `rows`
    is the number of rows with them. `response` is the column of the response, where it has a name, `formula` as a user
    wrote it, and `reference` the number of the label among the classes that has no coefficients.
    """

    design: Design
    blocks: RowsInMemory | StreamRows
    weight: float
    classes: tuple[Hashable, ...] | None = None
    constant: float = 0.0
    has_offset: bool = False
    specification: Any = None
    ahead: tuple[str, ...] = ()
    rows: int = 0
    response: str | None = None
    reference: int | None = None
    formula: str | None = None

    @property
    def passes(self) -> int:
        """How often the rows were read."""
        return self.blocks.passes

    def learned_names(self) -> dict[str, Any]:
        """What a fitted value keeps of its rows: columns, labels and names."""
        names = ("design", "weight", "classes", "reference", "specification", "formula", "response")
        return {name: getattr(self, name) for name in names}

    @property
    def parameters(self) -> NamedParameters:
        """All parameters, by name."""
        return NamedParameters(self.ahead, self.design)


def _design_for(options: FitOptions, design: Design) -> Design:
    """The design for a response: thresholds take the place of the constant."""
    if options.family.response == "ordered":
        return replace(design, constant=False)
    return replace(design, blocked=False) if options.family.response == "labels" else design


def _ahead(options: FitOptions, classes: tuple[Hashable, ...] | None) -> tuple[str, ...]:
    """Names of the thresholds between ordered labels."""
    return threshold_names(classes or ()) if options.family.response == "ordered" else ()


def read_response(family: ResponseFamily, states: tuple[Hashable, ...] | None, y: Any, trials: Any) -> Response:
    """The response of rows in memory; states: its labels, where they are known."""
    kind = family.response
    if trials is not None and kind != "shares":
        raise OptionError("trials= belongs to the binomial family.")
    if kind == "shares":
        return responses.read_shares(y, trials, states)
    if kind == "labels":
        return responses.read_labels(y, states)
    if kind == "ordered":
        return responses.read_ordered(y, states)
    if kind == "vectors":
        return responses.read_vectors(y)
    assert isinstance(family, Family)
    read = responses.read_numbers(y)
    family.check(read.y)
    values, base = family.encoded(read.y)
    return Response(values, base=base)


def read_rows(given: Inputs, options: FitOptions) -> RegressionData:
    """Any data to rows; codes of labels have those of the reference last."""
    y, formula = given["y"], options.given["formula"]
    coding = Coding.of(options.given["fit_intercept"], options.given["categorical"])
    if formula is None:
        return with_reference(
            replace(_read(given, options, coding), response=y if isinstance(y, str) else None), options
        )
    side = str(formula).partition("~")[0].strip()
    name = side if side.isidentifier() else y if isinstance(y, str) else None
    data = _from_formula(given.data, given, options, coding, formula)
    return with_reference(replace(data, response=name, formula=str(formula)), options)


def with_reference(data: RegressionData, options: FitOptions) -> RegressionData:
    """Labels with the codes that a softmax takes: those of the reference, which is the last unless said, come last."""
    if options.family.response != "labels":
        return data
    assert data.classes is not None
    wanted = options.given["reference"]
    reference = Variable.discrete("y", data.classes).index(data.classes[-1] if wanted is None else wanted)
    order = [code for code in range(len(data.classes)) if code != reference] + [reference]
    codes = np.argsort(order).astype(np.float64)
    blocks = data.blocks.mapped(lambda block: replace(block, y=codes[block.y.astype(np.intp)]))
    return replace(data, blocks=blocks, reference=reference)


def _read(given: Inputs, options: FitOptions, coding: Coding) -> RegressionData:
    X = given.data
    if is_sparse(X) or is_matrix(X):
        design, table = read_matrix(X, given["columns"], coding)
        return _joined(design, table, given["y"], given, options, None)
    source = open_rows(X, given["columns"])
    if not isinstance(source, MemorySource):
        return _from_stream(source, given, options, coding)
    y = given["y"]
    pair = isinstance(y, tuple) and len(y) >= 2 and all(_is_name(one, source) for one in y) and not _is_name(y, source)
    named = pair or _is_name(y, source)
    taken = [given[side] for side in ("sample_weight", "offset", "exposure", "trials") if _is_name(given[side], source)]
    columns = given["columns"] if unnamed_width(X) is None else None  # Those of an array were names, for all of them.
    names = explanatory(source, [*taken, y] if named else taken, columns)
    design, table = read_columns(names, source.column, source.rows, coding)
    if pair:
        y = np.column_stack([responses.numbers(source.column(one)) for one in y])
    elif named:
        y = source.column(y)
    return _joined(design, table, y, given, options, source)


def _is_name(value: object, source: Source) -> bool:
    try:
        return bool(isinstance(value, Hashable) and value in source.columns)
    except (TypeError, ValueError):
        return False


def _joined(
    design: Design, table: DesignRows, y: Any, given: Inputs, options: FitOptions, source: Source | None
) -> RegressionData:
    if y is None:
        raise DataError("There is no response: give y=, an array or the name of a column.")
    if isinstance(y, str):
        raise DataError(f"y is {y!r}, which is no column of the data; give its values or the name of a column.")
    trials = side_column(given["trials"], source, table.rows, "trials")
    response = read_response(options.family, options.states, y, trials)
    if len(response.y) != table.rows:
        raise DataError(f"The response has {len(response.y)} rows and X has {table.rows}; give one response a row.")
    weights = checked_weights(side_column(given["sample_weight"], source, table.rows, "sample_weight"))
    offset = side_column(given["offset"], source, table.rows, "offset")
    offset = offset_of(offset, side_column(given["exposure"], source, table.rows, "exposure"), options.link.name)
    weight = float(table.rows) if weights is None else float(weights.sum())
    constant = 0.0
    if response.trials is not None:
        choices = responses.log_choices(response.y * response.trials, response.trials)
        constant = float(choices.sum() if weights is None else weights @ choices)
        weights = response.trials if weights is None else weights * response.trials
    if response.base is not None:
        constant = float(response.base.sum() if weights is None else weights @ response.base)
    design = _design_for(options, design)
    block = design.block(table, response.y, weights, offset)
    ahead, rows = _ahead(options, response.classes), RowsInMemory(block, response.trials)
    if weights is not None and not weights.all():
        kept = np.flatnonzero(weights)
        rows = RowsInMemory(block.chosen(kept), None if response.trials is None else response.trials[kept])
    return RegressionData(
        design, rows, weight, response.classes, constant, offset is not None, ahead=ahead, rows=table.rows
    )


def _from_formula(X: Any, given: Inputs, options: FitOptions, coding: Coding, formula: str) -> RegressionData:
    """Model matrices by formulaic; it also brings the intercept, which is then not added again."""
    source = open_source(as_frame(X))
    y, right = _label_column(source, formula, options.family)
    left, frame, specification = model_matrices(formula if y is None else right, X)
    if isinstance(source, MemorySource) and len(frame) != source.rows:
        raise MissingValueError(
            f"{source.rows - len(frame)} of {source.rows} rows have missing values in the columns of the formula; a "
            "regression needs every value. Leave these rows out, or fill the missing values."
        )
    names = list(frame.columns)
    constant = INTERCEPT in names and coding.constant
    kept = [name for name in names if name != INTERCEPT]
    values = np.ascontiguousarray(frame[kept].to_numpy(dtype=np.float64)) if kept else np.empty((len(frame), 0))
    check_finite(values, "The model matrix")
    if left is not None:
        y = _one_column(left)
    elif y is None:
        y = (
            source.column(given["y"])
            if isinstance(source, MemorySource) and _is_name(given["y"], source)
            else given["y"]
        )
    data = _joined(Design(constant, tuple(kept)), DesignRows(values), y, given, options, source)
    return replace(data, specification=specification)


def _label_column(source: Source, formula: str, family: ResponseFamily) -> tuple[Column | None, str]:
    """The column of labels on the left of a formula, of which formulaic would make indicators, and what is right."""
    left, _, right = formula.partition("~")
    name = left.strip().strip("`")
    labels = family.labels and isinstance(source, MemorySource)
    if not (right and labels and name in source.columns):
        return None, formula
    return source.column(name), right  # type: ignore[attr-defined]


def _one_column(left: Any) -> Any:
    values = np.asarray(left)
    return values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values


def formula_response(formula: str, X: Any, family: ResponseFamily) -> Any:
    """The response of rows as a formula names it; None where it names none."""
    column, _ = _label_column(open_source(as_frame(X)), formula, family)
    if column is not None:
        return column
    left = model_matrices(formula, X)[0]
    return None if left is None else _one_column(left)


# -- streams -----------------------------------------------------------------------------------------------------------


def _from_stream(source: Source, given: Inputs, options: FitOptions, coding: Coding) -> RegressionData:
    if given["sample_weight"] is not None:
        if not _is_name(given["sample_weight"], source):
            raise DataError("The weights of data that is read in batches must be the name of a column.")
        source.weigh_by(given["sample_weight"])
    if given["y"] is None:
        raise DataError("There is no response: give y=, the name of a column.")
    if isinstance(options.family, NaturalFamily):
        raise DataError(f"The {options.family.name} family takes rows in memory.")
    if options.family.response == "vectors" or given["trials"] is not None:
        raise DataError("Data that is read in batches takes one response column, or (successes, failures).")
    check_roles(source, given)
    names = explanatory(source, [given["y"], given["offset"], given["exposure"]], given["columns"])
    pair = isinstance(given["y"], tuple) and given["y"] not in source.columns
    label = _label_variable(source, given["y"], options) if not pair else None
    design, variables, rows = stream_design(source, names, coding, [] if label is None else [label])
    design = _design_for(options, design)
    classes = None
    if label is not None:
        label = variables[label.name]
        classes = label.states
        if options.family.response == "shares" and label.card != 2:
            raise DataError(f"The response has {label.card} labels; the binomial family takes two.")
        if options.family.response == "ordered" and options.states is None:
            responses.check_ordered(label.states, known=False)
    elif options.family.response == "shares" and not pair:
        classes = (0, 1)
    numbers = [Variable(name, "real") for name in (given["y"] if pair else () if label else (given["y"],))]
    numbers += [Variable(name, "real") for name in (given["offset"], given["exposure"]) if name is not None]
    entries = [f.variable for f in design.factors]
    domain = Domain([Variable(n, "real") for n in design.reals] + [*entries, *([label] if label else []), *numbers])
    make = _maker(design, given, options, label, pair)
    stream = StreamRows(source, domain, make, rows)
    weight, constant = _stream_constants(stream, given, pair)
    moved = given["offset"] is not None or given["exposure"] is not None
    return RegressionData(design, stream, weight, classes, constant, moved, ahead=_ahead(options, classes), rows=rows)


def _label_variable(source: Source, y: Hashable, options: FitOptions) -> Variable | None:
    """A response of labels is discrete; 0 and 1 are numbers already."""
    if options.states is not None:
        return Variable.discrete(y, options.states)
    if options.family.response in ("labels", "ordered"):
        variable = source.infer([y])[y]
        return variable if variable.kind == "discrete" else Variable(y, "discrete")
    if options.family.response == "shares":
        variable = source.infer([y])[y]
        return variable if variable.kind == "discrete" else None
    return None


def _maker(
    design: Design, given: Inputs, options: FitOptions, label: Variable | None, pair: bool
) -> Callable[[Batch], RowBlock]:
    def column(batch: Batch, name: Hashable) -> Floats:
        values: Floats = batch.reals[batch.real.index(name)]
        check_finite(values, f"Column {name!r}", batch.start)
        return values

    def make(batch: Batch) -> RowBlock:
        table = batch_table(batch, design)
        weights = batch.weights
        if pair:
            successes, failures = (column(batch, name) for name in given["y"])
            trials = successes + failures
            y = np.divide(successes, trials, out=np.zeros_like(trials), where=trials > 0.0)
            weights = trials if weights is None else weights * trials
        elif label is not None:
            codes = batch.codes[batch.discrete.index(label.name)]
            if (codes == label.card).any():
                raise DataError(
                    f"The response {label.name!r} has a missing value (row "
                    f"{batch.start + int(np.argmax(codes == label.card))})."
                )
            y = codes.astype(np.float64)
        else:
            y = column(batch, given["y"])
            options.one_family.check(y, batch.start)
        offset = None if given["offset"] is None else column(batch, given["offset"])
        offset = offset_of(
            offset, None if given["exposure"] is None else column(batch, given["exposure"]), options.link.name
        )
        block = design.block(table, y, weights, offset, batch.start)
        return block if weights is None or weights.all() else block.chosen(np.flatnonzero(weights))

    return make


def _stream_constants(stream: StreamRows, given: Inputs, pair: bool) -> tuple[float, float]:
    """Weight of all rows, and what trials add to the log-likelihood."""

    def task(batch: Batch) -> Floats:
        weights = np.ones(batch.rows) if batch.weights is None else batch.weights
        if not pair:
            return np.array([weights.sum(), 0.0])
        successes, failures = (batch.reals[batch.real.index(name)] for name in given["y"])
        choices = responses.log_choices(successes, successes + failures)
        return np.array([weights.sum(), weights @ choices])

    weight, constant = stream.source.reduce(task, stream.domain).tolist()
    return weight, constant
