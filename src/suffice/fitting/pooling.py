"""Rubin's rules: one answer from the fits of several completed tables."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from suffice.array_types import Floats
from suffice.checks import is_list, is_number
from suffice.errors import CallError, DataError, EstimateError, OptionError, listing, shortened
from suffice.fitting.inference import inference_of, quantile, two_sided
from suffice.fitting.named import NamedVector
from suffice.fitting.parameter_table import EstimateTable, interval_titles


def _none() -> NamedVector:
    return NamedVector.of([], [])


@dataclass(frozen=True, repr=False)
class PooledEstimates(EstimateTable):
    """Estimates of several completed tables as one, with errors that hold what is not known of the missing values.

    Attributes:
        n: how many fits were pooled.
        within: the mean of their covariances (k, k).
        between: the covariance of their estimates (k, k).
        total: ``within + (1 + 1/n) between``, the covariance of the pooled estimates (k, k).
        df: degrees of freedom of Student's t by parameter; infinite where nothing is missing and the rows are many.
        increase: by how much missing values increase the variance, ``(1 + 1/n) between / within``, by parameter.
        missing_information: the fraction of the information about each parameter that is missing.
    """

    n: int = 0
    within: NamedVector = field(default_factory=_none, repr=False, compare=False)
    between: NamedVector = field(default_factory=_none, repr=False, compare=False)
    total: NamedVector = field(default_factory=_none, repr=False, compare=False)
    df: NamedVector = field(default_factory=_none, repr=False, compare=False)
    increase: NamedVector = field(default_factory=_none, repr=False, compare=False)
    missing_information: NamedVector = field(default_factory=_none, repr=False, compare=False)


def pool(
    fits: Iterable[Any],
    covariances: Iterable[Any] | None = None,
    *,
    df: float | None = None,
    names: Sequence[str] | None = None,
    level: float = 0.95,
) -> PooledEstimates:
    """Pool the fits of several completed tables by Rubin's rules: one estimate, one error for each parameter.

    Args:
        fits: fitted models of one kind, one for each completed table; or, beside `covariances`, their estimates: a
            number each, an array (k,), or a dict by name.
        covariances: those of the estimates: a variance each, or an array (k, k).
        df: degrees of freedom that the errors would have were nothing missing, such as rows less parameters; those of
            the models by default, else infinite.
        names: of the parameters, for estimates that have none.
        level: of the intervals.

    Returns:
        A table that prints, with `params`, `bse`, `conf_int()` and the parts of `PooledEstimates`. Degrees of freedom
        are those of Barnard and Rubin (1999), which are never more than `df`; the fraction of missing information is
        Rubin's (1987), 0 where all tables agree.
    """
    fits = _several(fits, "fits")
    if covariances is None:
        if names is not None:
            raise OptionError("names= are for estimates; models name their parameters. Leave it out.")
        labels, Q, U, known = _of_models(fits)
        df = known if df is None else df
    else:
        labels, Q, U = _of_estimates(fits, _several(covariances, "covariances"), names)
    if df is not None and not (is_number(df) and df > 0):
        raise OptionError(f"df is {shortened(df)}; expected a number above 0.")
    quantile(level)  # A level that is none is refused here.
    if not (np.isfinite(Q).all() and np.isfinite(U).all()):
        odd = ~(np.isfinite(Q).all(axis=0) & np.isfinite(U).all(axis=(0, 1)))
        raise EstimateError(
            f"The estimates or errors of {listing([labels[k] for k in np.flatnonzero(odd)])} are not finite in every "
            "fit. Give the models a prior."
        )
    return _pooled(labels, Q, U, math.inf if df is None else float(df), level)


def _pooled(names: tuple[str, ...], Q: Floats, U: Floats, df: float, level: float) -> PooledEstimates:
    """Rubin's rules for estimates (m, k) and covariances (m, k, k)."""
    m = len(Q)
    values, within = Q.mean(axis=0), U.mean(axis=0)
    away = Q - values
    between = away.T @ away / (m - 1)
    added = (1.0 + 1.0 / m) * between
    total = within + added
    own, extra, whole = (np.diagonal(part) for part in (within, added, total))
    if not (own > 0).all():
        none = [names[k] for k in np.flatnonzero(~(own > 0))]
        raise EstimateError(f"The variances of {listing(none)} are not above 0 in all fits. Leave these out.")
    share, increase = extra / whole, extra / own
    with np.errstate(divide="ignore"):
        large = (m - 1) / share**2
        seen = np.inf if math.isinf(df) else (df + 1.0) / (df + 3.0) * df * (1.0 - share)
        freedom = 1.0 / (1.0 / large + 1.0 / seen)
    missing = (increase + 2.0 / (large + 3.0)) / (increase + 1.0)
    errors = np.sqrt(whole)
    t = values / errors
    reach = np.array([quantile(level, v if math.isfinite(v) else None) for v in freedom.tolist()]) * errors
    p = [float(two_sided(z, v if math.isfinite(v) else None)) for z, v in zip(t, freedom.tolist(), strict=True)]
    figures = np.column_stack((values, errors, t, p, freedom, missing, values - reach, values + reach))
    titles = ("estimate", "std. error", "t", "p value", "df", "missing inf.", *interval_titles(level))
    by_name = [NamedVector.of(part, names) for part in (freedom, increase, missing)]
    return PooledEstimates(
        (("Pooled", f"{m} fits by Rubin's rules"),),
        titles,
        tuple((name, tuple(row)) for name, row in zip(names, figures.tolist(), strict=True)),
        (),
        ("missing inf.: the fraction of the information that is missing. More tables make its error smaller.",),
        lambda: total,
        m,
        *(NamedVector.of(part, names) for part in (within, between, total)),
        *by_name,
    )


def _several(given: Any, what: str) -> list[Any]:
    if not is_list(given):
        raise CallError(f"{what} is {shortened(given)}; expected a list, with an entry for each completed table.")
    several = list(given)
    if len(several) < 2:
        raise DataError(
            f"{what} has {len(several)} entries; what missing values add to the errors is told by the differences of "
            "at least 2 completed tables."
        )
    return several


def _of_models(models: list[Any]) -> tuple[tuple[str, ...], Floats, Floats, float | None]:
    """Names, estimates (m, k), covariances (m, k, k) and the fewest degrees of freedom."""
    odd = [one for one in models if is_number(one) or is_list(one) or isinstance(one, Mapping)]
    if odd:
        raise CallError(
            f"fits holds {shortened(odd[0])}, which is no fitted model. Estimates need covariances= beside them."
        )
    known = [inference_of(model) for model in models]
    names = known[0].names
    for number, other in enumerate(known):
        if other.names != names:
            differ = [name for name in (*names, *other.names) if (name in names) != (name in other.names)]
            raise DataError(
                f"Fit {number} has other parameters than fit 0: {listing(differ) if differ else 'in another order'}. "
                "Pool models of one kind, whose columns have the same states: declare these."
            )
    freedoms = [one.df for one in known if one.df is not None]
    return (
        names,
        np.stack([one.values for one in known]),
        np.stack([one.covariance for one in known]),
        min(freedoms, default=None),
    )


def _of_estimates(
    estimates: list[Any], covariances: list[Any], names: Sequence[str] | None
) -> tuple[tuple[str, ...], Floats, Floats]:
    """Names, estimates (m, k) and covariances (m, k, k)."""
    if len(estimates) != len(covariances):
        raise DataError(f"There are {len(estimates)} estimates and {len(covariances)} covariances; give one for each.")
    if isinstance(estimates[0], Mapping):
        if names is not None:
            raise OptionError("names= are for estimates without names, and these are dicts. Leave it out.")
        names = list(estimates[0])
        odd = next((k for k, one in enumerate(estimates) if not isinstance(one, Mapping) or set(one) != set(names)), 0)
        if odd:
            raise DataError(f"Estimate {odd} has other names than estimate 0, which has {listing(names)}.")
        estimates = [[one[name] for name in names] for one in estimates]
    try:
        Q = np.array([np.atleast_1d(np.asarray(one, dtype=np.float64)) for one in estimates])
        U = np.array([np.asarray(one, dtype=np.float64) for one in covariances])
    except (TypeError, ValueError):
        raise DataError("Estimates and covariances are numbers or arrays of one size; these are not.") from None
    k = Q.shape[1]
    U = U.reshape(-1, 1, 1) if U.ndim == 1 else U
    if Q.ndim != 2 or U.shape != (len(Q), k, k):
        raise DataError(
            f"Estimates of shape {Q.shape[1:]} have covariances of shape {U.shape[1:]}; expected ({k}, {k}), with the "
            "variances on the diagonal."
        )
    labels = tuple(f"x{number}" for number in range(k)) if names is None else tuple(str(name) for name in names)
    if len(labels) != k or len(set(labels)) != k:
        raise OptionError(f"names has {len(labels)} names; expected {k} different ones, one for each estimate.")
    return labels, Q, U
