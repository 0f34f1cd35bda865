"""The parts of a fit of a conditional random field, for tests that look at them one by one."""

from __future__ import annotations

from typing import Any

from suffice.fitting.contract import Inputs


def field_data(model: Any, X: Any, y: Any, weights: Any = None) -> Any:
    """Labelled examples as a model reads them."""
    return model._task().read(Inputs(X, {"y": y, "sample_weight": weights}), None, "fit")


def field_objective(model: Any, X: Any, y: Any, weights: Any = None) -> Any:
    """The objective of labelled examples."""
    return model._task().objective(field_data(model, X, y, weights))


def field_ascent(model: Any, X: Any, y: Any, weights: Any = None) -> Any:
    """Stochastic ascent over labelled examples."""
    data = field_data(model, X, y, weights)
    return model._task().stochastic(data, model._task().objective(data), "sgd")
