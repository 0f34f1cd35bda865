"""Prediction intervals of new observations: what a row may respond, with the uncertainty of its mean.

Of a Gaussian response with the identity link they are Student's t with the variance ``phi + x' V x``. Else the linear
predictor is normal with the variance x' V x, dispersion and size being those of the fit, and the response has the
mixture of its distributions, whose sum over the predictor is Gauss and Hermite's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.array_types import Floats
from suffice.errors import EstimateError, OptionError
from suffice.fitting.contract import Inputs
from suffice.fitting.inference import quantile
from suffice.models.glm.fitted import GLMFitted
from suffice.models.glm.pieces import answers_by_part, stream_of
from suffice.models.glm.quantile_residuals import CONTINUOUS, COUNTED
from suffice.models.glm.registry import one_predictor_family
from suffice.models.glm.rowwise import eta_variances, new_rows

if TYPE_CHECKING:
    from suffice.models.glm.declaration import GLM

#: Points of the sum over the linear predictor.
_POINTS = 48
#: Halvings of the stretch in which an end lies, down to its last digits.
_HALVINGS = 200


def prediction_intervals(
    model: GLM, X: Any, level: float = 0.95, *, offset: Any = None, exposure: Any = None
) -> Floats:
    """Intervals of new observations (n, 3): the mean, and both ends between which an observation lies at a level.

    Args:
        model: a fitted GLM of a gaussian, gamma, inverse_gaussian, poisson or negative_binomial response.
        X: rows with the columns of the fit, in memory or in files.
        level: probability of an interval; of counts at least this, with whole ends.
        offset: as in `fit`.
        exposure: as in `fit`.
    """
    fitted, unknown = model.fitted_, model._options["unknown"]
    if fitted.family not in {**COUNTED, **CONTINUOUS} or fitted.family == "binomial":
        raise OptionError(
            f"Prediction intervals are for gaussian, gamma, inverse_gaussian, poisson and negative_binomial responses, "
            f"not the {fitted.family} family."
        )
    if fitted.direction is not None:
        raise EstimateError("Coefficients run to infinity, so that predictions have no errors; give a prior.")
    reach, source = quantile(level, model._df()), stream_of(X)
    if source is not None and source.residence == "elsewhere":
        raise OptionError("prediction_intervals takes rows in memory or in files; bring those of a cluster here first.")

    def ask(part: Inputs) -> Floats:
        table, added = new_rows(fitted, part, unknown)
        family = one_predictor_family(fitted.family, fitted.size)
        eta, variances = family.linear(fitted, table, added)[:, 0], eta_variances(fitted, table)
        if not np.isfinite(variances).all():
            raise EstimateError("The fit says nothing about the mean of some row; leave such rows out.")
        if (fitted.family, fitted.link) == ("gaussian", "identity"):
            away = reach * np.sqrt(fitted.dispersion + variances)
            return np.column_stack((eta, eta - away, eta + away))
        return _mixed(fitted, eta, np.sqrt(variances), 0.5 - 0.5 * level)

    given = {"offset": offset, "exposure": exposure}
    return np.concatenate(list(answers_by_part(X, fitted, given, ask)))


def _mixed(fitted: GLMFitted, eta: Floats, spread: Floats, tail: float) -> Floats:
    """The mean and the quantiles of the mixtures that leave a share on either side (n, 3)."""
    points, weights = np.polynomial.hermite_e.hermegauss(_POINTS)
    weights = weights / weights.sum()
    distribution = fitted.row_distribution()
    with np.errstate(all="ignore"):
        centre, means = distribution.link.mean(eta), distribution.link.mean(eta[:, None] + spread[:, None] * points)
    positive = fitted.family != "gaussian"
    if not np.isfinite(means).all() or (positive and not (means > 0.0).all()):
        raise EstimateError(
            f"The uncertainty of a linear predictor reaches beyond the range of the {fitted.link} link, where there is "
            "no mean. Use a link that has none, such as log, or rows nearer to those of the fit."
        )
    counted = fitted.family in COUNTED
    more = one_predictor_family(fitted.family, fitted.size) if counted else fitted.dispersion
    tails = {**COUNTED, **CONTINUOUS}[fitted.family]

    def enough(values: Floats, low: bool) -> Any:
        below, above = tails(values[:, None] + np.zeros_like(means), means, more)
        return below @ weights >= tail if low else above @ weights <= tail

    ends = [centre]
    for low in (True, False):
        size = np.maximum(np.abs(means).max(axis=1), 1.0)
        under = np.full_like(centre, -1.0) if counted else np.zeros_like(centre) if positive else -size
        over = np.ceil(size) if counted else size
        while not (good := enough(over, low)).all():
            over = np.where(good, over, 2.0 * over)
        while not positive and (bad := enough(under, low)).any():
            under = np.where(bad, 2.0 * under, under)
        for _ in range(_HALVINGS):
            middle = np.floor(0.5 * (under + over)) if counted else 0.5 * (under + over)
            if ((middle <= under) | (middle >= over)).all():
                break
            good = enough(middle, low)
            under, over = np.where(good, under, middle), np.where(good, middle, over)
        ends.append(over)
    return np.column_stack(ends)
