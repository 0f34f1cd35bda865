"""What a fit says about itself: the `Report`, a receipt, and the `Certificate`, its proof.

The certificate is measured after the solve, at the parameters that were returned, by code that no solver touches.
"""

from __future__ import annotations

import copy
import html
import math
import weakref
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.errors import FileFormatError
from suffice.fitting import outlets
from suffice.records import checked, fields_of, set_fields

if TYPE_CHECKING:
    from suffice.fitting.portrait import Portrait
    from suffice.storage.files import FilePath


@dataclass(frozen=True, eq=False)
class MatchedStatistics:
    """What a fit makes equal: `names` of the statistics, their `observed` means (k,) and those `expected` (k,).

    With a prior the maximum has ``observed + pull = expected``: `pull` (k,) is the slope of the log prior in the same
    unit. `errors` (k,) are the standard errors of `expected` where it was sampled. `about` says in a sentence what is
    compared. `total` is how many statistics the model has where these are a choice of them.
    """

    names: tuple[str, ...]
    observed: Floats
    expected: Floats
    pull: Floats | None = None
    errors: Floats | None = None
    about: str = ""
    total: int | None = None

    @property
    def gaps(self) -> Floats:
        """What is left of the slope of each statistic (k,): observed, and what the prior adds, less expected."""
        difference = self.observed - self.expected
        return difference if self.pull is None else difference + self.pull

    def select(self, chosen: NDArray[np.intp]) -> MatchedStatistics:
        """Some of them, by number."""
        pull, errors = (None if part is None else part[chosen] for part in (self.pull, self.errors))
        names, total = tuple(self.names[number] for number in chosen), self.total or len(self.names)
        both = self.observed[chosen], self.expected[chosen]
        return MatchedStatistics(names, *both, pull, errors, self.about, total)


@dataclass(frozen=True, eq=False)
class CountedRows:
    """Rows of probabilities that were learned from counts (n, m), each with a Dirichlet prior `alpha` (n, m).

    `names` has those of all n * m cells, row by row. `expected` says that the counts are expectations of an E-step.
    """

    names: tuple[str, ...]
    counts: Floats
    alpha: Floats
    expected: bool = False


def largest_and_even(gaps: Floats, most: int) -> NDArray[np.intp]:
    """Places, in order, of at most so many statistics: half those with the largest gaps, half an even choice."""
    if len(gaps) <= most:
        return np.arange(len(gaps))
    half = most // 2
    large = np.argpartition(-np.nan_to_num(np.abs(gaps), nan=np.inf), half)[:half]
    even = np.linspace(0, len(gaps) - 1, most - half).astype(np.intp)
    return np.union1d(large, even)


#: R-hat of chains that have mixed, at most (Gelman et al. 2013 ask for 1.1; chains that are many, for less).
MIXED = 1.05
#: An answer worth fewer independent draws than this has standard errors that are no more than a guess.
FEW = 50.0


#: Shape of the tail of weights above which a few of them decide (Vehtari, Simpson, Gelman, Yao and Gabry 2024).
HEAVY = 0.7


def distrust(
    effective_sample_size: float, n: float, *, r_hat: float | None = None, pareto_k: float | None = None
) -> str:
    """Why an answer from n samples is not to be relied on; empty where nothing is against it.

    Chains have an R-hat, weighted samples a tail with the shape `pareto_k`. Whoever asks for a few samples gets a few.
    """
    if r_hat is not None and not r_hat <= MIXED:
        return f"its chains do not agree (R-hat is {r_hat:.3g}; expected at most {MIXED})"
    if not effective_sample_size >= min(FEW, n / 4.0):
        return f"it is worth {effective_sample_size:.3g} independent draws of {n:,.0f}; expected {FEW:.0f} or more"
    if pareto_k is not None and pareto_k > HEAVY:
        return f"a few of its samples decide (the shape k of the tail of the weights is {pareto_k:.2f}, above {HEAVY})"
    return ""


@dataclass(frozen=True)
class MonteCarlo:
    """How well Markov chains have measured the moment gap.

    `error` is the largest standard error of a component of the gap, in its unit; `effective_sample_size` the smallest
    number of independent draws that would be as good; `r_hat` the largest over all statistics, near 1 where the chains
    agree; `levels` is the number of temperatures whose replicas were exchanged where single chains did not mix, else 1.
    `exact_gap` is the gap by exact inference, where that fits. `log_likelihood_error` is the standard error of
    the report's log-likelihood, where that was estimated.
    """

    chains: int
    draws: int
    error: float
    effective_sample_size: float
    r_hat: float
    exact_gap: float | None = None
    log_likelihood_error: float | None = None
    levels: int = 1

    @property
    def distrust(self) -> str:
        """What is against the chains: they do not agree, or are worth few draws. Empty where nothing is."""
        return distrust(self.effective_sample_size, self.chains * self.draws, r_hat=self.r_hat)

    def lines(self) -> list[tuple[str, str]]:
        """Label and text of each line of the receipt."""
        size = f"effective sample size {self.effective_sample_size:,.0f}, R-hat {self.r_hat:.3f}"
        lines = [("Monte Carlo", f"error {self.error:.1e}, {size} ({self.chains:,} chains x {self.draws:,} draws)")]
        if self.levels > 1:
            lines.append(("tempering", f"single chains did not mix: replicas at {self.levels} temperatures"))
        if self.exact_gap is not None:
            lines.append(("exact moment gap", f"{self.exact_gap:.1e}, by the junction tree"))
        if self.log_likelihood_error is not None:
            lines.append(("log-likelihood", f"by annealed importance sampling, error {self.log_likelihood_error:,.2g}"))
        return lines


#: Where EM may stand, in words.
_POINTS = {"maximum": "a local maximum", "flat": "flat in some direction", "saddle": "a saddle, not a maximum"}


@dataclass(frozen=True)
class Curvature:
    """What the rows say about the parameters of a latent model, where EM has stopped.

    `rank` of `size` directions are determined: the observed information has an eigenvalue above `threshold` there, in
    units of the information of complete rows. `smallest` is the least eigenvalue; below zero EM stands at a saddle.
    `point` is "maximum", "flat" or "saddle", `flat` names the directions that no rows tell apart. `reached` of `starts`
    runs ended at the best objective.
    """

    rank: int
    size: int
    smallest: float
    threshold: float
    point: str
    flat: tuple[str, ...] = ()
    reached: int = 1
    starts: int = 1

    def lines(self) -> list[tuple[str, str]]:
        """Label and text of each line of the receipt."""
        text = f"rank {self.rank} of {self.size}, least eigenvalue {self.smallest:.1e}: {_POINTS[self.point]}"
        lines = [("information", text)]
        if self.starts > 1:
            lines.append(("starts", f"{self.reached} of {self.starts} reached the best objective"))
        return lines

    def warnings(self) -> tuple[str, ...]:
        """What a reader must know before using the parameters."""
        if self.point == "saddle":
            return (
                f"EM stands at a saddle, not at a maximum: the information has the eigenvalue {self.smallest:.1e}. "
                "Begin elsewhere (random_state, n_init), or lower tolerance.",
            )
        if self.point != "flat":
            return ()
        rest = len(self.flat) - 3
        named = "; ".join(self.flat[:3]) + (f"; ... ({rest} more)" if rest > 0 else "")
        return (
            f"not identified: the rows determine {self.rank} of {self.size} parameters at this tolerance; the objective"
            f" is flat along {named}. Their errors are infinite. Use fewer states, a prior, or fix some.",
        )


@dataclass(frozen=True)
class Certificate:
    """How far from the optimum a fit can be.

    `moment_gap` is the largest gap between observed and expected statistics, in standard errors of the statistic, in
    every model. `slope` is the largest component of the gradient of the objective at the result, in the unit that
    `slope_unit` names. `value_gap` bounds how much the objective (in nats per row) could still rise, or is None where
    no bound is known; `bound` is False where it is only an estimate. `exact`
    says whether the expected statistics were computed exactly; where not, `engine` says how and `monte_carlo` how well.
    `exists` says whether the maximum is attained (None: not decided) and `directions` name what runs to infinity, or to
    the edge, where it is not. `curvature` says whether a latent model is identified where EM has stopped. `formula`
    names what an estimate that maximises nothing is computed by: there is then no optimum to be far from.
    """

    moment_gap: float
    value_gap: float | None = None
    bound: bool = False
    exact: bool = True
    exists: bool | None = None
    directions: tuple[str, ...] = ()
    slope: float | None = None
    slope_unit: str = ""
    engine: str = ""
    monte_carlo: MonteCarlo | None = None
    curvature: Curvature | None = None
    formula: str = ""

    def lines(self, *, closed: bool = False) -> list[tuple[str, str]]:
        """Label and text of each line of the receipt; closed: of a closed form, which needs no bound to be exact."""
        lines = [("moment gap", f"{self.moment_gap:.1e} ({STANDARD_ERRORS})")]
        within = (
            None
            if self.value_gap is None
            else f"{'at most' if self.bound else 'about'} {self.value_gap:.1e} nats per row"
        )
        if self.slope is not None:
            lines.append(("slope", f"{self.slope:.1e} ({self.slope_unit})"))
        if self.formula:
            lines.append(("from optimum", f"exact: {self.formula} is a formula that maximises nothing"))
        else:
            exact = "exact (a closed form)"
            away = [exact, within] if closed else [within or "unknown"]
            lines.append(("from optimum", ", ".join(filter(None, away))))
        if not self.exact:
            lines.append(("engine", self.engine or "approximate"))
        if self.monte_carlo is not None:
            lines += self.monte_carlo.lines()
        if self.curvature is not None:
            lines += self.curvature.lines()
        rest = len(self.directions) - 3
        shown = "; ".join(self.directions[:3]) + (f"; ... ({rest} more)" if rest > 0 else "")
        open_ = "not applicable" if self.formula else "not decided"
        answer = {True: "yes", False: f"no: {shown}", None: open_}[self.exists]
        return [*lines, ("maximum exists", answer)]

    def __str__(self) -> str:
        """The lines that a receipt has of it."""
        return receipt(self.lines())

    __repr__ = __str__


def receipt(lines: Sequence[tuple[str, str]]) -> str:
    """Labels and texts below one another."""
    return "\n".join(f"{label:<18} {text}" for label, text in lines)


#: Nats a row up to which a bound is rounding: that of a closed form.
EXACT = 1e-9
#: The estimate where only mean and variance of the response are known, and there is no likelihood.
QUASI = "quasi-likelihood"
#: Figures of a report that follow from the others.
_DERIVED = ("aic", "bic", "bic_score", "kl_divergence")


@dataclass(frozen=True)
class Report:
    """The receipt of a fit.

    `log_likelihood` is the sum over rows, natural logarithm; `objective` is what was maximised, with a prior the
    log-likelihood and the log prior up to a constant. ``aic = 2 k - 2 log_likelihood`` and
    ``bic = k log(weight) - 2 log_likelihood``: smaller is better. `bic_score` is ``-bic / 2``, the score that structure
    learners maximise. `kl_divergence` is KL(empirical || model) in nats per row for discrete data; it equals
    ``-empirical_entropy - log_likelihood / weight``.

    `estimate` is "maximum likelihood", "MAP" or "posterior mean"; where nodes of a network have different ones, those
    in use, with "and" between them. Where none of the three would be true another word says so: "smoothed frequencies"
    of a chain, "approximate ..." where the likelihood was not computed, "... given all others" of a target,
    "averaged perceptron", "given" where nothing was learned. Of "quasi-likelihood" `log_likelihood` is that, minus half
    the deviance in units of the dispersion, and AIC and BIC are NaN: there is no likelihood.
    """

    model: str
    rows: int
    weight: float
    passes: int
    method: str
    estimate: str
    log_likelihood: float
    objective: float
    n_params: int
    certificate: Certificate
    converged: bool = True
    iterations: int = 0
    history: tuple[float, ...] = ()
    stop_reason: str = "closed form"
    parameterisation: str | None = None
    plan: str | None = None
    log_evidence: float | None = None
    empirical_entropy: float | None = None
    warnings: tuple[str, ...] = ()
    #: What tells the rows from others, where no statistics are kept: see `suffice.fitting.row_marks`.
    marks: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def has_likelihood(self) -> bool:
        """Whether `log_likelihood` is one, so that it can be compared with that of other models."""
        return not self.estimate.endswith(QUASI)

    @property
    def aic(self) -> float:
        """Akaike's criterion, 2 k - 2 log-likelihood: smaller is better."""
        if not self.has_likelihood:
            return math.nan
        return 2.0 * self._size - 2.0 * self.log_likelihood

    @property
    def bic(self) -> float | None:
        """Schwarz's criterion, k log(weight) - 2 log-likelihood: smaller is better; None without rows."""
        if self.weight <= 0:
            return None
        if not self.has_likelihood:
            return math.nan
        return self._size * math.log(self.weight) - 2.0 * self.log_likelihood

    @property
    def is_exact(self) -> bool:
        """Whether the estimate is a closed form that the certificate confirms, so that nothing is left to gain."""
        gap, attained = self.certificate.value_gap, self.certificate.exists is not False
        closed = self.converged and not self.iterations and self.stop_reason == "closed form" and self.certificate.exact
        return closed and attained and (gap is None or (self.certificate.bound and gap <= EXACT))

    @property
    def _size(self) -> float:
        """The number of parameters as a float; inf for tables of more cells than floats can count."""
        return float(self.n_params) if self.n_params.bit_length() < 1024 else math.inf

    @property
    def bic_score(self) -> float | None:
        """Log-likelihood - k/2 log(weight): larger is better; None without rows."""
        return None if self.bic is None else -0.5 * self.bic

    @property
    def kl_divergence(self) -> float | None:
        """KL(empirical || model) in nats per row; None where the data are not discrete."""
        if self.empirical_entropy is None or self.weight <= 0:
            return None
        return max(0.0, -self.empirical_entropy - self.log_likelihood / self.weight)

    def lines(self) -> list[tuple[str, str]]:
        """Label and text of each line of the receipt."""
        weight = "" if self.weight == self.rows else f", weight {self.weight:,.6g}"
        times = {0: "from a summary", 1: "read once"}.get(self.passes, f"in {self.passes:,} passes")
        lines = [("model", self.model), ("rows", f"{self.rows:,}{weight}, {times}")]
        if self.plan:
            lines.append(("plan", self.plan))
        estimate = self.estimate + (f", {self.parameterisation}" if self.parameterisation else "")
        lines += [("estimate", estimate), ("method", self.method)]
        if self.iterations:
            state = "converged" if self.converged else f"NOT converged ({self.stop_reason})"
            lines.append(("iterations", f"{self.iterations}, {state}"))
        elif not self.converged:
            lines.append(("stopped", f"NOT converged ({self.stop_reason})"))
        criterion = "" if self.bic is None else f", BIC {self.bic:,.4f}"
        if self.has_likelihood:
            lines.append(("log-likelihood", f"{self.log_likelihood:,.6f} (sum, natural log)"))
            lines.append(("parameters", f"{self.n_params}; AIC {self.aic:,.4f}{criterion}"))
        else:
            lines.append(("quasi-likelihood", f"{self.log_likelihood:,.6f} (sum; no likelihood, so no AIC and no BIC)"))
            lines.append(("parameters", f"{self.n_params}"))
        if self.log_evidence is not None:
            lines.append(("log evidence", f"{self.log_evidence:,.6f}"))
        if self.kl_divergence is not None:
            lines.append(("KL(data || model)", f"{self.kl_divergence:.6g} nats per row"))
        lines += self.certificate.lines(closed=self.is_exact)
        shown = self.warnings[:4]
        lines += [("warning", text) for text in shown]
        if len(self.warnings) > len(shown):
            lines.append(("warnings", f"{len(self.warnings) - len(shown)} more in report_.warnings"))
        return lines

    def __str__(self) -> str:
        """A receipt of at most 25 lines."""
        return receipt(self.lines()[:25])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th style='text-align:left'>{html.escape(label)}</th><td>{html.escape(text)}</td></tr>"
            for label, text in self.lines()
        )
        return f"<table class='suffice-report'>{rows}</table>"

    # -- what it is a receipt of -------------------------------------------------------------------------------------

    def shown_with(self, portrait: Callable[[], Portrait]) -> Report:
        """The same report, whose page also shows the model: its portrait, which is drawn when the page is made.

        It is one object while someone holds it. The portrait is no part of comparisons, files, pickles and copies.
        """
        seen: Callable[[], Report | None] = fields_of(self).get("_shown", lambda: None)
        shown = seen()
        if shown is None or fields_of(shown)["_portrait"] != portrait:
            shown = copy.copy(self)
            set_fields(shown, _portrait=portrait)
            set_fields(self, _shown=weakref.ref(shown))
        return shown

    def __getstate__(self) -> dict[str, Any]:
        return {entry.name: getattr(self, entry.name) for entry in fields(self)}

    def to_html(self, path: FilePath | None = None, *, title: str | None = None) -> str:
        """A page that needs nothing but a browser; written to `path` where one is given, and returned as text.

        `title` names the model and its data on the page; the name of its class unless said.
        A report that was read or pickled by itself knows no model, and its page has no graph and no tables.
        """
        draw: Callable[[], Portrait] | None = fields_of(self).get("_portrait")
        return outlets.page(self, None if draw is None else draw(), path, title)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, with the derived figures."""
        return {**asdict(self), **{name: getattr(self, name) for name in _DERIVED}}

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Report:
        """Rebuild from plain data, with the derived figures or without; a figure of the wrong type is an error."""
        plain = {name: value for name, value in plain.items() if name not in _DERIVED}
        held = dict(plain["certificate"])
        drawn = held.pop("monte_carlo", None)
        chains = None if drawn is None else checked(MonteCarlo(**drawn))
        bent = held.pop("curvature", None)
        curved = None if bent is None else checked(Curvature(**{**bent, "flat": tuple(bent["flat"])}))
        if curved is not None and not (curved.point in _POINTS and 1 <= curved.reached <= curved.starts):
            raise FileFormatError(f"The report holds {curved!r}, which no fit says.")
        directions = tuple(held.pop("directions"))
        certificate = Certificate(**held, directions=directions, monte_carlo=chains, curvature=curved)
        tuples = {key: tuple(plain[key]) for key in ("history", "warnings")}
        if not all(type(text) is str for text in (*tuples["warnings"], *certificate.directions)):
            raise FileFormatError("The report holds a warning or a direction that is no text.")
        report = cls(**{**plain, **tuples, "certificate": certificate})
        for record in (report, certificate):
            for name, kinds in _KINDS.items():
                if hasattr(record, name) and type(getattr(record, name)) not in kinds:
                    raise FileFormatError(f"The report holds {getattr(record, name)!r} for {name}.")
        numbers = (*report.history, report.log_likelihood, report.objective, certificate.moment_gap)
        if not all(isinstance(value, float) and not math.isnan(value) for value in numbers):
            raise FileFormatError("The report holds a figure that is not a number.")
        return report


# -- one unit of gaps in every model -----------------------------------------------------------------------------------

#: The unit of `Certificate.moment_gap`.
STANDARD_ERRORS = "standard errors of each statistic"


def in_standard_errors(slope: Floats, variance: Floats, rounding: float | Floats = 0.0) -> float:
    """The largest gap of observed and expected totals, in standard errors: max |slope| / sqrt(variance).

    The slope of a log-likelihood by a natural parameter is the observed total of its statistic less the expected one,
    and its Fisher information is the variance of that total: one standard error is the difference that another sample
    of as many rows would make by chance. A statistic that does not vary has no standard error: its gap is 0 where the
    slope is rounding, and infinite where it is not.

    Args:
        slope: (k,), sums over all rows, with the slope of the log prior where there is one.
        variance: (k,), variances of the totals (with the curvature of the log prior where there is one).
        rounding: What rounding alone may leave of a slope, one number or (k,).

    >>> in_standard_errors(np.array([3.0, 0.0]), np.array([9.0, 0.0]))
    1.0
    """
    size = np.abs(slope)
    size = np.where(size <= rounding, 0.0, size)
    with np.errstate(divide="ignore", invalid="ignore"):
        gaps = np.where(size == 0.0, 0.0, size / np.sqrt(np.maximum(variance, 0.0)))
    return float(gaps.max(initial=0.0))


_TEXT, _NONE = (str,), (type(None),)
#: What each field of a report may hold in a file.
_KINDS: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("model", "method", "estimate", "stop_reason", "slope_unit", "engine", "formula"), _TEXT),
    **dict.fromkeys(("parameterisation", "plan"), _TEXT + _NONE),
    **dict.fromkeys(("rows", "passes", "n_params", "iterations"), (int,)),
    **dict.fromkeys(("weight", "log_likelihood", "objective", "moment_gap"), (float,)),
    **dict.fromkeys(("log_evidence", "empirical_entropy", "value_gap", "slope"), (float, type(None))),
    **dict.fromkeys(("converged", "bound", "exact"), (bool,)),
    "exists": (bool, type(None)),
}
