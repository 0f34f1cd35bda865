"""A Gaussian response learned from moments: rows that have left, but for their sums of products.

With the identity link the likelihood sees rows through their weight and the products of (1, x, y) alone, for each joint
level of the factors. Any rows with the same products have the same likelihood: of d columns d + 1 rows do.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from suffice.array_types import Floats
from suffice.domain import Domain, Variable
from suffice.errors import DataError, EstimateError, OptionError, listing
from suffice.families.orthogonal import orthogonalised
from suffice.families.regression import Products
from suffice.fitting.contract import Inputs
from suffice.models.glm.design import Design, DesignRows, Factor, pooled_codes
from suffice.models.glm.fit_options import FitOptions
from suffice.models.glm.held_rows import RegressionRows
from suffice.models.glm.input import Coding, explanatory, factor_of, unnamed_width
from suffice.models.glm.pieces import stream_of
from suffice.models.glm.rows import RegressionData
from suffice.models.glm.stream import read_levels
from suffice.sources import open_source, summarize_source
from suffice.statistics import Moments, MomentsBy, Statistic, Summary

#: Options under which more of the rows is needed than their moments, and why.
_OF_ROWS = {
    ("covariance", "robust"): "robust errors are sums over residuals, row by row",
    ("covariance", "HC0"): "robust errors are sums over residuals, row by row",
    ("solver", "sgd"): "stochastic ascent goes through the rows in an order",
}


#: Sums up to which they take the place of rows that are not in memory.
MOST_NUMBERS = 1_000_000
#: Share of a column's square that the others leave, from which sums keep its digits: rows in place of others are
#: rounded by 1e-16 of a column's length, which is 1e-13 of what is left of it.
LEAST_SHARE = 1e-6


def has_moments(options: FitOptions) -> bool:
    """Whether sums of products are all that the likelihood sees of rows."""
    return (options.family.name, options.link.name) == ("gaussian", "identity")


def summarize_rows(given: Inputs, options: FitOptions) -> Summary:
    """The moments of the explanatory columns and the response, for each joint level of the factors."""
    if options.given["formula"] is not None:
        raise OptionError("A summary has the columns of the data, and a formula makes others: summarise those instead.")
    named = unnamed_width(given.data) is None
    names = None if named else given["columns"]
    source, y = open_source(given.data, columns=names, sample_weight=given["sample_weight"]), given["y"]
    if not (isinstance(y, Hashable) and y in source.columns):
        raise DataError(
            f"y is {y if isinstance(y, str | None) else type(y).__name__!r}; expected the column of the response, one "
            f"of {listing(source.columns)}."
        )
    wanted = explanatory(source, [y], given["columns"] if named else None)
    columns = [name for name in wanted if name != y]
    coding = Coding.of(options.given)
    _, factors = read_levels(source, columns, coding, None)
    domain = Domain([*(factors.get(name, Variable(name, "real")) for name in columns), Variable(y, "real")])
    return summarize_source(source, domain, (_question(domain),))


def _question(domain: Domain) -> Statistic:
    """Moments of the real columns, the response last, for each joint level of the others."""
    reals = tuple(v.name for v in domain.variables if v.kind == "real")
    factors = tuple(v.name for v in domain.variables if v.kind == "discrete")
    return MomentsBy(reals, factors) if factors else Moments(reals)


def read_moments(given: Inputs, options: FitOptions) -> RegressionData:
    """Rows with the products that a summary has, in place of those that it was made of."""
    summary: Summary = given.data
    if not summary.weight > 0.0:
        raise EstimateError("The Summary is one of no rows, or of none with weight; nothing can be learned.")
    own = summary.domain.names[-1]
    named = isinstance(given["y"], Hashable) and given["y"] == own
    beside = [f"{name}=" for name, value in given.more.items() if value is not None and not (name == "y" and named)]
    if beside:
        raise OptionError(
            f"A Summary already holds weights, columns and the response, which is {own!r}; leave "
            f"{' and '.join(beside)} out."
        )
    if not has_moments(options) or options.given["formula"] is not None:
        raise OptionError(
            "A GLM learns from a Summary where the response is Gaussian, the link the identity and no column made by a "
            "formula; fit the rows."
        )
    for (name, value), reason in _OF_ROWS.items():
        if options.given[name] == value:
            raise OptionError(f"{name}={value!r} needs the rows, which a Summary does not hold: {reason}.")
    coding = Coding.of(options.given)
    question = _question(summary.domain)
    *columns, last = summary.domain.variables
    if last.name != question.variables[-1]:
        raise DataError(f"The last column of the Summary, {last.name!r}, is no response of numbers.")
    _check_coding(coding, columns)
    return _data_of(summary, coding)


def read_sums(given: Inputs, options: FitOptions) -> RegressionData | None:
    """Sums over rows that are not in memory, in place of these; None where the fit needs more of them.

    Those of few joint levels of the factors are far less than the rows, and one pass makes them. Where a column, or the
    response, is nearly a combination of others the rows are asked: they keep digits that sums of products lose.
    """
    beside = any(given[name] is not None for name in ("offset", "exposure", "trials"))
    of_rows = beside or any(options.given[name] == value for name, value in _OF_ROWS)
    if of_rows or options.given["formula"] is not None or not has_moments(options):
        return None
    source, y = stream_of(given.data), given["y"]
    if source is None or source.residence == "sites" or not (isinstance(y, Hashable) and y in source.columns):
        return None
    weight = given["sample_weight"]
    if weight is not None:
        if not (isinstance(weight, str) and weight in source.columns):
            return None
        source.weigh_by(weight)
    coding = Coding.of(options.given)
    names = explanatory(source, [y], given["columns"])
    factors = read_levels(source, names, coding, None)[1]
    cells = math.prod(variable.card for variable in factors.values())
    if cells * (len(names) + 2) ** 2 > MOST_NUMBERS:
        return None
    domain = Domain([*(factors.get(name, Variable(name, "real")) for name in names), Variable(y, "real")])
    summary = summarize_source(source, domain, (_question(domain),))
    if not summary.weight > 0.0:
        return None
    data = _data_of(summary, coding)
    return replace(data, readings=source.passes, summed=True) if _least_share(data) >= LEAST_SHARE else None


def _least_share(data: RegressionData) -> float:
    """What the others leave of the square of a column or of the response, at the least; 0 where columns depend."""
    layout = data.design.layout
    products = np.zeros((layout.size + 1,) * 2)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        for part in layout.parts(data.blocks.block):
            weights = np.ones(part.rows) if part.weights is None else part.weights
            columns = [np.ones((part.rows, int(layout.constant))), part.dense, part.y[:, None]]
            if part.codes is not None:
                columns.append(np.eye(layout.levels + 1)[part.codes][:, 1:])
            values = np.concatenate(columns, axis=1)
            products += (values * weights[:, None]).T @ values
        lengths = np.sqrt(np.diagonal(products))
        try:
            # With unit lengths the inverse has on its diagonal what the others leave of each, inverted.
            shares = 1.0 / np.diagonal(np.linalg.inv(products / np.outer(lengths, lengths)))
        except np.linalg.LinAlgError:
            return 0.0
    return float(shares.min()) if np.isfinite(shares).all() else 0.0


def _data_of(summary: Summary, coding: Coding) -> RegressionData:
    """Rows with the products of a summary, whose last variable is the response."""
    question = _question(summary.domain)
    sums, (*columns, last) = summary[question], summary.domain.variables
    values, weights = _rows_with(sums, len(question.variables))
    cells = np.repeat(getattr(sums, "cells", np.empty((1, 0), np.int32)), values.shape[1], axis=0)
    entries: dict[Hashable, Factor] = {}
    codes: list[Any] = []
    for variable, own in zip((v for v in columns if v.kind == "discrete"), cells.T, strict=True):
        counts = np.bincount(own, weights=weights, minlength=variable.card)
        entries[variable.name] = factor_of(variable, counts, coding, first=not entries)
        codes.append(pooled_codes(entries[variable.name], variable, own, "raise"))
    coding.check_references(entries)
    design = Design(coding.constant, tuple(entries.get(v.name, v.name) for v in columns))
    flat = values.reshape(len(weights), -1)
    table = DesignRows(np.ascontiguousarray(flat[:, :-1]), tuple(codes))
    blocks = RegressionRows.of(design.block(table, np.ascontiguousarray(flat[:, -1]), weights))
    response = last.name if isinstance(last.name, str) else None
    return RegressionData(design, blocks, summary.weight, rows=summary.rows, response=response, readings=0)


def _check_coding(coding: Coding, columns: Sequence[Variable]) -> None:
    """Raise where columns are to be factors, or to have levels, that they have not in a summary."""
    coding.check([v.name for v in columns])
    for variable in columns:
        declared = coding.declared(variable.name)
        if declared is None or (variable.kind == "discrete" and declared.states in ((), variable.states)):
            continue
        what = f"levels {listing(variable.states)}" if variable.kind == "discrete" else "numbers"
        raise OptionError(
            f"categorical= speaks of {variable.name!r}, which has {what} in the Summary: give the model categorical= "
            "when the rows are summarised."
        )


def _rows_with(sums: Any, d: int) -> tuple[Floats, Floats]:
    """Rows (k, d + 1, d) of d columns whose products are those of k sets of rows, and their weights (k (d + 1),).

    With R'R the products of (1, x, y) and Q orthogonal, the rows of QR have them too; where the first column of Q is
    constant, that of QR is, and divides out as a weight.
    """
    basis = orthogonalised(Products.of(sums, list(range(d))).raw)
    squares = np.where(basis.dependent, 0.0, basis.squares[0])
    root = np.sqrt(squares)[:, :, None] * basis.shares
    mirror = np.full(d + 1, -1.0 / np.sqrt(d + 1))
    mirror[0] += 1.0
    turn = np.eye(d + 1) - 2.0 * np.outer(mirror, mirror) / (mirror @ mirror)
    weights = np.atleast_1d(sums.weight) / (d + 1)
    return (turn @ root)[:, :, 1:] / np.sqrt(weights)[:, None, None], np.repeat(weights, d + 1)
