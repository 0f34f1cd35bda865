"""Directions along which no row falls and some rise, by linear programmes, and proved in exact arithmetic.

A programme is solved in floating point to a tolerance, and within a tolerance rows that overlap by little look
separated. So what it finds is only a proposal: rows that it leaves in place are made to stay in place exactly, by
elimination in whole numbers, and the sign of every other row is then known for certain, from its rounded value where
that is larger than its rounding can be, else in whole numbers. Only what passes is called a direction.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from suffice import double_double
from suffice.array_types import Flags, Floats

#: Constraints from which a linear programme has no variable for each of them.
MANY = 5_000
#: A row of length 1 is raised, or fails, from here on; programmes are solved to 1e-7.
RAISED, FAILED = 1e-5, 2e-7
#: Looks at the same rows, each levelled by the rows that the one before could not tell apart.
LOOKS = 4
#: Directions that move rows of length 1 by less than this share move none.
FLAT = 1e-12
#: Share of a direction below which a coefficient is rounding.
NOTHING = 1e-9
#: Work, in bits, that a proof in whole numbers may take.
MOST_WORK = 5e9


@dataclass(frozen=True, eq=False)
class Separation:
    """`exists` (None: not decided), a direction (k,) or (m k,) in the engine's layout, and the rows it decides (n,).

    Of ordered labels `decided` is (2, n), for the upper and the lower end of each row.
    """

    exists: bool | None
    direction: Floats | None = None
    decided: Flags | None = None


def programme(rows: Floats, fixed: Flags) -> Separation:
    """The direction that raises as many rows as any: ``rows d >= 0``, and ``rows d = 0`` where they are fixed.

    Directions add, so the best one raises every row that some direction raises. `exists` is True if there is no such
    row, and None if what was found could not be proved; `decided` are the rows that are raised.
    """
    size = np.array([np.median(one[one > 0.0]) if one.any() else 1.0 for one in np.abs(rows).T])
    turn, focus, small = np.diag(1.0 / size), np.ones(len(rows), dtype=np.bool_), _below_one(rows)
    for look in range(LOOKS):
        # The first is at the columns themselves, where corners are directions of few coefficients.
        turn = turn if look == 0 else _levelling(small, focus, size)
        level = _of_length_one(small @ turn if focus.all() else _product(small, turn))
        proposal = (programme_of_many if len(rows) > MANY else _all_at_once)(level, fixed)
        if proposal is None:
            continue
        move, raised = proposal
        if not raised.any():
            if look == 0:
                continue
            return Separation(True)
        exact = _in_place(rows, size, level, turn @ move, ~raised)
        signs = None if exact is None else _signs(rows, exact)
        if exact is None or signs is None:
            return Separation(None)
        wrong = np.where(fixed, signs != 0, signs < 0)
        if not wrong.any() and (signs > 0).any():
            return Separation(False, np.array([float(one) for one in exact]), (signs > 0) & ~fixed)
        focus = focus if look == 0 else ~raised | wrong
    return Separation(None)


# -- rows at one level -------------------------------------------------------------------------------------------------


def _below_one(rows: Floats) -> Floats:
    """Rows times powers of two, which cost no digit, so that the largest entry of each is between 1/2 and 1."""
    _, powers = np.frexp(np.abs(rows).max(axis=1, initial=0.0))
    return np.asarray(np.ldexp(rows, -powers[:, None]))


def _of_length_one(rows: Floats) -> Floats:
    rows = _below_one(rows)
    length = np.sqrt((rows**2).sum(axis=1))[:, None]
    return np.asarray(np.divide(rows, length, out=np.zeros_like(rows), where=length > 0.0))


def _levelling(rows: Floats, focus: Flags, size: Floats) -> Floats:
    """Coordinates (k, r) in which the rows of the focus, each of length 1, point everywhere about as much.

    Whether a row rises depends neither on its length nor on coordinates, but what a tolerance hides does: columns with
    outliers, and columns that are nearly combinations of others.
    """
    turn = np.diag(1.0 / size)
    for _ in range(2):
        _, values, axes = np.linalg.svd(np.linalg.qr(_of_length_one(rows[focus] @ turn), mode="r"))
        values = np.append(values, np.zeros(len(axes) - len(values)))
        seen = values > FLAT * values.max(initial=0.0)
        if focus.all():  # The other directions move no row.
            values, axes, seen = values[seen], axes[seen], seen[seen]
        turn = turn @ (axes / np.where(seen, values, values.max(initial=1e-300))[:, None]).T
    return np.asarray(turn)


def _product(rows: Floats, turn: Floats) -> Floats:
    """Rows (n, k) times (k, r) in double-double: large numbers that cancel are what is looked at."""
    total = double_double.pair(np.zeros((len(rows), turn.shape[1])))
    for column in range(rows.shape[1]):
        total = double_double.add(total, np.stack(double_double.two_product(rows[:, column, None], turn[column])))
    return double_double.rounded(total)


# -- programmes --------------------------------------------------------------------------------------------------------


def _all_at_once(rows: Floats, fixed: Flags) -> tuple[Floats, Flags] | None:
    """Maximise sum t with ``rows d >= t``, ``0 <= t <= 1``: d and which rows it raises; None if that failed."""
    from scipy import optimize, sparse

    free = rows[~fixed]
    n, k = len(free), rows.shape[1]
    raised = np.zeros(len(rows), dtype=np.bool_)
    if n == 0 or k == 0:
        return np.zeros(k), raised
    answer = optimize.linprog(
        np.concatenate((np.zeros(k), -np.ones(n))),
        A_ub=sparse.hstack([sparse.csr_array(-free), sparse.eye_array(n)], format="csr"),
        b_ub=np.zeros(n),
        A_eq=None
        if n == len(rows)
        else sparse.hstack([sparse.csr_array(rows[fixed]), sparse.csr_array((len(rows) - n, n))], format="csr"),
        b_eq=None if n == len(rows) else np.zeros(len(rows) - n),
        bounds=[(None, None)] * k + [(0.0, 1.0)] * n,
        method="highs",
    )
    if answer.x is None or answer.fun is None:
        return None
    raised[~fixed] = answer.x[k:] > 0.5
    return answer.x[:k], raised


def programme_of_many(rows: Floats, fixed: Flags) -> tuple[Floats, Flags] | None:
    """The same for many rows, with a variable for each coefficient alone.

    A direction has the largest sum over rows that none has raised yet. Rows that the sum of all such directions leaves
    in place span one dimension less each time, so that there are at most as many as coefficients.
    """
    basis = _still(rows[fixed])
    whole = rows[~fixed]
    free = whole @ basis
    # Whether a row is raised does not depend on its length; what is left of one that the basis cannot move is rounding.
    length, before = (np.abs(one).max(axis=1, initial=0.0)[:, None] for one in (free, whole))
    free = np.divide(free, length, out=np.zeros_like(free), where=length > 1e-10 * before)
    total, left = np.zeros(basis.shape[1]), np.ones(len(free), dtype=np.bool_)
    for _ in range(basis.shape[1]):
        move = _steepest(free, free[left].sum(axis=0))
        if move is None:
            return None
        raised = left & (free @ move > RAISED)
        if not raised.any():
            break
        total += move
        left &= ~raised
    decided = np.zeros(len(rows), dtype=np.bool_)
    decided[~fixed] = ~left
    return basis @ total, decided


def _still(rows: Floats) -> Floats:
    """Directions (k, r), orthonormal, that move none of these rows."""
    k = rows.shape[1]
    if not len(rows):
        return np.eye(k)
    _, values, vectors = np.linalg.svd(np.linalg.qr(rows, mode="r"))
    rank = int((values > 1e-10 * values.max(initial=0.0)).sum())
    return np.asarray(vectors[rank:].T)


def _steepest(rows: Floats, goal: Floats) -> Floats | None:
    """The d in ``[-1, 1]^k`` of the largest ``goal' d`` with ``rows d >= 0``, by rows that are added as they fail."""
    from scipy import optimize

    k = rows.shape[1]
    chosen = np.unique(np.linspace(0, len(rows) - 1, 50 * k).astype(np.intp))
    top = float(np.abs(goal).max(initial=0.0))
    while top > 0.0:
        answer = optimize.linprog(-goal / top, A_ub=-rows[chosen], b_ub=np.zeros(len(chosen)), bounds=(-1.0, 1.0))
        if answer.x is None:
            return None
        along = rows @ answer.x
        worst = np.argsort(along)[: 20 * k]
        new = np.setdiff1d(worst[along[worst] < -FAILED], chosen)
        if not len(new):
            return np.asarray(answer.x)
        chosen = np.concatenate((chosen, new))
    return np.zeros(k)


def without_rounding(direction: Floats, size: Floats) -> Floats:
    """A direction with zeros for coefficients that move rows by nothing beside others, given the size of columns."""
    reach = np.abs(direction) * size
    return np.where(reach > NOTHING * reach.max(initial=0.0), direction, 0.0)


# -- proofs ------------------------------------------------------------------------------------------------------------


def _whole(row: Floats) -> list[int]:
    """Some positive multiple of the numbers, in whole numbers."""
    parts = [one.as_integer_ratio() for one in row.tolist()]
    most = max(bottom for _, bottom in parts)
    return [top * (most // bottom) for top, bottom in parts]


def _in_place(rows: Floats, size: Floats, level: Floats, direction: Floats, still: Flags) -> list[Fraction] | None:
    """The direction, moved so little that it leaves the `still` rows in place exactly; None if that is much work.

    As many of these rows as are independent, to rounding, are solved for as many coefficients; `size` (k,) has the size
    of columns.
    """
    from scipy import linalg

    wanted = [Fraction(one) for one in without_rounding(direction, size).tolist()]
    candidates = np.flatnonzero(still & level.any(axis=1))
    if not len(candidates):
        return wanted
    triangle, order = linalg.qr(level[candidates].T, mode="r", pivoting=True)
    steps = np.abs(np.diagonal(triangle))
    chosen = candidates[order[: int((steps > NOTHING * steps[0]).sum())]]
    bits = np.log2(size)
    solved: dict[int, list[int]] = {}
    work = 0.0
    for row in (_whole(rows[one]) for one in chosen):
        for column, other in solved.items():
            row = _without(row, column, other)
        if not any(row):
            continue
        pivot = max((j for j, one in enumerate(row) if one), key=lambda j: row[j].bit_length() + bits[j])
        for column, other in solved.items():
            solved[column] = _without(other, pivot, row)
        solved[pivot] = row
        work += len(row) * len(solved) * max(one.bit_length() for one in row)
        if work > MOST_WORK:
            return None
    fixed = [Fraction(0) if j in solved else one for j, one in enumerate(wanted)]
    for column, row in solved.items():
        rest = sum((one * fixed[j] for j, one in enumerate(row) if one and j not in solved), start=Fraction(0))
        wanted[column] = -rest / row[column]
    return wanted


def _without(row: list[int], column: int, other: list[int]) -> list[int]:
    """A multiple of a row, less one of another, so that a column is 0."""
    if not row[column]:
        return row
    shared = math.gcd(row[column], other[column])
    mine, its = other[column] // shared, row[column] // shared
    combined = [mine * a - its * b for a, b in zip(row, other, strict=True)]
    common = math.gcd(*combined) or 1
    return [one // common for one in combined]


def _signs(rows: Floats, direction: list[Fraction]) -> NDArray[np.int8] | None:
    """The sign (n,) of ``rows d``, for certain; None if that is much work.

    The product of k rounded numbers is known to k + 2 roundings of the sum of their sizes.
    """
    near = np.array([float(one) for one in direction])
    with np.errstate(over="ignore", invalid="ignore"):
        along, size = rows @ near, np.abs(rows) @ np.abs(near)
        signs = np.sign(along)
        # Each product may have lost a number below the least normal one, too.
        known = np.abs(along) > (len(near) + 4) * (2.0**-52 * size + 1e-300)
    known &= np.isfinite(size)
    known |= ~(rows[:, [one != 0 for one in direction]] != 0.0).any(axis=1)
    unsure = np.flatnonzero(~known)
    shared = math.lcm(*(one.denominator for one in direction))
    whole = [int(one * shared) for one in direction]
    distinct, back = np.unique(rows[unsure], axis=0, return_inverse=True)
    if distinct.size * max((one.bit_length() for one in whole), default=0) > MOST_WORK:
        return None
    exact = [sum(a * b for a, b in zip(_whole(one), whole, strict=True)) for one in distinct]
    signs[unsure] = np.array([(one > 0) - (one < 0) for one in exact], dtype=np.float64)[back.ravel()]
    return np.asarray(signs.astype(np.int8))
