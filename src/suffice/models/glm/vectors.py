"""Gaussian regressions of vectors: least squares, a matrix-normal and Wishart posterior, or normal priors."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from suffice.array_types import Floats
from suffice.engines.linear_predictor import RowBlock, linear_predictor, weighted
from suffice.errors import EstimateError, OptionError
from suffice.families.normal_wishart import NormalWishart
from suffice.fitting.confirmation import allowed
from suffice.fitting.contract import Found, Judgement
from suffice.fitting.control import Control, Outcome, State
from suffice.fitting.report import Certificate
from suffice.models.glm.certificate import FAR, in_units
from suffice.models.glm.design import Design
from suffice.models.glm.families import GaussianFamily
from suffice.models.glm.family import RowDistribution
from suffice.models.glm.fit_options import FitOptions
from suffice.models.glm.fitted import GLMFitted, kept_places, public_blocks
from suffice.models.glm.held_rows import RegressionRows
from suffice.models.glm.links import Identity
from suffice.models.glm.problem import RegressionProblem
from suffice.models.glm.rank import ColumnRank, checked_sums, column_rank
from suffice.models.glm.regression import Factory, GLMProblem
from suffice.models.glm.rows import RegressionData
from suffice.models.glm.solve import refuse_response
from suffice.models.glm.squares import solve_squares
from suffice.solvers.information import Information
from suffice.solvers.irls import ROUNDING
from suffice.sources.reduction import Answers

#: Rounds of coefficients and covariance, each given the other.
ROUNDS = 500


class VectorRegression(GLMProblem):
    """A Gaussian response of several columns: coefficients (k, m), and the covariance (m, m) of the residuals."""

    #: How the coefficients are found.
    method = "least squares"

    def __init__(self, options: FitOptions, data: RegressionData, factory: Factory) -> None:
        """Refuse rows of which nothing can be learned."""
        super().__init__(options, data, factory)
        self.rows = data.blocks
        self.control = Control()
        self.sums = checked_sums(self.rows)
        self.outputs = len(self.sums.total)
        refuse_response(self.sums.largest)

    @abstractmethod
    def measure(self, fitted: GLMFitted) -> tuple[Certificate, float, float]:
        """The certificate, the slope that rounding may cause, and what the prior takes off."""

    def judge(self, fitted: GLMFitted) -> Judgement:
        """Slopes of all coefficients at once, and the log-likelihood, from the rows."""
        certificate, rounding, taken = self.measure(fitted)
        assert fitted.residual_covariance is not None
        squares, weight = self.residual_squares(fitted), self.data.weight
        inverse = np.linalg.inv(fitted.residual_covariance)
        logdet = float(np.linalg.slogdet(fitted.residual_covariance)[1])
        size = self.outputs * math.log(2.0 * math.pi)
        value = -0.5 * (weight * (size + logdet) + float((inverse * squares).sum()))
        denied = not certificate.moment_gap <= allowed(self.control.tolerance, FAR * rounding)
        gap = certificate.moment_gap if denied else 0.0
        return Judgement(value, value - taken, certificate, gap=gap, kept=self.matched(fitted))

    @abstractmethod
    def residual_squares(self, fitted: GLMFitted) -> Floats:
        """R'R (m, m) at the coefficients of a fitted value."""

    def found_at(self, beta: Floats, covariance: Floats, information: Information, **more: Any) -> Found[GLMFitted]:
        """The fitted value, of coefficients (k, m) in the engine's layout."""
        data, m = self.data, self.outputs
        dropped = more.get("dropped", ())
        free = len(kept_places(dropped, *beta.shape))
        fitted = GLMFitted(
            **data.learned_names(),
            family=self.options.family.name,
            link=self.options.link.name,
            beta=data.design.public(beta),
            information=information,
            residual_covariance=covariance,
            deviance=float(np.trace(covariance)) * data.weight,
            df_resid=data.weight * m - free,
            n_params=free + m * (m + 1) // 2,
            **{**more, "dropped": dropped},
        )
        outcome = Outcome(State(beta.ravel(), 0.0, 0.0), True, self.stop_reason, ())
        return Found(fitted, self.method, self.estimate, outcome, self.notes)

    stop_reason = "closed form"
    estimate = "maximum likelihood"
    notes: tuple[str, ...] = ()


class VectorLeastSquares(VectorRegression):
    """``Theta = (X'X)^-1 X'Y`` and ``Sigma = R'R / N``: least squares for each column of Y, with one X'X."""

    def solve(self, control: Control) -> Found[GLMFitted]:
        """One X'X for all columns of Y."""
        self.control = control
        problems, rank = self._problems()
        beta, information = _least_squares(problems, doubtful=rank.doubtful)
        whole = np.column_stack([problems[0].whole(column) for column in beta.T])
        covariance = self._products(whole) / self.data.weight
        _refuse_singular(covariance)
        return self.found_at(whole, covariance, information, dropped=rank.dropped)

    def _problems(self) -> tuple[list[RegressionProblem], ColumnRank]:
        """One problem for each response, without columns that say the same as others."""
        design, distribution = self.data.design, RowDistribution(GaussianFamily(), Identity())
        columns = [self.rows.one_response(column) for column in range(self.outputs)]
        problem = RegressionProblem(columns[0], design.layout, distribution)
        rank = column_rank(problem, design, distribution, self.sums.mean, self.options.given["collinear"])
        self.notes = rank.notes
        problem = replace(problem, rooted=rank.rooted)
        if rank.dropped:
            kept = np.setdiff1d(np.arange(design.size), np.array(rank.dropped))
            problem = problem.holding(kept, np.zeros(design.size))
        return [replace(problem, rows=one) for one in columns], rank

    def _products(self, whole: Floats) -> Floats:
        return self.rows.reduce(partial(_residual_products, design=self.data.design, beta=whole))

    def residual_squares(self, fitted: GLMFitted) -> Floats:
        """From the rows themselves."""
        return self._products(self.data.design.internal(fitted.beta))

    def measure(self, fitted: GLMFitted) -> tuple[Certificate, float, float]:
        """See `_of_least_squares`."""
        problems, _ = self._problems()
        inner = self.data.design.internal(fitted.beta)
        beta = inner if problems[0].kept is None else inner[problems[0].kept]
        measured = [own.evaluate(np.ascontiguousarray(one)) for own, one in zip(problems, beta.T, strict=True)]
        information, slopes = measured[0][2], np.column_stack([slope for _, slope, _ in measured])
        squares, weight = self.residual_squares(fitted), self.data.weight
        certificate = _of_least_squares(slopes, information, squares, weight)
        return certificate, rounding_of_vectors(beta, information, squares / weight), 0.0


class PriorOnVectors(VectorRegression):
    """With a prior, the products X'X, X'Y and Y'Y say everything."""

    def __init__(self, options: FitOptions, data: RegressionData, factory: Factory) -> None:
        """One pass for each response."""
        super().__init__(options, data, factory)
        self.products = VectorProducts(self.rows, data.design, self.outputs)

    def residual_squares(self, fitted: GLMFitted) -> Floats:
        """From the products."""
        return self.products.residual_squares(self.data.design.internal(fitted.beta))


class WishartRegression(PriorOnVectors):
    """Coefficients given W are matrix-normal with row precision X'X + S and column covariance W^-1; W is Wishart.

    S holds the prior's `strength` for each coefficient, 0 for an intercept that is exempt; each coefficient of a
    response has the prior's mean of that response.
    """

    method = "closed form"
    estimate = "posterior mean"

    def _prior(self) -> tuple[NormalWishart, Floats, Floats]:
        """The prior, with strength (k,) and mean (k, m) of the coefficients."""
        prior, design = self.options.given["prior"], self.data.design
        if len(prior.mean_) != self.outputs:
            raise OptionError(f"The prior has {len(prior.mean_)} dimensions; the response has {self.outputs} columns.")
        strength = np.full(design.layout.size, float(prior.strength_))
        mean = np.tile(np.asarray(prior.mean_, dtype=np.float64), (design.layout.size, 1))
        if design.constant and not self.options.given["penalize_intercept"]:
            strength[0], mean[0] = 0.0, 0.0
        return prior, strength, mean

    def solve(self, control: Control) -> Found[GLMFitted]:
        """The posterior, and its means."""
        self.control = control
        (prior, strength, mean), products, m = self._prior(), self.products, self.outputs
        sides = zip(mean.T, products.cross.T, strict=True)
        beta = np.column_stack([products.solve(strength, centre, 1.0, right) for centre, right in sides])
        away = beta - mean
        scale = prior.inverse_scale_ + products.residual_squares(beta) + away.T @ (strength[:, None] * away)
        dof = float(prior.dof_) + products.weight - float((strength == 0.0).sum())
        if not dof > m + 1:
            raise EstimateError(f"The posterior mean of the covariance needs dof above {m + 1}; it is {dof:g}.")
        together, design = products.information.plus(strength), self.data.design
        posterior = (design.public(beta), design.public_matrix(together.inverse()), dof, scale)
        return self.found_at(beta, scale / (dof - m - 1), together, posterior=posterior)

    def measure(self, fitted: GLMFitted) -> tuple[Certificate, float, float]:
        """The posterior mean of the coefficients is their mode, whatever the covariance: the slope is 0 in all axes."""
        _, strength, mean = self._prior()
        beta, covariance = self.data.design.internal(fitted.beta), fitted.residual_covariance
        assert covariance is not None
        together = self.products.information.plus(strength)
        slope = self.products.slopes(beta) - strength[:, None] * (beta - mean)
        axes = np.linalg.eigh(covariance)
        turned = slope @ axes.eigenvectors / np.sqrt(axes.eigenvalues)
        left = sum(0.5 * float(one @ together.solve(one)) for one in turned.T)
        variance, left = np.broadcast_to(together.diagonal()[:, None], turned.shape), max(0.0, left) / self.data.weight
        certificate = in_units(turned, variance, left, bound=True, exists=True)
        return certificate, rounding_of_vectors(beta, together, covariance), 0.0


class JointMode(PriorOnVectors):
    """Normal coefficients: the joint mode of coefficients and covariance, each given the other until neither moves.

    In the axes of the covariance the responses are apart, each a ridge regression with its own variance.
    """

    method = stop_reason = "ridge in the axes of the residuals"
    estimate = "MAP"

    def __init__(self, options: FitOptions, data: RegressionData, factory: Factory) -> None:
        """Read the prior on the coefficients of each response."""
        super().__init__(options, data, factory)
        penalties = options.penalties(data.design)
        if penalties.gaussian is None or penalties.laplace is not None or penalties.conjugate is not None:
            raise OptionError(
                f"The prior is {options.given['prior']!r}; a response of vectors takes Normal(variance=...), "
                "MultivariateNormal(mean, covariance) for the coefficients of each response, or NormalWishart for "
                "coefficients and covariance."
            )
        self.penalty = penalties.gaussian

    def solve(self, control: Control) -> Found[GLMFitted]:
        """In turn."""
        self.control = control
        products, penalty, m = self.products, self.penalty, self.outputs
        beta = np.column_stack([products.solve(penalty.precision, penalty.mean, 1.0, one) for one in products.cross.T])
        covariance = self._covariance(beta)
        for _ in range(ROUNDS):
            variances, axes = np.linalg.eigh(covariance)
            right = products.cross @ axes
            means = np.outer(penalty.mean, axes.sum(axis=0))
            turned = [products.solve(penalty.precision, means[:, i], variances[i], right[:, i]) for i in range(m)]
            beta = np.column_stack(turned) @ axes.T
            before, covariance = covariance, self._covariance(beta)
            moved = float(np.abs(covariance - before).max())
            if moved <= 1e-14 * float(np.abs(covariance).max()):
                break
        inverse = np.asarray(np.linalg.inv(self._information(covariance)), dtype=np.float64)
        own = public_blocks(self.data.design, inverse, m)
        precision = penalty.diagonal()
        return self.found_at(beta, covariance, products.information, sandwich=own, precision=precision)

    def _covariance(self, beta: Floats) -> Floats:
        covariance = self.products.residual_squares(beta) / self.products.weight
        _refuse_singular(covariance)
        return np.asarray(covariance)

    def _information(self, covariance: Floats) -> Floats:
        """That of all coefficients (m k, m k), predictors first, prior included."""
        likelihood = np.kron(np.linalg.inv(covariance), self.products.information.dense())
        return np.asarray(likelihood + np.kron(np.eye(self.outputs), self.penalty.matrix()))

    def measure(self, fitted: GLMFitted) -> tuple[Certificate, float, float]:
        """Slope and Newton decrement of the coefficients, the covariance as it is."""
        beta, covariance, penalty = self.data.design.internal(fitted.beta), fitted.residual_covariance, self.penalty
        assert covariance is not None
        dense = self._information(covariance)
        pulled = self.products.slopes(beta) @ np.linalg.inv(covariance)
        slope = (pulled - np.stack([penalty.slope(column) for column in beta.T], axis=1)).T.ravel()
        left = 0.5 * float(slope @ np.linalg.solve(dense, slope))
        certificate = in_units(slope, np.diagonal(dense), max(0.0, left) / self.data.weight, exists=True)
        rounding = rounding_of_vectors(beta, self.products.information, covariance)
        return certificate, rounding, sum(penalty.value(column) for column in beta.T)


def _refuse_singular(covariance: Floats) -> None:
    """An error where the residuals do not fill all dimensions."""
    if not float(np.linalg.eigvalsh(covariance)[0]) > 1e-14 * float(np.trace(covariance)):
        raise EstimateError(
            "The residuals have a singular covariance: a response is fitted perfectly, or is a combination of others."
        )


class VectorProducts:
    """X'X, X'Y and Y'Y of the rows, offsets taken off; sums of squares of residuals follow from them."""

    def __init__(self, rows: RegressionRows, design: Design, outputs: int) -> None:
        """One pass for each response."""
        distribution = RowDistribution(GaussianFamily(), Identity())
        zero = np.zeros(design.layout.size)
        self.layout = design.layout
        self.columns = [rows.one_response(column) for column in range(outputs)]
        curvatures = [RegressionProblem(one, design.layout, distribution).curvature(zero) for one in self.columns]
        self.information: Information = curvatures[0][2]
        self.cross = np.stack([gradient for _, gradient, _ in curvatures], axis=1)
        self.squares, self.weight = rows.reduce(_squares).parts

    def slopes(self, beta: Floats) -> Floats:
        """X'(Y - X beta) (k, m), from the rows themselves: differences of products would lose digits."""
        distribution = RowDistribution(GaussianFamily(), Identity())
        gradients = [
            RegressionProblem(one, self.layout, distribution).objective(np.ascontiguousarray(column))[1]
            for one, column in zip(self.columns, beta.T, strict=True)
        ]
        return np.stack(gradients, axis=1)

    def residual_squares(self, beta: Floats) -> Floats:
        """(Y - X beta)'(Y - X beta) (m, m)."""
        fitted = np.stack([self.information.product(column) for column in beta.T], axis=1)
        half = beta.T @ self.cross
        squares = self.squares - half - half.T + beta.T @ fitted
        return np.asarray(0.5 * (squares + squares.T))

    def solve(self, precision: Floats, mean: Floats, share: float, right: Floats) -> Floats:
        """(X'X + share P)^-1 (right + share P mean)."""
        together = self.information.plus(share * precision)
        if not together.definite:
            raise EstimateError("A coefficient without a prior cannot be told from others; use penalize_intercept=True")
        pull = precision * mean if precision.ndim == 1 else precision @ mean
        return together.solve(right + share * pull)


def _squares(block: RowBlock) -> Answers:
    """Y'Y, offsets taken off, and the weight."""
    y = block.y if block.offset is None else block.y - block.offset[:, None]
    weight = float(block.rows) if block.weights is None else float(block.weights.sum())
    return Answers((weighted(y, block.weights).T @ y, weight))


def _least_squares(problems: Sequence[RegressionProblem], *, doubtful: bool) -> tuple[Floats, Information]:
    """Coefficients (k, m) of a problem for each response, which share X, and X'X; by double-double sums if doubtful."""
    beta = np.zeros((problems[0].size, len(problems)))
    information = Information(np.zeros((0, 0)))
    for column, own in enumerate(problems):
        closed = solve_squares(own) if doubtful else None
        if closed is not None:
            beta[:, column], information = closed[1].beta, closed[1].last.information
            continue
        for _ in range(3):  # The first step is exact but for rounding, which the next ones take out.
            _, gradient, information = own.evaluate(beta[:, column])
            beta[:, column] += information.solve(gradient)
    return beta, information


def _of_least_squares(slopes: Floats, information: Information, squares: Floats, weight: float) -> Certificate:
    """How far coefficients are from least squares, from their slopes G = X'R (k, m) and squares R'R (m, m).

    Least squares leave ``R'R - G'(X'X)^-1 G``, and the covariance is at its best for either: the log-likelihood is less
    by half the log of the ratio of the determinants, a row.
    """
    axes = np.linalg.eigh(squares / weight)
    turned = slopes @ axes.eigenvectors / np.sqrt(axes.eigenvalues)
    variance = np.broadcast_to(information.diagonal()[:, None], turned.shape)
    solved = np.stack([information.solve(one) for one in turned.T], axis=1)
    shares = np.linalg.eigvalsh(turned.T @ solved) / weight
    if not shares.max(initial=0.0) < 1.0:
        return in_units(turned, variance, exists=True)
    left = max(0.0, -0.5 * float(np.log1p(-np.maximum(shares, 0.0)).sum()))
    return in_units(turned, variance, left, bound=True, exists=True)


def rounding_of_vectors(beta: Floats, information: Information, covariance: Floats) -> float:
    """The slope, in standard deviations of the residuals, that rounding of coefficients (k, m) alone may cause."""
    least = float(np.linalg.eigvalsh(covariance)[0])
    return max(ROUNDING * math.sqrt(information.magnitude(one) / least) for one in beta.T)


def _residual_products(block: RowBlock, *, design: Design, beta: Floats) -> Floats:
    total = np.zeros((beta.shape[1], beta.shape[1]))
    for part in design.layout.parts(block):
        left = part.y - linear_predictor(design.layout, part, beta)
        total += weighted(left, part.weights).T @ left
    return total
