"""Regressions with several linear predictors: labels by softmax, and vectors with a Gaussian law."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from suffice.engines.linear_predictor import Block, linear_predictor, weighted
from suffice.errors import EstimateError
from suffice.fitting.control import Control, Outcome, State
from suffice.fitting.report import Certificate
from suffice.models.glm.design import Design
from suffice.models.glm.families import GaussianFamily
from suffice.models.glm.figures import Known, Wishes, certify, cross_checked, measured, not_flat, rooted, rounding_of
from suffice.models.glm.fit import Fitter
from suffice.models.glm.input import Rows, StreamRows
from suffice.models.glm.laws import RowLaw
from suffice.models.glm.links import Identity
from suffice.models.glm.priors import Penalties
from suffice.models.glm.problem import Average, Problem, largest_response
from suffice.models.glm.separation import Separation, find_separation
from suffice.models.glm.softmax import SoftmaxLaw
from suffice.models.glm.solve import Result, choose, joined, refuse_response, solve
from suffice.solvers.information import Information
from suffice.solvers.irls import ROUNDING, irls

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SeveralFit:
    """Coefficients (k, m) in the engine's layout, and the information (m k, m k), predictors first.

    `covariance` (m, m) is that of the residuals of a vector. `coefficient_covariance` (m k, m k) is set where it does
    not follow from both, `precision` (k,) where a vector has a Gaussian prior. `posterior` has coefficients, their
    spread (k, k), degrees of freedom and inverse scale (m, m) where the prior is conjugate.
    """

    beta: Floats
    information: Information
    log_likelihood: float
    objective: float
    null: float
    certificate: Certificate
    outcome: Outcome
    method: str
    separation: Separation
    iterates: tuple[Floats, ...] = ()
    covariance: Floats | None = None
    coefficient_covariance: Floats | None = None
    dropped: tuple[int, ...] = ()
    warnings: tuple[str, ...] = ()
    precision: Floats | None = None
    posterior: tuple[Floats, Floats, float, Floats] | None = None

    def kept(self) -> NDArray[np.intp]:
        """Places (m k,) of the coefficients that were fitted."""
        return kept_places(self.dropped, *self.beta.shape)


def kept_places(dropped: tuple[int, ...], size: int, outputs: int) -> NDArray[np.intp]:
    """Places of all coefficients but those of some columns, of which each linear predictor has one."""
    gone = np.isin(np.arange(size), np.array(dropped, dtype=np.intp))
    return np.flatnonzero(~np.tile(gone, outputs))


def fit_labels(
    rows: Rows | StreamRows, design: Design, classes: int, penalties: Penalties, wishes: Wishes, control: Control
) -> SeveralFit:
    """Softmax regression; codes of y have the reference last."""
    law = SoftmaxLaw(classes)
    if penalties.conjugate is not None:
        raise EstimateError("The prior on coefficients and variance is for a Gaussian response; use Normal(variance=)")
    problem = Problem(rows, design.layout, law, penalties.gaussian, outputs=classes - 1)
    start = _start(wishes, design, problem)
    dropped: tuple[int, ...] = ()
    fitter = Fitter(rows, design, GaussianFamily(), Identity(), penalties, wishes, control)
    if not penalties.any:
        one = replace(problem, law=RowLaw(GaussianFamily(), Identity()), outputs=1)
        dropped = fitter._full_rank(one)[1]
    if dropped:
        kept = kept_places(dropped, design.size, classes - 1)
        problem, start = problem.holding(kept, np.zeros(problem.width)), start[kept]
    result = _solve_labels(problem, start, penalties, wishes, control)
    shares = _shares(rows, classes)

    def separated() -> Separation:
        if penalties.any:
            return _kept_in_place(problem, penalties, shares.total)
        return find_separation(problem, "labels", result)

    separation = separated()
    exact = rooted(problem, result, separation, penalties)
    if exact is not None:
        problem, result = exact, joined(result, _solve_labels(exact, result.beta, penalties, wishes, control))
        separation = separated()
    fitted = problem
    value = result.last.value + (0.0 if penalties.gaussian is None else penalties.gaussian.value(result.beta))
    if separation.exists is False and separation.decided is not None and isinstance(rows, Rows):
        fitted, result, value = _limit(problem, rows, result, separation, control)
    # No law of labels has a log-likelihood above 0.
    certificate = certify(fitted, result, penalties, separation, Known(True, 0.0), weight=_weight(rows))
    objective = result.last.value - (0.0 if penalties.laplace is None else penalties.laplace.value(result.beta))
    outcome = cross_checked(result.outcome, certificate, control.tolerance, rounding_of(result))
    return SeveralFit(
        problem.shaped(problem.whole(result.beta)),
        result.last.information,
        value,
        objective,
        _null_of_labels(problem, shares),
        certificate,
        not_flat(outcome, result, separation, penalties, certificate),
        result.method,
        separation,
        tuple(problem.whole(one) for one in result.iterates),
        dropped=dropped,
        warnings=tuple(fitter.warnings),
    )


def _solve_labels(problem: Problem, start: Floats, penalties: Penalties, wishes: Wishes, control: Control) -> Result:
    keeper = wishes.keeper
    result = solve(
        problem if keeper is None else replace(problem, record=keeper.note),
        start,
        control,
        solver=choose(wishes.solver, problem, penalties.laplace),
        laplace=penalties.laplace,
        keep=wishes.keep_iterates,
        seed=wishes.seed,
        warm=wishes.solver == "auto" and not wishes.keep_iterates,
    )
    return measured(problem, result)


def _start(wishes: Wishes, design: Design, problem: Problem) -> Floats:
    """Zero, or the coefficients asked for, (k, m) as in `parameters_`."""
    if wishes.start is None:
        return np.zeros(problem.size)
    given = np.asarray(wishes.start, dtype=np.float64)
    if given.shape != (design.size, problem.outputs):
        raise EstimateError(
            f"start has shape {given.shape}; expected {(design.size, problem.outputs)}: a row for each coefficient, "
            "intercept first, and a column for each class but the reference."
        )
    return np.ascontiguousarray(design.internal(given).T).ravel()


def _limit(
    problem: Problem, rows: Rows, result: Result, separation: Separation, control: Control
) -> tuple[Problem, Result, float]:
    """Rows whose label the direction decides leave the fit of the others."""
    block = rows.block
    weights = np.ones(block.rows) if block.weights is None else block.weights
    decided = np.zeros(block.rows, dtype=np.bool_) if separation.decided is None else separation.decided
    rest = np.where(decided, 0.0, weights)
    if not rest.any():
        zero, none = np.zeros(problem.size), Information(np.zeros((problem.size, problem.size)))
        last = replace(result.last, beta=zero, gradient=zero, information=none)
        return problem, replace(result, beta=zero, last=last), 0.0
    reduced = replace(problem.on(replace(block, weights=rest)), rooted=False)
    fitted = measured(reduced, solve(reduced, np.zeros(problem.size), control, solver="irls"))
    return reduced, fitted, fitted.last.value


def _weight(rows: Rows | StreamRows) -> float:
    def task(block: Block) -> Average:
        return Average(float(block.rows) if block.weights is None else float(block.weights.sum()), 0.0)

    return rows.reduce(task).weight


def _kept_in_place(problem: Problem, penalties: Penalties, counts: Floats) -> Separation:
    """The same with a prior: intercepts without one run away where a class has no rows, and only there."""
    free = np.ones(problem.width, dtype=np.bool_)
    if penalties.gaussian is not None:
        free &= penalties.gaussian.diagonal() == 0.0
    if penalties.laplace is not None:
        free &= penalties.laplace.rate == 0.0
    by_class = free.reshape(problem.outputs, -1)
    if not free.any():
        return Separation(True)
    if not problem.layout.constant or by_class[:, 1:].any() or not by_class[:, 0].all():
        return Separation(None)
    if (counts > 0.0).all():
        return Separation(True)
    # Classes with rows go up together; the reference, which cannot, has all others move against it.
    moves = np.where(counts > 0.0, 1.0, 0.0) - float(counts[-1] > 0.0)
    direction = np.zeros_like(by_class, dtype=np.float64)
    direction[:, 0] = moves[:-1]
    return Separation(False, direction.ravel())


def _shares(rows: Rows | StreamRows, classes: int) -> Average:
    """Whether there is an offset, and the weight of each label (K,)."""

    def task(block: Block) -> Average:
        counts = np.bincount(block.y.astype(np.intp), block.weights, minlength=classes).astype(np.float64)
        return Average(float(block.offset is not None), counts)

    return rows.reduce(task)


def _null_of_labels(problem: Problem, found: Average) -> float:
    """Log-likelihood of the intercepts alone (and the offset); without an intercept that of no effects."""
    classes, constant = len(found.total), problem.layout.constant
    if constant and found.weight == 0.0:
        seen = found.total[found.total > 0.0]
        return float(seen @ np.log(seen / found.total.sum()))
    bare = replace(problem, penalty=None, kept=None, fixed=None, record=None)
    none = np.zeros(problem.width)
    if not constant:
        return float(bare.objective(none)[0])
    alone = bare.holding(np.arange(classes - 1) * problem.layout.size, none)
    return float(irls(alone.evaluate, np.zeros(classes - 1), Control(tolerance=1e-9)).outcome.state.objective)


def fit_vectors(rows: Rows | StreamRows, design: Design, wishes: Wishes, control: Control) -> SeveralFit:
    """``Theta = (X'X)^-1 X'Y`` and ``Sigma = R'R / N``: least squares for each column of Y, with one X'X."""
    if not isinstance(rows, Rows):
        raise EstimateError("A vector of responses needs rows in memory.")
    block, layout = rows.block, design.layout
    law = RowLaw(GaussianFamily(), Identity())
    m = block.y.shape[1]
    refuse_response(largest_response(rows))
    weight = _weight(rows)
    columns = [rows_of(block, np.ascontiguousarray(block.y[:, at])) for at in range(m)]
    fitter = Fitter(columns[0], design, GaussianFamily(), Identity(), Penalties(), wishes, control)
    problem, dropped = fitter._full_rank(Problem(columns[0], layout, law))
    problems = [replace(problem, rows=one) for one in columns]
    beta, information = _least_squares(problems)
    slopes = np.column_stack([own.objective(beta[:, at])[1] for at, own in enumerate(problems)])
    whole = np.column_stack([problem.whole(beta[:, at]) for at in range(m)])
    squares = rows.reduce(lambda part: _residual_products(part, design, whole)).total
    covariance = squares / weight
    sign, logdet = np.linalg.slogdet(covariance)
    least = float(np.linalg.eigvalsh(covariance)[0])
    if sign <= 0 or not least > 1e-14 * float(np.trace(covariance)):
        raise EstimateError(
            "The residuals have a singular covariance: a response is fitted perfectly, or is a combination of others."
        )
    log_likelihood = -0.5 * weight * (m * math.log(2.0 * math.pi) + logdet + m)
    certificate = _of_least_squares(slopes, information, squares, weight)
    outcome = Outcome(State(whole.ravel(), log_likelihood, certificate.moment_gap), True, "closed form", ())
    null = -0.5 * weight * (m * math.log(2.0 * math.pi) + _null_logdet(block, weight) + m)
    return SeveralFit(
        whole,
        information,
        log_likelihood,
        log_likelihood,
        null,
        certificate,
        cross_checked(
            outcome, certificate, control.tolerance, rounding_of_vectors(beta, information, squares / weight)
        ),
        "least squares",
        Separation(True),
        covariance=covariance,
        dropped=dropped,
        warnings=tuple(fitter.warnings),
    )


def _least_squares(problems: Sequence[Problem]) -> tuple[Floats, Information]:
    """Coefficients (k, m) of a problem for each response, which share X, and X'X."""
    beta = np.zeros((problems[0].size, len(problems)))
    information = Information(np.zeros((0, 0)))
    for at, own in enumerate(problems):
        for _ in range(3):  # The first step is exact but for rounding, which the next ones take out.
            _, gradient, information = own.evaluate(beta[:, at])
            beta[:, at] += information.solve(gradient)
    return beta, information


def _of_least_squares(slopes: Floats, information: Information, squares: Floats, weight: float) -> Certificate:
    """How far coefficients are from least squares, from their slopes G = X'R (k, m) and squares R'R (m, m).

    Least squares leave ``R'R - G'(X'X)^-1 G``, and the covariance is at its best for either: the log-likelihood is less
    by half the log of the ratio of the determinants, a row.
    """
    axes = np.linalg.eigh(squares / weight)
    turned = slopes @ axes.eigenvectors / np.sqrt(axes.eigenvalues)
    gap = float((np.abs(turned) / np.sqrt(information.diagonal())[:, None]).max(initial=0.0))
    solved = np.stack([information.solve(one) for one in turned.T], axis=1)
    shares = np.linalg.eigvalsh(turned.T @ solved) / weight
    if not shares.max(initial=0.0) < 1.0:
        return Certificate(gap, exists=True)
    return Certificate(gap, max(0.0, -0.5 * float(np.log1p(-np.maximum(shares, 0.0)).sum())), True, True, True)


def rounding_of_vectors(beta: Floats, information: Information, covariance: Floats) -> float:
    """The slope, in standard deviations of the residuals, that rounding of coefficients (k, m) alone may cause."""
    least = float(np.linalg.eigvalsh(covariance)[0])
    return max(ROUNDING * math.sqrt(information.magnitude(one) / least) for one in beta.T)


def rows_of(block: Block, y: Floats) -> Rows:
    """The same rows with another response."""
    return Rows(replace(block, y=y))


def _residual_products(block: Block, design: Design, beta: Floats) -> Average:
    total = np.zeros((beta.shape[1], beta.shape[1]))
    for part in design.layout.parts(block):
        left = part.y - linear_predictor(design.layout, part, beta)
        total += weighted(left, part.weights).T @ left
    return Average(0.0, total)


def _null_logdet(block: Block, weight: float) -> float:
    weights = np.ones(block.rows) if block.weights is None else block.weights
    away = block.y - weights @ block.y / weight
    sign, found = np.linalg.slogdet((away * weights[:, None]).T @ away / weight)
    return float(found) if sign > 0 else -math.inf
