"""Which weights there are: one block (P, F) for each template, one after another in a vector."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats, Ints
from suffice.errors import DataError
from suffice.models.graph_crf.graphs import EDGES, NODES, Graphs
from suffice.models.graph_crf.templates import Template, make_template


@dataclass(frozen=True, eq=False)
class CliqueStructure:
    """Labels and templates; those without cliques have no weights."""

    labels: tuple[Any, ...]
    templates: tuple[Template, ...]

    @property
    def size(self) -> int:
        """Number of labels, K."""
        return len(self.labels)

    @property
    def length(self) -> int:
        """Number of weights, k."""
        return sum(template.length for template in self.templates)

    @property
    def widths(self) -> dict[str, tuple[int, int]]:
        """Members and features of the cliques of each template."""
        return {template.name: (template.size, template.features) for template in self.templates}

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *np.cumsum([template.length for template in self.templates]).tolist()]

    def block(self, weights: Floats, number: int) -> Floats:
        """The weights (P, F) of a template."""
        template = self.templates[number]
        part = weights[self._starts[number] : self._starts[number + 1]]
        return part.reshape(template.rows, template.features)

    def scores(self, weights: Floats, graphs: Graphs) -> list[Floats]:
        """For each template the scores of all cliques (c, cells)."""
        return [
            template.scores(self.block(weights, number), graphs.parts[number].features)
            for number, template in enumerate(self.templates)
        ]

    def gathered(self, tables: Sequence[Floats], graphs: Graphs) -> Floats:
        """The slope (k,) of a function whose slope by scores is given by tables (c, cells) for each template."""
        return np.concatenate(
            [
                template.gathered(table, part.features).ravel()
                for template, table, part in zip(self.templates, tables, graphs.parts, strict=True)
            ]
        )

    def cells(self, number: int, members: Ints, codes: Ints) -> Ints:
        """The cell of each clique (c,) under labels: members (c, r) among all nodes, codes (nodes,)."""
        strides = self.size ** np.arange(self.templates[number].size - 1, -1, -1)
        return np.asarray(codes[members] @ strides, np.int64)

    def observed(self, graphs: Graphs, codes: Ints, shares: Floats) -> Floats:
        """The features (k,) of labels (nodes,), weighted by example (n,) and summed."""
        blocks = []
        for number, (template, part) in enumerate(zip(self.templates, graphs.parts, strict=True)):
            cells = self.cells(number, graphs.places(number), codes)
            weighted = part.features * shares[part.owner][:, None]
            if template.matrix is None:
                sums = np.zeros((template.cells, template.features))
                np.add.at(sums, cells, weighted)
            else:
                sums = template.matrix[cells].T @ weighted
            blocks.append(sums.ravel())
        return np.concatenate(blocks)

    def arrays(self) -> list[NDArray[Any]]:
        """What tells it from others: the numbers that functions of labels gave."""
        return [np.zeros(0) if template.matrix is None else template.matrix for template in self.templates]

    def names(self) -> list[tuple[Any, ...]]:
        """The name of each weight: ("nodes", label, feature), ("edges", label, label, feature) and so on."""
        return [
            (template.name, *row, feature)
            for template in self.templates
            for row in template.names
            for feature in range(template.features)
        ]


def make_structure(
    labels: tuple[Any, ...], widths: Mapping[str, tuple[int, int]], edges: Any, templates: Mapping[str, Any]
) -> CliqueStructure:
    """The structure of labels, widths of the cliques, and the forms of the weights of edges and further templates."""
    made = [make_template(NODES, "full", *widths[NODES], labels)]
    for name, form in ((EDGES, edges), *templates.items()):
        size, features = widths[name]
        if size == 0 and name != EDGES:
            raise DataError(f"templates names {name!r}, and no example has such cliques. Add them, or leave it out.")
        # Edges always join two nodes, also where there are none of them.
        made.append(make_template(name, form, size or 2, features, labels))
    return CliqueStructure(labels, tuple(made))
