"""Reading and writing by ending: the library's own file, and the table in which other formats enter.

A format is a module with ``load(path)`` and, where it can be written, ``save(path, model)``. It sees a model from
outside only: through its public names, or as the plain data of ``model.to_plain()`` and ``Class.from_plain(state)``.
"""

from __future__ import annotations

import importlib
import os
from typing import Any

from suffice.errors import OptionError

FilePath = str | os.PathLike[str]

#: Ending -> the module that reads and writes it, imported on first use.
FORMATS: dict[str, str] = {".json": "suffice.storage", ".suffice": "suffice.storage"}


def read(path: FilePath) -> Any:
    """Load the object in a file: a model, a distribution, a `Summary`; the ending says the format.

    ``.json`` and ``.suffice`` give back what was written, to the bit. A file that is damaged, hostile or written by a
    newer version raises `FileFormatError` and builds nothing.
    """
    return _format_of(path).load(path)


def write(model: Any, path: FilePath) -> None:
    """Save a model, a distribution or a `Summary`; the ending says the format.

    The file is replaced whole: after a crash the old one is still there.
    """
    module = _format_of(path)
    if not hasattr(module, "save"):
        raise OptionError(
            f"{os.fspath(path)!r}: this format can be read but not written. Choose '.json' or '.suffice'."
        )
    module.save(path, model)


def _format_of(path: FilePath) -> Any:
    name = os.path.basename(os.fspath(path)).lower()
    for ending in sorted(FORMATS, key=len, reverse=True):
        if name.endswith(ending):
            return importlib.import_module(FORMATS[ending])
    raise OptionError(f"{os.fspath(path)!r} has no known ending; known: {', '.join(FORMATS)}.")
