"""The exact discrete engine: a junction tree, planned once for a structure and executed many times.

The scopes of the factors are triangulated into cliques. One pass of messages up the tree of cliques gives the sum of
the product of all factors (log Z), and one pass down the marginals of all cliques (Lauritzen and Spiegelhalter 1988;
Jensen, Lauritzen and Olesen 1990).
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from suffice.array_types import Floats
from suffice.checks import whole_number
from suffice.engines.calibration import IMPOSSIBLE, Calibration
from suffice.engines.memory import check_limit, default_limit, in_words
from suffice.engines.space import Evidence, Scope, SoftEvidence, Space
from suffice.errors import DataError, OptionError, SizeError, listing
from suffice.graphs.clique_tree import CliqueTree, clique_tree
from suffice.graphs.nodes import Node
from suffice.graphs.triangulation import best_triangulation
from suffice.graphs.undirected import graph_of_scopes
from suffice.kernels.choice import REPEATED
from suffice.kernels.junction_tree import Likelihoods, calibrate, log_sum, maximize
from suffice.kernels.junction_tree_layout import TreeLayout, arrange
from suffice.kernels.junction_tree_numpy import project
from suffice.kernels.junction_tree_potentials import Potentials, Scaled
from suffice.records import copy_with, record

# One question needs none of these: they load with the first of many rows, or the first gradient.
if TYPE_CHECKING:
    from suffice.engines.contract import Assignment, Nodes, RowAnswers, RowExpectation
    from suffice.engines.rows import EvidenceRows
    from suffice.kernels.junction_tree_cases import Cases
    from suffice.kernels.split_table import SplitTable


def plan_tree(
    cards: Mapping[Any, int],
    scopes: Sequence[Sequence[Node]],
    *,
    limit_bytes: int | None = None,
    tries: int | None = None,
) -> TreePlan:
    """Plan exact inference for factors over these scopes.

    cards: number of states of each variable, those in no scope included; scopes: variables of each factor, in the order
    of its axes. Raises SizeError if one calibration would take more than `limit_bytes`, by default half of the memory
    of the machine. tries: how many random triangulations to compare; by default as many as one calibration pays for,
    and more are worth their time where thousands of calibrations follow.
    """
    space = Space.of(cards)
    checked = tuple(space.scope(scope) for scope in scopes)
    numbers = [space.numbers(scope) for scope in checked]
    sizes: dict[Node, int] = dict(enumerate(space.sizes))
    tree = clique_tree(best_triangulation(graph_of_scopes(numbers, sizes), sizes, tries=tries))
    check_limit(limit_bytes)
    plan = TreePlan(space, checked, tuple(numbers), tree, default_limit() if limit_bytes is None else limit_bytes)
    if plan.bytes > plan.limit_bytes:
        raise SizeError(plan.refusal())
    return plan


@record(frozen=True, eq=False)
class TreePlan:
    """A junction tree for some scopes; `str` tells its size, `describe` lists the cliques.

    `space` holds the variables, `scopes` the variables of each factor, `tree` the tree of cliques over the numbers that
    the space gives to variables with two states or more.
    """

    space: Space
    scopes: tuple[Nodes, ...]
    numbers: tuple[Scope, ...]
    tree: CliqueTree
    limit_bytes: int

    @cached_property
    def layout(self) -> TreeLayout:
        """Where the tables lie."""
        cliques: Any = self.tree.cliques
        return arrange(self.space.sizes, cliques, self.tree.parents, self.tree.order)

    @cached_property
    def nested_layout(self) -> TreeLayout:
        """The same with smaller tables inside of cliques that hold many scopes, for fits of all scopes.

        The cliques of `layout` come first.
        """
        from suffice.kernels.junction_tree_nesting import nest

        return nest(self.layout, [numbers for numbers in self.numbers if numbers])

    @cached_property
    def split(self) -> SplitTable | None:
        """The table of all joint states, cut in two; None where that does not pay, or there are several cliques."""
        from suffice.kernels.split_table import LEAST, MOST, SplitTable

        alone = len(self.tree.sizes) == 1 and LEAST <= self.tree.sizes[0] <= MOST and len(self.tree.cliques[0]) > 1
        return SplitTable(self.space.sizes, self.numbers) if alone and all(self.numbers) else None

    @cached_property
    def cliques(self) -> tuple[Nodes, ...]:
        """Variables of each clique."""
        names = tuple(self.space.number)
        numbers: Any = self.tree.cliques
        return tuple(tuple(names[number] for number in clique) for clique in numbers)

    @property
    def width(self) -> int:
        """Variables of the largest clique, less one."""
        return self.tree.width

    @property
    def cells(self) -> int:
        """Cells of all cliques together."""
        return sum(self.tree.sizes)

    @property
    def largest(self) -> int:
        """Cells of the largest clique."""
        return max(self.tree.sizes, default=1)

    @cached_property
    def bytes(self) -> int:
        """Memory that one calibration takes: tables, separators, and scratch of the size of the largest table."""
        separators = sum(
            math.prod([self.tree.cards[node] for node in scope]) for scope in self.tree.separators if scope
        )
        return 8 * (self.cells + separators + self.largest)

    def __str__(self) -> str:
        width = max(self.width, 0)  # A plan without scopes has no table that could be wide.
        return f"junction tree: width {width}, largest table {self.largest:,} cells, {in_words(self.bytes)}"

    def describe(self) -> str:
        """The plan with all cliques, the largest first."""
        lines = [str(self)]
        for clique, size in sorted(zip(self.cliques, self.tree.sizes, strict=True), key=lambda pair: -pair[1]):
            lines.append(f"  {size:>12,} cells  {in_words(8 * size):>9}  {', '.join(map(str, clique))}")
        return "\n".join(lines)

    def refusal(self) -> str:
        """Why the plan does not fit."""
        index = max(range(len(self.cliques)), key=self.tree.sizes.__getitem__)
        clique, size = self.cliques[index], self.tree.sizes[index]
        return (
            f"The junction tree needs {in_words(self.bytes)}, and the limit is {in_words(self.limit_bytes)}. "
            f"Its largest clique has {len(clique)} variables and {size:,} cells ({in_words(8 * size)}): "
            f"{listing(clique)}. Use a structure with fewer joined variables, or a larger limit_bytes."
        )

    def load(self, factors: Sequence[ArrayLike | None], *, log: bool = False) -> JunctionTree:
        """Take one table for each scope, axes in its order; None is a table of ones. log: tables are logarithms."""
        constant = 0.0
        kept: list[Scope] = []
        parts = [np.zeros(0)]
        tables = self.space.tables(self.scopes, factors, log=log)
        for numbers, table in zip(self.numbers, tables, strict=True):
            if table is None:
                continue
            if numbers:
                kept.append(numbers)
                parts.append(table.ravel())
            else:
                constant += Scaled.of(table.reshape(1), log=log).log_of_constant
        return JunctionTree(self, Potentials(self.layout, kept, np.concatenate(parts), log=log), constant)

    def rows(
        self,
        rows: ArrayLike,
        nodes: Sequence[Node] | None = None,
        row_factors: Mapping[Any, ArrayLike] | None = None,
        *,
        calls: int | None = REPEATED,
    ) -> EvidenceRows:
        """Check rows once, for many calls of `JunctionTree.expect` or `solve_rows`, which take the result as rows.

        The digits of these calls do not depend on what the process did before; calls is their number, by estimate.
        """
        from suffice.engines.rows import EvidenceRows

        return copy_with(EvidenceRows.of(self.space, rows, nodes, row_factors), calls=calls)

    def moments(self) -> TreeMoments:
        """The map from log-potentials of all scopes, as one vector, to log Z and the marginals of all scopes."""
        return self._moments.fresh()

    @cached_property
    def _moments(self) -> TreeMoments:
        """What all such maps have in common; itself never called, so that it holds no tables."""
        return TreeMoments(self)


class TreeMoments:
    """log Z of a log-linear model as a function of its log-potentials, with its gradient.

    Vectors hold the tables of all scopes of the plan one after another, axes in the order of the scope. Made for many
    calls, one after the other. `inner` is the same for the scopes that have a variable of two states or more, and
    `live` (n,) tells which numbers belong to those.
    """

    def __init__(self, plan: TreePlan) -> None:
        from suffice.kernels.junction_tree_moments import CliqueMoments

        self.sizes = [plan.space.size(scope) for scope in plan.scopes]
        self.live = np.repeat(np.array([bool(numbers) for numbers in plan.numbers], np.bool_), self.sizes)
        self._whole = bool(self.live.all())
        self._last: tuple[Floats, float, Floats] | None = None
        self.inner = CliqueMoments(
            plan.nested_layout, [numbers for numbers in plan.numbers if numbers], split=plan.split
        )

    def fresh(self) -> TreeMoments:
        """The same with tables of its own."""
        other = copy.copy(self)
        other.inner = copy.copy(self.inner)
        other._last = None
        return other

    def __call__(self, log_potentials: ArrayLike) -> tuple[float, Floats]:
        """Return log Z, and the marginals of all scopes (numbers,)."""
        logs = np.ascontiguousarray(log_potentials, dtype=np.float64)
        if logs.shape != self.live.shape:
            raise OptionError(f"Log-potentials have shape {logs.shape}; expected {self.live.shape}.")
        if not np.maximum.reduce(logs, initial=0.0) < np.inf:  # NaN if any is.
            raise OptionError("Log-potentials hold NaN or +inf; use finite numbers and -inf.")
        if self._last is None or not np.array_equal(self._last[0], logs):
            self._last = logs.copy(), *self._of(logs)
        return self._last[1], self._last[2].copy()  # The end of a fit is asked for again and again.

    def _of(self, logs: Floats) -> tuple[float, Floats]:
        if self._whole:
            return self.inner(logs)
        log_z, marginals = self.inner(logs[self.live])
        return log_z + float(logs[~self.live].sum()), self._among_all(marginals)

    def distributions(self, log_potentials: Floats) -> tuple[float, Floats, list[Floats]]:
        """The same, and the distributions of all cliques of the nested layout, flat; they hold until the next call."""
        log_z, marginals, tables = self.inner.distributions(log_potentials[self.live])
        return log_z + float(log_potentials[~self.live].sum()), self._among_all(marginals), tables

    def _among_all(self, marginals: Floats) -> Floats:
        """The marginals of all scopes, with ones for the scopes of single states."""
        answer = np.ones(len(self.live))
        answer[self.live] = marginals
        return answer


@record(frozen=True, eq=False)
class JunctionTree:
    """A plan with its factors; made by `TreePlan.load`. constant: log of the factors without variables."""

    plan: TreePlan
    potentials: Potentials
    constant: float

    def condition(self, evidence: Evidence = None, likelihoods: SoftEvidence = None) -> Calibration:
        """The distribution of all variables given states (by index) and likelihoods, one number for each state."""
        known, constant = self._evidence(evidence, likelihoods)
        beliefs = calibrate(self.potentials, known)
        return Calibration(self.plan.space, self.plan.scopes, self.plan.layout, beliefs, beliefs.log_z + constant)

    def log_partition(self, evidence: Evidence = None, likelihoods: SoftEvidence = None) -> float:
        """Log of the sum over all states that agree with the evidence; minus infinity if there is none."""
        known, constant = self._evidence(evidence, likelihoods)
        return log_sum(self.potentials, known) + constant

    def log_probability(self, evidence: Evidence = None, likelihoods: SoftEvidence = None) -> float:
        """Log-probability of the evidence; minus infinity if it is impossible."""
        if self._log_total == -np.inf:
            raise DataError(
                "The product of the factors is 0 in every joint state: they define no distribution. Check their zeros."
            )
        return self.log_partition(evidence, likelihoods) - self._log_total

    @cached_property
    def _log_total(self) -> float:
        return self.log_partition()

    def most_probable(self, evidence: Evidence = None, likelihoods: SoftEvidence = None) -> Assignment:
        """A joint state of highest probability; of equal ones that with the lowest indices, clique by clique."""
        from suffice.engines.contract import Assignment

        known, constant = self._evidence(evidence, likelihoods)
        states, best = maximize(self.potentials, known)
        if best + constant == -np.inf:
            raise DataError(IMPOSSIBLE)
        number = self.plan.space.number
        chosen = {node: int(states[number[node]]) if node in number else 0 for node in self.plan.space.nodes}
        return Assignment(chosen, best + constant)

    def solve_rows(
        self,
        rows: ArrayLike | EvidenceRows,
        nodes: Sequence[Node] | None = None,
        *,
        scopes: Sequence[Sequence[Node]] = (),
        row_factors: Mapping[Any, ArrayLike] | None = None,
        threads: int = 1,
    ) -> RowAnswers:
        """Condition on each row; answers the marginals of the scopes asked, each inside a clique.

        rows (n, d): codes of the variables `nodes` (all, in the order of the cards, if None), -1 for a missing value.
        row_factors: log-factors (n, cards of the scope) by scope, each inside a clique. Rows that are asked about many
        times can be checked once by `TreePlan.rows`.
        """
        from suffice.engines.contract import RowAnswers
        from suffice.engines.rows import EvidenceRows
        from suffice.kernels.junction_tree_cases import solve_cases

        space = self.plan.space
        known = rows if isinstance(rows, EvidenceRows) else self.plan.rows(rows, nodes, row_factors)
        asked = {scope: self._inside(scope) for scope in map(space.scope, scopes)}
        outputs = [numbers for numbers in asked.values() if numbers]
        answers = solve_cases(
            self.potentials, self._cases(known), outputs, threads=self._threads(threads), calls=_calls(rows)
        )
        log_z = answers.log_z[known.label] + known.constants + self.constant
        possible = (log_z > -np.inf).astype(np.float64)[:, None]
        marginals: dict[Nodes, Floats] = {}
        column = 0
        for scope, numbers in asked.items():
            width = space.size(scope) if numbers else 0
            table = possible
            if numbers:
                table = possible * answers.marginals[known.label, column : column + width]
            marginals[scope] = table.reshape(len(log_z), *space.shape(scope))
            column += width
        return RowAnswers(log_z, marginals)

    def expect(
        self,
        rows: ArrayLike | EvidenceRows,
        nodes: Sequence[Node] | None = None,
        *,
        weights: ArrayLike | None = None,
        row_factors: Mapping[Any, ArrayLike] | None = None,
        threads: int = 1,
    ) -> RowExpectation:
        """Add up the distributions of the plan's scopes given each row, times its weight; rows as in `solve_rows`."""
        from suffice.engines.contract import RowExpectation
        from suffice.engines.rows import EvidenceRows
        from suffice.kernels.junction_tree_cases import solve_cases

        space, layout = self.plan.space, self.plan.layout
        known = rows if isinstance(rows, EvidenceRows) else self.plan.rows(rows, nodes, row_factors)
        weight = known.weights(weights, possible=known.constants + self.constant > -np.inf)
        answers = solve_cases(
            self.potentials, self._cases(known), (), weight, threads=self._threads(threads), calls=_calls(rows)
        )
        log_z = answers.log_z[known.label] + known.constants + self.constant
        total = weight[answers.log_z > -np.inf].sum()
        tables = []
        for scope, numbers in zip(self.plan.scopes, self.plan.numbers, strict=True):
            table = np.asarray(total)
            if numbers:
                home = layout.home(numbers)
                sums = answers.sums[layout.starts[home] : layout.starts[home + 1]]
                clique = layout.cliques[home]
                table = project(sums.reshape(layout.shape(clique)), clique, numbers)
            tables.append(np.ascontiguousarray(table).reshape(space.shape(scope)))
        return RowExpectation(log_z, tables)

    def _threads(self, threads: int) -> int:
        """As many threads as their private tables leave room for: potentials, beliefs and sums in double-double."""
        return max(1, min(whole_number(threads, "threads"), self.plan.limit_bytes // max(5 * self.plan.bytes, 1)))

    def _inside(self, scope: Nodes) -> Scope:
        """Numbers of a scope, which must lie in a clique."""
        numbers = self.plan.space.numbers(scope)
        if numbers and self.plan.layout.home(numbers) < 0:
            raise OptionError(
                f"The variables {listing(scope)} are not together in a clique of the junction tree. "
                "Give plan_tree this scope too, and load None as its factor."
            )
        return numbers

    def _cases(self, rows: EvidenceRows) -> Cases:
        from suffice.kernels.junction_tree_cases import Cases

        names = tuple(self.plan.space.number)
        for numbers, _ in rows.factors:
            self._inside(tuple(names[number] for number in numbers))
        tables = [table for _, table in rows.factors]
        return Cases.of(rows.variables, rows.codes, [numbers for numbers, _ in rows.factors], tables)

    def _evidence(self, evidence: Evidence, likelihoods: SoftEvidence) -> tuple[Likelihoods, float]:
        """Evidence by numbers of variables, and the log of all constants."""
        space = self.plan.space
        states, vectors = space.evidence(evidence), space.likelihoods(likelihoods)
        known, constant = {}, self.constant
        for node, state in states.items():
            if node not in vectors and node in space.number:
                known[space.number[node]] = Scaled.observed(space.cards[node], state)
        for node, vector in vectors.items():
            if node in states:
                vector = np.where(np.arange(len(vector)) == states[node], vector, 0.0)
            scaled = Scaled.of(vector)
            if node in space.number:
                known[space.number[node]] = scaled
            else:
                constant += scaled.log_of_constant
        return known, constant


def _calls(rows: ArrayLike | EvidenceRows) -> int | None:
    """Rows that were checked once are worked on many times; of others nothing is known."""
    from suffice.engines.rows import EvidenceRows

    return rows.calls if isinstance(rows, EvidenceRows) else None
