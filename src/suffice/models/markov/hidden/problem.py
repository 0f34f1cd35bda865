"""Learning a Markov network by EM: rows that do not show everything meet weights."""

from __future__ import annotations

import math
import warnings
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.answers import Answer, CountTable
from suffice.engines.junction_tree import TreePlan
from suffice.engines.workers import worker_count
from suffice.errors import OptionError, SufficeWarning, listing
from suffice.families.base import generator
from suffice.fitting.contract import Found, Judgement
from suffice.fitting.control import Control
from suffice.fitting.report import Certificate, Report
from suffice.models.em.counts import ExpectedCounts
from suffice.models.em.information import score_differences
from suffice.models.em.reports import NOT_COMPUTED
from suffice.models.em.restarts import Runs, run_all
from suffice.models.em.rows import ObservedRows, read_rows
from suffice.models.markov.errors import standard_errors
from suffice.models.markov.existence import Existence, check_existence
from suffice.models.markov.feature_spread import feature_units, standardised
from suffice.models.markov.fitted import MarkovFitted
from suffice.models.markov.hidden.check import code_matrix, stationarity
from suffice.models.markov.hidden.determined import curvature_of, untold
from suffice.models.markov.hidden.start import random_weights, symmetry_notes
from suffice.models.markov.hidden.steps import WeightsEM
from suffice.models.markov.law import LawFamily
from suffice.models.markov.learning import Problem, in_sums, settle
from suffice.models.markov.log_linear import LogLinear
from suffice.models.markov.specification import EM_TOLERANCE, MarkovData, Specification
from suffice.solvers.faces import MOST_CELLS
from suffice.solvers.penalties import GaussianPenalty, LaplacePenalty, Penalty
from suffice.statistics import Counts, Statistic, Summary

Floats = NDArray[np.float64]

#: Joint states up to which the rows are spread over all that they leave open, to see which are possible.
SPREAD_CELLS = 2**16
#: Distinct rows from which on the E-step uses all cores.
MANY_ROWS = 4096
#: Rows that all E-steps together may go through to say what they determine, where EM itself took fewer steps.
MOST_ROWS = 200_000

_SCALE = "largest difference of a feature's mean, expected given the rows and expected under the law"
_SLOPE = "largest slope of the objective, a row"


@dataclass(frozen=True, eq=False)
class EMProblem:
    """Distinct rows meet weights; variables of the model without a column are hidden."""

    spec: Specification
    data: MarkovData

    @cached_property
    def model(self) -> LogLinear:
        """Variables and terms."""
        return LogLinear(self.spec.whole_domain(self.data.statistics), self.spec.terms)

    @cached_property
    def plan(self) -> TreePlan:
        """The junction tree."""
        return self.spec.plan(self.model)

    @cached_property
    def rows(self) -> ObservedRows:
        """The distinct rows."""
        return read_rows(self.data.statistics, self.model.domain)

    @cached_property
    def penalty(self) -> Penalty | None:
        """What the prior takes off the objective."""
        return self.spec.penalty(self.model)

    @cached_property
    def weight(self) -> float:
        """Number of rows."""
        return float(self.rows.weights.sum())

    @cached_property
    def hidden(self) -> list[Hashable]:
        """The variables that no row shows."""
        return [name for name in self.model.domain.names if name not in self.rows.columns]

    def _counts(self, plan: TreePlan) -> ExpectedCounts:
        codes, names = code_matrix(self.rows)
        threads = worker_count(None) if len(codes) >= MANY_ROWS else 1
        return ExpectedCounts(plan, names, codes, self.rows.weights, threads)

    # -- what the rows leave open ------------------------------------------------------------------------------------

    @cached_property
    def open_shares(self) -> Floats:
        """Expected shares (n_cells,) under the uniform law: 0 only where they are 0 under every positive law."""
        zero = [np.zeros(self.plan.space.shape(scope)) for scope in self.plan.scopes]
        _, tables = self._counts(self.plan)(self.plan.load(zero, log=True))
        parts = [np.zeros(0), *(table.ravel() for table in tables[: len(self.model.scopes)])]
        return np.concatenate(parts) / self.weight

    def _open_summary(self) -> Summary:
        """The rows with what they leave open filled in evenly, as counts: of all variables together if they are few."""
        model, answers = self.model, dict[Statistic, Answer]()
        names = model.domain.names
        if math.prod(model.domain.shape(names)) <= SPREAD_CELLS:
            answers[Counts(names)] = CountTable.of(self._spread(names))
        else:
            for place, scope in enumerate(model.scopes):
                answers[Counts(scope)] = CountTable.of(model.part(self.open_shares * self.weight, place))
        return Summary(model.domain, answers, len(self.rows.weights), self.weight)

    def _spread(self, names: tuple[Hashable, ...]) -> Floats:
        shape = self.model.domain.shape(names)
        blank = np.full(len(self.rows.weights), -1, np.int32)
        codes = np.stack([self.rows.columns.get(name, blank) for name in names], axis=1)
        total = np.zeros(shape)
        kinds, which = np.unique(codes >= 0, axis=0, return_inverse=True)
        for number, shown in enumerate(kinds):
            mine = which.ravel() == number
            part = np.zeros([card if known else 1 for card, known in zip(shape, shown, strict=True)])
            np.add.at(part, tuple(np.where(shown, codes[mine], 0).T), self.rows.weights[mine])
            total += part / math.prod(card for card, known in zip(shape, shown, strict=True) if not known)
        return total

    @cached_property
    def existence(self) -> Existence:
        """Which joint states vanish in the limit.

        Whatever EM expects, the joint states that agree with some row are positive and all others are not, as long as
        the law is positive. So all M-steps have their maxima on the same face, and it is found once.
        """
        cells = MOST_CELLS if self.spec.options["check_existence"] else 0
        whole = LawFamily(self.model, plan=self.plan)
        return check_existence(self.model, self.open_shares, self._open_summary(), self.penalty, cells, whole)

    @cached_property
    def family(self) -> LawFamily:
        """The laws, on the face."""
        return LawFamily(
            self.model, self.existence.masks, plan=self.plan, memory_limit=self.spec.options["memory_limit"]
        )

    @cached_property
    def units(self) -> Floats:
        """The units of the features (n_weights,)."""
        return feature_units(self.model, self.open_shares)

    # -- runs --------------------------------------------------------------------------------------------------------

    def steps(self, tolerance: float) -> tuple[WeightsEM, str]:
        """E-step and M-step, and what the M-step is called."""
        units = self.units
        family = self.family.over(standardised(self.model, units, self.open_shares))
        penalty = None if self.penalty is None else self.penalty.in_units(units)
        direction, nothing = self.existence.direction * units, np.zeros(self.model.n_weights)
        like = Problem(family, self.open_shares, self.weight, penalty, Control(), nothing, direction)
        method, title = settle(like, self.spec.options["solver"])
        alive, steps = self.open_shares > 0.0, self.spec.options["m_steps"]
        counts = self._counts(family.plan)
        return WeightsEM(family, counts, penalty, method, direction, alive, units, tolerance, steps), title

    def start(self, number: int, rng: np.random.Generator) -> Floats:
        """Where a run begins (n_weights,): the first at weights that were given, the others at random."""
        if number == 0 and self.spec.options["start"] is not None:
            return self.spec.start(self.model)
        return random_weights(self.model, self.hidden, rng)

    def solve(self, control: Control) -> Found[MarkovFitted]:
        """Climb from every start, and keep the best."""
        options = self.spec.options
        if options["tolerance"] is None:
            control = replace(control, tolerance=EM_TOLERANCE)
        if options["acceleration"] == "lbfgs" and isinstance(self.penalty, LaplacePenalty):
            raise OptionError("acceleration='lbfgs' needs a smooth prior; with a Laplace prior use 'squarem' or None.")
        steps, title = self.steps(control.tolerance)
        seeds = generator(options["random_state"]).spawn(int(options["n_init"]) if self.hidden else 1)
        starts = [
            lambda number=number, rng=rng: self.start(number, rng) * self.units for number, rng in enumerate(seeds)
        ]
        runs = run_all(steps, starts, control, acceleration=options["acceleration"], fingerprint=control.problem)
        return self._found(runs, title)

    def _found(self, runs: Runs[Floats], title: str) -> Found[MarkovFitted]:
        """The fitted value of the best run; title: that of the M-step."""
        weights, existence = runs.best / self.units, self.existence
        scores = tuple(score * self.weight for score in runs.scores)
        notes = (*self.data.notes, *existence.notes)
        if self.spec.options["start"] is not None:
            symmetric = symmetry_notes(self.model, self.spec.start(self.model), weights, self.hidden)
            for note in symmetric:
                warnings.warn(note, SufficeWarning, stacklevel=2)
            notes = (*notes, *symmetric)
        notes = (*notes, *runs.notes)
        if len(scores) > 1:
            notes = (*notes, f"objectives of {len(scores)} runs: {', '.join(f'{s:.6f}' for s in scores)}")
        empty = [name for name in self.spec.observed if name not in self.rows.columns]
        if empty:
            notes = (*notes, f"the columns {listing(empty)} hold no value at all and are treated as hidden")
        return Found(
            self.spec.fitted(self.family, weights, existence.limits, scores=scores, n_expectations=runs.evaluations),
            self._title(title),
            "maximum likelihood" if self.penalty is None else "MAP",
            in_sums(runs.outcome, self.weight),
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
        columns = [[repr(name), values] for name, values in self.rows.columns.items()]
        terms = [list(map(repr, self.model.scopes)), list(self.model.weight_names)]
        return self.model.domain, terms, columns, self.rows.weights, options, self.spec.start(self.model)

    # -- judging -----------------------------------------------------------------------------------------------------

    def judge(self, fitted: MarkovFitted) -> Judgement:
        """The slope of the observed likelihood, measured by other code, and what the rows determine.

        How far a better maximum is, nobody knows.
        """
        log_likelihood = fitted.log_likelihood(self.data.statistics)
        penalty = 0.0 if self.penalty is None else self.penalty.value(fitted.finite)
        slope = self.slope(fitted)
        information = self.observed_information(fitted.finite) if self._is_affordable(fitted) else None
        curvature = None
        if information is not None:
            parts = self._a_row(fitted, information)
            curvature = curvature_of(*parts, slope, fitted.weight_names, fitted.scores)
        certificate = replace(self._certificate(slope), curvature=curvature)
        return Judgement(
            log_likelihood,
            log_likelihood - penalty,
            certificate,
            kept=information,
            empirical_entropy=self.data.entropy,
            n_params=None if curvature is None else fitted.n_params - len(curvature.flat),
            notes=(NOT_COMPUTED,) if curvature is None else curvature.warnings(),
        )

    def again(self, fitted: MarkovFitted, report: Report) -> Judgement:
        """What a file says about its fit."""
        return Judgement(report.log_likelihood, report.objective, report.certificate)

    def _certificate(self, slope: Floats) -> Certificate:
        units, existence = self.units, self.existence
        gap = float(np.abs(slope / units).max(initial=0.0))
        scale = _SCALE if self.penalty is None else _SLOPE
        scale += "" if (units == 1.0).all() else ", in units of its spread"
        # No row is more probable than 1, and a prior on all weights falls without end wherever they go.
        exists = True if self.penalty is not None else False if existence.exists is False else None
        return Certificate(gap, exists=exists, directions=existence.directions if exists is False else (), scale=scale)

    def _is_affordable(self, fitted: MarkovFitted) -> bool:
        """Whether the observed information takes no more E-steps than EM itself, or few rows."""
        steps = max(fitted.n_expectations, MOST_ROWS / max(len(self.rows.weights), 1))
        return 2 * self.model.n_weights <= steps and not isinstance(self.penalty, LaplacePenalty)

    def _a_row(self, fitted: MarkovFitted, information: Floats) -> tuple[Floats, Floats]:
        """The information of the rows, and that of complete ones, with the prior, a row."""
        more = self.penalty.matrix() / self.weight if isinstance(self.penalty, GaussianPenalty) else 0.0
        return information / self.weight + more, fitted.information + more

    def slope(self, fitted: MarkovFitted) -> Floats:
        """What is left of the slope of the objective (n_weights,), a row."""
        units = self.units
        penalty = None if self.penalty is None else self.penalty.in_units(units)
        over = fitted.family.over(standardised(self.model, units, self.open_shares))
        return stationarity(over, fitted.finite * units, self.rows, penalty) * units

    def observed_information(self, weights: Floats) -> Floats:
        """Minus the Hessian of the observed log-likelihood without the prior (n_weights, n_weights)."""
        units = self.units
        family = self.family.over(standardised(self.model, units, self.open_shares))
        counts, nothing = self._counts(family.plan), np.zeros(self.model.n_weights)
        alive = np.ones(self.model.n_cells, np.bool_)
        steps = WeightsEM(family, counts, None, "", nothing, alive, units, 0.0)

        def score(delta: Floats) -> Floats:
            return self.weight * steps.expect(weights * units + delta).slope

        return score_differences(score, self.model.n_weights) * np.outer(units, units)

    def standard_errors(self, fitted: MarkovFitted, judged: Judgement) -> Floats:
        """Standard errors of the weights (n_weights,); what was filled in does not count as seen."""
        known: Floats = self.observed_information(fitted.finite) if judged.kept is None else judged.kept
        errors = standard_errors(fitted, self.penalty, lambda f: known / np.outer(f.model.units, f.model.units))
        curvature = judged.certificate.curvature
        if curvature is None or not curvature.flat:
            return errors
        return np.where(untold(*self._a_row(fitted, known), curvature.threshold), np.inf, errors)
