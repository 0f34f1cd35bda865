"""What a regression is to scikit-learn: a classifier where its response has labels, else a regressor.

And with it how it takes rows and responses, and what it predicts unless said.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from suffice.checks import is_list, is_name
from suffice.errors import OptionError, listing, shortened
from suffice.fitting.contract import Inputs
from suffice.fitting.driver import Fit, solve
from suffice.fitting.sklearn_face import checked_rows, one_target, weights_of
from suffice.models.glm.family import Family
from suffice.models.glm.fitted import GLMFitted
from suffice.models.glm.missing import complete_rows, noted
from suffice.models.glm.registry import declared
from suffice.models.glm.task import GLMTask

#: Families whose response is not negative.
POSITIVE = ("poisson", "gamma", "inverse_gaussian", "negative_binomial")


def glm_role(model: Any) -> dict[str, Any]:
    """The role of a regression, by its family."""
    family = declared(model.family).family
    role: dict[str, Any] = {"string": True, "sparse": True, "categorical": True}
    if family.labels:
        # One line through ordered labels does not tell classes apart that lie around.
        role["poor_score"] = family.response == "ordered"
        return {**role, "kind": "classifier", "multi_class": family.response != "shares"}
    role |= {"kind": "regressor", "poor_score": True, "positive_target": family.rows_like in POSITIVE}
    return {**role, "several_targets": family.response == "vectors"}


def without_classes(model: Any) -> str:
    """Why a regression has no probabilities of classes; empty where it has."""
    family = declared(model.family).family
    return "" if family.labels else f"The {family.name} family has no classes. Use predict, or a family of labels."


def without_likelihood(model: Any) -> str:
    """Why a regression has no score; empty where it has."""
    family = declared(model.family).family
    if family.has_likelihood:
        return ""
    return f"The {family.name} family has no likelihood, and a fit no score. Use scoring=, or a metric of predictions."


def steps_of(model: Any) -> int:
    """Number of iterations; 1 for a closed form, as scikit-learn counts."""
    report = model.report_
    return max(report.iterations, 1) if report.stop_reason == "closed form" else int(report.iterations)


def without_one_pass(model: Any) -> str:
    """Why a regression does not learn in one pass; empty where it does."""
    if isinstance(declared(model.family).family, Family):
        return ""
    return "partial_fit takes one linear predictor; use fit, with solver='sgd' for a softmax."


def checked_response(model: Any, y: Any) -> Any:
    """A response of one value a row, where the family takes no vectors."""
    return y if declared(model.family).family.response == "vectors" else one_target(y)


def rows_of(model: Any, X: Any, *, known: bool = False, no_columns: bool = False) -> Any:
    """Rows in the forms that regressions take, see `checked_rows`."""
    return checked_rows(model, X, known=known, sparse=True, no_columns=no_columns)


def has_vectors(model: Any, y: Any) -> bool:
    """Whether a Gaussian response has several columns."""
    several = hasattr(y, "shape") and len(y.shape) == 2 and y.shape[1] > 1
    return bool(several) and declared(model.family).family.name == "gaussian"


def predicted_kind(fitted: GLMFitted, interval: float | None, kind: str | None) -> str:
    """What is predicted; unless said, labels where the response had labels, else the mean."""
    if kind is not None:
        return kind
    return "response" if fitted.classes is None or interval is not None else "class"


def one_pass(model: Any, X: Any, y: Any, classes: Any, more: Mapping[str, Any]) -> Fit[GLMFitted]:
    """What a model knows after it has gone through rows once, see `GLM.partial_fit`."""
    rows, y = rows_of(model, X, known=model._fit is not None), checked_response(model, y)
    known = None if model._bare_report() is None else model.fitted_
    task = GLMTask.of({**model._options, "states": first_classes(model, known, classes)})
    given, left_out = complete_rows(Inputs(rows, {"y": y, **more}), task.options)
    data = task.read(given, known, "join")
    return noted(solve(task.one_pass(data, known), data, replace(model._control(), checkpoint=None)), left_out)


def first_classes(model: Any, known: Any, classes: Any) -> Any:
    """The labels of a response whose first rows may not show all of them."""
    states = model.states if known is None or known.classes is None else known.classes
    if classes is None:
        return states
    family = declared(model.family).family
    if not family.labels:
        raise OptionError(f"classes= are labels of the response; the {family.name} family has none. Leave it out.")
    if not is_list(classes):
        raise OptionError(f"classes is {shortened(classes)}; expected a list of the labels of the response.")
    if not all(is_name(label) for label in classes):
        raise OptionError(f"classes is {shortened(classes)}; expected labels, each a text, a number or a truth value.")
    strange = [] if states is None else [label for label in classes if label not in states]
    if strange:
        raise OptionError(
            f"classes= holds {listing(strange)}; the labels of the response are {listing(states)} already. Leave "
            "classes= out, or fit again with states= that has all of them."
        )
    return tuple(classes) if states is None else states


def read_again(model: Any, rows: Mapping[str, Any]) -> Any:
    """What the task of a model reads of rows that are given again, by the names of the arguments of its `fit`."""
    X, y = rows_of(model, rows.get("data"), no_columns="columns" in rows), checked_response(model, rows.get("y"))
    more = {name: rows.get(name) for name in ("offset", "exposure", "trials", "columns")}
    given = Inputs(X, {"y": y, "sample_weight": weights_of(rows.get("sample_weight")), **more})
    return model._task(vectors=has_vectors(model, y)).read(given, None, "fit")
