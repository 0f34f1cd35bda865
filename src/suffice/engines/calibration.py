"""A calibrated junction tree: marginals and samples of the distribution that it holds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats, RandomState
from suffice.checks import generator
from suffice.engines.space import Space
from suffice.errors import DataError, OptionError
from suffice.graphs.nodes import Node
from suffice.kernels.junction_tree import CliqueBeliefs
from suffice.kernels.junction_tree_layout import TreeLayout
from suffice.kernels.junction_tree_numpy import project
from suffice.records import record

IMPOSSIBLE = (
    "The evidence has probability 0 under the model, so there is no distribution given it. "
    "Check the evidence, or the zeros of the factors."
)


@record(frozen=True, eq=False)
class Calibration:
    """The distribution of all variables given evidence; made by `JunctionTree.condition`.

    `log_partition` is the log of the sum over all states that agree with the evidence, minus infinity if there is none;
    then there are no marginals and no samples.
    """

    space: Space
    scopes: Sequence[tuple[Node, ...]]
    layout: TreeLayout
    beliefs: CliqueBeliefs
    log_partition: float

    def marginal(self, scope: Sequence[Node]) -> Floats:
        """The joint distribution of any variables, axes in the order asked; they need not share a clique."""
        nodes = self.space.scope(scope)
        numbers = self.space.numbers(nodes)
        return np.array(self._distribution(numbers)).reshape(self.space.shape(nodes))

    def marginals(self) -> dict[Node, Floats]:
        """The distribution of each variable."""
        self._check()
        number = self.space.number
        return {
            node: np.array(self.beliefs.singles[number[node]]) if node in number else np.ones(1)
            for node in self.space.nodes
        }

    def factor_marginals(self) -> list[Floats]:
        """The distribution of each scope of the plan, axes in its order."""
        self._check()
        return [self.marginal(scope) for scope in self.scopes]

    def sample(self, n: int, *, random_state: RandomState = None) -> NDArray[np.int32]:
        """Draw n joint states (n, variables), columns in the order of the cards of the plan.

        random_state: a seed, a NumPy generator, or None for fresh randomness.
        """
        self._check()
        if n < 0:
            raise OptionError(f"The number of samples is {n}; it must not be negative.")
        from suffice.engines.sampling import draw

        codes = draw(self.layout, self.beliefs.tables, n, generator(random_state))
        columns = np.zeros((n, len(self.space.nodes)), np.int32)
        for column, node in enumerate(self.space.nodes):
            if node in self.space.number:
                columns[:, column] = codes[self.space.number[node]]
        return columns

    def _distribution(self, numbers: tuple[int, ...]) -> Floats:
        self._check()
        if not numbers:
            return np.ones(())
        if len(numbers) == 1:
            return self.beliefs.singles[numbers[0]]
        home = self.layout.home(numbers)
        if home >= 0:
            return project(self.beliefs.tables[home], self.layout.cliques[home], numbers)
        from suffice.engines.joint import joint_marginal

        return joint_marginal(self.layout, self.beliefs.tables, numbers)

    def _check(self) -> None:
        if self.log_partition == -np.inf:
            raise DataError(IMPOSSIBLE)
