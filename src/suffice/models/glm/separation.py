"""Does the maximum of the likelihood exist? Separation of discrete responses, and columns that say the same.

A direction d separates the rows if no row's likelihood falls along it and some row's rises for ever: for a binomial
response ``x'd >= 0`` where all trials succeeded, ``x'd <= 0`` where all failed, and ``x'd = 0`` where both happened;
for counts ``x'd <= 0`` where the count is 0 and ``x'd = 0`` elsewhere; for labels ``x'(d_c - d_j) >= 0`` for the label
c of the row and every other label j. Then the supremum is only reached at infinity.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Flags, Floats
from suffice.engines.linear_predictor import (
    CoefficientLayout,
    ResponseDistribution,
    RowBlock,
    RowProducts,
    linear_predictor,
)
from suffice.models.glm.design import Design, NamedParameters
from suffice.models.glm.directions import Separation as Separation
from suffice.models.glm.directions import programme as programme
from suffice.models.glm.directions import without_rounding as without_rounding
from suffice.models.glm.family import RowDistribution
from suffice.models.glm.problem import Largest, RegressionProblem, largest_move, move_bound
from suffice.models.glm.solve import Result
from suffice.solvers.information import Information

#: A Newton step whose share of every row's slope is at most this rules a separating direction out; any number below 1
#: does in exact arithmetic.
STILL = 0.5
#: A ray moves some linear predictor by more than this.
MOVED = 0.01
#: Numbers in the linear programme up to which it is solved; beyond, the ray of the last step decides.
MOST_NUMBERS = 3_000_000
#: Share of its terms by which a ray moves rows that are taken to stay in place.
RAY = 1e-5
#: Directions that move rows by less than this share leave them in place; roundings of each column allowed then.
FLAT_SHARE, ROUNDINGS = 1e-10, 8.0
#: Share of the largest move of a direction up to which a row stays in place.
IN_PLACE = 1e-7
#: Linear predictors that differ by more are taken to differ by so much: steps are not as small as one over its exp.
MOST_APART = 700.0
#: Columns up to which a ray is tried.
MOST_COLUMNS = 2_000


def sides(y: Floats, kind: str) -> tuple[Floats, Flags]:
    """The sign (n,) that x'd must have, and whether the row fixes it at 0."""
    if kind == "binomial":
        return np.where(y >= 1.0, 1.0, -1.0), (y > 0.0) & (y < 1.0)
    return -np.ones_like(y), y > 0.0


def find_separation(problem: RegressionProblem, kind: str, result: Result) -> Separation:
    """Look for a separating direction, once the last Newton step does not rule one out."""
    information = result.last.information
    step = newton_step(problem, result)
    if information.definite and rules_out(problem, kind, result.beta, step):
        return Separation(True)
    if is_small(problem, problem.outputs):
        return _search(problem, kind, problem.rows.block)
    by_step = ray(problem, kind, step)
    # Both ways along each, as a flat direction has no sign; each scaled to move some row by 1.
    others = likely_rays(problem, information, result.beta) if by_step.exists is None else ()
    return next((one for one in (ray(problem, kind, other) for other in others) if one.exists is False), by_step)


def newton_step(problem: RegressionProblem, result: Result) -> Floats:
    """The Newton step at a result (m k,), 0 for coefficients that are held."""
    step = problem.whole(result.last.information.solve(result.last.gradient))
    return step if problem.kept is None or problem.fixed is None else step - problem.fixed


def rules_out(
    problem: RegressionProblem, kind: str, beta: Floats, step: Floats, origin: Floats | None = None, stands: float = 1.0
) -> bool:
    """Whether a Newton step rules a separating direction out, as `share_of_slopes` shows.

    stands: the rows for which each stands whose information made the step. The shares need not be known where a bound
    of them is small. In the canonical links rows that may move have ``W_i <= |score_i|``: for a count of 0 both are the
    mean m, for a share of 1 they are ``m (1 - m)`` and ``1 - m``, for a share of 0 ``m (1 - m)`` and m. Between two
    points m, or 1 - m, changes by no more than the factor ``exp |eta - eta'|``.
    """
    if kind != "labels" and isinstance(problem.distribution, RowDistribution) and _is_canonical(problem.distribution):
        for most_moved in (move_bound, largest_move):
            bound = stands * most_moved(problem, step)
            if bound > STILL:
                continue
            if origin is None or origin is beta:
                return True
            apart = problem.whole(beta) - problem.whole(origin)
            if any(bound * _grown(moved(problem, apart)) <= STILL for moved in (move_bound, largest_move)):
                return True
            break
    return stands * share_of_slopes(problem, kind, beta, step, origin) <= STILL


def _grown(apart: float) -> float:
    """The factor by which a mean, or one less it, may differ where linear predictors are so far apart."""
    return math.exp(min(apart, MOST_APART))


def _is_canonical(distribution: RowDistribution) -> bool:
    return (distribution.family.rows_like, distribution.link.name) in (("binomial", "logit"), ("poisson", "log"))


def share_of_slopes(
    problem: RegressionProblem, kind: str, beta: Floats, step: Floats, origin: Floats | None = None
) -> float:
    """The most that a Newton step s with information W changes a row's slope, as a share of it.

    Along a separating d every row that moves gains: the slope is ``g'd = sum |score_i| |x_i'd|``. As g = X'WX s, it is
    ``sum W_i (x_i's) (x_i'd)`` as well. Where ``W_i |x_i's| < |score_i|`` for every row that may move, the second sum
    is below the first unless no row moves: then there is no such d, at whatever point and in whatever units. Labels
    have W = diag(p) - pp', and ``|Cov_p(s, d)| <= max |s_j - mean s| sum p_j (d_c - d_j)``, the sum being the slope.

    `origin` has the coefficients at which W was made, where they are others.
    """
    if kind == "labels":
        return 2.0 * largest_move(problem, step)
    other = None if origin is None or origin is beta else problem.whole(origin)
    question = _ShareOfSlopes(
        problem.layout, problem.distribution, kind, problem.whole(beta), step, other, problem.products
    )
    return float(problem.rows.reduce(question).value)


@dataclass(frozen=True, eq=False)
class _ShareOfSlopes:
    """What `share_of_slopes` asks."""

    layout: CoefficientLayout
    distribution: ResponseDistribution
    kind: str
    beta: Floats
    step: Floats
    origin: Floats | None
    products: RowProducts

    def __call__(self, block: RowBlock) -> Largest:
        layout, products, largest = self.layout, self.products, 0.0
        for part in layout.parts(block):
            move = np.abs(linear_predictor(layout, replace(part, offset=None), self.step, products))
            _, score, weight = self.distribution(linear_predictor(layout, part, self.beta, products), part.y)
            if self.origin is not None:
                weight = self.distribution(linear_predictor(layout, part, self.origin, products), part.y)[2]
            moves = (move > 0.0) & ~sides(part.y, self.kind)[1]
            if part.weights is not None:
                moves &= part.weights > 0.0
            slope = np.abs(score[moves])
            with np.errstate(over="ignore"):  # Rows far out have lost all slope.
                share = np.divide(weight[moves], slope, out=np.full_like(slope, np.inf), where=slope > 0.0)
                largest = max(largest, float((move[moves] * share).max(initial=0.0)))
        return Largest(largest)


def _search(problem: RegressionProblem, kind: str, block: RowBlock) -> Separation:
    """By a linear programme."""
    matrix = np.concatenate([dense_rows(problem.layout, part) for part in problem.layout.parts(block)])
    if problem.kept is not None:  # Columns that were left out have no direction.
        matrix[:, np.setdiff1d(np.arange(problem.width), problem.kept) % problem.layout.size] = 0.0
    weights = np.ones(block.rows) if block.weights is None else block.weights
    kept = weights > 0.0
    if kind == "labels":
        return _labels(matrix, block.y.astype(np.intp), kept, problem.outputs)
    signs, fixed = sides(block.y, kind)
    programmed = programme(signs[kept, None] * matrix[kept], fixed[kept])
    if programmed.decided is None:
        return programmed
    whole = np.zeros(block.rows, dtype=np.bool_)
    whole[np.flatnonzero(kept)[programmed.decided]] = True
    return replace(programmed, decided=whole)


def dense_rows(layout: CoefficientLayout, part: RowBlock) -> Floats:
    """All columns of some rows in the engine's layout."""
    blocks = [np.ones((part.rows, 1))] if layout.constant else []
    blocks.append(part.dense)
    if layout.sparse:
        blocks.append(part.sparse.toarray())
    if part.codes is not None:
        blocks.append(np.eye(layout.levels + 1)[part.codes][:, 1:])
    return np.concatenate(blocks, axis=1)


def _labels(matrix: Floats, codes: NDArray[np.intp], kept: Flags, outputs: int) -> Separation:
    """Labels: a row of label c must not lose against any other label j."""
    labels = codes[kept]
    stacked = _against_others(matrix[kept], labels, outputs)
    programmed = programme(stacked, np.zeros(len(stacked), dtype=np.bool_))
    if programmed.decided is None:
        return programmed
    # A row is decided once all other labels have lost; until then it still says something about those that have not.
    lost = programmed.decided.reshape(outputs + 1, -1) | (labels[None, :] == np.arange(outputs + 1)[:, None])
    whole = np.zeros(len(codes), dtype=np.bool_)
    whole[np.flatnonzero(kept)[lost.all(axis=0)]] = True
    return replace(programmed, decided=whole)


def _against_others(rows: Floats, labels: NDArray[np.intp], outputs: int) -> Floats:
    """``x (d_c - d_j)`` as rows, by other label j and then by row; 0 where j is the label c itself."""
    k, numbers, own = rows.shape[1], np.arange(len(rows)), labels < outputs
    constraints = []
    for other in range(outputs + 1):
        part = np.zeros((len(rows), outputs, k))
        part[numbers[own], labels[own]] += rows[own]
        if other < outputs:
            part[:, other] -= rows
        part[labels == other] = 0.0
        constraints.append(part.reshape(len(rows), -1))
    return np.concatenate(constraints)


def ray(problem: RegressionProblem, kind: str, step: Floats) -> Separation:
    """Whether a direction separates: near the supremum the last Newton step points along the ray.

    Rows that it moves by little are taken to stay in place, and the direction nearest to it that leaves them there must
    move no row the wrong way by more than rounding.
    """
    if not largest_move(problem, step) > MOVED or problem.width > MOST_COLUMNS:
        return Separation(None)
    size = np.abs(step)
    still = problem.rows.reduce(partial(_stays, rows_of=RowConstraints.of(problem, kind), step=step))
    _, values, axes = np.linalg.svd(still.root)
    flat = axes[int((values > FLAT_SHARE * values.max(initial=0.0)).sum()) :]
    columns = np.tile(column_sizes(problem), problem.width // problem.layout.size)
    direction = without_rounding(size * (flat.T @ (flat @ np.sign(step))), columns)
    if not largest_move(problem, direction) > MOVED or not separates(problem, kind, direction):
        return Separation(None)
    return Separation(False, direction)


def separates(problem: RegressionProblem, kind: str, direction: Floats) -> bool:
    """Whether a direction moves some row, and none the wrong way by more than rounding."""
    # The null space is known to some roundings for each column.
    rounding = ROUNDINGS * problem.width * np.finfo(np.float64).eps
    question = partial(_most_against, rows_of=RowConstraints.of(problem, kind), direction=direction)
    return largest_move(problem, direction) > 0.0 and bool(problem.rows.reduce(question).value <= rounding)


def _most_against(block: RowBlock, *, rows_of: RowConstraints, direction: Floats) -> Largest:
    """How far a direction moves some row the wrong way, as a share of its terms."""
    worst = 0.0
    for part in rows_of.layout.parts(block):
        rows, fixed = rows_of(part)
        along, most = rows @ direction, np.abs(rows) @ np.abs(direction)
        against = np.where(fixed, np.abs(along), -along)
        share = np.divide(against, most, out=np.zeros_like(most), where=most > 0.0)
        worst = max(worst, float(share.max(initial=0.0)))
    return Largest(worst)


def moved_by(problem: RegressionProblem, direction: Floats) -> Floats:
    """How far a direction moves each linear predictor of rows in memory (n,) or (n, m), as a share of the largest."""
    direction = direction / max(float(np.abs(direction).max(initial=0.0)), 1e-300)  # So that no product overflows.
    shaped = direction if problem.outputs == 1 else problem.shaped(direction)
    parts = (replace(part, offset=None) for part in problem.layout.parts(problem.rows.block))
    along = np.concatenate([linear_predictor(problem.layout, part, shaped) for part in parts])
    return np.asarray(along / max(float(np.abs(along).max(initial=0.0)), 1e-300))


@dataclass(frozen=True, eq=False)
class Undecided:
    """The rows of a block whose linear predictor a direction does not move; its largest move of any row is 1."""

    layout: CoefficientLayout
    direction: Floats

    def __call__(self, block: RowBlock) -> RowBlock:
        """Those rows."""
        if not block.rows:
            return block
        parts = (replace(part, offset=None) for part in self.layout.parts(block))
        along = np.concatenate([linear_predictor(self.layout, part, self.direction) for part in parts])
        return block.chosen(np.flatnonzero(np.abs(along) <= IN_PLACE), block.start)


def rows_left(problem: RegressionProblem, direction: Floats) -> RegressionProblem | None:
    """The problem of the rows with weight that a direction leaves in place, wherever they are; None where none is."""
    rows = problem.rows.chosen(Undecided(problem.layout, direction / largest_move(problem, direction)))
    return None if rows is None else replace(problem, rows=rows, record=None, rooted=False)


def is_small(problem: RegressionProblem, constraints: int = 1) -> bool:
    """Whether a linear programme decides: rows in memory, each with so many constraints."""
    rows = problem.rows
    return rows.in_memory and rows.rows * problem.size * constraints <= MOST_NUMBERS


@dataclass(frozen=True, eq=False)
class RowConstraints:
    """What a separating direction must leave in place or not lower; `without` are the columns that were left out."""

    layout: CoefficientLayout
    kind: str
    outputs: int
    without: NDArray[np.intp] | None

    @classmethod
    def of(cls, problem: RegressionProblem, kind: str) -> RowConstraints:
        """Those of a problem."""
        held = None if problem.kept is None else np.setdiff1d(np.arange(problem.width), problem.kept)
        return cls(problem.layout, kind, problem.outputs, None if held is None else held % problem.layout.size)

    def __call__(self, part: RowBlock) -> tuple[Floats, Flags]:
        """Rows (c, m k) that no direction lowers, of some rows with weight, and which of them stay in place."""
        matrix = dense_rows(self.layout, part)
        if self.without is not None:
            matrix[:, self.without] = 0.0
        kept = slice(None) if part.weights is None else part.weights > 0.0
        matrix, y = matrix[kept], part.y[kept]
        if self.kind == "labels":
            against = _against_others(matrix, y.astype(np.intp), self.outputs)
            return against, np.zeros(len(against), dtype=np.bool_)
        signs, fixed = sides(y, self.kind)
        return signs[:, None] * matrix, fixed


@dataclass(frozen=True, eq=False)
class Root:
    """A triangular root (k, k) of the squares of rows; roots add."""

    root: Floats

    def __add__(self, other: Root) -> Root:
        """Both sets of rows."""
        return Root(np.asarray(np.linalg.qr(np.vstack((self.root, other.root)), mode="r")))


def _stays(block: RowBlock, *, rows_of: RowConstraints, step: Floats) -> Root:
    """The root of rows that a step leaves about in place, in units of the step and each as long as any."""
    size, total = np.abs(step), Root(np.zeros((len(step), len(step))))
    for part in rows_of.layout.parts(block):
        rows, fixed = rows_of(part)
        rows = rows * size
        most = np.abs(rows).sum(axis=1)
        stays = (fixed | (np.abs(rows @ np.sign(step)) <= RAY * most)) & (most > 0.0)
        total = total + Root(rows[stays] / most[stays, None])
    return total


def column_sizes(problem: RegressionProblem) -> Floats:
    """The size of each column (k,) where it is not 0: a mean of which few outliers do not make much."""
    total, count = problem.rows.reduce(partial(_size_sums, layout=problem.layout))
    return np.asarray((total / np.maximum(count, 1.0)) ** 2)


def _size_sums(block: RowBlock, *, layout: CoefficientLayout) -> Floats:
    """The sum of the roots of the sizes of each column, and how many are not 0."""
    sums = np.zeros((2, layout.size))
    for part in layout.parts(block):
        rows = np.abs(dense_rows(layout, part))
        sums += np.sqrt(rows).sum(axis=0), (rows > 0.0).sum(axis=0)
    return sums


def likely_rays(problem: RegressionProblem, information: Information, beta: Floats) -> Iterator[Floats]:
    """Directions along which a likelihood may be running where the last Newton step does not say.

    Both ways of least information and, where every row is decided, the coefficients themselves. Each moves the linear
    predictor that it moves most by 1: how long it is in coefficients depends on the units of the columns.
    """
    rays = [problem.whole(beta)]
    if information.size == problem.size:
        values, vectors = information._eigen
        flat = np.zeros(problem.width)
        flat[slice(None) if problem.kept is None else problem.kept] = (
            vectors[:, int(np.argmin(values))] * information._scale
        )
        rays = [flat, -flat, *rays]
    for one in rays:
        far = largest_move(problem, one)
        if far > 0.0:
            yield one / far


def sentences(design: Design | NamedParameters, direction: Floats, classes: Sequence[object] = ()) -> tuple[str, ...]:
    """What runs to infinity, by name; direction (k,) or (k, m) in the order of the names, 0 for all that stays."""
    columns = direction.reshape(design.size, -1)
    words = []
    for number, name in enumerate(design.names):
        for label in range(columns.shape[1]):
            if columns[number, label] != 0.0:
                of = f" of {classes[label]!r}" if len(classes) else ""
                words.append(f"{name}{of} to {'+' if columns[number, label] > 0 else '-'}infinity")
    return tuple(words)
