"""EM for every model of which something is hidden: one contract, `LatentProblem`.

Let x be what was seen, z what was not, and theta the parameters. A step takes the statistics of complete rows that are
expected given x (E-step), and then parameters that raise

    Q(theta | theta') = E[log p(x, z; theta) | x; theta'] + log prior(theta)

(M-step). Whatever raises Q raises log p(x; theta) + log prior(theta) by at least as much (Dempster, Laird and Rubin
1977), so that the objective never falls, which is checked at every step. The slope of Q at theta = theta' is that of
the objective (Fisher's identity): a fixed point is stationary, and one E-step gives the score from which the observed
information follows by differences.

A model says how its parameters begin, what is expected at them and what follows from that; how they lie in one vector,
in units in which changes compare; how the statistics are expected once more by other code, for the judge; and what the
rows say about each parameter. Several starts, extrapolation, limits, checkpoints and the way of one run are here and in
`runs`. A `LatentProblem` is a `Problem` of `fitting.contract`: the driver solves and judges it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

from suffice.array_types import Floats
from suffice.checks import whole_number
from suffice.errors import EstimateError
from suffice.families.base import generator
from suffice.fitting.contract import F, Found, Judgement
from suffice.fitting.control import Control, Outcome
from suffice.models.em.information import ObservedInformation
from suffice.models.em.restarts import Runs, run_all
from suffice.solvers.fixed_point import FixedPoint, fixed_point, largest_change

#: The parameters of a model: nodes, weights, or the arrays of a chain and its emissions.
P = TypeVar("P")
#: The statistics of complete rows.
S = TypeVar("S")


@dataclass(frozen=True, eq=False)
class Expected(Generic[S]):
    """What an E-step gives: log p(x; theta), a sum over rows in nats, and the expected statistics of complete rows."""

    log_likelihood: float
    statistics: S

    def __add__(self, other: Expected[S]) -> Expected[S]:
        """Of both sets of rows."""
        both: Any = self.statistics
        return Expected(self.log_likelihood + other.log_likelihood, both + other.statistics)


@dataclass(frozen=True)
class Starts:
    """How often EM is started, from which seed, and how its steps are extrapolated: None, or "squarem"."""

    count: int = 1
    random_state: Any = 0
    acceleration: str | None = None

    def __post_init__(self) -> None:
        """Refuse a number that is none."""
        whole_number(self.count, "n_init")

    def generators(self) -> list[np.random.Generator]:
        """One stream of random numbers for each start."""
        rng = generator(self.random_state)
        try:
            return rng.spawn(int(self.count))
        except TypeError:  # A generator that was not made from a seed sequence, such as that of a RandomState.
            return [np.random.default_rng(int(seed)) for seed in rng.integers(0, 2**62, size=int(self.count))]


class LatentProblem(ABC, Generic[P, S, F]):
    """Rows that do not show everything meet parameters.

    P are the parameters as the model has them, S the statistics of complete rows, F the fitted value.
    """

    # -- what a model says: the steps --------------------------------------------------------------------------------

    @property
    @abstractmethod
    def weight(self) -> float:
        """How many rows there are, weighted: falls of the objective that are small beside it are rounding."""

    @property
    @abstractmethod
    def starts(self) -> Starts:
        """How often to start, and how to extrapolate."""

    @abstractmethod
    def start(self, number: int, rng: np.random.Generator) -> P:
        """Where a run begins; the first begins at values that were given, where some were."""

    @abstractmethod
    def expect(self, parameters: P) -> Expected[S]:
        """The E-step; the log-likelihood is -inf where some row is impossible."""

    @abstractmethod
    def maximise(self, statistics: S, before: P) -> P:
        """The M-step: parameters of larger Q; what the statistics do not determine stays as it was before."""

    def log_prior(self, parameters: P) -> float:
        """Log prior density up to a constant, as the M-step maximises it."""
        return 0.0

    # -- what a model says: parameters as one vector -----------------------------------------------------------------

    @abstractmethod
    def vector(self, parameters: P) -> Floats:
        """The free parameters (k,) one after another, in units in which changes compare."""

    @abstractmethod
    def at(self, vector: Floats, like: P) -> P:
        """The parameters that a vector (k,) holds, the rest as in `like`; an EstimateError where they are none."""

    def prepared(self, start: P) -> P:
        """A start in the form that M-steps give, where theirs is another one."""
        return start

    def inside(self, vector: Floats, like: P) -> bool:
        """Whether a vector that was extrapolated holds parameters."""
        try:
            self.at(vector, like)
        except EstimateError:
            return False
        return True

    def hold(self, vector: Floats, like: P) -> Floats:
        """A vector that was extrapolated beyond a floor, brought back onto it."""
        return vector

    def gap(self, vector: Floats, mapped: Floats) -> float:
        """Distance from stationarity in the unit of the tolerance; by default the largest change by a step."""
        return largest_change(vector, mapped)

    # -- what a model says: afterwards -------------------------------------------------------------------------------

    @abstractmethod
    def expect_again(self, parameters: P) -> Expected[S]:
        """As `expect`, by code that no step of EM uses, so that a fault of theirs shows: for the judge alone."""

    @abstractmethod
    def observed_information(self, parameters: P) -> ObservedInformation | None:
        """What the rows say about each free parameter; None where none is free, or the numbers are not finite."""

    @abstractmethod
    def found(self, runs: Runs[P]) -> Found[F]:
        """The fitted value of the best run, with its receipt."""

    @abstractmethod
    def judge(self, fitted: F) -> Judgement:
        """See `fitting.contract.Problem`: by `expect_again`, `stationarity` and `observed_information`."""

    @abstractmethod
    def identity(self) -> Iterable[Any]:
        """See `fitting.contract.Problem`."""

    # -- what follows ------------------------------------------------------------------------------------------------

    def solve(self, control: Control) -> Found[F]:
        """EM from every start, and keep the best."""
        return self.found(self.fixed_point(control))

    def fixed_point(self, control: Control) -> Runs[P]:
        """All runs of EM."""
        begin = self.start
        seeds = self.starts.generators()
        starts = [lambda number=number, rng=rng: begin(number, rng) for number, rng in enumerate(seeds)]
        return run_all(self, starts, control, acceleration=self.starts.acceleration, fingerprint=control.problem)

    def objective(self, expected: Expected[S], parameters: P) -> float:
        """Log-likelihood and log prior."""
        return expected.log_likelihood + self.log_prior(parameters)

    def run(self, start: P, control: Control, *, acceleration: str | None, fingerprint: str) -> tuple[P, Outcome]:
        """EM from one start; returns where it ended and how."""
        like = self.prepared(start)

        def evaluate(vector: Floats) -> tuple[float, Floats]:
            parameters = self.at(vector, like)
            expected = self.expect(parameters)
            if not np.isfinite(expected.log_likelihood):
                return expected.log_likelihood, vector
            moved = self.maximise(expected.statistics, parameters)
            return self.objective(expected, parameters), self.vector(moved)

        problem = FixedPoint(
            evaluate,
            lambda vector: self.inside(vector, like),
            max(self.weight, 1.0),
            lambda vector: self.hold(vector, like),
            self.gap,
        )
        outcome = fixed_point(problem, self.vector(like), control, acceleration=acceleration, fingerprint=fingerprint)
        return self.at(outcome.state.parameters, like), outcome

    def resumed(self, start: P, outcome: Outcome) -> tuple[P, Outcome]:
        """A run that was finished before, from the same start."""
        return self.at(outcome.state.parameters, self.prepared(start)), outcome

    def stationarity(self, parameters: P) -> float:
        """The largest change of a parameter by one more step whose expectations are computed by other code."""
        return self.change(parameters, self.expect_again(parameters))

    def change(self, parameters: P, expected: Expected[S]) -> float:
        """The largest change of a parameter by the M-step at these expectations."""
        moved = self.maximise(expected.statistics, parameters)
        return largest_change(self.vector(parameters), self.vector(moved))
