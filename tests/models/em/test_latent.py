"""The contract of EM, by the smallest problem that there is: coins of two kinds, and nobody says which was tossed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import optimize, stats

import suffice as sf
from suffice.errors import EstimateError, OptionError
from suffice.fitting.contract import Found, Judgement
from suffice.fitting.control import Control, State
from suffice.fitting.driver import solve
from suffice.fitting.portrait import Portrait
from suffice.fitting.report import Certificate
from suffice.models.em.information import ObservedInformation, score_differences
from suffice.models.em.latent import Expected, LatentProblem, Starts
from suffice.models.em.restarts import Runs

Floats = NDArray[np.float64]
TOSSES = 12
#: Heads of each round of tosses; in about a third of the rounds the coin was the second one.
HEADS = np.where(np.arange(90) % 3 == 0, 9, 3) + np.random.default_rng(0).integers(-2, 3, 90)


@dataclass(frozen=True)
class Coins:
    """P(second coin), and P(heads) of both coins (2,)."""

    share: float
    heads: Floats
    title: str = "two coins"
    n_params: int = 3

    def joint(self, heads: NDArray[np.int64]) -> Floats:
        """P(coin, heads of a round) of each round and both coins (n, 2)."""
        shares = np.array([1 - self.share, self.share])
        return np.asarray(shares * stats.binom.pmf(heads[:, None], TOSSES, self.heads))

    def score_samples(self, heads: NDArray[np.int64]) -> Floats:
        """The log-likelihood of each round (n,)."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.joint(heads).sum(axis=1)))

    def to_dict(self) -> dict[str, Any]:
        return {"share": self.share, "heads": self.heads}

    def portrait(self) -> Portrait:
        return Portrait(self.title)


@dataclass(frozen=True)
class Rounds:
    rows: int = len(HEADS)
    weight: float = float(len(HEADS))
    passes: int = 1


@dataclass(frozen=True, eq=False)
class CoinProblem(LatentProblem[Coins, Floats, Coins]):
    """The statistics are the expected rounds of each coin (2,), and their heads (2,), one after the other."""

    planned: Starts = field(default_factory=Starts)
    wrong: bool = False
    expectations: list[int] = field(default_factory=list)

    @property
    def weight(self) -> float:
        return float(len(HEADS))

    @property
    def starts(self) -> Starts:
        return self.planned

    def start(self, number: int, rng: np.random.Generator) -> Coins:
        if number == 1:
            return Coins(0.5, np.array([0.0, 0.0]))  # Heads cannot be: this run fails.
        return Coins(float(rng.uniform(0.2, 0.8)), np.sort(rng.uniform(0.1, 0.9, 2)))

    def expect(self, parameters: Coins) -> Expected[Floats]:
        self.expectations.append(1)
        return self._expected(parameters)

    def _expected(self, parameters: Coins) -> Expected[Floats]:
        joint = parameters.joint(HEADS)
        total = joint.sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            value, posterior = float(np.log(total).sum()), joint / total[:, None]
        return Expected(value, np.concatenate([posterior.sum(axis=0), HEADS @ posterior]))

    def maximise(self, statistics: Floats, before: Coins) -> Coins:
        rounds, heads = statistics[:2], statistics[2:]
        shares = heads / (TOSSES * rounds)
        return Coins(float(rounds[1] / rounds.sum()), shares[::-1] if self.wrong else shares)

    def vector(self, parameters: Coins) -> Floats:
        return np.array([parameters.share, *parameters.heads])

    def at(self, vector: Floats, like: Coins) -> Coins:
        if not ((vector >= 0) & (vector <= 1)).all():
            raise EstimateError("no probabilities")
        return Coins(float(vector[0]), vector[1:])

    def expect_again(self, parameters: Coins) -> Expected[Floats]:
        return self._expected(parameters)

    def observed_information(self, parameters: Coins) -> ObservedInformation:
        here = self.vector(parameters)

        def value(vector: Floats) -> float:
            return self._expected(self.at(vector, parameters)).log_likelihood

        def score(step: Floats) -> Floats:
            return np.asarray(optimize.approx_fprime(here + step, value))

        found = score_differences(score, 3)
        return ObservedInformation(("share", "first", "second"), found, found, np.diag(found), np.diag(found))

    def found(self, runs: Runs[Coins]) -> Found[Coins]:
        return Found(runs.best, "EM", "maximum likelihood", runs.outcome, runs.notes, passes=runs.evaluations)

    def judge(self, fitted: Coins) -> Judgement:
        value = self.expect_again(fitted).log_likelihood
        return Judgement(value, value, Certificate(self.stationarity(fitted)))

    def identity(self) -> Iterable[Any]:
        return ["coins", HEADS]


def best() -> float:
    """The largest log-likelihood, by SciPy."""

    def lost(x: Floats) -> float:
        share, *heads = 1 / (1 + np.exp(-x))
        joint = np.array([1 - share, share]) * stats.binom.pmf(HEADS[:, None], TOSSES, heads)
        return -float(np.log(joint.sum(axis=1)).sum())

    return -float(optimize.minimize(lost, [-0.5, -1.0, 1.0], method="Nelder-Mead", options={"xatol": 1e-10}).fun)


@pytest.mark.parametrize("acceleration", [None, "squarem"])
def test_a_problem_is_climbed_by_the_driver(acceleration: str | None) -> None:
    problem = CoinProblem(Starts(1, 0, acceleration))
    fit = solve(problem, Rounds(), Control(max_iter=2000, tolerance=1e-9))
    report = fit.report
    assert report is not None
    assert report.converged
    assert report.log_likelihood == pytest.approx(best(), abs=1e-7)
    assert (report.passes, report.n_params) == (len(problem.expectations), 3)
    assert all(b >= a - 1e-9 for a, b in zip(report.history, report.history[1:], strict=False))
    curvature = problem.observed_information(fit.fitted).curvature(report.certificate.moment_gap, (report.objective,))
    assert (curvature.point, curvature.rank) == ("maximum", 3)


def test_a_run_that_fails_is_left_out_of_several() -> None:
    fit = solve(CoinProblem(Starts(3)), Rounds(), Control(max_iter=2000, tolerance=1e-9))
    assert fit.report is not None
    assert [note[:12] for note in fit.report.warnings] == ["run 1 failed"]
    assert fit.report.log_likelihood == pytest.approx(best(), abs=1e-7)


def test_a_step_that_falls_is_an_error() -> None:
    with pytest.raises(sf.EstimateError, match="lowered the objective"):
        solve(CoinProblem(wrong=True), Rounds(), Control(max_iter=2000, tolerance=1e-9))


def test_runs_go_on_from_a_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "coins.json"

    def stop(state: State) -> bool:
        return state.iteration >= 5

    plan = Starts(1)
    first = solve(CoinProblem(plan), Rounds(), Control(2000, 1e-9, checkpoint=path, callback=stop))
    assert first.report is not None
    assert not first.report.converged
    second = solve(CoinProblem(plan), Rounds(), Control(2000, 1e-9, checkpoint=path))
    whole = solve(CoinProblem(plan), Rounds(), Control(2000, 1e-9))
    np.testing.assert_array_equal(second.fitted.heads, whole.fitted.heads)
    assert second.report is not None
    assert whole.report is not None
    assert second.report.history == whole.report.history


@pytest.mark.parametrize("count", [0, 1.5, True, "2"])
def test_a_number_of_starts_that_is_none_is_refused(count: Any) -> None:
    with pytest.raises(OptionError, match="n_init"):
        Starts(count)
