"""Rows that are not in memory, piece by piece, for predictions and scores: memory does not grow with the file."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from suffice.domain import Domain, Variable
from suffice.errors import DataError, listing
from suffice.fitting.contract import Inputs
from suffice.models.glm.design import Factor
from suffice.models.glm.formula import factor_levels, used_columns
from suffice.models.glm.formula_offset import offset_columns
from suffice.models.glm.input import all_numbers, is_matrix, is_sparse
from suffice.models.glm.response import NO_RESPONSE
from suffice.sources import open_source
from suffice.sources.base import Batch, Source
from suffice.sources.memory import MemorySource
from suffice.sources.reduction import counted_from, naming

if TYPE_CHECKING:
    from suffice.models.glm.fitted import GLMFitted

Answer = TypeVar("Answer")
Piece = dict[Hashable, Any]


def stream_of(X: Any) -> Source | None:
    """The source of rows that are read in batches; None for rows in memory."""
    if is_sparse(X) or is_matrix(X):
        return None
    source = open_source(X)
    return None if isinstance(source, MemorySource) else source


def answers_by_part(
    X: Any, fitted: GLMFitted, more: Mapping[str, Any], ask: Callable[[Inputs], Answer]
) -> Iterator[Answer]:
    """What is asked of rows with what else was given: all at once, or piece by piece where they are not in memory."""
    source = stream_of(X)
    if source is None:
        yield ask(Inputs(X, more))
        return
    for batch in source.batches(domain_of(source, fitted, sides_of(more))):
        with naming(batch.origins):
            yield answer_of(batch, more, ask)


def answer_of(batch: Batch, more: Mapping[str, Any], ask: Callable[[Inputs], Answer]) -> Answer:
    """What is asked of the rows of a batch, which errors call by their numbers in the table."""
    with counted_from(batch.start):
        return ask(Inputs(table_of(batch), more))


def sides_of(more: Mapping[str, Any]) -> list[Any]:
    """What was given about rows that may name columns."""
    if "y" in more and more["y"] is None:
        raise DataError(NO_RESPONSE)
    return [side for name, side in more.items() if name != "columns"]


def domain_of(source: Source, fitted: GLMFitted, sides: Sequence[Any]) -> Domain:
    """The columns of the fit and those that `sides` name: response, weights, offset, exposure, trials."""
    variables: dict[Hashable, Variable] = {}
    if fitted.specification is not None:
        levels = factor_levels(fitted.specification)
        # A formula without columns needs rows all the same.
        for name in used_columns(fitted.specification, source.columns) or source.columns[:1]:
            real = name not in levels and source.holds_numbers(name)
            variables[name] = Variable(name, "real" if real else "discrete")
        variables |= {name: Variable(name, "real") for name in offset_columns(fitted.formula, source.columns)}
    else:
        variables = {c.variable.name: c.variable for c in fitted.design.factors}
        variables |= {name: Variable(name, "real") for name in fitted.design.reals}
    factors = {c.variable.name for c in fitted.design.columns if isinstance(c, Factor)}
    for name in _names(sides, source):
        variables.setdefault(name, source.infer([name])[name])
    source.check_columns(variables)
    # Levels are not declared: whether one that was never seen raises or is pooled is decided by the model.
    loose = [
        Variable(name, "discrete") if name in factors or v.kind == "discrete" else Variable(name, "real")
        for name, v in variables.items()
    ]
    return Domain(loose)


def _names(sides: Sequence[Any], source: Source) -> list[Hashable]:
    """Columns that are asked for by name; an array cannot go with rows that are read in batches."""
    names: list[Hashable] = []
    for side in sides:
        for one in side if isinstance(side, tuple) and side not in source.columns else (side,):
            if one is None or isinstance(one, int | float | np.number):
                continue
            if not isinstance(one, Hashable) or one not in source.columns:
                raise DataError(
                    f"Of data that is read in batches, response, weights and offset must be names of columns: "
                    f"{listing(source.columns)}; got {one if isinstance(one, str) else type(one).__name__!r}."
                )
            names.append(one)
    return names


def table_of(batch: Batch) -> Piece:
    """The rows of a batch by column."""
    columns: Piece = {name: batch.reals[number] for number, name in enumerate(batch.real)}
    columns |= {name: np.array(values.to_pylist(), dtype=object) for name, values in batch.raw.items()}
    for number, name in enumerate(batch.discrete):
        codes, known = batch.codes[number], batch.domain[name].states
        if known and all_numbers(known) and (codes < len(known)).all():
            columns[name] = np.array(known)[codes]
            continue
        states = np.empty(len(known) + 1, dtype=object)
        states[:-1] = known
        columns[name] = states[codes]  # The code after the last state is a missing value: None.
    return columns
