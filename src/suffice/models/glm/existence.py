"""Is the maximum of the objective attained? What each pair of family and link says at the ends of its range.

As the linear predictor of a row goes to an end of what the link allows, the log-likelihood of the row falls for ever,
rises to a limit, falls to a limit, or ends there. Columns are no combinations of each other, so that coefficients run
away only if some linear predictor does. Hence:

- Where every row falls for ever at both ends, points that are as good as the one found form a bounded and closed set,
  and the maximum is attained: `SETTLED`.
- Where rows rise to a limit, a linear programme looks for a direction along which no row falls (`separation`).
- Where rows fall to a limit, the maximum is attained if the point found is better than any row at its limit allows.
- What ends at an edge (a mean of 0 or 1, a linear predictor of 0) is attained inside if the objective is concave and
  the Newton step stays away from the edge; else nothing is said here.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from suffice.array_types import Floats
from suffice.engines.linear_predictor import RowBlock
from suffice.models.glm.design import Design
from suffice.models.glm.family import Family, RowDistribution
from suffice.models.glm.links import Link
from suffice.models.glm.priors import CoefficientPenalties
from suffice.models.glm.problem import Largest, RegressionProblem, deviance_of
from suffice.models.glm.separation import MOST_NUMBERS, Separation, dense_rows, find_separation, programme
from suffice.models.glm.solve import Result

#: Every row falls for ever at both ends. Gaussian: ``-(y - eta)^2``. Gamma, with mean m: ``-log m - y / m`` falls for
#: m to 0 and to infinity, and every link here takes the ends of its range to these. Inverse Gaussian with eta = m^-2:
#: ``sqrt(eta) - y eta / 2`` falls as eta rises, and rises infinitely steeply from its end eta = 0, where no maximum is.
SETTLED = {
    ("gaussian", "identity"),
    *(("gamma", link) for link in ("inverse", "log", "identity", "sqrt")),
    ("inverse_gaussian", "inverse_square"),
}
#: Rows with an extreme response rise to a limit: shares of 0 or 1, counts of 0. All others fall at both ends.
RISING = {
    *(("binomial", link) for link in ("logit", "probit", "cloglog", "loglog", "log")),
    *(("poisson", "log"), ("negative_binomial", "log")),
}
#: Rows fall to a limit as their mean goes to 0 (Gaussian: to ``-y^2 / 2``, from which they rise where y <= 0) or to
#: infinity (inverse Gaussian: to ``-1 / (2 y)``); at the other end they fall for ever.
LIMITED = {
    *(("gaussian", "log"), ("gaussian", "inverse"), ("gaussian", "sqrt")),
    *(("inverse_gaussian", link) for link in ("inverse", "log", "identity", "sqrt")),
}
#: Where a mean goes to 0 as the linear predictor of a Gaussian response goes to an infinite end, and which.
_TO_ZERO = {"log": -1.0, "inverse": 1.0}
#: Rows with an extreme response have a finite value at the edge; all others fall for ever there.
EDGED = {
    *((family, link) for family in ("poisson", "negative_binomial") for link in ("identity", "sqrt")),
    *(("binomial", "log"), ("binomial", "identity")),
}
#: Pairs whose rows are concave in the linear predictor although they may end at an edge.
CONCAVE_EDGED = {
    *(("poisson", "identity"), ("poisson", "sqrt"), ("binomial", "log"), ("binomial", "identity")),
    ("inverse_gaussian", "inverse"),
}
#: Newton decrements by which a concave maximum may at most be away from a point with a small decrement, with a margin.
REACH = 4.0
#: A decrement, in standard errors, up to which the Newton step says where the maximum is.
NEAR = 1e-3
#: Rounds in which rows are made equally cheap by leverage.
BALANCINGS = 25
#: A sum of squares below this share of another is 0.
NOTHING = 1e-12


@dataclass(frozen=True, eq=False)
class ExistenceQuestion:
    """The question for one fit: `mean` is that of the response, `known`: no dispersion is estimated."""

    problem: RegressionProblem
    design: Design
    family: Family
    link: Link
    penalties: CoefficientPenalties
    mean: float
    known: bool

    @property
    def pair(self) -> tuple[str, str]:
        """Family and link."""
        return self.family.rows_like, self.link.name

    @property
    def kind(self) -> str:
        """Which responses are extreme: shares of 0 and 1, or zeros alone (under the log link no share rises to 1)."""
        return "binomial" if self.family.rows_like == "binomial" and self.link.probability else "count"

    def answer(self, result: Result) -> Separation:
        """From the information of all rows at the result; a prior on all that could run away settles it."""
        if self.problem.size == 0:
            return Separation(True)
        if self.penalties.any:
            return self._with_prior(result)
        if result.last.information.size != self.problem.size:
            return Separation(None)
        if self.pair in RISING:
            separation = find_separation(self.problem, self.kind, result)
            if separation.exists is not True or self.pair not in EDGED:
                return separation
            return Separation(True if self._inside(result) else None)
        if not result.last.information.definite and not self._all_of_rank():
            return Separation(None)
        if self.pair in SETTLED:
            return Separation(True)
        if self.pair in LIMITED:
            return self._limited(result)
        return Separation(True if self._no_extremes() or self._inside(result) else None)

    def _all_of_rank(self) -> bool:
        """Whether the columns were found to be no combinations of each other, whatever the information here."""
        return self.problem.layout.body <= 6_000

    # -- with a prior ------------------------------------------------------------------------------------------------

    def _with_prior(self, result: Result) -> Separation:
        """With a prior all coefficients that have one stay bounded; a free intercept moves all rows together."""
        gaussian, laplace = self.penalties.gaussian, self.penalties.laplace
        free = np.ones(self.design.size, dtype=np.bool_)
        if gaussian is not None:
            free &= gaussian.diagonal() == 0.0
        if laplace is not None:
            free &= laplace.rate == 0.0
        if not self.known and not self._leaves_something():
            return Separation(None)
        if free.any() and (free.sum() > 1 or not (self.design.constant and free[0])):
            return Separation(None)
        if free.any():
            moved = self._free_intercept(result)
            if moved.exists is not True:
                return moved
        # Coefficients are bounded now; what is left is whether the best point is on an edge.
        if self.pair in EDGED or self.pair in {("gaussian", "sqrt"), ("inverse_gaussian", "inverse")}:
            return Separation(True if self._no_extremes() or self._inside(result) else None)
        return Separation(True)

    def _leaves_something(self) -> bool:
        """Whether no coefficients fit every row; else the dispersion goes to 0, and no prior on them holds it."""
        if self.problem.rows.rows <= self.problem.size:
            return False
        if not self._small:
            return True
        matrix, block = self._rows()
        with np.errstate(all="ignore"):
            wanted = self.link.eta(block.y) - (0.0 if block.offset is None else block.offset)
        kept = np.ones(block.rows, dtype=np.bool_) if block.weights is None else block.weights > 0.0
        matrix, wanted = matrix[kept], wanted[kept]
        if not np.isfinite(wanted).all():  # No linear predictor gives such a mean.
            return True
        away = wanted - matrix @ np.linalg.lstsq(matrix, wanted, rcond=None)[0]
        return float(away @ away) > NOTHING * float(wanted @ wanted)

    def _free_intercept(self, result: Result) -> Separation:
        """Whether the objective falls for ever as the intercept goes either way and all else stays bounded."""
        if self.pair in SETTLED:
            return Separation(True)
        if self.pair in RISING:
            if 0.0 < self.mean and (self.kind != "binomial" or self.mean < 1.0):
                return Separation(True)
            direction = np.zeros(self.design.layout.size)
            direction[0] = 1.0 if self.mean > 0.0 else -1.0
            return Separation(False, direction)
        if self.pair in LIMITED:
            # All rows go to their limits together; the log prior is never above its value at the mode, which is 0. A
            # dispersion that is estimated would be another one there.
            laplace = self.penalties.laplace
            here = result.last.value - (0.0 if laplace is None else laplace.value(result.beta))
            better = here > -0.5 * self._limit_deviance(min_over_rows=False) / self.problem.phi
            return Separation(True if better and self.known else None)
        return Separation(True)  # Counts and shares with an edge: the other end falls for ever, or is an edge, too.

    # -- rows that fall to a limit -----------------------------------------------------------------------------------

    def _limit_deviance(self, *, min_over_rows: bool) -> float:
        """The deviance of rows at their limit: of all together, or the least; 0 where a row gains by going there."""
        question = partial(_at_limits, gaussian=self.family.name == "gaussian", min_over_rows=min_over_rows)
        total = self.problem.rows.reduce(question)
        return -total.value if isinstance(total, Largest) else float(total)

    def _limited(self, result: Result) -> Separation:
        """Rows fall to a limit: attained if the point found is better than what rows at theirs leave."""
        problem = self.problem
        assert isinstance(problem.distribution, RowDistribution)
        deviance = deviance_of(problem.rows, problem.layout, problem.distribution, problem.whole(result.beta))
        if _is_less(deviance, self._limit_deviance(min_over_rows=True)) or self._inside(result):
            return Separation(True)
        if self.pair in {("gaussian", "sqrt"), ("inverse_gaussian", "inverse")} or not self._small:
            return Separation(None)
        return self._like_rows(deviance)

    def _like_rows(self, deviance: float) -> Separation:
        """The same for directions, rows with equal columns taken together, as they have one mean.

        Coefficients that run away without the deviance doing so have a direction d that takes every row with
        ``x'd != 0`` to its limit; see `_least_at_limits`.

        Along a direction that takes the means of a Gaussian response to 0 where the mean of y is not positive, and
        moves no other row, every point gains: there is no maximum.
        """
        matrix, block = self._rows()
        weights = np.ones(block.rows) if block.weights is None else block.weights
        offset = np.zeros(block.rows) if block.offset is None else block.offset
        kept = weights > 0.0
        rows, group = np.unique(np.column_stack((matrix, offset))[kept], axis=0, return_inverse=True)
        group, rows = group.ravel(), rows[:, :-1]
        weight, y = weights[kept], block.y[kept]
        if self.family.name != "gaussian":
            lost: Floats = np.bincount(group, weight / y).astype(np.float64)
            return Separation(True if _is_less(deviance, _least_at_limits(rows, lost)) else None)
        mean = np.bincount(group, weight * y) / np.bincount(group, weight)
        mean[np.abs(mean) <= NOTHING * float(np.abs(y).max(initial=0.0))] = 0.0
        within = float(weight @ (y - mean[group]) ** 2)
        lost = np.asarray(np.bincount(group, weight) * np.maximum(mean, 0.0) ** 2, dtype=np.float64)
        # Both are sums of squares of y: their difference is known to the rounding of these.
        if _is_less(deviance - within, _least_at_limits(rows, lost), float(weight @ y**2)):
            return Separation(True)
        separation = programme(_TO_ZERO[self.link.name] * rows, mean > 0.0)
        return Separation(False, separation.direction) if separation.exists is False else Separation(None)

    # -- edges -------------------------------------------------------------------------------------------------------

    @property
    def _small(self) -> bool:
        """Whether the rows are in memory and few enough to be looked at one by one."""
        rows = self.problem.rows
        return rows.in_memory and rows.rows * self.problem.size <= MOST_NUMBERS

    def _rows(self) -> tuple[Floats, RowBlock]:
        """All columns of all rows, 0 for those that were left out."""
        problem = self.problem
        block = problem.rows.block
        matrix = np.concatenate([dense_rows(problem.layout, part) for part in problem.layout.parts(block)])
        if problem.kept is not None:
            matrix[:, np.setdiff1d(np.arange(problem.width), problem.kept)] = 0.0
        return matrix, block

    def _no_extremes(self) -> bool:
        """Whether no response has a finite value at an edge: no count is 0, and no share is 0 or 1."""
        question = partial(_has_extremes, binomial=self.family.rows_like == "binomial")
        return self.pair in EDGED and self.problem.rows.reduce(question).value == 0.0

    def _inside(self, result: Result) -> bool:
        """Whether a concave objective has its maximum near the result, away from all edges.

        With the observed information H and the decrement ``n = sqrt(g' H^-1 g)``, rows here being self-concordant or
        quadratic, a maximum is within a few n of the result in the norm of H. There no linear predictor moves by more
        than a few ``n sqrt(x' H^-1 x)``.
        """
        if self.pair not in CONCAVE_EDGED or not self._small:
            return False
        problem = self.problem
        matrix, block = self._rows()
        kept = np.arange(problem.width) if problem.kept is None else problem.kept
        eta = matrix @ problem.whole(result.beta) + (0.0 if block.offset is None else block.offset)
        weights = np.ones(block.rows) if block.weights is None else block.weights
        with np.errstate(all="ignore"):
            curve, room = bends(self.pair, eta, block.y), distance(self.pair, eta)
        if not (np.isfinite(curve).all() and (room > 0.0).all()):
            return False
        matrix = matrix[:, kept]
        hessian = (matrix * (weights * curve / problem.phi)[:, None]).T @ matrix
        if problem.penalty is not None:
            hessian = hessian + problem.penalty.matrix()[np.ix_(kept, kept)]
        scale = np.sqrt(np.diagonal(hessian))
        if not (scale > 0.0).all():
            return False
        values, vectors = np.linalg.eigh(hessian / np.outer(scale, scale))
        if not values[0] > 1e-11:
            return False
        slope = (result.last.gradient / scale) @ vectors / np.sqrt(values)
        decrement = float(np.sqrt(slope @ slope))
        lengths = np.sqrt((((matrix / scale) @ vectors) ** 2 / values).sum(axis=1))
        live = weights > 0.0
        return decrement < NEAR and bool((REACH * decrement * lengths < room)[live].all())


def _at_limits(block: RowBlock, *, gaussian: bool, min_over_rows: bool) -> Largest | float:
    """The deviance of rows at their limit: minus the least of any, or their sum."""
    weights = np.ones(block.rows) if block.weights is None else block.weights
    deviance = (np.maximum(block.y, 0.0) if min_over_rows else block.y) ** 2 if gaussian else 1.0 / block.y
    own = (weights * deviance)[weights > 0.0]
    return Largest(-float(own.min(initial=np.inf))) if min_over_rows else float(own.sum())


def _has_extremes(block: RowBlock, *, binomial: bool) -> Largest:
    """1 where a response has a finite value at an edge, else 0."""
    ends = (block.y <= 0.0) | (block.y >= 1.0) if binomial else block.y <= 0.0
    ends &= True if block.weights is None else block.weights > 0.0
    return Largest(float(ends.any()))


def _is_less(one: float, other: float, size: float = 0.0) -> bool:
    """Whether a number is less than another by more than the rounding of both, and of numbers of some size."""
    return one + NOTHING * (abs(one) + abs(other) + size) < other


def _least_at_limits(rows: Floats, lost: Floats) -> float:
    """The least that rows lose along any direction d, if each that d moves loses `lost` (n,); 0 where nothing is known.

    Rows that d leaves in place lie in a hyperplane. Leverages of rows, whatever the weights V, are the diagonal of a
    projection of rank k, so that those in a hyperplane add up to k - 1 at most: the others, which d moves, have a
    leverage of at least 1 together. What they lose is at least what the rows that are cheapest by leverage lose. The
    best V makes all rows equally cheap; any V is right.
    """
    rows = rows[:, np.abs(rows).max(axis=0, initial=0.0) > 0.0]
    k, total, best = rows.shape[1], float(lost.sum()), 0.0
    weights = lost.copy()
    for _ in range(BALANCINGS):
        left, values, _ = np.linalg.svd(
            rows * np.sqrt(weights)[:, None] / np.abs(rows).max(axis=0), full_matrices=False
        )
        if len(values) < k or not values[-1] > 1e-7 * values[0]:
            break
        leverage = (left**2).sum(axis=1)
        order = np.argsort(lost / np.maximum(leverage, NOTHING))
        filled = np.minimum(np.cumsum(leverage[order]), 1.0)
        shares = np.diff(filled, prepend=0.0) / np.maximum(leverage[order], NOTHING)
        best = max(best, float(shares @ lost[order]))
        weights = weights * np.divide(k * lost / total, leverage, out=np.zeros_like(lost), where=leverage > 0.0)
    return best


def bends(pair: tuple[str, str], eta: Floats, y: Floats) -> Floats:
    """Minus the second derivative of each row's log-likelihood at phi = 1 in its linear predictor (n,)."""
    if pair == ("poisson", "identity"):
        return y / eta**2
    if pair == ("poisson", "sqrt"):
        return 2.0 * y / eta**2 + 2.0
    if pair == ("binomial", "identity"):
        return np.where(y > 0.0, y / eta**2, 0.0) + np.where(y < 1.0, (1.0 - y) / (1.0 - eta) ** 2, 0.0)
    if pair == ("binomial", "log"):
        return np.where(y < 1.0, (1.0 - y) * np.exp(eta) / np.expm1(eta) ** 2, 0.0)
    return y  # The inverse Gaussian distribution with the inverse link: eta - y eta^2 / 2.


def distance(pair: tuple[str, str], eta: Floats) -> Floats:
    """How far each linear predictor is from the nearest edge of the link's range (n,)."""
    if pair == ("binomial", "log"):
        return -eta
    return np.minimum(eta, 1.0 - eta) if pair == ("binomial", "identity") else eta
