"""What tells the rows of a regression from others: products of the response and each column, made once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from suffice.array_types import Floats
from suffice.engines.linear_predictor import RowBlock, transpose_product
from suffice.fitting.row_marks import Marks, named, passing_over_overflow, state_number
from suffice.models.glm.design import Design

#: Coefficients up to which each has a mark of its own.
MOST_NAMES = 1_000


@passing_over_overflow
def marks_of_block(block: RowBlock, design: Design, numbers: Floats | None) -> Marks:
    """Sums over the rows of the response, its square, and its products with columns; numbers: of labels by code."""
    layout, size = design.layout, design.size
    totals, products, squares = np.zeros((2, 2)), np.zeros(size), np.zeros(size)
    for part in layout.parts(block):
        weights = np.ones(part.rows) if part.weights is None else part.weights
        response = _response(part, numbers)
        totals += [[weights @ response, weights @ np.abs(response)], [weights @ response**2] * 2]
        if size <= MOST_NAMES:
            products += transpose_product(layout, part, weights * response)
            squared = None if part.sparse is None else part.sparse.multiply(part.sparse).tocsr()
            squares += transpose_product(layout, replace(part, dense=part.dense**2, sparse=squared), weights)
    marks = {"the response": tuple(totals[0].tolist()), "the squared response": tuple(totals[1].tolist())}
    if size <= MOST_NAMES:
        sizes = np.sqrt(np.clip(squares, 0.0, None) * totals[1, 0])
        for name, value, most in zip(design.names, *map(design.public, (products, sizes)), strict=True):
            marks[f"{named(name)} times the response"] = (float(value), float(most))
    return marks


def _response(part: RowBlock, numbers: Floats | None) -> Floats:
    """One number a row (n,): its response, with the offset where there is one."""
    response = np.asarray(part.y, dtype=np.float64)
    if numbers is not None:
        response = numbers[response.astype(np.intp)]
    if response.ndim > 1:
        response = response @ np.array([state_number(column) for column in range(response.shape[1])])
    return response if part.offset is None else response + state_number("offset") * part.offset
