"""How much single rows decide of a fit: leverage, residuals in their standard deviations, Cook's distance, DFBETAs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.array_types import Floats
from suffice.errors import EstimateError, OptionError, require
from suffice.models.glm.family import Family
from suffice.models.glm.fitted import GLMFitted
from suffice.models.glm.pieces import stream_of
from suffice.models.glm.rowwise import Scored, leverage, residuals, scored_parts, with_response

if TYPE_CHECKING:
    from suffice.models.glm.declaration import GLM


@dataclass(frozen=True, eq=False)
class Influence:
    """What each row decides, in the order of the rows; NaN where a row has no weight, or decides its own fit.

    `leverage` (n,) is the diagonal of the hat matrix; `studentized` (n,) are Pearson residuals over their standard
    deviations, `deleted` (n,) the same by the dispersion without the row (Student's t of least squares; with other
    families Williams' combination of deviance and Pearson residuals, as R's `rstudent`). `cooks_distance` (n,) is how
    far all coefficients move without the row, `dfbetas` (n, k) how far each does, in its standard error by the
    dispersion without the row; `dffits` (n,) is how far its own prediction does. All are exact for least squares and
    those of one Newton step for others.
    """

    names: tuple[str, ...]
    leverage: Floats
    studentized: Floats
    deleted: Floats
    cooks_distance: Floats
    dffits: Floats
    dfbetas: Floats

    def to_frame(self) -> Any:
        """A pandas DataFrame, one row for each row; a column "dfbeta ..." for each coefficient."""
        pd = require("pandas", extra="all", purpose="to_frame")

        single = ("leverage", "studentized", "deleted", "cooks_distance", "dffits")
        columns = {name: getattr(self, name) for name in single}
        columns |= {f"dfbeta {name}": self.dfbetas[:, number] for number, name in enumerate(self.names)}
        return pd.DataFrame(columns)


def influence(model: GLM, X: Any, y: Any = None, **rows: Any) -> Influence:
    """How much each row decides: leverage, studentised residuals, Cook's distance, DFBETAs.

    Args:
        model: a fitted GLM of one linear predictor, without a prior.
        X: the rows of the fit, in memory or in files.
        y: their response (a formula may name it).
        rows: sample_weight, offset, exposure, trials, columns, as for `fit`; what leaves is one of the rows that a row
            stands for.
    """
    fitted, options = model.fitted_, model._fit_options()
    if not isinstance(fitted.family_object, Family):
        raise OptionError(f"The influence of rows is offered for one linear predictor, not the {fitted.family} family.")
    if options.given["prior"] is not None:
        raise EstimateError("What rows decide is told of maximum likelihood, and the fit has a prior.")
    if fitted.direction is not None:
        raise EstimateError("Coefficients run to infinity, so that no step tells what a row decides; give other rows.")
    source = stream_of(X)
    if source is not None and source.residence == "elsewhere":
        raise OptionError("influence takes rows in memory or in files; leverage and residuals stay where the rows are.")
    more = with_response(fitted, source, {"y": y, **rows})
    expected = replace(fitted, sandwich=None)
    covariance = expected.covariance() / fitted.dispersion
    known = options.known_dispersion if fitted.free_dispersion else 1.0
    parts = [
        _of_rows(expected, covariance, known, part) for part in scored_parts(fitted, X, more, model._options["unknown"])
    ]
    return Influence(tuple(fitted.parameters.names), *map(np.concatenate, zip(*parts, strict=True)))


def _of_rows(fitted: GLMFitted, covariance: Floats, known: float | None, rows: Scored) -> tuple[Floats, ...]:
    """The figures of some rows; covariance: of the coefficients, in units of the dispersion, which may be known."""
    pearson, deviance = residuals(fitted, rows, "pearson"), residuals(fitted, rows, "deviance")
    live = rows.weights > 0.0
    k = float(len(covariance) - len(fitted.dropped))
    with np.errstate(divide="ignore", invalid="ignore"):
        own = np.where(live, leverage(fitted, rows) / rows.weights, np.nan)
        left = np.where(1.0 - own > 1e-10, 1.0 - own, np.nan)
        inner = pearson / np.sqrt(left)
        if known is None:
            rest = fitted.df_resid - 1.0
            spread = np.maximum(fitted.deviance - deviance**2 / left, 0.0) / (rest if rest > 0.0 else np.nan)
        else:
            spread = np.full_like(pearson, known)
        studentized = inner / np.sqrt(fitted.dispersion)
        deleted = np.sign(deviance) * np.sqrt((deviance**2 + own * inner**2) / spread)
        cook = studentized**2 * own / left / k
        slope = fitted.row_distribution().link.slope(rows.eta[:, 0])
        information = fitted.row_distribution()(rows.eta[:, 0], rows.y)[2]
        if rows.trials is not None:
            information = information * rows.trials
        # The score of a row is its Pearson residual times the root of its information, with the sign of the slope.
        score = pearson * np.sqrt(information) * np.sign(slope)
        design = fitted.design.matrix(rows.table)
        steps = (design @ covariance) * (score / left)[:, None]
        roots = np.sqrt(np.diagonal(covariance))
        dfbetas = steps / (roots * np.sqrt(spread)[:, None])
        dffits = np.sign(slope) * inner / np.sqrt(spread) * np.sqrt(own / left)
    return np.where(live, own * rows.weights, np.nan), studentized, deleted, cook, dffits, dfbetas
