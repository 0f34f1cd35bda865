"""Means and centred products of columns, checked before a distribution relies on them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from suffice import double_double
from suffice.answers import MomentSums, TermSums
from suffice.array_types import Floats
from suffice.errors import EstimateError, listing
from suffice.families.base import never_in
from suffice.statistics import Moments, Statistic, Summary

#: Rows taken out again leave their rounding behind; a sum of squares below minus this share of its size is no rounding.
RESIDUE = 1e-12
#: The same for the smallest variance among d columns of unit variance, whose products may be good to float64 only.
LOOSE_RESIDUE = 1e-6
#: What a square may lose when it falls below the smallest number.
_SQUARES = {"large": "beyond about 1e154", "small": "differences below about 1e-157"}
SMALLEST = float(np.finfo(np.float64).smallest_subnormal)


#: What double-double squares lose of their size, some times over.
_PAIRS = 16 * 2.0**-104


def mean_away(moments: MomentSums, point: Floats) -> Floats:
    """The mean of the rows less a point (d,), with the digits that rounding of the mean would lose."""
    mean = double_double.divide(moments.total_pair, moments.weight_pair)
    return double_double.rounded(double_double.subtract(mean, double_double.pair(point)))


def hidden_far_out(mean: Floats, variance: Floats) -> float:
    """What rounding of the sums may hide of a standardised gap where columns lie far from 0, beside their spread."""
    return _PAIRS * float(np.max(mean * (mean / variance), initial=0.0))


def read_moments(summary: Summary) -> MomentSums:
    """The moments of all columns of a summary.

    Sums that overflowed are an error, and so are centred squares that no rows have.
    """
    names = summary.domain.names
    moments: MomentSums = summary[Moments(names)]
    if moments.weight > 0:
        square = np.diag(moments.cross_pair[0])
        large = ~np.isfinite(square) | ~np.isfinite(moments.cross_pair[0]).all(axis=0)
        _refuse("large", names, large)
        spread = np.diag(moments.scatter)
        if not np.isfinite(moments.scatter).all():
            raise never_in("cross-products beyond those of its squares")
        if (spread < -RESIDUE * np.abs(square)).any() or _is_indefinite(moments.scatter):
            raise never_in("a negative sum of squares about the mean")
    return moments


def read_sums(summary: Summary, question: Statistic) -> TermSums:
    """The sums asked for; those that overflowed where batches or summaries were added are an error."""
    sums: TermSums = summary[question]
    if not np.isfinite(sums.sums_pair).all():
        raise EstimateError(
            f"The values of {listing(question.variables)} have a sum beyond the largest number, 1.8e+308. "
            "Rescale the column: use another unit."
        )
    return sums


def _is_indefinite(scatter: Floats) -> bool:
    """Whether some combination of columns that have spread has a negative variance."""
    moving = np.diag(scatter) > 0
    if moving.sum() < 2:
        return False
    units = np.sqrt(np.diag(scatter)[moving])
    values = np.linalg.eigvalsh(scatter[np.ix_(moving, moving)] / np.outer(units, units))
    return bool(values[0] < -LOOSE_RESIDUE * len(units))


def refuse_small(moments: MomentSums, names: Sequence[Hashable], rows: int) -> None:
    """Raise where the spread of a column is within what its squares lost by underflow."""
    lost = rows * SMALLEST
    square, spread = np.diag(moments.cross_pair[0]), np.diag(moments.scatter)
    # Only where the loss is above the rounding of the sums; 2^30 leaves a variance of nine digits.
    small = (square * double_double.NOISE < lost) & (spread < 2.0**30 * lost) & (moments.mean != 0)
    _refuse("small", names, small)


def _refuse(size: str, names: Sequence[Hashable], wrong: NDArray[np.bool_]) -> None:
    if wrong.any():
        refused = [name for name, bad in zip(names, wrong, strict=True) if bad]
        raise EstimateError(
            f"Column{'' if len(refused) == 1 else 's'} {listing(refused)} hold{'s' if len(refused) == 1 else ''} "
            f"values too {size} to square in float64 ({_SQUARES[size]}). Rescale the column: use another unit."
        )
