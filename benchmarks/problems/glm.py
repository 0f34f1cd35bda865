"""Generalised linear models, fitted until no slope of a mean row is larger than the same small number."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from benchmarks.contender import Contender, Data
from benchmarks.regression import GAP, Judge, draw

_OURS = "benchmarks.rivals.glm_with_suffice"
_SKLEARN = "benchmarks.rivals.glm_with_sklearn"
_COMPILED = {"SUFFICE_KERNELS": "compiled"}
_ONE = {**_COMPILED, "SUFFICE_THREADS": "1"}

OURS = (
    Contender("suffice", _OURS, "fit", environment=_COMPILED),
    Contender("suffice, 1 thread", _OURS, "fit", environment=_ONE),
    Contender("suffice, with standard errors", _OURS, "fit", {"errors": True}, environment=_COMPILED),
    Contender("suffice, irls", _OURS, "fit", {"solver": "irls"}, environment=_COMPILED),
)
GLUM = Contender("glum, irls-ls", "benchmarks.rivals.glm_with_glum", "fit", requires="glum")
LBFGS = Contender("scikit-learn, lbfgs", _SKLEARN, "fit", {"solver": "lbfgs"}, "sklearn")
CHOLESKY = Contender("scikit-learn, newton-cholesky", _SKLEARN, "fit", {"solver": "newton-cholesky"}, "sklearn")
STATSMODELS = Contender("statsmodels, IRLS", "benchmarks.rivals.glm_with_statsmodels", "fit", requires="statsmodels")


@dataclass(frozen=True)
class Fit:
    """One shape of the rows; `levels` are those of a factor beside the real columns, which then has a ridge prior."""

    NAME: str
    family: str
    ROWS: int
    columns: int
    levels: int = 0
    REPEATS: int = 3

    FLOOR = ""
    OURS = "suffice"

    @property
    def CONTENDERS(self) -> tuple[Contender, ...]:  # noqa: N802  a constant of the problem
        # With thousands of levels a dense information matrix, or a dense design, is beyond the memory of most machines.
        dense = () if self.levels else (CHOLESKY, STATSMODELS)
        return (*OURS, GLUM, LBFGS, *dense)

    def title(self, rows: int) -> str:
        factor = f" and a factor of {_levels(self.levels, rows):,} levels, ridge" if self.levels else ""
        return f"{self.family} regression, {rows:,} rows, {self.columns} columns{factor}, mean slope at most {GAP:.0e}"

    def make(self, rows: int) -> Data:
        return draw(self.family, rows, self.columns, levels=_levels(self.levels, rows), ridge=float(self.levels > 0))

    def judge(self, data: Data) -> Callable[[str, Any], str]:
        return Judge(data)


def cases() -> Iterator[Any]:
    yield Fit("glm, logistic 1M x 50", "binomial", 1_000_000, 50)
    yield Fit("glm, Poisson 1M x 50", "poisson", 1_000_000, 50)
    yield Fit("glm, logistic 100k x 500", "binomial", 100_000, 500)
    yield Fit("glm, Poisson 100k x 500", "poisson", 100_000, 500)
    yield Fit("glm, logistic with 10k levels", "binomial", 1_000_000, 10, 10_000)
    yield Fit("glm, Poisson with 10k levels", "poisson", 1_000_000, 10, 10_000)


def _levels(levels: int, rows: int) -> int:
    """Levels of the factor: every one has rows."""
    return min(levels, rows // 10)
