"""The fit of a distribution: a column becomes statistics, statistics become parameters, and those are judged.

Without a prior the expected statistics are made equal to the observed ones; with a conjugate prior the statistics are
added to it, and the estimate is the mean or the mode of the posterior.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from suffice.domain import Domain, Variable
from suffice.errors import EstimateError, MergeError
from suffice.families.base import UNNAMED, only_variable
from suffice.families.fitted import FamilyFitted
from suffice.families.posterior_check import SCALE, check_posterior, on_edge
from suffice.fitting.contract import Found, Judgement, Purpose
from suffice.fitting.control import Control
from suffice.fitting.report import Certificate, MatchedStatistics
from suffice.fitting.summaries import SummaryData, SummaryTask
from suffice.statistics import Statistic, Summary

if TYPE_CHECKING:
    from suffice.families.exponential_family import ExponentialFamily

#: Gaps in posterior standard deviations that the numerical derivatives of the check may leave.
WELL_BELOW = 1e-3

E = TypeVar("E", bound="ExponentialFamily")


@dataclass(frozen=True, eq=False)
class FamilyTask(SummaryTask[FamilyFitted], Generic[E]):
    """The parameters of a family of one column. `family` is unfitted."""

    family: E

    def required(
        self, columns: Sequence[Hashable], known: FamilyFitted | None, purpose: Purpose
    ) -> Mapping[Hashable, Variable | None]:
        """The columns that the family describes."""
        return self.family._required(columns)

    def asked(self, domain: Domain, known: FamilyFitted | None, purpose: Purpose) -> tuple[Statistic, ...]:
        """What the family is learned from."""
        return self.family._ask(domain)

    def check(self, summary: Summary, known: FamilyFitted | None, purpose: Purpose) -> Summary:
        """The summary under the name learned: a column without a name takes it, another name is an error."""
        read = only_variable(summary, self.family)
        if purpose == "fit" or known is None or known.names is None or known.names == (read.name,):
            return summary
        (learned,) = known.names
        if UNNAMED not in (read.name, learned):
            raise MergeError(
                f"This {known.title} has learned the column {learned!r} and the data hold {read.name!r}. "
                f"If they are the same, give the column by itself and its name with columns={learned!r}."
            )
        domain = Domain([replace(read, name=learned)])
        questions = zip(self.family._ask(summary.domain), self.family._ask(domain), strict=True)
        return Summary(domain, {new: summary[old] for old, new in questions}, summary.rows, summary.weight)

    def problem(self, data: SummaryData, start: FamilyFitted | None) -> FamilyProblem:
        """The parameters of these statistics."""
        return FamilyProblem(self.family, data)


@dataclass(frozen=True, eq=False)
class FamilyProblem:
    """Statistics meet the parameters of a family."""

    family: ExponentialFamily
    data: SummaryData

    @property
    def summary(self) -> Summary:
        """The statistics of the rows."""
        return self.data.statistics

    @cached_property
    def prior(self) -> Any:
        """The conjugate prior; None for maximum likelihood."""
        return self.family._prior(self.summary)

    @property
    def estimate(self) -> str:
        """One of "mle", "map" and "mean"."""
        return self.family._estimate()

    def identity(self) -> Iterable[Any]:
        """The family, what is known of it, and the mean of its statistics."""
        known = {name: self.family._options.get(name) for name in self.family.parameter_names}
        return type(self.family).__name__, repr(known), self.family._observed(self.summary), self.summary.weight

    # -- solving -----------------------------------------------------------------------------------------------------

    def solve(self, control: Control) -> Found[FamilyFitted]:
        """Parameters of maximum likelihood, or the mean or the mode of the conjugate posterior."""
        self.family._refuse_given(self.summary)
        if self.prior is None and self.estimate == "mle":
            return self._most_likely(control)
        return self._posterior_point()

    def _fitted(self, parameters: Mapping[str, Any], posterior: Any = None) -> FamilyFitted:
        names, states = self.summary.domain.names, self.family._states_in(self.summary)
        return FamilyFitted(self.family, self.family._check(parameters), posterior, names, states)

    def _most_likely(self, control: Control) -> Found[FamilyFitted]:
        summary = self.summary
        if summary.weight <= 0:
            rows = f"All weights of the {summary.rows} rows are 0" if summary.rows else "There are no rows"
            raise EstimateError(f"{rows}: the maximum-likelihood {type(self.family).__name__} needs data, or a prior=.")
        parameters, outcome = self.family._maximise(summary, control)
        fitted = self._fitted(parameters)
        closed = "closed form: expected statistics equal the observed ones"
        method = closed if outcome is None else "Newton on the log-likelihood"
        edge = self._at(fitted)._edge(summary)
        notes = tuple(f"{text}: the estimate lies on the edge of the family" for text in edge)
        return Found(fitted, method, "maximum likelihood", outcome, (*self.data.notes, *notes))

    def _posterior_point(self) -> Found[FamilyFitted]:
        posterior = self.family._update(self.prior, self.summary)
        point = posterior.mode() if self.estimate == "map" else posterior.mean()
        return Found(
            self._fitted(self.family._from_point(point), posterior),
            f"closed form: conjugate {type(self.prior).__name__} posterior",
            "MAP" if self.estimate == "map" else "posterior mean",
            notes=self.data.notes,
            parameterisation=f"in {self.family._point_space(self.estimate)}",
        )

    # -- judging -----------------------------------------------------------------------------------------------------

    def _at(self, fitted: FamilyFitted) -> ExponentialFamily:
        """The distribution of a fitted value."""
        found: Any = fitted.distribution
        return found

    def judge(self, fitted: FamilyFitted) -> Judgement:
        """The gap of observed and expected statistics, or of Bayes' theorem at the estimate."""
        law, summary = self._at(fitted), self.summary
        log_likelihood = law._log_likelihood(summary)
        evidence = None if self.prior is None else law._evidence(self.prior, fitted.posterior, summary)
        return Judgement(
            log_likelihood,
            self._objective(fitted, log_likelihood),
            self._certify(law) if fitted.posterior is None else self._certify_posterior(fitted),
            matched=partial(self._matched, fitted),
            log_evidence=evidence,
            empirical_entropy=law._empirical_entropy(summary),
        )

    def _objective(self, fitted: FamilyFitted, log_likelihood: float) -> float:
        """What was maximised: the log-likelihood, and the log prior where the estimate is its mode."""
        if self.prior is None or self.estimate != "map":
            return log_likelihood
        law = self._at(fitted)
        point, posterior = law._prior_point(), fitted.posterior
        value = log_likelihood + float(self.prior.log_prob(point))
        if math.isnan(value):
            # On the edge an unbounded prior density meets a likelihood of 0; the product is evidence times posterior.
            evidence = law._evidence(self.prior, posterior, self.summary) or 0.0
            value = float(posterior.log_prob(point)) + evidence
        return value

    def _certify(self, law: ExponentialFamily) -> Certificate:
        edge = law._edge(self.summary)
        gap, decrement = law._gap(self.summary)
        short = law._shortfall(self.summary)
        if short is None:
            return Certificate(gap, 0.5 * decrement * decrement, bound=False, exists=not edge, directions=edge)
        # It is quadratic in the standardised gap, of which rounding may hide a part.
        most = (math.sqrt(max(short, 0.0)) + law._rounding()) ** 2 if short < math.inf else math.inf
        return Certificate(gap, most, bound=True, exists=not edge, directions=edge)

    def _certify_posterior(self, fitted: FamilyFitted) -> Certificate:
        """Bayes' theorem at the estimate, and the estimate as the mode or the mean; see `posterior_check`.

        The rise of the log posterior is half the squared slope in standard deviations, spread over the rows.
        """
        law, summary = self._at(fitted), self.summary
        checked = check_posterior(fitted, self.prior, summary, mode=self.estimate == "map")
        rise = None if checked.rise is None else checked.rise / max(summary.weight, 1.0)
        short = fitted.posterior.below_mode(law._prior_point()) if checked.rise is not None else None
        # Where Bayes' theorem holds, the objective is the log posterior and a constant.
        bound = short is not None and checked.bayes < WELL_BELOW
        if short is not None and bound:
            hidden = law._rounding() * math.sqrt(summary.weight + 1)
            rise = (math.sqrt(short) + hidden) ** 2 / max(summary.weight, 1.0)
        edge: tuple[str, ...] = ()
        if on_edge(fitted.parameters):
            seen = law._edge(summary) if summary.weight > 0 else ()
            edge = seen or ("a natural parameter -> +-inf (the prior has its mode on the edge)",)
        mean = "" if self.estimate == "map" else "the mean of the posterior"
        return Certificate(checked.gap, rise, bound=bound, exists=not edge, directions=edge, scale=SCALE, formula=mean)

    def _matched(self, fitted: FamilyFitted) -> MatchedStatistics | None:
        """The means of T over the rows, and E[T]; None without rows."""
        if not self.summary.weight > 0:
            return None
        law = self._at(fitted)
        observed, expected = law._observed(self.summary), law.expected_statistics()
        several = len(law.statistic_names) == len(observed)
        names = law.statistic_names if several else tuple(f"T{k + 1}" for k in range(len(observed)))
        return MatchedStatistics(names, observed, expected)
