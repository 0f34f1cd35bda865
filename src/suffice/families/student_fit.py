"""The fit of Student's t to a column: degrees of freedom, location and scale by Fisher's scoring.

Each value is normal with a precision of its own: x | u is Normal(location, scale^2 / u), u is Gamma(df / 2, df / 2).
Given x the precision has the mean (df + 1) / (df + z^2), z = (x - location) / scale: far values count little.

The likelihood has no largest value: it grows without bound where df and scale go to 0 together, about any one value.
What is found is the maximum of degrees of freedom of at least `SMALLEST`.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from suffice.array_types import Floats
from suffice.domain import Domain, Variable
from suffice.errors import EstimateError, ExistenceWarning, FileFormatError, Remark
from suffice.families.base import one_name, only_column, only_variable
from suffice.families.student_density import StudentTFormulas, precisions
from suffice.fitting.contract import Found, Judgement, Purpose
from suffice.fitting.control import Control, Outcome
from suffice.fitting.portrait import Portrait
from suffice.fitting.report import Certificate
from suffice.fitting.summaries import SummaryData, SummaryTask
from suffice.statistics import CompleteRows, Statistic, Summary

#: Degrees of freedom: at the largest the distribution is normal in all digits that rows can show.
SMALLEST, LARGEST = 0.2, 1e6
#: How near the smallest the end of a climb is on it; the largest logarithm of a scale in units of the column.
_NEAR, _MOST_LOG = 1.2, 100.0
#: Steps of differences of the judge, in standard deviations and logarithms.
_STEP = 1e-3


@dataclass(frozen=True)
class StudentTFitted:
    """Degrees of freedom, location and scale that were learned from the column of a name."""

    df: float
    location: float
    scale: float
    names: tuple[Hashable, ...]

    title = "StudentT"
    n_params = 3

    @property
    def parameters(self) -> dict[str, float]:
        """By name."""
        return {"df": self.df, "location": self.location, "scale": self.scale}

    def score_samples(self, rows: Any) -> Floats:
        """Log density of each row (n,)."""
        values = only_column(rows, self.title)
        return np.atleast_1d(StudentTFormulas(self.df, self.location, self.scale).log_prob(values))

    def log_likelihood(self, summary: Summary) -> float:
        """Sum over the rows of a summary, natural logarithm."""
        values, weights = _rows(summary)
        return float(weights @ StudentTFormulas(self.df, self.location, self.scale).log_prob(values))

    def portrait(self) -> Portrait:
        """What there is to see of it."""
        return Portrait(self.title, "family", n_params=lambda: self.n_params, parameters=lambda: dict(self.parameters))

    def to_dict(self) -> dict[str, Any]:
        """Plain data for a file."""
        return {**self.parameters, "names": list(self.names)}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> StudentTFitted:
        """Out of a file."""
        numbers = [plain[name] for name in ("df", "location", "scale")]
        if not all(isinstance(number, float) and math.isfinite(number) for number in numbers) or min(numbers[::2]) <= 0:
            raise FileFormatError(f"The StudentT in this file has the parameters {numbers}, which are none.")
        df, location, scale = numbers
        return cls(df, location, scale, tuple(plain["names"]))


@dataclass(frozen=True, eq=False)
class StudentTTask(SummaryTask[StudentTFitted]):
    """A column of numbers, of which every value is needed."""

    def required(
        self, columns: Sequence[Hashable], known: StudentTFitted | None, purpose: Purpose
    ) -> Mapping[Hashable, Variable | None]:
        """One column."""
        name = one_name(columns, "StudentT")
        return {name: Variable(name, "real")}

    def asked(self, domain: Domain, known: StudentTFitted | None, purpose: Purpose) -> tuple[Statistic, ...]:
        """The distinct values, with their weights."""
        return (CompleteRows(tuple(domain.names)),)

    def check(self, summary: Summary, known: StudentTFitted | None, purpose: Purpose) -> Summary:
        """A summary of one column."""
        only_variable(summary, "StudentT")
        return summary

    def problem(self, data: SummaryData, start: StudentTFitted | None) -> StudentTProblem:
        """The parameters of these values."""
        return StudentTProblem(data)


@dataclass(frozen=True, eq=False)
class StudentTProblem:
    """Values meet degrees of freedom, location and scale."""

    data: SummaryData

    def solve(self, control: Control) -> Found[StudentTFitted]:
        """Scoring in (location, log scale, log df), from the quartiles of the values."""
        values, weights = _rows(self.data.statistics)
        if not weights.sum() > 0:
            raise EstimateError("There are no rows, or all weights are 0: the maximum-likelihood StudentT needs data.")
        if values.min() == values.max():
            raise EstimateError(
                f"The column is constant ({float(values[0])!r}): the likelihood grows without bound as the scale "
                "falls. Student's t needs values that differ."
            )
        centre, unit = _centre(values, weights)
        scaled, share = (values - centre) / unit, weights / weights.sum()
        heavy = _is_heavy(scaled, share)
        start = np.array([0.0, math.log(0.7), math.log(4.0)] if heavy else [0.0, 0.0])
        outcome = _scoring(scaled, share, start, LARGEST, control)
        point = outcome.state.parameters
        df = math.exp(float(point[2])) if heavy else LARGEST
        if df < SMALLEST * _NEAR:
            # The likelihood rises to the least degrees of freedom, where it is climbed in the others.
            df, outcome = SMALLEST, _scoring(scaled, share, point[:2], SMALLEST, control)
            point = outcome.state.parameters
        location, scale = centre + unit * float(point[0]), unit * math.exp(float(point[1]))
        notes = tuple(
            Remark(f"{edge}: the estimate lies on the edge of the family", ExistenceWarning) for edge in _edge(df)
        )
        fitted = StudentTFitted(df, location, scale, tuple(self.data.statistics.domain.names))
        method = "Fisher's scoring on the log-likelihood"
        return Found(fitted, method, "maximum likelihood", outcome, (*self.data.notes, *notes))

    def judge(self, fitted: StudentTFitted) -> Judgement:
        """Slope and curvature of the log-likelihood by differences of log densities, which no step looks at."""
        values, weights = _rows(self.data.statistics)
        free = not _edge(fitted.df)
        here = np.array([0.0, math.log(fitted.scale), math.log(fitted.df)])

        def value(move: Floats) -> float:
            location = fitted.location + fitted.scale * float(move[0])
            point = here + move
            moved = StudentTFormulas(math.exp(point[2]), location, math.exp(point[1]))
            return float(weights @ moved.log_prob(values))

        size = 3 if free else 2
        steps, centre = _STEP * np.eye(3)[:size], value(np.zeros(3))
        sides = np.array([[value(sign * step) for sign in (1.0, -1.0)] for step in steps])
        wide = np.array([[value(2 * sign * step) for sign in (1.0, -1.0)] for step in steps])
        # Differences of the fourth order.
        slope = (8 * (sides[:, 0] - sides[:, 1]) - (wide[:, 0] - wide[:, 1])) / (12 * _STEP)
        curvature = np.empty((size, size))
        for i in range(size):
            for j in range(size):
                corners = [value(a * steps[i] + b * steps[j]) for a, b in ((1, 1), (1, -1), (-1, 1), (-1, -1))]
                curvature[i, j] = -(corners[0] - corners[1] - corners[2] + corners[3]) / (4 * _STEP**2)
        decrement = float(slope @ np.linalg.pinv(curvature, hermitian=True) @ slope)
        gap = math.sqrt(max(decrement, 0.0))
        directions = _edge(fitted.df)
        certificate = Certificate(
            gap,
            0.5 * gap * gap / float(weights.sum()),
            exists=False if directions else None,
            directions=directions,
            slope=float(np.abs(slope).max()),
            slope_unit="nats per standard deviation, or per unit of a logarithm",
        )
        return Judgement(centre, centre, certificate, gap=gap / math.sqrt(float(weights.sum())))

    def identity(self) -> Iterable[Any]:
        """The values."""
        return ("StudentT", *_rows(self.data.statistics))


def _scoring(scaled: Floats, share: Floats, start: Floats, fixed: float, control: Control) -> Outcome:
    """Scoring from a start in (location, log scale, log df), or in the first two at `fixed` degrees of freedom."""
    from suffice.solvers.newton import newton

    size = len(start)

    def function(point: Floats) -> tuple[float, Floats, Floats]:
        df = math.exp(point[2]) if size > 2 else fixed
        if not (SMALLEST <= df <= LARGEST and abs(point[1]) < _MOST_LOG):
            return -math.inf, np.zeros(size), np.eye(size)
        value, slope, information = scored(scaled, share, df, float(point[0]), math.exp(point[1]))
        return value, slope[:size], information[:size, :size]

    return newton(function, start, control)


def scored(values: Floats, share: Floats, df: float, location: float, scale: float) -> tuple[float, Floats, Floats]:
    """Mean log-likelihood, its slope and Fisher's information in (location, log scale, log df)."""
    from scipy.special import polygamma, psi

    z = (values - location) / scale
    u, _ = precisions(z, df)
    value = float(share @ StudentTFormulas(df, location, scale).log_prob(values))
    log_tail = np.log1p(z * z / df)
    of_df = 0.5 * (psi((df + 1) / 2) - psi(df / 2) - 1 / df) + share @ (0.5 * (u * z * z / df - log_tail))
    slope = np.array([share @ (u * z) / scale, share @ (u * z * z) - 1.0, df * float(of_df)])
    information = np.diag([(df + 1) / (df + 3) / scale**2, 2 * df / (df + 3), 0.0])
    own = 0.25 * (polygamma(1, df / 2) - polygamma(1, (df + 1) / 2)) - (df + 5) / (2 * df * (df + 1) * (df + 3))
    information[2, 2] = max(df * df * float(own), 1e-12)
    information[1, 2] = information[2, 1] = -2 * df / ((df + 1) * (df + 3))
    return value, slope, information


def _rows(summary: Summary) -> tuple[Floats, Floats]:
    table = summary[CompleteRows(tuple(summary.domain.names))]
    return np.asarray(table.rows[:, 0], np.float64), table.weights


def _centre(values: Floats, weights: Floats) -> tuple[float, float]:
    """The median of weighted values in order, and their spread by the distance of the quartiles, or what there is."""
    steps = np.cumsum(weights) - 0.5 * weights
    low, middle, high = np.interp(np.array([0.25, 0.5, 0.75]) * weights.sum(), steps, values)
    spread = 0.74 * (high - low)
    if not spread > 0:
        share = weights / weights.sum()
        spread = math.sqrt(float(share @ (values - share @ values) ** 2))
    return float(middle), float(spread)


def _is_heavy(values: Floats, share: Floats) -> bool:
    """Whether the normal distribution of the values rises towards heavier tails: their kurtosis is above 3."""
    away = values - share @ values
    variance = share @ away**2
    return bool(share @ away**4 > 3.0 * variance * variance)


def _edge(df: float) -> tuple[str, ...]:
    if df <= SMALLEST * (1 + 1e-9):
        return (f"df and scale -> 0, held at df = {SMALLEST:g}",)
    return ("df -> infinity: a normal distribution",) if df >= LARGEST * (1 - 1e-9) else ()
