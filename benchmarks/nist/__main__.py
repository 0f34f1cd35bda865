"""The command ``python -m benchmarks.nist``: digits of NIST's certified values, beside other programs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from benchmarks.nist.data import ANOVAS, REGRESSIONS, SAMPLES
from benchmarks.nist.digits import (
    ANOVA_PROGRAMS,
    OTHERS,
    OURS,
    SAMPLE_PROGRAMS,
    anova_digits,
    answer,
    sample_digits,
)


def shown(figures: Iterable[float | None]) -> str:
    """Digits of several figures as one cell."""
    return " / ".join("-" if figure is None else f"{figure:.1f}" for figure in figures)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def regressions() -> str:
    """Digits of coefficients, their standard deviations and that of the residuals."""
    programs = {**OURS, **OTHERS}
    rows = []
    for problem in REGRESSIONS:
        found = [answer(program, problem) for program in programs.values()]
        rows.append([problem.name, *("" if one is None else shown(one.digits(problem)) for one in found)])
    return table(["regression", *programs], rows)


def anovas() -> str:
    """Digits of F and of the residual standard deviation."""
    rows = [[one.name, *(shown(anova_digits(program, one)) for program in ANOVA_PROGRAMS.values())] for one in ANOVAS]
    return table(["analysis of variance", *ANOVA_PROGRAMS], rows)


def samples() -> str:
    """Digits of mean and standard deviation."""
    rows = [[one.name, *(shown(sample_digits(made, one)) for made in SAMPLE_PROGRAMS.values())] for one in SAMPLES]
    return table(["sample", *SAMPLE_PROGRAMS], rows)


if __name__ == "__main__":
    print("\n\n".join((regressions(), anovas(), samples())))
