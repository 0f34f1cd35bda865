"""What a fitted regression says: names, tables, tests."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.array_types import Floats
from suffice.checks import is_number
from suffice.errors import NotFittedError, OptionError, listing, require, shortened
from suffice.families.matrix_regression_distribution import MatrixRegressionDistribution
from suffice.families.multivariate_normal import MultivariateNormal
from suffice.families.regression_distribution import RegressionDistribution
from suffice.fitting.report import Report

if TYPE_CHECKING:
    from suffice.models.glm.fitted import GLMFitted


class NamedVector(np.ndarray[Any, np.dtype[np.float64]]):
    """Numbers with a name each: ``vector["age"]`` or ``vector[0]``; arithmetic as with any array.

    >>> NamedVector.of([1.5, 2.0], ["age", "dose"])["dose"]
    2.0
    """

    names: tuple[str, ...]

    @classmethod
    def of(cls, values: Any, names: Sequence[str]) -> NamedVector:
        """From values (k, ...) and k names."""
        vector = np.asarray(values, dtype=np.float64).view(cls)
        vector.names = tuple(names)
        return vector

    def __array_finalize__(self, other: Any) -> None:
        """Slices and results of arithmetic keep the names where they still fit."""
        names = getattr(other, "names", ())
        self.names = names if self.ndim and len(names) == len(self) else ()

    def __getitem__(self, key: Any) -> Any:
        """By name, or as in any array."""
        if isinstance(key, str):
            if key not in self.names:
                raise KeyError(f"There is no coefficient {key!r}; there are {listing(self.names)}.")
            key = self.names.index(key)
        value = np.asarray(self)[key]
        return float(value) if np.ndim(value) == 0 else value

    def to_dict(self) -> dict[str, Any]:
        """Value by name."""
        return {name: np.asarray(self)[number].tolist() for number, name in enumerate(self.names)}

    def to_series(self) -> Any:
        """A pandas Series by name."""
        pd = require("pandas", extra="all", purpose="to_series")

        return pd.Series(np.asarray(self), index=list(self.names))

    def __str__(self) -> str:
        """One line a name; without names as any array."""
        if not self.names or self.ndim > 2:
            return str(np.asarray(self))
        rows = [[name, *map(_text, np.atleast_1d(np.asarray(self)[number]))] for number, name in enumerate(self.names)]
        return "\n".join(aligned(rows))

    __repr__ = __str__

    def __reduce__(self) -> Any:
        """Pickle with the names."""
        return (NamedVector.of, (np.asarray(self), self.names))


@dataclass(frozen=True)
class CoefficientTable:
    """The table of a fit: `head` is label and text, `columns` the headings, `rows` (name, numbers).

    The figures have the names of statsmodels, too: `params`, `bse`, `tvalues`, `pvalues`, `llf`, `aic`, `bic`.
    """

    head: tuple[tuple[str, str], ...]
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[float, ...]], ...]
    llf: float
    aic: float
    bic: float | None

    @property
    def params(self) -> NamedVector:
        """The coefficients by name, the intercept first."""
        return self._column(0)

    @property
    def bse(self) -> NamedVector:
        """Their standard errors."""
        return self._column(1)

    @property
    def tvalues(self) -> NamedVector:
        """Coefficients over standard errors: z, or t where the dispersion is estimated."""
        return self._column(2)

    @property
    def pvalues(self) -> NamedVector:
        """Their two-sided p values."""
        return self._column(3)

    def _column(self, number: int) -> NamedVector:
        return NamedVector.of([values[number] for _, values in self.rows], [name for name, _ in self.rows])

    def to_frame(self) -> Any:
        """A pandas DataFrame, one row for each coefficient."""
        pd = require("pandas", extra="all", purpose="to_frame")

        return pd.DataFrame(
            [values for _, values in self.rows], index=[name for name, _ in self.rows], columns=list(self.columns)
        )

    def _cells(self) -> list[list[str]]:
        return [[name, *(_text(value) for value in values)] for name, values in self.rows]

    def __str__(self) -> str:
        """Aligned text."""
        wide = max((len(label) for label, _ in self.head), default=0)
        top = [f"{label:<{wide}}  {text}" for label, text in self.head]
        return "\n".join([*top, "", *aligned([["", *self.columns], *self._cells()])])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        head = "".join(f"<tr><th>{html.escape(a)}</th><td>{html.escape(b)}</td></tr>" for a, b in self.head)
        titles = "".join(f"<th>{html.escape(title)}</th>" for title in ("", *self.columns))
        body = "".join(
            "<tr>"
            + "".join(
                f"<{'th' if column == 0 else 'td'}>{html.escape(cell)}</{'th' if column == 0 else 'td'}>"
                for column, cell in enumerate(row)
            )
            + "</tr>"
            for row in self._cells()
        )
        return f"<table>{head}</table><table><tr>{titles}</tr>{body}</table>"

    to_html = _repr_html_


def aligned(cells: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a table: the first column to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        "  ".join([row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))])
        for row in cells
    ]


def _text(value: float) -> str:
    return f"{value:.6g}" if math.isfinite(value) else str(value)


@dataclass(frozen=True)
class LikelihoodRatio:
    """A likelihood-ratio test between nested fits: `statistic` on `df` degrees of freedom has `p_value`.

    Where the dispersion is estimated, the statistic is the F ratio of the drop in deviance to the dispersion of the
    larger fit, on `df` and `df_rest` degrees of freedom. Where it is known, or the family has none, the statistic is
    the drop in deviance in units of the dispersion, twice the difference of the log-likelihoods, and chi-squared.
    """

    statistic: float
    df: float
    p_value: float
    df_rest: float | None = None
    name: str = "chi2"

    def __str__(self) -> str:
        """One line."""
        on = f"{self.df:g}" if self.df_rest is None else f"{self.df:g}, {self.df_rest:g}"
        return f"{self.name} = {self.statistic:.6g} on {on} df, p = {self.p_value:.4g}"

    __repr__ = __str__


def quantile(level: float, df: float | None = None) -> float:
    """How many standard errors an interval of a level reaches: normal, or Student-t with df."""
    if not (is_number(level) and 0.0 < level < 1.0):
        raise OptionError(f"level is {shortened(level)}; expected a number between 0 and 1.")
    from scipy.special import ndtri, stdtrit

    share = 0.5 + 0.5 * level
    return float(ndtri(share) if df is None else stdtrit(df, share))


def two_sided(z: Floats, df: float | None = None) -> Floats:
    """P values of Wald statistics: normal, or Student-t with df."""
    from scipy.special import erfc, stdtr

    away = np.abs(z)
    return np.asarray(erfc(away / math.sqrt(2.0)) if df is None else 2.0 * stdtr(df, -away))


def degrees_of_freedom(fitted: GLMFitted, known: float | None) -> float | None:
    """Those of Student's t where the dispersion is estimated; None for the normal distribution."""
    estimated = fitted.free_dispersion and known is None and fitted.precision is None
    return fitted.df_resid if estimated and fitted.df_resid > 0 else None


def posterior_of(fitted: GLMFitted) -> Any:
    """The exact posterior under a conjugate prior, or Laplace's approximation under a Gaussian one."""
    if fitted.posterior is not None:
        return (RegressionDistribution if fitted.single else MatrixRegressionDistribution)(*fitted.posterior)
    if fitted.precision is None:
        raise NotFittedError("There is no posterior without a Gaussian or conjugate prior; give prior=.")
    return MultivariateNormal(mean=fitted.values.T.ravel(), covariance=fitted.covariance())


def wald_intervals(centre: Floats, errors: Floats, level: float, df: float | None) -> Floats:
    """Estimate +- quantile * standard error (..., 2); everything where an error is infinite."""
    reach = quantile(level, df) * errors
    with np.errstate(invalid="ignore"):
        low, high = centre - reach, centre + reach
    low, high = np.where(np.isinf(reach), -np.inf, low), np.where(np.isinf(reach), np.inf, high)
    return np.stack((low, high), axis=-1)


def regression_table(
    fitted: GLMFitted, report: Report, level: float, df: float | None, options: Mapping[str, Any]
) -> CoefficientTable:
    """The table of coefficients: estimate, standard error, statistic, p value, interval."""
    beta, errors = fitted.limits().T.ravel(), fitted.standard_errors().T.ravel()
    ends = wald_intervals(beta, errors, level, df)
    with np.errstate(all="ignore"):
        z = np.where(np.isfinite(beta) & (errors > 0.0), beta / errors, 0.0)
    p = np.where(np.isfinite(beta) & (errors > 0.0), two_sided(z, df), 1.0)
    figures = np.column_stack((beta, errors, z, p, ends))
    names = fitted.parameters.names
    if not fitted.single:
        names = tuple(f"{name} ({label})" for label in fitted.column_labels() for name in names)
    rows = tuple((name, tuple(values)) for name, values in zip(names, figures.tolist(), strict=True))
    limits = (f"{50 * (1 - level):g}%", f"{50 * (1 + level):g}%")
    titles = ("coefficient", "std. error", "z" if df is None else "t", "p value", *limits)
    head = tuple(_head(fitted, report, options))
    return CoefficientTable(head, titles, rows, report.log_likelihood, report.aic, report.bic)


def _head(fitted: GLMFitted, report: Report, options: Mapping[str, Any]) -> list[tuple[str, str]]:
    lines = [
        ("family, link", f"{fitted.family}, {fitted.link}"),
        ("rows, coefficients", f"{fitted.weight:,.6g}, {fitted.parameters.size}"),
        ("method", f"{report.method}, {report.iterations} iterations"),
        ("log-likelihood", f"{report.log_likelihood:,.6g}"),
        ("AIC, BIC", f"{report.aic:,.6g}, {report.bic:,.6g}"),
    ]
    if math.isfinite(fitted.null_deviance):
        lines.append(("deviance, null", f"{fitted.deviance:,.6g}, {fitted.null_deviance:,.6g}"))
    if math.isfinite(fitted.pearson):
        lines.append(("Pearson chi2", f"{fitted.pearson:,.6g} on {fitted.df_resid:,.6g} df"))
    if fitted.free_dispersion:
        lines.append(("dispersion", f"{fitted.dispersion:.6g} ({options['dispersion']})"))
    if fitted.size is not None:
        lines.append(("size", f"{fitted.size:.6g}"))
    if options["covariance"] == "robust":
        lines.append(("covariance", "robust (sandwich)"))
    if report.certificate.exists is False:
        label = "no maximum" if fitted.direction is None else "separated"
        lines.append((label, "; ".join(report.certificate.directions[:4])))
    return lines


#: Families whose deviances do not differ by twice what their log-likelihoods do: they have parameters beside the
#: coefficients, estimated anew in each fit.
_BY_LIKELIHOOD = {"negative_binomial", "multivariate_gaussian"}


def likelihood_ratio(small: Any, large: Any) -> LikelihoodRatio:
    """The test of two fitted models of the same rows, the first nested in the second."""
    from scipy.special import chdtrc, fdtrc

    if small.family_name_ != large.family_name_ or small.link_ != large.link_:
        raise OptionError("The fits differ in family or link, so neither is nested in the other.")
    if abs(small.report_.weight - large.report_.weight) > 1e-9 * large.report_.weight:
        raise OptionError(
            f"The fits saw {small.report_.weight:g} and {large.report_.weight:g} rows; give the same rows."
        )
    known = [fit._fit_options().known_dispersion for fit in (small, large)]
    if large.free_dispersion_ and known[0] != known[1]:
        raise OptionError(f"The fits have the dispersions {known[0]} and {known[1]} (None: estimated); give both one.")
    df = float(large.n_params_ - small.n_params_)
    if not df > 0:
        raise OptionError(
            f"The first fit has {small.n_params_} parameters and the second {large.n_params_}; the first "
            "must be nested in the second."
        )
    estimated = large.free_dispersion_ and known[1] is None
    drop = max(0.0, small.deviance_ - large.deviance_)
    if estimated:
        rest = large.df_resid_
        ratio = drop / df / (large.pearson_chi2_ / rest)
        return LikelihoodRatio(ratio, df, float(fdtrc(df, rest, ratio)), rest, "F")
    if small.family_name_ in _BY_LIKELIHOOD or drop == 0.0:
        drop = max(0.0, 2.0 * (large.log_likelihood_ - small.log_likelihood_))
    elif large.free_dispersion_:
        drop /= large.dispersion_
    return LikelihoodRatio(drop, df, float(chdtrc(df, drop)))
