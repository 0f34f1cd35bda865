"""Log-linear models of tables, fitted to the same gap of their margins, and what one calibration costs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchmarks.alarm import CARDS, FAMILIES
from benchmarks.contender import Contender, Data
from benchmarks.log_linear import GAP, Cliques, Judge, draw

_OURS = "benchmarks.rivals.markov_with_suffice"
_NUMPY = "benchmarks.rivals.markov_with_numpy"
_MBI = "benchmarks.rivals.markov_with_mbi"
_IPFN = "benchmarks.rivals.markov_with_ipfn"
_PYGMS = "benchmarks.rivals.markov_with_pygms"
_PGMPY = "benchmarks.rivals.markov_with_pgmpy"
_STATSMODELS = "benchmarks.rivals.markov_with_statsmodels"
_WIDE = {"JAX_ENABLE_X64": "1", "JAX_ENABLE_COMPILATION_CACHE": "0"}

ROWS_OF = (
    Contender("suffice, pandas", _OURS, "fit", {}, "pandas"),
    Contender("suffice, pandas, report read", _OURS, "fit", {"report": True}, "pandas"),
    Contender("suffice, dict of arrays", _OURS, "fit", {"form": "dict"}),
)
TABLE_OF = (
    Contender("suffice, Series", _OURS, "fit_table", {"form": "series"}, "pandas"),
    Contender("suffice, frame with Freq", _OURS, "fit_table", {"form": "frame"}, "pandas"),
    Contender("suffice, array", _OURS, "fit_table", {"form": "array"}),
)
LBFGS = Contender("scipy L-BFGS over a NumPy junction tree", _NUMPY, "lbfgs", requires="scipy")
MIRROR = Contender("mbi, mirror descent", _MBI, "fit", {"method": "MirrorDescent"}, "mbi", _WIDE)
# Named, but left out: to compile and to find out how many iterations are needed takes it minutes.
LONG_MIRROR = replace(MIRROR, most_rows=1)
PYGMS = Contender("pyGMs, IPF, 2 sweeps", _PYGMS, "fit", {"sweeps": 2}, "pygms", once=True, limit=True)
PGMPY = Contender("pgmpy, mirror descent, 100 steps", _PGMPY, "fit", requires="pgmpy", once=True)
TABLE = Contender("numpy IPF by hand, Series", _NUMPY, "table_ipf", {"series": True}, "pandas")
IPFN = Contender("ipfn", _IPFN, "fit", requires="ipfn")
GLM = Contender("statsmodels, Poisson regression", _STATSMODELS, "fit", requires="statsmodels")

GRID_6, GRID_10 = Cliques.grid(6), Cliques.grid(10)
ALARM = Cliques(tuple(CARDS), tuple(FAMILIES))
TABLE_6, TABLE_10 = Cliques.all_pairs((2, 3, 4) * 2), Cliques.all_pairs(((2, 3, 4) * 4)[:10])
LARGE_10 = Cliques.all_pairs(((3, 4) * 5)[:10])


@dataclass(frozen=True)
class Fit:
    """One model, from rows or a table of counts to potentials or fitted cells."""

    NAME: str
    model: str
    cliques: Cliques
    ours: tuple[Contender, ...]
    rivals: tuple[Contender, ...]
    REPEATS: int = 3
    strength: float = 0.5

    ROWS = 10_000

    @property
    def CONTENDERS(self) -> tuple[Contender, ...]:  # noqa: N802  a constant of the problem
        return (*self.ours, *self.rivals)

    def title(self, rows: int) -> str:
        return f"{self.model}, {rows:,} rows, no margin further than {GAP:.0e} from the observed share"

    def make(self, rows: int, seed: int) -> Data:
        return draw(self.cliques, rows, strength=self.strength, seed=seed)

    def judge(self, data: Data) -> Callable[[str, Any], str]:
        return Judge(data)


@dataclass(frozen=True)
class Calibrations:
    """Log Z and all margins of one model, again and again."""

    NAME: str
    model: str
    cliques: Cliques
    times: int = 100

    ROWS = 1
    REPEATS = 5

    @property
    def CONTENDERS(self) -> tuple[Contender, ...]:  # noqa: N802  a constant of the problem
        times = {"times": self.times}
        mbi = (Contender("mbi, exact marginals", _MBI, "calibrations", times, "mbi", _WIDE),)
        return (
            Contender(
                "two passes over all cells of the tree",
                "benchmarks.rivals.markov_floor",
                "passes",
                times,
                "numba",
                limit=True,
            ),
            Contender("suffice", _OURS, "calibrations", times),
            Contender("suffice, sweeps of IPF", _OURS, "sweeps", times, work="sweeps"),
            Contender("NumPy junction tree", _NUMPY, "calibrations", times),
            Contender("pyGMs, junction tree", _PYGMS, "calibrations", times, "pygms"),
            *(mbi if len(self.cliques.cards) < 100 else ()),  # Beyond, compiling takes minutes.
        )

    def title(self, rows: int) -> str:
        return f"{self.times:,} calibrations of {self.model}"

    def make(self, rows: int, seed: int) -> Data:
        """Log-potentials, and the margins of another law for the sweeps."""
        drawn = draw(self.cliques, 2000, strength=0.5, seed=seed)
        logs = np.random.default_rng(seed + 1).normal(0.0, 0.5, len(drawn["margins"]))
        return {**drawn, "logs": logs}

    def judge(self, data: Data) -> Callable[[str, Any], str]:
        """Log Z against that of the first contender that has one."""
        first: list[float] = []

        def verdict(_: str, answer: Any) -> str:
            if answer is None:
                return ""
            first.append(float(answer))
            return f"log Z {first[0]:.6f}" if len(first) == 1 else f"{abs(first[-1] - first[0]):.0e} off"

        return verdict


_TREE_RIVALS = (LBFGS, MIRROR)
_TABLE_RIVALS = (TABLE, IPFN, MIRROR, LBFGS)
_LARGE_RIVALS = (TABLE, IPFN, LONG_MIRROR)


def cases() -> Iterator[Any]:
    yield Fit("markov, 6x6 grid", "6x6 binary grid", GRID_6, ROWS_OF, (*_TREE_RIVALS, PYGMS, PGMPY))
    yield Fit("markov, 10x10 grid", "10x10 binary grid", GRID_10, ROWS_OF, (LBFGS, LONG_MIRROR))
    yield Fit("markov, ALARM", "Families of ALARM as cliques", ALARM, ROWS_OF, _TREE_RIVALS)
    yield Fit("markov, 6-way table", "6-way table, all pairs", TABLE_6, TABLE_OF, (*_TABLE_RIVALS, GLM), 5, 0.3)
    yield Fit("markov, 10-way table", "10-way table, all pairs", TABLE_10, TABLE_OF, _LARGE_RIVALS, strength=0.3)
    yield Fit(
        "markov, large 10-way table", "Large 10-way table, all pairs", LARGE_10, TABLE_OF, _LARGE_RIVALS, strength=0.3
    )
    yield Calibrations("markov, calibrations of the 6x6 grid", "the 6x6 binary grid", GRID_6)
    yield Calibrations("markov, calibrations of the 10x10 grid", "the 10x10 binary grid", GRID_10)
    yield Calibrations("markov, calibrations of ALARM", "ALARM", ALARM)
