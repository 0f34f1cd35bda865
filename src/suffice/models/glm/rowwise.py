"""Figures of single rows under a fitted regression: predictions, residuals, leverage, log-likelihoods."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.array_types import Floats
from suffice.checks import choice, listed_names
from suffice.choices import Predicted, choices
from suffice.domain import Domain, Variable
from suffice.errors import DataError, OptionError, listing, shortened
from suffice.fitting.contract import Inputs
from suffice.fitting.inference import quantile
from suffice.models.glm.design import DesignRows
from suffice.models.glm.family import Family
from suffice.models.glm.formula import factor_levels, matrix_of
from suffice.models.glm.formula_offset import offset_values, split_offset
from suffice.models.glm.input import checked_weights, offset_of, open_rows, side_column, table_like
from suffice.models.glm.pieces import answer_of, answers_by_part, domain_of, sides_of, stream_of
from suffice.models.glm.response import NO_RESPONSE, numbers
from suffice.models.glm.rows import formula_response, read_response
from suffice.solvers.information import Information
from suffice.sources.base import Batch, Source
from suffice.sources.mapped import RowTask, free_names

if TYPE_CHECKING:
    from suffice.models.glm.fitted import GLMFitted


#: A figure of rows that have a response (n,).
Figure = Callable[["GLMFitted", "Scored"], Floats]
#: Rows whose design is made at a time.
_ROWS = 4_096


def predict(
    fitted: GLMFitted, table: DesignRows, offset: Floats | None, kind: str, interval: float | None, df: float | None
) -> Any:
    """See `GLM.predict`."""
    choice(kind, "kind", choices(Predicted))
    family = fitted.family_object
    if interval is not None and not isinstance(family, Family):
        raise OptionError("Intervals of predictions are offered for one linear predictor.")
    eta = family.linear(fitted, table, offset)
    centre = family.predict(fitted, eta, kind)
    if interval is None or kind == "class":
        return centre
    reach = quantile(interval, df) * np.sqrt(eta_variances(fitted, table))
    ends = np.stack((eta[:, 0] - reach, eta[:, 0] + reach), axis=1)
    if kind == "response":
        with np.errstate(all="ignore"):
            ends = np.sort(fitted.row_distribution().link.mean(ends), axis=1)
    return np.column_stack((centre, ends))


def eta_variances(fitted: GLMFitted, table: DesignRows) -> Floats:
    """The variance of each row's linear predictor, x' V x (n,); infinite where the fit says nothing about it."""
    covariance, flat = fitted.covariance(), fitted.flat()
    variances = np.empty(table.rows)
    for first in range(0, table.rows, _ROWS):
        rows = fitted.design.matrix(table.part(slice(first, first + _ROWS)))
        own = np.einsum("ij,ij->i", rows @ covariance, rows)
        untold = (np.abs(rows @ flat) > 1e-7 * (np.abs(rows) @ np.abs(flat))).any(axis=1)
        variances[first : first + _ROWS] = np.where(untold, np.inf, np.maximum(own, 0.0))
    return variances


@dataclass(frozen=True, eq=False)
class Scored:
    """Rows with their response under the fitted distribution; `weights` count rows, `trials` are those of a share."""

    fitted: GLMFitted
    table: DesignRows
    eta: Floats
    y: Floats
    weights: Floats
    trials: Floats | None
    base: Floats | None

    @cached_property
    def log_prob(self) -> Floats:
        """The log-likelihood of each row (n,); `base` is the part of it that the mean does not enter."""
        terms = self.fitted.family_object.log_prob_of_rows(self.fitted, self.eta, self.y, self.trials)
        return terms if self.base is None else terms + self.base


def new_rows(fitted: GLMFitted, given: Inputs, unknown: str) -> tuple[DesignRows, Floats | None]:
    """New rows as a table of the design, and their offset."""
    X, offset, exposure = given.data, given["offset"], given["exposure"]
    if fitted.specification is not None:
        table = DesignRows(matrix_of(fitted.specification, X, [str(name) for name in fitted.design.reals]))
    else:
        table = table_like(X, fitted.design, unknown, given["columns"])
    source = open_rows(X) if isinstance(offset, str) or isinstance(exposure, str) else None
    added = side_column(offset, source, table.rows, "offset")
    expression = None if fitted.formula is None else split_offset(fitted.formula)[1]
    if expression is not None:
        own = offset_values(expression, X)
        added = own if added is None else own + added
    exposed = side_column(exposure, source, table.rows, "exposure")
    return table, offset_of(added, exposed, fitted.link, predicted=True)


def scored(fitted: GLMFitted, given: Inputs, unknown: str) -> Scored:
    """Read rows and their response as the fit did."""
    table, offset = new_rows(fitted, given, unknown)
    family = fitted.family_object
    X, y, source = given.data, given["y"], None
    if isinstance(y, str | tuple) or any(isinstance(given[side], str) for side in ("sample_weight", "trials")):
        source = open_rows(X)
        if isinstance(y, tuple) and y not in source.columns:
            if not y:
                raise DataError("y names no column; expected the name of the response, or one for each.")
            source.check_columns(listed_names(y, "y"))
            y = np.column_stack([numbers(source.column(name)) for name in y])  # type: ignore[attr-defined]
        elif isinstance(y, str):
            source.check_columns([y])
            y = source.column(y)  # type: ignore[attr-defined]
    if y is None and fitted.formula is not None:
        y = formula_response(fitted.formula, X, family)
    if y is None:
        raise DataError(NO_RESPONSE)
    trials = side_column(given["trials"], source, table.rows, "trials")
    response = read_response(family, _states(fitted, y), y, trials)
    if len(response.y) != table.rows:
        raise DataError(f"The response has {len(response.y)} rows and X has {table.rows}; give one response a row.")
    weights = checked_weights(side_column(given["sample_weight"], source, table.rows, "sample_weight"))
    weights = np.ones(table.rows) if weights is None else weights
    eta = family.linear(fitted, table, offset)
    return Scored(fitted, table, eta, response.y, weights, response.trials, response.base)


def scored_parts(fitted: GLMFitted, X: Any, more: Mapping[str, Any], unknown: str) -> Iterator[Scored]:
    """Rows with their response and what else was given about them, piece by piece where they are not in memory."""
    yield from answers_by_part(X, fitted, more, lambda part: scored(fitted, part, unknown))


def figures_of_rows(
    fitted: GLMFitted, X: Any, more: Mapping[str, Any], unknown: str, figure: Figure, column: str
) -> Floats:
    """A figure of every row (n,), wherever the rows are; of a frame of Dask or Spark such a frame with a column."""
    source = stream_of(X)
    more = with_response(fitted, source, more)
    if source is None or source.residence != "elsewhere":
        return np.concatenate([figure(fitted, part) for part in scored_parts(fitted, X, more, unknown)])
    domain, raw = _settled_columns(source, fitted, more, unknown)
    task = FigureTask(fitted, more, unknown, figure, free_names([column], source.columns))
    answers: Floats = source.map(task, domain, raw=raw)
    return answers


def check_drawn(X: Any) -> None:
    """Refuse to draw for rows that are elsewhere, where each partition would have draws of its own."""
    source = stream_of(X)
    if source is not None and source.residence == "elsewhere":
        raise OptionError(
            f"sample draws one response after the other, in this process; the rows of {source.unordered} stay "
            "elsewhere. Give rows in memory or in files."
        )


def with_response(fitted: GLMFitted, source: Source | None, more: Mapping[str, Any]) -> Mapping[str, Any]:
    """What was given about rows that are not in memory, with the response that a formula names."""
    by_formula = source is not None and fitted.formula is not None and "y" in more and more["y"] is None
    return {**more, "y": fitted.response} if by_formula else more


def log_prob_of(fitted: GLMFitted, rows: Scored) -> Floats:
    """The log-likelihood of each row (n,)."""
    return rows.log_prob


def travelling(fitted: GLMFitted) -> GLMFitted:
    """A fitted value with what single rows need of it; its information may have to be made from rows."""
    return replace(fitted, information=Information(np.zeros((0, 0))), sandwich=None, iterates=())


@dataclass(frozen=True, eq=False)
class ScoreTask:
    """The sum of the log-likelihoods of the rows of a batch, and their weight."""

    fitted: GLMFitted
    more: Mapping[str, Any]
    unknown: str

    def __call__(self, batch: Batch) -> Floats:
        """Both sums (2,)."""
        if not batch.rows:
            return np.zeros(2)
        rows = answer_of(batch, self.more, lambda part: scored(self.fitted, part, self.unknown))
        return np.array([rows.weights @ rows.log_prob, rows.weights.sum()])


@dataclass(frozen=True, eq=False)
class FigureTask(RowTask):
    """A figure of the rows of a batch with their response."""

    fitted: GLMFitted
    more: Mapping[str, Any]
    unknown: str
    figure: Figure
    names: tuple[str, ...]

    def __call__(self, batch: Batch) -> dict[Hashable, Any]:
        """One column."""
        rows = answer_of(batch, self.more, lambda part: scored(self.fitted, part, self.unknown))
        return {self.names[0]: self.figure(self.fitted, rows)}

    def example(self) -> dict[Hashable, Any]:
        """A number."""
        return {self.names[0]: np.zeros(1)}


@dataclass(frozen=True, eq=False)
class PredictTask:
    """Predictions for the rows of a batch, as columns of these names; see `GLM.predict`."""

    fitted: GLMFitted
    more: Mapping[str, Any]
    unknown: str
    kind: str
    interval: float | None
    df: float | None
    names: tuple[str, ...]

    def __call__(self, batch: Batch) -> dict[Hashable, Any]:
        """A column for each name."""
        with np.errstate(all="ignore"):  # The row of zeros that tells the types may have a logarithm.
            rows = answer_of(batch, self.more, lambda part: new_rows(self.fitted, part, self.unknown))
        answer = predict(self.fitted, *rows, self.kind, self.interval, self.df)
        values = np.asarray(answer).reshape(batch.rows, -1)
        if values.shape[1] == 1 and len(self.names) == 2:  # Of two labels the second has the probability.
            values = np.column_stack((1.0 - values[:, 0], values[:, 0]))
        return {name: values[:, number] for number, name in enumerate(self.names)}


def predicted(
    fitted: GLMFitted,
    given: Inputs,
    unknown: str,
    kind: str = "response",
    interval: float | None = None,
    df: float | None = None,
    *,
    labels: bool = False,
) -> Any:
    """Predictions for rows wherever they are: an array or, of a frame of Dask, Spark or Ray, one of the same library.

    labels: a column for each label of the response, whatever their number.
    """
    source = stream_of(given.data)
    if source is not None and source.residence == "elsewhere":
        return _distributed(source, fitted, given.more, unknown, kind, interval, df, labels=labels)

    def ask(part: Inputs) -> Any:
        return predict(fitted, *new_rows(fitted, part, unknown), kind, interval, df)

    answers = list(answers_by_part(given.data, fitted, given.more, ask))
    values = np.asarray(answers[0] if len(answers) == 1 else np.concatenate(answers))
    return np.column_stack((1.0 - values, values)) if labels and values.ndim == 1 else values


def _distributed(
    source: Source,
    fitted: GLMFitted,
    more: Mapping[str, Any],
    unknown: str,
    kind: str,
    interval: float | None,
    df: float | None,
    *,
    labels: bool,
) -> Any:
    """The same for rows that stay where they are."""
    if interval is not None:
        names: tuple[str, ...] = ("prediction", "lower", "upper")
    elif kind == "class" or not (labels or fitted.beta.shape[1] > 1 or len(fitted.thresholds)):
        names = ("prediction",)
    else:
        answers = fitted.classes if kind == "response" and fitted.classes else range(fitted.values.shape[1])
        names = tuple(map(str, answers))
    domain, raw = _settled_columns(source, fitted, more, unknown)
    names = free_names(names, source.columns)
    bare = fitted if interval is not None else travelling(fitted)
    return source.map(PredictTask(bare, more, unknown, kind, interval, df, names), domain, raw=raw)


def _settled_columns(
    source: Source, fitted: GLMFitted, more: Mapping[str, Any], unknown: str
) -> tuple[Domain, tuple[Hashable, ...]]:
    """The columns to read where rows stay, with the levels of the fit, and those that are read as they are."""
    loose = domain_of(source, fitted, sides_of(more))
    known: dict[Hashable, Variable] = {factor.variable.name: factor.variable for factor in fitted.design.factors}
    if fitted.specification is not None:
        levels = factor_levels(fitted.specification)
        known = {name: Variable.discrete(name, states) for name, states in levels.items()}
    # A level that the fit has not seen is pooled by the model, which then has to see it as it is.
    raw = tuple(known) if unknown == "pool" else ()
    y = more.get("y")
    if fitted.classes is not None and isinstance(y, Hashable) and y in loose and loose[y].kind == "discrete":
        known[y] = Variable.discrete(y, fitted.classes)
    return Domain([known.get(v.name, v) for v in loose.variables if v.name not in raw]), raw


def mean_score(fitted: GLMFitted, X: Any, more: Mapping[str, Any], unknown: str) -> float:
    """The mean log-likelihood of a row (weighted); rows that are not in memory are scored where they are."""
    source = stream_of(X)
    more = with_response(fitted, source, more)
    if source is None:
        rows = scored(fitted, Inputs(X, more), unknown)
        return float(rows.weights @ rows.log_prob) / float(rows.weights.sum())
    task = ScoreTask(travelling(fitted), more, unknown)
    total, weight = source.reduce(task, domain_of(source, fitted, sides_of(more))).tolist()
    return float(total / weight)


def _states(fitted: GLMFitted, y: Any) -> tuple[Any, ...] | None:
    """The labels fitted; numbers 0 and 1, or -1 and 1, of a binomial response are read as such."""
    try:
        pairs = np.ndim(y) == 2
    except ValueError:  # Lists of different lengths.
        raise DataError(f"y is {shortened(y)}; expected one value a row.") from None
    plain = fitted.classes in ((0, 1), (-1, 1), (False, True)) or pairs
    return None if plain and fitted.family_object.response == "shares" else fitted.classes


def residuals(fitted: GLMFitted, rows: Scored, kind: str) -> Floats:
    """Residuals of one of the kinds that need no distribution (n,)."""
    if not isinstance(fitted.family_object, Family):
        raise OptionError(f"Residuals of the {fitted.family} family are not offered.")
    distribution = fitted.row_distribution()
    eta = rows.eta[:, 0]
    prior = rows.trials if rows.trials is not None else np.ones_like(eta)
    with np.errstate(all="ignore"):
        mean, variance = distribution.family.moments(distribution.link, eta)
        away = rows.y - mean
        if kind == "response":
            return away
        if kind == "pearson":
            return np.where(away == 0.0, 0.0, away * np.sqrt(prior / variance))
        if kind == "working":
            return np.where(away == 0.0, 0.0, away / distribution.link.slope(eta))
        if kind == "deviance":
            return np.sign(away) * np.sqrt(np.maximum(prior * distribution.family.deviance(rows.y, mean), 0.0))
    raise OptionError(f"kind is {kind!r}; expected 'response', 'pearson', 'deviance' or 'working'.")


def no_rows(given: Mapping[str, Any]) -> None:
    """Refuse rows where intervals need none."""
    named = [f"{name}=" for name, value in given.items() if value is not None]
    if named:
        raise OptionError(
            f"{listing(named)} of intervals belong to method='profile', which goes through the rows again; those of "
            "Wald need none. Leave them out, or give method='profile'."
        )


def leverage(fitted: GLMFitted, rows: Scored) -> Floats:
    """See `GLM.leverage`."""
    if not isinstance(fitted.family_object, Family):
        raise OptionError(f"The leverage of the {fitted.family} family is not offered.")
    weights = fitted.row_distribution()(rows.eta[:, 0], rows.y)[2] * rows.weights / fitted.dispersion
    if rows.trials is not None:
        weights = weights * rows.trials
    expected = fitted if fitted.sandwich is None else replace(fitted, sandwich=None)
    spread = eta_variances(expected, rows.table)
    return np.where(weights > 0.0, weights, 0.0) * np.where((weights > 0.0) & np.isfinite(spread), spread, 0.0)
