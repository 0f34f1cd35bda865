"""Learning a Markov network from rows with gaps: the parts of EM put together for the fit and its certificate."""

from __future__ import annotations

import math
import warnings
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.answers import Answer, CountTable
from suffice.engines.junction_tree import TreePlan
from suffice.engines.workers import worker_count
from suffice.errors import OptionError, SufficeWarning
from suffice.families.base import generator
from suffice.fitting.control import Control, fingerprint
from suffice.fitting.report import Certificate
from suffice.models.em.counts import ExpectedCounts
from suffice.models.em.information import score_differences
from suffice.models.em.rows import Rows
from suffice.models.em.runs import Runs, run_all
from suffice.models.markov.feature_spread import feature_units, standardised
from suffice.models.markov.hidden.check import code_matrix, stationarity
from suffice.models.markov.hidden.start import random_weights, symmetry_notes
from suffice.models.markov.hidden.steps import WeightsEM
from suffice.models.markov.law import LawFamily
from suffice.models.markov.learning import Problem, in_sums, settle
from suffice.models.markov.log_linear import LogLinear
from suffice.models.markov.standing import Standing, find_standing
from suffice.solvers.faces import MOST_CELLS
from suffice.solvers.penalties import LaplacePenalty, Penalty
from suffice.statistics import Counts, Statistic, Summary

Floats = NDArray[np.float64]

#: Joint states up to which the rows are spread over all that they leave open, to see which are possible.
SPREAD_CELLS = 2**16
#: Distinct rows from which on the E-step uses all cores.
MANY_ROWS = 4096

_SCALE = "largest difference of a feature's mean, expected given the rows and expected under the law"
_SLOPE = "largest slope of the objective, a row"


@dataclass(frozen=True, eq=False)
class HiddenFit:
    """EM for one network and one set of rows; variables of the model without a column are hidden."""

    model: LogLinear
    plan: TreePlan
    rows: Rows
    penalty: Penalty | None
    options: Mapping[str, Any]

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
    def standing(self) -> Standing:
        """Which joint states vanish in the limit.

        Whatever EM expects, the joint states that agree with some row are positive and all others are not, as long as
        the law is positive. So all M-steps have their maxima on the same face, and it is found once.
        """
        cells = MOST_CELLS if self.options["existence"] else 0
        whole = LawFamily(self.model, plan=self.plan)
        return find_standing(self.model, self.open_shares, self._open_summary(), self.penalty, cells, whole)

    @cached_property
    def family(self) -> LawFamily:
        """The laws, on the face."""
        return LawFamily(self.model, self.standing.masks, plan=self.plan, limit_bytes=self.options["limit_bytes"])

    @cached_property
    def units(self) -> Floats:
        """The units of the features (n_weights,)."""
        return feature_units(self.model, self.open_shares)

    # -- runs --------------------------------------------------------------------------------------------------------

    def problem(self, tolerance: float) -> tuple[WeightsEM, str]:
        """E-step and M-step, and what the M-step is called."""
        units = self.units
        family = self.family.over(standardised(self.model, units, self.open_shares))
        penalty = None if self.penalty is None else self.penalty.in_units(units)
        direction, nothing = self.standing.direction * units, np.zeros(self.model.n_weights)
        like = Problem(family, self.open_shares, self.weight, penalty, Control(), nothing, direction)
        method, title = settle(like, self.options["solver"])
        alive, steps = self.open_shares > 0.0, self.options["m_steps"]
        counts = self._counts(family.plan)
        return WeightsEM(family, counts, penalty, method, direction, alive, units, tolerance, steps), title

    def run(self, control: Control, start: Floats | None) -> tuple[Runs[Floats], str]:
        """All runs, with the weights of the best, and the title of the M-step. start: where the first begins."""
        problem, title = self.problem(control.tolerance)
        count = self.options["n_init"] if self.hidden else 1
        seed = self.options["random_state"]
        seeds = generator(0 if seed is None else seed).spawn(int(count))

        def begin(number: int, rng: np.random.Generator) -> Floats:
            given = start is not None and number == 0
            found = start if given and start is not None else random_weights(self.model, self.hidden, rng)
            return np.asarray(found * self.units)

        starts = [lambda number=number, rng=rng: begin(number, rng) for number, rng in enumerate(seeds)]
        acceleration = self.options["acceleration"]
        if acceleration == "lbfgs" and isinstance(self.penalty, LaplacePenalty):
            raise OptionError("acceleration='lbfgs' needs a smooth prior; with a Laplace prior use 'squarem' or None.")
        runs = run_all(
            problem, starts, control, acceleration=acceleration, fingerprint=self._fingerprint(control, start)
        )
        weights = runs.best / self.units
        scores, outcome = tuple(score * self.weight for score in runs.scores), in_sums(runs.outcome, self.weight)
        notes = () if start is None else symmetry_notes(self.model, start, weights, self.hidden)
        for note in notes:
            warnings.warn(note, SufficeWarning, stacklevel=2)
        if len(scores) > 1:
            notes = (*notes, f"objectives of {len(scores)} runs: {', '.join(f'{s:.6f}' for s in scores)}")
        return replace(runs, best=weights, outcome=outcome, scores=scores, notes=notes), title

    def _fingerprint(self, control: Control, start: Floats | None) -> str:
        """What tells this fit from others; made only where a checkpoint needs it."""
        if control.checkpoint is None:
            return ""
        kept = ("solver", "prior", "m_steps", "n_init", "random_state", "acceleration", "hidden")
        options = {name: repr(self.options[name]) for name in kept}
        columns = [[repr(name), values] for name, values in self.rows.columns.items()]
        terms = [list(map(repr, self.model.scopes)), list(self.model.weight_names)]
        return fingerprint(self.model.domain, terms, columns, self.rows.weights, options, start)

    # -- afterwards --------------------------------------------------------------------------------------------------

    def certify(self, family: LawFamily, weights: Floats) -> Certificate:
        """The slope of the observed likelihood, measured by other code. How far a better maximum is, nobody knows."""
        units = self.units
        gap = float(np.abs(self.slope(family, weights) / units).max(initial=0.0))
        standing = self.standing
        scale = _SCALE if self.penalty is None else _SLOPE
        scale += "" if (units == 1.0).all() else ", in units of its spread"
        # No row is more probable than 1, and a prior on all weights falls without end wherever they go.
        exists = True if self.penalty is not None else False if standing.exists is False else None
        return Certificate(gap, exists=exists, directions=standing.directions if exists is False else (), scale=scale)

    def slope(self, family: LawFamily, weights: Floats) -> Floats:
        """What is left of the slope of the objective (n_weights,), a row."""
        units = self.units
        penalty = None if self.penalty is None else self.penalty.in_units(units)
        over = family.over(standardised(self.model, units, self.open_shares))
        return stationarity(over, weights * units, self.rows, penalty) * units

    def information(self, weights: Floats) -> Floats:
        """Minus the Hessian of the observed log-likelihood without the prior (n_weights, n_weights)."""
        units = self.units
        plain = replace(self, penalty=None) if self.penalty is not None else self
        family = self.family.over(standardised(self.model, units, self.open_shares))
        counts, nothing = plain._counts(family.plan), np.zeros(self.model.n_weights)
        alive = np.ones(self.model.n_cells, np.bool_)
        problem = WeightsEM(family, counts, None, "", nothing, alive, units, 0.0)

        def score(delta: Floats) -> Floats:
            return self.weight * problem.expect(weights * units + delta).slope

        return score_differences(score, self.model.n_weights) * np.outer(units, units)
