"""The fit of a distribution: a column becomes statistics, statistics become parameters, and those are judged.

Without a prior the expected statistics are made equal to the observed ones; with a conjugate prior the statistics are
added to it, and the estimate is the mean or the mode of the posterior.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

from suffice.checks import choice
from suffice.domain import Domain, Variable
from suffice.errors import EstimateError, ExistenceWarning, FileFormatError, MergeError, OptionError, Remark
from suffice.families.base import UNNAMED, only_variable
from suffice.families.certificate import certify, certify_posterior
from suffice.families.fitted import FamilyFitted
from suffice.families.member import FamilyMember
from suffice.fitting.contract import Found, Judgement, Purpose
from suffice.fitting.control import Control
from suffice.fitting.report import MatchedStatistics
from suffice.fitting.summaries import SummaryData, SummaryTask
from suffice.statistics import Statistic, Summary

ESTIMATES = ("mle", "map", "mean")


@dataclass(frozen=True, eq=False)
class FamilyTask(SummaryTask[FamilyFitted]):
    """The parameters of a family of one column. `family` is unfitted."""

    family: FamilyMember

    def required(
        self, columns: Sequence[Hashable], known: FamilyFitted | None, purpose: Purpose
    ) -> Mapping[Hashable, Variable | None]:
        """The columns that the family describes."""
        return self.family.required(columns)

    def asked(self, domain: Domain, known: FamilyFitted | None, purpose: Purpose) -> tuple[Statistic, ...]:
        """What the family is learned from."""
        return self.family.ask(domain)

    def marks(self, data: SummaryData) -> Mapping[str, tuple[float, float]]:
        """The marks of a single column do not hang on its name, which one of two fits may lack."""
        marks, names = super().marks(data), data.statistics.domain.names
        return (
            {key.replace(repr(names[0]), "the value"): mark for key, mark in marks.items()}
            if len(names) == 1
            else marks
        )

    def check(self, summary: Summary, known: FamilyFitted | None, purpose: Purpose) -> Summary:
        """The summary under the name learned: a column without a name takes it, another name is an error."""
        read = only_variable(summary, self.family.title)
        if purpose == "fit" or known is None or known.names is None or known.names == (read.name,):
            return summary
        if len(known.names) != 1:
            raise FileFormatError(f"The {known.title} has learned the columns {list(known.names)}; expected one.")
        learned = known.names[0]
        if UNNAMED not in (read.name, learned):
            raise MergeError(
                f"This {known.title} has learned the column {learned!r} and the data hold {read.name!r}. "
                f"If they are the same, give the column by itself and its name with columns={learned!r}."
            )
        domain = Domain([replace(read, name=learned)])
        questions = zip(self.family.ask(summary.domain), self.family.ask(domain), strict=True)
        return Summary(domain, {new: summary[old] for old, new in questions}, summary.rows, summary.weight)

    def problem(self, data: SummaryData, start: FamilyFitted | None) -> FamilyProblem:
        """The parameters of these statistics."""
        return FamilyProblem(self.family, data, self.options.get("prior"), self.options.get("estimate"))


@dataclass(frozen=True, eq=False)
class FamilyProblem:
    """Statistics meet the parameters of a family. `asked_prior` and `asked_estimate` are the options of the fit."""

    family: FamilyMember
    data: SummaryData
    asked_prior: Any = None
    asked_estimate: str | None = None

    @property
    def summary(self) -> Summary:
        """The statistics of the rows."""
        return self.data.statistics

    @cached_property
    def prior(self) -> Any:
        """The conjugate prior; None for maximum likelihood."""
        prior = self.asked_prior
        return None if prior is None else self.family.conjugate_prior(prior, self.summary)

    @property
    def estimate(self) -> str:
        """One of "mle", "map" and "mean"."""
        estimate, prior = self.asked_estimate, self.asked_prior
        if estimate is None:
            return "mle" if prior is None else "mean"
        choice(estimate, "estimate", ESTIMATES)
        if (estimate == "mle") != (prior is None):
            raise OptionError(f"estimate={estimate!r} {'needs a prior=' if prior is None else 'takes no prior'}.")
        return estimate

    def identity(self) -> Iterable[Any]:
        """The family, what is known of it, and the mean of its statistics."""
        known = {name: self.family.known.get(name) for name in self.family.parameter_names}
        return self.family.title, repr(known), self.family.observed(self.summary), self.summary.weight

    # -- solving -----------------------------------------------------------------------------------------------------

    def solve(self, control: Control) -> Found[FamilyFitted]:
        """Parameters of maximum likelihood, or the mean or the mode of the conjugate posterior."""
        self.family.refuse_given(self.summary)
        if self.prior is None and self.estimate == "mle":
            return self._most_likely(control)
        return self._posterior_point()

    def _fitted(self, parameters: Mapping[str, Any], posterior: Any = None) -> FamilyFitted:
        member = self.family.at(parameters, **self.family.seen_in(self.summary))
        return FamilyFitted(member, posterior, self.summary.domain.names)

    def _most_likely(self, control: Control) -> Found[FamilyFitted]:
        summary = self.summary
        if summary.weight <= 0:
            rows = f"All weights of the {summary.rows} rows are 0" if summary.rows else "There are no rows"
            raise EstimateError(f"{rows}: the maximum-likelihood {self.family.title} needs data, or a prior=.")
        parameters, outcome = self.family.maximise(summary, control)
        fitted = self._fitted(parameters)
        closed = "closed form: expected statistics equal the observed ones"
        method = closed if outcome is None else "Newton on the log-likelihood"
        edge = fitted.member.edge(summary)
        notes = tuple(Remark(f"{text}: the estimate lies on the edge of the family", ExistenceWarning) for text in edge)
        # The certificate of a closed form is made when it is first read.
        later = outcome is None
        return Found(fitted, method, "maximum likelihood", outcome, (*self.data.notes, *notes), later=later)

    def _posterior_point(self) -> Found[FamilyFitted]:
        posterior = self.family.update(self.prior, self.summary)
        point = posterior.mode() if self.estimate == "map" else posterior.mean()
        return Found(
            self._fitted(self.family.from_point(point), posterior),
            f"closed form: conjugate {type(self.prior).__name__} posterior",
            "MAP" if self.estimate == "map" else "posterior mean",
            notes=self.data.notes,
            parameterisation=f"in {self.family.point_space(self.estimate)}",
            later=True,
        )

    # -- judging -----------------------------------------------------------------------------------------------------

    def judge(self, fitted: FamilyFitted) -> Judgement:
        """The gap of observed and expected statistics, or of Bayes' theorem at the estimate."""
        member, summary, prior = fitted.member, self.summary, self.prior
        log_likelihood = member.log_likelihood(summary)
        if fitted.posterior is None:
            certificate, gap = certify(member, summary)
        else:
            certificate, gap = certify_posterior(fitted, prior, summary, self.estimate)
        return Judgement(
            log_likelihood,
            self._objective(fitted, log_likelihood),
            certificate,
            gap=gap,
            matched=partial(self._matched, fitted),
            log_evidence=None if prior is None else member.evidence(prior, fitted.posterior, summary),
            empirical_entropy=member.empirical_entropy(summary),
        )

    def _objective(self, fitted: FamilyFitted, log_likelihood: float) -> float:
        """What was maximised: the log-likelihood, and the log prior where the estimate is its mode."""
        if self.prior is None or self.estimate != "map":
            return log_likelihood
        point, posterior = fitted.member.prior_point(), fitted.posterior
        value = log_likelihood + float(self.prior.log_prob(point))
        if math.isnan(value):
            # On the edge an unbounded prior density meets a likelihood of 0; the product is evidence times posterior.
            evidence = fitted.member.evidence(self.prior, posterior, self.summary) or 0.0
            value = float(posterior.log_prob(point)) + evidence
        return value

    def _matched(self, fitted: FamilyFitted) -> MatchedStatistics | None:
        """The means of T over the rows, and E[T]; None without rows."""
        if not self.summary.weight > 0:
            return None
        observed, expected = fitted.member.observed(self.summary), fitted.member.expected_statistics()
        names = fitted.member.statistic_names
        several = len(names) == len(observed)
        return MatchedStatistics(
            names if several else tuple(f"T{k + 1}" for k in range(len(observed))), observed, expected
        )
