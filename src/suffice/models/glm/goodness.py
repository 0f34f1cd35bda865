"""How good a fitted regression is: measures like R-squared, and tests of its dispersion."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.errors import EstimateError, OptionError
from suffice.fitting.parameter_table import NumberTable
from suffice.models.glm.pieces import stream_of
from suffice.models.glm.rowwise import Scored, scored_parts, with_response

if TYPE_CHECKING:
    from suffice.models.glm.declaration import GLM

#: Families with parameters beside the coefficients that a fit of the intercept alone would find anew.
_OWN_PARAMETERS = ("negative_binomial", "gamma", "inverse_gaussian")


def r_squared(model: GLM) -> NumberTable:
    """Measures like R-squared, each against the fit of the intercept (and the offset) alone.

    "deviance" is the share of the null deviance that is explained (Cameron and Windmeijer 1997), "adjusted" the same by
    degrees of freedom; of least squares they are R-squared and its adjusted form. With the log-likelihoods
    l and l0 of the fit and of the intercept alone, both of maximum likelihood, "McFadden" is ``1 - l / l0``,
    "McFadden, adjusted" ``1 - (l - k) / l0`` with k coefficients, "Cox-Snell" ``1 - exp(2 (l0 - l) / n)`` and
    "Nagelkerke" the latter over the largest it can be for labels and counts, ``1 - exp(2 l0 / n)``. They are left out
    where there is no likelihood, or where the intercept alone has a dispersion or a size of its own.
    """
    fitted = model.fitted_
    if not math.isfinite(fitted.null_deviance):
        raise EstimateError(
            f"The {fitted.family} family has no null deviance to compare with; compare scores of held-out rows."
        )
    if not (fitted.design.constant or len(fitted.thresholds)):
        raise EstimateError(
            "Measures like R-squared compare with the intercept alone, and the fit has none. Fit with the intercept."
        )
    if not fitted.null_deviance > 0.0:
        raise EstimateError("The response does not vary, so that there is nothing to explain.")
    n, left = fitted.weight, fitted.deviance / fitted.null_deviance
    rows: list[tuple[str, tuple[float, ...]]] = [("deviance", (1.0 - left,))]
    rest = fitted.df_resid
    if rest > 0.0:
        rows.append(("adjusted", (1.0 - left * (n - 1.0) / rest,)))
    why = _no_likelihoods(model)
    if not why:
        rows += _by_likelihood(model, n, left)
    return NumberTable((("family, link", f"{fitted.family}, {fitted.link}"),), ("R-squared",), tuple(rows), (), why)


def _no_likelihoods(model: GLM) -> tuple[str, ...]:
    """Why log-likelihoods are not compared."""
    fitted = model.fitted_
    if not fitted.family_object.has_likelihood:
        return ("measures of the likelihood are left out: the family has none",)
    if model._options["prior"] is not None:
        return ("measures of the likelihood are left out: the fit has a prior",)
    own = fitted.family in _OWN_PARAMETERS and model._fit_options().known_dispersion is None
    if own and not (fitted.family == "negative_binomial" and not model._fit_options().free_size):
        return ("measures of the likelihood are left out: the intercept alone has a dispersion or size of its own",)
    return ()


def _by_likelihood(model: GLM, n: float, left: float) -> list[tuple[str, tuple[float, ...]]]:
    """Those of the log-likelihoods; that of the intercept alone follows from the deviances."""
    fitted, whole = model.fitted_, model.log_likelihood_
    known = model._fit_options().known_dispersion
    if fitted.free_dispersion and known is None:  # Of least squares each has the variance of its own residuals.
        gain = -0.5 * n * math.log(left) if left > 0.0 else math.inf
    else:
        gain = 0.5 * (fitted.null_deviance - fitted.deviance) / fitted.dispersion
    null, k = whole - gain, float(fitted.values.size - len(fitted.dropped) * fitted.beta.shape[1])
    shares = [("Cox-Snell", -math.expm1(-2.0 * gain / n))]
    if not fitted.free_dispersion:  # The log-likelihood of a density has no upper end, and no sign.
        first = [("McFadden", 1.0 - whole / null), ("McFadden, adjusted", 1.0 - (whole - k) / null)]
        shares = [*first, *shares, ("Nagelkerke", shares[0][1] / -math.expm1(2.0 * null / n))]
    return [(name, (value,)) for name, value in shares]


# -- dispersion --------------------------------------------------------------------------------------------------------


def dispersion_tests(model: GLM, X: object = None, y: object = None, **rows: Any) -> NumberTable:
    """Test whether counts or shares vary as their family says.

    Args:
        model: a fitted GLM whose family has no dispersion, or one of quasi-likelihood.
        X: the rows of the fit, of counts, for the tests of Cameron and Trivedi, wherever they are.
        y: their response.
        rows: sample_weight, offset, exposure, trials, columns, as for `fit`.

    Returns:
        Pearson's chi2 on the residual degrees of freedom, with the estimate chi2 / df of the dispersion, one-sided:
        small p values speak of overdispersion. It rests on counts or trials that are not small, and says nothing of
        single trials. Given the rows of a Poisson fit also the regressions of ``((y - mean)^2 - y) / mean`` without an
        intercept (Cameron and Trivedi 1990): on the mean for the variance ``mean + a mean^2``, on 1 for
        ``mean + a mean``; the estimate is a, the statistic z its share of its standard error, the p value two-sided.
    """
    from scipy.special import chdtrc, ndtr

    fitted = model.fitted_
    counts = fitted.family in ("poisson", "quasipoisson")
    if not math.isfinite(fitted.pearson) or (fitted.free_dispersion and fitted.family_object.has_likelihood):
        raise OptionError(
            f"The {fitted.family} family says nothing about the size of its variance that rows could contradict; tests "
            "of dispersion are for counts and shares."
        )
    if not fitted.df_resid > 0.0:
        raise EstimateError("There are as many coefficients as rows; nothing is left for the dispersion.")
    if X is None and (y is not None or any(one is not None for one in rows.values())):
        raise OptionError("Pearson's test needs no rows: leave y and the like out, or give X too.")
    if X is not None and not counts:
        raise OptionError(
            f"The tests of Cameron and Trivedi are of Poisson fits, and this one is {fitted.family}. Leave the rows "
            "out for Pearson's test."
        )
    chi2, df = fitted.pearson, fitted.df_resid
    tests = [("Pearson chi2", (chi2 / df, chi2, df, float(chdtrc(df, chi2))))]
    if X is not None:
        more = with_response(fitted, stream_of(X), {"y": y, **rows})
        parts = scored_parts(fitted, X, more, model._options["unknown"])
        n, above, squares, products, means = np.sum([_excesses(part) for part in parts], axis=0).tolist()
        if abs(n - fitted.weight) > 1e-9 * fitted.weight:
            raise EstimateError(
                f"The rows are not those of the fit: they have the weight {n:,.6g}, those of the fit "
                f"{fitted.weight:,.6g}. Give the same rows, response, weights and offset."
            )
        for name, size, product in (("mean + a mean^2", means, products), ("mean + a mean", n, above)):
            slope = product / size
            error = math.sqrt(max(squares - slope * product, 0.0) / (n - 1.0) / size)
            z = slope / error if error > 0.0 else math.copysign(math.inf, slope)
            tests.append((name, (slope, z, math.nan, 2.0 * float(ndtr(-abs(z))))))
    title = (("dispersion", f"{fitted.family}, Pearson and, given rows, Cameron and Trivedi"),)
    return NumberTable(title, ("estimate", "statistic", "df", "p value"), tuple(tests))


def _excesses(rows: Scored) -> tuple[float, ...]:
    """Sums over rows of 1, d, d^2, d mean and mean^2, where d is ``((y - mean)^2 - y) / mean``."""
    mean = rows.fitted.row_distribution().link.mean(rows.eta[:, 0])
    if not (mean[rows.weights > 0.0] > 0.0).all():
        raise EstimateError("A mean is 0, so that its row says nothing about the dispersion; leave such rows out.")
    away = ((rows.y - mean) ** 2 - rows.y) / np.where(mean > 0.0, mean, 1.0)
    n = float(rows.weights.sum())
    return n, *(float(rows.weights @ one) for one in (away, away**2, away * mean, mean**2))
