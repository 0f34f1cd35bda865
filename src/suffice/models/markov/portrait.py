"""What there is to see of a Markov network."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from suffice.array_types import Floats
from suffice.families.multivariate_normal import MultivariateNormal
from suffice.families.normal import Normal
from suffice.fitting.portrait import (
    MOST_CELLS,
    Estimates,
    Factors,
    Graph,
    Grid,
    Interval,
    Likelihood,
    Portrait,
    VariableDistribution,
    matrix_grid,
    normal_reach,
    or_none,
    rescaled_by,
    table_grid,
)
from suffice.models.markov.feature import Feature
from suffice.models.markov.structure import term_edges

if TYPE_CHECKING:
    from suffice.models.markov.declaration import MarkovNetwork
    from suffice.models.markov.fitted import MarkovFitted


#: Weights up to which a covariance of all features is made.
MOST_WEIGHTS = 400
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


def network_portrait(network: MarkovNetwork, *, fitted: bool) -> Portrait:
    """What there is to see of a network: of one that was fitted also the means of the features."""
    graph = Graph(network.nodes, network.edges)
    if not fitted:
        return Portrait(type(network).__name__, "markov", graph=graph)
    drawn: Portrait = network.fitted_.portrait()
    return replace(
        drawn,
        title=type(network).__name__,
        graph=graph,
        n_params=lambda: network.n_params_,
        matched=network.matched_statistics,
        estimates=partial(_estimates, network),
        likelihood=partial(_likelihood, network),
        rescaled=rescaled_by(network),
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


def _likelihood(network: MarkovNetwork) -> Likelihood | None:
    matched = network.matched_statistics()
    if matched is None:
        return None

    def value(weights: Floats) -> float:
        return float(weights @ matched.observed - network.log_partition(weights))

    return Likelihood(tuple(map(str, network.weight_names_)), network.weights_, value, len(matched.observed))


def _estimates(network: MarkovNetwork, level: float = 0.95, node: Hashable = None) -> Estimates:
    """Means of the features, which are identified where weights are not."""
    if network._learned_by().options["prior"] is None:
        return Estimates()
    intervals = tuple(_of_features(network, level))
    if not intervals:
        return Estimates(
            note="Estimates are not compared: there are too many weights, or the distribution is sampled, or values "
            "are missing."
        )
    return Estimates(
        intervals,
        "Means of the features, which are identified where weights are not. Maximum likelihood makes them those of "
        "the rows; the intervals are normal, from the curvature at the MAP.",
    )


def _of_features(network: MarkovNetwork, level: float) -> Iterator[Interval]:
    """Means of the features under the MAP, and of the rows, where maximum likelihood puts them.

    The weights have about the covariance ``(N C + P)^-1`` with the covariance C of the features and the precision P of
    a normal prior, and so their means ``C (N C + P)^-1 C``.
    """
    if len(network.weight_names_) > MOST_WEIGHTS:
        return
    matched = or_none(network.matched_statistics)
    covariance = None if matched is None else or_none(lambda: network.information_)
    if matched is None or covariance is None or matched.errors is not None:
        return
    precision = _precision(network._learned_by().options["prior"], len(covariance))
    spread = covariance @ np.linalg.pinv(network.report_.weight * covariance + precision, hermitian=True) @ covariance
    reach = normal_reach(level) * np.sqrt(np.maximum(np.diagonal(spread), 0.0))
    for name, seen, fitted, far in zip(matched.names, matched.observed, matched.expected, reach, strict=True):
        yield Interval(str(name), float(fitted - far), float(fitted + far), float(seen), float(fitted), None)


def _precision(prior: object, size: int) -> Floats:
    """Of a normal prior of the weights (size, size); 0 for others, which have no curvature where they are smooth."""
    if isinstance(prior, MultivariateNormal):
        return np.asarray(np.linalg.inv(prior.covariance_))
    if isinstance(prior, Normal):
        return np.diag(np.broadcast_to(1.0 / np.asarray(prior.variance_, dtype=np.float64), (size,)))
    return np.zeros((size, size))
