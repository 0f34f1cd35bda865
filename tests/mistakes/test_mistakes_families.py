"""The hundred most likely mistakes with distributions and their priors."""

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

import suffice as sf
from mistakes.checking import Row, check, rows_of

NO_ARGUMENT = sf.CallError


@cache
def names() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    x = rng.gamma(2.0, 1.0, 30)
    df = pd.DataFrame({"a": x, "b": rng.normal(size=30), "c": rng.choice(["u", "v"], 30)})
    return {
        "x": x,
        "df": df,
        "normal": sf.Normal().fit(x),
        "cat": sf.Categorical().fit(df.c),
        "mvn": sf.MultivariateNormal().fit(df[["a", "b"]]),
    }


TABLE: list[Row] = [
    # options: misspelt, or named as elsewhere
    *(
        (f"sf.{family}({wrong}=1)", NO_ARGUMENT, f"{family} has no option '{wrong}' ... Did you mean '{right}'?")
        for family, wrong, right in [
            ("Normal", "mu", "mean"),
            ("Normal", "loc", "mean"),
            ("Normal", "sigma", "variance"),
            ("Normal", "std", "variance"),
            ("Normal", "scale", "variance"),
            ("Normal", "priors", "prior"),
            ("Poisson", "lam", "rate"),
            ("Poisson", "mu", "rate"),
            ("Exponential", "scale", "rate"),
            ("Gamma", "a", "shape"),
            ("Beta", "a", "alpha"),
            ("Beta", "b", "beta"),
            ("Categorical", "p", "probabilities"),
            ("Categorical", "levels", "states"),
            ("Bernoulli", "p", "probability"),
            ("MultivariateNormal", "cov", "covariance"),
            ("MultivariateNormal", "mu", "mean"),
            ("Dirichlet", "alphas", "alpha"),
            ("Beta", "maxiter", "max_iter"),
            ("Gamma", "tol", "tolerance"),
            ("NormalInverseGamma", "aplha", "alpha"),
        ]
    ),
    ("sf.Normal(0, 1, 2)", NO_ARGUMENT, "at most 2 values by position (mean, variance); found 3"),
    ("sf.NormalInverseGamma(1, 2)", NO_ARGUMENT, "needs gamma and delta ... Give gamma= and delta="),
    ("sf.Normal().set_params(sigma=1)", sf.OptionError, "no option 'sigma' ... Did you mean 'variance'?"),
    ("sf.Gaussian()", sf.MissingAttributeError, "Did you mean 'Normal'?"),
    ("sf.Possion()", sf.MissingAttributeError, "Did you mean 'Poisson'?"),
    ("sf.Dirichet([1, 1])", sf.MissingAttributeError, "Did you mean 'Dirichlet'?"),
    ("sf.GaussianMixture(2)", sf.MissingAttributeError, "Did you mean 'Mixture'?"),
    # parameters that no distribution has
    *(
        (f"sf.{call}", sf.OptionError, f"{shown} ... expected")
        for call, shown in [
            ("Normal(0, -1)", "variance is -1"),
            ("Normal(0, 'x')", "variance"),
            ("Normal(np.nan, 1)", "mean"),
            ("Poisson(-1)", "rate is -1"),
            ("Poisson('x')", "rate"),
            ("Exponential(0)", "rate is 0"),
            ("Gamma(-1, 1)", "shape is -1"),
            ("Gamma(1, 0)", "rate is 0"),
            ("Beta(0, 1)", "alpha is 0"),
            ("Beta(1, -1)", "beta is -1"),
            ("Bernoulli(1.5)", "1.5"),
            ("Geometric(2)", "2"),
            ("NegativeBinomial(-1, 0.5)", "-1"),
            ("Laplace(0)", "scale is 0"),
            ("InverseGamma(0, 1)", "0"),
            ("NormalInverseGamma(-1, 1, 1, 0)", "-1"),
            ("Wishart(0, [[1.0]])", "0"),
        ]
    ),
    ("sf.Categorical(['a', 'b'], [0.5, 0.6])", sf.OptionError, "probabilities is [0.5, 0.6]; expected"),
    ("sf.Categorical(['a', 'b'], [1.5, -0.5])", sf.OptionError, "-0.5"),
    ("sf.Categorical(['a', 'b'], [1.0])", sf.OptionError, "1 ... 2"),
    ("sf.Categorical(['a', 'a'], [0.5, 0.5])", sf.OptionError, "twice"),
    ("sf.Categorical('ab', [0.5, 0.5])", sf.OptionError, "'ab' ... list"),
    ("sf.Dirichlet([1.0, -1.0])", sf.OptionError, "-1"),
    ("sf.MultivariateNormal([0, 0], [[1, 2], [2, 1]])", sf.OptionError, "positive definite"),
    ("sf.MultivariateNormal([0, 0], [[1, 0]])", sf.OptionError, "(1, 2)"),
    ("sf.MultivariateNormal([0], np.eye(2))", sf.OptionError, "covariance has shape (2, 2); expected (1, 1)"),
    ("sf.Mixture([])", sf.OptionError, "components"),
    ("sf.Mixture([sf.Normal(0, 1)], weights=[0.5, 0.5])", sf.OptionError, "weights"),
    # priors
    ("sf.Normal(prior=1.0).fit(x)", sf.OptionError, "prior is 1.0 ... NormalInverseGamma"),
    ("sf.Normal(prior='conjugate').fit(x)", sf.OptionError, "prior is 'conjugate' ... NormalInverseGamma"),
    ("sf.Normal(prior=sf.Beta(1, 1)).fit(x)", sf.OptionError, "Beta ... NormalInverseGamma"),
    ("sf.Poisson(prior=sf.Beta(1, 1)).fit([1, 2])", sf.OptionError, "Beta ... Gamma"),
    ("sf.Bernoulli(prior=sf.Gamma(1, 1)).fit([0, 1])", sf.OptionError, "Gamma ... Beta"),
    ("sf.Categorical(prior=sf.Dirichlet([1, 1, 1])).fit(df.c)", sf.OptionError, "3 ... 2"),
    ("sf.Categorical(prior=-1.0).fit(df.c)", sf.OptionError, "-1"),
    ("sf.Normal(estimate='bayes').fit(x)", sf.OptionError, "estimate is 'bayes' ... expected"),
    ("sf.Normal(estimate='map').fit(x)", sf.OptionError, "prior"),
    (
        "sf.MultivariateNormal(prior=sf.Wishart(3, np.eye(3))).fit(df[['a', 'b']])",
        sf.OptionError,
        "Wishart ... expected ... NormalWishart",
    ),
    # data
    ("sf.Normal().fit()", NO_ARGUMENT, "Normal.fit needs data ... Give data="),
    ("sf.Normal().fit([])", sf.EstimateError, "no rows ... needs data"),
    ("sf.Normal().fit(None)", sf.DataError, "NoneType ... Accepted are"),
    ("sf.Normal().fit(['a', 'b'])", sf.DataError, "'a' ... number"),
    ("sf.Normal().fit([1.0, np.nan])", sf.MissingValueError, "row 1"),
    ("sf.Normal().fit([1.0, np.inf])", sf.DataError, "inf ... finite"),
    ("sf.Normal().fit([1.0, 1.0])", sf.EstimateError, "constant"),
    ("sf.Normal().fit([1.0])", sf.EstimateError, "1"),
    ("sf.Normal().fit(df)", sf.OptionError, "'a', 'b', 'c'"),
    ("sf.Normal().fit(df, columns=['aa'])", sf.MissingColumnError, "no column 'aa' ... Did you mean 'a'?"),
    ("sf.Normal().fit('nosuch.csv')", sf.DataError, "no file 'nosuch.csv' ... Check the path"),
    ("sf.Normal().fit(X=x)", NO_ARGUMENT, "no argument 'X' ... Did you mean 'data'?"),
    ("sf.Normal().fit(x, weights=x)", NO_ARGUMENT, "no argument 'weights' ... Did you mean 'sample_weight'?"),
    ("sf.Normal().fit(x, None, x)", NO_ARGUMENT, "at most 2 values by position ... found 3 ... sample_weight="),
    ("sf.Normal().fit(x, sample_weight=[1.0])", sf.DataError, "sample_weight has 1 values for 30 rows"),
    ("sf.Normal().fit(x, sample_weight=-x)", sf.DataError, "sample_weight ... at least 0"),
    ("sf.Normal().fit(x, sample_weight=0 * x)", sf.EstimateError, "weight"),
    ("sf.Poisson().fit([1.5])", sf.DataError, "1.5 ... count"),
    ("sf.Poisson().fit([-1])", sf.DataError, "-1 ... count"),
    ("sf.Exponential().fit([-1.0])", sf.DataError, "-1.0"),
    ("sf.Gamma().fit([0.0, 1.0])", sf.DataError, "0.0"),
    ("sf.Beta().fit([0.5, 1.5])", sf.DataError, "1.5"),
    ("sf.Bernoulli().fit(['a', 'b', 'c'])", sf.DataError, "'a', 'b', 'c' ... states="),
    ("sf.Categorical(['a', 'b']).fit(['a', 'c'])", sf.UnknownStateError, "'c' ... 'a', 'b'"),
    ("sf.MultivariateNormal().fit(df)", sf.DataError, "'c' holds 'v' ... expected a real number"),
    ("sf.MultivariateNormal().fit(df[['a', 'b']].iloc[:1])", sf.EstimateError, "1"),
    ("sf.NormalInverseGamma(1, 1, 1, 0).fit(x)", sf.OptionError, "not fitted to rows"),
    # before the fit, and questions
    *(
        (f"sf.Normal().{call}", sf.NotFittedError, "fit")
        for call in (
            "mean_",
            "log_prob(1.0)",
            "sample(2)",
            "report_",
            "cdf(0.0)",
            "quantile(0.5)",
            "score(x)",
            "entropy()",
        )
    ),
    ("normal.pdf(1.0)", sf.MissingAttributeError, "Did you mean 'prob'?"),
    ("normal.ppf(0.5)", sf.MissingAttributeError, "Did you mean 'quantile'?"),
    ("normal.rvs(3)", sf.MissingAttributeError, "Did you mean 'sample'?"),
    ("normal.meen_", sf.MissingAttributeError, "Did you mean 'mean_'?"),
    ("normal.std_", sf.MissingAttributeError, "Did you mean 'variance_'?"),
    ("normal.sample(-1)", sf.OptionError, "n is -1 ... at least"),
    ("normal.sample(size=3)", NO_ARGUMENT, "no argument 'size' ... Did you mean 'n'?"),
    ("normal.sample(3, seed=1)", NO_ARGUMENT, "no argument 'seed' ... Did you mean 'random_state'?"),
    ("normal.sample(3, 'x')", sf.OptionError, "random_state is 'x' ... expected"),
    ("normal.quantile(1.5)", sf.OptionError, "1.5"),
    ("normal.log_prob('a')", sf.OptionError, "'a' ... number"),
    ("normal.credible_intervals()", sf.OptionError, "prior="),
    ("normal.kl_divergence(sf.Poisson(1))", sf.OptionError, "Poisson"),
    ("cat.log_prob('w')", sf.UnknownStateError, "'w' ... 'u', 'v'"),
    ("mvn.marginal(['z'])", sf.MissingColumnError, "'z' ... 'a', 'b'"),
    ("mvn.condition({'aa': 1.0})", sf.MissingColumnError, "'aa' ... Did you mean 'a'?"),
    ("mvn.condition({'a': 'x'})", sf.OptionError, "'x' ... expected numbers"),
]


@pytest.mark.parametrize("row", rows_of(TABLE))
def test_a_mistake_says_what_was_found_and_what_to_do(row: Row) -> None:
    check(row, names())
