"""What comes after a fit, for every model: the table of its parameters, their intervals, refits by the bootstrap.

All of it reads the report and what the portrait of a model says about its parameters (`inference`), never a model. What
computes is loaded when it is called.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from suffice.checks import choice
from suffice.choices import BootstrapKind, ConfidenceMethod, choices
from suffice.errors import EstimateError, NotFittedError, OptionError, SizeError

if TYPE_CHECKING:
    from suffice.fitting.bootstrap import Bootstrap
    from suffice.fitting.estimator import Estimator
    from suffice.fitting.named import NamedVector
    from suffice.fitting.parameter_table import ParameterTable
    from suffice.fitting.report import Report


def log_likelihood(model: Estimator) -> float:
    """The log-likelihood of the rows that were learned: their sum, natural logarithm."""
    return _of_likelihood(model).log_likelihood


def aic(model: Estimator) -> float:
    """Akaike's criterion, 2 k - 2 log-likelihood: smaller is better."""
    return _of_likelihood(model).aic


def bic(model: Estimator) -> float | None:
    """Schwarz's criterion, k log(weight) - 2 log-likelihood: smaller is better; None without rows."""
    return _of_likelihood(model).bic


def _of_likelihood(model: Estimator) -> Report:
    """The report of a fit that has a likelihood."""
    report = model.report_
    if not report.has_likelihood:
        raise NotFittedError(
            f"The estimate is {report.estimate}: it says mean and variance alone, so that there is no log-likelihood, "
            "no AIC and no BIC. Compare nested fits by likelihood_ratio_test, which is then the F test of deviances."
        )
    return report


def summary(
    model: Estimator, level: float = 0.95, data: object = None, y: object = None, **given: Any
) -> ParameterTable:
    """The table of a fit: its figures, and each parameter with standard error, test and Wald interval.

    It prints, shows as HTML in a notebook, and gives `to_frame()`, `to_latex()`, `params`, `bse`, `llf`, `aic`.
    Errors that there are not are left blank, and a line below the table says why. Models whose errors need the rows
    of the fit again, conditional random fields and large hidden Markov models, take them as `fit` did.
    """
    from suffice.fitting.inference import inference_of, quantile
    from suffice.fitting.parameter_table import ParameterTable
    from suffice.fitting.samples import fit_arguments

    report, inference = model.report_, inference_of(model, fit_arguments(data, y, given))
    quantile(level)
    size = f"{report.rows:,}" if report.weight == report.rows else f"{report.rows:,}, weight {report.weight:,.6g}"
    head = [
        ("model", report.model),
        ("rows", size),
        ("estimate", report.estimate),
        ("method", report.method),
        ("log-likelihood", f"{report.log_likelihood:,.6g}"),
        ("parameters", f"{model.n_params_:,}"),
        ("AIC", f"{report.aic:,.6g}") if report.bic is None else ("AIC, BIC", f"{report.aic:,.6g}, {report.bic:,.6g}"),
    ]
    if report.log_evidence is not None:
        head.append(("log evidence", f"{report.log_evidence:,.6g}"))
    head = [*([] if inference.whole_head else head), *inference.head()]
    if not report.converged and not inference.whole_head:
        head.append(("NOT converged", report.stop_reason))
    figures = (report.log_likelihood if report.has_likelihood else math.nan, report.aic, report.bic)
    try:
        return ParameterTable.of(inference, tuple(head), level, *figures)
    except (EstimateError, SizeError) as error:
        return ParameterTable.of(inference.without_errors(str(error)), tuple(head), level, *figures)


def confidence_intervals(
    model: Estimator,
    level: float = 0.95,
    data: object = None,
    y: object = None,
    *,
    method: ConfidenceMethod = "wald",
    n: int | None = None,
    random_state: Any = None,
    threads: int | None = None,
    progress: bool | None = None,
    **given: Any,
) -> NamedVector:
    """Intervals of all parameters, (k, 2) by name.

    Args:
        model: a fitted model.
        level: probability of each interval.
        data: the rows of the fit, for a bootstrap of cases, profiles of regressions and errors of models that keep too
            little, conditional random fields and large hidden Markov models.
        y: their response or labels.
        method: "wald", estimate +- quantile * standard error, inside the range of the parameter; "profile", where twice
            the log-likelihood has fallen by the square of the quantile with all other parameters at their best;
            "bootstrap", percentiles of refits as `bootstrap` makes them; "posterior", which needs a prior.
        n: how many refits a bootstrap makes (999), as `random_state`, `threads` and `progress` are its options.
        random_state: see `n`.
        threads: see `n`.
        progress: see `n`.
        given: what else `fit` takes beside the rows, by name.
    """
    from suffice.fitting.inference import inference_of, quantile
    from suffice.fitting.named import NamedVector
    from suffice.fitting.samples import fit_arguments

    rows = fit_arguments(data, y, given)
    options = {"n": n, "random_state": random_state, "threads": threads, "progress": progress}
    options = {name: value for name, value in options.items() if value is not None}
    method = choice(method, "method", choices(ConfidenceMethod))
    if method == "bootstrap":
        quantile(level)
        return model.bootstrap(data, y, **options, **given).intervals(level)
    if options:
        raise OptionError(f"{', '.join(options)} has no effect on method={method!r}; it is for method='bootstrap'.")
    if method == "profile":
        inference = inference_of(model)
        return NamedVector.of(inference.profiled(level, rows), inference.names)
    inference = inference_of(model, rows)
    if method == "wald":
        return NamedVector.of(inference.wald(level), inference.names)
    if inference.posterior is None:
        raise EstimateError(
            f"This {type(model).__name__} has no posterior of its parameters in closed form: give it a prior that is "
            "conjugate, or ask for method='wald'."
        )
    quantile(level)
    return NamedVector.of(inference.posterior(level), inference.names)


def parameter_covariance(model: Estimator, data: object = None, y: object = None, **given: Any) -> NamedVector:
    """The covariance of the estimates (k, k), in the order of `summary()`, with its names.

    `covariance_` of a `MultivariateNormal` or a `GaussianGraph` is that of their distribution; this is of estimates.
    Models whose errors need the rows of the fit again, conditional random fields, take them as `fit` did.
    """
    from suffice.fitting.inference import inference_of
    from suffice.fitting.named import NamedVector
    from suffice.fitting.samples import fit_arguments

    inference = inference_of(model, fit_arguments(data, y, given))
    return NamedVector.of(inference.covariance, inference.names)


def bootstrap(
    model: Estimator,
    data: object = None,
    y: object = None,
    *,
    n: int = 999,
    kind: BootstrapKind | None = None,
    random_state: Any = 0,
    threads: int | None = None,
    progress: bool = False,
    **given: Any,
) -> Bootstrap:
    """Refit the model to `n` samples of as many rows, and keep the parameters of each.

    Args:
        model: a fitted model.
        data: the rows of the fit, as `fit` took them.
        y: their response or labels.
        n: how many refits.
        kind: "case" draws rows (sequences, examples) with replacement: `sample_weight` says how often each row is
            there, whole numbers being counts of rows; "parametric" draws rows from the fit. By default "case" where
            rows are given, else "parametric".
        random_state: a seed or a generator; each refit has its own stream, so threads change no result.
        threads: refits at a time; None for all cores.
        progress: whether to show a bar.
        given: what else `fit` takes beside the rows, by name.

    Ctrl-C ends it with the refits that are there. Latent models are refitted from where the fit ended, so that their
    states keep their names. Refits that fail are counted, not hidden.
    """
    from suffice.fitting.bootstrap import refits

    given = {name: value for name, value in given.items() if value is not None}
    return refits(model, data, y, given, n, kind, random_state, threads, progress=progress)
