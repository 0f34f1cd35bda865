"""Odds ratios, rate ratios and their like: coefficients on the scale of the exponential, with intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from suffice.errors import OptionError
from suffice.fitting.inference import Inference
from suffice.fitting.parameter_table import EstimateTable, interval_titles
from suffice.models.glm.fitted import GLMFitted
from suffice.models.glm.results import inference_of

if TYPE_CHECKING:
    from suffice.models.glm.declaration import GLM

_COUNTS = ("poisson", "quasipoisson", "negative_binomial")
#: What the exponential of a coefficient is, by link.
_OF_LINKS = {"logit": "odds ratio", "log": "ratio of means", "cloglog": "hazard ratio"}


def ratio_name(fitted: GLMFitted) -> str:
    """What the exponential of a coefficient is; an error where it is nothing."""
    family, link = fitted.family, fitted.link
    if link not in _OF_LINKS or (family, link) == ("ordinal", "cloglog"):
        raise OptionError(
            f"With the {link} link the exponential of a coefficient is no ratio; odds ratios need the logit link, rate "
            "ratios the log link. marginal_effects() speaks of means under any link."
        )
    if family == "multinomial":
        return "relative-risk ratio"
    if link == "log" and family in _COUNTS:
        return "rate ratio"
    if link == "log" and family in ("binomial", "quasibinomial"):
        return "risk ratio"
    return _OF_LINKS[link]


def ratios(model: GLM, level: float = 0.95) -> EstimateTable:
    """Odds ratios (logit link), rate ratios (log link of counts) and their like, with intervals.

    The exponential of every coefficient and of the ends of its interval; the error is that of the delta method, the
    test that the ratio is 1, the Wald test of the coefficient. That of the intercept is the odds, or the mean, at the
    reference. Of labels without an order a relative-risk ratio is that of the odds of a label against the reference.
    """
    fitted, inference = model.fitted_, inference_of(model)
    ahead = len(fitted.thresholds)
    if not ahead:
        return exponentiated(inference, fitted, (("family, link", f"{fitted.family}, {fitted.link}"),), level)
    kept = list(range(ahead, len(inference.names)))
    own = Inference.of_covariance(
        inference.names[ahead:], inference.values[ahead:], lambda: inference.covariance_of(kept), df=inference.df
    )
    return exponentiated(own, fitted, (("family, link", f"{fitted.family}, {fitted.link}"),), level)


def exponentiated(
    inference: Inference, fitted: GLMFitted, head: tuple[tuple[str, str], ...], level: float
) -> EstimateTable:
    """The table of the exponentials of some coefficients, or of differences of coefficients."""
    name, figures = ratio_name(fitted), inference.figures(level)
    with np.errstate(over="ignore", invalid="ignore"):
        values, ends = np.exp(figures[:, 0]), np.exp(figures[:, 4:])
        errors = np.where(np.isinf(figures[:, 1]), np.inf, values * figures[:, 1])
    rows = np.column_stack((values, errors, figures[:, 2:4], ends))
    titles = (name, "std. error", inference.statistic, "p value", *interval_titles(level))
    return EstimateTable(
        head,
        titles,
        tuple((one, tuple(row)) for one, row in zip(inference.names, rows.tolist(), strict=True)),
        covariance=lambda: inference.covariance * np.outer(values, values),
    )
