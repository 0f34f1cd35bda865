"""Clique templates: which weights a kind of clique has, and how they become tables of scores.

A clique of r nodes with features f (F,) gives the labels a = (a_1, ..., a_r) the score ``T[a] @ W @ f``. The weights W
(P, F) are shared by all cliques of the template; T (K^r, P) says which of the P rows act for which labels.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from suffice.array_types import Floats
from suffice.choices import EdgeWeights, choices
from suffice.errors import OptionError, SizeError, listing

#: Ways in which the weights of a template may depend on labels.
FORMS = choices(EdgeWeights)
#: Most cells of the table of one clique, and most nodes of a clique.
MOST_CELLS, MOST_MEMBERS = 2**20, 32


@dataclass(frozen=True, eq=False)
class Template:
    """A kind of clique.

    matrix (cells, P): see the module; None is the identity. names: for each of the P rows what it stands for.
    """

    name: str
    size: int
    features: int
    labels: int
    matrix: Floats | None
    names: tuple[Any, ...]

    @property
    def cells(self) -> int:
        """Cells of the table of a clique."""
        return int(self.labels**self.size)

    @property
    def rows(self) -> int:
        """Rows of the weights, P."""
        return len(self.names)

    @property
    def length(self) -> int:
        """Number of weights."""
        return self.rows * self.features

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Shape of the table of a clique."""
        return (self.labels,) * self.size

    @property
    def bounds(self) -> tuple[Floats, Floats]:
        """The least and the most that each of the P rows may count (P,), over all labels."""
        if self.matrix is None:
            return np.zeros(self.rows), np.ones(self.rows)
        return self.matrix.min(axis=0), self.matrix.max(axis=0)

    def scores(self, weights: Floats, features: Floats) -> Floats:
        """Scores (cliques, cells) of weights (P, F) and features (cliques, F)."""
        by_row = features @ weights.T
        return np.ascontiguousarray(by_row if self.matrix is None else by_row @ self.matrix.T)

    def gathered(self, tables: Floats, features: Floats) -> Floats:
        """The slope by weights (P, F) of a function whose slope by scores is tables (cliques, cells)."""
        by_row = tables if self.matrix is None else tables @ self.matrix
        return np.asarray(by_row.T @ features)

    def whole(self, weights: Floats) -> Floats:
        """The weights as they act (K, ..., K, F): one number for each joint state of the labels and feature."""
        acting = weights if self.matrix is None else self.matrix @ weights
        return np.array(acting).reshape(*self.shape, self.features)


def make_template(name: str, form: Any, size: int, features: int, labels: Sequence[Any]) -> Template:
    """The template of a form.

    form: one of `FORMS`; a function of r labels that gives a number, or several; or these numbers as an array
    (K, ..., K) or (K, ..., K, P) over the labels in their order.
    """
    count = len(labels)
    if size > MOST_MEMBERS or count**size > MOST_CELLS:
        raise SizeError(
            f"A clique of template {name!r} has {size} nodes with {count} labels each; its table may have at most "
            f"{MOST_CELLS:,} cells, over at most {MOST_MEMBERS} nodes. Use smaller cliques."
        )
    if callable(form) or isinstance(form, np.ndarray):
        matrix = _tabulated(name, form, size, labels) if callable(form) else _checked(name, form, size, count)
        return Template(name, size, features, count, matrix, tuple((number,) for number in range(matrix.shape[1])))
    if not isinstance(form, str) or form not in FORMS:
        raise OptionError(
            f"The weights of {name} are {form!r}; expected one of {listing(FORMS)}, or a function of the labels."
        )
    cells = list(itertools.product(range(count), repeat=size))
    if form == "full" or size == 1:
        names = tuple(tuple(labels[code] for code in cell) for cell in cells)
        return Template(name, size, features, count, None, names)
    if form == "equal":
        column = np.array([float(len(set(cell)) == 1) for cell in cells])
        return Template(name, size, features, count, column[:, None], (("equal",),))
    kinds = sorted({tuple(sorted(cell)) for cell in cells})
    number_of = {kind: number for number, kind in enumerate(kinds)}
    matrix = np.zeros((len(cells), len(kinds)))
    matrix[np.arange(len(cells)), [number_of[tuple(sorted(cell))] for cell in cells]] = 1.0
    names = tuple(tuple(labels[code] for code in kind) for kind in kinds)
    return Template(name, size, features, count, matrix, names)


def _tabulated(name: str, form: Callable[..., Any], size: int, labels: Sequence[Any]) -> Floats:
    """What a function gives for each joint state of the labels (cells, P)."""
    rows: list[Floats] = []
    for cell in itertools.product(labels, repeat=size):
        try:
            value = np.atleast_1d(np.asarray(form(*cell), np.float64))
        except Exception as error:
            raise OptionError(
                f"The function of template {name!r} fails at {cell!r}: {type(error).__name__}, {error}."
            ) from error
        if value.ndim != 1 or (rows and len(value) != len(rows[0])) or not np.isfinite(value).all():
            raise OptionError(
                f"The function of template {name!r} gives {value!r} at {cell!r}; expected one finite number, or as "
                "many as at every other joint state of the labels."
            )
        rows.append(value)
    return np.array(rows)


def _checked(name: str, form: Floats, size: int, count: int) -> Floats:
    """An array of such numbers as a matrix (cells, P)."""
    whole = (count,) * size
    if form.shape[:size] != whole or form.ndim > size + 1 or form.dtype.kind not in "fiub":
        raise OptionError(
            f"The array of template {name!r} has shape {form.shape}; expected {whole}, or that and one axis more: "
            f"cliques of {size} nodes with {count} labels."
        )
    matrix = np.array(form, np.float64).reshape(count**size, -1)
    if not np.isfinite(matrix).all():
        raise OptionError(f"The array of template {name!r} holds numbers that are not finite.")
    return matrix
