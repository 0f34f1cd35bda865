"""A log-linear model at given weights: its junction tree, log Z, expected features and their covariance."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Hashable, Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.engines.contract import Model
from suffice.engines.junction_tree import JunctionTree, TreeMoments, TreePlan, plan_tree
from suffice.engines.memory import in_words
from suffice.engines.registry import Planner
from suffice.engines.tree_covariance import TreeCovariance
from suffice.engines.tree_scaling import TreeScaling
from suffice.errors import SizeError
from suffice.models.markov.log_linear import ROUNDING, LogLinear
from suffice.solvers.table_newton import TableNewton, is_listed

Names = tuple[Hashable, ...]
#: Where a distribution is put on a face of the marginal polytope: scopes, with tables of 0 and minus infinity.
Masks = Sequence[tuple[Names, Floats]]

#: A covariance of more weights would not be worth its time and memory.
MOST_COVARIANCE = 6_000


class LogLinearFamily:
    """All distributions of a log-linear model, possibly put on a face: weights in, moments out."""

    def __init__(
        self, model: LogLinear, masks: Masks = (), *, plan: TreePlan | None = None, memory_limit: int | None = None
    ) -> None:
        """plan: a tree without masks, used if they need no further scopes; else one is planned when it is needed."""
        self.model = model
        self.masks = tuple((tuple(scope), np.asarray(table, dtype=np.float64)) for scope, table in masks)
        #: Scopes that only the masks need.
        self.extra_scopes = tuple(scope for scope, _ in self.masks if model.scope_number(scope) is None)
        self._given_plan, self._memory_limit = None if self.extra_scopes else plan, memory_limit
        self._offset, self._extra = self._mask_vectors()
        self._last_scaling: TreeScaling | None = None
        self._last_newton: TableNewton | None = None

    @cached_property
    def plan(self) -> TreePlan:
        """The junction tree of the model and its masks; one that does not fit into memory is an error."""
        if self._given_plan is not None:
            return self._given_plan
        return plan_tree(self.model.cards, self._scopes, limit_bytes=self._memory_limit)

    def _mask_vectors(self) -> tuple[Floats | None, Floats]:
        """What the masks add to the scopes of the model (None for nothing), and to further scopes."""
        offset = np.zeros(self.model.n_cells)
        further = [np.zeros(0)]
        for scope, table in self.masks:
            number = self.model.scope_number(scope)
            if number is None:
                further.append(table.ravel())
                continue
            axes = [scope.index(name) for name in self.model.scopes[number]]
            self.model.part(offset, number)[...] += np.transpose(table, axes)
        return (offset if offset.any() else None), np.concatenate(further)

    def over(self, model: LogLinear) -> LogLinearFamily:
        """The same distributions with other weights: a model of the same terms whose features have other units."""
        self.plan  # noqa: B018  Planned once, for both.
        return self._over(model)

    def _over(self, model: LogLinear) -> Self:
        family = copy.copy(self)
        family.model = model
        return family

    def scaling(self, margins: Floats, start: Floats | None = None) -> TreeScaling:
        """What fits the margins of all scopes of the model (n_cells,) by proportional scaling; the last one is kept.

        start: log-potentials (n_cells,) to begin at, zeros if None.
        """
        last = self._last_scaling
        if last is None or not np.array_equal(last.targets, margins):
            targets = [self.model.part(margins, number) for number in range(len(self.model.scopes))]
            last = self._last_scaling = TreeScaling(self.plan, targets, start, moments=self.tree_moments)
        else:
            last.restart(np.zeros(len(margins)) if start is None else start)
        return last

    def newton(self, margins: Floats) -> TableNewton | None:
        """What finds the margins of all scopes (n_cells,) on the table of all joint states; the last one is kept.

        None where the tree has several cliques, some margin is 0, or the table is so small or large that sweeps pay.
        """
        if self.masks or self.plan.split is None or not is_listed(self.plan.numbers) or not (margins > 0.0).all():
            return None
        if self._last_newton is None or not np.array_equal(self._last_newton.targets, margins):
            self._last_newton = TableNewton(self.plan.split, margins)
        return self._last_newton

    def rest(self) -> None:
        """Let go of the tables that only a fit needs."""
        self._last_scaling, self._last_newton = None, None

    @cached_property
    def tree_moments(self) -> TreeMoments:
        """The moments of the plan; all that a fit does shares their tables."""
        return self.plan.moments()

    def potentials(self, weights: Floats) -> Floats:
        """Log-potentials of all scopes of the plan, masks included."""
        logs = self.model.log_potentials(weights)
        if self._offset is not None:
            logs = logs + self._offset
        return np.concatenate([logs, self._extra]) if len(self._extra) else logs

    def margins(self, weights: Floats) -> tuple[float, Floats]:
        """Log Z, and the marginals of all scopes of the model (n_cells,); those asked for last are kept."""
        log_z, marginals = self.tree_moments(self.potentials(weights))
        return log_z, marginals[: self.model.n_cells]

    def moments(self, weights: Floats) -> tuple[float, Floats]:
        """Log Z and its gradient, the expected features (n_weights,)."""
        log_z, marginals = self.margins(weights)
        return log_z, self.model.expected(marginals)

    def tree(self, weights: Floats) -> JunctionTree:
        """The tree with its factors, for questions."""
        return self.plan.load(self._tables(weights), log=True)

    def loaded(self, planner: Planner, weights: Floats) -> Model:
        """The plan of another engine with the same factors."""
        return planner(self.model.cards, self._scopes).load(self._tables(weights), log=True)

    @property
    def _scopes(self) -> list[Names]:
        return [*self.model.scopes, *self.extra_scopes]

    def _tables(self, weights: Floats) -> list[Floats]:
        """The log-potentials of each scope of the plan as a table."""
        shapes = [tuple(self.model.cards[name] for name in scope) for scope in self._scopes]
        sizes = [math.prod(shape) for shape in shapes]
        parts = np.split(self.potentials(weights), np.cumsum(sizes)[:-1]) if sizes else ()
        return [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]

    def log_cells(self, weights: Floats, codes: NDArray[Any], log_z: float) -> Floats:
        """Log-probability of joint states (n, variables), codes in the order of the domain."""
        names = self.model.domain.names
        logs = self.potentials(weights)
        total = np.full(len(codes), -log_z)
        start = 0
        for scope in self.plan.scopes:
            shape = self.plan.space.shape(scope)
            flat = np.ravel_multi_index([codes[:, names.index(name)] for name in scope], shape)
            total += logs[start + flat]
            start += self.plan.space.size(scope)
        return total

    def log_joint(self, weights: Floats, log_z: float) -> Floats:
        """Log-probability of every joint state, one axis for each variable of the domain."""
        names, shape = self.model.domain.names, self.model.domain.shape(self.model.domain.names)
        logs, split = self.potentials(weights), self.plan.split
        if split is not None and not self.masks and len(split.variables) == len(names):
            return split.table_of(split.spread(logs) - log_z, [self.plan.space.number[name] for name in names])
        total = np.full(shape, -log_z)
        start = 0
        for scope in self.plan.scopes:
            size = self.plan.space.size(scope)
            table = logs[start : start + size].reshape(self.plan.space.shape(scope))
            order = sorted(range(len(scope)), key=lambda axis: names.index(scope[axis]))
            wide = [card if name in scope else 1 for name, card in zip(names, shape, strict=True)]
            total += np.transpose(table, order).reshape(wide)
            start += size
        return total

    @cached_property
    def _curvature(self) -> TreeCovariance:
        return TreeCovariance(self.plan, moments=self.tree_moments)

    def covariance(self, weights: Floats) -> Floats:
        """Cov[f] under the distribution at these weights (n_weights, n_weights)."""
        model = self.model
        if model.n_weights > MOST_COVARIANCE:
            raise SizeError(
                f"The covariance of {model.n_weights:,} features would take {in_words(8 * model.n_weights**2)} and as "
                "many calibrations as features. Use solver='newton-cg' or 'lbfgs', which do not need it."
            )
        if model.n_weights >= model.n_cells:
            cells = self._curvature.covariance(self.potentials(weights))[: model.n_cells, : model.n_cells]
            return cells if model.is_identity else np.asarray(model.matrix.T @ (model.matrix.T @ cells).T)
        times = self.covariance_product(weights)
        rows = np.array([times(unit) for unit in np.eye(model.n_weights)]).reshape(model.n_weights, model.n_weights)
        return np.asarray(0.5 * (rows + rows.T))

    def covariance_product(self, weights: Floats) -> Callable[[Floats], Floats]:
        """The function that multiplies Cov[f] at these weights by a vector (n_weights,)."""
        product = self._curvature.covariance_products(self.potentials(weights))
        further = np.zeros(len(self._extra))

        def times(vector: Floats) -> Floats:
            cells = self.model.log_potentials(vector)
            return self.model.expected(product(np.concatenate([cells, further]))[: self.model.n_cells])

        return times


def limit_masks(model: LogLinear, limits: Floats) -> list[tuple[Names, Floats]]:
    """Masks for weights that ran to infinity each by itself (n_weights,), 0 for all others.

    Left are the joint states where each of their features has its largest value, or its least one for minus infinity.
    A cell of a table at minus infinity is lost even if it is the only one.
    """
    running = np.flatnonzero(limits)
    cells = np.zeros(model.n_weights, dtype=bool)
    for term, own in zip(model.terms, model.weight_slices, strict=True):
        cells[own] = isinstance(term, tuple)
    lost = (limits == -np.inf)[running] & cells[running]
    masks: list[tuple[Names, Floats]] = []
    if not len(running):
        return masks
    columns = model.matrix.tocsr()[:, running]
    for number, scope in enumerate(model.scopes):
        values = columns[model.starts[number] : model.starts[number + 1]].toarray()
        ends = np.where(limits[running] > 0.0, values.max(axis=0), values.min(axis=0))
        alive = (np.abs(values - ends) <= ROUNDING * np.abs(ends)).all(axis=1) & ~values[:, lost].any(axis=1)
        if not alive.all():
            masks.append((scope, np.where(alive, 0.0, -np.inf).reshape(model.shape(number))))
    return masks
