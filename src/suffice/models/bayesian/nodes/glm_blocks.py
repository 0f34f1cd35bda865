"""The rows of a family as the blocks that `GLM` learns from: of rows in memory once, of held ones in each round."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from suffice.array_types import Floats
from suffice.domain import Domain
from suffice.models.bayesian.nodes.contract import Columns
from suffice.models.bayesian.nodes.glm_rows import HeldFamilyRows, places_of, question_of, rows_of, table_of
from suffice.models.glm.design import Design
from suffice.models.glm.held_rows import BlockWork, PreparedRows, RegressionRows
from suffice.sources.held import Held, HeldHere
from suffice.statistics import Summary


@dataclass(frozen=True, eq=False)
class FamilyBlock:
    """How rows of a family become rows of a regression; `order` gives the code that each state of a label gets."""

    domain: Domain
    design: Design
    order: Floats | None

    def __call__(self, columns: Columns, weights: Floats) -> PreparedRows:
        """The block of some rows."""
        y = np.asarray(columns[self.domain.names[-1]], dtype=np.float64)
        if self.order is not None:
            y = self.order[y.astype(np.intp)]
        table, _ = table_of(self.domain.names[:-1], places_of(self.domain, self.design), columns, len(weights))
        return PreparedRows.of(self.design.block(table, y, weights), weights, None)


@dataclass(frozen=True, eq=False)
class _OnBlock:
    """A question to blocks, put to the rows of a family."""

    block: FamilyBlock
    task: Callable[[PreparedRows, Any], Any]

    def __call__(self, columns: Columns, weights: Floats, parameters: Any) -> Any:
        return self.task(self.block(columns, weights), parameters)


class FamilyBlocks(Held[PreparedRows]):
    """The blocks of rows that stay where they are: a shard makes its own when it is asked."""

    def __init__(self, rows: HeldFamilyRows, block: FamilyBlock) -> None:
        """Of these rows, which somebody else holds and lets go."""
        super().__init__(BlockWork())
        assert rows.rows.held is not None
        self._rows, self._block, self._shards = rows, block, rows.rows.held.shards
        self.location = rows.rows.held.location

    @property
    def shards(self) -> int:
        """How many there are."""
        return self._shards

    def _total(self, task: Callable[[PreparedRows, Any], Any], parameters: Any, chosen: Sequence[int] | None) -> Any:
        return self._rows.ask(self._block.domain.names, _OnBlock(self._block, task), parameters, chosen)


def regression_rows(summary: Summary, block: FamilyBlock, live: int) -> RegressionRows:
    """The rows of a family for a regression, wherever they are; live: how many of them have weight."""
    answer = summary[question_of(block.domain)]
    if isinstance(answer, HeldFamilyRows):
        return RegressionRows(FamilyBlocks(answer, block), live)
    return RegressionRows(HeldHere(BlockWork(), [block(*rows_of(block.domain, summary))]), live)
