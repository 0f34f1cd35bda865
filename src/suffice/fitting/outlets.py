"""Where models go when they leave the process: onto a page, into a notebook, to a file and back.

Pages and formats look at models from outside and stand above them, so nothing here knows them: the root of the package,
which knows all its parts, connects them when it is imported, by functions that load them when they are first used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from suffice.fitting.portrait import Portrait
    from suffice.fitting.report import Report
    from suffice.storage.files import FilePath

_CONNECTED: dict[str, Callable[..., Any]] = {}


def connect(
    *,
    page: Callable[[Report, Portrait | None, Any, str | None], str],
    card: Callable[[str, Portrait, Report | None], str],
    write: Callable[[Any, Any], None],
    read: Callable[[Any], Any],
) -> None:
    """Say what makes pages and cards, and what writes and reads files."""
    _CONNECTED.update(page=page, card=card, write=write, read=read)


def page(report: Report, portrait: Portrait | None, path: FilePath | None = None, title: str | None = None) -> str:
    """The page of a report, written to `path` where one is given; without a portrait it shows the receipt alone."""
    return str(_CONNECTED["page"](report, portrait, path, title))


def card(made: str, portrait: Portrait, report: Report | None) -> str:
    """What a notebook shows of a model: how it was made, its graph, and its receipt where it is fitted."""
    return str(_CONNECTED["card"](made, portrait, report))


def write(model: object, path: FilePath) -> None:
    """Save a model to a file; the ending says the format."""
    _CONNECTED["write"](model, path)


def read(path: FilePath) -> Any:
    """What a file holds; the ending says the format."""
    return _CONNECTED["read"](path)
