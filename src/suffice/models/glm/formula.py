"""Formulas, read by formulaic: model matrices of new rows, and files that keep what a formula has learned.

A file holds the terms, the levels of each factor and the figures of transforms that depend on the data of the fit (a
mean, knots). It is data alone: terms that call anything but the transforms of formulaic and functions of NumPy that
work number by number are refused when a file is read.
"""

from __future__ import annotations

import ast
import importlib
import re
import warnings
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from suffice.array_types import Floats
from suffice.errors import DataError, FileFormatError, OptionError, require, shortened
from suffice.models.glm.formula_messages import check_values, formula_errors, missing_rows, named_columns, sides_of

INTERCEPT = "Intercept"


def formulaic_module() -> Any:
    """The package that reads formulas."""
    return require("formulaic", extra="formula", purpose="A formula")


def model_matrices(formula: str, X: Any) -> tuple[Any, Any, Any]:
    """The response (or None), the matrix of the explanatory terms and its specification."""
    formulaic, frame = formulaic_module(), as_frame(X)
    with formula_errors(frame, formula), np.errstate(all="ignore"):
        parsed = formulaic.Formula(formula)
        sides_of(parsed, formula)
        built = parsed.get_model_matrix(frame)
    left, right = sides_of(built, formula)
    if len(right) != len(frame):
        raise missing_rows(len(frame) - len(right), len(frame), frame, named_columns(formula, frame.columns))
    return left, right, right.model_spec


def as_frame(X: Any) -> Any:
    """A table that formulaic takes: a dict of columns becomes a pandas frame."""
    if not isinstance(X, Mapping):
        if isinstance(X, np.ndarray | list):
            raise DataError(f"A formula names columns; found {shortened(X)}, which has none. Give a frame or a dict.")
        return X
    return require("pandas", extra="formula", purpose="A formula").DataFrame(dict(X))


def used_columns(specification: Any, columns: Sequence[Hashable]) -> list[Hashable]:
    """The columns of a table that some term of the formula names."""
    text = [str(factor.expr) for term in specification.formula for factor in term.factors]
    return [name for name in columns if name in text or name in named_columns(" ".join(text), columns)]


def factor_levels(specification: Any) -> dict[str, tuple[Hashable, ...]]:
    """The levels of the columns that are factors, by themselves or within C()."""
    levels = {}
    for expression, (_, state) in specification.encoder_state.items():
        column = re.fullmatch(r"(?:C\()?([^\W\d]\w*)(?:[,)].*)?", expression)
        if column and "categories" in state:
            levels[column[1]] = tuple(state["categories"])
    return levels


def matrix_of(specification: Any, X: Any, names: Sequence[str]) -> Floats:
    """The columns of new rows (n, k) in the order of the fit, without the intercept."""
    frame = as_frame(X)
    mismatch = importlib.import_module("formulaic.errors").DataMismatchWarning

    columns, levels = used_columns(specification, getattr(frame, "columns", ())), factor_levels(specification)

    with warnings.catch_warnings(), formula_errors(frame), np.errstate(all="ignore"):
        warnings.simplefilter("error", mismatch)
        try:
            built = specification.get_model_matrix(frame)
        except Exception:
            check_values(frame, columns, levels)
            raise
    names_built = [name for name in built.columns if name != INTERCEPT]
    if names_built != list(names):
        raise DataError(f"The formula gives the columns {names_built}; the fit had {list(names)}.")
    if len(built) != len(frame):
        raise missing_rows(len(frame) - len(built), len(frame), frame, columns)
    return np.asarray(built[names_built].to_numpy(dtype=np.float64))


# -- files -------------------------------------------------------------------------------------------------------------


def specification_to_dict(specification: Any) -> dict[str, Any]:
    """Plain data from which `specification_from_dict` makes one that predicts alike."""
    terms = [
        [[str(factor.expr), factor.eval_method.value] for factor in term.factors] for term in specification.formula
    ]
    levels = {
        factor: _plain(state["categories"])
        for factor, (_, state) in specification.encoder_state.items()
        if "categories" in state
    }
    return {"terms": terms, "levels": levels, "transforms": _plain(dict(specification.transform_state))}


def specification_from_dict(plain: Mapping[str, Any]) -> Any:
    """The specification of a file."""
    formulaic = formulaic_module()
    terms = [[(str(expression), str(method)) for expression, method in term] for term in plain["terms"]]
    rest = [":".join(_written(*factor) for factor in term) for term in terms if term[0][0] != "1"]
    formula = formulaic.Formula(" + ".join(["1" if len(rest) < len(terms) else "0", *rest]))
    kind = importlib.import_module("formulaic.parser.types").Factor.Kind.CATEGORICAL
    levels = {str(factor): (kind, {"categories": _back(states)}) for factor, states in plain["levels"].items()}
    return formulaic.ModelSpec(
        formula=formula, output="pandas", transform_state=_back(plain["transforms"]), encoder_state=levels
    )


def _written(expression: str, method: str) -> str:
    """A factor of a term: the name of a column, or an expression, which is checked."""
    if method == "lookup" and "`" not in expression:
        return f"`{expression}`"
    if "{" in expression or "}" in expression:
        raise FileFormatError(f"The term {expression!r} of the file cannot be read.")
    if not is_plain(expression):
        raise FileFormatError(
            f"The term {expression!r} of the file calls something else than transforms of formulaic and functions of "
            "NumPy that work number by number; fit the model again."
        )
    return f"{{{expression}}}"


def _plain(value: Any) -> Any:
    """Numbers, text, lists and dicts; dicts as pairs, because their keys need not be text."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and not value.ndim):
        return value.item()
    if isinstance(value, Mapping):
        return {"pairs": [[_plain(key), _plain(one)] for key, one in value.items()]}
    if isinstance(value, list | tuple | np.ndarray) or hasattr(value, "tolist"):
        listed = value.tolist() if hasattr(value, "tolist") else list(value)
        return {"array" if isinstance(value, np.ndarray) else "list": [_plain(one) for one in listed]}
    raise OptionError(
        f"The formula has learned {value!r}, which cannot be written to a file; make that column before the fit."
    )


def _back(plain: Any) -> Any:
    if not isinstance(plain, Mapping):
        return plain
    if "pairs" in plain:
        return {_back(key): _back(one) for key, one in plain["pairs"]}
    if "array" in plain:
        return np.array(_rows(plain["array"]))
    return [_back(one) for one in plain["list"]]


def _rows(listed: Any) -> Any:
    return [_rows(one["list"]) if isinstance(one, Mapping) else one for one in listed]


_NODES: tuple[type[ast.AST], ...] = (
    *(ast.Expression, ast.Name, ast.Load, ast.Constant, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop),
    *(ast.Compare, ast.cmpop, ast.List, ast.Tuple, ast.keyword, ast.BoolOp, ast.boolop),
)


def is_plain(expression: str) -> bool:
    """Whether a term does no more than arithmetic, transforms of formulaic and NumPy's functions of numbers."""
    transforms = importlib.import_module("formulaic.transforms").TRANSFORMS

    def allowed(node: ast.AST) -> bool:
        if isinstance(node, ast.Attribute):
            name = node.value.id if isinstance(node.value, ast.Name) else ""
            return (name == "np" and isinstance(getattr(np, node.attr, None), np.ufunc)) or (
                name in ("contr", "cs") and not node.attr.startswith("_")
            )
        if isinstance(node, ast.Call):
            return isinstance(node.func, ast.Attribute) or getattr(node.func, "id", "") in transforms
        return isinstance(node, _NODES)

    try:
        return all(allowed(node) for node in ast.walk(ast.parse(expression, mode="eval")))
    except SyntaxError:
        return False
