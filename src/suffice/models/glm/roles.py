"""What a regression is to scikit-learn: a classifier where its response has labels, else a regressor."""

from __future__ import annotations

from typing import Any

from suffice.models.glm.registry import declared

#: Families whose response is not negative.
POSITIVE = ("poisson", "gamma", "inverse_gaussian", "negative_binomial")


def glm_role(model: Any) -> dict[str, Any]:
    """The role of a regression, by its family."""
    family = declared(model.family).family
    role = {"string": True, "sparse": True, "categorical": True}
    if family.labels:
        return {**role, "kind": "classifier", "multi_class": family.response != "shares"}
    return {**role, "kind": "regressor", "poor_score": True, "positive_target": family.name in POSITIVE}


def without_classes(model: Any) -> str:
    """Why a regression has no probabilities of classes; empty where it has."""
    family = declared(model.family).family
    return "" if family.labels else f"The {family.name} family has no classes."
