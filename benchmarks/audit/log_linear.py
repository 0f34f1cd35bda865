"""Log-linear laws by their definition: every state listed, maxima by Newton's method, faces by a linear programme.

A group is a set of states with features, of which shares were seen: the joint states of a Markov network are one group,
the labellings of each example of a conditional random field another. The objective a row is::

    sum over groups of share of the group * (w . mean of the seen features - log sum over states of exp(w . features))
    - penalty(w) / rows
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Group:
    """Features (states, k), the shares of the rows that were seen in each state, and the number of these rows."""

    features: Floats
    shares: Floats
    weight: float = 1.0


@dataclass(frozen=True)
class Penalty:
    """``(w - mean)' P (w - mean) / 2 + sum rate |w|``, which is taken off the SUM over rows."""

    mean: Floats
    precision: Floats
    rate: Floats

    @classmethod
    def none(cls, k: int) -> Penalty:
        return cls(np.zeros(k), np.zeros((k, k)), np.zeros(k))

    @property
    def any(self) -> bool:
        return bool(self.precision.any() or self.rate.any())

    def value(self, w: Floats) -> float:
        away = w - self.mean
        return float(0.5 * away @ self.precision @ away + self.rate @ np.abs(w))


class LogLinear:
    """The objective of some groups. Features are centred at those seen, so that offsets cost no digits."""

    def __init__(self, groups: Sequence[Group], penalty: Penalty | None = None) -> None:
        """Pad the groups to one array."""
        self.k = groups[0].features.shape[1]
        self.weight = sum(group.weight for group in groups)
        self.penalty = Penalty.none(self.k) if penalty is None else penalty
        most = max(len(group.features) for group in groups)
        self.features = np.zeros((len(groups), most, self.k))
        self.live = np.zeros((len(groups), most), bool)
        self.seen = np.zeros((len(groups), most), bool)
        self.omega = np.array([group.weight / self.weight for group in groups])
        for g, group in enumerate(groups):
            n = len(group.features)
            # First the difference from a state that was seen, which is exact, then from the mean.
            near = group.features - group.features[int(np.argmax(group.shares))]
            self.features[g, :n] = near - group.shares @ near
            self.live[g, :n], self.seen[g, :n] = True, group.shares > 0.0

    # -- value, slope, curvature -------------------------------------------------------------------------------------

    def laws(self, w: Floats) -> tuple[Floats, Floats]:
        """Log Z of each group (g,), relative to the seen mean, and the law of its states (g, states)."""
        scores = np.where(self.live, self.features @ w, -np.inf)
        top = scores.max(axis=1, keepdims=True)
        heights = np.exp(scores - top)
        total = heights.sum(axis=1, keepdims=True)
        return (top + np.log(total))[:, 0], heights / total

    def likelihood(self, w: Floats) -> float:
        """Log-likelihood a row, without what all weights share."""
        return -float(self.omega @ self.laws(w)[0])

    def value(self, w: Floats) -> float:
        """The objective a row."""
        return self.likelihood(w) - self.penalty.value(w) / self.weight

    def slope(self, w: Floats) -> Floats:
        """The slope of the smooth part a row (k,)."""
        law = self.laws(w)[1]
        expected = np.einsum("g,gs,gsk->k", self.omega, law, self.features)
        return np.asarray(-expected - self.penalty.precision @ (w - self.penalty.mean) / self.weight)

    def information(self, w: Floats) -> Floats:
        """Minus the second derivatives of the smooth part a row (k, k)."""
        law = self.laws(w)[1]
        means = np.einsum("gs,gsk->gk", law, self.features)
        away = self.features - means[:, None, :]
        scaled = away * (law * self.omega[:, None])[:, :, None]
        covariance = scaled.reshape(-1, self.k).T @ away.reshape(-1, self.k)
        return np.asarray(covariance + self.penalty.precision / self.weight)

    # -- the maximum -------------------------------------------------------------------------------------------------

    def optimum(self) -> float:
        """The largest value, or its supremum; states off the face are left out first where there is no penalty."""
        if self.penalty.rate.any():
            return self.value(self._by_barrier())
        if not self.penalty.any:
            on_face = self.on_face()
            if not on_face.all():
                return self._restricted(on_face)
        return self.value(self._by_newton())

    def _restricted(self, live: NDArray[np.bool_]) -> float:
        """The largest value of the laws on some states, among which are all that were seen."""
        found = copy.copy(self)
        found.live, found.features = live, np.where(live[:, :, None], self.features, 0.0)
        return found.value(found._by_newton())

    def _by_newton(self) -> Floats:
        """Damped steps in the coordinates that the features span, until a step changes nothing."""
        size = np.maximum(np.abs(self.features).max(axis=(0, 1)), 1e-300)
        if self.penalty.any:
            basis = np.diag(1.0 / np.sqrt(size**2 + np.diag(self.penalty.precision) / self.weight))
        else:
            whole = (self.features / size)[self.live]
            _, values, turned = np.linalg.svd(whole, full_matrices=False)
            kept = values > 1e-11 * max(values.max(initial=0.0), 1e-300)
            basis = turned[kept].T / size[:, None]
        w, value = np.zeros(self.k), self.value(np.zeros(self.k))
        for _ in range(200):
            slope = basis.T @ self.slope(w)
            matrix = basis.T @ self.information(w) @ basis
            values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
            floor = 1e-13 * max(values[-1], 1e-300) if len(values) else 1.0
            step = basis @ (vectors @ ((vectors.T @ slope) / np.maximum(values, floor)))
            length, ahead = 1.0, -np.inf
            while length > 1e-12 and not (ahead := self.value(w + length * step)) > value:
                length /= 2.0
            if not ahead > value:
                break
            rise, w, value = ahead - value, w + length * step, ahead
            if rise <= 1e-17 * (1.0 + abs(value)):
                break
        return w

    def _by_barrier(self) -> Floats:
        """With corners: ``rate |w|`` is the least of ``rate t - mu log(t^2 - w^2)`` over t as mu goes to 0.

        That t is ``(mu + root) / rate`` with ``root = sqrt(mu^2 + (rate w)^2)``, so every mu is a smooth problem. What
        it loses is 2 mu a weight.
        """
        rate, w, mu = self.penalty.rate / self.weight, np.zeros(self.k), 1.0
        while mu > 1e-16:
            mu *= 0.1
            w = self._newton_for(w, rate, mu)
        near = np.where(np.abs(self.slope(w)) < 0.999 * rate, 0.0, w)
        return near if self.value(near) > self.value(w) else w

    def _newton_for(self, w: Floats, rate: Floats, mu: float) -> Floats:
        def smooth(x: Floats) -> float:
            root = np.sqrt(mu**2 + (rate * x) ** 2)
            t = (mu + root) / rate
            bent = mu + root - mu * np.log(2.0 * mu * t / rate)
            return self.value(x) + float(rate @ np.abs(x)) - float(bent.sum())

        value = smooth(w)
        for _ in range(60):
            root = np.sqrt(mu**2 + (rate * w) ** 2)
            t = (mu + root) / rate
            slope = self.slope(w) - rate * w / t
            matrix = self.information(w) + np.diag(mu * rate / (t * root))
            scale = 1.0 / np.sqrt(np.diag(matrix))
            values, vectors = np.linalg.eigh(matrix * np.outer(scale, scale))
            step = scale * (vectors @ ((vectors.T @ (scale * slope)) / np.maximum(values, 1e-15)))
            length, ahead = 1.0, -np.inf
            while length > 1e-12 and not (ahead := smooth(w + length * step)) > value:
                length /= 2.0
            if not ahead > value:
                break
            w, value, rise = w + length * step, ahead, ahead - value
            if rise < 0.01 * mu:
                break
        return w

    # -- whether it is attained --------------------------------------------------------------------------------------

    def on_face(self) -> NDArray[np.bool_]:
        """The states (g, states) that keep a positive probability in the limit; all of them where a maximum exists.

        A direction along which no seen state falls behind and some other state does is one of recession. One linear
        programme finds as many states off the face as there are: ``max sum z, F w + z <= 0 off the seen states,
        F w = 0 on them, 0 <= z <= 1``. The cone makes every z 0 or 1.
        """
        anchor = np.argmax(self.seen, axis=1)
        away = self.features - self.features[np.arange(len(anchor)), anchor][:, None, :]
        size = np.maximum(np.abs(away).max(axis=(0, 1)), 1e-300)
        away = away / size
        held, free = away[self.seen], away[self.live & ~self.seen]
        found = np.array(self.live)
        if not len(free):
            return found
        held = np.unique(held, axis=0)
        distinct, back = np.unique(free, axis=0, return_inverse=True)
        n = len(distinct)
        answer = linprog(
            np.concatenate([np.zeros(self.k), -np.ones(n)]),
            A_ub=np.hstack([distinct, np.eye(n)]),
            b_ub=np.zeros(n),
            A_eq=np.hstack([held, np.zeros((len(held), n))]),
            b_eq=np.zeros(len(held)),
            bounds=[(-1e4, 1e4)] * self.k + [(0.0, 1.0)] * n,
            method="highs",
        )
        assert answer.status == 0, answer.message
        found[self.live & ~self.seen] = np.asarray(answer.x)[self.k :][back.ravel()] < 0.5
        return found

    @property
    def exists(self) -> bool:
        """Whether the maximum is attained."""
        return self.penalty.any or bool((self.on_face() == self.live).all())
