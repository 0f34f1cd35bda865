"""Shares of largest likelihood under linear inequalities: rows of probabilities that hold each other in bounds.

``sum n log p`` over polytopes {p : E p = e, G p >= h} whose relative interior is known. Several problems of one shape
are solved side by side by a primal-dual interior-point method: its iterates are feasible, and the certificate of what
it returns is none of its business.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats

#: Steps before the method gives up.
MOST_STEPS = 120
#: Complementarity, as a share of the weight of the rows, at which it comes to rest.
AT_REST = 1e-12
#: Complementarity, and slopes along free directions, with which a problem counts as solved.
REACHED = 1e-7
#: Share of the way to the edge that a step may take.
INSIDE = 0.995
HALVINGS = 30
ROUNDING = 1e-12
#: Steps of Newton's method on the active face, singular values that count there, slacks of constraints that may be
#: equations there, and what rounding may leave of a bound.
POLISHING = 12
RANK = 1e-10
NEAR = 1e-4
EDGE = 1e-14
#: Added to the curvature in units of its diagonal.
RIDGE = 1e-14


@dataclass(frozen=True, eq=False)
class Polytopes:
    """Polytopes {inside + span v : inequalities (inside + span v) >= least} of one shape.

    `inside` (b, c) are points of their relative interiors, `span` (c, d) is a basis of their directions, and
    `inequalities` (m, c) with `least` (b, m) are those that the inner points fulfil strictly.
    """

    inside: Floats
    span: Floats
    inequalities: Floats
    least: Floats

    def take(self, chosen: NDArray[np.intp]) -> Polytopes:
        """Some of them."""
        return Polytopes(self.inside[chosen], self.span, self.inequalities, self.least[chosen])


def most_likely_shares(counts: Floats, polytopes: Polytopes) -> tuple[Floats, NDArray[np.bool_]]:
    """The points (b, c) of largest ``counts . log p``, and which problems came to rest (b,).

    Where several attain it, the middle of them: the limit of the points that also heed the logarithms of the slacks.
    """
    points, rested = polytopes.inside.copy(), np.ones(len(counts), dtype=bool)
    if not polytopes.span.shape[1]:
        return points, rested
    path = _Path(counts / np.maximum(counts.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny), polytopes)
    with np.errstate(all="ignore"):
        for _ in range(MOST_STEPS):
            if not path.step():
                break
    rested = path.rested()
    for number, (point, slack, multipliers) in enumerate(zip(path.points, path.slack, path.multipliers, strict=True)):
        alone = polytopes.take(np.array([number]))
        # Slacks and multipliers that are both 0 at the solution leave open which constraints are equations there.
        for active in (slack <= multipliers, slack <= NEAR):
            polished = _polished(counts[number], point, active, alone)
            if polished is not None:
                point[:] = polished
                break
    return path.points, rested


def _polished(counts: Floats, point: Floats, active: NDArray[np.bool_], polytope: Polytopes) -> Floats | None:
    """The point (c,) of largest likelihood where the active inequalities are equations.

    None if it breaks another one, or is no better than the point given, from which the method starts.
    """
    with np.errstate(all="ignore"):
        edges = polytope.inequalities[active] @ polytope.span
        away = polytope.least[0, active] - polytope.inequalities[active] @ point
        start = point + polytope.span @ np.linalg.lstsq(edges, away, rcond=RANK)[0]
        _, sizes, rows = np.linalg.svd(edges)
        rank = int((sizes > RANK * max(float(sizes.max(initial=0.0)), 1.0)).sum())
        along = polytope.span @ rows[rank:].T
        seen, better = counts > 0, start
        for _ in range(POLISHING if along.shape[1] else 0):
            pull = np.where(seen, counts / better, 0.0)
            curvature = np.where(seen, counts / better**2, 0.0)
            scaled = along * np.sqrt(curvature)[:, None]
            step = along @ np.linalg.lstsq(scaled.T @ scaled, along.T @ pull, rcond=RANK)[0]
            better = better + step
            if not np.abs(step).max(initial=0.0) > 1e-15:
                break
        slack = polytope.inequalities @ better - polytope.least[0]
        gained = float((counts[seen] * np.log1p((better[seen] - point[seen]) / point[seen])).sum())
        fits = (slack >= -EDGE).all() and gained >= -EDGE * counts.sum()
    return better if fits else None


class _Path:
    """Points, slacks and multipliers of all problems, on their way to the solution."""

    def __init__(self, shares: Floats, polytopes: Polytopes) -> None:
        self.shares, self.polytopes = shares, polytopes
        self.points = polytopes.inside.copy()
        self.slack = self.points @ polytopes.inequalities.T - polytopes.least
        self.target = np.full(len(shares), 0.1)
        self.multipliers = self.target[:, None] / self.slack
        self.moved = polytopes.inequalities @ polytopes.span
        self.stuck = np.zeros(len(shares), dtype=bool)

    @property
    def gaps(self) -> Floats:
        """Complementarity (b,)."""
        return np.asarray((self.slack * self.multipliers).sum(axis=1))

    def _pull(self, points: Floats) -> Floats:
        """Slopes of the log-likelihood by the points (b, c)."""
        return np.where(self.shares > 0, self.shares / points, 0.0)

    def _residuals(self, points: Floats, multipliers: Floats) -> Floats:
        """Slopes along the directions that no multiplier balances (b, d)."""
        return np.asarray((self._pull(points) + multipliers @ self.polytopes.inequalities) @ self.polytopes.span)

    def rested(self) -> NDArray[np.bool_]:
        """Which problems are solved (b,)."""
        unbalanced = np.abs(self._residuals(self.points, self.multipliers)).max(axis=1)
        return np.asarray((self.gaps <= REACHED) & (unbalanced <= REACHED))

    def step(self) -> bool:
        """One step of Newton's method of all that are not at rest; False where none is left."""
        span = self.polytopes.span
        residual = self._residuals(self.points, self.multipliers)
        open_ = ~self.stuck & ((self.gaps > AT_REST) | (np.abs(residual).max(axis=1) > 1e-11))
        if not open_.any():
            return False
        curvature = np.where(self.shares > 0, self.shares / self.points**2, 0.0)
        weights = self.multipliers / self.slack
        matrix = np.einsum("ci,bc,cj->bij", span, curvature, span, optimize=True)
        matrix += np.einsum("mi,bm,mj->bij", self.moved, weights, self.moved, optimize=True)
        goal = self.target[:, None] / self.slack
        slope = np.where(open_[:, None], self._residuals(self.points, goal), 0.0)
        units = np.sqrt(np.where(open_[:, None], np.einsum("bii->bi", matrix), 1.0))
        scaled = matrix / units[:, :, None] / units[:, None, :]
        scaled[~open_] = np.eye(scaled.shape[1])
        scaled += RIDGE * np.eye(scaled.shape[1])
        way = np.linalg.solve(scaled, (slope / units)[..., None])[..., 0] / units
        slack_way = way @ self.moved.T
        rise = goal - self.multipliers - weights * slack_way
        size = np.minimum(_reach(self.slack, slack_way), _reach(self.multipliers, rise))
        size = np.where(open_, np.minimum(INSIDE * size, 1.0), 0.0)
        before = self._norm(self.points, self.slack, self.multipliers)
        settled = ~open_
        for _ in range(HALVINGS):
            points = self.points + size[:, None] * (way @ span.T)
            slack = self.slack + size[:, None] * slack_way
            multipliers = self.multipliers + size[:, None] * rise
            # Below what rounding leaves of the equations, any step inside will do.
            settled |= self._norm(points, slack, multipliers) <= np.maximum((1 - 0.01 * size) * before, ROUNDING)
            if settled.all():
                break
            size = np.where(settled, size, 0.5 * size)
        # Rounding hides any further progress of those that still do not improve.
        self.stuck |= ~settled
        keep = settled & open_
        self.points = np.where(keep[:, None], points, self.points)
        self.slack = np.where(keep[:, None], slack, self.slack)
        self.multipliers = np.where(keep[:, None], multipliers, self.multipliers)
        mean = self.gaps / self.slack.shape[1]
        self.target = np.where(keep, np.minimum(self.target, np.where(size > 0.5, 0.02, 0.3) * mean), self.target)
        self.target = np.maximum(self.target, 0.1 * AT_REST / self.slack.shape[1])
        return True

    def _norm(self, points: Floats, slack: Floats, multipliers: Floats) -> Floats:
        """How far from the equations of this step (b,)."""
        unbalanced = self._residuals(points, multipliers)
        centred = multipliers * slack - self.target[:, None]
        bad = (slack <= 0).any(axis=1) | (multipliers < 0).any(axis=1)
        return np.where(bad, np.inf, np.sqrt((unbalanced**2).sum(axis=1) + (centred**2).sum(axis=1)))


def _reach(values: Floats, way: Floats) -> Floats:
    """The largest step (b,) that keeps all values (b, m) above 0."""
    return np.asarray(np.where(way < 0, -values / way, np.inf).min(axis=1))
