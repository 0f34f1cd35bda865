"""Labels by softmax: a linear predictor for each class but the reference."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from suffice.array_types import Flags, Floats
from suffice.engines.linear_predictor import RowBlock
from suffice.errors import EstimateError
from suffice.families.base import as_numbers
from suffice.fitting.control import Control
from suffice.fitting.named import in_order
from suffice.models.glm.certificate import nothing_left
from suffice.models.glm.covariances import label_sandwich
from suffice.models.glm.error_kinds import WHITE
from suffice.models.glm.families import GaussianFamily
from suffice.models.glm.family import RowDistribution
from suffice.models.glm.fit_options import FitOptions
from suffice.models.glm.fitted import GLMFitted, kept_places
from suffice.models.glm.held_rows import RegressionRows
from suffice.models.glm.links import Identity
from suffice.models.glm.priors import CoefficientPenalties
from suffice.models.glm.problem import RegressionProblem
from suffice.models.glm.rank import checked_sums, column_rank
from suffice.models.glm.regression import Ended, Factory, IteratedRegression
from suffice.models.glm.rows import RegressionData
from suffice.models.glm.separation import IN_PLACE, Separation, find_separation, is_small, moved_by, separates
from suffice.models.glm.softmax import SoftmaxDistribution
from suffice.models.glm.solve import Result
from suffice.solvers.irls import irls


class SoftmaxRegression(IteratedRegression):
    """Softmax regression; codes of y have the reference last."""

    def __init__(self, options: FitOptions, data: RegressionData, factory: Factory) -> None:
        """Count the labels."""
        assert data.classes is not None
        self.outputs = len(data.classes) - 1
        super().__init__(options, data, factory)
        if self.penalties.conjugate is not None:
            raise EstimateError(
                "The prior on coefficients and variance is for a Gaussian response; use Normal(variance=)"
            )
        self.sums = checked_sums(data.blocks)
        self.counts = label_counts(data.blocks, len(data.classes))

    def problem(self) -> RegressionProblem:
        """What solvers see."""
        distribution = SoftmaxDistribution(self.outputs + 1)
        return RegressionProblem(
            self.data.blocks, self.data.design.layout, distribution, self.penalties.gaussian, outputs=self.outputs
        )

    def full_rank(self, problem: RegressionProblem) -> tuple[RegressionProblem, tuple[int, ...]]:
        """Columns that say the same as others do so for every class."""
        if self.begin is None:
            problem.expect(np.zeros(problem.size))
        if self.penalties.any:
            return problem, ()
        design, flat = self.data.design, RowDistribution(GaussianFamily(), Identity())
        one = replace(problem, distribution=flat, outputs=1)
        rank = column_rank(one, design, flat, self.sums.mean, self.options.given["collinear"])
        self.notes += rank.notes
        if not rank.dropped:
            return problem, ()
        kept = kept_places(rank.dropped, design.size, self.outputs)
        return problem.holding(kept, np.zeros(problem.width)), rank.dropped

    def start(self, problem: RegressionProblem) -> Floats:
        """Zero, or the coefficients asked for, (k, m) as in `parameters_`."""
        if self.begin is None:
            return np.zeros(problem.size)
        design = self.data.design
        given = as_numbers(in_order(self.begin, design.names, "start"), "start")
        shape = (design.size, self.outputs)
        if given.shape != shape:
            raise EstimateError(
                f"start has shape {given.shape}; expected {shape}: a row for each coefficient, intercept first, and a "
                "column for each class but the reference."
            )
        inner = np.ascontiguousarray(design.internal(given).T).ravel()
        return inner if problem.kept is None else inner[problem.kept]

    def separation(self, problem: RegressionProblem, result: Result) -> Separation:
        """By a linear programme; with a prior only intercepts without one run away."""
        if self.penalties.any:
            return _kept_in_place(problem, self.penalties, self.counts)
        return find_separation(problem, "labels", result)

    def left_by(self, problem: RegressionProblem, decided: Flags) -> RegressionProblem | None:
        """Rows whose label is decided have no weight."""
        block = problem.rows.block
        rest = np.where(decided, 0.0, np.ones(block.rows) if block.weights is None else block.weights)
        return replace(problem.on(replace(block, weights=rest)), rooted=False) if rest.any() else None

    def limit(
        self, problem: RegressionProblem, result: Result, separation: Separation, start: Floats
    ) -> tuple[RegressionProblem, Result]:
        """Rows whose label the direction decides leave the fit of the others."""
        if separation.decided is None:
            return problem, result
        reduced = self.left_by(problem, separation.decided)
        if reduced is None:
            none = nothing_left(problem)
            return problem, replace(result, beta=none.beta, last=none.last, later=None)
        return reduced, self.run_solver(reduced, np.zeros(problem.size), "irls", warm=False)

    def separates(self, problem: RegressionProblem, direction: Floats) -> bool:
        """Whether no row loses against another label."""
        return separates(problem, "labels", direction)

    def decided(self, problem: RegressionProblem, direction: Floats) -> Flags | None:
        """Rows of which all other labels have lost."""
        if self.penalties.any or not is_small(problem, problem.outputs):
            return None
        along = moved_by(problem, direction)
        along = np.column_stack((along, np.zeros(len(along))))
        return np.asarray((along >= along.max(axis=1, keepdims=True) - IN_PLACE).sum(axis=1) == 1)

    def fitted(self, ended: Ended) -> GLMFitted:
        """A column of `beta` for each class but the reference."""
        data, problem, result = self.data, ended.problem, ended.result
        beta = problem.shaped(problem.whole(result.beta))
        free = len(kept_places(ended.dropped, *beta.shape))
        robust = self.options.given["covariance"] in WHITE and ended.direction is None
        return GLMFitted(
            **self.shared_figures(ended),
            beta=data.design.public(beta),
            deviance=-2.0 * self.likelihood(ended),
            null_deviance=-2.0 * self._null(problem),
            df_resid=data.weight * self.outputs - free,
            n_params=free - len(self.corners(ended)),
            sandwich=label_sandwich(data, beta, result.last.information, ended.dropped) if robust else None,
            iterates=tuple(problem.shaped(problem.whole(one)) for one in result.iterates),
        )

    def _null(self, problem: RegressionProblem) -> float:
        """Log-likelihood of the intercepts alone (and the offset); without an intercept that of no effects."""
        counts, constant, none = self.counts, problem.layout.constant, np.zeros(problem.width)
        if constant and not self.data.has_offset:
            seen = counts[counts > 0.0]
            return float(seen @ np.log(seen / counts.sum()))
        bare = replace(problem, rows=self.data.blocks, penalty=None, kept=None, fixed=None, record=None, rooted=False)
        if not constant:
            return float(bare.objective(none)[0])
        alone = bare.holding(np.arange(self.outputs) * problem.layout.size, none)
        return float(irls(alone.evaluate, np.zeros(self.outputs), Control(tolerance=1e-9)).outcome.state.objective)


def _kept_in_place(problem: RegressionProblem, penalties: CoefficientPenalties, counts: Floats) -> Separation:
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


def label_counts(rows: RegressionRows, classes: int) -> Floats:
    """The weight of each label (K,)."""
    return rows.once("labels", partial(counts_of_labels, classes=classes))


def counts_of_labels(block: RowBlock, *, classes: int) -> Floats:
    """What `label_counts` asks."""
    return np.bincount(block.y.astype(np.intp), block.weights, minlength=classes).astype(np.float64)
