"""What labelled examples say about the weights of a conditional random field.

The information is the covariance of the features given the examples, by differences of the exact slope. A fit keeps no
examples, so that they are given again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from suffice.array_types import Floats
from suffice.errors import EstimateError, OptionError, SizeError
from suffice.fitting.inference import CHOSEN, Inference
from suffice.models.conditional_field.curvature import CurvatureProducts, information
from suffice.models.conditional_field.objective import FieldObjective
from suffice.models.markov.errors import weight_errors

if TYPE_CHECKING:
    from suffice.models.conditional_field.declaration import ConditionalField

#: Weights up to which all errors are worked out: two rounds over the examples for each.
MOST_WEIGHTS = 2_000
#: Products of the information with vectors for the errors of one weight.
MOST_PRODUCTS = 1_000
#: Eigenvalues below this share of the largest are directions that change no distribution.
FLAT = 1e-9
AGAIN = (
    "The standard errors of a conditional random field need its examples again, which a fit does not keep: "
    "standard_errors_of(X, y), summary(level, X, y), confidence_intervals(level, X, y), parameter_covariance(X, y)."
)


def inference_of(model: ConditionalField) -> Inference:
    """The weights by name, without errors."""
    fitted = model.fitted_
    names = tuple(" ".join(map(str, name)) for name in fitted.structure.names())
    return Inference(names, np.asarray(fitted.weights), _without_examples, _without_examples)


def _without_examples() -> Floats:
    raise EstimateError(AGAIN)


def inference_with(model: ConditionalField, given: Mapping[str, Any]) -> Inference:
    """The weights with their errors, from the examples of the fit.

    With a normal prior: standard deviations of the normal distribution that has the curvature of the posterior at its
    mode. With a Laplace prior weights at 0 have none (NaN), and the others that of a fit without it.
    """
    fitted, objective = model.fitted_, objective_of(model, given)
    if len(fitted.weights) > MOST_WEIGHTS:
        return replace(
            inference_of(model),
            make_errors=partial(_too_wide, len(fitted.weights)),
            make_part=partial(covariance_of_some, objective, np.asarray(fitted.weights)),
        )
    laplace = objective.penalties.laplace
    used = np.flatnonzero((fitted.weights != 0.0) | (laplace is None))
    matrix = information(objective, np.asarray(fitted.weights))[np.ix_(used, used)]
    if objective.penalties.gaussian is not None:
        inner = np.linalg.inv(matrix)
        errors = np.sqrt(np.diagonal(inner))
    else:
        inner = np.linalg.pinv(matrix, rcond=FLAT, hermitian=True)
        even = np.zeros(len(fitted.weights))
        table_like = np.zeros(len(used), dtype=bool)
        structural = lambda: information(objective, even)[np.ix_(used, used)]  # noqa: E731
        whole_rank = laplace is None and len(used) > 0
        errors = weight_errors(matrix, table_like, structural, len(used) - fitted.rank.value if whole_rank else None)
    whole, alone = np.full((len(fitted.weights),) * 2, np.nan), np.full(len(fitted.weights), np.nan)
    whole[np.ix_(used, used)], alone[used] = inner, errors
    known = replace(inference_of(model), make_errors=lambda: alone, make_covariance=lambda: whole)
    return known if laplace is None else replace(known, about=CHOSEN)


def _too_wide(size: int) -> Floats:
    raise SizeError(
        f"The errors of all {size:,} weights would take {2 * size:,} rounds over the examples; the limit is "
        f"{MOST_WEIGHTS:,} weights. Test some of them, sf.wald_test(model, names, X, y), or bootstrap(X, y)."
    )


def covariance_of_some(objective: FieldObjective[Any], weights: Floats, numbers: list[int]) -> Floats:
    """Covariance (m, m) of some weights: columns of the inverse information by conjugate gradients.

    Products of the information with vectors are differences of the slope, so that the matrix is never made.
    """
    from scipy.sparse.linalg import LinearOperator, cg

    if objective.penalties.gaussian is None:
        raise EstimateError(
            "Without a normal prior the information of so many weights is singular, and the errors of some do not "
            "follow from products with it. Give prior=Normal(variance=...), or ask bootstrap(X, y)."
        )
    size, product = len(weights), CurvatureProducts(objective, weights)

    def times(vector: Floats) -> Floats:
        vector = np.asarray(vector, dtype=np.float64).ravel()
        return product(vector) if vector.any() else vector

    units = 1.0 / (objective.penalties.gaussian.diagonal() + objective.variance(weights))
    information = LinearOperator((size, size), matvec=times)
    ahead = LinearOperator((size, size), matvec=lambda v: units * np.asarray(v, dtype=np.float64).ravel())
    columns = []
    for number in numbers:
        unit = np.zeros(size)
        unit[number] = 1.0
        column, left = cg(information, unit, rtol=1e-7, M=ahead, maxiter=MOST_PRODUCTS)
        if left:
            raise EstimateError(f"The equations of weight {number} were not solved in {MOST_PRODUCTS} products.")
        columns.append(column[numbers])
    covariance = np.array(columns)
    return np.asarray((covariance + covariance.T) / 2.0)


def standard_errors_of(
    model: ConditionalField, X: Iterable[Any], y: Iterable[Any], sample_weight: ArrayLike | None = None
) -> Floats:
    """Standard errors of `weights_` (k,), from the examples of the fit.

    Without a prior they are those of the shortest weights with the same distribution; see `summary`.
    """
    given = {"data": X, "y": y, "sample_weight": sample_weight}
    return inference_with(model, {name: value for name, value in given.items() if value is not None}).errors


def objective_of(model: ConditionalField, given: Mapping[str, Any]) -> Any:
    """The objective of the fit, of examples that are given again; one whose expectations are not exact is an error."""
    columns = {name: value for name, value in given.items() if name not in ("data", "y", "sample_weight")}
    inputs = model._inputs(given.get("data"), given.get("y"), given.get("sample_weight"), columns)
    task = model._task()
    objective = task.objective(task.read(inputs, model.fitted_, "join"))
    if objective.structure.length != len(model.fitted_.weights):
        raise OptionError("The examples have features or labels that the fit has not seen. Give those of the fit.")
    if not (objective.exact and objective.concave):
        raise EstimateError(
            "There are no standard errors where the likelihood of some graphs is not computed. Use bootstrap(X, y)."
        )
    return objective


def redrawn(model: ConditionalField, given: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """The examples of the fit, with labels drawn from it."""
    if given.get("data") is None:
        raise OptionError("Labels are drawn given examples: bootstrap(X, kind='parametric').")
    if not isinstance(given["data"], list | tuple):
        raise OptionError("Labels are drawn for a list of examples; give one, with kind='parametric'.")
    drawn = model.sample_labels(given["data"], 1, random_state=rng)
    return {**given, "y": [one[0] for one in drawn]}
