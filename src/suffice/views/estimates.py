"""Maximum likelihood, MAP and posterior mean beside one another, with posterior intervals, for models with a prior."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.errors import SufficeError
from suffice.fitting.report import CountedRows
from suffice.views.charts import Interval

Floats = NDArray[np.float64]

#: Tables of more cells are left out where all nodes are asked for: quantiles of all of them would take long.
LARGE = 5_000
#: Weights up to which a covariance of all features is made, and cells whose errors under gaps are worked out.
MOST_WEIGHTS, MOST_ERRORS = 400, 400


def estimates_of(model: Any, *, level: float = 0.95, node: Hashable = None) -> list[Interval]:
    """The parameters of a model that has a posterior, or a standard error; empty where it has neither.

    A network gives those of its tables and regressions, or of one `node`; a Markov network the means of its features; a
    chain or a hidden Markov model its rows; a law of a column its own; a regression its coefficients.
    """
    if callable(getattr(model, "node", None)):
        return list(_of_network(model, level, node))
    if callable(getattr(model, "counted_rows", None)):
        return [one for rows in model.counted_rows() for one in _of_rows(rows, level)]
    if hasattr(model, "information_") and hasattr(model, "log_partition_"):
        return list(_of_features(model, level))
    if hasattr(model, "credible_intervals"):
        return list(_of_law(model, level))
    if hasattr(model, "coefficients_") and hasattr(model, "summary"):
        return list(_of_regression(model, level))
    return []


def note_of(model: Any, found: list[Interval]) -> str:
    """What a reader of the estimates of a model with a prior has to know; empty without a prior."""
    if not hasattr(model, "get_params") or model.get_params(deep=False).get("prior") is None:
        return ""
    if hasattr(model, "weight_names_") and hasattr(model, "labels_"):
        return (
            "The weights are the MAP. Maximum likelihood needs a fit of its own, with prior=None, and may not exist; "
            "how far the prior moves each feature is drawn above."
        )
    if hasattr(model, "information_") and hasattr(model, "log_partition_"):
        return (
            "Means of the features, which are identified where weights are not. Maximum likelihood makes them those of "
            "the rows; the intervals are normal, from the curvature at the MAP."
            if found
            else "Estimates are not compared: there are too many weights, or the law is sampled, or rows have gaps."
        )
    if callable(getattr(model, "counted_rows", None)):
        return _note_of_rows(model, found)
    if callable(getattr(model, "node", None)):
        return _note_of_network(found)
    if found and hasattr(model, "coefficients_") and all(one.mle is None for one in found):
        return "The likelihood has no maximum, or the rows are no longer at hand: the MAP stands alone."
    return ""


# -- networks --------------------------------------------------------------------------------------------------------


def _of_network(model: Any, level: float, node: Hashable) -> Iterator[Interval]:
    nodes = [model.node(name) for name in (model.nodes if node is None else (node,))]
    if node is None:
        nodes = [found for found in nodes if np.size(getattr(found, "rows", 0)) <= LARGE]
    without_prior = cache(lambda: refitted(model, prior=None))
    for found in nodes:
        if hasattr(found, "counts"):
            posterior = _or_none(partial(getattr, found, "posterior_"))
            yield from _under_gaps(found, level) if posterior is None else _of_table(found, posterior, level)
        elif hasattr(found, "credible_intervals"):
            yield from _of_real_node(found, level, without_prior)


def _note_of_network(found: list[Interval]) -> str:
    if not found:
        return "The posterior of this network has no closed form: its parameters are those of EM, without intervals."
    if all(one.mle is None for one in found):
        return (
            "Rows have gaps or variables are hidden: the estimate is that of EM, with intervals of two standard errors "
            "from the observed information. Maximum likelihood needs a fit of its own, with prior=None."
        )
    if any(one.map is None and "=" in one.name.partition(":")[0] for one in found):
        return "A row of a table has a mode, the MAP, only where each count and its pseudo-count make at least 1."
    return ""


def _of_table(node: Any, posterior: Any, level: float) -> Iterator[Interval]:
    """Each cell P(state | parents) of a table with Dirichlet rows."""
    if not hasattr(posterior, "alpha_"):
        return
    alpha = posterior.alpha_.values
    if node.counts.size != alpha.size:  # A table that keeps only the rows that occur: the others have no names here.
        return
    rows = alpha.reshape(node.counts.shape)
    names = tuple(node.cell_names(np.arange(len(node.counts))))
    yield from _of_rows(CountedRows(names, node.counts, rows - node.counts), level)


def _of_rows(rows: CountedRows, level: float) -> Iterator[Interval]:
    """Dirichlet rows: the cells of each have Beta laws; a row has a mode where no parameter is below 1."""
    from scipy.special import betaincinv

    alpha = rows.counts + rows.alpha
    total, seen = alpha.sum(axis=1, keepdims=True), rows.counts.sum(axis=1, keepdims=True)
    ends = [betaincinv(alpha, total - alpha, share) for share in (0.5 - 0.5 * level, 0.5 + 0.5 * level)]
    excess = np.maximum(total - alpha.shape[1], 0.0)
    unique = (alpha >= 1.0).all(axis=1, keepdims=True) & (excess > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        likelihood = np.where((seen > 0) & (not rows.expected), rows.counts / seen, np.nan)
        mode = np.where(unique, (alpha - 1.0) / excess, np.nan)
    parts = (*ends, likelihood, mode, alpha / total)
    for name, low, high, *points in zip(rows.names, *(np.ravel(part).tolist() for part in parts), strict=True):
        yield Interval(name, low, high, *map(_number, points))


def _note_of_rows(model: Any, found: list[Interval]) -> str:
    if not found:
        return "The prior acts on laws whose posterior is not compared here, or through a mixture of rows."
    if all(one.mle is None for one in found):
        return (
            "Given the counts that the E-step expects: the intervals leave out that states are hidden, so they are a "
            "lower bound. Maximum likelihood needs a fit of its own, with prior=None; standard_errors(sequences) gives "
            "the errors of the observed information."
        )
    return ""


def _under_gaps(node: Any, level: float) -> Iterator[Interval]:
    """Cells of a table that EM learned: two standard errors of the observed information about the estimate."""
    if getattr(node, "alpha", None) is None or np.size(node.rows) > MOST_ERRORS:
        return
    errors = _or_none(lambda: node.standard_errors_)
    if errors is None or errors.values.size != node.rows.size:
        return
    reach = _quantile(level) * errors.values.ravel()
    names = node.cell_names(np.arange(len(node.rows)))
    for name, value, far in zip(names, node.rows.ravel().tolist(), reach.tolist(), strict=True):
        if math.isfinite(far):
            yield Interval(name, max(0.0, value - far), min(1.0, value + far), None, value, None)


def _of_real_node(node: Any, level: float, without_prior: Callable[[], Any]) -> Iterator[Interval]:
    """Weights and variance of a linear-Gaussian node with a prior: Student-t and inverse-gamma intervals."""
    ends = _or_none(lambda: node.credible_intervals(level))
    if ends is None:
        return
    mean, likelihood = node.table_, _or_none(lambda: without_prior().node(node.name).table_)
    given = ["" if not node.discrete_parents else " | " + ", ".join(map(str, where[:-1])) for where, _ in mean.items()]
    for at, (where, value) in enumerate(mean.items()):
        low, high = (float(end.values.ravel()[at]) for end in ends)
        mle = None if likelihood is None else _number(likelihood.values.ravel()[at])
        if math.isfinite(low) and math.isfinite(high):
            yield Interval(f"{node.name}: {where[-1]}{given[at]}", low, high, mle, None, _number(value))


# -- log-linear models -----------------------------------------------------------------------------------------------


def _of_features(model: Any, level: float) -> Iterator[Interval]:
    """Means of the features under the MAP, and of the rows, where maximum likelihood puts them.

    The weights have about the covariance ``(N C + P)^-1`` with the covariance C of the features and the precision P of
    a normal prior, and so their means ``C (N C + P)^-1 C``.
    """
    prior = model.get_params(deep=False).get("prior")
    if prior is None or len(model.weight_names_) > MOST_WEIGHTS:
        return
    matched = _or_none(model.matched_statistics)
    covariance = None if matched is None else _or_none(lambda: model.information_)
    if covariance is None or matched.errors is not None:
        return
    size = len(covariance)
    precision = np.zeros((size, size))
    if hasattr(prior, "covariance_") and np.ndim(prior.covariance_) == 2:
        precision = np.linalg.inv(prior.covariance_)
    elif type(prior).__name__ == "Normal":
        precision = np.diag(np.broadcast_to(1.0 / np.asarray(prior.variance_, dtype=np.float64), (size,)))
    spread = covariance @ np.linalg.pinv(model.report_.weight * covariance + precision, hermitian=True) @ covariance
    reach = _quantile(level) * np.sqrt(np.maximum(np.diagonal(spread), 0.0))
    for name, seen, told, far in zip(matched.names, matched.observed, matched.expected, reach, strict=True):
        yield Interval(str(name), float(told - far), float(told + far), float(seen), float(told), None)


# -- laws and regressions --------------------------------------------------------------------------------------------


def refitted(model: Any, **options: Any) -> Any:
    """A copy of the model with other options, fitted to the same statistics; None where that has no answer."""
    return _or_none(lambda: model.clone().set_params(**options).fit(model.statistics_))


def _of_law(law: Any, level: float) -> Iterator[Interval]:
    ends = _or_none(lambda: law.credible_intervals(level))
    if ends is None:
        return
    points = {
        "mle": refitted(law, prior=None, estimate=None),
        "map": refitted(law, estimate="map"),
        "mean": refitted(law, estimate="mean"),
    }
    for name, interval in ends.items():
        limits = np.asarray(interval, dtype=np.float64).reshape(-1, 2)
        found = {kind: _flat(fit, name, len(limits)) for kind, fit in points.items()}
        labels = _labels(law, name, len(limits))
        for at, (low, high) in enumerate(limits.tolist()):
            yield Interval(labels[at], low, high, **{kind: _number(values[at]) for kind, values in found.items()})


def _labels(law: Any, name: str, size: int) -> list[str]:
    if size == 1:
        return [name]
    states = getattr(law, "states_", ())
    return [f"{name}[{states[at] if len(states) == size else at}]" for at in range(size)]


def _flat(fit: Any, name: str, size: int) -> Floats:
    value = None if fit is None else fit.parameters_.get(name)
    found = np.full(size, np.nan) if value is None else np.asarray(value, dtype=np.float64).ravel()
    return found if len(found) == size else np.full(size, np.nan)


def _of_regression(model: Any, level: float) -> Iterator[Interval]:
    """Coefficients with Wald intervals; with a prior they are the MAP, beside those of maximum likelihood."""
    table = _or_none(lambda: model.summary(level))
    if table is None:
        return
    has_prior = model.get_params(deep=False).get("prior") is not None
    likelihood = _or_none(model.likelihood_estimate) if has_prior else None
    for at, (name, values) in enumerate(table.rows):
        low, high = values[-2:]
        if np.isfinite([values[0], low, high]).all():
            mle = (None if likelihood is None else _number(likelihood[at])) if has_prior else float(values[0])
            yield Interval(str(name), float(low), float(high), mle, float(values[0]) if has_prior else None, None)


def _quantile(level: float) -> float:
    from scipy.special import ndtri

    return float(ndtri(0.5 + 0.5 * level))


def _number(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None


def _or_none(make: Callable[[], Any]) -> Any:
    """What is asked for, or None where the library says that it does not exist."""
    try:
        return make()
    except (SufficeError, AttributeError):
        return None
