"""Tables of estimates: that of a fit, as `summary()` gives it, and those of what follows from its parameters."""

from __future__ import annotations

import html
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from suffice.array_types import Floats
from suffice.errors import EstimateError, require
from suffice.fitting.inference import Inference
from suffice.fitting.named import NamedVector, aligned, number_text

#: Rows that a text or a page shows; `to_frame` and `to_latex` have all of them.
SHOWN = 100
#: What LaTeX reads as a command.
_LATEX = str.maketrans(
    {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "|": r"\textbar{}"}
    | {sign: f"\\{sign}" for sign in "&%$#_{}"}
    | {"<": r"\textless{}", ">": r"\textgreater{}"}
)


@dataclass(frozen=True)
class NumberTable:
    """Numbers by name: `head` is label and text, `columns` the headings, `rows` (name, numbers).

    `marks` are words behind the rows, `notes` lines below them.
    """

    head: tuple[tuple[str, str], ...]
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[float, ...]], ...]
    marks: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def _names(self) -> list[str]:
        return [name for name, _ in self.rows]

    def to_frame(self) -> Any:
        """A pandas DataFrame, one row for each name."""
        pd = require("pandas", extra="all", purpose="to_frame")

        return pd.DataFrame([values for _, values in self.rows], index=self._names(), columns=list(self.columns))

    def _shown(self) -> list[int]:
        """The columns in which some parameter has a number."""
        values = np.array([values for _, values in self.rows], dtype=np.float64).reshape(-1, len(self.columns))
        return [number for number in range(len(self.columns)) if not np.isnan(values[:, number]).all()]

    def _cells(self, most: int | None = None) -> list[list[str]]:
        """Titles, and the texts of the first rows; a number that there is not is left blank."""
        shown, marked = self._shown(), any(self.marks)
        titles = ["", *(self.columns[number] for number in shown), *([""] if marked else [])]
        marks = self.marks or ("",) * len(self.rows)
        return [titles] + [
            [
                name,
                *("" if np.isnan(values[number]) else number_text(values[number]) for number in shown),
                *([mark] if marked else []),
            ]
            for (name, values), mark in zip(self.rows[:most], marks, strict=False)
        ]

    def _below(self) -> list[str]:
        rest = len(self.rows) - SHOWN
        more = [f"... ({rest:,} more parameters; to_frame() has all)"] if rest > 0 else []
        return [*more, *self.notes]

    def __str__(self) -> str:
        """Aligned text."""
        wide = max((len(label) for label, _ in self.head), default=0)
        top = [f"{label:<{wide}}  {text}".rstrip() for label, text in self.head]
        body = [line.rstrip() for line in aligned(self._cells(SHOWN))]
        return "\n".join([*top, "", *body, *self._below()])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        head = "".join(f"<tr><th>{html.escape(a)}</th><td>{html.escape(b)}</td></tr>" for a, b in self.head)
        columns, *rows = self._cells(SHOWN)
        titles = "".join(f"<th>{html.escape(title)}</th>" for title in columns)
        body = "".join(
            f"<tr><th>{html.escape(name)}</th>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + "</tr>"
            for name, *cells in rows
        )
        below = "".join(f"<p>{html.escape(line)}</p>" for line in self._below())
        return f"<table>{head}</table><table><tr>{titles}</tr>{body}</table>{below}"

    to_html = _repr_html_

    def to_latex(self) -> str:
        """A `tabular` of the parameters, for LaTeX with no package."""
        cells = self._cells()
        lines = [" & ".join(cell.translate(_LATEX) for cell in row) for row in cells]
        titles, *body = (f"{line} \\\\" for line in lines)
        columns = "l" + "r" * (len(cells[0]) - 1)
        return "\n".join(
            [f"\\begin{{tabular}}{{{columns}}}", r"\hline", titles, r"\hline", *body, r"\hline", r"\end{tabular}"]
        )


@dataclass(frozen=True)
class EstimateTable(NumberTable):
    """Estimates with their errors.

    The figures have the names of statsmodels, too: `params`, `bse`, `tvalues`, `pvalues`, `conf_int()` and
    `cov_params()`.
    """

    covariance: Callable[[], Floats] | None = field(default=None, repr=False, compare=False)

    @classmethod
    def of_estimates(cls, inference: Inference, head: tuple[tuple[str, str], ...], level: float, **more: Any) -> Self:
        """Those of an inference, with intervals of a level."""
        figures = inference.figures(level)
        titles = (inference.heading, "std. error", inference.statistic, "p value", *interval_titles(level))
        rows = tuple((name, tuple(values)) for name, values in zip(inference.names, figures.tolist(), strict=True))
        notes = (inference.about,) if inference.about else ()
        return cls(head, titles, rows, inference.marks, notes, lambda: inference.covariance, **more)

    @property
    def params(self) -> NamedVector:
        """The estimates by name."""
        return self._column(0)

    @property
    def bse(self) -> NamedVector:
        """Their standard errors."""
        return self._column(1)

    @property
    def tvalues(self) -> NamedVector:
        """Estimates over standard errors: z, or t where the dispersion is estimated; NaN where 0 is no hypothesis."""
        return self._column(2)

    @property
    def pvalues(self) -> NamedVector:
        """Their two-sided p values."""
        return self._column(3)

    def conf_int(self) -> NamedVector:
        """The intervals (k, 2) of the table."""
        return NamedVector.of([values[-2:] for _, values in self.rows], self._names())

    def cov_params(self) -> Any:
        """The covariance of the estimates, a pandas DataFrame by name."""
        pd = require("pandas", extra="all", purpose="cov_params")
        if self.covariance is None:
            raise EstimateError("This table was made without the covariance of its estimates.")
        return pd.DataFrame(self.covariance(), index=self._names(), columns=self._names())

    def _column(self, number: int) -> NamedVector:
        return NamedVector.of([values[number] for _, values in self.rows], self._names())


def interval_titles(level: float) -> tuple[str, str]:
    """The headings of both ends of intervals of a level."""
    return f"{50 * (1 - level):g}%", f"{50 * (1 + level):g}%"


@dataclass(frozen=True)
class ParameterTable(EstimateTable):
    """The table of a fit: its estimates, and log-likelihood, AIC and BIC as statsmodels names them."""

    llf: float = math.nan
    aic: float = math.nan
    bic: float | None = None

    @classmethod
    def of(
        cls, inference: Inference, head: tuple[tuple[str, str], ...], level: float, llf: float, aic: float, bic: Any
    ) -> ParameterTable:
        """The table of the parameters of a fit, with intervals of a level."""
        return cls.of_estimates(inference, head, level, llf=llf, aic=aic, bic=bic)
