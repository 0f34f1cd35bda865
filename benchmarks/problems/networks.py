"""The tables of ALARM from rows in memory: what `fit` costs beside other ways to the same tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.alarm import CARDS, FAMILIES, draw
from benchmarks.contender import Contender, Data
from benchmarks.network import Judge, Network

NAME = "networks"
ROWS = 1_000_000
SIZES = (10_000, 100_000, 1_000_000, 10_000_000)
REPEATS = 7
FLOOR = "numpy bincount by hand, codes, MLE"
OURS = "suffice, codes, MLE"

_OURS = "benchmarks.rivals.networks_with_suffice"
_NUMPY = "benchmarks.rivals.networks_with_numpy"
_POLARS = "benchmarks.rivals.networks_with_polars"
_PGMPY = "benchmarks.rivals.networks_with_pgmpy"
_PYAGRUM = "benchmarks.rivals.networks_with_pyagrum"
_POMEGRANATE = "benchmarks.rivals.networks_with_pomegranate"
_BDEU = {"prior": "bdeu"}
_FRAME = {"frame": True}
_NUMPY_PATH = {"SUFFICE_KERNELS": "numpy"}
_COMPILED = {"SUFFICE_KERNELS": "compiled"}
# Beyond, one fit takes minutes or more memory than a desktop has.
_MOST = 1_000_000

CONTENDERS = (
    Contender(OURS, _OURS, "fit", environment=_COMPILED),
    Contender("suffice, codes, BDeu", _OURS, "fit", _BDEU, environment=_COMPILED),
    Contender("suffice, frame, MLE", _OURS, "fit", _FRAME, "pandas", environment=_COMPILED),
    Contender("suffice, frame, BDeu", _OURS, "fit", {**_FRAME, **_BDEU}, "pandas", environment=_COMPILED),
    Contender("suffice, codes, MLE, with the report", _OURS, "fit", {"report": True}, environment=_COMPILED),
    Contender("suffice, NumPy path, codes, MLE", _OURS, "fit", environment=_NUMPY_PATH),
    Contender(FLOOR, _NUMPY, "fit"),
    Contender("numpy bincount by hand, narrow cells, codes, MLE", _NUMPY, "fit", {"narrow": True}),
    Contender("numpy bincount by hand, codes, BDeu", _NUMPY, "fit", _BDEU),
    Contender("numpy bincount by hand, frame, MLE", _NUMPY, "fit", _FRAME, "pandas"),
    Contender("polars group_by, codes, MLE", _POLARS, "fit", requires="polars"),
    Contender("polars group_by, codes, BDeu", _POLARS, "fit", _BDEU, "polars"),
    Contender("pgmpy, frame, MLE", _PGMPY, "fit", requires="pgmpy", most_rows=_MOST),
    Contender("pgmpy, frame, BDeu", _PGMPY, "fit", _BDEU, "pgmpy", most_rows=_MOST),
    Contender("pyAgrum, frame, BDeu", _PYAGRUM, "fit", requires="pyagrum", most_rows=_MOST),
    Contender("pyAgrum, rows read before, BDeu", _PYAGRUM, "fit", {"read": False}, "pyagrum", most_rows=_MOST),
    Contender("pomegranate, codes, MLE", _POMEGRANATE, "fit", requires="pomegranate", most_rows=_MOST),
)


def title(rows: int) -> str:
    return f"Tables of the {len(FAMILIES)} nodes of ALARM, {rows:,} rows"


def make(rows: int) -> Data:
    network = Network(tuple(CARDS), tuple(family[:-1] for family in FAMILIES))
    return {"codes": draw(rows), **network.arrays()}


def judge(data: Data) -> Callable[[str, Any], str]:
    """Against tables from `np.unique`: largest error of a probability."""
    return Judge(data)
