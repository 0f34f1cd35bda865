"""How many digits of the certified values each program gets right: log relative errors."""

from __future__ import annotations

import importlib.util
import math
import shutil
import subprocess
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

import suffice as sf
from benchmarks.nist.data import Anova, Regression, Sample

Floats = NDArray[np.float64]

#: Digits that are counted at most: certified values are printed with 15.
MOST = 15.0


def digits(found: Any, certified: Any) -> float:
    """The log relative error -log10(|found - certified| / |certified|) of the worst number, from 0 to 15.

    Of a certified 0 it is the log absolute error.
    """
    found, certified = np.atleast_1d(found).astype(float), np.atleast_1d(certified).astype(float)
    away = np.abs(found - certified) / np.where(certified == 0.0, 1.0, np.abs(certified))
    worst = float(np.max(np.where(np.isnan(away), np.inf, away)))
    return MOST if worst == 0.0 else min(MOST, max(0.0, -math.log10(worst)))


@dataclass(frozen=True)
class Answer:
    """What a program says about a regression: coefficients, their standard deviations, that of the residuals."""

    estimates: Floats
    deviations: Floats | None = None
    residual: float | None = None

    def digits(self, problem: Regression) -> tuple[float, float | None, float | None]:
        """Of the three; None for what the program does not say."""
        deviations = None if self.deviations is None else digits(self.deviations, problem.deviations)
        residual = None if self.residual is None else digits(self.residual, float(problem.residual))
        return digits(self.estimates, problem.estimates), deviations, residual


# --------------------------------------------------------------------------------------------------------------------
# Regressions
# --------------------------------------------------------------------------------------------------------------------


def by_network(problem: Regression) -> Answer:
    """A linear-Gaussian node; without an intercept, a Gaussian GLM node of a network."""
    rows = {**problem.columns, "y": problem.y}
    real: Any = dict.fromkeys(rows, "real")
    # Networks divide by the number of rows, NIST by the degrees of freedom.
    factor = math.sqrt(len(problem.y) / (len(problem.y) - len(problem.estimates)))
    if not problem.intercept:
        nodes = {"y": sf.GLM("gaussian", fit_intercept=False)}
        node = sf.BayesianNetwork({"y": list(problem.columns)}, nodes=nodes, states=real).fit(rows).node("y")
        return Answer(node.parameters(), np.array(node.standard_errors_), factor * math.sqrt(node.dispersion))
    node = sf.BayesianNetwork({"y": list(problem.columns)}, states=real).fit(rows).node("y")
    return Answer(node.weights_, factor * node.standard_errors_, factor * math.sqrt(node.variance_))


def by_glm(problem: Regression) -> Answer:
    """A Gaussian GLM."""
    model = sf.GLM("gaussian", fit_intercept=problem.intercept).fit(problem.columns, problem.y)
    return Answer(np.array(model.parameters_), np.array(model.standard_errors_), math.sqrt(model.dispersion_))


def by_statsmodels(problem: Regression, method: str = "pinv") -> Answer | None:
    """`OLS` of statsmodels, by the pseudo-inverse unless said; None where it is not installed."""
    if importlib.util.find_spec("statsmodels") is None:
        return None
    import statsmodels.api as sm

    found = sm.OLS(problem.y, problem.design).fit(method=method)
    return Answer(found.params, found.bse, math.sqrt(found.scale))


def by_numpy(problem: Regression) -> Answer:
    """`lstsq` of NumPy, which gives coefficients alone."""
    return Answer(np.asarray(np.linalg.lstsq(problem.design, problem.y)[0], dtype=np.float64))


def by_r(problem: Regression) -> Answer | None:
    """`lm` of R with `tol = 1e-14`, as its own tolerance leaves out a power of Filip; None where there is no R."""
    program = shutil.which("Rscript")
    if program is None:
        return None
    table = "\n".join(",".join(map(repr, map(float, row))) for row in np.column_stack([problem.design, problem.y]))
    code = (
        "x <- as.matrix(read.csv(file('stdin'), header = FALSE)); p <- ncol(x); "
        "m <- summary(lm(x[, p] ~ 0 + x[, -p], tol = 1e-14)); "
        "cat(formatC(c(m$sigma, m$coefficients[, 1:2]), digits = 17, format = 'e'))"
    )
    ran = subprocess.run([program, "-e", code], input=table, capture_output=True, text=True, check=True)
    sigma, *rest = map(float, ran.stdout.split())
    half = len(rest) // 2
    return Answer(np.array(rest[:half]), np.array(rest[half:]), sigma)


def exactly(problem: Regression) -> Answer:
    """The coefficients in rational arithmetic: what the columns, rounded to float64, have to say."""
    rows = [[Fraction(float(value)) for value in row] for row in np.column_stack([problem.design, problem.y])]
    p = len(rows[0]) - 1
    left = [[sum((row[i] * row[j] for row in rows), Fraction()) for j in range(p + 1)] for i in range(p)]
    for i in range(p):
        for k in range(p):
            factor = left[k][i] / left[i][i]
            if k != i:
                left[k] = [a - factor * b for a, b in zip(left[k], left[i], strict=True)]
    return Answer(np.array([float(left[i][p] / left[i][i]) for i in range(p)]))


OURS: dict[str, Callable[[Regression], Answer | None]] = {"BayesianNetwork": by_network, "GLM": by_glm}
OTHERS: dict[str, Callable[[Regression], Answer | None]] = {
    "statsmodels": by_statsmodels,
    "statsmodels QR": lambda problem: by_statsmodels(problem, "qr"),
    "NumPy lstsq": by_numpy,
    "R lm": by_r,
    "exact": exactly,
}


def answer(program: Callable[[Regression], Answer | None], problem: Regression) -> Answer | None:
    """What a program says, without its warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return program(problem)


# --------------------------------------------------------------------------------------------------------------------
# Analyses of variance and samples
# --------------------------------------------------------------------------------------------------------------------


def variances_by_network(problem: Anova) -> tuple[float, float]:
    """F and the residual standard deviation: a node with a variance for each group, and a normal law of all rows."""
    y = problem.y
    node = sf.BayesianNetwork({"y": ["group"]}).fit({"group": problem.labels, "y": y}).node("y")
    within = float(node.size @ node.variance)
    return _f(within, len(y) * float(sf.Normal().fit(y).variance_), len(y), len(problem.values))


def variances_by_glm(problem: Anova) -> tuple[float, float]:
    """The same from a Gaussian GLM with a factor."""
    model = sf.GLM("gaussian", categorical=["group"]).fit({"group": problem.labels}, problem.y)
    return _f(float(model.deviance_), float(model.null_deviance_), len(problem.y), len(problem.values))


def variances_by_scipy(problem: Anova) -> tuple[float, None]:
    """F by `f_oneway`."""
    from scipy.stats import f_oneway

    return float(f_oneway(*([float(word) for word in group] for group in problem.values)).statistic), None


def variances_exactly(problem: Anova) -> tuple[float, float]:
    """Both in rational arithmetic, of the numbers as float64 holds them."""
    groups = [[Fraction(float(word)) for word in group] for group in problem.values]
    every = [value for group in groups for value in group]
    within = sum((_squares(group) for group in groups), Fraction())
    return _f(within, _squares(every), len(every), len(groups))


def _squares(values: list[Fraction]) -> Fraction:
    mean = sum(values, Fraction()) / len(values)
    return sum(((value - mean) ** 2 for value in values), Fraction())


def _f(within: Any, total: Any, n: int, k: int) -> tuple[float, float]:
    return float((total - within) / (k - 1) / (within / (n - k))), math.sqrt(within / (n - k))


ANOVA_PROGRAMS: dict[str, Callable[[Anova], tuple[float, float | None]]] = {
    "BayesianNetwork": variances_by_network,
    "GLM": variances_by_glm,
    "SciPy f_oneway": variances_by_scipy,
    "exact": variances_exactly,
}


def _sample_by_normal(y: Floats) -> tuple[float, float]:
    law = sf.Normal().fit(y)
    return float(law.mean_), math.sqrt(float(law.variance_) * len(y) / (len(y) - 1))


def _sample_by_network(y: Floats) -> tuple[float, float]:
    node = sf.BayesianNetwork({"y": []}, states={"y": "real"}).fit({"y": y}).node("y")
    return float(node.weights_[0]), math.sqrt(node.variance_ * len(y) / (len(y) - 1))


def _sample_exactly(y: Floats) -> tuple[float, float]:
    values = [Fraction(float(value)) for value in y]
    return float(sum(values, Fraction()) / len(values)), math.sqrt(_squares(values) / (len(values) - 1))


SAMPLE_PROGRAMS: dict[str, Callable[[Floats], tuple[float, float]]] = {
    "Normal": _sample_by_normal,
    "BayesianNetwork": _sample_by_network,
    "NumPy": lambda y: (float(np.mean(y)), float(np.std(y, ddof=1))),
    "exact": _sample_exactly,
}


def sample_digits(program: Callable[[Floats], tuple[float, float]], problem: Sample) -> tuple[float, float]:
    """Digits of the mean and of the standard deviation."""
    mean, deviation = program(problem.y)
    return digits(mean, float(problem.mean)), digits(deviation, float(problem.deviation))


def anova_digits(program: Callable[[Anova], tuple[float, float | None]], problem: Anova) -> tuple[float, float | None]:
    """Digits of F and of the residual standard deviation."""
    f, residual = program(problem)
    return digits(f, float(problem.f)), None if residual is None else digits(residual, float(problem.residual))
