"""What there is to see of a Markov network."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from suffice.fitting.portrait import (
    MOST_CELLS,
    Factors,
    Graph,
    Grid,
    Portrait,
    VariableDistribution,
    matrix_grid,
    table_grid,
)
from suffice.models.markov.feature import Feature
from suffice.models.markov.structure import term_edges

if TYPE_CHECKING:
    from suffice.models.markov.fitted import MarkovFitted


#: Weights that are printed.
MOST_PRINTED = 20


def portrait_of(fitted: MarkovFitted) -> Portrait:
    """Its graph, its potentials and weights, and the distribution of each variable."""
    return Portrait(
        title=fitted.title,
        kind="markov",
        graph=Graph(fitted.nodes, term_edges(fitted.model.terms)),
        n_params=lambda: fitted.n_params,
        parameters=lambda: dict(zip(map(_name, fitted.weight_names), fitted.weights, strict=True)),
        text=partial(_text, fitted),
        variables=partial(_variables, fitted),
        tables=_tables(fitted),
        table=fitted.potential,
        factors=partial(_factors, fitted),
    )


def _variables(fitted: MarkovFitted) -> list[VariableDistribution]:
    return [
        VariableDistribution(name, tuple(table.domain.variables[0].states), tuple(table.values.tolist()))
        for name, table in fitted.marginals().items()
    ]


def _tables(fitted: MarkovFitted) -> list[Callable[[], Grid | None]]:
    terms = fitted.model.terms
    tables: list[Callable[[], Grid | None]] = [
        partial(_potential, fitted, term) for term in terms if not isinstance(term, Feature)
    ]
    if len(tables) < len(terms):
        tables.append(lambda: matrix_grid("Weights", fitted.weight_names, ["weight"], fitted.weights, "signed"))
    return tables


def _potential(fitted: MarkovFitted, clique: tuple[Hashable, ...]) -> Grid | None:
    if math.prod(fitted.domain.shape(clique)) > MOST_CELLS:
        return None
    return table_grid(fitted.potential(clique), f"Potential of {', '.join(map(str, clique))}", "factor")


def _text(fitted: MarkovFitted) -> str:
    """The first weights."""
    pairs = zip(fitted.weight_names[:MOST_PRINTED], fitted.weights, strict=False)
    lines = [f"{weight:>12.6g}  {_name(name)}" for name, weight in pairs]
    rest = len(fitted.weight_names) - MOST_PRINTED
    return "\n".join(lines) + (f"\n... ({rest} more weights)" if rest > 0 else "")


def _name(name: object) -> str:
    return " ".join(map(str, name)) if isinstance(name, tuple) else str(name)


def _factors(fitted: MarkovFitted) -> Factors | None:
    tables = tuple((table.variables, np.asarray(table.values)) for table in fitted.factors())
    return Factors({variable.name: variable.states for variable in fitted.domain.variables}, tables)
