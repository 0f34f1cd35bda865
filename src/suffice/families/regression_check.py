"""How far given weights are from least squares: a bound from the products alone, whoever found the weights.

The sum of squares S(w) falls, from w to the least, by ``g' G^-1 g`` with G the products of (1, x) and g the slopes
``X'(y - X w)``. For any invertible A this is ``h' K^-1 h`` with ``h = A' g`` and ``K = A' G A``, at most
``|h|^2 / least eigenvalue of K``. A good A makes K nearly the identity, and a bad one makes the bound worse or leaves
it unknown, never wrong. What rounding may have done to the products is added to both.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from suffice import double_double
from suffice.array_types import Floats
from suffice.families.exact_rank import surely_dependent
from suffice.families.orthogonal import orthogonalised, residuals, times
from suffice.families.regression import DOUBTFUL, EPSILON, ROUGH_ROUNDING, Products

#: Relative rounding of raw products in pairs, and of float64 figures made of centred ones.
EXACT_NOISE = 2.0**-94
FLOAT_NOISE = 16 * EPSILON


def shares_to_fall(products: Products, weights: Floats) -> Floats:
    """By which share (k,) of itself the sum of squares at some weights (k, q) can fall, at most; 1 where unknown."""
    shares, sound = _by_scatter(products, weights)
    careful = np.flatnonzero(~sound) if products.exact else np.arange(0)
    if len(careful):
        shares[careful] = shares_by_pairs(products[careful].raw, weights[careful])
    return shares


def _by_scatter(products: Products, weights: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """The bounds (k,) in float64, and where (k,) it has the digits for a good one.

    A is the inverse root of the centred products, so that K is the identity but for the rounding of the products.
    """
    noise = FLOAT_NOISE if products.exact else ROUGH_ROUNDING
    inner = products.scatter[:, :-1, :-1]
    p = inner.shape[1]
    units = np.sqrt(np.diagonal(inner, axis1=1, axis2=2))
    scale = np.where(units > 0, units, 1.0)
    values, vectors = np.linalg.eigh(inner / scale[:, :, None] / scale[:, None, :])
    least = values.min(axis=1, initial=1.0)
    sure = np.maximum(least - noise * max(p, 1), 0.0)
    slopes, c = products.slopes(weights), np.concatenate([weights[:, 1:], np.ones((len(weights), 1))], axis=1)
    size = (np.abs(c) * np.sqrt(np.diagonal(products.scatter, axis1=1, axis2=2))).sum(axis=1)
    offset = (np.abs(c) * np.abs(products.mean)).sum(axis=1) + np.abs(weights[:, 0])
    with np.errstate(divide="ignore", invalid="ignore"):
        along = np.einsum("kij,ki->kj", vectors, slopes[:, 1:] / scale) / np.sqrt(np.maximum(values, sure[:, None]))
        centred = np.linalg.norm(along, axis=1) * np.sqrt(least / sure) + np.sqrt(p / sure) * noise * size
        mean = np.abs(slopes[:, 0]) / np.sqrt(products.weight) + FLOAT_NOISE * offset * np.sqrt(products.weight)
        squares = products.squares(weights)
        # Of exact products the squares are exact too, or add up terms that cancel by DOUBTFUL at most.
        left = squares - noise * np.minimum(size**2, (squares / DOUBTFUL if products.exact else np.inf))
        share = (1 + FLOAT_NOISE) * (mean**2 + centred**2) / left
    sound = (least > DOUBTFUL) & (squares > DOUBTFUL * size**2) & (EPSILON * offset**2 * products.weight < squares)
    return np.where((sure > 0) & (left > 0) & (share < 1), share, 1.0), sound


def shares_by_pairs(raw: Floats, weights: Floats) -> Floats:
    """The bounds (k,) from products (2, k, q + 1, q + 1) in pairs of all columns, the response last."""
    shape = orthogonalised(raw)
    m = raw.shape[-1]
    noise = EXACT_NOISE * m
    free, squares = shape.dependent[:, :-1], double_double.rounded(shape.squares)[:, :-1]
    # A column that may be more than a combination of others, if only by rounding, could still explain something.
    unclear, some = np.zeros(len(free), dtype=bool), np.flatnonzero(free.any(axis=1))
    unclear[some] = (free[some] & ~surely_dependent(raw[:, some, :-1, :-1])).any(axis=1)
    root = np.sqrt(np.where(free, 1.0, squares))
    a = (
        double_double.divide(shape.combinations[:, :, :-1, :-1], double_double.pair(root)[:, :, None, :])
        * ~free[:, None, :]
    )
    c = np.concatenate([-weights, np.ones((len(weights), 1))], axis=1)
    slopes, total = residuals(raw, weights)
    h = double_double.rounded(times(a.swapaxes(-1, -2), slopes[..., None]))[..., 0]
    gram = double_double.rounded(times(a.swapaxes(-1, -2), times(raw[:, :, :-1, :-1], a)))
    away = np.abs(gram - np.eye(m - 1) * ~free[:, None, :]).sum(axis=2).max(axis=1)
    lengths = np.sqrt(np.diagonal(raw[0], axis1=1, axis2=2))
    reach = (np.abs(a[0]) * lengths[:, :-1, None]).sum(axis=1)
    size = (np.abs(c) * lengths).sum(axis=1)
    sure = 1 - away - noise * (reach**2).sum(axis=1)
    left = total - noise * size**2
    with np.errstate(divide="ignore", invalid="ignore"):
        share = (1 + FLOAT_NOISE) * ((np.abs(h) + noise * reach * size[:, None]) ** 2).sum(axis=1) / sure / left
    return np.where(~unclear & (sure > 0) & (left > 0) & (share < 1), share, 1.0)
