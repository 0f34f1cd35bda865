"""What is known about some nodes: states, values, and likelihoods of states (soft evidence)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.domain import Domain, Variable, as_python
from suffice.errors import (
    DataError,
    EstimateError,
    LeftOutWarning,
    MissingColumnError,
    OptionError,
    SufficeError,
    UnknownStateError,
    listing,
    meant,
    shortened,
    warn,
)
from suffice.options import doubles
from suffice.records import record

#: One variable by its name, or a list of them.
Names = Hashable | Sequence[Hashable]
#: The largest likelihood of soft evidence: products and sums of larger ones would leave the range of floats.
MOST_LIKELIHOOD = 1e100
#: What follows from each row (n, ...), and which rows are possible (n,): from the others nothing follows.
RowDistributions = tuple[Floats, NDArray[np.bool_]]

#: Cells of the largest table that is kept or shown in full.
MOST_CELLS = 2**24
BY_SAMPLES = "Ask approximately, by weighted samples: query(..., engine='sampling')."


@record(frozen=True)
class Evidence:
    """Codes of discrete nodes, values of real ones, and likelihoods (card,) of the states of discrete ones."""

    states: dict[Hashable, int]
    values: dict[Hashable, float]
    likelihoods: dict[Hashable, Floats]

    @property
    def known(self) -> dict[Hashable, Any]:
        """Codes and values together."""
        return {**self.states, **self.values}

    @property
    def names(self) -> list[Hashable]:
        """All nodes that something is known about."""
        return [*self.states, *self.values, *self.likelihoods]


def checked_given(given: Any) -> Mapping[Any, Any] | None:
    """What is known by node, before any of it is read."""
    if given is not None and not isinstance(given, Mapping):
        raise OptionError(
            f"given is a {type(given).__name__}; expected a dict of states and values by node. For many rows of "
            "evidence use query_rows."
        )
    return given


def read_evidence(domain: Domain, given: Mapping[Any, Any] | None) -> Evidence:
    """Evidence by label, checked: a state or a value by node; a dict by state or an array of all is soft evidence."""
    evidence = Evidence({}, {}, {})
    for name, value in (checked_given(given) or {}).items():
        variable = domain[name]
        soft = isinstance(value, Mapping | np.ndarray | list)
        if variable.kind != "discrete":
            evidence.values[name] = _number(variable, value)
        elif soft:
            evidence.likelihoods[name] = _likelihoods(variable, value)
        else:
            evidence.states[name] = _code(variable, value)
    return evidence


def _code(variable: Variable, state: Hashable) -> int:
    try:
        return variable.index(state)
    except UnknownStateError:
        raise UnknownStateError(
            f"The evidence gives {variable.name!r} the state {shortened(as_python(state))}, which it does not "
            f"have.{meant(state, variable.states)} Its states are: {listing(variable.states)}."
        ) from None


def _number(variable: Variable, value: Any) -> float:
    if isinstance(value, Mapping | np.ndarray | list):
        raise OptionError(f"Soft evidence is for discrete nodes; {variable.name!r} holds numbers. Give one number.")
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = np.nan
    if not np.isfinite(number):
        raise DataError(f"The evidence gives {variable.name!r} the value {value!r}; expected a finite number.")
    return number


def _likelihoods(variable: Variable, value: Any) -> Floats:
    try:
        if isinstance(value, Mapping):
            weights = np.zeros(variable.card)
            for state, weight in value.items():
                weights[_code(variable, state)] = weight
        else:
            weights = doubles(value)
    except (TypeError, ValueError) as error:
        if isinstance(error, SufficeError):
            raise
        weights = np.empty(0)
    fine = weights.shape == (variable.card,) and ((weights >= 0) & (weights <= MOST_LIKELIHOOD)).all()
    if not fine or not weights.any():
        raise OptionError(
            f"The likelihoods of {variable.name!r} are {value!r}; expected {variable.card} numbers of at least 0 and "
            f"at most {MOST_LIKELIHOOD:g}, not all 0. Only their ratios tell the states apart. "
            "Many rows of evidence are a frame, or an array with columns=."
        )
    return weights


def known_columns(domain: Domain, columns: Sequence[Hashable]) -> list[Variable]:
    """The variables of the domain that the data have a column of; data without any are an error."""
    known = [variable for variable in domain.variables if variable.name in columns]
    if not known:
        raise MissingColumnError(
            f"No column of the data is a node: the columns are {listing(columns)}, and the nodes are "
            f"{listing(domain.names)}. Rename the columns, or name those of an array with columns=."
        )
    others = [column for column in columns if column not in domain]
    for variable in domain.variables if others else ():
        near = "" if variable.name in columns else meant(variable.name, others, cutoff=0.75)
        if near:
            warn(
                f"There is no column of the node {variable.name!r}, which is summed out, and a column that is no node."
                f"{near} Rename that column if it is meant, or leave it out.",
                LeftOutWarning,
            )
    return known


def check_possible(possible: NDArray[np.bool_], number: Callable[[int], int] = int) -> None:
    """Raise where some rows (n,) have probability or density 0, naming the first: nothing follows from them.

    number: the number that a row has in its table.
    """
    impossible = np.flatnonzero(~possible)
    if len(impossible):
        raise EstimateError(
            f"{len(impossible)} rows have probability 0 under the network, the first is row "
            f"{number(int(impossible[0]))}. Fit with a prior, so that every event keeps some probability."
        )
