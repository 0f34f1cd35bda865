"""All linear-Gaussian nodes of a network at once: nodes with as many parents share one solve.

A node by itself costs little arithmetic and many small steps. Stacked by their number of parents, a hundred nodes take
as many steps as a few.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np

from suffice.array_types import Floats
from suffice.domain import Domain
from suffice.families.regression import Products, least_squares
from suffice.models.bayesian.nodes.contract import Figures, largest
from suffice.models.bayesian.nodes.linear_gaussian import LinearGaussianNode
from suffice.models.bayesian.nodes.linear_gaussian_learner import JointPrior, LinearGaussianLearner, maximum, posterior
from suffice.models.bayesian.nodes.lookup import numbers_alike
from suffice.models.bayesian.nodes.regression_objective import RegressionObjective, finite
from suffice.statistics import Moments, Summary

T = TypeVar("T")


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

    def key(number: int) -> Hashable:
        learner = learners[number]
        return None if isinstance(learner.prior, JointPrior) else (learner, *_size(learner.pool, domains[number]))

    nodes: dict[int, LinearGaussianNode] = {}
    for alike, chosen in numbers_alike(len(learners), key).items():
        some = [domains[number] for number in chosen]
        products = None if alike is None else _stacked(some, learners[chosen[0]].pool, summary)
        if products is None:
            nodes |= {number: learners[number].learn(domains[number], summary) for number in chosen}
        else:
            nodes |= dict(zip(chosen, _learned(learners[chosen[0]], some, products), strict=True))
    return [nodes[number] for number in range(len(learners))]


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


class RegressionFigures(Figures):
    """Figures of several fitted regressions, from stacks of nodes that are alike."""

    @cached_property
    def _stacks(self) -> list[tuple[list[int], RegressionObjective, Floats, Floats]]:
        """Numbers of nodes, their objective, and their weights (k, q) and variances (k,)."""

        def key(number: int) -> Hashable:
            node = self.nodes[number]
            return None if node.estimate == "given" else (node.estimate, id(node.prior), *_size(node.pool, node.domain))

        stacks = []
        for alike, chosen in numbers_alike(len(self.nodes), key).items():
            some = [self.nodes[number] for number in chosen]
            products = None if alike is None else _stacked([node.domain for node in some], some[0].pool, self.summary)
            if products is not None:
                objective = RegressionObjective(products, some[0].prior, some[0].estimate)
                weights, variance = [node.weights for node in some], [node.variance for node in some]
                stacks.append((chosen, objective, np.concatenate(weights), np.concatenate(variance)))
        return stacks

    def _each(
        self,
        alone: Callable[[LinearGaussianNode], T],
        together: Callable[[RegressionObjective, Floats, Floats], Floats],
    ) -> list[float | T]:
        figures: dict[int, float] = {}
        for chosen, objective, weights, variance in self._stacks:
            figures |= dict(zip(chosen, together(objective, weights, variance).tolist(), strict=True))
        return [figures[number] if number in figures else alone(node) for number, node in enumerate(self.nodes)]

    def log_likelihoods(self) -> list[float]:
        """``node.log_likelihood(summary)`` of each node."""
        return self._each(lambda node: node.log_likelihood(self.summary), RegressionObjective.log_likelihoods)

    def gaps(self) -> list[float]:
        """``node.gap(summary)`` of each node."""
        return self._each(lambda node: node.gap(self.summary), RegressionObjective.gaps)

    def steepest(self) -> tuple[float, float]:
        """The largest of ``node.steepest(summary)``."""
        stacked = {number for chosen, *_ in self._stacks for number in chosen}
        alone = [node.steepest(self.summary) for number, node in enumerate(self.nodes) if number not in stacked]
        return largest(
            [*alone, *(objective.steepest(weights, variance) for _, objective, weights, variance in self._stacks)]
        )

    def loss_bounds(self) -> list[float | None]:
        """``node.loss_bound(summary)`` of each node."""
        losses = self._each(lambda node: node.loss_bound(self.summary), RegressionObjective.losses)
        return [None if loss is None else finite(loss) for loss in losses]


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
    axis = {name: number for number, name in enumerate(pool)}
    return Products.of_each(moments, np.array([[axis[name] for name in domain.names] for domain in domains]))
