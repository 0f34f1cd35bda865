"""Exact learning of a Markov network: counts of its scopes meet weights, by a junction tree."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

from suffice.array_types import Floats
from suffice.errors import EstimateError, OptionError
from suffice.fitting.contract import Found, Judgement
from suffice.fitting.control import Control
from suffice.fitting.report import Certificate, MatchedStatistics, Report
from suffice.models.markov.certificate import NOT_MEASURED, certify
from suffice.models.markov.errors import standard_errors, weight_covariance
from suffice.models.markov.existence import WeightExistence, check_existence
from suffice.models.markov.existence_proof import proves_existence
from suffice.models.markov.family import LogLinearFamily
from suffice.models.markov.fitted import MarkovFitted
from suffice.models.markov.learning import ABOVE_ZERO, LogLinearProblem, learn
from suffice.models.markov.matched import matched_means
from suffice.models.markov.observed import counts_by_scope
from suffice.models.markov.specification import MarkovProblem, warn_conflict
from suffice.solvers.faces import MOST_CELLS, NoJointDistributionError
from suffice.solvers.penalties import Penalty


@dataclass(frozen=True, eq=False)
class ExactProblem(MarkovProblem):
    """Counts of all scopes meet weights.

    began: when the fit began, in seconds of `time.monotonic`: its limit of time holds for the judge too.
    """

    began: float = field(default_factory=time.monotonic)
    #: Sentences that prove that no distribution has the margins, from weights at which they were seen.
    proofs: list[str] = field(default_factory=list)

    # -- what the data say -------------------------------------------------------------------------------------------

    @cached_property
    def counts(self) -> Floats:
        """Counts of all scopes (n_cells,)."""
        return counts_by_scope(self.data.statistics, self.model, lambda: self.plan)

    @cached_property
    def margins(self) -> Floats:
        """Observed shares of all scopes (n_cells,)."""
        return self.counts / self.data.weight

    @cached_property
    def penalty(self) -> Penalty | None:
        """What the prior takes off the objective."""
        return self.spec.penalty(self.model)

    @cached_property
    def whole(self) -> LogLinearFamily:
        """All distributions of the model."""
        return LogLinearFamily(self.model, plan=self.plan)

    @cached_property
    def existence(self) -> tuple[WeightExistence, tuple[str, ...]]:
        """Whether the maximum exists, and why no distribution has the margins where none has.

        Such margins are an error, or a warning where that was asked for.
        """
        conflicts, options = self.data.conflicts, self.spec.options
        # Margins that disagree lie outside of every face.
        cells = MOST_CELLS if options["check_existence"] and not conflicts else 0
        summary = self.data.statistics
        try:
            existence = check_existence(self.model, self.margins, summary, self.penalty, cells, self.whole)
        except NoJointDistributionError as error:
            if options["on_inconsistent"] == "raise":
                raise
            conflicts = (*conflicts, warn_conflict(str(error)))
            existence = WeightExistence.undecided(self.model.n_weights)
        return (existence.of_no_distribution(conflicts) if self.penalty is None and conflicts else existence), conflicts

    # -- solving -----------------------------------------------------------------------------------------------------

    def solve(self, control: Control) -> Found[MarkovFitted]:
        """The weights of maximum likelihood, or the mode of the posterior."""
        spec, penalty = self.spec, self.penalty
        existence, conflicts = self.existence
        family = self.whole
        if existence.masks:
            limit = spec.memory_limit
            family = LogLinearFamily(self.model, existence.masks, plan=self.plan, memory_limit=limit)
        start = spec.start(self.model)
        problem = LogLinearProblem(family, self.margins, self.data.weight, penalty, control, start, existence.direction)
        learned = learn(problem, self._solver(conflicts))
        family.rest()
        fitted = spec.fitted(family, learned.weights, existence.limits)
        if not conflicts:
            conflicts = self._impossible(fitted)
            if learned.handed_on and conflicts:  # No distribution has these margins: IPF alone nears them.
                learned = learn(replace(problem, control=replace(control, checkpoint=None)), "ipf")
                fitted = spec.fitted(family, learned.weights, existence.limits)
        return Found(
            fitted,
            learned.method,
            "maximum likelihood" if penalty is None else "MAP",
            learned.outcome,
            (*self.data.notes, *conflicts, *existence.notes, *spec.model_notes(self.model, penalty)),
            str(family.plan),
            None if penalty is None else "in the weights",
            # The certificate of tables is made when it is first read; one with a limit of time belongs to the fit.
            later=self.model.is_tables and control.max_seconds is None,
        )

    def _solver(self, conflicts: tuple[str, ...]) -> str:
        solver: str = self.spec.options["solver"]
        if conflicts and self.penalty is None:
            if solver not in ("auto", "ipf") or not self.model.is_tables:
                raise OptionError(
                    f"solver={solver!r} has no maximum to find for margins that disagree. Use solver='ipf', or a prior."
                )
            return "ipf"
        return solver

    def _impossible(self, fitted: MarkovFitted) -> tuple[str, ...]:
        """A mean of log-probabilities above 0 proves that the margins are those of no distribution."""
        mean = self._log_score(fitted) / self.data.weight
        if mean <= ABOVE_ZERO:
            return ()
        sentence = (
            "No joint distribution has the observed margins: at the weights found their mean log-probability would be "
            f"{mean:.3g}, above 0. Check the margins, or take them from one table."
        )
        if self.spec.options["on_inconsistent"] == "raise":
            raise EstimateError(sentence)
        self.proofs.append(warn_conflict(sentence))
        return tuple(self.proofs)

    # -- judging -----------------------------------------------------------------------------------------------------

    def judge(self, fitted: MarkovFitted) -> Judgement:
        """Slope, bound or estimate of what is left, and existence, at the weights."""
        score = self._log_score(fitted)
        penalty = 0.0 if self.penalty is None else self.penalty.value(fitted.finite)
        existence, seconds = self._confirmed(fitted), self.spec.options["max_seconds"]
        deadline = math.inf if seconds is None else self.began + seconds
        given = self.margins, self.data.weight, self.penalty, existence
        notes: tuple[str, ...] = ()
        try:
            certificate, gap = certify(fitted.family, fitted.finite, *given, deadline=deadline)
        except KeyboardInterrupt:  # The fit is done and is not thrown away.
            certificate = Certificate(math.inf, exists=existence.exists, directions=existence.directions)
            gap, notes = math.inf, (NOT_MEASURED,)
        return Judgement(
            # Margins that no distribution has, no data have either.
            score if score <= ABOVE_ZERO * self.data.weight else -math.inf,
            score - penalty,
            certificate,
            gap=gap,
            matched=partial(self.matched, fitted),
            empirical_entropy=self.data.observed_entropy(self.spec.nodes),
            notes=notes,
        )

    def _confirmed(self, fitted: MarkovFitted) -> WeightExistence:
        """What was too large to be decided before may be proven by the weights that were found."""
        existence, conflicts = self.existence
        if self.proofs:
            return existence.of_no_distribution(tuple(self.proofs))
        undecided = existence.exists is None and self.spec.options["check_existence"] and self.model.is_tables
        if not undecided or conflicts:
            return existence
        return replace(existence, exists=True) if self._proven(fitted) else existence

    def _proven(self, fitted: MarkovFitted) -> bool:
        return proves_existence(fitted.family, fitted.finite, self.margins)

    def _log_score(self, fitted: MarkovFitted) -> float:
        if fitted.family.extra_scopes:
            return fitted.log_likelihood(self.data.statistics)
        return fitted.log_likelihood_of(self.counts, self.data.weight)

    def matched(self, fitted: MarkovFitted) -> MatchedStatistics:
        """Observed and expected means of the features, and of the cells of tables; what a prior adds to the former."""
        expected = fitted.family.moments(fitted.finite)[1]
        observed = self.model.expected(self.margins)
        return matched_means(fitted.weight_names, observed, expected, self.penalty, fitted.finite, self.data.weight)

    def again(self, fitted: MarkovFitted, report: Report) -> Judgement:
        """What a file says about its fit."""
        matched = partial(self.matched, fitted)
        return Judgement(report.log_likelihood, report.objective, report.certificate, matched=matched)

    def standard_errors(self, fitted: MarkovFitted, judged: Judgement) -> Floats:
        """Standard errors of the weights (n_weights,), from the expected information."""
        weight = self.data.weight
        return standard_errors(fitted, self.penalty, lambda f: weight * f.covariance(fitted.finite * f.model.units))

    def weight_covariance(self, fitted: MarkovFitted, judged: Judgement) -> Floats:
        """The covariance of the weights (n_weights, n_weights), from the expected information."""
        return weight_covariance(self.penalty, self.data.weight * fitted.near.covariance(fitted.finite))

    def identity(self) -> Iterable[Any]:
        """Terms, states, margins, prior, start and solver."""
        model = self.model
        penalty = () if self.penalty is None else self.penalty.identity
        states = [list(map(repr, variable.states)) for variable in model.domain.variables]
        features = None if model.is_identity else [model.matrix.indices, model.matrix.data]
        options = self.spec.options["solver"], self.spec.options["check_existence"]
        scopes = list(map(repr, model.scopes))
        observed = model.expected(self.margins)
        return *options, scopes, states, features, observed, self.data.weight, *penalty, self.spec.start(model)
