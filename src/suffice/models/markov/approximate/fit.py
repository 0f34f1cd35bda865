"""Learning a Markov network without exact inference: rows or counts of its scopes meet weights, by chains."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

from suffice.array_types import Floats
from suffice.engines.chain_means import ChainMeans
from suffice.fitting.contract import Found, Judgement
from suffice.fitting.control import Control
from suffice.fitting.report import MatchedStatistics, Report
from suffice.models.markov.approximate.certificate import (
    ENGINES,
    SampledMeasurement,
    log_likelihood,
    measure_own,
    measured,
    unmeasured,
    verdict,
)
from suffice.models.markov.approximate.family import SampledFamily
from suffice.models.markov.approximate.learning import learn
from suffice.models.markov.approximate.measure import SampledSlope, exact_slope, fresh_chains, measure_slope
from suffice.models.markov.approximate.options import read_batch
from suffice.models.markov.approximate.problem import SampledProblem
from suffice.models.markov.approximate.rows import rows_of_summary
from suffice.models.markov.approximate.solvers import tolerance_of
from suffice.models.markov.errors import standard_errors
from suffice.models.markov.family import LogLinearFamily
from suffice.models.markov.feature_spread import offsets
from suffice.models.markov.fitted import MarkovFitted
from suffice.models.markov.learning import in_given_units
from suffice.models.markov.log_linear import LogLinear
from suffice.models.markov.matched import matched_means
from suffice.models.markov.observed import counts_by_scope
from suffice.models.markov.specification import TOLERANCE, MarkovProblem


@dataclass(frozen=True, eq=False)
class SamplingProblem(MarkovProblem):
    """Counts of all scopes, and rows where a solver needs them, meet weights."""

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
    def margins(self) -> Floats:
        """Observed shares of all scopes (n_cells,)."""
        return counts_by_scope(self.data.statistics, self.model) / self.data.weight

    @cached_property
    def sampled(self) -> SampledProblem:
        """What approximate solvers see, in units of the features, with the random numbers of the solver."""
        spec, options, summary = self.spec, self.spec.options, self.data.statistics
        rows = rows_of_summary(summary, spec.nodes) if self.data.sample is None else self.data.sample
        start, penalty = spec.start(self.model), spec.penalty(self.model)
        return SampledProblem(
            self.model, self.margins, summary.weight, penalty, Control(), start, spec.sampling,
            spec.solving_stream(), rows, read_batch(options["batch_size"]), options["step_size"],
        ).in_units()  # fmt: skip

    def solve(self, control: Control) -> Found[MarkovFitted]:
        """Learn, and go on where fresh chains find the fit short of its tolerance."""
        units = self.sampled.units
        problem = replace(self.sampled, control=in_given_units(control, units))
        ended = learn(problem, self.solver, self.exact)
        colours = len(problem.sampler.layout.colours)
        kind = "maximum likelihood" if problem.penalty is None else "MAP"
        untold = self.spec.model_notes(self.model, problem.penalty)
        held = () if problem.rows is None else problem.rows.notes
        return Found(
            self.spec.fitted(self.family, ended.weights / units),
            ended.title,
            {"sml": kind}.get(self.solver, f"approximate {kind}"),
            ended.outcome,
            (*self.data.conflicts, *self.data.notes, *ended.notes, *untold, *held),
            sampling_plan(self.model, colours),
            None if problem.penalty is None else "in the weights",
        )

    def judge(self, fitted: MarkovFitted) -> Judgement:
        """The gap by chains of its own, the likelihood with its error, and the slope of what the solver climbs."""
        problem = self._judged()
        weights, tolerance = fitted.finite * problem.units, tolerance_of(problem)
        engine = ENGINES[self.solver].format(chains=problem.sampling.chains)
        slope, objective, doubt, own = None, None, None, self.solver != "sml"
        try:
            slope, measurement = self._measured(problem, weights, tolerance, engine)
            objective, doubt = measure_own(problem, weights, self.solver, tolerance) if own else (None, None)
        except KeyboardInterrupt:  # The fit is done and is not thrown away.
            measurement, doubt = unmeasured(problem, engine), "its measurement was interrupted" if own else None
        if objective is None:
            penalty = self.spec.penalty(self.model)
            objective = measurement.log_likelihood - (0.0 if penalty is None else penalty.value(fitted.finite))
        return Judgement(
            measurement.log_likelihood,
            objective,
            measurement.certificate,
            gap=0.0,  # Of a fit by chains the verdict says whether it is done.
            matched=partial(self.matched, fitted, None if slope is None else slope.means),
            empirical_entropy=self.data.observed_entropy(self.spec.nodes),
            **verdict(measurement, doubt),
        )

    def _judged(self) -> SampledProblem:
        """What a judge sees: random numbers of its own, and the tolerance."""
        tolerance = self.spec.options["tolerance"]
        control = Control(tolerance=TOLERANCE if tolerance is None else tolerance)
        return replace(self.sampled, control=control, seed=self.spec.judging_stream())

    def _measured(
        self, problem: SampledProblem, weights: Floats, tolerance: float, engine: str
    ) -> tuple[SampledSlope, SampledMeasurement]:
        log_z, exact = (None, None) if self.exact is None else exact_slope(problem, weights, self.exact)
        slope = measure_slope(problem, weights, problem.sampling.lengths, exact)
        return slope, measured(slope, log_likelihood(problem, weights, log_z), tolerance, engine)

    def matched(self, fitted: MarkovFitted, means: ChainMeans | None) -> MatchedStatistics:
        """Observed and expected means of the features, the latter with errors; means: those of the judge's chains.

        Where these are gone, as after a pickle, the same chains are drawn again.
        """
        problem = self._judged()
        units, rows, observed = problem.units, self.data.weight, self.model.expected(self.margins)
        if means is None:
            means = fresh_chains(problem, fitted.finite * units, problem.sampling.lengths)
        expected, errors = means.mean * units + offsets(problem.model), means.error * units
        penalty = self.spec.penalty(self.model)
        return matched_means(fitted.weight_names, observed, expected, penalty, fitted.finite, rows, errors)

    def again(self, fitted: MarkovFitted, report: Report) -> Judgement:
        """What a file says about its fit: fresh chains are run anew only where someone asks for what they matched."""
        matched = partial(self.matched, fitted, None)
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
        return *names, self.spec.sampling.to_dict(), options["batch_size"], observed, self.data.weight, *prior, start


def sampling_plan(model: LogLinear, colours: int) -> str:
    """What a report says about chains."""
    return f"Gibbs sampling: {len(model.domain):,} variables in {colours} colours, {len(model.scopes):,} factors"
