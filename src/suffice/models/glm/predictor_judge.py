"""A regression with a single linear predictor, measured at its coefficients by what the rows say there."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from suffice.array_types import Flags, Floats
from suffice.fitting.report import Certificate
from suffice.models.glm.certificate import (
    CONCAVE,
    CertificateBasis,
    bent_by_dispersion,
    in_units,
    point_of,
    rounding_of,
)
from suffice.models.glm.existence import RISING
from suffice.models.glm.family import Family, Totals
from suffice.models.glm.fitted import GLMFitted
from suffice.models.glm.one_predictor import PredictorSearch
from suffice.models.glm.problem import RegressionProblem, ResponseSums, response_sums, totals
from suffice.models.glm.regression import Ended
from suffice.models.glm.separation import IN_PLACE, moved_by, rows_left, separates
from suffice.models.glm.size import RUNNING_SIZE
from suffice.models.glm.solve import Result
from suffice.models.glm.squares import Squares, is_doubtful, least_spread, read_squares, rounding_of_y


class OnePredictor(PredictorSearch):
    """A regression with a single linear predictor and its judge, which knows nothing of the search."""

    def problem_of(self, fitted: GLMFitted) -> RegressionProblem:
        """In units of the dispersion at which the log-likelihood is reported, and at the size of the fitted value."""
        phi = self._phi(fitted) if self.family.free_dispersion else 1.0
        return replace(super().problem_of(fitted), distribution=fitted.row_distribution(), phi=phi)

    def _phi(self, fitted: GLMFitted) -> float:
        """The dispersion that is known, that beside a prior, or the one of the largest likelihood."""
        if self.dispersion is not None:
            return self.dispersion
        return fitted.dispersion if self.penalties.any else fitted.ml_dispersion

    def inside_of(self, problem: RegressionProblem, result: Result) -> bool:
        """Whether the information of the rows says what is left."""
        return self._squares_at(problem, result) is None

    def _squares_at(self, problem: RegressionProblem, result: Result) -> Squares | None:
        """The double-double products of least squares, where rows in float64 lose digits or every row is fitted."""
        given = self.options.given
        plain = given["solver"] == "auto" and given["start"] is None and not given["keep_iterates"]
        if not plain or self.penalties.any or self.pair != ("gaussian", "identity"):
            return None
        least = max(least_spread(self.family, self.sums), rounding_of_y(self.sums))
        doubtful = is_doubtful(result.last.information) or (self.dispersion is None and problem.phi <= least)
        return read_squares(problem) if doubtful else None

    def separates(self, problem: RegressionProblem, direction: Floats) -> bool:
        """By the signs that rows must move with; of responses without such signs by the whole question."""
        asked = self._question(problem)
        if asked.pair in RISING:
            return separates(problem, asked.kind, direction)
        zero = np.zeros(problem.width)
        return asked.answer(point_of(problem, zero)).exists is False

    def decided(self, problem: RegressionProblem, direction: Floats) -> Flags | None:
        """Rows that move, but those that a direction of other responses or a prior leaves in the fit."""
        if not self._decides(problem) or not problem.rows.in_memory:
            return None
        return np.asarray(np.abs(moved_by(problem, direction)) > IN_PLACE)

    def _decides(self, problem: RegressionProblem) -> bool:
        return self._question(problem).pair in RISING and not self.penalties.any

    def left_along(self, problem: RegressionProblem, direction: Floats) -> RegressionProblem | None:
        """Rows that are not in memory tell by themselves whether a direction moves them."""
        if problem.rows.in_memory or not self._decides(problem):
            return super().left_along(problem, direction)
        return rows_left(problem, direction)

    def _sums_at(self, measured: Ended, fitted: GLMFitted) -> Totals:
        """What the rows add up to, of which the value at the coefficients is all that was not known before."""
        family, value = fitted.row_distribution().family, self.likelihood(measured)
        squares = self._squares_at(measured.problem, measured.result)
        deviance = -2.0 * value if squares is None else self._left(squares, measured.result.beta)
        alone = self._response(family)
        return Totals(self.weight, max(deviance, 0.0), math.nan, value, alone.base, alone.log_y)

    def values(self, measured: Ended, fitted: GLMFitted) -> tuple[float, float]:
        """Log-likelihood at the dispersion of the largest one unless that is known, and less the prior."""
        family = fitted.row_distribution().family
        value = family.log_likelihood(self._sums_at(measured, fitted), self._phi(fitted))
        value += self.data.constant if family.has_likelihood else 0.0
        return value, value - self.log_prior(measured.problem.whole(measured.result.beta))

    def certificate(self, measured: Ended, fitted: GLMFitted) -> tuple[Certificate, float, str]:
        """By double-double sums, by multipliers on the edge, or by slope and information."""
        problem, result, exists = measured.problem, measured.result, measured.separation.exists
        squares = self._squares_at(problem, result)
        if squares is not None:
            return squares.certificate(result.beta, self.dispersion), rounding_of(result), ""
        edge = self._edge_at(problem, result.beta) if exists is not True else None
        if edge is not None:
            left = edge.left / self.weight if self.pair in CONCAVE else None
            words = edge.words if exists is False else ()
            return in_units(edge.slope, edge.variance, left, exists=exists, directions=words), 0.0, ""
        certificate, rounding, flat = super().certificate(measured, fitted)
        if self._size_runs(fitted.size):
            words = (RUNNING_SIZE,)
            return replace(certificate, value_gap=None, bound=False, exists=False, directions=words), rounding, flat
        return certificate, rounding, flat

    def known(self, measured: Ended, fitted: GLMFitted) -> CertificateBasis:
        """Concavity, the best possible value, and a dispersion that is estimated along."""
        problem, family = measured.problem, fitted.row_distribution().family
        elsewhere = not (family.log_concave or self.pair in CONCAVE)
        concave = not elsewhere and not self.options.free_size and problem.kept is None
        bends = family.free_dispersion and self.penalties.any and self.dispersion is None
        best = math.inf
        if self.penalties.laplace is not None:
            beta = problem.whole(measured.result.beta)
            sums = totals(problem.rows, problem.layout, fitted.row_distribution(), beta)
            best = (sums.value + 0.5 * sums.deviance) / problem.phi
        bent = bent_by_dispersion(family, self._sums_at(measured, fitted), problem.phi) if bends else 0.0
        return CertificateBasis(concave, best, bent, elsewhere)

    def _response(self, family: Family) -> ResponseSums:
        """What the response says by itself; a part of it depends on the size of a negative binomial family."""
        return response_sums(self.rows, family) if self.options.free_size else self.sums
