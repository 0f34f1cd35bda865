"""Interventions: nodes that are set from outside in some slices, or in all of them (Pearl's do-operator).

A node that is set has a value and no distribution: the factor of its family is left out in those slices, and the value
is seen there. What is then asked is asked of the mutilated network of all slices.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.array_types import Ints
from suffice.domain import Domain
from suffice.errors import OptionError, listing
from suffice.models.bayesian.intervention import read_intervention
from suffice.models.dynamic_network.series import Series
from suffice.models.dynamic_network.structure import is_timed

if TYPE_CHECKING:
    from suffice.models.dynamic_network.fitted import DynamicFitted

#: By node and slice (None: all slices) its code or number.
Interventions = dict[tuple[Hashable, int | None], Any]


def read_do(fitted: DynamicFitted, do: Any, slices: int) -> Interventions:
    """What nodes are set to: by name in all slices, by ``(node, slice)`` in one of so many, counted from 0."""
    if not isinstance(do, Mapping):
        raise OptionError(f"do is a {type(do).__name__}; expected a dict of states and values by node.")
    read: Interventions = {}
    for name, value in do.items():
        node, number = _named(fitted, name, slices)
        own = Domain([fitted.domain[node]])
        (read[node, number],) = read_intervention(own, {node: value}).known.values()
    return read


def _named(fitted: DynamicFitted, name: Any, slices: int) -> tuple[Hashable, int | None]:
    """The node and the slice that a name means."""
    nodes = fitted.structure.nodes
    node, number = (name, None) if name in nodes or not is_timed(name) else (name[0], int(name[1]))
    if node not in nodes:
        given = " It is given as it is: change its values." if node in fitted.structure.inputs else ""
        raise OptionError(f"do= sets {node!r}, which is no node.{given} The nodes are: {listing(nodes)}.")
    if number is not None and not 0 <= number < slices:
        raise OptionError(f"do= sets {node!r} in slice {number}; there are {slices}, counted from 0.")
    return node, number


def under(fitted: DynamicFitted, series: Series, do: Any, later: int | None = None) -> Series:
    """The series with the nodes that are set from outside.

    later: how many slices at the end of each series interventions are about, which are counted from the first of them;
    None for all slices.
    """
    if do is None:
        return series
    longest = int(series.lengths.max()) if later is None else later
    columns, cut = dict(series.columns), {n: mask.copy() for n, mask in series.cut.items()}
    # What is said of one slice outweighs what is said of all.
    read = sorted(read_do(fitted, do, longest).items(), key=lambda entry: entry[0][1] is not None)
    for (node, number), value in read:
        rows = _rows(series, number, later)
        if node not in columns:
            numbers = fitted.domain[node].kind != "discrete"
            columns[node] = np.full(series.n_slices, np.nan if numbers else -1, np.float64 if numbers else np.int32)
        own = columns[node].copy()
        gone = own[rows] < 0 if own.dtype.kind == "i" else np.isnan(own[rows])
        mask = cut.setdefault(node, np.zeros(series.n_slices, bool))
        other = ~gone & ~mask[rows] & (own[rows] != value)
        if other.any():
            where = series.where(int(rows[other.argmax()]))
            raise OptionError(
                f"do= sets {node!r} and the data show another value in {where}: what would have been cannot be asked "
                "together with what was. Leave these values out of the data, or set only slices that are to come."
            )
        own[rows] = value
        columns[node] = own
        mask[rows] = True
    variables = [*series.domain.variables, *(fitted.domain[n] for n in columns if n not in series.domain)]
    return replace(series, columns=columns, cut=cut, domain=Domain(variables))


def _rows(series: Series, number: int | None, later: int | None) -> Ints:
    """The slices that an intervention is about."""
    first = np.zeros(series.n_series, np.int64) if later is None else series.lengths - later
    since = series.place - first[series.owner]
    return np.flatnonzero(since >= 0 if number is None else since == number)
