"""Questions that travel are the library's own: records and functions that the package defines, by name."""

from __future__ import annotations

import importlib
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import partial
from types import MethodType
from typing import Any

from suffice.errors import OptionError

_FOREIGN = (
    "a site answers questions of suffice alone, and runs nothing that came with one. Use a model, a family and "
    "features that the library defines"
)


def check_named(value: Any) -> None:
    """Raise where a question holds a function, or an object, that the library does not define."""
    if isinstance(value, partial):
        check_named(value.func)
        check_named((*value.args, *value.keywords.values()))
    elif isinstance(value, tuple | list | frozenset | set):
        for part in value:
            check_named(part)
    elif isinstance(value, dict):
        check_named((*value.keys(), *value.values()))
    elif isinstance(value, MethodType):
        check_named((value.__func__, value.__self__))
    elif isinstance(value, type):  # Called with rows, it would be a record of them.
        raise OptionError(f"A question holds the class {value.__module__}.{value.__qualname__}; {_FOREIGN}.")
    elif callable(value) and hasattr(value, "__qualname__"):
        if _named(value.__module__, value.__qualname__) is not value:
            raise OptionError(f"A question holds {value.__module__}.{value.__qualname__}; {_FOREIGN}.")
    elif _of_package(type(value).__module__):
        if is_dataclass(value):
            for field in fields(value):
                check_named(getattr(value, field.name, None))
        elif not isinstance(value, Enum):
            check_named(vars(value) if hasattr(value, "__dict__") else ())
    elif type(value).__module__.partition(".")[0] not in _DATA:
        raise OptionError(
            f"A question holds an object of {type(value).__module__}.{type(value).__qualname__}; {_FOREIGN}."
        )


#: Modules of plain values: numbers, texts, dates, arrays.
_DATA = frozenset({"builtins", "numpy", "datetime", "decimal", "fractions", "uuid", "zoneinfo", "types"})


def _of_package(module: str | None) -> bool:
    return module is not None and module.partition(".")[0] == "suffice"


def _named(module: str | None, name: str) -> Any:
    """What the package defines under a name; None where it does not."""
    if module is None or not _of_package(module):
        return None
    value: Any = importlib.import_module(module)
    for part in name.split("."):
        value = getattr(value, part, None)
    return value
