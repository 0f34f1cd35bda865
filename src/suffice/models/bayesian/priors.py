"""From what a user writes as `prior=` to the prior of each node."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from typing import Any

import numpy as np

from suffice.array_types import Floats
from suffice.checks import is_real
from suffice.domain import Domain
from suffice.errors import OptionError, listing, shortened
from suffice.families.base import SMALLEST_NORMAL, as_array, as_numbers
from suffice.families.linear_gaussian_prior import LinearGaussianPrior
from suffice.families.normal_inverse_gamma import NormalInverseGamma
from suffice.families.normal_wishart import NormalWishart
from suffice.models.bayesian.label_indexed import by_label, labelled
from suffice.models.bayesian.nodes.linear_gaussian_learner import JointPrior
from suffice.models.bayesian.nodes.table_learner import DirichletRows

#: Pseudo-counts of each cell for the priors that have a name; q parent configurations, r states, sample size s.
NAMED: dict[str, Callable[[float, int, int], float]] = {
    "bdeu": lambda size, q, r: size / (q * r),
    "k2": lambda size, q, r: 1.0,
    "jeffreys": lambda size, q, r: 0.5,
}
#: Pseudo-counts whose sums over a table, and the log-gamma functions of those, are numbers.
MOST_COUNTS = 1e300
#: Priors of regressions, which say nothing about tables.
OF_REALS = (LinearGaussianPrior, NormalWishart, NormalInverseGamma)


# --------------------------------------------------------------------------------------------------------------------
# The option as a whole
# --------------------------------------------------------------------------------------------------------------------


def check_sample_size(size: Any) -> None:
    """Refuse an equivalent sample size that is not a positive number, whether a prior uses it or not."""
    if not (is_real(size) and 1 / MOST_COUNTS <= size <= MOST_COUNTS):
        raise OptionError(f"equivalent_sample_size is {shortened(size)}; expected a positive number up to 1e+300.")


def check_prior(prior: Any, domain: Domain) -> None:
    """Refuse a prior of the whole network that no node would use, or that can only belong to one node."""
    if prior is None or isinstance(prior, Mapping):
        return
    kinds = {variable.kind == "discrete" for variable in domain.variables}
    if isinstance(prior, OF_REALS):
        if False not in kinds:
            raise OptionError(
                f"prior={prior!r} has no effect: it is for nodes of real numbers, and all nodes are discrete."
            )
        return
    if isinstance(prior, str):
        _known_name(prior)
    elif is_real(prior):
        _checked(as_numbers(prior, "prior"), "the network")
    elif not hasattr(prior, "joint_marginal") and len(domain) > 1:
        raise OptionError(
            f"prior is {_short(prior)}, for all nodes; expected a number, {', '.join(map(repr, NAMED))}, a fitted "
            "network, a LinearGaussianPrior or a NormalWishart. An array, a table or pseudo-counts by state belong to "
            "one node: give a dict by node, prior={node: ...}."
        )
    if True not in kinds:
        raise OptionError(
            f"prior={_short(prior)} has no effect: it is for tables, and there is no table node. Nodes of real numbers "
            "take a LinearGaussianPrior or a NormalWishart."
        )


def _of_node(prior: Any, node: Hashable) -> tuple[Any, bool]:
    """What a prior says about a node, and whether it speaks of that node alone."""
    return (prior.get(node), True) if isinstance(prior, Mapping) else (prior, False)


def _short(prior: object) -> str:
    text = " ".join(repr(prior).split())
    return text if len(text) <= 80 else f"{text[:77]}..."


def _known_name(prior: str) -> str:
    if prior.lower() not in NAMED:
        raise OptionError(f"prior is {prior!r}; the priors with a name are {listing(NAMED)}.")
    return prior.lower()


# --------------------------------------------------------------------------------------------------------------------
# Each kind of node
# --------------------------------------------------------------------------------------------------------------------


def table_prior(prior: Any, domain: Domain, sample_size: float) -> DirichletRows | None:
    """Pseudo-counts for the family `domain` (parents, node); None for maximum likelihood.

    `prior` is a number (that many pseudo-counts in each cell), a name ("bdeu", "k2", "jeffreys"), a labelled `Table`,
    DataFrame or Series, an array with axes (parents, node), pseudo-counts by state of a node without parents, a dict of
    all these by node, or a fitted network whose joint probabilities, times the equivalent sample size, are the
    pseudo-counts (BDe).
    """
    name = domain.names[-1]
    prior, alone = _of_node(prior, name)
    if prior is None or (isinstance(prior, OF_REALS) and not alone):
        return None
    if isinstance(prior, str):
        shape = domain.shape(domain.names)
        return DirichletRows(np.asarray(NAMED[_known_name(prior)](sample_size, math.prod(shape[:-1]), shape[-1])))
    if hasattr(prior, "joint_marginal"):
        return DirichletRows(_from_network(prior, domain, sample_size))
    if is_real(prior):
        return DirichletRows(_checked(as_numbers(prior, "prior"), repr(name)))
    array = as_array(prior if isinstance(prior, OF_REALS) else by_label(prior, domain, "prior"), "prior")
    if array.dtype.kind in "iuf" and array.shape == domain.shape(domain.names):
        return DirichletRows(_checked(array.astype(np.float64), repr(name)))
    raise OptionError(
        f"The prior of {name!r}, a table, is {_short(prior)}; expected a number, {', '.join(map(repr, NAMED))}, a "
        f"Table, a DataFrame or an array of shape {domain.shape(domain.names)} (parents, node), a dict by node, or a "
        "fitted network."
    )


def _from_network(prior: Any, domain: Domain, sample_size: float) -> Any:
    """Pseudo-counts of a family from the joint distribution of a prior network; each must be positive."""
    check_sample_size(sample_size)
    lacking = [name for name in domain.names if name not in prior.nodes]
    if lacking:
        raise OptionError(
            f"The prior network has no node {listing(lacking)}, which the prior of {domain.names[-1]!r} needs; its "
            f"nodes are {listing(prior.nodes)}. Add what is missing there, or give priors by node, prior={{node: ...}}."
        )
    alpha = sample_size * labelled(prior.joint_marginal(domain.names), domain, "prior")
    if not (alpha > 0).all():
        index = np.argwhere(~(alpha > 0))[0]
        cell = {v.name: v.states[int(code)] for v, code in zip(domain.variables, index, strict=True)}
        raise OptionError(
            f"The prior network gives {domain.names[-1]!r} no pseudo-counts at {cell!r}, which has probability 0 "
            "there; a Dirichlet prior needs each above 0. Learn the prior network with a prior= of its own, or give "
            "pseudo-counts by node."
        )
    return alpha


def linear_prior(
    prior: Any, family: Domain, names: tuple[Hashable, ...]
) -> LinearGaussianPrior | NormalInverseGamma | JointPrior | None:
    """The prior of a linear-Gaussian node; None (maximum likelihood) where the network's prior speaks of tables only.

    A `NormalWishart` is one joint distribution of all real columns `names`.
    """
    node = family.names[-1]
    prior, alone = _of_node(prior, node)
    if isinstance(prior, NormalWishart):
        return JointPrior.of(prior, names)
    if prior is None or isinstance(prior, LinearGaussianPrior):
        return prior
    real = [variable.name for variable in family.variables[:-1] if variable.kind != "discrete"]
    if isinstance(prior, NormalInverseGamma) and not real:
        return prior
    if not alone and not isinstance(prior, NormalInverseGamma):
        return None
    why = f" A NormalInverseGamma is for nodes without real parents; these are {listing(real)}." if real else ""
    raise OptionError(
        f"The prior of {node!r}, a linear-Gaussian node, is {_short(prior)}; expected a LinearGaussianPrior, or a "
        f"NormalWishart of all real columns.{why if isinstance(prior, NormalInverseGamma) else ''}"
    )


def noisy_prior(prior: Any, domain: Domain, title: str) -> float | None:
    """The pseudo-counts of each cause of a noisy-OR or noisy-MAX node: a number, "k2" (1) or "jeffreys" (1/2)."""
    name = domain.names[-1]
    prior, alone = _of_node(prior, name)
    if prior is None or (isinstance(prior, OF_REALS) and not alone):
        return None
    if isinstance(prior, str) and prior.lower() in ("k2", "jeffreys"):
        return NAMED[prior.lower()](1.0, 1, 2)
    if is_real(prior):
        return float(_checked(as_numbers(prior, "prior"), repr(name)))
    raise OptionError(
        f"The prior of the {title} node {name!r} is {_short(prior)}; expected a number of pseudo-counts, 'k2' or "
        "'jeffreys'. Give the priors of the nodes apart, in a dict by node."
    )


def _checked(alpha: Floats, of: str) -> Floats:
    wrong = ~(np.isfinite(alpha) & (alpha >= SMALLEST_NORMAL) & (alpha <= MOST_COUNTS))
    if wrong.any():
        value = float(np.asarray(alpha)[wrong].ravel()[0])
        if not value > 0:
            raise OptionError(
                f"The prior of {of} holds {value!r}, which is not positive; expected numbers above 0. Leave prior= "
                f"out for none."
            )
        raise OptionError(
            f"The prior of {of} holds {value!r}; expected pseudo-counts from {SMALLEST_NORMAL:.3g} to {MOST_COUNTS:g}, "
            "whose sums are numbers of float64."
        )
    return alpha
