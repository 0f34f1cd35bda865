"""What a fitted regression says: its table, its tests."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from suffice.array_types import Flags, Floats
from suffice.checks import choice, is_number
from suffice.choices import Interval, choices
from suffice.errors import NotFittedError, OptionError
from suffice.families.matrix_regression_distribution import MatrixRegressionDistribution
from suffice.families.multivariate_normal import MultivariateNormal
from suffice.families.regression_distribution import RegressionDistribution
from suffice.fitting.contract import Inputs
from suffice.fitting.hypotheses import HypothesisTest
from suffice.fitting.inference import CHOSEN, Inference, quantile, wald_intervals
from suffice.fitting.named import NamedVector
from suffice.fitting.report import Report
from suffice.fitting.row_marks import check_same_rows
from suffice.models.glm.error_kinds import WHITE
from suffice.models.glm.input import WeightedRowOptions
from suffice.models.glm.profile import profile_intervals
from suffice.models.glm.rowwise import no_rows

if TYPE_CHECKING:
    from suffice.models.glm.declaration import GLM
    from suffice.models.glm.fitted import GLMFitted

#: Joint with the variance, or with the covariance of the residuals; Laplace's approximation.
CoefficientPosterior = RegressionDistribution | MatrixRegressionDistribution | MultivariateNormal


def degrees_of_freedom(fitted: GLMFitted, known: float | None) -> float | None:
    """Those of Student's t where the dispersion is estimated; None for the normal distribution.

    Clusters are what there is to average over: their number less one.
    """
    estimated = fitted.free_dispersion and known is None and fitted.precision is None
    df = fitted.df_resid if fitted.groups_df is None else fitted.groups_df
    return df if estimated and df > 0 else None


def posterior_of(fitted: GLMFitted) -> CoefficientPosterior:
    """The exact posterior under a conjugate prior, or Laplace's approximation under a Gaussian one."""
    if fitted.posterior is not None:
        return (RegressionDistribution if fitted.single else MatrixRegressionDistribution)(*fitted.posterior)
    if fitted.precision is None:
        raise NotFittedError("There is no posterior without a Gaussian or conjugate prior; give prior=.")
    return MultivariateNormal(mean=fitted.values.T.ravel(), covariance=fitted.covariance())


def flat_names(fitted: GLMFitted) -> tuple[str, ...]:
    """The names of all coefficients, predictor by predictor."""
    names = fitted.parameters.names
    if fitted.single:
        return tuple(names)
    return tuple(f"{name} ({label})" for label in fitted.column_labels() for name in names)


def inference_of(model: GLM) -> Inference:
    """What the rows say about the coefficients, predictor by predictor."""
    fitted = model.fitted_
    held = fitted.not_estimated().T.ravel()
    dropped = held & (len(fitted.dropped) > 0) & ~_at_corners(fitted)
    marks = tuple(np.where(dropped, "dropped", np.where(held, "at the centre of its prior", "")).tolist())
    bayesian = fitted.posterior is not None or fitted.precision is not None
    return Inference(
        flat_names(fitted),
        np.where(dropped, np.nan, fitted.limits().T.ravel()),
        lambda: fitted.standard_errors().T.ravel(),
        fitted.covariance,
        df=degrees_of_freedom(fitted, model._fit_options().known_dispersion),
        profile=partial(_profiled, model),
        posterior=partial(_credible, fitted) if bayesian else None,
        heading="coefficient",
        marks=marks if any(marks) else (),
        about=CHOSEN if fitted.corners else "",
        head=lambda: tuple(_head(fitted, model.report_, model._options)),
        whole_head=True,
    )


def _at_corners(fitted: GLMFitted) -> Flags:
    """The coefficients, predictor by predictor, that a Laplace prior holds at its centre."""
    return replace(fitted, dropped=()).not_estimated().T.ravel()


def intervals_of(
    model: GLM,
    level: float = 0.95,
    *,
    method: Interval = "wald",
    X: object = None,
    y: object = None,
    **rows: Unpack[WeightedRowOptions],
) -> NamedVector:
    """Confidence intervals of the coefficients, (k, 2) by name, intercept first.

    Args:
        model: a fitted GLM.
        level: probability of each interval.
        method: "wald", estimate +- quantile * standard error; or "profile", where twice the log-likelihood falls by
            the quantile's square with all other coefficients at their best: needs the rows again.
        X: the rows of the fit, for "profile".
        y: their response.
        rows: sample_weight, offset, exposure, trials, as for `fit`.
    """
    fitted, options = model.fitted_, model._fit_options()
    df = degrees_of_freedom(fitted, options.known_dispersion)
    if choice(method, "method", choices(Interval)) == "wald":
        no_rows({"X": X, "y": y, **rows})
        ends = wald_intervals(np.asarray(model.parameters_), np.asarray(model.standard_errors_), level, df)
        return NamedVector.of(ends, fitted.parameters.names)
    if X is None and model._options["formula"] is None:
        raise OptionError("Profile intervals need the rows again: intervals(method='profile', X=..., y=...).")
    given, reach = Inputs(X, {"y": y, **rows}), quantile(level, df)
    return NamedVector.of(profile_intervals(options, fitted, given, reach), fitted.parameters.names)


def _profiled(model: GLM, level: float, given: Mapping[str, Any]) -> Floats:
    """Profile intervals (k, 2), from the rows of the fit."""
    options, fitted = model._fit_options(), model.fitted_
    if given.get("data") is None and model._options["formula"] is None:
        raise OptionError("Profile intervals need the rows again: confidence_intervals(level, X, y, method='profile').")
    inputs = Inputs(given.get("data"), {name: value for name, value in given.items() if name != "data"})
    reach = quantile(level, degrees_of_freedom(fitted, options.known_dispersion))
    return profile_intervals(options, fitted, inputs, reach)


def _credible(fitted: GLMFitted, level: float) -> Floats:
    """Central posterior intervals (k, 2)."""
    posterior = posterior_of(fitted)
    if isinstance(posterior, MultivariateNormal):
        reach = quantile(level) * np.sqrt(np.diagonal(posterior.covariance_))
        return np.stack((posterior.mean_ - reach, posterior.mean_ + reach), axis=1)
    weights = np.asarray(posterior.intervals(level)["weights"], dtype=np.float64)
    return weights if fitted.single else np.moveaxis(weights, 1, 0).reshape(-1, 2)


def _dispersion_as(fitted: GLMFitted, options: Mapping[str, Any]) -> str:
    """How the dispersion was found."""
    if fitted.posterior is not None:
        return "posterior mean"
    if is_number(options["dispersion"]):
        return "given"
    return options["dispersion"] or ("pearson" if options["prior"] is None else "ml")


def _head(fitted: GLMFitted, report: Report, options: Mapping[str, Any]) -> list[tuple[str, str]]:
    lines = [
        ("family, link", f"{fitted.family}, {fitted.link}"),
        ("rows, coefficients", f"{fitted.weight:,.6g}, {fitted.parameters.size}"),
        ("method", f"{report.method}, {report.iterations} iterations"),
    ]
    if report.has_likelihood:
        lines.append(("log-likelihood", f"{report.log_likelihood:,.6g}"))
        lines.append(("AIC, BIC", f"{report.aic:,.6g}, {report.bic:,.6g}"))
    if math.isfinite(fitted.null_deviance):
        lines.append(("deviance, null", f"{fitted.deviance:,.6g}, {fitted.null_deviance:,.6g}"))
    if math.isfinite(fitted.pearson):
        lines.append(("Pearson chi2", f"{fitted.pearson:,.6g} on {fitted.df_resid:,.6g} df"))
    if fitted.free_dispersion:
        lines.append(("dispersion", f"{fitted.dispersion:.6g} ({_dispersion_as(fitted, options)})"))
    if fitted.size is not None:
        lines.append(("size", f"{fitted.size:.6g}"))
    if fitted.errors or (fitted.sandwich is not None and options["covariance"] in WHITE):
        lines.append(("covariance", fitted.errors or "robust (sandwich)"))
    if report.certificate.exists is False:
        label = "no maximum" if fitted.direction is None else "separated"
        lines.append((label, "; ".join(report.certificate.directions[:4])))
    return lines


#: Families whose deviances do not differ by twice what their log-likelihoods do: they have parameters beside the
#: coefficients, estimated anew in each fit.
_BY_LIKELIHOOD = {"negative_binomial", "multivariate_gaussian"}


def likelihood_ratio(small: Any, large: Any) -> HypothesisTest:
    """The test of two fitted models of the same rows, the first nested in the second."""
    from scipy.special import chdtrc, fdtrc

    if small.family_name_ != large.family_name_ or small.link_ != large.link_:
        raise OptionError("The fits differ in family or link, so neither is nested in the other.")
    check_same_rows({"The first fit": small, "the second": large})
    known = [fit._fit_options().known_dispersion for fit in (small, large)]
    if large.free_dispersion_ and known[0] != known[1]:
        raise OptionError(f"The fits have the dispersions {known[0]} and {known[1]} (None: estimated); give both one.")
    df = float(large.n_params_ - small.n_params_)
    if not df > 0:
        raise OptionError(
            f"The first fit has {small.n_params_} parameters and the second {large.n_params_}; the first "
            "must be nested in the second."
        )
    estimated = large.free_dispersion_ and known[1] is None
    drop = max(0.0, small.deviance_ - large.deviance_)
    if estimated:
        rest = large.df_resid_
        ratio = drop / df / (large.pearson_chi2_ / rest)
        return HypothesisTest(ratio, df, float(fdtrc(df, rest, ratio)), rest, "F")
    if small.family_name_ in _BY_LIKELIHOOD or drop == 0.0:
        drop = max(0.0, 2.0 * (large.log_likelihood_ - small.log_likelihood_))
    elif large.free_dispersion_:
        drop /= large.dispersion_
    return HypothesisTest(drop, df, float(chdtrc(df, drop)))
