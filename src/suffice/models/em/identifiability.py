"""What the rows say about the parameters of a latent model where EM has stopped.

The observed information is the Hessian of minus the log-likelihood. In units of the information that complete rows
would have, its eigenvalues are the shares of each direction that can be seen: 1 where nothing is hidden, 0 where the
rows say nothing, below 0 where the objective still curves upwards, so that EM stands at a saddle.

EM stops near a stationary point, not at one. Its last step `d` leaves a slope of about d, in the same units, and a
direction with the eigenvalue e has still to move by d / e; over that distance curvatures change by as much. Below
``e = sqrt(d)`` the curvature at the end of EM can therefore not be told from none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.errors import EstimateError
from suffice.fitting.report import Curvature

#: Eigenvalues below this are rounding of the differences that the information is made of.
ROUNDING = 1e-5
#: Coordinates whose information is below this share of the largest are not scaled up to it.
LEAST = 1e-6
#: Part of a direction, of length 1, from which on it is flat.
PART = 1e-3
#: Objectives that differ by less, in nats over all rows, are the same maximum: EM stops that far from it.
SAME = 1e-3


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Eigenvalues (k,) of a scaled information, ascending, their `vectors` (k, k), and the `scale` (k,) of coordinates.

    A coordinate times its scale is the unit of the vectors. `threshold` is the least eigenvalue that counts.
    """

    values: Floats
    vectors: Floats
    scale: Floats
    threshold: float

    @property
    def size(self) -> int:
        """How many coordinates there are."""
        return len(self.values)

    @property
    def rank(self) -> int:
        """How many directions the rows determine."""
        return int(self._steep.sum())

    @property
    def _steep(self) -> NDArray[np.bool_]:
        return np.asarray(self.values > self.threshold)

    @property
    def _rising(self) -> NDArray[np.bool_]:
        return np.asarray(self.values < -self.threshold)

    @property
    def point(self) -> str:
        """Where EM has stopped: at a "maximum", at a "saddle", or where the objective is "flat" in some direction."""
        if self._rising.any():
            return "saddle"
        return "maximum" if self._steep.all() else "flat"

    @property
    def flat(self) -> Floats:
        """A basis (k, m) of the flat directions in scaled coordinates, each column with as few coordinates as it can.

        Any basis of a space is as good; in reduced form each has a coordinate of its own, which can be named.
        """
        return _reduced(self.vectors[:, ~self._steep & ~self._rising])

    def errors(self, slopes: Floats) -> Floats:
        """Standard errors (n,) of n functions with these slopes (n, k) in the coordinates.

        inf for a function that changes along a flat direction, NaN along one in which the objective rises.
        """
        rows = slopes / self.scale
        parts = rows @ self.vectors
        variance = (parts[:, self._steep] ** 2 / self.values[self._steep]).sum(axis=1)
        size = PART * np.linalg.norm(rows, axis=1)
        away = [np.linalg.norm(parts[:, some], axis=1) > size for some in (self._rising, ~self._steep & ~self._rising)]
        return np.asarray(np.where(away[0], np.nan, np.where(away[1], np.inf, np.sqrt(variance))))

    def draw(self, rng: np.random.Generator) -> Floats:
        """A draw (k,) of the coordinates around the estimate, normal with the inverse information as covariance."""
        if not self._steep.all():
            raise EstimateError(
                f"The rows determine {self.rank} of {self.size} directions of the parameters, so that these have no "
                "normal distribution to draw from. Give a prior=, more rows or fewer hidden states; the report names "
                "the directions."
            )
        return np.asarray(self.vectors @ (rng.standard_normal(self.size) / np.sqrt(self.values)) / self.scale)

    def names(self, called: Sequence[str], most: int = 3) -> tuple[str, ...]:
        """The flat directions in words, by the names of the coordinates, the largest parts of each first."""
        return tuple(_in_words(column, called, most) for column in self.flat.T)


def spectrum(information: Floats, *, complete: Floats | None = None, step: float = 0.0) -> Spectrum:
    """The eigenvalues of an observed information (k, k), and what they say.

    Args:
        information: minus the Hessian of the objective where EM has stopped.
        complete: the information (k,) that each coordinate would have in complete rows; the diagonal where None.
        step: the largest change of a coordinate by one more step of EM, in coordinates that vary by about one.
    """
    diagonal = np.abs(np.diag(information)) if complete is None else np.asarray(complete, dtype=np.float64)
    largest = float(diagonal.max(initial=0.0))
    scale = np.sqrt(np.maximum(diagonal, LEAST * largest if largest > 0 else 1.0))
    values, vectors = np.linalg.eigh(information / np.outer(scale, scale))
    return Spectrum(values, vectors, scale, max(ROUNDING, math.sqrt(step)))


def same_maximum(scores: Sequence[float]) -> tuple[int, int]:
    """How many starts reached the best objective, and how many there were; a run that failed has -inf."""
    best = max(scores, default=-math.inf)
    if best == -math.inf:
        return 0, len(scores)
    slack = max(SAME, 1e-9 * abs(best))
    return sum(1 for score in scores if score >= best - slack), len(scores)


def curvature(eigenvalues: Spectrum, called: Sequence[str], scores: Sequence[float]) -> Curvature:
    """For the report: rank, kind of point, flat directions by name, and the starts that reached the best objective."""
    reached, runs = same_maximum(scores)
    least = float(eigenvalues.values[0]) if eigenvalues.size else 1.0
    return Curvature(
        eigenvalues.rank,
        eigenvalues.size,
        least,
        eigenvalues.threshold,
        eigenvalues.point,
        eigenvalues.names(called),
        reached,
        runs,
    )


def _reduced(basis: Floats) -> Floats:
    """The basis (k, m) of the same space in which each column alone has its coordinate, in units of that coordinate.

    Gauss-Jordan with the largest entry as pivot; columns then have length 1, and their own coordinate is positive.
    """
    columns = basis.copy()
    for number in range(columns.shape[1]):
        rest = np.abs(columns[:, number:])
        row, column = divmod(int(np.argmax(rest)), rest.shape[1])
        columns[:, [number, number + column]] = columns[:, [number + column, number]]
        columns[:, number] /= columns[row, number]
        others = np.arange(columns.shape[1]) != number
        columns[:, others] -= np.outer(columns[:, number], columns[row, others])
    return np.asarray(columns / np.linalg.norm(columns, axis=0, keepdims=True))


def _in_words(direction: Floats, called: Sequence[str], most: int) -> str:
    """Such as "transition a -> b (+), symbol x in a (-), and 2 more"."""
    order = np.argsort(-np.abs(direction), kind="stable")
    parts = [part for part in order if abs(direction[part]) > max(PART, 0.05 * abs(direction[order[0]]))]
    shown = ", ".join(f"{called[part]} ({'+' if direction[part] > 0 else '-'})" for part in parts[:most])
    return shown + (f", and {len(parts) - most} more" if len(parts) > most else "")
