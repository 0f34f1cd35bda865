"""Randomised quantile residuals (Dunn and Smyth 1996): where a response lies, as a normal quantile.

Of a count y it is that of a uniform draw between P(Y < y) and P(Y <= y). Where the model holds and its parameters are
known they are standard normal, whatever the family.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from suffice.array_types import Floats
from suffice.checks import choice
from suffice.choices import Residual, choices
from suffice.errors import DataError, OptionError
from suffice.families.base import generator
from suffice.models.glm.fitted import GLMFitted
from suffice.models.glm.pieces import stream_of
from suffice.models.glm.registry import one_predictor_family
from suffice.models.glm.rowwise import Figure, Scored, residuals

#: P(Y <= y) and P(Y > y) at values, means, and what else a family has: dispersion, size or trials.
Tails = Callable[[Floats, Floats, Any], tuple[Floats, Floats]]


def residual_figure(fitted: GLMFitted, X: Any, kind: str, random_state: Any) -> Figure:
    """What `GLM.residuals` asks of rows."""
    if choice(kind, "kind", choices(Residual)) != "quantile":
        if random_state is not None:
            raise OptionError(f"random_state= belongs to kind='quantile'; residuals of kind={kind!r} have no draws.")
        return partial(residuals, kind=kind)
    if fitted.family not in {**COUNTED, **CONTINUOUS}:
        raise OptionError(
            f"Quantile residuals need the distribution of the response, which the {fitted.family} family does not tell "
            "here; they are for gaussian, gamma, inverse_gaussian, poisson, negative_binomial and binomial."
        )
    if fitted.family in CONTINUOUS:
        if random_state is not None:
            raise OptionError(
                f"random_state= has no effect: quantile residuals of the {fitted.family} family have no draws."
            )
        return _continuous
    source = stream_of(X)
    if source is not None and source.residence == "elsewhere":
        raise OptionError(
            f"Quantile residuals draw one number after the other, in this process; the rows of {source.unordered} stay "
            "elsewhere. Give rows in memory or in files."
        )
    return partial(_counted, rng=generator(random_state))


def _continuous(fitted: GLMFitted, rows: Scored) -> Floats:
    """Those of a density (n,)."""
    return _normal(*CONTINUOUS[fitted.family](rows.y, _means(fitted, rows), fitted.dispersion))


def _counted(fitted: GLMFitted, rows: Scored, rng: np.random.Generator) -> Floats:
    """Those of counts (n,), a draw for each row."""
    trials = np.ones_like(rows.y) if rows.trials is None else rows.trials
    counts = rows.y * trials if fitted.family == "binomial" else rows.y
    whole = np.round(counts)
    if (np.abs(counts - whole) > 1e-6).any():
        row = int(np.argmax(np.abs(counts - whole) > 1e-6))
        raise DataError(
            f"Row {row} of these has {counts[row]:.6g}, which is no count, so that it has no probability. Ask for "
            "residuals of another kind."
        )
    more = trials if fitted.family == "binomial" else one_predictor_family(fitted.family, fitted.size)
    mean, tails = _means(fitted, rows), COUNTED[fitted.family]
    upper, lower = tails(whole, mean, more), tails(whole - 1.0, mean, more)
    share = rng.random(len(whole))
    return _normal(lower[0] + share * (upper[0] - lower[0]), upper[1] + (1.0 - share) * (lower[1] - upper[1]))


def _means(fitted: GLMFitted, rows: Scored) -> Floats:
    with np.errstate(over="ignore"):
        return fitted.row_distribution().link.mean(rows.eta[:, 0])


def _normal(below: Floats, above: Floats) -> Floats:
    """The normal quantile of a share, from the smaller of both tails, which has the digits."""
    from scipy.special import ndtri

    return np.where(below < above, ndtri(below), -ndtri(above))


def _poisson(k: Floats, mean: Floats, more: Any) -> tuple[Floats, Floats]:
    from scipy.special import gammainc, gammaincc

    some = np.maximum(k, 0.0) + 1.0
    return np.where(k < 0.0, 0.0, gammaincc(some, mean)), np.where(k < 0.0, 1.0, gammainc(some, mean))


def _negative_binomial(k: Floats, mean: Floats, more: Any) -> tuple[Floats, Floats]:
    from scipy.special import betainc

    size, some = more.size, np.maximum(k, 0.0) + 1.0
    below, above = betainc(size, some, size / (size + mean)), betainc(some, size, mean / (size + mean))
    return np.where(k < 0.0, 0.0, below), np.where(k < 0.0, 1.0, above)


def _binomial(k: Floats, mean: Floats, more: Any) -> tuple[Floats, Floats]:
    from scipy.special import betainc

    inside = np.clip(k, 0.0, more - 1.0)
    below, above = betainc(more - inside, inside + 1.0, 1.0 - mean), betainc(inside + 1.0, more - inside, mean)
    ends = (k < 0.0, k >= more)
    return np.select(ends, [0.0, 1.0], below), np.select(ends, [1.0, 0.0], above)


def _gaussian(y: Floats, mean: Floats, phi: Any) -> tuple[Floats, Floats]:
    from scipy.special import ndtr

    z = (y - mean) / np.sqrt(phi)
    return ndtr(z), ndtr(-z)


def _gamma(y: Floats, mean: Floats, phi: Any) -> tuple[Floats, Floats]:
    from scipy.special import gammainc, gammaincc

    return gammainc(1.0 / phi, y / (phi * mean)), gammaincc(1.0 / phi, y / (phi * mean))


def _inverse_gaussian(y: Floats, mean: Floats, phi: Any) -> tuple[Floats, Floats]:
    from scipy.stats import invgauss

    law = invgauss(mean * phi, scale=1.0 / phi)
    return law.cdf(y), law.sf(y)


COUNTED: dict[str, Tails] = {"poisson": _poisson, "negative_binomial": _negative_binomial, "binomial": _binomial}
CONTINUOUS: dict[str, Tails] = {"gaussian": _gaussian, "gamma": _gamma, "inverse_gaussian": _inverse_gaussian}
