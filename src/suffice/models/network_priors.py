"""From what a user writes as `prior=` to the pseudo-counts of each table."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from typing import Any

import numpy as np

from suffice.domain import Domain
from suffice.errors import OptionError, listing
from suffice.families.linear_gaussian_prior import LinearGaussianPrior
from suffice.families.normal_wishart import NormalWishart
from suffice.models.linear_gaussian_learner import JointPrior
from suffice.models.table_node import DirichletRows
from suffice.table import Table

#: Pseudo-counts of each cell for the priors that have a name; q parent configurations, r states, sample size s.
NAMED: dict[str, Callable[[float, int, int], float]] = {
    "bdeu": lambda size, q, r: size / (q * r),
    "k2": lambda size, q, r: 1.0,
    "jeffreys": lambda size, q, r: 0.5,
}


def table_prior(prior: Any, domain: Domain, sample_size: float) -> DirichletRows | None:
    """Pseudo-counts for the family `domain` (parents, node); None for maximum likelihood.

    `prior` is a number (that many pseudo-counts in each cell), a name ("bdeu", "k2", "jeffreys"), a labelled `Table` or
    an array with axes (parents, node), a dict by node, or a fitted network whose joint probabilities, times the
    equivalent sample size, are the pseudo-counts (BDe).
    """
    name = domain.names[-1]
    if isinstance(prior, Mapping):
        for key in prior:
            if isinstance(key, str) and key in NAMED and key not in domain and not isinstance(prior[key], Mapping):
                raise OptionError(f"A dict prior goes by node; {key!r} is the name of a prior. Write prior={key!r}.")
        return table_prior(prior.get(name), domain, sample_size)
    if prior is None or isinstance(prior, LinearGaussianPrior | NormalWishart):
        return None
    if isinstance(prior, str):
        return DirichletRows(np.asarray(_named(prior, domain, sample_size)))
    if isinstance(prior, Table):
        return DirichletRows(_checked(_labelled(prior, domain), name))
    if hasattr(prior, "joint_marginal"):
        return DirichletRows(sample_size * _labelled(prior.joint_marginal(domain.names), domain))
    if isinstance(prior, int | float | np.number) and not isinstance(prior, bool):
        return DirichletRows(_checked(np.asarray(float(prior)), name))
    array = np.asarray(prior)
    if array.dtype.kind in "iuf" and array.shape == domain.shape(domain.names):
        return DirichletRows(_checked(array.astype(np.float64), name))
    raise OptionError(
        f"The prior of {name!r} is {prior!r}; expected a number, {', '.join(map(repr, NAMED))}, a Table or an "
        "array of shape "
        f"{domain.shape(domain.names)} (parents, node), a dict by node, or a fitted network."
    )


def linear_prior(prior: Any, node: Hashable, names: tuple[Hashable, ...]) -> LinearGaussianPrior | JointPrior | None:
    """The prior of a linear-Gaussian node; None (maximum likelihood) where `prior` speaks of tables only.

    A `NormalWishart` is one joint law of all real columns, in the order of `names`.
    """
    if isinstance(prior, Mapping):
        prior = prior.get(node)
    if isinstance(prior, NormalWishart):
        return JointPrior(prior, names)
    return prior if isinstance(prior, LinearGaussianPrior) else None


def _named(prior: str, domain: Domain, sample_size: float) -> float:
    if prior.lower() not in NAMED:
        raise OptionError(f"prior is {prior!r}; the priors with a name are {listing(NAMED)}.")
    if not (math.isfinite(sample_size) and sample_size > 0):
        raise OptionError(f"equivalent_sample_size is {sample_size!r}; expected a positive number.")
    shape = domain.shape(domain.names)
    return NAMED[prior.lower()](sample_size, math.prod(shape[:-1]), shape[-1])


def _labelled(table: Table, domain: Domain) -> Any:
    """The values of a table laid out as (parents, node), states by label."""
    if set(table.variables) != set(domain.names):
        raise OptionError(
            f"The prior of {domain.names[-1]!r} is a table over {listing(table.variables)}; expected "
            f"{listing(domain.names)}."
        )
    return (Table(domain, np.zeros(domain.shape(domain.names))) + table).values


def _checked(alpha: Any, name: Hashable) -> Any:
    if not (np.isfinite(alpha).all() and (alpha > 0).all()):
        raise OptionError(f"The prior of {name!r} holds pseudo-counts that are not positive; expected numbers above 0.")
    return alpha
