"""Priors: pseudo-counts of first states, transitions and symbols, and conjugate priors of other distributions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from suffice.array_types import Floats
from suffice.checks import is_real
from suffice.errors import OptionError, listing
from suffice.families.dirichlet import Dirichlet
from suffice.options import doubles

PARTS = ("initial", "transitions", "emissions", "durations")
#: Pseudo-counts whose sums are numbers.
MOST_COUNTS = 1e300


def split_prior(prior: Any) -> dict[str, Any]:
    """The prior of each part; one number is for all of them."""
    if prior is None:
        return {}
    if isinstance(prior, Mapping):
        unknown = [name for name in prior if name not in PARTS]
        if unknown:
            raise OptionError(f"prior names {listing(unknown)}; expected some of {listing(PARTS)}.")
        return {name: value for name, value in prior.items() if value is not None}
    if is_real(prior):
        return dict.fromkeys(PARTS, prior)
    raise OptionError(
        f"prior is {prior!r}; expected a number of pseudo-counts, or a dict of priors for some of {listing(PARTS)}."
    )


def pseudo_counts(prior: Any, shape: tuple[int, ...], estimate: str | None, name: str) -> Floats:
    """Counts to add, of the given shape: those of a posterior mean, or one less for the mode.

    A number is for every cell; an array has the shape, or is one row for all; a `Dirichlet` is for every row, a list
    of them for each.
    """
    if prior is None:
        return np.zeros(shape)
    if isinstance(prior, Dirichlet):
        alpha: Any = prior.spread_over(shape[-1]).alpha_
    elif isinstance(prior, list | tuple) and prior and all(isinstance(row, Dirichlet) for row in prior):
        alpha = np.stack([row.spread_over(shape[-1]).alpha_ for row in prior])
    else:
        alpha = prior
    try:
        counts = np.array(np.broadcast_to(doubles(alpha), shape))
    except (TypeError, ValueError):
        raise OptionError(
            f"The prior of {name} is {prior!r}; expected a number, an array of shape {shape}, or a Dirichlet."
        ) from None
    counts = counts - 1.0 if estimate == "map" else counts
    if not ((counts >= 0) & (counts <= MOST_COUNTS)).all():
        least = "at least 1: below it the mode lies on the edge" if estimate == "map" else "at least 0"
        raise OptionError(f"The prior of {name} is {prior!r}; expected numbers of {least}, and at most 1e+300.")
    return counts
