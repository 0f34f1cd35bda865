"""CPU time a row of one core: what an estimate of a fit on many cores is made of."""

from __future__ import annotations

import os
import time
import warnings
from pathlib import Path
from statistics import median

import numpy as np

import suffice as sf
from benchmarks import alarm
from benchmarks.scale_out import rows
from benchmarks.scale_out.engines import alone
from benchmarks.scale_out.fits import SEQUENCES, Fit, field_of_chains, logistic
from benchmarks.scale_out.rounds import WARM_ROWS, Watch

NAMES = list(alarm.VARIABLES)


def patients(law: np.random.Generator, part: np.random.Generator, count: int, start: int) -> rows.Columns:
    """Rows of ALARM, as text."""
    codes = alarm.draw(count, int(part.integers(2**31)))
    return {name: rows.texts(codes[number], [f"state {k}" for k in range(4)]) for number, name in enumerate(NAMES)}


def wide(law: np.random.Generator, part: np.random.Generator, count: int, start: int) -> rows.Columns:
    return rows.regression(law, part, count, 50)


def monitoring(**options: object) -> sf.BayesianNetwork:
    """The 37 tables of ALARM, in one pass; it has no iterations to limit."""
    edges = [(parent, name) for name, (_, parents) in alarm.VARIABLES.items() for parent in parents]
    return sf.BayesianNetwork(edges)


RATES = {
    "ALARM": Fit("37 tables of ALARM, text", patients, monitoring, lambda model: np.empty(0)),
    "GLM": Fit("logistic regression, 50 columns", wide, logistic, lambda model: np.empty(0), {"y": "y"}),
    "CRF": Fit(
        f"chain CRF, {rows.NEWS_LABELS} labels, {len(rows.NEWS_FEATURES)} features a token, sentences of {rows.STEPS}",
        rows.newswire,
        field_of_chains,
        lambda model: np.empty(0),
        {**SEQUENCES, "y": "label", "columns": [f"f{number}" for number in range(len(rows.NEWS_FEATURES))]},
    ),
}
HEAD = ("one thread, CPU microseconds a row", "rows", "read and prepared", "a round", "rounds of the fit")


def draw(name: str, folder: Path, count: int, seed: int) -> None:
    rows.write(folder / "rows", RATES[name].draw, count, seed)
    rows.write(folder / "warm", RATES[name].draw, WARM_ROWS, seed)


def measure(name: str, folder: Path, iterations: int) -> tuple[float, float, int]:
    """CPU seconds of all but the rounds, of the median round, and the number of rounds."""
    warnings.simplefilter("ignore")
    os.environ["SUFFICE_THREADS"] = "1"
    fit, watch = RATES[name], Watch(time.process_time, time.process_time)
    fit.fitted(str(folder / "warm" / "*.parquet"), max_iter=2)
    watch.begin()
    begin = time.process_time()
    fit.fitted(str(folder / "rows" / "*.parquet"), max_iter=iterations)
    total = time.process_time() - begin
    if not watch.rounds:
        return total, 0.0, 0
    asked = sum(one.answered - one.asked for one in watch.rounds)
    return total - asked, median(one.answered - one.asked for one in watch.longest), len(watch.rounds)


def cells(name: str, folder: Path, count: int, seed: int, iterations: int) -> tuple[str, ...]:
    """The row of a fit."""
    alone(draw, name, folder, count, seed)
    once, each, number = alone(measure, name, folder, iterations)
    return RATES[name].title, f"{count:,}", f"{1e6 * once / count:.2f}", f"{1e6 * each / count:.2f}", str(number)
