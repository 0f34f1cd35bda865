"""Does the maximum of the likelihood exist? Separation of discrete responses, and columns that say the same.

A direction d separates the rows if no row's likelihood falls along it and some row's rises for ever: for a binomial
response ``x'd >= 0`` where all trials succeeded, ``x'd <= 0`` where all failed, and ``x'd = 0`` where both happened;
for counts ``x'd <= 0`` where the count is 0 and ``x'd = 0`` elsewhere; for labels ``x'(d_c - d_j) >= 0`` for the label
c of the row and every other label j. Then the supremum is only reached at infinity.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from suffice.engines.linear_predictor import Block, linear_predictor
from suffice.models.glm.design import Design, Parameters
from suffice.models.glm.problem import Largest, Problem, largest_move
from suffice.models.glm.solve import Result
from suffice.solvers.information import Information

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

#: A Newton step whose share of every row's slope is at most this rules a separating direction out; any number below 1
#: does in exact arithmetic.
STILL = 0.5
#: A ray moves some linear predictor by more than this.
MOVED = 0.01
#: Constraints from which a linear programme has no variable for each of them.
MANY = 5_000
#: A row of length 1 is raised, or fails, from here on; programmes are solved to 1e-7.
RAISED, FAILED = 1e-5, 2e-7
#: Numbers in the linear programme up to which it is solved; beyond, the ray of the last step decides.
MOST_NUMBERS = 3_000_000
#: Relative slack of the ray test.
RAY = 1e-5


@dataclass(frozen=True, eq=False)
class Separation:
    """`exists` (None: not decided), a direction (k,) or (m k,) in the engine's layout, and the rows it decides (n,).

    Of ordered labels `decided` is (2, n), for the upper and the lower end of each row.
    """

    exists: bool | None
    direction: Floats | None = None
    decided: Bools | None = None


def sides(y: Floats, kind: str) -> tuple[Floats, Bools]:
    """The sign (n,) that x'd must have, and whether the row fixes it at 0."""
    if kind == "binomial":
        return np.where(y >= 1.0, 1.0, -1.0), (y > 0.0) & (y < 1.0)
    return -np.ones_like(y), y > 0.0


def find_separation(problem: Problem, kind: str, result: Result) -> Separation:
    """Look for a separating direction, once the last Newton step does not rule one out."""
    information = result.last.information
    step = newton_step(problem, result)
    if information.definite and share_of_slopes(problem, kind, result.beta, step) <= STILL:
        return Separation(True)
    found = _search(problem, kind, step)
    if found.exists is None:
        # Both ways along each, as a flat direction has no sign; each scaled to move some row by 1.
        for one in likely_rays(problem, information, result.beta):
            found = ray(problem, kind, one)
            if found.exists is False:
                break
    return found


def newton_step(problem: Problem, result: Result) -> Floats:
    """The Newton step at a result (m k,), 0 for coefficients that are held."""
    step = problem.whole(result.last.information.solve(result.last.gradient))
    return step if problem.kept is None or problem.fixed is None else step - problem.fixed


def share_of_slopes(problem: Problem, kind: str, beta: Floats, step: Floats, origin: Floats | None = None) -> float:
    """The most that a Newton step s with information W changes a row's slope, as a share of it.

    Along a separating d every row that moves gains: the slope is ``g'd = sum |score_i| |x_i'd|``. As g = X'WX s, it is
    ``sum W_i (x_i's) (x_i'd)`` as well. Where ``W_i |x_i's| < |score_i|`` for every row that may move, the second sum
    is below the first unless no row moves: then there is no such d, at whatever point and in whatever units. Labels
    have W = diag(p) - pp', and ``|Cov_p(s, d)| <= max |s_j - mean s| sum p_j (d_c - d_j)``, the sum being the slope.

    `origin` has the coefficients at which W was made, where they are others.
    """
    if kind == "labels":
        return 2.0 * largest_move(problem, step)
    layout, products, now = problem.layout, problem.products, problem.whole(beta)

    def task(block: Block) -> Largest:
        found = 0.0
        for part in layout.parts(block):
            move = np.abs(linear_predictor(layout, replace(part, offset=None), step, products))
            _, score, weight = problem.law(linear_predictor(layout, part, now, products), part.y)
            if origin is not None:
                weight = problem.law(linear_predictor(layout, part, problem.whole(origin), products), part.y)[2]
            moves = (move > 0.0) & ~sides(part.y, kind)[1]
            if part.weights is not None:
                moves &= part.weights > 0.0
            slope = np.abs(score[moves])
            with np.errstate(over="ignore"):  # Rows far out have lost all slope.
                share = np.divide(weight[moves], slope, out=np.full_like(slope, np.inf), where=slope > 0.0)
                found = max(found, float((move[moves] * share).max(initial=0.0)))
        return Largest(found)

    return problem.rows.reduce(task).value


def _search(problem: Problem, kind: str, step: Floats) -> Separation:
    """The linear programme where it can be solved, else whether the step itself separates."""
    rows = problem.rows
    if not rows.in_memory:
        return ray(problem, kind, step)
    outputs = problem.outputs
    if rows.rows * problem.size * max(outputs, 1) > MOST_NUMBERS:
        return ray(problem, kind, step)
    block = rows.block  # type: ignore[union-attr]
    matrix = np.concatenate([dense_rows(problem, part) for part in problem.layout.parts(block)])
    if problem.kept is not None:  # Columns that were left out have no direction.
        matrix[:, np.setdiff1d(np.arange(problem.width), problem.kept) % problem.layout.size] = 0.0
    weights = np.ones(block.rows) if block.weights is None else block.weights
    kept = weights > 0.0
    if kind == "labels":
        return _labels(matrix, block.y.astype(np.intp), kept, outputs)
    signs, fixed = sides(block.y, kind)
    found = programme(signs[kept, None] * matrix[kept], fixed[kept])
    if found is None:
        return Separation(True)
    direction, decided = found
    whole = np.zeros(block.rows, dtype=np.bool_)
    whole[np.flatnonzero(kept)[decided]] = True
    return Separation(False, direction, whole)


def dense_rows(problem: Problem, part: Block) -> Floats:
    """All columns of some rows in the engine's layout."""
    layout = problem.layout
    found = [np.ones((part.rows, 1))] if layout.constant else []
    found.append(part.dense)
    if layout.sparse:
        found.append(part.sparse.toarray())
    if part.codes is not None:
        found.append(np.eye(layout.levels + 1)[part.codes][:, 1:])
    return np.concatenate(found, axis=1)


def programme(rows: Floats, fixed: Bools) -> tuple[Floats, Bools] | None:
    """The direction that raises as many rows as any: maximise sum t with ``rows d >= t``, ``0 <= t <= 1``.

    Directions add, so the best one raises every row that some direction raises. None if there is no such row.
    """
    from scipy import optimize, sparse

    if len(rows) > MANY:
        return programme_of_many(rows, fixed)
    size = np.abs(rows).max(axis=0, initial=0.0)
    scaled = rows / np.where(size > 0.0, size, 1.0)
    free = scaled[~fixed]
    n, k = len(free), rows.shape[1]
    if n == 0:
        return None
    answer = optimize.linprog(
        np.concatenate((np.zeros(k), -np.ones(n))),
        A_ub=sparse.hstack([sparse.csr_array(-free), sparse.eye_array(n)], format="csr"),
        b_ub=np.zeros(n),
        A_eq=None
        if n == len(rows)
        else sparse.hstack([sparse.csr_array(scaled[fixed]), sparse.csr_array((len(rows) - n, n))], format="csr"),
        b_eq=None if n == len(rows) else np.zeros(len(rows) - n),
        bounds=[(None, None)] * k + [(0.0, 1.0)] * n,
        method="highs",
    )
    if answer.x is None or answer.fun is None or answer.fun > -0.5:
        return None
    direction = np.where(size > 0.0, answer.x[:k] / np.where(size > 0.0, size, 1.0), 0.0)
    decided = np.zeros(len(rows), dtype=np.bool_)
    decided[~fixed] = answer.x[k:] > 0.5
    return direction, decided


def programme_of_many(rows: Floats, fixed: Bools) -> tuple[Floats, Bools] | None:
    """The same for many rows, with a variable for each coefficient alone.

    A direction has the largest sum over rows that none has raised yet. Rows that the sum of all such directions leaves
    in place span one dimension less each time, so that there are at most as many as coefficients.
    """
    size = np.abs(rows).max(axis=0, initial=0.0)
    size = np.where(size > 0.0, size, 1.0)
    basis = _still(rows[fixed] / size)
    whole = rows[~fixed] / size
    free = whole @ basis
    # Whether a row is raised does not depend on its length; what is left of one that the basis cannot move is rounding.
    length, before = (np.abs(one).max(axis=1, initial=0.0)[:, None] for one in (free, whole))
    free = np.divide(free, length, out=np.zeros_like(free), where=length > 1e-10 * before)
    total, left = np.zeros(basis.shape[1]), np.ones(len(free), dtype=np.bool_)
    for _ in range(basis.shape[1]):
        move = _steepest(free, free[left].sum(axis=0))
        raised = left & (free @ move > RAISED)
        if not raised.any():
            break
        total += move
        left &= ~raised
    if left.all():
        return None
    decided = np.zeros(len(rows), dtype=np.bool_)
    decided[~fixed] = ~left
    return basis @ total / size, decided


def _still(rows: Floats) -> Floats:
    """Directions (k, r), orthonormal, that move none of these rows."""
    k = rows.shape[1]
    if not len(rows):
        return np.eye(k)
    _, values, vectors = np.linalg.svd(np.linalg.qr(rows, mode="r"))
    rank = int((values > 1e-10 * values.max(initial=0.0)).sum())
    return np.asarray(vectors[rank:].T)


def _steepest(rows: Floats, goal: Floats) -> Floats:
    """The d in ``[-1, 1]^k`` of the largest ``goal' d`` with ``rows d >= 0``, by rows that are added as they fail."""
    from scipy import optimize

    k = rows.shape[1]
    chosen = np.unique(np.linspace(0, len(rows) - 1, 50 * k).astype(np.intp))
    top = float(np.abs(goal).max(initial=0.0))
    while top > 0.0:
        answer = optimize.linprog(-goal / top, A_ub=-rows[chosen], b_ub=np.zeros(len(chosen)), bounds=(-1.0, 1.0))
        if answer.x is None:
            break
        along = rows @ answer.x
        worst = np.argsort(along)[: 20 * k]
        new = np.setdiff1d(worst[along[worst] < -FAILED], chosen)
        if not len(new):
            return np.asarray(answer.x)
        chosen = np.concatenate((chosen, new))
    return np.zeros(k)


def _labels(matrix: Floats, codes: NDArray[np.intp], kept: Bools, outputs: int) -> Separation:
    """Labels: a row of label c must not lose against any other label j."""
    rows, k = matrix[kept], matrix.shape[1]
    labels = codes[kept]
    constraints = []
    for other in range(outputs + 1):
        part = np.zeros((len(rows), outputs, k))
        at = np.arange(len(rows))
        own = labels < outputs
        part[at[own], labels[own]] += rows[own]
        if other < outputs:
            part[:, other] -= rows
        part[labels == other] = 0.0
        constraints.append(part.reshape(len(rows), -1))
    stacked = np.concatenate(constraints)
    found = programme(stacked, np.zeros(len(stacked), dtype=np.bool_))
    if found is None:
        return Separation(True)
    direction, decided = found
    # A row is decided once all other labels have lost; until then it still says something about those that have not.
    lost = decided.reshape(outputs + 1, -1) | (labels[None, :] == np.arange(outputs + 1)[:, None])
    whole = np.zeros(len(codes), dtype=np.bool_)
    whole[np.flatnonzero(kept)[lost.all(axis=0)]] = True
    return Separation(False, direction, whole)


def ray(problem: Problem, kind: str, step: Floats) -> Separation:
    """Whether a direction itself separates: near the supremum the last Newton step points along the ray."""
    shaped = problem.shaped(step) if kind == "labels" else step

    def task(block: Block) -> Largest:
        worst = 0.0
        for part in problem.layout.parts(block):
            along = linear_predictor(problem.layout, replace(part, offset=None), shaped)
            against = _label_loss(along, part.y) if kind == "labels" else _loss(along, part.y, kind)
            if part.weights is not None:
                against = against[part.weights > 0.0]
            worst = max(worst, float(against.max(initial=0.0)))
        return Largest(worst)

    against = problem.rows.reduce(task).value
    far = largest_move(problem, step)
    return Separation(False, step) if far > MOVED and against <= RAY * far else Separation(None)


def likely_rays(problem: Problem, information: Information, beta: Floats) -> Iterator[Floats]:
    """Directions along which a likelihood may be running where the last Newton step does not say.

    Both ways of least information and, where every row is decided, the coefficients themselves. Each moves the linear
    predictor that it moves most by 1: how long it is in coefficients depends on the units of the columns.
    """
    found = [problem.whole(beta)]
    if information.size == problem.size:
        values, vectors = information._eigen
        flat = np.zeros(problem.width)
        flat[slice(None) if problem.kept is None else problem.kept] = (
            vectors[:, int(np.argmin(values))] * information._scale
        )
        found = [flat, -flat, *found]
    for one in found:
        far = largest_move(problem, one)
        if far > 0.0:
            yield one / far


def _loss(along: Floats, y: Floats, kind: str) -> Floats:
    """How far a direction moves each row (n,) the wrong way."""
    signs, fixed = sides(y, kind)
    return np.where(fixed, np.abs(along), -signs * along)


def _label_loss(along: Floats, y: Floats) -> Floats:
    """How far the label of each row (n,) falls behind another, along (n, m) and 0 for the reference."""
    moves = np.column_stack((along, np.zeros(len(along))))
    return moves.max(axis=1) - moves[np.arange(len(moves)), y.astype(np.intp)]


def sentences(design: Design | Parameters, direction: Floats, classes: Sequence[object] = ()) -> tuple[str, ...]:
    """What runs to infinity, by name; direction (k,) or (k, m) in the order of the names."""
    columns = direction.reshape(design.size, -1)
    top = np.abs(columns).max(initial=0.0)
    found = []
    for at, name in enumerate(design.names):
        for label in range(columns.shape[1]):
            if abs(columns[at, label]) > 1e-9 * top:
                of = f" of {classes[label]!r}" if len(classes) else ""
                found.append(f"{name}{of} to {'+' if columns[at, label] > 0 else '-'}infinity")
    return tuple(found)
