"""The tables of ALARM from rows in memory: what `fit` costs beside other ways to the same tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.alarm import CARDS, FAMILIES, draw
from benchmarks.contender import Contender, Data
from benchmarks.network import Judge, Network

NAME = "networks"
ROWS = 1_000_000
SIZES = (10_000, 1_000_000, 10_000_000)
REPEATS = 5

_OURS = "benchmarks.rivals.networks_with_suffice"
_NUMPY = "benchmarks.rivals.networks_with_numpy"
_POLARS = "benchmarks.rivals.networks_with_polars"
_PGMPY = "benchmarks.rivals.networks_with_pgmpy"
_PYAGRUM = "benchmarks.rivals.networks_with_pyagrum"
_POMEGRANATE = "benchmarks.rivals.networks_with_pomegranate"
_BDEU = {"prior": "bdeu"}
_FRAME = {"frame": True}
# Beyond, one fit takes minutes or more memory than a desktop has.
_MOST = 1_000_000

CONTENDERS = (
    Contender("suffice, pandas, MLE", _OURS, "fit", _FRAME, "pandas", work="MLE"),
    Contender("suffice, pandas, BDeu", _OURS, "fit", {**_FRAME, **_BDEU}, "pandas", work="BDeu"),
    Contender("suffice, pandas, MLE, with the report", _OURS, "fit", {**_FRAME, "report": True}, "pandas", work="MLE"),
    Contender("suffice, dict of codes, MLE", _OURS, "fit", work="codes"),
    Contender("numpy bincount by hand, pandas, MLE", _NUMPY, "fit", _FRAME, "pandas", work="MLE"),
    Contender(
        "numpy bincount by hand, narrow, pandas, MLE", _NUMPY, "fit", {**_FRAME, "narrow": True}, "pandas", work="MLE"
    ),
    Contender("numpy bincount by hand, pandas, BDeu", _NUMPY, "fit", {**_FRAME, **_BDEU}, "pandas", work="BDeu"),
    Contender("numpy bincount by hand, codes, MLE", _NUMPY, "fit", work="codes"),
    Contender("polars group_by, codes, MLE", _POLARS, "fit", requires="polars", work="MLE"),
    Contender("polars group_by, codes, BDeu", _POLARS, "fit", _BDEU, "polars", work="BDeu"),
    Contender("pgmpy, pandas, MLE", _PGMPY, "fit", requires="pgmpy", most_rows=_MOST, work="MLE"),
    Contender("pgmpy, pandas, BDeu", _PGMPY, "fit", _BDEU, "pgmpy", most_rows=_MOST, work="BDeu"),
    Contender("pyAgrum, pandas, BDeu", _PYAGRUM, "fit", requires="pyagrum", most_rows=_MOST, work="BDeu"),
    Contender("pomegranate, codes, MLE", _POMEGRANATE, "fit", requires="pomegranate", most_rows=_MOST, work="MLE"),
)


def title(rows: int) -> str:
    return f"Tables of the {len(FAMILIES)} nodes of ALARM, {rows:,} rows"


def make(rows: int, seed: int) -> Data:
    network = Network(tuple(CARDS), tuple(family[:-1] for family in FAMILIES))
    return {"codes": draw(rows, seed), **network.arrays()}


def judge(data: Data) -> Callable[[str, Any], str]:
    """Against tables from `np.unique`: largest error of a probability."""
    return Judge(data)
