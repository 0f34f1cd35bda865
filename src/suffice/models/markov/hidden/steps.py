"""EM for log-linear models: hidden variables and gaps, by exact expectations.

The observed log-likelihood of rows v with unseen rest h is ``sum over rows of log Z(v) - log Z``, where Z(v) sums over
the joint states that agree with the row. Its slope is ``E[f | rows] - E[f]`` (Fisher's identity).

- E-step: the margins m of all cliques that the rows are expected to have, ``m = mean over rows of P(clique | v)``.
- M-step: weights with larger ``weights . E_m[f] - log Z``, the likelihood of whole rows with these margins, by any of
  its solvers: its maximum, or some iterations on the way there (generalised EM; Dempster, Laird and Rubin 1977).

The observed log-likelihood (less the penalty of a prior) never falls, which is checked at every step. Its slope also
serves L-BFGS, which takes far fewer steps where the likelihood is flat.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from suffice.fitting.control import Control, Outcome, State
from suffice.models.em.counts import ExpectedCounts
from suffice.models.markov.family import LogLinearFamily
from suffice.models.markov.learning import LogLinearProblem, improve
from suffice.models.markov.priors import penalised_slope
from suffice.solvers.fixed_point import FixedPoint, fixed_point
from suffice.solvers.gradient import lbfgs
from suffice.solvers.penalties import Penalty

Floats = NDArray[np.float64]

#: A whole M-step ends where its slope is below this share of the tolerance of EM; none is asked to be more exact.
WHOLE, LEAST_SLOPE = 0.1, 1e-12
#: Most iterations of a whole M-step; what is not at the maximum then is still better than before.
MOST_INNER = 10_000
#: Steps of EM before L-BFGS takes over: fewer where the slope has fallen to this. From far away the long steps of
#: L-BFGS find worse maxima, and at the edge.
WARM_STEPS, WARM_GAP = 200, 1e-4
#: Shares below this are as good as 0, and their logarithms would not be finite.
LEAST_SHARE = 1e-250


@dataclass(frozen=True, eq=False)
class Expected:
    """What the rows say at some weights: the objective a row, expected shares (n_cells,), its slope (n_weights,)."""

    objective: float
    shares: Floats
    slope: Floats

    @property
    def gap(self) -> float:
        """The largest slope of the objective, a row."""
        return float(np.abs(self.slope).max(initial=0.0))


@dataclass(frozen=True, eq=False)
class WeightsEM:
    """One EM problem, in weights times the units of their features.

    `counts` answers for the plan of the `family`. `method` is the solver of the M-step, and `m_steps` the number of its
    iterations (None: to the maximum, see `WHOLE`). `direction` is that of `Problem`. Cells that are not `alive`
    (n_cells,) are 0 in every law with the support of the rows. Callbacks are told weights in `units` (n_weights,).
    """

    family: LogLinearFamily
    counts: ExpectedCounts
    penalty: Penalty | None
    method: str
    direction: Floats
    alive: NDArray[np.bool_]
    units: Floats
    tolerance: float
    m_steps: int | None = None
    _last: list[tuple[Floats, Expected]] = field(default_factory=list)

    @cached_property
    def weight(self) -> float:
        """Number of rows."""
        return float(self.counts.weights.sum())

    # -- E-step ------------------------------------------------------------------------------------------------------

    def expect(self, weights: Floats) -> Expected:
        """The E-step at these weights; the last one is kept."""
        if self._last and np.array_equal(self._last[0][0], weights):
            return self._last[0][1]
        model = self.family.model
        mass, tables = self.counts(self.family.tree(weights))
        log_z, marginals = self.family.margins(weights)
        parts = [np.zeros(0), *(table.ravel() for table in tables[: len(model.scopes)])]
        shares = np.concatenate(parts) / self.weight
        value, slope = mass / self.weight - log_z, model.expected(shares - marginals)
        if self.penalty is not None:
            value -= self.penalty.value(weights) / self.weight
        slope = penalised_slope(self.penalty, weights, slope, self.weight)
        found = Expected(value, np.where(self.alive, np.maximum(shares, LEAST_SHARE), 0.0), slope)
        self._last[:] = [(weights.copy(), found)]
        return found

    # -- M-step ------------------------------------------------------------------------------------------------------

    def _problem(self, shares: Floats, weights: Floats, control: Control) -> LogLinearProblem:
        """The likelihood of whole rows with these shares."""
        return LogLinearProblem(
            self.family, shares, self.weight, self.penalty, control, weights, self.direction, self.method
        )

    def maximise(self, weights: Floats, found: Expected, deadline: float = math.inf) -> Floats:
        """Better weights for these expected shares, from here."""
        most = MOST_INNER if self.m_steps is None else self.m_steps

        def enough(state: State) -> bool:
            return state.iteration >= most or bool(state.memory.get("stalled")) or time.monotonic() > deadline

        inner = max(WHOLE * self.tolerance, LEAST_SLOPE)
        control = Control(max_iter=most + 1, tolerance=inner, callback=enough)
        better, outcome = improve(self._problem(found.shares, weights, control))
        if outcome is not None and outcome.stop_reason == "interrupted":
            raise KeyboardInterrupt
        return better

    # -- runs --------------------------------------------------------------------------------------------------------

    def run(
        self, start: Floats, control: Control, *, acceleration: str | None, fingerprint: str
    ) -> tuple[Floats, Outcome]:
        """FixedPoint from a start; returns the weights where it ended and how."""
        told = control.callback
        if told is not None:
            units = self.units
            control = replace(control, callback=lambda state: told(replace(state, parameters=state.parameters / units)))
        if acceleration == "lbfgs":
            outcome = self._follow(start, control, fingerprint)
        else:
            outcome = self._climb(start, control, acceleration, fingerprint)
        return outcome.state.parameters, outcome

    def _climb(self, start: Floats, control: Control, acceleration: str | None, fingerprint: str) -> Outcome:
        """Step by step, with or without extrapolation."""
        deadline = math.inf if control.max_seconds is None else time.monotonic() + control.max_seconds

        def evaluate(weights: Floats) -> tuple[float, Floats]:
            found = self.expect(weights)
            if found.objective == -np.inf:
                return found.objective, weights
            return found.objective, self.maximise(weights, found, deadline)

        def gap(weights: Floats, mapped: Floats) -> float:
            return self.expect(weights).gap

        problem = FixedPoint(evaluate, lambda weights: bool(np.isfinite(weights).all()), gap=gap)
        return fixed_point(problem, start, control, acceleration=acceleration, fingerprint=fingerprint)

    def _follow(self, start: Floats, control: Control, fingerprint: str) -> Outcome:
        """Some steps, then along the slope of the observed log-likelihood.

        A checkpoint holds the second part; the first is the same again.
        """
        told, stopped = control.callback, False

        def warm(state: State) -> bool:
            nonlocal stopped
            stopped = told is not None and told(state) is True
            return stopped or state.iteration >= WARM_STEPS or state.gap <= WARM_GAP

        first = self._climb(start, replace(control, callback=warm, checkpoint=None), None, "")
        if stopped or first.stop_reason != "callback":
            return first
        steps, evaluations = first.state.iteration, int(first.state.memory["evaluations"])

        def objective(weights: Floats) -> tuple[float, Floats]:
            nonlocal evaluations
            evaluations += 1
            found = self.expect(weights)
            return found.objective, found.slope

        left = replace(control, max_iter=control.max_iter - steps)
        begin = first.state.parameters
        scale = self._problem(self.expect(begin).shares, begin, control).scale()
        outcome = lbfgs(objective, begin, left, scale=scale, problem=fingerprint)
        memory = {**outcome.state.memory, "evaluations": evaluations}
        state = replace(outcome.state, memory=memory, iteration=outcome.state.iteration + steps)
        return replace(outcome, state=state, history=(*first.history, *outcome.history[1:]))

    def resumed(self, start: Floats, outcome: Outcome) -> tuple[Floats, Outcome]:
        """A run that was finished before, from the same start."""
        return outcome.state.parameters, outcome
