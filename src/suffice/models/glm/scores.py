"""The score test of coefficients that a regression leaves out, without fitting the larger one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.errors import EstimateError, OptionError, listing
from suffice.fitting.row_marks import check_marks
from suffice.models.glm.profile import problem_at_fit

if TYPE_CHECKING:
    from suffice.models.glm.declaration import GLM


def score_of_columns(model: GLM, names: Sequence[str], rows: Mapping[str, Any]) -> tuple[float, float]:
    """``s' I^-1 s`` at the coefficients of the fit, those of further columns being 0, and how many these are.

    rows: those of the fit with the further columns, by the names of the arguments of `fit`.
    """
    options, fitted = model._fit_options(), model.fitted_
    if not fitted.single or fitted.direction is not None or fitted.dropped:
        raise EstimateError("Score tests need one linear predictor, no separation and no dropped columns.")
    data = model._read_again(rows)
    known, own = data.design.names, fitted.design.names
    lacking, further = [name for name in own if name not in known], [name for name in known if name not in own]
    if lacking or set(names) != set(further):
        lacks = f" and lack {listing(lacking)}" if lacking else ""
        raise OptionError(
            f"The rows bring the coefficients {listing(further)} beside those of the fit{lacks}; the test is of "
            f"{listing(names)}. Give the columns of the fit and those that are to be tested, and no others."
        )
    check_marks(model, data)
    before = dict(zip(fitted.parameters.names, fitted.values[:, 0].tolist(), strict=True))
    start = data.parameters.internal(np.array([before.get(name, 0.0) for name in data.parameters.names]))
    _, slope, information = problem_at_fit(options, fitted, data).evaluate(start)
    if not information.definite:
        raise EstimateError(f"Columns of {listing(names)} say the same as others: there is nothing to test.")
    return float(slope @ information.solve(slope)), float(len(names))
