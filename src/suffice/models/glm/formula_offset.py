"""Offsets in formulas: ``y ~ x + offset(log(t))`` adds log(t) to the linear predictor, with the coefficient 1."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from functools import cache
from typing import Any

import numpy as np

from suffice.array_types import Floats
from suffice.errors import DataError, OptionError
from suffice.models.glm.formula import as_frame, formulaic_module, is_plain
from suffice.models.glm.formula_messages import formula_errors

_TERM = re.compile(r"(^|[~+])\s*offset\(")
#: Transforms that learn from rows: those of new rows would have another offset.
_LEARNING = re.compile(r"\b(?:center|scale|standardize|poly|bs|cc|cr|cs|lag|C)\(")


@cache
def split_offset(formula: str) -> tuple[str, str | None]:
    """A formula without its terms offset(...), and the sum of these as an expression; None where there are none."""
    sums: list[str] = []
    while (term := _TERM.search(formula)) is not None:
        last = _closing(formula, term.end())
        sums.append(formula[term.end() : last])
        before, after = formula[: term.start()] + term[1], formula[last + 1 :]
        # "~ + x" and a sign at the end are no formulas.
        if term[1] == "+":
            before = before[:-1]
        elif after.lstrip().startswith("+"):
            after = after.lstrip()[1:]
        formula = f"{before}{after}"
    if re.search(r"(?<![\w.])offset\(", formula):
        raise DataError(
            f"The formula {formula!r} has an offset() within another term, or takes one away. An offset is a term of "
            "its own: y ~ x + offset(log(t))."
        )
    formula = formula.rstrip()
    formula = f"{formula} 1" if formula.endswith("~") else formula or "1"
    return formula, None if not sums else " + ".join(f"({one})" for one in sums)


def _closing(formula: str, start: int) -> int:
    """Where the parenthesis that is open at a place is closed."""
    depth = 1
    for index in range(start, len(formula)):
        depth += {"(": 1, ")": -1}.get(formula[index], 0)
        if not depth:
            return index
    raise DataError(f"The formula {formula!r} cannot be read: a parenthesis of offset( is not closed.")


def offset_values(expression: str, X: Any) -> Floats:
    """The offset of each row (n,)."""
    if not is_plain(expression.replace("`", "")) or _LEARNING.search(expression):
        raise OptionError(
            f"offset({expression}) of the formula calls something else than arithmetic and functions of NumPy that "
            "work number by number. Make that column before the fit."
        )
    frame = as_frame(X)
    with formula_errors(frame, f"0 + {expression}"), np.errstate(all="ignore"):
        built = formulaic_module().Formula(f"0 + {{{expression}}}").get_model_matrix(frame, na_action="ignore")
    values = np.asarray(built, dtype=np.float64)
    if values.ndim != 2 or values.shape[1] != 1:
        raise DataError(f"offset({expression}) of the formula is no number for each row; give columns of numbers.")
    good = np.isfinite(values[:, 0])
    if not good.all():
        row = int(np.argmin(good))
        raise DataError(
            f"offset({expression}) of the formula is missing or infinite in row {row}; a regression needs every value. "
            "Leave the row out, or correct it."
        )
    return np.ascontiguousarray(values[:, 0])


def offset_columns(formula: str | None, columns: Sequence[Hashable]) -> list[Hashable]:
    """The columns of a table that the offset of a formula names."""
    expression = None if formula is None else split_offset(formula)[1]
    words = set(re.findall(r"[^\W\d]\w*", expression or ""))
    return [name for name in columns if name in words or (expression is not None and f"`{name}`" in expression)]
