"""What every row says about some nodes of a network together."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.errors import OptionError, listing
from suffice.models.evidence import RowDistributions
from suffice.models.row_answers import CodedColumns, RowQuestion


@dataclass(frozen=True, eq=False)
class RowQuery(RowQuestion):
    """P(nodes | row) of each row; every column is evidence, and so are nodes that are `fixed` in all rows."""

    nodes: tuple[Hashable, ...]
    fixed: Mapping[Hashable, Any]

    def __call__(self, columns: CodedColumns, n: int) -> RowDistributions:
        """Of rows (n, cards...)."""
        both = [name for name in self.fixed if name in columns]
        if both:
            raise OptionError(f"{listing(both)} is a column of the rows and in do=. Leave it out of one of them.")
        more = {name: np.full(n, v, np.float64 if isinstance(v, float) else np.int32) for name, v in self.fixed.items()}
        answers: RowDistributions = self.fitted.inference.distributions_of_rows(
            {**columns, **more}, n, self.nodes, threads=self.threads
        )
        return answers

    def example(self) -> NDArray[Any]:
        """A table of zeros."""
        return np.zeros((1, *self.fitted.domain.shape(self.nodes)))

    @property
    def names(self) -> Sequence[Hashable]:
        """A column for each joint state, its labels joined by a comma."""
        states = [self.fitted.domain[node].states for node in self.nodes]
        return [", ".join(map(str, joint)) for joint in product(*states)]
