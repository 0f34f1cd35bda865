"""What physicists read in a Markov network: fields and couplings."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.errors import OptionError
from suffice.models.markov.feature import Feature
from suffice.models.markov.structure import agreement, product_of, value_of

if TYPE_CHECKING:
    from suffice.models.markov.fitted import MarkovFitted


def fields_of(fitted: MarkovFitted) -> dict[Hashable, Any]:
    """The fields by node: of a feature f(x) = x a weight, of a table of one variable a dict from its states."""
    fields: dict[Any, Any] = {}
    for term, own in zip(fitted.model.terms, fitted.model.weight_slices, strict=True):
        weights = fitted.weights[own]
        if isinstance(term, Feature) and len(term.placements[0]) == 1 and _is_like(fitted, term, value_of):
            fields |= {scope[0]: float(weights[0]) for scope in term.placements}
        elif not isinstance(term, Feature) and len(term) == 1:
            fields[term[0]] = dict(zip(fitted.domain[term[0]].states, weights.tolist(), strict=True))
    if not fields:
        raise OptionError("The network has no field, a feature f(x) = x of one variable or a table of one.")
    return fields


def couplings_of(fitted: MarkovFitted) -> dict[tuple[Hashable, ...], float]:
    """The couplings by edge: the weights of features f(x, y) = x y or 1{x = y}."""
    couplings: dict[Any, float] = {}
    for term, own in zip(fitted.model.terms, fitted.model.weight_slices, strict=True):
        if isinstance(term, Feature) and len(term.placements[0]) == 2:
            if _is_like(fitted, term, product_of) or _is_like(fitted, term, agreement):
                couplings |= dict.fromkeys(term.placements, float(fitted.weights[own][0]))
    if not couplings:
        raise OptionError(
            "The network has no coupling, a feature f(x, y) = x y or 1{x = y} of pairs. Use MarkovNetwork.ising "
            "or potts."
        )
    return couplings


def _is_like(fitted: MarkovFitted, term: Feature, function: Callable[..., Any]) -> bool:
    """Whether a feature has the values of a function; one of states that are no numbers is not."""
    try:
        wanted = Feature(list(term.placements), function).tables(fitted.domain)
    except OptionError:
        return False
    return all(map(np.array_equal, wanted, term.tables(fitted.domain)))
