"""Standard errors from the observed information.

The score of the observed sequences is the slope of the expected log-likelihood of the complete ones (Fisher's
identity), which expected statistics give exactly. Its derivative by central differences is minus the observed
information. Rows of probabilities move along their logarithms; a cell at 0 stays there and has no error.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from suffice.array_types import Floats
from suffice.models.em.identifiability import Spectrum
from suffice.models.em.information import ObservedInformation
from suffice.models.hidden_markov.learning import Learner
from suffice.models.hidden_markov.parameters import ChainParameters, Statistics, stationary

#: Steps of the differences of the score, and of the expected log-likelihood, which costs no pass over the data.
STEP = 1e-4
INNER = 1e-4
#: Step of second differences.
WIDE = 1e-3
#: A probability below this lies on the edge.
EDGE = 1e-7


class EStep(Protocol):
    """What gives the statistics of sequences at parameters."""

    def expect(self, parameters: ChainParameters) -> Statistics:
        """Expected statistics."""


@dataclass(frozen=True)
class _Coordinate:
    """One direction: an array by name, the cells that move, and how far a step of 1 moves them."""

    name: str
    row: tuple[int, ...]
    cell: int
    kind: str
    unit: float
    rows: int = 1


@dataclass(frozen=True, eq=False)
class ChainInformation(ObservedInformation):
    """The information of the free cells of a chain and its emissions, one coordinate each."""

    coordinates: Sequence[_Coordinate]


def observed_information(
    expectation: EStep, learner: Learner, parameters: ChainParameters, states: Sequence[Hashable]
) -> ChainInformation | None:
    """Minus the second derivatives of the log-likelihood, and of the objective; two passes for each coordinate.

    None where no parameter is free, or where a derivative is not finite.
    """
    coordinates = _coordinates(learner, parameters)
    size = len(coordinates)
    if not size:
        return None
    alone, both = np.empty((2, size, size))
    with np.errstate(all="ignore"):
        for column, coordinate in enumerate(coordinates):
            (up, up_both), (down, down_both) = (
                _scores(expectation, learner, _moved(learner, parameters, coordinate, sign * STEP), coordinates)
                for sign in (1.0, -1.0)
            )
            alone[:, column] = (down - up) / (2 * STEP)
            both[:, column] = (down_both - up_both) / (2 * STEP)
        complete, of_both = _complete(expectation, learner, parameters, coordinates)
    if not np.isfinite(both).all():
        return None
    symbols = learner.emission.describe().get("states", ())
    names = [_called(coordinate, states, symbols) for coordinate in coordinates]
    return ChainInformation(names, (alone + alone.T) / 2, (both + both.T) / 2, complete, of_both, coordinates)


def _complete(
    expectation: EStep, learner: Learner, parameters: ChainParameters, coordinates: list[_Coordinate]
) -> tuple[Floats, Floats]:
    """Minus the second derivative of Q along each coordinate (k,), without and with the log prior."""
    statistics = expectation.expect(parameters)
    alone, prior = np.empty((2, len(coordinates)))
    here = np.array(_values(learner, statistics, parameters))
    for number, coordinate in enumerate(coordinates):
        sides = [_values(learner, statistics, _moved(learner, parameters, coordinate, s * WIDE)) for s in (1, -1)]
        alone[number], prior[number] = (2 * here - np.sum(sides, axis=0)) / WIDE**2
    return np.maximum(alone, 0.0), np.maximum(alone + prior, 0.0)


def _scores(
    expectation: EStep, learner: Learner, parameters: ChainParameters, coordinates: list[_Coordinate]
) -> tuple[Floats, Floats]:
    """Slopes (k,) of the log-likelihood and of the objective.

    Of rows of counts by their formula; of emissions by differences of Q, which cost no pass over the data.
    """
    statistics = expectation.expect(parameters)
    rows = {} if learner.stationary else {part.part: part for part in learner.rows(statistics, parameters)}
    alone, prior = np.empty((2, len(coordinates)))
    for number, coordinate in enumerate(coordinates):
        if coordinate.name in rows:
            part = rows[coordinate.name]
            counts, pseudo, shares = (array[coordinate.row] for array in (part.counts, part.pseudo, part.probabilities))
            share = shares[coordinate.cell]
            alone[number] = counts[coordinate.cell] - counts.sum() * share
            prior[number] = pseudo[coordinate.cell] - pseudo.sum() * share
            continue
        sides = [_values(learner, statistics, _moved(learner, parameters, coordinate, s * INNER)) for s in (1, -1)]
        alone[number], prior[number] = (np.array(sides[0]) - sides[1]) / (2 * INNER)
    return alone, alone + prior


def _values(learner: Learner, statistics: Statistics, parameters: ChainParameters) -> tuple[float, float]:
    """Expected log-likelihood of the complete sequences, and the log prior."""
    return learner.complete_log_likelihood(statistics, parameters), learner.log_prior(parameters)


def standard_errors(
    information: ChainInformation | None, learner: Learner, parameters: ChainParameters, step: float
) -> dict[str, Any]:
    """Errors laid out as the parameters, NaN without information; `step` is what one more step of EM would change."""
    errors = {name: np.full(array.shape, np.nan) for name, array in _arrays(parameters).items()}
    if information is not None:
        errors |= _by_delta_method(learner, parameters, information.coordinates, information.spectrum(step))
    emission = {name: errors[f"emission.{name}"] for name in parameters.emission}
    lasting = [errors[f"durations.{state}"][0] for state in range(len(parameters.durations))]
    made = {"initial": errors["initial"][0], "transitions": errors["transitions"], "emissions": emission}
    return made | ({"durations": lasting} if lasting else {})


def is_cheap(steps: int, learner: Learner, parameters: ChainParameters, evaluations: int) -> bool:
    """Whether two passes for each coordinate are little beside those of the fit, or little by themselves."""
    coordinates = _coordinates(learner, parameters)
    by_differences = sum(coordinate.name.startswith("emission.") for coordinate in coordinates)
    passes = 2 * len(coordinates)
    work = passes * steps * len(parameters.initial) ** 2
    return len(coordinates) * by_differences <= 900 and (work <= 1e7 or 4 * passes <= evaluations)


def _called(coordinate: _Coordinate, states: Sequence[Hashable], symbols: Sequence[Hashable]) -> str:
    row, cell = coordinate.row[0], coordinate.cell
    if coordinate.name == "initial":
        return f"P(first state {states[cell]!r})"
    if coordinate.name == "transitions":
        return f"P({states[row]!r} -> {states[cell]!r})"
    if coordinate.name.startswith("durations."):
        state = states[int(coordinate.name.removeprefix("durations."))]
        kind = f"P({cell + 1} steps)" if coordinate.kind == "simplex" else ("mean", "size")[cell]
        return f"{kind} of the durations of state {state!r}"
    name = coordinate.name.removeprefix("emission.")
    if name == "probabilities" and symbols:
        return f"P({symbols[cell]!r} | state {states[row]!r})"
    each = max(coordinate.rows // len(states), 1)
    part = f", component {row % each}" if each > 1 else ""
    return f"{name}[{cell}] of state {states[row // each]!r}{part}"


def _arrays(parameters: ChainParameters) -> dict[str, Floats]:
    rows = {"initial": parameters.initial[None], "transitions": parameters.transitions}
    lasting = {f"durations.{state}": one.numbers[None] for state, one in enumerate(parameters.durations)}
    return rows | {f"emission.{name}": array for name, array in parameters.emission.items()} | lasting


def _coordinates(learner: Learner, parameters: ChainParameters) -> list[_Coordinate]:
    coordinates: list[_Coordinate] = []
    kinds: dict[str, str] = {name: "simplex" for name in ("initial", "transitions") if name in learner.free}
    if "emissions" in learner.free:
        kinds |= {f"emission.{name}": kind for name, kind in learner.emission.kinds.items()}
    if "durations" in learner.free:
        kinds |= {f"durations.{state}": one.kind for state, one in enumerate(parameters.durations) if len(one.numbers)}
    arrays = _arrays(parameters)
    for name, kind in kinds.items():
        array = arrays[name]
        each = max(len(array) // len(parameters.initial), 1) if name.startswith("emission.") else 1
        for row in np.ndindex(array.shape[:1]):
            if kind == "shared" and row[0] > 0:
                break
            # What all states share stands in the first one, though that may be tied to another.
            if kind != "shared" and name.startswith("emission.") and row[0] // each in learner.repeated:
                continue
            coordinates += [replace(one, rows=len(array)) for one in _of_row(name, kind, row, array[row])]
    known = {f"emission.{name}": cells for name, cells in learner.emission.known.items()}
    free = [coordinate for coordinate in coordinates if coordinate.cell not in known.get(coordinate.name, ())]
    return [coordinate for coordinate in free if _is_inside(learner, parameters, coordinate)]


def _is_inside(learner: Learner, parameters: ChainParameters, coordinate: _Coordinate) -> bool:
    """Whether a coordinate can move both ways; a rate of 0 or a variance at its floor is an edge."""
    if coordinate.kind == "simplex":
        return True
    sides = (_moved(learner, parameters, coordinate, sign * WIDE) for sign in (1.0, -1.0))
    return all(learner.inside(side) for side in sides)


def _of_row(name: str, kind: str, row: tuple[int, ...], values: Floats) -> list[_Coordinate]:
    if kind == "simplex":
        free = np.flatnonzero(values > EDGE)
        return [_Coordinate(name, row, int(cell), kind, 1.0) for cell in free if cell != int(np.argmax(values))]
    if kind == "spherical":
        return [_Coordinate(name, row, 0, kind, float(values[0, 0]))]
    if kind in ("symmetric", "diagonal", "shared"):
        d = len(values)
        pairs = [(i, j) for i in range(d) for j in range(i, d) if i == j or kind != "diagonal"]
        size = np.sqrt(np.diag(values)).tolist()
        return [_Coordinate(name, row, i * d + j, kind, size[i] * size[j]) for i, j in pairs]
    flat = values.ravel()
    return [_Coordinate(name, row, cell, kind, max(abs(value), 1e-3)) for cell, value in enumerate(flat.tolist())]


def _moved(learner: Learner, parameters: ChainParameters, coordinate: _Coordinate, step: float) -> ChainParameters:
    """The parameters with one coordinate moved; distributions that are tied move together."""
    arrays = {name: array.copy() for name, array in _arrays(parameters).items()}
    array = arrays[coordinate.name]
    emitted = coordinate.name.startswith("emission.")
    each = max(len(array) // len(parameters.initial), 1) if emitted else 1
    state, rest = divmod(coordinate.row[0], each)
    group = next((g for g in learner.tied if state in g and emitted), (state,))
    for row in range(len(array)) if coordinate.kind == "shared" else [member * each + rest for member in group]:
        _move(array, row, coordinate, step)
    initial = arrays["initial"][0]
    if learner.stationary:
        initial = stationary(arrays["transitions"])
    emission = {name: arrays[f"emission.{name}"] for name in parameters.emission}
    pairs = enumerate(parameters.durations)
    durations = tuple(one.holding(arrays[f"durations.{state}"][0]) for state, one in pairs)
    return ChainParameters(initial, arrays["transitions"], emission, durations)


def _move(array: Floats, row: int, coordinate: _Coordinate, step: float) -> None:
    if coordinate.kind == "simplex":
        array[row, coordinate.cell] *= np.exp(step)
        array[row] /= array[row].sum()
    elif coordinate.kind == "spherical":
        array[row] += step * coordinate.unit * np.eye(len(array[row]))
    elif coordinate.kind in ("symmetric", "diagonal", "shared"):
        i, j = divmod(coordinate.cell, array.shape[1])
        array[row, i, j] += step * coordinate.unit
        if i != j:
            array[row, j, i] += step * coordinate.unit
    else:
        array[row].reshape(-1)[coordinate.cell] += step * coordinate.unit


@dataclass(frozen=True, eq=False)
class _Settled:
    """The E-step of sequences whose states are all known: counts, whatever the parameters."""

    statistics: Statistics

    def expect(self, parameters: ChainParameters) -> Statistics:
        """The counts."""
        return self.statistics


def constant_errors(
    statistics: Statistics, learner: Learner, parameters: ChainParameters, step: float
) -> dict[str, Any]:
    """Standard errors from the counts of known states alone."""
    information = observed_information(_Settled(statistics), learner, parameters, range(len(parameters.initial)))
    return standard_errors(information, learner, parameters, step)


def _by_delta_method(
    learner: Learner, parameters: ChainParameters, coordinates: Sequence[_Coordinate], spectrum: Spectrum
) -> dict[str, Floats]:
    """Errors of the arrays that some coordinate moves; NaN for a parameter at the edge, or that none moves."""
    names, arrays = [coordinate.name for coordinate in coordinates], _arrays(parameters)
    errors = {}
    for name in dict.fromkeys(names):
        slopes = np.zeros((arrays[name].size, len(coordinates)))
        for column in [number for number, other in enumerate(names) if other == name]:
            moves = (_moved(learner, parameters, coordinates[column], s * INNER) for s in (1.0, -1.0))
            up, down = (_arrays(moved)[name] for moved in moves)
            slopes[:, column] = ((up - down) / (2 * INNER)).ravel()
        still = ~(np.abs(slopes) > 0).any(axis=1)
        if coordinates[names.index(name)].kind == "simplex":
            still |= arrays[name].ravel() <= EDGE
        errors[name] = np.where(still, np.nan, spectrum.errors(slopes)).reshape(arrays[name].shape)
    return errors
