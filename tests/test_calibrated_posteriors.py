"""Every posterior, held to simulations from its prior: the truth lies among its draws as one more draw would.

Parameters and rows are drawn by NumPy alone. `wrong` in each simulation is what the library's prior is told too much,
in pseudo-counts or pseudo-rows; 0 in all but the tests of power.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

import suffice as sf
from calibration import DRAWS, LEVEL, REPEATS, Floats, One, Simulated, repeated, stretched, within, wrong
from untyped import untyped

Generator = np.random.Generator

# --------------------------------------------------------------------------------------------------------------------
# Laws of one column
# --------------------------------------------------------------------------------------------------------------------


def of_scalar(law: Any, rng: Generator, name: str, truth: float, new: float) -> One:
    """Of a law with one parameter: the parameter, one more row, and the interval."""
    draws = {name: untyped(law.posterior_).sample(DRAWS, rng), "next": untyped(law.predictive_).sample(DRAWS, rng)}
    return One({name: truth, "next": new}, draws, within(law.credible_intervals(LEVEL)[name], truth))


@repeated
def bernoulli(rng: Generator, wrong: float = 0.0) -> One:
    p = rng.beta(2.0, 3.0)
    rows = (rng.random(6) < p).astype(int)
    law = sf.Bernoulli(prior=sf.Beta(2.0 + wrong, 3.0)).fit(rows[:5])
    return of_scalar(law, rng, "probability", p, rows[5])


@repeated
def bernoulli_by_a_number(rng: Generator, wrong: float = 0.0) -> One:
    p = rng.beta(0.5, 0.5)
    rows = (rng.random(5) < p).astype(int)
    law = sf.Bernoulli(prior=0.5 + wrong).fit(rows[:4])
    return of_scalar(law, rng, "probability", p, rows[4])


@repeated
def bernoulli_of_counts(rng: Generator, wrong: float = 0.0) -> One:
    """Weights stand for repetitions."""
    p = rng.beta(4.0, 1.5)
    seen = rng.binomial(12, p)
    law = sf.Bernoulli(prior=sf.Beta(4.0, 1.5 + wrong)).fit([0, 1], sample_weight=[12 - seen, seen])
    return of_scalar(law, rng, "probability", p, float(rng.random() < p))


@repeated
def geometric(rng: Generator, wrong: float = 0.0) -> One:
    p = rng.beta(3.0, 2.0)
    rows = rng.geometric(p, 5) - 1
    law = sf.Geometric(prior=sf.Beta(3.0 + wrong, 2.0)).fit(rows[:4])
    return of_scalar(law, rng, "probability", p, rows[4])


@repeated
def negative_binomial(rng: Generator, wrong: float = 0.0) -> One:
    p = rng.beta(6.0, 2.0)
    rows = rng.negative_binomial(3, p, 5)
    law = sf.NegativeBinomial(size=3.0, prior=sf.Beta(6.0, 2.0 + wrong)).fit(rows[:4])
    return of_scalar(law, rng, "probability", p, rows[4])


@repeated
def poisson(rng: Generator, wrong: float = 0.0) -> One:
    rate = rng.gamma(2.0) / 1.5
    rows = rng.poisson(rate, 5)
    law = sf.Poisson(prior=sf.Gamma(2.0 + wrong, 1.5)).fit(rows[:4])
    return of_scalar(law, rng, "rate", rate, rows[4])


@repeated
def exponential(rng: Generator, wrong: float = 0.0) -> One:
    rate = rng.gamma(2.5) / 0.5
    rows = rng.exponential(1 / rate, 5)
    law = sf.Exponential(prior=sf.Gamma(2.5 + wrong, 0.5)).fit(rows[:4])
    return of_scalar(law, rng, "rate", rate, rows[4])


@repeated
def gamma_of_known_shape(rng: Generator, wrong: float = 0.0) -> One:
    rate = rng.gamma(2.5) / 2.0
    rows = rng.gamma(1.7, 1 / rate, 4)
    law = sf.Gamma(shape=1.7, prior=sf.Gamma(2.5 + wrong, 2.0)).fit(rows[:3])
    return of_scalar(law, rng, "rate", rate, rows[3])


@repeated
def normal_of_known_variance(rng: Generator, wrong: float = 0.0) -> One:
    """A pseudo-row too many at 0 adds its precision to that of the prior, and pulls the centre."""
    mean = rng.normal(1.0, np.sqrt(0.8))
    rows = rng.normal(mean, np.sqrt(2.0), 5)
    precision = 1 / 0.8 + wrong / 2.0
    law = sf.Normal(variance=2.0, prior=sf.Normal(1 / 0.8 / precision, 1 / precision)).fit(rows[:4])
    return of_scalar(law, rng, "mean", mean, rows[4])


@repeated
def normal(rng: Generator, wrong: float = 0.0) -> One:
    variance = 1.5 / rng.gamma(3.0)
    mean = rng.normal(-1.0, np.sqrt(variance / 0.7))
    rows = rng.normal(mean, np.sqrt(variance), 5)
    law = sf.Normal(prior=sf.NormalInverseGamma(3.0 + wrong, 1.5, 0.7, -1.0)).fit(rows[:4])
    drawn, ends = untyped(law.posterior_).sample(DRAWS, rng), law.credible_intervals(LEVEL)
    truth = {"mean": mean, "variance": variance, "ratio": (mean + 1) ** 2 / variance, "next": rows[4]}
    ratio = (drawn["mean"] + 1) ** 2 / drawn["variance"]
    draws = {**drawn, "ratio": ratio, "next": untyped(law.predictive_).sample(DRAWS, rng)}
    return One(truth, draws, [within(ends[name], truth[name]) for name in ("mean", "variance")])


# --------------------------------------------------------------------------------------------------------------------
# Laws of several columns and states
# --------------------------------------------------------------------------------------------------------------------


def simplex(p: Any) -> dict[str, Any]:
    """Probabilities (..., 3): each of them, and a function of two."""
    return {**{f"p{at}": p[..., at] for at in range(3)}, "odds": p[..., 0] / (p[..., 0] + p[..., 1])}


def of_states(law: Any, rng: Generator, truth: Floats, new: int) -> One:
    draws = simplex(untyped(law.posterior_).sample(DRAWS, rng)) | {"next": untyped(law.predictive_).sample(DRAWS, rng)}
    return One(simplex(truth) | {"next": new}, draws, within(untyped(law.posterior_).intervals(LEVEL), truth))


@repeated
def categorical(rng: Generator, wrong: float = 0.0) -> One:
    p = rng.dirichlet([1.0, 2.0, 0.7])
    rows = rng.choice(3, 6, p=p)
    law = sf.Categorical(states=[0, 1, 2], prior=sf.Dirichlet([1.0 + wrong, 2.0, 0.7])).fit(rows[:5])
    return of_states(law, rng, p, rows[5])


@repeated
def categorical_by_a_number(rng: Generator, wrong: float = 0.0) -> One:
    p = rng.dirichlet([0.6, 0.6, 0.6])
    rows = rng.choice(3, 6, p=p)
    law = sf.Categorical(states=[0, 1, 2], prior=0.6 + wrong).fit(rows[:5])
    return of_states(law, rng, p, rows[5])


MIXTURE = np.array([[1.0, 2.0, 0.5], [6.0, 1.0, 3.0]])


def from_mixture(rng: Generator) -> Floats:
    return rng.dirichlet(MIXTURE[int(rng.random() < 0.7)])


def told_mixture(wrong: float) -> sf.DirichletMixture:
    return sf.DirichletMixture(weights=[0.3, 0.7], alphas=MIXTURE + np.array([0.0, wrong, 0.0]))


@repeated
def categorical_of_a_mixture(rng: Generator, wrong: float = 0.0) -> One:
    p = from_mixture(rng)
    rows = rng.choice(3, 5, p=p)
    law = sf.Categorical(states=[0, 1, 2], prior=told_mixture(wrong)).fit(rows[:4])
    return of_states(law, rng, p, rows[4])


#: Centre, strength, degrees of freedom and inverse scale of a normal-Wishart law.
CENTRE, STRENGTH, DOF, SCALE = np.array([0.5, -1.0]), 0.8, 5, np.array([[2.0, 0.6], [0.6, 1.0]])


def wishart(rng: Generator, dof: int, inverse_scale: Floats) -> Floats:
    """A precision: the sum of squares of `dof` normal vectors."""
    vectors = rng.multivariate_normal(np.zeros(len(inverse_scale)), np.linalg.inv(inverse_scale), dof)
    return np.asarray(vectors.T @ vectors)


def normal_wishart(rng: Generator) -> tuple[Floats, Floats]:
    """Mean and precision."""
    precision = wishart(rng, DOF, SCALE)
    return rng.multivariate_normal(CENTRE, np.linalg.inv(STRENGTH * precision)), precision


def told_wishart(wrong: float, **named: Any) -> sf.NormalWishart:
    return sf.NormalWishart(CENTRE, STRENGTH, DOF + 2 * wrong, SCALE, **named)


@repeated
def normal_vector(rng: Generator, wrong: float = 0.0) -> One:
    mean, precision = normal_wishart(rng)
    rows = rng.multivariate_normal(mean, np.linalg.inv(precision), 6)
    law = sf.MultivariateNormal(prior=told_wishart(wrong)).fit(rows[:5])

    def read(mean: Any, precision: Any) -> dict[str, Any]:
        away = mean - CENTRE
        square = np.einsum("...i,...ij,...j->...", away, precision, away)
        return {
            "first mean": mean[..., 0],
            "second mean": mean[..., 1],
            "off the diagonal": precision[..., 0, 1],
            "determinant": np.linalg.det(precision),
            "distance": square,
        }

    drawn, new = untyped(law.posterior_).sample(DRAWS, rng), untyped(law.predictive_).sample(DRAWS, rng)
    ends, truth = law.credible_intervals(LEVEL), read(mean, precision)
    inside = np.append(within(ends["mean"], mean), within(ends["variance"], np.diag(np.linalg.inv(precision))))
    draws = read(drawn["mean"], drawn["precision"]) | {"next": new[:, 0], "difference": new[:, 0] - new[:, 1]}
    return One(truth | {"next": rows[5, 0], "difference": rows[5, 0] - rows[5, 1]}, draws, inside)


@repeated
def normal_vector_of_known_covariance(rng: Generator, wrong: float = 0.0) -> One:
    covariance, before = np.array([[1.0, 0.5], [0.5, 2.0]]), np.array([[0.7, -0.2], [-0.2, 0.4]])
    mean = rng.multivariate_normal(CENTRE, before)
    rows = rng.multivariate_normal(mean, covariance, 4)
    told = np.linalg.inv(np.linalg.inv(before) + wrong * np.linalg.inv(covariance))
    law = sf.MultivariateNormal(covariance=covariance, prior=sf.MultivariateNormal(CENTRE, told)).fit(rows[:3])
    drawn, new = untyped(law.posterior_).sample(DRAWS, rng), untyped(law.predictive_).sample(DRAWS, rng)
    truth = {"first": mean[0], "second": mean[1], "sum": mean.sum(), "next": rows[3].sum()}
    draws = {"first": drawn[:, 0], "second": drawn[:, 1], "sum": drawn.sum(axis=1), "next": new.sum(axis=1)}
    return One(truth, draws, within(untyped(law.posterior_).intervals(LEVEL), mean))


# --------------------------------------------------------------------------------------------------------------------
# Tables of networks: each of many states of a parent is a simulation by itself
# --------------------------------------------------------------------------------------------------------------------


def table_rows(rng: Generator, alpha: Floats, per_state: int = 4) -> tuple[Floats, dict[str, Any], dict[str, Any]]:
    """Rows of P(b | a) drawn from Dirichlet laws (REPEATS, 3), and states and columns of a network a -> b."""
    p = np.array([rng.dirichlet(row) for row in alpha])
    a = np.repeat(np.arange(REPEATS), per_state)
    b = (rng.random(len(a))[:, None] > p[a].cumsum(axis=1)).sum(axis=1).clip(max=2)
    return p, {"a": list(range(REPEATS)), "b": [0, 1, 2]}, {"a": a, "b": b}


def of_table(posterior: Any, p: Floats, rng: Generator) -> Simulated:
    truth, draws = simplex(p), simplex(posterior.sample(DRAWS, rng))
    low, high = posterior.intervals(LEVEL)
    return Simulated(
        tuple(truth),
        np.stack(list(truth.values()), axis=1),
        np.stack([np.asarray(one).T for one in draws.values()], axis=2),
        within(np.stack([low.values, high.values], axis=-1), p),
    )


def table_by_a_number(rng: Generator, wrong: float = 0.0) -> Simulated:
    p, states, rows = table_rows(rng, np.full((REPEATS, 3), 0.7))
    net = sf.BayesianNetwork([("a", "b")], states=states, prior=0.7 + wrong).fit(rows)
    return of_table(untyped(net.posterior_)["b"], p, rng)


def table_by_an_array(rng: Generator, wrong: float = 0.0) -> Simulated:
    alpha = rng.uniform(0.5, 3.0, (REPEATS, 3))
    p, states, rows = table_rows(rng, alpha)
    told = {"a": 1.0, "b": alpha + np.array([wrong, 0.0, 0.0])}
    return of_table(
        untyped(sf.BayesianNetwork([("a", "b")], states=states, prior=told).fit(rows).posterior_)["b"], p, rng
    )


def table_k2(rng: Generator, wrong: float = 0.0) -> Simulated:
    p, states, rows = table_rows(rng, np.full((REPEATS, 3), 1.0))
    net = sf.BayesianNetwork([("a", "b")], states=states, prior=1.0 + wrong if wrong else "k2").fit(rows)
    return of_table(untyped(net.posterior_)["b"], p, rng)


def table_jeffreys(rng: Generator, wrong: float = 0.0) -> Simulated:
    p, states, rows = table_rows(rng, np.full((REPEATS, 3), 0.5))
    net = sf.BayesianNetwork([("a", "b")], states=states, prior=0.5 + wrong if wrong else "jeffreys").fit(rows)
    return of_table(untyped(net.posterior_)["b"], p, rng)


def table_bdeu(rng: Generator, wrong: float = 0.0) -> Simulated:
    """The sample size is shared by all cells."""
    p, states, rows = table_rows(rng, np.full((REPEATS, 3), 0.8))
    size = (0.8 + wrong) * 3 * REPEATS
    net = sf.BayesianNetwork([("a", "b")], states=states, prior="bdeu", equivalent_sample_size=size).fit(rows)
    return of_table(untyped(net.posterior_)["b"], p, rng)


def table_bde(rng: Generator, wrong: float = 0.0) -> Simulated:
    """Pseudo-counts are a sample size times the joint law of another network."""
    b = np.array([0, 0, 1, 2, 2, 2])
    uniform = {"a": np.repeat(np.arange(REPEATS), 6), "b": np.tile(b, REPEATS)}
    states = {"a": list(range(REPEATS)), "b": [0, 1, 2]}
    before = sf.BayesianNetwork([("a", "b")], states=states).fit(uniform)
    alpha = 3.0 * np.bincount(b) / 6
    p, states, rows = table_rows(rng, np.tile(alpha, (REPEATS, 1)))
    size = (3.0 + 3 * wrong) * REPEATS
    net = sf.BayesianNetwork([("a", "b")], states=states, prior=before, equivalent_sample_size=size).fit(rows)
    return of_table(untyped(net.posterior_)["b"], p, rng)


@repeated
def table_without_parents(rng: Generator, wrong: float = 0.0) -> One:
    p = rng.dirichlet([1.0, 2.0, 0.7])
    net = sf.BayesianNetwork({"b": []}, states={"b": [0, 1, 2]}, prior={"b": [1.0 + wrong, 2.0, 0.7]})
    posterior = untyped(net.fit({"b": rng.choice(3, 4, p=p)}).posterior_)["b"]
    low, high = posterior.intervals(LEVEL)
    inside = within(np.stack([low.values, high.values], axis=-1), p)
    return One(simplex(p), simplex(posterior.sample(DRAWS, rng)), inside)


@repeated
def tied_tables(rng: Generator, wrong: float = 0.0) -> One:
    """Two steps of a chain, one table: the rows of both count."""
    p = rng.dirichlet([1.0, 2.0, 0.7], 3)
    steps = [rng.choice(3, 5)]
    for _ in range(2):
        steps.append(np.array([rng.choice(3, p=p[at]) for at in steps[-1]]))
    names = ("t0", "t1", "t2")
    told = {"t0": 1.0, **dict.fromkeys(names[1:], np.tile([1.0, 2.0 + wrong, 0.7], (3, 1)))}
    net = sf.BayesianNetwork(
        [("t0", "t1"), ("t1", "t2")], states={name: [0, 1, 2] for name in names}, tied=[names[1:]], prior=told
    ).fit(dict(zip(names, steps, strict=True)))
    drawn = untyped(net.posterior_)["t2"].sample(DRAWS, rng)
    return One({f"{at}": p[at, 1] for at in range(3)}, {f"{at}": drawn[:, at, 1] for at in range(3)})


# --------------------------------------------------------------------------------------------------------------------
# Regressions: nodes of networks, and models by themselves
# --------------------------------------------------------------------------------------------------------------------

#: Shape and scale of the variance, and the centre of all weights.
ALPHA, BETA, AT = 3.0, 2.0, 0.4


def regression(weights: Any, variance: Any) -> dict[str, Any]:
    """Weights (..., q) and variance (...): each of them, and a function of all."""
    away = ((weights[..., 1:] - AT) ** 2).sum(axis=-1) / variance
    return {**{f"w{at}": weights[..., at] for at in range(weights.shape[-1])}, "variance": variance, "ratio": away}


def drawn_regression(rng: Generator, free: bool, strength: float = 1.0, q: int = 3) -> tuple[Floats, float]:
    """Weights and variance. A flat intercept may be any number: nothing depends on it but its own place."""
    variance = BETA / rng.gamma(ALPHA)
    weights = rng.normal(AT, np.sqrt(variance / strength), q)
    weights[0] = 7.0 if free else weights[0]
    return weights, variance


def of_regression(posterior: Any, weights: Floats, variance: float, X: Floats, new: float, rng: Generator) -> One:
    """The law of (weights, variance), and the response of one more row (intercept first)."""
    drawn, ends = posterior.sample(DRAWS, rng), posterior.intervals(LEVEL)
    draws = regression(drawn["weights"], drawn["variance"]) | {"next": posterior.predictive(X[1:]).sample(DRAWS, rng)}
    inside = np.append(within(ends["weights"], weights), within(ends["variance"], variance))
    return One(regression(weights, variance) | {"next": new}, draws, inside)


def regression_rows(rng: Generator, weights: Floats, variance: float, n: int = 6) -> tuple[Floats, Floats]:
    X = np.column_stack([np.ones(n), rng.normal(0.3, 1.0, (n, len(weights) - 1))])
    return X, rng.normal(X @ weights, np.sqrt(variance))


def node_regression(on: str) -> Callable[..., Simulated]:
    @repeated
    def simulate(rng: Generator, wrong: float = 0.0) -> One:
        weights, variance = drawn_regression(rng, on == "parents")
        X, y = regression_rows(rng, weights, variance)
        prior = {"y": sf.LinearGaussianPrior(ALPHA + wrong, BETA, AT, on=on)}
        rows = {"a": X[:5, 1], "b": X[:5, 2], "y": y[:5]}
        net = sf.BayesianNetwork({"y": ["a", "b"]}, states=dict.fromkeys("aby", "real"), prior=prior).fit(rows)
        return of_regression(untyped(net.posterior_)["y"], weights, variance, X[5], y[5], rng)

    return simulate


def of_regressions(posterior: Any, weights: Floats, variance: Floats, rng: Generator) -> Simulated:
    """Laws at all states of a discrete parent."""
    drawn, ends = posterior.sample(DRAWS, rng), posterior.intervals(LEVEL)
    truth, draws = regression(weights, variance), regression(drawn["weights"], drawn["variance"])
    inside = np.column_stack([within(ends["weights"], weights), within(ends["variance"], variance)])
    return Simulated(
        tuple(truth),
        np.stack(list(truth.values()), axis=1),
        np.stack([np.asarray(one).T for one in draws.values()], axis=2),
        inside,
    )


def node_regressions_by_state(on: str) -> Callable[..., Simulated]:
    def simulate(rng: Generator, wrong: float = 0.0) -> Simulated:
        found = [drawn_regression(rng, on == "parents", q=2) for _ in range(REPEATS)]
        rows = [regression_rows(rng, *one, n=4) for one in found]
        data = {
            "s": np.repeat(np.arange(REPEATS), 4),
            "x": np.concatenate([X[:, 1] for X, _ in rows]),
            "y": np.concatenate([y for _, y in rows]),
        }
        states = {"s": list(range(REPEATS)), "x": "real", "y": "real"}
        prior = {"y": sf.LinearGaussianPrior(ALPHA + wrong, BETA, AT, on=on)}
        net = sf.BayesianNetwork({"y": ["s", "x"]}, states=states, prior=prior).fit(data)
        weights, variance = np.array([w for w, _ in found]), np.array([v for _, v in found])
        return of_regressions(untyped(net.posterior_)["y"], weights, variance, rng)

    return simulate


def node_normals_by_state(rng: Generator, wrong: float = 0.0) -> Simulated:
    variance = BETA / rng.gamma(ALPHA, size=REPEATS)
    mean = rng.normal(AT, np.sqrt(variance / 0.6))
    data = {"s": np.repeat(np.arange(REPEATS), 3), "y": rng.normal(*(np.repeat(v, 3) for v in (mean, variance**0.5)))}
    prior = {"y": sf.NormalInverseGamma(ALPHA + wrong, BETA, 0.6, AT)}
    net = sf.BayesianNetwork([("s", "y")], states={"s": list(range(REPEATS)), "y": "real"}, prior=prior).fit(data)
    return of_regressions(untyped(net.posterior_)["y"], mean[:, None], variance, rng)


def node_under_bge(child: str) -> Callable[..., Simulated]:
    @repeated
    def simulate(rng: Generator, wrong: float = 0.0) -> One:
        """Given its parent, a normal column is a regression whose weights the joint law has."""
        mean, precision = normal_wishart(rng)
        rows = rng.multivariate_normal(mean, np.linalg.inv(precision), 6)
        columns = {"a": rows[:5, 0], "b": rows[:5, 1]}
        prior = told_wishart(wrong, names=["a", "b"])
        net = sf.BayesianNetwork([("a", "b")], states=dict.fromkeys("ab", "real"), prior=prior)
        posterior = untyped(net.fit(columns).posterior_)[child]
        if child == "a":
            return of_regression(posterior, mean[:1], np.linalg.inv(precision)[0, 0], np.ones(1), rows[5, 0], rng)
        slope = -precision[0, 1] / precision[1, 1]
        weights = np.array([mean[1] - slope * mean[0], slope])
        return of_regression(posterior, weights, 1 / precision[1, 1], np.array([1.0, rows[5, 0]]), rows[5, 1], rng)

    return simulate


def glm_regression(prior: str, free: bool) -> Callable[..., Simulated]:
    @repeated
    def simulate(rng: Generator, wrong: float = 0.0) -> One:
        strength = 0.5 if prior == "normal-inverse-gamma" else 1.0
        weights, variance = drawn_regression(rng, free, strength)
        X, y = regression_rows(rng, weights, variance)
        told: Any = sf.LinearGaussianPrior(ALPHA + wrong, BETA, AT, on="parents" if free else "all")
        if prior == "normal-inverse-gamma":
            told = sf.NormalInverseGamma(ALPHA + wrong, BETA, strength, AT)
        model = sf.GLM("gaussian", prior=told, penalize_intercept=not free).fit(X[:5, 1:], y[:5])
        return of_regression(untyped(model.posterior_), weights, variance, X[5], y[5], rng)

    return simulate


@repeated
def glm_node(rng: Generator, wrong: float = 0.0) -> One:
    weights, variance = drawn_regression(rng, False)
    X, y = regression_rows(rng, weights, variance)
    told = sf.GLM("gaussian", prior=sf.LinearGaussianPrior(ALPHA + wrong, BETA, AT, on="all"))
    net = sf.BayesianNetwork({"y": ["a", "b"]}, states=dict.fromkeys("aby", "real"), nodes={"y": told})
    posterior = untyped(net.fit({"a": X[:5, 1], "b": X[:5, 2], "y": y[:5]}).posterior_)["y"]
    return of_regression(posterior, weights, variance, X[5], y[5], rng)


def of_weights(posterior: Any, weights: Floats, rng: Generator) -> One:
    drawn = posterior.sample(DRAWS, rng)
    names = [f"w{at}" for at in range(len(weights))]
    truth = dict(zip(names, weights, strict=True)) | {"sum": weights.sum()}
    draws = dict(zip(names, drawn.T, strict=True)) | {"sum": drawn.sum(axis=1)}
    return One(truth, draws, within(posterior.intervals(LEVEL), weights))


@repeated
def glm_of_known_variance(rng: Generator, wrong: float = 0.0) -> One:
    """A normal prior beside a known variance: Laplace's approximation is exact."""
    weights = rng.normal(AT, np.sqrt(0.5), 3)
    X, y = regression_rows(rng, weights, 1.5)
    prior = sf.Normal(AT, 1 / (1 / 0.5 + wrong))
    model = sf.GLM("gaussian", prior=prior, penalize_intercept=True, dispersion=1.5).fit(X[:, 1:], y)
    return of_weights(untyped(model.posterior_), weights, rng)


@repeated
def glm_of_known_variance_and_dependent_weights(rng: Generator, wrong: float = 0.0) -> One:
    covariance = np.array([[1.0, 0.4, 0.0], [0.4, 0.5, -0.2], [0.0, -0.2, 0.8]])
    weights = rng.multivariate_normal([0.5, -0.5, 1.0], covariance)
    X, y = regression_rows(rng, weights, 1.5)
    told = np.linalg.inv(np.linalg.inv(covariance) + wrong * np.eye(3))
    prior = sf.MultivariateNormal([0.5, -0.5, 1.0], told)
    return of_weights(
        untyped(sf.GLM("gaussian", prior=prior, dispersion=1.5).fit(X[:, 1:], y).posterior_), weights, rng
    )


def glm_by_laplace(family: Any) -> Callable[..., Simulated]:
    @repeated
    def simulate(rng: Generator, wrong: float = 0.0) -> One:
        """Of many rows the normal law at the mode is close to the posterior."""
        weights = rng.normal(0.0, 0.5, 3)
        X, _ = regression_rows(rng, weights, 1.0, n=400)
        line = X @ weights
        y = rng.poisson(3 * np.exp(line)) if family == "poisson" else rng.random(400) < 1 / (1 + np.exp(-line))
        given = {"exposure": np.full(400, 3.0)} if family == "poisson" else {}
        prior = sf.Normal(0.0, 0.25)
        model = sf.GLM(family, prior=prior, penalize_intercept=True).fit(X[:, 1:], y.astype(int), **given)
        return of_weights(untyped(model.posterior_), weights, rng)

    return simulate


def glm_of_vectors(free: bool) -> Callable[..., Simulated]:
    @repeated
    def simulate(rng: Generator, wrong: float = 0.0) -> One:
        covariance = np.linalg.inv(wishart(rng, DOF, SCALE))
        noise = rng.multivariate_normal(np.zeros(2), covariance, 8)
        weights = CENTRE + noise[:2] / np.sqrt(STRENGTH)
        weights[0] = [5.0, -3.0] if free else weights[0]
        X = np.column_stack([np.ones(6), rng.normal(size=6)])
        Y = X @ weights + noise[2:]
        model = sf.GLM("multivariate_gaussian", prior=told_wishart(wrong), penalize_intercept=not free)
        posterior = untyped(model.fit(X[:5, 1:], Y[:5]).posterior_)
        drawn, ends = posterior.sample(DRAWS, rng), posterior.intervals(LEVEL)

        def read(weights: Any, covariance: Any) -> dict[str, Any]:
            found = {f"w{at}{k}": weights[..., at, k] for at in range(2) for k in range(2)}
            ratio = (weights[..., 1, 0] - CENTRE[0]) / np.sqrt(covariance[..., 0, 0])
            return {**found, "covariance": covariance[..., 0, 1], "det": np.linalg.det(covariance), "ratio": ratio}

        draws = read(drawn["weights"], drawn["covariance"])
        draws["next"] = posterior.predictive(X[5]).sample(DRAWS, rng).sum(axis=1)
        inside = np.append(within(ends["weights"], weights), within(ends["variances"], np.diag(covariance)))
        return One(read(weights, covariance) | {"next": Y[5].sum()}, draws, inside)

    return simulate


# --------------------------------------------------------------------------------------------------------------------
# Rows of Markov chains
# --------------------------------------------------------------------------------------------------------------------


def walk(rng: Generator, first: Floats, rows: Any, length: int) -> list[int]:
    """A sequence of a chain whose rows are by the last states."""
    order = np.ndim(rows) - 1
    found = [int(rng.choice(3, p=first)) for _ in range(order)]
    while len(found) < length:
        found.append(int(rng.choice(3, p=rows[tuple(found[-order:])])))
    return found


def of_rows(chain: Any, rng: Generator, truth: dict[Any, Floats]) -> One:
    """The rows after some histories."""
    laws = {history: chain.posterior(history) for history in truth}
    drawn = {history: law.sample(DRAWS, rng) for history, law in laws.items()}
    inside = [within(laws[history].intervals(LEVEL), p) for history, p in truth.items()]
    names = {(history, at): f"{at} after {history}" for history in truth for at in (0, 1)}
    return One(
        {name: truth[history][at] for (history, at), name in names.items()},
        {name: drawn[history][:, at] for (history, at), name in names.items()},
        inside,
    )


def chain(prior: str) -> Callable[..., Simulated]:
    table = np.array([[1.0, 2.0, 0.7], [0.5, 0.5, 3.0], [2.0, 2.0, 1.0]])

    @repeated
    def simulate(rng: Generator, wrong: float = 0.0) -> One:
        add, told = np.array([wrong, 0.0, 0.0]), None
        alpha = {"number": np.full((3, 3), 0.8), "array": np.tile(table[0], (3, 1)), "rows": table}.get(prior)
        rows = np.array([from_mixture(rng) for _ in range(3)] if alpha is None else [rng.dirichlet(r) for r in alpha])
        first = rng.dirichlet([1.5, 1.0, 0.5])
        told = {
            "number": 0.8 + wrong,
            "array": sf.Dirichlet(table[0] + add),
            "rows": table + add,
            "mixture": told_mixture(wrong),
        }[prior]
        told = {"initial": np.array([1.5, 1.0, 0.5]) + add, "transitions": told}
        sequences = [walk(rng, first, rows, 3) for _ in range(4)]
        found = sf.MarkovChain(1, states=[0, 1, 2], prior=told).fit(sequences)
        return of_rows(found, rng, {(): first, (0,): rows[0], (2,): rows[2]})

    return simulate


@repeated
def chain_of_order_two(rng: Generator, wrong: float = 0.0) -> One:
    alpha = np.array([1.0, 2.0, 0.7])
    rows = rng.dirichlet(alpha, (3, 3))
    sequences = [walk(rng, np.full(3, 1 / 3), rows, 12) for _ in range(2)]
    found = sf.MarkovChain(2, states=[0, 1, 2], prior=alpha + np.array([wrong, 0.0, 0.0])).fit(sequences)
    return of_rows(found, rng, {(0, 1): rows[0, 1], (1, 1): rows[1, 1], (2, 0): rows[2, 0]})


# --------------------------------------------------------------------------------------------------------------------
# All of them
# --------------------------------------------------------------------------------------------------------------------

CASES: dict[str, Callable[..., Simulated]] = {
    "Bernoulli, Beta": bernoulli,
    "Bernoulli, number": bernoulli_by_a_number,
    "Bernoulli, weights": bernoulli_of_counts,
    "Geometric, Beta": geometric,
    "NegativeBinomial, Beta": negative_binomial,
    "Poisson, Gamma": poisson,
    "Exponential, Gamma": exponential,
    "Gamma, Gamma": gamma_of_known_shape,
    "Normal of known variance, Normal": normal_of_known_variance,
    "Normal, NormalInverseGamma": normal,
    "Categorical, Dirichlet": categorical,
    "Categorical, number": categorical_by_a_number,
    "Categorical, DirichletMixture": categorical_of_a_mixture,
    "MultivariateNormal, NormalWishart": normal_vector,
    "MultivariateNormal of known covariance": normal_vector_of_known_covariance,
    "table, number": table_by_a_number,
    "table, array": table_by_an_array,
    "table, k2": table_k2,
    "table, jeffreys": table_jeffreys,
    "table, bdeu": table_bdeu,
    "table, network": table_bde,
    "table without parents": table_without_parents,
    "tied tables": tied_tables,
    "linear-Gaussian node, all": node_regression("all"),
    "linear-Gaussian node, flat intercept": node_regression("parents"),
    "linear-Gaussian node by state, all": node_regressions_by_state("all"),
    "linear-Gaussian node by state, flat intercept": node_regressions_by_state("parents"),
    "linear-Gaussian node by state, NormalInverseGamma": node_normals_by_state,
    "BGe, first node": node_under_bge("a"),
    "BGe, second node": node_under_bge("b"),
    "GLM, LinearGaussianPrior": glm_regression("linear-gaussian", False),
    "GLM, LinearGaussianPrior, flat intercept": glm_regression("linear-gaussian", True),
    "GLM, NormalInverseGamma": glm_regression("normal-inverse-gamma", False),
    "GLM, NormalInverseGamma, flat intercept": glm_regression("normal-inverse-gamma", True),
    "GLM node": glm_node,
    "GLM of known variance, Normal": glm_of_known_variance,
    "GLM of known variance, MultivariateNormal": glm_of_known_variance_and_dependent_weights,
    "GLM of vectors, NormalWishart": glm_of_vectors(False),
    "GLM of vectors, NormalWishart, flat intercept": glm_of_vectors(True),
    "MarkovChain, number": chain("number"),
    "MarkovChain, Dirichlet": chain("array"),
    "MarkovChain, rows": chain("rows"),
    "MarkovChain, DirichletMixture": chain("mixture"),
    "MarkovChain of order two": chain_of_order_two,
}
APPROXIMATE = {"GLM, poisson, Laplace": glm_by_laplace("poisson"), "GLM, binomial, Laplace": glm_by_laplace("binomial")}
#: One simulation of each kind of posterior, with a prior that is told too much.
TOLD_TOO_MUCH = (
    "Bernoulli, Beta",
    "Poisson, Gamma",
    "Normal of known variance, Normal",
    "Normal, NormalInverseGamma",
    "MultivariateNormal of known covariance",
    "table, array",
    "table, bdeu",
    "table, network",
    "linear-Gaussian node by state, all",
    "linear-Gaussian node by state, flat intercept",
    "linear-Gaussian node by state, NormalInverseGamma",
    "BGe, second node",
    "GLM, NormalInverseGamma",
    "GLM of known variance, MultivariateNormal",
    "GLM of vectors, NormalWishart",
    "MarkovChain, DirichletMixture",
)


@cache
def simulated(name: str, told_too_much: float = 0.0) -> Simulated:
    return (CASES | APPROXIMATE)[name](np.random.default_rng(20180418), told_too_much)


@pytest.mark.parametrize("name", CASES | APPROXIMATE)
def test_the_truth_is_one_more_draw_from_the_posterior(name: str) -> None:
    assert wrong(simulated(name)) == {}


@pytest.mark.parametrize("name", CASES)
def test_a_posterior_of_another_variance_is_seen(name: str) -> None:
    """The same simulations reject draws whose variance is 1.3 times too large or too small."""
    for factor in (1.3, 1 / 1.3):
        assert wrong(stretched(simulated(name), factor)) != {}


@pytest.mark.parametrize("name", TOLD_TOO_MUCH)
def test_one_pseudo_count_too_many_is_seen(name: str) -> None:
    assert wrong(simulated(name, 1.0)) != {}
