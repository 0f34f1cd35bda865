"""Student's t as what states emit: each step is normal with a precision of its own, which is hidden too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.checks import is_real
from suffice.errors import DataError, FloorWarning, OptionError, Remark
from suffice.families.base import Distribution
from suffice.families.student import StudentT
from suffice.families.student_density import log_density, precisions
from suffice.families.student_fit import LARGEST, SMALLEST
from suffice.models.hidden_markov.emissions.contract import UNUSED, Data, Emission, Parameters, Statistics
from suffice.models.hidden_markov.emissions.moments import MatchedPart, without_pull
from suffice.models.hidden_markov.emissions.reals import as_reals, called, centre_and_scale, in_range
from suffice.models.hidden_markov.emissions.registry import Columns, EmissionOptions

#: Degrees of freedom and scale, in standard deviations, of a state that a guess of its steps begins with.
_DF, _SCALE = 5.0, 0.8


@dataclass(frozen=True)
class StudentTEmission(Emission):
    """Rows (df, location, scale) of parameters; `centre` and `unit` are mean and standard deviation of all steps.

    With the precision u of a step expected at the parameters (see `families.student_fit`) the complete log-likelihood
    of a state is a sum of u, u x, u x^2 and log u: statistics that add up, wherever the steps are. No scale falls below
    the root of `floor` units, and no degrees of freedom below 0.2, where the likelihood has no bound.
    """

    size: int
    centre: float
    unit: float
    floor: float = 0.0
    title: Any = None

    kinds: ClassVar[Mapping[str, str]] = {"parameters": "real"}

    @property
    def _least(self) -> float:
        return self.unit * float(np.sqrt(self.floor))

    # -- data --------------------------------------------------------------------------------------------------------

    def read(self, columns: Sequence[NDArray[Any]]) -> Data:
        """Values (steps,), NaN for a missing one."""
        if len(columns) != 1:
            raise DataError(f"The data have {len(columns)} columns; Student's t describes one.")
        return (in_range(as_reals(columns[0], self.title), self.title),)

    def in_closed_form(self, data: Data) -> bool:
        """Never: the precision of a step is hidden."""
        return False

    # -- where EM begins ---------------------------------------------------------------------------------------------

    def points(self, data: Data) -> Floats:
        """As they are."""
        return np.asarray(data[0][:, None])

    def start(self, totals: Statistics, rng: np.random.Generator) -> Parameters:
        """One about the mean of all steps, several at random about it."""
        rows = np.repeat([[_DF, self.centre, _SCALE * self.unit]], self.size, axis=0)
        if self.size > 1:
            rows[:, 1] += self.unit * rng.standard_normal(self.size)
        return {"parameters": rows}

    def guessed(self, data: Data, shares: Floats, ranks: Floats, before: Parameters) -> Statistics:
        """Sums with all precisions 1."""
        return self._sums(data, shares, np.ones_like(shares), np.zeros_like(shares))

    def from_guess(self, statistics: Statistics, before: Parameters) -> Parameters:
        """Mean and standard deviation of the steps of each state."""
        rows = np.array(before["parameters"])
        used = statistics["weight"] > UNUSED
        weight = np.where(used, statistics["weight"], 1.0)
        mean = statistics["first"] / weight
        deviation = np.sqrt(np.maximum(statistics["second"] / weight - mean**2, 0.0))
        rows[used, 1] = (self.centre + self.unit * mean)[used]
        rows[used, 2] = np.maximum(_SCALE * self.unit * deviation, max(self._least, 1e-3 * self.unit))[used]
        return {"parameters": rows}

    # -- expectation -------------------------------------------------------------------------------------------------

    def log_densities(self, data: Data, parameters: Parameters) -> Floats:
        """Log densities (steps, size); 0 for a missing value."""
        df, location, scale = parameters["parameters"].T
        values = data[0]
        z = (np.where(np.isnan(values), self.centre, values)[:, None] - location) / scale
        logs = log_density(np.abs(z), df) - np.log(scale)
        return np.asarray(np.where(np.isnan(values)[:, None], 0.0, logs))

    def statistics(self, data: Data, weights: Floats, parameters: Parameters) -> Statistics:
        """Weight, and the sums (size,) of u, u x, u x^2 and log u, x in units about the centre."""
        df, location, scale = parameters["parameters"].T
        u, logs = precisions((np.nan_to_num(data[0])[:, None] - location) / scale, df)
        return self._sums(data, weights, u, logs)

    def _sums(self, data: Data, weights: Floats, u: Floats, logs: Floats) -> Statistics:
        seen = ~np.isnan(data[0])
        x, shares = (data[0][seen] - self.centre) / self.unit, weights[seen]
        heavy = shares * u[seen]
        return {
            "weight": shares.sum(axis=0),
            "precision": heavy.sum(axis=0),
            "first": x @ heavy,
            "second": (x * x) @ heavy,
            "logs": (shares * logs[seen]).sum(axis=0),
        }

    # -- maximisation ------------------------------------------------------------------------------------------------

    def expected(self, statistics: Statistics, parameters: Parameters) -> Floats:
        """Of x given u, normal, and of u, gamma, without ``-(log 2 pi + log u) / 2``, which no parameter enters."""
        from scipy.special import gammaln

        df, location, scale = parameters["parameters"].T
        mean, deviation = (location - self.centre) / self.unit, scale / self.unit
        n, u = statistics["weight"], statistics["precision"]
        squares = statistics["second"] - 2 * mean * statistics["first"] + mean**2 * u
        normal = -n * np.log(scale) - 0.5 * squares / deviation**2
        gamma = n * (0.5 * df * np.log(0.5 * df) - gammaln(0.5 * df)) + 0.5 * df * (statistics["logs"] - u)
        return np.asarray(normal + gamma)

    def maximise(self, statistics: Statistics, parameters: Parameters) -> Parameters:
        """Weighted mean and scatter in closed form; degrees of freedom by the root of their score."""
        rows = np.array(parameters["parameters"])
        for state in np.flatnonzero(statistics["weight"] > UNUSED).tolist():
            n, u, first, second, logs = (
                float(statistics[name][state]) for name in ("weight", "precision", "first", "second", "logs")
            )
            mean = first / u
            variance = max(second - mean * first, 0.0) / n
            rows[state, 1] = self.centre + self.unit * mean
            rows[state, 2] = max(self.unit * np.sqrt(variance), self._least, 1e-150)
            rows[state, 0] = most_likely_df((logs - u) / n)
        return {"parameters": rows}

    @property
    def without_prior(self) -> tuple[str, ...]:
        """It has none."""
        return ("StudentT",)

    def notes(self, parameters: Parameters, statistics: Statistics, names: Sequence[str]) -> tuple[str, ...]:
        """Which states lie on the floor."""
        held = f"held at its floor, variance_floor={self.floor:g} of the variance of {called(self.title).lower()}"
        return tuple(
            Remark(f"the StudentT distribution of {name} is {held}", FloorWarning)
            for name, narrow in zip(names, self._is_narrow(parameters), strict=True)
            if narrow
        )

    def _is_narrow(self, parameters: Parameters) -> NDArray[np.bool_]:
        return np.asarray(parameters["parameters"][:, 2] <= self._least * (1 + 1e-6))

    def collapsed(self, parameters: Parameters, names: Sequence[str]) -> tuple[str, ...]:
        """Scales at their floor, and degrees of freedom at an end."""
        rows, narrow = parameters["parameters"], self._is_narrow(parameters)
        column = "the observations" if self.title is None else repr(self.title)
        spread = [f"spread of {column} in {name} -> 0" for name, one in zip(names, narrow, strict=True) if one]
        edges = [
            f"df of {name} -> {'0' if row[0] < 1 else 'infinity: a normal distribution'}"
            for name, row in zip(names, rows, strict=True)
            if row[0] <= SMALLEST * (1 + 1e-6) or row[0] >= LARGEST * (1 - 1e-6)
        ]
        return (*spread, *edges)

    def moments(self, statistics: Statistics, parameters: Parameters, names: Sequence[str]) -> Iterator[MatchedPart]:
        """Weighted residuals, and their squares: u z has the mean 0 and u z^2 the mean 1."""
        _, location, scale = parameters["parameters"].T
        mean, deviation = (location - self.centre) / self.unit, scale / self.unit
        weight, u = statistics["weight"], statistics["precision"]
        total = float(weight.sum())
        for state in np.flatnonzero(weight > UNUSED).tolist():
            away = (statistics["first"][state] - mean[state] * u[state]) / deviation[state]
            squares = statistics["second"][state] - 2 * mean[state] * statistics["first"][state]
            squares = (squares + mean[state] ** 2 * u[state]) / deviation[state] ** 2
            titles = [f"{names[state]}: u z", f"{names[state]}: u z^2"]
            share = float(weight[state]) / total
            yield without_pull(titles, np.array([away, squares]) / total, np.array([0.0, share]))

    # -- parameters as one vector ------------------------------------------------------------------------------------

    def vector(self, parameters: Parameters) -> Floats:
        """Locations in units, logarithms of scales, and one over the degrees of freedom: many of them are all alike."""
        df, location, scale = parameters["parameters"].T
        return np.concatenate([1 / df, (location - self.centre) / self.unit, np.log(scale / self.unit)])

    def at(self, vector: Floats, like: Parameters) -> Parameters:
        """Back from the units."""
        df, location, scale = vector.reshape(3, self.size)
        with np.errstate(over="ignore", divide="ignore"):
            rows = [1 / df, self.centre + self.unit * location, self.unit * np.exp(scale)]
        return {"parameters": np.stack(rows, axis=1)}

    def inside(self, parameters: Parameters) -> bool:
        """Degrees of freedom within their ends, and no scale below its floor."""
        df, location, scale = parameters["parameters"].T
        within = (df >= SMALLEST * (1 - 1e-9)) & (df <= LARGEST * (1 + 1e-9)) & (scale >= self._least * (1 - 1e-9))
        return bool((within & (scale > 0) & np.isfinite(location) & np.isfinite(scale)).all())

    @property
    def n_free(self) -> NDArray[np.int64]:
        """Three."""
        return np.full(self.size, 3, np.int64)

    # -- distributions -----------------------------------------------------------------------------------------------

    def distributions(self, parameters: Parameters) -> list[Any]:
        """The distributions, given."""
        return [StudentT(*row) for row in parameters["parameters"].tolist()]

    def parameters_of(self, distributions: Any) -> Parameters:
        """From distributions, or rows of df, location and scale."""
        rows: Any = distributions
        if isinstance(distributions, Sequence) and all(isinstance(one, Distribution) for one in distributions):
            if not all(isinstance(one, StudentT) for one in distributions):
                raise OptionError(f"emissions is {distributions!r}; expected StudentT distributions.")
            rows = [list(one.parameters_.values()) for one in distributions]
        try:
            table = np.array(rows, dtype=np.float64)
        except (TypeError, ValueError):
            raise OptionError(f"emissions is {distributions!r}; expected {self.size} StudentT distributions.") from None
        if table.shape != (self.size, 3) or not (np.isfinite(table).all() and (table[:, [0, 2]] > 0).all()):
            raise OptionError(
                f"emissions is {distributions!r}; expected {self.size} StudentT distributions, or rows of df, location "
                "and scale."
            )
        return {"parameters": table}

    def check_start(self, given: Parameters) -> None:
        """Within the ends, and above the floor."""
        if not self.inside(given):
            raise OptionError(
                f"emissions holds a StudentT below its floor, {self.floor:g} of the variance of the column, or with "
                f"degrees of freedom beyond {SMALLEST:g} to {LARGEST:g}. Begin with a wider one, or choose a smaller "
                "variance_floor."
            )

    def draw(self, codes: NDArray[np.intp], parameters: Parameters, rng: np.random.Generator) -> list[NDArray[Any]]:
        """A value of the state of each step."""
        df, location, scale = parameters["parameters"][codes].T
        return [location + scale * rng.standard_t(df)]

    def describe(self) -> dict[str, Any]:
        """Mean and standard deviation of all steps."""
        return {"centre": np.array([self.centre]), "scale": np.array([self.unit])}


def student_emission(
    distribution: StudentT, settings: EmissionOptions, columns: Columns, names: Any, known: Mapping[str, Any]
) -> StudentTEmission:
    """The emission of one column; known: its centre and scale, where these are settled."""
    if distribution.get_params(deep=False)["df"] is not None:
        raise OptionError(
            f"emission is {distribution!r}, which is given. Give StudentT(), and start values by emissions=, with "
            "fixed=['emissions'] to keep them."
        )
    if settings.prior is not None and not is_real(settings.prior):
        raise OptionError(f"The prior of emissions is {settings.prior!r}; StudentT takes none.")
    title = None if names is None else names[0]
    if known:
        centre, scale = np.asarray(known["centre"]), np.asarray(known["scale"])
    else:
        values = as_reals(columns[0], title)
        centre, scale = centre_and_scale(values[:, None], settings.weighted(len(values)), names)
    return StudentTEmission(settings.size, float(centre[0]), float(scale[0]), float(settings.floor), title)


def most_likely_df(excess: float) -> float:
    """The degrees of freedom at a mean of log u - u: ``1 + log(df / 2) - psi(df / 2) + excess = 0``, which falls."""
    from scipy.optimize import brentq
    from scipy.special import psi

    def score(log_df: float) -> float:
        half = 0.5 * np.exp(log_df)
        return float(1.0 + np.log(half) - psi(half) + excess)

    low, high = float(np.log(SMALLEST)), float(np.log(LARGEST))
    if score(high) >= 0:
        return LARGEST
    return SMALLEST if score(low) <= 0 else float(np.exp(brentq(score, low, high, xtol=1e-13)))
