"""Rows meet coefficients: a regression is solved and judged, in the steps that all responses share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from suffice.array_types import Flags, Floats
from suffice.errors import Remark, SeparationWarning, SufficeError
from suffice.fitting.confirmation import allowed
from suffice.fitting.contract import Found, Judgement
from suffice.fitting.control import Control
from suffice.fitting.report import Certificate
from suffice.models.glm.certificate import (
    FAR,
    CertificateBasis,
    certify,
    flat_verdict,
    nothing_left,
    point_of,
    rooted,
    rounding_of,
)
from suffice.models.glm.checkpoint import Keeper
from suffice.models.glm.fit_options import ANY_TIME, FitOptions
from suffice.models.glm.fitted import GLMFitted, kept_places
from suffice.models.glm.matched import MatchedRows
from suffice.models.glm.priors import CoefficientPenalties
from suffice.models.glm.problem import RegressionProblem, response_sums
from suffice.models.glm.rows import RegressionData
from suffice.models.glm.separation import Separation, sentences
from suffice.models.glm.solve import Result, Search, choose, joined, solve

#: A regression of the same rows with other options.
Factory = Callable[[FitOptions, RegressionData], "GLMProblem"]


SEPARATED = Remark(
    "the maximum does not exist: the columns separate the response, and coefficients run to infinity; give a prior",
    SeparationWarning,
)


class GLMProblem(ABC):
    """The problem of a generalised linear model: its options, and rows in the engine's layout."""

    #: Linear predictors of a row, of which each has all coefficients.
    outputs: int = 1

    def __init__(self, options: FitOptions, data: RegressionData, factory: Factory) -> None:
        """factory: what sets a regression of other options for the same rows."""
        self.options, self.data, self.factory = options, data, factory

    @abstractmethod
    def solve(self, control: Control) -> Found[GLMFitted]:
        """Find coefficients."""

    @abstractmethod
    def judge(self, fitted: GLMFitted) -> Judgement:
        """Measure coefficients anew."""

    def identity(self) -> Iterable[Any]:
        """The names of the parameters, the options but those that say how long to go on, and sums of the rows."""
        sums = response_sums(self.data.blocks)
        options = {name: repr(value) for name, value in self.options.given.items() if name not in ANY_TIME}
        seen = [self.data.rows, sums.weight, np.asarray(sums.total).tolist()]
        return list(self.data.parameters.names), options, seen

    def matched(self, fitted: GLMFitted) -> MatchedRows:
        """Both sides of the score equations, made from the rows when someone asks.

        Of rows on other machines they are made at once, and the rows are let go: a fitted model holds no memory there.
        """
        free = self.options.given["prior"] is None or self.data.elsewhere
        matched = MatchedRows.later(self.options, self.data, fitted, None if free else self.without_prior)
        if self.data.elsewhere:
            matched.settle()
            self.data.close()
        return matched

    def without_prior(self) -> Floats | None:
        """The coefficients (k, m) of maximum likelihood; None where the likelihood has no maximum."""
        problem = self.factory(self.options.of_likelihood(), self.data)
        try:
            fitted = problem.solve(Control(max_iter=100, tolerance=1e-8)).fitted
            judged = problem.judge(fitted)
        except SufficeError:
            return None
        real = np.isfinite(fitted.values).all() and np.isfinite(judged.log_likelihood)
        return fitted.values if real and judged.certificate.exists is not False else None


@dataclass(frozen=True, eq=False)
class Ended:
    """Coefficients and what they were found or measured to be.

    `problem` is that of the rows that a separating direction leaves, in units of the dispersion; `result` has value,
    slope and information at the coefficients.
    """

    problem: RegressionProblem
    result: Result
    separation: Separation
    dropped: tuple[int, ...] = ()

    @property
    def direction(self) -> Floats | None:
        """Where coefficients run to infinity, in the engine's layout."""
        return self.separation.direction if self.separation.exists is False else None


class IteratedRegression(GLMProblem):
    """A regression whose maximum a solver looks for.

    Columns that say the same as others are found first. The solver begins at a start; where the information at its
    result says little, it goes on with an exact root. Whether the maximum is attained is decided there: where it is
    not, rows that a direction of separation decides leave the fit of the others.

    The judge begins anew with the rows, the options and the coefficients of the fitted value.
    """

    def __init__(self, options: FitOptions, data: RegressionData, factory: Factory) -> None:
        """Read the prior."""
        super().__init__(options, data, factory)
        self.penalties = self._penalties()
        self.control, self.begin = Control(), options.given["start"]
        self.keeper: Keeper | None = None
        self.notes: list[str] = []

    def _penalties(self) -> CoefficientPenalties:
        return self.options.penalties(self.data.design, self.outputs)

    # -- what a response says ----------------------------------------------------------------------------------------

    @abstractmethod
    def problem(self) -> RegressionProblem:
        """What solvers see of all rows."""

    @abstractmethod
    def full_rank(self, problem: RegressionProblem) -> tuple[RegressionProblem, tuple[int, ...]]:
        """The problem without columns that say the same as others, and the numbers of these."""

    @abstractmethod
    def start(self, problem: RegressionProblem) -> Floats:
        """Where a solver begins."""

    @abstractmethod
    def separation(self, problem: RegressionProblem, result: Result) -> Separation:
        """Whether the maximum is attained, by what is known at a result."""

    @abstractmethod
    def left_by(self, problem: RegressionProblem, decided: Flags) -> RegressionProblem | None:
        """The problem of the rows that a separating direction leaves; None where it leaves none."""

    @abstractmethod
    def limit(
        self, problem: RegressionProblem, result: Result, separation: Separation, start: Floats
    ) -> tuple[RegressionProblem, Result]:
        """The fit of the rows that a separating direction leaves; all of them where it does not say which."""

    @abstractmethod
    def fitted(self, ended: Ended) -> GLMFitted:
        """The fitted value."""

    # -- the maximum -------------------------------------------------------------------------------------------------

    @property
    def warm(self) -> bool:
        """Whether a fit of some rows may find the start."""
        given = self.options.given
        return given["solver"] == "auto" and self.begin is None and not given["keep_iterates"]

    def solve(self, control: Control) -> Found[GLMFitted]:
        """Find coefficients, from a checkpoint on where there is one."""
        self.control = replace(control, checkpoint=None)
        if control.checkpoint is not None and self._keeps_state():
            self.control = control
        elif control.checkpoint is not None:
            self.keeper = Keeper(control.checkpoint, self.data.parameters, control.problem)
            kept = self.keeper.start()
            self.begin = self.begin if kept is None else kept
        ended = self.climbed()
        outcome = ended.result.outcome
        if self.keeper is not None:
            self.keeper.close(outcome.converged)
        fitted = self.fitted(ended)
        if ended.separation.exists is False:  # That a search for what is not there has stalled says no more.
            self.notes.append(SEPARATED)
            outcome = replace(outcome, warning="")
        return Found(
            fitted, ended.result.method, self.options.estimate, outcome, tuple(self.notes), plan=self.data.plan
        )

    @property
    def one_run(self) -> bool:
        """Whether one run of a solver is all, unless something is wrong with the rows."""
        return True

    def _keeps_state(self) -> bool:
        """Whether a checkpoint holds all that the solver remembers, so that it goes on as if nothing had happened.

        IRLS remembers nothing but coefficients, and so do several runs in turn.
        """
        chosen = choose(self.options.given["solver"], self.problem(), self.penalties.laplace)
        return self.one_run and chosen not in ("irls", "cd", "sgd")

    def climbed(self) -> Ended:
        """All steps."""
        problem, dropped = self.full_rank(self.problem())
        start = self.start(problem)
        problem, result = self.climb(problem, start)
        result, separation = self.settled(problem, result)
        exact = rooted(problem, result, separation, self.penalties)
        if exact is not None and self.inside:
            problem, result = self.climb_on(exact, result)
            result, separation = self.settled(problem, result)
        if separation.exists is False:
            problem, result = self.limit(problem, result, separation, start)
        return Ended(problem, result, separation, dropped)

    def climb(self, problem: RegressionProblem, start: Floats) -> tuple[RegressionProblem, Result]:
        """From a start to the maximum."""
        return problem, self.step(problem, start)

    def climb_on(self, problem: RegressionProblem, before: Result) -> tuple[RegressionProblem, Result]:
        """From a result on."""
        return problem, joined(before, self.step(problem, before.beta))

    def settled(self, problem: RegressionProblem, result: Result) -> tuple[Result, Separation]:
        """Whether the maximum is attained; the result may have gone on to tell."""
        return result, self.separation(problem, result)

    def step(self, problem: RegressionProblem, start: Floats) -> Result:
        """One run of the solver asked for."""
        return self.run_solver(problem, start, choose(self.options.given["solver"], problem, self.penalties.laplace))

    def run_solver(
        self,
        problem: RegressionProblem,
        start: Floats,
        solver: str,
        control: Control | None = None,
        *,
        warm: bool = True,
    ) -> Result:
        """One run of a solver by name, of which the checkpoint is told every point."""
        given = self.options.given
        if self.keeper is not None:
            self.keeper.fresh()
            problem = replace(problem, record=self.keeper.note)
        limits = self.control if control is None else control
        self.control = replace(self.control, checkpoint=None)  # It belongs to the first run.
        search = Search(
            problem,
            start,
            limits,
            self.penalties.laplace,
            given["keep_iterates"],
            given["random_state"],
            warm and self.warm,
        )
        return solve(search, solver)

    @property
    def inside(self) -> bool:
        """Whether the search is at a point where the information of the rows says what is left."""
        return True

    # -- the judgement -----------------------------------------------------------------------------------------------

    def judge(self, fitted: GLMFitted) -> Judgement:
        """Slope, what is left and whether the maximum exists, at the coefficients of a fitted value."""
        measured = self.measured(fitted)
        value, objective = self.values(measured, fitted)
        certificate, rounding, flat = self.certificate(measured, fitted)
        if fitted.direction is not None:
            labels = fitted.predictor_labels() if self.outputs > 1 or fitted.reference is not None else []
            words = sentences(fitted.parameters, fitted.direction, labels)
            certificate = replace(certificate, directions=(*words, *certificate.directions))
        # A solver without information has its tolerance in slopes.
        bare = measured.problem.size > 0 and not measured.result.last.information.size
        gap = certificate.slope if bare and certificate.slope is not None else certificate.moment_gap
        denied = not gap <= allowed(self.control.tolerance, FAR * rounding)
        return Judgement(
            value,
            objective,
            certificate,
            gap=gap if denied else 0.0,
            kept=self.matched(fitted),
            verdict="" if denied else flat,
        )

    def measured(self, fitted: GLMFitted) -> Ended:
        """Value, slope and information at the coefficients of a fitted value, and whether the maximum exists.

        Of many rows the information is that of some, made at these coefficients. A direction of separation that the
        fitted value names is looked at row by row.
        """
        whole = self.problem_of(fitted)
        inner = np.ascontiguousarray(fitted.parameters.internal(fitted.values).T).ravel()
        direction = self._separating(whole, fitted)
        if direction is not None:
            rest = self.left_along(whole, direction)
            if rest is None:  # Every row is decided: there is nothing left to learn from.
                return Ended(whole, nothing_left(whole), Separation(False, direction), fitted.dropped)
            return Ended(rest, point_of(rest, inner), Separation(False, direction), fitted.dropped)
        result = point_of(whole, inner)
        separation = self.separation(whole, result)
        if result.origin is not None and (separation.exists is None or not result.last.information.definite):
            result = point_of(whole, inner, every=True)
            separation = self.separation(whole, result)
        exact = rooted(whole, result, separation, self.penalties)
        if exact is not None and self.inside_of(whole, result):
            whole, result = exact, point_of(exact, inner, every=True)
            separation = self.separation(whole, result)
        return Ended(whole, result, separation, fitted.dropped)

    def problem_of(self, fitted: GLMFitted) -> RegressionProblem:
        """The problem of all rows, without the columns that a fitted value has left out."""
        problem = self.problem()
        if not fitted.dropped:
            return problem
        kept = kept_places(fitted.dropped, fitted.parameters.size, self.outputs)
        return problem.holding(kept, np.zeros(problem.width))

    def inside_of(self, problem: RegressionProblem, result: Result) -> bool:
        """Whether a point is one where the information of the rows says what is left."""
        return True

    def _separating(self, problem: RegressionProblem, fitted: GLMFitted) -> Floats | None:
        """The direction of a fitted value in the engine's layout, where it does separate the rows."""
        if fitted.direction is None:
            return None
        direction = np.ascontiguousarray(fitted.parameters.internal(fitted.direction).T).ravel()
        return direction if self.separates(problem, direction) else None

    @abstractmethod
    def separates(self, problem: RegressionProblem, direction: Floats) -> bool:
        """Whether no row falls along a direction, and some rise, by more than rounding."""

    def left_along(self, problem: RegressionProblem, direction: Floats) -> RegressionProblem | None:
        """The problem of the rows that a direction leaves; None where it leaves none, all where it does not say."""
        decided = self.decided(problem, direction)
        return problem if decided is None else self.left_by(problem, decided)

    @abstractmethod
    def decided(self, problem: RegressionProblem, direction: Floats) -> Flags | None:
        """The rows that a direction decides, where these leave the fit of the others; else None."""

    def values(self, measured: Ended, fitted: GLMFitted) -> tuple[float, float]:
        """Log-likelihood and objective, sums over rows."""
        value = self.likelihood(measured)
        return value, value - self.log_prior(measured.problem.whole(measured.result.beta))

    def likelihood(self, ended: Ended) -> float:
        """The log-likelihood at phi = 1, up to what the response alone says: the objective has the prior taken off."""
        gaussian, problem = self.penalties.gaussian, ended.problem
        taken = 0.0 if gaussian is None else gaussian.value(problem.whole(ended.result.beta))
        return (ended.result.last.value + taken) * problem.phi

    def certificate(self, measured: Ended, fitted: GLMFitted) -> tuple[Certificate, float, str]:
        """How far coefficients are from the optimum, the slope that rounding may cause, and why it is flat, if so."""
        certificate = certify(
            measured.problem,
            measured.result,
            self.penalties,
            measured.separation,
            self.known(measured, fitted),
            weight=self.weight,
        )
        flat = flat_verdict(measured.result, measured.separation, self.penalties, certificate)
        return certificate, rounding_of(measured.result), flat

    def known(self, measured: Ended, fitted: GLMFitted) -> CertificateBasis:
        """What the certificate may rely on; no distribution of labels has a log-likelihood above 0."""
        return CertificateBasis(True, 0.0)

    @property
    def weight(self) -> float:
        """How many rows the rows stand for, trials counted each."""
        return self.data.weight

    def log_prior(self, whole: Floats) -> float:
        """What the prior takes off at all parameters."""
        parts = (self.penalties.gaussian, self.penalties.laplace)
        return sum(part.value(whole) for part in parts if part is not None)

    def corners(self, ended: Ended) -> tuple[int, ...]:
        """The coefficients that a Laplace prior holds at its centre, in the engine's layout."""
        laplace = self.penalties.laplace
        if laplace is None:
            return ()
        held = (laplace.rate > 0.0) & (ended.problem.whole(ended.result.beta) == laplace.mean)
        kept = kept_places(ended.dropped, self.data.parameters.size, self.outputs)
        return tuple(kept[held[kept]].tolist())

    def shared_figures(self, ended: Ended) -> dict[str, Any]:
        """What fitted values of every response have in common."""
        data, direction, parameters = self.data, ended.direction, self.data.parameters
        gaussian = self.penalties.gaussian
        return {
            **data.learned_names(),
            "family": self.options.family.name,
            "link": self.options.link.name,
            "information": ended.result.information,
            "direction": None
            if direction is None
            else parameters.public(ended.problem.shaped(direction).reshape(parameters.size, -1)),
            "dropped": ended.dropped,
            "corners": self.corners(ended),
            "precision": None if gaussian is None else gaussian.diagonal(),
        }
