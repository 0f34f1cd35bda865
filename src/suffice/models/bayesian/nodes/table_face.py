"""How a table with constraints can move: along the face of those that bind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.records import replace
from suffice.statistics import Counts, Summary

if TYPE_CHECKING:
    from suffice.models.bayesian.em.coordinates import ErrorsOf
    from suffice.models.bayesian.nodes.constrained_table import ConstrainedTableNode

#: A constraint binds where its slack is below this.
BINDING = 1e-7
#: Singular values of directions, and shares of the largest curvature, that count.
RANK = 1e-9
FLAT = 1e-11


class FaceCoordinates:
    """Linear coordinates of a table: a unit of each changes no probability by more than itself.

    Rows without weight have none: the data say nothing about them.
    """

    def __init__(self, node: ConstrainedTableNode) -> None:
        """Take the node."""
        self.node = node
        self.seen = node.counts.sum(axis=1) > 0
        parts = [self._of_block(cells, rows) for rows, cells in self._blocks()]
        self.directions = np.concatenate([np.zeros((0, *node.rows.shape)), *parts])
        self.size = len(self.directions)

    def _blocks(self) -> list[tuple[NDArray[np.intp], Floats]]:
        """Rows (k,) and cells (k card,) of each block."""
        region = self.node.region
        return [(rows, region.packed(self.node.rows, rows[None])[0]) for block in region.blocks for rows in block.rows]

    def _of_block(self, cells: Floats, rows: NDArray[np.intp]) -> Floats:
        """Directions (d, rows, card) in which a block moves."""
        from scipy.linalg import null_space

        region, card, size = self.node.region, self.node.card, len(cells)
        low, high = (bounds[0] for bounds in region.bounds(rows[None]))
        identity = np.eye(size)
        # Whatever is 0 stays 0: its likelihood has no normal limit there. Rows without weight stay as they are.
        held = (cells - low <= BINDING) | (high - cells <= BINDING) | ~np.repeat(self.seen[rows], card)
        binding = region.steps[region.steps @ cells <= BINDING]
        sums = np.kron(np.eye(size // card), np.ones(card))
        basis = null_space(np.concatenate([sums, binding, identity[held]]), rcond=RANK).T
        basis[np.abs(basis) < 1e-14] = 0.0
        with np.errstate(divide="ignore"):
            basis *= np.where(basis != 0, cells / np.abs(basis), np.inf).min(axis=1, initial=np.inf)[:, None]
        directions = np.zeros((len(basis), *self.node.rows.shape))
        directions[:, rows[:, None], region.order] = basis.reshape(len(basis), len(rows), card)
        return directions

    def moved(self, delta: Floats) -> ConstrainedTableNode:
        """The table moved; far away, probabilities that would be negative are 0."""
        rows = np.maximum(self.node.rows + np.tensordot(delta, self.directions, axes=1), 0.0)
        return replace(self.node, rows=rows / rows.sum(axis=1, keepdims=True))

    def score(self, node: ConstrainedTableNode, summary: Summary) -> Floats:
        """Slopes of the sum of n log p, with the pseudo-counts of the prior."""
        counts = summary[Counts(node.domain.names)].dense().reshape(node.rows.shape)
        both = counts if node.alpha is None else counts + (node.alpha - 1.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            pull = np.where(both > 0, both / node.rows, 0.0)
        return np.asarray(np.tensordot(self.directions, np.where(self.node.rows > 0, pull, 0.0), axes=2))

    def names(self) -> list[str]:
        """Such as "P(x=1 | h=0)": of the cell that moves most."""
        cells = self.node.cell_names(np.arange(len(self.node.rows)))
        flat = np.abs(self.directions).reshape(self.size, self.node.rows.size)
        return [f"P({cells[cell]})" for cell in flat.argmax(axis=1).tolist()]

    def errors(self, of: ErrorsOf) -> Floats:
        """The probabilities are linear in the coordinates; inf where rows have no weight."""
        slopes = self.directions.reshape(self.size, self.node.rows.size).T
        errors = np.asarray(of(slopes)).reshape(self.node.rows.shape)
        return self.node.dense(np.where(self.seen[:, None], errors, np.inf), np.full(self.node.card, np.inf))

    def own_errors(self) -> Floats:
        """The same by the information of the node's own counts, with the pseudo-counts of the prior."""
        node = self.node
        both = node.counts if node.alpha is None else node.counts + (node.alpha - 1.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            curvature = np.where(node.rows > 0, both / node.rows**2, 0.0)
        flat = self.directions.reshape(self.size, node.rows.size)
        values, vectors = np.linalg.eigh((flat * curvature.ravel()) @ flat.T)
        open_ = values <= FLAT * values.max(initial=0.0)

        def of(slopes: Floats) -> Floats:
            along = slopes @ vectors
            lost = (np.abs(along[:, open_]) > 1e-6).any(axis=1)
            variance = (along[:, ~open_] ** 2 / values[~open_]).sum(axis=1)
            return np.where(lost, np.inf, np.sqrt(variance))

        return self.errors(of)

    def pulled(self, derivatives: Sequence[Floats]) -> Floats:
        """Slopes of functions of the table along the directions."""
        by_cell = derivatives[0].reshape(len(derivatives[0]), -1)
        return np.asarray(by_cell @ self.directions.reshape(self.size, self.node.rows.size).T)
