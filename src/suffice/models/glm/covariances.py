"""Covariances of coefficients that need the rows: robust ones, and those from the observed information."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from suffice.array_types import Floats
from suffice.engines.linear_predictor import (
    CoefficientLayout,
    ResponseDistribution,
    RowBlock,
    RowCurvature,
    curvature_task,
    several_task,
)
from suffice.fitting.control import Control
from suffice.models.glm.error_kinds import WHITE
from suffice.models.glm.family import RowDistribution
from suffice.models.glm.fitted import filled, public_blocks
from suffice.models.glm.problem import RegressionProblem, deviance_question
from suffice.models.glm.rows import RegressionData
from suffice.models.glm.softmax import SoftmaxDistribution
from suffice.solvers.information import LEAST_PIVOT, Information
from suffice.solvers.irls import irls


@dataclass(frozen=True, eq=False)
class RowEnd:
    """Rows of one linear predictor at fitted coefficients (k,), in the engine's layout."""

    data: RegressionData
    distribution: RowDistribution
    beta: Floats
    information: Information
    dispersion: float
    dropped: tuple[int, ...] = ()

    def covariance(self, kind: object) -> Floats | None:
        """The covariance (k, k) in the order of the names; None for that of the expected information.

        Kinds that single rows make come after the fit.
        """
        if kind == "observed":
            return _observed(self)
        return _sandwich(self) if kind in WHITE else None


def _sandwich(end: RowEnd) -> Floats:
    """I^-1 (sum over rows of squared scores) I^-1, which holds where the variance is not that of the family."""
    squared = curvature_task(end.data.design.layout, SquaredScores(end.distribution), end.beta)
    squares = end.data.blocks.reduce(partial(_over_trials, question=squared))
    assert squares.body is not None
    middle = Information(squares.body, squares.cross, squares.levels).dense()
    bread = end.information.inverse() / end.dispersion
    bread = filled(bread, end.dropped)
    return end.data.design.public_matrix(bread @ middle @ bread)


def _over_trials(block: RowBlock, *, question: Callable[[RowBlock], RowCurvature]) -> RowCurvature:
    """The score of a row of trials is the sum over its trials, so that its square has the square of their number."""
    if block.trials is not None and block.weights is not None:
        block = replace(block, weights=block.weights * block.trials)
    return question(block)


@dataclass(frozen=True)
class SquaredScores:
    """The square of each row's score in place of its information, of one linear predictor or of several."""

    distribution: ResponseDistribution

    def __call__(self, eta: Floats, y: Floats) -> tuple[Floats, Floats, Floats]:
        """No value, the score, and its square."""
        value, score, information = self.distribution(eta, y)
        squares = score**2 + 0.0 * information if eta.ndim == 1 else score[:, :, None] * score[:, None, :]
        return np.zeros_like(value), score, squares


@dataclass(frozen=True)
class ScoreDifferences:
    """Minus the second derivative of each row's log-likelihood in eta, where it has a sign; 0 elsewhere."""

    distribution: RowDistribution
    sign: float

    def __call__(self, eta: Floats, y: Floats) -> tuple[Floats, Floats, Floats]:
        """No value, no score, and the derivative by differences."""
        step = 6e-6 * np.maximum(1.0, np.abs(eta))
        ahead, behind = self.distribution(eta + step, y)[1], self.distribution(eta - step, y)[1]
        own = np.maximum(self.sign * (behind - ahead) / (2.0 * step), 0.0)
        return np.zeros_like(eta), np.zeros_like(eta), own


def _observed(end: RowEnd) -> Floats:
    """The inverse of the observed information: minus the second derivative, by differences of the score in eta."""
    layout = end.data.design.layout
    signs = (ScoreDifferences(end.distribution, sign) for sign in (1.0, -1.0))
    parts = [
        Information(curved.body, curved.cross, curved.levels).dense()
        for curved in end.data.blocks.reduce_all(*(curvature_task(layout, sign, end.beta) for sign in signs))
    ]
    phi = end.dispersion if end.distribution.family.free_dispersion else 1.0
    kept = np.setdiff1d(np.arange(layout.size), np.array(end.dropped, dtype=np.intp))
    whole = np.zeros((layout.size, layout.size))
    observed = (parts[0] - parts[1])[np.ix_(kept, kept)]
    scale = np.sqrt(np.maximum(np.diagonal(observed), 0.0))
    if not ((scale > 0.0).all() and np.linalg.eigvalsh(observed / np.outer(scale, scale))[0] > LEAST_PIVOT):
        # No maximum that is sharp: the rows say nothing, or the second derivative has the wrong sign.
        whole[kept, kept] = np.inf
    else:
        whole[np.ix_(kept, kept)] = phi * np.linalg.inv(observed)
    return end.data.design.public_matrix(whole)


def null_deviance(data: RegressionData, distribution: RowDistribution, mean: float) -> float:
    """Deviance of the model with an intercept alone (without one: with a linear predictor of 0) and the offset."""
    beta, bare = _null_point(data, distribution, mean), data.blocks.without_columns()
    if not np.isfinite(beta).all():
        return 0.0
    problem = RegressionProblem(bare, CoefficientLayout(data.design.constant, 0), distribution)
    if data.design.constant and data.has_offset and math.isfinite(problem.objective(beta)[0]):
        beta = irls(problem.evaluate, beta, Control(tolerance=1e-9)).outcome.state.parameters
    question = bare.asked(deviance_question(problem.layout, distribution, beta))
    return max(float(data.blocks.once(_null_name(distribution, beta), question)), 0.0)


def expect_null_deviance(data: RegressionData, distribution: RowDistribution, mean: float) -> None:
    """Let the next round bring what `null_deviance` will ask, where the average says at which intercept."""
    beta = _null_point(data, distribution, mean)
    if np.isfinite(beta).all() and not data.has_offset and not data.blocks.in_memory:
        question = deviance_question(CoefficientLayout(data.design.constant, 0), distribution, beta)
        data.blocks.expect(_null_name(distribution, beta), data.blocks.without_columns().asked(question))


def _null_point(data: RegressionData, distribution: RowDistribution, mean: float) -> Floats:
    """The intercept of the average of the response, where there is an intercept."""
    with np.errstate(all="ignore"):
        return distribution.link.eta(np.array([mean])) if data.design.constant else np.zeros(0)


def _null_name(distribution: RowDistribution, beta: Floats) -> Hashable:
    return "null deviance", distribution.family, distribution.link.name, beta.tobytes()


def label_sandwich(data: RegressionData, beta: Floats, information: Information, dropped: tuple[int, ...]) -> Floats:
    """The sandwich of a softmax fit at coefficients (k, m): a row's score is its residual of each class times it."""
    classes = beta.shape[1] + 1
    squared = SquaredScores(SoftmaxDistribution(classes))
    middle = data.blocks.reduce(several_task(data.design.layout, squared, beta)).body
    assert middle is not None
    bread = filled(information.inverse(), dropped, classes - 1)
    return public_blocks(data.design, bread @ middle @ bread, classes - 1)
