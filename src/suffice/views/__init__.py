"""Reports and plots: the page of a fit, what a notebook shows, and `plot`. They read portraits, and know no model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from suffice.views import plot as plot

if TYPE_CHECKING:
    from suffice.fitting.portrait import Portrait
    from suffice.fitting.report import Report
    from suffice.storage.files import FilePath

__all__ = ["model_card", "plot", "write_report"]


def write_report(
    report: Report, portrait: Portrait | None, path: FilePath | None = None, title: str | None = None
) -> str:
    """The page of a report and of its model; written to `path` where one is given, and returned as text.

    title: what the page is called; the name of the model unless said.
    """
    from suffice.views.page import page_of

    text = page_of(report, portrait, title)
    if path is not None:
        Path(path).write_text(text, encoding="utf-8")
    return text


def model_card(made: str, portrait: Portrait, report: Report | None) -> str:
    """What a notebook shows of a model: how it was made, its graph, and its receipt where it is fitted."""
    from suffice.views.card import card_of

    return card_of(made, portrait, report)
