"""Reports and plots: the page of a fit, what a notebook shows, and `plot`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from suffice.views import plot as plot

if TYPE_CHECKING:
    from suffice.fitting.report import Report

__all__ = ["model_card", "plot", "write_report"]


def write_report(report: Report, model: Any, path: Any = None) -> str:
    """The page of a report and its model; written to `path` where one is given, and returned as text."""
    from suffice.views.page import page_of

    text = page_of(report, model)
    if path is not None:
        Path(path).write_text(text, encoding="utf-8")
    return text


def model_card(model: Any) -> str:
    """What a notebook shows of a model, fitted or not."""
    from suffice.views.card import card_of

    return card_of(model)
