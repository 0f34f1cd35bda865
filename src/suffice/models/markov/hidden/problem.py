"""Learning a Markov network by EM: rows that do not show everything meet weights, by exact expectations.

The observed log-likelihood of rows v with unseen rest h is ``sum over rows of log Z(v) - log Z``, where Z(v) sums over
the joint states that agree with the row. Its slope is ``E[f | rows] - E[f]`` (Fisher's identity).

- E-step: the margins m of all cliques that the rows are expected to have, ``m = mean over rows of P(clique | v)``.
- M-step: weights with larger ``weights . E_m[f] - log Z``, the likelihood of whole rows with these margins, by any of
  its solvers: its maximum, or some iterations on the way there (generalised EM; Dempster, Laird and Rubin 1977).

Starts, extrapolation, limits and checkpoints are those of every model with something hidden, `em.latent.LatentProblem`.
The slope also serves L-BFGS, which takes far fewer steps where the likelihood is flat.
"""

from __future__ import annotations

import math
import time
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from suffice.answers import Answer, CountTable
from suffice.array_types import Floats
from suffice.engines.workers import worker_count
from suffice.errors import EstimateError, OptionError, OptionWarning, Remark, listing
from suffice.fitting.contract import Found, Judgement
from suffice.fitting.control import Control, Outcome, State
from suffice.fitting.report import Certificate, Report
from suffice.models.em.counts import TreeCounts
from suffice.models.em.held_rows import HeldRows, refuse_unkept
from suffice.models.em.information import NOT_COMPUTED, ObservedInformation, score_differences
from suffice.models.em.latent import Expected, LatentProblem, Starts
from suffice.models.em.restarts import Runs
from suffice.models.em.rows import ObservedRows, read_rows
from suffice.models.markov.certificate import feature_variances, gap_fields
from suffice.models.markov.errors import standard_errors
from suffice.models.markov.existence import WeightExistence, check_existence
from suffice.models.markov.family import LogLinearFamily
from suffice.models.markov.feature_spread import feature_units, standardised, variances
from suffice.models.markov.fitted import MarkovFitted
from suffice.models.markov.hidden.check import expected_shares, stationarity
from suffice.models.markov.hidden.determined import curvature_of, undetermined
from suffice.models.markov.hidden.start import random_weights, symmetry_notes
from suffice.models.markov.learning import LogLinearProblem, improve, in_given_units, in_sums, settle
from suffice.models.markov.priors import penalised_slope
from suffice.models.markov.specification import EM_TOLERANCE, MarkovProblem
from suffice.solvers.faces import MOST_CELLS
from suffice.solvers.gradient import lbfgs
from suffice.solvers.penalties import GaussianPenalty, LaplacePenalty, Penalty
from suffice.statistics import Counts, Statistic, Summary

#: A whole M-step ends where its slope is below this share of the tolerance of EM; none is asked to be more exact.
WHOLE, LEAST_SLOPE = 0.1, 1e-12
#: Most iterations of a whole M-step; what is not at the maximum then is still better than before.
MOST_INNER = 10_000
#: Steps of EM before L-BFGS takes over: fewer where the slope has fallen to this. From far away the long steps of
#: L-BFGS find worse maxima, and at the edge.
WARM_STEPS, WARM_GAP = 200, 1e-4
#: Shares below this are as good as 0, and their logarithms would not be finite.
LEAST_SHARE = 1e-250
#: Joint states up to which the rows are spread over all that they leave open, to see which are possible.
SPREAD_CELLS = 2**16
#: Distinct rows from which on the E-step uses all cores.
MANY_ROWS = 4096
#: Rows that all E-steps together may go through to say what they determine, where EM itself took fewer steps.
MOST_ROWS = 200_000


@dataclass
class _Run:
    """What steers the M-steps of a run, in seconds of `time.monotonic` and as a slope, and the last E-step."""

    tolerance: float = EM_TOLERANCE
    deadline: float = math.inf
    last: tuple[Floats, tuple[float, Floats, Floats]] | None = None


@dataclass(frozen=True, eq=False)
class MarkovEMProblem(MarkovProblem, LatentProblem[Floats, Floats, MarkovFitted]):
    """Distinct rows meet weights; variables of the model without a column are hidden.

    The parameters of EM are the weights times the units of their features (n_weights,), its statistics the shares of
    the cells of all scopes (n_cells,).
    """

    _state: _Run = field(default_factory=_Run)

    @cached_property
    def rows(self) -> HeldRows:
        """The rows, wherever they are."""
        if self.data.held is not None:
            return self.data.held
        refuse_unkept(self.data.statistics)
        return HeldRows.here(read_rows(self.data.statistics, self.model.domain))

    @cached_property
    def penalty(self) -> Penalty | None:
        """What the prior takes off the objective."""
        return self.spec.penalty(self.model)

    @cached_property
    def weight(self) -> float:
        """Number of rows."""
        return self.rows.weight

    @cached_property
    def hidden(self) -> list[Hashable]:
        """The variables that no row shows."""
        return [name for name in self.model.domain.names if name not in self.rows.seen]

    @cached_property
    def _counts(self) -> TreeCounts:
        """The E-step, which keeps what it needs of rows that are one shard in this process."""
        alone = self.rows.local is not None
        return TreeCounts(worker_count(None) if alone and self.rows.count >= MANY_ROWS else 1, keep=alone)

    # -- what the rows leave open ------------------------------------------------------------------------------------

    @cached_property
    def open_shares(self) -> Floats:
        """Expected shares (n_cells,) under the uniform distribution: 0 only where no positive distribution has more."""
        zero = [np.zeros(self.plan.space.shape(scope)) for scope in self.plan.scopes]
        _, *tables = self.rows.ask(self._counts, self.plan.load(zero, log=True)).parts
        parts = [np.zeros(0), *(table.ravel() for table in tables[: len(self.model.scopes)])]
        return np.concatenate(parts) / self.weight

    def _open_summary(self) -> Summary:
        """The rows with what they leave open filled in evenly, as counts: of all variables together if they are few."""
        model, answers = self.model, dict[Statistic, Answer]()
        names = model.domain.names
        if math.prod(model.domain.shape(names)) <= SPREAD_CELLS:
            answers[Counts(names)] = CountTable.of(self.rows.ask(_spread, (names, model.domain.shape(names))))
        else:
            for number, scope in enumerate(model.scopes):
                answers[Counts(scope)] = CountTable.of(model.part(self.open_shares * self.weight, number))
        return Summary(model.domain, answers, self.rows.count, self.weight)

    @cached_property
    def existence(self) -> WeightExistence:
        """Which joint states vanish in the limit.

        Whatever EM expects, the joint states that agree with some row are positive and all others are not, as long as
        the distribution is positive. So all M-steps have their maxima on the same face, and it is found once.
        """
        cells = MOST_CELLS if self.spec.options["check_existence"] else 0
        whole = LogLinearFamily(self.model, plan=self.plan)
        return check_existence(self.model, self.open_shares, self._open_summary(), self.penalty, cells, whole)

    @cached_property
    def family(self) -> LogLinearFamily:
        """The distributions, on the face."""
        return LogLinearFamily(self.model, self.existence.masks, plan=self.plan, memory_limit=self.spec.memory_limit)

    @cached_property
    def units(self) -> Floats:
        """The units of the features (n_weights,)."""
        return feature_units(self.model, self.open_shares)

    # -- steps -------------------------------------------------------------------------------------------------------

    @cached_property
    def scaled(self) -> LogLinearProblem:
        """The likelihood of whole rows as M-steps see it, features in their units: its shares are those of a step."""
        units, nothing = self.units, np.zeros(self.model.n_weights)
        family = self.family.over(standardised(self.model, units, self.open_shares))
        penalty = None if self.penalty is None else self.penalty.in_units(units)
        direction = self.existence.direction * units
        return LogLinearProblem(family, self.open_shares, self.weight, penalty, Control(), nothing, direction)

    @cached_property
    def method(self) -> tuple[str, str]:
        """The solver of the M-step, and what a report calls it."""
        return settle(self.scaled, self.spec.options["solver"])

    @property
    def starts(self) -> Starts:
        """Several where variables are hidden: with missing values alone the objective has one maximum near by."""
        options = self.spec.options
        return Starts(options["n_init"] if self.hidden else 1, options["random_state"], options["acceleration"])

    def start(self, number: int, rng: np.random.Generator) -> Floats:
        """Where a run begins: the first at weights that were given, the others at random."""
        given = number == 0 and self.spec.options["start"] is not None
        return (self.spec.start(self.model) if given else random_weights(self.model, self.hidden, rng)) * self.units

    def _e_step(self, weights: Floats) -> tuple[float, Floats, Floats]:
        """Observed log-likelihood, expected shares and marginals of the distribution (n_cells,); the last is kept."""
        last = self._state.last
        if last is None or not np.array_equal(last[0], weights):
            family = self.scaled.family
            mass, *tables = self.rows.ask(self._counts, family.tree(weights)).parts
            log_z, marginals = family.margins(weights)
            parts = [np.zeros(0), *(table.ravel() for table in tables[: len(self.model.scopes)])]
            shares = np.concatenate(parts) / self.weight
            last = self._state.last = weights.copy(), (mass - self.weight * log_z, shares, marginals)
        return last[1]

    def expect(self, parameters: Floats) -> Expected[Floats]:
        """The E-step; cells that are 0 in every distribution with the support of the rows stay 0."""
        log_likelihood, shares, _ = self._e_step(parameters)
        return Expected(log_likelihood, np.where(self.open_shares > 0.0, np.maximum(shares, LEAST_SHARE), 0.0))

    def expect_again(self, parameters: Floats) -> Expected[Floats]:
        """As `expect`, row by row through the engine that answers queries."""
        tree = self.scaled.family.tree(parameters)
        mass, shares = expected_shares(tree, self.model, self.rows)
        return Expected(mass - self.weight * tree.condition().log_partition, shares)

    def slope_at(self, weights: Floats) -> Floats:
        """The slope of the objective a row (n_weights,)."""
        _, shares, marginals = self._e_step(weights)
        slope = self.scaled.model.expected(shares - marginals)
        return penalised_slope(self.scaled.penalty, weights, slope, self.weight)

    def maximise(self, statistics: Floats, before: Floats) -> Floats:
        """Better weights for these expected shares, from those before."""
        steps, state = self.spec.options["m_steps"], self._state
        most = MOST_INNER if steps is None else steps

        def enough(reached: State) -> bool:
            late = time.monotonic() > state.deadline
            return reached.iteration >= most or bool(reached.memory.get("stalled")) or late

        control = Control(max_iter=most + 1, tolerance=max(WHOLE * state.tolerance, LEAST_SLOPE), callback=enough)
        better, outcome = improve(self._whole_rows(statistics, before, control))
        if outcome is not None and outcome.stop_reason == "interrupted":
            raise KeyboardInterrupt
        return better

    def _whole_rows(self, shares: Floats, weights: Floats, control: Control) -> LogLinearProblem:
        """The likelihood of whole rows with these shares, from these weights."""
        return replace(self.scaled, margins=shares, start=weights, control=control, method=self.method[0])

    def log_prior(self, parameters: Floats) -> float:
        """Minus the penalty."""
        return 0.0 if self.scaled.penalty is None else -self.scaled.penalty.value(parameters)

    def vector(self, parameters: Floats) -> Floats:
        """The weights themselves."""
        return parameters

    def at(self, vector: Floats, like: Floats) -> Floats:
        """The weights themselves; an error where they are not finite."""
        if not np.isfinite(vector).all():
            raise EstimateError("Weights that were extrapolated are not finite.")
        return vector

    def gap(self, vector: Floats, mapped: Floats) -> float:
        """The largest slope of the objective, a row."""
        return float(np.abs(self.slope_at(vector)).max(initial=0.0))

    # -- runs --------------------------------------------------------------------------------------------------------

    def solve(self, control: Control) -> Found[MarkovFitted]:
        """Climb from every start, and keep the best; callbacks see weights as they are given, and nats per row."""
        options, callback = self.spec.options, control.callback
        if options["tolerance"] is None:
            control = replace(control, tolerance=EM_TOLERANCE)
        if options["acceleration"] == "lbfgs" and isinstance(self.penalty, LaplacePenalty):
            raise OptionError("acceleration='lbfgs' needs a smooth prior; with a Laplace prior use 'squarem' or None.")
        self._state.tolerance = control.tolerance
        if callback is not None:
            weight, by_row = self.weight, callback
            control = replace(control, callback=lambda s: by_row(replace(s, objective=s.objective / weight)))
        return super().solve(in_given_units(control, self.units))

    def run(
        self, start: Floats, control: Control, *, acceleration: str | None, fingerprint: str
    ) -> tuple[Floats, Outcome]:
        """Climb from one start; returns where it ended and how."""
        seconds = control.max_seconds
        self._state.deadline = math.inf if seconds is None else time.monotonic() + seconds
        if acceleration == "lbfgs":
            return self._follow(start, control, fingerprint)
        return super().run(start, control, acceleration=acceleration, fingerprint=fingerprint)

    def _follow(self, start: Floats, control: Control, fingerprint: str) -> tuple[Floats, Outcome]:
        """Some steps, then along the slope of the observed log-likelihood.

        A checkpoint holds the second part; the first is the same again.
        """
        callback, stopped = control.callback, False

        def warm(state: State) -> bool:
            nonlocal stopped
            stopped = callback is not None and callback(state) is True
            return stopped or state.iteration >= WARM_STEPS or state.gap <= WARM_GAP

        warming = replace(control, callback=warm, checkpoint=None, problem="")
        begin, first = super().run(start, warming, acceleration=None, fingerprint="")
        if stopped or first.stop_reason != "callback":
            return begin, first
        steps, evaluations = first.state.iteration, int(first.state.memory["evaluations"])

        def by_row(weights: Floats) -> tuple[float, Floats]:
            nonlocal evaluations
            evaluations += 1
            return self.objective(self.expect(weights), weights) / self.weight, self.slope_at(weights)

        def in_total(state: State) -> bool:
            return callback is not None and callback(replace(state, objective=state.objective * self.weight)) is True

        left = replace(control, max_iter=control.max_iter - steps, callback=in_total)
        scale = self._whole_rows(self.expect(begin).statistics, begin, control).scale()
        outcome = in_sums(lbfgs(by_row, begin, left, scale=scale, problem=fingerprint), self.weight)
        memory = {**outcome.state.memory, "evaluations": evaluations}
        state = replace(outcome.state, memory=memory, iteration=outcome.state.iteration + steps)
        return state.parameters, replace(outcome, state=state, history=(*first.history, *outcome.history[1:]))

    def found(self, runs: Runs[Floats]) -> Found[MarkovFitted]:
        """The fitted value of the best run."""
        weights, existence = runs.best / self.units, self.existence
        notes = (*self.data.notes, *existence.notes)
        if self.spec.options["start"] is not None:
            symmetric = symmetry_notes(self.model, self.spec.start(self.model), weights, self.hidden)
            notes = (*notes, *(Remark(note, OptionWarning) for note in symmetric))
        notes = (*notes, *runs.notes)
        empty = [name for name in self.spec.observed if name not in self.rows.seen]
        if empty:
            notes = (*notes, f"the columns {listing(empty)} hold no value at all and are treated as hidden")
        how = {"scores": runs.scores, "n_expectations": runs.evaluations}
        return Found(
            self.spec.fitted(self.family, weights, existence.limits, **how),
            self._title(self.method[1]),
            "maximum likelihood" if self.penalty is None else "MAP",
            runs.outcome,
            (*notes, *self.spec.model_notes(self.model, self.penalty)),
            str(self.family.plan),
            None if self.penalty is None else "in the weights",
        )

    def _title(self, solver: str) -> str:
        """What a report calls the method; solver: that of the M-step."""
        steps, acceleration = self.spec.options["m_steps"], self.spec.options["acceleration"]
        if acceleration == "lbfgs":
            return "L-BFGS on the observed log-likelihood, exact expectations"
        few = "" if steps is None else f", {steps} {'iteration' if steps == 1 else 'iterations'} a step"
        fast = ", extrapolated (SQUAREM)" if acceleration == "squarem" else ""
        return f"{'generalised ' if steps else ''}EM, exact expectations{fast}; M-step: {solver}{few}"

    def identity(self) -> Iterable[Any]:
        """Rows, terms, and the options that steer the way."""
        kept = ("solver", "prior", "m_steps", "n_init", "random_state", "acceleration", "hidden", "start")
        options = {name: repr(self.spec.options[name]) for name in kept}
        terms = [list(map(repr, self.model.scopes)), list(self.model.weight_names)]
        return self.model.domain, terms, *self.rows.identity(), options, self.spec.start(self.model)

    # -- judging -----------------------------------------------------------------------------------------------------

    def judge(self, fitted: MarkovFitted) -> Judgement:
        """The slope of the observed likelihood, measured by other code, and what the rows determine.

        How far a better maximum is, nobody knows.
        """
        weights = fitted.finite * self.units
        held = self.data.held is not None
        log_likelihood = (
            self.expect_again(weights).log_likelihood if held else fitted.log_likelihood(self.data.statistics)
        )
        penalty = 0.0 if self.penalty is None else self.penalty.value(fitted.finite)
        family = fitted.family.over(self.scaled.model)
        slope = stationarity(family, weights, self.rows, self.scaled.penalty)
        information = self.observed_information(weights) if self._is_affordable(fitted) else None
        curvature = None
        if information is not None:
            complete = fitted.information + self._prior_matrix()
            observed, left = information.objective / self.weight, slope * self.units
            curvature = curvature_of(observed, complete, left, fitted.weight_names, fitted.scores)
        # By Fisher's identity the slope is that of complete rows: standard errors are those of complete statistics.
        variance = feature_variances(family, weights, family.margins(weights)[1])
        # No row is more probable than 1, and a prior on all weights falls without end wherever they go.
        exists = True if self.penalty is not None else False if self.existence.exists is False else None
        certificate = Certificate(
            exists=exists,
            directions=self.existence.directions if exists is False else (),
            curvature=curvature,
            **gap_fields(slope, variance, self.weight, self.scaled.penalty, self.units),
        )
        return Judgement(
            log_likelihood,
            log_likelihood - penalty,
            certificate,
            gap=float(np.abs(slope).max(initial=0.0)),
            kept=None if information is None else information.observed,
            empirical_entropy=self.data.entropy,
            n_params=None if curvature is None else fitted.n_params - len(curvature.flat),
            notes=(*((NOT_COMPUTED,) if curvature is None else curvature.warnings()), *self.rows.notes),
        )

    def again(self, fitted: MarkovFitted, report: Report) -> Judgement:
        """What a file says about its fit."""
        return Judgement(report.log_likelihood, report.objective, report.certificate)

    def _is_affordable(self, fitted: MarkovFitted) -> bool:
        """Whether the observed information takes no more E-steps than EM itself, or few rows."""
        steps = max(fitted.n_expectations, MOST_ROWS / max(self.rows.count, 1))
        return 2 * self.model.n_weights <= steps and not isinstance(self.penalty, LaplacePenalty)

    def _prior_matrix(self) -> Floats | float:
        """Curvature of minus the log prior, a row."""
        return self.penalty.matrix() / self.weight if isinstance(self.penalty, GaussianPenalty) else 0.0

    def observed_information(self, parameters: Floats) -> ObservedInformation:
        """Of each weight, by differences of exact slopes; with the prior in `objective`."""

        def score(delta: Floats) -> Floats:
            _, shares, marginals = self._e_step(parameters + delta)
            return self.weight * self.scaled.model.expected(shares - marginals)

        units, weight, names = self.units, self.weight, self.model.weight_names
        observed = score_differences(score, self.model.n_weights) * np.outer(units, units)
        family = self.scaled.family
        complete = weight * variances(family.model, family.margins(parameters)[1]) * units**2
        prior = weight * self._prior_matrix()
        return ObservedInformation(
            names, observed, observed + prior, complete, complete + np.diag(np.zeros_like(observed) + prior)
        )

    def standard_errors(self, fitted: MarkovFitted, judged: Judgement) -> Floats:
        """Standard errors of the weights (n_weights,); what was filled in does not count as seen."""
        kept = judged.kept
        known: Floats = self.observed_information(fitted.finite * self.units).observed if kept is None else kept
        errors = standard_errors(fitted, self.penalty, lambda f: known / np.outer(f.model.units, f.model.units))
        curvature = judged.certificate.curvature
        if curvature is None or not curvature.flat:
            return errors
        prior = self._prior_matrix()
        open_ones = undetermined(known / self.weight + prior, fitted.information + prior, curvature.threshold)
        return np.where(open_ones, np.inf, errors)


def _spread(rows: ObservedRows, asked: tuple[tuple[Hashable, ...], tuple[int, ...]]) -> Floats:
    """The weight of rows, what each leaves open filled in evenly, by joint state; asked: the variables, their cards."""
    names, shape = asked
    blank = np.full(len(rows.weights), -1, np.int32)
    codes = np.stack([rows.columns.get(name, blank) for name in names], axis=1)
    total = np.zeros(shape)
    kinds, which = np.unique(codes >= 0, axis=0, return_inverse=True)
    for number, shown in enumerate(kinds):
        mine = which.ravel() == number
        part = np.zeros([card if known else 1 for card, known in zip(shape, shown, strict=True)])
        np.add.at(part, tuple(np.where(shown, codes[mine], 0).T), rows.weights[mine])
        total += part / math.prod(card for card, known in zip(shape, shown, strict=True) if not known)
    return total
