"""Predict from a linear predictor: value, slope and information of rows under given coefficients, in one pass.

The coefficients are laid out as ``[constant][reals][levels of narrow factors][sparse columns][levels of one wide
factor]``. Indicators of narrow factors exist for one block of rows at a time; those of the wide factor are never made:
its part of the information is diagonal, and its cross products are sums by level.

A task is a question to a block of rows. It holds no rows, so that it can travel to where these are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from suffice.answers import MomentSums
from suffice.array_types import Floats
from suffice.engines.workers import with_one_blas_thread
from suffice.kernels.dense_rows import BLAS as BLAS
from suffice.kernels.dense_rows import RowProducts as RowProducts
from suffice.kernels.dense_rows import row_products as row_products
from suffice.kernels.moments import moment_sums
from suffice.kernels.row_distributions import logistic_rows as logistic_rows
from suffice.kernels.threads import blas_threads, run, thread_count
from suffice.kernels.weighted_gram import WeightedGram, block_rows

#: eta (n,) or (n, m) and y -> value (n,), score (n,) or (n, m), information about eta (n,) or (n, m, m).
ResponseDistribution = Callable[[Floats, Floats], tuple[Floats, Floats, Floats]]
Answer = TypeVar("Answer")

#: Most rows of a piece of work, and fewest: enough to pay for a thread.
PIECE_ROWS, LEAST_PIECE = 32_768, 8_192
#: Numbers of a piece of work; rows of a piece for each column, so that the answers of all pieces stay small beside X.
_PIECE, _ROWS_A_COLUMN = 4_194_304, 16
#: Multiplications of a product X'X up to which BLAS has no use for threads, and need not be held to one.
_TINY = 30_000
#: Eigenvalues of the information of one row, scaled to a diagonal of ones, that are rounding.
_ROW_ROUNDING = 1e-14


@dataclass(frozen=True)
class CoefficientLayout:
    """How many coefficients there are of each kind; of a factor they are counted without its reference level.

    `factors` has an entry for each narrow factor; `levels` counts those of the wide one.
    """

    constant: bool
    reals: int
    factors: tuple[int, ...] = ()
    sparse: int = 0
    levels: int = 0

    @property
    def dense(self) -> int:
        """Columns that are held in dense form."""
        return self.reals + sum(self.factors)

    @property
    def body(self) -> int:
        """Coefficients outside the wide factor."""
        return int(self.constant) + self.dense + self.sparse

    @property
    def size(self) -> int:
        """All coefficients of one linear predictor."""
        return self.body + self.levels

    def parts(self, block: RowBlock, size: int | None = None) -> Iterator[RowBlock]:
        """The rows in parts that stay in the cache, with the indicators of narrow factors among the dense columns."""
        for part in block.parts(block_rows(self.dense + 1) if size is None else size):
            yield part if part.factors is None else self._expanded(part)

    def _expanded(self, part: RowBlock) -> RowBlock:
        assert part.factors is not None
        dense, first = np.zeros((part.rows, self.dense)), self.reals
        dense[:, : self.reals] = part.dense
        numbers = np.arange(part.rows)
        for codes, levels in zip(part.factors.T, self.factors, strict=True):
            coded = codes > 0
            dense[numbers[coded], first - 1 + codes[coded].astype(np.intp)] = 1.0
            first += levels
        return replace(part, dense=dense, factors=None)


@dataclass(frozen=True)
class RowBlock:
    """Some rows: `dense` (n, p), `sparse` (n, s) in CSR form or None, `codes` (n,) of the wide factor or None.

    `factors` (n, f) are the codes of the narrow factors. The code 0 stands for the reference level. `y` is (n,) or
    (n, m); `weights` and `offset` are (n,) or None, and so are the `trials` of shares, which the weights count in.
    """

    dense: Floats
    y: Floats
    weights: Floats | None = None
    offset: Floats | None = None
    sparse: Any = None
    codes: NDArray[Any] | None = None
    factors: NDArray[Any] | None = None
    start: int = 0
    trials: Floats | None = None
    holds_rows: ClassVar[bool] = True
    instead: ClassVar[str] = "Use a solver of sums, such as 'irls'."

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.dense)

    def part(self, rows: slice) -> RowBlock:
        """Some rows in succession, which keep their numbers."""
        return self.chosen(rows, self.start + rows.start)

    def chosen(self, rows: Any, start: int = 0) -> RowBlock:
        """Some rows, by number or by a slice, as rows of their own, which are counted from a start."""
        return RowBlock(
            self.dense[rows],
            self.y[rows],
            None if self.weights is None else self.weights[rows],
            None if self.offset is None else self.offset[rows],
            None if self.sparse is None else self.sparse[rows],
            None if self.codes is None else self.codes[rows],
            None if self.factors is None else self.factors[rows],
            start,
            None if self.trials is None else self.trials[rows],
        )

    def parts(self, size: int) -> Iterator[RowBlock]:
        """The rows in parts of a size."""
        if self.rows <= size:
            yield self
            return
        for first in range(0, self.rows, size):
            yield self.part(slice(first, min(first + size, self.rows)))


@dataclass(frozen=True)
class RowCurvature:
    """Value, gradient and information at some coefficients, which add up over rows.

    `body` (b, b) is the information of all coefficients outside the wide factor, `levels` (K,) the diagonal of those
    inside and `cross` (b, K) the products between; all three are None where only value and gradient were asked for.
    """

    value: float
    gradient: Floats
    body: Floats | None = None
    cross: Floats | None = None
    levels: Floats | None = None

    def __add__(self, other: RowCurvature) -> RowCurvature:
        """Both sets of rows."""
        return RowCurvature(
            self.value + other.value,
            self.gradient + other.gradient,
            *(
                None if mine is None or theirs is None else mine + theirs
                for mine, theirs in ((self.body, other.body), (self.cross, other.cross), (self.levels, other.levels))
            ),
        )


def linear_predictor(layout: CoefficientLayout, block: RowBlock, beta: Floats, products: RowProducts = BLAS) -> Floats:
    """Eta of each row: (n,) for beta (k,), (n, m) for beta (k, m)."""
    constant = int(layout.constant)
    eta = products.forward(block.dense, beta[constant : constant + layout.dense])
    if constant:
        eta += beta[0]
    if layout.sparse:
        eta += block.sparse @ beta[constant + layout.dense : layout.body]
    if block.codes is not None:
        eta += np.concatenate((np.zeros((1, *beta.shape[1:])), beta[layout.body :]))[block.codes]
    if block.offset is not None:
        eta += block.offset if eta.ndim == 1 else block.offset[:, None]
    return eta


def transpose_product(
    layout: CoefficientLayout, block: RowBlock, values: Floats, products: RowProducts = BLAS
) -> Floats:
    """X' values (k,) for values (n,)."""
    parts = [] if not layout.constant else [np.atleast_1d(values.sum())]
    parts.append(products.back(values, block.dense))
    if layout.sparse:
        parts.append(block.sparse.T @ values)
    if block.codes is not None:
        parts.append(np.bincount(block.codes, values, minlength=layout.levels + 1)[1:])
    return np.concatenate(parts)


def slope_task(
    layout: CoefficientLayout, distribution: ResponseDistribution, beta: Floats, products: RowProducts = BLAS
) -> Callable[[RowBlock], RowCurvature]:
    """Value and gradient only."""
    return partial(_slopes, layout=layout, distribution=distribution, beta=beta, products=products)


def _slopes(
    block: RowBlock,
    *,
    layout: CoefficientLayout,
    distribution: ResponseDistribution,
    beta: Floats,
    products: RowProducts,
) -> RowCurvature:
    if layout.size == layout.constant + layout.reals:
        rows, law = (block.dense, block.y, block.offset, block.weights), getattr(distribution, "law", "")
        if (known := products.slopes(law, *rows, beta, constant=layout.constant)) is not None:
            return RowCurvature(*known)
    value, gradient = 0.0, np.zeros(layout.size)
    for part in layout.parts(block):
        terms, score, _ = distribution(linear_predictor(layout, part, beta, products), part.y)
        value += weighted_sum(terms, part.weights)
        gradient += transpose_product(layout, part, weighted(score, part.weights), products)
    return RowCurvature(value, gradient)


def curvature_task(
    layout: CoefficientLayout, distribution: ResponseDistribution, beta: Floats
) -> Callable[[RowBlock], RowCurvature]:
    """Value, gradient and expected information."""
    work = _wide_curvature if layout.sparse or layout.levels else _curvature
    return partial(work, layout=layout, distribution=distribution, beta=beta)


def _curvature(
    block: RowBlock, *, layout: CoefficientLayout, distribution: ResponseDistribution, beta: Floats
) -> RowCurvature:
    gram = WeightedGram(layout.dense, constant=layout.constant)
    value, gradient = 0.0, np.zeros(layout.size)
    for part in layout.parts(block):
        terms, score, information = distribution(linear_predictor(layout, part, beta), part.y)
        value += weighted_sum(terms, part.weights)
        gradient += transpose_product(layout, part, weighted(score, part.weights))
        gram.add(part.dense, weighted(information, part.weights))
    return RowCurvature(value, gradient, gram.matrix())


def _wide_curvature(
    whole: RowBlock, *, layout: CoefficientLayout, distribution: ResponseDistribution, beta: Floats
) -> RowCurvature:
    (block,) = layout.parts(whole, whole.rows)
    terms, score, information = distribution(linear_predictor(layout, block, beta), block.y)
    value = weighted_sum(terms, block.weights)
    gradient = transpose_product(layout, block, weighted(score, block.weights))
    return RowCurvature(value, gradient, *wide_products(layout, block, weighted(information, block.weights)))


def wide_products(
    layout: CoefficientLayout, block: RowBlock, weights: Floats
) -> tuple[Floats, Floats | None, Floats | None]:
    """Body, cross and levels of X'WX where there are sparse columns or a wide factor."""
    from scipy import sparse

    gram = WeightedGram(layout.dense, constant=layout.constant)
    for number in range(0, block.rows, block_rows(layout.dense + 1)):
        rows = slice(number, number + block_rows(layout.dense + 1))
        gram.add(block.dense[rows], weights[rows])
    head = int(layout.constant) + layout.dense
    body = np.zeros((layout.body, layout.body))
    body[:head, :head] = gram.matrix()
    front = np.column_stack((np.ones(block.rows), block.dense)) if layout.constant else block.dense
    if layout.sparse:
        scaled = block.sparse.multiply(weights[:, None]).tocsr()
        body[head:, :head] = scaled.T @ front
        body[:head, head:] = body[head:, :head].T
        body[head:, head:] = (scaled.T @ block.sparse).toarray()
    if block.codes is None:
        return body, None, None
    indicators = sparse.csr_array(
        (weights, block.codes, np.arange(block.rows + 1)), shape=(block.rows, layout.levels + 1)
    )
    cross = np.zeros((layout.body, layout.levels))
    cross[:head] = (indicators.T @ front)[1:].T
    if layout.sparse:
        cross[head:] = (indicators.T @ block.sparse).toarray()[1:].T
    levels = np.bincount(block.codes, weights, minlength=layout.levels + 1)[1:]
    return body, cross, levels.astype(np.float64, copy=False)


def information_product(
    layout: CoefficientLayout, distribution: ResponseDistribution, beta: Floats, vector: Floats
) -> Callable[[RowBlock], RowCurvature]:
    """The information times a vector, as the gradient of the answer; rows are met twice and nothing is stored."""
    return partial(_product, layout=layout, distribution=distribution, beta=beta, vector=vector)


def _product(
    block: RowBlock, *, layout: CoefficientLayout, distribution: ResponseDistribution, beta: Floats, vector: Floats
) -> RowCurvature:
    product = np.zeros(layout.size)
    for part in layout.parts(block):
        _, _, information = distribution(linear_predictor(layout, part, beta), part.y)
        along = linear_predictor(layout, RowBlock(part.dense, part.y, sparse=part.sparse, codes=part.codes), vector)
        product += transpose_product(layout, part, weighted(information, part.weights) * along)
    return RowCurvature(0.0, product)


def weighted(values: Floats, weights: Floats | None) -> Floats:
    """Values times weights."""
    return values if weights is None else values * weights.reshape(-1, *(1,) * (values.ndim - 1))


def weighted_sum(values: Floats, weights: Floats | None) -> float:
    """The sum of values times weights; a weight of 0 leaves its row out."""
    if weights is None:
        return float(values.sum())
    with np.errstate(invalid="ignore"):
        return float(np.where(weights > 0.0, values * weights, 0.0).sum())


def reduce_rows(block: RowBlock, task: Callable[[RowBlock], Answer], threads: int | None = None) -> Answer:
    """The sum of a task over pieces of rows in memory, the same for any number of threads."""
    pieces = list(block.parts(_piece_rows(block)))
    if len(pieces) == 1:
        tiny = block.rows * (block.dense.shape[1] + 1) ** 2 <= _TINY
        return task(block) if tiny else with_one_blas_thread(lambda: task(block))
    answers: list[Any] = [None] * len(pieces)

    def work(number: int, worker: int) -> None:
        answers[number] = task(pieces[number])

    import scipy.linalg.blas  # noqa: F401  BLAS can be held to one thread once it is loaded.

    used = blas_threads(min(thread_count() if threads is None else threads, len(pieces)))
    with_one_blas_thread(lambda: run(work, range(len(pieces)), used))
    total: Answer = _sum(answers)
    return total


def _piece_rows(block: RowBlock) -> int:
    """Rows of a piece; pieces are equal, so that no thread waits for the last one."""
    columns = max(1, block.dense.shape[1])
    most = min(PIECE_ROWS, max(LEAST_PIECE, _PIECE // columns, _ROWS_A_COLUMN * columns))
    return int(-(-block.rows // max(1, -(-block.rows // most))))


def _sum(answers: Sequence[Any]) -> Any:
    """Pairs of neighbours first: the rounding does not grow with the number of pieces."""
    while len(answers) > 1:
        odd = answers[-1:] if len(answers) % 2 else []
        answers = [answers[number] + answers[number + 1] for number in range(0, len(answers) - 1, 2)] + list(odd)
    return answers[0]


# Roots: for columns that are nearly collinear -------------------------------------------------------------------------


@dataclass(frozen=True)
class RootCurvature:
    """Value, gradient, and a triangular root R (k, k) of the information, ``R'R = X'WX``; roots add by QR."""

    value: float
    gradient: Floats
    root: Floats

    def __add__(self, other: RootCurvature) -> RootCurvature:
        """Both sets of rows."""
        root = np.asarray(np.linalg.qr(np.vstack((self.root, other.root)), mode="r"))
        return RootCurvature(self.value + other.value, self.gradient + other.gradient, root)


def moments_task(layout: CoefficientLayout) -> Callable[[RowBlock], MomentSums]:
    """The task that finds the moments of all dense columns and the response, offsets taken off, in double-double."""
    return partial(_moments, layout=layout)


def _moments(block: RowBlock, *, layout: CoefficientLayout) -> MomentSums:
    sums = []
    for part in layout.parts(block, PIECE_ROWS):
        y = part.y if part.offset is None else part.y - part.offset
        sums.append(MomentSums(*moment_sums(np.vstack([part.dense.T, y[None]]), part.weights)))
    return sum(sums[1:], start=sums[0])


def root_task(
    layout: CoefficientLayout, distribution: ResponseDistribution, beta: Floats
) -> Callable[[RowBlock], RootCurvature]:
    """As `curvature_task`, for dense columns: the root keeps the digits that X'WX squares away."""
    return partial(_root, layout=layout, distribution=distribution, beta=beta)


def _root(
    block: RowBlock, *, layout: CoefficientLayout, distribution: ResponseDistribution, beta: Floats
) -> RootCurvature:
    value, gradient, root = 0.0, np.zeros(layout.size), np.zeros((0, layout.size))
    for part in layout.parts(block, max(2_048, 4 * layout.size)):
        terms, score, information = distribution(linear_predictor(layout, part, beta), part.y)
        value += weighted_sum(terms, part.weights)
        gradient += transpose_product(layout, part, weighted(score, part.weights))
        rows = np.column_stack((np.ones(part.rows), part.dense)) if layout.constant else part.dense
        scaled = rows * np.sqrt(weighted(information, part.weights))[:, None]
        root = np.asarray(np.linalg.qr(np.vstack((root, scaled)), mode="r"))
    return RootCurvature(value, gradient, root)


# Several linear predictors --------------------------------------------------------------------------------------------


def several_task(
    layout: CoefficientLayout, distribution: ResponseDistribution, beta: Floats, *, information: bool = True
) -> Callable[[RowBlock], RowCurvature]:
    """Value, gradient (m k,) and information (m k, m k) for m linear predictors, beta (k, m); predictors first.

    The information about eta of a row is an (m, m) matrix, so each pair of predictors has its own X'WX.
    """
    if layout.levels:
        raise ValueError("several linear predictors take no wide factor")
    return partial(_several, layout=layout, distribution=distribution, beta=beta, information=information)


def _several(
    block: RowBlock, *, layout: CoefficientLayout, distribution: ResponseDistribution, beta: Floats, information: bool
) -> RowCurvature:
    k, m = layout.size, beta.shape[1]
    value, gradient = 0.0, np.zeros((m, k))
    total = np.zeros((m * k, m * k))
    for part in layout.parts(block):
        terms, score, weights = distribution(linear_predictor(layout, part, beta), part.y)
        value += weighted_sum(terms, part.weights)
        score = weighted(score, part.weights)
        gradient += transpose_products(layout, part, score)
        if information:
            rows, weights = _rows(layout, part), weighted(weights, part.weights)
            for a in range(m):
                right = (rows[:, None, :] * weights[:, a, a:, None]).reshape(len(rows), -1)
                total[a * k : (a + 1) * k, a * k :] += rows.T @ right
    if information:
        total = np.triu(total) + np.triu(total, 1).T
    return RowCurvature(value, gradient.ravel(), total if information else None)


def several_root_task(
    layout: CoefficientLayout, distribution: ResponseDistribution, beta: Floats
) -> Callable[[RowBlock], RootCurvature]:
    """As `several_task`, for dense columns, with a root (m k, m k) of the information as in `root_task`."""
    return partial(_several_root, layout=layout, distribution=distribution, beta=beta)


def _several_root(
    block: RowBlock, *, layout: CoefficientLayout, distribution: ResponseDistribution, beta: Floats
) -> RootCurvature:
    k, m = layout.size, beta.shape[1]
    value, gradient, root = 0.0, np.zeros((m, k)), np.zeros((0, m * k))
    for part in layout.parts(block, max(2_048 // m, 4 * k)):
        terms, score, weights = distribution(linear_predictor(layout, part, beta), part.y)
        value += weighted_sum(terms, part.weights)
        gradient += transpose_products(layout, part, weighted(score, part.weights))
        roots = _row_roots(weighted(weights, part.weights))
        scaled = (roots[..., None] * _rows(layout, part)[:, None, None, :]).reshape(-1, m * k)
        root = np.asarray(np.linalg.qr(np.vstack((root, scaled)), mode="r"))
    return RootCurvature(value, gradient.ravel(), root)


def _row_roots(matrices: Floats) -> Floats:
    """A matrix S (n, m, m) for each of some that are not negative, with ``S'S`` the matrix; rounding counts as 0."""
    own = np.sqrt(np.maximum(np.diagonal(matrices, axis1=1, axis2=2), 0.0))
    scale = np.divide(1.0, own, out=np.zeros_like(own), where=own > 0.0)
    scaled = matrices * scale[:, :, None] * scale[:, None, :]
    values, vectors = np.linalg.eigh(np.where(np.isfinite(scaled), scaled, 0.0))
    values = np.where(values > _ROW_ROUNDING, values, 0.0)
    return np.asarray(np.sqrt(values)[:, :, None] * vectors.transpose(0, 2, 1) * own[:, None, :])


def transpose_products(layout: CoefficientLayout, block: RowBlock, values: Floats) -> Floats:
    """(X' values)' (m, k) for values (n, m)."""
    return np.stack([transpose_product(layout, block, np.ascontiguousarray(column)) for column in values.T])


def several_product(
    layout: CoefficientLayout, distribution: ResponseDistribution, beta: Floats, vector: Floats
) -> Callable[[RowBlock], RowCurvature]:
    """The information of m linear predictors times a vector (k, m), as the gradient (m k,) of the answer."""
    return partial(_several_turned, layout=layout, distribution=distribution, beta=beta, vector=vector)


def _several_turned(
    block: RowBlock, *, layout: CoefficientLayout, distribution: ResponseDistribution, beta: Floats, vector: Floats
) -> RowCurvature:
    product = np.zeros((beta.shape[1], layout.size))
    for part in layout.parts(block):
        _, _, information = distribution(linear_predictor(layout, part, beta), part.y)
        along = linear_predictor(layout, RowBlock(part.dense, part.y, sparse=part.sparse, codes=part.codes), vector)
        turned = np.einsum("nij,nj->ni", information, along)
        product += transpose_products(layout, part, weighted(turned, part.weights))
    return RowCurvature(0.0, product.ravel())


def _rows(layout: CoefficientLayout, part: RowBlock) -> Floats:
    """All columns of some rows, dense."""
    parts = [np.ones((part.rows, 1))] if layout.constant else []
    parts.append(part.dense)
    if layout.sparse:
        parts.append(part.sparse.toarray())
    return np.concatenate(parts, axis=1)
