"""Gaussian regressions of vectors with a prior: matrix-normal with a Wishart law, or normal coefficients."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.engines.linear_predictor import Block, weighted
from suffice.errors import EstimateError, OptionError
from suffice.families.normal_wishart import NormalWishart
from suffice.fitting.control import Outcome, State
from suffice.fitting.report import Certificate
from suffice.models.glm.design import Design
from suffice.models.glm.families import GaussianFamily
from suffice.models.glm.figures import cross_checked
from suffice.models.glm.input import Rows, StreamRows
from suffice.models.glm.laws import RowLaw
from suffice.models.glm.links import Identity
from suffice.models.glm.priors import read_prior
from suffice.models.glm.problem import Problem
from suffice.models.glm.separation import Separation
from suffice.models.glm.several import SeveralFit, rounding_of_vectors, rows_of
from suffice.solvers.information import Information
from suffice.solvers.penalties import GaussianPenalty

Floats = NDArray[np.float64]

#: Rounds of coefficients and covariance, each given the other.
ROUNDS = 500
#: A slope, in standard deviations, that least squares in closed form do not exceed.
TOLERANCE = 1e-8


class Products:
    """X'X, X'Y and Y'Y of the rows, offsets taken off; sums of squares of residuals follow from them."""

    def __init__(self, rows: Rows | StreamRows, design: Design) -> None:
        """One pass for each response."""
        if not isinstance(rows, Rows):
            raise EstimateError("A vector of responses needs rows in memory.")
        block, law = rows.block, RowLaw(GaussianFamily(), Identity())
        self.outputs = block.y.shape[1]
        zero = np.zeros(design.layout.size)
        self.layout = design.layout
        self.columns = [rows_of(block, np.ascontiguousarray(one)) for one in block.y.T]
        found = [Problem(one, design.layout, law).curvature(zero) for one in self.columns]
        self.information: Information = found[0][2]
        self.cross = np.stack([gradient for _, gradient, _ in found], axis=1)
        self.squares, self.weight = _squares(block)

    def slopes(self, beta: Floats) -> Floats:
        """X'(Y - X beta) (k, m), from the rows themselves: differences of products would lose digits."""
        law = RowLaw(GaussianFamily(), Identity())
        found = [
            Problem(one, self.layout, law).objective(np.ascontiguousarray(column))[1]
            for one, column in zip(self.columns, beta.T, strict=True)
        ]
        return np.stack(found, axis=1)

    def residual_squares(self, beta: Floats) -> Floats:
        """(Y - X beta)'(Y - X beta) (m, m)."""
        fitted = np.stack([self.information.product(column) for column in beta.T], axis=1)
        half = beta.T @ self.cross
        found = self.squares - half - half.T + beta.T @ fitted
        return 0.5 * (found + found.T)

    def solve(self, precision: Floats, mean: Floats, share: float, right: Floats) -> Floats:
        """(X'X + share P)^-1 (right + share P mean)."""
        together = self.information.plus(share * precision)
        if not together.definite:
            raise EstimateError("A coefficient without a prior cannot be told from others; use penalize_intercept=True")
        pull = precision * mean if precision.ndim == 1 else precision @ mean
        return together.solve(right + share * pull)


def _squares(block: Block) -> tuple[Floats, float]:
    y = block.y if block.offset is None else block.y - block.offset[:, None]
    weight = float(block.rows) if block.weights is None else float(block.weights.sum())
    return weighted(y, block.weights).T @ y, weight


def fit_vectors_with_prior(
    rows: Rows | StreamRows, design: Design, prior: Any, *, penalize_intercept: bool
) -> SeveralFit:
    """The posterior mean under a `NormalWishart`, else the joint mode of coefficients and covariance."""
    products = Products(rows, design)
    if isinstance(prior, NormalWishart):
        return _conjugate(products, design, prior, penalize_intercept)
    penalties = read_prior(prior, design, penalize_intercept=penalize_intercept)
    if penalties.gaussian is None or penalties.laplace is not None or penalties.conjugate is not None:
        raise OptionError(
            f"The prior is {prior!r}; a response of vectors takes Normal(variance=...), MultivariateNormal(mean, "
            "covariance) for the coefficients of each response, or NormalWishart for coefficients and covariance."
        )
    return _joint_mode(products, penalties.gaussian)


def _conjugate(products: Products, design: Design, prior: NormalWishart, penalize: bool) -> SeveralFit:
    """Coefficients given W are matrix-normal with row precision X'X + S and column covariance W^-1; W is Wishart.

    S holds the prior's `strength` for each coefficient, 0 for an intercept that is exempt; each coefficient of a
    response has the prior's mean of that response.
    """
    m = products.outputs
    if len(prior.mean_) != m:
        raise OptionError(f"The prior has {len(prior.mean_)} dimensions; the response has {m} columns.")
    strength = np.full(design.layout.size, float(prior.strength_))
    mean = np.tile(np.asarray(prior.mean_, dtype=np.float64), (design.layout.size, 1))
    if design.constant and not penalize:
        strength[0], mean[0] = 0.0, 0.0
    beta = np.column_stack([products.solve(strength, mean[:, at], 1.0, products.cross[:, at]) for at in range(m)])
    away = beta - mean
    scale = prior.inverse_scale_ + products.residual_squares(beta) + away.T @ (strength[:, None] * away)
    dof = float(prior.dof_) + products.weight - float((strength == 0.0).sum())
    if not dof > m + 1:
        raise EstimateError(f"The posterior mean of the covariance needs dof above {m + 1}; it is {dof:g}.")
    covariance = scale / (dof - m - 1)
    together = products.information.plus(strength)
    # The posterior mean of the coefficients is their mode, whatever the covariance: the slope is 0 in all axes.
    slope = products.slopes(beta) - strength[:, None] * away
    axes = np.linalg.eigh(covariance)
    turned = slope @ axes.eigenvectors / np.sqrt(axes.eigenvalues)
    gap = float((np.abs(turned) / np.sqrt(together.diagonal())[:, None]).max(initial=0.0))
    left = sum(0.5 * float(one @ together.solve(one)) for one in turned.T)
    found = _several(products, beta, covariance, together, 0.0, "closed form", gap, left, bound=True)
    return replace(found, posterior=(beta, together.inverse(), dof, scale))


def _joint_mode(products: Products, penalty: GaussianPenalty) -> SeveralFit:
    """Coefficients given the covariance and the covariance given the coefficients, until neither moves.

    In the axes of the covariance the responses are apart, each a ridge regression with its own variance.
    """
    m = products.outputs
    beta = np.column_stack([products.solve(penalty.precision, penalty.mean, 1.0, one) for one in products.cross.T])
    covariance = _covariance(products, beta)
    for _ in range(ROUNDS):
        variances, axes = np.linalg.eigh(covariance)
        right = products.cross @ axes
        means = np.outer(penalty.mean, axes.sum(axis=0))
        turned = [products.solve(penalty.precision, means[:, i], variances[i], right[:, i]) for i in range(m)]
        beta = np.column_stack(turned) @ axes.T
        before, covariance = covariance, _covariance(products, beta)
        moved = float(np.abs(covariance - before).max())
        if moved <= 1e-14 * float(np.abs(covariance).max()):
            break
    inverse = np.linalg.inv(covariance)
    dense = np.kron(inverse, products.information.dense()) + np.kron(np.eye(m), penalty.matrix())
    pulled = products.slopes(beta) @ inverse
    slope = pulled - np.stack([penalty.slope(column) for column in beta.T], axis=1)
    gap = float((np.abs(slope.T.ravel()) / np.sqrt(np.diagonal(dense))).max(initial=0.0))
    taken = sum(penalty.value(column) for column in beta.T)
    left = 0.5 * float(slope.T.ravel() @ np.linalg.solve(dense, slope.T.ravel()))
    method = "ridge in the axes of the residuals"
    found = _several(products, beta, covariance, products.information, taken, method, gap, left, bound=False)
    return replace(found, coefficient_covariance=np.linalg.inv(dense), precision=penalty.diagonal())


def _covariance(products: Products, beta: Floats) -> Floats:
    found = products.residual_squares(beta) / products.weight
    if not float(np.linalg.eigvalsh(found)[0]) > 1e-14 * float(np.trace(found)):
        raise EstimateError(
            "The residuals have a singular covariance: a response is fitted perfectly, or is a combination of others."
        )
    return found


def _several(
    products: Products,
    beta: Floats,
    covariance: Floats,
    information: Information,
    taken: float,
    method: str,
    gap: float,
    left: float,
    *,
    bound: bool,
) -> SeveralFit:
    """All figures; `taken` is what the prior takes off the log-likelihood.

    `gap` is the largest slope, and `left` what the objective could still rise by: at most, or by estimate.
    """
    inverse = np.linalg.inv(covariance)
    squares = products.residual_squares(beta)
    logdet = float(np.linalg.slogdet(covariance)[1])
    size = products.outputs * math.log(2.0 * math.pi)
    value = -0.5 * (products.weight * (size + logdet) + float((inverse * squares).sum()))
    certificate = Certificate(gap, max(0.0, left) / products.weight, bound, True, True)
    outcome = Outcome(State(beta.ravel(), value - taken, gap), True, method, ())
    return SeveralFit(
        beta,
        information,
        value,
        value - taken,
        math.nan,
        certificate,
        cross_checked(outcome, certificate, TOLERANCE, rounding_of_vectors(beta, information, covariance)),
        method,
        Separation(True),
        covariance=covariance,
    )
