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
_COMPILED = {"SUFFICE_KERNELS": "compiled"}
_WIDE = {"JAX_ENABLE_X64": "1", "JAX_ENABLE_COMPILATION_CACHE": "0"}


def _ours(name: str, **options: Any) -> Contender:
    requires = "pandas" if options.get("frame") else "numpy"
    return Contender(name, _OURS, "fit", options, requires, environment=_COMPILED)


OURS = (
    _ours("suffice"),
    _ours("suffice, report read", report=True),
    _ours("suffice, planned anew", anew=True),
    _ours("suffice, from the rows", frame=True),
    _ours("suffice, check_existence=False", check_existence=False),
    _ours("suffice, ipf", solver="ipf"),
    _ours("suffice, lbfgs", solver="lbfgs"),
    _ours("suffice, newton-cg", solver="newton-cg"),
)
LBFGS = Contender("scipy L-BFGS over a NumPy junction tree", _NUMPY, "lbfgs", requires="scipy")
MIRROR = Contender("mbi, mirror descent", _MBI, "fit", {"method": "MirrorDescent"}, "mbi", _WIDE)
# Named, but left out: to compile and to find out how many iterations are needed takes it minutes.
LONG_MIRROR = replace(MIRROR, most_rows=1)
PYGMS = Contender("pyGMs, IPF, 2 sweeps", _PYGMS, "fit", {"sweeps": 2}, "pygms")
PGMPY = Contender("pgmpy, mirror descent, 100 steps", _PGMPY, "fit", requires="pgmpy")
TABLE = Contender("numpy IPF by hand", _NUMPY, "table_ipf")
IPFN = Contender("ipfn", _IPFN, "fit", requires="ipfn")
GLM = Contender("statsmodels, Poisson regression", _STATSMODELS, "fit", requires="statsmodels")

GRID_6, GRID_10 = Cliques.grid(6), Cliques.grid(10)
ALARM = Cliques(tuple(CARDS), tuple(FAMILIES))
TABLE_6, TABLE_10 = Cliques.all_pairs((2, 3, 4) * 2), Cliques.all_pairs(((2, 3, 4) * 4)[:10])
LARGE_10 = Cliques.all_pairs(((3, 4) * 5)[:10])


@dataclass(frozen=True)
class Fit:
    """One model, from its margins to a law that has them."""

    NAME: str
    model: str
    cliques: Cliques
    rivals: tuple[Contender, ...]
    REPEATS: int = 3
    strength: float = 0.5

    ROWS = 10_000
    FLOOR = ""
    OURS = "suffice"

    @property
    def CONTENDERS(self) -> tuple[Contender, ...]:  # noqa: N802  a constant of the problem
        return (*OURS, *self.rivals)

    def title(self, rows: int) -> str:
        return f"{self.model}, {rows:,} rows, no margin further than {GAP:.0e} from the observed share"

    def make(self, rows: int) -> Data:
        return draw(self.cliques, rows, strength=self.strength)

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
    FLOOR = "two passes over all cells of the tree"
    OURS = "suffice"

    @property
    def CONTENDERS(self) -> tuple[Contender, ...]:  # noqa: N802  a constant of the problem
        times = {"times": self.times}
        mbi = (Contender("mbi, exact marginals", _MBI, "calibrations", times, "mbi", _WIDE),)
        return (
            Contender(self.FLOOR, "benchmarks.rivals.markov_floor", "passes", times, "numba"),
            Contender(self.OURS, _OURS, "calibrations", times, environment=_COMPILED),
            Contender("suffice, sweeps of IPF", _OURS, "sweeps", times, environment=_COMPILED),
            Contender("NumPy junction tree", _NUMPY, "calibrations", times),
            Contender("pyGMs, junction tree", _PYGMS, "calibrations", times, "pygms"),
            *(mbi if len(self.cliques.cards) < 100 else ()),  # Beyond, compiling takes minutes.
        )

    def title(self, rows: int) -> str:
        return f"{self.times:,} calibrations of {self.model}"

    def make(self, rows: int) -> Data:
        """Log-potentials, and the margins of another law for the sweeps."""
        size = len(draw(self.cliques, 1, strength=0.5)["margins"])
        logs = np.random.default_rng(1).normal(0.0, 0.5, size)
        return {**draw(self.cliques, 2000, strength=0.5), "logs": logs}

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


def cases() -> Iterator[Any]:
    yield Fit("markov, 6x6 grid", "6x6 binary grid", GRID_6, (*_TREE_RIVALS, PYGMS, PGMPY), 2)
    yield Fit("markov, 10x10 grid", "10x10 binary grid", GRID_10, (LBFGS, LONG_MIRROR))
    yield Fit("markov, ALARM", "Families of ALARM as cliques", ALARM, _TREE_RIVALS)
    yield Fit("markov, 6-way table", "6-way table, all pairs", TABLE_6, (*_TABLE_RIVALS, GLM), 7, 0.3)
    yield Fit(
        "markov, 10-way table", "10-way table, all pairs", TABLE_10, (TABLE, IPFN, LONG_MIRROR, LBFGS), strength=0.3
    )
    yield Fit(
        "markov, large 10-way table",
        "Large 10-way table, all pairs",
        LARGE_10,
        (TABLE, IPFN, LONG_MIRROR),
        strength=0.3,
    )
    yield Calibrations("markov, calibrations of the 6x6 grid", "the 6x6 binary grid", GRID_6)
    yield Calibrations("markov, calibrations of the 10x10 grid", "the 10x10 binary grid", GRID_10)
    yield Calibrations("markov, calibrations of ALARM", "ALARM", ALARM)
