"""What scikit-learn asks of every estimator and nobody else does: tags, shapes of X and y, requests for metadata.

scikit-learn is not needed for any of it: it is imported where scikit-learn itself asks, or where it is loaded already.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from suffice.calls import taken_arguments
from suffice.errors import (
    CallError,
    DataError,
    EstimateError,
    MissingColumnError,
    MissingValueError,
    NotFittedError,
    NotOfferedError,
    asked_by,
    require,
    warn,
)
from suffice.fitting.matrices import RowMatrix, matrix_of, string_names
from suffice.table import Table

#: What a user meets at a place where scikit-learn would say the same.
ONE_AXIS = (
    "Expected 2D array, got {axes}D array instead. Reshape your data: X.reshape(-1, 1) for one column, "
    "X.reshape(1, -1) for one row."
)
TOO_FEW = "Found array with 0 {what}(s) (shape={shape}) while a minimum of 1 is required: X has no {what}s. Give some."
#: Arguments of methods that are no metadata of rows.
_PLAIN = {"y", "columns", "kind", "method", "threads", "target", "keep", "interval", "classes"}
METHODS = ("fit", "partial_fit", "predict", "predict_proba", "score")

R = TypeVar("R")


class KeepsFit(Protocol):
    """What keeps its last fit."""

    _fit: Any


M = TypeVar("M", bound=KeepsFit)


# -- rows and targets --------------------------------------------------------------------------------------------------


def only_converts(values: object) -> bool:
    """Whether values say no more of themselves than that they can be an array: no length, and no names as a `Table`."""
    return hasattr(values, "__array__") and not (hasattr(values, "__len__") or isinstance(values, Table))


def checked_rows(model: Any, X: Any, *, known: bool, sparse: bool = False, no_columns: bool = False) -> Any:
    """Rows as a model of columns takes them; what is no array of two axes, or has no rows or columns, is an error.

    known: whether the model is fitted, and X must have as many columns as it was fitted with; no_columns: whether rows
    without columns have been asked for.
    """
    if only_converts(X):
        X = np.asarray(X)
    if isinstance(X, np.ndarray) and X.dtype.names is None and X.ndim != 2:
        raise DataError(ONE_AXIS.format(axes=X.ndim))
    if isinstance(X, list | tuple | range) and X and all(isinstance(value, int | float | np.number) for value in X):
        raise DataError(ONE_AXIS.format(axes=1))
    matrix = _readable(model, X, sparse=sparse)
    if matrix is None:
        return X
    shape = (matrix.rows, matrix.width)
    if not matrix.width and not no_columns:
        raise DataError(TOO_FEW.format(what="feature", shape=shape))
    if not matrix.rows:
        raise DataError(TOO_FEW.format(what="sample", shape=shape))
    width, names = (None, None) if model._fit is None or model._fit.seen is None else model._fit.seen
    # A frame may have held the response too, so that only arrays are compared.
    if known and matrix.names is None and names is None and width is not None and matrix.width != width:
        raise DataError(
            f"X has {matrix.width} features, but {type(model).__name__} is expecting {width} features as input."
        )
    return X if isinstance(X, list | tuple) else matrix.values


def _readable(model: Any, X: Any, *, sparse: bool = False) -> RowMatrix | None:
    """Rows in memory that a model can read, or None where X is something else."""
    matrix = matrix_of(X)
    if matrix is not None and matrix.sparse and not sparse:
        raise DataError(f"A {type(model).__name__} takes no sparse matrix; give X.toarray().")
    dtype = getattr(X, "dtype", None)  # Frames may have a column of that name.
    if isinstance(dtype, np.dtype) and dtype.kind == "c":
        raise DataError(
            "Complex data not supported: X holds complex numbers. Give real and imaginary parts as columns."
        )
    return matrix


def one_target(y: Any) -> Any:
    """A response of one value a row: a column of a table counts, with a warning as scikit-learn gives it."""
    if only_converts(y):
        y = np.asarray(y)
    if len(getattr(y, "shape", ())) == 2 and y.shape[1] == 1:
        words = "A column-vector y was passed when a 1d array was expected. Give y.ravel()."
        warn(words, _conversion_warning())
        return np.asarray(y)[:, 0]
    return y


def _conversion_warning() -> Any:
    """The warning that scikit-learn gives, where it is loaded."""
    from suffice.errors import SufficeWarning

    exceptions = sys.modules.get("sklearn.exceptions")
    return SufficeWarning if exceptions is None else exceptions.DataConversionWarning


@contextmanager
def named_causes(X: Any) -> Iterator[None]:
    """Let the error of a fit name a cause that scikit-learn names: a value that is none, a single row or column."""
    try:
        yield
    except MissingValueError as error:
        if not isinstance(X, np.ndarray):
            raise
        raise MissingValueError(f"{error} (X contains NaN)") from error
    except (EstimateError, MissingColumnError) as error:
        matrix = matrix_of(X)
        few = {} if matrix is None else {"n_samples": matrix.rows, "n_features": matrix.width}
        single = [name for name, number in few.items() if number == 1]
        if not single:
            raise
        raise type(error)(f"{error} (X has {' and '.join(f'{name}=1' for name in single)})") from error


def weights_of(weights: Any) -> Any:
    """Weights as an array where they only say that they can be one; weights that are all zero are an error."""
    if only_converts(weights):
        weights = np.asarray(weights)
    if isinstance(weights, list):
        nothing = bool(weights) and all(isinstance(weight, int | float) and weight == 0 for weight in weights)
    else:
        nothing = isinstance(weights, np.ndarray) and weights.ndim == 1 and weights.size > 0 and not weights.any()
    if nothing:
        raise DataError("All weights are zero (sample_weight): there are no rows to learn from. Give weights above 0.")
    return weights


def real_rows(model: Any, X: Any, *, known: bool) -> Any:
    """`checked_rows` of a model whose columns are all real: what can be no number is an error of its type."""
    rows = checked_rows(model, X, known=known)
    if isinstance(rows, np.ndarray) and rows.dtype == object:
        try:
            rows.astype(np.float64)
        except TypeError as error:
            raise CallError(f"X holds what is no number: {error}. Give an array of numbers.") from error
        except ValueError:
            return rows  # Texts: the column says which.
    return rows


def rows_beside(
    model: Any, data: object, more: Mapping[str, object], *, known: bool
) -> tuple[object, dict[str, object]]:
    """Rows and what was given beside them, checked where a model takes matrices; known: against those of the fit."""
    if not model._takes_matrices:
        return _any_rows(model, data), _with_weights(more)
    rows = real_rows(model, data, known=known and more.get("columns") is None)
    return rows, {**more, "sample_weight": weights_of(more.get("sample_weight"))}


def _any_rows(model: Any, data: object) -> object:
    """Rows of a model that takes columns and tables too, as an array where they only say that they can be one."""
    data = np.asarray(data) if only_converts(data) else data
    matrix = _readable(model, data)
    if isinstance(data, np.ndarray) and matrix is not None and matrix.rows and not matrix.width:
        raise DataError(TOO_FEW.format(what="feature", shape=(matrix.rows, 0)))
    return data


def _with_weights(more: Mapping[str, object]) -> dict[str, object]:
    """What was given beside rows, weights as an array where they only say that they can be one."""
    given = dict(more)
    if only_converts(given.get("sample_weight")):
        given["sample_weight"] = np.asarray(given["sample_weight"])
    return given


def read_again(model: Any, rows: Mapping[str, Any]) -> Any:
    """What the task of a model reads of rows that are given again, by the names of the arguments of its `fit`."""
    from suffice.fitting.contract import Inputs

    more = dict(rows)
    data = more.pop("data", None)
    data, more = rows_beside(model, data, more, known=False)
    return model._task().read(Inputs(data, more), None, "fit")


# -- what was seen -----------------------------------------------------------------------------------------------------


def remember(model: M, X: object) -> M:
    """The fitted model, which knows how many columns it has seen and their names."""
    matrix = matrix_of(X)
    if matrix is not None:
        model._fit.seen = (matrix.width, string_names(matrix.names))
    return model


def _width(model: Any) -> int | None:
    seen = None if model._fit is None else model._fit.seen
    return None if seen is None else seen[0]


def n_features_in(model: Any) -> int:
    """How many columns X had in `fit`, where it was an array or a table in memory."""
    width = _width(model)
    if width is None:
        raise NotFittedError(
            f"This {type(model).__name__} was fitted to no array or frame in memory. Call fit with one."
        )
    return width


def feature_names_in(model: Any) -> Any:
    """The names of the columns of X in `fit`, where all of them are texts."""
    seen = None if model._fit is None else model._fit.seen
    if seen is None or seen[1] is None:
        raise NotFittedError(f"This {type(model).__name__} has seen no names of columns.")
    return seen[1]


def unseen(model: Any) -> set[str]:
    """Which of the two a model does not have: rows that are no table in memory show no columns, arrays no names."""
    columns, names = (None, None) if model._fit is None or model._fit.seen is None else model._fit.seen
    return {name for name, value in (("n_features_in_", columns), ("feature_names_in_", names)) if value is None}


def is_fitted(model: Any) -> bool:
    """Whether it can be asked."""
    try:
        model.fitted_  # noqa: B018
    except NotFittedError:
        return False
    return True


# -- what a model offers -----------------------------------------------------------------------------------------------


class Offered(Generic[R]):
    """A method that a model has under a condition only: without it, it has no such attribute.

    scikit-learn asks by name what an estimator can do, so that a regressor must have no `predict_proba`.
    """

    def __init__(self, method: Callable[..., R], condition: Callable[[Any], str]) -> None:
        """condition: why a model does not have the method; empty where it does."""
        self.method, self.condition = method, condition
        self.__doc__ = method.__doc__

    def __get__(self, model: Any, kind: type | None = None) -> Callable[..., R]:
        """The bound method."""
        if model is None:
            return self.method
        why = self.condition(model)
        if why:
            raise NotOfferedError(why)
        bound: Callable[..., R] = self.method.__get__(model, type(model))
        return bound


def needs_response(model: object) -> str:
    """Why scikit-learn is not offered a method that it would call without y."""
    return f"score_samples of a {type(model).__name__} needs y." if asked_by("sklearn") else ""


def needs_target(model: object) -> str:
    """Why scikit-learn is not offered a method that it would call without the column to predict."""
    return f"predict of a {type(model).__name__} needs target=." if asked_by("sklearn") else ""


# -- tags and metadata -------------------------------------------------------------------------------------------------


def tags(model: Any) -> Any:
    """What scikit-learn may expect of the model; called by scikit-learn only."""
    from sklearn.utils import ClassifierTags, InputTags, RegressorTags, Tags, TargetTags

    role: dict[str, Any] = dict(model._role())
    kind = role.pop("kind", None)
    multi_class, poor = role.pop("multi_class", True), role.pop("poor_score", False)
    positive, several = role.pop("positive_target", False), role.pop("several_targets", False)
    return Tags(
        estimator_type=kind,
        target_tags=TargetTags(
            required=kind is not None, positive_only=positive, multi_output=several, single_output=not several
        ),
        classifier_tags=ClassifierTags(poor_score=poor, multi_class=multi_class) if kind == "classifier" else None,
        regressor_tags=RegressorTags(poor_score=poor) if kind == "regressor" else None,
        input_tags=InputTags(**role),
    )


def role_of_sequences(_: object) -> dict[str, Any]:
    """What a model of sequences or graphs is to scikit-learn: its X is no matrix of rows that can be put in any order.

    What checks of scikit-learn then ask is what needs no rows; the tests list the others with their reasons.
    """
    return {"two_d_array": False}


def metadata_of(model: Any, method: str) -> list[str]:
    """What a method takes for each row beside X and y."""
    function = getattr(type(model), method, None)
    if function is None:
        return []
    beside = taken_arguments(function)[2:]  # The model and its rows come first.
    return [name for name in beside if name not in _PLAIN]


def routing(model: Any) -> Any:
    """Which metadata the model asks for, as scikit-learn's routing reads it."""
    require("sklearn", extra="test", purpose="Routing of metadata")
    from sklearn.utils.metadata_routing import MetadataRequest

    asked = getattr(model, "_metadata_request", None)
    if asked is not None:
        return copy.deepcopy(asked)
    request = MetadataRequest(owner=model)
    for method in METHODS:
        for name in metadata_of(model, method):
            getattr(request, method).add_request(param=name, alias=None)
    return request


def requester(method: str) -> Callable[..., Any]:
    """The method ``set_fit_request`` and its like."""

    def ask(model: Any, **metadata: Any) -> Any:
        known = metadata_of(model, method)
        unknown = [name for name in metadata if name not in known]
        if unknown:
            raise TypeError(f"Unexpected args: {unknown} in {method}. Accepted arguments are: {known}")
        request = routing(model)
        for name, alias in metadata.items():
            getattr(request, method).add_request(param=name, alias=alias)
        object.__setattr__(model, "_metadata_request", request)
        return model

    ask.__name__ = f"set_{method}_request"
    ask.__doc__ = f"Say which metadata `{method}` is to be given by scikit-learn: True, False, None or another name."
    return ask


def members() -> Iterator[tuple[str, Any]]:
    """What every estimator has for scikit-learn, by name."""
    yield "_role", lambda _: {}
    yield "__sklearn_tags__", tags
    yield "__sklearn_is_fitted__", is_fitted
    yield "n_features_in_", property(n_features_in)
    yield "feature_names_in_", property(feature_names_in)
    yield "get_metadata_routing", routing
    for method in METHODS:
        yield f"set_{method}_request", requester(method)
