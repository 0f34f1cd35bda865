"""Linear-Gaussian systems through time: Kalman's filter, and the smoother of de Jong that inverts no state covariance.

    z_t = T_t z_{t-1} + c_t + eta_t,  eta_t ~ N(0, Q_t);    y_t = Z_t z_t + d_t + eps_t,  eps_t ~ N(0, diag H_t)

The distribution of z_0 is that of c_0 + eta_0. Several systems of different lengths are worked on side by side. What is
missing of y_t is left out. A state may be observed exactly (H = 0): only the covariance of what is observed, given the
past, has to be regular.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from suffice.array_types import Floats
from suffice.errors import EstimateError

_LOG_2_PI = float(np.log(2.0 * np.pi))


@dataclass(frozen=True, eq=False)
class LinearStep:
    """One step of n systems: arrays with a leading axis of n, or of 1 where all are alike.

    transition (n, m, m), constant (n, m), noise (n, m, m); loadings (n, p, m), offsets (n, p), errors (n, p) are
    variances, and values (n, p) are NaN where missing.
    """

    transition: Floats
    constant: Floats
    noise: Floats
    loadings: Floats
    offsets: Floats
    errors: Floats
    values: Floats


@dataclass(frozen=True, eq=False)
class States:
    """Means (n, m) and covariances (n, m, m) of the states of one step."""

    means: Floats
    covariances: Floats


@dataclass(frozen=True, eq=False)
class _Passed:
    """What the way back needs of a step."""

    predicted: States
    transition: Floats
    loadings: Floats
    surprise: Floats
    precision: Floats
    kept: Floats


@dataclass(frozen=True, eq=False)
class LinearSystems:
    """Systems in falling order of their lengths (n,); ``step(t)`` gives that of the systems that have one."""

    lengths: tuple[int, ...]
    step: Callable[[int], LinearStep]

    def filtered(self) -> tuple[Floats, list[States]]:
        """Log-likelihoods (n,), and the states of each step given all up to it."""
        logs, _, states = self._forward()
        return logs, states

    def smoothed(self) -> tuple[Floats, list[States]]:
        """Log-likelihoods (n,), and the states of each step given all values."""
        logs, passed, _ = self._forward()
        states: list[States] = []
        slope, curvature = np.zeros(0), np.zeros(0)
        for t in range(len(passed) - 1, -1, -1):
            here = passed[t]
            count, size = here.predicted.means.shape
            # Systems that end here know nothing of what follows.
            ahead, bend = np.zeros((count, size)), np.zeros((count, size, size))
            if t + 1 < len(passed):
                later, active = passed[t + 1].transition, len(slope)
                ahead[:active] = np.einsum("nji,nj->ni", _wide(later, active), slope)
                bend[:active] = np.swapaxes(later, 1, 2) @ curvature @ later
            weighted = np.swapaxes(here.loadings, 1, 2) @ here.precision
            slope = (weighted @ here.surprise[..., None])[..., 0] + np.einsum("nji,nj->ni", here.kept, ahead)
            curvature = weighted @ here.loadings + np.swapaxes(here.kept, 1, 2) @ bend @ here.kept
            spread = here.predicted.covariances
            means = here.predicted.means + (spread @ slope[..., None])[..., 0]
            states.append(States(means, _symmetric(spread - spread @ curvature @ spread)))
        return logs, states[::-1]

    def _forward(self) -> tuple[Floats, list[_Passed], list[States]]:
        logs = np.zeros(len(self.lengths))
        passed: list[_Passed] = []
        filtered: list[States] = []
        for t in range(max(self.lengths, default=0)):
            step = self.step(t)
            count = int(np.searchsorted(-np.asarray(self.lengths), -t, side="left"))
            predicted = self._predicted(step, count, filtered[-1] if filtered else None)
            seen = ~np.isnan(step.values)
            loadings = np.where(seen[..., None], step.loadings, 0.0)
            surprise = np.where(seen, step.values - step.offsets, 0.0)
            surprise = surprise - (loadings @ predicted.means[..., None])[..., 0]
            errors = np.where(seen, step.errors, 1.0)
            across = predicted.covariances @ np.swapaxes(loadings, 1, 2)
            spread = loadings @ across
            diagonal = np.arange(spread.shape[-1])
            spread[:, diagonal, diagonal] += errors
            precision, log_determinant = _inverse(spread)
            gain = across @ precision
            kept = np.eye(predicted.means.shape[1]) - gain @ loadings
            logs[:count] -= 0.5 * (
                np.einsum("ni,nij,nj->n", surprise, precision, surprise)
                + log_determinant
                + seen.sum(axis=1) * _LOG_2_PI
            )
            means = predicted.means + (gain @ surprise[..., None])[..., 0]
            # Joseph's form stays positive however small the errors are.
            noise = (gain * np.where(seen, step.errors, 0.0)[:, None, :]) @ np.swapaxes(gain, 1, 2)
            covariances = _symmetric(kept @ predicted.covariances @ np.swapaxes(kept, 1, 2) + noise)
            passed.append(_Passed(predicted, step.transition, loadings, surprise, precision, kept))
            filtered.append(States(means, covariances))
        return logs, passed, filtered

    def _predicted(self, step: LinearStep, count: int, before: States | None) -> States:
        """The states of a step given what came before it."""
        if before is None:
            size = step.constant.shape[1]
            means = np.broadcast_to(step.constant, (count, size)).copy()
            return States(means, np.broadcast_to(step.noise, (count, size, size)).copy())
        transition = step.transition
        means = (transition @ before.means[:count, :, None])[..., 0] + step.constant
        spread = transition @ before.covariances[:count] @ np.swapaxes(transition, 1, 2) + step.noise
        return States(means, _symmetric(spread))


def _wide(array: Floats, count: int) -> Floats:
    return np.broadcast_to(array, (count, *array.shape[1:]))


def _symmetric(matrices: Floats) -> Floats:
    return np.asarray((matrices + np.swapaxes(matrices, 1, 2)) / 2)


def _inverse(spread: Floats) -> tuple[Floats, Floats]:
    """Inverses and log-determinants of covariances (n, p, p) of what is observed."""
    if not spread.shape[-1]:
        return spread, np.zeros(len(spread))
    try:
        root = np.linalg.cholesky(spread)
    except np.linalg.LinAlgError:
        raise EstimateError(
            "What is observed in a slice has no density given the slices before: some of it follows without error. "
            "Give the nodes variances above 0, by a prior= or a larger variance_floor=."
        ) from None
    half = np.linalg.inv(root)
    logs = 2.0 * np.log(np.diagonal(root, axis1=1, axis2=2)).sum(axis=1)
    return np.swapaxes(half, 1, 2) @ half, logs
