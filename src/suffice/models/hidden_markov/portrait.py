"""What there is to see of a hidden Markov model."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.domain import Domain, Variable
from suffice.errors import OptionError
from suffice.families.categorical import Categorical
from suffice.fitting.portrait import (
    DecodedStates,
    Estimates,
    Grid,
    NamedMatrix,
    Portrait,
    VariableDistribution,
    counted_estimates,
    long_run,
    matrix_grid,
    or_none,
)
from suffice.models.hidden_markov.emissions.distributions import IndependentColumns
from suffice.models.hidden_markov.estimates import again, inference_of, inference_with, redrawn
from suffice.table import Table

if TYPE_CHECKING:
    from suffice.models.hidden_markov.declaration import HiddenMarkovModel
    from suffice.models.hidden_markov.fitted import HiddenMarkovFitted

#: Columns of a table of durations.
MOST_DURATIONS = 60


def portrait_of(fitted: HiddenMarkovFitted) -> Portrait:
    """First states, transitions, and the distribution that each state emits."""
    return Portrait(
        title=fitted.title,
        kind="hmm",
        facts={"states": fitted.states},
        columns=tuple(fitted.columns or ()),
        n_params=lambda: fitted.n_params,
        parameters=partial(_parameters, fitted),
        text=partial(_text, fitted),
        variables=partial(_variables, fitted),
        tables=_tables(fitted),
        table=partial(_table, fitted),
        transitions=lambda: NamedMatrix(fitted.states, fitted.states, np.asarray(fitted.transitions)),
    )


def portrait_of_model(model: HiddenMarkovModel) -> Portrait:
    """The portrait of what was learned, with its counts, and the states of a sequence."""
    fitted = or_none(lambda: model.fitted_)
    if fitted is None:
        return Portrait("HiddenMarkovModel", "hmm")
    return replace(
        fitted.portrait(),
        matched=model.matched_statistics,
        estimates=partial(_estimates, model),
        inference=partial(inference_of, model),
        inference_with=partial(inference_with, model),
        redraw=partial(redrawn, model),
        again=partial(again, model),
        decoding=partial(_decoding, model),
    )


def _variables(fitted: HiddenMarkovFitted) -> list[VariableDistribution]:
    """The first state, and the share of each state in the long run."""
    variables = [VariableDistribution("first state", fitted.states, tuple(fitted.initial.tolist()))]
    # With explicit durations the share of a state in the long run is not that of the chain of segments.
    shares = None if fitted.parameters.durations else long_run(np.asarray(fitted.transitions))
    if shares is not None:
        variables.append(VariableDistribution("state in the long run", fitted.states, tuple(shares.tolist())))
    return variables


def _tables(fitted: HiddenMarkovFitted) -> list[Callable[[], Grid | None]]:
    states, symbols = fitted.states, fitted.symbols
    tables: list[Callable[[], Grid | None]] = [
        lambda: matrix_grid("First state", ["P"], states, fitted.initial, "share"),
        lambda: matrix_grid("Next state, given the state", states, states, fitted.transitions, "share"),
    ]
    if fitted.parameters.durations:
        tables.append(partial(_durations, fitted))
    if symbols:
        return [
            *tables,
            lambda: matrix_grid("Symbol, given the state", states, symbols, fitted.symbol_probabilities, "share"),
        ]
    return tables + _emissions(states, fitted.emissions)


def _durations(fitted: HiddenMarkovFitted) -> Grid | None:
    """P(steps) of each state, as far as all but a thousandth of the durations go; those of states that stay apart."""
    pairs = zip(fitted.states, fitted.parameters.durations, strict=True)
    shown = {state: np.exp(one.logs(MOST_DURATIONS)[0]) for state, one in pairs if len(one.numbers)}
    longest = max(int(np.searchsorted(shares.cumsum(), 0.999)) + 1 for shares in shown.values())
    rows = [np.pad(shares[:longest], (0, max(longest - len(shares), 0))) for shares in shown.values()]
    steps = [str(d + 1) for d in range(longest)]
    return matrix_grid("Steps that a state lasts", list(shown), steps, np.stack(rows), "share")


def _emissions(
    states: Sequence[Hashable], distributions: Sequence[Any], column: str = ""
) -> list[Callable[[], Grid | None]]:
    """Parameters of each state: numbers and vectors in a table of all states, matrices in one for each.

    Independent columns have tables of their own, which name the `column`.
    """
    if isinstance(distributions[0], IndependentColumns):
        parts = [distribution.get_params(deep=False)["distributions"] for distribution in distributions]
        titles = distributions[0].portrait().columns or tuple(range(len(parts[0])))
        return [
            table
            for title, part in zip(titles, zip(*parts, strict=True), strict=True)
            for table in _emissions(states, part, f" of {title}")
        ]
    parameters = [distribution.parameters_ for distribution in distributions]
    titles = (
        distributions[0].states_ if isinstance(distributions[0], Categorical) else distributions[0].portrait().columns
    )
    tables: list[Callable[[], Grid | None]] = []
    names = [name for name, value in parameters[0].items() if np.ndim(value) == 0]
    if names:
        values = [[held[name] for name in names] for held in parameters]
        tables.append(partial(matrix_grid, f"Value{column}, given the state", states, names, values, "signed"))
    for name, value in parameters[0].items():
        columns = list(titles or range(np.shape(value)[-1] if np.ndim(value) else 0))
        if np.ndim(value) == 1:
            rows = [held[name] for held in parameters]
            title = f"{name.capitalize()}{column}, given the state"
            tables.append(partial(matrix_grid, title, states, columns, rows, "signed"))
        elif np.ndim(value) == 2:
            for state, held in zip(states, parameters, strict=True):
                title = f"{name.capitalize()}{column} in state {state}"
                tables.append(partial(matrix_grid, title, columns, columns, held[name], "signed"))
    return tables


def _table(fitted: HiddenMarkovFitted, name: Any) -> Table:
    states = Variable.discrete("state", fitted.states)
    if name == "initial":
        return Table(Domain([states]), fitted.initial)
    if name == "transitions":
        return Table(Domain([states, Variable.discrete("next", fitted.states)]), fitted.transitions)
    if name == "emissions":
        return Table(Domain([states, Variable.discrete("symbol", fitted.symbols)]), fitted.symbol_probabilities)
    raise OptionError(f"A HiddenMarkovModel has the tables initial, transitions and emissions, not {name!r}.")


def _parameters(fitted: HiddenMarkovFitted) -> dict[str, Any]:
    """Where it begins, how it moves, and the distribution of each state."""
    distributions = zip(fitted.states, fitted.emissions, strict=True)
    tables: dict[str, Any] = {name: _table(fitted, name) for name in ("initial", "transitions")}
    if fitted.parameters.durations:
        tables["durations"] = dict(zip(fitted.states, map(_numbers, fitted.durations), strict=True))
    return tables | {"emissions": {state: _numbers(distribution) for state, distribution in distributions}}


def _numbers(distribution: Any) -> dict[str, Any]:
    """The parameters of a distribution by name, and the distributions that it is made of."""
    numbers = {"distribution": type(distribution).__name__, **distribution.parameters_}
    options = distribution.get_params(deep=False)
    parts = options.get("distributions", options.get("components"))
    return numbers if parts is None else numbers | {"distributions": [_numbers(part) for part in parts]}


def _text(fitted: HiddenMarkovFitted) -> str:
    distributions = zip(fitted.states, fitted.emissions, strict=True)
    emitted = "\n".join(f"{state}: {distribution}" for state, distribution in distributions)
    lasting = "".join(f"{state} lasts: {one}\n" for state, one in zip(fitted.states, fitted.durations, strict=True))
    lasting = f"{lasting}\n" if fitted.parameters.durations else ""
    return f"{_table(fitted, 'initial')}\n\n{_table(fitted, 'transitions')}\n\n{lasting}{emitted}"


def _estimates(model: HiddenMarkovModel, level: float = 0.95, node: Hashable = None) -> Estimates:
    return counted_estimates(model.counted_rows(), level, prior=model.get_params(deep=False)["prior"] is not None)


def _decoding(model: HiddenMarkovModel, sequence: Any) -> DecodedStates:
    """The states of one sequence; several are an error."""
    step = np.asarray(model.fitted_.sample(1, random_state=0)[0], dtype=object)[0]
    nested = isinstance(sequence, list | tuple) and len(sequence) > 0 and np.ndim(sequence[0]) > np.ndim(step)
    if nested and len(sequence) > 1:
        raise OptionError(f"plot.states draws one sequence; there are {len(sequence)}. Call it for each, with ax=.")
    one = list(sequence) if nested else [sequence]
    number = {name: code for code, name in enumerate(model.states_)}
    path = tuple(number[state] for state in model.predict(one)[0])
    return DecodedStates(model.states_, path, np.asarray(model.predict_proba(one)[0]))
