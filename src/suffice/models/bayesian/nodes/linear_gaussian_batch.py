"""All linear-Gaussian nodes of a network at once: nodes with as many parents share one solve.

A node by itself costs little arithmetic and many small steps. Stacked by their number of parents, a hundred nodes take
as many steps as a few.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from suffice.domain import Domain
from suffice.families.regression import Products, least_squares
from suffice.models.bayesian.nodes.linear_gaussian import (
    LinearGaussianNode,
    finite,
    gaps,
    log_likelihoods,
    losses,
)
from suffice.models.bayesian.nodes.linear_gaussian_learner import JointPrior, LinearGaussianLearner, maximum, posterior
from suffice.models.bayesian.nodes.lookup import numbers_alike
from suffice.statistics import Moments, Summary


@dataclass(frozen=True)
class BatchLearner(LinearGaussianLearner):
    """A linear-Gaussian learner that learns several nodes in one solve."""

    @classmethod
    def learn_many(
        cls, learners: Sequence[LinearGaussianLearner], domains: Sequence[Domain], summary: Summary
    ) -> list[LinearGaussianNode]:
        """Nodes with as many parents together."""
        return learn_together(learners, domains, summary)


def learn_together(
    learners: Sequence[LinearGaussianLearner], domains: Sequence[Domain], summary: Summary
) -> list[LinearGaussianNode]:
    """The fitted nodes, as each learner alone would fit them."""

    def key(at: int) -> Hashable:
        learner = learners[at]
        return None if isinstance(learner.prior, JointPrior) else (learner, *_size(learner.pool, domains[at]))

    found: dict[int, LinearGaussianNode] = {}
    for alike, chosen in numbers_alike(len(learners), key).items():
        some = [domains[at] for at in chosen]
        products = None if alike is None else _stacked(some, learners[chosen[0]].pool, summary)
        if products is None:
            found |= {at: learners[at].learn(domains[at], summary) for at in chosen}
        else:
            found |= dict(zip(chosen, _learned(learners[chosen[0]], some, products), strict=True))
    return [found[at] for at in range(len(learners))]


def _learned(learner: LinearGaussianLearner, domains: Sequence[Domain], products: Products) -> list[LinearGaussianNode]:
    """One node for each configuration of the products."""
    cells, each = np.zeros((1, 0), dtype=np.int32), [slice(k, k + 1) for k in range(len(domains))]
    prior = learner.prior_of(domains[0])
    if prior is None:
        solved = least_squares(products)
        return [
            maximum(learner, domain, products[one], cells, solved[one])
            for domain, one in zip(domains, each, strict=True)
        ]
    solved, squares = prior.solve(products)
    return [
        posterior(learner, domain, products[one], cells, prior, solved[one], squares[one])
        for domain, one in zip(domains, each, strict=True)
    ]


def log_likelihoods_of(nodes: Sequence[LinearGaussianNode], summary: Summary) -> list[float]:
    """``node.log_likelihood(summary)`` of each node."""

    def together(some: Sequence[LinearGaussianNode], products: Products) -> Any:
        return log_likelihoods(products, *_numbers(some))

    return _each(nodes, summary, lambda node: node.log_likelihood(summary), together)


def gaps_of(nodes: Sequence[LinearGaussianNode], summary: Summary) -> list[float]:
    """``node.gap(summary)`` of each node."""

    def together(some: Sequence[LinearGaussianNode], products: Products) -> Any:
        return gaps(products, some[0].prior, some[0].estimate, *_numbers(some))

    return _each(nodes, summary, lambda node: node.gap(summary), together)


def loss_bounds_of(nodes: Sequence[LinearGaussianNode], summary: Summary) -> list[float | None]:
    """``node.loss_bound(summary)`` of each node."""

    def together(some: Sequence[LinearGaussianNode], products: Products) -> Any:
        return losses(products, some[0].prior, some[0].estimate, *_numbers(some))

    found: list[Any] = _each(nodes, summary, lambda node: cast(float, node.loss_bound(summary)), together)
    return [None if value is None else finite(value) for value in found]


def _numbers(nodes: Sequence[LinearGaussianNode]) -> tuple[Any, Any]:
    """Weights (k, q) and variances (k,) of nodes without discrete parents."""
    return np.concatenate([node.weights for node in nodes]), np.concatenate([node.variance for node in nodes])


def _each(
    nodes: Sequence[LinearGaussianNode],
    summary: Summary,
    alone: Callable[[LinearGaussianNode], float],
    together: Callable[[Sequence[LinearGaussianNode], Products], Any],
) -> list[float]:
    """A figure of each node, by stacks of alike nodes where that is possible."""

    def key(at: int) -> Hashable:
        node = nodes[at]
        return (node.estimate, id(node.prior), *_size(node.pool, node.domain)) if node.estimate != "given" else None

    found: dict[int, float] = {}
    for alike, chosen in numbers_alike(len(nodes), key).items():
        some = [nodes[at] for at in chosen]
        products = None if alike is None else _stacked([node.domain for node in some], some[0].pool, summary)
        values = [alone(node) for node in some] if products is None else together(some, products).tolist()
        found |= dict(zip(chosen, values, strict=True))
    return [found[at] for at in range(len(nodes))]


def _size(pool: tuple[Hashable, ...], domain: Domain) -> tuple[Hashable, ...]:
    """What nodes must have in common to be stacked: the pool, and the number of columns without a discrete one."""
    real = all(variable.kind != "discrete" for variable in domain.variables)
    return (pool, len(domain) if real else 0)


def _stacked(domains: Sequence[Domain], pool: tuple[Hashable, ...], summary: Summary) -> Products | None:
    """Products of families of one size, one configuration each; None where they do not come from one pool of rows."""
    if not pool or any(variable.kind == "discrete" for variable in domains[0].variables):
        return None
    moments = summary[Moments(pool)]
    if not moments.weight > 0:
        return None
    place = {name: at for at, name in enumerate(pool)}
    return Products.of_each(moments, np.array([[place[name] for name in domain.names] for domain in domains]))
