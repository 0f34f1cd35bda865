"""Learning the prior of the rows from the rows: EM for mixtures of Dirichlet distributions.

The evidence of the rows is ``sum_h log sum_c w_c DM(n_h | alpha_c)``. The weights have the mean responsibility r_h. The
pseudo-counts of a component maximise ``sum_h r_h log DM(n_h | alpha)`` by Newton steps in their logarithms: the second
derivatives are a diagonal and one outer product. Where such a step is not uphill, a step of the fixed point
``alpha_j <- alpha_j sum_h r_h (psi(n_hj + alpha_j) - psi(alpha_j)) / sum_h r_h (psi(N_h + A) - psi(A))`` takes its
place, which maximises a lower bound, so that the evidence never falls. The steps of EM are extrapolated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from suffice.array_types import Floats
from suffice.engines.ngram_tree import sums_by
from suffice.errors import EstimateError
from suffice.families.gamma_function import log_gamma_ratio, rest_curvature, rest_slope
from suffice.fitting.control import Control, Outcome
from suffice.models.markov_chain.levels import Levels
from suffice.models.markov_chain.rows import Histories, RowPrior, log_joint, responsibilities
from suffice.solvers.fixed_point import FixedPoint, fixed_point

#: Pseudo-counts below this are not told from none, and above this multiple of the largest row from infinitely many.
LEAST, MOST = 1e-10, 1e5
#: Newton steps of a component in one step of EM, and the most that the logarithm of a pseudo-count moves in one.
_NEWTON, _LEAP = 8, 3.0
_LIGHTEST = 1e-300
#: Values that differ by less, in units of their size, are the same: steps near the maximum are worth no more.
_ROUNDING = 1e-13


@dataclass(frozen=True)
class LearnedPrior:
    """Weights (C,), pseudo-counts (C, card), and how they were found."""

    weights: Floats
    alphas: Floats
    outcome: Outcome


def learn_prior(levels: Levels, weights: Floats, alphas: Floats, control: Control) -> LearnedPrior:
    """Weights and pseudo-counts that maximise the evidence of the rows, from a start."""
    rows = Histories.of(levels, initial=False)
    if len(rows.total) == 0:
        raise EstimateError("No history has counts, so that nothing is known about the prior of the rows.")
    problem = _PriorRows(levels, rows)
    start = problem.packed(weights, alphas)
    steps = FixedPoint(problem.evaluate, problem.inside, size=float(rows.total.sum()), gap=problem.gap)
    outcome = fixed_point(steps, start, control, acceleration="squarem" if len(weights) > 1 else None)
    return LearnedPrior(*problem.unpacked(outcome.state.parameters), outcome)


class _PriorRows:
    """The evidence of rows as a function of the logarithms of weights (C,) and pseudo-counts (C card,)."""

    def __init__(self, levels: Levels, rows: Histories) -> None:
        self._levels, self._rows = levels, rows
        self._row, self._word, self._count = rows.cells(levels)
        self.largest = float(rows.total.max())
        self._seen: tuple[Floats, Floats] | None = None

    def packed(self, weights: Floats, alphas: Floats) -> Floats:
        return np.concatenate([np.log(np.maximum(weights, _LIGHTEST)), np.log(np.maximum(alphas, LEAST)).ravel()])

    def unpacked(self, x: Floats) -> tuple[Floats, Floats]:
        parts = len(x) // (self._levels.card + 1)
        weights = np.exp(x[:parts] - x[:parts].max())
        return weights / weights.sum(), np.exp(x[parts:]).reshape(parts, -1)

    def inside(self, x: Floats) -> bool:
        parts = len(x) // (self._levels.card + 1)
        return bool(np.isfinite(x).all() and (x[parts:] >= np.log(LEAST)).all() and (x <= np.log(self._most)).all())

    @cached_property
    def _most(self) -> float:
        return MOST * max(self.largest, 1.0)

    def evaluate(self, x: Floats) -> tuple[float, Floats]:
        """The evidence, and the parameters after one step of EM."""
        weights, alphas = self.unpacked(x)
        joint = log_joint(self._levels, self._rows, weights, alphas)
        share = responsibilities(joint)
        fresh, slopes = np.empty_like(alphas), np.empty_like(alphas)
        for c, alpha in enumerate(alphas):
            slopes[c] = self._climbable(alpha, _Component(self, share[:, c], alpha).slope)
            fresh[c] = self._maximised(alpha, share[:, c])
        gap = np.append(slopes.ravel(), np.abs(share.sum(axis=0) - len(share) * weights).max())
        self._seen = x, gap
        return float(np.logaddexp.reduce(joint, axis=1).sum()), self.packed(share.mean(axis=0), fresh)

    def gap(self, x: Floats, mapped: Floats) -> float:
        """Largest slope in the logarithm of a parameter, in nats per row."""
        assert self._seen is not None
        assert self._seen[0] is x
        return float(np.abs(self._seen[1]).max()) / len(self._rows.total)

    def _climbable(self, alpha: Floats, slope: Floats) -> Floats:
        """The slope without what leads beyond the limits."""
        held = ((alpha <= LEAST * 1.01) & (slope < 0)) | ((alpha.sum() >= 0.99 * self._most) & (slope > 0))
        return np.where(held, 0.0, slope)

    def _maximised(self, alpha: Floats, share: Floats) -> Floats:
        """The pseudo-counts of a component after a few steps uphill."""
        current = _Component(self, share, alpha)
        for _ in range(_NEWTON):
            fixed = _Component(self, share, self._limited(current.fixed_point))
            better, direction = fixed, current.newton
            if direction is not None:
                away = current.alpha * np.exp(np.clip(direction, -_LEAP, _LEAP))
                moved = _Component(self, share, self._limited(away))
                better = moved if self._uphill(fixed, moved) else fixed
            if not self._uphill(current, better):
                break
            done = bool((np.abs(better.alpha - current.alpha) <= 1e-12 * current.alpha).all())
            current = better
            if done:
                break
        return current.alpha

    def _uphill(self, before: _Component, after: _Component) -> bool:
        """Whether the value has risen; where rounding cannot tell, whether the slope has fallen."""
        slack = _ROUNDING * abs(before.value)
        if abs(after.value - before.value) > slack:
            return after.value > before.value
        steep = [float(np.abs(self._climbable(point.alpha, point.slope)).max()) for point in (before, after)]
        return steep[1] < steep[0]

    def _limited(self, alpha: Floats) -> Floats:
        mass = float(alpha.sum())
        return np.maximum(alpha if mass <= self._most else alpha * (self._most / mass), LEAST)


class _Component:
    """``sum_h r_h log DM(n_h | alpha)`` at one point, with its derivatives."""

    def __init__(self, rows: _PriorRows, share: Floats, alpha: Floats) -> None:
        self._of, self._share, self.alpha = rows, share, alpha
        self._mass = float(alpha.sum())

    @cached_property
    def value(self) -> float:
        of, totals = self._of, self._of._rows.total
        gained = self._share[of._row] @ log_gamma_ratio(self.alpha[of._word], of._count)
        return float(gained - self._share @ log_gamma_ratio(self._mass, totals))

    def _differences(self, difference: Callable[[Floats | float, Floats], Floats]) -> tuple[Floats, float]:
        """Differences of the digamma or trigamma function: summed by state (card,), and of the totals."""
        of = self._of
        gained = self._share[of._row] * difference(self.alpha[of._word], of._count)
        bottom = difference(self._mass, of._rows.total)
        return sums_by(of._word, gained, len(self.alpha)), float(self._share @ bottom)

    @cached_property
    def _first(self) -> tuple[Floats, float]:
        return self._differences(digamma_difference)

    @property
    def slope(self) -> Floats:
        """Derivative in the logarithm of each pseudo-count (card,)."""
        top, bottom = self._first
        return np.asarray(self.alpha * (top - bottom))

    @property
    def fixed_point(self) -> Floats:
        top, bottom = self._first
        return np.asarray(self.alpha * top / bottom) if bottom > 0 else self.alpha

    @property
    def newton(self) -> Floats | None:
        """The Newton step in the logarithms, or None where the second derivatives are not those of a hill."""
        slope = self.slope
        second, rest = self._differences(_trigamma_difference)
        diagonal = slope + self.alpha**2 * second
        if not (diagonal < 0).all():
            return None
        joined = self.alpha / diagonal
        bend = 1.0 - rest * float(self.alpha @ joined)
        if not bend > 0:
            return None
        return np.asarray(-slope / diagonal - rest * joined * float(joined @ slope) / bend)


def digamma_difference(a: Floats | float, step: Floats) -> Floats:
    """``digamma(a + step) - digamma(a)``, without cancellation for large a."""
    return np.asarray(np.log1p(step / a) + (rest_slope(a + step) - rest_slope(a)))


def _trigamma_difference(a: Floats | float, step: Floats) -> Floats:
    """``trigamma(a + step) - trigamma(a)``, without cancellation for large a."""
    return np.asarray(-step / (a * (a + step)) + (rest_curvature(a + step) - rest_curvature(a)))


def limits_reached(levels: Levels, prior: RowPrior, states: tuple[object, ...]) -> tuple[str, ...]:
    """What of a learned prior runs to a limit, in words."""
    largest = float(Histories.of(levels, initial=False).total.max())
    several = len(prior.weights) > 1
    lines = []
    # Components whose pseudo-counts run to infinity: their rows differ by no more than chance.
    for c in np.flatnonzero(prior.alphas.sum(axis=1) >= 0.5 * MOST * largest).tolist():
        which = f"the pseudo-counts of component {c}" if several else "the pseudo-counts"
        lines.append(
            f"{which} run to infinity: the rows differ by no more than chance, so that all share one distribution"
        )
    component, state = np.nonzero(prior.alphas <= 2 * LEAST)
    for c in np.unique(component).tolist():
        names = ", ".join(repr(states[code]) for code in state[component == c][:4].tolist())
        which = f" of component {c}" if several else ""
        lines.append(f"pseudo-counts{which} run to 0: those of {names}")
    return tuple(lines)
