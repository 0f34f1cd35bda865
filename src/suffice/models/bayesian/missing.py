"""Values taken out of sampled rows completely at random, for testing what learns from incomplete data."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.checks import share
from suffice.domain import Domain
from suffice.errors import OptionError, listing, meant

Column = NDArray[Any]


def missing_rates(missing: object, domain: Domain) -> dict[Hashable, float]:
    """The share of missing cells of each node, from one number or from a dict by node."""
    by_node: dict[Hashable, Any] = (
        dict(missing) if isinstance(missing, Mapping) else dict.fromkeys(domain.names, missing)
    )
    unknown = [name for name in by_node if name not in domain]
    if unknown:
        raise OptionError(
            f"missing= names {listing(unknown)}, which is no node.{meant(unknown[0], domain.names)} The nodes are: "
            f"{listing(domain.names)}."
        )
    for name, rate in by_node.items():
        share(rate, f"The share of missing cells of {name!r}")
    return {name: float(by_node.get(name, 0.0)) for name in domain.names}


def with_missing(
    columns: Mapping[Hashable, Column], rates: Mapping[Hashable, float], domain: Domain, rng: np.random.Generator
) -> dict[Hashable, Column]:
    """The columns (n,) with missing values: None where there are states, NaN where there are numbers.

    Every node takes its uniform numbers whatever its rate is, so the missing values of one do not depend on the rate of
    another, and a higher rate keeps the missing values of a lower one.
    """
    thinned: dict[Hashable, Column] = {}
    for name, values in columns.items():
        gone = rng.random(len(values)) < rates[name]
        if rates[name] == 0:
            thinned[name] = values
        elif domain[name].kind == "discrete":
            thinned[name] = values.astype(object)
            thinned[name][gone] = None
        else:
            thinned[name] = np.where(gone, np.nan, values)
    return thinned
