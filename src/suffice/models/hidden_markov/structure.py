"""What is given about the chain: start values, structural zeros, fixed parts and tied laws."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.errors import OptionError, listing
from suffice.models.hidden_markov.priors import PARTS

Floats = NDArray[np.float64]

TOPOLOGIES = (None, "left-right", "linear")


def read_rows(given: Any, shape: tuple[int, ...], name: str) -> Floats | None:
    """Rows of probabilities of the given shape, or None."""
    if given is None:
        return None
    values = getattr(given, "values", given)
    try:
        rows = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise OptionError(f"{name} is {given!r}; expected probabilities of shape {shape}.") from None
    if rows.shape != shape:
        raise OptionError(f"{name} has shape {rows.shape}; expected {shape}, one entry for each state.")
    total = rows.sum(axis=-1, keepdims=True)
    if not np.isfinite(rows).all() or (rows < 0).any() or np.abs(total - 1).max() > 1e-6:
        raise OptionError(f"{name} has a row that is no distribution: numbers of at least 0 that add up to 1.")
    return np.where(np.abs(total - 1) > shape[-1] * np.finfo(np.float64).eps, rows / total, rows)


def allowed_cells(
    topology: str | None, initial: Floats | None, transitions: Floats | None, size: int
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which first states (K,) and transitions (K, K) may happen: zeros of start values are kept."""
    if topology not in TOPOLOGIES:
        raise OptionError(f"topology is {topology!r}; expected one of {listing(TOPOLOGIES)}.")
    first = np.ones(size, bool) if initial is None else initial > 0
    pairs = np.ones((size, size), bool) if transitions is None else transitions > 0
    if topology is None:
        return first, pairs
    away = np.arange(size)[None, :] - np.arange(size)[:, None]
    forward = away >= 0 if topology == "left-right" else (away == 0) | (away == 1)
    if transitions is None:
        pairs = forward
    elif (pairs & ~forward).any():
        raise OptionError(f"transitions has a cell above 0 that topology={topology!r} forbids.")
    return (np.arange(size) == 0 if initial is None else first), pairs


def read_fixed(fixed: Any) -> frozenset[str]:
    """The names of the parts that are not learned."""
    names = [fixed] if isinstance(fixed, str) else list(fixed or ())
    unknown = [name for name in names if name not in PARTS]
    if unknown:
        raise OptionError(f"fixed names {listing(unknown)}; expected some of {listing(PARTS)}.")
    return frozenset(names)


def read_tied(tied: Any, states: Sequence[Hashable]) -> tuple[tuple[int, ...], ...]:
    """Groups of states that share one emission, as numbers."""
    if tied is None:
        return ()
    if isinstance(tied, str) or not isinstance(tied, Iterable):
        raise OptionError(f"tied is {tied!r}; expected groups of states such as [('a', 'b')].")
    groups: list[tuple[int, ...]] = []
    seen: set[int] = set()
    places = {state: at for at, state in enumerate(states)}
    for group in tied:
        unknown = [state for state in group if state not in places]
        if unknown:
            raise OptionError(f"tied names {listing(unknown)}; the states are {listing(states)}.")
        numbers = tuple(places[state] for state in group)
        if len(set(numbers)) < 2 or seen & set(numbers) or len(set(numbers)) != len(numbers):
            raise OptionError(f"tied has the group {group!r}; expected two states or more, each in one group only.")
        seen |= set(numbers)
        groups.append(numbers)
    return tuple(groups)
