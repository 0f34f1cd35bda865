"""Figures of single rows under a fitted regression: predictions, residuals, leverage, log-likelihoods."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.errors import DataError, OptionError
from suffice.families.base import take_states
from suffice.models.glm.design import Table
from suffice.models.glm.families import BinomialFamily
from suffice.models.glm.input import checked_weights, open_rows, side_column
from suffice.models.glm.learned import Learned
from suffice.models.glm.response import log_choices, numbers
from suffice.models.glm.results import quantile
from suffice.models.glm.rows import Asked, formula_response
from suffice.models.glm.vector_registry import VECTOR_FAMILIES

Floats = NDArray[np.float64]

#: Rows whose design is made at a time.
_ROWS = 4_096


def linear(learned: Learned, table: Table, offset: Floats | None) -> Floats:
    """The linear predictor (n, m), or what a family of labels has in its place; infinite where separation decides."""
    several = VECTOR_FAMILIES.get(learned.family)
    if several is not None:
        return several.linear(learned, table, offset)
    eta = learned.design.eta(table, learned.beta)
    if offset is not None:
        eta += offset[:, None]
    if learned.direction is None:
        return eta
    along = learned.design.eta(table, learned.direction)
    size = np.abs(along).max(initial=0.0)
    return np.where(np.abs(along) > 1e-7 * size, np.where(along > 0.0, np.inf, -np.inf), eta)


def predict(
    learned: Learned, table: Table, offset: Floats | None, kind: str, interval: float | None, df: float | None
) -> Any:
    """See `GLM.predict`."""
    if kind not in ("response", "link", "class"):
        raise OptionError(f"kind is {kind!r}; expected 'response', 'link' or 'class'.")
    eta = linear(learned, table, offset)
    several = VECTOR_FAMILIES.get(learned.family)
    if several is not None:
        if interval is not None:
            raise OptionError("Intervals of predictions are offered for one linear predictor.")
        return several.predict(learned, eta, kind)
    law = learned.row_law()
    with np.errstate(over="ignore"):
        centre = eta[:, 0] if kind == "link" else law.link.mean(eta[:, 0])
    if kind == "class":
        if learned.classes is None:
            raise OptionError(f"The {learned.family} response has no labels; use kind='response'.")
        return take_states(learned.classes, (centre > 0.5).astype(np.intp))
    if interval is None:
        return centre
    reach = quantile(interval, df) * np.sqrt(eta_variances(learned, table))
    ends = np.stack((eta[:, 0] - reach, eta[:, 0] + reach), axis=1)
    if kind == "response":
        with np.errstate(all="ignore"):
            ends = np.sort(law.link.mean(ends), axis=1)
    return np.column_stack((centre, ends))


def eta_variances(learned: Learned, table: Table) -> Floats:
    """The variance of each row's linear predictor, x' V x (n,); infinite where the fit says nothing about it."""
    covariance, flat = learned.covariance(), learned.flat()
    found = np.empty(table.rows)
    for at in range(0, table.rows, _ROWS):
        rows = learned.design.matrix(table.part(slice(at, at + _ROWS)))
        own = np.einsum("ij,ij->i", rows @ covariance, rows)
        untold = (np.abs(rows @ flat) > 1e-7 * (np.abs(rows) @ np.abs(flat))).any(axis=1)
        found[at : at + _ROWS] = np.where(untold, np.inf, np.maximum(own, 0.0))
    return found


@dataclass(frozen=True, eq=False)
class Scored:
    """Rows with their response under the fitted law; `weights` count rows, `trials` are those of a share."""

    table: Table
    eta: Floats
    y: Floats
    weights: Floats
    trials: Floats | None
    log_prob: Floats


def scored(model: Any, X: Any, asked: Asked) -> Scored:
    """Read rows and their response as the fit did."""
    learned: Learned = model._learned_result
    table, offset = model._rows(X, asked.offset, asked.exposure)
    y, source = asked.y, None
    if isinstance(y, str | tuple) or any(isinstance(v, str) for v in (asked.sample_weight, asked.trials)):
        source = open_rows(X)
        if isinstance(y, tuple) and y not in source.columns:
            y = np.column_stack([numbers(source.column(name)) for name in y])  # type: ignore[attr-defined]
        elif isinstance(y, str):
            source.check_columns([y])
            y = source.column(y)  # type: ignore[attr-defined]
    kind = model._kind()
    if y is None and model._options["formula"] is not None:
        y = formula_response(model._options["formula"], X, kind)
    if y is None:
        raise DataError("There is no response: give y=.")
    if learned.classes is not None and kind.states is None:
        kind = type(kind)(kind.response, _states(learned, y), kind.family, kind.link)
    if learned.family == "multivariate_gaussian":
        kind = type(kind)("vectors")
    response = kind.read(y, side_column(asked.trials, source, table.rows, "trials"))
    if len(response.y) != table.rows:
        raise DataError(f"The response has {len(response.y)} rows and X has {table.rows}.")
    weights = checked_weights(side_column(asked.sample_weight, source, table.rows, "sample_weight"))
    weights = np.ones(table.rows) if weights is None else weights
    eta = linear(learned, table, offset)
    return Scored(table, eta, response.y, weights, response.trials, log_prob(learned, eta, response.y, response.trials))


def _states(learned: Learned, y: Any) -> tuple[Any, ...] | None:
    """The labels learned; numbers 0 and 1, or -1 and 1, of a binomial response are read as such."""
    plain = learned.classes in ((0, 1), (-1, 1), (False, True)) or np.ndim(y) == 2
    return None if plain and learned.family == "binomial" else learned.classes


def log_prob(learned: Learned, eta: Floats, y: Floats, trials: Floats | None) -> Floats:
    """Log density or probability of each row (n,)."""
    several = VECTOR_FAMILIES.get(learned.family)
    if several is not None:
        return several.log_prob(learned, eta, y)
    law = learned.row_law()
    if isinstance(law.family, BinomialFamily):
        n = np.ones_like(y) if trials is None else trials
        with np.errstate(all="ignore"):
            limits = np.where(np.isinf(eta[:, 0]), np.sign(eta[:, 0]) * 1e5, eta[:, 0])
            value = law(limits, y)[0]
            certain = np.where((eta[:, 0] > 0) == (y > 0.5), 0.0, -np.inf)
            value = np.where(np.isinf(eta[:, 0]), certain, value)
        return n * value + log_choices(y * n, n)
    with np.errstate(all="ignore"):
        return law.family.log_prob(y, law.link.mean(eta[:, 0]), learned.dispersion)


def residuals(learned: Learned, rows: Scored, kind: str) -> Floats:
    """Residuals of one of four kinds (n,)."""
    if learned.family in VECTOR_FAMILIES:
        raise OptionError(f"Residuals of the {learned.family} family are not offered.")
    law = learned.row_law()
    eta = rows.eta[:, 0]
    prior = rows.trials if rows.trials is not None else np.ones_like(eta)
    with np.errstate(all="ignore"):
        mean = law.link.mean(eta)
        away = rows.y - mean
        if kind == "response":
            return away
        if kind == "pearson":
            return np.where(away == 0.0, 0.0, away * np.sqrt(prior / law.family.variance(mean)))
        if kind == "working":
            return np.where(away == 0.0, 0.0, away / law.link.slope(eta))
        if kind == "deviance":
            return np.sign(away) * np.sqrt(np.maximum(prior * law.family.deviance(rows.y, mean), 0.0))
    raise OptionError(f"kind is {kind!r}; expected 'response', 'pearson', 'deviance' or 'working'.")


def leverage(learned: Learned, rows: Scored) -> Floats:
    """See `GLM.leverage`."""
    if learned.family in VECTOR_FAMILIES:
        raise OptionError(f"The leverage of the {learned.family} family is not offered.")
    weights = learned.row_law()(rows.eta[:, 0], rows.y)[2] * rows.weights / learned.dispersion
    if rows.trials is not None:
        weights = weights * rows.trials
    expected = learned if learned.sandwich is None else _without_sandwich(learned)
    spread = eta_variances(expected, rows.table)
    return np.where(weights > 0.0, weights, 0.0) * np.where((weights > 0.0) & np.isfinite(spread), spread, 0.0)


def _without_sandwich(learned: Learned) -> Learned:
    from dataclasses import replace

    return replace(learned, sandwich=None)
