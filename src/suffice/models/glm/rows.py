"""From what a user gives to `fit` to the rows of a regression."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from suffice.array_types import Floats
from suffice.domain import Variable
from suffice.errors import DataError, OptionError, listing, meant
from suffice.fitting.contract import Inputs
from suffice.fitting.row_marks import Marks, state_number
from suffice.models.glm import response as responses
from suffice.models.glm.block_marks import marks_of_block
from suffice.models.glm.design import Design, DesignRows, NamedParameters, threshold_names
from suffice.models.glm.error_kinds import columns_of
from suffice.models.glm.family import Family, ResponseFamily
from suffice.models.glm.fit_options import FitOptions
from suffice.models.glm.formula import INTERCEPT, as_frame, model_matrices
from suffice.models.glm.formula_offset import offset_values, split_offset
from suffice.models.glm.formula_rows import OFFSET, FormulaWork, read_terms
from suffice.models.glm.held_rows import BlockWork, PreparedRows, RegressionRows
from suffice.models.glm.input import (
    Coding,
    checked_weights,
    explanatory,
    is_matrix,
    is_sparse,
    offset_of,
    open_rows,
    read_columns,
    read_matrix,
    side_column,
    unnamed_width,
)
from suffice.models.glm.response import NO_RESPONSE, Response, check_finite
from suffice.models.glm.stream import RegressionWork, Roles, checked_label, hold_rows, label_variable, read_levels
from suffice.sources import open_source
from suffice.sources.base import Source
from suffice.sources.held import HeldHere
from suffice.sources.memory import MemorySource
from suffice.sources.partitioned import HeldElsewhere


@dataclass(frozen=True, eq=False)
class RegressionData:
    """The rows of a fit, ready for the engine; `constant` is the part of the log-likelihood that trials bring.

    `ahead` names the parameters before the coefficients: the thresholds between ordered labels. Rows without weight are
    not among `blocks`: they say nothing, and at the coefficients of the others a link may not even allow them. `rows`
    is the number of rows with them. `response` is the column of the response, where it has a name, `formula` as a user
    wrote it, and `reference` the number of the label among the classes that has no coefficients. `summed` says that
    `blocks` have the products of rows that were read `readings` times, in place of these.
    """

    design: Design
    blocks: RegressionRows
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
    readings: int | None = None
    summed: bool = False

    @property
    def passes(self) -> int:
        """How often the rows were gone through: read where they are not in memory, asked where they are."""
        return self.blocks.held.rounds if self.readings is None else self.readings

    @property
    def elsewhere(self) -> bool:
        """Whether the rows are prepared on other machines."""
        return isinstance(self.blocks.held, HeldElsewhere)

    def close(self) -> None:
        """Let the rows go."""
        self.blocks.held.close()

    @property
    def plan(self) -> str | None:
        """Where rows that are not in memory stayed, and how often they were asked so far."""
        held = self.blocks.held
        if self.summed:
            return "sums of products, made where the rows are"
        return None if not self.readings else f"{held.shards} shards {held.location}, {held.rounds} rounds"

    def marks(self) -> Marks:
        """What tells these rows from others: products of the response, with its offset, and each column."""
        if self.summed or not self.blocks.in_memory:
            return {}
        return marks_of_block(self.blocks.block, self.design, self._numbers)

    @property
    def _numbers(self) -> Floats | None:
        """A number for each code of a label, whatever the order of the codes."""
        if self.classes is None or not (self.ahead or self.reference is not None):
            return None
        order = np.argsort(codes_of(len(self.classes), self.reference)) if self.reference is not None else None
        numbers = np.array([state_number(label) for label in self.classes])
        return numbers if order is None else numbers[order]

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
        raise OptionError("trials= belongs to the binomial family. Leave it out.")
    if kind == "shares":
        return responses.read_shares(y, trials, states)
    if kind == "labels":
        return responses.read_labels(y, states)
    if kind == "ordered":
        return responses.read_ordered(y, states)
    if kind == "vectors":
        return responses.read_vectors(y)
    assert isinstance(family, Family)
    column = responses.as_column(y)
    numbers = responses.numbers(column)
    family.check(numbers, what=f"The response {column.name!r}")
    values, base = family.encoded(numbers)
    return Response(values, base=base)


def read_rows(given: Inputs, options: FitOptions) -> RegressionData:
    """Any data to rows; codes of labels have those of the reference last."""
    y, formula = given["y"], options.given["formula"]
    coding = Coding.of(options.given)
    if formula is None:
        return with_reference(
            replace(_read(given, options, coding), response=y if isinstance(y, str) else None), options
        )
    if given["columns"] is not None:
        raise OptionError(
            "columns= has no effect with a formula, which names its columns itself; leave one of them out."
        )
    side = str(formula).partition("~")[0].strip()
    name = side if side.isidentifier() else y if isinstance(y, str) else None
    data = _from_formula(given.data, given, options, coding, formula)
    return with_reference(replace(data, response=name, formula=str(formula)), options)


def with_reference(data: RegressionData, options: FitOptions) -> RegressionData:
    """Labels with the codes that a softmax takes: those of the reference, which is the last unless said, come last."""
    if options.family.response != "labels" or data.reference is not None:
        return data
    assert data.classes is not None
    reference = reference_of(options, data.classes)
    codes, block = codes_of(len(data.classes), reference), data.blocks.block
    blocks = RegressionRows.of(replace(block, y=codes[block.y.astype(np.intp)]))
    return replace(data, blocks=blocks, reference=reference)


def reference_of(options: FitOptions, classes: tuple[Hashable, ...]) -> int:
    """The number of the label without coefficients: the last unless said."""
    wanted = None if isinstance(options.given["reference"], Mapping) else options.given["reference"]
    return Variable.discrete("y", classes).index(classes[-1] if wanted is None else wanted)


def codes_of(classes: int, reference: int) -> Floats:
    """The code of each label, where that of the reference is the last."""
    order = [code for code in range(classes) if code != reference] + [reference]
    return np.argsort(order).astype(np.float64)


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
    taken += [name for name in columns_of(options.given["covariance"]) if name in source.columns]
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
        raise DataError(NO_RESPONSE)
    if isinstance(y, str):
        near = "" if source is None else meant(y, source.columns)
        raise DataError(f"y is {y!r}, which is no column of the data; give its values or the name of a column.{near}")
    trials = side_column(given["trials"], source, table.rows, "trials")
    response = read_response(options.family, options.states, y, trials)
    if len(response.y) != table.rows:
        raise DataError(f"The response has {len(response.y)} rows and X has {table.rows}; give one response a row.")
    weights = checked_weights(side_column(given["sample_weight"], source, table.rows, "sample_weight"))
    offset = side_column(given["offset"], source, table.rows, "offset")
    offset = offset_of(offset, side_column(given["exposure"], source, table.rows, "exposure"), options.link.name)
    base, counted = response.base, weights
    if response.trials is not None:
        base = responses.log_choices(response.y * response.trials, response.trials)
        counted = response.trials if weights is None else weights * response.trials
    design = _design_for(options, design)
    block = replace(design.block(table, response.y, counted, offset), trials=response.trials)
    prepared = PreparedRows.of(block, weights, base)
    rows, ahead = (
        RegressionRows(HeldHere(BlockWork(), [prepared]), prepared.block.rows),
        _ahead(options, response.classes),
    )
    return RegressionData(
        design,
        rows,
        prepared.weight,
        response.classes,
        prepared.constant,
        offset is not None,
        ahead=ahead,
        rows=table.rows,
    )


def _from_stream(
    source: Source, given: Inputs, options: FitOptions, coding: Coding, formula: str | None = None
) -> RegressionData:
    """Rows that are not in memory: a pass for levels and labels, where there are any, and one that prepares them."""
    if given["sample_weight"] is not None:
        if not _is_name(given["sample_weight"], source):
            raise DataError("The weights of data that is read in batches must be the name of a column.")
        source.weigh_by(given["sample_weight"])
    terms = None
    if formula is not None:
        formula, expression = split_offset(formula)
        if expression is not None and given["offset"] is not None:
            raise OptionError("The formula has an offset(), and offset= is given beside it; give one of them.")
        label_name, right = _label_name(source, formula, options.family)
        terms = read_terms(source, formula if label_name is None else right, coding.constant, expression)
        given = given if label_name is None else replace(given, more={**given.more, "y": label_name})
    roles = Roles.of(source, given, () if terms is None else terms.responses)
    if terms is not None and terms.offset is not None:
        roles = replace(roles, offset=OFFSET)
    if roles.trials is not None and options.family.response != "shares":
        raise OptionError("trials= belongs to the binomial family. Leave it out.")
    most = {"shares": 2, "vectors": len(roles.y)}.get(options.family.response, 1)
    if len(roles.y) > most:
        raise DataError(
            f"The response has {len(roles.y)} columns, {listing(roles.y)}; the {options.family.name} family takes "
            f"{'one' if most == 1 else 'one, or two of successes and failures'}. Name one column."
        )
    label = label_variable(source, roles, options)
    names = (
        explanatory(source, [roles.y, *roles.sides, *columns_of(options.given["covariance"])], given["columns"])
        if terms is None
        else ()
    )
    design, states = read_levels(source, names, coding, label)
    if terms is not None:
        design = Design(terms.constant, terms.names)
    if label is not None:
        label = states[label.name] = checked_label(states[label.name], options)
    design, classes, reference = _design_for(options, design), None if label is None else label.states, None
    if label is None and options.family.response == "shares" and len(roles.y) == 1 and roles.trials is None:
        classes = (0, 1)
    order = None
    if options.family.response == "labels" and classes is not None:
        reference = reference_of(options, classes)
        order = codes_of(len(classes), reference)
    parts = (design, options.family, options.link.name, roles, label, order)
    work = RegressionWork(*parts) if terms is None else FormulaWork(*parts, terms=terms)
    rows, figures = hold_rows(source, work, states, options.given["memory_limit"])
    return RegressionData(
        design,
        rows,
        figures.weight,
        classes,
        figures.constant,
        roles.offset is not None or roles.exposure is not None,
        ahead=_ahead(options, classes),
        rows=figures.rows,
        reference=reference,
        readings=source.passes,
        specification=None if terms is None else terms.specification,
    )


def _from_formula(X: Any, given: Inputs, options: FitOptions, coding: Coding, formula: str) -> RegressionData:
    """Model matrices by formulaic; it also brings the intercept, which is then not added again."""
    source = open_source(as_frame(X))
    if not isinstance(source, MemorySource):
        return _from_stream(source, given, options, coding, formula)
    formula, expression = split_offset(formula)
    if expression is not None:
        own, added = offset_values(expression, X), side_column(given["offset"], source, source.rows, "offset")
        given = replace(given, more={**given.more, "offset": own if added is None else own + added})
    label, right = _label_name(source, formula, options.family)
    y = None if label is None else source.column(label)
    left, frame, specification = model_matrices(formula if label is None else right, X)
    names = list(frame.columns)
    constant = INTERCEPT in names and coding.constant
    kept = [name for name in names if name != INTERCEPT]
    values = np.ascontiguousarray(frame[kept].to_numpy(dtype=np.float64)) if kept else np.empty((len(frame), 0))
    check_finite(values, "The model matrix")
    if left is not None:
        side = formula.partition("~")[0].strip()
        # Of text formulaic makes indicators, of which no message could speak.
        indicators = options.family.response != "vectors" and np.shape(left)[1] > 1 and _is_name(side, source)
        y = source.column(side) if indicators else _one_column(left)
    elif y is None:
        y = source.column(given["y"]) if _is_name(given["y"], source) else given["y"]
    data = _joined(Design(constant, tuple(kept)), DesignRows(values), y, given, options, source)
    return replace(data, specification=specification)


def _label_name(source: Source, formula: str, family: ResponseFamily) -> tuple[Hashable | None, str]:
    """The column of labels on the left of a formula, of which formulaic would make indicators, and what is right."""
    left, _, right = formula.partition("~")
    name = left.strip().strip("`")
    return (name, right) if right and family.labels and name in source.columns else (None, formula)


def _one_column(left: Any) -> Any:
    values = np.asarray(left)
    return values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values


def formula_response(formula: str, X: Any, family: ResponseFamily) -> Any:
    """The response of rows as a formula names it; None where it names none."""
    formula, _ = split_offset(formula)
    source = open_source(as_frame(X))
    label, _ = _label_name(source, formula, family)
    if label is not None and isinstance(source, MemorySource):
        return source.column(label)
    left = model_matrices(formula, X)[0]
    return None if left is None else _one_column(left)
