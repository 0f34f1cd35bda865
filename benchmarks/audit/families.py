"""Random problems for the one-law families: own log-densities, a generic optimiser, own integrals."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import integrate, special, stats

import suffice as sf
from benchmarks.audit.oracle import agreement, fitted, highest, shortfall, verdict
from benchmarks.audit.record import Coverage, Problem, Record

Floats = NDArray[np.float64]


def _size(rng: np.random.Generator) -> int:
    return int(rng.choice([2, 3, 5, 12, 40, 150]))


def _unit(rng: np.random.Generator) -> float:
    """A unit of measurement: estimates and certificates must not depend on it."""
    return float(10.0 ** rng.integers(-6, 7)) if rng.random() < 0.3 else 1.0


def _likelihood(
    name: str,
    make: Callable[..., Any],
    rows: Any,
    exists: bool,
    density: Callable[[Floats], float],
    free: Callable[[Any], Any],
    iterative: bool = False,
) -> Iterator[Record]:
    """Existence, and the distance of the fit (of one that stops after a step too) from the optimum of own density.

    `density` is the log-likelihood in free coordinates, `free` reads them off a fitted law. Laws found by iteration
    have the logarithms of their parameters there, the largest of which says how many digits gamma functions lose.
    """
    plain = fitted(make(), rows)
    yield verdict(name, plain, exists)
    if plain is None or not exists:
        return
    best = highest(density, free(plain))
    lost = 1e-12 * (max(1.0, float(np.exp(np.max(free(plain))))) if iterative else 1.0)
    yield shortfall(name, plain, density(np.atleast_1d(free(plain))), best, len(rows), lost)
    if iterative:
        short = fitted(make(max_iter=1), rows)
        reached = density(np.atleast_1d(free(short)))
        yield shortfall(f"{name}, max_iter=1", short, reached, max(best, reached), len(rows), lost)


# -- counts ------------------------------------------------------------------------------------------------------------


def _bernoulli(rng: np.random.Generator) -> Iterator[Record]:
    n, p = _size(rng), rng.beta(0.7, 0.7)
    x = (rng.random(n) < p).astype(int)
    ones = int(x.sum())

    def density(free: Floats) -> float:
        return float(ones * special.log_expit(free[0]) + (n - ones) * special.log_expit(-free[0]))

    yield from _likelihood(
        "Bernoulli",
        lambda: sf.Bernoulli(states=[0, 1]),
        x,
        0 < ones < n,
        density,
        lambda law: special.logit(law.probability_),
    )


def _categorical(rng: np.random.Generator) -> Iterator[Record]:
    k = int(rng.integers(2, 6))
    n = _size(rng)
    x = rng.choice(k, n, p=rng.dirichlet(np.full(k, 0.8)))
    counts = np.bincount(x, minlength=k)

    def density(free: Floats) -> float:
        return float(counts @ special.log_softmax(free))

    yield from _likelihood(
        "Categorical",
        lambda: sf.Categorical(states=list(range(k))),
        x,
        bool(counts.min() > 0),
        density,
        lambda law: np.log(law.parameters_["probabilities"]),
    )


def _counts(rng: np.random.Generator, kind: str) -> Iterator[Record]:
    n = _size(rng)
    size = float(rng.choice([0.3, 1.0, 2.5, 40.0])) if kind == "NegativeBinomial" else 1.0
    if kind == "Poisson":
        x = rng.poisson(rng.gamma(0.7) * rng.choice([1.0, 30.0, 1e6]), n)
    else:
        x = rng.negative_binomial(size, rng.beta(1.0, 1.0), n)

    def density(free: Floats) -> float:
        if kind == "Poisson":
            # In units of the mean count, and a constant apart: sums of large counts have no digits to spare.
            return float(x.sum() * (free[0] - np.expm1(free[0])))
        ways = special.gammaln(x + size) - special.gammaln(size) - special.gammaln(x + 1)
        return float(np.sum(ways + size * special.log_expit(free[0]) + x * special.log_expit(-free[0])))

    def free(law: Any) -> float:
        return float(np.log(law.rate_ / x.mean()) if kind == "Poisson" else special.logit(law.probability_))

    options = {"size": size} if kind == "NegativeBinomial" else {}
    yield from _likelihood(kind, lambda: getattr(sf, kind)(**options), x, bool(x.max() > 0), density, free)


# -- real values -------------------------------------------------------------------------------------------------------


def _perhaps_constant(rng: np.random.Generator, x: Floats) -> tuple[Floats, bool]:
    """The rows, or the first of them again and again."""
    if rng.random() < 0.15:
        x = np.repeat(x[:1], len(x), axis=0)
    return x, bool(np.any(x != x[:1]))


def _exponential(rng: np.random.Generator) -> Iterator[Record]:
    x = rng.exponential(_unit(rng), _size(rng)) * (rng.random() > 0.1)

    def density(free: Floats) -> float:
        return float(len(x) * free[0] - np.exp(free[0]) * x.sum())

    yield from _likelihood("Exponential", sf.Exponential, x, bool(x.max() > 0), density, lambda law: np.log(law.rate_))


def _normal(rng: np.random.Generator) -> Iterator[Record]:
    n, unit = _size(rng), _unit(rng)
    known = str(rng.choice(["none", "mean", "variance"]))
    x, varied = _perhaps_constant(rng, unit * (rng.normal(size=n) + rng.choice([0.0, 3.0, 1e4])))
    centre = float(x.mean()) + unit * rng.normal()
    options: dict[str, Any] = {"mean": {"mean": centre}, "variance": {"variance": unit**2}}.get(known, {})

    def density(free: Floats) -> float:
        mean = centre if known == "mean" else x.mean() + unit * free[0]
        log_variance = np.log(unit**2) if known == "variance" else free[-1]
        return float(np.sum(-0.5 * (np.log(2 * np.pi) + log_variance + (x - mean) ** 2 * np.exp(-log_variance))))

    def free(law: Any) -> Any:
        both = [(law.mean_ - x.mean()) / unit, np.log(law.variance_)]
        return {"mean": both[1:], "variance": both[:1]}.get(known, both)

    exists = varied or known != "none"
    yield from _likelihood(f"Normal, known {known}", lambda: sf.Normal(**options), x, exists, density, free)


def _two_shapes(rng: np.random.Generator, kind: str) -> Iterator[Record]:
    """Gamma, inverse gamma and beta: both parameters by Newton."""
    n, first = max(_size(rng), 2), float(np.exp(rng.normal(0.5, 1.2)))
    second = float(np.exp(rng.normal(0.5, 1.0)))
    unit = 1.0 if kind == "Beta" else _unit(rng)
    if kind == "Beta":
        x = np.clip(rng.beta(first, second, n), 1e-12, 1 - 1e-12)
    else:
        x = np.maximum(rng.gamma(first, size=n), 1e-100)
        x = unit * (x if kind == "Gamma" else second / x)
    x, varied = _perhaps_constant(rng, x)
    logs, mean = np.log(x), x.mean()

    def density(free: Floats) -> float:
        a, b = np.exp(free)
        if kind == "Beta":
            return float(np.sum((a - 1) * logs + (b - 1) * np.log1p(-x)) - n * special.betaln(a, b))
        if kind == "Gamma":  # Free coordinates: shape, and mean in units of the sample's.
            rate = a / (b * mean)
            return float(np.sum((a - 1) * logs - rate * x) + n * (a * np.log(rate) - special.gammaln(a)))
        scale = a * b / np.mean(1 / x)
        return float(np.sum(-(a + 1) * logs - scale / x) + n * (a * np.log(scale) - special.gammaln(a)))

    def free(law: Any) -> Floats:
        if kind == "Beta":
            return np.log([law.alpha_, law.beta_])
        if kind == "Gamma":
            return np.log([law.shape_, law.shape_ / law.rate_ / mean])
        return np.log([law.shape_, law.scale_ * np.mean(1 / x) / law.shape_])

    yield from _likelihood(kind, getattr(sf, kind), x, varied, density, free, iterative=True)


def _gamma_rate(rng: np.random.Generator) -> Iterator[Record]:
    shape = float(np.exp(rng.normal()))
    x = _unit(rng) * np.maximum(rng.gamma(shape, size=_size(rng)), 1e-100)

    def density(free: Floats) -> float:
        found = shape * free[0] + (shape - 1) * np.log(x) - np.exp(free[0]) * x - special.gammaln(shape)
        return float(np.sum(found))

    yield from _likelihood(
        "Gamma, known shape", lambda: sf.Gamma(shape=shape), x, True, density, lambda law: np.log(law.rate_)
    )


def _dirichlet(rng: np.random.Generator) -> Iterator[Record]:
    k = int(rng.integers(2, 5))
    x = np.maximum(rng.dirichlet(np.exp(rng.normal(0.5, 0.8, k)), _size(rng)), 1e-9)
    x, varied = _perhaps_constant(rng, x / x.sum(axis=1, keepdims=True))
    logs = np.log(x).sum(axis=0)

    def density(free: Floats) -> float:
        alpha = np.exp(free)
        return float((alpha - 1) @ logs - len(x) * (special.gammaln(alpha).sum() - special.gammaln(alpha.sum())))

    yield from _likelihood(
        "Dirichlet", sf.Dirichlet, x, varied, density, lambda law: np.log(law.alpha_), iterative=True
    )


def _multivariate_normal(rng: np.random.Generator) -> Iterator[Record]:
    d = int(rng.integers(1, 4))
    n = int(rng.choice([d, d + 1, d + 2, 10, 60]))
    x = rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) + rng.normal(size=d)
    if rng.random() < 0.2 and d > 1:
        x[:, -1] = x[:, 0]
    if rng.random() < 0.2:
        x = x * 10.0 ** rng.integers(-5, 6, d)
    spread = np.maximum(np.abs(x - x.mean(axis=0)).max(axis=0), 1e-300)
    z = (x - x.mean(axis=0)) / spread
    exists = int(np.linalg.matrix_rank(z, tol=1e-9)) == d
    lower = np.tril_indices(d)

    def density(free: Floats) -> float:  # Of the columns in units of their spread; a constant apart.
        root = np.zeros((d, d))
        root[lower] = free[d:]
        diagonal = np.exp(np.diag(root))
        np.fill_diagonal(root, diagonal)
        moved = (z - free[:d]) @ root
        return float(-0.5 * np.sum(moved**2) + n * np.log(diagonal).sum() - 0.5 * n * d * np.log(2 * np.pi))

    def free(law: Any) -> Floats:
        covariance = law.covariance_ / np.outer(spread, spread)
        root = np.linalg.cholesky(np.linalg.inv(covariance))
        np.fill_diagonal(root, np.log(np.diag(root)))
        return np.concatenate([(law.mean_ - x.mean(axis=0)) / spread, root[lower]])

    yield from _likelihood("MultivariateNormal", sf.MultivariateNormal, x, exists, density, free)


# -- priors ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class OneUnknown:
    """A law with one unknown, drawn from its prior; `law` is SciPy's form of that prior."""

    name: str
    parameter: str
    make: Any
    prior: Any
    law: Any
    rows: Any
    value: float
    likelihood: Callable[[float], float]
    low: float = -np.inf
    high: float = np.inf


def _probability(rng: np.random.Generator, n: int) -> OneUnknown:
    kind = str(rng.choice(["Bernoulli", "Geometric", "NegativeBinomial"]))
    a, b = rng.choice([0.5, 1.0], 2) if rng.random() < 0.2 else np.exp(rng.normal(0.8, 0.6, 2))
    p = float(np.clip(rng.beta(a, b), 1e-3, 1 - 1e-9))
    size = {"Geometric": 1.0, "NegativeBinomial": float(rng.choice([0.7, 3.0]))}.get(kind)
    if size is None:
        x = (rng.random(n) < p).astype(int)
        options: dict[str, Any] = {"states": [0, 1]}
    else:
        x = rng.negative_binomial(size, p, n)
        options = {"size": size} if kind == "NegativeBinomial" else {}

    def likelihood(q: float) -> float:
        if size is None:
            return float(special.xlogy(x, q).sum() + special.xlog1py(1 - x, -q).sum())
        return float(np.sum(stats.nbinom.logpmf(x, size, q)))

    make = partial(getattr(sf, kind), **options)
    return OneUnknown(kind, "probability", make, sf.Beta(a, b), stats.beta(a, b), x, p, likelihood, 0.0, 1.0)


def _rate(rng: np.random.Generator, n: int) -> OneUnknown:
    kind = str(rng.choice(["Poisson", "Exponential", "Gamma"]))
    a, b = np.exp(rng.normal(0.8, 0.6, 2))
    rate = float(rng.gamma(a) / b)
    shape = float(rng.choice([0.6, 2.0])) if kind == "Gamma" else 1.0
    x = rng.poisson(rate, n) if kind == "Poisson" else np.maximum(rng.gamma(shape, size=n), 1e-50) / rate

    def likelihood(r: float) -> float:
        if kind == "Poisson":
            return float(np.sum(special.xlogy(x, r) - r - special.gammaln(x + 1)))
        return float(np.sum(stats.gamma.logpdf(x, shape, scale=1 / r)))

    make = partial(getattr(sf, kind), **({"shape": shape} if kind == "Gamma" else {}))
    law = stats.gamma(a, scale=1 / b)
    return OneUnknown(f"{kind} rate", "rate", make, sf.Gamma(a, b), law, x, rate, likelihood, 0.0)


def _centre(rng: np.random.Generator, n: int) -> OneUnknown:
    variance, centre, spread = (float(one) for one in np.exp(rng.normal(size=3)))
    mean = centre + np.sqrt(spread) * rng.normal()
    x = mean + np.sqrt(variance) * rng.normal(size=n)

    def likelihood(m: float) -> float:
        return float(np.sum(stats.norm.logpdf(x, m, np.sqrt(variance))))

    make, prior = partial(sf.Normal, variance=variance), sf.Normal(centre, spread)
    return OneUnknown("Normal mean", "mean", make, prior, stats.norm(centre, np.sqrt(spread)), x, mean, likelihood)


def _posterior_of_one(rng: np.random.Generator) -> Iterator[Record]:
    """MAP by search, evidence by quadrature, coverage of the credible interval where the unknown is from the prior."""
    draw = (_probability, _rate, _centre)[int(rng.choice(3, p=[0.4, 0.4, 0.2]))]
    one = draw(rng, int(rng.choice([1, 2, 4, 10, 30])))
    model = fitted(one.make(prior=one.prior), one.rows)
    bottom, top = model.credible_intervals(0.9)[one.parameter]
    yield Coverage(f"{one.name}, credible interval", int(bottom <= one.value <= top), 1, 0.9)

    def joint(value: float) -> float:
        with np.errstate(all="ignore"):
            return one.likelihood(value) + float(one.law.logpdf(value))

    # Between its extreme quantiles lies all mass of the posterior but 2e-12.
    edges = [float(model.posterior_.quantile(q)) for q in (1e-12, 0.01, 0.25, 0.5, 0.75, 0.99, 1 - 1e-12)]
    highest_seen = max(joint(point) for point in edges[1:-1])
    mass = 0.0
    for a, b in itertools.pairwise(edges):
        if b > a:
            found = integrate.quad(
                lambda v: np.exp(joint(v) - highest_seen), a, b, epsabs=0, epsrel=1e-10, limit=200, full_output=True
            )
            if len(found) > 3:  # Quadrature has not reached its digits: there is nothing to compare with.
                return
            mass += found[0]
    if min(one.prior.parameters_.get("alpha", 1), one.prior.parameters_.get("beta", 1)) >= 1:  # Else a pole at an end.
        evidence = highest_seen + float(np.log(mass))
        yield agreement(f"{one.name}, log evidence", model.report_.log_evidence, evidence, len(one.rows), 1e-7)
    mode = fitted(one.make(prior=one.prior, estimate="map"), one.rows)
    if mode is None:
        return
    at = float(mode.parameters_[one.parameter])
    scale = float(model.posterior_.quantile(0.84) - model.posterior_.quantile(0.16)) / 2
    low, high = one.low, one.high
    rising = low > -np.inf and joint(low + 1e-9 * scale) > joint(low + 1e-6 * scale)
    inside = not rising and not (high < np.inf and joint(high - 1e-9 * scale) > joint(high - 1e-6 * scale))
    yield verdict(f"{one.name}, MAP", mode, inside)
    if inside:
        best = highest(lambda free: joint(at + scale * free[0]) if low < at + scale * free[0] < high else -np.inf, 0.0)
        yield shortfall(f"{one.name}, MAP", mode, joint(at), best, len(one.rows))


def _posterior_of_parts(rng: np.random.Generator) -> Iterator[Record]:
    k, n = int(rng.integers(2, 5)), int(rng.choice([1, 3, 10, 40]))
    alpha = np.exp(rng.normal(0.8, 0.5, k)) + (rng.random() < 0.5)
    p = rng.dirichlet(alpha)
    x = rng.choice(k, n, p=p)
    counts = np.bincount(x, minlength=k)
    model = fitted(sf.Categorical(states=list(range(k)), prior=sf.Dirichlet(alpha)), x)
    ends = np.asarray(model.credible_intervals(0.9)["probabilities"])
    which = int(rng.integers(k))  # The intervals of one law depend on each other: one of them is looked at.
    inside = bool(ends[which, 0] <= p[which] <= ends[which, 1])
    yield Coverage("Categorical, credible interval", int(inside), 1, 0.9)
    # Row by row: each has the share of its state among the pseudo-counts and the rows before.
    seen, evidence = alpha.copy(), 0.0
    for state in x:
        evidence += np.log(seen[state] / seen.sum())
        seen[state] += 1
    yield agreement("Categorical, log evidence", model.report_.log_evidence, evidence, n, 1e-11)
    mode = fitted(sf.Categorical(states=list(range(k)), prior=sf.Dirichlet(alpha), estimate="map"), x)
    if mode is None or np.min(counts + alpha) <= 1:
        return
    yield verdict("Categorical, MAP", mode, True)
    constant = special.gammaln(alpha.sum()) - special.gammaln(alpha).sum()

    def joint(free: Floats) -> float:
        return float((counts + alpha - 1) @ special.log_softmax(free) + constant)

    at = np.log(mode.parameters_["probabilities"])
    yield shortfall("Categorical, MAP", mode, joint(at), highest(joint, at), n)


def _posterior_of_normal(rng: np.random.Generator) -> Iterator[Record]:
    """Mean and variance: the evidence row by row as Student's t, the mode by search."""
    a, b, strength = np.exp(rng.normal(0.8, 0.4, 3))
    a, centre, n = a + 1, float(rng.normal()), int(rng.choice([1, 2, 5, 20]))
    variance = b / rng.gamma(a)
    mean = centre + np.sqrt(variance / strength) * rng.normal()
    x = mean + np.sqrt(variance) * rng.normal(size=n)
    prior = sf.NormalInverseGamma(a, b, strength, centre)
    model = fitted(sf.Normal(prior=prior), x)
    found = model.credible_intervals(0.9)
    for name, value in (("mean", mean), ("variance", variance)):
        yield Coverage(f"Normal {name}, credible interval", int(found[name][0] <= value <= found[name][1]), 1, 0.9)
    evidence, (aa, bb, cc, mm) = 0.0, (a, b, strength, centre)
    for value in x:
        evidence += stats.t.logpdf(value, 2 * aa, mm, np.sqrt(bb / aa * (1 + 1 / cc)))
        bb += 0.5 * cc / (cc + 1) * (value - mm) ** 2
        mm, cc, aa = (cc * mm + value) / (cc + 1), cc + 1, aa + 0.5
    yield agreement("Normal, log evidence", model.report_.log_evidence, float(evidence), n, 1e-10)
    mode = fitted(sf.Normal(prior=prior, estimate="map"), x)
    yield verdict("Normal, MAP", mode, True)

    def joint(free: Floats) -> float:
        m, v = free[0], np.exp(free[1])
        of_mean = stats.norm.logpdf(m, centre, np.sqrt(v / strength)) + stats.invgamma.logpdf(v, a, scale=b)
        return float(np.sum(stats.norm.logpdf(x, m, np.sqrt(v))) + of_mean)

    at = np.array([mode.mean_, np.log(mode.variance_)])
    yield shortfall("Normal, MAP", mode, joint(at), highest(joint, at), n)


def _log_student(off: Floats, shape: Floats, df: float) -> float:
    """Log density of Student's law of several columns, off its centre."""
    d = len(off)
    found = special.gammaln((df + d) / 2) - special.gammaln(df / 2) - 0.5 * d * np.log(np.pi * df)
    found -= 0.5 * np.linalg.slogdet(shape)[1] + 0.5 * (df + d) * np.log1p(off @ np.linalg.solve(shape, off) / df)
    return float(found)


def _posterior_of_vector(rng: np.random.Generator) -> Iterator[Record]:
    """Coverage for mean and variances where both are drawn from a normal-Wishart prior, and the evidence by rows."""
    d, n = 2, int(rng.choice([2, 5, 20]))
    strength, dof = float(np.exp(rng.normal())), float(d + rng.uniform(0.5, 4))
    half = rng.normal(size=(d, d + 2))
    inverse_scale, centre = half @ half.T, rng.normal(size=d)
    precision = np.atleast_2d(stats.wishart.rvs(dof, np.linalg.inv(inverse_scale), random_state=rng))
    covariance = np.linalg.inv(precision)
    mean = rng.multivariate_normal(centre, covariance / strength)
    x = rng.multivariate_normal(mean, covariance, n)
    model = fitted(sf.MultivariateNormal(prior=sf.NormalWishart(centre, strength, dof, inverse_scale)), x)
    if model is None:
        return
    found = model.credible_intervals(0.9)
    for name, value in (("mean", mean[0]), ("variance", covariance[0, 0])):
        low, high = np.asarray(found[name])[0]
        yield Coverage(f"MultivariateNormal {name}, credible interval", int(low <= value <= high), 1, 0.9)
    evidence, (kk, vv, mm, ss) = 0.0, (strength, dof, centre.copy(), inverse_scale.copy())
    for row in x:
        df = vv - d + 1
        evidence += _log_student(row - mm, ss * (kk + 1) / (kk * df), df)
        ss = ss + kk / (kk + 1) * np.outer(row - mm, row - mm)
        mm, kk, vv = (kk * mm + row) / (kk + 1), kk + 1, vv + 1
    yield agreement("MultivariateNormal, log evidence", model.report_.log_evidence, float(evidence), n, 1e-9)


PROBLEMS: dict[str, Problem] = {
    "Bernoulli": _bernoulli,
    "Categorical": _categorical,
    "Poisson": lambda rng: _counts(rng, "Poisson"),
    "Geometric": lambda rng: _counts(rng, "Geometric"),
    "NegativeBinomial": lambda rng: _counts(rng, "NegativeBinomial"),
    "Exponential": _exponential,
    "Normal": _normal,
    "Gamma": lambda rng: _two_shapes(rng, "Gamma"),
    "Gamma, known shape": _gamma_rate,
    "InverseGamma": lambda rng: _two_shapes(rng, "InverseGamma"),
    "Beta": lambda rng: _two_shapes(rng, "Beta"),
    "Dirichlet": _dirichlet,
    "MultivariateNormal": _multivariate_normal,
    "posterior of one parameter": _posterior_of_one,
    "posterior of a Categorical": _posterior_of_parts,
    "posterior of a Normal": _posterior_of_normal,
    "posterior of a MultivariateNormal": _posterior_of_vector,
}
