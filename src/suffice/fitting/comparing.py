"""Models of the same rows beside one another."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from suffice.array_types import Floats
from suffice.checks import generator, whole_number
from suffice.errors import OptionError, holding_remarks, require, shortened
from suffice.fitting.estimator import Estimator
from suffice.fitting.named import aligned, number_text
from suffice.fitting.row_marks import check_same_columns, check_same_rows
from suffice.fitting.samples import count_rows, fit_arguments, refuse_tables, rows_of_fit

_COLUMNS = ("log-likelihood", "parameters", "AIC", "BIC", "log evidence", "held out")


@dataclass(frozen=True, eq=False)
class ModelComparison:
    """Figures of models by name: log-likelihood, parameters, AIC, BIC, log evidence and held-out score, (n, 6).

    NaN where a model has none, as quasi-likelihoods have neither log-likelihood nor score. The held-out score is the
    mean log-likelihood of a row, natural logarithm, that no fit has seen.
    """

    names: tuple[str, ...]
    values: Floats

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns in which some model has a number."""
        return tuple(title for title, column in zip(_COLUMNS, self.values.T, strict=True) if not _empty(column))

    def __getitem__(self, column: str) -> dict[str, float]:
        """One column, by model."""
        if column not in _COLUMNS:
            raise OptionError(f"There is no column {column!r}; there are {', '.join(_COLUMNS)}.")
        return dict(zip(self.names, self.values[:, _COLUMNS.index(column)].tolist(), strict=True))

    def best(self, by: str = "BIC") -> str:
        """The model with the smallest AIC or BIC, or the largest of any other column but parameters."""
        if by == "parameters":
            raise OptionError("The number of parameters says not which model is best; give AIC, BIC or held out.")
        column = {name: value for name, value in self[by].items() if not math.isnan(value)}
        if not column:
            raise OptionError(f"No model has {by!r}.")
        return (min if by in ("AIC", "BIC") else max)(column, key=lambda name: column[name])

    def to_frame(self) -> Any:
        """A pandas DataFrame with a row for each model."""
        pd = require("pandas", extra="all", purpose="to_frame")
        return pd.DataFrame(self.values, index=list(self.names), columns=list(_COLUMNS))[list(self.columns)]

    def _cells(self) -> list[list[str]]:
        chosen = [_COLUMNS.index(title) for title in self.columns]
        rows = zip(self.names, self.values[:, chosen].tolist(), strict=True)
        return [[name, *("" if math.isnan(value) else number_text(value) for value in row)] for name, row in rows]

    def __str__(self) -> str:
        """A row for each model."""
        return "\n".join(line.rstrip() for line in aligned([["", *self.columns], *self._cells()]))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        titles = "".join(f"<th>{html.escape(title)}</th>" for title in ("", *self.columns))
        rows = (
            f"<tr><th>{html.escape(name)}</th>{''.join(f'<td>{c}</td>' for c in row)}</tr>"
            for name, *row in self._cells()
        )
        return f"<table><tr>{titles}</tr>{''.join(rows)}</table>"


def _empty(column: Floats) -> bool:
    return bool(np.isnan(column).all())


def compare(
    *models: Estimator,
    names: Sequence[str] | None = None,
    data: object = None,
    y: object = None,
    folds: int | None = None,
    random_state: Any = 0,
    **given: Any,
) -> ModelComparison:
    """Set fitted models of the same rows beside one another.

    Args:
        models: fitted models, which must have learned from rows of the same weight.
        names: what to call them; their class and number unless given.
        data: the rows of the fits, for a held-out score by cross-validation; of a frame each model takes the columns
            that its fit has seen.
        y: their response or labels.
        folds: parts of the rows, each of which is scored by a fit to the others; 5 with `data`.
        random_state: how the rows are dealt out to the parts.
        given: what else `fit` and `score` take beside the rows, by name.

    Returns:
        Log-likelihood, parameters, AIC, BIC, log evidence where there is one, and the held-out score.
    """
    if len(models) < 2:
        raise OptionError(f"compare takes two models or more; found {len(models)}.")
    for model in models:
        if not isinstance(model, Estimator):
            raise OptionError(f"compare takes fitted models; found {shortened(model)}.")
    titles = [f"{type(model).__name__} {number}" for number, model in enumerate(models, 1)] if names is None else names
    if len(titles) != len(models) or len(set(titles)) < len(titles):
        raise OptionError(
            f"names has {len(titles)} names for {len(models)} models; expected a name of its own for each."
        )
    named = dict(zip(map(str, titles), models, strict=True))
    check_same_columns(named)
    check_same_rows(named)
    if data is None and (folds is not None or y is not None or given):
        raise OptionError("folds=, y= and what rows come with have no effect without data=. Give the rows of the fits.")
    held = np.full(len(models), np.nan)
    if data is not None:
        rows = fit_arguments(data, y, given)
        parted = models[0].portrait().parted
        rows = rows if parted is None else dict(parted(rows))
        parts = dealt(rows, 5 if folds is None else whole_number(folds, "folds", 2), random_state)
        scored = [model.report_.has_likelihood for model in models]
        held = np.array([held_out(m, rows, parts) if has else np.nan for m, has in zip(models, scored, strict=True)])
    figures = [
        [*_of_likelihood(model), _number(model.report_.log_evidence), score]
        for model, score in zip(models, held.tolist(), strict=True)
    ]
    return ModelComparison(tuple(map(str, titles)), np.array(figures, dtype=np.float64))


def _of_likelihood(model: Estimator) -> list[float]:
    """Log-likelihood, parameters, AIC and BIC; of a quasi-likelihood the parameters alone."""
    report = model.report_
    if not report.has_likelihood:
        return [math.nan, model.n_params_, math.nan, math.nan]
    return [report.log_likelihood, model.n_params_, model.aic_, _number(model.bic_)]


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)


def dealt(rows: dict[str, Any], folds: int, random_state: Any) -> Floats:
    """The part (n,) of each row, sequence or example: parts of nearly one size, dealt out by chance."""
    refuse_tables(rows, "Cross-validation holds out whole sequences")
    n = count_rows(rows["data"])
    if n < folds:
        raise OptionError(f"folds is {folds}, and there are {n} rows (sequences, examples). Give fewer folds.")
    return np.asarray(generator(random_state).permutation(n) % folds, dtype=np.float64)


def held_out(model: Estimator, rows: dict[str, Any], parts: Floats) -> float:
    """Mean score of rows that are held out: weights of 0 leave them out of a fit, and score them alone."""
    given = dict(rows_of_fit(model, rows))
    first, weights = given.pop("data"), np.asarray(given.pop("sample_weight", np.ones(len(parts))), dtype=np.float64)
    labels = (given.pop("y"),) if "y" in given else ()
    make: Callable[[], Any] = model.portrait().again or model.clone
    scored: Any = model
    with holding_remarks():  # Columns that the model needs and these rows lack are an error of the fit that there is.
        scored.score(first, *labels, **given)
    total = 0.0
    for part in range(int(parts.max()) + 1):
        inside = np.where(parts == part, 0.0, weights)
        with holding_remarks():
            fitted = make().fit(first, *labels, sample_weight=inside, **given)
            score = fitted.score(first, *labels, sample_weight=weights - inside, **given)
        total += score * float((weights - inside).sum())
    return total / float(weights.sum())
