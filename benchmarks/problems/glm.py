"""Generalised linear models: as each library fits by itself, and all to one slope of a mean row."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from benchmarks.contender import Contender, Data
from benchmarks.regression import GAP, Judge, draw

_OURS = "benchmarks.rivals.glm_with_suffice"
_SKLEARN = "benchmarks.rivals.glm_with_sklearn"
_NUMPY = "benchmarks.rivals.glm_with_numpy"
_GLUM = "benchmarks.rivals.glm_with_glum"
_STATSMODELS = "benchmarks.rivals.glm_with_statsmodels"
_ERRORS = "standard errors"


def _pair(name: str, module: str, requires: str, **options: Any) -> tuple[Contender, Contender]:
    """At the tolerance that the library has by itself, and at that which brings it to the slope of all."""
    default = Contender(f"{name}, default", module, "fit", options, requires, work="default")
    return default, replace(
        default, name=f"{name}, equal slope", options={**options, "equal": True}, work="equal slope", tuned=True
    )


OURS = (
    *_pair("suffice", _OURS, "numpy"),
    Contender("suffice, with standard errors", _OURS, "fit", {"errors": True}, work=_ERRORS),
)
DENSE = (
    *_pair("numpy IRLS by hand", _NUMPY, "numpy"),
    Contender("numpy IRLS by hand, with standard errors", _NUMPY, "fit", {"errors": True}, work=_ERRORS),
    *_pair("scikit-learn, newton-cholesky", _SKLEARN, "sklearn", solver="newton-cholesky"),
    Contender(
        "statsmodels, IRLS, with standard errors", _STATSMODELS, "fit", {}, "statsmodels", work=_ERRORS, tuned=True
    ),
)
SPARSE = (*_pair("scikit-learn, lbfgs", _SKLEARN, "sklearn", solver="lbfgs"), *_pair("glum, irls-ls", _GLUM, "glum"))


@dataclass(frozen=True)
class Fit:
    """One shape of the rows; `levels` are those of a factor beside the real columns, which then has a ridge prior."""

    NAME: str
    family: str
    ROWS: int
    columns: int
    levels: int = 0
    REPEATS: int = 3

    @property
    def CONTENDERS(self) -> tuple[Contender, ...]:  # noqa: N802  a constant of the problem
        # With thousands of levels a dense information matrix, or a dense design, is beyond the memory of most machines.
        return (*OURS, *SPARSE, *(() if self.levels else DENSE))

    def title(self, rows: int) -> str:
        factor = f" and a factor of {_levels(self.levels, rows):,} levels, ridge" if self.levels else ""
        shape = f"{rows:,} rows, {self.columns} columns{factor}"
        return f"{self.family} regression, {shape}; equal slopes of a mean row: {GAP:.0e}"

    def make(self, rows: int, seed: int) -> Data:
        levels = _levels(self.levels, rows)
        return draw(self.family, rows, self.columns, seed, levels=levels, ridge=float(self.levels > 0))

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
