"""Average marginal effects: how the mean follows a column, in the unit of the mean, with errors by the delta method.

Of a row with predictors eta (q of them, linear in the parameters) the answers are p(eta): a mean, or probabilities of
labels. A column of numbers x changes them by ``(dp / deta) (deta / dx)``, a level of a factor by ``p(eta with it) -
p(eta with the reference)``. Averages over rows are functions of the parameters, whose derivatives G give their
covariance G V G'. The second derivatives of p are differences of first ones.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.array_types import Floats
from suffice.checks import is_number, listed_names
from suffice.errors import EstimateError, MissingColumnError, OptionError, listing, meant, shortened
from suffice.fitting.inference import Inference
from suffice.fitting.parameter_table import EstimateTable
from suffice.models.glm.changed_rows import ChangedRows, MeanRow, TableRows, changed_rows
from suffice.models.glm.design import Factor
from suffice.models.glm.fitted import GLMFitted
from suffice.models.glm.formula import as_frame, factor_levels, used_columns
from suffice.models.glm.input import checked_weights, open_rows, side_column
from suffice.models.glm.pieces import domain_of, sides_of, stream_of, table_of
from suffice.models.glm.results import inference_of
from suffice.models.glm.row_answers import MeanAnswers
from suffice.models.glm.rowwise import travelling
from suffice.sources.base import Batch

if TYPE_CHECKING:
    from suffice.models.glm.declaration import GLM


def marginal_effects(
    model: GLM,
    X: Any,
    *,
    columns: Any = None,
    at: str | Mapping[Hashable, Any] = "overall",
    discrete: Any = (),
    level: float = 0.95,
    sample_weight: Any = None,
    offset: Any = None,
    exposure: Any = None,
) -> EstimateTable:
    """Average marginal effects of columns on the mean, or on the probability of each label, with errors.

    Args:
        model: a fitted GLM.
        X: rows over which is averaged, most often those of the fit, wherever they are.
        columns: those asked for; all of the fit unless said.
        at: "overall", the average over rows; "mean", at the mean of every column; or values by column, at which they
            are held in every row.
        discrete: columns of numbers whose effect is that of 1 against 0; factors have that of each level against the
            reference.
        level: probability of each interval.
        sample_weight: how many rows each row stands for.
        offset: as in `fit`.
        exposure: as in `fit`.
    """
    fitted, inference = model.fitted_, inference_of(model)
    if fitted.direction is not None:
        raise EstimateError("Coefficients run to infinity, so that effects have no errors; give a prior to the fit.")
    held = _checked_at(at)
    changes = _changes(fitted, X, columns, listed_names(discrete, "discrete"), held)
    more = {"sample_weight": sample_weight, "offset": offset, "exposure": exposure}
    task = EffectTask(travelling(fitted), model._options["unknown"], more, tuple(changes), held, at == "mean")
    sums = task.sums(X)
    labels = _labels(fitted)
    names = [change.name + (f" ({label})" if label else "") for change in changes for label in labels]
    values, slopes = sums.averages()
    made = Inference.of_covariance(
        tuple(names), values, lambda: slopes @ inference.covariance @ slopes.T, df=inference.df, heading="effect"
    )
    where = "the average over rows" if at == "overall" else "the mean of every column" if at == "mean" else _shown(held)
    return EstimateTable.of_estimates(made, (("marginal effects", f"on the mean, at {where}"),), level)


def _shown(held: Mapping[Hashable, Any]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in held.items())


def _checked_at(where: object) -> dict[Hashable, Any]:
    """The values at which columns are held; none for the words."""
    if isinstance(where, Mapping):
        return dict(where)
    if not isinstance(where, str) or where not in ("overall", "mean"):
        raise OptionError(f"at is {shortened(where)}; expected 'overall', 'mean' or values by column, {{'age': 50}}.")
    return {}


def _labels(fitted: GLMFitted) -> list[str]:
    """What each answer of a row is of; a single one is the mean."""
    if fitted.family in ("multinomial", "ordinal"):
        assert fitted.classes is not None
        return list(map(str, fitted.classes))
    return fitted.column_labels() if fitted.beta.shape[1] > 1 else [""]


# -- what is changed ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Change:
    """A column, and the values between which it is changed; None for a column of numbers that moves by little."""

    name: str
    column: Hashable
    high: Any = None
    low: Any = None
    between: bool = False


def _changes(
    fitted: GLMFitted, X: Any, columns: Any, discrete: Sequence[Hashable], held: Mapping[Hashable, Any]
) -> list[Change]:
    """All that are asked for."""
    levels = _columns_of(fitted, X)
    asked = list(levels) if columns is None else list(listed_names(columns, "columns"))
    for words, names in (("columns=", asked), ("discrete=", discrete), ("at=", held)):
        strange = [name for name in names if name not in levels]
        if strange:
            raise MissingColumnError(
                f"{words} names {strange[0]!r}, which is no column of the fit.{meant(strange[0], levels)} There are "
                f"{listing(levels)}."
            )
    for name in discrete:
        if levels[name] is not None:
            raise OptionError(f"{name!r} is a factor, whose levels are compared anyway; leave it out of discrete=.")
    for name, value in held.items():
        states = levels[name]
        good = is_number(value) if states is None else value in states
        if not good:
            expected = "a number" if states is None else f"one of the levels {listing(states)}"
            raise OptionError(f"at= holds {name!r} at {shortened(value)}; expected {expected}.")
    changes = []
    for name in asked:
        states = levels[name]
        if states is not None:
            base = _reference(fitted, name, states)
            changes += [Change(f"{name}[{s}]", name, s, base, True) for s in states if s != base]
        elif name in discrete:
            changes.append(Change(str(name), name, 1.0, 0.0, True))
        else:
            changes.append(Change(str(name), name))
    if not changes:
        raise OptionError("There is no column whose effect could be asked for: the fit has an intercept alone.")
    return changes


def _columns_of(fitted: GLMFitted, X: Any) -> dict[Hashable, tuple[Hashable, ...] | None]:
    """The columns of the data that the fit uses, with the levels of factors."""
    if fitted.specification is None:
        if fitted.design.sparse:
            raise OptionError("Effects of the columns of a sparse matrix are not offered; give a dense one.")
        return {
            (c.variable.name if isinstance(c, Factor) else c): (c.variable.states if isinstance(c, Factor) else None)
            for c in fitted.design.columns
        }
    source = stream_of(X)
    known = source.columns if source is not None else list(as_frame(X).columns)
    levels = factor_levels(fitted.specification)
    return {name: levels.get(str(name)) for name in used_columns(fitted.specification, known)}


def _reference(fitted: GLMFitted, name: Hashable, states: tuple[Hashable, ...]) -> Hashable:
    """The level that others are compared with: the one that has no coefficient, else the first."""
    names = " ".join(map(str, fitted.design.names))
    left = [state for state in states if f"[T.{state}]" not in names]
    return left[0] if fitted.specification is not None and len(left) == 1 else states[0]


# -- rows --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class EffectSums:
    """Sums over rows: effects (E,), their derivatives in the parameters (E, K), and the weight."""

    effects: Floats
    slopes: Floats
    weight: float

    def __add__(self, other: EffectSums) -> EffectSums:
        """Both sets of rows."""
        return EffectSums(self.effects + other.effects, self.slopes + other.slopes, self.weight + other.weight)

    def averages(self) -> tuple[Floats, Floats]:
        """Effects and derivatives of a row on average."""
        return self.effects / self.weight, self.slopes / self.weight


@dataclass(frozen=True, eq=False)
class EffectTask:
    """The sums of the rows of a batch, under a fitted value."""

    fitted: GLMFitted
    unknown: str
    more: Mapping[str, Any]
    changes: tuple[Change, ...]
    held: Mapping[Hashable, Any] = field(default_factory=dict)
    means: bool = False

    def sums(self, X: Any) -> EffectSums:
        """Those of rows wherever they are."""
        if self.means:
            return self._at_means(X)
        source = stream_of(X)
        if source is None:
            return self._of(X)
        domain = domain_of(source, self.fitted, sides_of(self.more))
        answer: EffectSums = source.reduce(self, domain)
        return answer

    def __call__(self, batch: Batch) -> EffectSums:
        """Those of a batch."""
        answers = len(self.changes) * len(_labels(self.fitted))
        empty = EffectSums(np.zeros(answers), np.zeros((answers, self.fitted.values.size)), 0.0)
        return self._of(table_of(batch)) if batch.rows else empty

    def _of(self, X: Any) -> EffectSums:
        rows = changed_rows(self.fitted, self.unknown, X, self.more, self.held)
        source = open_rows(X) if isinstance(self.more["sample_weight"], str) else None
        given = checked_weights(side_column(self.more["sample_weight"], source, rows.count, "sample_weight"))
        weights = np.ones(rows.count) if given is None else given
        parts = [self._part(part, weights[rows_of]) for rows_of, part in rows.parts()]
        return sum(parts[1:], start=parts[0])

    def _part(self, rows: ChangedRows, weights: Floats) -> EffectSums:
        answers = [self._effect(rows, change, weights) for change in self.changes]
        effects = np.concatenate([effect for effect, _ in answers])
        return EffectSums(effects, np.concatenate([slopes for _, slopes in answers]), float(weights.sum()))

    def _effect(self, rows: ChangedRows, change: Change, weights: Floats) -> tuple[Floats, Floats]:
        """The sums of one change (C,) and of its derivatives (C, K)."""
        answers = MeanAnswers(self.fitted)
        if change.between:
            high, low = rows.at(change.column, change.high), rows.at(change.column, change.low)
            ends = [(answers.predictors(X, offset), X, sign) for (X, offset), sign in ((high, 1.0), (low, -1.0))]
            effects = sum(sign * (weights @ answers.values(eta)) for eta, _, sign in ends)
            slopes = sum(sign * answers.gathered(answers.slopes(eta), X, weights) for eta, X, sign in ends)
            return np.asarray(effects), np.asarray(slopes)
        X, offset = rows.table()
        moved, moved_offset = rows.moved(change.column)
        eta, along = answers.predictors(X, offset), answers.along(moved, moved_offset)
        slopes = answers.slopes(eta)
        effects = np.einsum("n,ncq,nq->c", weights, slopes, along)
        bent = answers.bent(eta, along)
        turned = answers.gathered(slopes, moved, weights, constants=False)
        return effects, answers.gathered(bent, X, weights) + turned

    def _at_means(self, X: Any) -> EffectSums:
        """Those of one row that has the mean of every column of the design."""
        if self.fitted.specification is not None:
            raise OptionError(
                "at='mean' is about columns as they are, and the formula makes others of them; give values: at={...}."
            )
        if stream_of(X) is not None:
            raise OptionError("at='mean' needs rows in memory; give values, at={...}, or the average, at='overall'.")
        rows = changed_rows(self.fitted, self.unknown, X, self.more, {})
        assert isinstance(rows, TableRows)
        source = open_rows(X) if isinstance(self.more["sample_weight"], str) else None
        given = checked_weights(side_column(self.more["sample_weight"], source, rows.count, "sample_weight"))
        shares = np.full(rows.count, 1.0 / rows.count) if given is None else given / given.sum()
        parts = [(shares[rows_of] @ part.table()[0], part) for rows_of, part in rows.parts()]
        offset = None if rows.offset is None else np.array([shares @ rows.offset])
        mean = MeanRow(self.fitted, sum(design for design, _ in parts)[None], offset)  # type: ignore[index]
        return self._part(mean, np.ones(1))
