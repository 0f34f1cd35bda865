"""What sequences say about the parameters of a hidden Markov model."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.array_types import Floats
from suffice.errors import OptionError
from suffice.families.categorical import Categorical
from suffice.fitting.inference import Inference
from suffice.sources.sequences import SequenceForm

if TYPE_CHECKING:
    from suffice.models.hidden_markov.declaration import HiddenMarkovModel
    from suffice.models.hidden_markov.fitted import HiddenMarkovFitted

#: Kinds of arrays whose cells are shares, and those of symmetric matrices.
_SHARES, _SYMMETRIC = "simplex", {"symmetric", "shared"}
#: Parameters of durations, which are at least 0.
_LASTING = "duration"


def inference_of(model: HiddenMarkovModel) -> Inference:
    """First states, transitions and what states emit, with the errors of the observed information."""
    fitted = model.fitted_
    return _inference(model, fitted, lambda: model.standard_errors_)


def inference_with(model: HiddenMarkovModel, given: Mapping[str, Any]) -> Inference:
    """The same, with the errors worked out from sequences that are given again."""
    rest = {name: value for name, value in given.items() if name not in ("data", "y")}
    errors = model.standard_errors_of(given.get("data"), given.get("y"), **rest)
    return _inference(model, model.fitted_, lambda: errors)


def _inference(model: HiddenMarkovModel, fitted: HiddenMarkovFitted, errors: Any) -> Inference:
    parts = list(_parts(fitted))
    arrays = {"initial": fitted.parameters.initial, "transitions": fitted.parameters.transitions}
    arrays |= {f"emission.{name}": array for name, array in fitted.parameters.emission.items()}
    arrays |= {f"durations.{state}": one.numbers for state, one in enumerate(fitted.parameters.durations)}

    def flat(values: Mapping[str, Any]) -> Floats:
        return np.array([float(np.asarray(values[name])[cell]) for name, cell, _, _ in parts])

    def flat_errors() -> Floats:
        made = errors()
        emitted = {f"emission.{name}": array for name, array in made["emissions"].items()}
        lasting = {f"durations.{state}": array for state, array in enumerate(made.get("durations", ()))}
        return flat({"initial": made["initial"], "transitions": made["transitions"], **emitted, **lasting})

    shares = np.array([kind == _SHARES for *_, kind in parts])
    spreads = np.array([kind in ("variance", _LASTING) for *_, kind in parts])
    return Inference(
        tuple(title for _, _, title, _ in parts),
        flat(arrays),
        flat_errors,
        lowest=np.where(shares | spreads, 0.0, -math.inf),
        highest=np.where(shares, 1.0, math.inf),
        tested=np.zeros(len(parts), dtype=bool),
    )


def _parts(fitted: HiddenMarkovFitted) -> Iterator[tuple[str, tuple[int, ...], str, str]]:
    """Array, cell, title and kind of each parameter."""
    states = [str(state) for state in fitted.states]
    for number, state in enumerate(states):
        yield "initial", (number,), f"P(first {state})", _SHARES
    for row, state in enumerate(states):
        for column, following in enumerate(states):
            yield "transitions", (row, column), f"P({following} | {state})", _SHARES
    for number, one in enumerate(fitted.parameters.durations):
        for position, title in enumerate(one.titles):
            share, state = one.kind == _SHARES, states[number]
            named = f"P({state} lasts {title})" if share else f"{title} of {state}'s steps after the first"
            yield f"durations.{number}", (position,), named, _SHARES if share else _LASTING
    symbols = [str(symbol) for symbol in fitted.symbols] if isinstance(fitted.emissions[0], Categorical) else []
    for name, kind in fitted.emission.kinds.items():
        array = fitted.parameters.emission[name]
        each = max(len(array) // len(states), 1)
        for row, values in enumerate(array):
            owner = states[row // each] + (f", component {row % each}" if each > 1 else "")
            for cell in _cells(np.asarray(values), kind):
                if kind == _SHARES and symbols:
                    title = f"P({symbols[cell[0]]} | {owner})"
                else:
                    where = ", ".join(map(str, cell))
                    title = f"{name}[{where}] of {owner}" if where else f"{name} of {owner}"
                on_diagonal = len(cell) == 2 and cell[0] == cell[1]
                yield f"emission.{name}", (row, *cell), title, "variance" if on_diagonal else kind


def _cells(values: Floats, kind: str) -> list[tuple[int, ...]]:
    """The free cells of one row: the upper half of a symmetric matrix, the diagonal of a diagonal one."""
    if kind == "spherical":
        return [(0, 0)]
    if kind == "diagonal":
        return [(i, i) for i in range(len(values))]
    if kind in _SYMMETRIC:
        return [(i, j) for i in range(len(values)) for j in range(i, len(values))]
    return list(np.ndindex(values.shape))


def again(model: HiddenMarkovModel) -> Any:
    """A copy that begins where the fit ended, so that its states keep their places."""
    fitted, options = model.fitted_, model.get_params(deep=False)
    copied = model.clone()
    if not fitted.hidden:
        return copied.set_params(emission=_knowing(options["emission"], fitted))
    start: dict[str, Any] = {"transitions": np.array(fitted.transitions), "n_init": 1}
    if fitted.parameters.durations:
        start["durations"] = [one.distribution() for one in fitted.parameters.durations]
    if not isinstance(options["initial"], str):
        start["initial"] = np.array(fitted.initial)
    plain = isinstance(fitted.emissions[0], Categorical)
    start["emissions"] = np.array(fitted.symbol_probabilities) if plain else list(fitted.emissions)
    return copied.set_params(emission=_knowing(options["emission"], fitted), **start)


def _knowing(emission: Any, fitted: HiddenMarkovFitted) -> Any:
    """The emission of the options, which knows all symbols of the fit."""
    return Categorical(states=list(fitted.symbols)) if isinstance(fitted.emissions[0], Categorical) else emission


def redrawn(model: HiddenMarkovModel, given: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """Sequences of the lengths of those of the fit, with their states where these were known."""
    data, form = given.get("data"), {name: given[name] for name in ("lengths", "columns") if name in given}
    if data is None or set(given) - {"data", "y", "lengths", "columns"}:
        raise OptionError(
            "Sequences are drawn in the lengths of those of the fit: bootstrap(sequences, kind='parametric'), a list "
            "of sequences or one array with lengths=, and no weights."
        )
    lengths = model.fitted_.open(data, SequenceForm(**form)).sequences.lengths
    drawn = [model.fitted_.sample(int(length), random_state=rng) for length in lengths]
    sequences = {"data": [observed for observed, _ in drawn]}
    return sequences if given.get("y") is None else {**sequences, "y": [list(states) for _, states in drawn]}
