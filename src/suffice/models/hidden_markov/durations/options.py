"""What a user says about durations: one description for all states, or one for each."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from suffice.array_types import Floats
from suffice.checks import is_real
from suffice.errors import OptionError, listing, shortened
from suffice.families.base import Distribution
from suffice.families.categorical import Categorical
from suffice.families.geometric import Geometric
from suffice.families.negative_binomial import NegativeBinomial
from suffice.families.poisson import Poisson
from suffice.models.hidden_markov.durations.distributions import (
    LARGEST,
    SMALLEST,
    Duration,
    NegativeBinomialDuration,
    PoissonDuration,
    Staying,
    TableDuration,
)
from suffice.models.hidden_markov.structure import read_rows

_EXPECTED = (
    "expected the longest number of steps of a table, its probabilities, Poisson(), NegativeBinomial() or Geometric(), "
    "for all states, or in a list or a dict by state"
)
#: Steps in a table.
MOST_STEPS = 100_000


def described(durations: object, states: Sequence[Hashable]) -> list[Any]:
    """The description of each state; states that a dict does not name stay by their transitions."""
    if durations is None:
        return []
    if isinstance(durations, Mapping):
        unknown = [state for state in durations if state not in states]
        if unknown:
            raise OptionError(f"durations names {listing(unknown)}; the states are {listing(states)}.")
        return [durations.get(state) for state in states]
    if isinstance(durations, list | tuple) or (isinstance(durations, np.ndarray) and durations.ndim == 2):
        if len(durations) != len(states):
            raise OptionError(
                f"durations has {len(durations)} entries; expected one for each of the {len(states)} states, or one "
                "description of all: a number, a distribution, or a dict by state."
            )
        return list(durations)
    return [durations] * len(states)


def read_durations(durations: object, states: Sequence[Hashable]) -> tuple[tuple[Duration, ...], tuple[bool, ...]]:
    """The distribution of each state, and whether its parameters are start values; none of them for a plain chain."""
    pairs = [_read(one) for one in described(durations, states)]
    if all(isinstance(duration, Staying) for duration, _ in pairs):
        return (), ()
    return tuple(duration for duration, _ in pairs), tuple(given for _, given in pairs)


def _read(given: Any) -> tuple[Duration, bool]:
    if given is None or isinstance(given, Geometric):
        _plain(given, "The start value of a state that stays by its transitions is in transitions=.")
        return Staying(), True
    if isinstance(given, int | np.integer) and not isinstance(given, bool):
        if not 1 <= given <= MOST_STEPS:
            raise OptionError(f"durations has the longest duration {given}; expected 1 to {MOST_STEPS:,} steps.")
        return TableDuration(np.full(int(given), 1.0 / int(given)), np.ones(int(given), bool)), False
    if isinstance(given, Poisson):
        rate = _known(given).get("rate")
        return PoissonDuration(1.0 if rate is None else float(rate)), rate is not None
    if isinstance(given, NegativeBinomial):
        return _negative_binomial(given)
    if isinstance(given, Distribution) and not isinstance(given, Categorical):
        raise OptionError(f"durations has {given!r}; {_EXPECTED}.")
    return _table(given), True


def _known(given: Distribution) -> dict[str, Any]:
    """The options of a distribution that takes no prior here."""
    options = given.get_params(deep=False)
    if options.get("prior") is not None or options.get("estimate") is not None:
        raise OptionError(
            f"durations has {given!r}; durations take no prior of their own. Leave it out, or give pseudo-counts to a "
            "table by prior={'durations': ...}."
        )
    return options


def _plain(given: Any, why: str) -> None:
    if given is not None and _known(given).get("probability") is not None:
        raise OptionError(f"durations has {given!r}, which is given. {why}")


def _negative_binomial(given: NegativeBinomial) -> tuple[Duration, bool]:
    options = _known(given)
    size, probability = options["size"], options["probability"]
    if size is not None and not (is_real(size) and SMALLEST <= size <= LARGEST):
        raise OptionError(f"durations has {given!r}; expected a size of {SMALLEST:g} to {LARGEST:g}.")
    if probability is None:
        return NegativeBinomialDuration(1.0, 1.0 if size is None else float(size), size is not None), False
    if size is None:
        raise OptionError(f"durations has {given!r}; a start value of the probability needs a size= beside it.")
    return NegativeBinomialDuration(float(size) * (1.0 / float(probability) - 1.0), float(size)), True


def _table(given: Any) -> TableDuration:
    if isinstance(given, Categorical):
        options = _known(given)
        steps, shares = list(options["states"] or ()), options["probabilities"]
        if shares is None or not all(isinstance(s, int | np.integer) and 1 <= s <= MOST_STEPS for s in steps):
            raise OptionError(f"durations has {given!r}; expected a given Categorical of numbers of steps 1, 2, ...")
        values: Floats = np.zeros(max(steps))
        values[np.array(steps) - 1] = shares
        given = values
    if isinstance(given, str) or np.ndim(given) != 1 or not len(given):
        raise OptionError(f"durations has {shortened(given)}; {_EXPECTED}.")
    rows = read_rows(given, (len(given),), "durations")
    assert rows is not None
    rows = rows[: int(np.flatnonzero(rows)[-1]) + 1]
    return TableDuration(rows, rows > 0)
