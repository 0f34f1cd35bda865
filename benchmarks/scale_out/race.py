"""Logistic regression beside Spark's MLlib and dask-ml: time from the frame to the coefficients."""

from __future__ import annotations

import importlib.util
import time
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from benchmarks.regression import GAP
from benchmarks.scale_out.engines import LOCAL, alone, present, started, tree_seconds
from benchmarks.scale_out.fits import ROUNDS

Floats = NDArray[np.float64]
#: Fits of each contender: the virtual machine of Spark compiles what it meets often.
FITS = 2
#: Seconds below which a fit is repeated: some systems count CPU time in hundredths of a second.
SHORT = 0.3


def ours(frame: Any) -> Floats:
    """The intercept and the coefficients of our fit."""
    model = ROUNDS["IRLS"].fitted(frame)
    return np.concatenate(([model.intercept_], np.ravel(model.coefficients_)))


def assembled(frame: Any) -> Any:
    """MLlib takes a column of vectors."""
    from pyspark.ml.feature import VectorAssembler

    names = [name for name in frame.columns if name != "y"]
    vectors = VectorAssembler(inputCols=names, outputCol="x").transform(frame)
    return vectors.selectExpr("x", "cast(y as double) as y")


def mllib(frame: Any) -> Floats:
    """L-BFGS, which keeps its rows in blocks."""
    from pyspark.ml.classification import LogisticRegression

    model = LogisticRegression(featuresCol="x", labelCol="y", tol=1e-9, maxIter=200).fit(assembled(frame))
    return np.concatenate(([model.intercept], model.coefficients.toArray()))


def mllib_glm(frame: Any) -> Floats:
    """IRLS."""
    from pyspark.ml.regression import GeneralizedLinearRegression

    model = GeneralizedLinearRegression(featuresCol="x", labelCol="y", family="binomial", tol=1e-9, maxIter=100)
    fitted = model.fit(assembled(frame))
    return np.concatenate(([fitted.intercept], fitted.coefficients.toArray()))


def dask_ml(frame: Any, solver: str) -> Floats:
    """On the arrays of the frame, which it keeps; a penalty that is next to none."""
    from dask_ml.linear_model import LogisticRegression

    names = [name for name in frame.columns if name != "y"]
    # One array of all columns: partitions of a single column are read several at a time, so that lengths would differ.
    rows = frame[[*names, "y"]].to_dask_array(lengths=True).persist()
    model = LogisticRegression(solver=solver, C=1e12, tol=1e-9, max_iter=200).fit(rows[:, :-1], rows[:, -1])
    return np.concatenate((np.atleast_1d(model.intercept_), np.ravel(model.coef_)))


def dask_ml_newton(frame: Any) -> Floats:
    return dask_ml(frame, "newton")


def dask_ml_lbfgs(frame: Any) -> Floats:
    return dask_ml(frame, "lbfgs")


#: By name: the engine, the package, and the call that is timed; ours is first of its engine.
CONTENDERS: dict[str, tuple[str, str, Callable[[Any], Floats]]] = {
    "suffice, local Parquet": (LOCAL, "suffice", ours),
    "suffice, Dask": ("Dask", "suffice", ours),
    "dask-ml, newton": ("Dask", "dask_ml", dask_ml_newton),
    "dask-ml, lbfgs": ("Dask", "dask_ml", dask_ml_lbfgs),
    "suffice, Spark": ("Spark", "suffice", ours),
    "MLlib LogisticRegression, tol 1e-9": ("Spark", "pyspark", mllib),
    "MLlib GeneralizedLinearRegression, tol 1e-9": ("Spark", "pyspark", mllib_glm),
}


def measure(name: str, folder: Path) -> tuple[float, float, Floats]:
    """Fit a small table, then the table some times: the least seconds and CPU seconds, and the coefficients."""
    warnings.simplefilter("ignore")
    engine, _, fit = CONTENDERS[name]
    with started(engine) as opened:
        fit(opened(folder / "warm"))
        costs = []
        for _ in range(FITS):
            fits, seconds, cpu = 0, 0.0, 0.0
            while seconds < SHORT:
                frame, counted, begin = opened(folder / "rows"), tree_seconds(), time.perf_counter()
                coefficients = fit(frame)
                seconds, cpu, fits = seconds + time.perf_counter() - begin, cpu + tree_seconds() - counted, fits + 1
            costs.append((seconds / fits, cpu / fits))
    least, least_cpu = map(min, zip(*costs, strict=True))
    return least, least_cpu, coefficients


def derivatives(folder: Path, beta: Floats | None) -> tuple[Floats, Floats]:
    """Gradient and information of the mean row, file by file, by the textbook's formulas; at zero without a beta."""
    gradient, information, rows = 0.0, 0.0, 0
    for path in sorted((folder / "rows").glob("*.parquet")):
        table = pq.read_table(path)
        y = table["y"].to_numpy().astype(float)
        names = [name for name in table.column_names if name != "y"]
        X = np.column_stack([np.ones(len(y)), *(table[name].to_numpy() for name in names)])
        chance = 1.0 / (1.0 + np.exp(-X @ (np.zeros(X.shape[1]) if beta is None else beta)))
        gradient = gradient + X.T @ (y - chance)
        information = information + (X.T * (chance * (1.0 - chance))) @ X
        rows += len(y)
    return np.asarray(gradient) / rows, np.asarray(information) / rows


def reference(folder: Path) -> Floats:
    """The maximum, by Newton's method."""
    gradient, information = derivatives(folder, None)
    beta = np.zeros_like(gradient)
    for _ in range(30):
        step = np.linalg.solve(information, gradient)
        beta = beta + step
        if np.abs(step).max() < 1e-13:
            break
        gradient, information = derivatives(folder, beta)
    return beta


def slope(folder: Path, beta: Floats) -> float:
    """The largest component of the gradient of the mean row."""
    return float(np.abs(derivatives(folder, beta)[0]).max())


HEAD = ("", "seconds", "CPU s", "x our CPU s on the same engine", "difference to the maximum", "slope of a mean row")


def compare(folder: Path, engines: Iterable[str]) -> tuple[list[tuple[str, ...]], list[str]]:
    """The table, and what is to be said below it: who is not installed, who was faster, who was not as near."""
    maximum: Floats = alone(reference, folder)
    cells: list[tuple[str, ...]] = []
    below: list[str] = []
    base: dict[str, float] = {}
    for name, (engine, package, _) in CONTENDERS.items():
        if engine not in engines:
            continue
        if importlib.util.find_spec(package) is None or not present(engine):
            below.append(f"Not installed: {name}.")
            continue
        seconds, cpu, beta = alone(measure, name, folder)
        steep = alone(slope, folder, beta)
        ratio = cpu / base.setdefault(engine, cpu)
        if ratio < 1.0:
            below.append(f"Faster than ours: {name}, in {ratio:.2f} of our CPU time.")
        if steep > GAP:
            below.append(f"Not at equal slope ({GAP:.0e}): {name}.")
        away = float(np.abs(beta - maximum).max())
        cells.append((name, f"{seconds:.3g}", f"{cpu:.3g}", f"{ratio:.2f}", f"{away:.0e}", f"{steep:.0e}"))
    return cells, below
