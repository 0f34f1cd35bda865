"""Standard errors from the observed information.

The score of the observed sequences is the slope of the expected log-likelihood of the complete ones (Fisher's
identity), which expected statistics give exactly. Its derivative by central differences is minus the observed
information. Rows of probabilities move along their logarithms; a cell at 0 stays there and has no error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.models.em.information import inverse_information
from suffice.models.hidden_markov.expectation import Expectation
from suffice.models.hidden_markov.learning import Learner
from suffice.models.hidden_markov.parameters import Parameters, Statistics, stationary

Floats = NDArray[np.float64]

#: Steps of the differences of the score, and of the expected log-likelihood, which costs no pass over the data.
STEP = 1e-4
INNER = 1e-5
#: A probability below this lies on the edge.
EDGE = 1e-7


@dataclass(frozen=True)
class _Coordinate:
    """One direction: an array by name, the cells that move, and how far a step of 1 moves them."""

    name: str
    row: tuple[int, ...]
    cell: int
    kind: str
    unit: float


def standard_errors(expectation: Expectation, learner: Learner, parameters: Parameters) -> dict[str, Any]:
    """Errors laid out as the parameters."""
    coordinates = _coordinates(learner, parameters)
    size = len(coordinates)

    def score(at: Parameters) -> Floats:
        statistics = expectation.expect(at)
        found = np.empty(size)
        for place, coordinate in enumerate(coordinates):
            up = _value(learner, statistics, _moved(learner, at, coordinate, INNER))
            down = _value(learner, statistics, _moved(learner, at, coordinate, -INNER))
            found[place] = (up - down) / (2 * INNER)
        return found

    information = np.empty((size, size))
    for place, coordinate in enumerate(coordinates):
        up, down = (score(_moved(learner, parameters, coordinate, sign * STEP)) for sign in (1.0, -1.0))
        information[:, place] = (down - up) / (2 * STEP)
    covariance, unknown = inverse_information((information + information.T) / 2)
    return _laid_out(learner, parameters, coordinates, covariance, unknown)


def _arrays(parameters: Parameters) -> dict[str, Floats]:
    rows = {"initial": parameters.initial[None], "transitions": parameters.transitions}
    return rows | {f"emission.{name}": array for name, array in parameters.emission.items()}


def _coordinates(learner: Learner, parameters: Parameters) -> list[_Coordinate]:
    found: list[_Coordinate] = []
    repeated = {law for group in learner.tied for law in group[1:]}
    kinds = {"initial": "simplex", "transitions": "simplex"}
    if "emissions" not in learner.fixed:
        kinds |= {f"emission.{name}": kind for name, kind in learner.emission.kinds.items()}
    arrays = _arrays(parameters)
    for name, kind in kinds.items():
        if name in learner.fixed or (name == "initial" and learner.stationary):
            continue
        array = arrays[name]
        per_law = len(array) // len(parameters.initial) if name.startswith("emission.") else 1
        for row in np.ndindex(array.shape[:1]):
            if kind == "shared" and row[0] > 0:
                break
            # What all laws share stands in the first one, though that may be tied to another.
            if kind != "shared" and name.startswith("emission.") and row[0] // max(per_law, 1) in repeated:
                continue
            found += _of_row(name, kind, row, array[row])
    known = {f"emission.{name}": cells for name, cells in learner.emission.known.items()}
    return [coordinate for coordinate in found if coordinate.cell not in known.get(coordinate.name, ())]


def _of_row(name: str, kind: str, row: tuple[int, ...], values: Floats) -> list[_Coordinate]:
    if kind == "simplex":
        free = np.flatnonzero(values > EDGE)
        return [_Coordinate(name, row, int(cell), kind, 1.0) for cell in free if cell != int(np.argmax(values))]
    if kind == "spherical":
        return [_Coordinate(name, row, 0, kind, float(values[0, 0]))]
    if kind in ("symmetric", "diagonal", "shared"):
        d = len(values)
        pairs = [(i, j) for i in range(d) for j in range(i, d) if i == j or kind != "diagonal"]
        return [_Coordinate(name, row, i * d + j, kind, float(np.sqrt(values[i, i] * values[j, j]))) for i, j in pairs]
    flat = values.ravel()
    return [_Coordinate(name, row, at, kind, max(abs(float(flat[at])), 1e-3)) for at in range(flat.size)]


def _moved(learner: Learner, parameters: Parameters, coordinate: _Coordinate, step: float) -> Parameters:
    """The parameters with one coordinate moved; laws that are tied move together."""
    arrays = {name: array.copy() for name, array in _arrays(parameters).items()}
    array = arrays[coordinate.name]
    size = len(parameters.initial)
    per_law = len(array) // size if coordinate.name.startswith("emission.") else 1
    law, rest = divmod(coordinate.row[0], max(per_law, 1))
    group = next((g for g in learner.tied if law in g and coordinate.name.startswith("emission.")), (law,))
    together = [member * max(per_law, 1) + rest for member in group]
    for at in range(len(array)) if coordinate.kind == "shared" else together:
        _move(array, at, coordinate, step)
    initial = arrays["initial"][0]
    if learner.stationary:
        initial = stationary(arrays["transitions"])
    emission = {name: arrays[f"emission.{name}"] for name in parameters.emission}
    return Parameters(initial, arrays["transitions"], emission)


def _move(array: Floats, at: int, coordinate: _Coordinate, step: float) -> None:
    if coordinate.kind == "simplex":
        array[at, coordinate.cell] *= np.exp(step)
        array[at] /= array[at].sum()
    elif coordinate.kind == "spherical":
        array[at] += step * coordinate.unit * np.eye(len(array[at]))
    elif coordinate.kind in ("symmetric", "diagonal", "shared"):
        i, j = divmod(coordinate.cell, array.shape[1])
        array[at, i, j] += step * coordinate.unit
        if i != j:
            array[at, j, i] += step * coordinate.unit
    else:
        array[at].reshape(-1)[coordinate.cell] += step * coordinate.unit


def _value(learner: Learner, statistics: Statistics, parameters: Parameters) -> float:
    """Expected log-likelihood of the complete sequences."""
    from scipy.special import xlogy

    chain = xlogy(statistics.initial, parameters.initial).sum()
    chain += xlogy(statistics.transitions, parameters.transitions).sum()
    return float(chain + learner.emission.expected(statistics.emission, parameters.emission).sum())


def _laid_out(
    learner: Learner, parameters: Parameters, coordinates: list[_Coordinate], covariance: Floats, unknown: Any
) -> dict[str, Any]:
    """Errors of the parameters by the delta method, from the covariance of the coordinates."""
    names = [coordinate.name for coordinate in coordinates]
    found = {name: np.full(array.shape, np.nan) for name, array in _arrays(parameters).items()}
    for name in dict.fromkeys(names):
        array = found[name]
        places = [at for at, other in enumerate(names) if other == name]
        slopes = np.zeros((array.size, len(coordinates)))
        for at in places:
            up, down = (_arrays(_moved(learner, parameters, coordinates[at], s * INNER))[name] for s in (1.0, -1.0))
            slopes[:, at] = ((up - down) / (2 * INNER)).ravel()
        variance = np.einsum("ij,jk,ik->i", slopes, covariance, slopes)
        dark = (np.abs(slopes[:, unknown]) > 0).any(axis=1) | ~(np.abs(slopes) > 0).any(axis=1)
        array[...] = np.where(dark, np.nan, np.sqrt(np.maximum(variance, 0.0))).reshape(array.shape)
    emission = {name: found[f"emission.{name}"] for name in parameters.emission}
    return {"initial": found["initial"][0], "transitions": found["transitions"], "emissions": emission}
