"""Student's t: the predictive distribution of a normal row with mean and variance integrated out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from suffice.array_types import Floats
from suffice.checks import draw_count
from suffice.errors import EstimateError, NotFittedError, OptionError
from suffice.families.base import Distribution, Seed, as_float, as_floats, as_numbers, as_shape, as_shares, generator
from suffice.families.matrices import as_positive_definite, log_determinant, root, whiten
from suffice.families.simplex import polygamma_drop
from suffice.families.student_density import StudentTFormulas, log_constant, log_density
from suffice.families.student_fit import StudentTFitted, StudentTTask
from suffice.fitting.summaries import SummaryTask
from suffice.options import NewtonOptions


class StudentT(Distribution):
    """Student's t with `df` degrees of freedom, moved to `location` and stretched by `scale`.

    Given with its degrees of freedom, or unfitted: `fit` then learns all three by maximum likelihood. No data determine
    a largest likelihood, which grows without bound where df and scale go to 0 together: what is found is the maximum of
    degrees of freedom of at least 0.2. Where the tails of the data are no heavier than normal ones, df is 1e6 and the
    report says that it runs to infinity.

    Args:
        df: degrees of freedom, when given.
        location: the centre, 0 unless said where df is given.
        scale: the unit, 1 unless said where df is given.
        run: see `NewtonOptions`.

    >>> float(StudentT(df=3).cdf(0.0))
    0.5
    """

    parameter_names = ("df", "location", "scale")
    df_: float
    location_: float
    scale_: float

    def __init__(
        self,
        df: float | None = None,
        location: float | None = None,
        scale: float | None = None,
        **run: Unpack[NewtonOptions],
    ) -> None:
        """See the class."""
        super().__init__(df=df, location=location, scale=scale, **run)

    def _settle(self) -> None:
        """Take over the parameters that the options give."""
        options = self._options
        self._parameters = {}
        if options["df"] is not None:
            given = {"df": options["df"], "location": options["location"], "scale": options["scale"]}
            defaults = {"df": None, "location": 0.0, "scale": 1.0}
            self._parameters = self._check({n: defaults[n] if v is None else v for n, v in given.items()})
            idle = sorted(self._changed().keys() & NewtonOptions.__annotations__.keys())
            if idle:
                raise OptionError(f"{idle[0]}= would have no effect: df of the StudentT is given. Leave it out.")
        elif options["location"] is not None or options["scale"] is not None:
            raise OptionError(
                "location= or scale= is given without df=. Give the degrees of freedom too, or leave all three out to "
                "learn them."
            )

    @property
    def n_params_(self) -> int:
        """Number of free parameters: those that were learned."""
        return 0 if self._parameters else int(self.fitted_.n_params)

    @property
    def parameters_(self) -> dict[str, Any]:
        """Degrees of freedom, location and scale by name."""
        if not self._parameters and self._fit is None:
            raise NotFittedError(
                "This StudentT has no parameters yet. Call fit, or give df, location, scale in the constructor."
            )
        return dict(self._parameters or self.fitted_.parameters)

    def _task(self) -> SummaryTask[Any]:
        if self._parameters:
            raise OptionError(
                "This StudentT is given by its degrees of freedom and is not fitted to rows. Leave df= out to learn it."
            )
        return StudentTTask(self._options)

    def _fitted_from(self, plain: Mapping[str, Any]) -> Any:
        return StudentTFitted.from_dict(plain)

    def _check(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "df": as_shape(parameters["df"], "df"),
            "location": as_float(parameters["location"], "location"),
            "scale": as_float(parameters["scale"], "scale", above=0),
        }

    def log_prob(self, x: ArrayLike) -> Floats:
        """Log density of each value."""
        return StudentTFormulas(self.df_, self.location_, self.scale_).log_prob(x)

    def cdf(self, x: ArrayLike) -> Floats:
        """P(X <= x)."""
        from scipy.special import stdtr

        return np.asarray(stdtr(self.df_, (as_numbers(x) - self.location_) / self.scale_))

    def quantile(self, q: ArrayLike) -> Floats:
        """The value below which a share q of the mass lies."""
        from scipy.special import stdtrit

        shares = as_shares(q, "q")
        # The library's inverse gives +inf at 0.
        z = np.where(shares > 0, stdtrit(self.df_, shares), -np.inf)
        return np.asarray(self.location_ + self.scale_ * z)

    def sample(self, n: int = 1, random_state: Seed = None) -> Floats:
        """`n` draws (n,)."""
        return np.asarray(
            self.location_ + self.scale_ * generator(random_state).standard_t(self.df_, size=draw_count(n))
        )

    def mean(self) -> float:
        """The location; needs df > 1."""
        if not self.df_ > 1:
            raise EstimateError(f"Student's t with {self.df_:g} degrees of freedom has no mean; it needs more than 1.")
        return float(self.location_)

    def variance(self) -> float:
        """scale^2 df / (df - 2); needs df > 2."""
        if not self.df_ > 2:
            raise EstimateError(
                f"Student's t with {self.df_:g} degrees of freedom has no variance; it needs more than 2."
            )
        return float(self.scale_**2 * self.df_ / (self.df_ - 2))

    def mode(self) -> float:
        """The location."""
        return float(self.location_)

    def entropy(self) -> float:
        """E[-log p], in nats."""
        return standard_entropy(self.df_, 1) + math.log(self.scale_)


class MultivariateStudentT(Distribution):
    """Student's t in d dimensions with location (d,) and shape matrix (d, d).

    >>> MultivariateStudentT(df=4, location=[0, 1], shape=[[1, 0], [0, 2]]).covariance()
    array([[2., 0.],
           [0., 4.]])
    """

    parameter_names = ("df", "location", "shape")
    df_: float
    location_: Floats
    shape_: Floats

    def __init__(self, df: float, location: ArrayLike, shape: ArrayLike) -> None:
        """See the class."""
        super().__init__(df=df, location=location, shape=shape)

    def _check(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        location = np.atleast_1d(as_floats(parameters["location"], "location"))
        if location.ndim != 1:
            raise OptionError(f"location has shape {location.shape}; expected one number for each dimension.")
        shape = as_positive_definite(parameters["shape"], "shape", len(location))
        return {"df": as_shape(parameters["df"], "df"), "location": location, "shape": shape}

    def log_prob(self, x: ArrayLike) -> Floats:
        """Log density of each row of x (n, d), or of one row (d,)."""
        rows = as_numbers(x)
        d = len(self.location_)
        if rows.ndim == 0 or rows.shape[-1] != d:
            raise OptionError(f"The rows have shape {rows.shape}; expected {d} numbers in each.")
        finite = np.asarray(np.isfinite(rows).all(axis=-1))
        away = (np.where(finite[..., None], rows, self.location_) - self.location_).reshape(-1, d)
        factor = root(self.shape_)
        # Unlike a norm, a chain of hypotenuses squares nothing and cannot overflow.
        size = np.hypot.reduce(whiten(factor, away.T), axis=0).reshape(rows.shape[:-1])
        density = log_density(size, self.df_, d) - np.log(np.diag(factor)).sum()
        return np.asarray(np.where(finite, density, -np.inf))

    def sample(self, n: int = 1, random_state: Seed = None) -> Floats:
        """`n` draws (n, d)."""
        n = draw_count(n)
        rng = generator(random_state)
        z = rng.standard_normal((n, len(self.location_))) @ root(self.shape_).T
        return np.asarray(self.location_ + z / np.sqrt(rng.chisquare(self.df_, size=(n, 1)) / self.df_))

    def mean(self) -> Floats:
        """The location; needs df > 1."""
        if not self.df_ > 1:
            raise EstimateError(f"Student's t with {self.df_:g} degrees of freedom has no mean; it needs more than 1.")
        return np.asarray(self.location_)

    def mode(self) -> Floats:
        """The location."""
        return np.asarray(self.location_)

    def covariance(self) -> Floats:
        """The covariance (d, d), df / (df - 2) times the shape; needs df > 2."""
        if not self.df_ > 2:
            raise EstimateError(
                f"Student's t with {self.df_:g} degrees of freedom has no variance; it needs more than 2."
            )
        return np.asarray(self.shape_ * (self.df_ / (self.df_ - 2)))

    def variance(self) -> Floats:
        """The variance of each column (d,); needs df > 2."""
        return np.diag(self.covariance()).copy()

    def entropy(self) -> float:
        """E[-log p], in nats."""
        return standard_entropy(self.df_, len(self.location_)) + 0.5 * log_determinant(self.shape_)


def standard_entropy(df: float, d: int) -> float:
    """Entropy of the standard distribution in d dimensions."""
    drop = float(polygamma_drop(0, df / 2, d / 2))
    return -float(log_constant(df, d)) - 0.5 * (df + d) * drop
