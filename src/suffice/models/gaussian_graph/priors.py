"""Priors of a Gaussian graph: what the rows and the prior together ask for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from suffice.answers import MomentSums
from suffice.array_types import Floats
from suffice.errors import EstimateError, OptionError, listing
from suffice.families.normal import Normal
from suffice.families.normal_wishart import NormalWishart
from suffice.families.wishart import Wishart
from suffice.models.gaussian_graph.structure import GraphStructure
from suffice.solvers.covariance_newton import Ridge


@dataclass(frozen=True)
class Target:
    """The mean, and the objective of the precision: ``weight (log det K - tr(S K)) / 2``, less a ridge."""

    mean: Floats
    S: Floats
    weight: float
    ridge: Ridge | None = None


def read_prior(prior: object, structure: GraphStructure, moments: MomentSums, mean: Floats | None) -> Target:
    """What to maximise with a prior on the precision.

    A Wishart density multiplies the likelihood by ``|K|^((dof - p - 1)/2) exp(-tr(T K)/2)``: it acts as
    ``dof - p - 1`` more rows whose products add up to T. A normal-Wishart one also gives the mean a distribution whose
    density at its centre grows as ``|K|^(1/2)``: the mode of both together counts one row more. On a graph the density
    is that of the Wishart distribution restricted to the precisions of the graph. mean: the known mean; None where it
    is free.
    """
    centre = moments.mean if mean is None else mean
    scatter = moments.scatter if mean is None else moments.scatter_about(mean)
    if prior is None:
        return Target(centre, scatter / moments.weight, moments.weight)
    if isinstance(prior, Normal):
        return Target(centre, scatter / moments.weight, moments.weight, _ridge(prior, structure))
    if isinstance(prior, NormalWishart):
        if mean is not None:
            raise OptionError(
                "A NormalWishart prior is for a free mean; with a known one give Wishart(dof, inverse_scale)."
            )
        distribution = prior.marginal(_places(prior, structure, len(prior.mean_)))
        posterior = distribution._updated(moments.weight, moments.mean, moments.scatter)
        return _conjugate(posterior.mean_, posterior.inverse_scale_, posterior.dof_ - len(structure.nodes))
    if isinstance(prior, Wishart):
        dimensions = _places(prior, structure, len(prior.inverse_scale_))
        scale = prior.inverse_scale_[np.ix_(dimensions, dimensions)]
        return _conjugate(centre, scatter + scale, moments.weight + prior.dof_ - len(dimensions) - 1)
    raise OptionError(
        f"The prior is {prior!r}; a Gaussian graph takes Wishart(dof, inverse_scale), NormalWishart(...), or "
        "Normal(mean, variance) on the entries of the precision (ridge)."
    )


def _conjugate(mean: Floats, scatter: Floats, weight: float) -> Target:
    if not weight > 0:
        raise EstimateError(
            f"The posterior density has no mode: rows and prior together count {weight:g}, not above 0. Use a "
            "larger dof."
        )
    return Target(mean, scatter / weight, weight)


def _places(prior: Any, structure: GraphStructure, size: int) -> list[int]:
    """The dimensions of the prior in the order of the nodes: by name where it has names."""
    names = prior.get_params(deep=False)["names"]
    if names is None:
        if size != len(structure.nodes):
            raise OptionError(f"The prior has {size} dimensions and the graph {len(structure.nodes)} nodes.")
        return list(range(size))
    if set(names) != set(structure.nodes):
        raise OptionError(f"The prior names {listing(names)}; the graph has {listing(structure.nodes)}.")
    return [list(names).index(node) for node in structure.nodes]


def _ridge(prior: Normal, structure: GraphStructure) -> Ridge:
    """One mean and variance for all free entries, or one for each: the diagonal, then the edges."""
    size = len(structure.nodes) + len(structure.edges)
    values_of = []
    for what in ("mean", "variance"):
        values = np.asarray(getattr(prior, f"{what}_"), dtype=np.float64)
        if values.shape not in ((), (size,)):
            raise OptionError(
                f"The {what} of the prior has shape {values.shape}; expected one number, or {size}: the diagonal of "
                "the precision, then the edges in order."
            )
        values_of.append(np.broadcast_to(values, (size,)))
    return Ridge(values_of[0], 1.0 / values_of[1])
