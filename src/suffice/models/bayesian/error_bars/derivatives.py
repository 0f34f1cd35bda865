"""How a probability depends on the tables of a network: derivatives by every cell, from one calibration a state.

Every joint probability is linear in each table (Darwiche 2003): with e the evidence and q a state of what is asked,

    d P(q, e) / d P(x | u) = P(q, x, u, e) / P(x | u).

The right side comes from the junction tree conditioned on (q, e): one row of a batch for each q. In a cell that is 0
the quotient has no value; the derivative is the same with any other table in its place, and is taken with a positive
one.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.domain import Domain
from suffice.engines.calibration import Calibration
from suffice.engines.junction_tree import JunctionTree
from suffice.graphs.directed import requisite
from suffice.models.bayesian.queries.tables import TableInference
from suffice.records import record

#: Derivatives (a, ...) of a answers by all tables that a node brings into the junction tree, by node.
ByTable = dict[Hashable, list[Floats]]
#: Joint states of what is asked that are conditioned on one by one; more of them are rows of one call.
FEW = 3
#: Forms of questions that are kept for others of the same form.
KEPT_FORMS = 8
#: The name of a node, and the how many-th of its tables.
Place = tuple[Hashable, int]


@record(frozen=True, eq=False)
class JointDerivatives:
    """P(q | e) (a,) for all joint states q of what is asked, and the derivatives of P(q, e) / P(e) by every cell.

    `joint` (a, cells) has the tables of `shapes` one after another.
    """

    values: Floats
    joint: Floats
    shapes: Mapping[Place, tuple[int, ...]]

    def of_joint(self) -> ByTable:
        """The derivatives of P(q, e) / P(e)."""
        return self._by_table(self.joint)

    def conditional(self) -> ByTable:
        """The derivatives of P(q | e): by the rule of quotients, those of P(q, e) less P(q | e) times their sum."""
        return self._by_table(self.joint - np.multiply.outer(self.values, self.joint.sum(axis=0)))

    def _by_table(self, flat: Floats) -> ByTable:
        by_table: ByTable = {}
        start = 0
        for (name, _), shape in self.shapes.items():
            size = math.prod(shape)
            by_table.setdefault(name, []).append(flat[:, start : start + size].reshape(-1, *shape))
            start += size
        return by_table


def joint_derivatives(
    infer: TableInference,
    names: Sequence[Hashable],
    given: Mapping[Any, Any] | None,
    wanted: Collection[Hashable],
    with_zeros: Callable[[Hashable], bool],
) -> JointDerivatives:
    """The derivatives by the tables of those nodes that matter; `with_zeros` says of which also by cells that are 0."""
    hard, soft = infer.evidence(given)
    key = (tuple(names), tuple(hard), tuple(soft), frozenset(wanted))
    form = infer.forms.pop(key, None) or _Form.of(infer, names, hard, soft, wanted)
    infer.forms = dict([*infer.forms.items(), (key, form)][-KEPT_FORMS:])
    case = _Case(form, hard, soft)
    form.part.posterior(hard, soft, given, names)  # Impossible evidence and undefined rows are errors.
    logs, marginals = case.solved()
    total = float(np.logaddexp.reduce(logs))
    joint = np.exp(logs - total)[:, None] * marginals * form.inverse
    for whose, cells in form.with_zeros:
        if with_zeros(whose[0]):
            joint[:, cells] = case.with_ones(whose, total)
    shares = np.exp(logs - total)
    if len(form.asked) < len(names):
        shares, joint = (_among(infer.domain, names, hard, part) for part in (shares, joint))
    return JointDerivatives(shares, joint, form.shapes)


@record(frozen=True, eq=False)
class _Form:
    """What questions about the same variables, given others, have in common.

    `part` is the network that matters; `states` (a, d) are the joint states of what is asked and unknown, `asked`.
    `scopes` and `shapes` are those of the tables that enter the answer, and `inverse` (cells,) holds one over each of
    their cells, 0 for those that are 0.
    """

    part: TableInference
    states: NDArray[np.int32]
    asked: tuple[Hashable, ...]
    scopes: Sequence[tuple[Hashable, ...]]
    shapes: Mapping[Place, tuple[int, ...]]
    inverse: Floats

    @cached_property
    def with_zeros(self) -> list[tuple[Place, slice]]:
        """The tables that hold a 0, and where their cells are."""
        ends = np.cumsum([0, *map(math.prod, self.shapes.values())]).tolist()
        cells = [slice(start, stop) for start, stop in itertools.pairwise(ends)]
        return [(whose, some) for whose, some in zip(self.shapes, cells, strict=True) if not self.inverse[some].all()]

    @classmethod
    def of(
        cls,
        infer: TableInference,
        names: Sequence[Hashable],
        hard: Mapping[Hashable, int],
        soft: Mapping[Hashable, Floats],
        wanted: Collection[Hashable],
    ) -> _Form:
        """Leave out what cancels."""
        part = infer.relevant([*names, *hard, *soft])
        asked = [name for name in names if name not in hard]
        shape = infer.domain.shape(asked)
        states = np.indices(shape, dtype=np.int32).reshape(len(shape), math.prod(shape)).T
        needed = requisite({name: node.domain.names[:-1] for name, node in part.nodes.items()}, names, hard, soft)
        tables = part.filled_tables
        inner = [k for k, (name, _) in enumerate(part.factor_places) if name in wanted and name in needed]
        with np.errstate(divide="ignore"):
            inverse = [np.where(tables[k] > 0, 1.0 / tables[k], 0.0).ravel() for k in inner]
        return cls(
            part,
            states,
            tuple(asked),
            [part.factors[k][0] for k in inner],
            {part.factor_places[k]: tables[k].shape for k in inner},
            np.concatenate([np.zeros(0), *inverse]),
        )


@record(frozen=True, eq=False)
class _Case:
    """A question of a form: the states that are known, and likelihoods of others."""

    form: _Form
    hard: dict[Hashable, int]
    soft: dict[Hashable, Floats]

    def solved(self) -> tuple[Floats, Floats]:
        """Log P(q, e) (a,), and P(scope | q, e) (a, cells) of the scopes of the form."""
        tree, n = self.form.part.tree, len(self.form.states)
        if n > FEW:
            return self.by_rows(tree, self.form.scopes)
        before = self.form.part.posterior(self.hard, self.soft, None, ())
        logs, marginals = np.empty(n), np.zeros((n, len(self.form.inverse)))
        most = int(before.marginal(self.form.asked).argmax())
        for row, states in enumerate(self.form.states.tolist()):
            if row != most:
                after = tree.condition({**self.hard, **dict(zip(self.form.asked, states, strict=True))}, self.soft)
                logs[row] = after.log_partition
                if after.log_partition > -np.inf:
                    marginals[row] = self._margins(after)
        # The most probable state has what the others leave: one calibration less, and no digit is lost.
        rest = np.exp(np.delete(logs, most) - before.log_partition)
        share = 1.0 - float(rest.sum())
        logs[most] = before.log_partition + math.log(share)
        marginals[most] = (self._margins(before) - rest @ np.delete(marginals, most, axis=0)) / share
        return logs, marginals

    def _margins(self, posterior: Calibration) -> Floats:
        return np.concatenate([np.zeros(0), *(posterior.marginal(scope).ravel() for scope in self.form.scopes)])

    def by_rows(self, tree: JunctionTree, scopes: Sequence[tuple[Hashable, ...]]) -> tuple[Floats, Floats]:
        """Log P(q, e) (a,), and P(scope | q, e) (a, cells) of some scopes, in one call."""
        known = np.broadcast_to(np.array([*self.hard.values()], np.int32), (len(self.form.states), len(self.hard)))
        rows = np.concatenate([self.form.states, known], axis=1)
        with np.errstate(divide="ignore"):
            factors = {(n,): np.broadcast_to(np.log(w), (len(rows), len(w))) for n, w in self.soft.items()}
        columns = (*self.form.asked, *self.hard)
        answers = tree.solve_rows(rows, columns, scopes=scopes, row_factors=factors or None)
        parts = [answers.marginals[scope].reshape(len(rows), -1) for scope in scopes]
        return answers.log_partition, np.concatenate([np.zeros((len(rows), 0)), *parts], axis=1)

    def with_ones(self, whose: Place, total: float) -> Floats:
        """The derivatives (a, cells) by one table, with ones in its stead."""
        part = self.form.part
        tables, number = list(part.filled_tables), part.factor_places.index(whose)
        tables[number] = np.ones_like(tables[number])
        logs, marginals = self.by_rows(part.plan.load(tables), [part.factors[number][0]])
        return np.exp(logs - total)[:, None] * marginals


def _among(domain: Domain, names: Sequence[Hashable], hard: Mapping[Hashable, int], values: Floats) -> Floats:
    """Values (a, ...) by joint state of what is asked, with zeros for states that the evidence excludes."""
    every = np.zeros((*domain.shape(names), *values.shape[1:]))
    inner = domain.shape([name for name in names if name not in hard])
    every[tuple(hard.get(name, slice(None)) for name in names)] = values.reshape((*inner, *values.shape[1:]))
    return every.reshape(math.prod(domain.shape(names)), *values.shape[1:])
