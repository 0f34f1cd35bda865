"""Covariances of coefficients from the scores of single rows: HC0 to HC3, of clusters, and of rows in time.

With the covariance V of the model and the score u_i of each row in all parameters they are ``V M V``, where M is the
sum of ``u_i u_i'`` (White 1980), of the same sums over clusters, or of products of rows some steps apart. The
information in V is the expected one, of ordered labels the observed.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.array_types import Floats
from suffice.domain import Domain, Variable
from suffice.errors import DataError, EstimateError, OptionError
from suffice.fitting.contract import Inputs
from suffice.fitting.fit import Fit
from suffice.models.glm.error_kinds import WHITE, Clustered, Errors, NeweyWest, checked_kind, columns_of
from suffice.models.glm.fit_options import FitOptions
from suffice.models.glm.fitted import GLMFitted
from suffice.models.glm.input import open_rows
from suffice.models.glm.missing import complete_rows
from suffice.models.glm.pieces import domain_of, sides_of, stream_of, table_of
from suffice.models.glm.response import factor_codes
from suffice.models.glm.row_answers import MeanAnswers
from suffice.models.glm.rowwise import Scored, scored, with_response
from suffice.sources.base import Batch, Source
from suffice.sources.opening import any_column
from suffice.statistics import Summary

if TYPE_CHECKING:
    from suffice.models.glm.declaration import GLM

#: Rows whose design is made at a time.
_ROWS = 4_096
#: Mean score of rows, in its standard deviation, from which they are others than those of a fit.
_AWAY = 1e-2
#: Kinds that a fit makes itself.
_BY_FIT = ("expected", "observed", *WHITE)


def with_covariance(model: GLM, covariance: Errors, X: object = None, y: object = None, **rows: Any) -> GLM:
    """The same fit with errors of another kind: its summary, intervals and tests then use them.

    Args:
        model: a fitted GLM.
        covariance: "HC0" (or "robust"), "HC1", "HC2", "HC3", `Clustered(groups)`, `NeweyWest(lags)`, or "expected" for
            the errors of the model.
        X: the rows of the fit, with the columns that clusters or time name; wherever they are.
        y: their response (a formula may name it).
        rows: sample_weight, offset, exposure, trials, columns, as for `fit`.
    """
    kind = checked_kind(covariance)
    if kind == "observed":
        raise OptionError("covariance='observed' is made with the fit: give it to the constructor.")
    given = {"y": y, **{name: value for name, value in rows.items() if value is not None}}
    fitted = replace(model.fitted_, sandwich=None, errors="", groups_df=None)
    if kind == "expected":
        if X is not None or y is not None or rows:
            raise OptionError("covariance='expected' follows from the fit; leave the rows out.")
    else:
        if X is None:
            raise OptionError(f"covariance={_named(kind)} needs the rows of the fit: with_covariance(..., X, y).")
        if fitted.direction is not None:
            raise EstimateError("Coefficients run to infinity, so that no score tells their errors; give a prior.")
        complete, _ = complete_rows(Inputs(X, given), model._fit_options())
        fitted = covered(fitted, kind, complete, model._options["unknown"], prior=model._options["prior"] is not None)
    other = copy.copy(model)
    other._fit = copy.copy(model._fit)
    assert other._fit is not None
    other._fit.fitted = fitted
    return other


def with_errors(fit: Fit[GLMFitted], options: FitOptions, given: Inputs) -> Fit[GLMFitted]:
    """A fit with the errors that its options ask for, where these are made from single rows."""
    covariance = options.given["covariance"]
    vectors = fit.fitted.family == "multivariate_gaussian" and covariance in WHITE
    made = isinstance(covariance, str) and covariance in _BY_FIT and not vectors
    if made or fit.fitted.direction is not None or not fit.fitted.information.size:
        return fit  # Where a coefficient runs to infinity, or to an edge, no score tells its error.
    if isinstance(given.data, Summary):
        raise OptionError(f"covariance={_named(covariance)} needs the rows, which a Summary does not hold.")
    fit.fitted = covered(fit.fitted, covariance, given, "raise", prior=options.given["prior"] is not None)
    return fit


def covered(fitted: GLMFitted, kind: Errors, given: Inputs, unknown: str, *, prior: bool) -> GLMFitted:
    """A fitted value with the sandwich of a kind, from the rows of its fit."""
    task = RegressionScoreTask(
        fitted, kind, {name: value for name, value in given.more.items() if name != "covariance"}, unknown
    )
    sums = task.sums(given.data)
    if abs(sums.weight - fitted.weight) > 1e-9 * fitted.weight:
        raise EstimateError(
            f"The rows are not those of the fit: they have the weight {sums.weight:,.6g}, those of the fit "
            f"{fitted.weight:,.6g}. Give the same rows, response, weights and offset."
        )
    away = np.abs(sums.total) / np.sqrt(np.maximum(np.diagonal(sums.squares), 1e-300))
    if not prior and away.max(initial=0.0) > _AWAY * math.sqrt(sums.weight):
        raise EstimateError(
            "The rows are not those of the fit, or it has not converged: their scores do not add up to 0 at its "
            "coefficients. Give the same rows, response, weights and offset."
        )
    bread = task.bread
    middle, words, df = _middle(kind, sums, fitted)
    return replace(fitted, sandwich=bread @ middle @ bread, errors=words, groups_df=df)


def _named(kind: Errors) -> str:
    return repr(kind) if isinstance(kind, str) else type(kind).__name__


def _middle(kind: Errors, sums: RegressionScores, fitted: GLMFitted) -> tuple[Floats, str, float | None]:
    """The middle of the sandwich, what it is in words, and degrees of freedom of its own."""
    n, k = sums.weight, float(fitted.beta.shape[0] + len(fitted.thresholds) - len(fitted.dropped))
    if isinstance(kind, Clustered):
        return _of_clusters(kind, sums, n, k)
    if isinstance(kind, NeweyWest):
        scores = sums.in_order(kind)
        lags = math.floor(4.0 * (len(scores) / 100.0) ** (2.0 / 9.0)) if kind.lags is None else kind.lags
        if lags >= len(scores):
            raise OptionError(f"lags is {lags}, and there are {len(scores)} rows; give fewer lags.")
        middle = scores.T @ scores
        for lag in range(1, lags + 1):
            share = 1.0 - lag / (lags + 1.0) if kind.kernel == "bartlett" else 1.0
            apart = scores[lag:].T @ scores[:-lag]
            middle += share * (apart + apart.T)
        factor = n / (n - k) if kind.correction else 1.0
        return factor * middle, f"Newey-West, {lags} lags, {kind.kernel} kernel", None
    return (n / (n - k) if kind == "HC1" else 1.0) * sums.squares, f"{kind} (sandwich)", None


def _of_clusters(kind: Clustered, sums: RegressionScores, n: float, k: float) -> tuple[Floats, str, float]:
    """One way, or the sum of both ways less that of their pairs."""
    middle, sizes = np.zeros_like(sums.squares), []
    for number, groups in enumerate(sums.groups):
        count = len(groups)
        if count < 2:
            raise EstimateError(f"There is {count} cluster; errors of clusters need two at least, and many to be good.")
        factor = 1.0 if kind.correction == "none" else count / (count - 1.0)
        factor *= (n - 1.0) / (n - k) if kind.correction == "full" else 1.0
        scores = np.array(list(groups.values()))
        middle += (factor if number < 2 else -factor) * (scores.T @ scores)
        sizes.append(count)
    own = sizes[: len(kind.keys)]
    names = [str(key) if isinstance(key, str) else "given groups" for key in kind.keys]
    words = " and ".join(f"{name} ({count} clusters)" for name, count in zip(names, own, strict=True))
    if len(own) == 2:  # The difference need not be positive; its negative part is noise.
        values, vectors = np.linalg.eigh(middle)
        middle = (vectors * np.maximum(values, 0.0)) @ vectors.T
    return middle, f"clustered by {words}", float(min(own) - 1)


# -- sums of scores ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class RegressionScores:
    """What rows add up to: their weight, scores and squares of scores, the scores of each cluster, or of each row.

    `groups` has a dict from cluster to score for each way, the pairs of both ways last; `rows` and `keys` are scores
    (n, K) and what rows are sorted by.
    """

    weight: float
    total: Floats
    squares: Floats
    groups: tuple[dict[Hashable, Floats], ...] = ()
    rows: tuple[Floats, ...] = ()
    keys: tuple[Floats, ...] = ()

    def __add__(self, other: RegressionScores) -> RegressionScores:
        """Both sets of rows, in this order."""
        groups = []
        for one, another in zip(self.groups, other.groups, strict=True):
            both = dict(one)
            for group, score in another.items():
                both[group] = both[group] + score if group in both else score
            groups.append(both)
        return RegressionScores(
            self.weight + other.weight,
            self.total + other.total,
            self.squares + other.squares,
            tuple(groups),
            self.rows + other.rows,
            self.keys + other.keys,
        )

    def in_order(self, kind: NeweyWest) -> Floats:
        """The scores of all rows in time (n, K)."""
        scores = np.concatenate(self.rows)
        return scores if kind.order is None else scores[np.argsort(np.concatenate(self.keys), kind="stable")]


@dataclass(frozen=True, eq=False)
class RegressionScoreTask:
    """The question to rows, wherever they are."""

    fitted: GLMFitted
    kind: Errors
    more: Mapping[str, Any]
    unknown: str

    @property
    def bread(self) -> Floats:
        """The covariance (K, K) by the model."""
        return self.fitted.covariance()

    def sums(self, X: Any) -> RegressionScores:
        """Those of all rows."""
        source = stream_of(X)
        asked = replace(self, more=with_response(self.fitted, source, self.more))
        if source is None:
            return asked._of(X, asked._given_groups(X))
        if any(not isinstance(key, str) for key in self._keys):
            raise OptionError(
                "groups= is an array, and the rows are not in memory: give the name of the column that holds clusters."
            )
        if isinstance(self.kind, NeweyWest) and source.residence == "elsewhere":
            raise OptionError(
                f"NeweyWest needs rows one after the other, and those of {source.unordered} stay elsewhere. Give rows "
                "in memory or in files, or cluster them by a column."
            )
        domain = asked._domain(source)
        if not isinstance(self.kind, NeweyWest):
            answer: RegressionScores = source.reduce(asked, domain)
            return answer
        parts = [asked(batch) for batch in source.batches(domain)]
        return sum(parts[1:], start=parts[0])

    @property
    def _keys(self) -> tuple[Any, ...]:
        return self.kind.keys if isinstance(self.kind, Clustered) else columns_of(self.kind)

    def _domain(self, source: Source) -> Domain:
        """The columns to read: those of the fit, and those of clusters or of time."""
        variables = {v.name: v for v in domain_of(source, self.fitted, sides_of(self.more)).variables}
        source.check_columns(self._keys)
        for name in self._keys:
            variables.setdefault(name, Variable(name, "discrete" if isinstance(self.kind, Clustered) else "real"))
        return Domain(list(variables.values()))

    def __call__(self, batch: Batch) -> RegressionScores:
        """Those of a batch."""
        ways = 3 if len(self._keys) == 2 else len(self._keys) if isinstance(self.kind, Clustered) else 0
        if not batch.rows:
            size = self.fitted.values.size
            return RegressionScores(0.0, np.zeros(size), np.zeros((size, size)), tuple({} for _ in range(ways)))
        table = table_of(batch)
        return self._of(table, [list(table[name]) for name in self._keys])

    def _given_groups(self, X: Any) -> list[Sequence[Hashable]]:
        """The cluster, or the time, of each row in memory."""
        given: list[Sequence[Hashable]] = []
        for key in self._keys:
            if isinstance(key, str):
                source: Any = open_rows(X)
                source.check_columns([key])
                column: Any = source.column(key)
            else:
                column = any_column("groups", key)
            if isinstance(self.kind, NeweyWest):
                given.append(column.floats(slice(0, len(column))).tolist())
            else:
                variable, codes = factor_codes(column, Variable(column.name, "discrete"))
                given.append([variable.states[code] for code in codes.tolist()])
        return given

    def _of(self, X: Any, keys: list[Sequence[Hashable]]) -> RegressionScores:
        rows = scored(self.fitted, Inputs(X, self.more), self.unknown)
        wrong = next((len(one) for one in keys if len(one) != rows.table.rows), None)
        if wrong is not None:
            raise DataError(f"groups has {wrong} values for {rows.table.rows} rows; give one a row.")
        if isinstance(self.kind, NeweyWest) and (rows.weights != 1.0).any():
            raise OptionError(
                "NeweyWest takes rows one after the other, which weights do not; leave sample_weight out."
            )
        parts = []
        for first in range(0, rows.table.rows, _ROWS):
            own = slice(first, first + _ROWS)
            parts.append(self._part(rows, own, [list(one[own]) for one in keys]))
        return sum(parts[1:], start=parts[0])

    def _part(self, rows: Scored, own: slice, keys: list[list[Hashable]]) -> RegressionScores:
        fitted, weights = self.fitted, rows.weights[own]
        live = weights > 0.0
        X = fitted.design.matrix(rows.table.part(own))
        scores = np.where(live[:, None], score_rows(rows, own, X), 0.0)
        summed = scores * weights[:, None]
        spread = scores * np.sqrt(weights)[:, None]
        if self.kind in ("HC2", "HC3"):
            left = 1.0 - np.where(live, self._leverage(rows, own, X), 0.0)
            if not (left > 1e-10).all():
                row = own.start + int(np.argmin(left))
                raise EstimateError(
                    f"Row {row} decides its own fit (its leverage is 1), so that {self.kind} divides by 0. Use HC1, or "
                    "leave out the column that speaks of this row alone."
                )
            spread /= (np.sqrt(left) if self.kind == "HC2" else left)[:, None]
        sums = RegressionScores(float(weights.sum()), summed.sum(axis=0), spread.T @ spread)
        if isinstance(self.kind, NeweyWest):
            times = tuple(np.asarray(one, dtype=np.float64)[live] for one in keys)
            return replace(sums, rows=(scores[live],), keys=times)
        pairs: list[list[Hashable]] = [list(zip(*keys, strict=True))] if len(keys) == 2 else []
        return replace(sums, groups=tuple(_by_group(one, summed, live) for one in (*keys, *pairs)))

    def _leverage(self, rows: Scored, own: slice, X: Floats) -> Floats:
        """What a row adds to its own fit, its share of the trace of the hat matrix, for one row of its weight."""
        fitted = self.fitted
        if fitted.family == "multivariate_gaussian":
            one = fitted._filled(fitted.information.inverse())
            return np.asarray(np.einsum("ij,jk,ik->i", X, one, X))
        if fitted.beta.shape[1] > 1 or len(fitted.thresholds) or fitted.reference is not None:
            raise OptionError(
                f"{self.kind} needs the leverage of rows, which the {fitted.family} family has not. Use 'HC1', or "
                "Clustered."
            )
        information = fitted.row_distribution()(rows.eta[own, 0], rows.y[own])[2] / fitted.dispersion
        information = information if rows.trials is None else information * rows.trials[own]
        return np.asarray(information * np.einsum("ij,jk,ik->i", X, self.bread, X))


def _by_group(keys: Sequence[Hashable], scores: Floats, live: Any) -> dict[Hashable, Floats]:
    """Sums of scores (n, K) by cluster."""
    numbers: dict[Hashable, int] = {}
    codes = np.array([numbers.setdefault(key, len(numbers)) for key, used in zip(keys, live, strict=True) if used])
    if not len(codes):
        return {}
    if None in numbers:
        raise DataError("The column of clusters has a missing value; every row belongs to a cluster.")
    sums = np.zeros((len(numbers), scores.shape[1]))
    np.add.at(sums, codes, scores[live])
    return dict(zip(numbers, sums, strict=True))


def score_rows(rows: Scored, own: slice, X: Floats) -> Floats:
    """The derivatives of the log-likelihood of rows in all parameters (n, K), predictors first, at the dispersion."""
    fitted, eta, y = rows.fitted, rows.eta[own], rows.y[own]
    if fitted.family == "multivariate_gaussian":
        assert fitted.residual_covariance is not None
        slopes = np.linalg.solve(fitted.residual_covariance, (y - eta).T).T
    elif fitted.reference is not None:
        answers = MeanAnswers(fitted)
        labels = np.delete(np.arange(eta.shape[1]), fitted.reference)
        slopes = (y[:, None] == labels) - answers.values(eta[:, :-1])[:, labels]
    elif len(fitted.thresholds):
        answers, codes, numbers = MeanAnswers(fitted), y.astype(np.intp), np.arange(len(y))
        slopes = answers.slopes(eta)[numbers, codes] / answers.values(eta)[numbers, codes][:, None]
    else:
        slopes = rows.fitted.row_distribution()(eta[:, 0], y)[1][:, None] / fitted.dispersion
        slopes = slopes if rows.trials is None else slopes * rows.trials[own, None]
    if len(fitted.thresholds):
        return np.concatenate((slopes, -slopes.sum(axis=1, keepdims=True) * X), axis=1)
    return np.asarray((slopes[:, :, None] * X[:, None, :]).reshape(len(X), -1))
