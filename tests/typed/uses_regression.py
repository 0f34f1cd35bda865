"""Every documented attribute of regressions, as a checker in strict mode reads them."""

from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

import suffice as sf
from suffice.array_types import Floats
from suffice.families.matrix_regression_distribution import MatrixRegressionDistribution
from suffice.families.regression_distribution import RegressionDistribution
from suffice.fitting.hypotheses import HypothesisTest
from suffice.fitting.named import NamedVector
from suffice.fitting.parameter_table import EstimateTable, NumberTable, ParameterTable


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
    assert_type(summary, ParameterTable)
    assert_type(summary.params, NamedVector)
    assert_type(summary.llf, float)
    assert_type(summary.bse, NamedVector)
    assert_type(summary.aic, float)
    assert_type(summary.bic, float | None)
    assert_type(model.intercept_, float | Any)
    assert_type(model.free_dispersion_, bool)
    assert_type(
        model.likelihood_ratio_test(sf.GLM("poisson", link="log", fit_intercept=False).fit(X, y)).p_value, float
    )
    assert_type(model.with_covariance("HC3", X, y), sf.GLM)
    assert_type(model.with_covariance(sf.Clustered([1, 1, 2, 2, 3]), X, y), sf.GLM)
    assert_type(sf.GLM("poisson", covariance=sf.NeweyWest(1, "bartlett")).fit(X, y), sf.GLM)
    assert_type(sf.GLM("poisson", missing="drop").fit(X, y), sf.GLM)
    assert_type(model.test("x0 = 1"), HypothesisTest)
    assert_type(model.ratios(0.9), EstimateTable)
    assert_type(model.ratios().bse, NamedVector)
    by_group = sf.GLM("poisson").fit({"g": ["u", "u", "v", "v"]}, [1, 3, 4, 5])
    assert_type(by_group.contrasts("g", against="v", exponentiate=True), EstimateTable)
    assert_type(model.term_tests(X, y, method="likelihood-ratio"), NumberTable)
    assert_type(model.marginal_effects(X, at={"x0": 1.0}, discrete=["x0"]), EstimateTable)
    assert_type(model.residuals(X, y, kind="quantile", random_state=1), Floats)
    assert_type(model.prediction_intervals(X, 0.9), Floats)
    assert_type(model.r_squared(), NumberTable)
    assert_type(model.influence(X, y).dfbetas, Floats)
    assert_type(model.dispersion_tests(X, y), NumberTable)
    kept = sf.GLM("poisson", keep_iterates=True).fit(X, y)
    assert_type(kept.iterates_, tuple[Floats, ...])
    assert_type(kept.history_, tuple[Any, ...])
    ordered = sf.GLM("ordinal", prior=sf.Normal(variance=1.0)).fit(X, [0, 1, 0, 1, 2])
    assert_type(ordered.thresholds_, NamedVector)
    assert_type(ordered.posterior_, RegressionDistribution | MatrixRegressionDistribution | sf.MultivariateNormal)
    assert_type(ordered.n_iter_, int)
    online = sf.GLM("poisson", solver="sgd", prior=sf.Normal(variance=1.0)).fit(X, y)
    assert_type(online.updates_, int)
    several = sf.GLM("multivariate_gaussian").fit(
        X, np.array([[1.0, 2.0], [2.0, 1.0], [3.0, 5.0], [4.0, 4.0], [5.0, 7.0]])
    )
    assert_type(several.residual_covariance_, Floats)
    labels = sf.GLM(sf.Bernoulli()).fit(X, [0, 1, 0, 1, 1])
    assert_type(labels.predict_proba(X), Floats)
    assert_type(labels.classes_, NDArray[Any])
