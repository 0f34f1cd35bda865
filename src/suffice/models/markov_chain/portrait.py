"""What there is to see of a Markov chain."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.errors import OptionError
from suffice.fitting.portrait import (
    Estimates,
    Grid,
    NamedMatrix,
    Portrait,
    VariableDistribution,
    counted_estimates,
    learned_portrait,
    long_run,
    or_none,
    table_grid,
)
from suffice.models.markov_chain.estimates import inference_of, redrawn
from suffice.table import Table

if TYPE_CHECKING:
    from suffice.models.markov_chain.declaration import MarkovChain
    from suffice.models.markov_chain.fitted import MarkovChainFitted

#: Cells of the transitions up to which they are printed.
MOST_PRINTED = 400


def portrait_of(chain: MarkovChainFitted) -> Portrait:
    """First states, transitions, and what a history leads to."""
    states = chain.words.states
    return Portrait(
        title="MarkovChain",
        kind="chain",
        facts={"order": chain.distribution.order, "states": len(states)},
        n_params=lambda: chain.n_params,
        parameters=partial(_parameters, chain),
        text=lambda: "\n\n".join(map(str, _parameters(chain).values())),
        variables=partial(_variables, chain),
        tables=_tables(chain),
        table=partial(_table, chain),
        estimates=partial(_estimates, chain),
        transitions=lambda: _matrix(chain.transitions),
    )


def portrait_of_model(model: MarkovChain) -> Portrait:
    """The same with what the sequences say about it; of a model without a fit its kind alone."""
    if model._fit is None:
        return Portrait("MarkovChain", "chain")
    return replace(
        learned_portrait(model),
        inference=lambda: inference_of(model.fitted_),
        redraw=partial(redrawn, model),
        again=lambda: model.clone().set_params(states=_own_states(model)),
    )


def _own_states(model: MarkovChain) -> list[Hashable]:
    """The states of a chain but for its marks."""
    words = model.fitted_.words
    return [state for state in words.words if state not in (words.end, words.unknown)]


def _variables(chain: MarkovChainFitted) -> list[VariableDistribution]:
    """The first state, and the share of each state in the long run."""
    states = chain.words.states
    variables = [VariableDistribution("first state", states, tuple(chain.initial.values.ravel().tolist()))]
    table = or_none(lambda: chain.transitions)
    square = table is not None and table.values.shape == (len(states), len(states))
    shares = long_run(table.values) if table is not None and square else None
    if shares is not None:
        variables.append(VariableDistribution("state in the long run", states, tuple(shares.tolist())))
    return variables


def _tables(chain: MarkovChainFitted) -> list[Callable[[], Grid | None]]:
    return [
        lambda: table_grid(chain.initial, "First state", "share"),
        lambda: table_grid(chain.transitions, "Next state, given the state", "share"),
    ]


def _matrix(table: Table) -> NamedMatrix:
    """A table with its last variable along the columns."""
    *outer, last = table.domain.variables
    places = np.ndindex(*(variable.card for variable in outer))
    rows = tuple(", ".join(str(v.states[code]) for v, code in zip(outer, codes, strict=True)) for codes in places)
    return NamedMatrix(rows, tuple(last.states), table.values.reshape(-1, last.card))


def _table(chain: MarkovChainFitted, name: Any) -> Table:
    """First states, all transitions, or the row of a history such as ``the dog``."""
    if name == "initial":
        return chain.initial
    if name == "transitions":
        return chain.transitions
    words = {str(state): state for state in chain.words.states}
    history = str(name).split()
    unknown = [word for word in history if word not in words]
    if unknown:
        raise OptionError(f"The chain has no state {unknown[0]!r}; ask for 'initial', 'transitions' or a history.")
    return chain.row([words[word] for word in history])


def _parameters(chain: MarkovChainFitted) -> dict[str, Table]:
    """First states and transitions of a small chain."""
    small = len(chain.words.states) ** (chain.distribution.order + 1) <= MOST_PRINTED
    return {"initial": chain.initial, "transitions": chain.transitions} if small else {}


def _estimates(chain: MarkovChainFitted, level: float = 0.95, node: Hashable = None) -> Estimates:
    return counted_estimates(chain.counted_rows(), level, prior=chain.prior is not None)
