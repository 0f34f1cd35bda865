"""Learning a Markov network without exact inference: rows or counts of its scopes meet weights, by chains."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.fitting.contract import Found, Judgement
from suffice.fitting.control import Control
from suffice.fitting.report import Report
from suffice.models.markov.approximate.family import SampledFamily
from suffice.models.markov.approximate.learning import learn_and_measure, verdict
from suffice.models.markov.approximate.measure import SampledMeasurement, measure, unmeasured
from suffice.models.markov.approximate.options import read_batch
from suffice.models.markov.approximate.own_slope import Own, measure_own
from suffice.models.markov.approximate.problem import SampledProblem
from suffice.models.markov.approximate.rows import rows_of_summary
from suffice.models.markov.approximate.solvers import tolerance_of
from suffice.models.markov.contingency import counts_by_scope
from suffice.models.markov.errors import standard_errors
from suffice.models.markov.family import LogLinearFamily
from suffice.models.markov.fitted import MarkovFitted
from suffice.models.markov.log_linear import LogLinear
from suffice.models.markov.matched import matched_means
from suffice.models.markov.specification import TOLERANCE, MarkovData, Specification

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SamplingProblem:
    """Counts of all scopes, and rows where a solver needs them, meet weights.

    Fresh chains measure the weights, which tells a solver whether to go on and the judge what it has come to: `known`
    holds the last measurement with its weights, so that it is not made twice.
    """

    spec: Specification
    data: MarkovData
    known: list[tuple[Floats, SampledMeasurement]] = field(default_factory=list)

    @cached_property
    def model(self) -> LogLinear:
        """Variables and terms."""
        return LogLinear(self.spec.whole_domain(self.data.statistics), self.spec.terms)

    @cached_property
    def family(self) -> LogLinearFamily:
        """By a junction tree where a small one does, else by chains."""
        return self.spec.family(self.model)

    @property
    def exact(self) -> LogLinearFamily | None:
        """The distributions by a junction tree, where one fits."""
        return None if isinstance(self.family, SampledFamily) else self.family

    @property
    def solver(self) -> str:
        """The approximate solver."""
        return str(self.spec.options["solver"])

    @cached_property
    def seed(self) -> np.random.Generator:
        """One stream of random numbers for solver and judge."""
        return np.random.default_rng(self.spec.options["random_state"])

    @cached_property
    def margins(self) -> Floats:
        """Observed shares of all scopes (n_cells,)."""
        return counts_by_scope(self.data.statistics, self.model) / self.data.weight

    def sampled(self, control: Control) -> SampledProblem:
        """What approximate solvers see."""
        spec, options, summary = self.spec, self.spec.options, self.data.statistics
        rows = rows_of_summary(summary, spec.nodes) if self.data.sample is None else self.data.sample
        start, penalty = spec.start(self.model), spec.penalty(self.model)
        return SampledProblem(
            self.model, self.margins, summary.weight, penalty, control, start, spec.sampling, self.seed,
            rows, read_batch(options["batch_size"]), options["step_size"],
        )  # fmt: skip

    def solve(self, control: Control) -> Found[MarkovFitted]:
        """Learn, and go on where fresh chains find the fit short of its tolerance."""
        problem = self.sampled(control)
        ended, measured = learn_and_measure(problem, self.solver, self.exact)
        self.known[:] = [(ended.weights, measured)]
        colours = len(problem.sampler.layout.colours)
        kind = "maximum likelihood" if problem.penalty is None else "MAP"
        untold = self.spec.model_notes(self.model, problem.penalty)
        return Found(
            self.spec.fitted(self.family, ended.weights),
            ended.title,
            {"sml": kind}.get(self.solver, f"approximate {kind}"),
            ended.outcome,
            (*self.data.conflicts, *self.data.notes, *ended.notes, *untold),
            sampling_plan(self.model, colours),
            None if problem.penalty is None else "in the weights",
        )

    def judge(self, fitted: MarkovFitted) -> Judgement:
        """The gap by fresh chains, the likelihood with its error, and the slope of what the solver climbs."""
        tolerance = self.spec.options["tolerance"]
        problem = self.sampled(Control(tolerance=TOLERANCE if tolerance is None else tolerance))
        measured, own = self._measured(problem, fitted), None
        if self.solver != "sml":
            try:
                own = measure_own(problem, fitted.finite, self.solver, tolerance_of(problem))
            except KeyboardInterrupt:  # The fit is done and is not thrown away.
                own = Own(None, "its measurement was interrupted")
        return Judgement(
            measured.log_likelihood,
            measured.objective if own is None or own.objective is None else own.objective,
            measured.certificate(),
            gap=0.0,  # Of a fit by chains the verdict says whether it is done.
            matched=self._matched(fitted, measured),
            empirical_entropy=self.data.entropy,
            verdict=verdict(measured, own),
        )

    def _measured(self, problem: SampledProblem, fitted: MarkovFitted) -> SampledMeasurement:
        if self.known and np.array_equal(self.known[0][0], fitted.finite):
            return self.known[0][1]
        try:
            return measure(problem, fitted.finite, self.solver, self.exact, tolerance_of(problem))
        except KeyboardInterrupt:  # The fit is done and is not thrown away.
            return unmeasured(problem, self.solver)

    def _matched(self, fitted: MarkovFitted, measured: SampledMeasurement | None) -> Any:
        """Makes the matched statistics from what the chains measured, or exactly; None where neither is at hand.

        It holds no rows.
        """
        expected, errors = (None, None) if measured is None else (measured.expected, measured.errors)
        if expected is None:
            if fitted.is_sampled:
                return None
            expected = fitted.family.moments(fitted.finite)[1]
        observed, penalty = self.model.expected(self.margins), self.spec.penalty(self.model)
        rows = self.data.weight
        return partial(matched_means, fitted.weight_names, observed, expected, penalty, fitted.finite, rows, errors)

    def again(self, fitted: MarkovFitted, report: Report) -> Judgement:
        """What a file says about its fit: fresh chains are not run anew."""
        matched = self._matched(fitted, None)
        return Judgement(report.log_likelihood, report.objective, report.certificate, matched=matched)

    def standard_errors(self, fitted: MarkovFitted, judged: Judgement) -> Floats:
        """Standard errors of the weights (n_weights,), from the expected information."""
        weight, penalty = self.data.weight, self.spec.penalty(self.model)
        return standard_errors(fitted, penalty, lambda f: weight * f.covariance(fitted.finite * f.model.units))

    def identity(self) -> Iterable[Any]:
        """Terms, margins, prior, start, solver, and how its chains run."""
        options, penalty = self.spec.options, self.spec.penalty(self.model)
        prior = () if penalty is None else penalty.identity
        observed, start = self.model.expected(self.margins), self.spec.start(self.model)
        names = [self.solver, list(map(repr, self.model.scopes))]
        return *names, self.spec.sampling.to_plain(), options["batch_size"], observed, self.data.weight, *prior, start


def sampling_plan(model: LogLinear, colours: int) -> str:
    """What a report says about chains."""
    return f"Gibbs sampling: {len(model.domain):,} variables in {colours} colours, {len(model.scopes):,} factors"
