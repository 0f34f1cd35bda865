"""Every documented attribute of distributions, as a checker in strict mode reads them."""

from typing import assert_type

import numpy as np

import suffice as sf
from suffice.array_types import Floats


def main() -> None:
    normal = sf.Normal().fit([1.0, 2.0, 4.0])
    assert_type(normal.mean_, float)
    assert_type(normal.variance_, float)
    assert_type(normal.natural_parameters_, Floats)
    assert_type(normal.mean_parameters_, Floats)
    assert_type(normal.n_params_, int)
    assert_type(normal.aic_, float)
    assert_type(normal.bic_, float | None)
    assert_type(normal.log_likelihood_, float)
    assert_type(normal.converged_, bool)
    assert_type(normal.n_iter_, int)
    assert_type(normal.history_, tuple[float, ...])
    assert_type(normal.stop_reason_, str)
    assert_type(normal.report_, sf.Report)
    assert_type(normal.report_.certificate, sf.Certificate)
    assert_type(normal.statistics_, sf.Summary)
    assert_type(normal.log_prob([1.0]), Floats)
    assert_type(normal.score([1.0]), float)
    assert_type(normal.score_samples([1.0]), Floats)
    assert_type(normal.kl_divergence(normal), float)
    assert_type(normal.clone().partial_fit([1.0, 3.0]).unlearn([1.0, 3.0], sample_weight=[0.5, 0.5]), sf.Normal)
    learned = sf.Poisson(prior=sf.Gamma(2.0, 1.0), estimate="map").fit([1, 2, 3])
    assert_type(learned.rate_, float)
    assert_type(learned.log_evidence_, float)
    assert_type(sf.Bernoulli().fit([0, 1]).probability_, float)
    assert_type(sf.Categorical().fit(["a", "b"]).probabilities_, Floats)
    assert_type(sf.Exponential(2.0).rate_, float)
    assert_type(sf.Geometric(0.5).probability_, float)
    assert_type(sf.NegativeBinomial(2.0, 0.5).size_, float)
    assert_type(sf.Gamma(2.0, 1.0).shape_, float)
    assert_type(sf.InverseGamma(2.0, 1.0).scale_, float)
    assert_type(sf.Beta(2.0, 1.0).alpha_ + sf.Beta(2.0, 1.0).beta_, float)
    assert_type(sf.Dirichlet([1.0, 2.0]).alpha_, Floats)
    vector = sf.MultivariateNormal().fit(np.random.default_rng(0).normal(size=(20, 2)))
    assert_type(vector.mean_, Floats)
    assert_type(vector.covariance_, Floats)
    assert_type(vector.precision_, Floats)
    prior = sf.NormalInverseGamma(alpha=2, beta=1, gamma=1, delta=0)
    assert_type(prior.alpha_ + prior.beta_ + prior.gamma_ + prior.delta_, float)
    assert_type(sf.NormalWishart([0.0], 1.0, 2.0, [[1.0]]).inverse_scale_, Floats)
    assert_type(sf.Wishart(2.0, [[1.0]]).dof_, float)
    assert_type(sf.DirichletMixture([1.0], [[1.0, 2.0]]).alphas_, Floats)
    assert_type(sf.StudentT(3.0).df_ + sf.StudentT(3.0).location_ + sf.StudentT(3.0).scale_, float)
    assert_type(sf.Lomax(2.0).shape_, float)
    assert_type(sf.BetaPrime(2.0, 1.0).scale_, float)
    assert_type(sf.DirichletMultinomial(3, [1.0, 2.0]).total_, int)
    assert_type(sf.Laplace(1.0).scale_, float)
    assert_type(sf.Mixture([sf.Normal(0.0, 1.0), sf.Normal(3.0, 1.0)]).weights_, Floats)
