"""What a fit says about its parameters: estimates, standard errors, covariance, intervals.

A model gives an `Inference`; summaries, intervals, tests and the bootstrap read nothing else of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from suffice.array_types import Flags, Floats
from suffice.calls import meant_argument, taken_arguments
from suffice.checks import is_number
from suffice.errors import CallError, EstimateError, OptionError, SizeError, listing, shortened, warn

if TYPE_CHECKING:
    from suffice.fitting.portrait import Portrait
    from suffice.fitting.report import Report

#: Parameters up to which their covariance is made: a matrix of 128 MB.
MOST_COVARIANCE = 4_000
#: Steps of the search for one end of a profile interval, and steps outwards before the end is at infinity.
STEPS, OUTWARDS = 60, 30

#: What a table says below errors beside a Laplace prior.
CHOSEN = (
    "A Laplace prior holds some estimates at its centre, which have no error. Those of the others are those of a fit "
    "without it: errors and p values take no account of the choice."
)

#: By how much twice the log-likelihood falls where one parameter has a value and all others do their best.
Drop = Callable[[float], float]


def _unknown(*_: object) -> Floats:
    raise EstimateError("This model has no standard errors. bootstrap() gives some from refits.")


@dataclass(frozen=True, eq=False)
class Inference:
    """Parameters (k,) by name, and what the rows say about each; what takes work is a function that is called once.

    Attributes:
        names: of the parameters.
        values: the estimates (k,).
        make_errors: gives their standard errors (k,): inf where the rows do not tell, NaN where there is none.
        make_covariance: gives their covariance (k, k); None where no model has it in closed form.
        make_part: gives the covariance (m, m) of some parameters by their numbers, where that of all is too large.
        lowest: of the values that a parameter can have, as `highest` is; Wald intervals end there.
        highest: see `lowest`.
        tested: which parameters have 0 as a hypothesis; a probability has none. None: all.
        df: degrees of freedom of Student's t where a dispersion is estimated; None for the normal distribution.
        drop: gives, for the number of a parameter, how far twice the log-likelihood falls; None without.
        profile: profile intervals (k, 2) of a level from the rows of the fit, for models that need them again.
        posterior: credible intervals (k, 2) of a level; None without a prior.
        effect: gives differences (m,) from 0 and their covariance (m, m) of what a name stands for that is none of a
            parameter, such as an edge; None where it stands for nothing.
        marks: a word behind each parameter; empty without.
        about: what the errors are, in a sentence.
        heading: what the column of the estimates is called.
        head: further lines of a summary, label and text, such as tests of the whole fit.
        whole_head: whether these are all its lines.
    """

    names: tuple[str, ...]
    values: Floats
    make_errors: Callable[[], Floats] = _unknown
    make_covariance: Callable[[], Floats] | None = None
    make_part: Callable[[list[int]], Floats] | None = None
    lowest: float | Floats = -math.inf
    highest: float | Floats = math.inf
    tested: Flags | None = None
    df: float | None = None
    drop: Callable[[int], Drop | None] | None = None
    profile: Callable[[float, Mapping[str, Any]], Floats] | None = None
    posterior: Callable[[float], Floats] | None = None
    effect: Callable[[Any], tuple[Floats, Floats] | None] | None = None
    marks: tuple[str, ...] = ()
    about: str = ""
    heading: str = "estimate"
    head: Callable[[], tuple[tuple[str, str], ...]] = lambda: ()
    whole_head: bool = False

    @classmethod
    def of_covariance(
        cls, names: tuple[str, ...], values: Floats, make: Callable[[], Floats], **more: Any
    ) -> Inference:
        """Parameters whose covariance is known as a whole."""
        made: list[Floats] = []

        def once() -> Floats:
            if not made:
                made.append(np.asarray(make()))
            return made[0]

        return cls(names, values, lambda: np.sqrt(np.clip(np.diagonal(once()), 0.0, None)), once, **more)

    @cached_property
    def errors(self) -> Floats:
        """Standard errors (k,)."""
        return np.asarray(self.make_errors(), dtype=np.float64)

    @cached_property
    def covariance(self) -> Floats:
        """Covariance of the estimates (k, k)."""
        if self.make_covariance is None:
            raise EstimateError(
                "The covariance of these parameters is not known in closed form, only their standard errors. "
                "bootstrap().covariance gives one from refits."
            )
        if len(self.names) > MOST_COVARIANCE:
            raise SizeError(
                f"The covariance of {len(self.names):,} parameters would take {8 * len(self.names) ** 2 / 1e9:,.1f} "
                f"GB; the limit is {MOST_COVARIANCE:,} parameters. Test some of them by name: sf.wald_test."
            )
        return np.asarray(self.make_covariance(), dtype=np.float64)

    def covariance_of(self, numbers: list[int]) -> Floats:
        """Covariance (m, m) of some parameters; of a single one its error is enough."""
        if self.make_part is not None:
            return np.asarray(self.make_part(numbers), dtype=np.float64)
        if len(numbers) == 1:  # Where covariances are not known, errors may be.
            return np.asarray(self.errors[numbers][:, None] ** 2)
        return np.asarray(self.covariance[np.ix_(numbers, numbers)])

    def without_errors(self, why: str) -> Inference:
        """The same parameters, all of whose errors are unknown; why: in a sentence."""
        return replace(self, make_errors=lambda: np.full(len(self.values), np.nan), make_covariance=None, about=why)

    # -- intervals ---------------------------------------------------------------------------------------------------

    def wald(self, level: float) -> Floats:
        """Estimate +- quantile * standard error (k, 2), inside the range of each parameter."""
        ends = wald_intervals(self.values, self.errors, level, self.df)
        low, high = np.maximum(ends[:, 0], self.lowest), np.minimum(ends[:, 1], self.highest)
        return np.stack((low, high), axis=1)

    def profiled(self, level: float, given: Mapping[str, Any]) -> Floats:
        """Profile intervals (k, 2): where twice the log-likelihood has fallen by the square of the quantile.

        given: the rows of the fit, by the names of the arguments of `fit`.
        """
        if self.profile is not None:
            return np.asarray(self.profile(level, given))
        if self.drop is None:
            raise EstimateError(
                "Profile intervals of this model are not known: its likelihood is not at hand with one parameter held. "
                "Use method='wald' or method='bootstrap'."
            )
        if given:
            raise OptionError("Profile intervals of this model follow from what it has learned; give no rows.")
        lowest, highest = (np.broadcast_to(end, self.values.shape) for end in (self.lowest, self.highest))
        reach, ends = quantile(level, self.df), np.full((len(self.values), 2), np.nan)
        for number in range(len(self.values)):
            drop = self.drop(number)
            if drop is not None:
                edges = float(lowest[number]), float(highest[number])
                ends[number] = profile_ends(drop, float(self.values[number]), float(self.errors[number]), reach, edges)
        lacking = [name for name, end in zip(self.names, ends, strict=True) if np.isnan(end).any()]
        if lacking:
            warn(
                f"There is no profile interval of {listing(lacking)}: the likelihood is not at hand with one of them "
                "held, or the rows do not tell it. Use method='wald' or method='bootstrap' for these."
            )
        return ends

    # -- the table ---------------------------------------------------------------------------------------------------

    def figures(self, level: float) -> Floats:
        """Estimate, standard error, statistic, p value and Wald interval of each parameter (k, 6)."""
        errors, values = self.errors, self.values
        known = np.isfinite(values) & (errors > 0.0)
        with np.errstate(all="ignore"):
            z = np.where(known, values / errors, 0.0)
        p = np.where(known, two_sided(z, self.df), 1.0)
        open_ = np.zeros(len(values), dtype=bool) if self.tested is None else ~self.tested
        open_ |= np.isnan(errors)
        z, p = np.where(open_, np.nan, z), np.where(open_, np.nan, p)
        return np.column_stack((values, errors, z, p, self.wald(level)))

    @property
    def statistic(self) -> str:
        """What an estimate over its error is called."""
        return "z" if self.df is None else "t"


_NO_ROWS: Mapping[str, Any] = MappingProxyType({})


class Described(Protocol):
    """A fitted model: its report, and what there is to see of it."""

    @property
    def report_(self) -> Report:
        """The receipt of the fit."""

    def portrait(self) -> Portrait:
        """What there is to see of it."""


def inference_of(model: Described, rows: Mapping[str, Any] = _NO_ROWS) -> Inference:
    """What a fit says about its parameters; a model that says nothing about them is an error.

    rows: those of the fit, by the names of the arguments of `fit`, for models that need them again.
    """
    model.report_  # noqa: B018  A model that is not fitted says so.
    portrait = model.portrait()
    known_rows = ["data", *taken_arguments(getattr(type(model), "fit", inference_of))[1:]]
    strange = [name for name in rows if name not in known_rows]
    if strange:
        near = meant_argument(strange[0], ["level", *known_rows])
        raise CallError(
            f"What a {type(model).__name__} says about its parameters has no argument {strange[0]!r}.{near} Its "
            f"arguments are: level, and the rows of the fit: {listing(known_rows, 20).replace(chr(39), '')}."
        )
    if rows:
        if portrait.inference_with is None:
            raise OptionError(
                f"What a {type(model).__name__} says about its parameters follows from what it keeps; give no rows."
            )
        return portrait.inference_with(rows)
    known = portrait.inference()
    if known is None:
        raise EstimateError(
            f"A {type(model).__name__} has no list of parameters with standard errors. What it has learned is in "
            "fitted_ and portrait()."
        )
    return known


def joined(parts: Sequence[Inference]) -> Inference:
    """Parameters of several parts, whose likelihoods are factors of one: their estimates are independent."""
    if len(parts) == 1:
        return parts[0]
    sizes = [len(part.values) for part in parts]
    starts = np.concatenate([[0], np.cumsum(sizes)]).tolist()
    values = np.concatenate([np.zeros(0), *(part.values for part in parts)])
    every = list(zip(parts, starts, starts[1:], strict=False))

    def covariance() -> Floats:
        whole = np.zeros((starts[-1], starts[-1]))
        for part, start, end in every:
            whole[start:end, start:end] = part.covariance
        return whole

    def drop(number: int) -> Drop | None:
        part, start = next((part, start) for part, start, end in every if number < end)
        return None if part.drop is None else part.drop(number - start)

    def posterior(level: float) -> Floats:
        ends = np.full((starts[-1], 2), np.nan)
        for part, start, end in every:
            if part.posterior is not None:
                ends[start:end] = part.posterior(level)
        return ends

    def spread(ends: Sequence[float | Floats]) -> Floats:
        return np.concatenate([np.zeros(0), *map(np.broadcast_to, ends, [(size,) for size in sizes])])

    tested = [np.ones(len(part.values), dtype=bool) if part.tested is None else part.tested for part in parts]
    return Inference(
        tuple(name for part in parts for name in part.names),
        values,
        lambda: np.concatenate([np.zeros(0), *(part.errors for part in parts)]),
        covariance if all(part.make_covariance for part in parts) else None,
        lowest=spread([part.lowest for part in parts]),
        highest=spread([part.highest for part in parts]),
        tested=np.concatenate([np.zeros(0, dtype=bool), *tested]),
        drop=drop if any(part.drop for part in parts) else None,
        posterior=posterior if any(part.posterior for part in parts) else None,
    )


def binomial_drop(size: float, share: float) -> Drop:
    """The drop of a share that was seen in `size` rows, as a probability of any table has it."""
    from scipy.special import xlog1py, xlogy

    def value(p: float) -> float:
        return float(xlogy(share, p) + xlog1py(1.0 - share, -p))

    return lambda p: 2.0 * size * (value(share) - value(p)) if 0.0 <= p <= 1.0 else math.inf


def variance_drop(size: float, variance: float) -> Drop:
    """The drop of a variance that `size` residuals have as their mean square."""
    return lambda v: size * (math.log(v / variance) + variance / v - 1.0) if v > 0.0 else math.inf


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


def wald_intervals(centre: Floats, errors: Floats, level: float, df: float | None) -> Floats:
    """Estimate +- quantile * standard error (..., 2); everything where an error is infinite."""
    reach = quantile(level, df) * errors
    with np.errstate(invalid="ignore"):
        low, high = centre - reach, centre + reach
    low, high = np.where(np.isinf(reach), -np.inf, low), np.where(np.isinf(reach), np.inf, high)
    return np.stack((low, high), axis=-1)


def profile_ends(
    drop: Drop, centre: float, error: float, reach: float, edges: tuple[float, float] = (-math.inf, math.inf)
) -> tuple[float, float]:
    """Ends of the interval in which the root of the drop is below `reach`, for a drop that rises to both sides.

    An end at an edge of the parameter's range, or at infinity, is one that the likelihood never reaches.
    """
    if not (math.isfinite(centre) and math.isfinite(error)):
        return math.nan, math.nan
    unit = error if error > 0 else max(abs(centre), 1.0) * 1e-3
    low, high = (_end(drop, centre, sign * unit, reach, edge) for sign, edge in zip((-1.0, 1.0), edges, strict=True))
    return low, high


def _end(drop: Drop, centre: float, unit: float, reach: float, edge: float) -> float:
    """Where the root is `reach`: out to a value beyond, then between by the secant with bisection."""

    def root(steps: float) -> float:
        return math.sqrt(max(0.0, drop(centre + steps * unit)))

    most = (edge - centre) / unit
    near, near_root, far = 0.0, 0.0, min(reach, most)
    far_root = root(far) if far < most else _at_edge(drop, edge)
    for _ in range(OUTWARDS):
        if far_root >= reach:
            break
        if far >= most:
            return edge
        near, near_root, far = far, far_root, min(1.5 * far + 0.5, most)
        far_root = root(far) if far < most else _at_edge(drop, edge)
    else:
        return edge
    for step in range(STEPS):
        if far - near <= 1e-12 * far or abs(far_root - reach) <= 1e-11:
            break
        share = (reach - near_root) / (far_root - near_root) if math.isfinite(far_root) and step % 3 < 2 else 0.5
        middle = near + min(max(share, 0.02), 0.98) * (far - near)
        value = root(middle)
        if abs(value - reach) <= 1e-11:
            return centre + middle * unit
        if value >= reach:
            far, far_root = middle, value
        else:
            near, near_root = middle, value
    return centre + far * unit


def _at_edge(drop: Drop, edge: float) -> float:
    return math.sqrt(max(0.0, drop(edge))) if math.isfinite(edge) else math.inf
