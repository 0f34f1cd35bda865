"""Standard errors of weights: what the data say about each, and that they say nothing about some.

Weights along which the information is 0 are not told by the data. For features that is a weight without an error. The
cells of tables have more weights than free parameters by construction: along the directions that change no
distribution, the shortest weights stand for all, and their error is that of the pseudo-inverse. A direction that is
flat at this distribution but not at others, such as one along which the likelihood rises for ever, is no such
convention: it has no error either.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Flags, Floats
from suffice.errors import EstimateError
from suffice.models.markov.family import LogLinearFamily
from suffice.models.markov.feature_rank import untold_weights
from suffice.models.markov.feature_spread import feature_units, features_of, standardised
from suffice.models.markov.fitted import MarkovFitted
from suffice.solvers.penalties import GaussianPenalty, Penalty
from suffice.solvers.rank import inverse_and_flat

#: A feature, or cell, that varies by less than this beside others is as good as constant.
STILL = 1e-10
#: A weight takes part in a direction where its share of it is above this.
SHARE = 1e-5
#: A direction that others do not span has at least this length beside them.
APART = 0.5


def standard_errors(
    fitted: MarkovFitted, penalty: Penalty | None, information: Callable[[LogLinearFamily], Floats]
) -> Floats:
    """Standard errors of the weights (n_weights,), as `MarkovNetwork.standard_errors_` says.

    information: gives the information of all rows (n_weights, n_weights), without the prior, on the weights of a family
    that may have its features in other units.
    """
    if isinstance(penalty, GaussianPenalty):
        errors = np.sqrt(penalty.posterior_variances(information(fitted.near)))
    else:
        away = np.zeros(len(fitted.finite)) if penalty is None else penalty.mean
        used = np.full(len(fitted.finite), penalty is None) | (fitted.finite != away)
        errors = np.full(len(fitted.finite), np.nan)
        errors[used] = _errors_of(fitted, np.flatnonzero(used), information)
    return np.where(fitted.limits != 0.0, np.inf, errors)


def weight_covariance(penalty: Penalty | None, information: Floats) -> Floats:
    """The covariance of the weights (k, k): the pseudo-inverse of the information of all rows, with a normal prior."""
    if isinstance(penalty, GaussianPenalty):
        return penalty.posterior_covariance(information)
    if penalty is not None:
        raise EstimateError(
            "A Laplace prior puts weights to its centre, where they have no normal limit: they have no covariance, and "
            "answers no error bar. Use a normal prior, or none."
        )
    return inverse_and_flat(information, STILL)[0]


def _errors_of(
    fitted: MarkovFitted, used: NDArray[np.intp], information: Callable[[LogLinearFamily], Floats]
) -> Floats:
    """Errors of some weights (u,), the others held where they are."""
    family, within = fitted.family, np.ix_(used, used)
    shares = fitted.near.margins(fitted.finite)[1]
    units = feature_units(family.model, shares)
    # All centred: the small variance of a feature that is nearly always the same is no difference of large numbers.
    near = family.over(standardised(family.model, units, shares, far=0.0))
    whole = len(used) == len(units)
    errors = weight_errors(
        information(near)[within],
        features_of(family.model)[used],
        lambda: near.covariance(np.zeros(len(units)))[within],
        len(units) - fitted.rank if whole and not family.masks else None,
    )
    if whole:
        errors[untold_weights(family.model)] = np.inf
    return errors / units[used]


def weight_errors(
    information: Floats, features: Flags, structural: Callable[[], Floats], spare: int | None = None
) -> Floats:
    """Standard errors (k,) from the information of all rows (k, k), its features in units of about their spread.

    features (k,): which weights are those of features. structural: makes the information under a distribution that is
    positive wherever the fitted one may be, whose flat directions change no distribution; spare: their number, where it
    is known. inf where the data do not tell a weight.
    """
    inverse, flat, shares = inverse_and_flat(information, STILL)
    errors = np.asarray(np.sqrt(np.clip(np.diagonal(inverse), 0.0, None)))
    errors[features & (shares > SHARE)] = np.inf
    if flat.shape[1] != spare and (~features & _touched(flat)).any():
        further = _beside(flat, inverse_and_flat(structural())[1])
        errors[_touched(further)] = np.inf
    return errors


def _touched(directions: Floats) -> Flags:
    """Which weights take part in a space of directions, given by an orthonormal basis (k, f)."""
    return np.asarray(np.sqrt(np.sum(directions**2, axis=1)) > SHARE)


def _beside(directions: Floats, others: Floats) -> Floats:
    """An orthonormal basis (k, g) of what the directions span and the others do not; both are orthonormal."""
    left, sizes, _ = np.linalg.svd(directions - others @ (others.T @ directions), full_matrices=False)
    return np.asarray(left[:, sizes > APART])
