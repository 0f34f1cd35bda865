"""What a careful user writes in NumPy and SciPy: fitting on the whole table, and L-BFGS over a junction tree."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from benchmarks.contender import Data, Run
from benchmarks.log_linear import GAP, Cliques, Floats


def table_ipf(data: Data, *, series: bool = False) -> Run:
    """Iterative proportional fitting on the joint table, until no margin was off before it was fitted."""
    cliques = Cliques.of(data)
    everything = tuple(range(len(cliques.cards)))
    counts: Any = cliques.table(data["codes"])
    if series:
        from benchmarks.rivals.markov_with_suffice import series_of

        counts = series_of(cliques, counts)

    def run() -> object:
        shares = np.asarray(counts, dtype=np.float64).reshape(cliques.cards)
        shares = shares / shares.sum()
        targets = []
        for scope in cliques.scopes:
            others = tuple(variable for variable in everything if variable not in scope)
            targets.append((others, shares.sum(axis=others, keepdims=True)))
        joint = np.full(cliques.cards, 1.0 / math.prod(cliques.cards))
        gap = math.inf
        while gap > GAP:
            gap = 0.0
            for others, target in targets:
                margin = joint.sum(axis=others, keepdims=True)
                gap = max(gap, float(np.abs(margin - target).max()))
                joint *= np.divide(target, margin, out=np.zeros_like(margin), where=margin > 0.0)
        with np.errstate(divide="ignore"):
            return [(everything, np.log(joint))]

    return run


def lbfgs(data: Data) -> Run:
    """SciPy's L-BFGS, from the codes; the tree is planned before, which is not timed."""
    from scipy.optimize import minimize

    cliques, codes = Cliques.of(data), data["codes"]
    tree = Tree(cliques)

    def run() -> object:
        margins = cliques.margins(codes)

        def objective(logs: Floats) -> tuple[float, Floats]:
            log_z, expected = tree.calibrate(logs)
            return log_z - float(logs @ margins), expected - margins

        found = minimize(
            objective,
            np.zeros_like(margins),
            jac=True,
            method="L-BFGS-B",
            options={"gtol": GAP, "ftol": 0.0, "maxiter": 10_000, "maxfun": 20_000},
        )
        return cliques.factors(found.x)

    return run


def calibrations(data: Data, *, times: int) -> Run:
    """The same log-potentials again and again."""
    tree, logs = Tree(Cliques.of(data)), data["logs"]

    def run() -> object:
        for _ in range(times):
            answer = tree.calibrate(logs)
        return answer[0]

    return run


class Tree:
    """A junction tree of plain arrays: sums over axes, products by broadcasting, messages scaled by their sums."""

    def __init__(self, cliques: Cliques) -> None:
        """Take the cliques, and which of them hangs on which, from our own planner."""
        from suffice.engines.junction_tree import plan_tree

        plan = plan_tree(dict(enumerate(cliques.cards)), cliques.scopes)
        self.cliques = cliques
        self.members: list[tuple[int, ...]] = [tuple(map(_number, clique)) for clique in plan.tree.cliques]
        self.parents = plan.tree.parents
        self.order = plan.tree.order
        self.homes = [next(at for at, m in enumerate(self.members) if set(s) <= set(m)) for s in cliques.scopes]

    def _wide(self, table: Any, scope: tuple[int, ...], clique: int) -> Any:
        """A table of some variables of a clique, ready to be broadcast in it."""
        members = self.members[clique]
        order = sorted(range(len(scope)), key=lambda axis: members.index(scope[axis]))
        return table.transpose(order).reshape([self.cliques.cards[v] if v in scope else 1 for v in members])

    def _narrow(self, table: Any, clique: int, scope: tuple[int, ...]) -> Any:
        """The margin of some variables of a clique."""
        members = self.members[clique]
        summed = table.sum(axis=tuple(axis for axis, v in enumerate(members) if v not in scope))
        left = [v for v in members if v in scope]
        return summed.transpose([left.index(v) for v in scope])

    def calibrate(self, logs: Floats) -> tuple[float, Floats]:
        """Log Z and the margins of all scopes: messages to the roots, and back."""
        potentials = [np.zeros([self.cliques.cards[v] for v in members]) for members in self.members]
        for scope, home, table in zip(self.cliques.scopes, self.homes, self.cliques.split(logs), strict=True):
            potentials[home] += self._wide(table, scope, home)
        log_z, beliefs, messages = 0.0, [], {}
        for potential in potentials:
            top = potential.max()
            log_z += top
            beliefs.append(np.exp(potential - top))
        for at in self.order:
            total = beliefs[at].sum()
            log_z += math.log(total)
            beliefs[at] /= total
            if self.parents[at] >= 0:
                above = self.parents[at]
                scope = tuple(v for v in self.members[at] if v in self.members[above])
                messages[at] = scope, self._narrow(beliefs[at], at, scope)
                beliefs[above] *= self._wide(messages[at][1], scope, above)
        for at in reversed(self.order):
            if self.parents[at] >= 0:
                scope, sent = messages[at]
                back = self._narrow(beliefs[self.parents[at]], self.parents[at], scope)
                beliefs[at] *= self._wide(np.divide(back, sent, out=np.zeros_like(back), where=sent > 0.0), scope, at)
        found = [
            self._narrow(beliefs[home], home, scope).ravel()
            for scope, home in zip(self.cliques.scopes, self.homes, strict=True)
        ]
        return log_z, np.concatenate(found)


def _number(node: Any) -> int:
    return int(node)
