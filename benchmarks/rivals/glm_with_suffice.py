"""Our own generalised linear model."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.contender import Data, Run
from benchmarks.regression import Floats, loosest
from suffice import GLM, Normal


def fit(data: Data, *, errors: bool = False, equal: bool = False) -> Run:
    """With certificate, deviances and report; standard errors, which large fits make when they are read, as asked."""
    ridge = float(data["ridge"])
    options: dict[str, Any] = {"prior": Normal(variance=1.0 / ridge) if ridge else None}
    rows: Any = data["X"]
    if "codes" in data:
        import pandas as pd

        rows = pd.DataFrame(data["X"]).add_prefix("x")
        rows["level"] = pd.Categorical.from_codes(data["codes"], categories=np.arange(int(data["levels"])))

    def solved(tolerance: float | None) -> Floats:
        aim = {} if tolerance is None else {"tolerance": tolerance}
        model = GLM(str(data["family"]), **aim, **options).fit(rows, data["y"])  # type: ignore[arg-type]
        if errors:
            model.standard_errors_  # noqa: B018
        return np.asarray(model.parameters_)

    tolerance = loosest(data, solved) if equal else None
    return lambda: solved(tolerance)


def fit_file(data: Data) -> Run:
    """Straight from the file: the levels are found in a pass of their own, then one pass for each iteration."""

    def run() -> object:
        model = GLM("binomial").fit(str(data["path"]), y="y")
        return np.array([model.parameters_, model.standard_errors_])

    return run
