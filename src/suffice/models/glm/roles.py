"""What a regression is to scikit-learn: a classifier where its response has labels, else a regressor."""

from __future__ import annotations

from typing import Any

from suffice.errors import OptionError
from suffice.fitting.sklearn_face import one_target
from suffice.models.glm.family import Family
from suffice.models.glm.registry import declared

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
    role |= {"kind": "regressor", "poor_score": True, "positive_target": family.name in POSITIVE}
    return {**role, "several_targets": family.response == "vectors"}


def without_classes(model: Any) -> str:
    """Why a regression has no probabilities of classes; empty where it has."""
    family = declared(model.family).family
    return "" if family.labels else f"The {family.name} family has no classes. Use predict, or a family of labels."


def without_one_pass(model: Any) -> str:
    """Why a regression does not learn in one pass; empty where it does."""
    if isinstance(declared(model.family).family, Family):
        return ""
    return "partial_fit takes one linear predictor; use fit, with solver='sgd' for a softmax."


def checked_response(model: Any, y: Any) -> Any:
    """A response of one value a row, where the family takes no vectors."""
    return y if declared(model.family).family.response == "vectors" else one_target(y)


def first_classes(model: Any, known: Any, classes: Any) -> Any:
    """The labels of a response whose first rows may not show all of them."""
    states = model.states if known is None or known.classes is None else known.classes
    if classes is None:
        return states
    family = declared(model.family).family
    if not family.labels:
        raise OptionError(f"classes= are labels of the response; the {family.name} family has none. Leave it out.")
    return tuple(classes) if states is None else states
