"""What a user may say about the rows of a chain before seeing them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from suffice.array_types import Floats
from suffice.checks import is_real
from suffice.errors import OptionError, listing
from suffice.families.base import as_array, as_floats
from suffice.families.dirichlet import Dirichlet
from suffice.families.dirichlet_mixture import DirichletMixture
from suffice.models.markov_chain.input import Vocabulary
from suffice.models.markov_chain.rows import RowPrior

_PARTS = ("initial", "transitions")
#: Pseudo-counts whose sums, and the log-gamma functions of those, are numbers.
MOST_COUNTS = 1e300


def row_prior(prior: Any, words: Vocabulary, order: int) -> RowPrior:
    """Pseudo-counts of the rows and of the first word.

    prior: a number for every state; an array or dict by state; an array (states, states), one row a state (order 1,
    with no pseudo-counts for the first word unless they are given); a `Dirichlet` or `DirichletMixture`; or a dict with
    the keys "initial" and "transitions".
    """
    if isinstance(prior, dict) and prior and set(prior) <= set(_PARTS):
        if "transitions" not in prior:
            raise OptionError("The prior speaks of 'initial' only; give 'transitions' too, or use MLE rows.")
        transitions = row_prior(prior["transitions"], words, order)
        if prior.get("initial") is None:
            return transitions
        if order == 0:
            raise OptionError(
                "A chain of order 0 has one distribution for all steps; give its prior alone, without 'initial'."
            )
        first = _vector(prior["initial"], words)
        return RowPrior(transitions.weights, transitions.alphas, first, transitions.each)
    if isinstance(prior, DirichletMixture):
        if prior.alphas_.shape[1] != words.card:
            raise OptionError(
                f"The mixture has {prior.alphas_.shape[1]} parts; the chain has {words.card} states: "
                f"{listing(words.states)}."
            )
        return RowPrior(np.asarray(prior.weights_), np.asarray(prior.alphas_), None)
    if isinstance(prior, list | tuple | np.ndarray) and as_array(prior, "prior").ndim == 2:
        return _table(prior, words, order)
    alpha = _vector(prior, words)
    return RowPrior(np.ones(1), alpha[None, :], None)


def _table(prior: Any, words: Vocabulary, order: int) -> RowPrior:
    alphas = as_floats(prior, "prior")
    if order != 1 or words.end is not None:
        raise OptionError("A prior for each row is for chains of order 1 without bounds; give one prior for all rows.")
    if alphas.shape != (words.card, words.card):
        raise OptionError(f"The prior has shape {alphas.shape}; expected {(words.card, words.card)}, one row a state.")
    _check(alphas)
    return RowPrior(np.ones(len(alphas)), alphas, None, each=True)


def _vector(prior: Any, words: Vocabulary) -> Floats:
    """Pseudo-counts (card,)."""
    if isinstance(prior, Dirichlet):
        alpha = np.asarray(prior.spread_over(words.card).alpha_, dtype=np.float64)
    elif isinstance(prior, Mapping):
        known = {state: words.place(state) for state in prior}
        alpha = np.full(words.card, np.nan)
        alpha[list(known.values())] = as_floats(list(prior.values()), "prior")
        if np.isnan(alpha).any():
            missing = [words.states[code] for code in np.flatnonzero(np.isnan(alpha))]
            raise OptionError(f"The prior has no pseudo-count for {listing(missing)}; give one for every state.")
    elif is_real(prior):
        alpha = np.full(words.card, float(prior))
    elif isinstance(prior, list | tuple | np.ndarray):
        alpha = as_floats(prior, "prior")
    else:
        raise OptionError(
            f"The prior is {prior!r}; expected a number, numbers by state, a Dirichlet, a DirichletMixture, or a dict "
            "with 'initial' and 'transitions'."
        )
    if alpha.shape != (words.card,):
        raise OptionError(f"The prior has {alpha.size} pseudo-counts; expected {words.card}, one for each state.")
    _check(alpha)
    return alpha


def _check(alpha: Floats) -> None:
    if not ((alpha > 0) & (alpha < np.inf)).all():
        raise OptionError(
            f"The prior holds {alpha.min():g}; expected finite numbers above 0. Leave prior= out for maximum "
            f"likelihood."
        )
    if (alpha > MOST_COUNTS).any():
        raise OptionError(
            f"A pseudo-count is {alpha.max():g}; expected at most 1e+300, so that sums of them are numbers."
        )
