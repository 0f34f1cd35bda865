"""Random regressions: own log-likelihoods and slopes, a generic optimiser, linear programmes for separation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special
from scipy.optimize import linprog

import suffice as sf
from benchmarks.audit.oracle import fitted, highest, search, shortfall, verdict
from benchmarks.audit.record import Coverage, Problem, Record

Floats = NDArray[np.float64]

#: The inverse of each link, and its slope.
LINKS: dict[str, tuple[Callable[[Floats], Floats], Callable[[Floats], Floats]]] = {
    "identity": (lambda e: e, np.ones_like),
    "log": (np.exp, np.exp),
    "logit": (special.expit, lambda e: special.expit(e) * special.expit(-e)),
    "probit": (special.ndtr, lambda e: np.exp(-0.5 * e * e) / np.sqrt(2 * np.pi)),
    "cloglog": (lambda e: -np.expm1(-np.exp(e)), lambda e: np.exp(e - np.exp(e))),
    "loglog": (lambda e: np.exp(-np.exp(-e)), lambda e: np.exp(-e - np.exp(-e))),
    "inverse": (lambda e: 1 / e, lambda e: -1 / e**2),
    "inverse_square": (lambda e: e**-0.5, lambda e: -0.5 * e**-1.5),
    "sqrt": (np.square, lambda e: 2 * e),
}
PAIRS = (
    *(("gaussian", link) for link in ("identity", "log", "inverse", "sqrt")),
    *(("binomial", link) for link in ("logit", "probit", "cloglog", "loglog", "log", "identity")),
    *(("poisson", link) for link in ("log", "identity", "sqrt")),
    *(("negative_binomial", link) for link in ("log", "identity", "sqrt")),
    *(("gamma", link) for link in ("inverse", "log", "identity", "sqrt")),
    *(("inverse_gaussian", link) for link in ("inverse_square", "inverse", "log", "identity", "sqrt")),
)
#: Links whose linear predictors of positive means are positive.
ONE_SIDED = {"inverse", "inverse_square", "sqrt", "identity"}
DISPERSED = {"gaussian", "gamma", "inverse_gaussian"}


@dataclass(frozen=True)
class Regression:
    """Rows of one regression and the oracle's objective: coefficients, and the logarithm of the spread where free.

    `spread` is the dispersion, or the size of a negative binomial law; None where it is to be found. `precision` and
    `rate` are of Gaussian and Laplace priors on each coefficient.
    """

    family: str
    link: str
    x: Floats
    y: Floats
    spread: float | None
    precision: Floats
    rate: Floats

    def value(self, free: Floats) -> tuple[float, Floats]:
        """The log-likelihood less the penalties, and its slope."""
        size = self.x.shape[1]
        spread = float(np.exp(free[size])) if self.spread is None else self.spread
        beta, eta = free[:size], self.x @ free[:size]
        function, slope = LINKS[self.link]
        with np.errstate(all="ignore"):
            mean, bend = function(eta), slope(eta)
            one_side = self.link in {"inverse_square", "sqrt"} or (self.link == "inverse" and self.family != "gaussian")
            found = self._rows(mean, eta, spread)
            if (one_side and np.any(eta < 0)) or not np.all(np.isfinite(found[0])):
                return -np.inf, np.zeros_like(free)
            by_eta = found[1] * bend if found[3] is None else found[3]
        value = float(found[0].sum() - 0.5 * self.precision @ beta**2 - self.rate @ np.abs(beta))
        gradient = np.zeros_like(free)
        gradient[:size] = self.x.T @ by_eta - self.precision * beta - self.rate * np.sign(beta)
        if self.spread is None:
            gradient[size] = float(found[2].sum())
        return (value, gradient) if np.all(np.isfinite(gradient)) else (-np.inf, np.zeros_like(free))

    def _rows(self, mean: Floats, eta: Floats, spread: float) -> tuple[Floats, Floats, Floats, Floats | None]:
        """Of each row: log-density, its slopes in the mean and in the log of the spread, in eta where that is safer."""
        y, none = self.y, np.zeros_like(self.y)
        if self.family == "gaussian":
            rest = y - mean
            found = -0.5 * (np.log(2 * np.pi * spread) + rest**2 / spread)
            return found, rest / spread, -0.5 + 0.5 * rest**2 / spread, None
        if self.family == "poisson":
            return special.xlogy(y, mean) - mean - special.gammaln(y + 1), y / mean - 1, none, None
        if self.family == "negative_binomial":
            ways = special.gammaln(y + spread) - special.gammaln(spread) - special.gammaln(y + 1)
            share = -np.log1p(mean / spread)
            found = ways + spread * share + special.xlogy(y, mean / (spread + mean))
            turn = special.digamma(y + spread) - special.digamma(spread) + share + 1 - (y + spread) / (spread + mean)
            return found, y / mean - (y + spread) / (spread + mean), spread * turn, None
        if self.family == "gamma":
            a = 1 / spread
            found = a * np.log(a * y / mean) - a * y / mean - special.gammaln(a) - np.log(y)
            turn = np.log(a * y / mean) + 1 - y / mean - special.digamma(a)
            return found, a * (y / mean - 1) / mean, -a * turn, None
        if self.family == "inverse_gaussian":
            off = (y - mean) ** 2 / (mean**2 * y)
            found = -0.5 * (np.log(2 * np.pi * spread * y**3) + off / spread)
            found = np.where(mean > 0, found, -np.inf)
            return found, (y - mean) / (spread * mean**3), -0.5 + 0.5 * off / spread, None
        value, by_eta = _labels(self.link, eta, y)
        return value, none, none, by_eta

    def start(self, model: Any) -> Floats:
        """The returned coefficients, and the spread that fits them best."""
        beta = np.concatenate([[float(model.intercept_)], np.asarray(model.coefficients_, dtype=np.float64)])
        if self.spread is not None:
            return beta
        if self.family == "negative_binomial":
            return np.append(beta, np.log(model.size_))
        grid = np.linspace(-12, 12, 241) + np.log(model.dispersion_)
        best = grid[int(np.argmax([self.value(np.append(beta, g))[0] for g in grid]))]
        found = search(
            lambda g: -self.value(np.append(beta, g))[0],
            [best],
            jac=lambda g: -self.value(np.append(beta, g))[1][-1:],
            method="BFGS",
            options={"gtol": 1e-11},
        )
        return np.append(beta, found.x)

    def best(self, *starts: Floats) -> float:
        """The highest objective that is found from the starts; kinks of the Laplace prior by halves of coefficients."""
        found = -np.inf
        halves = np.flatnonzero(self.rate > 0)
        smooth = replace(self, rate=np.zeros_like(self.rate))

        def down(doubled: Floats) -> tuple[float, Floats]:
            free = doubled[: len(doubled) - len(halves)].copy()
            minus = doubled[len(free) :]
            plus = free[halves].copy()
            free[halves] = plus - minus
            value, slope = smooth.value(free)
            if not np.isfinite(value):
                return 1e300, np.zeros_like(doubled)
            value -= float(self.rate[halves] @ (plus + minus))
            both = np.concatenate([slope, -slope[halves]])
            both[halves] -= self.rate[halves]
            both[len(free) :] -= self.rate[halves]
            return -value, -both

        for start in starts:
            if not np.all(np.isfinite(start)):
                continue
            doubled = np.concatenate([start, np.maximum(-start[halves], 0.0)])
            doubled[halves] = np.maximum(start[halves], 0.0)
            found = max(found, self.value(np.asarray(start))[0])
            if len(halves):
                bounds = [(0.0, None) if i in halves or i >= len(start) else (None, None) for i in range(len(doubled))]
                tight = {"ftol": 1e-15, "gtol": 1e-10, "maxiter": 2000}
                ended = search(down, doubled, jac=True, method="L-BFGS-B", bounds=bounds, options=tight)
            else:
                ended = search(down, doubled, jac=True, method="BFGS", options={"gtol": 1e-10, "maxiter": 2000})
            if np.isfinite(ended.fun):
                found = max(found, -float(ended.fun))
        return found


def _labels(link: str, eta: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Log-probabilities of labels 0 and 1 and their slopes in eta, without the loss of digits near 0 and 1."""
    found = LABELS[link](eta)
    return np.where(y > 0, found[0], found[1]), np.where(y > 0, found[2], found[3])


def _hazard(eta: Floats) -> Floats:
    """The slope of the logarithm of the normal distribution function."""
    return np.exp(-0.5 * eta**2 - 0.5 * np.log(2 * np.pi) - special.log_ndtr(eta))  # type: ignore[no-any-return]


def _doubly(e: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Log(1 - exp(-exp(e))) and -exp(e), and their slopes."""
    return np.log(-np.expm1(-np.exp(e))), -np.exp(e), np.exp(e) / np.expm1(np.exp(e)), -np.exp(e)


def _mirrored(e: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """The same with labels and sign exchanged."""
    no, yes, slope_no, slope_yes = _doubly(-e)
    return yes, no, -slope_yes, -slope_no


#: By link: log-probability of a success and of a failure, and their slopes.
LABELS: dict[str, Callable[[Floats], tuple[Floats, ...]]] = {
    "logit": lambda e: (special.log_expit(e), special.log_expit(-e), special.expit(-e), -special.expit(e)),
    "probit": lambda e: (special.log_ndtr(e), special.log_ndtr(-e), _hazard(e), -_hazard(-e)),
    "cloglog": _doubly,
    "loglog": _mirrored,
    "log": lambda e: (
        np.where(e <= 0, e, -np.inf),
        np.log(-np.expm1(np.minimum(e, 0.0))),
        np.ones_like(e),
        -1 / np.expm1(-e),
    ),
    "identity": lambda e: (np.log(e), np.log1p(-e), 1 / e, -1 / (1 - e)),
}


# -- data --------------------------------------------------------------------------------------------------------------


def _predictors(rng: np.random.Generator, family: str, link: str, n: int, size: int) -> tuple[Floats, Floats]:
    """Columns with the constant first, and coefficients whose means are well inside the family."""
    x = np.column_stack([np.ones(n), rng.uniform(0, 1, (n, size)) if link in ONE_SIDED else rng.normal(size=(n, size))])
    beta = np.append(0.3 * rng.normal(), 0.5 * rng.normal(size=size) / np.sqrt(size))
    if family == "binomial" and link == "identity":
        beta = np.append(0.3, rng.uniform(-0.15, 0.3, size) / size)
    elif family == "binomial" and link == "log":
        x[:, 1:] = rng.uniform(0, 1, (n, size))
        beta = np.append(-1.5, rng.uniform(-0.5, 1.0, size) / size)
    elif link in ONE_SIDED and not (family == "gaussian" and link == "identity"):
        beta = np.append(1.0, rng.uniform(-0.4, 1.5, size) / size)
    return x, beta


def _response(rng: np.random.Generator, family: str, mean: Floats, spread: float) -> Floats:
    if family == "gaussian":
        return rng.normal(mean, np.sqrt(spread))
    if family == "binomial":
        return (rng.random(len(mean)) < mean).astype(np.float64)
    if family == "poisson":
        return rng.poisson(mean).astype(np.float64)
    if family == "negative_binomial":
        return rng.negative_binomial(spread, spread / (spread + mean)).astype(np.float64)
    if family == "gamma":
        return np.maximum(rng.gamma(1 / spread, mean * spread), 1e-12)
    return np.maximum(rng.wald(mean, 1 / spread), 1e-12)


def _made(family: str, size: float | None) -> Any:
    return sf.NegativeBinomial(size=size) if family == "negative_binomial" and size else family


WAYS: dict[str, dict[str, Any]] = {
    "plain": {},
    "lbfgs": {"solver": "lbfgs", "max_iter": 2000},
    "max_iter=2": {"max_iter": 2},
    "ridge": {"gaussian": True},
    "ridge, intercept too": {"gaussian": True, "penalize_intercept": True},
    "ridge, intercept too, max_iter=2": {"gaussian": True, "penalize_intercept": True, "max_iter": 2},
    "lasso": {"laplace": True},
    "elastic net": {"gaussian": True, "laplace": True},
    "lasso, max_iter=2": {"laplace": True, "max_iter": 2},
}


def _priors(rng: np.random.Generator, way: dict[str, Any], size: int) -> tuple[dict[str, Any], Floats, Floats]:
    """The options of a way to fit, and the precision and the rate of its priors by coefficient."""
    options = {name: value for name, value in way.items() if name not in {"gaussian", "laplace"}}
    both = way.get("penalize_intercept", False)
    held = np.append(float(both), np.ones(size))
    precision, rate = np.zeros(size + 1), np.zeros(size + 1)
    priors: list[Any] = []
    if way.get("gaussian"):
        variance = float(np.exp(rng.normal(0, 1.5)))
        precision = held / variance
        priors.append(sf.Normal(variance=variance))
    if way.get("laplace"):
        scale = float(np.exp(rng.normal(-1.0, 1.0)))
        rate = held / scale
        priors.append(sf.Laplace(scale=scale))
    if priors:
        options["prior"] = priors[0] if len(priors) == 1 else tuple(priors)
    return options, precision, rate


def _values(rng: np.random.Generator, family: Any, link: Any) -> Iterator[Record]:
    """One set of rows fitted in every way, each beside the optimum of its own objective."""
    n, size = int(rng.choice([25, 60, 150])), int(rng.integers(1, 4))
    x, beta = _predictors(rng, family, link, n, size)
    spread = float(np.exp(rng.normal(-1.5, 0.5))) if family in DISPERSED else float(np.exp(rng.normal(0.7, 0.5)))
    y = _response(rng, family, LINKS[link][0](x @ beta), spread)
    if not _attained(family, link, x, y):
        return
    for name, way in WAYS.items():
        options, precision, rate = _priors(rng, way, size)
        known = family not in DISPERSED or rng.random() < 0.4
        if family in DISPERSED and known:
            options["dispersion"] = spread
        problem = Regression(family, link, x, y, spread if known else None, precision, rate)
        model = fitted(sf.GLM(_made(family, spread), link=link, **options), x[:, 1:], y)
        if model is None or model.report_.certificate.exists is False:
            continue
        at = problem.start(model)
        reached = problem.value(at)[0]
        if not np.isfinite(reached):
            continue
        begin = np.append(beta, np.log(spread)) if not known else beta
        best = problem.best(at, begin)
        yield shortfall(f"GLM {family}, {name}", model, reached, best, n, 1e-11)


# -- existence ---------------------------------------------------------------------------------------------------------


def recedes(equal: Floats, rising: Floats) -> bool:
    """Whether a direction d has ``equal @ d = 0`` and ``rising @ d >= 0`` with one of the latter above 0."""
    rows = np.vstack([equal, rising])
    unit = np.abs(rows).max(axis=0)
    equal, rising = equal / unit, rising / unit
    answer = linprog(
        -rising.sum(axis=0),
        A_ub=-rising if len(rising) else None,
        b_ub=np.zeros(len(rising)) if len(rising) else None,
        A_eq=equal if len(equal) else None,
        b_eq=np.zeros(len(equal)) if len(equal) else None,
        bounds=[(-1, 1)] * rows.shape[1],
        method="highs",
    )
    return bool(float(answer.fun or 0.0) < -1e-6)


def _attained(family: str, link: str, x: Floats, y: Floats) -> bool:
    """Whether the maximum is attained, by the directions in which a log-likelihood never falls."""
    if family == "binomial" and link == "log":
        return not recedes(x[y > 0], -x[y == 0])
    if family == "binomial":
        return link == "identity" or not recedes(np.zeros((0, x.shape[1])), np.where(y > 0, 1, -1)[:, None] * x)
    if link == "log" and family in {"poisson", "negative_binomial"}:
        return not recedes(x[y > 0], -x[y == 0])
    return True


def _few_rows(rng: np.random.Generator, family: Any) -> tuple[Floats, Floats] | None:
    """Columns of whole numbers and a response that may be separated; None where they say nothing."""
    n, size = int(rng.integers(5, 16)), int(rng.integers(1, 4))
    z = rng.integers(-1 if rng.random() < 0.5 else 0, 4 if rng.random() < 0.5 else 2, (n, size)).astype(float)
    eta = rng.normal() + z @ rng.normal(size=size)
    if family == "binomial":
        y = (rng.random(n) < special.expit(2 * eta)).astype(float)
        if rng.random() < 0.4:
            y = (eta + 0.3 * rng.normal(size=n) > np.median(eta)).astype(float)
    else:
        y = rng.poisson(np.exp(np.minimum(eta - 0.5, 3.0))).astype(float)
    full = np.linalg.matrix_rank(np.column_stack([np.ones(n), z])) == size + 1
    return (z, y) if full and 0 < np.count_nonzero(y) < n else None


def _separation(rng: np.random.Generator) -> Iterator[Record]:
    """Few rows in any units: separated about half the time."""
    family, link = _choice(
        rng,
        [("binomial", one) for one in ("logit", "probit", "cloglog", "loglog")]
        + [("poisson", "log"), ("negative_binomial", "log")],
    )
    found = None
    while found is None:
        found = _few_rows(rng, family)
    z, y = found
    truth = _attained(family, link, np.column_stack([np.ones(len(z)), z]), y)
    units = 10.0 ** rng.integers(-6, 7, z.shape[1])
    for name, scale in (("", np.ones(z.shape[1])), (", any units", units)):
        model = fitted(sf.GLM(_made(family, 2.0), link=link), z * scale, y)  # type: ignore[arg-type]
        yield verdict(f"GLM {family} {link}{name}", model, truth)


def _choice(rng: np.random.Generator, pairs: list[tuple[str, str]]) -> tuple[str, str]:
    return pairs[int(rng.integers(len(pairs)))]


def _edges(rng: np.random.Generator) -> Iterator[Record]:
    """Two groups, so that the best mean of each is its average where the link can say it."""
    n = int(rng.integers(4, 12))
    x = np.repeat([0.0, 1.0], n)
    family, link = _choice(rng, [("binomial", "log"), ("gaussian", "log"), ("gaussian", "inverse")])
    edge = bool(rng.random() < 0.5)
    if family == "binomial":
        second = np.zeros(n) if edge else (np.arange(n) < rng.integers(1, n)).astype(float)
        first = (np.arange(n) < rng.integers(1, n)).astype(float)
    else:
        first = rng.uniform(2, 4, n)
        second = rng.uniform(1, 5, n)
        if edge and link == "log":
            second = np.zeros(n) if rng.random() < 0.5 else -second
        elif edge:
            second = np.tile([1.0, -1.0], n)[:n] if n % 2 == 0 else np.append(np.tile([1.0, -1.0], n // 2), 0.0)
    model = fitted(sf.GLM(family, link=link), x[:, None], np.append(first, second))  # type: ignore[arg-type]
    yield verdict(f"GLM {family} {link}, two groups", model, not edge)


def _free_size(rng: np.random.Generator) -> Iterator[Record]:
    """A negative binomial law of unknown size: where counts spread less than Poisson's, the size has no maximum."""
    n = int(rng.choice([10, 30, 80]))
    x = np.column_stack([np.ones(n), rng.normal(size=n)])
    mean = np.exp(1.0 + 0.4 * x[:, 1])
    narrow = rng.random() < 0.4
    drawn = rng.binomial(8, np.minimum(mean / 8, 0.95)) if narrow else rng.negative_binomial(2, 2 / (2 + mean))
    y = drawn.astype(np.float64)
    none = np.zeros(2)
    if not _attained("poisson", "log", x, y):
        return
    limit = Regression("poisson", "log", x, y, 1.0, none, none).best(np.zeros(2))
    sizes = np.exp(np.linspace(-3, 9, 25))
    profile = [Regression("negative_binomial", "log", x, y, float(s), none, none).best(np.zeros(2)) for s in sizes]
    top = float(np.max(profile))
    if abs(top - limit) < 1e-4:
        return
    model = fitted(sf.GLM("negative_binomial"), x[:, 1:], y)
    yield verdict("GLM negative_binomial, size free", model, top > limit)
    if model is not None and top > limit and np.isfinite(model.size_):
        problem = Regression("negative_binomial", "log", x, y, None, none, none)
        at = problem.start(model)
        begin = np.append(none, np.log(sizes[int(np.argmax(profile))]))
        yield shortfall(
            "GLM negative_binomial, size free", model, problem.value(at)[0], problem.best(at, begin), n, 1e-11
        )


# -- labels ------------------------------------------------------------------------------------------------------------


def _multinomial_value(x: Floats, y: NDArray[np.intp], weights: Floats, precision: float) -> tuple[float, Floats]:
    """Softmax with the last class at 0; weights (columns, classes - 1), a Gaussian prior on all but the constants."""
    eta = np.column_stack([x @ weights, np.zeros(len(x))])
    log_p = special.log_softmax(eta, axis=1)
    held = weights.copy()
    held[0] = 0.0
    value = float(log_p[np.arange(len(x)), y].sum() - 0.5 * precision * np.sum(held**2))
    seen = np.eye(eta.shape[1])[y] - np.exp(log_p)
    return value, x.T @ seen[:, :-1] - precision * held


def _multinomial_loss(flat: Floats, x: Floats, y: NDArray[np.intp], precision: float) -> tuple[float, Floats]:
    value, slope = _multinomial_value(x, y, flat.reshape(x.shape[1], -1), precision)
    return -value, -slope.ravel()


def _multinomial(rng: np.random.Generator) -> Iterator[Record]:
    classes, size = int(rng.integers(3, 5)), int(rng.integers(1, 3))
    n = int(rng.choice([8, 14, 60, 120]))
    z = rng.integers(0, 3, (n, size)).astype(float) if n < 20 else rng.normal(size=(n, size))
    x = np.column_stack([np.ones(n), z])
    eta = x @ rng.normal(size=(size + 1, classes)) * (1.0 if n > 20 else 2.0)
    y = np.argmax(eta + rng.gumbel(size=eta.shape), axis=1)
    if len(set(y.tolist())) < classes or np.linalg.matrix_rank(x) < size + 1:
        return
    width = (classes - 1) * (size + 1)
    rising = []
    for row, label in zip(x, y, strict=True):
        for other in range(classes):
            if other != label:
                line = np.zeros((classes, size + 1))
                line[label] += row
                line[other] -= row
                rising.append(line[:-1].ravel())
    truth = not recedes(np.zeros((0, width)), np.array(rising))
    units = 10.0 ** rng.integers(-6, 7, size) if rng.random() < 0.3 else np.ones(size)
    for name, precision, options in (
        ("", 0.0, {}),
        (", max_iter=2", 0.0, {"max_iter": 2}),
        (", ridge", 2.0, {"prior": sf.Normal(variance=0.5)}),
    ):
        plain = precision == 0.0
        model = fitted(sf.GLM("multinomial", **options), z * units if plain else z, y)
        if not name:
            yield verdict("GLM multinomial", model, truth)
        if model is None or (plain and not truth):
            continue
        at = np.asarray(model.parameters_, dtype=np.float64).copy()
        if plain:
            at[1:] *= units[:, None]
        reached, _ = _multinomial_value(x, y, at, precision)
        best = reached
        for begin in (at, np.zeros_like(at)):
            down = partial(_multinomial_loss, x=x, y=y, precision=precision)
            ended = search(down, begin.ravel(), jac=True, method="BFGS", options={"gtol": 1e-10})
            best = max(best, -float(ended.fun))
        yield shortfall(f"GLM multinomial{name}", model, reached, best, n, 1e-11)


def _ordinal_cdf(link: str, e: Floats) -> tuple[Floats, Floats]:
    """Log F and log(1 - F) of the law whose distribution function is the inverse link."""
    if link == "logit":
        return special.log_expit(e), special.log_expit(-e)
    if link == "probit":
        return special.log_ndtr(e), special.log_ndtr(-e)
    if link == "cloglog":
        return np.log(-np.expm1(-np.exp(e))), -np.exp(e)
    return -np.exp(-e), np.log(-np.expm1(-np.exp(-e)))


def _ordinal_value(link: Any, x: Floats, y: NDArray[np.intp], thresholds: Floats, beta: Floats) -> float:
    if np.any(np.diff(thresholds) <= 0):
        return -np.inf
    ends = np.concatenate([[-np.inf], thresholds, [np.inf]])
    with np.errstate(all="ignore"):
        shift = x @ beta
        low, high = ends[y] - shift, ends[y + 1] - shift
        below_low, above_low = _ordinal_cdf(link, low)
        below_high, above_high = _ordinal_cdf(link, high)
        left = below_high + np.log1p(-np.exp(below_low - below_high))
        right = above_low + np.log1p(-np.exp(above_high - above_low))
        found = np.where(below_high < above_low, left, right)
        found = np.where(y == 0, below_high, np.where(y == len(thresholds), above_low, found))
    return float(found.sum()) if np.all(np.isfinite(found)) else -np.inf


def _ordinal(rng: np.random.Generator) -> Iterator[Record]:
    link = str(rng.choice(["logit", "probit", "cloglog", "loglog"]))
    classes, size, n = int(rng.integers(3, 5)), int(rng.integers(1, 3)), int(rng.choice([8, 14, 60]))
    z = rng.integers(0, 3, (n, size)).astype(float) if n < 20 else rng.normal(size=(n, size))
    hidden = z @ rng.normal(size=size) * (2.0 if n < 20 else 1.0) + rng.logistic(size=n) * (0.3 if n < 20 else 1.0)
    y = np.searchsorted(np.quantile(hidden, np.arange(1, classes) / classes), hidden)
    if len(set(y.tolist())) < classes or np.linalg.matrix_rank(np.column_stack([np.ones(n), z])) < size + 1:
        return
    rising = []
    for row, label in zip(z, y, strict=True):
        if label < classes - 1:
            rising.append(np.concatenate([np.eye(classes - 1)[label], -row]))
        if label > 0:
            rising.append(np.concatenate([-np.eye(classes - 1)[label - 1], row]))
    truth = not recedes(np.zeros((0, classes - 1 + size)), np.array(rising))
    units = 10.0 ** rng.integers(-6, 7, size) if rng.random() < 0.3 else np.ones(size)
    model = fitted(sf.GLM("ordinal", link=link, states=list(range(classes))), z * units, y)  # type: ignore[arg-type]
    yield verdict(f"GLM ordinal {link}", model, truth)
    if not truth:
        return

    def value(free: Floats) -> float:
        thresholds = free[0] + np.concatenate([[0.0], np.cumsum(np.exp(free[1 : classes - 1]))])
        return _ordinal_value(link, z, y, thresholds, free[classes - 1 :])

    ways: tuple[tuple[str, dict[str, Any]], ...] = (("", {}), (", max_iter=2", {"max_iter": 2}))
    for name, options in ways:
        model = fitted(sf.GLM("ordinal", link=link, states=list(range(classes)), **options), z * units, y)  # type: ignore[arg-type]
        if model is None:
            continue
        thresholds = np.asarray(model.thresholds_, dtype=np.float64)
        beta = np.asarray(model.coefficients_, dtype=np.float64) * units
        at = np.concatenate([thresholds[:1], np.log(np.diff(thresholds)), beta])
        reached = _ordinal_value(link, z, y, thresholds, beta)
        yield shortfall(f"GLM ordinal {link}{name}", model, reached, max(reached, highest(value, at)), n, 1e-10)


def _vectors(rng: np.random.Generator) -> Iterator[Record]:
    """Several Gaussian responses: least squares, and the determinant of what is left."""
    n, size, width = int(rng.choice([12, 40])), int(rng.integers(1, 4)), int(rng.integers(2, 4))
    z = rng.normal(size=(n, size)) * 10.0 ** rng.integers(-4, 5, size)
    x = np.column_stack([np.ones(n), z])
    y = x / np.abs(x).max(axis=0) @ rng.normal(size=(size + 1, width)) + rng.normal(size=(n, width))
    if rng.random() < 0.15:
        y[:, -1] = y[:, 0]
    model = fitted(sf.GLM("multivariate_gaussian"), z, y)
    rest = y - x @ np.linalg.lstsq(x, y, rcond=None)[0]
    truth = int(np.linalg.matrix_rank(rest, tol=1e-9)) == width
    yield verdict("GLM multivariate_gaussian", model, truth)
    if model is None or not truth:
        return
    left = y - x @ np.asarray(model.parameters_)
    reached, best = (-0.5 * n * np.linalg.slogdet(r.T @ r / n)[1] for r in (left, rest))
    yield shortfall("GLM multivariate_gaussian", model, float(reached), float(best), n)


# -- intervals ---------------------------------------------------------------------------------------------------------


def _coverage(rng: np.random.Generator, method: str) -> Iterator[Record]:
    """Repetitions of one problem: how often the interval of one coefficient holds the one that rows were drawn from."""
    family, link = _choice(
        rng,
        [
            ("gaussian", "identity"),
            ("binomial", "logit"),
            ("poisson", "log"),
            ("gamma", "log"),
            ("binomial", "cloglog"),
        ],
    )
    n = 30 if family == "gaussian" else 150
    x, beta = _predictors(rng, family, link, n, 2)
    mean = LINKS[link][0](x @ beta)
    covered = count = 0
    for _ in range(20 if method == "wald" else 6):
        y = _response(rng, family, mean, 0.4)
        model = fitted(sf.GLM(family, link=link), x[:, 1:], y)  # type: ignore[arg-type]
        if model is None or model.report_.certificate.exists is False:
            continue
        rows = {} if method == "wald" else {"X": x[:, 1:], "y": y}
        low, high = np.asarray(model.intervals(0.95, method=method, **rows))[1]
        covered, count = covered + int(low <= beta[1] <= high), count + 1
    yield Coverage(f"GLM {family} {link}, {method}", covered, count)


def _ordinal_coverage(rng: np.random.Generator) -> Iterator[Record]:
    z, beta = rng.normal(size=(150, 2)), 0.7 * rng.normal(size=2)
    covered = 0
    for _ in range(10):
        y = np.searchsorted([-0.7, 0.8], z @ beta + rng.logistic(size=150))
        model = fitted(sf.GLM("ordinal", states=[0, 1, 2]), z, y)
        low, high = np.asarray(model.intervals())[-2]
        covered += int(low <= beta[0] <= high)
    yield Coverage("GLM ordinal logit, wald", covered, 10)


PROBLEMS: dict[str, Problem] = {
    **{
        f"GLM {family} {link}": (lambda rng, family=family, link=link: _values(rng, family, link))  # type: ignore[misc]
        for family, link in PAIRS
    },
    "GLM separation": _separation,
    "GLM edge of a link": _edges,
    "GLM negative binomial, size free": _free_size,
    "GLM multinomial": _multinomial,
    "GLM ordinal": _ordinal,
    "GLM multivariate": _vectors,
    "GLM intervals, Wald": lambda rng: _coverage(rng, "wald"),
    "GLM intervals, profile": lambda rng: _coverage(rng, "profile"),
    "GLM intervals, ordinal": _ordinal_coverage,
}
