"""Every documented attribute of regressions, as a checker in strict mode reads them."""

from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

import suffice as sf
from suffice.array_types import Floats
from suffice.models.glm.results import CoefficientTable, NamedVector


def main() -> None:
    X, y = np.array([[0.0], [0.0], [1.0], [1.0], [2.0]]), [1, 3, 4, 4, 9]
    model = sf.GLM("poisson", link="log", solver="irls", covariance="robust").fit(X, y)
    assert_type(model.coefficients_, NamedVector)
    assert_type(model.parameters_, NamedVector)
    assert_type(model.standard_errors_, NamedVector)
    assert_type(model.covariance_, Floats)
    assert_type(model.dispersion_, float)
    assert_type(model.deviance_, float)
    assert_type(model.null_deviance_, float)
    assert_type(model.pearson_chi2_, float)
    assert_type(model.df_resid_, float)
    assert_type(model.separated_, bool)
    assert_type(model.family_name_, str)
    assert_type(model.link_, str)
    assert_type(model.response_, str | None)
    assert_type(model.intervals(0.9, method="wald"), NamedVector)
    assert_type(model.predict(X, kind="link"), NDArray[Any])
    assert_type(model.residuals(X, y, kind="pearson"), Floats)
    assert_type(model.leverage(X, y), Floats)
    assert_type(model.score(X, y), float)
    assert_type(model.score_samples(X, y), Floats)
    assert_type(model.sample(X, random_state=0), NDArray[Any])
    summary = model.summary()
    assert_type(summary, CoefficientTable)
    assert_type(summary.params, NamedVector)
    assert_type(summary.llf, float)
    labels = sf.GLM(sf.Bernoulli()).fit(X, [0, 1, 0, 1, 1])
    assert_type(labels.predict_proba(X), Floats)
    assert_type(labels.classes_, NDArray[Any])
