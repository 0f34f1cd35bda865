"""Regressions as what states emit: the first column follows the others, by a generalised linear model of each state.

With weights w, means m = f(X b) and a canonical link a step of Fisher's scoring from b needs ``H = X' W X`` and
``t = H b + X' w (y - m)``: sums over steps, which EM expects at b. The expected log-likelihood has the slope t - H b
and the curvature -H there, and is that quadratic itself where the response is normal.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from suffice.array_types import Floats
from suffice.checks import is_real
from suffice.errors import DataError, OptionError, listing
from suffice.families.base import Distribution, Seed, as_float, as_floats, as_numbers
from suffice.models.glm.declaration import GLM
from suffice.models.hidden_markov.emissions.contract import UNUSED, Data, Emission, Parameters, Statistics
from suffice.models.hidden_markov.emissions.moments import MatchedPart, without_pull
from suffice.models.hidden_markov.emissions.reals import StepError, as_reals, called, in_range
from suffice.models.hidden_markov.emissions.registry import Columns, EmissionOptions

FAMILIES = ("gaussian", "poisson", "binomial")
_LOG_2PI = float(np.log(2 * np.pi))


class StateRegression(Distribution):
    """The regression of a state: the first of the columns given the others.

    >>> StateRegression("poisson", 0.5, [1.0]).predict([[0.0], [1.0]]).round(3)
    array([1.649, 4.482])
    """

    parameter_names = ("intercept", "coefficients", "variance")
    intercept_: float
    coefficients_: Floats
    variance_: float

    def __init__(self, family: str, intercept: float, coefficients: ArrayLike, variance: float = 1.0) -> None:
        """See the class."""
        super().__init__(family=family, intercept=intercept, coefficients=coefficients, variance=variance)

    def _check(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        if self._options["family"] not in FAMILIES:
            raise OptionError(f"family is {self._options['family']!r}; expected one of {listing(FAMILIES)}.")
        return {
            "intercept": as_float(parameters["intercept"], "intercept"),
            "coefficients": np.atleast_1d(as_floats(parameters["coefficients"], "coefficients")),
            "variance": as_float(parameters["variance"], "variance", above=0),
        }

    @property
    def row(self) -> Floats:
        """Intercept and coefficients."""
        return np.append(self.intercept_, self.coefficients_)

    def predict(self, covariates: ArrayLike) -> Floats:
        """The mean of the response at covariates (n, p)."""
        rows = np.atleast_2d(as_numbers(covariates))
        return mean_of(self._options["family"], self.intercept_ + rows @ self.coefficients_)

    def log_prob(self, x: ArrayLike) -> Floats:
        """Log density of rows (n, 1 + p): the response, then the covariates."""
        rows = np.atleast_2d(as_numbers(x))
        linear = self.intercept_ + rows[:, 1:] @ self.coefficients_
        return log_density(self._options["family"], rows[:, 0], linear, self.variance_)

    def sample(self, n: int = 1, random_state: Seed = None) -> Floats:
        """Not without covariates."""
        raise no_draws()


@dataclass(frozen=True)
class RegressionEmission(Emission):
    """Regressions of a `family`: intercepts and coefficients (size, p + 1), and variances (size, 1) where it is normal.

    `reach` (p + 1,) are the largest sizes of the columns of the design, `unit` is the standard deviation of the
    response and `level` its mean. Without `intercept` the first coefficient stays 0.
    """

    size: int
    family: str
    reach: Floats
    level: float
    unit: float
    floor: float = 0.0
    intercept: bool = True
    titles: tuple[Any, ...] | None = None

    @property
    def kinds(self) -> Mapping[str, str]:  # type: ignore[override]
        """Numbers."""
        return {"coefficients": "real"} | ({"variances": "real"} if self.family == "gaussian" else {})

    @property
    def known(self) -> Mapping[str, tuple[int, ...]]:
        """An intercept that is left out."""
        return {} if self.intercept else {"coefficients": (0,)}

    @property
    def width(self) -> int:
        """The response and the covariates."""
        return len(self.reach)

    @property
    def n_arrays(self) -> int:
        """Response and design."""
        return 2

    # -- data --------------------------------------------------------------------------------------------------------

    def read(self, columns: Sequence[NDArray[Any]]) -> Data:
        """The response (steps,), NaN where it is missing, and the design (steps, p + 1)."""
        if len(columns) != self.width:
            raise DataError(f"The data have {len(columns)} columns; expected {self.width}: a response and covariates.")
        return read_regression(self.family, columns, self.titles)

    def in_closed_form(self, data: Data) -> bool:
        """Never: one step of scoring follows another."""
        return False

    # -- where EM begins ---------------------------------------------------------------------------------------------

    def points(self, data: Data) -> Floats:
        """The response."""
        return np.asarray(data[0][:, None])

    def keys(self, data: Data) -> Data:
        """Both."""
        return data

    def start(self, totals: Statistics, rng: np.random.Generator) -> Parameters:
        """The mean of all steps, whatever the covariates."""
        rows = np.zeros((self.size, self.width))
        if self.intercept:
            rows[:, 0] = link_of(self.family, np.array([self.level]))[0]
            if self.size > 1:
                rows[:, 0] += 0.1 * rng.standard_normal(self.size)
        variances = {"variances": np.full((self.size, 1), self.unit**2)} if self.family == "gaussian" else {}
        return {"coefficients": rows, **variances}

    # -- expectation -------------------------------------------------------------------------------------------------

    def log_densities(self, data: Data, parameters: Parameters) -> Floats:
        """Log densities of the response (steps, size); 0 where it is missing."""
        response, design = data
        missing = np.isnan(response)
        variances = parameters["variances"][:, 0] if "variances" in parameters else 1.0
        linear = design @ parameters["coefficients"].T
        logs = log_density(self.family, np.where(missing, 0.0, response)[:, None], linear, variances)
        return np.where(missing[:, None], 0.0, logs)

    def statistics(self, data: Data, weights: Floats, parameters: Parameters) -> Statistics:
        """Weight (size,), target (size, p + 1), curvature (size, p + 1, p + 1), and squares of the response (size,)."""
        response, design = data
        seen = ~np.isnan(response)
        y, x, shares = response[seen], design[seen], weights[seen]
        linear = x @ parameters["coefficients"].T
        with np.errstate(over="ignore"):
            mean = mean_of(self.family, linear)
        spread = shares * spread_of(self.family, mean)
        curvature = np.stack([x.T @ (column[:, None] * x) for column in spread.T])
        rest = (shares * (y[:, None] - mean)).T @ x
        target = np.einsum("kij,kj->ki", curvature, parameters["coefficients"]) + rest
        squares = shares.T @ (y * y)
        return {"weight": shares.sum(axis=0), "target": target, "curvature": curvature, "squares": squares}

    # -- maximisation ------------------------------------------------------------------------------------------------

    def expected(self, statistics: Statistics, parameters: Parameters) -> Floats:
        """The quadratic in the coefficients that the expected log-likelihood is, or touches."""
        rows = parameters["coefficients"]
        bent = np.einsum("ki,kij,kj->k", rows, statistics["curvature"], rows)
        value = (statistics["target"] * rows).sum(axis=1) - 0.5 * bent
        if self.family != "gaussian":
            return np.asarray(value)
        variance = parameters["variances"][:, 0]
        residual = statistics["squares"] - 2.0 * value
        return np.asarray(-0.5 * (statistics["weight"] * (_LOG_2PI + np.log(variance)) + residual / variance))

    def maximise(self, statistics: Statistics, parameters: Parameters) -> Parameters:
        """A step of scoring, which is the maximum of a normal response, and never lowers any.

        Within a distance r of linear predictors neither the Poisson nor the binomial curvature grows by more than
        exp(r), so a share s of the step raises the expected log-likelihood where s exp(s r) is at most 1.
        """
        from scipy.special import lambertw

        rows = np.array(parameters["coefficients"])
        free = slice(0 if self.intercept else 1, None)
        for state in np.flatnonzero(statistics["weight"] > UNUSED).tolist():
            curvature = statistics["curvature"][state][free, free]
            slope = statistics["target"][state][free] - curvature @ rows[state, free]
            scale = np.sqrt(np.maximum(np.diag(curvature), 1e-300))
            solved = np.linalg.lstsq(curvature / np.outer(scale, scale), slope / scale, rcond=1e-12)[0]
            step = solved / scale
            away = float(self.reach[free] @ np.abs(step))
            share = 1.0 if self.family == "gaussian" or away < 1e-8 else float(lambertw(away).real) / away
            rows[state, free] += share * step
        if self.family != "gaussian":
            return {"coefficients": rows}
        bent = np.einsum("ki,kij,kj->k", rows, statistics["curvature"], rows)
        residual = statistics["squares"] - 2.0 * (statistics["target"] * rows).sum(axis=1) + bent
        used = statistics["weight"] > UNUSED
        weight = np.where(used, statistics["weight"], 1.0)
        least = max(self.floor, 1e-300) * self.unit**2
        variances = np.where(used, np.maximum(residual / weight, least), parameters["variances"][:, 0])
        return {"coefficients": rows, "variances": variances[:, None]}

    @property
    def without_prior(self) -> tuple[str, ...]:
        """It has none."""
        return (f"GLM({self.family!r})",)

    def collapsed(self, parameters: Parameters, names: Sequence[str]) -> tuple[str, ...]:
        """Variances at their floor."""
        if self.family != "gaussian":
            return ()
        least = self.floor * self.unit**2 * (1 + 1e-6)
        pairs = zip(names, parameters["variances"][:, 0].tolist(), strict=True)
        return tuple(f"spread of the response in {name} -> 0" for name, variance in pairs if variance <= least)

    def moments(self, statistics: Statistics, parameters: Parameters, names: Sequence[str]) -> Iterator[MatchedPart]:
        """Sums of the design times the response, and times its mean."""
        total = float(statistics["weight"].sum())
        for state in np.flatnonzero(statistics["weight"] > UNUSED).tolist():
            expected = statistics["curvature"][state] @ parameters["coefficients"][state]
            titles = [f"{names[state]}: {title}" for title in self._terms]
            yield without_pull(titles, statistics["target"][state] / total, expected / total)

    @property
    def _terms(self) -> list[str]:
        given = range(1, self.width) if self.titles is None else self.titles[1:]
        return ["intercept", *map(str, given)]

    # -- parameters as one vector ------------------------------------------------------------------------------------

    def vector(self, parameters: Parameters) -> Floats:
        """What each coefficient makes of the largest value of its column, and logarithms of variances."""
        parts = [(parameters["coefficients"] * self.reach).ravel() / (self.unit if self.family == "gaussian" else 1.0)]
        if self.family == "gaussian":
            parts.append(np.log(parameters["variances"][:, 0] / self.unit**2))
        return np.concatenate(parts)

    def at(self, vector: Floats, like: Parameters) -> Parameters:
        """Back from the units."""
        count = self.size * self.width
        rows = vector[:count].reshape(self.size, self.width) / self.reach
        if self.family != "gaussian":
            return {"coefficients": rows}
        with np.errstate(over="ignore"):
            variances = self.unit**2 * np.exp(vector[count:])
        return {"coefficients": rows * self.unit, "variances": variances[:, None]}

    def inside(self, parameters: Parameters) -> bool:
        """Finite coefficients, variances above 0 and their floor."""
        if not np.isfinite(parameters["coefficients"]).all():
            return False
        if "variances" not in parameters:
            return True
        variances = parameters["variances"]
        return bool(((variances > 0) & (variances >= self.floor * self.unit**2 * (1 - 1e-9))).all())

    @property
    def n_free(self) -> NDArray[np.int64]:
        """Coefficients, and the variance."""
        count = self.width - (not self.intercept) + (self.family == "gaussian")
        return np.full(self.size, count, np.int64)

    # -- distributions -----------------------------------------------------------------------------------------------

    def distributions(self, parameters: Parameters) -> list[Any]:
        """A regression for each state."""
        rows = parameters["coefficients"].tolist()
        variances = parameters["variances"][:, 0].tolist() if "variances" in parameters else [1.0] * self.size
        return [StateRegression(self.family, row[0], row[1:], v) for row, v in zip(rows, variances, strict=True)]

    def parameters_of(self, distributions: Any) -> Parameters:
        """From regressions, such as those of a fit, or rows of an intercept and coefficients."""
        variances = np.full((self.size, 1), self.unit**2)
        rows: Any = distributions
        if isinstance(distributions, Sequence) and all(isinstance(one, StateRegression) for one in distributions):
            rows = [one.row for one in distributions]
            variances = np.array([[one.variance_] for one in distributions])
        try:
            table = np.array(rows, dtype=np.float64)
        except (TypeError, ValueError):
            table = np.zeros(0)
        if table.shape != (self.size, self.width) or len(variances) != self.size or not np.isfinite(table).all():
            raise OptionError(
                f"emissions is {distributions!r}; expected {self.size} rows of {self.width} numbers, an intercept and "
                "coefficients, or the emissions_ of a fit."
            )
        if not self.intercept and table[:, 0].any():
            raise OptionError("emissions has intercepts, and the GLM has fit_intercept=False. Give 0 in their place.")
        return {"coefficients": table} | ({"variances": variances} if self.family == "gaussian" else {})

    def draw(self, codes: NDArray[np.intp], parameters: Parameters, rng: np.random.Generator) -> list[NDArray[Any]]:
        """Not without covariates."""
        raise no_draws()

    def describe(self) -> dict[str, Any]:
        """What was seen of the columns."""
        return {"centre": self.reach, "level": self.level, "unit": self.unit}


def regression_emission(
    distribution: GLM, settings: EmissionOptions, columns: Columns, names: Any, known: Mapping[str, Any]
) -> RegressionEmission:
    """The emission of a response and its covariates; known: what is settled about the columns."""
    options = distribution.get_params(deep=False)
    family = str(getattr(distribution._task().options.family, "name", ""))
    if family not in FAMILIES:
        raise OptionError(
            f"emission is {distribution!r}; the regressions of states are of the families {listing(FAMILIES)}."
        )
    idle = sorted(distribution._changed().keys() - {"family", "fit_intercept"})
    if idle:
        raise OptionError(
            f"emission is {distribution!r}; of a state's GLM only family= and fit_intercept= are read, and "
            f"{listing([f'{name}=' for name in idle])} would have no effect. Leave it out."
        )
    if settings.prior is not None and not is_real(settings.prior):
        raise OptionError(f"The prior of emissions is {settings.prior!r}; the regressions of states take none.")
    titles = None if names is None else tuple(names)
    rest = (float(settings.floor), bool(options["fit_intercept"]), titles)
    if known:
        reach = np.asarray(known["centre"], np.float64)
        return RegressionEmission(settings.size, family, reach, float(known["level"]), float(known["unit"]), *rest)
    if len(columns) < 2:
        raise DataError(
            f"The data have {len(columns)} column; a GLM as emission needs a response and, after it, covariates."
        )
    response, design = read_regression(family, columns, titles)
    seen = ~np.isnan(response)
    if not seen.any():
        raise DataError(f"{called(None if titles is None else titles[0])} hold missing values alone.")
    reach = np.abs(design).max(axis=0)
    weights = settings.weighted(len(response))[seen]
    level = float(weights @ response[seen] / weights.sum())
    unit = float(np.sqrt(weights @ (response[seen] - level) ** 2 / weights.sum())) or 1.0
    return RegressionEmission(settings.size, family, np.where(reach > 0, reach, 1.0), level, unit, *rest)


def read_regression(
    family: str, columns: Sequence[NDArray[Any]], titles: Sequence[Any] | None
) -> tuple[Floats, Floats]:
    """Response (steps,) and design (steps, p + 1); a covariate that is missing is an error."""
    names = [None] * len(columns) if titles is None else list(titles)
    values = [in_range(as_reals(column, name), name) for column, name in zip(columns, names, strict=True)]
    response, covariates = values[0], values[1:]
    for covariate, name in zip(covariates, names[1:], strict=True):
        if np.isnan(covariate).any():
            step = int(np.argmax(np.isnan(covariate)))
            title = "A covariate" if name is None else f"The covariate {name!r}"
            raise StepError(step, f"{title} is a missing value", "; the response alone may be missing. Fill it in.")
    whole = response == np.floor(response)
    wrong = {
        "gaussian": np.zeros(len(response), bool),
        "poisson": ~np.isnan(response) & ~(whole & (response >= 0)),
        "binomial": ~np.isnan(response) & ~((response == 0) | (response == 1)),
    }[family]
    if wrong.any():
        step = int(np.argmax(wrong))
        expected = "counts" if family == "poisson" else "0 and 1"
        raise StepError(step, f"{called(names[0])}: {response[step]!r}", f"; a {family} response has {expected}.")
    return response, np.column_stack([np.ones(len(response)), *covariates])


def no_draws() -> OptionError:
    """The error where a response is to be drawn."""
    return OptionError(
        "What these states emit depends on covariates, of which a sample knows nothing: draw paths of states given "
        "sequences by sample_paths(sequences), and responses by emissions_[state].predict(covariates)."
    )


# -- the three families, with their canonical links --------------------------------------------------------------------


def mean_of(family: str, linear: Floats) -> Floats:
    """The mean at a linear predictor."""
    from scipy.special import expit

    return np.asarray(linear if family == "gaussian" else np.exp(linear) if family == "poisson" else expit(linear))


def spread_of(family: str, mean: Floats) -> Floats:
    """The variance at a mean, which is the slope of the mean in the linear predictor."""
    return np.ones_like(mean) if family == "gaussian" else mean if family == "poisson" else mean * (1.0 - mean)


def link_of(family: str, mean: Floats) -> Floats:
    """The linear predictor of a mean, kept off the edge."""
    if family == "gaussian":
        return mean
    if family == "poisson":
        return np.log(np.maximum(mean, 1e-3))
    share = np.clip(mean, 1e-3, 1.0 - 1e-3)
    return np.asarray(np.log(share / (1.0 - share)))


def log_density(family: str, response: Floats, linear: Floats, variance: Floats | float) -> Floats:
    """Log density of a response at a linear predictor."""
    from scipy.special import gammaln

    if family == "gaussian":
        return np.asarray(-0.5 * (_LOG_2PI + np.log(variance) + (response - linear) ** 2 / variance))
    if family == "poisson":
        with np.errstate(over="ignore"):
            return np.asarray(response * linear - np.exp(linear) - gammaln(response + 1))
    return np.asarray(response * linear - np.logaddexp(0.0, linear))
